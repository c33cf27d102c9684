//! Stubs of real traffic, most of it of Windows: decoded to the last byte, and encoded back.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{decode, encode, shape_of, stubs};
use everywire_dcom::{NDR, NdrSink, NdrSource};
use everywire_model::{Budget, Codec, Shape, Value};

/// Where a sender is free (ids of referents that are its addresses, padding), and how many bytes follow the
/// parameters (a verification trailer; j-Interop's blank tail).
fn freedom(name: &str) -> (&'static [(usize, usize)], usize) {
    match name {
        "AddItems.request" => (&[(82, 84)], 0),
        "SyncIO.Read.response.empty" | "SyncIO.Read.response.r4" | "SyncIO.Read.response.junk" => {
            (&[(36, 40)], 0)
        }
        "Invoke.request" => (&[(116, 120), (156, 160), (220, 224), (244, 248)], 0),
        "Invoke.response.dispatch" => (&[(12, 16), (36, 40)], 0),
        "Invoke.response.empty" => (&[(12, 16)], 0),
        "RemQueryInterface.request.4" => (&[], 60),
        "AddGroup.request.utgard" => (&[], 16),
        "AddItems.request.two" => (&[(40, 48), (68, 76)], 16),
        "SetState.request" => (&[(32, 36), (40, 44)], 16),
        _ => (&[], 0),
    }
}

#[test]
fn every_stub_decodes_to_the_end_and_encodes_to_the_same_bytes() {
    for (name, stub) in stubs() {
        let shape = shape_of(&name);
        let (value, rest) = decode(&stub, true, &shape).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        let (free, trailer) = freedom(&name);
        assert_eq!(rest, trailer, "{name}");
        let again = encode(&value, true, &shape);
        let used = &stub[..stub.len() - rest];
        assert_eq!(again.len(), used.len(), "{name}");
        let differing: Vec<usize> = (0..used.len())
            .filter(|at| used[*at] != again[*at] && !free.iter().any(|(from, to)| (from..to).contains(&at)))
            .collect();
        assert_eq!(differing, [0_usize; 0], "{name}");
        assert_eq!(decode(&again, true, &shape).unwrap(), (value, 0), "{name}");
    }
}

#[test]
fn every_stub_survives_the_other_byte_order() {
    for (name, stub) in stubs() {
        let shape = shape_of(&name);
        let (value, _) = decode(&stub, true, &shape).unwrap();
        let little = encode(&value, true, &shape);
        let big = encode(&value, false, &shape);
        assert_eq!(big.len(), little.len(), "{name}");
        assert_ne!(big, little, "{name}");
        assert_eq!(decode(&big, false, &shape).unwrap(), (value, 0), "{name}");
    }
}

#[test]
fn stubs_are_piped_without_building_values() {
    for (name, stub) in stubs() {
        let shape = shape_of(&name);
        let body = common::body(&stub, true);
        let piped = NDR.write(&mut |sink| body.pipe(&shape, sink)).unwrap();
        let (value, _) = decode(&stub, true, &shape).unwrap();
        assert_eq!(piped.bytes, encode(&value, true, &shape), "{name}");
        assert_eq!(piped.read(|source| Value::decode(&shape, source)).unwrap(), value, "{name}");
    }
}

#[test]
fn values_that_begin_inside_a_stub_are_aligned_from_its_start() {
    let shape = common::parameters(&[("a", Shape::U32), ("b", Shape::U64)]);
    let values = |name: &str, value| (name.to_owned(), Value::Integer(value));
    let value = Value::Struct(vec![values("a", 1), values("b", 2)]);
    let mut sink = NdrSink::at(4, true);
    value.encode(&shape, &mut sink).unwrap();
    let body = sink.into_body(Budget::default()).unwrap();
    assert_eq!((body.base, body.bytes.len()), (4, 12), "the second number needs no padding there");
    let mut source = NdrSource::new(&body);
    assert_eq!(Value::decode(&shape, &mut source).unwrap(), value);
    assert_eq!(source.rest(), 0);
}

fn field<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('.').fold(value, |value, name| match value {
        Value::Struct(fields) => &fields.iter().find(|(found, _)| found == name).unwrap().1,
        Value::List(items) => &items[name.parse::<usize>().unwrap()],
        Value::Variant(content) if name == "content" => &content.1,
        other => panic!("{name} of {}", other.noun()),
    })
}

fn decoded(name: &str) -> Value {
    let (_, stub) = stubs().into_iter().find(|(found, _)| found == name).unwrap();
    decode(&stub, true, &shape_of(name)).unwrap().0
}

#[test]
fn captured_values_are_what_the_programs_said() {
    let text = |text: &str| Value::Text(text.to_owned());
    let items = decoded("AddItems.request");
    assert_eq!(*field(&items, "pItemArray.0.szItemID"), text("Channel_0_User_Defined.Sine.Sine5"));
    assert_eq!(*field(&items, "pItemArray.0.szAccessPath"), text(""));
    assert_eq!(*field(&items, "pItemArray.0.hClient"), Value::Integer(0x0114_0268));

    let read = decoded("SyncIO.Read.response.r4");
    let Value::Float(sine) = field(&read, "ppItemValues.0.vDataValue.content") else { panic!("no float") };
    assert!((sine - 0.637_423_5).abs() < 1e-6, "{sine}");
    assert_eq!(*field(&read, "ppItemValues.0.wQuality"), Value::Integer(192));

    let invoke = decoded("Invoke.request");
    assert_eq!(*field(&invoke, "pDispParams.rgvarg.0.content"), text("7"));
    assert_eq!(*field(&invoke, "pDispParams.rgvarg.1.content"), text("/c notepad.exe"));
    assert_eq!(*field(&invoke, "pDispParams.rgvarg.2.content"), Value::Nothing);
    assert_eq!(*field(&invoke, "pDispParams.rgvarg.3.content"), text("c:\\windows\\system32\\cmd.exe"));

    let result = decoded("Invoke.response.dispatch");
    let Value::Reference(Some(dispatch)) = field(&result, "pVarResult.content") else {
        panic!("no reference")
    };
    assert_eq!(dispatch.type_id, "00020400-0000-0000-c000-000000000046");
    assert_eq!(dispatch.profiles[0].endpoints[1].to_string(), "tcp:172.16.66.36:135");
    assert_eq!(dispatch.profiles[0].key.len(), 16);
}
