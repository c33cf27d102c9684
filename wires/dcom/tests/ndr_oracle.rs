//! The same values as two other implementations write them, byte for byte (`golden/README.md`).

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{
    array, decode, encode, enumeration, ordered, parameters, pointer, record, sequence, sized, structure,
    unhex, union, unique, unnamed, variant, wide,
};
use everywire_model::Value;
use everywire_model::shape::{Order, PointerKind, Shape};

fn integer(value: i128) -> Value {
    Value::Integer(value)
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn handle() -> (&'static str, Shape) {
    ("handle", structure("policy_handle", &[("type", Shape::U32), ("uuid", common::guid())]))
}

fn policy() -> Value {
    let tail = Value::Bytes(vec![0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef].into());
    record(&[integer(3), record(&[integer(0x0123_4567), integer(0x89ab), integer(0xcdef), tail])])
}

/// A counted string of the LSA: bytes, room, and the characters without a NUL.
fn lsa_string() -> Shape {
    let characters = ordered(Order::ConformantVarying, Shape::U16);
    structure("String", &[("length", Shape::U16), ("size", Shape::U16), ("string", unique(characters))])
}

fn lsa(text: &str) -> Value {
    let units: Vec<Value> = text.encode_utf16().map(|unit| integer(unit.into())).collect();
    let bytes = integer(2 * units.len() as i128);
    record(&[bytes.clone(), bytes, Value::List(units)])
}

fn samba(name: &str) -> (Shape, Value) {
    let level = |bits| enumeration(bits, &[("all", 1), ("names", 6), ("expiry", 17)]);
    match name {
        "srvsvc.NetSrvSetInfo.in" => {
            let info = structure(
                "NetSrvInfo101",
                &[
                    ("platform_id", Shape::U32),
                    ("server_name", unique(wide())),
                    ("version_major", Shape::U32),
                    ("version_minor", Shape::U32),
                    ("server_type", Shape::U32),
                    ("comment", unique(wide())),
                ],
            );
            let shape = parameters(&[
                ("server_unc", unique(wide())),
                ("level", Shape::U32),
                (
                    "info",
                    union(
                        Shape::U32,
                        &[(100, "info100", unique(Shape::U64)), (101, "info101", unique(info))],
                    ),
                ),
                ("parm_error", unique(Shape::U32)),
            ]);
            let info =
                record(&[integer(500), text("box"), integer(5), integer(2), integer(0x11), text("a b")]);
            let arm = Value::Union(101, Some(Box::new(("info101".to_owned(), info))));
            (shape, record(&[text("\\\\host"), integer(101), arm, integer(7)]))
        }
        "winreg.EnumValue.in" => {
            let name = structure(
                "ValNameBuf",
                &[
                    ("length", Shape::U16),
                    ("size", Shape::U16),
                    ("name", unique(ordered(Order::ConformantVarying, Shape::U16))),
                ],
            );
            let shape = parameters(&[
                handle(),
                ("enum_index", Shape::U32),
                ("name", pointer(PointerKind::Ref, name)),
                ("type", unique(Shape::U32)),
                ("value", unique(sized(Order::ConformantVarying, Shape::U8, "size"))),
                ("size", unique(Shape::U32)),
                ("length", unique(Shape::U32)),
            ]);
            let name = record(&[integer(2), integer(2), Value::List(vec![integer(0)])]);
            let bytes = Value::Bytes(vec![1, 2, 3, 4].into());
            (shape, record(&[policy(), integer(2), name, integer(3), bytes, integer(4), integer(4)]))
        }
        "samr.SetUserInfo2.in.17" | "samr.SetUserInfo2.in.6" => {
            let names =
                structure("UserInfo6", &[("account_name", lsa_string()), ("full_name", lsa_string())]);
            let expiry = structure("UserInfo17", &[("low", Shape::U32), ("high", Shape::U32)]);
            let shape = parameters(&[
                handle(),
                ("level", level(16)),
                ("info", union(level(16), &[(6, "info6", names), (17, "info17", expiry)])),
            ]);
            let (level, label, arm, value) = if name.ends_with("17") {
                ("expiry", 17, "info17", record(&[integer(0x0506_0708), integer(0x0102_0304)]))
            } else {
                ("names", 6, "info6", record(&[lsa("ann"), lsa("Ann B")]))
            };
            let arm = Value::Union(label, Some(Box::new((arm.to_owned(), value))));
            (shape, record(&[policy(), Value::Member(level.to_owned()), arm]))
        }
        "lsa.LookupNames.in" => {
            let kind = enumeration(16, &[("user", 1)]);
            let sid =
                structure("TranslatedSid", &[("type", kind), ("rid", Shape::U32), ("index", Shape::U32)]);
            let sids = structure(
                "TransSidArray",
                &[("count", Shape::U32), ("sids", unique(sized(Order::Conformant, sid, "count")))],
            );
            let shape = parameters(&[
                handle(),
                ("num_names", Shape::U32),
                ("names", sized(Order::Conformant, lsa_string(), "num_names")),
                ("sids", pointer(PointerKind::Ref, sids)),
                ("level", level(16)),
                ("count", pointer(PointerKind::Ref, Shape::U32)),
            ]);
            let sid = || record(&[Value::Member("user".to_owned()), integer(500), integer(1)]);
            let sids = record(&[integer(2), Value::List(vec![sid(), sid()])]);
            let names = Value::List(vec![lsa("one"), lsa("two2")]);
            let all = Value::Member("all".to_owned());
            (shape, record(&[policy(), integer(2), names, sids, all, integer(9)]))
        }
        other => panic!("no shape for {other}"),
    }
}

fn impacket(name: &str) -> (Shape, Value) {
    let (shape, value) = match name {
        "variant.empty" => (Shape::Void, Value::Nothing),
        "variant.i2" => (Shape::I16, integer(-2)),
        "variant.i4" => (Shape::I32, integer(1_234_567)),
        "variant.i8" => (Shape::I64, integer(-3)),
        "variant.ui1" => (Shape::U8, integer(7)),
        "variant.r4" => (Shape::F32, Value::Float(0.5)),
        "variant.r8" => (Shape::F64, Value::Float(1.25)),
        "variant.byref.i4" => (unique(Shape::I32), integer(99)),
        "variant.byref.r8" => (unique(Shape::F64), Value::Float(2.5)),
        "variant.decimal" => {
            (common::decimal(), record(&[integer(0), integer(2), integer(0x80), integer(5), integer(6)]))
        }
        "dispparams" => {
            let arguments = vec![variant(Shape::I32, integer(5)), variant(Shape::F64, Value::Float(1.5))];
            let value =
                record(&[Value::List(arguments), Value::List(vec![integer(-3)]), integer(2), integer(1)]);
            return (parameters(&[("parameters", common::dispparams())]), record(&[value]));
        }
        other => panic!("no shape for {other}"),
    };
    (parameters(&[("value", Shape::Variant)]), record(&[variant(shape, value)]))
}

fn rows(tsv: &str) -> impl Iterator<Item = (&str, bool, Vec<u8>)> {
    tsv.lines().map(|row| {
        let mut columns = row.split('\t');
        let name = columns.next().unwrap();
        (name, columns.next().unwrap() == "little", unhex(columns.next().unwrap()))
    })
}

#[test]
fn samba_writes_the_same_bytes_in_both_orders() {
    let mut seen = 0;
    for (name, little, bytes) in rows(include_str!("golden/samba.tsv")) {
        let (shape, value) = samba(name);
        assert_eq!(encode(&value, little, &shape), bytes, "{name}, little {little}");
        let (read, rest) = decode(&bytes, little, &shape).unwrap();
        assert_eq!((unnamed(&read), rest), (value, 0), "{name}, little {little}");
        seen += 1;
    }
    assert_eq!(seen, 10);
}

#[test]
fn impacket_writes_the_same_values() {
    let mut seen = 0;
    for (name, little, bytes) in rows(include_str!("golden/impacket.tsv")) {
        let (shape, value) = impacket(name);
        let (read, rest) =
            decode(&bytes, little, &shape).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        assert_eq!((unnamed(&read), rest), (value.clone(), 0), "{name}");
        // Its padding is not zero, and its referent ids are random.
        let ours = encode(&value, little, &shape);
        assert_eq!(ours.len(), bytes.len(), "{name}");
        let id = |at: usize| {
            let word = at & !3;
            let word = ours.get(word..word + 4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
            word.is_some_and(|word| word >> 8 == 0x200 || word == 0x7265_7355)
        };
        let padding = [0xab, 0xbf];
        for (at, (ours, theirs)) in ours.iter().zip(&bytes).enumerate() {
            let free = id(at) || *ours == 0 && padding.contains(theirs);
            assert!(ours == theirs || free, "{name}, byte {at}: {ours:02x} instead of {theirs:02x}");
        }
        seen += 1;
    }
    assert_eq!(seen, 11);
}

#[test]
fn every_cut_and_every_changed_byte_of_them_is_a_value_or_a_named_failure() {
    for (name, little, bytes) in rows(include_str!("golden/samba.tsv")) {
        common::withstands(&bytes, little, &samba(name).0);
    }
    for (name, little, bytes) in rows(include_str!("golden/impacket.tsv")) {
        common::withstands(&bytes, little, &impacket(name).0);
    }
}

#[test]
fn fixed_arrays_of_structs_repeat_their_padding() {
    let shape = structure("S", &[("a", Shape::U8), ("b", Shape::U32), ("c", Shape::U8)]);
    let list = parameters(&[("list", array(2, shape.clone())), ("more", sequence(shape))]);
    let item = |n| record(&[integer(n), integer(n), integer(n)]);
    let value = record(&[Value::List(vec![item(1), item(2)]), Value::List(vec![item(3)])]);
    let bytes = unhex("01000000 01000000 01000000 02000000 02000000 02000000 01000000 03000000 03000000 03");
    assert_eq!(encode(&value, true, &list), bytes);
    assert_eq!(unnamed(&decode(&bytes, true, &list).unwrap().0), value);
}
