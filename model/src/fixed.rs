//! Fixed-point numbers of CORBA as shapes.
//!
//! A `fixed<d,s>` is an array of the octets that CDR has for it: a digit in each half, the first digit first, and the sign in the last half
//! (`C` for plus, `D` for minus); with an even number of digits a 0 comes first (CORBA 3.0, 15.3.2.8). That it is a number stands in a
//! remark on the array (an alias without a name, which others look through): `#fixed D S`. On wires other than GIOP it travels as these octets.

use crate::shape::{Alias, Array, Hold, Name, Shape};

const FIXED: &str = "#fixed ";
/// The most digits that there are.
pub const MAX_DIGITS: u16 = 31;
const PLUS: u8 = 0xc;
const MINUS: u8 = 0xd;

/// What kind of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed {
    /// All digits, from 1 to [`MAX_DIGITS`].
    pub digits: u16,
    /// Those behind the point. Type codes have it as a signed number: from 2^15 on it is below zero, and no text is read or written.
    pub scale: u16,
}

impl Fixed {
    /// The kind of number that an array of octets was remarked to be; nothing, if it is none.
    pub fn of(shape: &Shape) -> Option<Self> {
        match shape {
            Shape::Alias(held) => Self::of_alias(held),
            _ => None,
        }
    }

    /// The same, also behind names.
    pub fn named(shape: &Shape) -> Option<Self> {
        let mut shape = shape;
        loop {
            match (Self::of(shape), shape) {
                (Some(found), _) => return Some(found),
                (None, Shape::Alias(held)) => shape = &held.target,
                (None, _) => return None,
            }
        }
    }

    /// The same, of an alias.
    pub fn of_alias(held: &Alias) -> Option<Self> {
        let (digits, scale) =
            held.id.strip_prefix(FIXED).filter(|_| held.name.is_empty())?.split_once(' ')?;
        let found = Self { digits: digits.parse().ok()?, scale: scale.parse().ok()? };
        let is_octets = matches!(&held.target, Shape::Array(array) if array.len == found.octets() && matches!(array.element, Shape::U8));
        is_octets.then_some(found)
    }

    /// The octets of such a number, remarked to be one.
    pub fn shape(self) -> Shape {
        let octets = Shape::Array(Hold::new(Array { element: Shape::U8, len: self.octets() }));
        let id = format!("{FIXED}{} {}", self.digits, self.scale).into();
        Shape::Alias(Hold::new(Alias { name: Name::default(), id, target: octets }))
    }

    /// How many octets a number has.
    pub fn octets(self) -> u32 {
        u32::from(self.digits) / 2 + 1
    }

    /// A number as decimal text: a sign if it is below zero, and as many digits behind the point as its type has. Nothing, if the octets are no
    /// number.
    pub fn text(self, octets: &[u8]) -> Option<String> {
        if octets.len() != usize::try_from(self.octets()).ok()? || self.scale > MAX_DIGITS {
            return None;
        }
        let halves: Vec<u8> = octets.iter().flat_map(|octet| [octet >> 4, octet & 0xf]).collect();
        let (sign, digits) = halves.split_last()?;
        let spare = digits.len().checked_sub(self.digits.into())?;
        let is_number =
            digits.iter().all(|digit| *digit < 10) && digits.iter().take(spare).all(|digit| *digit == 0);
        if !is_number || !matches!(*sign, PLUS | MINUS) {
            return None;
        }
        let all: String = digits.iter().skip(spare).map(|digit| char::from(b'0' + digit)).collect();
        let scale = usize::from(self.scale);
        // With more digits behind the point than there are, zeros stand between.
        let all = format!("{all:0>width$}", width = scale + 1);
        let (whole, part) = all.split_at_checked(all.len() - scale)?;
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let minus = if *sign == MINUS && all.bytes().any(|digit| digit != b'0') { "-" } else { "" };
        let point = if part.is_empty() { "" } else { "." };
        Some(format!("{minus}{whole}{point}{part}"))
    }

    /// The octets of a number that is written in decimal. Nothing, if it is none, or has more digits on either side of the point than its
    /// type: nothing is rounded. Zeros at the ends are no digits.
    pub fn read(self, text: &str) -> Option<Vec<u8>> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let is_decimal = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_decimal(whole) || !is_decimal(part) || (whole.is_empty() && part.is_empty()) {
            return None;
        }
        let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
        let scale = Some(usize::from(self.scale)).filter(|scale| *scale <= usize::from(MAX_DIGITS))?;
        let missing = scale.checked_sub(part.len())?;
        let number = format!("{whole}{part}{}", "0".repeat(missing));
        let number = number.trim_start_matches('0');
        if number.len() > self.digits.into() {
            return None;
        }
        let sign = if is_negative && !number.is_empty() { MINUS } else { PLUS };
        let width = usize::try_from(self.octets()).ok()? * 2 - 1;
        let halves: Vec<u8> =
            format!("{number:0>width$}").bytes().map(|digit| digit - b'0').chain([sign]).collect();
        Some(
            halves.chunks_exact(2).map(|pair| pair.iter().fold(0, |octet, half| octet << 4 | half)).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octets_as_cdr_has_them() {
        let money = Fixed { digits: 5, scale: 2 };
        // The examples of the specification's form: 123.45, and one with an even number of digits.
        assert_eq!(money.read("123.45").unwrap(), [0x12, 0x34, 0x5c]);
        assert_eq!(money.read("-1.5").unwrap(), [0x00, 0x15, 0x0d]);
        let even = Fixed { digits: 4, scale: 0 };
        assert_eq!(even.read("9876").unwrap(), [0x09, 0x87, 0x6c]);
        assert_eq!(even.text(&[0x09, 0x87, 0x6d]).unwrap(), "-9876");
        assert_eq!(even.text(&[0x19, 0x87, 0x6d]), None, "a digit too many");
        let small = Fixed { digits: 2, scale: 4 };
        assert_eq!(small.text(&small.read("0.0012").unwrap()).unwrap(), "0.0012");
    }

    #[test]
    fn what_is_read_comes_back_and_nothing_is_rounded() {
        let money = Fixed { digits: 5, scale: 2 };
        for (text, same) in [
            ("0", "0.00"),
            ("-0", "0.00"),
            ("+7", "7.00"),
            (".5", "0.50"),
            ("5.", "5.00"),
            ("-999.99", "-999.99"),
            ("00012.3400", "12.34"),
        ] {
            assert_eq!(money.text(&money.read(text).unwrap()).unwrap(), same, "{text}");
        }
        for wrong in ["", ".", "-", "1000", "1.234", "1e3", "0x1", "1,5", " 1", "--1", "1.2.3", "٣"] {
            assert_eq!(money.read(wrong), None, "{wrong}");
        }
        for octets in [&[0x12, 0x34, 0x5f][..], &[0x12, 0x34][..], &[0xa2, 0x34, 0x5c][..], &[][..]] {
            assert_eq!(money.text(octets), None, "{octets:x?}");
        }
        let most = Fixed { digits: MAX_DIGITS, scale: 31 };
        let text = format!("-0.{}", "1234567890".repeat(3) + "1");
        assert_eq!(most.text(&most.read(&text).unwrap()).unwrap(), text);
    }

    #[test]
    fn the_remark_says_what_it_is() {
        let money = Fixed { digits: 5, scale: 2 };
        assert_eq!(Fixed::of(&money.shape()), Some(money));
        assert_eq!(Fixed::of(&Shape::U8), None);
        let Shape::Alias(held) = money.shape() else { panic!("no alias") };
        let other = Alias { name: Name::default(), id: held.id.clone(), target: Shape::U8 };
        assert_eq!(Fixed::of_alias(&other), None, "a remark on something else");
        let below = Fixed { digits: 5, scale: 0xfffe };
        assert_eq!((below.text(&[0x12, 0x34, 0x5c]), below.read("1")), (None, None));
        let Shape::Array(array) = money.shape().resolved().clone() else { panic!("no array") };
        assert_eq!(array.len, 3);
    }
}
