//! Stubs of IRemoteActivation (MS-DCOM 3.1.2.5.2.3.1) after ORPCTHIS and ORPCTHAT.
//!
//! There is no pointer to in-parameters that are reference pointers; the array of interfaces has one, since
//! it is a unique pointer. j-Interop leaves ten octets behind the arguments, so what follows them is not
//! looked at.

use super::{Activated, Activation, interfaces_asked, objrefs, put_objrefs};
use crate::bindings::DualStringArray;
use crate::hresult::{self, is_failure};
use crate::resolver::OxidResolution;
use crate::stub::{Get, StubWriter};
use crate::violations::Violation;
use uuid::Uuid;

/// Operation number of RemoteActivation.
pub const REMOTE_ACTIVATION: u16 = 0;

/// The mode that asks for the class object.
const GET_CLASS_OBJECT: u32 = u32::MAX;

/// Arguments. What they cannot say is the client's COMVERSION: that is what ORPCTHIS tells.
pub fn write_request(activation: &Activation) -> Vec<u8> {
    let mode = if activation.class_object { GET_CLASS_OBJECT } else { 0 };
    let mut out = StubWriter::default();
    // Neither the name of a file nor a storage to make the object from.
    out.uuid(activation.clsid).pointer(false).pointer(false).u32(activation.impersonation).u32(mode);
    out.count(activation.iids.len()).pointer(true).array(activation.iids.iter().copied(), StubWriter::uuid);
    out.counted(false, &activation.protseqs, StubWriter::u16).done()
}

/// Reads them; `version` is that of ORPCTHIS.
pub fn parse_request(mut stub: Get<'_>, version: (u16, u16)) -> Result<Activation, Violation> {
    let clsid = stub.uuid()?;
    if stub.pointer()? {
        stub.wide()?;
    }
    if stub.pointer()? {
        stub.interface_pointer()?;
    }
    let (impersonation, mode) = (stub.u32()?, stub.u32()?);
    let count = interfaces_asked(&mut stub)?;
    stub.reference()?;
    let iids = stub.array(count, 16, Get::uuid)?;
    let protseqs = stub.counted(2, Get::u16)?;
    let class_object = mode == GET_CLASS_OBJECT;
    Ok(Activation { clsid, iids, class_object, version, protseqs, impersonation })
}

/// Results; the interfaces are those asked for, in their order.
pub fn write_reply(activated: &Activated) -> Vec<u8> {
    let Activated { oxid, resolved, hresult, interfaces } = activated;
    let found = !is_failure(*hresult);
    let mut out = StubWriter::default();
    out.u64(*oxid).pointer(found);
    if found {
        resolved.bindings.put(&mut out);
    }
    out.uuid(resolved.rem_unknown).u32(resolved.authn_hint).version(resolved.version).u32(*hresult);
    let hresults = interfaces.iter().map(|(_, hresult, _)| *hresult);
    put_objrefs(&mut out, interfaces).array(hresults, StubWriter::u32).u32(hresult::S_OK).done()
}

/// Reads them; `iids` are those asked for.
pub fn parse_reply(mut stub: Get<'_>, iids: &[Uuid]) -> Result<Activated, Violation> {
    let oxid = stub.u64()?;
    let found = stub.pointer()?;
    let bindings = if found { DualStringArray::get(&mut stub)? } else { DualStringArray::default() };
    let (rem_unknown, authn_hint, version) = (stub.uuid()?, stub.u32()?, stub.version()?);
    let hresult = stub.u32()?;
    let objrefs = objrefs(&mut stub, iids.len())?;
    let hresults = stub.array(iids.len(), 4, Get::u32)?;
    let status = stub.u32()?;
    let hresult = if is_failure(hresult) || status == 0 { hresult } else { status_failure(status) };
    if !found && !is_failure(hresult) {
        return Err(Violation::NullReference);
    }
    let interfaces = iids.iter().zip(hresults).zip(objrefs);
    Ok(Activated {
        oxid,
        resolved: OxidResolution { bindings, rem_unknown, authn_hint, version },
        hresult,
        interfaces: interfaces.map(|((iid, hresult), objref)| (*iid, hresult, objref)).collect(),
    })
}

/// An error code of Windows as an HRESULT (HRESULT_FROM_WIN32, MS-ERREF 2.1.2).
fn status_failure(status: u32) -> u32 {
    if is_failure(status) { status } else { 0x8007_0000 | status & 0xffff }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{activated, activation};
    use super::*;

    #[test]
    fn requests_and_results_read_as_written() {
        for class_object in [false, true] {
            let asked = Activation { class_object, ..activation() };
            let stub = write_request(&asked);
            assert_eq!(parse_request(Get::new(&stub, true), (5, 7)), Ok(asked));
        }
        let stub = write_reply(&activated());
        assert_eq!(parse_reply(Get::new(&stub, true), &activation().iids), Ok(activated()));
    }

    #[test]
    fn a_failure_reads_as_written() {
        let interfaces = activation().iids.into_iter().map(|iid| (iid, hresult::REGDB_E_CLASSNOTREG, None));
        let failed = Activated {
            hresult: hresult::REGDB_E_CLASSNOTREG,
            interfaces: interfaces.collect(),
            ..Activated::default()
        };
        let mut stub = write_reply(&failed);
        assert_eq!(parse_reply(Get::new(&stub, true), &activation().iids), Ok(failed));
        // Bindings may be missing only then; an error code in the end counts as well.
        stub[36..40].fill(0);
        assert_eq!(parse_reply(Get::new(&stub, true), &activation().iids), Err(Violation::NullReference));
        let len = stub.len();
        stub[len - 4] = 5;
        let refused = parse_reply(Get::new(&stub, true), &activation().iids).unwrap();
        assert_eq!(refused.hresult, hresult::E_ACCESSDENIED);
    }

    #[test]
    fn whatever_is_cut_off_is_missed() {
        let (request, reply) = (write_request(&activation()), write_reply(&activated()));
        for len in 0..request.len() {
            assert!(parse_request(Get::new(&request[..len], true), (5, 7)).is_err());
        }
        for len in 0..reply.len() {
            assert!(parse_reply(Get::new(&reply[..len], true), &activation().iids).is_err());
        }
    }
}
