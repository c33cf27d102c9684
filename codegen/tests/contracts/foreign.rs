//! A contract made by hand, of what OMG IDL cannot say.

use everywire_model::shape::{
    Alias, Field, Map, Order, Pointer, PointerKind, Sequence, Shape, Struct, Text, TextKind,
};
use everywire_model::{
    Attribute, Contract, Definition, Direction, Hold, Interface, Notify, Operation, Parameter, Signal,
};
use std::borrow::Cow;

/// Optional values, maps, pointers, handles, texts and arrays of other kinds; types that have no name, or a name from
/// elsewhere; signals, two of them inherited.
pub(crate) fn contract() -> Contract {
    let item = item();
    let mut inventory = interface("Inventory", "org.example.Inventory", operations(&item));
    inventory.doc = Cow::Borrowed("What is in store.");
    inventory.attributes = Cow::Owned(vec![Attribute {
        name: Cow::Borrowed("Capacity"),
        shape: Shape::U32,
        getter: 1,
        setter: None,
        notify: Notify::Change,
    }]);
    let mut sold = Signal::new(
        "Sold(Item,f64)",
        vec![field("item", item.clone()), field("price", Shape::F64), field("to", pairs(Shape::F64))],
    );
    (sold.label, sold.doc) = (Cow::Borrowed("Sold"), Cow::Borrowed("An item left the store.\n\nFor good."));
    inventory.signals = Cow::Owned(vec![sold, Signal::new("Closed", vec![])]);
    let inventory = Hold::new(inventory);

    let own = Operation::new("watch", vec![], Shape::Void);
    let all = inventory.operations.iter().cloned().chain([own]).collect();
    let mut archive = interface("deep::Archive", "org.example.Archive", all);
    archive.inherited = inventory.operations.len();
    archive.bases = Cow::Owned(vec![inventory.clone()]);
    archive.attributes = inventory.attributes.clone();
    let burnt = Signal::new("Burnt", vec![field("what", pairs(text(TextKind::Path)))]);
    archive.signals = Cow::Owned(inventory.signals.iter().cloned().chain([burnt]).collect());
    Contract {
        definitions: vec![
            Definition::Type(item),
            Definition::Interface(inventory),
            Definition::Interface(Hold::new(archive)),
        ],
    }
}

fn item() -> Shape {
    let fields = vec![
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
                size: None,
            })),
        ),
    ];
    Shape::Struct(Hold::new(Struct {
        name: Cow::Borrowed("Item"),
        id: Cow::Borrowed(""),
        fields: Cow::Owned(fields),
    }))
}

fn operations(item: &Shape) -> Vec<Operation> {
    let store = Operation::new(
        "Store",
        vec![
            parameter("item", item.clone()),
            parameter("limit", Shape::Optional(Hold::new(Shape::U64))),
            parameter("path", text(TextKind::Path)),
        ],
        Shape::Optional(Hold::new(Shape::I8)),
    );
    let capacity = Operation::new("_get_Capacity", vec![], Shape::U32);
    let mut find = Operation::new(
        "find(long int)",
        vec![parameter("at", alias("long int", Shape::I64)), parameter("", alias("QDate", Shape::U32))],
        Shape::sequence(nameless(vec![Shape::I32, text(TextKind::Narrow)])),
    );
    find.label = Cow::Borrowed("find");
    let mut by_name = Operation::new(
        "find(QMap<N::A,double>)",
        vec![parameter("prices", Shape::Map(Hold::new(Map { key: Shape::F64, value: Shape::I32 })))],
        // Too many fields for a tuple.
        Shape::sequence(nameless(vec![Shape::U8; 13])),
    );
    by_name.label = Cow::Borrowed("find_2");
    let shared = alias("QMap<N::A,double>", pairs(Shape::I32));
    let on = Operation::new("on", vec![parameter("shared", shared)], nameless(vec![Shape::Handle]));
    vec![store, capacity, find, by_name, on]
}

fn interface(name: &'static str, id: &'static str, operations: Vec<Operation>) -> Interface {
    Interface {
        name: Cow::Borrowed(name),
        id: Cow::Borrowed(id),
        identities: Cow::Borrowed(&[]),
        types: None,
        notes: Cow::Borrowed(&[]),
        kind: everywire_model::InterfaceKind::Plain,
        bases: Cow::Borrowed(&[]),
        operations: Cow::Owned(operations),
        inherited: 0,
        attributes: Cow::Borrowed(&[]),
        signals: Cow::Borrowed(&[]),
        doc: Cow::Borrowed(""),
    }
}

fn field(name: &'static str, shape: Shape) -> Field {
    Field { name: Cow::Borrowed(name), shape }
}

fn parameter(name: &'static str, shape: Shape) -> Parameter {
    Parameter { direction: Direction::In, field: field(name, shape) }
}

fn text(kind: TextKind) -> Shape {
    Shape::Text(Text { kind, bound: None })
}

fn pointer(kind: PointerKind, target: Shape) -> Shape {
    Shape::Pointer(Hold::new(Pointer { kind, target }))
}

fn alias(name: &'static str, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: Cow::Borrowed(name), id: Cow::Borrowed(""), target }))
}

/// Pairs of two values whose first tells which second belongs to it: a map with structs for keys.
fn pairs(value: Shape) -> Shape {
    let key = nameless(vec![text(TextKind::Narrow), Shape::Bool]);
    Shape::Map(Hold::new(Map { key, value }))
}

fn nameless(shapes: Vec<Shape>) -> Shape {
    let fields = shapes
        .into_iter()
        .enumerate()
        .map(|(index, shape)| Field { name: Cow::Owned(format!("field_{}", index + 1)), shape })
        .collect();
    Shape::Struct(Hold::new(Struct {
        name: Cow::Borrowed(""),
        id: Cow::Borrowed(""),
        fields: Cow::Owned(fields),
    }))
}
