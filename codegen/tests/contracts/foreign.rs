//! A contract made by hand, of what OMG IDL cannot say.

use everywire_model::shape::{
    Field, Map, Order, Pointer, PointerKind, Sequence, Shape, Struct, Text, TextKind,
};
use everywire_model::{Contract, Definition, Direction, Hold, Interface, Operation, Parameter};
use std::borrow::Cow;

/// Optional values, maps, pointers, handles, texts and arrays of other kinds.
pub(crate) fn contract() -> Contract {
    let text = |kind| Shape::Text(Text { kind, bound: None });
    let pointer = |kind, target| Shape::Pointer(Hold::new(Pointer { kind, target }));
    let field = |name: &'static str, shape| Field { name: Cow::Borrowed(name), shape };
    let item = Struct {
        name: Cow::Borrowed("Item"),
        id: Cow::Borrowed(""),
        fields: Cow::Owned(vec![
            field("label", text(TextKind::Counted)),
            field("price", Shape::Optional(Hold::new(Shape::F64))),
            field("tags", Shape::Map(Hold::new(Map { key: text(TextKind::Narrow), value: Shape::I32 }))),
            field("always", pointer(PointerKind::Ref, Shape::U16)),
            field("perhaps", pointer(PointerKind::Unique, text(TextKind::Wide))),
            field("file", Shape::Handle),
            field(
                "tail",
                Shape::Sequence(Hold::new(Sequence {
                    element: Shape::I16,
                    bound: Some(9),
                    order: Order::ConformantVarying,
                })),
            ),
        ]),
    };
    let item = Shape::Struct(Hold::new(item));
    let parameter = |name, shape| Parameter { direction: Direction::In, field: field(name, shape) };
    let store = Operation::new(
        "Store",
        vec![
            parameter("item", item.clone()),
            parameter("limit", Shape::Optional(Hold::new(Shape::U64))),
            parameter("path", text(TextKind::Path)),
        ],
        Shape::Optional(Hold::new(Shape::I8)),
    );
    let inventory = Interface {
        name: Cow::Borrowed("Inventory"),
        id: Cow::Borrowed("org.example.Inventory"),
        identities: Cow::Borrowed(&[]),
        bases: Cow::Borrowed(&[]),
        operations: Cow::Owned(vec![store]),
        inherited: 0,
        attributes: Cow::Borrowed(&[]),
        doc: Cow::Borrowed("What is in store."),
    };
    Contract { definitions: vec![Definition::Type(item), Definition::Interface(Hold::new(inventory))] }
}
