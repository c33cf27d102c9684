//! Values, shapes and signatures for people.

use crate::json::{self, Notation, file_of, held, is_nameless, word};
use everywire::Value;
use everywire::model::shape::{Shape, TextKind};
use everywire::model::value::TypedShape;
use everywire::model::{Direction, Operation};
use std::fmt::Write as _;
use std::os::fd::AsRawFd;

/// How wide a value may be before it is spread over lines.
const WIDTH: usize = 100;
/// How many octets are shown.
const OCTETS: usize = 64;
/// How many levels of a type are told, and up to what length the parts of one without a name.
const LEVELS: usize = 32;
const NOUNS: usize = 1000;

/// The results of an operation: the only one as it is, several by name.
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

/// A value of any type as `call` takes it: bare where JSON alone says its type.
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
                let _ = write!(out, "(no arm, discriminator {label})");
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
        (shape, other) => match crate::json::write(shape, other, notation) {
            serde_json::Value::Null => out.push_str("nothing"),
            json => out.push_str(json.to_string().trim_matches('"')),
        },
    }
}

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
    let more = if bytes.len() > OCTETS { format!("... ({} octets)", bytes.len()) } else { String::new() };
    match std::str::from_utf8(head) {
        Ok(text) if !text.chars().any(char::is_control) => format!("{text:?}{more}"),
        _ => {
            let digits: Vec<_> = head.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}{more}", digits.join(" "))
        }
    }
}

/// An operation as a line: `deposit(amount: i64, inout note: text) -> i64 raises Bank::Overdrawn`.
pub(crate) fn signature(operation: &Operation) -> String {
    let parameters: Vec<_> = operation
        .parameters
        .iter()
        .map(|parameter| {
            let direction = match parameter.direction {
                Direction::In => "",
                Direction::Out => "out ",
                Direction::InOut => "inout ",
            };
            format!("{direction}{}: {}", parameter.field.name, noun(&parameter.field.shape))
        })
        .collect();
    let oneway = if operation.oneway { "oneway " } else { "" };
    // A wire name may hold the types; people see them once.
    let name = if operation.name.contains('(') { &operation.label } else { &operation.name };
    let mut line = format!("{oneway}{name}({})", parameters.join(", "));
    if !matches!(operation.returns, Shape::Void) {
        let _ = write!(line, " -> {}", noun(&operation.returns));
    }
    if !operation.raises.is_empty() {
        let names: Vec<_> = operation.raises.iter().map(|raised| raised.name.as_ref()).collect();
        let _ = write!(line, " raises {}", names.join(", "));
    }
    line
}

/// A shape in a word or two.
pub(crate) fn noun(shape: &Shape) -> String {
    within(shape, LEVELS)
}

/// The same, where so many levels are told; types without names may contain themselves.
fn within(shape: &Shape, levels: usize) -> String {
    let Some(levels) = levels.checked_sub(1) else { return "...".into() };
    let noun = |shape: &Shape| within(shape, levels);
    match shape {
        Shape::Sequence(sequence) => format!("sequence of {}", noun(&sequence.element)),
        Shape::Array(array) => format!("array of {} {}", array.len, noun(&array.element)),
        Shape::Reference(referent) if !referent.name.is_empty() => referent.name.to_string(),
        Shape::Optional(target) => format!("optional {}", noun(target)),
        Shape::Map(map) => format!("map of {} to {}", noun(&map.key), noun(&map.value)),
        Shape::Struct(fields) if fields.name.is_empty() => {
            let mut told = String::new();
            for (index, field) in fields.fields.iter().enumerate() {
                if told.len() > NOUNS {
                    told.push_str(", ...");
                    break;
                }
                told.push_str(if index > 0 { ", " } else { "" });
                told.push_str(&noun(&field.shape));
            }
            format!("({told})")
        }
        Shape::Text(text) => match text.kind {
            TextKind::Wide => "wide text".into(),
            TextKind::Path => "path".into(),
            TextKind::Signature => "signature".into(),
            TextKind::Narrow | TextKind::Counted => "text".into(),
        },
        Shape::Alias(alias) if alias.name.is_empty() => noun(&alias.target),
        other => other.noun().into_owned(),
    }
}
