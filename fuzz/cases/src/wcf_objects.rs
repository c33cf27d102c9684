//! Values that refer to others (`z:Id`, `z:Ref`), say their own type (`i:type`), or are of none: documents of both forms, read
//! as a contract's types and as anything. What is read of no contract's types is the same when it was written and read again.

use bytes::Bytes;
use everywire_model::body::Attachments;
use everywire_model::shape::{
    Alias, Arm, Enum, Field, Hold, Map, Name, Pointer, PointerKind, Struct, Text, Union,
};
use everywire_model::{Body, Budget, Codec, Context, Interface, Operation, Shape, Value};
use everywire_wcf::plan::Plan;
use everywire_wcf::values::{BINARY, BodyContext, ReaderQuotas, TEXT, Types, XML};
use std::sync::{Arc, LazyLock};

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(shapes);
static KNOWN: LazyLock<Arc<Types>> = LazyLock::new(known);

fn structure(name: &'static str, id: &'static str, fields: Vec<(&'static str, Shape)>) -> Shape {
    let fields = fields.into_iter().map(|(name, shape)| Field { name: name.into(), shape }).collect();
    Shape::Struct(Hold::new(Struct { name: name.into(), id: id.into(), fields }))
}

/// What `v` may be: a graph, lists, a family of derived types, anything.
fn shapes() -> Vec<Shape> {
    let text = || Shape::Text(Text::WIDE);
    let leaf = structure("T", "{urn:a}T", vec![("x", text()), ("n", Shape::I32)]);
    let pair = structure("P", "{urn:a}P", vec![("a", leaf.clone()), ("b", leaf.clone()), ("c", text())]);
    let held = Shape::Pointer(Hold::new(Pointer { kind: PointerKind::Unique, target: leaf.clone() }));
    let members = vec![(Name::Borrowed("Red"), 0), (Name::Borrowed("Blue"), 1)].into();
    let colour = Shape::Enum(Hold::new(Enum {
        name: "Color".into(),
        id: "{urn:a}Color".into(),
        members,
        bits: 32,
        open: false,
    }));
    let arm = |label, shape| Arm {
        labels: vec![label].into(),
        default: label == 0,
        field: Field { name: "arm".into(), shape },
    };
    let family = Shape::Union(Hold::new(Union {
        name: "Shape".into(),
        id: "{urn:a}Shape".into(),
        discriminator: Shape::I32,
        arms: vec![
            arm(0, structure("Shape", "{urn:a}Shape", vec![("n", Shape::I32)])),
            arm(1, structure("Circle", "{urn:a}Circle", vec![("n", Shape::I32), ("r", Shape::F64)])),
            arm(
                2,
                structure(
                    "Group",
                    "{urn:a}Group",
                    vec![("all", Shape::sequence(Shape::Variant)), ("n", Shape::I32)],
                ),
            ),
        ]
        .into(),
    }));
    let map = Shape::Map(Hold::new(Map { key: text(), value: Shape::Variant }));
    let deep =
        structure("D", "{urn:a}D", vec![("p", pair.clone()), ("q", pair.clone()), ("v", Shape::Variant)]);
    let alias = Shape::Alias(Hold::new(Alias {
        name: "Many".into(),
        id: "{urn:a}Many".into(),
        target: Shape::sequence(leaf.clone()),
    }));
    vec![
        Shape::Variant,
        pair.clone(),
        Shape::sequence(leaf),
        Shape::sequence(Shape::Variant),
        Shape::sequence(family.clone()),
        map,
        structure(
            "H",
            "{urn:a}H",
            vec![("a", held.clone()), ("b", held), ("any", Shape::Variant), ("k", colour)],
        ),
        deep,
        alias,
        Shape::sequence(Shape::sequence(pair)),
        family,
    ]
}

fn known() -> Arc<Types> {
    let parameters = |shape: &Shape| structure("", "", vec![("v", shape.clone())]);
    let operations = SHAPES.iter().map(|shape| {
        let mut operation = Operation::new("Op", vec![], Shape::Void);
        operation.arguments = parameters(shape);
        operation
    });
    let operations: Vec<Operation> = operations.collect();
    let interface = Interface {
        name: "I".into(),
        id: "{urn:a}I".into(),
        operations: operations.into(),
        ..Interface::default()
    };
    let plan = Plan::of(Some(&interface), &interface.operations[0]);
    plan.types.clone().expect("the operation has a value of any type")
}

/// Gives the octets to this case.
pub fn wcf_objects(data: &[u8]) {
    let [choice, document @ ..] = data else { return };
    let value = &SHAPES[usize::from(choice >> 2) % SHAPES.len()];
    let shape = structure("", "", vec![("v", value.clone())]);
    let types = (choice & 2 != 0).then(|| Arc::clone(&KNOWN));
    let quotas = if choice & 0x80 == 0 { ReaderQuotas::default() } else { ReaderQuotas::CLASSIC };
    let reading = |types| {
        Arc::new(Attachments {
            wire_state: Some(Arc::new(BodyContext { quotas, types, ..BodyContext::default() })),
            ..Attachments::default()
        })
    };
    let body = Body {
        bytes: Bytes::copy_from_slice(document),
        base: 0,
        little: true,
        dialect: if choice & 1 == 0 { BINARY } else { TEXT },
        context: Context::default(),
        budget: Budget::for_message(document.len() as u64),
        codec: &XML,
        beside: Some(reading(types)),
    };
    let Ok(value) = body.read(|source| Value::decode(&shape, source)) else { return };
    let Ok(again) = XML.write(&mut |sink| value.encode(&shape, sink)) else { return };
    // What a few references mean may be more than one document holds; and what a type seems to be that the contract has not
    // may be called as one that it has.
    if again.bytes.len() > 1 << 16 || choice & 2 != 0 {
        return;
    }
    let back = again.read(|source| Value::decode(&shape, source));
    let back = back.unwrap_or_else(|failure| panic!("what was written does not read: {failure}\n{value:?}"));
    assert_eq!(crate::nbfx::seen(&back), crate::nbfx::seen(&value));
}
