//! Shapes for the codecs' targets, chosen by a byte.

use everywire_model::shape::{
    Arm, Array, Enum, Field, Hold, Name, Order, Pointer, PointerKind, Referent, Sequence, Shape, Struct,
    Text, TextKind, Union,
};
use std::sync::OnceLock;

fn named(text: &'static str) -> Name {
    Name::Borrowed(text)
}

fn field(name: &'static str, shape: Shape) -> Field {
    Field { name: named(name), shape }
}

fn structure(name: &'static str, fields: Vec<Field>) -> Shape {
    Shape::Struct(Hold::new(Struct { name: named(name), id: named(""), fields: fields.into() }))
}

fn basics() -> Shape {
    structure(
        "Basics",
        vec![
            field("flag", Shape::Bool),
            field("l", Shape::I32),
            field("d", Shape::F64),
            field("s", Shape::I16),
            field("text", Shape::Text(Text::NARROW)),
            field("ll", Shape::I64),
            field("bytes", Shape::sequence(Shape::U8)),
        ],
    )
}

fn colour() -> Enum {
    Enum {
        name: named("Colour"),
        id: named(""),
        members: vec![(named("red"), 0), (named("blue"), 1)].into(),
        bits: 32,
        open: false,
    }
}

fn union() -> Shape {
    let arm =
        |labels: Vec<i64>, default, shape| Arm { labels: labels.into(), default, field: field("arm", shape) };
    Shape::Union(Hold::new(Union {
        name: named("Choice"),
        id: named(""),
        discriminator: Shape::I32,
        arms: vec![
            arm(vec![1, 2], false, Shape::F64),
            arm(vec![-7], false, basics()),
            arm(vec![], true, Shape::U8),
        ]
        .into(),
    }))
}

fn sequence(element: Shape, order: Order, bound: Option<u32>) -> Shape {
    Shape::Sequence(Hold::new(Sequence { element, bound, order, size: None }))
}

fn pointer(kind: PointerKind, target: Shape) -> Shape {
    Shape::Pointer(Hold::new(Pointer { kind, target }))
}

/// A nameless struct: parameters, or results.
pub(crate) fn record(fields: Vec<(&'static str, Shape)>) -> Shape {
    structure("", fields.into_iter().map(|(name, shape)| field(name, shape)).collect())
}

/// A shape that every wire can carry.
pub(crate) fn common(choice: u8) -> Shape {
    match choice % 12 {
        0 => basics(),
        1 => Shape::sequence(basics()),
        2 => Shape::sequence(Shape::sequence(Shape::F64)),
        3 => Shape::Text(Text::NARROW),
        4 => Shape::Text(Text::WIDE),
        5 => Shape::Enum(Hold::new(colour())),
        6 => Shape::Variant,
        7 => sequence(Shape::I32, Order::Conformant, Some(4)),
        8 => Shape::Array(Hold::new(Array { element: Shape::I16, len: 5 })),
        9 => Shape::sequence(structure("Nothing", vec![])),
        10 => Shape::sequence(Shape::Text(Text::NARROW)),
        _ => structure(
            "",
            vec![field("a", Shape::I32), field("b", Shape::sequence(Shape::U8)), field("c", Shape::I32)],
        ),
    }
}

/// Value types: with bases, cut down and not, that contain themselves, boxes, and several that one message shares.
fn values() -> &'static [Shape] {
    static SHAPES: OnceLock<Vec<Shape>> = OnceLock::new();
    SHAPES.get_or_init(|| {
        let text = "valuetype Money { public long units; private string note; };
            valuetype Coin : truncatable Money { public octet kind; };
            valuetype Gold : Coin { public sequence<octet> raw; };
            valuetype Tree { public long item; public sequence<Tree> further; public Tree next; };
            valuetype Name string;
            typedef sequence<Money> Purse;
            valuetype Purses Purse;
            struct Account { Purse coins; Name nick; Coin best; Purses spare; };
            interface Bank { void keep(in Money a, in Coin b, in Gold c, in Tree d, in Name e, in Purse f, in Purses g, in Account h); };";
        let contract = everywire_idl::omg::parse(text, "values.idl").expect("it is right");
        let bank = contract.interfaces().next().expect("an interface");
        bank.operations[0].parameters.iter().map(|parameter| parameter.field.shape.clone()).collect()
    })
}

/// A shape with what CORBA has beside.
pub(crate) fn corba(choice: u8) -> Shape {
    if choice == u8::MAX {
        return Shape::sequence(Shape::TypeCode);
    }
    // What inputs of before begin with keeps its meaning below.
    if let Some(shape) = choice.checked_sub(240).and_then(|number| values().get(usize::from(number))) {
        return shape.clone();
    }
    match choice % 18 {
        12 => union(),
        13 => Shape::sequence(union()),
        14 => Shape::Reference(Hold::new(Referent { name: named(""), id: named("") })),
        15 => Shape::sequence(Shape::Variant),
        16 => Shape::WideChar,
        17 => Shape::sequence(Shape::Bool),
        other => common(other),
    }
}

/// A shape with what NDR has beside.
pub(crate) fn ndr(choice: u8) -> Shape {
    match choice % 18 {
        // A struct without members is not in the language: MIDL and C706 want one at least.
        9 => pointer(PointerKind::Ref, basics()),
        12 => pointer(PointerKind::Unique, basics()),
        13 => Shape::sequence(pointer(PointerKind::Unique, Shape::Text(Text::WIDE))),
        14 => structure(
            "Last",
            vec![
                field("n", Shape::U32),
                field("items", sequence(Shape::U16, Order::ConformantVarying, None)),
            ],
        ),
        15 => Shape::Text(Text { kind: TextKind::Counted, bound: None }),
        16 => Shape::sequence(Shape::Variant),
        17 => pointer(PointerKind::Full, Shape::sequence(Shape::I32)),
        other => common(other),
    }
}
