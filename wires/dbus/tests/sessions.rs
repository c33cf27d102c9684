//! Two sessions of this crate with each other: greeting, calls, errors, properties, signals, handles.
#![allow(clippy::unwrap_used)]

use crate::common::*;
use bytes::Bytes;
use everywire_dbus::DBUS;
use everywire_model::describe::*;
use everywire_model::wire::MemberIndex;
use everywire_model::{
    Answer, Call, Config, Emission, Event, Expects, Failure, Handle, Incoming, Initiator, Kind, MarshalList,
    Method, Outcome, Profile, Raised, SignalFilter, Sink, Topic, UnmarshalList, Value, Variant, Wire,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn incoming(side: &mut Side) -> Incoming {
    match side.event() {
        Event::Call(incoming) => *incoming,
        other => panic!("{other:?}"),
    }
}

fn arguments<T: for<'a> UnmarshalList<'a>>(incoming: &Incoming, name: &str) -> T {
    incoming.body.decode(&operation(name).arguments).unwrap()
}

fn answer<T: MarshalList>(side: &mut Side, incoming: &Incoming, name: &str, results: T) {
    let list = &operation(name).results;
    let results = |sink: &mut dyn Sink| results.marshal_list(list, sink);
    side.session.answer(incoming.id, Answer::Done(&results)).unwrap();
}

#[test]
fn calls_and_results_cross_in_any_pieces() {
    for step in [1, 3, 64, usize::MAX] {
        let (mut client, mut server) =
            (Side::new(DBUS.connect(&config())), Side::new(DBUS.accept(&config())));
        exchange(&mut client, &mut server, step);
        assert!(matches!(client.event(), Event::Ready(_)) && matches!(server.event(), Event::Ready(_)));
        for round in 0..20 {
            let text = format!("round {round}");
            let id = client.call(b"a/b", "Echo", (text.as_str(),));
            exchange(&mut client, &mut server, step);
            let call = incoming(&mut server);
            assert_eq!((&*call.key, &*call.interface), (&b"a/b"[..], &b"org.example.Example"[..]));
            assert_eq!(DBUS.operation(&EXAMPLE, &call), Some(0));
            let (heard,): (String,) = arguments(&call, "Echo");
            answer(&mut server, &call, "Echo", (heard.as_str(),));
            exchange(&mut server, &mut client, step);
            let event = client.event();
            assert!(matches!(&event, Event::Reply { id: back, .. } if *back == id));
            assert_eq!(done(event).decode::<(String,)>(&operation("Echo").results).unwrap(), (text,));
        }
        assert_eq!(client.session.outstanding() + server.session.outstanding(), 0);
    }
}

#[test]
fn calls_without_a_reply_say_so() {
    let (mut client, mut server) = pair();
    client.call(b"a", "Note", ("x",));
    exchange(&mut client, &mut server, usize::MAX);
    let call = incoming(&mut server);
    assert_eq!(call.expects, Expects::Nothing);
    answer(&mut server, &call, "Note", ());
    assert!(server.said().is_empty());
    assert_eq!(client.session.outstanding(), 0);
}

#[test]
fn exceptions_and_failures_travel_as_errors() {
    let (mut client, mut server) = pair();
    client.call(b"a", "Echo", ("x",));
    exchange(&mut client, &mut server, usize::MAX);
    let call = incoming(&mut server);
    let refused = structure(&REFUSED);
    let fields = |sink: &mut dyn Sink| ("not today", 7u32).marshal_list(&refused, sink);
    server.session.answer(call.id, Answer::Raised { shape: &REFUSED, fields: &fields }).unwrap();
    exchange(&mut client, &mut server, usize::MAX);
    match client.event() {
        Event::Reply { outcome: Outcome::Raised(raised), .. } => {
            let Raised { id, body, .. } = *raised;
            assert_eq!(id, "Example::Refused");
            assert_eq!(body.decode::<(String, u32)>(&refused).unwrap(), ("not today".into(), 7));
        }
        other => panic!("{other:?}"),
    }
    client.call(b"a", "Ping", ());
    exchange(&mut client, &mut server, usize::MAX);
    let call = incoming(&mut server);
    let failure = Failure::new(Kind::NoObject, Initiator::Peer, "no such thing");
    server.session.answer(call.id, Answer::Failed(&failure)).unwrap();
    exchange(&mut client, &mut server, usize::MAX);
    match client.event() {
        Event::Reply { outcome: Outcome::Failed(failure), .. } => {
            assert_eq!((failure.kind(), failure.message()), (Kind::NoObject, "no such thing"));
            assert_eq!(failure.code(), Some("org.freedesktop.DBus.Error.UnknownObject"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn attributes_travel_as_properties() {
    let (mut client, mut server) = pair();
    client.call(b"a", "_get_Title", ());
    client.call(b"a", "_set_Title", ("new",));
    exchange(&mut client, &mut server, usize::MAX);
    let calls: Vec<_> = server.events();
    let [Event::Call(get), Event::Call(set)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!((&*get.interface, &*get.operation), (&b"org.freedesktop.DBus.Properties"[..], &b"Get"[..]));
    assert_eq!(&*get.body.context, b"ss");
    assert_eq!((&*set.operation, &*set.body.context), (&b"Set"[..], &b"ssv"[..]));
    assert_eq!(DBUS.operation(&EXAMPLE, get), None);
    let list = record!("", "", { "i": TEXT, "p": TEXT, "v": Shape::Variant });
    let shape = Shape::Struct(Hold::new(list));
    let (interface, name, value): (String, String, Variant) = set.body.decode(&shape).unwrap();
    assert_eq!((interface.as_str(), name.as_str()), ("org.example.Example", "Title"));
    assert_eq!(*value.value(), Value::Text("new".into()));
    let variant = record!("", "", { "v": Shape::Variant });
    let shape = Shape::Struct(Hold::new(variant));
    let results =
        |sink: &mut dyn Sink| (Variant::new(TEXT, Value::Text("old".into())),).marshal_list(&shape, sink);
    server.session.answer(get.id, Answer::Done(&results)).unwrap();
    server.session.answer(set.id, Answer::Done(nothing())).unwrap();
    exchange(&mut client, &mut server, usize::MAX);
    let mut events = client.events();
    assert_eq!(
        done(events.remove(0)).decode::<(String,)>(&operation("_get_Title").results).unwrap(),
        ("old".into(),)
    );
    done(events.remove(0)).decode::<()>(&operation("_set_Title").results).unwrap();
}

/// A service whose property has another type than the contract says: no value comes of it, and both types are told.
#[test]
fn a_property_of_another_type_than_the_contract_says_is_no_value() {
    let variant = record!("", "", { "v": Shape::Variant });
    let list = Shape::Struct(Hold::new(variant));
    for (shape, value, found) in [
        (Shape::U32, Value::Integer(7), "`u` came"),
        (Shape::sequence(TEXT), Value::List(vec![Value::Text("x".into())]), "`as` came"),
        (Shape::sequence(Shape::U8), Value::Bytes(vec![1].into()), "`ay` came"),
    ] {
        let (mut client, mut server) = pair();
        client.call(b"a", "_get_Title", ());
        exchange(&mut client, &mut server, usize::MAX);
        let get = incoming(&mut server);
        let results =
            |sink: &mut dyn Sink| (Variant::new(shape.clone(), value.clone()),).marshal_list(&list, sink);
        server.session.answer(get.id, Answer::Done(&results)).unwrap();
        exchange(&mut client, &mut server, usize::MAX);
        let body = done(client.event());
        let failure = body.decode::<(String,)>(&operation("_get_Title").results).unwrap_err();
        assert_eq!(failure.kind(), Kind::Malformed, "{failure}");
        assert!(failure.message().contains("type `s`") && failure.message().contains(found), "{failure}");
    }
}

#[test]
fn signals_reach_subscribers_of_the_same_object_and_name() {
    let (mut client, mut server) = pair();
    let profile =
        |key: &'static [u8]| Profile { wire: "dbus", key: Bytes::from_static(key), ..Profile::default() };
    let (here, all) = (profile(b"a"), profile(b""));
    let filter = |signal| SignalFilter { interface: Some(&EXAMPLE), signal };
    let now = Instant::now();
    let first = client.session.subscribe(now, &here, filter(Some(&SIGNALS[0]))).unwrap();
    let second = client.session.subscribe(now, &all, filter(None)).unwrap();
    assert_eq!(client.events().len(), 2, "both are confirmed at once");
    let mut emit = |key: &'static [u8], client: &mut Side| {
        let arguments = |sink: &mut dyn Sink| ("new",).marshal_list(&SIGNALS[0].fields, sink);
        let emission = Emission {
            key,
            topic: Topic::Typed { interface: &EXAMPLE, signal: &SIGNALS[0] },
            arguments: &arguments,
        };
        server.session.emit(now, &emission).unwrap();
        exchange(&mut server, client, usize::MAX);
    };
    for _ in 0..3 {
        emit(b"a", &mut client);
        match client.event() {
            Event::Signal { subscriptions, heard } => {
                assert_eq!(subscriptions, [first, second]);
                assert_eq!((&*heard.key, &*heard.operation), (&b"a"[..], &b"Changed"[..]));
                assert_eq!(heard.body.decode::<(String,)>(&SIGNALS[0].fields).unwrap(), ("new".into(),));
            }
            other => panic!("{other:?}"),
        }
    }
    emit(b"b", &mut client);
    assert!(matches!(client.event(), Event::Signal { subscriptions, .. } if subscriptions == [second]));
    client.session.unsubscribe(second);
    emit(b"b", &mut client);
    assert!(client.events().is_empty());
}

#[test]
fn handles_travel_with_their_message() {
    let (mut client, mut server) = pair();
    let file: Handle = Arc::new(std::fs::File::open("/dev/null").unwrap().into());
    for step in [usize::MAX, 1] {
        let text = Variant::new(TEXT, Value::Text("x".into()));
        client.call(b"a", "Ping", ());
        client.call(b"a", "Open", (Handle::clone(&file), text));
        exchange(&mut client, &mut server, step);
        let mut calls = server.events();
        let Event::Call(call) = calls.remove(1) else { panic!("{calls:?}") };
        assert_eq!(call.body.handles().len(), 1);
        let (handle, _): (Handle, Variant) = arguments(&call, "Open");
        answer(&mut server, &call, "Open", (handle,));
        exchange(&mut client, &mut server, step);
        let (back,): (Handle,) = done(client.event()).decode(&operation("Open").results).unwrap();
        assert!(Arc::ptr_eq(&back, &file));
    }
}

#[test]
fn probes_ask_for_a_description() {
    let (mut client, mut server) = pair();
    for (key, member, error, kind) in [
        (&b"a"[..], "Introspect", Kind::NoObject, Kind::NoObject),
        (b"a", "Introspect", Kind::NoOperation, Kind::NoObject),
        (b"", "Ping", Kind::Refused, Kind::Refused),
    ] {
        let profile = Profile { wire: "dbus", key: Bytes::from_static(key), ..Profile::default() };
        client.session.probe(Instant::now(), &profile).unwrap();
        exchange(&mut client, &mut server, usize::MAX);
        let call = incoming(&mut server);
        assert_eq!(call.operation, member);
        let failure = Failure::new(error, Initiator::Peer, "no");
        server.session.answer(call.id, Answer::Failed(&failure)).unwrap();
        exchange(&mut client, &mut server, usize::MAX);
        assert!(
            matches!(client.event(), Event::Reply { outcome: Outcome::Failed(f), .. } if f.kind() == kind)
        );
    }
}

#[test]
fn results_of_another_type_name_both_types() {
    let (mut client, mut server) = pair();
    client.call(b"a", "Echo", ("x",));
    exchange(&mut client, &mut server, usize::MAX);
    let call = incoming(&mut server);
    let failure = call.body.decode::<(u32,)>(&operation("Open").arguments).unwrap_err();
    assert_eq!(failure.kind(), Kind::BadArgument);
    assert!(failure.message().contains("`hv`") && failure.message().contains("`s`"), "{failure}");
    answer(&mut server, &call, "Ping", ());
    exchange(&mut client, &mut server, usize::MAX);
    let failure = done(client.event()).decode::<(String,)>(&operation("Echo").results).unwrap_err();
    assert_eq!(failure.kind(), Kind::Malformed);
}

#[test]
fn a_message_over_the_limit_costs_its_call_only() {
    let mut small = config();
    small.limits = small.limits.with_message(4096);
    let (mut client, mut server) = (Side::new(DBUS.connect(&config())), Side::new(DBUS.accept(&small)));
    exchange(&mut client, &mut server, usize::MAX);
    drop((client.events(), server.events()));
    let text = "x".repeat(5000);
    client.call(b"a", "Echo", (text.as_str(),));
    client.call(b"a", "Ping", ());
    exchange(&mut client, &mut server, 100);
    assert_eq!(incoming(&mut server).operation, "Ping");
    match client.event() {
        Event::Reply { outcome: Outcome::Failed(failure), .. } => {
            assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn cookies_and_nobody_may_be_let_in() {
    let tcp = |auth: &'static str| {
        let mut config =
            Config { profile: Profile { wire: "dbus", ..Profile::default() }, ..Config::default() };
        config.profile.components.push((everywire_dbus::TAG_AUTH, Bytes::from_static(auth.as_bytes())));
        config
    };
    let (mut client, mut server) =
        (Side::new(DBUS.connect(&tcp("anonymous"))), Side::new(DBUS.accept(&tcp("anonymous"))));
    exchange(&mut client, &mut server, usize::MAX);
    match server.event() {
        Event::Ready(peer) => assert_eq!(peer.authentication, "anonymous"),
        other => panic!("{other:?}"),
    }
    // A listener that says nothing demands a cookie over TCP, and anonymous clients do not get in.
    let mut demanding = Side::new(DBUS.accept(&Config::default()));
    let mut stranger = Side::new(DBUS.connect(&tcp("anonymous")));
    let said = stranger.said();
    demanding.hear(&said).unwrap();
    let reply = demanding.said();
    assert!(reply.starts_with(b"REJECTED DBUS_COOKIE_SHA1"), "{}", reply.escape_ascii());
    assert_eq!(stranger.refuses(&reply), "Authentication");
}

#[test]
fn a_silent_peer_is_not_waited_for() {
    let mut server = Side::new(DBUS.accept(&config()));
    let due = server.session.deadline().unwrap();
    assert!(due <= Instant::now() + Duration::from_secs(5));
    assert_eq!(server.session.expire(due).unwrap_err().name, "TooSlow");
}

/// This side was busy, and read after the time what had come in time: the client cannot have ended the greeting before.
#[test]
fn whoever_is_heard_late_has_time_to_end_the_greeting() {
    let mut server = Side::new(DBUS.accept(&config()));
    let due = server.session.deadline().unwrap();
    let mut hear = |after: u64, said: &[u8]| {
        server.input.extend_from_slice(said);
        let now = due + Duration::from_secs(after);
        server.session.receive(now, &mut server.input, &mut server.handles).unwrap();
        (server.said(), (server.session.deadline().unwrap() - due).as_secs())
    };
    let (reply, time) = hear(0, b"\0AUTH DBUS_COOKIE_SHA1 30\r\n");
    assert!(reply.starts_with(b"REJECTED ") && time == 5, "{time} s: {}", reply.escape_ascii());
    let (reply, time) = hear(5, b"AUTH EXTERNAL\r\n");
    assert!(reply == b"DATA\r\n" && time == 5, "once only: {time} s: {}", reply.escape_ascii());
    let (reply, time) = hear(5, b"DATA\r\n");
    assert!(reply.starts_with(b"OK ") && time == 10, "{time} s: {}", reply.escape_ascii());
    let (reply, time) = hear(9, b"CANCEL\r\nAUTH EXTERNAL\r\nDATA\r\n");
    assert!(reply.starts_with(b"REJECTED ") && time == 10, "once only: {time} s: {}", reply.escape_ascii());
    assert!(server.session.expire(due + Duration::from_secs(9)).is_ok());
    assert_eq!(server.session.expire(due + Duration::from_secs(10)).unwrap_err().name, "TooSlow");
}

#[test]
fn serial_numbers_of_calls_are_told_apart() {
    let (mut client, mut server) = pair();
    let ids: Vec<_> = (0..50).map(|_| client.call(b"a", "Ping", ())).collect();
    exchange(&mut client, &mut server, 7);
    let calls = server.events();
    for call in calls.iter().rev() {
        let Event::Call(call) = call else { panic!() };
        answer(&mut server, call, "Ping", ());
    }
    exchange(&mut client, &mut server, 11);
    let back: Vec<_> = client
        .events()
        .iter()
        .map(|event| match event {
            Event::Reply { id, .. } => *id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(back, ids.into_iter().rev().collect::<Vec<_>>());
    // An answer that comes again finds nobody waiting.
    let again = Message::new(2).number(5, 3).bytes();
    client.hear(&again).unwrap();
    assert!(client.events().is_empty());
}

#[test]
fn whoever_finds_no_place_is_let_in_and_told_so_with_the_answer_to_its_first_call() {
    for (step, oneway) in [(1, false), (64, false), (usize::MAX, true)] {
        let (mut client, mut server) =
            (Side::new(DBUS.connect(&config())), Side::new(DBUS.accept(&config())));
        let why = Failure::new(Kind::Busy, Initiator::Peer, "5 connections are open");
        assert!(server.session.turn_away(&why), "the words for it answer a call");
        exchange(&mut client, &mut server, step);
        assert!(matches!(client.event(), Event::Ready(_)));
        if oneway {
            client.call(b"a", "Note", ("x",));
        }
        client.call(b"a/b", "Echo", ("x",));
        exchange(&mut client, &mut server, step);
        // The end is told when all that is said has left.
        assert!(server.session.poll().is_none());
        exchange(&mut server, &mut client, step);
        assert!(matches!(server.event(), Event::Closed));
        assert!(server.session.poll().is_none());
        let Event::Reply { outcome: Outcome::Failed(failure), .. } = client.event() else {
            panic!("no answer")
        };
        assert_eq!(failure.code(), Some("org.freedesktop.DBus.Error.LimitsExceeded"));
        assert_eq!(failure.message(), "5 connections are open");
    }
}

/// Methods of one name differ in their types alone: a call of either is found by them, and a listing shows the right one.
#[test]
fn methods_of_one_name_are_told_apart_by_their_types() {
    let text = "<node><interface name='org.example.Jar'>
        <method name='Put'><arg type='s' direction='in'/></method>
        <method name='Put'><arg type='i' direction='in'/></method>
        <method name='Take'/><signal name='Put'><arg type='i'/></signal><signal name='Put'><arg type='s'/></signal>
    </interface></node>";
    let contract = everywire_idl::dbus_xml::parse(text, "jar.xml").unwrap();
    let jar = contract.interfaces().next().unwrap();
    let (mut client, mut server) = pair();
    let profile = Profile { wire: "dbus", key: Bytes::from_static(b"jar"), ..Profile::default() };
    let mut call = |operation: &Operation, value: &Value| {
        let arguments = |sink: &mut dyn Sink| value.encode(&operation.arguments, sink);
        let method = Method::Typed { interface: Some(jar), operation };
        let call = Call { profile: &profile, method, arguments: &arguments, expects: Expects::Reply };
        client.session.start(Instant::now(), &call).unwrap();
        let said = client.said();
        server.hear(&said).unwrap();
        let listing = DBUS.explain(&said);
        (incoming(&mut server), DBUS.called(&listing.messages[0], jar))
    };
    let one = |value| Value::Struct(vec![("arg_1".to_owned(), value)]);
    for (index, value) in
        [(0, one(Value::Text("x".into()))), (1, one(Value::Integer(7))), (2, Value::Struct(vec![]))]
    {
        let (came, listed) = call(&jar.operations[index], &value);
        assert_eq!(&*came.operation, if index == 2 { b"Take".as_slice() } else { b"Put" });
        assert_eq!((DBUS.operation(jar, &came), listed), (Some(index), Some(MemberIndex::Operation(index))));
        // What is remembered of a call by its names alone would serve the other method.
        assert_eq!(DBUS.is_told_by_names(jar, index), index == 2);
    }
    // Of types that none of them takes, the first one says what it takes.
    let mut other = jar.operations[1].clone();
    other.arguments = Operation::new("Put", vec![], Shape::Void).arguments;
    assert_eq!(DBUS.operation(jar, &call(&other, &Value::Struct(vec![])).0), Some(0));

    let (_, mut server) = pair();
    let fields = |sink: &mut dyn Sink| one(Value::Text("x".into())).encode(&jar.signals[1].fields, sink);
    let topic = Topic::Typed { interface: jar, signal: &jar.signals[1] };
    server.session.emit(Instant::now(), &Emission { key: b"jar", topic, arguments: &fields }).unwrap();
    let listing = DBUS.explain(&server.said());
    assert_eq!(DBUS.called(&listing.messages[0], jar), Some(MemberIndex::Signal(1)));
}
