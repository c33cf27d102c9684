//! Hostile stubs: a named violation or a value, never a panic, never an allocation that the stub does not pay for.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{
    body, bstr, code, decode, parameters, pointer, record, sequence, shape_of, structure, stubs, unhex,
    unique, unnamed, variant, wide,
};
use everywire_dcom::{NdrSink, NdrSource};
use everywire_model::shape::{Hold, Order, PointerKind, Shape, Struct, Text, TextKind};
use everywire_model::visit::{Sink, Source};
use everywire_model::{Failure, Kind, Value};
use std::sync::OnceLock;

fn refused(list: &[(&str, Shape)], hex: &str) -> Failure {
    decode(&unhex(hex), true, &parameters(list)).unwrap_err()
}

#[test]
fn r1_counts_that_the_stub_cannot_hold_are_refused_before_anything_is_allocated() {
    for (shape, hex) in [
        (sequence(Shape::U8), "ffffffff 00"),
        (sequence(Shape::F64), "00000020 0000000000000000"),
        (unique(sequence(Shape::U32)), "01000000 ffffff7f"),
        (common::ordered(Order::Varying, Shape::U16), "00000000 ffffffff"),
        (structure("S", &[("n", Shape::U32), ("last", sequence(Shape::U64))]), "ffffffff 00000000 01000000"),
        (sequence(structure("Empty", &[])), "ffffffff"),
    ] {
        let failure = refused(&[("a", shape)], hex);
        assert_eq!(code(&failure), "ndr CountBeyondMessage", "{hex}: {failure}");
    }
    for hex in ["02000000 00000000 03000000 610062000000", "02000000 01000000 01000000 0000"] {
        assert_eq!(code(&refused(&[("a", wide())], hex)), "ndr BadVariance", "{hex}");
    }
    let failure = refused(&[("a", wide())], "ffffffff 00000000 ffffffff 6100");
    assert_eq!(code(&failure), "ndr Truncated");
}

#[test]
fn r1_counts_above_the_bound_or_the_budget_are_refused() {
    let bounded = everywire_model::shape::Sequence {
        element: Shape::U8,
        bound: Some(2),
        order: Order::Conformant,
        size: None,
    };
    let failure = refused(&[("a", Shape::Sequence(Hold::new(bounded)))], "03000000 010203");
    assert_eq!(code(&failure), "ndr BoundExceeded");

    let mut counted = body(&unhex("02000000 01000200"), true);
    counted.budget.elements = 1;
    let failure = NdrSource::new(&counted).open(&sequence(Shape::U16)).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded);
    // Octets are taken together, and are bytes alone.
    let mut octets = body(&unhex("04000000 01020304"), true);
    octets.budget.elements = 1;
    assert_eq!(NdrSource::new(&octets).bytes(&sequence(Shape::U8)).unwrap(), [1, 2, 3, 4].as_slice());
    octets.budget.bytes = 3;
    assert_eq!(NdrSource::new(&octets).bytes(&sequence(Shape::U8)).unwrap_err().kind(), Kind::LimitExceeded);
}

/// A reader in C has room for so many octets of a narrow text, and for so many units of a wide one: the writer counts as it does.
#[test]
fn both_sides_count_bounded_texts_alike() {
    let text = |kind, bound| parameters(&[("a", Shape::Text(Text { kind, bound: Some(bound) }))]);
    for (kind, value, size) in [(TextKind::Narrow, "€€", 6), (TextKind::Wide, "😀x", 3)] {
        let value = Value::Struct(vec![("a".into(), Value::Text(value.into()))]);
        let failure = value.encode(&text(kind, size - 1), &mut NdrSink::new(true)).unwrap_err();
        assert!(failure.message().contains(&size.to_string()), "{failure}");
        let stub = common::encode(&value, true, &text(kind, size));
        assert_eq!(decode(&stub, true, &text(kind, size)).unwrap().0, value);
    }
}

/// A list whose nodes hold one full pointer each.
fn list() -> Shape {
    static NODE: OnceLock<Shape> = OnceLock::new();
    static STRUCT: OnceLock<Struct> = OnceLock::new();
    NODE.get_or_init(|| {
        let next = pointer(PointerKind::Full, Shape::Struct(Hold::Later(&STRUCT)));
        let fields = common::fields(&[("left", next.clone()), ("right", next)]);
        STRUCT.get_or_init(|| Struct { name: "Node".into(), id: "".into(), fields: fields.into() });
        Shape::Struct(Hold::Later(&STRUCT))
    })
    .clone()
}

#[test]
fn r7_a_cycle_of_full_pointers_ends_at_the_depth_limit() {
    let root = pointer(PointerKind::Full, list());
    let mut body = body(&unhex("01000000 01000000 00000000"), true);
    body.budget.depth = 1000;
    let failure =
        body.read(|source| Value::decode(&parameters(&[("root", root.clone())]), source)).unwrap_err();
    assert_eq!((code(&failure), failure.kind()), ("ndr PointerDepth", Kind::LimitExceeded), "{failure}");
}

#[test]
fn r7_reuse_of_referents_cannot_explode() {
    // Each node points twice to the next: 2^n visits for 8n bytes.
    let mut hex = String::from("01000000");
    for id in 2..30_u32 {
        let id = id.swap_bytes();
        hex.push_str(&format!("{id:08x}{id:08x}"));
    }
    hex.push_str("0000000000000000");
    let body = body(&unhex(&hex), true);
    let shape = parameters(&[("root", pointer(PointerKind::Full, list()))]);
    let failure = body.read(|source| Value::decode(&shape, source)).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
    assert!(failure.message().starts_with("aliases of pointers"), "{failure}");
}

#[test]
fn r7_null_where_a_value_is_promised_is_named() {
    let by_ref = structure("S", &[("p", pointer(PointerKind::Ref, Shape::U8))]);
    for shape in [
        by_ref,
        structure("T", &[("t", wide())]),
        structure("L", &[("l", sequence(Shape::U8)), ("n", Shape::U8)]),
    ] {
        assert_eq!(code(&refused(&[("a", shape)], "00000000 00000000")), "ndr NullReference");
    }
}

fn nested_variants(depth: usize) -> Result<Vec<u8>, Failure> {
    let mut sink = NdrSink::new(true);
    for _ in 0..depth {
        sink.open(&Shape::Variant, 1)?;
        sink.content(&Shape::Variant)?;
    }
    sink.open(&Shape::Variant, 1)?;
    sink.content(&Shape::U8)?;
    sink.u8(1)?;
    for _ in 0..=depth {
        sink.close(&Shape::Variant)?;
    }
    sink.into_bytes()
}

#[test]
fn o6_variants_nest_only_so_deep() {
    assert!(decode(&nested_variants(15).unwrap(), true, &Shape::Variant).is_ok());
    assert_eq!(code(&nested_variants(16).unwrap_err()), "ndr VariantDepth");
    // A peer has no such scruples: one more VARIANT around a legal nest.
    let inner = nested_variants(15).unwrap();
    let mut bytes = unhex("55736572 00000000");
    bytes.extend((inner.len() as u32 / 8 + 8).to_le_bytes());
    bytes.extend(unhex("00000000 0c40 0000 0000 0000 0c400000 01000000"));
    bytes.extend(inner);
    bytes.resize(bytes.len() + 64, 0);
    let failure = decode(&bytes, true, &Shape::Variant).unwrap_err();
    assert_eq!((code(&failure), failure.kind()), ("ndr VariantDepth", Kind::LimitExceeded), "{failure}");
}

#[test]
fn o6_types_of_variants_and_sizes_of_bstrs_must_agree() {
    let head = |size: &str, vt: &str, discriminant: &str| {
        format!("55736572 00000000 {size} 00000000 {vt} 000000000000 {discriminant}")
    };
    for (hex, name) in [
        (head("ffffffff", "0500", "05000000") + "00000000 000000000000", "ndr Truncated"),
        (head("03000000", "0300", "04000000") + "01000000", "ndr BadVariant"),
        (
            head("0a000000", "0800", "08000000")
                + "01000000 02000000 04000000 03000000 6100620000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000",
            "ndr BadBstr",
        ),
    ] {
        assert_eq!(code(&refused(&[("v", Shape::Variant)], &hex)), name, "{hex}");
    }
    assert_eq!(code(&refused(&[("b", bstr())], "55736572 ffffffff feffffff ffffffff 6100")), "ndr BadBstr");
    assert_eq!(code(&refused(&[("b", bstr())], "55736572 ffffff7f feffffff ffffff7f 6100")), "ndr Truncated");
    // Where the contract has text, no octets take its place.
    assert_eq!(
        refused(&[("b", bstr())], "55736572 01000000 01000000 01000000 6100").kind(),
        Kind::Unsupported
    );
    for vt in ["2500", "2540", "2520", "0e20", "0040", "0140", "ffff"] {
        let discriminant = match vt {
            "2520" | "0e20" => "00200000".to_owned(),
            "ffff" => "00600000".to_owned(),
            _ => format!("{vt}0000"),
        };
        let failure = refused(&[("v", Shape::Variant)], &(head("03000000", vt, &discriminant) + "01000000"));
        assert_eq!(failure.kind(), Kind::Unsupported, "{vt}: {failure}");
    }
}

#[test]
fn o6_the_size_of_a_variant_is_not_believed() {
    let shape = parameters(&[("v", Shape::Variant)]);
    for size in ["00000000", "02000000", "05000000", "ffffffff"] {
        let hex = format!("55736572 00000000 {size} 00000000 0300 000000000000 03000000 01000000");
        let (read, rest) = decode(&unhex(&hex), true, &shape).unwrap();
        assert_eq!((unnamed(&read), rest), (record(&[variant(Shape::I32, Value::Integer(1))]), 0), "{size}");
    }
}

#[test]
fn o6_safearrays_with_lying_dimensions_are_refused() {
    let array = |conformance: &str, dims: &str, size: &str, bounds: &str| {
        format!(
            "55736572 00000000 20000000 00000000 0320 000000000000 00200000 01000000 02000000 {conformance} {dims} 8000
             04000000 00000300 03000000 {size} 03000000 {bounds} {size} 01000000 02000000 {}",
            "00".repeat(256)
        )
    };
    let two = "02000000 00000000";
    for (hex, name) in [
        (array("01000000", "0200", "02000000", two), "ndr BadSafearray"),
        (array("00000000", "0000", "02000000", ""), "ndr BadSafearray"),
        (array("ffff0000", "ffff", "02000000", two), "ndr BadSafearray"),
        (array("02000000", "0200", "02000000", "00000100 00000000 00000100 00000000"), "ndr BadSafearray"),
        (array("01000000", "0100", "03000000", two), "ndr BadSafearray"),
        (array("01000000", "0100", "ffffff7f", "ffffff7f 00000000"), "ndr CountBeyondMessage"),
    ] {
        assert_eq!(code(&refused(&[("v", Shape::Variant)], &hex)), name, "{hex}");
    }
    // Rows without elements take no bytes: there are none.
    let rows = array("02000000", "0200", "00000000", "00000000 00000000 ffffff7f 00000000");
    let (value, _) = decode(&unhex(&rows), true, &Shape::Variant).unwrap();
    let Value::Variant(content) = value else { panic!("no variant") };
    assert_eq!(content.1, Value::List(Vec::new()));
    let grid = array("02000000", "0200", "04000000", "02000000 00000000 02000000 00000000");
    assert!(decode(&unhex(&grid), true, &parameters(&[("v", Shape::Variant)])).is_ok());
    // A contract that knows one dimension.
    let flat = common::alias("SAFEARRAY", sequence(Shape::I32));
    let failure = decode(&unhex(&grid)[28..], true, &parameters(&[("a", flat)])).unwrap_err();
    assert_eq!(failure.kind(), Kind::Unsupported, "{failure}");
}

#[test]
fn o6_safearrays_that_say_another_type_are_refused() {
    // FADF_HAVEVARTYPE says VT_BSTR (8) of an array of 32-bit numbers.
    let array = |features: &str, locks: &str, sf_type: &str| {
        format!(
            "55736572 00000000 20000000 00000000 0320 000000000000 00200000 01000000 02000000 01000000 0100 {features}
             04000000 {locks} {sf_type} 01000000 03000000 01000000 00000000 01000000 2a000000 {}",
            "00".repeat(256)
        )
    };
    let list = parameters(&[("v", Shape::Variant)]);
    for (features, locks, sf_type, fits) in [
        ("8000", "00000300", "03000000", true),
        ("8000", "05000300", "03000000", true),
        ("8000", "00001700", "03000000", true),
        ("8000", "00000000", "03000000", true),
        ("0000", "00000800", "03000000", true),
        ("8000", "00000800", "03000000", false),
        ("8000", "00000e00", "03000000", false),
        ("8000", "00000300", "0a000000", false),
        ("8000", "00000300", "0d800000", false),
    ] {
        let read = decode(&unhex(&array(features, locks, sf_type)), true, &list);
        match read {
            Ok(_) => assert!(fits, "{features} {locks} {sf_type}"),
            Err(failure) => assert_eq!((code(&failure), fits), ("ndr BadSafearray", false), "{failure}"),
        }
    }
}

#[test]
fn r8_a_server_cannot_make_its_client_allocate() {
    // What a client reads is held to the same budgets: elements, referents, bytes.
    let list = parameters(&[("list", unique(sequence(unique(Shape::U8))))]);
    let mut stub = unhex("00000200 00100000");
    stub.extend([1; 4 * 4096]);
    stub.extend([7; 4096]);
    let mut body = body(&stub, true);
    assert!(body.read(|source| Value::decode(&list, source)).is_ok());
    body.budget.elements = 6000;
    let failure = body.read(|source| Value::decode(&list, source)).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");

    let text = parameters(&[("text", wide())]);
    let mut stub = unhex("00020000 00000000 00020000");
    stub.extend([0x41, 0].repeat(512));
    let mut body = common::body(&stub, true);
    body.budget.bytes = 1023;
    let failure = body.read(|source| Value::decode(&text, source)).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
}

#[test]
fn every_truncation_of_every_stub_is_a_named_violation() {
    for (name, stub) in stubs() {
        let shape = shape_of(&name);
        let (_, rest) = decode(&stub, true, &shape).unwrap();
        for cut in 0..stub.len() - rest {
            let failure = decode(&stub[..cut], true, &shape).expect_err(&name);
            assert!(code(&failure).starts_with("ndr "), "{name} cut at {cut}: {failure}");
        }
    }
}

#[test]
fn every_flipped_byte_of_every_stub_is_a_value_or_a_named_failure() {
    for (name, stub) in stubs() {
        let shape = shape_of(&name);
        for at in 0..stub.len() {
            for byte in [0x00, 0x7f, 0x80, 0xff] {
                let mut bytes = stub.clone();
                bytes[at] = byte;
                for little in [true, false] {
                    if let Err(failure) = decode(&bytes, little, &shape) {
                        let kinds = [Kind::Malformed, Kind::LimitExceeded, Kind::Unsupported];
                        assert!(
                            kinds.contains(&failure.kind()),
                            "{name}, byte {at} as {byte:02x}: {failure}"
                        );
                    }
                }
            }
        }
    }
}
