//! Records (MC-NMF 2.2): their types, the size before variable ones, and reading one at the front of a
//! buffer.
//!
//! A connection is a sequence of records: an octet with the type, then what the type has. `read` takes one
//! from the front of what has come, without copying and without a state of its own; `None` means that the
//! rest of it has not come, and the caller tries again with more bytes.
//!
//! Invariants:
//!
//! * A size is decided on before its bytes are waited for: texts of records have bounds of their own
//!   (`Bounds`, `NAME`), and envelopes are compared with the quota by `Channel`. So a peer cannot make this
//!   side buffer more than it accepts.
//! * Sizes have at most 31 bits and no needless bytes, so each record has one spelling.
//! * An envelope's record is only its first octet here: whoever expects an envelope knows whether a size or
//!   chunks follow.
//! * A record with an empty text, which the specification does not have, is refused.

use crate::violations::Breach;

/// Bytes of the largest encoded size.
/// Five groups of seven bits hold 31.
pub const SIZE: usize = 5;

/// Bytes of a fault's URI and of an upgrade's name that are read (MC-NMF 3.1.4.7).
/// A record of one of these that is longer is refused, whatever it says.
pub const NAME: usize = 256;

/// Record types (MC-NMF 2.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum RecordKind {
    Version = 0x00,
    Mode = 0x01,
    Via = 0x02,
    KnownEncoding = 0x03,
    ExtensibleEncoding = 0x04,
    UnsizedEnvelope = 0x05,
    SizedEnvelope = 0x06,
    End = 0x07,
    Fault = 0x08,
    UpgradeRequest = 0x09,
    UpgradeResponse = 0x0a,
    PreambleAck = 0x0b,
    PreambleEnd = 0x0c,
}

impl RecordKind {
    /// The type with this number.
    #[inline]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Some(match octet {
            0x00 => Self::Version,
            0x01 => Self::Mode,
            0x02 => Self::Via,
            0x03 => Self::KnownEncoding,
            0x04 => Self::ExtensibleEncoding,
            0x05 => Self::UnsizedEnvelope,
            0x06 => Self::SizedEnvelope,
            0x07 => Self::End,
            0x08 => Self::Fault,
            0x09 => Self::UpgradeRequest,
            0x0a => Self::UpgradeResponse,
            0x0b => Self::PreambleAck,
            0x0c => Self::PreambleEnd,
            _ => return None,
        })
    }

    /// Its name in the specification.
    pub fn word(self) -> &'static str {
        match self {
            Self::Version => "Version",
            Self::Mode => "Mode",
            Self::Via => "Via",
            Self::KnownEncoding => "Known Encoding",
            Self::ExtensibleEncoding => "Extensible Encoding",
            Self::UnsizedEnvelope => "Unsized Envelope",
            Self::SizedEnvelope => "Sized Envelope",
            Self::End => "End",
            Self::Fault => "Fault",
            Self::UpgradeRequest => "Upgrade Request",
            Self::UpgradeResponse => "Upgrade Response",
            Self::PreambleAck => "Preamble Ack",
            Self::PreambleEnd => "Preamble End",
        }
    }
}

/// One record. Envelopes are read by the channel, because their contents are large: here they are only their beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// Version of the framing.
    Version {
        /// Major number.
        major: u8,
        /// Minor number.
        minor: u8,
    },
    /// How messages travel.
    Mode(u8),
    /// The URI for which the messages are meant.
    Via(&'a [u8]),
    /// An encoding of the specification's list.
    KnownEncoding(u8),
    /// Another one, as a content type.
    ExtensibleEncoding(&'a [u8]),
    /// Chunks follow.
    UnsizedEnvelope,
    /// A size and that many bytes follow.
    SizedEnvelope,
    /// Nothing more comes.
    End,
    /// What was wrong, as a URI.
    Fault(&'a [u8]),
    /// The name of a protocol to change to.
    UpgradeRequest(&'a [u8]),
    /// It is changed to.
    UpgradeResponse,
    /// The preamble was accepted.
    PreambleAck,
    /// The preamble is over.
    PreambleEnd,
}

impl Record<'_> {
    /// Its type.
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::Version { .. } => RecordKind::Version,
            Self::Mode(_) => RecordKind::Mode,
            Self::Via(_) => RecordKind::Via,
            Self::KnownEncoding(_) => RecordKind::KnownEncoding,
            Self::ExtensibleEncoding(_) => RecordKind::ExtensibleEncoding,
            Self::UnsizedEnvelope => RecordKind::UnsizedEnvelope,
            Self::SizedEnvelope => RecordKind::SizedEnvelope,
            Self::End => RecordKind::End,
            Self::Fault(_) => RecordKind::Fault,
            Self::UpgradeRequest(_) => RecordKind::UpgradeRequest,
            Self::UpgradeResponse => RecordKind::UpgradeResponse,
            Self::PreambleAck => RecordKind::PreambleAck,
            Self::PreambleEnd => RecordKind::PreambleEnd,
        }
    }
}

/// How long the text in a record may be, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Of a Via record; WCF's `MaxViaSize`.
    pub via: usize,
    /// Of an Extensible Encoding record; WCF's `MaxContentTypeSize`.
    pub content_type: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { via: 2048, content_type: 256 }
    }
}

/// The record at the front of `bytes` and how many bytes it is; `None` if more are needed to tell. A text that is too long is
/// refused on the word of its size, before it has come.
///
/// # Errors
/// [`Breach::UnknownRecord`], [`Breach::Size`], [`Breach::Empty`], and what is said of texts that are too long.
pub fn read<'a>(bytes: &'a [u8], bounds: &Bounds) -> Result<Option<(Record<'a>, usize)>, Breach> {
    let Some((octet, rest)) = bytes.split_first() else { return Ok(None) };
    let kind = RecordKind::from_octet(*octet).ok_or(Breach::UnknownRecord { octet: *octet })?;
    // The records of fixed length are told at once; those with a text go on below.
    let most = match kind {
        RecordKind::Version => {
            let record =
                rest.first_chunk().map(|[major, minor]| Record::Version { major: *major, minor: *minor });
            return Ok(record.map(|record| (record, 3)));
        }
        RecordKind::Mode => return Ok(rest.first().map(|mode| (Record::Mode(*mode), 2))),
        RecordKind::KnownEncoding => return Ok(rest.first().map(|octet| (Record::KnownEncoding(*octet), 2))),
        RecordKind::UnsizedEnvelope => return Ok(Some((Record::UnsizedEnvelope, 1))),
        RecordKind::SizedEnvelope => return Ok(Some((Record::SizedEnvelope, 1))),
        RecordKind::End => return Ok(Some((Record::End, 1))),
        RecordKind::UpgradeResponse => return Ok(Some((Record::UpgradeResponse, 1))),
        RecordKind::PreambleAck => return Ok(Some((Record::PreambleAck, 1))),
        RecordKind::PreambleEnd => return Ok(Some((Record::PreambleEnd, 1))),
        RecordKind::Via => bounds.via,
        RecordKind::ExtensibleEncoding => bounds.content_type,
        RecordKind::Fault | RecordKind::UpgradeRequest => NAME,
    };
    let Some((size, width)) = size(rest)? else { return Ok(None) };
    if size == 0 {
        return Err(Breach::Empty { record: kind });
    }
    if size > most {
        return Err(Breach::TextTooLong { record: kind, size, limit: most });
    }
    let Some(text) = rest.get(width..width + size) else { return Ok(None) };
    let record = match kind {
        RecordKind::Via => Record::Via(text),
        RecordKind::ExtensibleEncoding => Record::ExtensibleEncoding(text),
        RecordKind::Fault => Record::Fault(text),
        _ => Record::UpgradeRequest(text),
    };
    Ok(Some((record, 1 + width + size)))
}

/// The encoded size at the front of `bytes` (MC-NMF 2.2.2) and how many bytes it takes; `None` if its end has not come.
///
/// # Errors
/// [`Breach::Size`] above 31 bits, as Microsoft has it, or with needless bytes.
#[inline]
pub fn size(bytes: &[u8]) -> Result<Option<(usize, usize)>, Breach> {
    let mut value = 0_usize;
    for (index, byte) in bytes.iter().take(SIZE).enumerate() {
        // A group of zeros at the end adds nothing; the fifth one has three bits left.
        if (index > 0 && *byte == 0) || (index == SIZE - 1 && *byte > 0x07) {
            return Err(Breach::Size);
        }
        value |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((value, index + 1)));
        }
    }
    Ok(None)
}

/// Appends an encoded size; whoever writes has checked that it fits into 31 bits.
#[inline]
pub fn put_size(size: usize, out: &mut Vec<u8>) {
    let mut rest = size;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a record that holds a text.
/// The text is not compared with the bounds: what this side writes is the peer's to accept.
pub fn put_text(kind: RecordKind, text: &[u8], out: &mut Vec<u8>) {
    out.push(kind as u8);
    put_size(text.len(), out);
    out.extend_from_slice(text);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_back_and_take_as_few_bytes_as_they_can() {
        for (value, width) in [
            (0, 1),
            (0x7f, 1),
            (0x80, 2),
            (0x3fff, 2),
            (0x4000, 3),
            (0x1f_ffff, 3),
            (0x20_0000, 4),
            (0x7fff_ffff, 5),
        ] {
            let mut out = Vec::new();
            put_size(value, &mut out);
            assert_eq!(out.len(), width, "{value:#x}");
            assert_eq!(size(&out), Ok(Some((value, width))));
            for cut in 0..width {
                assert_eq!(size(&out[..cut]), Ok(None), "{value:#x} cut at {cut}");
            }
        }
    }

    #[test]
    fn sizes_of_more_than_31_bits_or_with_needless_bytes_are_refused() {
        for bad in [
            &[0x80, 0x00][..],
            &[0xff, 0x80, 0x00],
            &[0x80, 0x80, 0x80, 0x80, 0x08],
            &[0xff, 0xff, 0xff, 0xff, 0x0f],
            &[0x80, 0x80, 0x80, 0x80, 0x80],
        ] {
            assert_eq!(size(bad), Err(Breach::Size), "{bad:02x?}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_refused_before_it_comes() {
        let bounds = Bounds::default();
        let mut via = vec![RecordKind::Via as u8];
        put_size(2049, &mut via);
        assert_eq!(
            read(&via, &bounds),
            Err(Breach::TextTooLong { record: RecordKind::Via, size: 2049, limit: 2048 })
        );
        let mut upgrade = vec![RecordKind::UpgradeRequest as u8];
        put_size(257, &mut upgrade);
        assert!(matches!(read(&upgrade, &bounds), Err(Breach::TextTooLong { .. })));
        assert_eq!(read(&[0x02, 0x00], &bounds), Err(Breach::Empty { record: RecordKind::Via }));
        assert_eq!(read(&[0x0d], &bounds), Err(Breach::UnknownRecord { octet: 0x0d }));
    }
}
