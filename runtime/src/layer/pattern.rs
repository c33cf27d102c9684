//! What rules match: words with `*` in them, and callers by address or account.

use everywire_model::{Peer, Request};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A word in which each `*` stands for any characters, and each `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// One of this text.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// A word that stands for itself, whatever is in it.
    pub fn exact(text: &str) -> Self {
        // A `?` stands for any character, itself among them.
        Self(text.replace('*', "?"))
    }

    /// Whether it is a word that stands for itself alone.
    pub fn is_plain(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// What it was made of.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a word fits. Linear in practice and never worse than the product of both lengths: what came last after a `*` is
    /// tried one character further on.
    pub fn fits(&self, word: &str) -> bool {
        let (pattern, word) = (self.0.as_bytes(), word.as_bytes());
        let (mut at, mut seen) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while seen < word.len() {
            match pattern.get(at) {
                Some(b'*') => {
                    star = Some((at, seen));
                    at += 1;
                }
                Some(byte) if *byte == b'?' || word.get(seen) == Some(byte) => {
                    at += 1;
                    seen += 1;
                }
                _ => match &mut star {
                    Some((begun, from)) => {
                        *from += 1;
                        (at, seen) = (*begun + 1, *from);
                    }
                    None => return false,
                },
            }
        }
        pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who calls: an address, a network, or an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Addresses whose first bits are these; an IPv4 address in IPv6 stands here as IPv4.
    Network(IpAddr, u8),
    /// An account that the caller proved to be, or `uid:NUMBER` of the kernel's word. Behind a router nobody has one.
    User(Pattern),
    /// Whoever comes by a Unix socket or shared memory.
    Local,
}

impl Caller {
    /// Reads `10.0.0.0/8`, `::1`, `local` or `user:NAME`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("user:").filter(|name| !name.is_empty()) {
            return Ok(Self::User(Pattern::new(name)));
        }
        if text == "local" {
            return Ok(Self::Local);
        }
        let wrong = || {
            format!(
                "`{text}` names nobody: write an address, a network such as 10.0.0.0/8, `local`, or user:NAME"
            )
        };
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let written: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if written.is_ipv4() { 32 } else { 128 };
        let bits: u8 = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > most {
            return Err(format!("`{text}`: an address of this family has {most} bits"));
        }
        let address = written.to_canonical();
        if address.is_ipv6() || written.is_ipv4() {
            return Ok(Self::Network(address, bits));
        }
        // With fewer bits it would be all of IPv4, which nobody writes so: mostly the bits of the IPv4 address were meant.
        let bits = bits.checked_sub(96).ok_or_else(|| {
            format!("`{text}`: an IPv4 address in IPv6 begins behind 96 bits; write {address}/BITS, of 32")
        })?;
        Ok(Self::Network(address, bits))
    }

    /// Whether it is this one.
    pub fn is(&self, who: &CallerIdentity) -> bool {
        match self {
            Self::Network(network, bits) => {
                who.address.is_some_and(|address| within(address, *network, *bits))
            }
            Self::User(name) => who.users.iter().any(|user| name.fits(user)),
            Self::Local => who.address.is_none(),
        }
    }
}

/// Whether the first bits of both addresses are the same; addresses of IPv4 that came mapped into IPv6 count
/// as IPv4, as the network does already.
fn within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (address.to_canonical(), network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros() >= bits,
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros() >= bits,
        _ => false,
    }
}

/// A caller as rules see one.
#[derive(Debug, Clone, Default)]
pub struct CallerIdentity {
    /// The address; none on one machine.
    pub address: Option<IpAddr>,
    /// Its accounts: the one it proved to be, and `uid:NUMBER`.
    pub users: Vec<String>,
    /// What a router calls it, such as `:1.42` on a bus; empty where none stands between.
    pub name: String,
}

impl CallerIdentity {
    /// What is known of a peer.
    pub fn of(peer: Option<&Peer>) -> Self {
        let Some(peer) = peer else { return Self::default() };
        let mut users: Vec<String> = peer.account.iter().map(ToString::to_string).collect();
        users.extend(peer.address.credentials.map(|(_, uid)| format!("uid:{uid}")));
        Self { address: address(&peer.address.text), users, name: String::new() }
    }

    /// Who makes a call. Where a router stands between (a bus of D-Bus, DCOP's server), the other end of the connection is the router: what the
    /// kernel says of that is no word on the caller, of whom only the router's name for it is known. Where users share a connection (DCOM),
    /// the call says which of them makes it.
    pub fn of_call(request: &Request) -> Self {
        let (peer, sender) = (request.peer(), String::from_utf8_lossy(request.sender()));
        match peer {
            Some(mut peer) if peer.shared => {
                peer.account = (!sender.is_empty()).then(|| sender.as_ref().into());
                Self::of(Some(&peer))
            }
            peer if sender.is_empty() => Self::of(peer.as_ref()),
            _ => Self { name: sender.into_owned(), ..Self::default() },
        }
    }

    /// What limits for each caller count by: the router's name, else the account, else the address.
    pub fn source(&self) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        match (self.users.first(), self.address) {
            (Some(user), _) => user.clone(),
            (None, Some(address)) => address.to_string(),
            (None, None) => "local".into(),
        }
    }
}

/// The address in a transport's words, such as `tcp:127.0.0.1:4711` or `tcp:[::1]:4711`. None for a Unix
/// socket, which names a process.
fn address(text: &str) -> Option<IpAddr> {
    text.strip_prefix("tcp:").unwrap_or(text).parse::<SocketAddr>().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, word, fits) in [
            ("Get*", "GetOrders", true),
            ("Get*", "get", false),
            ("*Orders", "GetOrders", true),
            ("G*t*s", "GetOrders", true),
            ("a*b*c", "aXbXbX", false),
            ("", "", true),
            ("*", "", true),
            ("ab?", "abc", true),
            ("ab?", "ab", false),
        ] {
            assert_eq!(Pattern::new(pattern).fits(word), fits, "{pattern} {word}");
        }
        let hostile = Pattern::new(&"a*".repeat(30));
        assert!(!hostile.fits(&format!("{}b", "a".repeat(20))));
    }

    #[test]
    fn callers_are_told_apart_by_address_and_account() {
        let who = CallerIdentity {
            address: "10.1.2.3".parse().ok(),
            users: vec!["ada".into()],
            name: String::new(),
        };
        for (text, is) in [
            ("10.0.0.0/8", true),
            ("10.1.2.0/25", true),
            ("10.1.2.128/25", false),
            ("10.1.2.3", true),
            ("::/0", false),
            ("::ffff:10.0.0.0/104", true),
            ("::ffff:192.168.0.0/112", false),
            ("::ffff:0:0/96", true),
            ("::ffff:10.1.2.3", true),
            ("user:a*", true),
            ("user:bob", false),
            ("local", false),
        ] {
            assert_eq!(Caller::parse(text).unwrap().is(&who), is, "{text}");
        }
        assert!(Caller::parse("10.0.0.0/33").unwrap_err().contains("32 bits"));
        for short in ["::ffff:0:0/90", "::ffff:10.0.0.0/8"] {
            assert!(Caller::parse(short).unwrap_err().contains("96 bits"), "{short}");
        }
        assert!(Caller::parse("ada").unwrap_err().contains("user:NAME"));
        assert_eq!(address("tcp:127.0.0.1:80"), "127.0.0.1".parse().ok());
        assert_eq!(address("tcp:[::1]:80"), "::1".parse().ok());
        // A neighbour on the link is not of this machine.
        assert_eq!(address("tcp:[fe80::1%2]:80"), "fe80::1".parse().ok());
        assert_eq!(address("unix:/run/x"), None);
    }
}
