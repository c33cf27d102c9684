//! Values for people; their types and signatures have their words in the crate of the dynamic caller.
//!
//! A value is written by its shape, so that members of enumerations have names and times are times. It
//! stands on one line if that has room (`WIDTH`), else each part has a line of its own, two blanks
//! further in. What is shown is not what `call` takes, but for values of any type alone (`again`).
//!
//! Invariants: text within a value is quoted, with its control characters as escapes. Octets are cut at
//! `OCTETS`, and say how many there are. A value that does not fit its shape is still written, as JSON
//! writes it.

use everywire::Value;
use everywire::model::shape::Shape;
use everywire::model::value::TypedShape;
use everywire_dynamic::json::{self, Notation, file_of, held, is_nameless, word};
use std::fmt::Write as _;
use std::os::fd::AsRawFd;

/// How many characters a value may take on its line before it is spread over several.
const WIDTH: usize = 100;
/// How many octets of a sequence are shown; `--json` has all.
const OCTETS: usize = 64;

pub(crate) use everywire_dynamic::wording::{noun, signature};

/// The results of an operation: the only one as it is, several by name. A text alone is printed without
/// quotes and escapes, as other programs want it.
pub(crate) fn results(list: &Shape, value: &Value, notation: &dyn Notation) -> String {
    let Value::Struct(values) = value else { return shown(list, value, notation) };
    let shapes = list.fields().iter().map(|field| &field.shape);
    match values.as_slice() {
        // Text alone goes out without quotes, for other programs.
        [(_, Value::Text(text))] => text.clone(),
        // A value of any type alone is written as it can be given back.
        [(_, only @ Value::Variant(_))] => {
            again(list.fields().first().map_or(&Shape::Void, |field| &field.shape), only, notation)
        }
        [(_, only)] => {
            shown(list.fields().first().map_or(&Shape::Void, |field| &field.shape), only, notation)
        }
        _ => {
            let lines: Vec<_> = values
                .iter()
                .zip(shapes)
                .map(|((name, v), shape)| format!("{name} = {}", shown(shape, v, notation)))
                .collect();
            lines.join("\n")
        }
    }
}

/// A value of any type as `call` takes it: bare where JSON alone says its type, else with its shape
/// beside it.
fn again(shape: &Shape, value: &Value, notation: &dyn Notation) -> String {
    let json = json::write(shape, value, notation);
    let Value::Variant(content) = value else { return json.to_string() };
    let (TypedShape(held), value) = &**content;
    let bare = match (held, value) {
        (Shape::Bool | Shape::I32, _) => true,
        (Shape::F64, Value::Float(number)) => number.is_finite() && number.fract() != 0.0,
        // Each text that is called so is one where it is read.
        (Shape::Text(_), _) => json.get("shape").is_some_and(|told| told == "text"),
        _ => false,
    };
    match json.get("value").filter(|_| bare) {
        Some(value) => value.to_string(),
        None => json.to_string(),
    }
}

/// One value, on one line if it fits.
pub(crate) fn shown(shape: &Shape, value: &Value, notation: &dyn Notation) -> String {
    let mut out = String::new();
    put(shape, value, notation, 0, &mut out);
    out
}

/// Writes a value at this indent. Shape and value are walked together; where the shape has less, the
/// value is written by itself.
fn put(shape: &Shape, value: &Value, notation: &dyn Notation, indent: usize, out: &mut String) {
    let shape = held(shape);
    if let Some(word) = word(shape, value) {
        return out.push_str(&word);
    }
    match (shape.resolved(), value) {
        (Shape::Struct(shape), Value::Struct(values)) if is_nameless(shape) => {
            let parts = values.iter().zip(shape.fields.iter()).map(|((_, value), field)| {
                let mut part = String::new();
                put(&field.shape, value, notation, indent + 2, &mut part);
                part
            });
            spread("(", parts.collect(), ")", indent, out);
        }
        (shape, Value::Struct(values)) => {
            let shapes =
                shape.fields().iter().map(|field| &field.shape).chain(std::iter::repeat(&Shape::Void));
            let parts = values.iter().zip(shapes).map(|((name, value), shape)| {
                let mut part = format!("{name}: ");
                put(shape, value, notation, indent + 2, &mut part);
                part
            });
            spread("{", parts.collect(), "}", indent, out);
        }
        (shape, Value::List(items)) => {
            let element = shape.element().unwrap_or(&Shape::Void);
            let parts = items.iter().map(|item| {
                let mut part = String::new();
                put(element, item, notation, indent + 2, &mut part);
                part
            });
            spread("[", parts.collect(), "]", indent, out);
        }
        (Shape::Map(map), Value::Map(pairs)) => {
            let parts = pairs.iter().map(|(key, value)| {
                let mut part = String::new();
                put(&map.key, key, notation, indent + 2, &mut part);
                part.push_str(": ");
                put(&map.value, value, notation, indent + 2, &mut part);
                part
            });
            spread("{", parts.collect(), "}", indent, out);
        }
        (Shape::Union(union), Value::Union(label, arm)) => match arm {
            Some(arm) => {
                out.push_str(&arm.0);
                out.push_str(": ");
                let index = union.select(*label).and_then(|index| union.arms.get(index));
                put(index.map_or(&Shape::Void, |arm| &arm.field.shape), &arm.1, notation, indent, out);
            }
            None => {
                // Writing to a string cannot fail; likewise below.
                let _ = write!(out, "(no arm, discriminator {})", label_word(&union.discriminator, *label));
            }
        },
        (_, Value::Variant(content)) => {
            let _ = write!(out, "{} ", noun(&content.0.0));
            put(&content.0.0, &content.1, notation, indent, out);
        }
        (_, Value::Bytes(bytes)) => out.push_str(&octets(bytes)),
        (_, Value::Text(text)) => {
            let _ = write!(out, "{text:?}");
        }
        (_, Value::Char(character)) => {
            let _ = write!(out, "{character:?}");
        }
        (_, Value::Member(name)) => out.push_str(name),
        (_, Value::Reference(Some(reference))) => out.push_str(&notation.print(reference)),
        (_, Value::Reference(None)) => out.push_str("nil"),
        (_, Value::Handle(handle)) => {
            let file = file_of(handle).map_or_else(String::new, |file| format!(" -> {file}"));
            let _ = write!(out, "descriptor {}{file}", handle.0.as_raw_fd());
        }
        (shape, other) => match json::write(shape, other, notation) {
            serde_json::Value::Null => out.push_str("nothing"),
            json => out.push_str(json.to_string().trim_matches('"')),
        },
    }
}

/// A discriminator in the notation of its type: a character in quotes, a member's name, `true`, a number.
fn label_word(shape: &Shape, label: i64) -> String {
    match (shape.resolved(), json::discriminator(shape, label)) {
        (Shape::Char | Shape::WideChar, serde_json::Value::String(text)) => match text.chars().next() {
            Some(character) => format!("{character:?}"),
            None => label.to_string(),
        },
        (_, serde_json::Value::String(name)) => name,
        (_, other) => other.to_string(),
    }
}

/// The parts of a value between two brackets: on one line if all of them fit, else one on each line.
fn spread(open: &str, parts: Vec<String>, close: &str, indent: usize, out: &mut String) {
    let wide = parts.iter().map(|part| part.len() + 2).sum::<usize>() + indent > WIDTH;
    let pad = " ".repeat(indent);
    out.push_str(open);
    if wide || parts.iter().any(|part| part.contains('\n')) {
        for part in parts {
            let _ = write!(out, "\n{pad}  {part}");
        }
        let _ = write!(out, "\n{pad}");
    } else {
        out.push_str(&parts.join(", "));
    }
    out.push_str(close);
}

/// Octets: as text if they are printable, else in hexadecimal; long ones are cut.
pub(crate) fn octets(bytes: &[u8]) -> String {
    let head = bytes.get(..OCTETS).unwrap_or(bytes);
    let is_cut = bytes.len() > OCTETS;
    let more = if is_cut { format!("... ({} octets)", bytes.len()) } else { String::new() };
    let text = match std::str::from_utf8(head) {
        // The cut is within a character, which is left out.
        Err(wrong) if is_cut && wrong.error_len().is_none() => {
            head.get(..wrong.valid_up_to()).and_then(|whole| std::str::from_utf8(whole).ok())
        }
        read => read.ok(),
    };
    match text {
        Some(text) if !text.chars().any(char::is_control) => format!("{text:?}{more}"),
        _ => {
            let digits: Vec<_> = head.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}{more}", digits.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{label_word, octets};
    use everywire::model::Hold;
    use everywire::model::shape::{Enum, Name, Shape};

    #[test]
    fn discriminators_without_an_arm_are_in_the_notation_of_their_type() {
        let members = vec![(Name::from("red"), 1)];
        let colour = Shape::Enum(Hold::new(Enum {
            name: Name::from("Colour"),
            id: Name::from(""),
            members: members.into(),
            bits: 32,
            open: false,
        }));
        for (shape, label, shown) in [
            (Shape::Char, 122, "'z'"),
            (Shape::WideChar, 0x20ac, "'\u{20ac}'"),
            (Shape::Char, 10, "'\\n'"),
            (Shape::Bool, 0, "false"),
            (Shape::I32, -7, "-7"),
            (Shape::U64, -1, "18446744073709551615"),
            (colour.clone(), 1, "red"),
            (colour, 3, "3"),
            (Shape::WideChar, 0xd800, "55296"),
        ] {
            assert_eq!(label_word(&shape, label), shown);
        }
    }

    #[test]
    fn octets_that_are_text_are_cut_between_two_characters() {
        let text = format!("x{}", "\u{e4}".repeat(40));
        assert_eq!(octets(text.as_bytes()), format!("\"x{}\"... (81 octets)", "\u{e4}".repeat(31)));
        let broken = [text.as_bytes(), &[0xff]].concat();
        assert!(octets(&broken).starts_with("\"x"), "what is wrong behind the cut is not shown");
        assert!(octets(&[0xff; 70]).starts_with("ff ff"), "no text at all");
        assert_eq!(octets(&[0xc3]), "c3", "half a character is none");
    }
}
