//! What stubs begin with, the arguments of system interfaces, and OBJREFs wherever they are.

use super::{FieldReader, hex, interface_name};
use crate::activation::{Activation, remote, scm};
use crate::bindings::{DualStringArray, StringBinding};
use crate::objref::{ObjRef, SIGNATURE, StdObjRef};
use crate::orpc::{self, CONTEXT_EXTENSION, ERROR_EXTENSION, Extent, OrpcThat, OrpcThis};
use crate::remunknown::Refs;
use crate::session::verification::MAGIC;
use crate::stub::Get;
use crate::tower::Tower;
use crate::violations::Violation;
use crate::{
    ENDPOINT_MAPPER, OBJECT_EXPORTER, REM_UNKNOWN, REM_UNKNOWN2, REMOTE_ACTIVATION, SCM_ACTIVATOR, is_orpc,
    names, remunknown, resolver,
};
use bytes::Bytes;
use uuid::Uuid;

/// Operation number of ept_map.
const EPT_MAP: u16 = 3;

/// The stub of a request, which begins at the place of the reading; `object`: the request names an object.
pub(super) fn arguments(reading: &mut FieldReader<'_>, interface: Option<Uuid>, opnum: u16, object: bool) {
    let begin = reading.get.position();
    let stub = Bytes::copy_from_slice(reading.bytes.get(begin..).unwrap_or_default());
    let little = reading.get.little();
    // Calls of objects name the object (MS-DCOM 3.1.1.5.4); those that activate objects need not.
    let activates = |iid| matches!(iid, SCM_ACTIVATOR | REMOTE_ACTIVATION);
    let plain = interface.is_some_and(|iid| !is_orpc(iid) || !(object || activates(iid)));
    let this = if plain { None } else { OrpcThis::parse(&stub, little).ok() };
    let mut at = 0;
    let mut version = (5, 7);
    if let Some((this, taken)) = this.filter(|(this, _)| this.version.0 == 5 && this.version.1 <= 7) {
        let (major, minor) = this.version;
        let extensions = extensions(&this.extensions);
        let value = format!("COM {major}.{minor}, flags {}, causality {}{extensions}", this.flags, this.cid);
        reading.part(begin, taken, "ORPCTHIS", value);
        (at, version) = (taken, this.version);
    }
    let rest = stub.get(at..).unwrap_or_default();
    let said = interface.and_then(|iid| said(iid, opnum, version, Get::after(rest, at, little)));
    values(reading, "arguments", begin + at, &stub.slice(at..), said);
}

/// The stub of a response. Whether it begins with ORPCTHAT, nothing says: it looks like it or not.
pub(super) fn results(reading: &mut FieldReader<'_>) {
    let begin = reading.get.position();
    let stub = Bytes::copy_from_slice(reading.bytes.get(begin..).unwrap_or_default());
    let that = OrpcThat::parse(&stub, reading.get.little()).ok();
    let mut at = 0;
    if let Some((that, taken)) = that.filter(|(that, taken)| that.flags <= 1 && stub.len() >= taken + 4) {
        let value = format!("flags {}{} (if this is ORPC)", that.flags, extensions(&that.extensions));
        reading.part(begin, taken, "ORPCTHAT", value);
        at = taken;
    }
    let rest = stub.get(at..).unwrap_or_default();
    let activated = scm::parse_reply(Get::after(rest, at, reading.get.little())).ok();
    let said = activated.filter(|activated| activated.oxid != 0).map(|activated| {
        let exporter = &activated.resolved;
        Ok(format!(
            "activated: OXID {:#018x}, IRemUnknown {}, level {} or higher, at {}",
            activated.oxid,
            exporter.rem_unknown,
            exporter.authn_hint,
            bindings(&exporter.bindings)
        ))
    });
    values(reading, "results", begin + at, &stub.slice(at..), said);
}

/// The values, which begin at `begin`; and what can be recognized in them.
fn values(
    reading: &mut FieldReader<'_>,
    name: &'static str,
    begin: usize,
    values: &Bytes,
    said: Option<Result<String, Violation>>,
) {
    if values.is_empty() {
        return;
    }
    reading.body = Some((begin, values.len()));
    let text = match said {
        Some(said) => said.unwrap_or_else(|violation| format!("broken: {violation}")),
        None => hex(values),
    };
    reading.part(begin, values.len(), name, text);
    for (at, len, objref) in objrefs(values) {
        reading.part(begin + at, len, "OBJREF", objref_text(&objref));
    }
    let verification = values.windows(MAGIC.len()).rposition(|window| window == MAGIC);
    if let Some(at) = verification {
        let trailer = values.get(at..).unwrap_or_default();
        reading.part(begin + at, trailer.len(), "verification trailer", hex(trailer));
    }
}

/// What the arguments of a system interface say.
fn said(iid: Uuid, opnum: u16, version: (u16, u16), stub: Get<'_>) -> Option<Result<String, Violation>> {
    Some(match (iid, opnum) {
        (OBJECT_EXPORTER, resolver::opnum::RESOLVE_OXID | resolver::opnum::RESOLVE_OXID2) => {
            resolver::parse_resolve_oxid2_request(stub)
                .map(|(oxid, protseqs)| format!("OXID {oxid:#018x}, by {}", protocols(&protseqs)))
        }
        (OBJECT_EXPORTER, resolver::opnum::SIMPLE_PING) => {
            resolver::parse_simple_ping_request(stub).map(|set| format!("set {set:#018x}"))
        }
        (OBJECT_EXPORTER, resolver::opnum::COMPLEX_PING) => {
            resolver::parse_complex_ping_request(stub).map(|ping| {
                let (more, less) = (ping.add.len(), ping.remove.len());
                format!("set {:#018x}, sequence {}, {more} more, {less} less", ping.set, ping.sequence)
            })
        }
        (REM_UNKNOWN | REM_UNKNOWN2, remunknown::opnum::REM_QUERY_INTERFACE) => {
            remunknown::parse_query_request(stub, false)
                .map(|query| format!("IPID {}, {} references, {}", query.ipid, query.refs, iids(&query.iids)))
        }
        (REM_UNKNOWN2, remunknown::opnum::REM_QUERY_INTERFACE2) => {
            remunknown::parse_query_request(stub, true)
                .map(|query| format!("IPID {}, {}", query.ipid, iids(&query.iids)))
        }
        (REM_UNKNOWN | REM_UNKNOWN2, remunknown::opnum::REM_ADD_REF | remunknown::opnum::REM_RELEASE) => {
            remunknown::parse_refs_request(stub).map(|refs| {
                let count = |refs: &Refs| u64::from(refs.public) + u64::from(refs.private);
                let each = refs.iter().map(|refs| format!("{} of {}", count(refs), refs.ipid));
                each.collect::<Vec<_>>().join(", ")
            })
        }
        (REMOTE_ACTIVATION, remote::REMOTE_ACTIVATION) => {
            remote::parse_request(stub, version).map(|asked| activation(&asked))
        }
        (SCM_ACTIVATOR, scm::GET_CLASS_OBJECT | scm::CREATE_INSTANCE) => {
            scm::parse_request(stub, opnum).map(|asked| activation(&asked))
        }
        (ENDPOINT_MAPPER, EPT_MAP) => ept_map(stub),
        _ => return None,
    })
}

/// The tower that is asked for.
fn ept_map(mut stub: Get<'_>) -> Result<String, Violation> {
    if stub.pointer()? {
        stub.uuid()?;
    }
    stub.reference()?;
    stub.conformance(1, None)?;
    let len = stub.u32()? as usize;
    Tower::parse(stub.take(len)?).map(|tower| tower.to_string())
}

/// What an activation asks for, in a line.
fn activation(asked: &Activation) -> String {
    let what = if asked.class_object { "class object of" } else { "new object of" };
    format!("{what} {}, {}, by {}", asked.clsid, iids(&asked.iids), protocols(&asked.protseqs))
}

fn iids(iids: &[Uuid]) -> String {
    iids.iter().copied().map(interface_name).collect::<Vec<_>>().join(", ")
}

fn protocols(protseqs: &[u16]) -> String {
    protseqs.iter().map(|protseq| names::protocol(*protseq)).collect::<Vec<_>>().join(", ")
}

/// The extensions of ORPCTHIS or ORPCTHAT, with the text of error information.
fn extensions(extensions: &[Extent]) -> String {
    let mut text = String::new();
    for extent in extensions {
        let name = match extent.id {
            ERROR_EXTENSION => "error information".to_owned(),
            CONTEXT_EXTENSION => "context".to_owned(),
            other => other.to_string(),
        };
        text.push_str(&format!(", extension {name} ({} bytes)", extent.data.len()));
    }
    if let Some(info) = orpc::error_info(extensions) {
        text.push_str(&format!(": {} says `{}`", info.source, info.description));
    }
    text
}

/// OBJREFs in a stub: place, length, contents. Those inside another, as in activation properties, are among them.
fn objrefs(stub: &Bytes) -> Vec<(usize, usize, ObjRef)> {
    let signature = SIGNATURE.to_le_bytes();
    let mut found = Vec::new();
    for (at, _) in stub.windows(4).enumerate().filter(|(_, window)| *window == signature) {
        // The two counts of an MInterfacePointer before it bound it.
        let count = |before: usize| {
            let raw = stub.get(at.checked_sub(before)?..)?.first_chunk()?;
            usize::try_from(u32::from_le_bytes(*raw)).ok()
        };
        let rest = stub.slice(at..);
        let bound = count(4).filter(|len| count(8) == Some(*len) && *len <= rest.len());
        if let Ok((objref, len)) = ObjRef::parse(&rest.slice(..bound.unwrap_or(rest.len()))) {
            found.push((at, len, objref));
        }
    }
    found
}

/// An OBJREF in a line.
fn objref_text(objref: &ObjRef) -> String {
    let iid = interface_name(objref.iid());
    match (objref, objref.standard()) {
        (_, Some((std, resolver))) => {
            let ping = if std.flags & StdObjRef::NO_PING == 0 { "" } else { ", not pinged" };
            let StdObjRef { public_refs, oxid, oid, ipid, .. } = std;
            let at = bindings(resolver);
            format!(
                "{iid}, {public_refs} references, OXID {oxid:#018x}, OID {oid:#018x}, IPID {ipid}{ping}, at {at}"
            )
        }
        (ObjRef::Custom { clsid, data, .. }, None) => {
            format!("{iid}, by value of class {clsid}, {} bytes", data.len())
        }
        (_, None) => iid,
    }
}

/// String bindings and security bindings in a line.
fn bindings(array: &DualStringArray) -> String {
    let one = |binding: &StringBinding| format!("{}:{}", names::protocol(binding.tower), binding.address);
    let mut text = array.strings.iter().map(one).collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        text.push_str("no address");
    }
    let services: Vec<&str> = array.security.iter().map(|binding| names::service(binding.service)).collect();
    if !services.is_empty() {
        text.push_str(&format!(" ({})", services.join(", ")));
    }
    text
}
