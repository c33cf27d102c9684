//! Numbers of CORBA's `long double` as shapes.
//!
//! Such a number has 128 bits, as IEEE 754 has them (binary128): a sign, 15 bits of exponent, 112 of the fraction. Its shape is an array of these
//! 16 octets, the sign first, whatever order of octets the message has. That they are a number stands in a remark on the *element* of the
//! array (an alias without a name, which others look through), so that it is still there where names around the array were taken off. On
//! wires other than GIOP it travels as these octets.
//!
//! Text is decimal, with as few digits from 33 to 36 as are read back as the same number. It is computed with 320 bits: the nearest number is
//! found, but for a text that lies between two numbers to more than some 90 digits.
//!
//! Invariants: a `Wide` that is not zero has its highest bit set; its limbs have the lowest first.

use crate::shape::{Alias, Array, Hold, Name, Shape};
use std::cmp::Ordering;

const REMARK: &str = "#long double";
/// The octets of a number.
pub const OCTETS: usize = 16;
/// What the exponent is counted from, and the exponent of infinity.
const BIAS: i32 = 16_383;
const SPECIAL: i32 = 32_767;
/// Bits of the fraction.
const FRACTION: u32 = 112;
/// Limbs of a [`Wide`], and its bits.
const LIMBS: usize = 5;
const BITS: i32 = 320;
/// Digits that tell all numbers apart, and digits that come back whatever they are.
const MOST_DIGITS: usize = 36;
const SURE_DIGITS: usize = 33;
/// Digits of a text that are looked at. So many fit a [`Wide`].
const READ_DIGITS: usize = 90;
/// The largest power of ten that is asked for. Beyond it every number is infinite or zero.
const MOST_POWER: i32 = 5_100;

/// The octets of such a number, remarked to be one.
pub const SHAPE: Shape = Shape::Array(Hold::Static(&NUMBER));

static ELEMENT: Alias = Alias { name: Name::Borrowed(""), id: Name::Borrowed(REMARK), target: Shape::U8 };
static NUMBER: Array = Array { element: Shape::Alias(Hold::Static(&ELEMENT)), len: 16 };

/// Whether a shape is such a number; names around it are looked through.
#[inline]
pub fn is(shape: &Shape) -> bool {
    match shape.resolved() {
        Shape::Array(array) => is_array(array),
        _ => false,
    }
}

/// Whether an array is the octets of such a number.
#[inline]
pub fn is_array(array: &Array) -> bool {
    array.len == 16
        && matches!(&array.element, Shape::Alias(held) if held.name.is_empty() && held.id == REMARK)
}

/// A number as decimal text, or `NaN`, `Infinity`, `-Infinity`. Nothing, if these are not 16 octets.
pub fn text(octets: &[u8]) -> Option<String> {
    let bits = u128::from_be_bytes(octets.try_into().ok()?);
    let sign = if bits >> 127 == 1 { "-" } else { "" };
    let bits = bits & (u128::MAX >> 1);
    let exponent = i32::try_from(bits >> FRACTION).ok()?;
    let fraction = bits & ((1 << FRACTION) - 1);
    if exponent == SPECIAL {
        return Some(if fraction == 0 { format!("{sign}Infinity") } else { "NaN".to_owned() });
    }
    // A number without the highest bit has the exponent of the least one that has it.
    let (whole, power) = match exponent {
        0 => (fraction, 1 - BIAS),
        _ => (fraction | 1 << FRACTION, exponent - BIAS),
    };
    let Some(value) = Wide::new(whole, power - 112) else { return Some(format!("{sign}0")) };
    let (digits, point) = value.digits();
    let shortest = (SURE_DIGITS..MOST_DIGITS).find_map(|count| {
        let (digits, point) = rounded(&digits, point, count);
        (magnitude(&digits, point - digits.len() as i32)? == bits).then_some((digits, point))
    });
    let (digits, point) = shortest.unwrap_or((digits, point));
    Some(format!("{sign}{}", notation(digits.trim_end_matches('0'), point)))
}

/// The octets of the number that is nearest to a decimal text (`-12.5`, `1e-4000`), or of one of the words of [`text`]. Nothing, if it is no
/// number, or beyond the largest one.
pub fn read(text: &str) -> Option<[u8; OCTETS]> {
    let (negative, plain) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let bits = match plain {
        "NaN" => 0x7fff_8000 << 96,
        "Infinity" => 0x7fff << FRACTION,
        _ => {
            let (number, power) = match plain.split_once(['e', 'E']) {
                Some((number, power)) => (number, power.parse::<i32>().ok()?),
                None => (plain, 0),
            };
            let (whole, part) = number.split_once('.').unwrap_or((number, ""));
            let digits = format!("{whole}{part}");
            if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                return None;
            }
            magnitude(&digits, power.checked_sub(i32::try_from(part.len()).ok()?)?)?
        }
    };
    Some((bits | u128::from(negative) << 127).to_be_bytes())
}

/// Digits with a point, as JSON has them: behind `point` of them, which may be fewer or more than there are.
fn notation(digits: &str, point: i32) -> String {
    let count = digits.len() as i32;
    match point {
        1..=36 if point >= count => format!("{digits:0<width$}", width = point as usize),
        1..=36 => {
            let (whole, part) = digits.split_at(point as usize);
            format!("{whole}.{part}")
        }
        -5..=0 => format!("0.{digits:0>width$}", width = (count - point) as usize),
        _ => {
            let (first, rest) = digits.split_at(digits.len().min(1));
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{}", point - 1)
        }
    }
}

/// So many of these digits, the last one rounded, and where the point is then.
fn rounded(digits: &str, point: i32, count: usize) -> (String, i32) {
    let (kept, rest) = digits.split_at(count.min(digits.len()));
    let mut kept: Vec<u8> = kept.bytes().collect();
    if rest.as_bytes().first().is_some_and(|digit| *digit >= b'5') {
        for digit in kept.iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return (kept.into_iter().map(char::from).collect(), point);
            }
            *digit = b'0';
        }
        return ("1".to_owned(), point + 1);
    }
    (kept.into_iter().map(char::from).collect(), point)
}

/// The bits without a sign of the number that is nearest to digits times a power of ten. Nothing beyond the largest one.
fn magnitude(digits: &str, power: i32) -> Option<u128> {
    let digits = digits.trim_start_matches('0');
    let (kept, rest) = digits.split_at(digits.len().min(READ_DIGITS));
    let mut whole = [0; LIMBS];
    for digit in kept.bytes() {
        multiply_small(&mut whole, 10, (digit - b'0').into());
    }
    let Some(mut value) = Wide::normal(whole, 0) else { return Some(0) };
    value.inexact = rest.bytes().any(|digit| digit != b'0');
    let power = power.checked_add(i32::try_from(rest.len()).ok()?)?;
    // Too large whatever the digits are, and too small.
    if power > MOST_POWER {
        return None;
    }
    if power < -MOST_POWER - READ_DIGITS as i32 {
        return Some(0);
    }
    value.times_power(power).bits()
}

/// A number of 320 bits, above zero, times a power of two.
#[derive(Debug, Clone, Copy)]
struct Wide {
    limbs: [u64; LIMBS],
    /// The power of two of the lowest bit.
    power: i32,
    /// Whether something below the lowest bit was cut off.
    inexact: bool,
}

impl Wide {
    /// Nothing for zero.
    fn new(whole: u128, power: i32) -> Option<Self> {
        Self::normal([whole as u64, (whole >> 64) as u64, 0, 0, 0], power)
    }

    fn normal(mut limbs: [u64; LIMBS], mut power: i32) -> Option<Self> {
        if limbs.iter().all(|limb| *limb == 0) {
            return None;
        }
        while limbs[LIMBS - 1] >> 63 == 0 {
            // By whole limbs where the highest one is empty.
            if limbs[LIMBS - 1] == 0 {
                limbs.rotate_right(1);
                power -= 64;
            } else {
                double(&mut limbs);
                power -= 1;
            }
        }
        Some(Self { limbs, power, inexact: false })
    }

    /// The product, without what is below its 320 bits.
    fn times(&self, other: &Self) -> Self {
        let mut all = [0; 2 * LIMBS];
        for (at, limb) in self.limbs.iter().enumerate() {
            let mut carry = 0;
            for (by, place) in other.limbs.iter().zip(all.iter_mut().skip(at)) {
                let sum = u128::from(*limb) * u128::from(*by) + u128::from(*place) + carry;
                (*place, carry) = (sum as u64, sum >> 64);
            }
            all[at + LIMBS] = carry as u64;
        }
        let mut power = self.power + other.power + BITS;
        if all[2 * LIMBS - 1] >> 63 == 0 {
            double(&mut all);
            power -= 1;
        }
        let (low, high) = all.split_at(LIMBS);
        let lost = low.iter().any(|limb| *limb != 0);
        let limbs = std::array::from_fn(|at| high[at]);
        Self { limbs, power, inexact: self.inexact || other.inexact || lost }
    }

    /// The quotient, likewise.
    fn over(&self, other: &Self) -> Self {
        // What is left of the dividend has one limb more, since it is doubled before it is compared.
        let wide = |limbs: &[u64; LIMBS]| -> [u64; LIMBS + 1] {
            std::array::from_fn(|at| limbs.get(at).copied().unwrap_or_default())
        };
        let (mut left, divisor) = (wide(&self.limbs), wide(&other.limbs));
        let (mut quotient, mut power) = ([0; LIMBS], self.power - other.power + 1);
        // Both have their highest bit set, so the first bit or the second one is set.
        while quotient[LIMBS - 1] >> 63 == 0 {
            double(&mut quotient);
            if compare(&left, &divisor) != Ordering::Less {
                subtract(&mut left, &divisor);
                quotient[0] |= 1;
            }
            double(&mut left);
            power -= 1;
        }
        let lost = left.iter().any(|limb| *limb != 0);
        Self { limbs: quotient, power, inexact: self.inexact || other.inexact || lost }
    }

    /// Times a power of ten.
    fn times_power(&self, power: i32) -> Self {
        let mut left = power.unsigned_abs();
        let ten = |limb| Self { limbs: [0, 0, 0, 0, limb], power: -316, inexact: false };
        let (mut whole, mut square) = (None, ten(0xa << 60));
        while left > 0 {
            if left & 1 == 1 {
                whole = Some(whole.map_or(square, |whole: Self| whole.times(&square)));
            }
            left >>= 1;
            if left > 0 {
                square = square.times(&square);
            }
        }
        match whole {
            None => *self,
            Some(by) if power > 0 => self.times(&by),
            Some(by) => self.over(&by),
        }
    }

    /// 36 digits, the last one rounded, and how many of them stand before the point.
    fn digits(&self) -> (String, i32) {
        let exponent = f64::from(self.power + BITS - 1) * std::f64::consts::LOG10_2;
        let mut point = exponent.floor() as i32 + 1;
        loop {
            // With so many digits before its point the number is below 2^120.
            let scaled = self.times_power(MOST_DIGITS as i32 - point);
            let shift = scaled.power.unsigned_abs();
            let mut limbs = scaled.limbs;
            let mut below = 0;
            for _ in 0..shift.min(BITS.unsigned_abs()) {
                below = limbs[0] & 1;
                halve(&mut limbs);
            }
            let whole = u128::from(limbs[0]) | u128::from(limbs[1]) << 64;
            let digits = (whole + u128::from(below)).to_string();
            // The logarithm told the number of digits but for one.
            match digits.len().cmp(&MOST_DIGITS) {
                Ordering::Equal => return (digits, point),
                Ordering::Less => point -= 1,
                Ordering::Greater => point += 1,
            }
        }
    }

    /// The bits of the nearest number of 128 bits; of two, the even one. Nothing if that is infinite.
    fn bits(&self) -> Option<u128> {
        let exponent = self.power + BITS - 1 + BIAS;
        // A number below the least one with the highest bit has fewer bits.
        let kept = if exponent > 0 { 113 } else { 112 + exponent };
        if kept < 0 {
            return Some(0);
        }
        let mut limbs = self.limbs;
        let (mut below, mut rest) = (0, u64::from(self.inexact));
        for _ in 0..BITS - kept {
            rest |= below;
            below = limbs[0] & 1;
            halve(&mut limbs);
        }
        let whole = u128::from(limbs[0]) | u128::from(limbs[1]) << 64;
        let up = below == 1 && (rest == 1 || whole & 1 == 1);
        let whole = whole + u128::from(up);
        // The highest bit is not written: it adds one to the exponent below it, and so does a carry.
        let start = u128::try_from((exponent - 1).max(0)).ok()? << FRACTION;
        let bits = start + whole;
        (bits < 0x7fff << FRACTION).then_some(bits)
    }
}

/// Times two; what leaves the highest limb is lost.
fn double(limbs: &mut [u64]) {
    let mut carry = 0;
    for limb in limbs {
        (*limb, carry) = (*limb << 1 | carry, *limb >> 63);
    }
}

/// Half of it, rounded down.
fn halve(limbs: &mut [u64]) {
    let mut carry = 0;
    for limb in limbs.iter_mut().rev() {
        (*limb, carry) = (*limb >> 1 | carry << 63, *limb & 1);
    }
}

fn multiply_small(limbs: &mut [u64], by: u64, plus: u64) {
    let mut carry = u128::from(plus);
    for limb in limbs {
        let sum = u128::from(*limb) * u128::from(by) + carry;
        (*limb, carry) = (sum as u64, sum >> 64);
    }
}

fn compare(one: &[u64], other: &[u64]) -> Ordering {
    one.iter().rev().cmp(other.iter().rev())
}

fn subtract(from: &mut [u64], what: &[u64]) {
    let mut borrow = false;
    for (limb, less) in from.iter_mut().zip(what) {
        let (first, one) = limb.overflowing_sub(*less);
        let (rest, other) = first.overflowing_sub(borrow.into());
        (*limb, borrow) = (rest, one || other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The octets as a compiler of C has them (`__float128`), in hexadecimal digits.
    fn both_ways(number: &str, hex: &str) {
        let octets = read(number).unwrap_or_else(|| panic!("{number}"));
        let shown: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(shown, hex.replace(' ', ""), "{number}");
        assert_eq!(text(&octets).as_deref(), Some(number));
    }

    #[test]
    fn numbers_are_those_of_compilers() {
        both_ways("0", "0000 0000 0000 0000 0000 0000 0000 0000");
        both_ways("-0", "8000 0000 0000 0000 0000 0000 0000 0000");
        both_ways("1", "3fff 0000 0000 0000 0000 0000 0000 0000");
        both_ways("-12.5", "c002 9000 0000 0000 0000 0000 0000 0000");
        both_ways("0.1", "3ffb 9999 9999 9999 9999 9999 9999 999a");
        both_ways("3.1415926535897932384626433832795028", "4000 921f b544 42d1 8469 898c c517 01b8");
        both_ways("1e4000", "73e6 a375 0647 fcab 18c2 1ab9 0545 0cc3");
        both_ways("Infinity", "7fff 0000 0000 0000 0000 0000 0000 0000");
        both_ways("-Infinity", "ffff 0000 0000 0000 0000 0000 0000 0000");
        both_ways("NaN", "7fff 8000 0000 0000 0000 0000 0000 0000");
    }
}
