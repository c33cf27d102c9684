//! Values as text records, in the types that Microsoft's writer chooses.
//!
//! MC-NBFX leaves the choice of a record to the writer; peers compare captures, and some readers know only
//! what Microsoft writes. So numbers take the smallest record that holds them, whole floats become
//! integers, and texts have the shortest length field.

use super::integer;
use super::record::{Decimal, Text};

/// Appends a text record; `ends`: it also ends its element.
pub(crate) fn put(text: &Text<'_>, ends: bool, out: &mut Vec<u8>) {
    // The code of a text record that also ends its element is one more.
    let end = u8::from(ends);
    macro_rules! fixed {
        ($code:literal, $bytes:expr) => {{
            out.push($code | end);
            out.extend_from_slice($bytes);
        }};
    }
    match text {
        Text::Zero => out.push(0x80 | end),
        Text::One => out.push(0x82 | end),
        Text::False => out.push(0x84 | end),
        Text::True => out.push(0x86 | end),
        Text::I8(value) => fixed!(0x88, &value.to_le_bytes()),
        Text::I16(value) => fixed!(0x8a, &value.to_le_bytes()),
        Text::I32(value) => fixed!(0x8c, &value.to_le_bytes()),
        Text::I64(value) => fixed!(0x8e, &value.to_le_bytes()),
        Text::F32(value) => fixed!(0x90, &value.to_le_bytes()),
        Text::F64(value) => fixed!(0x92, &value.to_le_bytes()),
        Text::Decimal(value) => fixed!(0x94, &decimal(value)),
        Text::DateTime(value) => fixed!(0x96, &value.to_le_bytes()),
        Text::Chars(value) => sized(0x98 | end, value.as_bytes(), out),
        Text::Bytes(value) => sized(0x9e | end, value, out),
        // A list begins and goes on: its start never ends an element.
        Text::ListStart => out.push(0xa4),
        Text::ListEnd => out.push(0xa6 | end),
        Text::Empty => out.push(0xa8 | end),
        Text::Word(id) => {
            out.push(0xaa | end);
            integer::put(*id as usize, out);
        }
        Text::UniqueId(value) => fixed!(0xac, value),
        Text::TimeSpan(value) => fixed!(0xae, &value.to_le_bytes()),
        Text::Uuid(value) => fixed!(0xb0, value),
        Text::U64(value) => fixed!(0xb2, &value.to_le_bytes()),
        Text::Bool(value) => fixed!(0xb4, &[u8::from(*value)]),
        Text::Wide(value) => sized(0xb6 | end, value, out),
        Text::QName(letter, id) => {
            out.extend([0xbc | end, *letter]);
            integer::put(*id as usize, out);
        }
    }
}

/// Appends a whole number in the fewest bytes, in a record that also ends its element.
#[inline]
pub(crate) fn put_last_integer(value: i64, out: &mut Vec<u8>) {
    if let Ok(small) = i8::try_from(value) {
        match small {
            0 => out.push(0x81),
            1 => out.push(0x83),
            _ => out.extend_from_slice(&[0x89, small as u8]),
        }
    } else if let Ok(short) = i16::try_from(value) {
        let [low, high] = short.to_le_bytes();
        out.extend_from_slice(&[0x8b, low, high]);
    } else {
        put(&integral(value), true, out);
    }
}

/// A record with a length of 8, 16 or 32 bits, whichever suffices; `code` is that of the shortest.
pub(crate) fn sized(code: u8, bytes: &[u8], out: &mut Vec<u8>) {
    sized_head(code, bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// The head of such a record, whose bytes the caller adds.
pub(crate) fn sized_head(code: u8, len: usize, out: &mut Vec<u8>) {
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(len), _) => out.extend_from_slice(&[code, len]),
        (_, Ok(len)) => {
            out.push(code + 2);
            out.extend_from_slice(&len.to_le_bytes());
        }
        _ => {
            out.push(code + 4);
            out.extend_from_slice(&(len as u32).to_le_bytes());
        }
    }
}

/// An integer in the fewest bytes.
pub fn integral(value: i64) -> Text<'static> {
    match value {
        0 => Text::Zero,
        1 => Text::One,
        _ => match (i8::try_from(value), i16::try_from(value), i32::try_from(value)) {
            (Ok(value), ..) => Text::I8(value),
            (_, Ok(value), _) => Text::I16(value),
            (_, _, Ok(value)) => Text::I32(value),
            _ => Text::I64(value),
        },
    }
}

/// A binary32 number; whole numbers become integers, and a negative zero loses its sign. That is what .NET
/// writes.
#[allow(clippy::cast_possible_truncation)]
pub fn single(value: f32) -> Text<'static> {
    if is_integer(value.into()) { integral(value as i64) } else { Text::F32(value) }
}

/// A binary64 number; as [`single`], and narrowed to binary32 where nothing is lost.
#[allow(clippy::cast_possible_truncation)]
pub fn real(value: f64) -> Text<'static> {
    let narrow = value as f32;
    if is_integer(value) {
        integral(value as i64)
    } else if narrow.is_finite() && f64::from(narrow) == value {
        Text::F32(narrow)
    } else {
        Text::F64(value)
    }
}

/// Whether the number is whole and fits 64 bits.
/// `i64::MAX as f64` is 2^63, which does not fit: the range leaves it out.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn is_integer(value: f64) -> bool {
    (i64::MIN as f64..i64::MAX as f64).contains(&value) && (value as i64) as f64 == value
}

/// The bytes of a decimal, as `OLE` automation lays them out; `magnitude` has at most 96 bits.
pub fn decimal(value: &Decimal) -> [u8; 16] {
    let sign = if value.negative { 0x80 } else { 0 };
    let (high, low) = (value.magnitude >> 64 & u128::from(u32::MAX), value.magnitude & u128::from(u64::MAX));
    (u128::from(value.scale) << 16 | sign << 24 | high << 32 | low << 64).to_le_bytes()
}
