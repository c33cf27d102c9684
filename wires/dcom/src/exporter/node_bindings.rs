//! Where this node listens, as others are told (MS-DCOM 2.2.19).
//!
//! States: the bindings told last, with what they were made of; compared at each question, since addresses of
//! the machine come and go.
//!
//! Invariants: a node listens for its resolver and its exporter at the same places. Sockets of this machine
//! stand among the bindings under a protocol of their own, are not told to other machines, and are believed only where they
//! came over such a socket. A peer's list is cut at `ADDRESSES`, so that it cannot have this node try any number of them.

use crate::bindings::{DualStringArray, SecurityBinding, StringBinding, distinct};
use crate::lock::lock;
use crate::security::Security;
use everywire_model::reach::wildcard;
use everywire_model::{BindAddress, Endpoint, Objects};
use std::sync::Mutex;

/// Authentication services: SPNEGO, NTLM, Kerberos (2.2.19.4).
const SERVICES: [u16; 3] = [9, 10, 16];
/// The most addresses of a machine that are tried.
const ADDRESSES: usize = 32;

/// The bindings of this node, made anew when its places or the addresses of the machine change.
#[derive(Default)]
pub(super) struct NodeBindings {
    told: Mutex<Option<PublishedBindings>>,
}

/// Where a node is reached, how its callers can say who they are, and the bindings that say so.
type PublishedBindings = (Vec<Endpoint>, Vec<u16>, DualStringArray);

impl NodeBindings {
    /// The bindings of a node that listens at these places.
    pub(super) fn bindings(&self, places: &[BindAddress], objects: &dyn Objects) -> DualStringArray {
        // Looked up each time, since addresses of the machine change; only the array is kept.
        let reached: Vec<Endpoint> = places.iter().flat_map(|place| reached(place, objects)).collect();
        let services = services_of(places);
        let mut told = lock(&self.told);
        match &*told {
            Some((known, by, bindings)) if *known == reached && *by == services => bindings.clone(),
            _ => {
                let bindings = with_services(&reached, &services);
                *told = Some((reached, services, bindings.clone()));
                bindings
            }
        }
    }
}

/// Where others reach a place. A machine that is reached at all its addresses is also known by its name, and to its own
/// programs at the loopback address: a client knows a host again by any of these.
fn reached(place: &BindAddress, objects: &dyn Objects) -> Vec<Endpoint> {
    let reach = objects.reach(place);
    let mut endpoints = reach.endpoints;
    if let (true, Some(bound @ Endpoint::Tcp { port, .. })) =
        (reach.wildcard, place.profile().endpoints.first())
    {
        let own = if wildcard(bound).is_some_and(|any| any.is_ipv6()) { "::1" } else { "127.0.0.1" };
        let hosts = [Some(own.to_owned()), host_name()].into_iter().flatten();
        endpoints.extend(hosts.map(|host| Endpoint::Tcp { host, port: *port }));
    }
    distinct(endpoints)
}

/// Where to connect by these bindings; sockets of this machine only if `local`, that is, if they came by such a one.
pub(super) fn endpoints(bindings: &DualStringArray, local: bool, default_port: u16) -> Vec<Endpoint> {
    let mut found = Vec::new();
    if local {
        found.extend(bindings.strings.iter().filter_map(StringBinding::socket));
    }
    found.extend(bindings.endpoints(default_port));
    found.truncate(ADDRESSES);
    found
}

/// Bindings for a node that is known by these endpoints only.
pub(super) fn bindings_of(listening: &[Endpoint]) -> DualStringArray {
    with_services(listening, &SERVICES)
}

/// How callers can say who they are at these places: by NTLM where users are known, by Kerberos where there are its keys.
fn services_of(places: &[BindAddress]) -> Vec<u16> {
    let securities: Vec<_> = places.iter().map(|place| Security::of(place.profile())).collect();
    let ntlm = securities.iter().any(|security| security.users.is_some());
    let kerberos = securities.iter().any(|security| security.keytab.is_some());
    let offered = |service: &u16| match service {
        9 => ntlm || kerberos,
        10 => ntlm,
        _ => kerberos,
    };
    SERVICES.into_iter().filter(offered).collect()
}

/// The bindings that name these endpoints, none twice, and these authentication services.
fn with_services(listening: &[Endpoint], services: &[u16]) -> DualStringArray {
    let security =
        services.iter().map(|service| SecurityBinding { service: *service, principal: String::new() });
    let strings = distinct(listening.iter().filter_map(StringBinding::of));
    DualStringArray { strings, security: security.collect() }
}

/// The name of this machine as the system has it; `None` if it has none, or one that no address could hold.
fn host_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = text.ok()?.trim().to_owned();
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    (!name.is_empty() && name != "(none)" && name.chars().all(valid)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::TOWER_TCP;

    #[test]
    fn addresses_stand_with_their_ports() {
        let bindings = bindings_of(&[Endpoint::Tcp { host: "10.0.0.1".into(), port: 7001 }]);
        let told: Vec<_> = bindings.strings.iter().map(|held| (held.tower, held.address.as_str())).collect();
        assert_eq!(told, [(TOWER_TCP, "10.0.0.1[7001]")]);
        let services: Vec<_> = bindings.security.iter().map(|held| held.service).collect();
        assert_eq!(services, [9, 10, 16]);
    }

    #[test]
    fn sockets_of_this_machine_are_believed_from_this_machine_only() {
        let socket = Endpoint::Unix { path: "/run/x".into() };
        let bindings = bindings_of(std::slice::from_ref(&socket));
        assert_eq!(endpoints(&bindings, true, 135), [socket]);
        assert_eq!(endpoints(&bindings, false, 135), []);
    }
}
