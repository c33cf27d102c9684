//! Constants of the type `fixed` (CORBA 3.0, 3.9.2 and 3.10.2): computed with all their digits, 31 at the most. Nothing is rounded: digits
//! behind the point that are too many are dropped, as the specification wants.

use super::super::ast::{Expr, ExprKind};
use super::Builder;
use everywire_model::fixed::{Fixed, MAX_DIGITS};
use everywire_model::{Shape, Value};

/// A decimal number: `units` times ten to the power of `-scale`. No zero stands at its end behind the point, and `scale` is at most
/// [`MAX_DIGITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    units: i128,
    scale: u32,
}

const MOST: u32 = MAX_DIGITS as u32;

impl Decimal {
    /// From units and scale, which may be below zero; nothing, if there are too many digits before the point.
    fn new(mut units: i128, mut scale: i64) -> Option<Self> {
        while scale > 0 && (units % 10 == 0 || scale > MOST.into() || digits(units) > MOST) {
            units /= 10;
            scale -= 1;
        }
        while scale < 0 && units != 0 {
            units = units.checked_mul(10)?;
            scale += 1;
        }
        (digits(units) <= MOST).then_some(Self { units, scale: u32::try_from(scale).unwrap_or(0) })
    }

    /// A number with a point or without.
    fn read(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
        if whole.len().checked_add(part.len())? > MAX_DIGITS.into() {
            return None;
        }
        let all = format!("0{whole}{part}");
        Self::new(all.parse().ok()?, part.len().try_into().ok()?)
    }

    /// The type that has room for the number and no more.
    fn of(self) -> Fixed {
        let digits = digits(self.units).max(self.scale).max(1);
        Fixed { digits: digits.try_into().unwrap_or(MAX_DIGITS), scale: self.scale.try_into().unwrap_or(0) }
    }

    fn text(self) -> String {
        let scale = self.scale as usize;
        let all = format!("{:0>width$}", self.units.unsigned_abs(), width = scale + 1);
        let (whole, part) = all.split_at(all.len().saturating_sub(scale));
        let (sign, point) = (if self.units < 0 { "-" } else { "" }, if part.is_empty() { "" } else { "." });
        format!("{sign}{whole}{point}{part}")
    }

    /// The units at a larger scale.
    fn at(self, scale: u32) -> Option<i128> {
        self.units.checked_mul(10_i128.checked_pow(scale.checked_sub(self.scale)?)?)
    }

    fn plus(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        Self::new(self.at(scale)?.checked_add(other.at(scale)?)?, scale.into())
    }

    fn times(self, other: Self) -> Option<Self> {
        Self::new(self.units.checked_mul(other.units)?, i64::from(self.scale) + i64::from(other.scale))
    }

    /// The quotient, with as many digits as there may be. Nothing, if `other` is zero.
    fn over(self, other: Self) -> Option<Self> {
        let by = other.units;
        let (mut units, mut rest) = (self.units.checked_div(by)?, self.units.checked_rem(by)?);
        let mut scale = i64::from(self.scale) - i64::from(other.scale);
        while rest != 0 && digits(units) < MOST && scale < MOST.into() {
            rest = rest.checked_mul(10)?;
            units = units.checked_mul(10)?.checked_add(rest / by)?;
            rest %= by;
            scale += 1;
        }
        Self::new(units, scale)
    }
}

/// How many digits a number has, none for zero.
fn digits(units: i128) -> u32 {
    units.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1)
}

impl Builder<'_> {
    /// The type and the value of a constant whose type is `fixed` alone.
    pub(super) fn fixed_constant(&mut self, expr: &Expr) -> Option<(Value, Shape)> {
        let number = self.decimal(expr)?;
        let of = number.of();
        let value = of.read(&number.text())?;
        Some((Value::Bytes(value.into()), of.shape()))
    }

    /// The value of a constant for a type with digits.
    pub(super) fn fixed_value(&mut self, expr: &Expr, of: Fixed) -> Option<Value> {
        let text = self.decimal(expr)?.text();
        match of.read(&text) {
            Some(octets) => Some(Value::Bytes(octets.into())),
            None => self.wrong(expr, format!("{text} does not fit fixed<{}, {}>", of.digits, of.scale)),
        }
    }

    fn decimal(&mut self, expr: &Expr) -> Option<Decimal> {
        let value = match &expr.kind {
            ExprKind::Fixed(digits) => Decimal::read(digits),
            ExprKind::Integer(value) => Decimal::new((*value).into(), 0),
            ExprKind::Name(name) => match self.named_value(name)? {
                (shape, Value::Bytes(octets)) if let Some(of) = Fixed::named(&shape) => {
                    let text = of.text(&octets)?;
                    let size = Decimal::read(text.trim_start_matches('-'))?;
                    Some(if text.starts_with('-') { Decimal { units: -size.units, ..size } } else { size })
                }
                (_, Value::Integer(value)) => Decimal::new(value, 0),
                (_, other) => {
                    let what = format!("`{}` is {}, not a fixed-point number", name.text(), other.noun());
                    return self.wrong(expr, what);
                }
            },
            ExprKind::Unary('-', operand) => {
                let size = self.decimal(operand)?;
                Some(Decimal { units: -size.units, ..size })
            }
            ExprKind::Unary('+', operand) => Some(self.decimal(operand)?),
            ExprKind::Binary(operator @ ('+' | '-' | '*' | '/'), left, right) => {
                let (a, b) = (self.decimal(left), self.decimal(right));
                let (a, b) = (a?, b?);
                match operator {
                    '+' => a.plus(b),
                    '-' => a.plus(Decimal { units: -b.units, ..b }),
                    '*' => a.times(b),
                    _ if b.units == 0 => return self.wrong(right, "division by zero"),
                    _ => a.over(b),
                }
            }
            ExprKind::Unary(..) | ExprKind::Binary(..) => {
                return self.wrong(expr, "fixed-point numbers have only + - * /");
            }
            _ => return self.wrong_kind(expr, "a fixed-point number such as `1.50d`"),
        };
        match value {
            Some(value) => Some(value),
            None => self.wrong(expr, format!("this has more than {MOST} digits")),
        }
    }
}
