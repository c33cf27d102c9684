//! A hop without a contract: what came by one connection leaves by another, and its answer comes back.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use everywire_giop::codesets::Dialect;
use everywire_giop::{CDR, Giop};
use everywire_model::shape::{Field, Struct};
use everywire_model::visit::WithHeaders;
use everywire_model::*;
use std::time::Instant;

/// A number that no context of the specification has.
const OURS: u32 = 0x1234_5678;
const THEIRS: u32 = 0x0bad_cafe;

/// A request of a peer, in either byte order and any version, with two contexts beside character sets if `sets`.
fn request(
    minor: u8,
    little: bool,
    principal: usize,
    values: &dyn Fn(&mut dyn Sink) -> Visit<()>,
) -> Vec<u8> {
    let mut out = b"GIOP".to_vec();
    out.extend([1, minor, u8::from(little), 0, 0, 0, 0, 0]);
    let number = |n: u32| if little { n.to_le_bytes() } else { n.to_be_bytes() };
    let align = |out: &mut Vec<u8>, to: usize| out.resize(out.len().next_multiple_of(to), 0);
    let contexts = |out: &mut Vec<u8>| {
        align(out, 4);
        out.extend(number(2));
        out.extend(number(OURS));
        out.extend(number(5));
        out.extend(b"12345");
        align(out, 4);
        out.extend(number(THEIRS));
        out.extend(number(4));
        out.extend(b"6789");
    };
    let octets = |out: &mut Vec<u8>, octets: &[u8]| {
        align(out, 4);
        out.extend(number(u32::try_from(octets.len()).unwrap()));
        out.extend(octets);
    };
    if minor >= 2 {
        out.extend(number(77));
        out.extend([3, 0, 0, 0, 0, 0]);
        octets(&mut out, b"key");
        octets(&mut out, b"echo\0");
        contexts(&mut out);
        align(&mut out, 8);
    } else {
        contexts(&mut out);
        out.extend(number(77));
        out.push(1);
        out.resize(out.len() + if minor == 1 { 3 } else { 0 }, 0);
        octets(&mut out, b"key");
        octets(&mut out, b"echo\0");
        octets(&mut out, &vec![0; principal]);
    }
    let dialect = Dialect { minor, ..Dialect::default() };
    let body = CDR.write_as(little, dialect, out.len(), &mut |sink| values(sink)).unwrap();
    out.extend_from_slice(&body.bytes);
    let size = number(u32::try_from(out.len() - 12).unwrap());
    out[8..12].copy_from_slice(&size);
    out
}

/// A hop's two sessions, and the two ends.
struct Chain {
    /// The session of the hop that accepts.
    near: Box<dyn Session>,
    /// The session of the hop that connects, and the backend.
    far: Pair,
    profile: Profile,
}

impl Chain {
    fn new(minor: u8) -> Self {
        let mut profile = profile(b"another key");
        profile.version = (1, minor);
        let mut near = Giop::new().accept(&Config::default());
        events(&mut *near);
        Self { near, far: Pair::new(Limits::default()), profile }
    }

    /// A request comes in, and leaves. What the backend gets.
    fn pass(&mut self, message: &[u8], headers: Option<&Headers>) -> (Box<Incoming>, CallId, Box<Incoming>) {
        feed(&mut *self.near, message).unwrap();
        let Some(Event::Call(incoming)) = events(&mut *self.near).pop() else { panic!() };
        let id = self.start(&incoming, headers).unwrap();
        let Some(Event::Call(arrived)) = self.far.forth().unwrap().pop() else { panic!() };
        (incoming, id, arrived)
    }

    fn start(&mut self, incoming: &Incoming, headers: Option<&Headers>) -> Result<CallId, Failure> {
        let method = Method::Named { interface: b"", operation: &incoming.operation };
        let with = headers.map(|headers| WithHeaders { values: &incoming.body, headers });
        let arguments: &dyn Encode = match &with {
            Some(with) => with,
            None => &incoming.body,
        };
        let call = Call { profile: &self.profile, method, arguments, expects: Expects::Reply };
        self.far.client.start(Instant::now(), &call)
    }

    fn answered(&mut self, arrived: &Incoming, answer: Answer<'_>) -> Outcome<Body> {
        self.far.server.answer(arrived.id, answer).unwrap();
        match self.far.back().unwrap().pop() {
            Some(Event::Reply { outcome, .. }) => outcome,
            other => panic!("{other:?}"),
        }
    }
}

fn names(body: &Body) -> Vec<String> {
    let headers = body.headers().cloned().unwrap_or_default();
    headers.list(body).unwrap().iter().map(|header| format!("{}={}", header.name, header.display())).collect()
}

/// A number, a short text, and a number that has to be aligned again.
fn values(sink: &mut dyn Sink) -> Visit<()> {
    sink.u8(9)?;
    sink.text(&shape::Text::NARROW, "abc")?;
    sink.f64(2.5)
}

fn read(body: &Body) -> (u8, String, f64) {
    body.read(|source| Ok((source.u8()?, source.text(&shape::Text::NARROW)?.into_owned(), source.f64()?)))
        .unwrap()
}

#[test]
fn a_body_keeps_byte_order_version_and_place() {
    for minor in [0, 1, 2] {
        for little in [false, true] {
            for principal in 0..9 {
                let mut chain = Chain::new(2);
                let message = request(minor, little, principal, &values);
                let (incoming, _, arrived) = chain.pass(&message, None);
                assert_eq!((&*arrived.operation, &*arrived.key), (&b"echo"[..], &b"another key"[..]));
                assert_eq!(arrived.body.bytes, incoming.body.bytes);
                assert_eq!(arrived.body.little, little);
                assert_eq!(Dialect::from_number(arrived.body.dialect).minor, minor);
                assert_eq!((arrived.body.base ^ incoming.body.base) & 7, 0, "{minor} {principal}");
                assert_eq!(read(&arrived.body), (9, "abc".to_owned(), 2.5));
                // And the answer.
                let Outcome::Done(body) = chain.answered(&arrived, Answer::Done(&values)) else { panic!() };
                assert_eq!(read(&body), (9, "abc".to_owned(), 2.5));
                chain.near.answer(incoming.id, Answer::Done(&body)).unwrap();
                let sent = drain(&mut *chain.near);
                assert_eq!((sent[5], sent[7]), (minor, 1));
                assert!(sent.ends_with(&body.bytes));
                assert_eq!((sent.len() - body.bytes.len() - body.base) & 7, 0);
            }
        }
    }
}

#[test]
fn a_body_of_the_other_byte_order_passes_in_parts() {
    let many = |sink: &mut dyn Sink| (0..100).try_for_each(|at| sink.f64(f64::from(at)));
    for little in [false, true] {
        let mut chain = Chain::new(2);
        chain.far = Pair::with(&Giop::new().with_fragments(128), Limits::default(), Limits::default());
        let message = request(2, little, 0, &many);
        feed(&mut *chain.near, &message).unwrap();
        let Some(Event::Call(incoming)) = events(&mut *chain.near).pop() else { panic!() };
        chain.start(&incoming, None).unwrap();
        let sent = drain(&mut *chain.far.client);
        let parts = messages(&sent);
        assert_eq!(parts.len(), 8, "{} octets", sent.len());
        for part in &parts {
            assert!(part.len() <= 128 && part[6] & 1 == u8::from(little), "{part:?}");
        }
        feed(&mut *chain.far.server, &sent).unwrap();
        let Some(Event::Call(arrived)) = events(&mut *chain.far.server).pop() else { panic!() };
        assert_eq!((&arrived.body.bytes, arrived.body.little), (&incoming.body.bytes, little));
    }
}

/// Else each large message is in memory three times while it is sent.
#[test]
fn a_large_body_passes_in_parts_and_is_not_copied() {
    let many = |sink: &mut dyn Sink| (0..100_000).try_for_each(|at| sink.f64(f64::from(at)));
    for (little, minor, unit) in
        [(false, 2, 64 << 10), (true, 2, 64 << 10), (true, 1, 64 << 10), (true, 2, 24)]
    {
        let mut chain = Chain::new(minor);
        chain.far = Pair::with(&Giop::new().with_fragments(unit), Limits::default(), Limits::default());
        feed(&mut *chain.near, &request(minor, little, 0, &many)).unwrap();
        let Some(Event::Call(incoming)) = events(&mut *chain.near).pop() else { panic!() };
        chain.start(&incoming, None).unwrap();
        let body = incoming.body.bytes.as_ptr_range();
        let out = chain.far.client.transmit();
        let slices = out.slices(usize::MAX, usize::MAX);
        let shared = slices.iter().filter(|slice| body.contains(&slice.as_ptr()));
        let shared: usize = shared.map(|slice| slice.len()).sum();
        let copied = if unit < 64 << 10 { 800_000 } else { 40_000 };
        assert!(shared + copied >= incoming.body.bytes.len(), "{shared} octets are shared");
        drop(slices);
        let Some(Event::Call(arrived)) = chain.far.forth().unwrap().pop() else { panic!() };
        assert!(arrived.body.bytes == incoming.body.bytes && arrived.body.little == little);
    }
}

#[test]
fn contexts_pass_and_are_changed_without_the_body() {
    // The changes of a route are beside each of its messages, whatever version and byte order that has.
    let mut headers = Headers::default();
    headers.remove("0x12345678");
    headers.put(Header::bytes("0x0badcafe", &b"\xff"[..]));
    headers.add(Header::text("4660", "text"));
    for (minor, little) in [(0, false), (1, false), (2, false), (2, true), (1, true), (0, true), (2, false)] {
        let message = request(minor, little, 0, &values);
        let both = ["0x12345678=3132333435".to_owned(), "0x0badcafe=36373839".to_owned()];
        let (incoming, _, arrived) = Chain::new(2).pass(&message, None);
        assert_eq!(names(&incoming.body), both);
        assert!(names(&arrived.body) == both, "{:?}", names(&arrived.body));

        let (incoming, _, arrived) = Chain::new(2).pass(&message, Some(&headers));
        let changed = ["0x0badcafe=ff".to_owned(), "0x00001234=74657874".to_owned()];
        assert!(names(&arrived.body) == changed, "{:?}", names(&arrived.body));
        assert_eq!(arrived.body.bytes, incoming.body.bytes);
        assert_eq!(read(&arrived.body), (9, "abc".to_owned(), 2.5));
        // A copy that was made before has what came.
        assert_eq!(names(&incoming.body), both);
    }
}

/// It says what the other end of a connection reads, and that is the hop: a backend would send the hop parts for nothing.
#[test]
fn the_version_of_suns_orb_passes_no_hop() {
    for minor in [0, 1, 2] {
        let mut message = request(minor, true, 0, &values);
        let theirs = THEIRS.to_le_bytes();
        let at = message.windows(4).position(|octets| octets == theirs).unwrap();
        message[at..at + 4].copy_from_slice(&0x4e45_4f00_u32.to_le_bytes());
        let mut chain = Chain::new(minor);
        let (incoming, _, arrived) = chain.pass(&message, None);
        for body in [&incoming.body, &arrived.body] {
            assert_eq!(names(body), ["0x12345678=3132333435"]);
        }
        assert_eq!(read(&arrived.body), (9, "abc".to_owned(), 2.5));
        let large = |sink: &mut dyn Sink| (0..200_000).try_for_each(|_| sink.u8(1));
        chain.far.server.answer(arrived.id, Answer::Done(&large)).unwrap();
        assert_eq!(messages(&drain(&mut *chain.far.server)).len(), 1);
    }
}

#[test]
fn a_header_goes_beside_plain_values() {
    let mut pair = Pair::new(Limits::default());
    let mut headers = Headers::default();
    headers.add(Header::text("0x12345678", "hello"));
    let number = put_int(7);
    let (_, incoming) =
        pair.call(&profile(b"k"), &int(), &WithHeaders { values: &number, headers: &headers });
    assert_eq!(names(&incoming.body), ["0x12345678=68656c6c6f"]);
    assert_eq!(value(&Shape::I32, &incoming.body), Value::Integer(7));
    for name in ["1", "5", "0x1", "0x4e454f00", "a name", "0x123456789"] {
        let mut headers = Headers::default();
        headers.add(Header::text(name, "hello"));
        let arguments = WithHeaders { values: &number, headers: &headers };
        let (profile, method) = (profile(b"k"), Method::Typed { interface: None, operation: &int() });
        let call = Call { profile: &profile, method, arguments: &arguments, expects: Expects::Reply };
        let failure = pair.client.start(Instant::now(), &call).unwrap_err();
        assert_eq!(failure.kind(), Kind::BadArgument, "{failure}");
        assert!(pair.client.transmit().is_empty());
    }
}

#[test]
fn exceptions_and_failures_pass_as_they_came() {
    let raised = Struct {
        name: "m::Gone".into(),
        id: "IDL:m/Gone:1.0".into(),
        fields: vec![Field { name: "why".into(), shape: text() }].into(),
    };
    let failed = Failure::new(Kind::BadArgument, Initiator::Peer, "no").with_completed(Completed::Yes);
    let why = |sink: &mut dyn Sink| sink.text(&shape::Text::NARROW, "gone");
    let answers = [Answer::Raised { shape: &raised, fields: &why }, Answer::Failed(&failed)];
    for (status, answer) in answers.into_iter().enumerate() {
        let mut chain = Chain::new(2);
        let (incoming, _, arrived) = chain.pass(&request(2, true, 0, &values), None);
        let (encoded, failure) = match chain.answered(&arrived, answer) {
            Outcome::Raised(raised) => {
                assert_eq!(raised.id, "IDL:m/Gone:1.0");
                (raised.encoded.unwrap(), object::unexpected("m::Gone"))
            }
            Outcome::Failed(failure) => {
                assert_eq!((failure.kind(), failure.completed()), (Kind::BadArgument, Completed::Yes));
                (failure.encoded().unwrap().clone().into(), failure)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(encoded.raised, status == 0);
        chain.near.answer(incoming.id, Answer::Passed { encoded: &encoded, failure: &failure }).unwrap();
        let sent = drain(&mut *chain.near);
        assert_eq!(sent[16], u8::try_from(status + 1).unwrap());
        assert!(sent.ends_with(&encoded.body.bytes));
    }
}

#[test]
fn what_would_not_be_read_alike_is_refused_before_anything_leaves() {
    // Text that came in other character sets than the connection has agreed on.
    let mut chain = Chain::new(2);
    let (_, told) = chain.far.call(&profile(b"k"), &int(), &put_int(1));
    assert_eq!(Dialect::from_number(told.body.dialect), Dialect::OURS);
    feed(&mut *chain.near, &request(2, true, 0, &values)).unwrap();
    let Some(Event::Call(incoming)) = events(&mut *chain.near).pop() else { panic!() };
    let failure = chain.start(&incoming, None).unwrap_err();
    assert_eq!((failure.kind(), failure.completed()), (Kind::Unsupported, Completed::No), "{failure}");
    assert!(chain.far.client.transmit().is_empty());

    // A body of another wire, as question and as answer.
    let other = Body { codec: &native::NATIVE, ..incoming.body.clone() };
    let call = Call {
        profile: &chain.profile,
        method: Method::Named { interface: b"", operation: b"echo" },
        arguments: &other,
        expects: Expects::Reply,
    };
    assert_eq!(chain.far.client.start(Instant::now(), &call).unwrap_err().kind(), Kind::Unsupported);
    assert_eq!(chain.near.answer(incoming.id, Answer::Done(&other)).unwrap_err().kind(), Kind::Unsupported);
    let refused = drain(&mut *chain.near);
    assert_eq!(refused[16], 2, "the caller is told by a system exception");
}

#[test]
fn the_same_question_is_passed_as_the_call_that_it_is() {
    let mut client = Pair::new(Limits::default());
    let operation = in_out("_is_a", text());
    let asked = |sink: &mut dyn Sink| sink.text(&shape::Text::NARROW, "IDL:m/Bank:1.0");
    let profile = profile(b"k");
    let method = Method::Typed { interface: None, operation: &operation };
    let call = Call { profile: &profile, method, arguments: &asked, expects: Expects::Reply };
    client.client.start(Instant::now(), &call).unwrap();
    let Some(Event::Probe { id, asked: Some(incoming), .. }) = client.forth().unwrap().pop() else {
        panic!()
    };
    assert_eq!((incoming.id, &*incoming.operation), (id, &b"_is_a"[..]));
    let no = CDR.write_as(true, Dialect::OURS, 24, &mut |sink| sink.bool(false)).unwrap();
    client.server.answer(id, Answer::Done(&no)).unwrap();
    match client.back().unwrap().pop() {
        Some(Event::Reply { outcome: Outcome::Done(body), .. }) => {
            assert_eq!(value(&Shape::Bool, &body), Value::Bool(false));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_body_that_told_no_character_sets_settles_none() {
    let mut chain = Chain::new(2);
    let (_, _, arrived) = chain.pass(&request(2, true, 0, &|_| Ok(())), None);
    assert!(arrived.body.bytes.is_empty());
    // Later calls choose as the first of a connection does.
    let put = |sink: &mut dyn Sink| sink.text(&shape::Text::NARROW, "日本");
    let (_, arrived) = chain.far.call(&profile(b"k"), &in_out("echo", text()), &put);
    assert_eq!(value(&text(), &arrived.body), Value::Text("日本".into()));
}

/// TAO's reference: its own set is ISO 8859-1, and it says that it converts UTF-8. It spoils what it converts, so the text travels in
/// its own set, as the specification has it anyway.
#[test]
fn text_for_tao_travels_in_its_own_set() {
    let offer = [0x0001_0001_u32, 1, 0x0501_0001, 0x0001_0109, 0];
    let component = |numbers: &[u32]| {
        let mut data = vec![1, 0, 0, 0];
        data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        data.into()
    };
    for (orb, own_set) in [(0x5441_4f00, true), (0x4a41_4300, false)] {
        let mut server = profile(b"k");
        server.components = vec![(0, component(&[orb])), (1, component(&offer))];
        let put = |sink: &mut dyn Sink| sink.text(&shape::Text::NARROW, "gr\u{fc}\u{df}e");
        let (_, arrived) = Pair::new(Limits::default()).call(&server, &in_out("echo", text()), &put);
        assert_eq!(
            arrived.body.bytes.windows(2).any(|two| two == [0xfc, 0xdf]),
            own_set,
            "{:?}",
            arrived.body.bytes
        );
        assert_eq!(value(&text(), &arrived.body), Value::Text("gr\u{fc}\u{df}e".into()));
    }
}
