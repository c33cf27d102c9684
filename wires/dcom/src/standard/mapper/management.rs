//! The management interface.
//!
//! What it tells of the server (interfaces, statistics, principal names) is no secret among those who may
//! look up; stopping the server is refused to all.

use super::contracts::MANAGEMENT;
use super::entries::{Entry, admit, entries};
use crate::exporter::Exporter;
use crate::hresult::NCA_ACCESS_DENIED;
use crate::security::Security;
use crate::standard::guid::Guid;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Request};
use std::sync::Arc;

/// RPC_S_UNKNOWN_AUTHN_SERVICE.
const UNKNOWN_AUTHN_SERVICE: u32 = 1747;
/// ERROR_INSUFFICIENT_BUFFER.
const INSUFFICIENT_BUFFER: u32 = 122;
/// RPC_S_OK.
const OK: u32 = 0;

/// An interface's identity, behind a pointer.
type Identity = Option<(Guid, u16, u16)>;

/// Answers the management interface.
pub(in super::super) fn answer_management(
    exporter: &Arc<Exporter>,
    request: &mut Request,
) -> Result<(), Failure> {
    match request.index() {
        0 => {
            admit(exporter, request)?;
            let identity = |entry: Entry| Some((Guid(entry.iid), entry.version.0, entry.version.1));
            let all: Vec<Identity> = entries(exporter).into_iter().map(identity).collect();
            request.reply::<_, Failure>(Ok((Some((all.len() as u32, all)), OK)))
        }
        1 => {
            let (most,) = request.arguments::<(u32,)>()?;
            let mut counts = exporter.standard().traffic.counts();
            counts.truncate(most as usize);
            request.reply::<_, Failure>(Ok((counts.len() as u32, counts, OK)))
        }
        2 => request.reply::<_, Failure>(Ok((OK, 1_u32))),
        // Only the process itself stops its server.
        3 => request.reply::<_, Failure>(Ok((NCA_ACCESS_DENIED,))),
        4 => principal(exporter, request),
        _ => Err(no_operation(&MANAGEMENT)),
    }
}

/// The principal name that the server goes by for an authentication service, if the place gives one.
fn principal(exporter: &Exporter, request: &mut Request) -> Result<(), Failure> {
    let (service, size) = request.arguments::<(u32, u32)>()?;
    let places = exporter.objects().places();
    let names = places.iter().map(|place| Security::of(place.profile()));
    let name = names
        .filter(|security| {
            matches!(service, 9 | 10 | 16) && security.users.is_some() | security.keytab.is_some()
        })
        .map(|security| security.target.clone())
        .find(|name| !name.is_empty());
    let status = match &name {
        Some(name) if name.len() >= size as usize => INSUFFICIENT_BUFFER,
        Some(_) => OK,
        None => UNKNOWN_AUTHN_SERVICE,
    };
    let mut octets = name.unwrap_or_default().into_bytes();
    octets.truncate((size as usize).saturating_sub(1));
    if size > 0 {
        octets.push(0);
    }
    request.reply::<_, Failure>(Ok((size, octets, status)))
}
