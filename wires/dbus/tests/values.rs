//! Values: random ones survive both byte orders, and known ones have the specification's bytes.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use everywire_dbus::{DBUS, TAG_NONCE, VALUES, Values};
use everywire_model::describe::*;
use everywire_model::shape::{Order, Sequence};
use everywire_model::{
    Body, Codec, Failure, Hold, Kind, MarshalList, Sink, UnmarshalList, Value, Variant, Wire, shape,
};

/// A generator of pseudo-random numbers (an LCG of Knuth's), so that a failure comes again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn bits(&mut self) -> u64 {
        self.roll(1 << 31) << 33 | self.roll(1 << 31) << 2 | self.roll(4)
    }

    /// A shape, and a value that fits it.
    fn value(&mut self, depth: u32) -> (Shape, Value) {
        let bits = self.bits();
        let basic = depth == 0;
        match self.roll(if basic { 15 } else { 23 }) {
            0 => (Shape::U8, integer(bits as u8)),
            1 => (Shape::Bool, Value::Bool(bits & 1 == 1)),
            2 => (Shape::I16, integer(bits as i16)),
            3 => (Shape::U16, integer(bits as u16)),
            4 => (Shape::I32, integer(bits as i32)),
            5 => (Shape::U32, integer(bits as u32)),
            6 => (Shape::I64, integer(bits as i64)),
            7 => (Shape::U64, integer(bits)),
            8 => (Shape::F64, Value::Float(bits as f64 / 3.0)),
            9 => (Shape::I8, integer(bits as i8)),
            10 => (Shape::F32, Value::Float(f64::from(bits as f32))),
            11 => (TEXT, Value::Text("äb".repeat(self.roll(9) as usize))),
            12 => (text(TextKind::Path, None), Value::Text(format!("/a{}/b", bits % 9))),
            13 => (
                text(TextKind::Signature, None),
                Value::Text(["", "a{sv}", "(ii)as"][self.roll(3) as usize].into()),
            ),
            14 => (Shape::Char, Value::Char(['x', 'ß', '語'][self.roll(3) as usize])),
            15 => {
                let fields: Vec<_> = (0..1 + self.roll(4)).map(|_| self.value(depth - 1)).collect();
                structure_of(fields)
            }
            16 => {
                let (element, _) = self.value(depth - 1);
                let octets = matches!(element, Shape::U8);
                let items: Vec<_> = (0..self.roll(4)).map(|_| self.at(&element)).collect();
                let value = if octets {
                    Value::Bytes(
                        items
                            .iter()
                            .map(|item| if let Value::Integer(i) = item { *i as u8 } else { 0 })
                            .collect(),
                    )
                } else {
                    Value::List(items)
                };
                (Shape::sequence(element), value)
            }
            17 => {
                let ((key, _), (held, _)) = (self.value(0), self.value(depth - 1));
                self.map(key, held)
            }
            18 => {
                let ((key, _), (held, _)) = (self.value(depth - 1), self.value(depth - 1));
                self.map(key, held)
            }
            19 => {
                // What a variant holds comes back by its signature alone.
                let inner = [
                    (Shape::U32, integer(bits as u32)),
                    (TEXT, Value::Text("v".into())),
                    (Shape::sequence(Shape::F64), Value::List(vec![Value::Float(1.5)])),
                    (Shape::Variant, Value::Variant(Box::new((typed(Shape::Bool), Value::Bool(true))))),
                ];
                let (shape, value) = inner[self.roll(4) as usize].clone();
                (Shape::Variant, Value::Variant(Box::new((typed(shape), value))))
            }
            20 => {
                let (shape, value) = self.value(depth - 1);
                let shape = Shape::Optional(Hold::new(shape));
                if matches!(value, Value::Nothing) || bits & 1 == 1 {
                    (shape, Value::Nothing)
                } else {
                    (shape, value)
                }
            }
            21 => {
                let shape = Shape::Union(Hold::new(Union {
                    name: "Choice".into(),
                    id: "".into(),
                    discriminator: Shape::I16,
                    arms: vec![
                        Arm {
                            labels: vec![1].into(),
                            default: false,
                            field: Field { name: "a".into(), shape: TEXT },
                        },
                        Arm {
                            labels: vec![2].into(),
                            default: false,
                            field: Field { name: "b".into(), shape: Shape::F64 },
                        },
                    ]
                    .into(),
                }));
                let value = match self.roll(3) {
                    0 => Value::Union(7, None),
                    1 => Value::Union(1, Some(Box::new(("a".into(), Value::Text("arm".into()))))),
                    _ => Value::Union(2, Some(Box::new(("b".into(), Value::Float(0.5))))),
                };
                (shape, value)
            }
            _ => {
                let shape = Shape::Enum(Hold::new(Enum {
                    name: "Colour".into(),
                    id: "".into(),
                    members: vec![("red".into(), 0), ("blue".into(), -7)].into(),
                    bits: 32,
                    open: false,
                }));
                (shape, Value::Member(if bits & 1 == 1 { "red".into() } else { "blue".into() }))
            }
        }
    }

    fn map(&mut self, key: Shape, held: Shape) -> (Shape, Value) {
        let pairs = (0..self.roll(4)).map(|_| (self.at(&key), self.at(&held))).collect();
        (Shape::Map(Hold::new(Map { key, value: held })), Value::Map(pairs))
    }

    /// Another value of a shape: found by trying, or the first one made.
    fn at(&mut self, shape: &Shape) -> Value {
        match shape {
            Shape::U8 => integer(self.bits() as u8),
            Shape::U32 => integer(self.bits() as u32),
            Shape::Text(Text { kind: TextKind::Narrow, .. }) => {
                Value::Text("t".repeat(self.roll(6) as usize))
            }
            Shape::Text(Text { kind: TextKind::Path, .. }) => Value::Text("/p".into()),
            Shape::Text(_) => Value::Text("s".into()),
            Shape::Bool => Value::Bool(true),
            Shape::F64 | Shape::F32 => Value::Float(2.25),
            Shape::Char => Value::Char('c'),
            Shape::Variant => Value::Variant(Box::new((typed(Shape::U8), integer(3u8)))),
            Shape::Struct(shape) => Value::Struct(
                shape.fields.iter().map(|field| (field.name.to_string(), self.at(&field.shape))).collect(),
            ),
            Shape::Sequence(sequence) if matches!(sequence.element, Shape::U8) => {
                Value::Bytes(Bytes::from_static(b"abc"))
            }
            Shape::Sequence(sequence) => Value::List(vec![self.at(&sequence.element)]),
            Shape::Map(map) => Value::Map(vec![(self.at(&map.key), self.at(&map.value))]),
            Shape::Optional(_) => Value::Nothing,
            Shape::Union(_) => Value::Union(9, None),
            Shape::Enum(_) => Value::Member("blue".into()),
            _ => integer(5u8),
        }
    }
}

fn integer(value: impl Into<i128>) -> Value {
    Value::Integer(value.into())
}

fn typed(shape: Shape) -> everywire_model::value::TypedShape {
    everywire_model::value::TypedShape(shape)
}

fn structure_of(fields: Vec<(Shape, Value)>) -> (Shape, Value) {
    let name = |index: usize| format!("field_{}", index + 1);
    let shapes =
        fields.iter().enumerate().map(|(i, (shape, _))| Field { name: name(i).into(), shape: shape.clone() });
    let shape = Shape::Struct(Hold::new(Struct { name: "".into(), id: "".into(), fields: shapes.collect() }));
    let values = fields.into_iter().enumerate().map(|(i, (_, value))| (name(i), value));
    (shape, Value::Struct(values.collect()))
}

fn written(little: bool, shape: &Shape, value: &Value) -> Result<Body, Failure> {
    VALUES.write_as(little, &mut |sink| value.encode(shape, sink))
}

#[test]
fn random_values_survive_both_byte_orders() {
    let mut differed = 0;
    for seed in 0..4000 {
        let mut dice = Dice(seed);
        let fields = (0..1 + dice.roll(3)).map(|_| dice.value(3)).collect();
        let (shape, value) = structure_of(fields);
        let bodies = [true, false].map(|little| written(little, &shape, &value).unwrap());
        differed += usize::from(bodies[0].bytes != bodies[1].bytes);
        assert_eq!(bodies[0].context, bodies[1].context);
        for body in &bodies {
            let back = body.read(|source| Value::decode(&shape, source));
            let back = back.unwrap_or_else(|failure| panic!("seed {seed}: {failure}\n{value:?}\n{body:?}"));
            assert_eq!(format!("{back:?}"), format!("{value:?}"), "seed {seed}");
            // Without a contract: what the signature says reads too, and writes the same bytes.
            let own = VALUES.shape(body).unwrap();
            let again = body.read(|source| Value::decode(&own, source)).unwrap();
            assert_eq!(written(body.little, &own, &again).unwrap().bytes, body.bytes, "seed {seed}");
            // From one order to the other, without building values.
            let piped = VALUES.write_as(!body.little, &mut |sink| body.pipe(&shape, sink)).unwrap();
            let other = bodies.iter().find(|other| other.little != body.little).unwrap();
            assert_eq!(piped.bytes, other.bytes, "seed {seed}");
        }
    }
    assert!(differed > 3000);
}

#[test]
fn truncated_and_flipped_values_fail_or_read_but_never_panic() {
    let (mut failed, mut read) = (0, 0);
    for seed in 0..600 {
        let mut dice = Dice(seed);
        let fields = (0..1 + dice.roll(3)).map(|_| dice.value(3)).collect();
        let (shape, value) = structure_of(fields);
        let body = written(seed % 2 == 0, &shape, &value).unwrap();
        for _ in 0..30 {
            let mut raw = body.bytes.to_vec();
            if raw.is_empty() {
                break;
            }
            let at = dice.roll(raw.len() as u64) as usize;
            if dice.roll(3) == 0 {
                raw.truncate(at)
            } else {
                raw[at] ^= 1 << dice.roll(8)
            }
            let broken = Body { bytes: Bytes::from(raw), ..body.clone() };
            match broken.read(|source| Value::decode(&shape, source)) {
                Ok(_) => read += 1,
                Err(_) => failed += 1,
            }
        }
    }
    assert!(failed > 1000 && read > 1000, "{failed} {read}");
}

fn list(shapes: Vec<Shape>) -> Shape {
    structure_of(shapes.into_iter().map(|shape| (shape, Value::Nothing)).collect()).0
}

fn encode<T: MarshalList>(shape: &Shape, values: T) -> Result<Body, Failure> {
    VALUES.write_as(true, &mut |sink: &mut dyn Sink| values.marshal_list(shape, sink))
}

fn decode<T: for<'a> UnmarshalList<'a>>(
    signature: &str,
    little: bool,
    raw: &[u8],
    shape: &Shape,
) -> Result<T, Failure> {
    let signature = signature.as_bytes().into();
    Values::body(Bytes::copy_from_slice(raw), 0, little, signature, Vec::new()).decode(shape)
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    // The examples of the section "Marshaling Containers": an array of one 64-bit number, and variants.
    let shape = list(vec![Shape::sequence(Shape::I64)]);
    let body = encode(&shape, (vec![5i64],)).unwrap();
    assert_eq!(&body.bytes[..], b"\x08\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0");
    assert_eq!(&body.context[..], b"ax");
    let empty = encode(&shape, (Vec::<i64>::new(),)).unwrap();
    assert_eq!(&empty.bytes[..], b"\0\0\0\0\0\0\0\0", "an empty array has the padding too");
    let shape = list(vec![Shape::U8, Shape::Variant]);
    let body = encode(&shape, (1u8, Variant::new(Shape::U64, integer(2u8)))).unwrap();
    assert_eq!(&body.bytes[..], b"\x01\x01t\0\0\0\0\0\x02\0\0\0\0\0\0\0");
    let shape = list(vec![Shape::Map(Hold::new(Map { key: TEXT, value: Shape::Variant }))]);
    let body =
        encode(&shape, (vec![("a".to_owned(), Variant::new(Shape::Bool, Value::Bool(true)))],)).unwrap();
    assert_eq!(&body.bytes[..], b"\x10\0\0\0\0\0\0\0\x01\0\0\0a\0\x01b\0\0\0\0\x01\0\0\0");
    assert_eq!(&body.context[..], b"a{sv}");
}

#[test]
fn wrong_values_are_named() {
    let boolean = list(vec![Shape::Bool]);
    let refused = |failure: Failure, word: &str| {
        assert_eq!(failure.kind(), Kind::Malformed);
        assert!(failure.message().contains(word), "{failure}");
    };
    refused(decode::<(bool,)>("b", true, b"\x02\0\0\0", &boolean).unwrap_err(), "boolean");
    assert_eq!(decode::<(bool,)>("b", false, b"\0\0\0\x01", &boolean).unwrap(), (true,));
    let string = list(vec![TEXT]);
    refused(decode::<(String,)>("s", true, b"\x02\0\0\0a\0\0", &string).unwrap_err(), "NUL");
    refused(decode::<(String,)>("s", true, b"\x01\0\0\0\xff\0", &string).unwrap_err(), "UTF-8");
    refused(decode::<(String,)>("s", true, b"\x01\0\0\0ab", &string).unwrap_err(), "end with NUL");
    let padded = list(vec![Shape::U8, Shape::U32]);
    refused(decode::<(u8, u32)>("yu", true, b"\x01\0\x01\0\0\0\0\0", &padded).unwrap_err(), "padding");
    let path = list(vec![text(TextKind::Path, None)]);
    refused(decode::<(String,)>("o", true, b"\x02\0\0\0a/\0", &path).unwrap_err(), "path");
    let signature = list(vec![text(TextKind::Signature, None)]);
    refused(decode::<(String,)>("g", true, b"\x01a\0", &signature).unwrap_err(), "signature");
    refused(decode::<(bool,)>("b", true, b"\x01\0\0\0\0", &boolean).unwrap_err(), "follow");
    let variant = list(vec![Shape::Variant]);
    refused(decode::<(Variant,)>("v", true, b"\x02yy\0\0\0", &variant).unwrap_err(), "one complete type");
    let bounded = list(vec![Shape::Sequence(Hold::new(Sequence {
        element: Shape::U32,
        bound: Some(1),
        order: Order::Free,
        size: None,
    }))]);
    refused(decode::<(Vec<u32>,)>("au", true, b"\x08\0\0\0\0\0\0\0\0\0\0\0", &bounded).unwrap_err(), "bound");
}

/// A `float` of a contract travels as a double: one that is too large for it does not become infinite.
#[test]
fn a_number_that_is_no_float_is_refused() {
    for (number, fits) in [(1e300, false), (-1e39, false), (3.4e38, true), (f64::INFINITY, true)] {
        let body = written(true, &Shape::F64, &Value::Float(number)).unwrap();
        let read = body.read(|source| source.f32());
        assert_eq!(read.is_ok(), fits, "{number}: {read:?}");
        if let Err(failure) = read {
            assert!(failure.message().contains("too large for a `float`"), "{failure}");
        }
    }
}

#[test]
fn what_cannot_travel_says_so() {
    let nul = encode(&list(vec![TEXT]), ("a\0b",)).unwrap_err();
    assert_eq!(nul.kind(), Kind::BadArgument);
    let path = encode(&list(vec![text(TextKind::Path, None)]), ("a",)).unwrap_err();
    assert!(path.message().contains("path"), "{path}");
    let empty = Shape::Struct(Hold::new(Struct { name: "E".into(), id: "".into(), fields: vec![].into() }));
    let shape = list(vec![empty.clone()]);
    let failure = VALUES.write(&mut |sink: &mut dyn Sink| {
        sink.open(&shape, 1)?;
        sink.open(&empty, 0)
    });
    assert_eq!(failure.unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn large_octets_are_not_copied() {
    let shape = list(vec![Shape::sequence(Shape::U8)]);
    let large = Bytes::from(vec![7u8; 1 << 20]);
    let body = encode(&shape, (large.clone(),)).unwrap();
    let (back,): (Bytes,) = body.decode(&shape).unwrap();
    assert_eq!(back, large);
    assert_eq!(back.as_ptr(), body.bytes[4..].as_ptr(), "it lies where it was received");
}

#[test]
fn a_peer_names_places_and_none_of_our_files() {
    let any = Shape::Reference(Hold::new(shape::Referent { name: "".into(), id: "".into() }));
    for (text, name) in [
        ("dbus:nonce-tcp:host=evil,port=1,noncefile=/etc/hostname#a.b/c", "tcp:evil:1"),
        ("dbus:tls:host=evil,port=1,ca=/ca,identity=/key#/c", "tls:tcp:evil:1"),
        ("dbus+tls://evil:1/c?ca=/ca", "tls:tcp:evil:1"),
    ] {
        // The user may say so.
        assert!(DBUS.parse(text).unwrap().profiles[0].endpoints[0].to_string().contains("evil"), "{text}");
        let raw = [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes(), b"\0"].concat();
        let body = Values::body(raw.into(), 0, true, b"s"[..].into(), Vec::new());
        let Value::Reference(Some(read)) = body.read(|source| Value::decode(&any, source)).unwrap() else {
            panic!()
        };
        let profile = &read.profiles[0];
        assert_eq!(profile.endpoints[0].to_string(), name, "{text}");
        assert!(profile.component(TAG_NONCE).is_none(), "{text}");
        assert!(
            profile.endpoints[0].layer().is_none_or(|layered| layered.options.iter().next().is_none()),
            "{text}"
        );
        let printed = DBUS.print(&read);
        assert!(!["noncefile", "ca=", "identity="].iter().any(|key| printed.contains(key)), "{printed}");
    }
}
