//! Activation: asking a machine for an object of a class (MS-DCOM 3.1.2.5.2). There are two interfaces for it: the
//! older IRemoteActivation, and IRemoteSCMActivator, whose arguments are property blobs.
//!
//! A client tries IRemoteSCMActivator first (Windows 2000 and later), then IRemoteActivation (j-Interop,
//! Samba's tests, Windows NT 4); a server answers both.

mod blob;
pub mod properties;
pub mod remote;
pub mod scm;

use crate::hresult::S_OK;
use crate::limits::INTERFACES_ASKED;
use crate::objref::ObjRef;
use crate::resolver::OxidResolution;
use crate::stub::{Get, StubWriter};
use crate::violations::Violation;
use bytes::Bytes;
use std::net::IpAddr;
use uuid::Uuid;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    /// The class.
    pub clsid: Uuid,
    /// Interfaces wanted; at least one.
    pub iids: Vec<Uuid>,
    /// Whether the class object is wanted instead of a new object.
    pub class_object: bool,
    /// The client's COMVERSION.
    pub version: (u16, u16),
    /// Protocols that the client can speak.
    pub protseqs: Vec<u16>,
    /// The client's impersonation level: 2 identify, 3 impersonate.
    pub impersonation: u32,
}

/// The results of an activation, in the same form for both interfaces of activation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activated {
    /// The object exporter; 0 if the activation failed.
    pub oxid: u64,
    /// Where that exporter is, so that the client needs no ResolveOxid.
    pub resolved: OxidResolution,
    /// HRESULT of the whole; each interface has one of its own beside.
    pub hresult: u32,
    /// Per interface asked for: IID, HRESULT, OBJREF.
    pub interfaces: Vec<(Uuid, u32, Option<Bytes>)>,
}

/// How many interfaces are asked for.
fn interfaces_asked(stub: &mut Get<'_>) -> Result<usize, Violation> {
    let count = stub.u32()? as usize;
    if (1..=INTERFACES_ASKED).contains(&count) { Ok(count) } else { Err(Violation::BoundExceeded) }
}

/// An array of pointers to OBJREFs, and those that are there.
fn objrefs(stub: &mut Get<'_>, count: usize) -> Result<Vec<Option<Bytes>>, Violation> {
    let held = stub.array(count, 4, Get::pointer)?;
    held.into_iter().map(|held| held.then(|| stub.interface_pointer()).transpose()).collect()
}

/// Writes what `objrefs` reads.
fn put_objrefs<'p>(out: &'p mut StubWriter, interfaces: &[(Uuid, u32, Option<Bytes>)]) -> &'p mut StubWriter {
    out.array(interfaces.iter().map(|(_, _, objref)| objref.is_some()), StubWriter::pointer);
    let there = interfaces.iter().filter_map(|(_, _, objref)| objref.as_ref());
    there.fold(out, |out, raw| out.interface_pointer(raw))
}

impl Activation {
    /// The answer that there is nothing, since the whole failed.
    pub(crate) fn refused(&self, hresult: u32) -> Activated {
        let interfaces = self.iids.iter().map(|iid| (*iid, S_OK, None)).collect();
        Activated { hresult, interfaces, ..Activated::default() }
    }
}

impl Activated {
    /// The same for the peer of a connection that ends here at this address: see [`crate::bindings::DualStringArray::seen_at`].
    #[must_use]
    pub fn seen_at(mut self, local: Option<IpAddr>) -> Self {
        self.resolved.bindings = self.resolved.bindings.seen_at(local);
        for (_, _, objref) in &mut self.interfaces {
            if let Some(Ok((found, _))) = objref.as_ref().map(ObjRef::parse) {
                *objref = Some(found.seen_at(local).write());
            }
        }
        self
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bindings::{DualStringArray, SecurityBinding, StringBinding};
    use crate::hresult;

    pub(crate) fn activation() -> Activation {
        Activation {
            clsid: Uuid::from_u128(1),
            iids: vec![Uuid::from_u128(2), Uuid::from_u128(3)],
            class_object: false,
            version: (5, 7),
            protseqs: vec![7],
            impersonation: 2,
        }
    }

    pub(crate) fn activated() -> Activated {
        let bindings = DualStringArray {
            strings: vec![StringBinding { tower: 7, address: "10.1.2.3[49152]".into() }],
            security: vec![SecurityBinding { service: 10, principal: String::new() }],
        };
        let rem_unknown = Uuid::from_u128(4);
        Activated {
            oxid: 5,
            resolved: OxidResolution { bindings, rem_unknown, authn_hint: 5, version: (5, 7) },
            hresult: hresult::S_OK,
            interfaces: vec![
                (Uuid::from_u128(2), 0, Some(Bytes::from_static(b"MEOW, some OBJREF"))),
                (Uuid::from_u128(3), hresult::E_NOINTERFACE, None),
            ],
        }
    }
}
