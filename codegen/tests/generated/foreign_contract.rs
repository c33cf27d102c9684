//! Shapes that OMG IDL cannot say, generated and compiled.

#[path = "../contracts/foreign.rs"]
mod made;

use crate::foreign::{Inventory, Item, describe};
use everywire_model::shape::{Order, PointerKind, Shape};
use everywire_model::{Operation, Remote};

#[test]
fn shapes_survive_generation() {
    let contract = made::contract();
    let made = contract.interface("Inventory").unwrap();
    let generated = <dyn Inventory>::interface();
    assert_eq!(
        format!("{:?}", shapes(&generated.operations[0])),
        format!("{:?}", shapes(&made.operations[0]))
    );
    let fields = &describe::ITEM.fields;
    assert!(matches!(&fields[4].shape, Shape::Pointer(pointer) if pointer.kind == PointerKind::Unique));
    assert!(
        matches!(&fields[6].shape, Shape::Sequence(tail) if tail.order == Order::ConformantVarying && tail.bound == Some(9))
    );
    // A pointer that is never null is always there; one that may be null is an option.
    let _: fn(Item) -> Box<u16> = |item| item.always;
    let _: fn(Item) -> Option<Box<String>> = |item| item.perhaps;
}

/// Names and shapes of what goes in, then of what comes out.
fn shapes(operation: &Operation) -> Vec<(String, String)> {
    [&operation.arguments, &operation.results]
        .into_iter()
        .flat_map(|list| list.fields())
        .map(|field| (field.name.to_string(), field.shape.noun().to_string()))
        .collect()
}
