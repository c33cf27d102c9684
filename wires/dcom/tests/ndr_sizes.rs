//! `size_is`: an array and the parameter or field that says how long it is must agree.

#![allow(clippy::unwrap_used)]

use crate::common::{
    alias, array, code, decode, encode, enumeration, integers, ordered, parameters, pointer, record, sized,
    structure, unhex, union, unique, unnamed, wide,
};
use everywire_dcom::NdrSink;
use everywire_model::counts::{Present, Within};
use everywire_model::shape::{Order, PointerKind, Shape, Text, TextKind};
use everywire_model::{Initiator, Kind, MarshalList, Value};

fn counted(order: Order) -> Shape {
    sized(order, Shape::U16, "count")
}

/// Reads both; the failure, if any, is the violation.
#[track_caller]
fn held(list: &Shape, agreeing: &str, lying: &[&str]) {
    let bytes = unhex(agreeing);
    let (value, rest) = decode(&bytes, true, list).unwrap();
    assert_eq!((rest, encode(&value, true, list)), (0, bytes));
    for hex in lying {
        let failure = decode(&unhex(hex), true, list).unwrap_err();
        assert_eq!(
            (code(&failure), failure.kind()),
            ("ndr CountMismatch", Kind::Malformed),
            "{hex}: {failure}"
        );
    }
}

#[test]
fn cve_2012_1182_a_count_before_the_array_must_be_its_size() {
    let list = parameters(&[("count", Shape::U32), ("items", counted(Order::Conformant))]);
    held(
        &list,
        "02000000 02000000 0100 0200",
        &["01000000 02000000 0100 0200", "03000000 02000000 0100 0200", "ffffffff 02000000 0100 0200"],
    );
    // The array is refused for its size before the stub is asked whether it can hold it.
    let failure = decode(&unhex("02000000 ffffff7f 0100 0200"), true, &list).unwrap_err();
    assert_eq!(code(&failure), "ndr CountMismatch");
    assert!(failure.to_string().contains("`count` is 2"), "{failure}");
}

#[test]
fn cve_2012_1182_a_count_after_the_array_must_be_its_size() {
    let list = parameters(&[("items", counted(Order::Conformant)), ("count", Shape::I16)]);
    held(&list, "02000000 0100 0200 0200", &["02000000 0100 0200 0300", "02000000 0100 0200 feff"]);
}

#[test]
fn cve_2012_1182_counts_behind_pointers_must_agree_too() {
    let behind = parameters(&[
        ("count", pointer(PointerKind::Ref, Shape::U32)),
        ("items", pointer(PointerKind::Ref, unique(counted(Order::Conformant)))),
    ]);
    held(&behind, "01000000 00000200 01000000 0100", &["02000000 00000200 01000000 0100"]);
    // A null pointer has no elements to count.
    assert!(decode(&unhex("05000000 00000000"), true, &behind).is_ok());
    let varying =
        parameters(&[("items", unique(counted(Order::ConformantVarying))), ("count", unique(Shape::U32))]);
    held(
        &varying,
        "00000200 01000000 00000000 01000000 0700 0000 04000200 01000000",
        &["00000200 01000000 00000000 01000000 0700 0000 04000200 02000000"],
    );
}

#[test]
fn cve_2012_1182_a_field_counts_the_array_that_ends_its_struct() {
    let shape = structure("Blob", &[("count", Shape::U32), ("items", counted(Order::Conformant))]);
    let list = parameters(&[("blob", shape.clone()), ("after", Shape::U8)]);
    held(&list, "01000000 01000000 0700 09", &["01000000 02000000 0700 09", "01000000 00000000 0700 09"]);
    // Each struct has counts of its own.
    let node = structure("Node", &[("count", Shape::U32), ("items", unique(counted(Order::Conformant)))]);
    let list = parameters(&[("count", Shape::U32), ("nodes", sized(Order::Conformant, node, "count"))]);
    held(
        &list,
        "02000000 02000000 01000000 00000200 00000000 00000000 01000000 0700",
        &[
            "02000000 02000000 02000000 00000200 00000000 00000000 01000000 0700",
            "01000000 02000000 01000000 00000200 00000000 00000000 01000000 0700",
        ],
    );
}

#[test]
fn a_varying_array_may_hold_fewer_than_its_size() {
    let list = parameters(&[("count", Shape::U32), ("items", counted(Order::ConformantVarying))]);
    held(&list, "03000000 03000000 00000000 01000000 0700", &["02000000 03000000 00000000 01000000 0700"]);
    let list = parameters(&[("count", Shape::U32), ("items", counted(Order::Varying))]);
    held(&list, "03000000 00000000 01000000 0700", &["00000000 00000000 01000000 0700"]);
}

#[test]
fn a_size_that_no_sibling_says_is_not_checked() {
    // The results of an operation whose count is an argument.
    let list = parameters(&[("items", counted(Order::Conformant)), ("status", Shape::U32)]);
    assert!(decode(&unhex("01000000 0100 0000 05000000"), true, &list).is_ok());
}

#[test]
fn who_writes_a_contradiction_is_told_so() {
    let before = parameters(&[("count", Shape::U32), ("items", counted(Order::Conformant))]);
    let after = parameters(&[("items", counted(Order::Conformant)), ("count", Shape::U32)]);
    for (list, value) in [
        (before, record(&[Value::Integer(3), integers(&[1, 2])])),
        (after, record(&[integers(&[1, 2]), Value::Integer(3)])),
    ] {
        let failure = value.encode(&list, &mut NdrSink::new(true)).unwrap_err();
        assert_eq!((failure.kind(), failure.initiator()), (Kind::BadArgument, Initiator::User));
        assert!(
            failure.to_string().contains("2 elements, but `count`, which says how many, is 3"),
            "{failure}"
        );
    }
    let list = parameters(&[("count", Shape::U8), ("items", sized(Order::Conformant, Shape::U8, "count"))]);
    let value = record(&[Value::Integer(3), Value::Bytes(vec![1, 2, 3].into())]);
    assert_eq!(unnamed(&decode(&encode(&value, false, &list), false, &list).unwrap().0), value);
}

#[test]
fn an_array_with_fewer_elements_than_there_is_room_for_says_both() {
    // What Next answers: the maximum count is what the caller asked for.
    let list = parameters(&[("rgelt", counted(Order::ConformantVarying)), ("fetched", Shape::U32)]);
    let written = |room: u32| {
        let mut sink = NdrSink::new(true);
        (Within(vec![7_u16, 8], room), 2_u32).marshal_list(&list, &mut sink).unwrap();
        sink.into_bytes().unwrap()
    };
    assert_eq!(written(5), unhex("05000000 00000000 02000000 0700 0800 02000000"));
    assert_eq!(written(2), unhex("02000000 00000000 02000000 0700 0800 02000000"));
    // It holds for that array alone.
    let two =
        parameters(&[("a", counted(Order::ConformantVarying)), ("b", counted(Order::ConformantVarying))]);
    let mut sink = NdrSink::new(true);
    (Within(vec![7_u16, 8], 5_u32), Present(vec![9_u16, 9])).marshal_list(&two, &mut sink).unwrap();
    let bytes = "05000000 00000000 02000000 0700 0800 02000000 00000000 02000000 0900 0900";
    assert_eq!(sink.into_bytes().unwrap(), unhex(bytes));
}

/// What MIDL's `[size_is(size / 2), length_is(length / 2)]` around 16-bit numbers is.
fn halves() -> Shape {
    alias("length_is(length / 2)", alias("size_is(size / 2)", ordered(Order::ConformantVarying, Shape::U16)))
}

/// RPC_UNICODE_STRING (MS-DTYP 2.3.10): its lengths are in octets, the counts of its array in units of two.
fn unicode_string() -> Shape {
    structure("US", &[("length", Shape::U16), ("size", Shape::U16), ("text", unique(halves()))])
}

fn written(list: &Shape, values: &[Value]) -> Result<Vec<u8>, everywire_model::Failure> {
    let mut sink = NdrSink::new(true);
    record(values).encode(list, &mut sink)?;
    sink.into_bytes()
}

#[test]
fn a_size_that_is_computed_is_the_maximum_count() {
    let list = parameters(&[("name", unicode_string())]);
    held(
        &list,
        "0400 0a00 00000200 05000000 00000000 02000000 6800 6900",
        &[
            "0400 0a00 00000200 04000000 00000000 02000000 6800 6900",
            "0400 0a00 00000200 0a000000 00000000 02000000 6800 6900",
            "0600 0a00 00000200 05000000 00000000 02000000 6800 6900",
        ],
    );
    let value =
        |length, size| record(&[Value::Integer(length), Value::Integer(size), integers(&[0x68, 0x69])]);
    let bytes = written(&list, &[value(4, 10)]).unwrap();
    assert_eq!(bytes, unhex("0400 0a00 00000200 05000000 00000000 02000000 6800 6900"));
    for (value, what) in [
        (value(4, 2), "2 elements, but `size / 2`, which says how many, is 1"),
        (value(2, 10), "2 elements, but `length / 2`, which says how many, is 1"),
    ] {
        let failure = written(&list, &[value]).unwrap_err();
        assert_eq!((failure.kind(), failure.initiator()), (Kind::BadArgument, Initiator::User));
        assert!(failure.to_string().contains(what), "{failure}");
    }
}

#[test]
fn every_expression_that_midl_has_a_descriptor_for_is_held() {
    // Two elements, and the count beside them.
    for (attribute, count) in [
        ("size_is(count / 2)", 4),
        ("size_is(count / 2)", 5),
        ("size_is(count * 2)", 1),
        ("size_is(count + 1)", 1),
        ("size_is(count - 1)", 3),
        ("size_is(*count - 1)", 3),
        ("max_is(count)", 1),
        ("size_is((count + 7) / 8)", 16),
    ] {
        let items = alias(attribute, ordered(Order::Conformant, Shape::U16));
        for list in [
            parameters(&[("count", Shape::U32), ("items", items.clone())]),
            parameters(&[("count", pointer(PointerKind::Ref, Shape::U32)), ("items", items.clone())]),
        ] {
            let right = format!("{count:02x}000000 02000000 0100 0200");
            held(&list, &right, &["20000000 02000000 0100 0200", "ffffffff 02000000 0100 0200"]);
            assert!(written(&list, &[Value::Integer(count), integers(&[1])]).is_err(), "{attribute}");
        }
    }
    // What is not computed is what there is.
    let list = parameters(&[
        ("count", Shape::U32),
        ("items", alias("size_is(header->count)", ordered(Order::Conformant, Shape::U16))),
    ]);
    assert!(decode(&unhex("09000000 02000000 0100 0200"), true, &list).is_ok());
}

#[test]
fn the_part_of_an_array_that_travels_is_as_long_as_is_said() {
    let array = |attributes: &str| {
        let items = alias(attributes, sized(Order::ConformantVarying, Shape::U16, "size"));
        parameters(&[("size", Shape::U32), ("used", Shape::U32), ("items", items)])
    };
    let lie = "04000000 03000000 04000000 00000000 02000000 0100 0200";
    held(&array("length_is(used)"), "04000000 02000000 04000000 00000000 02000000 0100 0200", &[lie]);
    held(&array("last_is(used)"), "04000000 01000000 04000000 00000000 02000000 0100 0200", &[lie]);
    held(
        &array("first_is(0), last_is(used)"),
        "04000000 01000000 04000000 00000000 02000000 0100 0200",
        &[lie],
    );
    // An array with a size of its own has the second count alone.
    let fixed = alias("length_is(used)", ordered(Order::Varying, Shape::U16));
    let list = parameters(&[("used", Shape::U32), ("items", fixed)]);
    held(&list, "02000000 00000000 02000000 0100 0200", &["03000000 00000000 02000000 0100 0200"]);
    // An array whose part begins elsewhere is refused: its elements would come to stand at other places.
    let list = array("first_is(used)");
    let failure = written(&list, &[Value::Integer(4), Value::Integer(1), integers(&[1, 2])]).unwrap_err();
    assert_eq!(failure.kind(), Kind::Unsupported);
    assert!(failure.to_string().contains("begins at element 1 (`first_is(used)`)"), "{failure}");
}

#[test]
fn a_size_that_comes_after_its_array_still_is_the_maximum_count() {
    // As in RegEnumValue of MS-RRP: the room stands behind the array.
    let items = |order| alias("length_is(used)", alias("size_is(room)", ordered(order, Shape::U16)));
    let values = [integers(&[1, 2]), Value::Integer(5), Value::Integer(2)];
    let list = |items| parameters(&[("items", items), ("room", Shape::U32), ("used", Shape::U32)]);
    let bytes = written(&list(items(Order::ConformantVarying)), &values).unwrap();
    assert_eq!(bytes, unhex("05000000 00000000 02000000 0100 0200 05000000 02000000"));
    // In a struct, where the array is put behind all fields.
    let holder = |items| {
        structure(
            "H",
            &[("a", Shape::U8), ("items", unique(items)), ("room", Shape::U32), ("used", Shape::U32)],
        )
    };
    let list = parameters(&[("h", holder(items(Order::ConformantVarying))), ("after", Shape::U8)]);
    let value = record(&[&[Value::Integer(7)], &values[..]].concat());
    assert_eq!(
        written(&list, &[value, Value::Integer(9)]).unwrap(),
        unhex("07000000 00000200 05000000 02000000 05000000 00000000 02000000 0100 0200 09")
    );
    // A room that is too small is refused, and so is an array that cannot have any.
    let list = |items| parameters(&[("items", items), ("room", Shape::U32), ("used", Shape::U32)]);
    let small = [integers(&[1, 2]), Value::Integer(1), Value::Integer(2)];
    assert!(written(&list(items(Order::ConformantVarying)), &small).is_err());
    assert!(written(&list(alias("size_is(room)", ordered(Order::Conformant, Shape::U16))), &values).is_err());
}

#[test]
fn a_string_in_a_buffer_has_the_room_that_is_said() {
    let text = || alias("size_is(room * 2)", wide());
    let before = parameters(&[("room", Shape::U32), ("name", text())]);
    held(
        &before,
        "02000000 04000000 00000000 03000000 6800 6900 0000",
        &["02000000 03000000 00000000 03000000 6800 6900 0000"],
    );
    let hi = || Value::Text("hi".to_owned());
    assert!(written(&before, &[Value::Integer(1), hi()]).is_err());
    let after = parameters(&[("name", text()), ("room", Shape::U16)]);
    assert_eq!(
        written(&after, &[hi(), Value::Integer(2)]).unwrap(),
        unhex("04000000 00000000 03000000 6800 6900 0000 0200")
    );
}

#[test]
fn a_string_in_an_array_of_a_fixed_size_stands_in_place() {
    // C706 14.3.4.1: offset, actual count with the NUL, characters. MIDL's own engine calls it FC_CSTRING and FC_WSTRING.
    let fixed = |kind, len: u32| {
        let text = Shape::Text(Text { kind, bound: Some(len - 1) });
        alias(&format!("string({len})"), text)
    };
    let shape = structure(
        "S",
        &[
            ("a", Shape::U8),
            ("name", fixed(TextKind::Narrow, 20)),
            ("wide", fixed(TextKind::Wide, 4)),
            ("p", unique(Shape::U16)),
            ("two", array(2, fixed(TextKind::Narrow, 3))),
        ],
    );
    let list = parameters(&[("s", shape), ("n", fixed(TextKind::Narrow, 4)), ("after", Shape::U8)]);
    let text = |text: &str| Value::Text(text.to_owned());
    let inner = |name: &str, wide: &str| {
        let two = Value::List(vec![text("x"), text("yz")]);
        record(&[Value::Integer(1), text(name), text(wide), Value::Integer(7), two])
    };
    let value = record(&[inner("ann", "hi"), text("end"), Value::Integer(9)]);
    let bytes = unhex(
        "01000000 00000000 04000000 616e6e00 00000000 03000000 6800 6900 0000 0000 \
         00000200 00000000 02000000 7800 0000 00000000 03000000 797a00 00 0700 0000 \
         00000000 04000000 656e6400 09",
    );
    assert_eq!(encode(&value, true, &list), bytes);
    let (read, rest) = decode(&bytes, true, &list).unwrap();
    assert_eq!((unnamed(&read), rest), (value, 0));
    // It has room for so much.
    for inner in [inner("ann", "four"), inner("a name of twenty ones", "hi")] {
        assert!(written(&list, &[inner, text("end"), Value::Integer(9)]).is_err());
    }
    let one = parameters(&[("n", fixed(TextKind::Narrow, 4))]);
    for (hex, violation) in [
        ("00000000 05000000 6162636400", "ndr BoundExceeded"),
        ("00000000 03000000 616263", "ndr BadText"),
        ("00000000 00000000", "ndr BadText"),
        ("01000000 02000000 6100", "ndr BadVariance"),
        ("00000000 ffffffff 6100", "ndr Truncated"),
    ] {
        let failure = decode(&unhex(hex), true, &one).unwrap_err();
        assert_eq!(code(&failure), violation, "{hex}: {failure}");
    }
}

/// A union of a number of either width, which `attribute` chooses.
fn chosen(attribute: &str, discriminator: Shape) -> Shape {
    alias(attribute, union(discriminator, &[(1, "one", Shape::U16), (2, "two", Shape::U32)]))
}

#[test]
fn a_union_has_the_arm_that_is_chosen_beside_it() {
    let kind = enumeration(16, &[("one", 1), ("two", 2)]);
    let level = || ("level", Shape::U32);
    for (shape, right, wrong) in [
        // What chooses stands before it or behind it, behind a pointer, or in a struct with it.
        (
            parameters(&[level(), ("u", chosen("switch_is(level)", Shape::U32))]),
            "01000000 01000000 0700",
            "02000000 01000000 0700",
        ),
        (
            parameters(&[("u", chosen("switch_is(level)", Shape::I16)), level()]),
            "0100 0700 01000000",
            "0100 0700 02000000",
        ),
        (
            parameters(&[
                ("level", unique(Shape::U32)),
                ("u", unique(chosen("switch_is(*level)", Shape::I32))),
            ]),
            "00000200 01000000 04000200 01000000 0700",
            "00000200 03000000 04000200 01000000 0700",
        ),
        (
            parameters(&[("kind", kind.clone()), ("u", chosen("switch_is(kind)", kind.clone()))]),
            "0100 0100 0700",
            "0200 0100 0700",
        ),
        (
            parameters(&[("c", Shape::Char), ("u", chosen("switch_is(c - 48)", Shape::U8))]),
            "31 01 0700",
            "32 01 0700",
        ),
        (
            parameters(&[(
                "s",
                structure("S", &[("level", Shape::U16), ("u", chosen("switch_is(level & 15)", Shape::U16))]),
            )]),
            "2100 0100 0700",
            "2200 0100 0700",
        ),
    ] {
        let bytes = unhex(right);
        let (value, rest) = decode(&bytes, true, &shape).unwrap();
        assert_eq!((rest, encode(&value, true, &shape)), (0, bytes));
        let failure = decode(&unhex(wrong), true, &shape).unwrap_err();
        assert_eq!(
            (code(&failure), failure.kind()),
            ("ndr ArmMismatch", Kind::Malformed),
            "{wrong}: {failure}"
        );
    }
    let arm = || Value::Union(1, Some(Box::new(("one".to_owned(), Value::Integer(7)))));
    let list = parameters(&[level(), ("u", chosen("switch_is(level)", Shape::U32))]);
    let failure = written(&list, &[Value::Integer(2), arm()]).unwrap_err();
    assert_eq!((failure.kind(), failure.initiator()), (Kind::BadArgument, Initiator::User));
    assert!(failure.to_string().contains("a union of arm 1, but `level`, which chooses, is 2"), "{failure}");
    // The number in the arm chooses nothing, and of what is wider the bits count that travel.
    let narrow = parameters(&[level(), ("u", chosen("switch_is(level)", Shape::U16))]);
    assert!(written(&narrow, &[Value::Integer(0x0001_0001), arm()]).is_ok());
    // What chooses it is not beside it: the results of an operation whose level is an argument.
    let results = parameters(&[("u", chosen("switch_is(level)", Shape::U32)), ("status", Shape::U32)]);
    assert!(written(&results, &[arm(), Value::Integer(9)]).is_ok());
}

/// Sizes with constants and choices are what travels as the maximum count (C706 14.3.3.1), on both sides.
#[test]
fn sizes_of_constants_and_choices_are_computed() {
    let text = "const long MOST = 3; enum { FEW = 2 };
        [uuid(6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a2c01), pointer_default(unique)] interface sizes {
        long room([in] long n, [in, size_is(MOST), length_is(n)] short *v);
        long chosen([in] long n, [in, size_is(n ? n : 1)] short *v);
        long less([in] long n, [in, size_is(n && n < MOST ? FEW : MOST * 2)] short *v);
        long own([in] long MOST, [in, size_is(MOST)] short *v); };";
    let contract = everywire_idl::midl::parse(text, "sizes.idl").unwrap();
    let list = |name: &str| {
        let operations = &contract.interface("sizes").unwrap().operations;
        operations.iter().find(|operation| operation.name == name).unwrap().arguments.clone()
    };
    held(
        &list("room"),
        "02000000 03000000 00000000 02000000 0700 0800",
        &["02000000 02000000 00000000 02000000 0700 0800", "01000000 03000000 00000000 02000000 0700 0800"],
    );
    held(&list("chosen"), "00000000 01000000 0700", &["00000000 00000000", "02000000 01000000 0700"]);
    held(&list("less"), "01000000 02000000 0700 0800", &["03000000 02000000 0700 0800"]);
    held(&list("own"), "01000000 01000000 0700", &["03000000 01000000 0700"]);
    // More elements than there is room for do not go out.
    let value = record(&[Value::Integer(4), integers(&[1, 2, 3, 4])]);
    let failure = value.encode(&list("room"), &mut NdrSink::new(true)).unwrap_err();
    assert_eq!((failure.kind(), failure.initiator()), (Kind::BadArgument, Initiator::User));
    assert!(failure.to_string().contains("4 elements, where the contract says 3"), "{failure}");
}
