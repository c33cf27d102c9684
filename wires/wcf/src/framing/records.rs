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

use crate::nbfx::int31;
use crate::violations::ProtocolError;
use everywire_model::named_variants;

/// Bytes of a fault's URI and of an upgrade's name that are read (MC-NMF 3.1.4.7).
/// A record of one of these that is longer is refused, whatever it says.
pub const NAME: usize = 256;

named_variants! {
    /// Record types (MC-NMF 2.2.1), with their names in the specification.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[allow(missing_docs)]
    pub enum RecordKind: u8 {
        Version = 0x00 "Version",
        Mode = 0x01 "Mode",
        Via = 0x02 "Via",
        KnownEncoding = 0x03 "Known Encoding",
        ExtensibleEncoding = 0x04 "Extensible Encoding",
        UnsizedEnvelope = 0x05 "Unsized Envelope",
        SizedEnvelope = 0x06 "Sized Envelope",
        End = 0x07 "End",
        Fault = 0x08 "Fault",
        UpgradeRequest = 0x09 "Upgrade Request",
        UpgradeResponse = 0x0a "Upgrade Response",
        PreambleAck = 0x0b "Preamble Ack",
        PreambleEnd = 0x0c "Preamble End",
    }
}

/// One record. Envelopes are read by the channel, because their contents are large: here they are only their beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its type.
    pub kind: RecordKind,
    /// What stands in it: the two numbers of a version, that of a mode or of a known encoding, or a text without its size.
    pub content: &'a [u8],
}

/// How long the text in a record may be, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Of a Via record; WCF's `MaxViaSize`.
    pub via: usize,
    /// Of an Extensible Encoding record; WCF's `MaxContentTypeSize`.
    pub content_type: usize,
}

/// The record at the front of `bytes` and how many bytes it is; `None` if more are needed to tell. A text that is too long is
/// refused on the word of its size, before it has come.
///
/// # Errors
/// [`ProtocolError::UnknownRecord`], [`ProtocolError::Size`], [`ProtocolError::Empty`], and what is said of texts that are too long.
pub fn read<'a>(bytes: &'a [u8], bounds: &Bounds) -> Result<Option<(Record<'a>, usize)>, ProtocolError> {
    let Some((octet, rest)) = bytes.split_first() else { return Ok(None) };
    let kind = RecordKind::of_number(*octet).ok_or(ProtocolError::UnknownRecord { octet: *octet })?;
    let most = match kind {
        RecordKind::Via => bounds.via,
        RecordKind::ExtensibleEncoding => bounds.content_type,
        RecordKind::Fault | RecordKind::UpgradeRequest => NAME,
        // The others have a fixed length.
        _ => {
            let len = match kind {
                RecordKind::Version => 2,
                RecordKind::Mode | RecordKind::KnownEncoding => 1,
                _ => 0,
            };
            return Ok(rest.get(..len).map(|content| (Record { kind, content }, 1 + len)));
        }
    };
    let Some((size, width)) = size(rest)? else { return Ok(None) };
    if size == 0 {
        return Err(ProtocolError::Empty { record: kind });
    }
    if size > most {
        return Err(ProtocolError::TextTooLong { record: kind, size, limit: most });
    }
    let content = rest.get(width..width + size);
    Ok(content.map(|content| (Record { kind, content }, 1 + width + size)))
}

/// The encoded size at the front of `bytes` (MC-NMF 2.2.2) and how many bytes it takes; `None` if its end has not come.
///
/// # Errors
/// [`ProtocolError::Size`] above 31 bits, as Microsoft has it, or with needless bytes.
#[inline]
pub fn size(bytes: &[u8]) -> Result<Option<(usize, usize)>, ProtocolError> {
    let size = int31::parse(bytes).map_err(|()| ProtocolError::Size)?;
    Ok(size.map(|(size, width)| (size as usize, width)))
}

/// Appends a record that holds a text.
/// The text is not compared with the bounds: what this side writes is the peer's to accept.
pub fn put_text(kind: RecordKind, text: &[u8], out: &mut Vec<u8>) {
    out.push(kind as u8);
    int31::put(text.len(), out);
    out.extend_from_slice(text);
}

#[cfg(test)]
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
            int31::put(value, &mut out);
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
            assert_eq!(size(bad), Err(ProtocolError::Size), "{bad:02x?}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_refused_before_it_comes() {
        let bounds = Bounds { via: 2048, content_type: 256 };
        let mut via = vec![RecordKind::Via as u8];
        int31::put(2049, &mut via);
        assert_eq!(
            read(&via, &bounds),
            Err(ProtocolError::TextTooLong { record: RecordKind::Via, size: 2049, limit: 2048 })
        );
        let mut upgrade = vec![RecordKind::UpgradeRequest as u8];
        int31::put(257, &mut upgrade);
        assert!(matches!(read(&upgrade, &bounds), Err(ProtocolError::TextTooLong { .. })));
        assert_eq!(read(&[0x02, 0x00], &bounds), Err(ProtocolError::Empty { record: RecordKind::Via }));
        assert_eq!(read(&[0x0d], &bounds), Err(ProtocolError::UnknownRecord { octet: 0x0d }));
    }
}
