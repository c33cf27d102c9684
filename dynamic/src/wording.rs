//! The words for operations and types.

use everywire_model::fixed::Fixed;
use everywire_model::shape::{Shape, TextKind};
use everywire_model::{Direction, Operation, long_double};
use std::fmt::Write as _;

/// How many levels of a type are told: types without names may be long, and those of a peer may contain
/// themselves.
const LEVELS: usize = 32;
/// Up to what length the parts of a type without a name are told, in bytes.
const NOUNS: usize = 1000;

/// The last part of a scoped name.
pub fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// An operation as a line: `deposit(amount: i64, inout note: text) -> i64 raises Bank::Overdrawn`; before
/// it, whether it may run twice (`idempotent`), and whether nobody answers (`oneway`).
pub fn signature(operation: &Operation) -> String {
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
    let twice = if operation.idempotent { "idempotent " } else { "" };
    let oneway = if operation.oneway { "oneway " } else { "" };
    // A wire name may hold the types; people see them once.
    let name = if operation.name.contains('(') { &operation.label } else { &operation.name };
    let mut line = format!("{twice}{oneway}{name}({})", parameters.join(", "));
    if !matches!(operation.returns, Shape::Void) {
        // Writing to a string cannot fail; likewise below.
        let _ = write!(line, " -> {}", noun(&operation.returns));
    }
    if !operation.raises.is_empty() {
        let names: Vec<_> = operation.raises.iter().map(|raised| raised.name.as_ref()).collect();
        let _ = write!(line, " raises {}", names.join(", "));
    }
    line
}

/// A shape in a word or two.
pub fn noun(shape: &Shape) -> String {
    within(shape, LEVELS)
}

/// The same, where so many levels are told; types without names may contain themselves.
fn within(shape: &Shape, levels: usize) -> String {
    let Some(levels) = levels.checked_sub(1) else { return "...".into() };
    let noun = |shape: &Shape| within(shape, levels);
    match shape {
        // Octets that are remarked to be numbers.
        _ if let Some(fixed) = Fixed::of(shape) => format!("fixed<{}, {}>", fixed.digits, fixed.scale),
        Shape::Array(array) if long_double::is_array(array) => "long double".into(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Hold;
    use everywire_model::shape::Array;

    #[test]
    fn numbers_that_are_octets_have_their_own_words() {
        let octets = |len| Shape::Array(Hold::new(Array { element: Shape::U8, len }));
        let price = Fixed { digits: 7, scale: 2 }.shape();
        assert_eq!((&*noun(&price), &*noun(&octets(4))), ("fixed<7, 2>", "array of 4 u8"));
        let list = Shape::sequence(long_double::SHAPE);
        assert_eq!((&*noun(&list), &*noun(&octets(16))), ("sequence of long double", "array of 16 u8"));
    }
}
