//! Messages that pass without a contract: what a hop takes as one application leaves as another's as it came.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use bytes::Bytes;
use everywire_dcop::{DATA_STREAM, DCOP};
use everywire_model::message::needs_contract;
use everywire_model::visit::{Nothing, WithHeaders};
use everywire_model::*;
use std::time::Instant;

const SEND: u8 = 1;
const CALL: u8 = 2;
const REPLY: u8 = 3;
const REPLY_FAILED: u8 = 4;
const FIND: u8 = 7;

/// Between a client and an application.
struct Hop {
    front: Box<dyn Session>,
    back: Box<dyn Session>,
}

impl Hop {
    fn new() -> Self {
        Self { front: ready("me", Purpose::Serving), back: ready("anonymous-1", Purpose::Calls) }
    }

    /// Takes a message, as a call: a search for an object is one, too.
    fn takes(&mut self, message: &[u8]) -> Incoming {
        feed(&mut *self.front, message).unwrap();
        match self.front.poll().unwrap() {
            Event::Call(incoming) | Event::Probe { asked: Some(incoming), .. } => *incoming,
            other => panic!("{other:?}"),
        }
    }

    fn tries(&mut self, incoming: &Incoming, arguments: &dyn Encode) -> Result<CallId, Failure> {
        let profile = Profile { key: incoming.key.clone(), ..profile("backend", "") };
        let method = Method::Named { interface: &incoming.interface, operation: &incoming.operation };
        let call = Call { profile: &profile, method, arguments, expects: incoming.expects };
        self.back.start(Instant::now(), &call)
    }

    /// Passes it on: kind and key of the message that leaves, its names, its data.
    fn passes(&mut self, incoming: &Incoming) -> (u8, u32, Vec<String>, Vec<u8>) {
        self.tries(incoming, &incoming.body).unwrap();
        taken(&drain(&mut *self.back), 4)
    }

    /// An answer to what was passed on goes back: kind and key, names, data.
    fn answers(&mut self, incoming: &Incoming, message: &[u8]) -> (u8, u32, Vec<String>, Vec<u8>) {
        feed(&mut *self.back, message).unwrap();
        let Some(Event::Reply { outcome, .. }) = self.back.poll() else { panic!() };
        let answer = match &outcome {
            Outcome::Done(body) => Answer::Done(body),
            Outcome::Failed(failure) => Answer::Failed(failure),
            other => panic!("{other:?}"),
        };
        self.front.answer(incoming.id, answer).unwrap();
        let sent = drain(&mut *self.front);
        let names = if sent[1] == REPLY_FAILED { 2 } else { 3 };
        taken(&sent, names)
    }
}

fn taken(message: &[u8], count: usize) -> (u8, u32, Vec<String>, Vec<u8>) {
    let key = u32::from_le_bytes(*message[8..].first_chunk().unwrap());
    let mut walk = Walk(&message[12..]);
    let names = (0..count).map(|_| walk.name()).collect();
    let data = if walk.0.is_empty() { Vec::new() } else { walk.data().to_vec() };
    (message[1], key, names, data)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn a_call_and_its_answer_pass_as_they_came() {
    for data in [Vec::new(), vec![7; 11], vec![1; 40_000]] {
        let mut hop = Hop::new();
        let incoming = hop.takes(&call(CALL, 77, "client", "object", "strange(QWidget,int)", &data));
        let (kind, key, names, passed) = hop.passes(&incoming);
        assert_eq!(kind, CALL);
        assert_eq!(names, words(&["anonymous-1", "backend", "object", "strange(QWidget,int)"]));
        assert_eq!(passed, data);
        let told = hop.answers(&incoming, &reply(key, "QPalette", &data));
        assert_eq!(told, (REPLY, 77, words(&["me", "client", "QPalette"]), data));
    }
}

#[test]
fn what_wants_no_answer_passes_so() {
    let mut hop = Hop::new();
    let incoming = hop.takes(&call(SEND, 1, "client", "object", "note(QString)", b"data"));
    assert_eq!(incoming.expects, Expects::Nothing);
    let (kind, _, names, data) = hop.passes(&incoming);
    assert_eq!((kind, &names[3][..], &data[..]), (SEND, "note(QString)", &b"data"[..]));
    assert_eq!(hop.back.outstanding(), 0);
}

#[test]
fn a_failure_passes() {
    let mut hop = Hop::new();
    let incoming = hop.takes(&call(CALL, 77, "client", "object", "f()", b""));
    let (_, key, ..) = hop.passes(&incoming);
    let told = hop.answers(&incoming, &message(REPLY_FAILED, key, &names(&["backend", "anonymous-1"])));
    assert_eq!((told.0, told.1, told.2), (REPLY_FAILED, 77, words(&["me", "client"])));
}

#[test]
fn searches_pass() {
    let reference = names(&["backend", "found", ""]);
    // For an object; for one object of several, of which the backend finds one; for one whose function says yes.
    for (object, function, kind, passed) in [
        ("object", "", FIND, ""),
        ("ob*", "", FIND, ""),
        ("ob*", "is(int)", FIND, "is(int)"),
        ("object", "is(int)", CALL, "is(int)"),
    ] {
        for good in [true, false] {
            let mut hop = Hop::new();
            let incoming = hop.takes(&call(FIND, 77, "client", object, function, b"data"));
            let (sent, key, names, data) = hop.passes(&incoming);
            assert_eq!((sent, &names[2][..], &names[3][..]), (kind, object, passed));
            assert_eq!(data, b"data");
            let back = match (kind, good) {
                (CALL, _) => reply(key, "bool", &[good.into()]),
                (_, true) => reply(key, "DCOPRef", &reference),
                (_, false) => message(REPLY_FAILED, key, &crate::support::names(&["backend", "anonymous-1"])),
            };
            let told = hop.answers(&incoming, &back);
            if good {
                let found = if object == "ob*" { "found" } else { object };
                assert_eq!((told.0, told.1, &told.2[2][..]), (REPLY, 77, "DCOPRef"));
                // The object is the hop's as far as the client knows.
                let mut walk = Walk(&told.3);
                assert_eq!((walk.name(), walk.name()), ("me".to_owned(), found.to_owned()));
            } else {
                assert_eq!((told.0, told.1), (REPLY_FAILED, 77));
            }
        }
    }
}

#[test]
fn a_search_that_is_answered_with_nonsense_finds_nothing() {
    for (kind, data) in [("DCOPRef", b"\0\0\0\x7f".to_vec()), ("QString", b"x".to_vec()), ("", Vec::new())] {
        let mut hop = Hop::new();
        let incoming = hop.takes(&call(FIND, 77, "client", "ob*", "", b""));
        let (_, key, ..) = hop.passes(&incoming);
        assert_eq!(hop.answers(&incoming, &reply(key, kind, &data)).0, REPLY_FAILED, "{kind}");
    }
}

#[test]
fn signals_pass_by_their_signatures() {
    let mut hop = Hop::new();
    let body = DATA_STREAM.write(&mut |sink: &mut dyn Sink| sink.i32(5)).unwrap();
    let heard = |signal: &'static str| {
        let body = Body { context: b"said(int)"[..].into(), ..body.clone() };
        let (key, signal) = (Bytes::from_static(b"object"), Bytes::from_static(signal.as_bytes()));
        Incoming::signal(Bytes::new(), key, Bytes::new(), signal, body)
    };
    // Heard by its signature, or by the name that a contract has for it.
    for signal in ["said(int)", "said"] {
        hop.front.emit(Instant::now(), &heard(signal).emission()).unwrap();
        let (kind, _, names, data) = taken(&drain(&mut *hop.front), 4);
        assert_eq!(kind, SEND);
        assert_eq!(names, words(&["me", "DCOPServer", "emit", "object#said(int)"]));
        assert_eq!(data, [0, 0, 0, 5]);
    }
}

/// A codec of somebody else.
struct Other;
static OTHER: Other = Other;

impl Codec for Other {
    fn read<'a>(&self, _: &'a Body, _: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        Err(needs_contract("this"))
    }

    fn write(&self, _: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        Err(needs_contract("this"))
    }
}

#[test]
fn what_does_not_travel_is_refused_before_anything_is_sent() {
    let mut hop = Hop::new();
    let incoming = hop.takes(&call(CALL, 77, "client", "object", "f()", b"data"));
    let other = Body { codec: &OTHER, ..incoming.body.clone() };
    assert_eq!(hop.tries(&incoming, &other).unwrap_err().kind(), Kind::Unsupported);
    let mut headers = Headers::default();
    headers.add(Header::text("any", "x"));
    let beside = WithHeaders { values: &incoming.body, headers: &headers };
    assert_eq!(hop.tries(&incoming, &beside).unwrap_err().kind(), Kind::Unsupported);
    let profile = profile("backend", "object");
    for bad in ["f\0()".to_owned(), "x".repeat(5000)] {
        let method = Method::Named { interface: b"", operation: bad.as_bytes() };
        let call = Call { profile: &profile, method, arguments: &incoming.body, expects: Expects::Reply };
        assert_eq!(hop.back.start(Instant::now(), &call).unwrap_err().kind(), Kind::BadArgument);
    }
    assert!(drain(&mut *hop.back).is_empty() && hop.back.outstanding() == 0);
    // Nor back: the caller is told that it failed.
    assert_eq!(hop.front.answer(incoming.id, Answer::Done(&other)).unwrap_err().kind(), Kind::Unsupported);
    assert_eq!(drain(&mut *hop.front)[1], REPLY_FAILED);
    assert_eq!(DCOP.codec().name(), "dcop");
    // Without a body a call by its name has no data.
    let mut hop = Hop::new();
    let incoming = hop.takes(&call(CALL, 77, "client", "object", "f()", b""));
    hop.tries(&incoming, &Nothing).unwrap();
    assert!(taken(&drain(&mut *hop.back), 4).3.is_empty());
}
