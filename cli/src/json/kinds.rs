//! Words for the shapes that a value may carry with itself.

use everywire::model::shape::{Shape, Text};

/// The shape that a word names; `sequence<...>` nests.
pub(super) fn shape_of(word: &str) -> Option<Shape> {
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
        "octets" => Shape::sequence(Shape::U8),
        "any value" => Shape::Variant,
        _ => {
            // As deep as the word is long; words of a command line or a document of limited depth.
            let inner = word.strip_prefix("sequence<")?.strip_suffix('>')?;
            if inner.matches('<').count() > 16 {
                return None;
            }
            Shape::sequence(shape_of(inner)?)
        }
    })
}

/// The word for a shape; what [`shape_of`] reads, where it can.
pub(super) fn word_of(shape: &Shape) -> String {
    match shape.resolved() {
        Shape::Text(text) if *text == Text::WIDE => "wide text".into(),
        Shape::Sequence(sequence) if matches!(sequence.element.resolved(), Shape::U8) => "octets".into(),
        Shape::Sequence(sequence) => format!("sequence<{}>", word_of(&sequence.element)),
        other => other.noun().into_owned(),
    }
}
