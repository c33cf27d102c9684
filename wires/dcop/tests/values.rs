//! Values against the examples of the protocol, and against themselves.

#![allow(clippy::unwrap_used)]

use crate::support::{body, shape, unhex};
use bytes::Bytes;
use everywire_dcop::DATA_STREAM;
use everywire_model::shape::{Enum, Field, Hold, Map, Pointer, PointerKind, Struct, Text};
use everywire_model::*;

/// The shape of one value of this type.
fn one(name: &str) -> Shape {
    shape(name).fields()[0].shape.clone()
}

fn encode(shape: &Shape, value: &Value) -> Result<Vec<u8>, Failure> {
    DATA_STREAM.write(&mut |sink| value.encode(shape, sink)).map(|body| body.bytes.to_vec())
}

fn decode(shape: &Shape, bytes: &[u8]) -> Result<Value, Failure> {
    body(bytes, "").read(|source| Value::decode(shape, source))
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn variant(shape: Shape, value: Value) -> Value {
    Value::Variant(Box::new((value::TypedShape(shape), value)))
}

fn rect() -> Value {
    let names = ["left", "top", "right", "bottom"];
    Value::Struct(
        names.iter().zip([1, 2, 10, 20]).map(|(n, v)| ((*n).to_owned(), Value::Integer(v))).collect(),
    )
}

#[test]
fn every_type_has_the_bytes_that_qt_writes() {
    let cases = [
        ("bool", Value::Bool(true), "01"),
        ("char", Value::Char('a'), "61"),
        ("uchar", Value::Integer(255), "ff"),
        ("unsigned char", Value::Integer(255), "ff"),
        ("short", Value::Integer(-2), "fffe"),
        ("ushort", Value::Integer(2), "0002"),
        ("int", Value::Integer(-2), "fffffffe"),
        ("unsigned int", Value::Integer(2), "00000002"),
        ("long int", Value::Integer(-2), "fffffffffffffffe"),
        ("ulong", Value::Integer(2), "0000000000000002"),
        ("Q_INT64", Value::Integer(-2), "fffffffffffffffe"),
        ("float", Value::Float(1.5), "3fc00000"),
        ("double", Value::Float(1.5), "3ff8000000000000"),
        ("QCString", text("abc"), "0000000461626300"),
        ("QCString", text(""), "0000000100"),
        ("QString", text("h\u{e9}"), "00000004006800e9"),
        ("QString", text("\u{1f600}"), "00000004d83dde00"),
        ("QString", text(""), "00000000"),
        ("QByteArray", Value::Bytes(Bytes::from_static(&[0; 5])), "000000050000000000"),
        ("QStringList", Value::List(vec![text("a"), text("bc")]), "000000020000000200610000000400620063"),
        ("QCStringList", Value::List(vec![text("a")]), "00000001000000026100"),
        (
            "QValueList<int>",
            Value::List(vec![Value::Integer(1), Value::Integer(2)]),
            "000000020000000100000002",
        ),
        (
            "QMap<QString,int>",
            Value::Map(vec![(text("a"), Value::Integer(7))]),
            "0000000100000002006100000007",
        ),
        ("QRect", rect(), "00000001000000020000000a00000014"),
        ("QColor", Value::Integer(0xff11_2233), "ff112233"),
        ("QDate", Value::Integer(2_453_372), "00256f7c"),
        ("QVariant", variant(Shape::Void, Value::Nothing), "00000000ffffffff"),
        ("QVariant", variant(one("QString"), text("a")), "00000003000000020061"),
        ("QVariant", variant(Shape::I32, Value::Integer(-1)), "00000010ffffffff"),
        ("QVariant", variant(Shape::U32, Value::Integer(1)), "0000001100000001"),
        ("QVariant", variant(Shape::Bool, Value::Bool(true)), "0000001201"),
        ("QVariant", variant(Shape::F64, Value::Float(1.5)), "000000133ff8000000000000"),
        ("QVariant", variant(one("QCString"), text("a")), "00000014000000026100"),
        ("QVariant", variant(one("QRect"), rect()), "0000000800000001000000020000000a00000014"),
        ("QVariant", variant(one("QColor"), Value::Integer(255)), "0000000a000000ff"),
        (
            "QVariant",
            variant(one("QByteArray"), Value::Bytes(Bytes::from_static(b"x"))),
            "0000001d0000000178",
        ),
        ("QVariant", variant(Shape::I64, Value::Integer(1)), "000000210000000000000001"),
        (
            "QVariant",
            variant(one("QValueList<QVariant>"), Value::List(vec![variant(Shape::Bool, Value::Bool(false))])),
            "00000002000000010000001200",
        ),
        (
            "QVariant",
            variant(
                one("QMap<QString,QVariant>"),
                Value::Map(vec![(text("k"), variant(Shape::I32, Value::Integer(1)))]),
            ),
            "000000010000000100000002006b0000001000000001",
        ),
    ];
    for (name, value, hex) in cases {
        let shape = one(name);
        let bytes = encode(&shape, &value).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        assert_eq!(bytes, unhex(hex), "{name}");
        assert_eq!(decode(&shape, &bytes).unwrap(), value, "{name}");
        // Every byte is needed: whatever is cut off is refused.
        for end in 0..bytes.len() {
            assert!(decode(&shape, &bytes[..end]).is_err(), "{name} cut to {end} bytes");
        }
    }
}

#[test]
fn null_reads_as_empty_and_what_follows_is_ignored() {
    assert_eq!(decode(&one("QString"), &[0xff; 4]).unwrap(), text(""));
    assert_eq!(decode(&one("QCString"), &[0; 4]).unwrap(), text(""));
    assert_eq!(decode(&one("int"), &[0, 0, 0, 7, 1, 2, 3]).unwrap(), Value::Integer(7));
    // Text of a locale that is not UTF-8.
    assert_eq!(decode(&one("QCString"), b"\0\0\0\x02\xe9\0").unwrap(), text("\u{e9}"));
}

#[test]
fn c4_strings_whose_counts_lie_are_refused() {
    for (name, hex) in [
        ("QString", "00000003006100"),
        ("QString", "00000002d83d"),
        ("QString", "7fffffff0061"),
        ("QString", "fffffffe0061"),
        ("QCString", "000000036162"),
        ("QCString", "000000026162"),
        ("QCString", "0000000461006200"),
        ("QCString", "ffffffff6100"),
        ("QByteArray", "ffffffff00"),
        ("QStringList", "ffffffff00"),
        ("QMap<QString,int>", "10000000"),
        ("QValueList<QVariant>", "20000000"),
        ("QVariant", "00000023"),
        ("QVariant", "00000005"),
    ] {
        assert!(decode(&one(name), &unhex(hex)).is_err(), "{name} {hex}");
    }
    // A QVariant of a type without a shape says which.
    let failure = decode(&Shape::Variant, &unhex("00000006")).unwrap_err();
    assert!(failure.kind() == Kind::Unsupported && failure.message().contains("QPixmap"), "{failure}");
    assert!(encode(&one("QCString"), &text("a\0b")).is_err());
    assert!(encode(&one("QString"), &text("a\0b")).is_ok());
}

#[test]
fn c4_variants_in_variants_are_bounded() {
    let mut deep = Vec::new();
    for _ in 0..10_000 {
        deep.extend(unhex("0000000200000001"));
    }
    deep.extend(unhex("0000001201"));
    let failure = decode(&Shape::Variant, &deep).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded);
}

#[test]
fn shapes_of_other_worlds_travel_where_there_is_a_way() {
    let color = Enum {
        name: "Color".into(),
        id: "".into(),
        members: vec![("red".into(), 0), ("green".into(), 1)].into(),
        bits: 32,
        open: false,
    };
    let enumeration = Shape::Enum(Hold::new(color));
    assert_eq!(encode(&enumeration, &Value::Member("green".into())).unwrap(), [0, 0, 0, 1]);
    assert!(decode(&enumeration, &[0, 0, 0, 2]).is_err());
    let maybe = Shape::Optional(Hold::new(Shape::I32));
    assert_eq!(encode(&maybe, &Value::Nothing).unwrap(), [0; 4]);
    assert_eq!(decode(&maybe, &unhex("0000000100000007")).unwrap(), Value::Integer(7));
    assert!(decode(&maybe, &unhex("000000020000000700000008")).is_err());
    let pointer = Shape::Pointer(Hold::new(Pointer { kind: PointerKind::Unique, target: Shape::I32 }));
    assert_eq!(encode(&pointer, &Value::Integer(7)).unwrap(), [0, 0, 0, 7]);
    assert_eq!(encode(&pointer, &Value::Nothing).unwrap_err().kind(), Kind::Unsupported);
    // Small numbers grow in a QVariant, which has only large ones.
    for (shape, hex) in [(Shape::I16, "00000010fffffffe"), (Shape::I8, "00000010fffffffe")] {
        assert_eq!(encode(&Shape::Variant, &variant(shape, Value::Integer(-2))).unwrap(), unhex(hex));
    }
    assert_eq!(
        encode(&Shape::Variant, &variant(Shape::F32, Value::Float(1.5))).unwrap(),
        unhex("000000133ff8000000000000")
    );
    let own = Shape::Struct(Hold::new(Struct { name: "Own".into(), id: "".into(), fields: vec![].into() }));
    let failure = encode(&Shape::Variant, &variant(own, Value::Struct(vec![]))).unwrap_err();
    assert_eq!(failure.kind(), Kind::Unsupported);
    let code = Value::TypeCode(Box::new(TypeCode::null()));
    assert_eq!(encode(&Shape::TypeCode, &code).unwrap_err().kind(), Kind::Unsupported);
    assert_eq!(decode(&Shape::TypeCode, &[0; 8]).unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn references_are_three_strings() {
    let any = describe::ANY_OBJECT;
    assert_eq!(encode(&any, &Value::Reference(None)).unwrap(), [0; 12]);
    assert_eq!(decode(&any, &unhex("000000000000000000000000")).unwrap(), Value::Reference(None));
    let bytes = unhex("0000000c62656e6368736572766572000000000662656e63680000000000");
    let Value::Reference(Some(reference)) = decode(&any, &bytes).unwrap() else { panic!() };
    let profile = &reference.profiles[0];
    assert_eq!((profile.wire, &*profile.key), ("dcop", &b"bench"[..]));
    assert_eq!(&**profile.component(everywire_dcop::APPLICATION).unwrap(), b"benchserver");
    assert_eq!(encode(&any, &Value::Reference(Some(reference))).unwrap(), bytes);
    let other =
        Reference { profiles: vec![Profile { wire: "other", ..Profile::default() }], ..Reference::default() };
    assert_eq!(encode(&any, &Value::Reference(Some(other))).unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn large_byte_arrays_are_not_copied() {
    let list = shape("QByteArray");
    let large = Bytes::from(vec![7u8; 1 << 20]);
    let body = DATA_STREAM.write(&mut |sink| (large.clone(),).marshal_list(&list, sink)).unwrap();
    assert_eq!(&*body.context, b"QByteArray");
    let (back,): (Bytes,) = body.decode(&list).unwrap();
    assert_eq!(back, large);
    assert_eq!(back.as_ptr(), body.bytes[4..].as_ptr());
    let numbers = shape("QValueList<double>");
    let body = DATA_STREAM.write(&mut |sink| (vec![1.5f64, 2.5],).marshal_list(&numbers, sink)).unwrap();
    assert_eq!(body.bytes, unhex("000000023ff80000000000004004000000000000"));
    assert_eq!(body.decode::<(Vec<f64>,)>(&numbers).unwrap().0, [1.5, 2.5]);
}

/// Random numbers, the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn shape(&mut self, depth: u32) -> Shape {
        let sides = if depth == 0 { 13 } else { 17 };
        match self.roll(sides) {
            0 => Shape::Bool,
            1 => Shape::U8,
            2 => Shape::I8,
            3 => Shape::U16,
            4 => Shape::I16,
            5 => Shape::U32,
            6 => Shape::I32,
            7 => Shape::U64,
            8 => Shape::I64,
            9 => Shape::F64,
            10 => Shape::Text(Text::WIDE),
            11 => Shape::Text(Text::NARROW),
            12 => Shape::WideChar,
            13 => Shape::sequence(self.shape(depth - 1)),
            14 => Shape::Map(Hold::new(Map { key: self.shape(0), value: self.shape(depth - 1) })),
            15 => Shape::Variant,
            _ => {
                let fields = (0..self.roll(4))
                    .map(|index| Field { name: format!("f{index}").into(), shape: self.shape(depth - 1) });
                let fields: Vec<_> = fields.collect();
                Shape::Struct(Hold::new(Struct { name: "S".into(), id: "".into(), fields: fields.into() }))
            }
        }
    }

    fn text(&mut self) -> String {
        (0..self.roll(6))
            .map(|_| ['a', 'Z', '\u{e9}', '\u{20ac}', '\u{1f600}'][usize::try_from(self.roll(5)).unwrap()])
            .collect()
    }

    fn value(&mut self, shape: &Shape) -> Value {
        let wide = i128::from(self.roll(u64::from(u32::MAX)));
        match shape {
            Shape::Bool => Value::Bool(wide % 2 == 0),
            Shape::U8 => Value::Integer(wide & 0xff),
            Shape::I8 => Value::Integer((wide & 0xff) - 128),
            Shape::U16 => Value::Integer(wide & 0xffff),
            Shape::I16 => Value::Integer((wide & 0xffff) - 32768),
            Shape::U32 | Shape::U64 => Value::Integer(wide & 0x7fff_ffff),
            Shape::I32 | Shape::I64 => Value::Integer((wide & 0x0fff_ffff) - 0x0800_0000),
            Shape::F64 => Value::Float(f64::from(u32::try_from(wide & 0xffff).unwrap()) / 8.0),
            Shape::Text(_) => Value::Text(self.text()),
            Shape::WideChar => Value::Char('\u{20ac}'),
            Shape::Sequence(list) if matches!(list.element, Shape::U8) => {
                Value::Bytes(self.text().into_bytes().into())
            }
            Shape::Sequence(list) => {
                Value::List((0..self.roll(4)).map(|_| self.value(&list.element)).collect())
            }
            Shape::Map(map) => Value::Map(
                (0..self.roll(4)).map(|_| (self.value(&map.key), self.value(&map.value))).collect(),
            ),
            Shape::Struct(fields) => Value::Struct(
                fields.fields.iter().map(|f| (f.name.to_string(), self.value(&f.shape))).collect(),
            ),
            Shape::Variant => {
                let inner = [Shape::I32, Shape::Bool, Shape::Text(Text::WIDE), Shape::F64, Shape::U64]
                    [usize::try_from(self.roll(5)).unwrap()]
                .clone();
                let value = self.value(&inner);
                variant(inner, value)
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn random_values_come_back_and_broken_ones_never_panic() {
    let mut dice = Dice(42);
    for round in 0..2000 {
        let shape = dice.shape(3);
        let value = dice.value(&shape);
        let mut bytes = encode(&shape, &value).unwrap();
        assert_eq!(decode(&shape, &bytes).unwrap(), value, "round {round}: {shape:?}");
        // Through the pipe, byte for byte.
        let piped = DATA_STREAM.write(&mut |sink| body(&bytes, "").pipe(&shape, sink)).unwrap();
        assert_eq!(piped.bytes, bytes);
        for _ in 0..4 {
            if let Some(len @ 1..) = Some(bytes.len() as u64) {
                let at = usize::try_from(dice.roll(len)).unwrap();
                bytes[at] = u8::try_from(dice.roll(256)).unwrap();
                if let Ok(read) = decode(&shape, &bytes) {
                    // Whatever was read can be written, but for what only reading tolerates.
                    let _ = encode(&shape, &read);
                }
            }
        }
    }
}

#[test]
fn texts_that_are_null_stay_null() {
    let wide = |text: Option<&str>| match text {
        None => vec![0xff; 4],
        Some(text) => {
            let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            [&u32::try_from(units.len()).unwrap().to_be_bytes()[..], &units].concat()
        }
    };
    // http://a.b/c?d, as KDE writes it: no user, no password, no `#`; and with an empty `#`.
    for reference in [None, Some("")] {
        let mut url = wide(Some("http"));
        for text in [None, None, Some("a.b"), Some("/c"), None, Some("d"), reference] {
            url.extend(wide(text));
        }
        url.extend([0, 0, 0]);
        let kind = one("KURL");
        assert_eq!(encode(&kind, &decode(&kind, &url).unwrap()).unwrap(), url);
    }
    for (text, null) in [(Text::WIDE, &[0xff; 4][..]), (Text::NARROW, &[0; 4][..])] {
        let kind = Shape::Optional(Hold::new(Shape::Text(text)));
        assert_eq!(decode(&kind, null).unwrap(), Value::Nothing);
        assert_eq!(encode(&kind, &Value::Nothing).unwrap(), null);
        for value in ["", "x"] {
            let value = Value::Text(value.into());
            let bytes = encode(&kind, &value).unwrap();
            assert_ne!(bytes, null);
            assert_eq!(decode(&kind, &bytes).unwrap(), value);
        }
    }
    assert_eq!(
        everywire_idl::kidl::types::name(&Shape::Optional(Hold::new(Shape::Text(Text::WIDE)))).unwrap(),
        "QString"
    );
}
