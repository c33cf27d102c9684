//! Header fields that came before: a repeated one is recognised by its bytes and not read again.

use crate::frame::{Fields, HEADER, Header};
use crate::violations::Wrong;
use crate::{limits, names};
use bytes::Bytes;
use everywire_model::CallId;

/// Header fields, read.
#[derive(Debug)]
pub(crate) struct Known {
    little: bool,
    kind: u8,
    /// As they came; the number of the call that is answered may differ.
    raw: Bytes,
    pub(crate) fields: Fields,
    /// The key of the object at the path.
    pub(crate) key: Bytes,
    /// Subscriptions that a signal with these fields is for, and the generation of subscriptions that this holds for.
    pub(crate) hearers: Option<(u64, Vec<CallId>)>,
}

/// The last different ones.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    known: Vec<Known>,
    /// The one that was recognised last.
    last: usize,
    /// The one to give up next.
    oldest: usize,
}

impl Seen {
    /// Recognises or reads the fields of a message; returns where they are, and the number of the call answered.
    #[inline]
    pub(crate) fn find(&mut self, header: &Header, raw: &[u8]) -> Result<(usize, u32), Wrong> {
        if let Some(known) = self.known.get(self.last)
            && let Some(reply) = known.recognises(header, raw)
        {
            return Ok((self.last, reply));
        }
        self.find_among(header, raw)
    }

    fn find_among(&mut self, header: &Header, raw: &[u8]) -> Result<(usize, u32), Wrong> {
        for (index, known) in self.known.iter().enumerate() {
            if let Some(reply) = known.recognises(header, raw) {
                self.last = index;
                return Ok((index, reply));
            }
        }
        let known = Known::read(header, raw)?;
        let reply = known.fields.reply;
        // Something large takes the place of the oldest too, and is the next to go.
        let index = if self.known.len() < limits::REMEMBERED {
            self.known.push(known);
            self.known.len() - 1
        } else {
            let index = self.oldest;
            if raw.len() <= limits::REMEMBERED_BYTES {
                self.oldest = (self.oldest + 1) % limits::REMEMBERED;
            }
            if let Some(place) = self.known.get_mut(index) {
                *place = known;
            }
            index
        };
        self.last = index;
        Ok((index, reply))
    }

    /// What [`Seen::find`] found.
    #[inline]
    pub(crate) fn get(&mut self, index: usize) -> Option<&mut Known> {
        self.known.get_mut(index)
    }
}

impl Known {
    fn read(header: &Header, raw: &[u8]) -> Result<Self, Wrong> {
        let raw = Bytes::copy_from_slice(raw);
        let fields = Fields::read(&raw, header)?;
        let key = if fields.path.is_empty() { Bytes::new() } else { names::key_of_path(&fields.path) };
        Ok(Self { little: header.little, kind: header.kind, raw, fields, key, hearers: None })
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
        let same = self.raw.get(..at) == Some(before) && self.raw.get(at + 4..) == Some(after);
        let number = if self.little { u32::from_le_bytes(*number) } else { u32::from_be_bytes(*number) };
        // No call has the number 0; reading the fields anew tells so.
        (same && number != 0).then_some(number)
    }
}

/// The bytes of the fields in a message.
#[inline]
pub(crate) fn fields_of<'m>(header: &Header, message: &'m [u8]) -> Result<&'m [u8], Wrong> {
    let end = HEADER + header.fields as usize;
    let padding = message.get(end..header.body_at()).unwrap_or_default();
    if padding.iter().any(|&octet| octet != 0) {
        return Err(Wrong::Padding { at: end });
    }
    message.get(HEADER..end).ok_or(Wrong::Header { what: "the header fields are cut off", at: HEADER })
}
