//! Stubs of IObjectExporter (MS-DCOM 3.1.2.5.1): it has neither ORPCTHIS nor ORPCTHAT. What is written is
//! little-endian.
//!
//! A resolver says where the exporter with an OXID is (ResolveOxid), and takes the pings of clients: a
//! ComplexPing makes or changes a set of OIDs, a SimplePing says that all of a set are still held.
//! ServerAlive2 says which version of ORPC is spoken, before anybody authenticates.
//!
//! Invariants: counts have 16 bits, and the maximum count of an array must be the count beside it. Where the
//! status is a failure, the results before it are blank but there.

use crate::bindings::DualStringArray;
use crate::stub::{Get, StubWriter};
use crate::violations::Violation;
use uuid::Uuid;

/// Operation numbers.
#[allow(missing_docs)]
pub mod opnum {
    pub const RESOLVE_OXID: u16 = 0;
    pub const SIMPLE_PING: u16 = 1;
    pub const COMPLEX_PING: u16 = 2;
    pub const SERVER_ALIVE: u16 = 3;
    pub const RESOLVE_OXID2: u16 = 4;
    pub const SERVER_ALIVE2: u16 = 5;
}

/// Where an object exporter is and how it is spoken to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OxidResolution {
    /// Where the exporter listens, and how it authenticates callers. Empty in an answer that found nothing.
    pub bindings: DualStringArray,
    /// IPID of the exporter's IRemUnknown, to which queries and reference counts of all its objects go.
    pub rem_unknown: Uuid,
    /// The lowest authentication level that it takes, 1 to 6; a client may use a higher one.
    pub authn_hint: u32,
    /// The exporter's COMVERSION: calls to it use the lower of its minor version and this side's.
    pub version: (u16, u16),
}

/// What a set of pinged objects shall gain and lose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComplexPing {
    /// The set, or 0 for a new one.
    pub set: u64,
    /// Counts the client's pings of this set.
    pub sequence: u16,
    /// OIDs to add.
    pub add: Vec<u64>,
    /// OIDs to take out.
    pub remove: Vec<u64>,
}

/// Arguments of ResolveOxid and ResolveOxid2.
pub fn resolve_oxid2_request(oxid: u64, protseqs: &[u16]) -> Vec<u8> {
    StubWriter::default().u64(oxid).counted(false, protseqs, StubWriter::u16).done()
}

/// Reads them: OXID and protocol identifiers.
pub fn parse_resolve_oxid2_request(mut stub: Get<'_>) -> Result<(u64, Vec<u16>), Violation> {
    Ok((stub.u64()?, stub.counted(2, Get::u16)?))
}

/// Results of ResolveOxid2, or with `versioned` false of ResolveOxid, which has no COMVERSION. A failure has
/// a null pointer and zeros in front of its status.
pub fn resolve_reply(result: Result<&OxidResolution, u32>, versioned: bool) -> Vec<u8> {
    let blank = OxidResolution::default();
    let (resolved, status) = match result {
        Ok(resolved) => (resolved, 0),
        Err(status) => (&blank, status),
    };
    let mut out = StubWriter::default();
    out.pointer(result.is_ok());
    if result.is_ok() {
        resolved.bindings.put(&mut out);
    }
    out.uuid(resolved.rem_unknown).u32(resolved.authn_hint);
    if versioned {
        out.version(resolved.version);
    }
    out.u32(status).done()
}

/// Reads them. The inner error is the status of a resolver that does not know the OXID. COMVERSION is taken
/// for 5.1 where the operation does not tell it.
pub fn parse_resolve_reply(
    mut stub: Get<'_>,
    versioned: bool,
) -> Result<Result<OxidResolution, u32>, Violation> {
    let found = stub.pointer()?;
    let bindings = if found { DualStringArray::get(&mut stub)? } else { DualStringArray::default() };
    let (rem_unknown, authn_hint) = (stub.uuid()?, stub.u32()?);
    let version = if versioned { stub.version()? } else { (5, 1) };
    match stub.u32()? {
        0 if found => Ok(Ok(OxidResolution { bindings, rem_unknown, authn_hint, version })),
        0 => Err(Violation::NullReference),
        status => Ok(Err(status)),
    }
}

/// Results of ServerAlive2: the resolver's version and bindings.
pub fn server_alive2_reply(version: (u16, u16), bindings: &DualStringArray) -> Vec<u8> {
    bindings.put(StubWriter::default().version(version).pointer(true)).words(&[0, 0]).done()
}

/// Reads them; a status that is not 0 comes as the error.
#[allow(clippy::type_complexity)]
pub fn parse_server_alive2_reply(
    mut stub: Get<'_>,
) -> Result<Result<((u16, u16), DualStringArray), u32>, Violation> {
    let version = stub.version()?;
    // j-Interop sends a null pointer, and bindings all the same.
    let bindings = if stub.pointer()? || stub.left() > 8 {
        DualStringArray::get(&mut stub)?
    } else {
        DualStringArray::default()
    };
    stub.u32()?;
    Ok(match stub.u32()? {
        0 => Ok((version, bindings)),
        status => Err(status),
    })
}

/// Arguments of SimplePing.
pub fn simple_ping_request(set: u64) -> Vec<u8> {
    set.to_le_bytes().to_vec()
}

/// Reads the only argument of SimplePing: the number of the set.
pub fn parse_simple_ping_request(mut stub: Get<'_>) -> Result<u64, Violation> {
    stub.u64()
}

/// The only result of SimplePing, of ServerAlive, and of IRemUnknown's RemRelease.
pub fn status_reply(status: u32) -> Vec<u8> {
    status.to_le_bytes().to_vec()
}

/// Reads what `status_reply` writes; 0 is success.
pub fn parse_status_reply(mut stub: Get<'_>) -> Result<u32, Violation> {
    stub.u32()
}

/// Arguments of ComplexPing. What is more than 65535 of a kind is left for the next ping.
pub fn complex_ping_request(ping: &ComplexPing) -> Vec<u8> {
    let most = |oids: &[u64]| u16::try_from(oids.len()).unwrap_or(u16::MAX);
    let mut out = StubWriter::default();
    out.u64(ping.set).u16(ping.sequence).u16(most(&ping.add)).u16(most(&ping.remove));
    for oids in [&ping.add, &ping.remove] {
        let oids = oids.get(..most(oids).into()).unwrap_or_default();
        out.pointer(!oids.is_empty());
        if !oids.is_empty() {
            out.array(oids.iter().copied(), StubWriter::u64);
        }
    }
    out.done()
}

/// Reads the arguments of ComplexPing. Both arrays are bounded by the PDU and their 16-bit counts; how many
/// objects a set may have is for `Sets` to say.
pub fn parse_complex_ping_request(mut stub: Get<'_>) -> Result<ComplexPing, Violation> {
    let set = stub.u64()?;
    let (sequence, add, remove) = (stub.u16()?, stub.u16()?, stub.u16()?);
    let add = stub.pointed(add.into(), 8, Get::u64)?;
    let remove = stub.pointed(remove.into(), 8, Get::u64)?;
    Ok(ComplexPing { set, sequence, add, remove })
}

/// Results of ComplexPing: the set, and how many periods to wait (2 to the power of `backoff`).
pub fn complex_ping_reply(set: u64, backoff: u16, status: u32) -> Vec<u8> {
    StubWriter::default().u64(set).u16(backoff).u32(status).done()
}

/// Reads them: set, back-off factor, status.
pub fn parse_complex_ping_reply(mut stub: Get<'_>) -> Result<(u64, u16, u32), Violation> {
    Ok((stub.u64()?, stub.u16()?, stub.u32()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::StringBinding;

    fn bindings() -> DualStringArray {
        let strings = vec![StringBinding { tower: 7, address: "10.1.2.3[49152]".into() }];
        DualStringArray { strings, security: Vec::new() }
    }

    #[test]
    fn resolutions_and_refusals_read_as_written() {
        let rem_unknown = Uuid::from_u128(77);
        let resolved = OxidResolution { bindings: bindings(), rem_unknown, authn_hint: 5, version: (5, 7) };
        let stub = resolve_reply(Ok(&resolved), true);
        assert_eq!(parse_resolve_reply(Get::new(&stub, true), true), Ok(Ok(resolved.clone())));
        let stub = resolve_reply(Ok(&resolved), false);
        let older = OxidResolution { version: (5, 1), ..resolved };
        assert_eq!(parse_resolve_reply(Get::new(&stub, true), false), Ok(Ok(older)));
        let stub = resolve_reply(Err(0x776), true);
        assert_eq!(parse_resolve_reply(Get::new(&stub, true), true), Ok(Err(0x776)));
        let stub = resolve_reply(Err(0), true);
        assert_eq!(parse_resolve_reply(Get::new(&stub, true), true), Err(Violation::NullReference));
    }

    #[test]
    fn pings_read_as_written() {
        for (add, remove) in
            [(vec![], vec![]), (vec![1, 2], vec![]), (vec![], vec![3]), (vec![4], vec![5, 6, 7])]
        {
            let ping = ComplexPing { set: 9, sequence: 2, add, remove };
            let stub = complex_ping_request(&ping);
            assert_eq!(parse_complex_ping_request(Get::new(&stub, true)), Ok(ping));
            for len in 0..stub.len() {
                assert!(parse_complex_ping_request(Get::new(&stub[..len], true)).is_err());
            }
        }
        let reply = complex_ping_reply(9, 1, 0x778);
        assert_eq!(parse_complex_ping_reply(Get::new(&reply, true)), Ok((9, 1, 0x778)));
    }

    #[test]
    fn a_big_endian_request_is_read() {
        let stub =
            [&[0, 0, 0, 0, 0, 0, 0, 9][..], &[0, 2, 0xce, 0xce], &[0, 0, 0, 2], &[0, 7, 0, 8]].concat();
        assert_eq!(parse_resolve_oxid2_request(Get::new(&stub, false)), Ok((9, vec![7, 8])));
        let stub = resolve_oxid2_request(9, &[7]);
        assert_eq!(parse_resolve_oxid2_request(Get::new(&stub, true)), Ok((9, vec![7])));
        assert!(parse_resolve_oxid2_request(Get::new(&stub, false)).is_err());
    }

    #[test]
    fn the_answer_of_j_interop_is_read_in_spite_of_its_null_pointer() {
        let mut stub = server_alive2_reply((5, 2), &bindings());
        assert_eq!(parse_server_alive2_reply(Get::new(&stub, true)), Ok(Ok(((5, 2), bindings()))));
        stub[4..8].fill(0);
        assert_eq!(parse_server_alive2_reply(Get::new(&stub, true)), Ok(Ok(((5, 2), bindings()))));
        let refused = [&[5, 0, 7, 0][..], &[0; 8], &[5, 0, 0, 0]].concat();
        assert_eq!(parse_server_alive2_reply(Get::new(&refused, true)), Ok(Err(5)));
    }
}
