//! Interfaces that are not called as COM's usual ones: procedures of plain DCE/RPC, and dispinterfaces.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::*;
use everywire_dcom::exporter::Correspondence;
use everywire_dcom::frame::{self, FIRST, LAST, PduKind};
use everywire_dcom::pdu::{Fault, Pdu, Response};
use everywire_dcom::standard::contracts::INVOKE;
use everywire_dcom::standard::dispatch::call::{Invocation, dispatch_of};
use everywire_dcom::{DCOM, Level, hresult};
use everywire_idl::midl;
use everywire_model::value::Value;
use everywire_model::variant::Variant;
use everywire_model::wire::Wire;
use everywire_model::*;
use std::any::Any;

/// A contract of both kinds.
fn contract(name: &str) -> Interface {
    let text = r#"
        [uuid(6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a2c01), version(2.3)]
        interface pump {
            void prime([in] handle_t h);
            long press([in] handle_t h, [in] long strokes);
        }
        [uuid(6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a2c02)]
        dispinterface Gauge {
            properties:
            methods:
                [id(7)] long Read([in] long channel);
        };
    "#;
    let contract = midl::parse(text, "kinds.idl").unwrap();
    (**contract.interface(name).unwrap()).clone()
}

fn pair(terms: Terms, key: &'static [u8], interface: Interface) -> (Pair, Profile) {
    let there = Node::serving();
    there.serve(key, interface);
    let way = class_way(terms.way());
    (Pair::to(&way, terms, Limits::default(), Node::empty(), there), way)
}

#[test]
fn procedures_are_called_without_an_object() {
    for level in [Level::None, Level::Integrity, Level::Privacy] {
        let pump = contract("pump");
        assert_eq!(pump.kind, InterfaceKind::Procedures);
        let (mut pair, way) = pair(Terms::at(level), b"pump", pump.clone());
        for turn in 0..2 {
            let id = pair.call(&way, &pump, 1, &put_int(turn));
            let incoming = pair.incoming();
            assert_eq!((&*incoming.key, &*incoming.operation), (&b"pump"[..], &[1, 0][..]));
            assert_eq!(int(&incoming.body), turn);
            pair.server.answer(incoming.id, Answer::Done(&put_int(turn + 40))).unwrap();
            assert_eq!(int(&done(pair.outcome(id))), turn + 40);
        }
        let failing = pair.call(&way, &pump, 0, &|_: &mut dyn Sink| Ok(()));
        let incoming = pair.incoming();
        let dry = Failure::new(Kind::Refused, Initiator::Here, "dry");
        pair.server.answer(incoming.id, Answer::Failed(&dry)).unwrap();
        assert_eq!(failure(pair.outcome(failing)).kind(), Kind::Refused);
        // The values alone, by the interface with its version.
        let sent = raw::pdus(&pair.sent);
        let asked = sent.iter().find_map(|(_, pdu, _)| match pdu {
            Pdu::AlterContext(asked) => asked.contexts.first().map(|element| element.interface),
            _ => None,
        });
        assert_eq!(asked.map(|syntax| (syntax.major, syntax.minor)), Some((2, 3)));
        if level == Level::None {
            let (header, call) = sent
                .iter()
                .find_map(|(header, pdu, _)| match pdu {
                    Pdu::Request(call) if call.opnum == 1 => Some((header, call)),
                    _ => None,
                })
                .unwrap();
            assert_eq!((header.flags & frame::OBJECT, call.object, call.stub.len()), (0, None, 4));
        }
    }
}

#[test]
fn procedures_of_another_version_are_others() {
    for (version, served) in [("2.3", true), ("2.1", true), ("2.4", false), ("1.3", false), ("0.0", false)] {
        let (mut pair, way) = pair(Terms::OPEN, b"pump", contract("pump"));
        let mut asked = contract("pump");
        let id = format!("{}/{version}", asked.id);
        asked.identities = vec![("dce".into(), id.into())].into();
        let id = pair.call(&way, &asked, 1, &put_int(1));
        let replies = pair.run().unwrap();
        assert_eq!(pair.calls.len(), usize::from(served), "{version}");
        // As version 0.0 it may be an interface of an object; and there is no object.
        let kind = if version == "0.0" { Kind::NoOperation } else { Kind::Unsupported };
        match &replies[..] {
            [] => assert!(served),
            [(of, Outcome::Failed(failure))] => assert_eq!((*of, failure.kind()), (id, kind), "{version}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn dispinterfaces_are_called_by_invoke() {
    let gauge = contract("Gauge");
    assert_eq!(gauge.kind, InterfaceKind::Dispatch);
    let there = Node::serving();
    there.serve(b"counter", gauge.clone());
    let way = class_way(Terms::OPEN.way());
    let mut pair = Pair::to(&way, Terms::OPEN, Limits::default(), Node::empty(), there);
    let way = pair.activate(&way, &gauge);
    for turn in 0..3_i128 {
        let arguments = (i32::try_from(turn).unwrap(),);
        let put = |sink: &mut dyn Sink| arguments.marshal_list(&gauge.operations[0].arguments, sink);
        let id = pair.call(&way, &gauge, 0, &put);
        let incoming = pair.incoming();
        assert_eq!((&*incoming.key, &*incoming.operation), (&b"counter"[..], &[6, 0][..]));
        let said = incoming.body.read(|source| Value::decode(&INVOKE.arguments, source)).unwrap();
        let said = format!("{said:?}");
        assert!(said.contains("(\"dispIdMember\", Integer(7))"), "{said}");
        assert!(said.contains(&format!("Integer({turn})")), "{said}");
        let result = Variant::new(Shape::I32, Value::Integer(turn + 10));
        let exception = (0_u16, 0_u16, "", "", "", 0_u32, 0_u32, 0_u32);
        let (a, b, c, d, e, f, g, h) = exception;
        let results = (result, (a, b, c, d, e, f, g, h, 0_u32), 0_u32, Vec::<Variant>::new(), 0_u32);
        let put = |sink: &mut dyn Sink| results.marshal_list(&INVOKE.results, sink);
        pair.server.answer(incoming.id, Answer::Done(&put)).unwrap();
        let body = done(pair.outcome(id));
        let value = body.read(|source| Value::decode(&gauge.operations[0].results, source)).unwrap();
        assert_eq!(value, Value::Struct(vec![("return".to_owned(), Value::Integer(turn + 10))]));
    }
}

/// So events come to the sink of a dispinterface.
#[test]
fn results_of_invoke_are_whole_under_the_name_of_a_dispinterface() {
    let gauge = contract("Gauge");
    let there = Node::serving();
    there.serve(b"counter", gauge.clone());
    let way = class_way(Terms::OPEN.way());
    let mut pair = Pair::to(&way, Terms::OPEN, Limits::default(), Node::empty(), there);
    let way = pair.activate(&way, &gauge);
    let dispatch = dispatch_of(&gauge);
    // The first call waits for its presentation context, the others go out at once.
    for code in [hresult::S_OK, hresult::DISP_E_EXCEPTION, hresult::DISP_E_TYPEMISMATCH] {
        let arguments = |sink: &mut dyn Sink| (4,).marshal_list(&gauge.operations[0].arguments, sink);
        let invocation = Invocation::new(&gauge, &gauge.operations[0], &arguments).unwrap();
        let id = pair.call(&way, &dispatch, 3, &invocation);
        let incoming = pair.incoming();
        let exception = (0_u16, 0_u16, "Gauge", "too hot", "", 0_u32, 0_u32, 0_u32, 0x8004_0201_u32);
        let results = (Variant::default(), exception, 0_u32, Vec::<Variant>::new(), code);
        let put = |sink: &mut dyn Sink| results.marshal_list(&INVOKE.results, sink);
        pair.server.answer(incoming.id, Answer::Done(&put)).unwrap();
        let body = done(pair.outcome(id));
        let Value::Struct(fields) = body.read(|source| Value::decode(&INVOKE.results, source)).unwrap()
        else {
            panic!("results are a struct")
        };
        assert_eq!(fields.last().unwrap().1, Value::Integer(code.into()));
        assert!(format!("{fields:?}").contains("too hot"));
    }
}

/// MS-DCOM 3.2.4.1.1: nothing ran, so the call is made again as the peer understands it.
#[test]
fn an_older_peer_is_called_by_its_version() {
    let counter = interface("Counter", COUNTER);
    let mut pair = Pair::new(Terms::OPEN);
    let way = pair.activate(&class_way(Terms::OPEN.way()), &counter);
    let id = pair.call(&way, &counter, 0, &put_int(5));
    let mut minors = Vec::new();
    let mut served = None;
    while served.is_none() {
        let sent = drain(&mut *pair.client);
        feed(&mut *pair.server, &sent).unwrap();
        for (header, pdu, raw) in raw::pdus(&sent) {
            let Pdu::Request(request) = pdu else { continue };
            minors.push(raw[request.stub.start + 2]);
            if minors.len() < 3 {
                let fault = Fault {
                    context: request.context,
                    cancels: 0,
                    flags: 0,
                    status: hresult::RPC_E_VERSION_MISMATCH,
                    stub: 0..0,
                };
                let mut out = Vec::new();
                Pdu::Fault(fault).write(&mut out, FIRST | LAST, header.call, &[]);
                feed(&mut *pair.client, &out).unwrap();
            } else {
                served = std::iter::from_fn(|| pair.server.poll()).find_map(|event| match event {
                    Event::Call(incoming) if incoming.operation == [3, 0][..] => Some(incoming),
                    _ => None,
                });
            }
        }
        let back = drain(&mut *pair.server);
        feed(&mut *pair.client, &back).unwrap();
        std::iter::from_fn(|| pair.server.poll()).for_each(drop);
    }
    assert_eq!(minors, [7, 6, 4]);
    let incoming = served.unwrap();
    pair.server.answer(incoming.id, Answer::Done(&put_int(6))).unwrap();
    assert_eq!(int(&done(pair.outcome(id))), 6);
    // From then on at once.
    let _ = pair.call(&way, &counter, 0, &put_int(1));
    let sent = drain(&mut *pair.client);
    let Pdu::Request(request) = &raw::pdus(&sent)[0].1 else { panic!() };
    assert_eq!(sent[request.stub.start + 2], 4);
}

#[test]
fn references_of_a_caller_are_called_as_that_caller() {
    for level in [Level::None, Level::Connect, Level::Integrity, Level::Privacy] {
        let terms = Terms { demanded: level.min(Level::Connect), ..Terms::at(level) };
        let counter = interface("Counter", COUNTER);
        let mut pair = Pair::new(terms);
        let way = pair.activate(&class_way(terms.way()), &counter);
        let _ = pair.call(&way, &counter, 0, &put_int(5));
        let incoming = pair.incoming();
        let wire_state: &dyn Any = &**incoming.body.wire_state().unwrap();
        let security = &wire_state.downcast_ref::<Correspondence>().unwrap().security;
        assert_eq!(security.level, level);
        let user = security.credentials.as_ref().map(|known| known.user.clone());
        assert_eq!(user.as_deref(), (level > Level::None).then_some("ali"));
    }
}

#[test]
fn the_first_call_of_an_object_follows_at_once() {
    // The way to a resolver at a port of its own, where objects mostly are, too.
    let mut way = class_way(Terms::OPEN.way());
    way.endpoints = vec![Endpoint::Tcp { host: "127.0.0.1".into(), port: 7001 }];
    let mut pair = Pair::to(&way, Terms::OPEN, Limits::default(), Node::empty(), Node::serving());
    let counter = interface("Counter", COUNTER);
    let object = pair.activate(&way, &counter);
    pair.sent.clear();
    let id = pair.call(&object, &counter, 0, &put_int(5));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(6))).unwrap();
    assert_eq!(int(&done(pair.outcome(id))), 6);
    let kinds: Vec<_> = raw::pdus(&pair.sent).iter().map(|(header, ..)| header.kind).collect();
    assert_eq!(kinds, [PduKind::Request]);
}

/// Values of plain DCE/RPC that look like ORPCTHIS, or like ORPCTHAT, are read as values where the contract tells what is called.
#[test]
fn listings_take_nothing_off_the_values_of_procedures() {
    let text = "[uuid(6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a2c01), version(2.3)] interface pump {
        long mix([in] short major, [in] short minor, [in] long words[8], [out] long *a, [out] long *b); }";
    let parsed = midl::parse(text, "plain.idl").unwrap();
    let pump = parsed.interface("pump").unwrap();
    let id = everywire_dcom::iid_of(pump);
    let mut asked = raw::bind(1, &[(id, 2)]);
    let mut stub = vec![5, 0, 7, 0];
    stub.resize(36, 0);
    stub[32] = 9;
    for object in [None, Some(COUNTER.parse().unwrap())] {
        asked.extend(raw::request(2, FIRST | LAST, 0, 0, object, &stub));
    }
    let listing = DCOM.explain(&asked);
    for message in &listing.messages[1..] {
        let whole = &asked[message.offset..message.offset + message.len];
        let body = DCOM.body_of(whole, message, Some(pump)).unwrap();
        assert_eq!((body.base, &*body.bytes), (0, &stub[..]));
    }
    // Nothing names an object here, so it is no call of one.
    assert!(listing.messages[1].part("ORPCTHIS").is_none() && listing.messages[2].part("ORPCTHIS").is_some());

    // The last word is no HRESULT.
    let stub = [0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 7, 0x80];
    let answer = Response { alloc_hint: 12, context: 0, cancels: 0, stub: 0..0 };
    let mut answered = Vec::new();
    Pdu::Response(answer).write(&mut answered, FIRST | LAST, 2, &stub);
    let listing = DCOM.explain(&answered);
    assert!(listing.messages[0].part("ORPCTHAT").is_some());
    let body = DCOM.body_of(&answered, &listing.messages[0], Some(pump)).unwrap();
    assert_eq!((body.base, &*body.bytes), (0, &stub[..]));
    assert!(DCOM.body_of(&answered, &listing.messages[0], None).is_none());
}
