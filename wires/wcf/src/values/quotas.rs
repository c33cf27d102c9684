//! The quotas of a reader of XML, by the names that WCF gives them, and the refusal when one is exceeded.

use everywire_model::visit::Visit;
use everywire_model::{Failure, Initiator, Kind};

/// What one message may ask of its reader; [`ReaderQuotas::default`] is what WCF uses while nobody has
/// touched them. They stand in the settings of an address and go with each body (`Reading`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::struct_field_names)]
pub struct ReaderQuotas {
    /// Elements in elements, the envelope and its body included.
    pub max_depth: u32,
    /// Bytes of the text of one element.
    pub max_string_content_length: u32,
    /// Octets of one value, and items of an array of numbers.
    pub max_array_length: u32,
    /// Bytes of one start tag.
    /// In text alone: binary XML has no tags, and bounds names and attributes one by one.
    pub max_bytes_per_read: u32,
    /// Characters of the different names that the contract does not know.
    pub max_name_table_char_count: u32,
}

/// The bound of a quota that nobody has touched.
/// .NET's own value: since version 4.5 buffered transports raise what was not set by hand.
const UNTOUCHED: u32 = i32::MAX as u32;

impl Default for ReaderQuotas {
    fn default() -> Self {
        Self {
            max_depth: 32,
            max_string_content_length: UNTOUCHED,
            max_array_length: UNTOUCHED,
            // Two bounds stay in place although .NET has none then: 64 KiB are enough for a start tag, and
            // for the names that a contract does not know.
            max_bytes_per_read: 64 << 10,
            max_name_table_char_count: 64 << 10,
        }
    }
}

impl ReaderQuotas {
    /// The quotas of a reader of .NET before 4.5, and of Mono.
    pub const CLASSIC: Self = Self {
        max_depth: 32,
        max_string_content_length: 8192,
        max_array_length: 16384,
        max_bytes_per_read: 4096,
        max_name_table_char_count: 16384,
    };

    /// Refuses what is more than a quota.
    #[inline]
    pub(crate) fn check(&self, quota: Quota, found: usize) -> Visit<()> {
        let limit = match quota {
            Quota::Depth => self.max_depth,
            Quota::StringContentLength => self.max_string_content_length,
            Quota::ArrayLength => self.max_array_length,
            Quota::BytesPerRead => self.max_bytes_per_read,
            Quota::NameTableCharCount => self.max_name_table_char_count,
        };
        if found > limit as usize { Err(quota.exceeded(limit)) } else { Ok(()) }
    }
}

/// Where Microsoft's sentences say how to raise a quota.
const OBJECT: &str = "property on the XmlDictionaryReaderQuotas object used when creating the XML reader.";

/// One of the quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// [`ReaderQuotas::max_depth`].
    Depth,
    /// [`ReaderQuotas::max_string_content_length`].
    StringContentLength,
    /// [`ReaderQuotas::max_array_length`].
    ArrayLength,
    /// [`ReaderQuotas::max_bytes_per_read`].
    BytesPerRead,
    /// [`ReaderQuotas::max_name_table_char_count`].
    NameTableCharCount,
}

impl Quota {
    /// The refusal: which quota, its value, and how to raise it, as Microsoft's readers say it.
    #[cold]
    pub fn exceeded(self, limit: u32) -> Failure {
        let (what, property) = match self {
            Self::Depth => {
                let message = format!(
                    "The maximum read depth ({limit}) has been exceeded because XML data being read has more levels of \
                     nesting than is allowed by the quota. This quota may be increased by changing the MaxDepth {OBJECT}"
                );
                return self.refusal(message);
            }
            Self::StringContentLength => ("string content length", "MaxStringContentLength"),
            Self::ArrayLength => ("array length", "MaxArrayLength"),
            Self::BytesPerRead => ("start element tag length", "MaxBytesPerRead"),
            Self::NameTableCharCount => ("nametable character count", "MaxNameTableCharCount"),
        };
        self.refusal(format!(
            "The maximum {what} quota ({limit}) has been exceeded while reading XML data. This quota may be increased by \
             changing the {property} {OBJECT}"
        ))
    }

    fn refusal(self, message: String) -> Failure {
        Failure::new(Kind::LimitExceeded, Initiator::Peer, message)
            .with_code(format!("wcf Max{self:?}"))
            .with_hint(format!("raise it with `Max{self:?}=` in the address of the side that reads"))
    }
}
