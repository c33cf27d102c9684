//! Stubs of IRemUnknown and IRemUnknown2 after ORPCTHIS and ORPCTHAT (MS-DCOM 3.1.1.5.6, 3.1.1.5.7). What is
//! written is little-endian and takes alignment from a multiple of 8.
//!
//! These calls are addressed to the exporter's IRemUnknown and name the objects that they mean by IPIDs in
//! their arguments. Both interfaces are served under one IPID: j-Interop calls RemQueryInterface2 on
//! IRemUnknown2, Windows the older operations on it, impacket those of IRemUnknown.
//!
//! Invariants: counts on the wire have 16 bits, so what is longer is cut on writing; on reading the count and
//! the maximum count must agree and fit into the stub. A reply without results carries the HRESULT of the
//! whole, which must be a failure then.

use crate::hresult;
use crate::objref::StdObjRef;
use crate::stub::{Get, StubWriter};
use crate::violations::Violation;
use bytes::Bytes;
use uuid::Uuid;

/// References that a marshalled interface pointer carries, and that are asked for with an interface: as many as Windows, so that
/// one more call of RemAddRef is rarely needed. They are given back together.
pub const PUBLIC_REFS: u32 = 5;

/// Least length in bytes of a REMQIRESULT: HRESULT, padding, STDOBJREF.
const RESULT: usize = 48;
/// Length in bytes of a REMINTERFACEREF: IPID and two counts.
const REFS: usize = 24;

/// Operation numbers.
#[allow(missing_docs)]
pub mod opnum {
    pub const REM_QUERY_INTERFACE: u16 = 3;
    pub const REM_ADD_REF: u16 = 4;
    pub const REM_RELEASE: u16 = 5;
    pub const REM_QUERY_INTERFACE2: u16 = 6;
}

/// Arguments of RemQueryInterface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// An IPID of the object.
    pub ipid: Uuid,
    /// References wanted on each interface.
    pub refs: u32,
    /// Interfaces wanted.
    pub iids: Vec<Uuid>,
}

/// REMINTERFACEREF: references to an IPID, added or given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refs {
    /// The IPID.
    pub ipid: Uuid,
    /// Public references.
    pub public: u32,
    /// Private references, which only the caller's account can give back.
    pub private: u32,
}

/// Arguments of RemQueryInterface.
pub fn query_request(query: &Query) -> Vec<u8> {
    StubWriter::default()
        .uuid(query.ipid)
        .u32(query.refs)
        .counted(false, &query.iids, StubWriter::uuid)
        .done()
}

/// Reads the arguments of RemQueryInterface, or of RemQueryInterface2 where it is the `second`: that has no
/// number of references, and implementations hand out the same one. The servant decides how many interfaces
/// it takes.
pub fn parse_query_request(mut stub: Get<'_>, second: bool) -> Result<Query, Violation> {
    let ipid = stub.uuid()?;
    let refs = if second { PUBLIC_REFS } else { stub.u32()? };
    Ok(Query { ipid, refs, iids: stub.counted(16, Get::uuid)? })
}

/// Results of RemQueryInterface: one per IID asked for, then the HRESULT of the whole.
pub fn query_reply(found: &[Result<StdObjRef, u32>]) -> Vec<u8> {
    let mut out = StubWriter::default();
    out.pointer(true).count(found.len());
    for result in found {
        let hresult = result.err().unwrap_or_default();
        result.unwrap_or_default().put(out.align(8).u32(hresult).align(8));
    }
    out.u32(whole(found)).done()
}

/// Reads them. Where the whole failed without results, the HRESULT is the error.
#[allow(clippy::type_complexity)]
pub fn parse_query_reply(mut stub: Get<'_>) -> Result<Result<Vec<Result<StdObjRef, u32>>, u32>, Violation> {
    if !stub.pointer()? {
        return refusal(stub.u32()?);
    }
    let count = stub.conformance(RESULT, None)?;
    let found = stub.items(count, RESULT, |stub| {
        stub.align(8);
        let hresult = stub.u32()?;
        stub.align(8);
        let std = StdObjRef::get(stub)?;
        Ok(if hresult == 0 { Ok(std) } else { Err(hresult) })
    })?;
    stub.u32()?;
    Ok(Ok(found))
}

/// Arguments of RemQueryInterface2: IPID and IIDs.
pub fn query2_request(ipid: Uuid, iids: &[Uuid]) -> Vec<u8> {
    StubWriter::default().uuid(ipid).counted(false, iids, StubWriter::uuid).done()
}

/// Results of RemQueryInterface2: an OBJREF or an HRESULT per IID asked for.
pub fn query2_reply(found: &[Result<Bytes, u32>]) -> Vec<u8> {
    let hresults = found.iter().map(|result| result.as_ref().err().copied().unwrap_or_default());
    let mut out = StubWriter::default();
    out.array(hresults, StubWriter::u32).array(found.iter().map(Result::is_ok), StubWriter::pointer);
    let objrefs = found.iter().flatten();
    objrefs.fold(&mut out, |out, objref| out.interface_pointer(objref)).u32(whole(found)).done()
}

/// Reads them. Where the whole failed without results, the HRESULT is the error.
#[allow(clippy::type_complexity)]
pub fn parse_query2_reply(mut stub: Get<'_>) -> Result<Result<Vec<Result<Bytes, u32>>, u32>, Violation> {
    let count = stub.conformance(4, None)?;
    let hresults = stub.items(count, 4, Get::u32)?;
    stub.conformance(4, Some(count))?;
    let held = stub.items(count, 4, Get::pointer)?;
    let one = |(hresult, held): (u32, bool)| {
        let objref = held.then(|| stub.interface_pointer()).transpose()?;
        Ok(if hresult == 0 { objref.ok_or(hresult::E_NOINTERFACE) } else { Err(hresult) })
    };
    let found: Vec<_> = hresults.into_iter().zip(held).map(one).collect::<Result<_, _>>()?;
    let hresult = stub.u32()?;
    if found.is_empty() { refusal(hresult) } else { Ok(Ok(found)) }
}

/// Arguments of RemAddRef and RemRelease.
pub fn refs_request(refs: &[Refs]) -> Vec<u8> {
    let mut out = StubWriter::default();
    out.counted(false, refs, |out, refs| out.uuid(refs.ipid).words(&[refs.public, refs.private])).done()
}

/// Reads the arguments of RemAddRef and RemRelease. The count stands twice, and both must be the same.
pub fn parse_refs_request(mut stub: Get<'_>) -> Result<Vec<Refs>, Violation> {
    stub.counted(REFS, |stub| Ok(Refs { ipid: stub.uuid()?, public: stub.u32()?, private: stub.u32()? }))
}

/// Results of RemAddRef: an HRESULT per IPID, then that of the whole.
/// There is no pointer before the array, unlike in RemQueryInterface: the parameter is a reference to the
/// array itself.
pub fn add_ref_reply(results: &[u32], hresult: u32) -> Vec<u8> {
    StubWriter::default().array(results.iter().copied(), StubWriter::u32).u32(hresult).done()
}

/// Reads the results of RemAddRef. How many HRESULTs there are is the peer's word: the caller pairs them with
/// what it asked for.
pub fn parse_add_ref_reply(mut stub: Get<'_>) -> Result<(Vec<u32>, u32), Violation> {
    let count = stub.conformance(4, None)?;
    Ok((stub.items(count, 4, Get::u32)?, stub.u32()?))
}

/// The HRESULT of the whole: all were found, some, or none.
fn whole<T>(found: &[Result<T, u32>]) -> u32 {
    if found.iter().all(Result::is_ok) {
        hresult::S_OK
    } else if found.iter().any(Result::is_ok) {
        hresult::S_FALSE
    } else {
        hresult::E_NOINTERFACE
    }
}

/// What a reply without results means.
fn refusal<T>(hresult: u32) -> Result<Result<T, u32>, Violation> {
    if hresult::is_failure(hresult) { Ok(Err(hresult)) } else { Err(Violation::NullReference) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_read_as_written() {
        let query =
            Query { ipid: Uuid::from_u128(1), refs: 5, iids: vec![Uuid::from_u128(2), Uuid::from_u128(3)] };
        let stub = query_request(&query);
        assert_eq!(parse_query_request(Get::new(&stub, true), false), Ok(query.clone()));
        let stub = query2_request(query.ipid, &query.iids);
        assert_eq!(parse_query_request(Get::new(&stub, true), true), Ok(query));
    }

    #[test]
    fn answers_to_queries_read_as_written_and_say_how_many_were_found() {
        let std = StdObjRef { flags: 0, public_refs: 5, oxid: 1, oid: 2, ipid: Uuid::from_u128(3) };
        let no = Err(hresult::E_NOINTERFACE);
        for (found, hresult) in [(vec![Ok(std)], 0), (vec![Ok(std), no], 1), (vec![no, no], 0x8000_4002)] {
            let stub = query_reply(&found);
            assert_eq!(parse_query_reply(Get::new(&stub, true)), Ok(Ok(found.clone())));
            assert_eq!(stub.last_chunk(), Some(&u32::to_le_bytes(hresult)));
            let objrefs: Vec<_> =
                found.iter().map(|found| found.map(|_| Bytes::from_static(b"MEOW-five"))).collect();
            let stub = query2_reply(&objrefs);
            assert_eq!(parse_query2_reply(Get::new(&stub, true)), Ok(Ok(objrefs)));
            assert_eq!(stub.last_chunk(), Some(&u32::to_le_bytes(hresult)));
            for len in 0..stub.len() {
                assert!(parse_query2_reply(Get::new(&stub[..len], true)).is_err());
            }
        }
        let refused = [0, 0x8001_0108_u32].map(u32::to_le_bytes).concat();
        assert_eq!(parse_query_reply(Get::new(&refused, true)), Ok(Err(hresult::RPC_E_DISCONNECTED)));
        assert_eq!(parse_query_reply(Get::new(&[0; 8], true)), Err(Violation::NullReference));
    }

    #[test]
    fn results_behind_extensions_are_aligned_as_in_the_whole_stub() {
        let std = StdObjRef { flags: 0, public_refs: 5, oxid: 1, oid: 2, ipid: Uuid::from_u128(3) };
        // As behind an ORPCTHAT of 12 bytes: what Put aligns to 8 is 4 bytes off.
        let mut stub = [1, 1, 0].map(u32::to_le_bytes).concat();
        let mut out = StubWriter::default();
        out.align(8);
        std.put(&mut out);
        stub.extend([0; 4]);
        stub.extend(out.bytes);
        stub.extend([0; 4]);
        let found = parse_query_reply(Get::after(&stub, 8, true)).unwrap().unwrap();
        assert_eq!(found, [Ok(std)]);
        stub.drain(8..12);
        stub.splice(8..8, [0; 8]);
        let found = parse_query_reply(Get::after(&stub, 12, true));
        assert_eq!(found, Ok(Ok(vec![Ok(std)])));
    }

    #[test]
    fn references_read_as_written_and_claims_are_bounded() {
        let refs = [Refs { ipid: Uuid::from_u128(4), public: 5, private: 0 }; 3];
        let stub = refs_request(&refs);
        assert_eq!(parse_refs_request(Get::new(&stub, true)), Ok(refs.to_vec()));
        let claim = [&[0xff, 0xff, 0, 0][..], &[0xff, 0xff, 0, 0], &[0; 24]].concat();
        assert_eq!(parse_refs_request(Get::new(&claim, true)), Err(Violation::CountBeyondMessage));
        let reply = add_ref_reply(&[0, 0x8001_0113, 0], 1);
        assert_eq!(parse_add_ref_reply(Get::new(&reply, true)), Ok((vec![0, 0x8001_0113, 0], 1)));
    }
}
