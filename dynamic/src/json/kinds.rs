//! Words for the shapes that a value may carry with itself.
//!
//! `shape_of` reads a word and `word_of` writes one; what one writes the other reads, except where a shape
//! has no word. A word may come from a stranger's JSON, so its brackets, which alone are levels, are counted before it is taken apart.

use super::{Notation, spelled};
use everywire_idl::wsdl::names::plain_type;
use everywire_model::shape::{Alias, Array, Field, Hold, Map, Name, Referent, Shape, Struct, Text, TextKind};
use std::borrow::Cow;

/// How many brackets a word may have, and so how deep shapes may nest in it. As many levels as type codes may
/// have.
const BRACKETS: usize = 32;

/// The remark on a struct that it is an exception. A type code tells exceptions from structs.
pub(super) const EXCEPTION: &str = "#exception";

/// The shape that a word names; `sequence<...>`, `array<..., N>`, `map<..., ...>` and `(..., ...)` nest. Other words are names
/// of types of a contract. None for a word that means nothing.
pub(super) fn shape_of(word: &str, notation: &dyn Notation) -> Option<Shape> {
    (word.matches(['<', '(']).count() <= BRACKETS).then(|| nested(word, notation))?
}

/// A shape with a remark that its wire reads.
pub(super) fn remarked(id: impl Into<Name>, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: Name::default(), id: id.into(), target }))
}

/// One level of a word, and by calls of itself the words inside it.
fn nested(word: &str, notation: &dyn Notation) -> Option<Shape> {
    let nested = |word: &str| nested(word, notation);
    Some(match word {
        "nothing" => Shape::Void,
        "boolean" => Shape::Bool,
        "u8" => Shape::U8,
        "i8" => Shape::I8,
        "u16" => Shape::U16,
        "i16" => Shape::I16,
        "u32" => Shape::U32,
        "i32" => Shape::I32,
        "u64" => Shape::U64,
        "i64" => Shape::I64,
        "f32" => Shape::F32,
        "f64" => Shape::F64,
        "character" => Shape::Char,
        "wide character" => Shape::WideChar,
        "text" => Shape::Text(Text::NARROW),
        "wide text" => Shape::Text(Text::WIDE),
        "path" => Shape::Text(Text { kind: TextKind::Path, bound: None }),
        "signature" => Shape::Text(Text { kind: TextKind::Signature, bound: None }),
        "octets" => Shape::sequence(Shape::U8),
        "any value" => Shape::Variant,
        "type code" => Shape::TypeCode,
        "handle" => Shape::Handle,
        "object reference" => Shape::Reference(Hold::new(Referent { name: "".into(), id: "".into() })),
        _ => {
            if let Some(shape) = spelled::named(word) {
                return Some(shape);
            }
            let inside = |open, close| word.strip_prefix::<&str>(open)?.strip_suffix::<&str>(close);
            if let Some(element) = inside("sequence<", ">") {
                return Some(Shape::sequence(nested(element)?));
            }
            if let Some(pair) = inside("array<", ">") {
                let [element, len] = parts(pair)[..] else { return None };
                let array = Array { element: nested(element)?, len: len.parse().ok()? };
                return Some(Shape::Array(Hold::new(array)));
            }
            // A name with a remark behind it: `Overdrawn #exception`, `text #fixed 5 2`.
            let split = |word| str::rsplit_once(word, " #").filter(|(_, rest)| !rest.contains(['>', ')']));
            if let Some((mut target, remark)) = split(word) {
                // The last remark counts. There may be any number of them, so they are no levels.
                while let Some((inner, _)) = split(target) {
                    target = inner;
                }
                // A type of the contract may bring a remark of its own.
                let target = match nested(target)? {
                    Shape::Alias(held) if held.name.is_empty() => held.target.clone(),
                    shape => shape,
                };
                return Some(remarked(format!("#{remark}"), target));
            }
            // No contract defines the types of XML Schema that it has.
            if let Some(shape) = notation.named(word).or_else(|| plain_type(word)) {
                return Some(shape);
            }
            if let Some(pair) = inside("map<", ">") {
                let [key, value] = parts(pair)[..] else { return None };
                return Some(Shape::Map(Hold::new(Map { key: nested(key)?, value: nested(value)? })));
            }
            let shapes = parts(inside("(", ")")?).into_iter().map(nested).collect::<Option<Vec<_>>>()?;
            let named = |(index, shape)| Field { name: numbered(index).into(), shape };
            let fields = Cow::Owned(shapes.into_iter().enumerate().map(named).collect());
            Shape::Struct(Hold::new(Struct { name: "".into(), id: "".into(), fields }))
        }
    })
}

/// What the commas outside of brackets part. Commas inside of brackets belong to the words there.
fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let outside = |c: char| {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(outside).map(str::trim).collect()
}

/// The word for a shape; what [`shape_of`] reads, where it can.
pub(super) fn word_of(shape: &Shape) -> String {
    if let Some(word) = spelled::word(shape) {
        return word.into();
    }
    if let Shape::Alias(held) = shape
        && held.name.is_empty()
        && held.id.starts_with('#')
    {
        return format!("{} {}", word_of(&held.target), held.id);
    }
    match shape.resolved() {
        Shape::Array(array) => format!("array<{}, {}>", word_of(&array.element), array.len),
        Shape::Text(text) if text.kind == TextKind::Wide => "wide text".into(),
        Shape::Text(text) if text.kind == TextKind::Path => "path".into(),
        Shape::Text(text) if text.kind == TextKind::Signature => "signature".into(),
        Shape::Sequence(sequence) if matches!(sequence.element.resolved(), Shape::U8) => "octets".into(),
        Shape::Sequence(sequence) => format!("sequence<{}>", word_of(&sequence.element)),
        Shape::Map(map) => format!("map<{}, {}>", word_of(&map.key), word_of(&map.value)),
        Shape::Struct(fields) if fields.name.is_empty() => {
            let words: Vec<_> = fields.fields.iter().map(|field| word_of(&field.shape)).collect();
            format!("({})", words.join(", "))
        }
        other => other.noun().into_owned(),
    }
}

/// Whether neither a struct nor its fields have names: their places count instead.
pub fn is_nameless(shape: &Struct) -> bool {
    let mut fields = shape.fields.iter().enumerate();
    shape.name.is_empty()
        && !shape.fields.is_empty()
        && fields.all(|(index, field)| field.name == numbered(index))
}

/// What a field without a name is called.
fn numbered(index: usize) -> String {
    format!("field_{}", index + 1)
}
