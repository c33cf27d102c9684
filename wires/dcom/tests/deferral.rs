//! Where things stand in a stub: alignment, conformance, deferred referents (C706 14.3), byte for byte.

#![allow(clippy::unwrap_used)]

use crate::common::{
    array, bstr, decode, encode, enumeration, integers, ordered, parameters, pointer, record, sequence,
    structure, unhex, union, unique, unnamed, variant, wide,
};
use everywire_model::Value;
use everywire_model::shape::{Hold, Map, Order, PointerKind, Shape, Text};
use everywire_model::visit::{Numbers, Sink};

/// Holds one parameter list to these bytes, both ways, and to the same length in the other byte order.
#[track_caller]
fn holds(list: &[(&str, Shape)], values: &[Value], hex: &str) {
    let (shape, value, bytes) = (parameters(list), record(values), unhex(hex));
    assert_eq!(encode(&value, true, &shape), bytes);
    let (read, rest) = decode(&bytes, true, &shape).unwrap();
    assert_eq!((unnamed(&read), rest), (value.clone(), 0));
    let big = encode(&value, false, &shape);
    assert_eq!(big.len(), bytes.len());
    assert_eq!(unnamed(&decode(&big, false, &shape).unwrap().0), value);
}

#[test]
fn primitives_stand_at_multiples_of_their_size() {
    holds(
        &[
            ("a", Shape::U8),
            ("b", Shape::U16),
            ("c", Shape::U8),
            ("d", Shape::U32),
            ("e", Shape::Bool),
            ("f", Shape::F64),
        ],
        &[
            Value::Integer(1),
            Value::Integer(2),
            Value::Integer(3),
            Value::Integer(4),
            Value::Bool(true),
            Value::Float(1.0),
        ],
        "01 00 0200 03 000000 04000000 01 000000 000000000000f03f",
    );
    let shape = parameters(&[("a", Shape::U16), ("b", Shape::U32), ("c", Shape::F32)]);
    let value = record(&[Value::Integer(0x0102), Value::Integer(0x0304_0506), Value::Float(1.0)]);
    assert_eq!(encode(&value, false, &shape), unhex("0102 0000 03040506 3f800000"));
}

#[test]
fn a_struct_stands_at_a_multiple_of_its_largest_member() {
    let inner = structure("Inner", &[("x", Shape::U8), ("y", Shape::U64)]);
    let outer = structure("Outer", &[("x", Shape::U8), ("inner", inner)]);
    holds(
        &[("x", Shape::U8), ("outer", outer)],
        &[Value::Integer(1), record(&[Value::Integer(2), record(&[Value::Integer(3), Value::Integer(4)])])],
        "01 00000000000000 02 00000000000000 03 00000000000000 0400000000000000",
    );
}

#[test]
fn enumerations_have_sixteen_or_thirty_two_bits() {
    let members = [("one", 1), ("two", 2)];
    let one = || Value::Member("one".into());
    holds(
        &[
            ("short", enumeration(16, &members)),
            ("long", enumeration(32, &members)),
            ("end", enumeration(16, &members)),
        ],
        &[one(), one(), Value::Member("two".into())],
        "0100 0000 01000000 0200",
    );
}

#[test]
fn arrays_carry_the_counts_of_their_order() {
    holds(
        &[
            ("fixed", array(3, Shape::U16)),
            ("conformant", sequence(Shape::U16)),
            ("varying", ordered(Order::Varying, Shape::U16)),
            ("both", ordered(Order::ConformantVarying, Shape::U64)),
        ],
        &[integers(&[1, 2, 3]), integers(&[4]), integers(&[5, 6]), integers(&[7])],
        "0100 0200 0300 0000 01000000 0400 0000 00000000 02000000 0500 0600 01000000 00000000 01000000
         0700000000000000",
    );
}

#[test]
fn strings_are_conformant_and_varying_and_end_with_nul() {
    holds(
        &[("wide", wide()), ("narrow", Shape::Text(Text::NARROW)), ("empty", wide())],
        &[Value::Text("h\u{e9}".into()), Value::Text("abc".into()), Value::Text(String::new())],
        "03000000 00000000 03000000 6800 e900 0000 0000 04000000 00000000 04000000 61626300 01000000 00000000 01000000
         0000",
    );
}

#[test]
fn the_maximum_count_of_a_last_array_moves_before_the_outermost_struct() {
    let inner = structure("Inner", &[("b", Shape::U16), ("last", sequence(Shape::U64))]);
    let outer = structure("Outer", &[("a", Shape::U8), ("inner", inner)]);
    holds(
        &[("outer", outer)],
        &[record(&[Value::Integer(1), record(&[Value::Integer(2), integers(&[3, 4])])])],
        "02000000 00000000 01 00000000000000 0200 000000000000 0300000000000000 0400000000000000",
    );
    let both =
        structure("Both", &[("a", Shape::U16), ("last", ordered(Order::ConformantVarying, Shape::U16))]);
    holds(
        &[("both", both)],
        &[record(&[Value::Integer(1), integers(&[9, 8])])],
        "02000000 0100 0000 00000000 02000000 0900 0800",
    );
}

#[test]
fn a_last_array_of_pointers_is_hoisted_and_its_referents_follow() {
    let shape = structure("Names", &[("n", Shape::U32), ("names", sequence(unique(Shape::U16)))]);
    holds(
        &[("names", unique(shape)), ("after", Shape::U8)],
        &[record(&[Value::Integer(7), integers(&[1, 2])]), Value::Integer(5)],
        "00000200 02000000 07000000 04000200 08000200 0100 0200 05",
    );
}

#[test]
fn referents_of_a_parameter_follow_it_at_once() {
    holds(
        &[
            ("a", unique(Shape::U16)),
            ("null", unique(Shape::U64)),
            ("b", Shape::U32),
            ("c", unique(unique(Shape::U8))),
        ],
        &[Value::Integer(1), Value::Nothing, Value::Integer(2), Value::Integer(3)],
        "00000200 0100 0000 00000000 02000000 04000200 08000200 03",
    );
}

#[test]
fn referents_inside_a_construct_wait_for_its_end() {
    let pair = structure("Pair", &[("p", unique(Shape::U8)), ("q", unique(Shape::U32)), ("n", Shape::U16)]);
    holds(
        &[("pairs", sequence(pair)), ("after", Shape::U8)],
        &[
            Value::List(vec![
                record(&[Value::Integer(1), Value::Integer(2), Value::Integer(3)]),
                record(&[Value::Nothing, Value::Integer(4), Value::Integer(5)]),
            ]),
            Value::Integer(6),
        ],
        "02000000 00000200 04000200 0300 0000 00000000 08000200 0500 | 01 00 02000000 04000000 06"
            .replace('|', "")
            .as_str(),
    );
}

#[test]
fn a_referent_is_followed_by_its_own_referents_before_the_next() {
    // Depth first: the node's string comes before the second pointer's referent.
    let node = structure("Node", &[("name", unique(wide())), ("n", Shape::U16)]);
    let root = structure("Root", &[("left", unique(node)), ("right", unique(Shape::U32))]);
    holds(
        &[("root", root)],
        &[record(&[record(&[Value::Text("a".into()), Value::Integer(1)]), Value::Integer(2)])],
        "00000200 08000200 04000200 0100 0000 02000000 00000000 02000000 6100 0000 02000000",
    );
}

#[test]
fn reference_pointers_leave_a_trace_only_inside_constructs() {
    let by_ref = |target| pointer(PointerKind::Ref, target);
    let shape = structure("Refs", &[("p", by_ref(Shape::U16))]);
    holds(
        &[("top", by_ref(Shape::U16)), ("inside", by_ref(shape))],
        &[Value::Integer(1), record(&[Value::Integer(2)])],
        "0100 0000 00000200 0200",
    );
}

#[test]
fn unions_write_the_discriminator_then_the_arm() {
    let shape =
        union(Shape::U32, &[(1, "byte", Shape::U8), (2, "name", unique(wide())), (3, "wide", Shape::U64)]);
    let arm = |label, name: &str, value| Value::Union(label, Some(Box::new((name.to_owned(), value))));
    holds(
        &[("list", sequence(shape))],
        &[Value::List(vec![
            arm(2, "name", Value::Text("x".into())),
            arm(1, "byte", Value::Integer(9)),
            arm(3, "wide", Value::Integer(4)),
        ])],
        "03000000 02000000 00000200 01000000 09 000000 03000000 0400000000000000 02000000 00000000 02000000 7800
         0000",
    );
}

#[test]
fn sequences_inside_constructs_are_reached_by_pointers_of_their_own() {
    let shape = structure("Lists", &[("a", sequence(Shape::U16)), ("b", wide()), ("n", Shape::U8)]);
    holds(
        &[("lists", shape), ("grid", sequence(sequence(Shape::U8)))],
        &[
            record(&[integers(&[1]), Value::Text("b".into()), Value::Integer(2)]),
            Value::List(vec![Value::Bytes(vec![7, 8].into())]),
        ],
        "00000200 04000200 02 000000 01000000 0100 0000 02000000 00000000 02000000 6200 0000 01000000 08000200 02000000
         0708",
    );
}

#[test]
fn maps_and_optional_values_have_a_form_too() {
    let map = Shape::Map(Hold::new(Map { key: wide(), value: Shape::U16 }));
    holds(
        &[
            ("map", map),
            ("none", Shape::Optional(Hold::new(Shape::U32))),
            ("some", Shape::Optional(Hold::new(Shape::U32))),
        ],
        &[Value::Map(vec![(Value::Text("k".into()), Value::Integer(1))]), Value::Nothing, Value::Integer(2)],
        "01000000 00000200 01000000 04000200 0100 0000 02000000 00000000 02000000 6b00 0000 00000000 08000200 02000000",
    );
}

/// A sequence of another contract language than MIDL: a struct of the count and a pointer to as many elements.
#[test]
fn sequences_that_nothing_counts_are_structs_with_a_count() {
    let free = Shape::sequence;
    // A parameter; what its pointer points to stands behind it.
    holds(
        &[("list", free(Shape::U16)), ("after", Shape::U8)],
        &[integers(&[1, 2]), Value::Integer(7)],
        "02000000 00000200 02000000 0100 0200 07",
    );
    holds(
        &[("none", free(Shape::U64)), ("octets", free(Shape::U8)), ("after", Shape::U8)],
        &[integers(&[]), Value::Bytes(vec![5].into()), Value::Integer(7)],
        "00000000 00000000 01000000 00000200 01000000 05 07",
    );
    // The end of a struct does not belong to it, as the array of a conformant struct does.
    let last = structure("Last", &[("n", Shape::U16), ("list", free(Shape::U64))]);
    holds(
        &[("last", last.clone()), ("after", Shape::U8)],
        &[record(&[Value::Integer(9), integers(&[3])]), Value::Integer(7)],
        "0900 0000 01000000 00000200 01000000 0300000000000000 07",
    );
    holds(
        &[("maybe", unique(last))],
        &[record(&[Value::Integer(9), integers(&[3])])],
        "00000200 0900 0000 01000000 04000200 01000000 00000000 0300000000000000",
    );
    // Of sequences: all counts and pointers first.
    holds(
        &[("grid", free(free(Shape::U16))), ("after", Shape::U16)],
        &[Value::List(vec![integers(&[1]), integers(&[]), integers(&[2, 3])]), Value::Integer(7)],
        "03000000 00000200 03000000  01000000 04000200 00000000 00000000 02000000 08000200 \
         01000000 0100 0000 02000000 0200 0300 0700",
    );
    // Behind a pointer, and of strings.
    holds(
        &[("names", unique(free(wide())))],
        &[Value::List(vec![Value::Text("a".into())])],
        "00000200 01000000 04000200 01000000 08000200 02000000 00000000 02000000 6100 0000",
    );
    for (bytes, wrong) in [
        ("02000000 00000200 01000000 0100", "ndr CountMismatch"),
        ("01000000 00000000", "ndr NullReference"),
        ("ffffffff 00000200 ffffffff", "ndr CountBeyondMessage"),
    ] {
        let failure = decode(&unhex(bytes), true, &parameters(&[("list", free(Shape::U16))])).unwrap_err();
        assert_eq!(failure.code(), Some(wrong), "{bytes}");
    }
}

#[test]
fn an_aliased_full_pointer_is_read_at_each_place() {
    let full = |target| pointer(PointerKind::Full, target);
    let shape = parameters(&[
        ("pair", structure("Pair", &[("a", full(Shape::U32)), ("b", full(Shape::U32))])),
        ("c", full(Shape::U32)),
    ]);
    let (value, rest) = decode(&unhex("0a000000 0a000000 2a000000 0a000000"), true, &shape).unwrap();
    let answer = || Value::Integer(42);
    assert_eq!((unnamed(&value), rest), (record(&[record(&[answer(), answer()]), answer()]), 0));
}

#[test]
fn bstrs_are_flagged_word_blobs_in_little_endian() {
    let bytes = "55736572 02000000 04000000 02000000 61006200 55736572 00000000 ffffffff 00000000";
    let values = [Value::Text("ab".into()), Value::Text(String::new())];
    holds(&[("text", bstr()), ("null", bstr())], &values, bytes);
    let shape = parameters(&[("text", bstr())]);
    let big = encode(&record(&values[..1]), false, &shape);
    assert_eq!(big, unhex("72657355 02000000 04000000 02000000 61006200"));
}

#[test]
fn variants_are_aligned_sized_and_deferred() {
    let list = Value::List(vec![
        variant(Shape::Bool, Value::Bool(true)),
        variant(Shape::F64, Value::Float(1.0)),
        variant(bstr(), Value::Text("x".into())),
    ]);
    holds(
        &[("list", sequence(Shape::Variant)), ("after", Shape::U8)],
        &[list, Value::Integer(9)],
        "03000000 55736572 55736572 55736572
         03000000 00000000 0b00 0000 0000 0000 0b000000 ffff 0000
         04000000 00000000 0500 0000 0000 0000 05000000 00000000 000000000000f03f
         05000000 00000000 0800 0000 0000 0000 08000000 00000200 01000000 02000000 01000000 7800 09",
    );
}

#[test]
fn variants_carry_every_scalar_and_one_another() {
    for (shape, value) in [
        (Shape::I8, Value::Integer(-1)),
        (Shape::U8, Value::Integer(255)),
        (Shape::I16, Value::Integer(-2)),
        (Shape::U16, Value::Integer(2)),
        (Shape::I32, Value::Integer(-3)),
        (Shape::U32, Value::Integer(3)),
        (Shape::I64, Value::Integer(-4)),
        (Shape::U64, Value::Integer(4)),
        (Shape::F32, Value::Float(0.5)),
        (Shape::Variant, variant(Shape::I16, Value::Integer(5))),
        (unique(Shape::Bool), Value::Bool(true)),
        (sequence(Shape::Bool), Value::List(vec![Value::Bool(true), Value::Bool(false)])),
        (sequence(Shape::U8), Value::Bytes(vec![1, 2, 3].into())),
        (sequence(Shape::I16), integers(&[1, -1])),
        (sequence(Shape::F64), Value::List(vec![Value::Float(2.5)])),
        (sequence(bstr()), Value::List(vec![Value::Text("a".into()), Value::Text("bc".into())])),
        (
            sequence(Shape::Variant),
            Value::List(vec![
                variant(Shape::I32, Value::Integer(1)),
                variant(bstr(), Value::Text("z".into())),
            ]),
        ),
    ] {
        let list = parameters(&[("v", Shape::Variant), ("after", Shape::U16)]);
        let whole = record(&[variant(shape.clone(), value), Value::Integer(7)]);
        for little in [true, false] {
            let bytes = encode(&whole, little, &list);
            let (read, rest) =
                decode(&bytes, little, &list).unwrap_or_else(|failure| panic!("{shape:?}: {failure}"));
            assert_eq!((unnamed(&read), rest), (whole.clone(), 0), "{shape:?}");
        }
    }
}

#[test]
fn automation_types_keep_their_names() {
    // VT_DATE, VT_CY, VT_ERROR and the like share neutral shapes; the alias that tells them apart survives.
    for (vt, width) in [(6_u16, 8), (7, 8), (10, 4), (22, 4), (23, 4), (1, 0)] {
        let mut bytes = unhex("55736572 00000000");
        let size: u32 = if width == 8 { 4 } else { 3 };
        bytes.extend(size.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(vt.to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(u32::from(vt).to_le_bytes());
        bytes.resize(if width == 8 { 40 } else { 28 + width }, 0);
        let shape = parameters(&[("v", Shape::Variant)]);
        let (value, rest) = decode(&bytes, true, &shape).unwrap();
        assert_eq!(rest, 0, "{vt}");
        assert_eq!(encode(&value, true, &shape), bytes, "{vt}");
    }
}

#[test]
fn a_safearray_is_written_as_automation_does() {
    let list = [variant(sequence(Shape::I32), integers(&[1, 2]))];
    holds(
        &[("v", Shape::Variant)],
        &list,
        "55736572 00000000
         0a000000 00000000 0320 0000 0000 0000 00200000 00000200 04000200
         01000000 0100 8000 04000000 00000300 03000000 02000000 08000200 02000000 00000000 02000000 01000000 02000000",
    );
}

#[test]
fn the_bulk_lane_writes_the_same_bytes() {
    let shape = parameters(&[("pad", Shape::U8), ("list", sequence(Shape::F64))]);
    let list = &shape.fields()[1].shape;
    let mut sink = everywire_dcom::NdrSink::new(false);
    sink.open(&shape, 2).unwrap();
    sink.u8(1).unwrap();
    sink.open(list, 2).unwrap();
    sink.numbers(Numbers::F64(&[1.0, 2.0])).unwrap();
    sink.close(list).unwrap();
    sink.close(&shape).unwrap();
    let value = record(&[Value::Integer(1), Value::List(vec![Value::Float(1.0), Value::Float(2.0)])]);
    assert_eq!(sink.into_bytes().unwrap(), encode(&value, false, &shape));
}
