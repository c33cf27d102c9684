//! The interfaces behind keys, and the endpoints where they are served.
//!
//! A description names endpoints: an address, a binding with its security, and the contract. Addresses are
//! those that were published, unless the caller has reached the service by another name of the same host,
//! which then leads back here.

use crate::address;
use crate::settings::{Binding, Encoding, Mode, Security, Settings};
use bytes::Bytes;
use everywire_idl::wsdl::{self, Description, Port, names};
use everywire_model::{BindAddress, Interface, Objects, Profile, Servant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is to be described: objects, by their keys.
pub(super) struct Service {
    objects: Vec<Object>,
}

struct Object {
    key: Bytes,
    servants: Vec<Arc<dyn Servant>>,
    /// The ways to it.
    ways: Vec<ServicePort>,
}

/// A way to an object.
#[derive(Clone)]
struct ServicePort {
    /// Of the place where it is served.
    settings: Arc<Settings>,
    /// It accepts at every address of this machine, and nobody said which one to publish: whoever asks spells one.
    wildcard: bool,
    /// The key of an object that is called elsewhere.
    at: Option<Bytes>,
}

impl Service {
    /// The object under a key; all of them for the empty key, unless one is served under that.
    pub(super) fn of(objects: &dyn Objects, key: &[u8]) -> Option<Self> {
        let own = objects.servants(key);
        let found = if !own.is_empty() {
            vec![(Bytes::copy_from_slice(key), own)]
        } else if key.is_empty() {
            let keys = objects.keys().into_iter();
            keys.map(|key| (key.clone(), objects.servants(&key))).filter(|(_, own)| !own.is_empty()).collect()
        } else {
            return None;
        };
        let ways = |key: &[u8]| {
            let way = |place: BindAddress| {
                let reach = objects.reach(&place);
                let mut reached = place;
                reached.profile_mut().endpoints = reach.endpoints;
                let published = address::publish("", &[reached], key);
                let settings = published.profiles.first().map(Settings::of)?;
                Some(ServicePort { settings, wildcard: reach.wildcard, at: None })
            };
            objects.places().into_iter().filter_map(way).collect()
        };
        let object = |(key, servants): (Bytes, Vec<Arc<dyn Servant>>)| {
            // Whoever only tells where the object is describes it there.
            let elsewhere = servants.iter().find_map(|servant| servant.elsewhere());
            let theirs = elsewhere.iter().flat_map(|reference| &reference.profiles);
            let way = |profile: &Profile| {
                let (settings, at) = (Settings::of(profile), Some(profile.key.clone()));
                ServicePort { settings, wildcard: false, at }
            };
            let theirs: Vec<ServicePort> = theirs.filter(|profile| profile.wire == "wcf").map(way).collect();
            Object { ways: if theirs.is_empty() { ways(&key) } else { theirs }, key, servants }
        };
        Some(Self { objects: found.into_iter().map(object).collect() })
    }

    /// The keys, each with the names of what is served there.
    pub(super) fn names(&self) -> impl Iterator<Item = (&Bytes, Vec<names::QName>)> {
        self.objects.iter().map(|object| {
            let interfaces = object.servants.iter().map(|servant| servant.interface());
            (&object.key, interfaces.map(names::contract).collect())
        })
    }

    /// The description; `asked` is a URL of the object as the caller spells it.
    pub(super) fn describe(&self, asked: Option<&str>) -> Description {
        let mut interfaces: Vec<&Interface> = Vec::new();
        let mut ports: BTreeMap<names::QName, Vec<Port>> = BTreeMap::new();
        for object in &self.objects {
            for interface in object.servants.iter().map(|servant| servant.interface()) {
                let contract = names::contract(interface);
                ports.entry(contract.clone()).or_default().extend(self.ports(object, &contract, asked));
                if interfaces.iter().all(|known| names::contract(known) != contract) {
                    interfaces.push(interface);
                }
            }
        }
        wsdl::describe(&interfaces, &[], &|interface| {
            ports.get(&names::contract(interface)).cloned().unwrap_or_default()
        })
    }

    /// The endpoints of an object for one of its contracts. `asked` counts only where a single object is
    /// described.
    fn ports(&self, object: &Object, contract: &names::QName, asked: Option<&str>) -> Vec<Port> {
        let asked = asked.filter(|_| self.objects.len() == 1);
        let mut ports: Vec<Port> = Vec::new();
        for ServicePort { settings, wildcard, at } in &object.ways {
            let own = settings.via(at.as_ref().unwrap_or(&object.key));
            let address = match asked.filter(|_| at.is_none()) {
                // The caller's spelling of the host leads here.
                Some(asked) if place(asked).1 == place(&own).1 => asked.to_owned(),
                Some(asked) if *wildcard => own.replacen(place(&own).0, place(asked).0, 1),
                _ => own,
            };
            if ports.iter().all(|port| port.address != address) {
                ports.push(port(settings, address, &object.key, contract));
            }
        }
        ports
    }
}

/// Host and port of a URL; with the scheme, where the port is the scheme's own.
fn place(url: &str) -> (&str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => match scheme {
            "http" => (authority, "80"),
            "https" => (authority, "443"),
            _ => (authority, scheme),
        },
    }
}

/// An endpoint in the words of a description: the binding's name, transport, encoding and security.
fn port(settings: &Settings, address: String, key: &[u8], contract: &names::QName) -> Port {
    let soap = if settings.binding == Binding::Basic { "1.1" } else { "1.2" };
    let (kind, transport) = match (settings.binding, settings.uri_scheme) {
        (Binding::NetTcp, "net.pipe") => ("NetNamedPipeBinding", "pipe"),
        (Binding::NetTcp, "net.uds") => ("UnixDomainSocketBinding", "uds"),
        (Binding::NetTcp, _) => ("NetTcpBinding", "tcp"),
        (Binding::Basic, scheme) => ("BasicHttpBinding", scheme),
        (Binding::Ws, scheme) => ("WSHttpBinding", scheme),
        (Binding::Soap12 | Binding::BinaryHttp, scheme) => ("CustomBinding", scheme),
    };
    let encoding = match settings.encoding {
        Encoding::Session | Encoding::Binary => "binary",
        Encoding::Text => "text",
        Encoding::Mtom => "mtom",
    };
    let security = match settings.transport_security {
        Security::Tls => "tls",
        Security::Windows => "windows",
        // No policy speaks of the kernel's word.
        Security::None | Security::Unix => "none",
    };
    let credential = match (settings.username, settings.basic_login) {
        (true, _) => "username",
        (_, true) => "basic",
        _ => "",
    };
    Port {
        service: service_name(key, contract),
        name: format!("{kind}_{}", contract.local),
        address,
        transport: transport.to_owned(),
        soap: soap.to_owned(),
        addressing: if settings.binding.has_addressing() { "1.0" } else { "none" }.to_owned(),
        encoding: encoding.to_owned(),
        security: security.to_owned(),
        credential: credential.to_owned(),
        streamed: settings.mode == Mode::Streamed,
        reliable: settings.reliable,
        unknown: Vec::new(),
    }
}

/// A service is named as the last part of its path, where that is a name.
fn service_name(key: &[u8], contract: &names::QName) -> String {
    let last = key.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match std::str::from_utf8(last) {
        Ok(name) if names::is_name(name) => name.to_owned(),
        _ => contract.local.clone(),
    }
}
