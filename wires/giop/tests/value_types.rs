//! Value types and value boxes (CORBA 3.3 part 2, section 9.3.4): bytes derived by hand from the specification, and hostile ones.

#![allow(clippy::unwrap_used)]

use everywire_giop::CDR;
use everywire_giop::codesets::Dialect;
use everywire_model::shape::{Field, Hold, Struct};
use everywire_model::value_type::{Level, of_box, of_members};
use everywire_model::{Body, Budget, Failure, Kind, Shape, Value};
use std::sync::OnceLock;

const A: &str = "IDL:A:1.0";
const B: &str = "IDL:B:1.0";

fn record(id: &'static str, fields: Vec<(&'static str, Shape)>) -> Shape {
    let fields = fields.into_iter().map(|(name, shape)| Field { name: name.into(), shape }).collect();
    Shape::Struct(Hold::new(Struct { name: id.into(), id: id.into(), fields }))
}

fn level(id: &'static str, truncatable: bool, members: &'static str) -> Level<'static> {
    Level { id, truncatable, members }
}

/// `valuetype A { public long x; };`
fn a() -> Shape {
    let content = of_members(&[level(A, false, "u")], record(A, vec![("x", Shape::I32)]));
    Shape::Optional(Hold::new(content))
}

/// `valuetype B : truncatable A { public octet y; public A inner; public double z; };`
fn b() -> Shape {
    let fields = vec![("x", Shape::I32), ("y", Shape::U8), ("inner", a()), ("z", Shape::F64)];
    Shape::Optional(Hold::new(of_members(&[level(B, true, "uuu"), level(A, false, "u")], record(B, fields))))
}

/// `valuetype N { public N left; public N right; };`
fn tree() -> Shape {
    let cell: &'static OnceLock<Shape> = Box::leak(Box::default());
    let shape = Shape::Optional(Hold::Later(cell));
    let fields = vec![("left", shape.clone()), ("right", shape.clone())];
    cell.set(of_members(&[level("IDL:N:1.0", false, "uu")], record("IDL:N:1.0", fields))).unwrap();
    shape
}

fn boxed() -> Shape {
    Shape::Optional(Hold::new(of_box("IDL:S:1.0", "S", Shape::Text(everywire_model::shape::Text::NARROW))))
}

/// A sequence of values, and something behind it.
fn many(shape: Shape) -> Shape {
    record("", vec![("all", Shape::sequence(shape)), ("behind", Shape::U8)])
}

fn of(x: i128) -> Value {
    Value::Struct(vec![("x".into(), Value::Integer(x))])
}

fn list(values: Vec<Value>) -> Value {
    Value::Struct(vec![("all".into(), Value::List(values)), ("behind".into(), Value::Integer(0x77))])
}

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn body(bytes: Vec<u8>) -> Body {
    everywire_giop::Cdr::body(bytes.into(), 0, false, Dialect::OURS, Budget::default())
}

fn write(shape: &Shape, value: &Value) -> Vec<u8> {
    CDR.write_as(false, Dialect::OURS, 0, &mut |sink| value.encode(shape, sink)).unwrap().bytes.to_vec()
}

fn read(shape: &Shape, bytes: Vec<u8>) -> Result<Value, Failure> {
    body(bytes).read(|source| Value::decode(shape, source))
}

/// It is written so, and read from that; cut short anywhere, it is refused.
fn is(shape: &Shape, value: &Value, bytes: &str) {
    assert_eq!(write(shape, value), hex(bytes), "{value:?}");
    reads(shape, value, bytes);
}

fn reads(shape: &Shape, value: &Value, bytes: &str) {
    let bytes = hex(bytes);
    assert_eq!(&read(shape, bytes.clone()).unwrap(), value);
    for cut in 0..bytes.len() {
        assert!(read(shape, bytes[..cut].to_vec()).is_err(), "cut at {cut}");
    }
}

fn refused(shape: &Shape, bytes: &str, why: &str) {
    let failure = read(shape, hex(bytes)).unwrap_err();
    assert_eq!(failure.kind(), Kind::Malformed, "{failure}");
    assert!(failure.to_string().contains(why), "{failure}");
}

const ID_A: &str = "0000000a 49444c3a413a312e3000";

#[test]
fn null_and_values_with_members_and_boxes() {
    is(&a(), &Value::Nothing, "00000000");
    is(&a(), &of(7), &format!("7fffff02 {ID_A} 0000 00000007"));
    is(&boxed(), &Value::Text("hi".into()), "7fffff02 0000000a 49444c3a533a312e3000 0000 00000003 686900");
    is(&boxed(), &Value::Nothing, "00000000");
    // Without a type, and with a codebase and a type.
    reads(&a(), &of(7), "7fffff00 00000007");
    reads(&a(), &of(7), &format!("7fffff03 00000003 757200 00 {ID_A} 0000 00000007"));
    reads(&boxed(), &Value::Text("hi".into()), "7fffff00 00000003 686900");
}

#[test]
fn what_may_be_cut_down_is_in_chunks() {
    let value = |inner| {
        Value::Struct(vec![
            ("x".into(), Value::Integer(1)),
            ("y".into(), Value::Integer(2)),
            ("inner".into(), inner),
            ("z".into(), Value::Float(1.0)),
        ])
    };
    let head = "7fffff0e 00000002 0000000a 49444c3a423a312e3000 0000 0000000a 49444c3a413a312e3000 0000";
    let with = format!(
        "{head} 00000005 00000001 02 000000 7fffff0a {ID_A} 0000 00000004 00000003 fffffffe 00000008 3ff0000000000000 ffffffff"
    );
    is(&b(), &value(of(3)), &with);
    // One end tag ends both levels, where nothing stands behind the inner value.
    let null = format!("{head} 00000014 00000001 02 000000 00000000 3ff0000000000000 ffffffff");
    assert_eq!(read(&b(), hex(&null)).unwrap(), value(Value::Nothing));
    // As the base: what is behind its member is passed over, a value in it too.
    let as_base = |bytes: &str| {
        let bytes = format!("00000001 {bytes} 77");
        read(&many(a()), hex(&bytes)).unwrap()
    };
    assert_eq!(as_base(&with), list(vec![of(1)]));
    assert_eq!(as_base(&null), list(vec![of(1)]));
    assert_eq!(
        as_base(&format!("{head} 00000004 00000001 7fffff0a {ID_A} 0000 00000004 00000003 ffffffff")),
        list(vec![of(1)])
    );
}

/// omniORB reads no second end tag behind one, and the specification wants a single one that ends all (section 9.3.4.6).
#[test]
fn values_that_end_together_have_one_end_tag() {
    let with = |id: &'static str, last: Shape, behind: Option<Shape>| {
        let mut fields = vec![("x", Shape::I32), ("last", last)];
        fields.extend(behind.map(|shape| ("z", shape)));
        let members = if fields.len() > 2 { "uu" } else { "u" };
        let levels = [level(id, true, members), level(A, false, "u")];
        Shape::Optional(Hold::new(of_members(&levels, record(id, fields))))
    };
    let value = |x, last, z: Option<i128>| {
        let mut fields = vec![("x".into(), Value::Integer(x)), ("last".into(), last)];
        fields.extend(z.map(|z| ("z".into(), Value::Integer(z))));
        Value::Struct(fields)
    };
    let head = |letter: char| {
        let id = format!("0000000a 49444c3a{:02x}3a312e3000 0000", letter as u32);
        format!("7fffff0e 00000002 {id} {ID_A} 0000")
    };
    let inner = format!("7fffff0a {ID_A} 0000 00000004 00000003");
    let c = || with("IDL:C:1.0", a(), None);
    let two = format!("{} 00000004 00000002 {inner}", head('C'));
    is(&many(c()), &list(vec![value(2, of(3), None)]), &format!("00000001 {two} ffffffff 77"));
    // Three, and something behind them.
    let d = with("IDL:D:1.0", c(), None);
    let three = format!("{} 00000004 00000001 {two}", head('D'));
    let of_three = value(1, value(2, of(3), None), None);
    let all = list(vec![of_three, Value::Nothing]);
    is(&many(d), &all, &format!("00000002 {three} ffffffff 00000000 77"));
    // Two of three: the outermost goes on.
    let e = with("IDL:E:1.0", c(), Some(Shape::U8));
    let bytes = format!("{} 00000004 00000001 {two} fffffffe 00000001 09 000000 ffffffff", head('E'));
    is(&e, &value(1, value(2, of(3), None), Some(9)), &bytes);
    // A null value is in a chunk, so the end tag before it stays.
    let f = with("IDL:F:1.0", c(), Some(a()));
    let mut of_null = value(1, value(2, of(3), None), Some(0));
    if let Value::Struct(fields) = &mut of_null {
        fields[2].1 = Value::Nothing;
    }
    let bytes = format!("{} 00000004 00000001 {two} fffffffe 00000004 00000000 ffffffff", head('F'));
    is(&f, &of_null, &bytes);
}

#[test]
fn members_may_lie_in_many_chunks() {
    let head = format!("7fffff0a {ID_A} 0000");
    for (element, items, bytes) in [
        (Shape::U16, vec![1, 2, 3], "00000004 00000003 00000002 0001 0000 00000004 0002 0003"),
        (Shape::U8, vec![1, 2, 3], "00000005 00000003 01 000000 00000002 02 03"),
    ] {
        let fields = vec![
            ("list", Shape::sequence(element.clone())),
            ("text", Shape::Text(everywire_model::shape::Text::NARROW)),
        ];
        let shape = Shape::Optional(Hold::new(of_members(&[level(A, false, "uu")], record(A, fields))));
        let items = match element {
            Shape::U8 => Value::Bytes(vec![1, 2, 3].into()),
            _ => Value::List(items.into_iter().map(Value::Integer).collect()),
        };
        let value = Value::Struct(vec![("list".into(), items), ("text".into(), Value::Text("a".into()))]);
        let pad = if element.width() == Some(1) { "0000" } else { "" };
        reads(&shape, &value, &format!("{head} {bytes} {pad} 00000006 00000002 6100 0000 ffffffff"));
    }
}

#[test]
fn values_and_types_that_stood_before_are_found_again() {
    let all = many(a());
    // The value at 4, by an offset that stands at 32.
    reads(
        &all,
        &list(vec![of(5), of(5)]),
        &format!("00000002 7fffff02 {ID_A} 0000 00000005 ffffffff ffffffe4 77"),
    );
    // Its type alone, whose length is at 8, by an offset that stands at 36.
    reads(
        &all,
        &list(vec![of(5), of(6)]),
        &format!("00000002 7fffff02 {ID_A} 0000 00000005 7fffff02 ffffffff ffffffe4 00000006 77"),
    );
}

/// omniORB writes one value for two members, though the one is declared as its base.
#[test]
fn a_value_is_found_again_where_its_base_is_expected() {
    let of_b = Value::Struct(vec![
        ("x".into(), Value::Integer(1)),
        ("y".into(), Value::Integer(2)),
        ("inner".into(), Value::Nothing),
        ("z".into(), Value::Float(1.0)),
    ]);
    let pair = |one, two| Value::Struct(vec![("one".into(), one), ("two".into(), two)]);
    // Without an id, as its type is the expected one; the offset stands at 28.
    let plain = "7fffff00 00000001 02 000000 00000000 3ff0000000000000 ffffffff ffffffe4";
    reads(&record("", vec![("one", b()), ("two", a())]), &pair(of_b.clone(), of(1)), plain);
    // The other way round it tells its types; the offset stands at 72.
    let chunks = "7fffff0e 00000002 0000000a 49444c3a423a312e3000 0000 0000000a 49444c3a413a312e3000 0000 \
                  00000014 00000001 02 000000 00000000 3ff0000000000000 ffffffff ffffffff ffffffb8";
    reads(&record("", vec![("one", a()), ("two", b())]), &pair(of(1), of_b), chunks);
    // Its type may not be cut down, or is the base itself.
    let fields = vec![("x", Shape::I32), ("y", Shape::U8), ("inner", a()), ("z", Shape::F64)];
    let levels = [level(B, false, "uuu"), level(A, false, "u")];
    let whole = Shape::Optional(Hold::new(of_members(&levels, record(B, fields))));
    refused(&record("", vec![("one", whole), ("two", a())]), plain, "names another value");
    let base = "7fffff00 00000001 ffffffff fffffff4";
    refused(&record("", vec![("one", a()), ("two", b())]), base, "names another value");
}

/// What JacORB 3.9 wrote of these types: its ids and its values stand once, and behind that are offsets, also in chunks.
#[test]
fn the_values_of_jacorb_are_read() {
    let b_of = |x, y, inner| {
        let z = ("z".to_owned(), Value::Float(1.0));
        Value::Struct(vec![
            ("x".into(), Value::Integer(x)),
            ("y".into(), Value::Integer(y)),
            ("inner".into(), inner),
            z,
        ])
    };
    let one = "7fffff0e000000020000000a49444c3a423a312e300000000000000a49444c3a413a312e300000000000000500000001020000007fffff0affffffffffffffdc0000000400000005fffffffe000000083ff0000000000000ffffffff";
    reads(&b(), &b_of(1, 2, of(5)), one);
    reads(&a(), &of(1), one);
    // A, B, the same A, null, the same B: all cut down to A.
    let all = "000000057fffff020000000a49444c3a413a312e30000000000000057fffff0e000000020000000a49444c3a423a312e30000000ffffffffffffffd0000000180000000102000000ffffffffffffffb83ff0000000000000ffffffffffffffffffffffa400000000ffffffffffffffb0 77";
    reads(&many(a()), &list(vec![of(5), of(1), of(5), Value::Nothing, of(1)]), all);
    let leaf = Value::Struct(vec![("left".into(), Value::Nothing), ("right".into(), Value::Nothing)]);
    let node = Value::Struct(vec![("left".into(), leaf.clone()), ("right".into(), leaf)]);
    reads(
        &tree(),
        &node,
        "7fffff020000000a49444c3a4e3a312e300000007fffff02ffffffffffffffe80000000000000000ffffffffffffffe8",
    );
    reads(&boxed(), &Value::Text("hi".into()), "7fffff0000000003686900");
}

/// What omniORB 4.2.5 wrote of them, in the order of octets of its machine: no id where the type is the expected one, and no chunks
/// then, though the type is one that may be cut down.
#[test]
fn the_values_of_omniorb_are_read() {
    let little = |shape: &Shape, text: &str| {
        let body = everywire_giop::Cdr::body(hex(text).into(), 0, true, Dialect::OURS, Budget::default());
        body.read(|source| Value::decode(shape, source)).unwrap()
    };
    let inner = of(5);
    let b_of =
        vec![("x", Value::Integer(1)), ("y", Value::Integer(2)), ("inner", inner), ("z", Value::Float(1.0))];
    let b_of = Value::Struct(b_of.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    assert_eq!(little(&a(), "00ffff7f05000000"), of(5));
    assert_eq!(little(&b(), "00ffff7f010000000200000000ffff7f0500000000000000000000000000f03f"), b_of);
    let chunks = "0effff7f020000000a00000049444c3a423a312e300000000a00000049444c3a413a312e300000000800000001000000020000000affff7fffffffffdcffffff0400000005000000feffffff08000000000000000000f03fffffffff";
    assert_eq!(little(&b(), chunks), b_of);
    assert_eq!(little(&a(), chunks), of(1));
    let all = "0500000000ffff7f050000000effff7f020000000a00000049444c3a423a312e3000312e0a00000049444c3a413a312e30000000100000000100000002ffffffffffffffc0ffffff0c00000008000000000000000000f03fffffffffffffffffa4ffffff00000000ffffffffa0ffffff77";
    assert_eq!(little(&many(a()), all), list(vec![of(5), of(1), of(5), Value::Nothing, of(1)]));
    let leaf = Value::Struct(vec![("left".into(), Value::Nothing), ("right".into(), Value::Nothing)]);
    let node = Value::Struct(vec![("left".into(), leaf.clone()), ("right".into(), leaf)]);
    assert_eq!(little(&tree(), "00ffff7f00ffff7f0000000000000000fffffffff0ffffff"), node);
    assert_eq!(little(&boxed(), "00ffff7f03000000686900"), Value::Text("hi".into()));
}

#[test]
fn hostile_offsets_are_refused() {
    let all = many(a());
    let one = format!("7fffff02 {ID_A} 0000 00000005");
    for offset in
        ["00000000", "00000004", "7fffffff", "80000000", "fffffff8", "ffffffe0", "ffffffe8", "ffffffe6"]
    {
        let failure = read(&all, hex(&format!("00000002 {one} ffffffff {offset} 77"))).unwrap_err();
        assert_eq!(failure.kind(), Kind::Malformed, "{offset}: {failure}");
        let failure =
            read(&all, hex(&format!("00000002 {one} 7fffff02 ffffffff {offset} 00000006 77"))).unwrap_err();
        assert_eq!(failure.kind(), Kind::Malformed, "{offset}: {failure}");
    }
    // To a value of another type.
    let two = record("", vec![("a", a()), ("s", boxed())]);
    refused(&two, &format!("{one} ffffffff ffffffe4"), "cannot be cut down");
    refused(&two, "7fffff00 00000005 ffffffff fffffff4", "names another value");
    // A value that contains itself.
    refused(&tree(), "7fffff00 00000000 ffffffff fffffff4", "contains itself");
}

#[test]
fn few_octets_do_not_stand_for_many_values() {
    // Each level has the one below twice: 2^40 nodes.
    let mut bytes = Vec::new();
    let mut put = |word: u32| bytes.extend_from_slice(&word.to_be_bytes());
    // Level n is "7fffff00, left = level n-1, right = again(left)"; so the innermost comes first in the message.
    for _ in 0..25 {
        put(0x7fff_ff00);
    }
    put(0);
    put(0);
    for level in 1..25u32 {
        put(u32::MAX);
        // The left one's tag is at 4 * (25 - level); the offset stands here.
        let here = 4 * 25 + 8 + 8 * (level - 1) + 4;
        put((4 * (25 - level)).wrapping_sub(here));
    }
    let failure = read(&tree(), bytes).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
}

#[test]
fn hostile_chunks_are_refused() {
    let head = format!("7fffff0a {ID_A} 0000");
    for (rest, why) in [
        ("ffffffff", "ends before its members"),
        ("fffffffe", "ends before its members"),
        ("00000000", "ends before its members"),
        ("7fffff0a 00000000", "ends before its members"),
        ("00000005 00000001", "exceeds the rest"),
        ("7ffffeff 00000001", "exceeds the rest"),
        ("00000003 000000 00 00000001 01 000000 ffffffff", "ends inside a number"),
        ("00000004 00000001 fffffffe", "not open"),
        ("00000004 00000001 80000000", "not open"),
        ("00000004 00000001 7fffff02", "without chunks"),
    ] {
        refused(&a(), &format!("{head} {rest}"), why);
    }
    let outer = "7fffff0e 00000002 0000000a 49444c3a423a312e3000 0000 0000000a 49444c3a413a312e3000 0000";
    for (rest, why) in [
        ("00000005 00000001 02 000000 7fffff02", "without chunks"),
        ("0000000c 00000001 02 000000 7fffff0a", "stands in a chunk"),
        ("00000005 00000001 02 000000 ffffffff", "no tag of a value"),
    ] {
        refused(&b(), &format!("{outer} {rest}"), why);
    }
    for tag in ["7fffff04", "7fffff12", "7fffffff", "7ffffeff", "80000000"] {
        refused(&a(), &format!("{tag} {ID_A} 0000 00000005"), "tag of a value");
    }
    refused(
        &a(),
        "7fffff02 0000000a 49444c3a433a312e3000 0000 00000005",
        "a value of type IDL:C:1.0 came for IDL:A:1.0",
    );
    refused(&a(), "7fffff06 00000000", "has no types");
    refused(&a(), "7fffff06 40000000", "more than there are octets");
}
