//! Records: the units of binary XML (MC-NBFX 2.2).
//!
//! Nothing here knows bytes but `Item`: `Reader` and `Writer` turn records into codes and back. Texts and
//! names borrow from the document that was read, so a record costs nothing to copy.

use std::borrow::Cow;

/// A word: in place, or by its number in a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word<'a> {
    /// In place.
    Inline(&'a str),
    /// By number: even of the static dictionary, odd of the session's.
    Id(u32),
}

impl Word<'_> {
    /// As people see it: a word that no dictionary has is its number in braces.
    pub(crate) fn spelled<'w>(self, known: impl Fn(u32) -> Option<&'w str>) -> String {
        match self {
            Self::Inline(text) => text.to_owned(),
            Self::Id(id) => known(id).map_or_else(|| format!("{{{id}}}"), str::to_owned),
        }
    }
}

/// A prefix of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix<'a> {
    /// None.
    None,
    /// One letter, part of the record type: 0 for `a` to 25 for `z`.
    Letter(u8),
    /// In place.
    Inline(&'a str),
}

impl<'a> Prefix<'a> {
    /// From text; none if that is empty.
    pub fn of(text: &'a str) -> Self {
        match text.as_bytes() {
            [] => Self::None,
            [letter @ b'a'..=b'z'] => Self::Letter(letter - b'a'),
            _ => Self::Inline(text),
        }
    }

    /// As text form spells it.
    pub(crate) fn spelled(self) -> Cow<'a, str> {
        match self {
            Self::None => Cow::Borrowed(""),
            Self::Letter(letter) => Cow::Owned(char::from(b'a' + letter.min(25)).to_string()),
            Self::Inline(prefix) => Cow::Borrowed(prefix),
        }
    }
}

/// A value as text of an element or attribute, in the form its record has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Text<'a> {
    /// The number 0.
    Zero,
    /// The number 1.
    One,
    /// `false`.
    False,
    /// `true`.
    True,
    /// A number.
    I8(i8),
    /// A number.
    I16(i16),
    /// A number.
    I32(i32),
    /// A number.
    I64(i64),
    /// A number.
    F32(f32),
    /// A number.
    F64(f64),
    /// A decimal number.
    Decimal(Decimal),
    /// 100 ns since 0001-01-01 in the low 62 bits; the kind (1 UTC, 2 local) above.
    DateTime(u64),
    /// UTF-8.
    Chars(&'a str),
    /// Octets; base64 in the XML view.
    Bytes(&'a [u8]),
    /// The start of a list of texts.
    ListStart,
    /// The end of a list of texts.
    ListEnd,
    /// The empty text.
    Empty,
    /// A word of a dictionary.
    Word(u32),
    /// A GUID with `urn:uuid:` before it.
    /// WS-Addressing's identifiers are written so. The order of bytes is that of a .NET Guid.
    UniqueId([u8; 16]),
    /// A duration in units of 100 ns.
    TimeSpan(i64),
    /// A GUID.
    Uuid([u8; 16]),
    /// A number.
    U64(u64),
    /// A boolean in one byte, as in arrays.
    Bool(bool),
    /// UTF-16, little-endian.
    /// Its length is even.
    Wide(&'a [u8]),
    /// A qualified name: the letter of its prefix (0 for `a`), and a word.
    QName(u8, u32),
}

/// A decimal number of .NET: `(-1)^negative * magnitude / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// Digits after the point, 0 to 28.
    pub scale: u8,
    /// Whether a minus stands before it.
    pub negative: bool,
    /// The digits, below 2^96.
    pub magnitude: u128,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Record<'a> {
    /// The start of an element.
    Element(Prefix<'a>, Word<'a>),
    /// An attribute of the element that just started.
    Attribute(Prefix<'a>, Word<'a>, Text<'a>),
    /// A namespace declared by the element that just started; no prefix for the default namespace.
    Xmlns(Option<&'a str>, Word<'a>),
    /// Text; whether it also ends its element.
    Text(Text<'a>, bool),
    /// The end of the innermost element.
    End,
    /// A comment.
    Comment(&'a str),
    /// An array follows: the start of an element, its attributes, its end, then [`Record::Items`].
    Array,
    /// The items of the array: type of each, how many, and their bytes.
    Items(Item, u32, &'a [u8]),
}

// One list for the three facts of each type: the code is that of the text record with the bit of an end,
// and the width is in bytes.
macro_rules! items {
    ($($name:ident $code:literal $width:literal),*) => {
        /// What an array may hold.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Item { $($name),* }

        impl Item {
            /// The type with this record code.
            pub fn of(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }

            /// Its record code.
            pub fn code(self) -> u8 {
                match self { $(Self::$name => $code),* }
            }

            /// Bytes of one item.
            pub fn width(self) -> usize {
                match self { $(Self::$name => $width),* }
            }
        }
    };
}

items!(Bool 0xb5 1, I16 0x8b 2, I32 0x8d 4, I64 0x8f 8, F32 0x91 4, F64 0x93 8, Decimal 0x95 16, DateTime 0x97 8,
    TimeSpan 0xaf 8, Uuid 0xb1 16);
