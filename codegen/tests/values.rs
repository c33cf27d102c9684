//! Values of generated types, there and back through CDR.

use crate::everything::figures::{self, *};
use everywire_giop::CDR;
use everywire_model::shape::Shape;
use everywire_model::{Body, Bytes, Codec, Exception, Kind, Marshal, Unmarshal, Value, Variant, describe};
use std::fmt::Debug;

fn write<T: Marshal>(shape: &Shape, value: &T) -> Body {
    CDR.write(&mut |sink| value.marshal(shape, sink)).unwrap()
}

fn there_and_back<T>(shape: &Shape, value: &T)
where
    T: Marshal + for<'a> Unmarshal<'a> + PartialEq + Debug,
{
    let body = write(shape, value);
    assert_eq!(&body.read(|source| T::unmarshal(shape, source)).unwrap(), value);
    // The description alone reads and writes the same bytes.
    let tree = body.read(|source| Value::decode(shape, source)).unwrap();
    assert_eq!(CDR.write(&mut |sink| tree.encode(shape, sink)).unwrap().bytes, body.bytes);
}

pub(crate) fn everything() -> Everything {
    Everything {
        yes: true,
        small: 200,
        s: -2,
        us: 65_000,
        l: -70_000,
        ul: 4_000_000_000,
        ll: i64::MIN,
        ull: u64::MAX,
        f: 1.5,
        d: -0.25,
        c: 'x',
        wc: 'ß',
        text: "grüße".into(),
        wide: "ώ".into(),
        brief: "short".into(),
        tint: Color::DeepBlue,
        at: Point { x: 1.0, y: 2.0 },
        data: Bytes::from_static(b"\0\x01\x02"),
        sum: [1, 2, 3, 4],
        grid: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        points: vec![Point { x: 3.0, y: 4.0 }, Point { x: 5.0, y: 6.0 }],
        names: vec!["a".into(), String::new()],
        rows: vec![vec![1, 2], vec![], vec![3]],
        anything: Some(crate::memory::reference("somewhere", "IDL:thing:1.0")),
        content: Variant::new(Shape::I32, Value::Integer(7)),
        r#type: 1,
        self_: 2,
    }
}

#[test]
fn a_struct_of_everything() {
    there_and_back(&describe::structure(&figures::describe::EVERYTHING), &everything());
}

#[test]
fn octets_take_the_byte_lane() {
    let shape = describe::alias(&figures::describe::DIGEST);
    assert_eq!(&write(&shape, &[9u8, 8, 7, 6]).bytes[..], [9, 8, 7, 6]);
    let shape = describe::alias(&figures::describe::BLOB);
    let blob: Blob = Bytes::from_static(&[9, 8, 7, 6]);
    assert_eq!(write(&shape, &blob).bytes, write(&shape, &vec![9u8, 8, 7, 6]).bytes);
    assert_eq!(write(&shape, &blob).bytes.len(), 8);
}

#[test]
fn a_struct_that_contains_itself() {
    let leaf = |label: &str| Tree { label: label.into(), children: vec![] };
    let tree = Tree { label: "root".into(), children: vec![leaf("left"), leaf("right")] };
    there_and_back(&describe::structure(&figures::describe::TREE), &tree);
}

#[test]
fn unions_of_every_kind() {
    let figure = describe::union(&figures::describe::FIGURE);
    there_and_back(&figure, &Figure::Radius(2.5));
    there_and_back(&figure, &Figure::Path(vec![Point { x: 1.0, y: 0.0 }]));

    let answer = describe::union(&figures::describe::ANSWER);
    there_and_back(&answer, &Answer::Text("one".into()));
    there_and_back(&answer, &Answer::Number(3, 33));
    there_and_back(&answer, &Answer::Flag(-9, true));

    let perhaps = describe::union(&figures::describe::PERHAPS);
    there_and_back(&perhaps, &Perhaps::Root(Tree { label: "x".into(), children: vec![] }));
    there_and_back(&perhaps, &Perhaps::Empty(false));

    let lettered = describe::union(&figures::describe::LETTERED);
    there_and_back(&lettered, &Lettered::Text("b".into()));
    there_and_back(&lettered, &Lettered::Empty('z'));
}

#[test]
fn a_discriminator_of_another_arm_is_refused() {
    let shape = describe::union(&figures::describe::ANSWER);
    for wrong in [Answer::Number(1, 5), Answer::Number(4, 5), Answer::Flag(2, true)] {
        let failure = CDR.write(&mut |sink| wrong.marshal(&shape, sink)).unwrap_err();
        assert_eq!(failure.kind(), Kind::BadArgument);
    }
    let shape = describe::union(&figures::describe::PERHAPS);
    let failure = CDR.write(&mut |sink| Perhaps::Empty(true).marshal(&shape, sink)).unwrap_err();
    assert_eq!(failure.kind(), Kind::BadArgument);
}

#[test]
fn a_number_that_is_no_member_is_malformed() {
    let body = CDR.write(&mut |sink| sink.u32(3)).unwrap();
    let shape = describe::enumeration(&figures::describe::COLOR);
    assert_eq!(body.read(|source| Color::unmarshal(&shape, source)).unwrap_err().kind(), Kind::Malformed);
}

#[test]
fn constants_and_exceptions() {
    assert_eq!(crate::everything::MAX_POINTS, 16);
    assert_eq!(crate::everything::GREETING, "say \"hello\"");
    assert_eq!(figures::FAVOURITE, Color::DeepBlue);
    assert_eq!(crate::everything::RATE, [0x12, 0x5c]);
    assert_eq!(
        (crate::everything::STRICT, crate::everything::HALF, crate::everything::LETTER),
        (true, 0.5, 'x')
    );
    assert_eq!(NotFound { name: "n".into() }.to_string(), "NotFound { name: \"n\" }");
    there_and_back(Broken::shape(), &Broken { tint: Color::Red, code: 5 });
    there_and_back(figures::Empty::shape(), &figures::Empty {});
}

#[test]
fn what_is_generated_describes_the_contract_it_came_from() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contracts/everything.idl");
    let contract = everywire_idl::read(path).unwrap();
    for generated in [
        &figures::describe::CANVAS,
        &figures::describe::NODE,
        &figures::describe::LISTENER,
        &figures::other::describe::BOTH,
    ] {
        let read = contract.interface(&generated.name).unwrap();
        assert_eq!((&read.id, read.inherited), (&generated.id, generated.inherited));
        assert_eq!(read.operations.len(), generated.operations.len());
        for (read, generated) in read.operations.iter().zip(generated.operations.iter()) {
            assert_eq!(
                (&read.name, &read.label, read.oneway),
                (&generated.name, &generated.label, generated.oneway)
            );
            for (read, generated) in
                [(&read.arguments, &generated.arguments), (&read.results, &generated.results)]
            {
                let nouns = |shape: &Shape| -> Vec<String> {
                    shape
                        .fields()
                        .iter()
                        .map(|field| format!("{} {}", field.name, field.shape.noun()))
                        .collect()
                };
                assert_eq!(nouns(read), nouns(generated));
            }
            let raised = |of: &everywire_model::Operation| -> Vec<String> {
                of.raises.iter().map(|raised| raised.id.to_string()).collect()
            };
            assert_eq!(raised(read), raised(generated));
        }
    }
}

/// What a value of any type may be is known from the description: the named types of the contract, also of other modules.
#[test]
fn an_interface_with_values_of_any_type_knows_the_types_of_its_contract() {
    let types = figures::describe::CANVAS.types.as_ref().map(|types| &types[..]).unwrap_or_default();
    let colour = types.iter().any(|shape| matches!(shape, Shape::Enum(it) if it.name == "figures::Color"));
    let other =
        types.iter().any(|shape| matches!(shape, Shape::Struct(it) if it.name == "figures::other::Option"));
    assert!(colour && other, "{types:?}");
    assert!(figures::describe::NODE.types.is_none(), "it has no such value");
}
