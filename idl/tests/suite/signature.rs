//! D-Bus signatures: the rules of the specification, and shapes that D-Bus lacks.

use everywire_idl::signature::{self, SignatureError};
use everywire_model::shape::{Field, Map, Pointer, PointerKind, Sequence, Struct, Text};
use everywire_model::{Hold, Shape};
use std::borrow::Cow;
use std::sync::OnceLock;

fn of(shape: &Shape) -> Result<String, SignatureError> {
    let mut out = String::new();
    signature::of(shape, &mut out).map(|()| out)
}

#[test]
fn signatures_come_back_as_they_were() {
    let all = [
        "y",
        "b",
        "n",
        "q",
        "i",
        "u",
        "x",
        "t",
        "d",
        "s",
        "o",
        "g",
        "h",
        "v",
        "ay",
        "aay",
        "(i)",
        "(i(sv)a(yy))",
        "a{sv}",
        "a{oa{sa{sv}}}",
        "a{h(ax)}",
        "a(ssssssouso)",
        "(((((y)))))",
        "a{ya{ya{yv}}}",
    ];
    for text in all {
        let shape = signature::parse_one(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(of(&shape).unwrap(), text);
    }
    let list = signature::parse("sa{sv}as").unwrap();
    assert_eq!(list.len(), 3);
    let mut out = String::new();
    signature::of_list(&signature::nameless(list), &mut out).unwrap();
    assert_eq!(out, "sa{sv}as");
    assert!(signature::parse("").unwrap().is_empty());
    let Shape::Struct(shape) = signature::parse_one("(si)").unwrap() else { panic!() };
    assert_eq!((shape.name.as_ref(), shape.fields[1].name.as_ref()), ("", "field_2"));
}

#[test]
fn each_rule_is_kept() {
    use SignatureError::{
        ContainerKey, EmptyStruct, EntryFields, Incomplete, LoneEntry, NotOne, TooDeep, TooLong, UnknownCode,
    };
    let bad = [
        ("a", Incomplete),
        ("(", Incomplete),
        ("(i", Incomplete),
        ("a{", Incomplete),
        ("a{s", Incomplete),
        ("a{sv", Incomplete),
        ("()", EmptyStruct),
        ("a()", EmptyStruct),
        ("{sv}", LoneEntry { at: 0 }),
        ("({sv})", LoneEntry { at: 1 }),
        ("a{s{sv}}", LoneEntry { at: 3 }),
        ("a{vs}", ContainerKey { at: 2 }),
        ("a{(s)s}", ContainerKey { at: 2 }),
        ("a{ass}", ContainerKey { at: 2 }),
        ("a{}", EntryFields { at: 2 }),
        ("a{s}", EntryFields { at: 2 }),
        ("a{svs}", EntryFields { at: 4 }),
        ("(i}", EntryFields { at: 0 }),
        ("a{sv)", EntryFields { at: 4 }),
        (")", UnknownCode { code: ')', at: 0 }),
        ("}", UnknownCode { code: '}', at: 0 }),
        ("ir", UnknownCode { code: 'r', at: 1 }),
        ("ie", UnknownCode { code: 'e', at: 1 }),
        ("sé", UnknownCode { code: 'é', at: 1 }),
        ("s\0", UnknownCode { code: '\0', at: 1 }),
    ];
    for (text, error) in bad {
        assert_eq!(signature::parse(text).unwrap_err(), error, "{text}");
        assert!(!error.to_string().is_empty());
    }
    assert!(signature::parse(&"y".repeat(255)).is_ok());
    assert_eq!(signature::parse(&"y".repeat(256)).unwrap_err(), TooLong);
    let arrays = |n: usize| "a".repeat(n) + "y";
    let structs = |n: usize| "(".repeat(n) + "y" + &")".repeat(n);
    assert!(signature::parse(&arrays(32)).is_ok() && signature::parse(&structs(32)).is_ok());
    assert!(signature::parse(&("a".repeat(32) + &structs(32))).is_ok());
    assert_eq!(signature::parse(&arrays(33)).unwrap_err(), TooDeep);
    assert_eq!(signature::parse(&structs(33)).unwrap_err(), TooDeep);
    assert_eq!(signature::parse_one("ii").unwrap_err(), NotOne);
    assert_eq!(signature::parse_one("").unwrap_err(), NotOne);
}

/// Every text of up to five of these codes: what is read is written back the same.
#[test]
fn short_texts_are_read_or_refused() {
    let codes = ['a', '(', ')', '{', '}', 's', 'v', 'z'];
    let mut read = 0;
    for number in 0..8u32.pow(5) {
        let text: String = (0..5).map(|n| codes[(number / 8u32.pow(n) % 8) as usize]).collect();
        if let Ok(shapes) = signature::parse(&text) {
            let mut out = String::new();
            shapes.iter().for_each(|shape| signature::of(shape, &mut out).unwrap());
            assert_eq!(out, text);
            read += 1;
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn shapes_that_dbus_lacks_travel_as_others() {
    let idl = "enum E { one }; union U switch (E) { case one: long l; }; interface I {}; typedef float F;
        struct S { char a; wchar b; F c; E d; U g; I h; wstring j; octet k[3]; long l[2][2]; };";
    let contract = everywire_idl::omg::parse(idl, "shapes.idl").unwrap();
    let shape = contract.definitions.iter().find_map(|definition| match definition {
        everywire_model::Definition::Type(shape @ Shape::Struct(s)) if s.name == "S" => Some(shape.clone()),
        _ => None,
    });
    assert_eq!(of(&shape.unwrap()).unwrap(), "(ssdi(iv)ssayaai)");
    let narrow = || Shape::Text(Text::NARROW);
    assert_eq!(of(&Shape::I8).unwrap(), "y");
    assert_eq!(of(&Shape::Optional(Hold::new(narrow()))).unwrap(), "as");
    let target = Pointer { kind: PointerKind::Full, target: Shape::U64 };
    assert_eq!(of(&Shape::Pointer(Hold::new(target))).unwrap(), "t");
    let map = |key| Shape::Map(Hold::new(Map { key, value: Shape::Variant }));
    assert_eq!(of(&map(narrow())).unwrap(), "a{sv}");
    assert_eq!(of(&map(Shape::sequence(Shape::U8))).unwrap(), "a(ayv)");
    assert_eq!(of(&Shape::Void).unwrap_err(), SignatureError::NoValue);
    assert_eq!(of(&Shape::sequence(Shape::TypeCode)).unwrap_err(), SignatureError::TypeCode);
    assert_eq!(of(&signature::nameless(Vec::new())).unwrap_err(), SignatureError::EmptyStruct);
}

#[test]
fn types_that_contain_themselves_are_refused() {
    static LIST: OnceLock<Struct> = OnceLock::new();
    let inner = Shape::Struct(Hold::Later(&LIST));
    let next = Shape::Sequence(Hold::new(Sequence {
        element: inner.clone(),
        bound: None,
        order: everywire_model::shape::Order::Free,
        size: None,
    }));
    let fields =
        vec![Field { name: "a".into(), shape: next.clone() }, Field { name: "b".into(), shape: next }];
    LIST.set(Struct { name: "L".into(), id: "".into(), fields: Cow::Owned(fields) }).unwrap();
    assert_eq!(of(&inner).unwrap_err(), SignatureError::TooDeep);
    let wide = (0..40).fold(Shape::U8, |inner, _| signature::nameless(vec![inner.clone(), inner]));
    assert!(matches!(of(&wide).unwrap_err(), SignatureError::TooDeep | SignatureError::TooLong));
    let wide = (0..30).fold(Shape::U8, |inner, _| signature::nameless(vec![inner.clone(), inner]));
    assert_eq!(of(&wide).unwrap_err(), SignatureError::TooLong);
}

/// The specification bounds arrays and parentheses; a dict entry is part of its array.
#[test]
fn dict_entries_are_no_structs() {
    let inside = |structs: usize| format!("a{{s{}i{}}}", "(".repeat(structs), ")".repeat(structs));
    for (structs, good) in [(31, true), (32, true), (33, false)] {
        let text = inside(structs);
        assert_eq!(
            (signature::parse(&text).is_ok(), signature::check(text.as_bytes()).is_ok()),
            (good, good),
            "{structs}"
        );
    }
}
