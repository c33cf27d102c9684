//! A hop without a contract: a connection of a caller, one to the backend, and what passes between.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support::*;
use everywire_dcom::exporter::{Proxy, RemoteOxid};
use everywire_dcom::frame::{FIRST, LAST};
use everywire_dcom::pdu::Pdu;
use everywire_dcom::remunknown::{Refs, refs_request};
use everywire_dcom::{DCOM, Level, OBJECT_EXPORTER, REM_UNKNOWN};
use everywire_model::*;
use std::time::Instant;
use uuid::Uuid;

/// The identity of the extension that the tests put in front of calls.
const MARK: &str = "45570001-1a8c-11d3-b68f-00c04f8b72e7";
const OTHER: &str = "45570002-1a8c-11d3-b68f-00c04f8b72e7";

/// A caller, a hop, and a backend.
struct Hop {
    /// The caller's connection.
    near: Pair,
    /// The hop's to the backend.
    far: Pair,
    /// The backend, as the hop was told of it.
    to: Reference,
    /// What the hop passed on and was not answered yet: the call near, and the call far.
    open: Vec<(CallId, CallId)>,
    /// Whether callers get objects of the backend's.
    hands_over: bool,
}

impl Hop {
    fn new(near: Terms, far: Terms) -> Self {
        let hop = Node::hop();
        let to = class_way(far.way());
        let far = Pair::to(&to, far, Limits::default(), hop.share(), Node::serving());
        let near = Pair::to(&class_way(near.way()), near, Limits::default(), Node::empty(), hop);
        let to = Reference { profiles: vec![to], ..Reference::default() };
        Self { near, far, to, open: Vec::new(), hands_over: false }
    }

    /// Passes calls and answers on until both sides are silent; what came for the caller.
    fn run(&mut self, edit: &dyn Fn(Body) -> Body) -> Vec<(CallId, Outcome<Body>)> {
        let mut all = Vec::new();
        loop {
            all.extend(self.near.run().unwrap());
            let asked: Vec<_> = self.near.calls.drain(..).collect();
            for incoming in &asked {
                let to = incoming.body.wire_state().unwrap().leads_on(&incoming.key, &self.to).unwrap();
                let (interface, operation) = (&*incoming.interface, &*incoming.operation);
                let method = Method::Named { interface, operation };
                let body = edit(incoming.body.clone());
                let call =
                    Call { profile: &to.profiles[0], method, arguments: &body, expects: Expects::Reply };
                match self.far.client.start(Instant::now(), &call) {
                    Ok(id) => self.open.push((incoming.id, id)),
                    Err(failure) => self.answer(incoming.id, Outcome::Failed(failure)),
                }
            }
            let told = self.far.run().unwrap();
            let quiet = asked.is_empty() && told.is_empty();
            for (id, outcome) in told {
                let at = self.open.iter().position(|(_, far)| *far == id).expect("a call of the hop's");
                let (near, _) = self.open.remove(at);
                self.answer(near, outcome);
            }
            if quiet {
                return all;
            }
        }
    }

    fn answer(&mut self, id: CallId, outcome: Outcome<Body>) {
        let outcome = match outcome {
            Outcome::Done(body) if self.hands_over => Outcome::Done(DCOM.handed_over(&body).unwrap()),
            other => other,
        };
        let answer = match &outcome {
            Outcome::Done(body) => Answer::Done(body),
            Outcome::Raised(raised) => {
                let failure = object::unexpected(&raised.id);
                let encoded = raised.encoded.as_ref().expect("as it came");
                return self.near.server.answer(id, Answer::Passed { encoded, failure: &failure }).unwrap();
            }
            Outcome::Failed(failure) => match failure.encoded() {
                Some(encoded) => Answer::Passed { encoded, failure },
                None => Answer::Failed(failure),
            },
            Outcome::Moved(reference) => Answer::Moved(reference),
        };
        self.near.server.answer(id, answer).unwrap();
    }

    /// The object of the hop that stands for the counter.
    fn activate(&mut self, interface: &Interface) -> Profile {
        let way = class_way(Terms::OPEN.way());
        let id = self.near.call(&way, interface, 0, &put_int(0));
        match self.run(&|body| body).pop() {
            Some((of, Outcome::Moved(mut reference))) if of == id => reference.profiles.remove(0),
            other => panic!("an object was expected, not {other:?}"),
        }
    }

    /// Begins a call, and runs until the backend has it.
    fn call(
        &mut self,
        way: &Profile,
        interface: &Interface,
        index: usize,
        values: &dyn Encode,
    ) -> (CallId, Incoming) {
        let id = self.near.call(way, interface, index, values);
        let replies = self.run(&|body| body);
        assert!(replies.is_empty(), "{replies:?}");
        assert_eq!(self.far.calls.len(), 1, "calls that came");
        (id, self.far.calls.remove(0))
    }

    fn outcome(&mut self, id: CallId) -> Outcome<Body> {
        let mut replies = self.run(&|body| body);
        match (replies.pop(), replies.is_empty()) {
            (Some((of, outcome)), true) if of == id => outcome,
            other => panic!("one reply was expected, not {other:?}"),
        }
    }
}

fn counter() -> Interface {
    interface("Counter", COUNTER)
}

fn names(body: &Body) -> Vec<(String, String)> {
    let list = body.headers().map(|headers| headers.list(body).unwrap()).unwrap_or_default();
    list.iter().map(|header| (header.name.clone(), header.display().into_owned())).collect()
}

#[test]
fn activations_calls_and_interfaces_pass_at_every_level() {
    for (near, far) in [
        (Level::None, Level::None),
        (Level::Connect, Level::Integrity),
        (Level::Privacy, Level::Connect),
        (Level::Integrity, Level::Privacy),
    ] {
        let mut hop = Hop::new(Terms::at(near), Terms::at(far));
        let way = hop.activate(&counter());
        for turn in 0..3 {
            let (id, incoming) = hop.call(&way, &counter(), 0, &put_int(turn));
            assert_eq!((&*incoming.key, int(&incoming.body)), (&b"counter"[..], turn));
            hop.far.server.answer(incoming.id, Answer::Done(&put_int(turn + 1))).unwrap();
            assert_eq!(int(&done(hop.outcome(id))), turn + 1, "{near:?} {far:?}");
        }
        // In fragments, each connection's own.
        let large: Vec<u8> = (0..200_000_u32).map(|at| at.to_le_bytes()[1]).collect();
        let (id, incoming) = hop.call(&way, &counter(), 1, &put_bytes(large.clone()));
        assert_eq!(octets(&incoming.body), large);
        hop.far.server.answer(incoming.id, Answer::Done(&put_bytes(large.clone()))).unwrap();
        assert_eq!(octets(&done(hop.outcome(id))), large);
        // Another interface, which the hop asks the backend for.
        let (id, incoming) = hop.call(&way, &interface("Ledger", LEDGER), 2, &|sink: &mut dyn Sink| {
            sink.text(&shape::Text::WIDE, "hm")
        });
        assert_eq!(&*incoming.interface, &Uuid::parse_str(LEDGER).unwrap().to_bytes_le());
        hop.far
            .server
            .answer(incoming.id, Answer::Done(&|sink: &mut dyn Sink| sink.text(&shape::Text::WIDE, "aha")))
            .unwrap();
        done(hop.outcome(id));
    }
}

#[test]
fn what_the_object_does_not_have_is_told_as_the_backend_tells_it() {
    let mut hop = Hop::new(Terms::OPEN, Terms::OPEN);
    let way = hop.activate(&counter());
    let unknown = interface("Unknown", "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1affe");
    let id = hop.near.call(&way, &unknown, 0, &put_int(0));
    let told = failure(hop.outcome(id));
    assert_eq!(told.code(), Some("0x80004002"), "{told}");
    // A class that the backend does not have: its address names one, so the hop's answers for that alone.
    let mut other = Hop::new(Terms::OPEN, Terms::OPEN);
    other.to.profiles[0].key = Bytes::from_static(b"nobody");
    let id = other.near.call(&class_way(Terms::OPEN.way()), &counter(), 0, &put_int(0));
    let told = failure(other.outcome(id));
    assert_eq!(told.code(), Some("0x80040154"), "{told}");
}

#[test]
fn failures_exceptions_and_faults_pass_as_they_came() {
    let mut hop = Hop::new(Terms::OPEN, Terms::OPEN);
    let way = hop.activate(&counter());
    // A failing HRESULT with its error information.
    let (id, incoming) = hop.call(&way, &counter(), 0, &put_int(1));
    let refusal = Failure::new(Kind::Internal, Initiator::User, "not today").with_code("0x80040207");
    hop.far.server.answer(incoming.id, Answer::Failed(&refusal)).unwrap();
    let told = failure(hop.outcome(id));
    assert_eq!((told.code(), told.message()), (Some("0x80040207"), "not today"));
    assert_eq!(told.completed(), Completed::Yes);
    // A fault, whose status is no HRESULT.
    let (id, incoming) = hop.call(&way, &counter(), 0, &put_int(1));
    let broken = Failure::malformed("too short", 0);
    hop.far.server.answer(incoming.id, Answer::Failed(&broken)).unwrap();
    let told = failure(hop.outcome(id));
    assert_eq!(told.code(), Some("0x000006f7"), "{told}");
    // An exception of another contract language.
    let shape = shape::Struct { id: "IDL:X:1.0".into(), name: "X".into(), fields: vec![].into() };
    let (id, incoming) = hop.call(&way, &counter(), 0, &put_int(1));
    let nothing: &dyn Encode = &|_: &mut dyn Sink| Ok(());
    hop.far.server.answer(incoming.id, Answer::Raised { shape: &shape, fields: nothing }).unwrap();
    match hop.outcome(id) {
        Outcome::Raised(raised) => assert_eq!(raised.id, "IDL:X:1.0"),
        other => panic!("{other:?}"),
    }
    // A code of success beside the results.
    let (id, incoming) = hop.call(&way, &counter(), 0, &put_int(1));
    let put = |sink: &mut dyn Sink| {
        sink.status(0x4_000d)?;
        sink.i32(7)
    };
    hop.far.server.answer(incoming.id, Answer::Done(&put)).unwrap();
    let body = done(hop.outcome(id));
    assert_eq!((int(&body), body.status()), (7, 0x4_000d));
}

#[test]
fn extensions_are_kept_put_added_and_removed() {
    let mut hop = Hop::new(Terms::OPEN, Terms::OPEN);
    let way = hop.activate(&counter());
    let mut headers = Headers::default();
    headers.add(Header::bytes(MARK, vec![1, 2, 3]));
    headers.add(Header::text(format!("{{{OTHER}}}"), "goes"));
    let put = put_int(5);
    let values = visit::WithHeaders { values: &put, headers: &headers };
    let (id, incoming) = hop.call(&way, &counter(), 0, &values);
    let both = [(MARK.to_owned(), "010203".to_owned()), (OTHER.to_owned(), "676f6573".to_owned())];
    assert_eq!((names(&incoming.body), int(&incoming.body)), (both.to_vec(), 5));
    let mut back = Headers::default();
    back.add(Header::bytes(MARK, vec![9; 8]));
    let put = put_int(6);
    let answer = visit::WithHeaders { values: &put, headers: &back };
    hop.far.server.answer(incoming.id, Answer::Done(&answer)).unwrap();
    let body = done(hop.outcome(id));
    assert_eq!((names(&body), int(&body)), (vec![(MARK.to_owned(), "09".repeat(8))], 6));
    // What the hop changes, however it spells the name.
    let id = hop.near.call(&way, &counter(), 0, &values);
    let replies = hop.run(&|body| {
        let mut headers = body.headers().cloned().unwrap_or_default();
        headers.remove(format!("{{{}}}", OTHER.to_uppercase()));
        headers.put(Header::text(MARK, "put"));
        body.with_headers(headers)
    });
    assert!(replies.is_empty(), "{replies:?}");
    let incoming = hop.far.calls.remove(0);
    assert_eq!((names(&incoming.body), int(&incoming.body)), (vec![(MARK.to_owned(), "707574".into())], 5));
    hop.far.server.answer(incoming.id, Answer::Done(&put_int(1))).unwrap();
    done(hop.outcome(id));
    // All go, and what is left is an ordinary call.
    let id = hop.near.call(&way, &counter(), 0, &values);
    hop.run(&|body| {
        let mut headers = body.headers().cloned().unwrap_or_default();
        headers.remove(OTHER);
        headers.remove(MARK);
        body.with_headers(headers)
    });
    let incoming = hop.far.calls.remove(0);
    assert_eq!((names(&incoming.body), int(&incoming.body)), (vec![], 5));
    hop.far.server.answer(incoming.id, Answer::Done(&put_int(1))).unwrap();
    done(hop.outcome(id));
    // What is no GUID is told before anything is sent.
    let mut wrong = Headers::default();
    wrong.add(Header::text("Priority", "1"));
    let put = put_int(5);
    let values = visit::WithHeaders { values: &put, headers: &wrong };
    let refused = start(&mut *hop.near.client, &way, &counter(), 0, &values).unwrap_err();
    assert_eq!(refused.kind(), Kind::BadArgument, "{refused}");
}

#[test]
fn the_callers_causality_and_its_byte_order_pass() {
    for level in [Level::None, Level::Integrity, Level::Privacy] {
        let terms = Terms::at(level);
        let mut hop = Hop::new(terms, terms);
        let way = hop.activate(&counter());
        // The first call shows which version is spoken.
        let (id, incoming) = hop.call(&way, &counter(), 0, &put_int(1));
        hop.far.server.answer(incoming.id, Answer::Done(&put_int(1))).unwrap();
        done(hop.outcome(id));
        let iid = Uuid::parse_str(COUNTER).unwrap().to_bytes_le();
        for (index, bytes) in [
            (0_u16, 7_u32.to_be_bytes().to_vec()),
            (1, {
                let len = 20_000_u32.to_be_bytes();
                [&len[..], &len[..], &[7; 20_000]].concat()
            }),
        ] {
            let mut body = DCOM.codec().write(&mut |sink| sink.i32(0)).unwrap();
            (body.bytes, body.base, body.little) = (bytes.clone().into(), 0, false);
            let operation = (index + 3).to_le_bytes();
            let method = Method::Named { interface: &iid, operation: &operation };
            let call = Call { profile: &way, method, arguments: &body, expects: Expects::Reply };
            let id = hop.near.client.start(Instant::now(), &call).unwrap();
            let (before, after) = (hop.near.sent.len(), hop.far.sent.len());
            assert!(hop.run(&|body| body).is_empty());
            let incoming = hop.far.calls.remove(0);
            assert!(!incoming.body.little && incoming.body.bytes == bytes, "{level:?}");
            if level == Level::None {
                let causality = |sent: &[u8]| {
                    let all = raw::pdus(sent);
                    let stub = all.iter().find_map(|(header, pdu, message)| match pdu {
                        Pdu::Request(request) => {
                            assert!(!header.little);
                            Some(message[request.stub.clone()][12..28].to_vec())
                        }
                        _ => None,
                    });
                    stub.unwrap()
                };
                assert_eq!(causality(&hop.near.sent[before..]), causality(&hop.far.sent[after..]));
            }
            let put = put_int(0);
            hop.far.server.answer(incoming.id, Answer::Done(&put)).unwrap();
            done(hop.outcome(id));
        }
    }
}

/// Gives the references back that wait for it, by one message.
fn give_back(to: &mut Pair, oxid: &RemoteOxid) {
    let given = oxid.take_releases();
    assert_eq!(given.len(), 1, "{given:?}");
    let refs: Vec<_> = given.iter().map(|&(ipid, public)| Refs { ipid, public, private: 0 }).collect();
    let stub = [raw::orpc_this(), refs_request(&refs)].concat();
    let unknown = oxid.resolution().unwrap().rem_unknown;
    feed(&mut *to.server, &raw::alter(90, 90, &[(REM_UNKNOWN, 0)])).unwrap();
    feed(&mut *to.server, &raw::request(91, FIRST | LAST, 90, 5, Some(unknown), &stub)).unwrap();
    while let Some(event) = to.server.poll() {
        if let Event::Call(incoming) = event {
            to.serve(*incoming);
        }
    }
}

#[test]
fn an_object_that_is_handed_over_is_its_callers_alone() {
    let mut hop = Hop::new(Terms::OPEN, Terms::OPEN);
    hop.hands_over = true;
    let way = hop.activate(&counter());
    let (between, backend) = (hop.near.there.share(), hop.far.there.share());
    let proxy = way.lease.get::<Proxy>().unwrap();
    assert_eq!(proxy.oxid().id(), backend.exporter.oxid());
    assert_eq!(proxy.oxid().resolution().unwrap().rem_unknown, backend.exporter.rem_unknown());
    // The hop has nothing to ping, and nothing to give back.
    let held = between.exporter.counts();
    assert_eq!((held.objects, held.proxies, held.releases), (0, 0, 0), "{held:?}");
    assert_eq!(backend.exporter.counts().objects, 1);
    // Another one, of which the hop keeps some: each has its own references.
    hop.hands_over = false;
    let kept = hop.activate(&counter());
    hop.hands_over = true;
    let again = hop.activate(&counter());
    let held = between.exporter.counts();
    assert_eq!((held.objects, held.proxies, held.releases), (1, 1, 0), "{held:?}");
    assert_eq!(backend.exporter.counts().objects, 1);
    // What the callers give back is all that they were given: then the hop's are left, and then none.
    let there = proxy.oxid().clone();
    drop((way, again));
    give_back(&mut hop.far, &there);
    assert_eq!(backend.exporter.counts().objects, 1);
    let here = kept.lease.get::<Proxy>().unwrap().oxid().clone();
    drop(kept);
    give_back(&mut hop.near, &here);
    let held = between.exporter.counts();
    assert_eq!((held.objects, held.proxies, held.releases), (0, 0, 1), "{held:?}");
}

#[test]
fn what_is_let_go_here_is_let_go_there() {
    let mut hop = Hop::new(Terms::OPEN, Terms::OPEN);
    let way = hop.activate(&counter());
    let node = hop.near.there.share();
    let held = node.exporter.counts();
    assert_eq!((held.objects, held.proxies), (1, 1), "{held:?}");
    // Twice the same object of the backend is the same one here.
    let again = hop.activate(&counter());
    assert_eq!(node.exporter.counts().objects, 1);
    // The caller lets go: its references go back with whatever it says next, and then the hop holds nothing of the backend.
    let oxid = way.lease.get::<Proxy>().unwrap().oxid().clone();
    drop((way, again));
    give_back(&mut hop.near, &oxid);
    let held = node.exporter.counts();
    assert_eq!((held.objects, held.ipids, held.proxies), (0, 0, 0), "{held:?}");
    assert_eq!(held.releases, 1, "{held:?}");
}

#[test]
fn an_object_that_does_not_pass_knows_what_it_knew() {
    let mut pair = Pair::new(Terms::OPEN);
    let way = pair.activate(&class_way(Terms::OPEN.way()), &counter());
    let unknown = interface("Unknown", "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1affe");
    let id = pair.call(&way, &unknown, 0, &put_int(0));
    let told = failure(pair.outcome(id));
    assert_eq!(told.code(), Some("0x80004002"), "{told}");
    assert_eq!(pair.there.exporter.counts().objects, 1);
}

#[test]
fn what_is_no_whole_stub_of_this_wire_is_refused() {
    let mut hop = Hop::new(Terms::OPEN, Terms::OPEN);
    let way = hop.activate(&counter());
    let iid = Uuid::parse_str(COUNTER).unwrap().to_bytes_le();
    let method = Method::Named { interface: &iid, operation: &[3, 0] };
    let refused = |hop: &mut Hop, method: Method<'_>, arguments: &dyn Encode| {
        let call = Call { profile: &way, method, arguments, expects: Expects::Reply };
        let before = drain(&mut *hop.near.client).len();
        let failure = hop.near.client.start(Instant::now(), &call).unwrap_err();
        assert_eq!((before, drain(&mut *hop.near.client).len()), (0, 0));
        failure.kind()
    };
    let other = native::NATIVE.write(&mut |sink| sink.i32(1)).unwrap();
    assert_eq!(refused(&mut hop, method, &other), Kind::Unsupported);
    let mut odd = DCOM.codec().write(&mut |sink| sink.i32(1)).unwrap();
    odd.base = 4;
    assert_eq!(refused(&mut hop, method, &odd), Kind::Unsupported);
    let short = Method::Named { interface: &iid[..15], operation: &[3, 0] };
    let body = DCOM.codec().write(&mut |sink| sink.i32(1)).unwrap();
    assert_eq!(refused(&mut hop, short, &body), Kind::BadArgument);
    let plain = OBJECT_EXPORTER.to_bytes_le();
    let plain = Method::Named { interface: &plain, operation: &[3, 0] };
    assert_eq!(refused(&mut hop, plain, &body), Kind::Unsupported);
}
