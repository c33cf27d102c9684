//! How good a value is: the quality word (OPC DA 2.05a, 6.8: `QQSSSSLL`, and the vendor's byte above).

use std::fmt;

/// A quality word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Quality(pub u16);

/// Whether a value sticks to an end of its range: the lowest two bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// It moves freely.
    Free,
    /// It is at its lower end.
    Low,
    /// It is at its upper end.
    High,
    /// It cannot move.
    Constant,
}

macro_rules! qualities {
    ($($name:ident $value:literal $text:literal,)*) => {
        impl Quality {
            $(#[doc = concat!("`", stringify!($value), "`: ", $text, ".")] pub const $name: Self = Self($value);)*
        }

        const KNOWN: &[(Quality, &str)] = &[$((Quality::$name, $text),)*];
    };
}

qualities! {
    BAD 0x00 "bad",
    CONFIG_ERROR 0x04 "bad: configuration error",
    NOT_CONNECTED 0x08 "bad: not connected",
    DEVICE_FAILURE 0x0c "bad: device failure",
    SENSOR_FAILURE 0x10 "bad: sensor failure",
    LAST_KNOWN 0x14 "bad: last known value",
    COMM_FAILURE 0x18 "bad: communication failure",
    OUT_OF_SERVICE 0x1c "bad: out of service",
    WAITING 0x20 "bad: waiting for initial data",
    UNCERTAIN 0x40 "uncertain",
    LAST_USABLE 0x44 "uncertain: last usable value",
    SENSOR_CAL 0x50 "uncertain: sensor not accurate",
    EU_EXCEEDED 0x54 "uncertain: engineering units exceeded",
    SUB_NORMAL 0x58 "uncertain: sub-normal",
    GOOD 0xc0 "good",
    LOCAL_OVERRIDE 0xd8 "good: local override",
}

impl Quality {
    /// Whether the value may be used as it is.
    #[must_use]
    pub fn is_good(self) -> bool {
        self.0 & 0xc0 == 0xc0
    }

    /// Whether the value may not be used.
    #[must_use]
    pub fn is_bad(self) -> bool {
        self.0 & 0xc0 == 0
    }

    /// Quality and substatus, without limit bits and the vendor's byte.
    #[must_use]
    pub fn status(self) -> Self {
        Self(self.0 & 0xfc)
    }

    /// The limit bits.
    #[must_use]
    pub fn limit(self) -> Limit {
        match self.0 & 3 {
            0 => Limit::Free,
            1 => Limit::Low,
            2 => Limit::High,
            _ => Limit::Constant,
        }
    }

    /// The same quality with these limit bits.
    #[must_use]
    pub fn limited(self, limit: Limit) -> Self {
        Self(self.0 & !3 | limit as u16)
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match KNOWN.iter().find(|(known, _)| *known == self.status()) {
            Some((_, text)) => f.write_str(text)?,
            None if self.is_good() => f.write_str("good")?,
            None if self.is_bad() => f.write_str("bad")?,
            None => f.write_str("uncertain")?,
        }
        f.write_str(match self.limit() {
            Limit::Free => "",
            Limit::Low => ", low limited",
            Limit::High => ", high limited",
            Limit::Constant => ", constant",
        })
    }
}

impl fmt::Debug for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({:#06x})", self.0)
    }
}
