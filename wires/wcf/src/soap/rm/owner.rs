//! Whose sessions are counted together.
//!
//! A user is one who proved it to the transport (Windows, a certificate): by the account in the table of users, whichever way he
//! writes its name. A name in messages or in HTTP Basic is another's in the next request, so those who send such count as the
//! machine that they call from.

use everywire_model::PeerAddress;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Whose places are counted together: a user who has proved to be one, or else a machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::soap) struct Owner(Arc<str>);

impl Owner {
    /// What is known from the transport: the user of a local socket, the IPv4 address, the network of an IPv6 address, of
    /// which one machine has as many as it likes.
    pub(in crate::soap) fn at(peer: &PeerAddress) -> Self {
        if let Some((_, uid)) = peer.credentials {
            return Self(format!("uid {uid}").into());
        }
        let address = peer.text.strip_prefix("tcp:").and_then(|text| text.parse::<SocketAddr>().ok());
        Self(match address.map(|address| address.ip().to_canonical()) {
            Some(IpAddr::V4(address)) => address.to_string().into(),
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, ..] = address.segments();
                format!("{a:x}:{b:x}:{c:x}:{d:x}::").into()
            }
            None => peer.text.as_str().into(),
        })
    }

    /// Somebody who has proved to be called so.
    pub(in crate::soap) fn named(name: &str) -> Self {
        Self(format!("={name}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_apart_and_their_ports_are_not() {
        let at = |text: &str| Owner::at(&PeerAddress { text: text.into(), credentials: None });
        assert_eq!(at("tcp:10.1.2.3:4000"), at("tcp:10.1.2.3:4001"));
        assert_eq!(at("tcp:10.1.2.3:4000"), at("tcp:[::ffff:10.1.2.3]:4000"));
        assert_eq!(at("tcp:[2001:db8:1:2:3::4]:1"), at("tcp:[2001:db8:1:2:ffff::1]:1"));
        assert_ne!(at("tcp:[2001:db8:1:2::4]:1"), at("tcp:[2001:db8:1:3::4]:1"));
        assert_ne!(at("tcp:10.1.2.3:4000"), at("tcp:10.1.2.4:4000"));
        let of = |pid, uid| {
            Owner::at(&PeerAddress { text: format!("unix pid {pid}"), credentials: Some((pid, uid)) })
        };
        assert_eq!(of(1, 1000), of(2, 1000));
        assert_ne!(of(1, 1000), of(1, 1001));
        // Nobody is taken for an address because he is called so.
        assert_ne!(Owner::named("10.1.2.3"), at("tcp:10.1.2.3:1"));
    }
}
