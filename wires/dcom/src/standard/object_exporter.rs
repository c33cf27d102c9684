//! IObjectExporter: OXID resolution and pings (MS-DCOM 3.1.2.5.1). It is called as the node's, without an object, and without
//! ORPCTHIS; its servant reads and writes whole stubs.

pub use super::contracts::OBJECT_EXPORTER;
use super::serving::principal;
use crate::bindings::{TOWER_LOCAL, TOWER_TCP};
use crate::exporter::{Correspondence, Exporter};
use crate::hresult::OR_INVALID_OXID;
use crate::resolver::{self, opnum};
use crate::stub::Get;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Request};

/// A status for requested protocols of which this node serves none (MS-ERREF 2.2).
const RPC_S_PROTSEQ_NOT_SUPPORTED: u32 = 0x6a7;

/// The stub of the answer. A status that is a failure is part of it; only a stub that cannot be read is an
/// `Err`, and becomes a fault.
pub(super) fn answer(exporter: &Exporter, request: &Request) -> Result<Vec<u8>, Failure> {
    let stub = Get::of(request.body());
    // The operations are listed by number.
    Ok(match u16::try_from(request.index()).unwrap_or(u16::MAX) {
        number @ (opnum::RESOLVE_OXID | opnum::RESOLVE_OXID2) => {
            let (oxid, protocols) = resolver::parse_resolve_oxid2_request(stub)?;
            let resolved = resolve(exporter, oxid, &protocols, request);
            let result = resolved.as_ref().map_err(|status| *status);
            resolver::resolve_reply(result, number == opnum::RESOLVE_OXID2)
        }
        opnum::SIMPLE_PING => {
            let set = resolver::parse_simple_ping_request(stub)?;
            resolver::status_reply(exporter.simple_ping(set))
        }
        opnum::COMPLEX_PING => {
            let ping = resolver::parse_complex_ping_request(stub)?;
            let (set, status) = exporter.complex_ping(&ping, &principal(request));
            resolver::complex_ping_reply(set, 0, status)
        }
        opnum::SERVER_ALIVE => resolver::status_reply(0),
        opnum::SERVER_ALIVE2 => {
            let resolved = resolution(exporter, request);
            resolver::server_alive2_reply(resolved.version, &resolved.bindings)
        }
        _ => return Err(no_operation(&OBJECT_EXPORTER)),
    })
}

/// Where this exporter is, as the caller reaches it.
fn resolution(exporter: &Exporter, request: &Request) -> resolver::OxidResolution {
    let mut resolved = exporter.resolution();
    let at = Correspondence::of_call(request).and_then(|call| call.address);
    resolved.bindings = resolved.bindings.seen_at(at);
    resolved
}

/// Where the exporter with this OXID is: this node has one exporter, so any other OXID is unknown.
fn resolve(
    exporter: &Exporter,
    oxid: u64,
    protocols: &[u16],
    request: &Request,
) -> Result<resolver::OxidResolution, u32> {
    if oxid != exporter.oxid() {
        return Err(OR_INVALID_OXID);
    }
    // Nobody who names none can be refused for it.
    if !protocols.is_empty() && !protocols.iter().any(|held| matches!(*held, TOWER_TCP | TOWER_LOCAL)) {
        return Err(RPC_S_PROTSEQ_NOT_SUPPORTED);
    }
    Ok(resolution(exporter, request))
}
