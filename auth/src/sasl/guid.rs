//! The identity of a server's address.

use crate::Random;
use everywire_model::hex;
use std::{fmt, io};

/// 128 bits that no other address has, written as 32 hexadecimal digits: D-Bus Specification, "UUIDs".
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// A new one.
    ///
    /// # Errors
    ///
    /// There are no random numbers.
    pub fn fresh(random: Random) -> io::Result<Self> {
        let mut bytes = [0; 16];
        random(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Exactly 32 hexadecimal digits, in either case.
    pub fn parse(text: &[u8]) -> Option<Self> {
        Some(Self(hex::decode(text)?.try_into().ok()?))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::text(&self.0))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guid({self})")
    }
}
