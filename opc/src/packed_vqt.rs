//! Values in 64 bits: how the cache keeps numbers, so that they are read without a lock.

use crate::data::{Data, VarType, Vqt};
use crate::{Code, FileTime, Quality};

/// A value in 64 bits, with quality and time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedVqt {
    /// Its type, and 1.
    pub(crate) kind: u16,
    pub(crate) quality: Quality,
    pub(crate) bits: u64,
    pub(crate) time: FileTime,
}

impl PackedVqt {
    /// The value that it is.
    #[inline]
    pub(crate) fn value(self) -> Option<Vqt> {
        let data = Data::unpacked(self.kind, self.bits)?;
        Some(Vqt { data, quality: self.quality, time: self.time })
    }
}

/// What [`PackedVqt::kind`] is for a type.
pub(crate) const fn kind_of(vt: VarType) -> u16 {
    vt.0 + 1
}

impl Data {
    /// A number for the type and the value's bits, if it has no more than 64; the number is never 0.
    #[inline]
    pub(crate) fn packed(&self) -> Option<(u16, u64)> {
        let bits = match *self {
            Self::Empty | Self::Null => 0,
            Self::I1(value) => u64::from(value.cast_unsigned()),
            Self::U1(value) => value.into(),
            Self::I2(value) => u64::from(value.cast_unsigned()),
            Self::U2(value) => value.into(),
            Self::I4(value) => u64::from(value.cast_unsigned()),
            Self::U4(value) => value.into(),
            Self::I8(value) | Self::Currency(value) => value.cast_unsigned(),
            Self::U8(value) => value,
            Self::R4(value) => value.to_bits().into(),
            Self::R8(value) | Self::Date(value) => value.to_bits(),
            Self::Error(code) => code.0.into(),
            Self::Bool(value) => value.into(),
            Self::Text(_) | Self::Array(_) => return None,
        };
        Some((kind_of(self.var_type()), bits))
    }

    /// What was packed.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    pub(crate) fn unpacked(kind: u16, bits: u64) -> Option<Self> {
        Some(match VarType(kind.checked_sub(1)?) {
            VarType::EMPTY => Self::Empty,
            VarType::NULL => Self::Null,
            VarType::I1 => Self::I1(bits as i8),
            VarType::UI1 => Self::U1(bits as u8),
            VarType::I2 => Self::I2(bits as i16),
            VarType::UI2 => Self::U2(bits as u16),
            VarType::I4 => Self::I4(bits as i32),
            VarType::UI4 => Self::U4(bits as u32),
            VarType::I8 => Self::I8(bits as i64),
            VarType::UI8 => Self::U8(bits),
            VarType::R4 => Self::R4(f32::from_bits(bits as u32)),
            VarType::R8 => Self::R8(f64::from_bits(bits)),
            VarType::CY => Self::Currency(bits as i64),
            VarType::DATE => Self::Date(f64::from_bits(bits)),
            VarType::ERROR => Self::Error(Code(bits as u32)),
            VarType::BOOL => Self::Bool(bits != 0),
            _ => return None,
        })
    }

    /// Octets that it holds elsewhere: of a text, or of the elements of an array.
    #[must_use]
    pub fn heap(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Array(array) => array.items.iter().map(|item| size_of::<Self>() + item.heap()).sum(),
            _ => 0,
        }
    }
}
