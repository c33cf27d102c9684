//! Type information of Windows hosts: read to the last byte, and written as they write it.

use super::contracts::{GET_DOCUMENTATION, GET_FUNC_DESC, GET_NAMES, GET_TYPE_ATTR, TYPE_INFO};
use super::library::{Info, KIND_CLASS, KIND_DISPATCH};
use super::reading::Told;
use super::types::{VT_PTR, behind, elemdesc, simple};
use crate::{NDR, NdrSink, NdrSource};
use bytes::Bytes;
use everywire_model::contract::{Direction, Interface, InterfaceKind, Operation, Parameter};
use everywire_model::describe::{WIDE_TEXT, interface};
use everywire_model::object::{Completion, Target, Ticket, no_operation};
use everywire_model::shape::{Field, Shape};
use everywire_model::value::Value;
use everywire_model::{
    Body, Budget, Context, Encode, Failure, Hold, Method, Object, Outcome, Reference, Resolver, Visit,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Of `suricata_dcerpc-ctxids.pcap`: whole stubs of responses.
const CAPTURED: &str = include_str!("../../../../tests/golden/typeinfo.tsv");
/// Bytes of ORPCTHAT before the results, of an HRESULT behind them.
const THAT: usize = 8;
const HRESULT: usize = 4;

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
}

fn captured(name: &str) -> Vec<Vec<u8>> {
    let rows = CAPTURED.lines().filter_map(|row| row.split_once('\t'));
    rows.filter(|(held, _)| *held == name).map(|(_, stub)| unhex(stub)).collect()
}

/// What stands behind ORPCTHAT.
fn body(stub: &[u8]) -> Body {
    Body {
        bytes: Bytes::copy_from_slice(&stub[THAT..]),
        base: THAT,
        little: true,
        dialect: 0,
        context: Context::default(),
        budget: Budget::default(),
        codec: &NDR,
        beside: None,
    }
}

fn decode(stub: &[u8], operation: &Operation) -> Visit<(Vec<(String, Value)>, usize)> {
    let body = body(stub);
    let mut source = NdrSource::new(&body);
    match Value::decode(&operation.results, &mut source)? {
        Value::Struct(fields) => Ok((fields, source.rest())),
        other => panic!("{other:?}"),
    }
}

fn encode(value: &[(String, Value)], operation: &Operation) -> Vec<u8> {
    let mut sink = NdrSink::at(THAT, true);
    Value::Struct(value.to_vec()).encode(&operation.results, &mut sink).unwrap();
    sink.into_bytes().unwrap()
}

/// The named part of a value, through structs.
fn part<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, name| match value {
        Value::Struct(fields) => &fields.iter().find(|(held, _)| held == name).unwrap().1,
        other => panic!("{name} of {other:?}"),
    })
}

#[test]
fn captured_descriptions_are_read_to_the_end() {
    let mut seen = 0;
    for operation in [GET_TYPE_ATTR, GET_FUNC_DESC, GET_NAMES, GET_DOCUMENTATION] {
        for stub in captured(&operation.name) {
            let (_, rest) =
                decode(&stub, operation).unwrap_or_else(|failure| panic!("{}: {failure}", operation.name));
            assert!((HRESULT..HRESULT + 4).contains(&rest), "{}: {rest} bytes are left", operation.name);
            seen += 1;
        }
    }
    assert_eq!(seen, 168);
}

#[test]
fn captured_attributes_say_what_they_are_of() {
    let kinds: Vec<(i128, i128)> = captured("GetTypeAttr")
        .iter()
        .map(|stub| {
            let (fields, _) = decode(stub, GET_TYPE_ATTR).unwrap();
            let number = |name| match part(&fields[0].1, name) {
                Value::Integer(number) => *number,
                other => panic!("{other:?}"),
            };
            (number("typekind"), number("cFuncs"))
        })
        .collect();
    let (class, dispatch) = (i128::from(KIND_CLASS), i128::from(KIND_DISPATCH));
    assert_eq!(kinds, [(class, 0), (dispatch, 19), (dispatch, 23), (dispatch, 49)]);
}

#[test]
fn what_leaves_no_freedom_is_written_as_it_was_read() {
    for operation in [GET_TYPE_ATTR, GET_NAMES] {
        for stub in captured(&operation.name) {
            let (fields, _) = decode(&stub, operation).unwrap();
            let written = encode(&fields, operation);
            assert_eq!(written, stub[THAT..THAT + written.len()], "{}", operation.name);
            assert!(stub.len() - THAT - written.len() < HRESULT + 4);
        }
    }
    // Of functions those whose types lead to no others: there referent ids follow one another.
    let plain: Vec<_> = captured("GetFuncDesc").into_iter().filter(|stub| stub.len() <= 80).collect();
    assert!(plain.len() > 30);
    for stub in plain {
        let (fields, _) = decode(&stub, GET_FUNC_DESC).unwrap();
        let written = encode(&fields, GET_FUNC_DESC);
        // Padding is not zero with everybody.
        let (fields_again, _) =
            decode(&[&stub[..THAT], &written, &[0; HRESULT]].concat(), GET_FUNC_DESC).unwrap();
        assert_eq!(fields_again, fields);
        assert_eq!(written.len(), stub.len() - THAT - HRESULT);
    }
}

static EMPTY: Interface = interface!("Empty", "IDL:Empty:1.0", [], 0, &[]);

#[test]
fn a_dual_interface_is_described_as_windows_does() {
    // `Document.Save`-like members of the capture: two have one parameter, a BSTR and a pointer to a VARIANT.
    let parameter = |direction, name: &'static str, shape| Parameter {
        direction,
        field: Field { name: name.into(), shape },
    };
    let mut save = Operation::new(
        "Save",
        vec![parameter(Direction::In, "name", WIDE_TEXT), parameter(Direction::Out, "size", Shape::I32)],
        Shape::Bool,
    );
    save.id = Some(5);
    let held = Interface {
        kind: InterfaceKind::Dual,
        operations: vec![save].into(),
        id: "a22dfc6e-8cb3-7e45-9abb-ed2d189b8c38".into(),
        ..EMPTY.clone()
    };
    let info = Info::called_by_name(Hold::new(held));
    let ours = info.attributes();
    let (windows, _) = decode(&captured("GetTypeAttr")[3], GET_TYPE_ATTR).unwrap();
    for field in [
        "lcid",
        "dwReserved2",
        "cbSizeInstance",
        "typekind",
        "cImplTypes",
        "cbSizeVft",
        "cbAlignment",
        "tdescAlias",
    ] {
        assert_eq!(part(&ours, field), part(&windows[0].1, field), "{field}");
    }
    let function = info.function(0).unwrap();
    assert_eq!(part(&function, "memid"), &Value::Integer(5));
    assert_eq!(part(&function, "elemdescFunc.tdesc"), &simple(11));
    let parameters = Value::List(vec![elemdesc(simple(8), 1), elemdesc(behind(VT_PTR, simple(3)), 2)]);
    assert_eq!(part(&function, "lprgelemdescParam"), &parameters);
    // What is written is read again.
    let fields = vec![("told".to_owned(), function), ("pReserved".to_owned(), Value::Integer(0))];
    let stub = [&[0; THAT][..], &encode(&fields, GET_FUNC_DESC), &[0; HRESULT]].concat();
    let (again, rest) = decode(&stub, GET_FUNC_DESC).unwrap();
    assert_eq!((part(&again[0].1, "lprgelemdescParam"), rest), (&parameters, HRESULT));
    assert_eq!(info.names(5).unwrap(), ["Save", "name", "size"]);
}

/// Answers GetNames as a host did, and nothing else; counts the calls.
struct Host {
    called: AtomicUsize,
    reference: Reference,
}

impl Target for Host {
    fn reference(&self) -> &Reference {
        &self.reference
    }
    fn invoke(&self, method: Method<'_>, _: &dyn Encode) -> Outcome<Body> {
        self.called.fetch_add(1, Ordering::Relaxed);
        match method.name() == GET_NAMES.name.as_bytes() {
            true => Outcome::Done(body(&captured("GetNames")[0])),
            false => Outcome::Failed(no_operation(&EMPTY)),
        }
    }
    fn notify(&self, _: Method<'_>, _: &dyn Encode) -> Result<(), Failure> {
        Ok(())
    }
    fn submit(&self, _: Method<'_>, _: &dyn Encode, _: Completion) -> Ticket {
        Ticket(0)
    }
    fn withdraw(&self, _: Ticket) {}
    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn with_deadline(&self, _: Option<Duration>) -> Arc<dyn Target> {
        unimplemented!("nobody asks for one")
    }
    fn resolver(&self) -> Arc<dyn Resolver> {
        unimplemented!("nothing is resolved")
    }
}

#[test]
fn no_more_types_are_asked_for_than_parameters_may_be() {
    let host = Arc::new(Host { called: AtomicUsize::new(0), reference: Reference::default() });
    let info = Object::new(Arc::clone(&host) as Arc<dyn Target>).typed(Hold::Static(&TYPE_INFO));
    let named = Value::Struct(vec![
        ("_tdUnion".to_owned(), Value::Union(29, Some(Box::new(("hreftype".to_owned(), Value::Integer(1)))))),
        ("vt".to_owned(), Value::Integer(29)),
    ]);
    let parameters = Value::List(vec![elemdesc(named, 1); 1000]);
    let function = [("lprgelemdescParam".to_owned(), parameters)];
    let told = Told { info, attributes: Vec::new() };
    assert_eq!(told.operation(&function).unwrap().parameters.len(), 256);
    // The names, and each type.
    assert_eq!(host.called.load(Ordering::Relaxed), 1 + 256);
}
