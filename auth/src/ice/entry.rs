//! Entries, and the bytes of the file: five strings each, with their lengths in two octets, big-endian.

use super::AuthorityError;
use crate::{Random, same_secret};
use std::fmt;

/// The authentication method that all implementations have.
pub const MAGIC_COOKIE: &str = "MIT-MAGIC-COOKIE-1";
/// The bytes of its cookie.
pub const COOKIE_LEN: usize = 16;
/// The most entries of a file that are read.
pub const MAX_ENTRIES: usize = 4096;

/// One secret for one protocol at one address.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The protocol: `ICE`, `DCOP`, `XSMP`.
    pub protocol: Vec<u8>,
    /// Data of the protocol; nobody uses it.
    pub data: Vec<u8>,
    /// The network id: `local/HOST:PATH` or `tcp/HOST:PORT`.
    pub netid: Vec<u8>,
    /// The authentication method.
    pub method: Vec<u8>,
    /// The secret.
    pub secret: Vec<u8>,
}

impl Entry {
    /// An entry with a new random cookie of [`COOKIE_LEN`] bytes.
    ///
    /// # Errors
    ///
    /// There are no random numbers.
    pub fn fresh(protocol: &str, netid: &str, random: Random) -> Result<Self, AuthorityError> {
        let mut secret = vec![0; COOKIE_LEN];
        random(&mut secret).map_err(|_| AuthorityError::NoRandom)?;
        Ok(Self {
            protocol: protocol.into(),
            data: Vec::new(),
            netid: netid.into(),
            method: MAGIC_COOKIE.into(),
            secret,
        })
    }

    /// Whether this is about the protocol at the network id, by [`MAGIC_COOKIE`].
    pub fn is_for(&self, protocol: &str, netid: &str) -> bool {
        self.protocol == protocol.as_bytes()
            && self.netid == netid.as_bytes()
            && self.method == MAGIC_COOKIE.as_bytes()
    }

    /// Whether a peer that sends this knows the secret. The time it takes depends on the lengths only; an empty secret
    /// matches nothing.
    pub fn matches(&self, sent: &[u8]) -> bool {
        !self.secret.is_empty() && same_secret(&self.secret, sent)
    }

    /// Whether both would be found by the same search, so that one takes the other's place.
    pub(super) fn rivals(&self, other: &Self) -> bool {
        self.protocol == other.protocol && self.netid == other.netid && self.method == other.method
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        f.debug_struct("Entry")
            .field("protocol", &text(&self.protocol))
            .field("netid", &text(&self.netid))
            .field("method", &text(&self.method))
            .finish_non_exhaustive()
    }
}

/// Why bytes are no entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotEntries {
    /// They end in the middle of an entry.
    Truncated {
        /// Where that entry begins.
        offset: usize,
    },
    /// There are more than [`MAX_ENTRIES`].
    TooMany,
}

/// The entries of a file's bytes.
///
/// # Errors
///
/// The last entry is not all there, or there are more than [`MAX_ENTRIES`].
pub fn parse(bytes: &[u8]) -> Result<Vec<Entry>, NotEntries> {
    let mut entries = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let offset = bytes.len() - rest.len();
        if entries.len() == MAX_ENTRIES {
            return Err(NotEntries::TooMany);
        }
        entries.push(entry(&mut rest).ok_or(NotEntries::Truncated { offset })?);
    }
    Ok(entries)
}

fn entry(rest: &mut &[u8]) -> Option<Entry> {
    Some(Entry {
        protocol: string(rest)?,
        data: string(rest)?,
        netid: string(rest)?,
        method: string(rest)?,
        secret: string(rest)?,
    })
}

fn string(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (len, after) = rest.split_first_chunk()?;
    let (text, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    *rest = after;
    Some(text.to_vec())
}

/// The bytes of a file with these entries; `None` if a string is longer than 65535 bytes.
pub fn print(entries: &[Entry]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for entry in entries {
        for text in [&entry.protocol, &entry.data, &entry.netid, &entry.method, &entry.secret] {
            bytes.extend(u16::try_from(text.len()).ok()?.to_be_bytes());
            bytes.extend_from_slice(text);
        }
    }
    Some(bytes)
}
