//! The automation types beyond plain VARIANTs: DECIMAL, VARIANT_BOOL, SAFEARRAYs of any shape and place, BYREF forms; and
//! references through the node.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{
    alias, bstr, decimal, decode, encode, integers, interface, parameters, record, sequence, structure,
    unhex, union, unique, unnamed, variant,
};
use bytes::Bytes;
use everywire_dcom::NdrSink;
use everywire_dcom::ndr::{References, ReferencesState};
use everywire_model::shape::Shape;
use everywire_model::visit::Visit;
use everywire_model::{Attachments, Failure, Kind, Reference, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn flag() -> Shape {
    alias("VARIANT_BOOL", Shape::Bool)
}

fn safearray(element: Shape) -> Shape {
    alias("SAFEARRAY", sequence(element))
}

/// Holds one parameter list to these bytes, both ways, and to itself in the other byte order.
#[track_caller]
fn holds(list: &[(&str, Shape)], values: &[Value], hex: &str) {
    let (shape, value, bytes) = (parameters(list), record(values), unhex(hex));
    assert_eq!(encode(&value, true, &shape), bytes);
    let (read, rest) = decode(&bytes, true, &shape).unwrap();
    assert_eq!((unnamed(&read), rest), (value.clone(), 0));
    survives(&shape, &value);
}

#[track_caller]
fn survives(shape: &Shape, value: &Value) {
    for little in [true, false] {
        let bytes = encode(value, little, shape);
        let (read, rest) = decode(&bytes, little, shape).unwrap();
        assert_eq!((unnamed(&read), rest), (value.clone(), 0), "little {little}");
        common::withstands(&bytes, little, shape);
    }
}

/// Holds a VARIANT and what follows it.
#[track_caller]
fn carries(shape: Shape, value: Value) {
    let list = parameters(&[("before", Shape::U8), ("v", Shape::Variant), ("after", Shape::U16)]);
    survives(&list, &record(&[Value::Integer(1), variant(shape, value), Value::Integer(7)]));
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn grid(rows: &[&[i128]]) -> Value {
    Value::List(rows.iter().map(|row| integers(row)).collect())
}

#[test]
fn a_variant_bool_has_sixteen_bits_everywhere() {
    let shape = structure("S", &[("a", Shape::Bool), ("b", flag()), ("c", Shape::Bool)]);
    let choice = union(Shape::U16, &[(1, "yes", flag())]);
    let arm = Value::Union(1, Some(Box::new(("yes".to_owned(), Value::Bool(true)))));
    let yes = || Value::Bool(true);
    holds(
        &[
            ("plain", Shape::Bool),
            ("flag", flag()),
            ("list", sequence(flag())),
            ("s", shape),
            ("pointer", unique(flag())),
            ("choice", choice),
        ],
        &[
            yes(),
            yes(),
            Value::List(vec![yes(), Value::Bool(false)]),
            record(&[yes(), yes(), Value::Bool(false)]),
            yes(),
            arm,
        ],
        "01 00 ffff 02000000 ffff 0000 0100 ffff 00 000000 00000200 ffff 0100 ffff",
    );
}

#[test]
fn a_decimal_in_a_variant_stands_at_a_multiple_of_eight() {
    let value = record(&[
        Value::Integer(0),
        Value::Integer(2),
        Value::Integer(0x80),
        Value::Integer(5),
        Value::Integer(6),
    ]);
    holds(
        &[("v", Shape::Variant)],
        &[variant(decimal(), value.clone())],
        "55736572 00000000 05000000 00000000 0e00 0000 0000 0000 0e000000 00000000 0000 02 80 05000000 0600000000000000",
    );
    carries(decimal(), value.clone());
    carries(unique(decimal()), value.clone());
    survives(
        &parameters(&[("a", Shape::U8), ("d", decimal())]),
        &record(&[Value::Integer(1), value.clone()]),
    );
    let list = variant(sequence(decimal()), Value::List(vec![value]));
    let failure = list.encode(&Shape::Variant, &mut NdrSink::new(true)).unwrap_err();
    assert_eq!(failure.kind(), Kind::Unsupported, "SAFEARRAYs of DECIMAL are forbidden");
}

/// A VARIANT of the type with this discriminant, read, and written as the same octets again.
#[track_caller]
fn kept(vt: &str, discriminant: &str, rest: &str) -> Value {
    let list = parameters(&[("v", Shape::Variant)]);
    // clSize counts all from itself on, in units of 8 octets.
    let size = u8::try_from((20 + unhex(rest).len()).div_ceil(8)).unwrap();
    let head = format!("55736572 00000000 {size:02x}000000 00000000 {vt} 000000000000 {discriminant}");
    let bytes = unhex(&(head + rest));
    let (read, rest) = decode(&bytes, true, &list).unwrap();
    assert_eq!(rest, 0);
    assert_eq!(encode(&read, true, &list), bytes);
    common::withstands(&bytes, true, &list);
    read
}

/// What its octets mean, nobody here knows; but what stands beside a record can be read all the same.
#[test]
fn records_travel_as_their_octets() {
    // fFlags, clSize, pRecInfo, pRecord; the OBJREF of the description, and the record.
    let one = "00000000 03000000 04000200 08000200  05000000 05000000 0102030405 000000  03000000 0a0b0c";
    for (vt, discriminant) in [("2400", "24000000"), ("2440", "24400000")] {
        let read = kept(vt, discriminant, &format!("00000200 {one}"));
        // All of it is there: the description, and the record.
        let read = format!("{read:?}");
        assert!(read.contains("wireBRECORD") && read.contains("pRecInfo"), "{read}");
    }
    kept("2400", "24000000", "00000200 00000000 00000000 00000000 00000000");
    kept("2400", "24000000", "00000000");
    // A SAFEARRAY of two, of which one is not there.
    let array =
        "00000200 04000200 01000000 0100 a000 04000000 00002400 24000000 02000000 08000200 02000000 00000000
        02000000 0c000200 00000000";
    let one = "00000000 03000000 00000000 10000200 03000000 0a0b0c";
    kept("2420", "00200000", &format!("{array} {one}"));
}

/// A BSTR may hold any octets, and some do; in a VARIANT it is no reason to refuse what stands beside it.
#[test]
fn a_bstr_that_is_no_text_is_octets_in_a_variant() {
    for blob in [
        // One octet and a half unit; a half of a surrogate pair.
        "02000000 03000000 02000000 6100 6200",
        "03000000 06000000 03000000 6100 00d8 6200",
        "01000000 02000000 01000000 00dc",
    ] {
        kept("0800", "08000000", &format!("00000200 {blob}"));
        kept("0840", "08400000", &format!("00000200 04000200 {blob}"));
    }
    let array =
        "00000200 04000200 01000000 0100 8001 04000000 00000800 08000000 02000000 08000200 02000000 00000000
        02000000 0c000200 10000200";
    let (even, other) = ("01000000 02000000 01000000 6100 0000", "01000000 01000000 01000000 6100");
    kept("0820", "00200000", &format!("{array} {even} {other}"));
    // Text stays text, whatever planes it is of.
    let list = parameters(&[("v", Shape::Variant)]);
    let face = variant(bstr(), text("\u{1f600}"));
    survives(&list, &record(&[face]));
}

/// Indices of SAFEARRAYs begin with any number, and stay so where a value of them goes on.
#[test]
fn lower_bounds_of_arrays_in_variants_are_kept() {
    let head = "00000200 04000200 01000000 0100 8000 04000000 00000300 03000000 02000000 08000200 02000000";
    // From 1, and from -5, also by reference.
    for lower in ["01000000", "fbffffff"] {
        kept("0320", "00200000", &format!("{head} {lower} 02000000 07000000 08000000"));
    }
    let head =
        "00000200 04000200 08000200 01000000 0100 8000 01000000 00001100 10000000 02000000 0c000200 02000000";
    // Octets, which are taken together.
    kept("1160", "00600000", &format!("{head} 01000000 02000000 0708"));
    // Two rows from 1 of three columns from -1: the leftmost dimension stands last.
    let head = "00000200 04000200 02000000 0200 8000 02000000 00000200 02000000 06000000 08000200";
    let bounds = "03000000 ffffffff 02000000 01000000";
    let read = kept("0220", "00200000", &format!("{head} {bounds} 06000000 0100 0400 0200 0500 0300 0600"));
    assert_eq!(
        unnamed(&read),
        record(&[variant(sequence(sequence(Shape::I16)), grid(&[&[1, 2, 3], &[4, 5, 6]]))])
    );
    // An array in an array has its own.
    let inner = "09000000 00000000 0320 000000000000 00200000 0c000200 10000200 01000000 0100 8000 04000000
        00000300 03000000 01000000 14000200 01000000 02000000 01000000 07000000";
    let head = "00000200 04000200 01000000 0100 8008 10000000 00000c00 0c000000 01000000 08000200 01000000";
    kept("0c20", "00200000", &format!("{head} 03000000 01000000 55736572 {inner}"));
}

/// Typed values open each row by the shape that the contract has for it, which is an alias.
#[test]
fn rows_of_rows_are_read_into_typed_lists() {
    let list = parameters(&[("a", safearray(safearray(Shape::I32))), ("after", Shape::U8)]);
    let value = record(&[grid(&[&[1, 2, 3], &[4, 5, 6]]), Value::Integer(9)]);
    let bytes = encode(&value, true, &list);
    let read: (Vec<Vec<i32>>, u8) = common::body(&bytes, true).decode(&list).unwrap();
    assert_eq!(read, (vec![vec![1, 2, 3], vec![4, 5, 6]], 9));
}

#[test]
fn a_safearray_is_a_parameter_a_field_or_the_target_of_a_pointer() {
    holds(
        &[("a", safearray(Shape::I32)), ("after", Shape::U8)],
        &[integers(&[1, 2]), Value::Integer(9)],
        "55736572 00000200
         01000000 0100 8000 04000000 00000300 03000000 02000000 04000200 02000000 00000000
         02000000 01000000 02000000 09",
    );
    let flags = Value::List(vec![Value::Bool(true), Value::Bool(false)]);
    let names = Value::List(vec![text("a"), text("bc")]);
    let shape = structure(
        "Fields",
        &[
            ("flags", safearray(Shape::Bool)),
            ("n", Shape::U16),
            ("names", unique(safearray(bstr()))),
            ("values", safearray(Shape::Variant)),
            ("tail", bstr()),
        ],
    );
    let values = Value::List(vec![variant(Shape::I32, Value::Integer(1)), variant(bstr(), text("z"))]);
    let fields = record(&[flags, Value::Integer(3), names, values, text("end")]);
    survives(
        &parameters(&[("f", shape.clone()), ("n", Shape::U8)]),
        &record(&[fields.clone(), Value::Integer(1)]),
    );
    survives(&parameters(&[("f", sequence(shape))]), &record(&[Value::List(vec![fields.clone(), fields])]));
    // A null array has no elements.
    let list = parameters(&[("a", safearray(Shape::I32)), ("b", safearray(Shape::U8)), ("after", Shape::U8)]);
    let (value, rest) = decode(&unhex("00000000 55736572 00000000 07"), true, &list).unwrap();
    let none = Value::List(Vec::new());
    assert_eq!((unnamed(&value), rest), (record(&[none, Value::Bytes(Bytes::new()), Value::Integer(7)]), 0));
}

#[test]
fn dimensions_are_rows_here_and_columns_first_there() {
    // [2][3]: bounds reversed, the left index fastest.
    holds(
        &[("v", Shape::Variant), ("after", Shape::U8)],
        &[variant(sequence(sequence(Shape::I16)), grid(&[&[1, 2, 3], &[4, 5, 6]])), Value::Integer(9)],
        "55736572 00000000 0b000000 00000000 0220 0000 0000 0000 00200000 00000200 04000200
         02000000 0200 8000 02000000 00000200 02000000 06000000 08000200
         03000000 00000000 02000000 00000000 06000000 0100 0400 0200 0500 0300 0600 09",
    );
    let cube = |element: Shape| sequence(sequence(sequence(element)));
    let floats = |n: i32| Value::List((0..4).map(|i| Value::Float((n * 4 + i).into())).collect());
    let pages = Value::List((0..3).map(|i| Value::List(vec![floats(2 * i), floats(2 * i + 1)])).collect());
    carries(cube(Shape::F64), pages);
    let octets = |n: u8| Value::Bytes(vec![n, n + 1, n + 2].into());
    carries(sequence(sequence(Shape::U8)), Value::List(vec![octets(1), octets(11)]));
    carries(sequence(sequence(Shape::I8)), Value::List(Vec::new()));
    carries(unique(sequence(sequence(Shape::U32))), grid(&[&[1], &[2]]));
}

#[test]
fn elements_of_any_length_find_their_places() {
    let row = |words: &[&str]| Value::List(words.iter().map(|word| text(word)).collect());
    let words = Value::List(vec![row(&["a", "bcd", ""]), row(&["ef", "", "ghijk"])]);
    carries(sequence(sequence(bstr())), words.clone());
    survives(
        &parameters(&[("a", safearray(sequence(bstr()))), ("after", Shape::U8)]),
        &record(&[words.clone(), Value::Integer(3)]),
    );
    let content = |n: i128| variant(Shape::I8, Value::Integer(n));
    let nested = variant(sequence(sequence(bstr())), words);
    let rows = vec![
        Value::List(vec![content(1), variant(bstr(), text("abc")), content(2)]),
        Value::List(vec![nested, content(3), variant(Shape::Void, Value::Nothing)]),
    ];
    carries(sequence(sequence(Shape::Variant)), Value::List(rows));
    let none = || Value::Reference(None);
    carries(sequence(sequence(interface())), Value::List(vec![Value::List(vec![none(), none()])]));
}

#[test]
fn a_grid_must_be_rectangular() {
    let value = variant(sequence(sequence(Shape::I16)), grid(&[&[1, 2], &[3]]));
    let failure = value.encode(&Shape::Variant, &mut NdrSink::new(true)).unwrap_err();
    assert_eq!(failure.kind(), Kind::BadArgument);
    assert!(failure.to_string().contains("rectangular"), "{failure}");
}

#[test]
fn every_byref_form_survives() {
    for (shape, value) in [
        (unique(Shape::I8), Value::Integer(-1)),
        (unique(Shape::U8), Value::Integer(1)),
        (unique(Shape::I16), Value::Integer(-2)),
        (unique(Shape::U64), Value::Integer(1 << 40)),
        (unique(Shape::F64), Value::Float(1.5)),
        (unique(Shape::Bool), Value::Bool(true)),
        (unique(bstr()), text("by reference")),
        (unique(interface()), Value::Reference(None)),
        (unique(alias("DATE", Shape::F64)), Value::Float(2.0)),
        (unique(alias("CURRENCY", Shape::I64)), Value::Integer(52_500)),
        (unique(sequence(Shape::I32)), integers(&[1, 2, 3])),
        (unique(sequence(bstr())), Value::List(vec![text("x"), text("yz")])),
        (Shape::Variant, variant(unique(Shape::I32), Value::Integer(5))),
        (Shape::Variant, variant(sequence(Shape::Variant), Value::List(vec![variant(bstr(), text("deep"))]))),
    ] {
        carries(shape, value);
    }
    // VT_BYREF | VT_I2 with a null pointer.
    let bytes = unhex("55736572 00000000 03000000 00000000 0240 0000 0000 0000 02400000 00000000");
    let list = parameters(&[("v", Shape::Variant)]);
    let (value, _) = decode(&bytes, true, &list).unwrap();
    assert_eq!(encode(&value, true, &list), bytes);
}

#[test]
fn an_array_may_say_which_interface_it_holds() {
    // SF_HAVEIID, one null pointer.
    let bytes = unhex(
        "55736572 00000000 0b000000 00000000 0d20 0000 0000 0000 00200000 00000200 04000200
         01000000 0100 4002 04000000 00000000 0d800000 01000000 08000200
         00000000 00000000 c0000000 00000046 01000000 00000000 01000000 00000000",
    );
    let (value, rest) = decode(&bytes, true, &parameters(&[("v", Shape::Variant)])).unwrap();
    let Value::Struct(fields) = value else { panic!("no struct") };
    let Value::Variant(content) = &fields[0].1 else { panic!("no variant") };
    assert_eq!((&content.1, rest), (&Value::List(vec![Value::Reference(None)]), 0));
}

#[test]
fn an_enumeration_in_a_variant_is_a_number() {
    let colour = common::enumeration(16, &[("red", 1), ("blue", 70_000)]);
    let bytes = encode(&variant(colour, Value::Member("blue".to_owned())), true, &Shape::Variant);
    let (value, _) = decode(&bytes, true, &Shape::Variant).unwrap();
    assert_eq!(value, variant(Shape::I32, Value::Integer(70_000)));
}

/// Counts what passes; an OBJREF here is its key alone.
#[derive(Default)]
struct Keys {
    read: AtomicUsize,
    written: AtomicUsize,
}

impl References for Keys {
    fn unmarshal(&self, objref: Bytes, offset: usize) -> Visit<Reference> {
        self.read.fetch_add(1, Ordering::Relaxed);
        assert_eq!(offset, 12);
        Ok(Reference { type_id: String::from_utf8(objref.to_vec()).unwrap(), ..Reference::default() })
    }

    fn marshal(&self, reference: &Reference) -> Visit<Bytes> {
        self.written.fetch_add(1, Ordering::Relaxed);
        match reference.type_id.as_str() {
            "" => Err(Failure::new(Kind::BadReference, everywire_model::Initiator::User, "nothing is there")),
            key => Ok(Bytes::copy_from_slice(key.as_bytes())),
        }
    }
}

#[test]
fn references_pass_through_the_node() {
    let keys = Arc::new(Keys::default());
    let list = parameters(&[("object", interface()), ("after", Shape::U8)]);
    let object = |key: &str| {
        let reference = Reference { type_id: key.to_owned(), ..Reference::default() };
        record(&[Value::Reference(Some(reference)), Value::Integer(1)])
    };
    let write = |value: &Value| {
        let hook: Arc<dyn References> = Arc::clone(&keys) as _;
        let mut sink = NdrSink::at(0, true).with_references(hook);
        value.encode(&list, &mut sink)?;
        sink.into_bytes()
    };
    let bytes = write(&object("abc")).unwrap();
    assert_eq!(bytes, unhex("00000200 03000000 03000000 616263 01"));
    assert_eq!(write(&object("")).unwrap_err().kind(), Kind::BadReference);

    let mut body = common::body(&bytes, true);
    let hook: Arc<dyn References> = Arc::clone(&keys) as _;
    body.beside = Some(Arc::new(Attachments {
        wire_state: Some(Arc::new(ReferencesState(hook))),
        ..Attachments::default()
    }));
    let value = body.read(|source| Value::decode(&list, source)).unwrap();
    assert_eq!(unnamed(&value), object("abc"));
    assert_eq!((keys.read.load(Ordering::Relaxed), keys.written.load(Ordering::Relaxed)), (1, 2));
    // Without the node it is no OBJREF.
    assert_eq!(common::code(&decode(&bytes, true, &list).unwrap_err()), "ndr BadObjref");
}

#[test]
fn values_are_written_behind_what_a_buffer_holds() {
    let list =
        parameters(&[("a", Shape::U8), ("b", Shape::U64), ("c", unique(structure("S", &[("t", bstr())])))]);
    let value = record(&[Value::Integer(1), Value::Integer(2), record(&[text("x")])]);
    for (header, stub) in [(24, 24), (28, 24), (7, 3), (40, 40)] {
        let mut buffer = Vec::with_capacity(256);
        buffer.resize(header, 0xee);
        let mut sink = NdrSink::into(buffer, stub, true);
        value.encode(&list, &mut sink).unwrap();
        let buffer = sink.into_bytes().unwrap();
        assert_eq!(buffer.capacity(), 256, "no other buffer");
        let mut apart = NdrSink::at(header - stub, true);
        value.encode(&list, &mut apart).unwrap();
        assert_eq!(
            (&buffer[..header], &buffer[header..]),
            (&vec![0xee; header][..], &apart.into_bytes().unwrap()[..])
        );
    }
    let mut sink = NdrSink::into(vec![1, 2, 3], 0, true);
    assert!(Value::Integer(1).encode(&list, &mut sink).is_err());
    assert_eq!(sink.into_buffer(), [1, 2, 3]);
    let mut sink = NdrSink::into(vec![1, 2, 3], 1, false);
    value.encode(&list, &mut sink).unwrap();
    let body = sink.into_body(everywire_model::Budget::default()).unwrap();
    assert_eq!(unnamed(&body.read(|source| Value::decode(&list, source)).unwrap()), value);
}
