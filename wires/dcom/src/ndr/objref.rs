//! Interface pointers as values: MInterfacePointers whose OBJREF is kept as it came (MS-DCOM 2.2.18).

use crate::violations::{Violation, unsupported};
use bytes::Bytes;
use everywire_model::visit::Visit;
use everywire_model::{Endpoint, Lease, Profile, Reference};

/// The first word of an OBJREF, `MEOW`; also the tag of the profile component that keeps the whole OBJREF.
const SIGNATURE: u32 = 0x574f_454d;
const STANDARD: u32 = 1;
/// Offsets in a standard OBJREF: header (signature, flags, IID), STDOBJREF, then the string bindings.
const IID: usize = 8;
const IPID: usize = 48;
const BINDINGS: usize = 64;
const TCP_TOWER: u16 = 7;

/// Reads an OBJREF, found `offset` bytes into the stub. The whole stays in a component, so that it can be passed on.
pub(super) fn parse(objref: Bytes, offset: usize) -> Visit<Reference> {
    let broken = || Violation::BadObjref.at(offset);
    if word(&objref, 0) != Some(SIGNATURE) {
        return Err(broken());
    }
    let flags = word(&objref, 4).ok_or_else(broken)?;
    let type_id = uuid(objref.get(IID..IID + 16).ok_or_else(broken)?);
    let (key, endpoints) = if flags == STANDARD {
        let key = objref.get(IPID..BINDINGS).ok_or_else(broken)?;
        (Bytes::copy_from_slice(key), endpoints(objref.get(BINDINGS..).unwrap_or_default()))
    } else {
        (Bytes::new(), Vec::new())
    };
    let components = vec![(SIGNATURE, objref)];
    let profile =
        Profile { wire: "dcom", version: (5, 7), endpoints, key, components, lease: Lease::default() };
    Ok(Reference { type_id, profiles: vec![profile], foreign: Vec::new() })
}

/// The OBJREF of a reference that came over this wire.
pub(super) fn print(reference: &Reference) -> Visit<&Bytes> {
    let profiles = reference.profiles.iter().filter(|profile| profile.wire == "dcom");
    let mut components = profiles.flat_map(|profile| &profile.components);
    match components.find(|(tag, _)| *tag == SIGNATURE) {
        Some((_, objref)) => Ok(objref),
        None => Err(unsupported("references to objects of other wires")),
    }
}

/// The TCP bindings of a DUALSTRINGARRAY: `host[port]`, where a missing port means 135.
fn endpoints(array: &[u8]) -> Vec<Endpoint> {
    let units: Vec<u16> =
        array.chunks_exact(2).filter_map(|pair| pair.try_into().ok()).map(u16::from_le_bytes).collect();
    let strings_end = usize::from(units.get(1).copied().unwrap_or_default());
    let mut strings = units.get(2..).and_then(|units| units.get(..strings_end)).unwrap_or_default();
    let mut found = Vec::new();
    while let Some((&tower, rest)) = strings.split_first() {
        let Some(end) = rest.iter().position(|unit| *unit == 0) else { break };
        let (text, rest) = rest.split_at(end);
        let text = String::from_utf16_lossy(text);
        let (host, port) = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
            Some((host, port)) => (host.to_owned(), port.parse().unwrap_or(135)),
            None => (text, 135),
        };
        if tower == TCP_TOWER && !host.is_empty() {
            found.push(Endpoint::Tcp { host, port });
        }
        strings = rest.get(1..).unwrap_or_default();
    }
    found
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// A GUID, from its wire order (three little-endian numbers, then octets).
fn uuid(raw: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (position, index) in [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].into_iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{:02x}", raw.get(index).copied().unwrap_or_default()));
    }
    text
}
