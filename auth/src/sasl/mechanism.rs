//! How a client proves who it is.

use everywire_model::named_variants;
use std::fmt;

named_variants! {
    /// A mechanism: D-Bus Specification, "Authentication mechanisms". The words are its names on the wire.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Mechanism {
        /// The kernel tells the server the peer's user. Unix sockets only.
        External "EXTERNAL",
        /// The client proves that it can read a file of its user.
        CookieSha1 "DBUS_COOKIE_SHA1",
        /// The client does not say who it is.
        Anonymous "ANONYMOUS",
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The mechanisms' names that a `REJECTED` lists. What cannot be a name (RFC 4422, section 3.1) is left out: the list
/// ends up in messages for people.
pub(super) fn offered(list: &[u8]) -> Vec<String> {
    /// More than any server has.
    const MOST: usize = 16;
    let valid = |name: &&[u8]| {
        (1..=20).contains(&name.len())
            && name.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_'))
    };
    let names = list.split(|byte| *byte == b' ').filter(valid).take(MOST);
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}
