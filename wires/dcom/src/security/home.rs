//! The host that an account was given for: whatever its references say of where they lead, the account is shown to no other.
//!
//! States: a table of this process, from an account and the names it was given for to the addresses to which
//! connections by those names led. An entry is made with the first `Home` of its key and removed with the
//! last one.
//!
//! Invariants: addresses are learnt only from connections that this side opened by one of the names, never
//! from what a peer says. There are `ADDRESSES` for one home; the oldest goes.

use crate::lock::lock;
use everywire_auth::security::Credentials;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};

/// The most addresses of one host that are remembered.
const ADDRESSES: usize = 64;

/// This machine, for itself.
pub(super) const HERE: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// See the module. Addresses that give the same account for the same host share one.
pub(super) struct Home {
    key: Key,
}

/// An account, and the names of the host as the address has them that it stands in; several where an OBJREF was given as text.
type Key = (Option<Arc<Credentials>>, Vec<String>);

/// What is known of a home that somebody has.
struct HomeEntry {
    home: Weak<Home>,
    /// Where connections by its names led.
    found: Vec<IpAddr>,
}

/// Those that somebody has. Beside them, for homes are parts of keys.
fn homes() -> MutexGuard<'static, HashMap<Key, HomeEntry>> {
    static HOMES: LazyLock<Mutex<HashMap<Key, HomeEntry>>> = LazyLock::new(Mutex::default);
    lock(&HOMES)
}

impl Home {
    /// The home of an account that was given for these names.
    pub(super) fn of(account: Option<Arc<Credentials>>, names: Vec<String>) -> Arc<Self> {
        let key = (account, names);
        let mut homes = homes();
        if let Some(home) = homes.get(&key).and_then(|known| known.home.upgrade()) {
            return home;
        }
        let home = Arc::new(Self { key: key.clone() });
        homes.insert(key, HomeEntry { home: Arc::downgrade(&home), found: Vec::new() });
        home
    }

    /// Its name, for messages.
    pub(super) fn name(&self) -> &str {
        self.key.1.first().map_or("", String::as_str)
    }

    /// Whether a host is it by its name alone: the same, or its first label without the domain, which is what Windows calls
    /// itself in its bindings. A name with another domain proves nothing: whoever wrote it chose that, too.
    pub(super) fn is_named(&self, host: &str) -> bool {
        self.key.1.iter().any(|name| is_called(name, host, address_of(host)))
    }

    /// A connection by one of its names led there.
    pub(super) fn is_at(&self, address: IpAddr) {
        if let Some(known) = homes().get_mut(&self.key)
            && !known.found.contains(&address)
        {
            if known.found.len() >= ADDRESSES {
                known.found.remove(0);
            }
            known.found.push(address);
        }
    }

    /// Whether it was found at this address.
    pub(super) fn was_at(&self, address: IpAddr) -> bool {
        homes().get(&self.key).is_some_and(|known| known.found.contains(&address))
    }

    /// Whether it was found at this address, or both are this machine.
    pub(super) fn knows(&self, address: IpAddr) -> bool {
        self.was_at(address) || (HERE.contains(&address) && HERE.iter().any(|here| self.was_at(*here)))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let mut homes = homes();
        // Another one may have taken its place already.
        if homes.get(&self.key).is_some_and(|known| known.home.strong_count() == 0) {
            homes.remove(&self.key);
        }
    }
}

/// Whether a name means a host that is called so, or is at this address: by the whole name, its first label, or the address.
pub(super) fn is_called(name: &str, host: &str, at: Option<IpAddr>) -> bool {
    let address = address_of(name);
    let label = name.split_once('.').map(|(label, _)| label).filter(|_| address.is_none());
    name.eq_ignore_ascii_case(host)
        || label.is_some_and(|label| label.eq_ignore_ascii_case(host))
        || (at.is_some() && address == at)
}

/// The address that a host is named by, if it is named by one.
pub(super) fn address_of(host: &str) -> Option<IpAddr> {
    host.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(name: &str) -> Arc<Home> {
        Home::of(None, vec![name.to_owned()])
    }

    #[test]
    fn a_host_is_known_by_its_name_and_its_first_label() {
        let server = home("server.example.org");
        for same in ["server.example.org", "SERVER.EXAMPLE.ORG", "server", "SERVER"] {
            assert!(server.is_named(same), "{same}");
        }
        for other in ["server.example.com", "other", "example.org", "192.0.2.1", ""] {
            assert!(!server.is_named(other), "{other}");
        }
        // The first number of an address is no name.
        assert!(!home("192.0.2.1").is_named("192"));
        assert!(home("192.0.2.1").is_named("::ffff:192.0.2.1"));
        assert!(!home("server").is_named("server.example.org"));
    }

    #[test]
    fn addresses_are_those_that_its_names_led_to() {
        let server = home("b.example.org");
        let at: IpAddr = "192.0.2.9".parse().expect("an address");
        assert!(!server.knows(at));
        server.is_at(at);
        // What was found is shared.
        assert!(home("b.example.org").knows(at));
        assert!(!home("c.example.org").knows(at));
        assert!(!server.knows("127.0.0.1".parse().expect("an address")));
    }

    #[test]
    fn this_machine_is_one_host() {
        let here = home("localhost");
        here.is_at("127.0.0.1".parse().expect("an address"));
        assert!(here.knows("::1".parse().expect("an address")));
        // It may be somebody else's.
        assert!(!here.knows("127.0.0.2".parse().expect("an address")));
        // What a host far away calls itself is this machine here.
        assert!(!home("far.example.org").knows("127.0.0.1".parse().expect("an address")));
    }
}
