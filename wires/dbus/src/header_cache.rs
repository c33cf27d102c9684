//! Header fields that came before: a repeated one is recognised by its bytes and not read again.
//!
//! Most messages of a connection have the same fields as one shortly before; only the number of the call that
//! an answer is for differs, and it mostly stands first. So the last `REMEMBERED` different ones are kept,
//! with what reading them gave, and a new message is compared with them octet by octet (`again` looks at the
//! last one only).
//!
//! Bounds: eight entries, of which one may be larger than `REMEMBERED_BYTES`; so a peer cannot have more kept
//! than some 40 KiB. What is kept is a copy, and does not keep a message alive.

use crate::frame::{Fields, HEADER, Header};
use crate::pending_calls::Pending;
use crate::violations::ProtocolError;
use crate::{limits, names};
use bytes::Bytes;
use everywire_model::recent::Recent;
use everywire_model::{CallId, Context, Headers};

/// Header fields, read.
#[derive(Debug)]
pub(crate) struct CachedHeader {
    /// Byte order and kind of the message: the same octets mean something else in others.
    little: bool,
    kind: u8,
    /// As they came; the number of the call that is answered may differ.
    pub(crate) raw: Bytes,
    /// As they were read and checked.
    pub(crate) fields: Fields,
    /// Whether a message with them has more handles, or a longer path, than is taken here.
    pub(crate) excess: bool,
    /// The type of the body.
    pub(crate) signature: Context,
    /// The key of the object at the path.
    pub(crate) key: Bytes,
    /// Subscriptions that a signal with these fields is for, and the generation of subscriptions that this holds for.
    pub(crate) hearers: Option<(u64, Vec<CallId>)>,
}

/// The last different ones.
#[derive(Debug, Default)]
pub(crate) struct HeaderCache(Recent<CachedHeader, { limits::REMEMBERED }>);

impl HeaderCache {
    /// Recognises fields that are the same as those before, as [`HeaderCache::find`] does. The index of the fields
    /// and the number of the call that is answered.
    #[inline]
    pub(crate) fn again(&self, header: &Header, raw: &[u8]) -> Option<(usize, u32)> {
        let (index, last) = self.0.last()?;
        Some((index, last.recognises(header, raw)?))
    }

    /// Recognises or reads the fields of a message; returns where they are, and the number of the call
    /// answered (0 for none).
    ///
    /// # Errors
    /// The fields are not valid.
    pub(crate) fn find(&mut self, header: &Header, raw: &[u8]) -> Result<(usize, u32), ProtocolError> {
        if let Some(found) = self.0.find_map(|known| known.recognises(header, raw)) {
            return Ok(found);
        }
        let known = CachedHeader::read(header, raw)?;
        let reply = known.fields.reply;
        let is_large = |known: &CachedHeader| known.raw.len() > limits::REMEMBERED_BYTES;
        // Of what is large only the last is kept.
        let last_large = if is_large(&known) { self.0.find(is_large) } else { None };
        let place = last_large.and_then(|index| Some((index, self.0.get_mut(index)?)));
        let index = match place {
            Some((index, place)) => {
                *place = known;
                index
            }
            None => self.0.keep(known),
        };
        Ok((index, reply))
    }

    /// What [`HeaderCache::find`] found.
    #[inline]
    pub(crate) fn get(&mut self, index: usize) -> Option<&mut CachedHeader> {
        self.0.get_mut(index)
    }
}

impl CachedHeader {
    /// The fields that nobody here knows, where they came with the answer to a call of this side's users.
    pub(crate) fn headers_beside(&self, answered: &Pending) -> Option<Headers> {
        let wanted = self.fields.others && matches!(answered, Pending::Call { .. });
        wanted.then(|| Headers::received(self.raw.clone()))
    }

    /// Reads fields that were not seen before.
    fn read(header: &Header, raw: &[u8]) -> Result<Self, ProtocolError> {
        let raw = Bytes::copy_from_slice(raw);
        let fields = Fields::read(&raw, header)?;
        let key = if fields.path.is_empty() { Bytes::new() } else { names::key_of_path(&fields.path) };
        let excess = fields.handles as usize > limits::HANDLES || fields.path.len() > limits::PATH;
        let signature = (&*fields.signature).into();
        let (little, kind) = (header.little, header.kind);
        Ok(Self { little, kind, raw, fields, excess, signature, key, hearers: None })
    }

    /// Whether these are the same fields; the number of the call answered.
    #[inline]
    fn recognises(&self, header: &Header, raw: &[u8]) -> Option<u32> {
        if raw.len() != self.raw.len() || header.kind != self.kind || header.little != self.little {
            return None;
        }
        let Some(at) = self.fields.reply_at else { return (raw == self.raw).then_some(0) };
        let (before, rest) = raw.split_at_checked(at)?;
        let (number, after) = rest.split_first_chunk::<4>()?;
        // Mostly that number comes first, behind four bytes that tell so.
        let begins_same = match (before.first_chunk::<4>(), self.raw.first_chunk::<4>()) {
            (Some(four), Some(held)) if at == 4 => four == held,
            _ => self.raw.get(..at) == Some(before),
        };
        let same = begins_same && self.raw.get(at + 4..) == Some(after);
        let number = if self.little { u32::from_le_bytes(*number) } else { u32::from_be_bytes(*number) };
        // No call has the number 0; reading the fields anew tells so.
        (same && number != 0).then_some(number)
    }
}

/// The bytes of the fields in a message, without the padding behind them, which must be zero.
#[inline]
pub(crate) fn fields_of<'m>(header: &Header, message: &'m [u8]) -> Result<&'m [u8], ProtocolError> {
    let end = HEADER + header.fields as usize;
    let padding = message.get(end..header.body_at()).unwrap_or_default();
    if padding.iter().any(|&octet| octet != 0) {
        return Err(ProtocolError::Padding { at: end });
    }
    message
        .get(HEADER..end)
        .ok_or(ProtocolError::Header { what: "the header fields are cut off", at: HEADER })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(path: &str) -> (Header, Vec<u8>) {
        let mut raw = Vec::new();
        for (code, kind, text) in [(1u8, b'o', path), (3, b's', "M")] {
            raw.resize(raw.len().next_multiple_of(8), 0);
            raw.extend_from_slice(&[code, 1, kind, 0]);
            raw.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
            raw.extend_from_slice(text.as_bytes());
            raw.push(0);
        }
        let len = u32::try_from(raw.len()).unwrap();
        (Header { little: true, kind: 1, flags: 0, body: 0, serial: 1, fields: len }, raw)
    }

    #[test]
    fn only_one_large_header_is_remembered() {
        let mut seen = HeaderCache::default();
        let mut find = |path: &str| {
            let (header, raw) = fields(path);
            seen.find(&header, &raw).unwrap();
            seen.0.iter().map(|known| known.raw.len()).sum::<usize>()
        };
        find("/small");
        let one = find(&format!("/{}", "x".repeat(4000)));
        for index in 0..20 {
            let held = find(&format!("/{index}{}", "x".repeat(4000)));
            assert!(held < one + 16, "{held}");
        }
        for index in 0..20 {
            assert!(find(&format!("/a{index}")) < one + 8 * 64);
        }
        assert!(find("/last") < 8 * 64, "and it goes like the others");
        assert!(seen.0.iter().count() <= limits::REMEMBERED);
    }
}
