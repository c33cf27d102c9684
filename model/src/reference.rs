//! References: where an object is, on one or more wires, without saying how to get there.

use crate::endpoint::Endpoint;
use crate::failure::{Failure, Initiator};
use crate::layered::{self, LayerOptions};
pub use crate::percent::{escape, unescape, unescape_text};
use crate::profile::{Profile, RESUME_TOKEN};
use bytes::Bytes;
use std::fmt;

/// An object reference: plain data, valid in any process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Reference {
    /// Identity of the most derived interface known, as its contract language spells it; may be empty.
    pub type_id: String,
    /// Ways to reach the object, the preferred first.
    pub profiles: Vec<Profile>,
    /// Profiles that the wire which read this reference does not understand, passed on untouched: (tag, data).
    pub foreign: Vec<(u32, Bytes)>,
}

impl Reference {
    /// The same reference to the object as one of this interface: its identity, as the contract spells it, chooses the interface that
    /// a caller gets where objects have several (an IID).
    #[must_use]
    pub fn with_type(self, type_id: impl Into<String>) -> Self {
        Self { type_id: type_id.into(), ..self }
    }

    /// Each way to the object: a profile and one of its endpoints, in their order.
    pub fn ways(&self) -> impl Iterator<Item = (&Profile, &Endpoint)> {
        self.profiles
            .iter()
            .flat_map(|profile| profile.endpoints.iter().map(move |endpoint| (profile, endpoint)))
    }

    /// Whether it is where a call goes on that may have run already.
    pub fn is_under_way(&self) -> bool {
        self.profiles.iter().any(|profile| profile.component(RESUME_TOKEN).is_some())
    }
}

/// The text of a reference without the white space around it.
///
/// # Errors
/// It is longer than its reader takes.
pub fn bounded(text: &str, most: usize) -> Result<&str, Failure> {
    let text = text.trim();
    if text.len() > most {
        return Err(Failure::over_limit(Initiator::User, "characters in a reference", text.len(), most));
    }
    Ok(text)
}

/// Takes `USER@` off what stands behind the `://` of an address: what says who calls, if anything does, and the rest.
pub fn split_user(rest: &str) -> (Option<&str>, &str) {
    // A key may hold an `@`, so only what stands before the first `/` is looked at; sockets' paths begin with one.
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once('@').filter(|(who, _)| !who.is_empty()) {
        Some((who, _)) => (Some(who), rest.get(who.len() + 1..).unwrap_or_default()),
        None => (None, rest),
    }
}

/// A friendly address, the same on every wire:
///
/// ```text
/// SCHEME://HOST[:PORT][/KEY]          TCP
/// SCHEME+unix://PATH[#KEY]            Unix socket (PATH absolute, or @NAME for the abstract name space)
/// SCHEME+shm://PATH[#KEY]             shared memory, set up over that Unix socket
/// SCHEME+tls://HOST[:PORT][/KEY][?OPTIONS]     TLS over TCP; OPTIONS are NAME=VALUE, with `&` between two of them
/// SCHEME+tls+unix://PATH[?OPTIONS][#KEY]       TLS over a Unix socket
/// ```
///
/// In KEY and in values of options, `%xx` stands for the byte xx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The scheme, without the transport.
    pub scheme: String,
    /// Where.
    pub endpoint: Endpoint,
    /// The object's key; empty for the peer as such.
    pub key: Bytes,
}

impl Address {
    /// Reads a friendly address. `default_port` stands in where none is given; without one a port is required.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, Failure> {
        let wrong = |what: &str| {
            Failure::bad_reference(format!("`{text}` is not an address: {what}")).with_hint(
                "an address is SCHEME://HOST:PORT/KEY, SCHEME+unix:///PATH#KEY or SCHEME+shm:///PATH#KEY",
            )
        };
        let Some((scheme, rest)) = text.split_once("://") else { return Err(wrong("`://` is missing")) };
        let (scheme, transport) = scheme.split_once('+').unwrap_or((scheme, "tcp"));
        if let Some(layer) = layered::NAMES.iter().find(|name| transport.split('+').next() == Some(**name)) {
            let below = transport.strip_prefix(layer).unwrap_or_default();
            if below == "+shm" {
                return Err(wrong("shared memory leaves this machine for nobody: no layer lies over it"));
            }
            let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
            let (options, key) = options.split_at(options.find('#').unwrap_or(options.len()));
            let options = LayerOptions::parse(options).map_err(|failure| wrong(failure.message()))?;
            let address = Self::parse(&format!("{scheme}{below}://{place}{key}"), default_port)?;
            return Ok(Self { endpoint: Endpoint::layered(layer, options, address.endpoint), ..address });
        }
        let (endpoint, key) = match transport {
            "tcp" => {
                let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
                if let Some((_, option)) = authority.split_once('?') {
                    let name = option.split(['=', '&']).next().unwrap_or(option);
                    return Err(wrong(&format!("an option `{name}` is not known here")));
                }
                (tcp(authority, default_port).ok_or_else(|| wrong("HOST:PORT is expected after `://`"))?, key)
            }
            "unix" | "shm" => {
                let (path, key) = rest.split_once('#').unwrap_or((rest, ""));
                if !(path.starts_with('/') || path.starts_with('@')) || path.len() < 2 {
                    return Err(wrong("the socket's path must be absolute, as in `+unix:///run/app.sock`"));
                }
                let path = path.to_owned();
                (if transport == "unix" { Endpoint::Unix { path } } else { Endpoint::Shm { path } }, key)
            }
            other => {
                return Err(wrong(&format!(
                    "transport `{other}` is unknown; known are tcp, unix, shm, tls and tls+unix"
                )));
            }
        };
        let key =
            unescape(key).ok_or_else(|| wrong("`%` in a key must be followed by two hexadecimal digits"))?;
        Ok(Self { scheme: scheme.to_owned(), endpoint, key: key.into() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = escape(&self.key);
        let scheme = &self.scheme;
        if let Endpoint::Layered(layered) = &self.endpoint {
            let (scheme, key) = (format!("{scheme}+{}", layered.layer), self.key.clone());
            let below = Self { scheme, endpoint: layered.over.clone(), key }.to_string();
            let (place, key) = match layered.over {
                Endpoint::Tcp { .. } => (below.as_str(), ""),
                _ => below.split_at(below.rfind('#').unwrap_or(below.len())),
            };
            let mark = if layered.options.is_empty() { "" } else { "?" };
            return write!(f, "{place}{mark}{}{key}", layered.options);
        }
        match &self.endpoint {
            Endpoint::Tcp { host, port } if host.contains(':') => {
                write!(f, "{scheme}://[{host}]:{port}/{key}")
            }
            Endpoint::Tcp { host, port } => write!(f, "{scheme}://{host}:{port}/{key}"),
            Endpoint::Unix { path } => write!(f, "{scheme}+unix://{path}#{key}"),
            Endpoint::Shm { path } => write!(f, "{scheme}+shm://{path}#{key}"),
            Endpoint::InProcess { name } => write!(f, "inproc://{name}/{key}"),
            Endpoint::Layered(_) => Ok(()),
        }
    }
}

fn tcp(authority: &str, default_port: Option<u16>) -> Option<Endpoint> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(host, after)| (host, after.strip_prefix(':')))?,
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => default_port?,
    };
    if host.is_empty() { None } else { Some(Endpoint::Tcp { host: host.to_owned(), port }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_a_round_trip() {
        for text in [
            "iiop://host:2809/a/b%00c",
            "iiop://[::1]:1/",
            "x+unix:///run/s.sock#key",
            "x+shm://@name#k%23",
            "x+tls://host:1/a?ca=/etc/ca.pem&cert=/a%26b",
            "x+tls://[::1]:1/",
            "x+tls+unix:///run/s.sock?ca=/etc/ca.pem#key",
            "x+tls+unix://@name#key",
        ] {
            assert_eq!(Address::parse(text, None).unwrap().to_string(), text);
        }
        assert_eq!(
            Address::parse("x://h", Some(7)).unwrap().endpoint,
            Endpoint::Tcp { host: "h".into(), port: 7 }
        );
    }

    #[test]
    fn wrong_addresses_say_why() {
        for (text, word) in [
            ("host:1", "://"),
            ("x://host", "HOST:PORT"),
            ("x+unix://rel#k", "absolute"),
            ("x+foo:///p", "unknown"),
            ("x+tls+foo:///p", "unknown"),
            ("x+tls+shm:///p", "no layer"),
            ("x+tls://h:1?ca", "no `=`"),
            ("x://h:1/%zz", "hexadecimal"),
        ] {
            let failure = Address::parse(text, None).unwrap_err();
            assert!(failure.message().contains(word), "{failure}");
        }
    }
}
