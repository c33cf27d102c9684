//! IRemUnknown and IRemUnknown2: interfaces of exported objects, and their reference counts (MS-DCOM 3.1.1.5.6, 3.1.1.5.7). The
//! servants read and write whole stubs, HRESULTs included.

pub use super::contracts::{REM_UNKNOWN, REM_UNKNOWN2};
use super::serving::principal;
use crate::exporter::{Correspondence, Exporter};
use crate::hresult::{E_INVALIDARG, E_NOINTERFACE, RPC_E_INVALID_OBJECT, S_FALSE, S_OK};
use crate::limits::INTERFACES_ASKED;
use crate::remunknown::{self, Query};
use crate::resolver::status_reply;
use crate::stub::Get;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Request};
use uuid::Uuid;

/// IRemUnknown.
pub const REM_UNKNOWN_ID: Uuid = crate::REM_UNKNOWN;

/// The stub of the answer, by the number of the operation: the first three are the same in both interfaces.
pub(super) fn answer(exporter: &Exporter, request: &Request) -> Result<Vec<u8>, Failure> {
    let stub = Get::of(request.body());
    match request.index() {
        0 => {
            let query = remunknown::parse_query_request(stub, false)?;
            let found =
                query_interfaces(exporter, request, &query, |key, iid| exporter.export(key, iid, query.refs));
            Ok(remunknown::query_reply(&found))
        }
        1 => {
            let holder = principal(request);
            let refs = remunknown::parse_refs_request(stub)?;
            let add =
                |held: &remunknown::Refs| exporter.add_refs_to(held.ipid, held.public, held.private, &holder);
            let results: Vec<u32> = refs.iter().map(add).collect();
            Ok(remunknown::add_ref_reply(&results, overall(results.iter().copied())))
        }
        2 => {
            let holder = principal(request);
            let refs = remunknown::parse_refs_request(stub)?;
            for held in refs {
                exporter.release_refs_to(held.ipid, held.public, held.private, &holder);
            }
            Ok(status_reply(S_OK))
        }
        3 => {
            let query = remunknown::parse_query_request(stub, true)?;
            let at = Correspondence::of_call(request).and_then(|call| call.address);
            let found = query_interfaces(exporter, request, &query, |key, iid| {
                exporter.objref(key, iid, query.refs).seen_at(at).write()
            });
            Ok(remunknown::query2_reply(&found))
        }
        _ => Err(no_operation(&REM_UNKNOWN2)),
    }
}

/// What came of each interface asked for.
fn query_interfaces<T>(
    exporter: &Exporter,
    asked: &Request,
    query: &Query,
    export: impl Fn(&[u8], Uuid) -> T,
) -> Vec<Result<T, u32>> {
    let all = |why: u32| query.iids.iter().map(|_| Err(why)).collect();
    if query.iids.len() > INTERFACES_ASKED {
        return all(E_INVALIDARG);
    }
    let Some(key) = exporter.object_of(query.ipid) else { return all(RPC_E_INVALID_OBJECT) };
    // The references that the caller holds on one interface may be the last.
    let _hold = exporter.hold(&key);
    let ask = |iid: &Uuid| {
        if exporter.finds(asked, &key, *iid) { Ok(export(&key, *iid)) } else { Err(E_NOINTERFACE) }
    };
    query.iids.iter().map(ask).collect()
}

/// The HRESULT of the whole, from those of the parts.
fn overall(mut results: impl Iterator<Item = u32>) -> u32 {
    if results.all(|result| result == S_OK) { S_OK } else { S_FALSE }
}
