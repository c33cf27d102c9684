//! Type information of Windows hosts: read to the last byte, and written as they write it.

use super::library::{Info, KIND_CLASS, KIND_DISPATCH};
use super::reading::RemoteTypeInfo;
use super::types::{VT_PTR, behind, elemdesc, simple};
use crate::standard::contracts::{FUNCDESC, TYPE_INFO, TYPEATTR, TYPEDESC, TypedescTdUnion};
use crate::{NDR, NdrSink, NdrSource};
use bytes::Bytes;
use everywire_model::contract::{Direction, Interface, InterfaceKind, Operation, Parameter};
use everywire_model::counts::Within;
use everywire_model::describe::{WIDE_TEXT, interface};
use everywire_model::object::{Completion, Target, Ticket, no_operation};
use everywire_model::shape::{Field, Shape};
use everywire_model::value::Value;
use everywire_model::{
    Body, Budget, Context, Encode, Failure, Hold, MarshalList, Method, Object, Outcome, Reference, Resolver,
    Unmarshal, Visit,
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

fn operation(name: &str) -> &'static Operation {
    TYPE_INFO.operations.iter().find(|operation| operation.name == name).unwrap()
}

/// The description that a stub answers with.
fn described<T: for<'a> Unmarshal<'a>>(stub: &[u8], name: &str) -> T {
    let (told, _) = body(stub).decode::<(Option<T>, u32)>(&operation(name).results).unwrap();
    told.unwrap()
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

#[test]
fn captured_descriptions_are_read_to_the_end() {
    let mut seen = 0;
    for operation in ["GetTypeAttr", "GetFuncDesc", "GetNames", "GetDocumentation"].map(operation) {
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
    let told = captured("GetTypeAttr");
    let told = told.iter().map(|stub| described::<TYPEATTR>(stub, "GetTypeAttr"));
    let kinds: Vec<(i32, u16)> = told.map(|told| (told.typekind, told.c_funcs)).collect();
    assert_eq!(kinds, [(KIND_CLASS, 0), (KIND_DISPATCH, 19), (KIND_DISPATCH, 23), (KIND_DISPATCH, 49)]);
}

#[test]
fn what_leaves_no_freedom_is_written_as_it_was_read() {
    let same = |stub: &[u8], written: Vec<u8>| {
        assert_eq!(written, stub[THAT..THAT + written.len()]);
        assert!(stub.len() - THAT - written.len() < HRESULT + 4);
    };
    for stub in captured("GetTypeAttr") {
        let (fields, _) = decode(&stub, operation("GetTypeAttr")).unwrap();
        same(&stub, encode(&fields, operation("GetTypeAttr")));
    }
    for stub in captured("GetNames") {
        let results = &operation("GetNames").results;
        let (names, count): (Vec<String>, u32) = body(&stub).decode(results).unwrap();
        // How many there was room for is said by the caller.
        let most = u32::from_le_bytes(*stub[THAT..].first_chunk().unwrap());
        let mut sink = NdrSink::at(THAT, true);
        (Within(names, most), count).marshal_list(results, &mut sink).unwrap();
        same(&stub, sink.into_bytes().unwrap());
    }
    // Of functions those whose types lead to no others: there referent ids follow one another.
    let plain: Vec<_> = captured("GetFuncDesc").into_iter().filter(|stub| stub.len() <= 80).collect();
    assert!(plain.len() > 30);
    for stub in plain {
        let (fields, _) = decode(&stub, operation("GetFuncDesc")).unwrap();
        let written = encode(&fields, operation("GetFuncDesc"));
        // Padding is not zero with everybody.
        let (fields_again, _) =
            decode(&[&stub[..THAT], &written, &[0; HRESULT]].concat(), operation("GetFuncDesc")).unwrap();
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
    let windows: TYPEATTR = described(&captured("GetTypeAttr")[3], "GetTypeAttr");
    let likened = |told: TYPEATTR| {
        let sizes = (told.cb_size_instance, told.cb_size_vft, told.cb_alignment);
        (told.lcid, told.dw_reserved2, sizes, told.typekind, told.c_impl_types, told.tdesc_alias)
    };
    assert_eq!(likened(ours), likened(windows));
    let function = info.function(0).unwrap();
    assert_eq!((function.memid, &function.elemdesc_func.tdesc), (5, &simple(11)));
    let parameters = vec![elemdesc(simple(8), 1), elemdesc(behind(VT_PTR, simple(3)), 2)];
    assert_eq!(function.lprgelemdesc_param, parameters);
    // What is written is read again.
    let results = &operation("GetFuncDesc").results;
    let mut sink = NdrSink::at(THAT, true);
    (Some(&function), 0_u32).marshal_list(results, &mut sink).unwrap();
    let stub = [&[0; THAT][..], &sink.into_bytes().unwrap(), &[0; HRESULT]].concat();
    assert_eq!(described::<FUNCDESC>(&stub, "GetFuncDesc"), function);
    assert_eq!(decode(&stub, operation("GetFuncDesc")).unwrap().1, HRESULT);
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
        match method.name() == b"GetNames" {
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
    let named = TYPEDESC { td_union: TypedescTdUnion::Hreftype(1), vt: 29 };
    let described = Info::called_by_name(Hold::Static(&EMPTY));
    let function = FUNCDESC {
        memid: 1,
        l_reserved1: Vec::new(),
        lprgelemdesc_param: vec![elemdesc(named, 1); 1000],
        funckind: 4,
        invkind: 1,
        callconv: 4,
        c_params_opt: 0,
        o_vft: 0,
        elemdesc_func: elemdesc(simple(24), 0),
        w_func_flags: 0,
    };
    let told = RemoteTypeInfo { info, attributes: described.attributes() };
    assert_eq!(told.operation(&function).unwrap().parameters.len(), 256);
    // The names, and each type.
    assert_eq!(host.called.load(Ordering::Relaxed), 1 + 256);
}
