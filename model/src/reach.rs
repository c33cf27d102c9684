//! Where others reach a port that this process listens on.
//!
//! A listener at `0.0.0.0` or `[::]` accepts at every address of the machine, but nobody can call `0.0.0.0`:
//! references name the machine's own addresses instead, or what the address option `publish=HOST[:PORT]`
//! says. That option is the same on every wire; the runtime takes it off the address before the wire reads
//! the rest.
//!
//! What is said, the first that applies: what `publish=` says, alone; the address that was listened at, if it
//! is one; else all addresses of the machine that it accepts at, without those that mean something on this
//! machine only, unless there are no others.
//!
//! Invariants.
//! * At least one endpoint is said, and no more than `ADDRESSES`; none twice.
//! * A layer (TLS) is put around whatever is said, and never lost.
//! * Link-local addresses of IPv6 are never said: they mean nothing elsewhere without the name of an
//!   interface there.
//! * What `publish=` says is checked for its form only; whether it leads here, nobody here can know.
//!
//! `Wildcard` stays with the reference, so that a wire can say first the address by which a peer knows this
//! machine.

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::options;
use std::borrow::Cow;
use std::net::IpAddr;

/// The most addresses of a machine that a reference names.
const ADDRESSES: usize = 32;

const NOTATION: &str =
    "write publish=HOST or publish=HOST:PORT, an IPv6 address in brackets: publish=[2001:db8::7]:2809";

/// Where others reach a place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// What references say, the preferred first.
    pub endpoints: Vec<Endpoint>,
    /// The place accepts at every address of the machine, and nobody said which one to publish.
    pub wildcard: bool,
}

/// Kept in the lease of a profile: the listeners behind it that accept at every address of the machine. So a wire can
/// name the address first by which a connection's peer knows this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard(pub Vec<Endpoint>);

impl Wildcard {
    /// The listener as the peer of a connection reaches it whose end here has this address. Nothing for addresses that
    /// mean something on this machine only: the peer may hand the reference on.
    pub fn seen_at(&self, local: IpAddr) -> Option<Endpoint> {
        let local = local.to_canonical();
        if local.is_loopback() || local.is_unspecified() || is_link_local(&local) {
            return None;
        }
        self.0.iter().find_map(|bound| match (bound, wildcard(bound)?) {
            (Endpoint::Tcp { port, .. }, family) if family.is_ipv6() || local.is_ipv4() => {
                Some(Endpoint::Tcp { host: local.to_string(), port: *port })
            }
            _ => None,
        })
    }
}

/// What the option `publish=` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// Host name or address, without brackets.
    pub host: String,
    /// The port; without it that of the listener.
    pub port: Option<u16>,
}

impl Publish {
    /// The name of the option.
    pub const OPTION: &'static str = "publish";

    /// Takes the option off an address to listen at.
    ///
    /// # Errors
    ///
    /// The option has a value that is no `HOST[:PORT]`, or stands there twice.
    pub fn take(address: &str) -> Result<(Cow<'_, str>, Option<Self>), Failure> {
        let (rest, found) =
            options::take(address, &[Self::OPTION]).map_err(|failure| failure.with_hint(NOTATION))?;
        let said = found.first().map(|(_, value)| Self::parse(value).map_err(|why| wrong(address, why)));
        Ok((rest, said.transpose()?))
    }

    fn parse(value: &str) -> Result<Self, &'static str> {
        let (host, port) = match value.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((host, port)) if host.parse::<std::net::Ipv6Addr>().is_ok() => {
                    (host, (!port.is_empty()).then(|| port.strip_prefix(':').unwrap_or("?")))
                }
                _ => return Err("what stands in brackets after `publish=` is no IPv6 address"),
            },
            None => match value.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err("an IPv6 address after `publish=` stands in brackets");
                }
                Some((host, port)) => (host, Some(port)),
                None => (value, None),
            },
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || !host.chars().all(plain) {
            return Err("`publish=` names no host");
        }
        if host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified()) {
            return Err("`publish=` names an address that nobody can call");
        }
        let port = match port.map(str::parse::<u16>) {
            None => None,
            Some(Ok(port)) if port > 0 => Some(port),
            Some(_) => return Err("the port after `publish=` is not from 1 to 65535"),
        };
        Ok(Self { host: host.to_owned(), port })
    }

    /// Checks that an address is of a kind of which this can be said.
    ///
    /// # Errors
    ///
    /// It is no TCP port.
    pub fn check(&self, address: &str, endpoint: Option<&Endpoint>) -> Result<(), Failure> {
        match endpoint.map(Endpoint::stream) {
            Some(Endpoint::Tcp { .. }) => Ok(()),
            _ => Err(wrong(address, "`publish=` says how others reach a TCP port, and this is none")),
        }
    }
}

/// Where others reach a listener: `own` are the addresses of this machine, the preferred first.
pub fn reach(bound: &Endpoint, publish: Option<&Publish>, own: &[IpAddr]) -> Reach {
    if bound.layer().is_some() {
        let below = reach(bound.stream(), publish, own);
        let endpoints = below.endpoints.into_iter().map(|stream| bound.over(stream)).collect();
        return Reach { endpoints, ..below };
    }
    let only = |endpoint| Reach { endpoints: vec![endpoint], wildcard: false };
    let Endpoint::Tcp { port, .. } = bound else { return only(bound.clone()) };
    if let Some(Publish { host, port: told }) = publish {
        return only(Endpoint::Tcp { host: host.clone(), port: told.unwrap_or(*port) });
    }
    let Some(any) = wildcard(bound) else { return only(bound.clone()) };
    // A link-local address means nothing elsewhere without the name of an interface there.
    let usable = |address: &&IpAddr| (any.is_ipv6() || address.is_ipv4()) && !is_link_local(address);
    let (here, global): (Vec<&IpAddr>, Vec<&IpAddr>) =
        own.iter().filter(usable).partition(|it| it.is_loopback());
    let told = if global.is_empty() { here } else { global };
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for address in told {
        let endpoint = Endpoint::Tcp { host: address.to_string(), port: *port };
        if endpoints.len() < ADDRESSES && !endpoints.contains(&endpoint) {
            endpoints.push(endpoint);
        }
    }
    if endpoints.is_empty() {
        let host = if any.is_ipv4() { "127.0.0.1" } else { "::1" };
        endpoints.push(Endpoint::Tcp { host: host.to_owned(), port: *port });
    }
    Reach { endpoints, wildcard: true }
}

/// The address of a listener that accepts at every address of the machine.
pub fn wildcard(bound: &Endpoint) -> Option<IpAddr> {
    match bound.stream() {
        Endpoint::Tcp { host, .. } => {
            host.parse::<IpAddr>().ok().filter(|it| it.to_canonical().is_unspecified())
        }
        _ => None,
    }
}

fn is_link_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

fn wrong(address: &str, why: &str) -> Failure {
    options::wrong(address, why).with_hint(NOTATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp { host: host.into(), port }
    }

    fn own() -> Vec<IpAddr> {
        ["10.0.0.1", "2001:db8::7", "fe80::1", "192.168.1.4", "127.0.0.1", "::1"]
            .map(|it| it.parse().unwrap())
            .into()
    }

    #[test]
    fn wildcards_become_the_addresses_that_others_reach() {
        let found = reach(&tcp("0.0.0.0", 7), None, &own());
        assert_eq!(
            found,
            Reach { endpoints: vec![tcp("10.0.0.1", 7), tcp("192.168.1.4", 7)], wildcard: true }
        );
        let found = reach(&tcp("::", 7), None, &own());
        assert_eq!(found.endpoints, [tcp("10.0.0.1", 7), tcp("2001:db8::7", 7), tcp("192.168.1.4", 7)]);
        let lonely: Vec<IpAddr> = own().into_iter().filter(IpAddr::is_loopback).collect();
        assert_eq!(reach(&tcp("0.0.0.0", 7), None, &lonely).endpoints, [tcp("127.0.0.1", 7)]);
        assert_eq!(reach(&tcp("::", 7), None, &[]).endpoints, [tcp("::1", 7)]);
        let exact = reach(&tcp("host", 7), None, &own());
        assert_eq!(exact, Reach { endpoints: vec![tcp("host", 7)], wildcard: false });
    }

    #[test]
    fn a_connection_tells_which_address_its_peer_knows() {
        let held = Wildcard(vec![tcp("0.0.0.0", 7)]);
        assert_eq!(held.seen_at("10.1.1.1".parse().unwrap()), Some(tcp("10.1.1.1", 7)));
        assert_eq!(held.seen_at("::ffff:10.1.1.1".parse().unwrap()), Some(tcp("10.1.1.1", 7)));
        for elsewhere in ["127.0.0.1", "2001:db8::7", "fe80::1"] {
            assert_eq!(held.seen_at(elsewhere.parse().unwrap()), None, "{elsewhere}");
        }
        assert_eq!(
            Wildcard(vec![tcp("::", 7)]).seen_at("2001:db8::7".parse().unwrap()),
            Some(tcp("2001:db8::7", 7))
        );
    }

    #[test]
    fn what_is_said_is_published() {
        for (text, rest, host, port) in [
            ("iiop://0.0.0.0:0?publish=nat.example", "iiop://0.0.0.0:0", "nat.example", None),
            ("x://[::]:1?a=b&publish=[2001:db8::7]:99&c", "x://[::]:1?a=b&c", "2001:db8::7", Some(99)),
            ("x://0.0.0.0:1?publish=10.0.0.9:5#/p", "x://0.0.0.0:1#/p", "10.0.0.9", Some(5)),
        ] {
            let (left, said) = Publish::take(text).unwrap();
            assert_eq!((&*left, said), (rest, Some(Publish { host: host.into(), port })), "{text}");
        }
        assert_eq!(Publish::take("x://h:1?a=b").unwrap(), ("x://h:1?a=b".into(), None));
        let said = Publish { host: "nat".into(), port: None };
        let found = reach(&tcp("0.0.0.0", 7), Some(&said), &own());
        assert_eq!(found, Reach { endpoints: vec![tcp("nat", 7)], wildcard: false });
        let said = Publish { host: "nat".into(), port: Some(8) };
        assert_eq!(reach(&tcp("10.0.0.1", 7), Some(&said), &own()).endpoints, [tcp("nat", 8)]);
    }

    #[test]
    fn a_wrong_option_says_why() {
        for (value, word) in [
            ("", "no host"),
            (":80", "no host"),
            ("a b", "no host"),
            ("2001:db8::7", "brackets"),
            ("[host]", "IPv6"),
            ("[::1", "IPv6"),
            ("[::1]80", "port"),
            ("h:0", "port"),
            ("h:70000", "port"),
            ("0.0.0.0", "nobody can call"),
            ("[::]:80", "nobody can call"),
            ("h&publish=i", "twice"),
        ] {
            let failure = Publish::take(&format!("x://h:1?publish={value}")).unwrap_err();
            assert!(failure.message().contains(word), "{value}: {failure}");
        }
        let unix = Endpoint::Unix { path: "/x".into() };
        let said = Publish { host: "h".into(), port: None };
        assert!(said.check("x+unix:///x", Some(&unix)).unwrap_err().message().contains("TCP"));
        assert!(said.check("x://h:1", Some(&tcp("h", 1))).is_ok());
    }
}
