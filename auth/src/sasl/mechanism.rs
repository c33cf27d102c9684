//! How a client proves who it is.

use std::fmt;

/// A mechanism: D-Bus Specification, "Authentication mechanisms".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// `EXTERNAL`: the kernel tells the server the peer's user. Unix sockets only.
    External,
    /// `DBUS_COOKIE_SHA1`: the client proves that it can read a file of its user.
    CookieSha1,
    /// `ANONYMOUS`: the client does not say who it is.
    Anonymous,
}

impl Mechanism {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::External => "EXTERNAL",
            Self::CookieSha1 => "DBUS_COOKIE_SHA1",
            Self::Anonymous => "ANONYMOUS",
        }
    }

    /// The mechanism of this name on the wire, in upper case as the specification has it.
    pub fn named(name: &str) -> Option<Self> {
        [Self::External, Self::CookieSha1, Self::Anonymous].into_iter().find(|known| known.name() == name)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
