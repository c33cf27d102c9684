//! Sessions and the server, tied together without sockets.

#![allow(clippy::unwrap_used)]

use crate::support;
use crate::support::{COOKIE, config, operation, profile, shape};
use bytes::{Bytes, BytesMut};
use everywire_dcop::server::{Server, Settings};
use everywire_dcop::{DATA_STREAM, DCOP};
use everywire_model::visit::Nothing;
use everywire_model::*;
use std::time::Instant;

/// A server and the sessions connected to it.
struct Desk {
    server: Server,
    sessions: Vec<Option<Box<dyn Session>>>,
}

impl Desk {
    fn new() -> Self {
        Self { server: Server::unannounced(COOKIE.into(), Settings::default()), sessions: Vec::new() }
    }

    /// Connects under a name; the session's number.
    fn join(&mut self, app: &str, purpose: Purpose) -> usize {
        let number = self.sessions.len();
        let id = PeerId(number as u64);
        self.server.connected(id, PeerAddress::default(), Instant::now());
        self.sessions.push(Some(DCOP.connect_with(&config(app, purpose), COOKIE)));
        self.settle();
        assert!(matches!(self.event(number), Some(Event::Ready(_))));
        number
    }

    /// Carries bytes until nobody says anything more.
    fn settle(&mut self) {
        let now = Instant::now();
        loop {
            let mut moved = false;
            for (number, session) in self.sessions.iter_mut().enumerate() {
                let Some(session) = session else { continue };
                let id = PeerId(number as u64);
                let mut up = BytesMut::from(&support::drain(&mut **session)[..]);
                if !up.is_empty() {
                    moved = true;
                    self.server.receive(id, now, &mut up, &mut Vec::new()).unwrap();
                    assert!(up.is_empty());
                }
                if let Some(out) = self.server.transmit(id) {
                    let down = out.to_vec();
                    out.consume(down.len());
                    if !down.is_empty() {
                        moved = true;
                        session.receive(now, &mut BytesMut::from(&down[..]), &mut Vec::new()).unwrap();
                    }
                }
            }
            while self.server.poll().is_some() {}
            if !moved {
                return;
            }
        }
    }

    fn session(&mut self, number: usize) -> &mut dyn Session {
        &mut **self.sessions[number].as_mut().unwrap()
    }

    fn event(&mut self, number: usize) -> Option<Event> {
        self.session(number).poll()
    }

    /// The only event there is.
    fn only(&mut self, number: usize) -> Event {
        self.settle();
        let event = self.event(number).unwrap();
        assert!(self.event(number).is_none());
        event
    }

    fn leave(&mut self, number: usize) {
        self.vanish(number);
        self.settle();
    }

    /// Leaves, and nobody has been told of it yet.
    fn vanish(&mut self, number: usize) {
        self.sessions[number] = None;
        self.server.disconnected(PeerId(number as u64), Instant::now());
        while self.server.poll().is_some() {}
    }

    /// Leaves, and is back under its name before anybody has been told.
    fn restart(&mut self, number: usize, app: &str) -> usize {
        // The callers' side of the line is held up.
        let held: Vec<_> = self.sessions.iter_mut().map(Option::take).collect();
        self.vanish(number);
        let back = self.join(app, Purpose::Serving);
        for (place, session) in self.sessions.iter_mut().zip(held) {
            *place = place.take().or(session);
        }
        self.sessions[number] = None;
        self.settle();
        back
    }

    fn call<A: MarshalList>(
        &mut self,
        number: usize,
        app: &str,
        object: &str,
        asked: &Operation,
        with: A,
    ) -> CallId {
        let profile = profile(app, object);
        let arguments = |sink: &mut dyn Sink| with.marshal_list(&asked.arguments, sink);
        let call = Call {
            profile: &profile,
            method: Method::Typed { interface: None, operation: asked },
            arguments: &arguments,
            expects: Expects::Reply,
        };
        let id = self.session(number).start(Instant::now(), &call).unwrap();
        self.settle();
        id
    }

    fn outcome(&mut self, number: usize, of: CallId) -> Outcome<Body> {
        match self.only(number) {
            Event::Reply { id, outcome } if id == of => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn ask_server<R: for<'a> UnmarshalList<'a>>(
        &mut self,
        number: usize,
        signature: &str,
        result: &str,
        with: &str,
    ) -> R {
        let mut asked = operation(signature, result);
        let id = if with.is_empty() {
            self.call(number, "DCOPServer", "", &asked, ())
        } else {
            asked.arguments = shape("QCString");
            self.call(number, "DCOPServer", "", &asked, (with,))
        };
        match self.outcome(number, id) {
            Outcome::Done(body) => body.decode(&asked.results).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

fn signal() -> Signal {
    Signal::new("Hello(int)", vec![shape::Field { name: "i".into(), shape: Shape::I32 }])
}

fn interface(signals: Vec<Signal>) -> Interface {
    Interface {
        name: "Bench".into(),
        id: "Bench".into(),
        identities: (&[]).into(),
        types: None,
        notes: (&[]).into(),
        kind: everywire_model::InterfaceKind::Plain,
        bases: (&[]).into(),
        operations: (&[]).into(),
        inherited: 0,
        attributes: (&[]).into(),
        signals: signals.into(),
        doc: "".into(),
    }
}

#[test]
fn a_call_goes_there_and_back() {
    let mut desk = Desk::new();
    let (app, client) = (desk.join("benchserver", Purpose::Serving), desk.join("", Purpose::Calls));
    let asked = operation("twice(int,QString)", "QString");
    for round in 0..3 {
        let id = desk.call(client, "benchserver", "bench", &asked, (round, "h\u{e9}"));
        let Event::Call(call) = desk.only(app) else { panic!() };
        assert_eq!((&*call.key, &*call.operation), (&b"bench"[..], &b"twice(int,QString)"[..]));
        assert!(call.sender.starts_with(b"anonymous-"));
        assert_eq!(call.body.decode::<(i32, String)>(&asked.arguments).unwrap(), (round, "h\u{e9}".into()));
        // A context tells the shape.
        assert_eq!(DATA_STREAM.shape(&call.body).unwrap().fields().len(), 2);
        let results = |sink: &mut dyn Sink| ("ok",).marshal_list(&asked.results, sink);
        desk.session(app).answer(call.id, Answer::Done(&results)).unwrap();
        let Outcome::Done(body) = desk.outcome(client, id) else { panic!() };
        assert_eq!(
            (&*body.context, body.decode::<(String,)>(&asked.results).unwrap().0),
            (&b"QString"[..], "ok".into())
        );
    }
    // A large byte array both ways.
    let echo = operation("echo(QByteArray)", "QByteArray");
    let large = Bytes::from(vec![3u8; 1 << 20]);
    let id = desk.call(client, "benchserver", "bench", &echo, (large.clone(),));
    let Event::Call(call) = desk.only(app) else { panic!() };
    let results = |sink: &mut dyn Sink| call.body.pipe(&echo.arguments, sink);
    // What passes on the arguments tells its types by their shape.
    desk.session(app).answer(call.id, Answer::Done(&results)).unwrap();
    let Outcome::Done(body) = desk.outcome(client, id) else { panic!() };
    assert_eq!(body.decode::<(Bytes,)>(&echo.results).unwrap().0, large);
}

#[test]
fn the_server_answers_its_own_functions() {
    let mut desk = Desk::new();
    let (app, client) = (desk.join("app", Purpose::Serving), desk.join("", Purpose::Calls));
    let (names,): (Vec<String>,) = desk.ask_server(client, "registeredApplications()", "QCStringList", "");
    assert!(names.contains(&"app".to_owned()) && names.len() == 2);
    let alive = "isApplicationRegistered(QCString)";
    assert!(desk.ask_server::<(bool,)>(client, alive, "bool", "app").0);
    assert!(!desk.ask_server::<(bool,)>(client, alive, "bool", "nobody").0);
    desk.leave(app);
    assert!(!desk.ask_server::<(bool,)>(client, alive, "bool", "app").0);
}

#[test]
fn a_search_finds_objects_and_functions_that_say_yes() {
    let mut desk = Desk::new();
    let (app, client) = (desk.join("app", Purpose::Serving), desk.join("", Purpose::Calls));
    let target = profile("app", "here");
    for (answer, found) in [(Answer::Done(&Nothing), true), (Answer::Failed(&nothing()), false)] {
        let id = desk.session(client).probe(Instant::now(), &target).unwrap();
        let Event::Probe { id: asked, key, .. } = desk.only(app) else { panic!() };
        assert_eq!(&*key, b"here");
        desk.session(app).answer(asked, answer).unwrap();
        match desk.outcome(client, id) {
            Outcome::Done(_) => assert!(found),
            Outcome::Failed(failure) => assert!(!found && failure.kind() == Kind::NoObject),
            other => panic!("{other:?}"),
        }
    }
    let id = desk.session(client).probe(Instant::now(), &profile("nobody", "here")).unwrap();
    assert!(matches!(desk.outcome(client, id), Outcome::Failed(_)));
    // With a function, as programs of KDE ask: a raw message, as this side never sends one.
    let yes = shape("bool");
    for (value, kind) in [(true, 3), (false, 4)] {
        let mut lone = support::ready("app", Purpose::Serving);
        support::feed(&mut *lone, &support::call(7, 50, "kde", "here", "isIt()", b"")).unwrap();
        let Some(Event::Call(call)) = lone.poll() else { panic!() };
        let results = |sink: &mut dyn Sink| (value,).marshal_list(&yes, sink);
        lone.answer(call.id, Answer::Done(&results)).unwrap();
        assert_eq!(support::drain(&mut *lone)[1], kind);
    }
}

#[test]
fn a_search_among_several_asks_whoever_knows_the_objects() {
    for (object, function, asked) in [
        ("doc-*", "", "?"),
        ("doc-*", "isIt(int)", "?isIt(int)"),
        ("default", "", "?"),
        ("default", "isIt(int)", "isIt(int)"),
        ("", "isIt(int)", "isIt(int)"),
    ] {
        let mut lone = support::ready("app", Purpose::Serving);
        support::feed(&mut *lone, &support::call(7, 50, "kde", object, function, &[0, 0, 0, 7])).unwrap();
        let Some(Event::Call(call)) = lone.poll() else { panic!("{object}") };
        assert_eq!((&*call.key, &*call.operation), (object.as_bytes(), asked.as_bytes()));
        assert_eq!(call.body.decode::<(i32,)>(&shape("int")).unwrap(), (7,));
        let search = asked.starts_with('?');
        let (yes, which) = (shape("bool"), shape("QByteArray"));
        let results = |sink: &mut dyn Sink| {
            if search {
                (&b"doc-2"[..],).marshal_list(&which, sink)
            } else {
                (true,).marshal_list(&yes, sink)
            }
        };
        lone.answer(call.id, Answer::Done(&results)).unwrap();
        let sent = support::drain(&mut *lone);
        assert_eq!((sent[1], support::key(&sent)), (3, 50));
        let mut walk = support::Walk(&sent[12..]);
        assert_eq!((walk.name(), walk.name(), walk.name()), ("app".into(), "kde".into(), "DCOPRef".into()));
        let mut walk = support::Walk(walk.data());
        let found = if search { "doc-2" } else { object };
        assert_eq!((walk.name(), walk.name(), walk.name()), ("app".into(), found.into(), String::new()));
    }
    // Nobody is there, or says yes; the answer of another kind.
    for answer in [Answer::Failed(&nothing()), Answer::Done(&Nothing)] {
        let mut lone = support::ready("app", Purpose::Serving);
        support::feed(&mut *lone, &support::call(7, 50, "kde", "doc-*", "", b"")).unwrap();
        let Some(Event::Call(call)) = lone.poll() else { panic!() };
        lone.answer(call.id, answer).unwrap();
        assert_eq!(support::drain(&mut *lone)[1], 4);
    }
}

fn nothing() -> Failure {
    Failure::new(Kind::NoObject, Initiator::User, "nothing is here")
}

#[test]
fn signals_come_until_they_are_not_wanted_and_losses_are_told() {
    let mut desk = Desk::new();
    let client = desk.join("", Purpose::Calls);
    let app = desk.join("app", Purpose::Serving);
    let (hello, other) = (signal(), Signal::new("Other()", vec![]));
    let both = interface(vec![hello.clone(), other.clone()]);
    let emitter = profile("app", "bench");
    let filter = SignalFilter { interface: Some(&both), signal: None };
    let id = desk.session(client).subscribe(Instant::now(), &emitter, filter).unwrap();
    assert!(matches!(desk.outcome(client, id), Outcome::Done(_)));
    let emit = |desk: &mut Desk, app: usize, key: &[u8], signal: &Signal, value: i32| {
        let write = |sink: &mut dyn Sink| {
            if signal.name == "Other()" {
                ().marshal_list(&signal.fields, sink)
            } else {
                (value,).marshal_list(&signal.fields, sink)
            }
        };
        let topic = Topic::Typed { interface: &both, signal };
        let emission = Emission { key, topic, arguments: &write };
        desk.session(app).emit(Instant::now(), &emission).unwrap();
        desk.settle();
    };
    for value in [1, 2] {
        emit(&mut desk, app, b"bench", &hello, value);
        let Event::Signal { subscriptions, heard } = desk.only(client) else { panic!() };
        assert_eq!(subscriptions, [id]);
        assert_eq!(
            (&*heard.sender, &*heard.key, &*heard.operation),
            (&b"app"[..], &b"bench"[..], &b"Hello(int)"[..])
        );
        assert_eq!(heard.body.decode::<(i32,)>(&hello.fields).unwrap().0, value);
    }
    emit(&mut desk, app, b"bench", &other, 0);
    assert!(matches!(desk.only(client), Event::Signal { heard, .. } if &*heard.operation == b"Other()"));
    // Another object's signal is not meant.
    emit(&mut desk, app, b"elsewhere", &hello, 3);
    assert!(desk.event(client).is_none());
    // The emitter leaves and comes back: the subscription stands.
    desk.leave(app);
    assert!(matches!(desk.only(client), Event::Lost { subscription, .. } if subscription == id));
    let app = desk.join("app", Purpose::Serving);
    emit(&mut desk, app, b"bench", &hello, 4);
    assert!(matches!(desk.only(client), Event::Signal { .. }));
    desk.session(client).unsubscribe(id);
    desk.settle();
    emit(&mut desk, app, b"bench", &hello, 5);
    assert!(desk.event(client).is_none() && desk.session(client).outstanding() == 0);
}

#[test]
fn all_signals_of_an_unknown_interface_cannot_be_asked_for() {
    let mut desk = Desk::new();
    let client = desk.join("", Purpose::Calls);
    let emitter = profile("app", "bench");
    for interface in [None, Some(&interface(vec![]))] {
        let filter = SignalFilter { interface, signal: None };
        let failure = desk.session(client).subscribe(Instant::now(), &emitter, filter).unwrap_err();
        assert_eq!(failure.kind(), Kind::Unsupported);
    }
}

#[test]
fn signals_are_not_taken_from_others_than_asked() {
    let mut desk = Desk::new();
    let (client, app, liar) = (
        desk.join("", Purpose::Calls),
        desk.join("app", Purpose::Serving),
        desk.join("liar", Purpose::Serving),
    );
    let hello = signal();
    let emitter = profile("app", "bench");
    let filter = SignalFilter { interface: None, signal: Some(&hello) };
    let id = desk.session(client).subscribe(Instant::now(), &emitter, filter).unwrap();
    assert!(matches!(desk.outcome(client, id), Outcome::Done(_)));
    let name = format!("anonymous-{}", std::process::id());
    // Sent directly to the slot, which has a number that can be guessed.
    for (sender, heard) in [(liar, false), (app, true)] {
        let target = profile(&name, "everywire-signal-1");
        let direct = operation("Hello(int)", "void");
        let arguments = |sink: &mut dyn Sink| (7,).marshal_list(&direct.arguments, sink);
        let call = Call {
            profile: &target,
            method: Method::Typed { interface: None, operation: &direct },
            arguments: &arguments,
            expects: Expects::Nothing,
        };
        desk.session(sender).start(Instant::now(), &call).unwrap();
        desk.settle();
        assert_eq!(desk.event(client).is_some(), heard);
    }
}

#[test]
fn the_death_of_a_callee_fails_its_calls_and_no_others() {
    let mut desk = Desk::new();
    let client = desk.join("", Purpose::Calls);
    let (one, two) = (desk.join("one", Purpose::Serving), desk.join("two", Purpose::Serving));
    let asked = operation("f()", "void");
    let first = desk.call(client, "one", "o", &asked, ());
    desk.leave(one);
    let Outcome::Failed(failure) = desk.outcome(client, first) else { panic!() };
    assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::Maybe));
    // A call that was withdrawn dies unheard; one to another application stays.
    let one = desk.join("one", Purpose::Serving);
    let withdrawn = desk.call(client, "one", "o", &asked, ());
    desk.session(client).cancel(withdrawn);
    let stays = desk.call(client, "two", "o", &asked, ());
    desk.leave(one);
    assert!(desk.event(client).is_none());
    desk.session(client).cancel(stays);
    assert!(matches!(desk.event(two), Some(Event::Call(_))));
    // Calls to several.
    let one = desk.join("one", Purpose::Serving);
    let dead: Vec<_> = (0..3).map(|_| desk.call(client, "one", "o", &asked, ())).collect();
    let alive = desk.call(client, "two", "o", &asked, ());
    assert_eq!(desk.session(client).outstanding(), 4);
    desk.leave(one);
    for expected in dead {
        let Some(Event::Reply { id, outcome: Outcome::Failed(failure) }) = desk.event(client) else {
            panic!()
        };
        assert_eq!((id, failure.kind()), (expected, Kind::Unreachable));
        assert!(failure.message().contains("one"));
    }
    assert!(desk.event(client).is_none());
    let Some(Event::Call(call)) = desk.event(two) else { panic!() };
    desk.session(two).answer(call.id, Answer::Done(&Nothing)).unwrap();
    assert!(matches!(desk.outcome(client, alive), Outcome::Done(_)));
    assert_eq!(desk.session(client).outstanding(), 0);
}

/// The call that failed, because its callee died.
fn died(desk: &mut Desk, client: usize) -> Option<CallId> {
    match desk.event(client)? {
        Event::Reply { id, outcome: Outcome::Failed(failure) } => {
            assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::Maybe));
            Some(id)
        }
        _ => panic!("not a call that died"),
    }
}

#[test]
fn calls_to_an_application_that_died_and_came_back_at_once_fail() {
    let mut desk = Desk::new();
    let client = desk.join("", Purpose::Calls);
    let asked = operation("f()", "void");
    let mut app = desk.join("app", Purpose::Serving);
    // One of them was withdrawn: the server tells of its end, too.
    for withdrawn in [false, true] {
        let dead: Vec<_> = (0..3).map(|_| desk.call(client, "app", "o", &asked, ())).collect();
        if withdrawn {
            desk.session(client).cancel(dead[1]);
        }
        app = desk.restart(app, "app");
        assert_eq!(died(&mut desk, client), Some(dead[0]));
        if !withdrawn {
            assert_eq!(died(&mut desk, client), Some(dead[1]));
        }
        assert_eq!(died(&mut desk, client), Some(dead[2]));
        // Calls to the successor go on.
        let alive = desk.call(client, "app", "o", &asked, ());
        let Some(Event::Call(call)) = desk.event(app) else { panic!() };
        desk.session(app).answer(call.id, Answer::Done(&Nothing)).unwrap();
        assert!(matches!(desk.outcome(client, alive), Outcome::Done(_)));
        assert_eq!(desk.session(client).outstanding(), 0);
    }
}

#[test]
fn a_call_to_a_successor_outlives_those_to_the_one_before() {
    let mut desk = Desk::new();
    let client = desk.join("", Purpose::Calls);
    let asked = operation("f()", "void");
    let app = desk.join("app", Purpose::Serving);
    let dead = desk.call(client, "app", "o", &asked, ());
    let profile = profile("app", "o");
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &asked },
        arguments: &Nothing,
        expects: Expects::Reply,
    };
    // Sent before this side hears of the death; the server gets it when the successor is there.
    let alive = desk.session(client).start(Instant::now(), &call).unwrap();
    let app = desk.restart(app, "app");
    assert_eq!(died(&mut desk, client), Some(dead));
    assert!(desk.event(client).is_none());
    let Some(Event::Call(call)) = desk.event(app) else { panic!() };
    desk.session(app).answer(call.id, Answer::Done(&Nothing)).unwrap();
    assert!(matches!(desk.outcome(client, alive), Outcome::Done(_)));
}

#[test]
fn where_it_is_open_which_of_several_came_back_no_call_waits_for_ever() {
    let mut desk = Desk::new();
    let client = desk.join("", Purpose::Calls);
    let asked = operation("f()", "void");
    let (one, _two) = (desk.join("one", Purpose::Serving), desk.join("two", Purpose::Serving));
    let mut calls = [desk.call(client, "one", "o", &asked, ()), desk.call(client, "two", "o", &asked, ())];
    desk.restart(one, "one");
    let mut failed = [died(&mut desk, client).unwrap(), died(&mut desk, client).unwrap()];
    calls.sort_by_key(|id| id.0);
    failed.sort_by_key(|id| id.0);
    assert_eq!(failed, calls);
    assert_eq!(desk.session(client).outstanding(), 0);
    // A death that is explained ends no other call.
    let (three, two) = (desk.join("three", Purpose::Serving), desk.call(client, "two", "o", &asked, ()));
    let dead = desk.call(client, "three", "o", &asked, ());
    desk.leave(three);
    assert_eq!(died(&mut desk, client), Some(dead));
    assert!(desk.event(client).is_none() && desk.session(client).outstanding() == 1);
    desk.session(client).cancel(two);
}

#[test]
fn sends_reach_all_applications_with_a_prefix() {
    let mut desk = Desk::new();
    let client = desk.join("", Purpose::Calls);
    let apps: Vec<_> = ["x-1", "x-2", "y"].iter().map(|app| desk.join(app, Purpose::Serving)).collect();
    let all = profile("x-*", "o");
    let asked = operation("f()", "void");
    let mut call = Call {
        profile: &all,
        method: Method::Typed { interface: None, operation: &asked },
        arguments: &Nothing,
        expects: Expects::Nothing,
    };
    desk.session(client).start(Instant::now(), &call).unwrap();
    desk.settle();
    let heard: Vec<_> = apps.iter().map(|app| desk.event(*app).is_some()).collect();
    assert_eq!(heard, [true, true, false]);
    call.expects = Expects::Reply;
    assert_eq!(desk.session(client).start(Instant::now(), &call).unwrap_err().kind(), Kind::BadArgument);
}

#[test]
fn a_withdrawn_call_is_forgotten_and_an_end_fails_the_rest() {
    let mut desk = Desk::new();
    let (client, app) = (desk.join("", Purpose::Calls), desk.join("app", Purpose::Serving));
    let asked = operation("f()", "void");
    let withdrawn = desk.call(client, "app", "o", &asked, ());
    desk.session(client).cancel(withdrawn);
    let Event::Call(call) = desk.only(app) else { panic!() };
    desk.session(app).answer(call.id, Answer::Done(&Nothing)).unwrap();
    desk.settle();
    assert!(desk.event(client).is_none());
    let open = desk.call(client, "app", "o", &asked, ());
    desk.session(client).disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "gone"));
    assert!(
        matches!(desk.event(client), Some(Event::Reply { id, outcome: Outcome::Failed(_) }) if id == open)
    );
}
