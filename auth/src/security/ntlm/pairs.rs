//! The list about the server in a challenge, and in the answer to it (MS-NLMP 2.2.2.1).

use super::message::malformed;
use everywire_model::Failure;

/// Identities of pairs (`MsvAv...`).
pub(super) const END: u16 = 0;
pub(super) const NETBIOS_COMPUTER: u16 = 1;
pub(super) const NETBIOS_DOMAIN: u16 = 2;
pub(super) const DNS_COMPUTER: u16 = 3;
pub(super) const DNS_DOMAIN: u16 = 4;
pub(super) const FLAGS: u16 = 6;
pub(super) const TIMESTAMP: u16 = 7;
pub(super) const TARGET_NAME: u16 = 9;
pub(super) const CHANNEL_BINDINGS: u16 = 10;

/// In `FLAGS`: the AUTHENTICATE message has an integrity code.
pub(super) const HAS_MIC: u32 = 2;

/// The list, read once to its end.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'t>(&'t [u8]);

impl<'t> Pairs<'t> {
    /// The list up to its end mark, or all of it if it has none (an empty list has none). What follows is skipped.
    pub(super) fn read(bytes: &'t [u8]) -> Result<Self, Failure> {
        let mut rest = bytes;
        loop {
            let length = bytes.len() - rest.len();
            match split(rest) {
                None if rest.is_empty() => return Ok(Self(bytes)),
                None => return Err(malformed("a pair of the target information is cut off")),
                Some((END, _, _)) => return Ok(Self(bytes.get(..length).unwrap_or_default())),
                Some((_, _, behind)) => rest = behind,
            }
        }
    }

    /// The pairs, without the end mark.
    pub(super) fn iter(self) -> impl Iterator<Item = (u16, &'t [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (id, value, behind) = split(rest)?;
            rest = behind;
            Some((id, value))
        })
    }

    /// The first of this kind.
    pub(super) fn get(self, id: u16) -> Option<&'t [u8]> {
        self.iter().find(|(found, _)| *found == id).map(|(_, value)| value)
    }

    /// The flags; none if the pair is missing.
    pub(super) fn flags(self) -> Result<u32, Failure> {
        match self.get(FLAGS) {
            None => Ok(0),
            Some(value) => value
                .try_into()
                .map(u32::from_le_bytes)
                .map_err(|_| malformed("the flags of the target information are not 4 octets")),
        }
    }

    /// The acceptor's clock, as octets.
    pub(super) fn timestamp(self) -> Result<Option<[u8; 8]>, Failure> {
        self.get(TIMESTAMP)
            .map(|value| value.try_into().map_err(|_| malformed("the timestamp is not 8 octets")))
            .transpose()
    }

    /// Whether there are none.
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a pair; `None` if the value is too long.
pub(super) fn put(out: &mut Vec<u8>, id: u16, value: &[u8]) -> Option<()> {
    out.extend(id.to_le_bytes());
    out.extend(u16::try_from(value.len()).ok()?.to_le_bytes());
    out.extend_from_slice(value);
    Some(())
}

fn split(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (id, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (value, behind) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((u16::from_le_bytes(*id), value, behind))
}
