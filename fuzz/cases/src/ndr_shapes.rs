//! Shapes of DCOM's own: sized arrays, automation types, aliases that change the bytes.

use everywire_model::shape::{
    Alias, Arm, Field, Hold, Name, Order, Pointer, PointerKind, Sequence, Shape, Struct, Text, TextKind,
    Union,
};

fn field(name: &'static str, shape: Shape) -> Field {
    Field { name: Name::Borrowed(name), shape }
}

fn structure(name: &'static str, fields: Vec<Field>) -> Shape {
    Shape::Struct(Hold::new(Struct {
        name: Name::Borrowed(name),
        id: Name::Borrowed(""),
        fields: fields.into(),
    }))
}

fn alias(name: &'static str, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: Name::Borrowed(name), id: Name::Borrowed(""), target }))
}

fn sized(element: Shape, order: Order) -> Shape {
    let size = Some(Name::Borrowed("count"));
    Shape::Sequence(Hold::new(Sequence { element, bound: None, order, size }))
}

fn pointer(kind: PointerKind, target: Shape) -> Shape {
    Shape::Pointer(Hold::new(Pointer { kind, target }))
}

fn bstr() -> Shape {
    Shape::Text(Text { kind: TextKind::Counted, bound: None })
}

fn item_state() -> Shape {
    structure(
        "State",
        vec![
            field("client", Shape::U32),
            field("time", structure("FILETIME", vec![field("low", Shape::U32), field("high", Shape::U32)])),
            field("quality", Shape::U16),
            field("good", alias("VARIANT_BOOL", Shape::Bool)),
            field("value", Shape::Variant),
        ],
    )
}

fn choice() -> Shape {
    let arm = |label, shape| Arm { labels: vec![label].into(), default: false, field: field("arm", shape) };
    Shape::Union(Hold::new(Union {
        name: Name::Borrowed("Choice"),
        id: Name::Borrowed(""),
        discriminator: Shape::U16,
        arms: vec![
            arm(1, alias("VARIANT_BOOL", Shape::Bool)),
            arm(2, pointer(PointerKind::Unique, item_state())),
            arm(3, Shape::U64),
            arm(4, alias("SAFEARRAY", Shape::sequence(bstr()))),
        ]
        .into(),
    }))
}

/// A shape with everything that NDR, ORPC and automation have.
pub(crate) fn any(choice: u8) -> Shape {
    match choice % 36 {
        18 => structure(
            "",
            vec![field("count", Shape::U32), field("items", sized(item_state(), Order::Conformant))],
        ),
        19 => structure(
            "",
            vec![
                field("items", pointer(PointerKind::Unique, sized(Shape::U16, Order::ConformantVarying))),
                field("count", pointer(PointerKind::Unique, Shape::U32)),
            ],
        ),
        20 => structure(
            "Tail",
            vec![field("count", Shape::U16), field("items", sized(bstr(), Order::Conformant))],
        ),
        21 => alias("SAFEARRAY", Shape::sequence(Shape::Variant)),
        22 => alias("SAFEARRAY", Shape::sequence(Shape::sequence(Shape::I16))),
        23 => structure(
            "",
            vec![
                field("a", alias("SAFEARRAY", Shape::sequence(Shape::Bool))),
                field(
                    "b",
                    structure(
                        "In",
                        vec![field("c", alias("SAFEARRAY", Shape::sequence(bstr()))), field("d", bstr())],
                    ),
                ),
                field("e", Shape::U8),
            ],
        ),
        24 => Shape::sequence(self::choice()),
        25 => Shape::sequence(item_state()),
        26 => structure(
            "",
            vec![
                field("flags", Shape::sequence(alias("VARIANT_BOOL", Shape::Bool))),
                field("v", Shape::Variant),
            ],
        ),
        27 => pointer(PointerKind::Full, Shape::sequence(pointer(PointerKind::Full, item_state()))),
        28 => structure("", vec![field("a", Shape::U8), field("v", Shape::Variant), field("b", Shape::U16)]),
        29 => structure("S", vec![field("s", sized(Shape::U64, Order::Varying)), field("count", Shape::I8)]),
        // Most of what is new is in VARIANTs.
        30.. => Shape::sequence(Shape::Variant),
        other => crate::shapes::ndr(other),
    }
}
