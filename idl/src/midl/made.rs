//! Structs that the printer makes of what MIDL has not; the reader knows what they are by their names.

use everywire_model::shape::{Field, Map, Order, PointerKind};
use everywire_model::{Hold, Interface, Shape};

/// Begins the name of the struct that a sequence is: `unsigned long count; [size_is(count)] E *items;`.
pub(super) const SEQUENCE: &str = "sequence_";
/// Begins the name of the struct that a map is; the name of the struct of its pairs follows.
pub(super) const MAP: &str = "map_";
/// Begins the name of the struct of a key and a value.
pub(super) const PAIR: &str = "pair_";

/// The documentation of the interface that listeners to an interface's signals implement.
pub(super) fn told_by(name: &str) -> String {
    format!("What {name} tells")
}

/// The interface whose signals are delivered by calls of this one, by its name in MIDL, if the printer made
/// this one for it. None for an interface that a person wrote. Both its documentation and its name must fit.
#[must_use]
pub fn listener_of(interface: &Interface) -> Option<String> {
    let of = interface.doc.strip_prefix("What ")?.strip_suffix(" tells")?;
    let name = super::print::ident(of);
    interface.name.strip_prefix(name.as_str())?.starts_with("Events").then_some(name)
}

/// The sequence or map that the printer made this struct of, which holds a count and a pointer to as many elements: the bytes of
/// both are the same.
pub(super) fn made_of(name: &str, fields: &[Field]) -> Option<Shape> {
    let [count, items] = fields else { return None };
    if count.name != "count" || items.name != "items" || !matches!(count.shape, Shape::U32) {
        return None;
    }
    let target = match &items.shape {
        Shape::Optional(target) => &**target,
        Shape::Pointer(pointer) if pointer.kind == PointerKind::Unique => &pointer.target,
        _ => return None,
    };
    let Shape::Sequence(sequence) = target else { return None };
    if sequence.order != Order::Conformant || sequence.size.as_deref() != Some("count") {
        return None;
    }
    if let Some(pair) = name.strip_prefix(MAP)
        && let Shape::Struct(held) = &sequence.element
        && let Some(held) = held.get().filter(|held| held.name == pair && pair.starts_with(PAIR))
        && let [key, value] = &*held.fields
        && (key.name == "key" && value.name == "value")
    {
        let map = Map { key: key.shape.clone(), value: value.shape.clone() };
        return Some(Shape::Map(Hold::new(map)));
    }
    name.starts_with(SEQUENCE).then(|| Shape::sequence(sequence.element.clone()))
}
