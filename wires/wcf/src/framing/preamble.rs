//! The preamble (MC-NMF 2.2.6): version, mode, via and encoding, as one side sends and the other reads
//! them.
//!
//! The connecting side sends it in one piece and waits for one octet, the Preamble Ack, or for the answer
//! to an upgrade. The accepting side reads it record by record, since it may come in any pieces.
//!
//! State of `PreambleReader`: which records have come. They come in this order and each once: Version, Mode, Via,
//! then Known or Extensible Encoding, which completes the preamble. What follows (upgrades, Preamble End)
//! is the session's.
//!
//! Invariants:
//!
//! * Any other order is `Unexpected`, with the record that should have come.
//! * The mode Singleton-Sized is refused: its message ends with the connection, so nothing could be
//!   answered.
//! * An encoding with a dictionary for the session needs a mode that has a session (`fits`); a compressed
//!   one is one of the binary ones.
//! * The via is UTF-8 and at most `MaxViaSize` bytes, which `records::read` has checked. Whether anything
//!   is served there is looked up by the session.

use super::records::{Record, RecordKind, put_text};
use crate::compression::Format;
use crate::violations::ProtocolError;
use everywire_model::named_variants;

named_variants! {
    /// How messages travel (MC-NMF 2.2.3.2), with the names in the specification.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Mode: u8 {
        /// One message each way, in chunks: what WCF calls streamed.
        SingletonUnsized = 1 "Singleton-Unsized",
        /// Any number of messages both ways: what WCF calls buffered.
        Duplex = 2 "Duplex",
        /// Any number of messages to the accepting side, which says nothing.
        Simplex = 3 "Simplex",
        /// One message to the accepting side, up to the end of the connection.
        SingletonSized = 4 "Singleton-Sized",
    }
}

named_variants! {
    /// How envelopes are encoded (MC-NMF 2.2.3.4), with the content types that WCF gives them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[allow(missing_docs)]
    pub enum Encoding: u8 {
        Soap11Utf8 = 0 "text/xml; charset=utf-8",
        Soap11Utf16 = 1 "text/xml; charset=utf-16",
        Soap11Utf16Fffe = 2 "text/xml; charset=unicodeFFFE",
        Soap12Utf8 = 3 "application/soap+xml; charset=utf-8",
        Soap12Utf16 = 4 "application/soap+xml; charset=utf-16",
        Soap12Utf16Fffe = 5 "application/soap+xml; charset=unicodeFFFE",
        Mtom = 6 "multipart/related",
        /// MC-NBFS.
        Binary = 7 "application/soap+msbin1",
        /// MC-NBFSE.
        BinarySession = 8 "application/soap+msbinsession1",
    }
}

impl Encoding {
    /// The content type.
    pub fn content_type(self) -> &'static str {
        self.word()
    }

    /// The encoding that a content type means; case and blanks do not matter.
    /// Quotation marks around the character set do not matter either.
    pub fn from_content_type(text: &str) -> Option<Self> {
        let plain = |text: &str| {
            let letters = text.chars().filter(|letter| !matches!(letter, ' ' | '\t' | '"'));
            letters.collect::<String>().to_ascii_lowercase()
        };
        let text = plain(text);
        Self::ALL.into_iter().find(|known| plain(known.content_type()) == text)
    }

    /// Whether a mode allows for it: a session dictionary needs a session.
    /// The others stand alone in each message.
    pub fn fits(self, mode: Mode) -> bool {
        self != Self::BinarySession || matches!(mode, Mode::Duplex | Mode::Simplex)
    }
}

/// What the connecting side says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preamble {
    /// How messages travel.
    pub mode: Mode,
    /// For whom they are meant: a URI.
    pub via: String,
    /// How they are encoded.
    pub encoding: Encoding,
    /// How they are compressed, which binary encodings can be.
    pub compression: Option<Format>,
}

impl Preamble {
    /// Appends the records up to the encoding; an upgrade or the Preamble End follows.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[RecordKind::Version as u8, 1, 0, RecordKind::Mode as u8, self.mode as u8]);
        put_text(RecordKind::Via, self.via.as_bytes(), out);
        match self.compression {
            None => out.extend_from_slice(&[RecordKind::KnownEncoding as u8, self.encoding as u8]),
            Some(format) => {
                let name = format!("{}+{}", self.encoding.content_type(), format.word());
                put_text(RecordKind::ExtensibleEncoding, name.as_bytes(), out);
            }
        }
    }
}

/// What has been read of a preamble, one record after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreambleReader {
    version: bool,
    mode: Option<Mode>,
    via: Option<String>,
}

impl PreambleReader {
    /// Whether nothing has been read yet.
    pub fn is_new(&self) -> bool {
        !self.version
    }

    /// Takes the next record; the preamble once it is whole, but for upgrades and its end.
    ///
    /// # Errors
    /// [`ProtocolError::Unexpected`] out of order; versions, modes, encodings that this side does not speak; a via that is no text.
    pub fn take(&mut self, record: &Record<'_>) -> Result<Option<Preamble>, ProtocolError> {
        match (record.kind, record.content) {
            // The minor number changes nothing that is known (MC-NMF, note 3).
            (RecordKind::Version, [1, _]) if !self.version => self.version = true,
            (RecordKind::Version, &[major, minor]) if !self.version => {
                return Err(ProtocolError::Version { major, minor });
            }
            (RecordKind::Mode, &[octet]) if self.version && self.mode.is_none() => {
                // The rest of its connection would be one message, of which nobody says where it ends.
                let mode = Mode::of_number(octet).filter(|mode| *mode != Mode::SingletonSized);
                self.mode = Some(mode.ok_or(ProtocolError::Mode { mode: octet })?);
            }
            (RecordKind::Via, text) if self.mode.is_some() && self.via.is_none() => {
                self.via = Some(std::str::from_utf8(text).map_err(|_| ProtocolError::Via)?.to_owned());
            }
            (RecordKind::KnownEncoding | RecordKind::ExtensibleEncoding, _) if self.via.is_some() => {
                // Taken out, so that the next preamble on the connection begins anew.
                let Self { mode: Some(mode), via: Some(via), .. } = std::mem::take(self) else {
                    return Err(self.unexpected(record));
                };
                let (encoding, compression) = encoding(record, mode)?;
                return Ok(Some(Preamble { mode, via, encoding, compression }));
            }
            _ => return Err(self.unexpected(record)),
        }
        Ok(None)
    }

    /// The error names what is missing; a second Version or Mode gets the same answer.
    fn unexpected(&self, record: &Record<'_>) -> ProtocolError {
        let expected = match self {
            Self { version: false, .. } => "Version",
            Self { mode: None, .. } => "Mode",
            Self { via: None, .. } => "Via",
            _ => "Known Encoding",
        };
        ProtocolError::Unexpected { record: record.kind, expected }
    }
}

/// The encoding of a record, and how messages are compressed. An unknown one is told by its number or its
/// content type.
fn encoding(record: &Record<'_>, mode: Mode) -> Result<(Encoding, Option<Format>), ProtocolError> {
    let mut compression = None;
    let (known, name) = match (record.kind, record.content) {
        (RecordKind::KnownEncoding, [octet]) => {
            let known = Encoding::of_number(*octet);
            (known, known.map_or_else(|| format!("number {octet}"), |known| known.content_type().to_owned()))
        }
        (_, text) => {
            // `application/soap+msbin1+gzip`: .NET's compressionFormat adds to the content type.
            let text = String::from_utf8_lossy(text);
            let plain = Format::ALL.into_iter().find_map(|format| {
                let plain = text.trim_end().strip_suffix(format.word())?.strip_suffix('+')?;
                Some((plain, format))
            });
            let known = match plain {
                None => Encoding::from_content_type(&text),
                Some((plain, format)) => {
                    compression = Some(format);
                    let known = Encoding::from_content_type(plain);
                    known.filter(|known| matches!(known, Encoding::Binary | Encoding::BinarySession))
                }
            };
            (known, text.escape_debug().to_string())
        }
    };
    let known = known.filter(|known| known.fits(mode)).ok_or(ProtocolError::ContentType { name })?;
    Ok((known, compression))
}

#[cfg(test)]
mod tests {
    use super::super::records::{Bounds, read};
    use super::*;

    fn taken(mut bytes: &[u8]) -> Result<Option<Preamble>, ProtocolError> {
        let mut reading = PreambleReader::default();
        while let Some((record, len)) = read(bytes, &Bounds { via: 2048, content_type: 256 })? {
            bytes = &bytes[len..];
            if let Some(preamble) = reading.take(&record)? {
                return Ok(Some(preamble));
            }
        }
        Ok(None)
    }

    #[test]
    fn a_preamble_comes_back() {
        for (mode, encoding, compression) in [
            (Mode::Duplex, Encoding::BinarySession, None),
            (Mode::SingletonUnsized, Encoding::Binary, None),
            (Mode::Simplex, Encoding::Soap12Utf8, None),
            (Mode::Duplex, Encoding::BinarySession, Some(Format::Gzip)),
            (Mode::SingletonUnsized, Encoding::Binary, Some(Format::Deflate)),
        ] {
            let preamble = Preamble { mode, via: "net.tcp://host:808/Service".into(), encoding, compression };
            let mut out = Vec::new();
            preamble.put(&mut out);
            assert_eq!(taken(&out), Ok(Some(preamble)));
            for cut in 0..out.len() {
                assert_eq!(taken(&out[..cut]), Ok(None));
            }
        }
    }

    #[test]
    fn records_out_of_order_are_refused() {
        let expected = |bytes: &[u8]| match taken(bytes) {
            Err(ProtocolError::Unexpected { expected, .. }) => expected,
            other => panic!("{other:?}"),
        };
        assert_eq!(expected(&[0x0c]), "Version");
        assert_eq!(expected(&[1, 2]), "Version");
        assert_eq!(expected(&[0, 1, 0, 0, 1, 0]), "Mode");
        assert_eq!(expected(&[0, 1, 0, 1, 2, 3, 8]), "Via");
        assert_eq!(expected(&[0, 1, 0, 1, 2, 2, 1, b'x', 0x0c]), "Known Encoding");
    }

    #[test]
    fn what_is_not_spoken_is_named() {
        assert_eq!(taken(&[0, 2, 0]), Err(ProtocolError::Version { major: 2, minor: 0 }));
        assert_eq!(taken(&[0, 1, 0, 1, 9]), Err(ProtocolError::Mode { mode: 9 }));
        assert_eq!(taken(&[0, 1, 0, 1, 4]), Err(ProtocolError::Mode { mode: 4 }));
        assert_eq!(taken(&[0, 1, 0, 1, 2, 2, 1, 0xff]), Err(ProtocolError::Via));
        let streamed = taken(&[0, 1, 0, 1, 1, 2, 1, b'x', 3, 8]);
        assert_eq!(
            streamed,
            Err(ProtocolError::ContentType { name: "application/soap+msbinsession1".into() })
        );
    }

    #[test]
    fn content_types_mean_encodings() {
        for encoding in Encoding::ALL {
            assert_eq!(Encoding::from_content_type(&encoding.content_type().to_uppercase()), Some(encoding));
            assert_eq!(Encoding::of_number(encoding as u8), Some(encoding));
        }
        assert_eq!(Encoding::from_content_type("text/xml;charset=\"UTF-8\""), Some(Encoding::Soap11Utf8));
        assert_eq!(Encoding::from_content_type("application/soap+msbin1+gzip"), None);
        assert_eq!(Encoding::of_number(9), None);
    }
}
