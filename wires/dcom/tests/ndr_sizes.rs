//! `size_is`: an array and the parameter or field that says how long it is must agree.

#![allow(clippy::unwrap_used)]

use crate::common::{
    code, decode, encode, integers, parameters, pointer, record, sized, structure, unhex, unique, unnamed,
};
use everywire_dcom::NdrSink;
use everywire_model::counts::{Present, Within};
use everywire_model::shape::{Order, PointerKind, Shape};
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
