//! Type codes as values, and values in an `any` whose types contain themselves.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use allocation_counter::measure;
use everywire_giop::CDR;
use everywire_giop::codesets::Dialect;
use everywire_model::shape::{Field, Hold, Struct};
use everywire_model::value::TypedShape;
use everywire_model::*;
use std::sync::OnceLock;

fn write(little: bool, base: usize, shape: &Shape, value: &Value) -> Result<Body, Failure> {
    CDR.write_as(little, Dialect::OURS, base, &mut |sink| value.encode(shape, sink))
}

fn read(body: &Body, shape: &Shape) -> Result<Value, Failure> {
    body.read(|source| Value::decode(shape, source))
}

fn body(raw: &[u8], little: bool) -> Body {
    everywire_giop::Cdr::body(raw.to_vec().into(), 0, little, Dialect::OURS, Budget::default())
}

fn code(of: TypeCode) -> Value {
    Value::TypeCode(Box::new(of))
}

fn any(shape: Shape, value: Value) -> Value {
    Value::Variant(Box::new((TypedShape(shape), value)))
}

/// Bytes of type codes, written by hand; offsets count from the first.
#[derive(Clone)]
struct Hand {
    little: bool,
    out: Vec<u8>,
    open: Vec<usize>,
}

impl Hand {
    fn new(little: bool) -> Self {
        Self { little, out: Vec::new(), open: Vec::new() }
    }

    fn number(mut self, value: u32) -> Self {
        self.out.resize(self.out.len().next_multiple_of(4), 0);
        self.out.extend(if self.little { value.to_le_bytes() } else { value.to_be_bytes() });
        self
    }

    fn text(self, text: &str) -> Self {
        let mut new = self.number(u32::try_from(text.len() + 1).unwrap());
        new.out.extend(text.as_bytes());
        new.out.push(0);
        new
    }

    /// A kind and the beginning of its encapsulation.
    fn open(self, kind: u32) -> Self {
        let mut new = self.number(kind).number(0);
        new.open.push(new.out.len());
        new.out.push(new.little.into());
        new
    }

    fn named(self, kind: u32, name: &str) -> Self {
        self.open(kind).text(&format!("IDL:{name}:1.0")).text(name)
    }

    fn close(mut self) -> Self {
        let start = self.open.pop().unwrap();
        let len = u32::try_from(self.out.len() - start).unwrap();
        let len = if self.little { len.to_le_bytes() } else { len.to_be_bytes() };
        self.out[start - 4..start].copy_from_slice(&len);
        self
    }

    /// An indirection to the type code at an offset.
    fn back(self, to: usize) -> Self {
        let new = self.number(u32::MAX);
        let offset = i32::try_from(to).unwrap() - i32::try_from(new.out.len()).unwrap();
        new.number(offset.cast_unsigned())
    }

    fn at(&self) -> usize {
        self.out.len().next_multiple_of(4)
    }
}

/// `struct Node { long v; sequence<Node> next; }`.
fn node(little: bool) -> Hand {
    let begun = Hand::new(little).named(15, "Node").number(2).text("v").number(3);
    begun.text("next").open(19).back(0).number(0).close().close()
}

fn tree(v: i128, next: Vec<Value>) -> Value {
    Value::Struct(vec![("v".into(), Value::Integer(v)), ("next".into(), Value::List(next))])
}

/// The same type as a contract says it.
fn declared() -> Shape {
    static NODE: OnceLock<Struct> = OnceLock::new();
    NODE.get_or_init(|| {
        let next = Shape::sequence(Shape::Struct(Hold::Later(&NODE)));
        let fields =
            vec![Field { name: "v".into(), shape: Shape::I32 }, Field { name: "next".into(), shape: next }];
        Struct { name: "Node".into(), id: "IDL:Node:1.0".into(), fields: fields.into() }
    });
    Shape::Struct(Hold::Later(&NODE))
}

/// `typedef sequence<Node> NodeSeq; struct Node { long v; NodeSeq kids; };`, as the value of an `any` of a `NodeSeq`.
#[test]
fn a_struct_inside_a_name_that_contains_itself_has_one_identity() {
    let begun =
        Hand::new(false).named(21, "NodeSeq").open(19).named(15, "Node").number(2).text("v").number(3);
    let code = begun.text("kids").back(0).close().number(0).close().close();
    let leaf = |v| Value::Struct(vec![("v".into(), Value::Integer(v)), ("kids".into(), Value::List(vec![]))]);
    let root = vec![("v".into(), Value::Integer(1)), ("kids".into(), Value::List(vec![leaf(2)]))];
    let bytes = code.number(1).number(1).number(1).number(2).number(0);
    let value = read(&body(&bytes.out, false), &Shape::Variant).unwrap();
    let Value::Variant(held) = &value else { panic!("{value:?}") };
    let (TypedShape(shape), inner) = &**held;
    assert_eq!(*inner, Value::List(vec![Value::Struct(root)]));
    let node = |shape: &Shape| {
        let Shape::Sequence(list) = shape.resolved() else { panic!() };
        let Shape::Struct(node) = &list.element else { panic!() };
        (node.identity(), node.fields[1].shape.clone())
    };
    let (first, kids) = node(shape);
    let (second, kids) = node(&kids);
    let (third, _) = node(&kids);
    assert_eq!((first, second), (second, third), "each level is of the same type");
    assert_eq!(read(&write(false, 0, &Shape::Variant, &value).unwrap(), &Shape::Variant).unwrap(), value);
}

#[test]
fn a_type_that_contains_itself_is_read_in_an_any_and_written_back() {
    let value = tree(1, vec![tree(2, vec![]), tree(3, vec![tree(4, vec![])])]);
    for little in [false, true] {
        let expected = any(declared(), value.clone());
        let written = write(little, 0, &Shape::Variant, &expected).unwrap();
        let by_hand = node(little).number(1).number(2).number(2).number(0).number(3).number(1);
        assert_eq!(written.bytes, by_hand.number(4).number(0).out, "what a contract says");
        let value = read(&written, &Shape::Variant).unwrap();
        assert_eq!(value, expected);
        assert_eq!(
            write(little, 0, &Shape::Variant, &value).unwrap().bytes,
            written.bytes,
            "octet for octet"
        );
        // In the other order, too, and at any place of a message.
        for base in 0..8 {
            let other = write(!little, base, &Shape::Variant, &value).unwrap();
            assert_eq!(read(&other, &Shape::Variant).unwrap(), expected);
        }
        for cut in 0..written.bytes.len() {
            let short = Body { bytes: written.bytes.slice(..cut), ..written.clone() };
            assert!(read(&short, &Shape::Variant).is_err(), "cut at {cut}");
        }
    }
}

/// `typedef sequence<Node> Nodes; struct Node { Nodes next; Other o; }; struct Other { sequence<Node> a; sequence<Other> b; }`,
/// from the typedef on: indirections to every node around them, and one to a node that is finished.
#[test]
fn types_that_contain_each_other_are_read_in_an_any_and_written_back() {
    for little in [false, true] {
        let alias = Hand::new(little).named(21, "Nodes").open(19);
        let node = alias.at();
        let node_open = alias.named(15, "Node").number(3).text("next").back(0).text("o");
        let other = node_open.at();
        let hand = node_open
            .named(15, "Other")
            .number(2)
            .text("a")
            .open(19)
            .back(node)
            .number(0)
            .close()
            .text("b")
            .open(19)
            .back(other)
            .number(0)
            .close()
            .close()
            .text("again")
            .back(other)
            .close()
            .number(0)
            .close()
            .close();
        // One node without nodes, whose others are: two nodes of nothing in `a`, and in `b` one with nothing in it.
        let hand = hand.number(1).number(0).number(1);
        let hand = hand.number(0).number(0).number(0).number(0).number(0);
        let hand = hand.number(1).number(0).number(0).number(0).number(0);
        let value = read(&body(&hand.out, little), &Shape::Variant).unwrap();
        let Value::Variant(held) = &value else { panic!("{value:?}") };
        let other = |a: Vec<Value>, b: Vec<Value>| {
            Value::Struct(vec![("a".into(), Value::List(a)), ("b".into(), Value::List(b))])
        };
        let nodes = |next: Vec<Value>, o, again| {
            Value::Struct(vec![("next".into(), Value::List(next)), ("o".into(), o), ("again".into(), again)])
        };
        let empty = || other(vec![], vec![]);
        let inner = nodes(vec![], empty(), empty());
        let expected = nodes(vec![], other(vec![inner], vec![empty()]), empty());
        assert_eq!(held.1, Value::List(vec![expected]));
        // What is finished is written again in full; it means the same.
        for order in [little, !little] {
            let again = write(order, 4, &Shape::Variant, &value).unwrap();
            assert_eq!(read(&again, &Shape::Variant).unwrap(), value);
        }
    }
}

#[test]
fn what_is_read_of_such_types_ends_with_its_value() {
    let value = any(declared(), tree(1, vec![tree(2, vec![tree(3, vec![])]), tree(4, vec![])]));
    let written = write(true, 0, &Shape::Variant, &value).unwrap();
    let left = measure(|| {
        for _ in 0..10_000 {
            let value = read(&written, &Shape::Variant).unwrap();
            assert_eq!(write(false, 0, &Shape::Variant, &value).unwrap().bytes.len(), written.bytes.len());
        }
    });
    assert_eq!((left.count_current, left.bytes_current), (0, 0), "of {} bytes", left.bytes_total);
}

#[test]
fn types_that_contain_themselves_without_end_are_refused() {
    let refused = |hand: Hand| {
        let raw = [hand.out, vec![0; 64]].concat();
        let failure = read(&body(&raw, false), &Shape::Variant).unwrap_err();
        assert_eq!(failure.kind(), Kind::Malformed, "{failure}");
    };
    let new = || Hand::new(false);
    // A struct of itself, a union with itself as its arm, another name for itself, an array and a sequence of themselves,
    // a sequence of another name for it.
    refused(new().named(15, "S").number(1).text("s").back(0).close());
    refused(new().named(16, "U").number(3).number(u32::MAX).number(1).number(7).text("u").back(0).close());
    refused(new().named(21, "A").back(0).close());
    refused(new().open(20).back(0).number(1).close());
    refused(new().open(19).back(0).number(0).close());
    refused(new().open(19).named(21, "A").back(0).close().number(0).close());
    // Exceptions are no parts of types, not of themselves either.
    refused(new().named(22, "E").number(1).text("e").open(19).back(0).number(0).close().close());
    // Into the middle of what is around it.
    refused(new().named(15, "S").number(1).text("s").open(19).back(4).number(0).close().close());
}

/// A small value of a type with many ways into itself would need much memory for descriptions.
#[test]
fn each_level_of_a_type_is_charged_to_its_message() {
    let ways = 10;
    // Ten structs, each in the one before; the innermost holds lists of all of them.
    let (mut hand, mut places) = (Hand::new(false), Vec::new());
    for level in 0..ways {
        places.push(hand.at());
        hand = hand.named(15, &format!("S{level}"));
        hand = if level + 1 < ways { hand.number(1).text("m") } else { hand.number(ways + 1000) };
    }
    for (way, place) in places.iter().enumerate() {
        hand = hand.text(&format!("w{way}")).open(19).back(*place).number(0).close();
    }
    for blank in 0..1000 {
        hand = hand.text(&format!("b{blank}")).number(10);
    }
    for _ in 0..ways {
        hand = hand.close();
    }
    fn value(hand: Hand, ways: u32, levels: u32) -> Hand {
        let mut hand = (0..ways).fold(hand, |hand, _| match levels {
            0 => hand.number(0),
            _ => value(hand.number(1), ways, levels - 1),
        });
        hand.out.extend([0; 1000]);
        hand
    }
    let small = value(hand.clone(), ways, 1);
    assert!(read(&body(&small.out, false), &Shape::Variant).is_ok());
    let large = value(hand, ways, 3);
    assert!(large.out.len() < 2 << 20, "{}", large.out.len());
    let taken = measure(|| {
        let failure = read(&body(&large.out, false), &Shape::Variant).unwrap_err();
        assert!(failure.to_string().contains("bytes of decoded values"), "{failure}");
    });
    assert!(taken.bytes_max < 128 << 20, "{} bytes", taken.bytes_max);
}

/// Forty levels of a struct that holds the level below twice are a small type code, and a huge one written in full.
#[test]
fn type_codes_with_common_parts_are_not_written_without_end() {
    let levels = 26;
    let mut hand = Hand::new(false).named(15, "All").number(levels + 1);
    let mut below = 0;
    for level in 0..levels {
        hand = hand.text("m");
        let at = hand.at();
        hand = match level {
            0 => hand.named(15, "L0").number(1).text("n").number(3).close(),
            _ => {
                let begun = hand.named(15, &format!("L{level}")).number(2).text("a").back(below);
                begun.text("b").back(below).close()
            }
        };
        below = at;
    }
    let hand = hand.text("none").open(19).back(below).number(0).close().close();
    // The type is known without a value of it.
    let value = read(&body(&hand.out, false), &Shape::TypeCode).unwrap();
    assert_eq!(write(true, 0, &Shape::TypeCode, &value).unwrap().bytes.len(), hand.out.len());
    let Value::TypeCode(code) = value else { panic!("{value:?}") };
    let made = Value::TypeCode(Box::new(TypeCode::new(code.shape().unwrap().clone())));
    assert_eq!(write(true, 0, &Shape::TypeCode, &made).unwrap_err().kind(), Kind::LimitExceeded);
}

#[test]
fn an_any_without_a_value_is_written_as_orbs_make_it() {
    for kind in [0, 1] {
        let value = read(&body(&Hand::new(false).number(kind).out, false), &Shape::Variant).unwrap();
        assert_eq!(value, any(Shape::Void, Value::Nothing));
        let written = write(false, 0, &Shape::Variant, &value).unwrap();
        assert_eq!(written.bytes, Hand::new(false).number(0).out);
    }
}

#[test]
fn type_codes_are_values() {
    let simple = [
        (1, Shape::Void),
        (2, Shape::I16),
        (3, Shape::I32),
        (4, Shape::U16),
        (5, Shape::U32),
        (6, Shape::F32),
        (7, Shape::F64),
        (8, Shape::Bool),
        (9, Shape::Char),
        (10, Shape::U8),
        (11, Shape::Variant),
        (12, Shape::TypeCode),
        (23, Shape::I64),
        (24, Shape::U64),
        (26, Shape::WideChar),
    ];
    let null = [(Hand::new(false).number(0), TypeCode::null())];
    let simple = simple.map(|(kind, shape)| (Hand::new(false).number(kind), TypeCode::new(shape)));
    let node = [(node(false), TypeCode::new(declared()))];
    let text = [(Hand::new(false).number(18).number(0), TypeCode::new(text()))];
    for (hand, expected) in null.into_iter().chain(simple).chain(node).chain(text) {
        let written = write(false, 0, &Shape::TypeCode, &code(expected.clone())).unwrap();
        assert_eq!(written.bytes, hand.out, "{expected:?}");
        let value = read(&written, &Shape::TypeCode).unwrap();
        assert_eq!(value, code(expected.clone()));
        // In a struct and an `any`, too, in both orders.
        let pair = structure("P", vec![("a", Shape::U8), ("code", Shape::TypeCode), ("b", Shape::U8)]);
        let one = |n| Value::Integer(n);
        let held = Value::Struct(vec![("a".into(), one(1)), ("code".into(), value), ("b".into(), one(2))]);
        for (shape, value) in
            [(pair.clone(), held.clone()), (Shape::Variant, any(pair.clone(), held.clone()))]
        {
            for little in [false, true] {
                let body = write(little, 0, &shape, &value).unwrap();
                assert_eq!(read(&body, &shape).unwrap(), value);
                for cut in 0..body.bytes.len() {
                    let short = Body { bytes: body.bytes.slice(..cut), ..body.clone() };
                    assert!(read(&short, &shape).is_err(), "cut at {cut}");
                }
            }
        }
    }
    let typed = any(Shape::TypeCode, code(TypeCode::new(Shape::I32)));
    assert_eq!(write(false, 0, &Shape::Variant, &typed).unwrap().bytes, [0, 0, 0, 12, 0, 0, 0, 3][..]);
    let tagged = TypeCode::new(declared());
    assert_eq!((tagged.kind(), tagged.id(), tagged.name()), ("struct", "IDL:Node:1.0", "Node"));
}

/// Kinds whose values this side cannot hold pass octet for octet, in messages of either order.
#[test]
fn type_codes_of_unknown_kinds_are_passed_on() {
    for little in [false, true] {
        let new = || Hand::new(little);
        // A value type whose member is of its own type; one in a struct; what has a name alone; what has nothing.
        let own = new().named(29, "V").number(0).number(0).number(1).text("own").back(0).number(1).close();
        let within = new().named(15, "S").number(2).text("v").named(29, "V").number(0).number(0).number(0);
        let within = within.close().text("n").number(3).close();
        let cases = [
            (own, "valuetype", "IDL:V:1.0"),
            (within, "struct", "IDL:S:1.0"),
            (new().named(30, "B").number(18).number(0).close(), "value box", "IDL:B:1.0"),
            (new().named(31, "N").close(), "native", "IDL:N:1.0"),
            (new().named(32, "A").close(), "abstract interface", "IDL:A:1.0"),
            (new().named(33, "L").close(), "local interface", "IDL:L:1.0"),
            (new().number(13), "principal", ""),
        ];
        for (hand, kind, id) in cases {
            let shape = structure("P", vec![("code", Shape::TypeCode), ("after", Shape::U32)]);
            let raw = hand.clone().number(7).out;
            let value = read(&body(&raw, little), &shape).unwrap();
            let Value::Struct(fields) = &value else { panic!("{value:?}") };
            let Value::TypeCode(read_code) = &fields[0].1 else { panic!("{value:?}") };
            assert_eq!((read_code.kind(), read_code.id()), (kind, id));
            assert!(read_code.shape().is_none());
            assert_eq!(write(little, 0, &shape, &value).unwrap().bytes, raw);
            // The other order: kind, length and the number behind differ, what is between does not.
            let other = write(!little, 0, &shape, &value).unwrap();
            assert_eq!(other.bytes.len(), raw.len());
            if hand.out.len() > 8 {
                assert_eq!(other.bytes[8..hand.out.len()], raw[8..hand.out.len()]);
            }
            assert_eq!(read(&other, &shape).unwrap(), value);
        }
    }
}

#[test]
fn what_is_no_type_code_is_refused() {
    let refused = |hand: Hand| {
        let raw = [hand.out, vec![0; 64]].concat();
        read(&body(&raw, true), &Shape::TypeCode).unwrap_err().kind()
    };
    let new = || Hand::new(true);
    assert_eq!(refused(new().number(37)), Kind::Malformed);
    assert_eq!(refused(new().number(u32::MAX).number(0)), Kind::Malformed);
    assert_eq!(refused(new().number(15).number(1 << 30)), Kind::Malformed);
    assert_eq!(refused(new().open(15).number(u32::MAX).close()), Kind::Malformed);
    // A value that was made elsewhere and is of no kind that this side knows.
    let strange = TypeCode::read("valuetype".into(), "".into(), "".into(), Bytes::new());
    assert_eq!(write(true, 0, &Shape::TypeCode, &code(strange)).unwrap_err().kind(), Kind::Unsupported);
}

/// `valuetype A { public long x; }; valuetype B : truncatable A { private B next; };` and a box, which no `any` can hold here.
#[test]
fn a_value_type_is_described_by_a_type_code_that_is_a_value() {
    use everywire_model::value_type::{Level, of_box, of_members};
    let cell: &'static OnceLock<Shape> = Box::leak(Box::default());
    let b = Shape::Optional(Hold::Later(cell));
    let field = |name: &'static str, shape: &Shape| Field { name: name.into(), shape: shape.clone() };
    let fields = vec![field("x", &Shape::I32), field("next", &b)];
    let body = Struct { name: "M::B".into(), id: "IDL:M/B:1.0".into(), fields: fields.into() };
    let levels = [
        Level { id: "IDL:M/B:1.0", truncatable: true, members: "r" },
        Level { id: "IDL:M/A:1.0", truncatable: false, members: "u" },
    ];
    cell.set(of_members(&levels, Shape::Struct(Hold::new(body)))).unwrap();
    let half = |mut hand: Hand, number: u16| {
        hand.out.resize(hand.out.len().next_multiple_of(2), 0);
        hand.out.extend(number.to_be_bytes());
        hand
    };
    let own = half(Hand::new(false).open(29).text("IDL:M/B:1.0").text("B"), 3);
    let base = half(own.open(29).text("IDL:M/A:1.0").text("A"), 0).number(0).number(1).text("x").number(3);
    let by_hand = half(half(base, 1).close().number(1).text("next").back(0), 0).close();
    let written = write(false, 0, &Shape::TypeCode, &code(TypeCode::new(b.clone()))).unwrap();
    assert_eq!(written.bytes, by_hand.out);
    let boxed = Shape::Optional(Hold::new(of_box("IDL:S:1.0", "S", Shape::sequence(Shape::I16))));
    let written = write(false, 0, &Shape::TypeCode, &code(TypeCode::new(boxed.clone()))).unwrap();
    let by_hand = Hand::new(false).named(30, "S").open(19).number(2).number(0).close().close();
    assert_eq!(written.bytes, by_hand.out);
    let Value::TypeCode(again) = read(&written, &Shape::TypeCode).unwrap() else { panic!() };
    assert_eq!(again.id(), "IDL:S:1.0");
    let held = any(b, Value::Nothing);
    assert_eq!(write(false, 0, &Shape::Variant, &held).unwrap_err().kind(), Kind::Unsupported);
    // A box has a plain type code, and an `any` may hold it.
    let null = write(false, 0, &Shape::Variant, &any(boxed, Value::Nothing)).unwrap();
    assert_eq!(null.bytes, [by_hand.out, vec![0; 4]].concat());
}
