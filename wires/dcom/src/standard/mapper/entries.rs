//! What is served where, and who may know.

use crate::bindings::distinct;
use crate::exporter::Exporter;
use crate::hresult::{self, NCA_ACCESS_DENIED};
use crate::security::{Level, Security, address_of_peer};
use crate::tower::Tower;
use crate::{
    ENDPOINT_MAPPER, MANAGEMENT, OBJECT_EXPORTER, REM_UNKNOWN, REM_UNKNOWN2, REMOTE_ACTIVATION,
    SCM_ACTIVATOR, iid_of,
};
use everywire_idl::midl::clsid_of_key;
use everywire_model::{Endpoint, Failure, Interface, InterfaceKind, PeerAddress, Request};
use std::net::Ipv4Addr;
use uuid::Uuid;

/// Interfaces that are told of at most: a node may serve any number.
const INTERFACES: usize = 4096;

/// An interface that is served, with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The interface, or the CLSID of a class.
    pub(super) iid: Uuid,
    pub(super) version: (u16, u16),
    pub(super) annotation: String,
}

/// The interfaces that every node serves itself, with their versions and annotations.
const SYSTEM: [(Uuid, (u16, u16), &str); 7] = [
    (ENDPOINT_MAPPER, (3, 0), "Endpoint mapper"),
    (MANAGEMENT, (1, 0), "Management"),
    (OBJECT_EXPORTER, (0, 0), "IObjectExporter"),
    (REMOTE_ACTIVATION, (0, 0), "IRemoteActivation"),
    (SCM_ACTIVATOR, (0, 0), "IRemoteSCMActivator"),
    (REM_UNKNOWN, (0, 0), "IRemUnknown"),
    (REM_UNKNOWN2, (0, 0), "IRemUnknown2"),
];

/// The interfaces of the node: its own, then its classes by their CLSIDs, then those of its objects, each once.
pub(super) fn entries(exporter: &Exporter) -> Vec<Entry> {
    let own = |(iid, version, name): &(Uuid, (u16, u16), &str)| Entry {
        iid: *iid,
        version: *version,
        annotation: (*name).to_owned(),
    };
    let mut all: Vec<Entry> = SYSTEM.iter().map(own).collect();
    let mut seen: std::collections::HashSet<Uuid> = all.iter().map(|entry| entry.iid).collect();
    let mut add = |iid: Uuid, interface: &Interface, annotation: String| {
        if seen.len() < INTERFACES && !crate::standard::is_standard(interface) && seen.insert(iid) {
            all.push(Entry { iid, version: crate::version_of(interface), annotation });
        }
    };
    let named = |interface: &Interface| interface.name.to_string();
    let objects = exporter.objects();
    for (key, interface) in objects.classes() {
        // A class may be told by its objects' interface alone: then its key says who it is.
        let is_class = interface.kind == InterfaceKind::Class;
        let annotation = if is_class { named(&interface) } else { format!("{} (class)", interface.name) };
        add(clsid_of_key(&key), &interface, annotation);
        add(iid_of(&interface), &interface, named(&interface));
    }
    for key in objects.keys() {
        for servant in objects.servants(&key) {
            let interface = servant.interface();
            add(iid_of(interface), interface, named(interface));
        }
    }
    all
}

/// Where the node listens by TCP. An address of another family than IPv4 has no place in a tower: it is given as 0.0.0.0,
/// which stands for the host that was asked.
pub(super) fn addresses(exporter: &Exporter) -> Vec<(Ipv4Addr, u16)> {
    let places = exporter.objects().places();
    let endpoints = places.iter().flat_map(|place| &place.profile().endpoints);
    distinct(endpoints.filter_map(|endpoint| match endpoint {
        Endpoint::Tcp { host, port } => Some((host.parse().unwrap_or(Ipv4Addr::UNSPECIFIED), *port)),
        _ => None,
    }))
}

/// The tower of an interface at an address.
pub(super) fn tower(entry: &Entry, (address, port): (Ipv4Addr, u16)) -> Vec<u8> {
    Tower::tcp((entry.iid, entry.version.0, entry.version.1), port, address).write()
}

/// Who may look up what is served: the answers are long, so only who is known, who is on this machine, and anybody where
/// the place says so.
///
/// # Errors
/// The caller may not.
pub(super) fn admit(exporter: &Exporter, request: &Request) -> Result<(), Failure> {
    let Some(peer) = request.peer() else { return Ok(()) };
    let known = peer.authentication != "none";
    let here = peer.address.credentials.is_some() || is_loopback(&peer.address);
    if known || here || is_open(exporter, &request.link().endpoint()) {
        return Ok(());
    }
    Err(hresult::fault_failure(NCA_ACCESS_DENIED, true).with_hint(
        "looking up what is served takes authentication here, unless the place says ?lookups=open",
    ))
}

/// Whether the place that a connection came in by lets anybody look up.
fn is_open(exporter: &Exporter, by: &Endpoint) -> bool {
    exporter.objects().places().iter().map(everywire_model::BindAddress::profile).any(|place| {
        let security = Security::of(place);
        place.endpoints.contains(by) && (security.open_lookups || security.level == Level::None)
    })
}

/// Whether a peer is on this machine: it has a loopback address, or no network address at all.
fn is_loopback(peer: &PeerAddress) -> bool {
    address_of_peer(peer).map_or_else(|| !peer.text.starts_with("tcp:"), |address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_here() {
        let is_loopback = |text: &str| is_loopback(&PeerAddress { text: text.into(), credentials: None });
        assert!(is_loopback("tcp:127.0.0.1:9"));
        assert!(is_loopback("tcp:[::1]:9"));
        assert!(is_loopback("unix:/run/x"));
        assert!(!is_loopback("tcp:192.0.2.1:9"));
        assert!(!is_loopback("192.0.2.1:9"));
    }
}
