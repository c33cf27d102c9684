//! Messages that pass without a contract: what a hop takes by one session leaves by another as it came.

mod bodies;

use crate::common::*;
use bytes::Bytes;
use everywire_dbus::{DBUS, TAG_CALL, TAG_NAME, VALUES, Values};
use everywire_model::headers::Content;
use everywire_model::message::needs_contract;
use everywire_model::visit::WithHeaders;
use everywire_model::{
    Answer, Body, Call, CallId, Codec, Emission, Encode, Event, Expects, Failure, Handle, Header, Headers,
    Incoming, Initiator, Kind, MarshalList, Method, Outcome, Profile, SignalFilter, Sink, Source, Topic,
    Visit, Wire,
};
use std::sync::Arc;
use std::time::Instant;

/// Between a client and a server: two sides, one accepted and one connected.
struct Hop {
    front: Side,
    back: Side,
}

impl Hop {
    fn new() -> Self {
        Self { front: Side::admitted(), back: Side::admitted() }
    }

    /// Takes a call that came as these bytes.
    fn takes(&mut self, bytes: &[u8]) -> Incoming {
        self.front.hear(bytes).unwrap();
        match self.front.event() {
            Event::Call(incoming) => *incoming,
            other => panic!("{other:?}"),
        }
    }

    /// Passes it on, and tells what goes out.
    fn passes(&mut self, incoming: &Incoming) -> Vec<u8> {
        self.tries(incoming, &incoming.body).unwrap();
        self.back.said()
    }

    fn tries(&mut self, incoming: &Incoming, arguments: &dyn Encode) -> Result<CallId, Failure> {
        let profile = Profile { wire: "dbus", key: incoming.key.clone(), ..Profile::default() };
        start(&mut self.back, &profile, incoming, arguments)
    }

    /// Takes an answer of these bytes, and tells how the call ended.
    fn hears(&mut self, bytes: &[u8]) -> Outcome<Body> {
        self.back.hear(bytes).unwrap();
        match self.back.event() {
            Event::Reply { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn answers(&mut self, incoming: &Incoming, outcome: &Outcome<Body>) -> Vec<u8> {
        let answer = match outcome {
            Outcome::Done(body) => Answer::Done(body),
            Outcome::Failed(failure) => {
                Answer::Passed { encoded: failure.encoded().expect("as it came"), failure }
            }
            other => panic!("{other:?}"),
        };
        self.front.session.answer(incoming.id, answer).unwrap();
        self.front.said()
    }
}

fn start(
    side: &mut Side,
    profile: &Profile,
    incoming: &Incoming,
    arguments: &dyn Encode,
) -> Result<CallId, Failure> {
    let method = Method::Named { interface: &incoming.interface, operation: &incoming.operation };
    let call = Call { profile, method, arguments, expects: incoming.expects };
    side.session.start(Instant::now(), &call)
}

/// A message by hand in either byte order: fields of (code, signature, value) and a body.
fn message(little: bool, kind: u8, flags: u8, fields: &[(u8, &str, Vec<u8>)], body: &[u8]) -> Vec<u8> {
    let number = |value: usize| {
        let value = u32::try_from(value).unwrap();
        if little { value.to_le_bytes() } else { value.to_be_bytes() }
    };
    let mut raw = Vec::new();
    for (code, signature, value) in fields {
        raw.resize(raw.len().next_multiple_of(8), 0);
        raw.extend_from_slice(&[*code, u8::try_from(signature.len()).unwrap()]);
        raw.extend_from_slice(signature.as_bytes());
        raw.push(0);
        let width = if *signature == "t" { 8 } else { 4 };
        let align = if *signature == "g" { 1 } else { width };
        raw.resize(raw.len().next_multiple_of(align), 0);
        raw.extend_from_slice(value);
    }
    let mut out = vec![if little { b'l' } else { b'B' }, kind, flags, 1];
    out.extend_from_slice(&number(body.len()));
    out.extend_from_slice(&number(7));
    out.extend_from_slice(&number(raw.len()));
    out.extend_from_slice(&raw);
    out.resize(out.len().next_multiple_of(8), 0);
    out.extend_from_slice(body);
    out
}

fn text(little: bool, text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    let mut out = if little { length.to_le_bytes() } else { length.to_be_bytes() }.to_vec();
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    out
}

fn number(little: bool, number: u32) -> Vec<u8> {
    if little { number.to_le_bytes() } else { number.to_be_bytes() }.to_vec()
}

fn signature(text: &str) -> Vec<u8> {
    let mut out = vec![u8::try_from(text.len()).unwrap()];
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    out
}

fn call_fields(little: bool) -> Vec<(u8, &'static str, Vec<u8>)> {
    vec![
        (1, "o", text(little, "/a/b")),
        (2, "s", text(little, "org.example.Unheard")),
        (3, "s", text(little, "Do")),
    ]
}

/// Reads a message again, as whoever gets it does.
fn received(bytes: &[u8]) -> Incoming {
    let mut side = Side::admitted();
    side.hear(bytes).unwrap();
    match side.event() {
        Event::Call(incoming) => *incoming,
        other => panic!("{other:?}"),
    }
}

fn listed(body: &Body) -> Vec<(String, Content)> {
    let headers = body.headers().cloned().unwrap_or_default();
    headers.list(body).unwrap().into_iter().map(|header| (header.name, header.content)).collect()
}

#[test]
fn a_call_and_its_answer_pass_in_the_byte_order_they_came_in() {
    for (asked, answered) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut hop = Hop::new();
        let mut fields = call_fields(asked);
        fields.push((8, "g", signature("su")));
        let mut body = text(asked, "seven");
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend_from_slice(&number(asked, 7));
        let incoming = hop.takes(&message(asked, 1, 0, &fields, &body));
        let passed = hop.passes(&incoming);
        assert_eq!(passed[0], if asked { b'l' } else { b'B' });
        let again = received(&passed);
        assert_eq!(
            (&*again.key, &*again.interface, &*again.operation, again.expects),
            (&b"a/b"[..], &b"org.example.Unheard"[..], &b"Do"[..], Expects::Reply)
        );
        assert_eq!(
            (&again.body.bytes, &*again.body.context, again.body.little),
            (&body.into(), &b"su"[..], asked)
        );
        // Its number is this hop's own.
        let results = number(answered, 42);
        let fields = [(5, "u", number(answered, 1)), (8, "g", signature("u"))];
        let outcome = hop.hears(&message(answered, 2, 1, &fields, &results));
        let told = hop.answers(&incoming, &outcome);
        let mut client = Side::admitted();
        start(&mut client, &Profile::default(), &incoming, nothing()).unwrap();
        client.said();
        // What the client gets: the answer to its call 7, in the backend's byte order.
        assert_eq!(told[0], if answered { b'l' } else { b'B' });
        assert!(told.ends_with(&results), "{told:?}");
        let fields = [(5, "u", number(answered, 7)), (8, "g", signature("u"))];
        let mut wanted = message(answered, 2, 1, &fields, &results);
        wanted[8..12].copy_from_slice(&told[8..12]);
        assert_eq!(told, wanted);
    }
}

#[test]
fn an_error_passes_with_its_name_and_all_its_values() {
    let mut hop = Hop::new();
    let incoming = hop.takes(&message(true, 1, 0, &call_fields(true), b""));
    hop.passes(&incoming);
    let values = [text(false, "not today"), vec![0; 2], number(false, 99)].concat();
    let fields = [
        (5, "u", number(false, 1)),
        (4, "s", text(false, "org.example.NotToday")),
        (8, "g", signature("su")),
    ];
    let outcome = hop.hears(&message(false, 3, 1, &fields, &values));
    let Outcome::Failed(failure) = &outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.message(), failure.code()), ("not today", Some("org.example.NotToday")));
    assert_eq!(failure.encoded().unwrap().id, "org.example.NotToday");
    let told = hop.answers(&incoming, &outcome);
    let fields = [
        (5, "u", number(false, 7)),
        (4, "s", text(false, "org.example.NotToday")),
        (8, "g", signature("su")),
    ];
    let mut wanted = message(false, 3, 1, &fields, &values);
    wanted[8..12].copy_from_slice(&told[8..12]);
    assert_eq!(told, wanted);
}

#[test]
fn an_error_that_does_not_travel_is_told_in_our_words() {
    let (mut client, mut server) = pair();
    let id = client.call(b"a", "Echo", ("x",));
    exchange(&mut client, &mut server, usize::MAX);
    let Event::Call(incoming) = server.event() else { panic!() };
    let failure = Failure::new(Kind::Refused, Initiator::Peer, "no");
    for (name, codec) in [("no name", &VALUES as &'static dyn Codec), ("org.example.Good", &OTHER)] {
        let body = Body { codec, ..Values::body(Bytes::new(), 0, true, b""[..].into(), Vec::new()) };
        let encoded = everywire_model::Encoded { id: name.to_owned(), raised: false, body };
        let answer = Answer::Passed { encoded: &encoded, failure: &failure };
        server.session.answer(incoming.id, answer).unwrap();
        if name == "no name" {
            exchange(&mut client, &mut server, usize::MAX);
            let Event::Reply { id: back, outcome: Outcome::Failed(failure) } = client.event() else {
                panic!()
            };
            assert_eq!((back, failure.kind(), failure.message()), (id, Kind::Refused, "no"));
        }
    }
}

#[test]
fn flags_pass_and_those_of_the_reference_are_added() {
    for (flags, options, passed) in [(0, 0, 0), (2, 0, 2), (4, 0, 4), (1 | 4, 2, 1 | 2 | 4), (0xf8, 0, 0)] {
        let mut hop = Hop::new();
        let incoming = hop.takes(&message(true, 1, flags, &call_fields(true), b""));
        let profile = Profile {
            wire: "dbus",
            key: incoming.key.clone(),
            components: vec![(TAG_CALL, Bytes::copy_from_slice(&[options]))],
            ..Profile::default()
        };
        start(&mut hop.back, &profile, &incoming, &incoming.body).unwrap();
        assert_eq!(hop.back.said()[2], passed, "{flags}");
    }
}

#[test]
fn unknown_fields_pass_and_can_be_changed() {
    // The changes of a route are beside each of its messages, in whatever byte order.
    let mut headers = Headers::default();
    headers.put(Header::text("200", "another"));
    headers.remove("201");
    headers.add(Header::bytes("250", vec![1, 2, 3]));
    for little in [true, false, true] {
        let mut fields = call_fields(little);
        let wide = if little { 9u64.to_le_bytes() } else { 9u64.to_be_bytes() };
        let octets = [number(little, 2), vec![0xab, 0xcd]].concat();
        fields.splice(
            1..1,
            [
                (200, "s", text(little, "a trace")),
                (10, "o", text(little, "/container")),
                (201, "t", wide.to_vec()),
                (202, "ay", octets),
            ],
        );
        fields.push((8, "g", signature("u")));
        let mut hop = Hop::new();
        let incoming = hop.takes(&message(little, 1, 0, &fields, &number(little, 5)));
        let came = listed(&incoming.body);
        let names: Vec<&str> = came.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["200", "201", "202"]);
        assert_eq!(came[0].1, Content::Text("a trace".into()));
        let mut raw = vec![1, b't', 0, 0, 0, 0, 0];
        raw.extend_from_slice(&wide);
        assert_eq!(came[1].1, Content::Bytes(raw.into()));
        assert_eq!(came[2].1, Content::Bytes(Bytes::from_static(&[0xab, 0xcd])));
        assert_eq!(listed(&received(&hop.passes(&incoming)).body), came);
        // Changed beside the body, and in it.
        let beside = WithHeaders { values: &incoming.body, headers: &headers };
        hop.tries(&incoming, &beside).unwrap();
        let changed = received(&hop.back.said());
        let wanted = vec![
            ("202".to_owned(), Content::Bytes(Bytes::from_static(&[0xab, 0xcd]))),
            ("200".to_owned(), Content::Text("another".into())),
            ("250".to_owned(), Content::Bytes(Bytes::from_static(&[1, 2, 3]))),
        ];
        assert_eq!(listed(&changed.body), wanted);
        assert_eq!((&changed.body.bytes, changed.body.little), (&Bytes::from(number(little, 5)), little));
        let mut own = incoming.body.headers().unwrap().clone();
        headers.edits().iter().cloned().for_each(|edit| own.edit(edit));
        let body = incoming.body.clone().with_headers(own);
        hop.tries(&incoming, &body).unwrap();
        assert_eq!(listed(&received(&hop.back.said()).body), wanted);
        // What each connection sees to itself is not to be written.
        for name in ["1", "10", "0", "256", "trace"] {
            let mut headers = Headers::default();
            headers.put(Header::text(name, "x"));
            let beside = WithHeaders { values: &incoming.body, headers: &headers };
            let failure = hop.tries(&incoming, &beside).unwrap_err();
            assert_eq!(failure.kind(), Kind::BadArgument, "{name}: {failure}");
            assert!(hop.back.said().is_empty());
        }
    }
}

#[test]
fn headers_travel_beside_plain_values_and_answers() {
    let (mut client, mut server) = pair();
    let mut headers = Headers::default();
    headers.add(Header::text("100", "beside"));
    let open = operation("Open");
    let file: Handle = Arc::new(std::fs::File::open("/dev/null").unwrap().into());
    let any = everywire_model::Variant::new(
        everywire_model::Shape::Handle,
        everywire_model::Value::Handle(everywire_model::value::HeldHandle(Arc::clone(&file))),
    );
    let values = |sink: &mut dyn Sink| (Arc::clone(&file), any.clone()).marshal_list(&open.arguments, sink);
    let arguments = WithHeaders { values: &values, headers: &headers };
    let profile = Profile { wire: "dbus", key: Bytes::from_static(b"a"), ..Profile::default() };
    // Twice: the second time the header is one that was written before.
    for _ in 0..2 {
        let method = Method::Typed { interface: Some(&EXAMPLE), operation: open };
        let call = Call { profile: &profile, method, arguments: &arguments, expects: Expects::Reply };
        client.session.start(Instant::now(), &call).unwrap();
        exchange(&mut client, &mut server, 5);
        let Event::Call(incoming) = server.event() else { panic!() };
        assert_eq!(listed(&incoming.body), [("100".to_owned(), Content::Text("beside".into()))]);
        assert_eq!(incoming.body.handles().len(), 2);
        incoming.body.decode::<(Handle, everywire_model::Variant)>(&open.arguments).unwrap();
        let results = |sink: &mut dyn Sink| (Arc::clone(&file),).marshal_list(&open.results, sink);
        let results = WithHeaders { values: &results, headers: &headers };
        server.session.answer(incoming.id, Answer::Done(&results)).unwrap();
        exchange(&mut client, &mut server, 5);
        assert_eq!(done(client.event()).handles().len(), 1);
    }
    // A property too, whose call has strings in front of the value.
    let title = operation("_set_Title");
    let values = |sink: &mut dyn Sink| ("new",).marshal_list(&title.arguments, sink);
    let arguments = WithHeaders { values: &values, headers: &headers };
    let method = Method::Typed { interface: Some(&EXAMPLE), operation: title };
    let call = Call { profile: &profile, method, arguments: &arguments, expects: Expects::Reply };
    client.session.start(Instant::now(), &call).unwrap();
    exchange(&mut client, &mut server, 5);
    let Event::Call(incoming) = server.event() else { panic!() };
    assert_eq!(listed(&incoming.body), [("100".to_owned(), Content::Text("beside".into()))]);
    assert_eq!((&*incoming.operation, &*incoming.body.context), (&b"Set"[..], &b"ssv"[..]));
    assert!(incoming.body.bytes.ends_with(&text(true, "new")));
}

#[test]
fn handles_pass_where_both_sides_agreed_to_it() {
    let (mut client, mut front) = pair();
    let open = operation("Open");
    let file: Handle = Arc::new(std::fs::File::open("/dev/null").unwrap().into());
    let any = everywire_model::Variant::new(everywire_model::Shape::Bool, everywire_model::Value::Bool(true));
    client.call(b"a", open.name.as_ref(), (file, any));
    exchange(&mut client, &mut front, usize::MAX);
    let Event::Call(incoming) = front.event() else { panic!() };
    let mut hop = Hop::new();
    hop.tries(&incoming, &incoming.body).unwrap();
    let mut server = Side::admitted();
    exchange(&mut hop.back, &mut server, 16);
    let Event::Call(passed) = server.event() else { panic!() };
    assert!(Arc::ptr_eq(&passed.body.handles()[0], &incoming.body.handles()[0]));
    passed.body.decode::<(Handle, everywire_model::Variant)>(&open.arguments).unwrap();
    // A body that speaks of handles that are not there.
    let without = Body { beside: None, ..incoming.body.clone() };
    let failure = hop.tries(&incoming, &without).unwrap_err();
    assert_eq!(failure.kind(), Kind::Malformed, "{failure}");
    // By TCP none pass.
    let mut config = config();
    config.profile.endpoints = vec![everywire_model::Endpoint::Tcp { host: "localhost".into(), port: 1 }];
    let mut back = Side::new(DBUS.connect(&config));
    back.hear(b"OK 0123456789abcdef0123456789abcdef\r\n").unwrap();
    let failure = start(&mut back, &Profile::default(), &incoming, &incoming.body).unwrap_err();
    assert!(matches!(failure.kind(), Kind::Unsupported | Kind::Unreachable), "{failure}");
}

#[test]
fn signals_pass_as_they_came() {
    for little in [true, false] {
        let mut hop = Hop::new();
        let everything = Profile { wire: "dbus", ..Profile::default() };
        let filter = SignalFilter::default();
        hop.back.session.subscribe(Instant::now(), &everything, filter).unwrap();
        done(hop.back.event());
        let fields = [
            (1, "o", text(little, "/a/b")),
            (2, "s", text(little, "org.example.Unheard")),
            (3, "s", text(little, "Said")),
            (200, "s", text(little, "a trace")),
            (8, "g", signature("as")),
        ];
        let words = [number(little, 8), text(little, "wor")].concat();
        let sent = message(little, 4, 1 | 2, &fields, &words);
        hop.back.hear(&sent).unwrap();
        let Event::Signal { heard, .. } = hop.back.event() else { panic!() };
        hop.front.session.emit(Instant::now(), &heard.emission()).unwrap();
        let said = hop.front.said();
        assert_eq!((said[0], said[2]), (sent[0], 1 | 2));
        let mut client = Side::admitted();
        client.session.subscribe(Instant::now(), &everything, filter).unwrap();
        done(client.event());
        client.hear(&said).unwrap();
        let Event::Signal { heard: again, .. } = client.event() else { panic!() };
        assert_eq!(
            (&again.key, &again.interface, &again.operation),
            (&heard.key, &heard.interface, &heard.operation)
        );
        assert_eq!((&again.body.bytes, again.body.little), (&words.into(), little));
        assert_eq!(listed(&again.body), [("200".to_owned(), Content::Text("a trace".into()))]);
    }
    // A signal is of some interface.
    let mut hop = Hop::new();
    let topic = Topic::Named { interface: b"", signal: b"Said" };
    let emission = Emission { key: b"a", topic, arguments: nothing() };
    let failure = hop.front.session.emit(Instant::now(), &emission).unwrap_err();
    assert_eq!(failure.kind(), Kind::BadArgument);
}

#[test]
fn a_call_by_names_needs_names_that_a_bus_takes() {
    let mut hop = Hop::new();
    let incoming = hop.takes(&message(true, 1, 0, &call_fields(true), b""));
    let bad = |interface: &'static str, operation: &'static str, name: &'static str| {
        let profile = Profile {
            wire: "dbus",
            key: Bytes::from_static(b"a"),
            components: vec![(TAG_NAME, Bytes::from_static(name.as_bytes()))],
            ..Profile::default()
        };
        let method = Method::Named { interface: interface.as_bytes(), operation: operation.as_bytes() };
        let call = Call { profile: &profile, method, arguments: &incoming.body, expects: Expects::Reply };
        Side::admitted().session.start(Instant::now(), &call).map_err(|failure| failure.kind())
    };
    assert!(bad("org.example.I", "Do", "org.example.N").is_ok() && bad("", "Do", "org.example.N").is_ok());
    for (interface, operation, name) in [
        ("one", "Do", "org.example.N"),
        ("a.b", "", "org.example.N"),
        ("a.b", "Do it", "org.example.N"),
        ("a.b", "Do", "n"),
    ] {
        assert_eq!(bad(interface, operation, name), Err(Kind::BadArgument), "{interface} {operation} {name}");
    }
}

/// A codec of somebody else.
struct Other;
static OTHER: Other = Other;

impl Codec for Other {
    fn name(&self) -> &'static str {
        "other"
    }

    fn read<'a>(&self, _: &'a Body, _: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        Err(needs_contract("this"))
    }

    fn write(&self, _: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        Err(needs_contract("this"))
    }
}
