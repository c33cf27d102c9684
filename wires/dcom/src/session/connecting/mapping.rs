//! Where procedures are served: the endpoint mapper of their host knows (C706 appendix O, `ept_map`).

use crate::bindings::RESOLVER_PORT;
use crate::pdu::Syntax;
use crate::standard::mapper::NOT_REGISTERED;
use crate::stub::{Get, Put};
use crate::tower::Tower;
use crate::violations::Violation;
use bytes::Bytes;
use everywire_model::{Endpoint, Failure, Initiator, Kind, Profile, Reference};
use std::net::Ipv4Addr;

/// The number of ept_map.
pub(super) const MAP: u16 = 3;

/// The most towers that are asked for.
/// One host has few ports for one interface; the first that is not the mapper's own is taken.
const TOWERS: u32 = 16;

/// Whether procedures that are not served by this way may be served at another port: the mapper's own is the one that all
/// look for.
pub(super) fn may_be_elsewhere(profile: &Profile) -> bool {
    matches!(profile.endpoints.first(), Some(Endpoint::Tcp { port, .. }) if *port == RESOLVER_PORT)
}

/// The stub of ept_map: towers of an interface over TCP.
pub(super) fn request(syntax: &Syntax) -> Vec<u8> {
    let interface = (syntax.id, syntax.major, syntax.minor);
    let tower = Tower::tcp(interface, RESOLVER_PORT, Ipv4Addr::UNSPECIFIED).write();
    let mut put = Put::default();
    // No object.
    put.pointer(false);
    put.pointer(true);
    put.count(tower.len());
    put.count(tower.len());
    put.bytes.extend_from_slice(&tower);
    // A null context handle: from the beginning.
    put.align(4);
    put.bytes.extend_from_slice(&[0; 20]);
    put.u32(TOWERS);
    put.bytes
}

/// Where to, as the answer says: another port of the same host.
///
/// # Errors
/// The answer is malformed, or the interface is not served by TCP.
pub(super) fn moved(
    stub: &Bytes,
    little: bool,
    syntax: &Syntax,
    way: &Profile,
) -> Result<Reference, Failure> {
    let ports = ports(Get::new(stub, little)).map_err(|violation| violation.at(0))?;
    let port =
        ports.map_err(|status| not_served(syntax, status))?.into_iter().find(|port| *port != RESOLVER_PORT);
    let (Some(port), Some(Endpoint::Tcp { host, .. })) = (port, way.endpoints.first()) else {
        return Err(not_served(syntax, NOT_REGISTERED));
    };
    let endpoints = vec![Endpoint::Tcp { host: host.clone(), port }];
    let profile = Profile { endpoints, ..way.clone() };
    Ok(Reference { type_id: syntax.id.to_string(), profiles: vec![profile], foreign: Vec::new() })
}

/// The ports in the answer, or its status.
fn ports(mut get: Get<'_>) -> Result<Result<Vec<u16>, u32>, Violation> {
    get.take(20)?;
    let count = get.u32()? as usize;
    let most = get.u32()? as usize;
    let (offset, actual) = (get.u32()?, get.u32()? as usize);
    if offset != 0 || actual > most || actual != count {
        return Err(Violation::BadVariance);
    }
    let there = get.items(actual, 4, Get::pointer)?;
    let mut ports = Vec::new();
    for _ in there.into_iter().filter(|there| *there) {
        let len = get.conformance(1, None)?;
        get.u32()?;
        // One that is not understood is of another protocol.
        ports.extend(Tower::parse(get.take(len)?).ok().and_then(|tower| tower.port()));
    }
    let status = get.u32()?;
    Ok(if status == 0 { Ok(ports) } else { Err(status) })
}

#[cold]
fn not_served(syntax: &Syntax, status: u32) -> Failure {
    let Syntax { id, major, minor } = syntax;
    let what = format!("the peer's endpoint mapper knows no port of interface {id} {major}.{minor}");
    Failure::new(Kind::Unsupported, Initiator::Peer, what).with_code(format!("{status:#010x}"))
}
