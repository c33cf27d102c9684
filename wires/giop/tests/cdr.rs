//! CDR against bytes derived by hand from the specification, in both orders, and every shape there and back.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use everywire_giop::codesets::{Dialect, Narrow, Wide};
use everywire_giop::{CDR, GIOP};
use everywire_model::fixed::Fixed;
use everywire_model::shape::{
    Alias, Arm, Array, Enum, Field, Hold, Order, Pointer, PointerKind, Sequence, Text, TextKind, Union,
};
use everywire_model::value::TypedShape;
use everywire_model::visit::{Numbers, NumbersMut};
use everywire_model::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn write(little: bool, dialect: Dialect, base: usize, shape: &Shape, value: &Value) -> Result<Body, Failure> {
    CDR.write_as(little, dialect, base, &mut |sink| value.encode(shape, sink))
}

fn read(body: &Body, shape: &Shape) -> Result<Value, Failure> {
    body.read(|source| Value::decode(shape, source))
}

/// The value has these bytes in big- and little-endian, and is read back from them.
fn is(shape: Shape, value: Value, big: &str, little: &str) {
    for (order, bytes) in [(false, big), (true, little)] {
        let body = write(order, Dialect::OURS, 0, &shape, &value).unwrap();
        assert_eq!(body.bytes, hex(bytes), "{value:?}, little {order}");
        assert_eq!(read(&body, &shape).unwrap(), value, "little {order}");
        for cut in 0..body.bytes.len() {
            let short = Body { bytes: body.bytes.slice(..cut), ..body.clone() };
            assert!(read(&short, &shape).is_err(), "{value:?} cut at {cut} still decodes");
        }
        // What follows the last value concerns nobody.
        let mut long = body.bytes.to_vec();
        long.push(0);
        assert_eq!(read(&Body { bytes: long.into(), ..body }, &shape).unwrap(), value);
    }
}

fn fields(name: &'static str, values: Vec<(&'static str, Shape, Value)>) -> (Shape, Value) {
    let shapes = values.iter().map(|(name, shape, _)| (*name, shape.clone())).collect();
    let values = values.into_iter().map(|(name, _, value)| (name.to_owned(), value)).collect();
    (structure(name, shapes), Value::Struct(values))
}

/// Enumerations of other languages have values; what travels is the place of a member among all.
#[test]
fn an_enumeration_with_values_travels_by_its_ordinals() {
    let members = vec![("open".into(), 1), ("paid".into(), 100), ("lost".into(), -5)];
    let status = Shape::Enum(Hold::new(Enum {
        name: "m::Status".into(),
        id: "IDL:m/Status:1.0".into(),
        members: members.into(),
        bits: 32,
        open: false,
    }));
    is(status.clone(), Value::Member("open".into()), "0000 0000", "0000 0000");
    is(status.clone(), Value::Member("paid".into()), "0000 0001", "0100 0000");
    is(status.clone(), Value::Member("lost".into()), "0000 0002", "0200 0000");
    let Shape::Enum(held) = &status else { panic!() };
    let failure = CDR.write(&mut |sink| sink.enumerant(held, 0)).unwrap_err();
    assert!(failure.message().contains("0 is no member of m::Status"), "{failure}");
    let body = write(true, Dialect::OURS, 0, &Shape::U32, &Value::Integer(3)).unwrap();
    assert!(read(&body, &status).unwrap_err().message().contains("m::Status has no member 3"));
    // A type code has no values: whoever reads it gets the ordinal, and the same name.
    let any = Value::Variant(Box::new((TypedShape(status.clone()), Value::Member("lost".into()))));
    let body = write(true, Dialect::OURS, 0, &Shape::Variant, &any).unwrap();
    let Value::Variant(held) = read(&body, &Shape::Variant).unwrap() else { panic!() };
    assert_eq!(held.1, Value::Member("lost".into()));
}

fn color() -> Shape {
    let members = vec![("red".into(), 0), ("green".into(), 1), ("blue".into(), 2)];
    Shape::Enum(Hold::new(Enum {
        name: "m::Color".into(),
        id: "IDL:m/Color:1.0".into(),
        members: members.into(),
        bits: 32,
        open: false,
    }))
}

fn union() -> Shape {
    let arm = |labels: &[i64], default, name: &'static str, shape| Arm {
        labels: labels.to_vec().into(),
        default,
        field: Field { name: name.into(), shape },
    };
    Shape::Union(Hold::new(Union {
        name: "m::Choice".into(),
        id: "IDL:m/Choice:1.0".into(),
        discriminator: Shape::I16,
        arms: vec![
            arm(&[1, 2], false, "number", Shape::F64),
            arm(&[3], false, "word", text()),
            arm(&[], true, "flag", Shape::Bool),
        ]
        .into(),
    }))
}

#[test]
fn primitives_are_aligned_to_their_size() {
    let (shape, value) = fields(
        "",
        vec![
            ("a", Shape::U8, Value::Integer(0x11)),
            ("b", Shape::U16, Value::Integer(0x2233)),
            ("c", Shape::Bool, Value::Bool(true)),
            ("d", Shape::I32, Value::Integer(-2)),
            ("e", Shape::I8, Value::Integer(-1)),
            ("f", Shape::U64, Value::Integer(0x0102_0304_0506_0708)),
            ("g", Shape::Char, Value::Char('A')),
            ("h", Shape::F32, Value::Float(1.5)),
            ("i", Shape::I16, Value::Integer(-3)),
            ("j", Shape::F64, Value::Float(-2.0)),
            ("k", Shape::I64, Value::Integer(-2)),
            ("l", Shape::U32, Value::Integer(7)),
        ],
    );
    is(
        shape,
        value,
        "11 00 2233 01 000000 fffffffe ff 000000 0102030405060708 41 000000 3fc00000 fffd 000000000000 c000000000000000 fffffffffffffffe 00000007",
        "11 00 3322 01 000000 feffffff ff 000000 0807060504030201 41 000000 0000c03f fdff 000000000000 00000000000000c0 feffffffffffffff 07000000",
    );
}

#[test]
fn alignment_counts_from_the_start_of_the_message() {
    for base in 0..16 {
        let body = write(false, Dialect::OURS, base, &Shape::F64, &Value::Float(1.0)).unwrap();
        assert_eq!(body.bytes.len(), (8 - base % 8) % 8 + 8, "base {base}");
        assert_eq!(read(&body, &Shape::F64).unwrap(), Value::Float(1.0));
    }
}

#[test]
fn text_and_characters() {
    is(text(), Value::Text("hi".into()), "00000003 6869 00", "03000000 6869 00");
    is(text(), Value::Text(String::new()), "00000001 00", "01000000 00");
    is(text(), Value::Text("ü".into()), "00000003 c3bc 00", "03000000 c3bc 00");
    // Wide text of GIOP 1.2 is counted in octets; without a mark its units are big-endian in either order.
    is(wide_text(), Value::Text("aü".into()), "00000004 0061 00fc", "04000000 0061 00fc");
    is(wide_text(), Value::Text("🌍".into()), "00000004 d83c df0d", "04000000 d83c df0d");
    is(Shape::WideChar, Value::Char('a'), "02 0061", "02 0061");
    is(Shape::WideChar, Value::Char('🌍'), "04 d83c df0d", "04 d83c df0d");
}

/// ORBit2 sends every octet as a character, and so does JacORB, also where UTF-8 was agreed on.
#[test]
fn a_character_is_an_octet_in_every_set() {
    let latin = Dialect { minor: 2, narrow: Narrow::Latin1, wide: Wide::Utf16 };
    for dialect in [Dialect::OURS, latin] {
        let said = Value::Char('\u{ac}');
        let body = write(true, dialect, 0, &Shape::Char, &said).unwrap();
        assert_eq!(body.bytes, hex("ac"));
        assert_eq!(read(&body, &Shape::Char).unwrap(), said);
        let refused = write(true, dialect, 0, &Shape::Char, &Value::Char('世')).unwrap_err();
        assert_eq!(refused.kind(), Kind::BadArgument);
    }
    // What stands behind a character does not make it another one.
    let chars = Shape::sequence(Shape::Char);
    let said = Value::List(vec![Value::Char('é'), Value::Char('\u{90}')]);
    let body = write(true, Dialect::OURS, 0, &chars, &said).unwrap();
    assert_eq!(body.bytes, hex("02000000 e9 90"));
    assert_eq!(read(&body, &chars).unwrap(), said);
    // MICO sends two octets for `é` where UTF-8 was agreed on, and the rest of the message would be misread.
    let body = everywire_giop::Cdr::body(hex("c3 a9").into(), 0, false, Dialect::OURS, Budget::default());
    assert_eq!(read(&body, &Shape::Char).unwrap_err().kind(), Kind::Malformed);
}

#[test]
fn other_dialects_of_text() {
    let latin = Dialect { minor: 2, narrow: Narrow::Latin1, wide: Wide::Utf16 };
    let said = Value::Text("ü".into());
    let body = write(true, latin, 0, &text(), &said).unwrap();
    assert_eq!(body.bytes, hex("02000000 fc 00"));
    assert_eq!(read(&body, &text()).unwrap(), said);
    let refused = write(true, latin, 0, &text(), &Value::Text("世".into())).unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (Kind::BadArgument, Some("CORBA::DATA_CONVERSION")));
    // GIOP 1.1: units in the order of the message, counted, with a NUL.
    let old = Dialect { minor: 1, ..Dialect::OURS };
    let body = write(true, old, 0, &wide_text(), &said).unwrap();
    assert_eq!(body.bytes, hex("02000000 fc00 0000"));
    assert_eq!(read(&body, &wide_text()).unwrap(), said);
    let body = write(true, old, 0, &Shape::WideChar, &Value::Char('ü')).unwrap();
    assert_eq!(
        (&body.bytes[..], read(&body, &Shape::WideChar).unwrap()),
        (&hex("fc00")[..], Value::Char('ü'))
    );
    // GIOP 1.0 has none.
    let oldest = Dialect { minor: 0, ..Dialect::OURS };
    assert_eq!(write(true, oldest, 0, &wide_text(), &said).unwrap_err().kind(), Kind::Unsupported);
    // A byte-order mark is honoured.
    for raw in ["00000004 fffe fc00", "00000004 feff 00fc"] {
        let body = everywire_giop::Cdr::body(hex(raw).into(), 0, false, Dialect::OURS, Budget::default());
        assert_eq!(read(&body, &wide_text()).unwrap(), said);
    }
}

/// U+FEFF in front of wide text is read as a mark and dropped, and U+FFFE turns all units that follow. So text that begins with one of
/// them is written behind a mark of its own (CORBA 3.3 part 2, sections 9.3.1.6 and 9.3.2.7).
#[test]
fn wide_text_that_begins_like_a_byte_order_mark_stays_what_it_is() {
    is(wide_text(), Value::Text("\u{feff}a".into()), "00000006 feff feff 0061", "06000000 feff feff 0061");
    is(wide_text(), Value::Text("\u{fffe}a".into()), "00000006 feff fffe 0061", "06000000 feff fffe 0061");
    is(wide_text(), Value::Text("a\u{feff}".into()), "00000004 0061 feff", "04000000 0061 feff");
    is(Shape::WideChar, Value::Char('\u{feff}'), "04 feff feff", "04 feff feff");
    is(Shape::WideChar, Value::Char('\u{fffe}'), "04 feff fffe", "04 feff fffe");
    // JacORB writes these characters without a mark; two octets have no place for one, so they are the character.
    for (raw, said) in [("02 feff", '\u{feff}'), ("02 fffe", '\u{fffe}')] {
        let body = everywire_giop::Cdr::body(hex(raw).into(), 0, false, Dialect::OURS, Budget::default());
        assert_eq!(read(&body, &Shape::WideChar).unwrap(), Value::Char(said), "{raw}");
    }
    // GIOP 1.1 has no marks.
    let old = Dialect { minor: 1, ..Dialect::OURS };
    let said = Value::Text("\u{feff}a".into());
    let body = write(true, old, 0, &wide_text(), &said).unwrap();
    assert_eq!(body.bytes, hex("03000000 fffe 6100 0000"));
    assert_eq!(read(&body, &wide_text()).unwrap(), said);
}

#[test]
fn malformed_text_is_refused() {
    for (shape, raw) in [
        (text(), "00000000"),
        (text(), "00000002 6869"),
        (text(), "00000003 68 00 00"),
        (text(), "00000003 ff fe 00"),
        (text(), "ffffffff 68 00"),
        (wide_text(), "00000003 006100"),
        (wide_text(), "00000002 d83c"),
        (wide_text(), "00000002 0000"),
        (Shape::WideChar, "03 006100"),
        (Shape::WideChar, "00"),
        (Shape::WideChar, "04 0061 0062"),
        (Shape::Bool, "02"),
    ] {
        let body = everywire_giop::Cdr::body(hex(raw).into(), 0, false, Dialect::OURS, Budget::default());
        assert_eq!(read(&body, &shape).unwrap_err().kind(), Kind::Malformed, "{raw}");
    }
    let nul = write(true, Dialect::OURS, 0, &text(), &Value::Text("a\0b".into())).unwrap_err();
    assert_eq!(nul.kind(), Kind::BadArgument);
}

#[test]
fn sequences_arrays_and_octets() {
    let numbers = |of: &[i128]| Value::List(of.iter().map(|n| Value::Integer(*n)).collect());
    is(Shape::sequence(Shape::U16), numbers(&[1, 2]), "00000002 0001 0002", "02000000 0100 0200");
    is(
        Shape::sequence(Shape::U64),
        numbers(&[1]),
        "00000001 00000000 0000000000000001",
        "01000000 00000000 0100000000000000",
    );
    // An empty sequence ends with its count, without the padding of elements that are not there.
    is(Shape::sequence(Shape::U64), numbers(&[]), "00000000", "00000000");
    is(Shape::sequence(Shape::U8), Value::Bytes(bytes(b"abc")), "00000003 616263", "03000000 616263");
    let array = |element, len| Shape::Array(Hold::new(Array { element, len }));
    is(array(Shape::I32, 2), numbers(&[1, -1]), "00000001 ffffffff", "01000000 ffffffff");
    is(array(Shape::U8, 2), Value::Bytes(bytes(b"ab")), "6162", "6162");
    is(
        array(array(Shape::I16, 2), 2),
        Value::List(vec![numbers(&[1, 2]), numbers(&[3, 4])]),
        "0001 0002 0003 0004",
        "0100 0200 0300 0400",
    );
    is(
        Shape::sequence(text()),
        Value::List(vec![Value::Text("a".into()), Value::Text("bc".into())]),
        "00000002 00000002 6100 0000 00000003 626300",
        "02000000 02000000 6100 0000 03000000 626300",
    );
    is(color(), Value::Member("blue".into()), "00000002", "02000000");
    let bounded = Shape::Sequence(Hold::new(Sequence {
        element: Shape::U16,
        bound: Some(1),
        order: Order::Free,
        size: None,
    }));
    assert_eq!(
        write(true, Dialect::OURS, 0, &bounded, &numbers(&[1, 2])).unwrap_err().kind(),
        Kind::BadArgument
    );
    let short = Shape::Text(Text { kind: TextKind::Narrow, bound: Some(1) });
    assert_eq!(
        write(true, Dialect::OURS, 0, &short, &Value::Text("ab".into())).unwrap_err().kind(),
        Kind::BadArgument
    );
}

#[test]
fn structs_unions_aliases_and_pointers() {
    let (inner, inside) =
        fields("m::Inner", vec![("a", Shape::U8, Value::Integer(1)), ("b", Shape::F64, Value::Float(1.0))]);
    let (shape, value) = fields("m::Outer", vec![("x", Shape::U8, Value::Integer(9)), ("y", inner, inside)]);
    is(shape, value, "09 01 000000000000 3ff0000000000000", "09 01 000000000000 000000000000f03f");
    let arm = |label, name: &str, value| Value::Union(label, Some(Box::new((name.to_owned(), value))));
    is(
        union(),
        arm(2, "number", Value::Float(1.0)),
        "0002 000000000000 3ff0000000000000",
        "0200 000000000000 000000000000f03f",
    );
    is(
        union(),
        arm(3, "word", Value::Text("w".into())),
        "0003 0000 00000002 7700",
        "0300 0000 02000000 7700",
    );
    is(union(), arm(-7, "flag", Value::Bool(true)), "fff9 01", "f9ff 01");
    let alias = Shape::Alias(Hold::new(Alias {
        name: "m::Count".into(),
        id: "IDL:m/Count:1.0".into(),
        target: Shape::U32,
    }));
    is(alias, Value::Integer(5), "00000005", "05000000");
    let pointer = Shape::Pointer(Hold::new(Pointer { kind: PointerKind::Ref, target: Shape::U32 }));
    is(pointer.clone(), Value::Integer(5), "00000005", "05000000");
    assert_eq!(
        write(true, Dialect::OURS, 0, &pointer, &Value::Nothing).unwrap_err().kind(),
        Kind::Unsupported
    );
}

#[test]
fn what_cdr_cannot_carry_is_said() {
    let map = Shape::Map(Hold::new(shape::Map { key: Shape::U32, value: Shape::U32 }));
    assert_eq!(
        write(true, Dialect::OURS, 0, &map, &Value::Map(vec![])).unwrap_err().kind(),
        Kind::Unsupported
    );
    let optional = Shape::Optional(Hold::new(Shape::U32));
    assert_eq!(
        write(true, Dialect::OURS, 0, &optional, &Value::Nothing).unwrap_err().kind(),
        Kind::Unsupported
    );
    let body = everywire_giop::Cdr::body(hex("00000000").into(), 0, false, Dialect::OURS, Budget::default());
    for shape in [map, optional] {
        assert_eq!(read(&body, &shape).unwrap_err().kind(), Kind::Unsupported);
    }
}

#[test]
fn references_and_nil() {
    let any = Shape::Reference(Hold::new(shape::Referent { name: "".into(), id: "".into() }));
    is(any.clone(), Value::Reference(None), "00000001 00 000000 00000000", "01000000 00 000000 00000000");
    let reference = GIOP.publish(
        "IDL:x:1.0",
        &[BindAddress::socket("giop", Endpoint::Tcp { host: "h".into(), port: 1 })],
        b"key",
    );
    for little in [false, true] {
        for base in [0, 4, 7] {
            let value = Value::Reference(Some(reference.clone()));
            let body = write(little, Dialect::OURS, base, &any, &value).unwrap();
            assert_eq!(read(&body, &any).unwrap(), value);
        }
    }
}

#[test]
fn bulk_numbers_are_the_bytes_of_single_ones() {
    let shape = Shape::sequence(Shape::F64);
    let numbers: Vec<f64> = (0..100).map(|n| f64::from(n) / 3.0).collect();
    for little in [false, true] {
        let bulk = CDR.write_as(little, Dialect::OURS, 4, &mut |sink| {
            sink.open(&shape, numbers.len())?;
            sink.numbers(Numbers::F64(&numbers))?;
            sink.close(&shape)
        });
        let single = CDR.write_as(little, Dialect::OURS, 4, &mut |sink| {
            sink.open(&shape, numbers.len())?;
            numbers.iter().try_for_each(|number| sink.f64(*number))?;
            sink.close(&shape)
        });
        let (bulk, single) = (bulk.unwrap(), single.unwrap());
        assert_eq!(bulk.bytes, single.bytes);
        let back = single.read(|source| {
            let mut back = vec![0.0; source.open(&shape)?];
            source.numbers(NumbersMut::F64(&mut back))?;
            source.close(&shape)?;
            Ok(back)
        });
        assert_eq!(back.unwrap(), numbers);
    }
}

fn any(shape: Shape, value: Value) -> Value {
    Value::Variant(Box::new((TypedShape(shape), value)))
}

#[test]
fn any_of_every_shape_goes_there_and_back() {
    is(Shape::Variant, any(Shape::I32, Value::Integer(7)), "00000003 00000007", "03000000 07000000");
    is(
        Shape::Variant,
        any(text(), Value::Text("a".into())),
        "00000012 00000000 00000002 6100",
        "12000000 00000000 02000000 6100",
    );
    let (outer, inside) = fields(
        "m::Pair",
        vec![
            ("color", color(), Value::Member("green".into())),
            ("list", Shape::sequence(Shape::F64), Value::List(vec![Value::Float(1.0)])),
            ("choice", union(), Value::Union(3, Some(Box::new(("word".into(), Value::Text("x".into())))))),
            ("any", Shape::Variant, any(Shape::WideChar, Value::Char('w'))),
            ("same", color(), Value::Member("red".into())),
            ("wide", wide_text(), Value::Text("w".into())),
            (
                "array",
                Shape::Array(Hold::new(Array { element: Shape::I16, len: 2 })),
                Value::List(vec![Value::Integer(1), Value::Integer(2)]),
            ),
        ],
    );
    let reference =
        Shape::Reference(Hold::new(shape::Referent { name: "m::I".into(), id: "IDL:m/I:1.0".into() }));
    for (shape, value) in
        [(outer, inside), (reference, Value::Reference(None)), (Shape::Void, Value::Nothing)]
    {
        for little in [false, true] {
            for base in 0..8 {
                let value = any(shape.clone(), value.clone());
                let body = write(little, Dialect::OURS, base, &Shape::Variant, &value).unwrap();
                assert_eq!(read(&body, &Shape::Variant).unwrap(), value);
                for cut in 0..body.bytes.len() {
                    let short = Body { bytes: body.bytes.slice(..cut), ..body.clone() };
                    assert!(read(&short, &Shape::Variant).is_err());
                }
            }
        }
    }
}

/// Compact type codes have identifiers and no names; another language's remark on a shape is neither.
#[test]
fn aliases_without_a_name_keep_what_identifies_them() {
    let alias = |id: &'static str| {
        Shape::Alias(Hold::new(Alias { name: "".into(), id: id.into(), target: Shape::U32 }))
    };
    let body =
        |id| write(false, Dialect::OURS, 0, &Shape::Variant, &any(alias(id), Value::Integer(5))).unwrap();
    let compact = "00000015 00000024 00 000000 00000010 49444c3a6d2f436f756e743a312e3000 00000001 00 000000 00000005 00000005";
    let known = body("IDL:m/Count:1.0");
    assert_eq!(known.bytes, hex(compact));
    assert_eq!(read(&known, &Shape::Variant).unwrap(), any(alias("IDL:m/Count:1.0"), Value::Integer(5)));
    for mark in ["", "@Id", "#", "*", "?2", "{urn:x}Count"] {
        assert_eq!(body(mark).bytes, hex("00000005 00000005"), "{mark}");
    }
}

#[test]
fn the_type_code_of_an_enumeration_is_an_encapsulation() {
    let body =
        write(false, Dialect::OURS, 0, &Shape::Variant, &any(color(), Value::Member("blue".into()))).unwrap();
    let expected = "00000011 00000042 00 000000 00000010 49444c3a6d2f436f6c6f723a312e3000 00000006 436f6c6f7200 0000 \
         00000003 00000004 72656400 00000006 677265656e00 0000 00000005 626c756500";
    // The encapsulation ends after `blue`; the value is aligned from the message's start.
    let mut expected = hex(expected);
    let len = expected.len() - 8;
    expected[7] = u8::try_from(len).unwrap();
    expected.resize(expected.len().next_multiple_of(4), 0);
    expected.extend(2u32.to_be_bytes());
    assert_eq!(body.bytes, expected);
}

/// An `any` may hold an exception, whose value begins with its repository id again (CORBA 3.3 part 2, 9.3.5.2).
#[test]
fn an_any_with_an_exception_is_read_and_written_back() {
    let code = "00000016 00000000 00 000000 0000000c 49444c3a6d2f453a312e3000 00000002 4500 0000 00000001 \
        00000002 6e00 0000 00000003";
    let mut raw = hex(code);
    raw[7] = u8::try_from(raw.len() - 8).unwrap();
    raw.extend(hex("0000000c 49444c3a6d2f453a312e3000 00000007"));
    let body = everywire_giop::Cdr::body(raw.clone().into(), 0, false, Dialect::OURS, Budget::default());
    let value = read(&body, &Shape::Variant).unwrap();
    match &value {
        Value::Variant(held) => {
            assert_eq!(held.1, Value::Struct(vec![("n".into(), Value::Integer(7))]));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(write(false, Dialect::OURS, 0, &Shape::Variant, &value).unwrap().bytes, raw);
    for cut in 0..raw.len() {
        let short = Body { bytes: body.bytes.slice(..cut), ..body.clone() };
        assert!(read(&short, &Shape::Variant).is_err(), "cut at {cut}");
    }
}

/// A fixed-point number is its decimal digits, two in an octet, and a sign (9.3.2.7); what follows it is read as well.
#[test]
fn an_any_with_a_fixed_is_read_and_written_back() {
    let raw = hex("0000001c 0005 0002 01234d");
    let body = everywire_giop::Cdr::body(raw.clone().into(), 0, false, Dialect::OURS, Budget::default());
    let value = read(&body, &Shape::Variant).unwrap();
    assert!(matches!(&value, Value::Variant(held) if held.1 == Value::Bytes(bytes(&[0x01, 0x23, 0x4d]))));
    assert_eq!(write(false, Dialect::OURS, 0, &Shape::Variant, &value).unwrap().bytes, raw);
    let two = structure("", vec![("a", Shape::Variant), ("b", Shape::U8)]);
    let mut more = raw;
    more.push(9);
    let body = everywire_giop::Cdr::body(more.into(), 0, false, Dialect::OURS, Budget::default());
    assert!(matches!(read(&body, &two).unwrap(), Value::Struct(fields) if fields[1].1 == Value::Integer(9)));
}

/// As omniORB sends a struct of these members; a number begins wherever the octets before it end.
#[test]
fn fixed_point_numbers_are_octets_without_alignment() {
    let (price, count) = (Fixed { digits: 7, scale: 2 }, Fixed { digits: 4, scale: 0 });
    let item = structure("", vec![("cost", price.shape()), ("pieces", count.shape()), ("mark", Shape::U8)]);
    let raw = hex("9999999d 01234c 07");
    let body = everywire_giop::Cdr::body(raw.clone().into(), 0, false, Dialect::OURS, Budget::default());
    let value = read(&body, &item).unwrap();
    let Value::Struct(fields) = &value else { panic!("{value:?}") };
    let text = |kind: Fixed, at: usize| match &fields[at].1 {
        Value::Bytes(octets) => kind.text(octets),
        other => panic!("{other:?}"),
    };
    assert_eq!((text(price, 0).as_deref(), text(count, 1).as_deref()), (Some("-99999.99"), Some("1234")));
    assert_eq!(write(false, Dialect::OURS, 0, &item, &value).unwrap().bytes, raw);
}

/// IIOP.NET boxes strings and arrays (9.3.4, value tags): the box is opened, and written back as it came.
#[test]
fn value_boxes_in_an_any_are_opened_and_written_back() {
    let id = "00000023 49444c3a6f6d672e6f72672f434f5242412f57537472696e6756616c75653a312e3000 00";
    let code = |bare: &str| {
        let mut code = hex(&format!("0000001e 00000000 00 000000 {id} 00000001 00 000000 {bare}"));
        code[7] = u8::try_from(code.len() - 8).unwrap();
        code
    };
    let said = |raw: Vec<u8>| {
        let body = everywire_giop::Cdr::body(raw.into(), 0, false, Dialect::OURS, Budget::default());
        read(&body, &Shape::Variant)
    };
    let boxed = |bare: &str, value: &str| {
        let raw = [code(bare), hex(value)].concat();
        let read = said(raw.clone())?;
        assert_eq!(write(false, Dialect::OURS, 0, &Shape::Variant, &read).unwrap().bytes, raw, "{value}");
        let Value::Variant(held) = read else { panic!("{read:?}") };
        // A remark, by which this wire knows the box again; to all others it is what is in the box.
        let Shape::Alias(remark) = &held.0.0 else { panic!("{held:?}") };
        assert!(remark.name.is_empty() && remark.id.starts_with('#'), "{remark:?}");
        Ok::<_, Failure>(any(remark.target.clone(), held.1))
    };
    let wide = "0000001b 00000000";
    let text = any(wide_text(), Value::Text("hi".into()));
    assert_eq!(boxed(wide, &format!("7fffff02 {id} 00000004 0068 0069")).unwrap(), text);
    assert_eq!(boxed(wide, "7fffff00 00000004 0068 0069").unwrap(), text, "without an id");
    let other = "0000000c 49444c3a6d2f453a312e3000";
    assert_eq!(boxed(wide, &format!("7fffff02 {other} 00000004 0068 0069")).unwrap(), text, "another id");
    let nothing = any(Shape::Optional(Hold::new(wide_text())), Value::Nothing);
    assert_eq!(boxed(wide, "00000000").unwrap(), nothing, "null");
    let array = "00000013 00000010 00 000000 00000003 00000000 00000000";
    let array = array.replace("00000010", "0000000c").replacen(" 00000000 00000000", " 00000000", 1);
    let numbers = Value::List(vec![Value::Integer(1), Value::Integer(2)]);
    assert_eq!(
        boxed(&array, &format!("7fffff02 {id} 00000002 00000001 00000002")).unwrap(),
        any(Shape::sequence(Shape::I32), numbers)
    );
    // Chunks, lists of ids and values that were sent before are refused, a tag that is none as well.
    for (tag, kind) in [
        ("7fffff0a 00000000", Kind::Unsupported),
        ("7fffff06 00000000", Kind::Unsupported),
        ("ffffffff fffffff0", Kind::Unsupported),
        ("12345678 00000000", Kind::Malformed),
    ] {
        assert_eq!(boxed(wide, tag).unwrap_err().kind(), kind, "{tag}");
    }
}
