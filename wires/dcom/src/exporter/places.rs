//! Where this node listens, as others are told (MS-DCOM 2.2.19).

use crate::bindings::{DualStringArray, RESOLVER_PORT, SecurityBinding, StringBinding, TOWER_TCP};
use crate::security::Security;
use everywire_model::{Endpoint, Place};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Protocol identifier of `ncalrpc`, under which sockets of this machine stand: `unix:PATH` and `shm:PATH`.
const TOWER_LOCAL: u16 = 0x10;
/// Authentication services: SPNEGO, NTLM, Kerberos (2.2.19.4).
const SERVICES: [u16; 3] = [9, 10, 16];
/// The most addresses of a machine that are told, and that are tried.
const ADDRESSES: usize = 32;

/// The bindings of this node, made when its places change, and anew in each period as the machine's addresses may.
#[derive(Default)]
pub(super) struct Places {
    told: Mutex<Option<Told>>,
}

/// Where a node listens, how its callers can say who they are, and the bindings that say so.
type Told = (Vec<Endpoint>, Vec<u16>, DualStringArray);

impl Places {
    /// The bindings of a node that listens at these places.
    pub(super) fn bindings(&self, places: &[Place]) -> DualStringArray {
        let listening: Vec<Endpoint> =
            places.iter().flat_map(|place| place.profile().endpoints.iter().cloned()).collect();
        let services = services_of(places);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match &*told {
            Some((known, by, bindings)) if *known == listening && *by == services => bindings.clone(),
            _ => {
                let bindings = with_services(&listening, &services);
                *told = Some((listening, services, bindings.clone()));
                bindings
            }
        }
    }

    /// Looks again at the machine's addresses the next time.
    pub(super) fn refresh(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Where to connect by these bindings; sockets of this machine only if `local`, that is, if they came by such a one.
pub(super) fn endpoints(bindings: &DualStringArray, local: bool, default_port: u16) -> Vec<Endpoint> {
    let mut found = Vec::new();
    if local {
        found.extend(
            bindings.strings.iter().filter(|held| held.tower == TOWER_LOCAL).filter_map(local_endpoint),
        );
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
fn services_of(places: &[Place]) -> Vec<u16> {
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

fn with_services(listening: &[Endpoint], services: &[u16]) -> DualStringArray {
    let security =
        services.iter().map(|service| SecurityBinding { service: *service, principal: String::new() });
    let mut strings: Vec<StringBinding> = Vec::new();
    for endpoint in listening {
        for address in addresses(endpoint) {
            if !strings.contains(&address) {
                strings.push(address);
            }
        }
    }
    DualStringArray { strings, security: security.collect() }
}

fn local_endpoint(binding: &StringBinding) -> Option<Endpoint> {
    let (transport, path) = binding.address.split_once(':')?;
    let path = path.to_owned();
    match transport {
        "unix" => Some(Endpoint::Unix { path }),
        "shm" => Some(Endpoint::Shm { path }),
        _ => None,
    }
}

/// An endpoint as string bindings; one that stands for all addresses of the machine becomes all of them.
fn addresses(endpoint: &Endpoint) -> Vec<StringBinding> {
    let local = |text: String| vec![StringBinding { tower: TOWER_LOCAL, address: text }];
    match endpoint {
        Endpoint::Tcp { host, port } => {
            let hosts = match host.parse::<IpAddr>() {
                Ok(address) if address.is_unspecified() => own_addresses(address.is_ipv4()),
                _ => vec![host.clone()],
            };
            let binding =
                |host: String| StringBinding { tower: TOWER_TCP, address: format!("{host}[{port}]") };
            hosts.into_iter().map(binding).collect()
        }
        Endpoint::Unix { path } => local(format!("unix:{path}")),
        Endpoint::Shm { path } => local(format!("shm:{path}")),
        Endpoint::InProcess { .. } => Vec::new(),
    }
}

/// The addresses of this machine, those that others can reach first, and its name.
fn own_addresses(only_v4: bool) -> Vec<String> {
    let mut interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces.sort_by_key(if_addrs::Interface::is_loopback);
    let addresses = interfaces.iter().map(if_addrs::Interface::ip);
    let usable = addresses.filter(|address| match address {
        IpAddr::V4(_) => true,
        // A link-local address means nothing elsewhere without the name of an interface there.
        IpAddr::V6(address) => !only_v4 && !address.is_unicast_link_local(),
    });
    let mut texts: Vec<String> = usable.map(|address| address.to_string()).take(ADDRESSES).collect();
    texts.extend(host_name());
    if texts.is_empty() {
        texts.push(if only_v4 { "127.0.0.1" } else { "::1" }.to_owned());
    }
    texts
}

fn host_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = text.ok()?.trim().to_owned();
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    (!name.is_empty() && name != "(none)" && name.chars().all(valid)).then_some(name)
}

/// The port of resolvers, for bindings that name none.
pub(super) const RESOLVER: u16 = RESOLVER_PORT;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_become_addresses_with_ports() {
        let bindings = bindings_of(&[Endpoint::Tcp { host: "0.0.0.0".into(), port: 7001 }]);
        assert!(
            bindings.strings.iter().all(|held| held.tower == TOWER_TCP && held.address.ends_with("[7001]"))
        );
        assert!(bindings.strings.iter().any(|held| held.address == "127.0.0.1[7001]"));
        assert!(!bindings.strings.iter().any(|held| held.address.starts_with("0.0.0.0")));
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
