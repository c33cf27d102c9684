//! What an argument is that a caller left out, where the contract has a default for it (`[defaultvalue(...)]`): the text of the
//! contract as a VARIANT, which is converted to the parameter like any that a caller gives.

use crate::standard::contracts::BSTR;
use everywire_model::shape::Shape;
use everywire_model::value::{TypedShape, Value};

/// The value of a default as the contract writes it; nothing for what is neither a number, a text in quotes, a truth nor a member of
/// the enumeration that the parameter has.
pub(super) fn value(written: &str, target: &Shape) -> Option<Value> {
    let (shape, value) = if let Some(text) = quoted(written) {
        (BSTR, Value::Text(text))
    } else if let Some(number) = whole(written) {
        (Shape::I64, Value::Integer(number.into()))
    } else if let Some(number) = fraction(written) {
        (Shape::F64, Value::Float(number))
    } else {
        match written {
            "TRUE" | "VARIANT_TRUE" | "true" => (Shape::Bool, Value::Bool(true)),
            "FALSE" | "VARIANT_FALSE" | "false" => (Shape::Bool, Value::Bool(false)),
            name => (Shape::I64, Value::Integer(member(name, target)?.into())),
        }
    };
    Some(Value::Variant(Box::new((TypedShape(shape), value))))
}

/// A text in quotes, before which `L` may stand.
fn quoted(written: &str) -> Option<String> {
    let inside = written.strip_prefix('L').unwrap_or(written).strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            },
            // Neighbours that are one text are rare, and where they part is not looked for.
            '"' => return None,
            other => other,
        });
    }
    Some(text)
}

/// A whole number, decimal or with `0x`, as C writes it.
fn whole(written: &str) -> Option<i64> {
    let (is_negative, digits) =
        written.strip_prefix('-').map_or((false, written), |rest| (true, rest.trim_start()));
    let digits = digits.trim_end_matches(['l', 'L', 'u', 'U']);
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    if is_negative { number.checked_neg() } else { Some(number) }
}

/// A number with a fraction.
fn fraction(written: &str) -> Option<f64> {
    // Words that Rust takes for numbers are names here.
    let begins = written.starts_with(|first: char| first.is_ascii_digit() || "-.".contains(first));
    let number = written.trim_end_matches(['f', 'F', 'l', 'L']).parse::<f64>().ok();
    number.filter(|number| begins && number.is_finite())
}

/// The number of a member of an enumeration, whatever stands before its name.
fn member(name: &str, target: &Shape) -> Option<i32> {
    let Shape::Enum(shape) = target.resolved() else { return None };
    let found = shape.members.iter().find(|(member, _)| member.as_ref() == name)?;
    Some(found.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_read_as_c_writes_them() {
        let read = |written: &str| match value(written, &Shape::I32) {
            Some(Value::Variant(held)) => Some(held.1),
            _ => None,
        };
        for (written, expected) in [
            ("5", Value::Integer(5)),
            ("-1L", Value::Integer(-1)),
            ("0xff", Value::Integer(255)),
            ("0.5", Value::Float(0.5)),
            ("-1.5e3", Value::Float(-1500.0)),
            ("TRUE", Value::Bool(true)),
            ("\"\"", Value::Text(String::new())),
            ("L\"a\\\"b\\\\\"", Value::Text("a\"b\\".into())),
        ] {
            assert_eq!(read(written), Some(expected), "{written}");
        }
        for wrong in ["", "MAX", "inf", "nan", "\"a\" \"b\"", "\"a", "-", "0x", "99999999999999999999999"] {
            assert!(read(wrong).is_none_or(|read| matches!(read, Value::Float(_))), "{wrong}");
        }
    }
}
