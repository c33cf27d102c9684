//! Character sets: which are known, how two sides agree on them, how text is written in them (CORBA 3.3 part
//! 2, section 7.10).
//!
//! A server's references list its sets (`Offer`, a tagged component); the client chooses and says so once, in
//! the first request of a connection (a service context). What was chosen is a `Dialect`, which the session
//! keeps and every body carries, since the bytes of a body cannot be read without it.

use crate::cdr::{CdrWriter, DecodeError, Get, ReadCdr};
use everywire_model::{Failure, Initiator, Kind};
use std::borrow::Cow;
use std::fmt;

/// ISO 8859-1, in the registry of code sets.
pub const ISO_8859_1: u32 = 0x0001_0001;
/// UTF-8.
pub const UTF_8: u32 = 0x0501_0001;
/// UTF-16.
pub const UTF_16: u32 = 0x0001_0109;

/// What narrow text travels in. The discriminants are part of `Dialect::to_number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Narrow {
    /// ISO 8859-1: what is assumed where nothing was agreed on.
    #[default]
    Latin1,
    /// UTF-8.
    Utf8,
    /// One that this side does not know: text in it is neither read nor written.
    Foreign,
}

impl Narrow {
    /// In the registry of character sets; 0, which says that there is none, for one that is not known.
    fn number(self) -> u32 {
        match self {
            Self::Latin1 => ISO_8859_1,
            Self::Utf8 => UTF_8,
            Self::Foreign => 0,
        }
    }
}

/// What wide text travels in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wide {
    /// Nothing was agreed on: wide text cannot travel, by the specification; what comes is read as UTF-16.
    #[default]
    Unknown,
    /// UTF-16.
    Utf16,
    /// One that this side does not know: text in it is neither read nor written.
    Foreign,
}

/// What a body's bytes depend on beside byte order: [`everywire_model::Body::dialect`] in its meaning here.
/// The default, GIOP 1.0 with Latin-1, is what a connection has on which nothing was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// Minor version of GIOP.
    pub minor: u8,
    /// Narrow set.
    pub narrow: Narrow,
    /// Wide set.
    pub wide: Wide,
}

impl Dialect {
    /// GIOP 1.2 with UTF-8 and UTF-16: what this side proposes.
    pub const OURS: Self = Self { minor: 2, narrow: Narrow::Utf8, wide: Wide::Utf16 };

    /// As the number that a body carries. The minor version is the lowest octet, then the narrow set, then
    /// the wide one.
    #[inline]
    pub fn to_number(self) -> u32 {
        u32::from(self.minor) | (self.narrow as u32) << 8 | (self.wide as u32) << 16
    }

    /// From the number that a body carries. Numbers that `to_number` never makes give one of the known sets
    /// all the same.
    #[inline]
    pub fn from_number(number: u32) -> Self {
        let [minor, narrow, wide, _] = number.to_le_bytes();
        Self {
            minor,
            narrow: match narrow {
                0 => Narrow::Latin1,
                1 => Narrow::Utf8,
                _ => Narrow::Foreign,
            },
            wide: match wide {
                0 => Wide::Unknown,
                1 => Wide::Utf16,
                _ => Wide::Foreign,
            },
        }
    }

    /// Whether text of one of its kinds is in a set that this side does not know.
    pub(crate) fn is_foreign(self) -> bool {
        self.narrow == Narrow::Foreign || self.wide == Wide::Foreign
    }

    /// Whether wide text, or narrow text, can be read and written.
    ///
    /// # Errors
    /// It is in a set that this side does not know.
    #[inline]
    pub(crate) fn knows(self, wide: bool) -> Result<(), Failure> {
        let is_foreign = if wide { self.wide == Wide::Foreign } else { self.narrow == Narrow::Foreign };
        if is_foreign { Err(foreign(wide)) } else { Ok(()) }
    }
}

/// The sets that a server lists in the code-sets component of its references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Native narrow set, then those it converts from.
    pub narrow: Vec<u32>,
    /// Native wide set, then those it converts from.
    pub wide: Vec<u32>,
}

impl Offer {
    /// Reads a component's data. For narrow and for wide text: the native set, a count, the conversion sets.
    /// A count that exceeds the data is refused before the list grows.
    pub(crate) fn read(data: &[u8]) -> Result<Self, DecodeError> {
        let mut get = Get::encapsulation(data)?;
        let mut list = || -> Result<Vec<u32>, DecodeError> {
            let mut sets = vec![get.u32()?];
            let count = get.count()?;
            if count > get.left() / 4 {
                return Err(get.bad("a count of code sets exceeds the component"));
            }
            for _ in 0..count {
                sets.push(get.u32()?);
            }
            Ok(sets)
        };
        Ok(Self { narrow: list()?, wide: list()? })
    }

    /// Writes this side's own list into a component. UTF-8 with ISO 8859-1 as its one conversion set, then
    /// UTF-16 with none.
    pub(crate) fn put_own(put: &mut CdrWriter<'_>) {
        for number in [UTF_8, 1, ISO_8859_1, UTF_16, 0] {
            put.u32(number);
        }
    }

    /// Whether the server reads text in this dialect, so that a body may be passed to it as it is, without a
    /// contract to convert it by.
    pub(crate) fn takes(&self, dialect: Dialect) -> bool {
        let narrow = dialect.narrow.number();
        // The specification's fallbacks need not be listed.
        let narrow_fits = narrow == UTF_8 || self.narrow.contains(&narrow);
        let wide_fits = match dialect.wide {
            Wide::Utf16 => true,
            Wide::Unknown => dialect.narrow == Narrow::Latin1,
            Wide::Foreign => false,
        };
        narrow_fits && wide_fits
    }

    /// The sets for requests to that server: ISO 8859-1 if it lists that and not UTF-8, else UTF-8, which is
    /// also the specification's fallback where the two sides have no set in common (section 7.10.2.6); UTF-16
    /// for wide text.
    pub(crate) fn choose(&self, minor: u8) -> Dialect {
        let latin = !self.narrow.contains(&UTF_8) && self.narrow.contains(&ISO_8859_1);
        Dialect { minor, narrow: if latin { Narrow::Latin1 } else { Narrow::Utf8 }, wide: Wide::Utf16 }
    }
}

impl fmt::Display for Offer {
    /// As in `narrow UTF-8, also ISO-8859-1; wide UTF-16`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, sets) in [("narrow", &self.narrow), ("; wide", &self.wide)] {
            write!(f, "{kind}")?;
            for (index, set) in sets.iter().enumerate() {
                let before = match index {
                    0 => " ",
                    1 => ", also ",
                    _ => " and ",
                };
                match name(*set) {
                    UNNAMED => write!(f, "{before}{set:#010x}")?,
                    name => write!(f, "{before}{name}")?,
                }
            }
        }
        Ok(())
    }
}

/// The sets of a code-sets service context. 0 means that the peer will send none of the kind. A set that this side does not know
/// hinders only text in it, as omniORB has it: most calls of such a peer may have none.
pub(crate) fn read_context(data: &[u8], minor: u8) -> Result<Dialect, DecodeError> {
    let (narrow, wide) = told(data)?;
    let narrow = match narrow {
        ISO_8859_1 | 0 => Narrow::Latin1,
        UTF_8 => Narrow::Utf8,
        _ => Narrow::Foreign,
    };
    let wide = match wide {
        UTF_16 => Wide::Utf16,
        0 => Wide::Unknown,
        _ => Wide::Foreign,
    };
    Ok(Dialect { minor, narrow, wide })
}

/// The failure of text in a set that this side does not know. The code is the exception that the specification wants
/// (CODESET_INCOMPATIBLE).
#[cold]
pub(crate) fn foreign(wide: bool) -> Failure {
    let (kind, known) = if wide { ("wide", "UTF-16") } else { ("narrow", "UTF-8 or ISO-8859-1") };
    let what = format!("{kind} text is in a code set that is not known to this side");
    Failure::new(Kind::Unsupported, Initiator::User, what)
        .with_code("CORBA::CODESET_INCOMPATIBLE minor 0x00000000")
        .with_hint(format!("use {known} for {kind} text"))
}

/// The numbers in a code-sets service context: of the set for narrow text, and of that for wide.
pub(crate) fn told(data: &[u8]) -> Result<(u32, u32), DecodeError> {
    let mut get = Get::encapsulation(data)?;
    Ok((get.u32()?, get.u32()?))
}

/// Writes the content of the code-sets service context.
pub(crate) fn put_context(dialect: Dialect, put: &mut CdrWriter<'_>) {
    put.u32(dialect.narrow.number());
    put.u32(UTF_16);
}

/// What [`name`] says of a set that has none here.
const UNNAMED: &str = "unknown to this side";

/// Name of a set, for listings. The numbers are those of the OSF Character and Code Set Registry.
pub(crate) fn name(set: u32) -> &'static str {
    match set {
        ISO_8859_1 => "ISO-8859-1",
        UTF_8 => "UTF-8",
        UTF_16 => "UTF-16",
        0x0001_0100 => "UCS-2",
        0x0001_0020 => "ISO-646",
        0x0001_0002 => "ISO-8859-2",
        0x0001_000f => "ISO-8859-15",
        0x0001_0106 => "UCS-4",
        0x1002_04e4 => "CP-1252",
        0 => "none",
        _ => UNNAMED,
    }
}

/// Text as ISO 8859-1 bytes, or the first character that has none.
pub(crate) fn to_latin1(text: &str) -> Result<Cow<'_, [u8]>, char> {
    if text.is_ascii() {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    text.chars()
        .map(|c| u8::try_from(u32::from(c)).map_err(|_| c))
        .collect::<Result<Vec<_>, _>>()
        .map(Cow::Owned)
}

/// ISO 8859-1 bytes as text. Every octet is a character, so this cannot fail. Text of ASCII alone is not
/// copied.
pub(crate) fn from_latin1(raw: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(raw) {
        Ok(text) if raw.is_ascii() => Cow::Borrowed(text),
        _ => Cow::Owned(raw.iter().map(|&octet| char::from(octet)).collect()),
    }
}

/// UTF-16 octets as text: big-endian unless a byte-order mark says otherwise. `None`: lone surrogates or half a unit.
pub(crate) fn from_utf16(raw: &[u8]) -> Option<String> {
    let (raw, little) = match raw {
        [0xFE, 0xFF, rest @ ..] => (rest, false),
        [0xFF, 0xFE, rest @ ..] => (rest, true),
        _ => (raw, false),
    };
    units(raw, little)
}

/// UTF-16 units in a known byte order.
pub(crate) fn units(raw: &[u8], little: bool) -> Option<String> {
    let (pairs, rest) = raw.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let units =
        pairs.iter().map(|&pair| if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) });
    char::decode_utf16(units).collect::<Result<String, _>>().ok()
}
