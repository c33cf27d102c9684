//! Call trees: loops end, calls side by side do not count as one, and what a servant calls belongs to its caller's tree.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use everywire_dcop::{DCOP, limits};
use everywire_model::visit::Nothing;
use everywire_model::*;
use std::time::Instant;

fn taken(session: &mut dyn Session) -> Vec<CallId> {
    let id = |event| match event {
        Event::Call(call) => call.id,
        other => panic!("{other:?}"),
    };
    events(session).into_iter().map(id).collect()
}

#[test]
fn calls_side_by_side_under_one_key_are_no_loop() {
    let mut session = ready("app", Purpose::Serving);
    for _ in 0..200 {
        feed(&mut *session, &call(2, 42, "b", "o", "f()", b"")).unwrap();
    }
    let ids = taken(&mut *session);
    assert_eq!(ids.len(), 200);
    // Two levels, each as wide as it likes.
    for _ in 0..200 {
        feed(&mut *session, &call(2, 42, "c", "o", "f()", b"")).unwrap();
    }
    let more = taken(&mut *session);
    assert_eq!(more.len(), 200);
    for id in more.into_iter().rev().chain(ids) {
        session.answer(id, Answer::Done(&Nothing)).unwrap();
    }
    let sent = messages(&drain(&mut *session));
    assert!(sent.iter().all(|message| message[1] != 4 && key(message) == 42));
    assert_eq!(session.outstanding(), 0);
}

#[test]
fn a_loop_through_two_others_ends_and_can_be_unwound() {
    let mut session = ready("app", Purpose::Serving);
    let mut open = Vec::new();
    for round in 0..2 {
        for depth in 0..limits::CALL_DEPTH {
            let sender = if depth % 2 == 0 { "b" } else { "c" };
            feed(&mut *session, &call(2, 4711, sender, "o", "again()", b"")).unwrap();
            open.extend(taken(&mut *session));
        }
        // Whoever asks now is refused, whether deeper or not.
        for sender in ["b", "c", "b"] {
            feed(&mut *session, &call(2, 4711, sender, "o", "again()", b"")).unwrap();
            assert_eq!(drain(&mut *session)[1], 4, "round {round}");
        }
        for id in open.drain(..).rev() {
            session.answer(id, Answer::Done(&Nothing)).unwrap();
        }
        drain(&mut *session);
    }
}

#[test]
fn what_a_servant_calls_goes_out_under_its_callers_key() {
    let mut serving = ready("app", Purpose::Serving);
    let mut calling = ready("anonymous-1", Purpose::Calls);
    let asked = operation("back()", "void");
    let mut call_back = |to: &str| {
        let id = start(&mut *calling, to, "o", &asked);
        (id, key(&drain(&mut *calling)))
    };
    assert_ne!(call_back("kde").1, 500, "nothing is served");
    feed(&mut *serving, &call(2, 500, "kde", "o", "f()", b"")).unwrap();
    let [first] = taken(&mut *serving)[..] else { panic!() };
    let (back, of_back) = call_back("kde");
    assert_eq!(of_back, 500);
    // Under one key one answer is awaited at a time.
    let (beside, of_beside) = call_back("kde");
    assert_ne!(of_beside, 500);
    assert_ne!(back, beside);
    // Answered: the key is free for the next one, which is another call.
    let answer = |calling: &mut dyn Session, key: u32| {
        feed(calling, &reply(key, "void", b"")).unwrap();
        match calling.poll() {
            Some(Event::Reply { id, outcome: Outcome::Done(_) }) => Some(id),
            None => None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(answer(&mut *calling, 500), Some(back));
    let again = |calling: &mut dyn Session| {
        let id = start(calling, "kde", "o", &asked);
        (id, key(&drain(calling)))
    };
    let (second, of_second) = again(&mut *calling);
    assert!(of_second == 500 && second != back);
    // Withdrawn: an answer may still come, and must not answer another call.
    calling.cancel(back);
    assert_eq!(calling.outstanding(), 3, "that is another one");
    calling.cancel(second);
    assert_ne!(again(&mut *calling).1, 500);
    assert_eq!(answer(&mut *calling, 500), None);
    let (third, of_third) = again(&mut *calling);
    assert_eq!(of_third, 500);
    assert_eq!(answer(&mut *calling, 500), Some(third));
    // Two trees: nobody knows which one a call belongs to.
    feed(&mut *serving, &call(2, 501, "other", "o", "f()", b"")).unwrap();
    let [other] = taken(&mut *serving)[..] else { panic!() };
    assert!(![500, 501].contains(&again(&mut *calling).1));
    serving.answer(first, Answer::Done(&Nothing)).unwrap();
    serving.answer(other, Answer::Done(&Nothing)).unwrap();
    assert!(![500, 501].contains(&again(&mut *calling).1), "over");
    // A connection that ends takes its calls along; keys that mean no tree are not taken over.
    feed(&mut *serving, &call(2, 1, "kde", "o", "f()", b"")).unwrap();
    assert_ne!(again(&mut *calling).1, 1);
    drop(serving);
    let mut serving = ready("app", Purpose::Serving);
    feed(&mut *serving, &call(2, 502, "kde", "o", "f()", b"")).unwrap();
    assert_eq!(again(&mut *calling).1, 502);
    serving.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "over"));
    assert_ne!(again(&mut *calling).1, 502);
}

#[test]
fn operations_with_several_results_are_refused_before_anything_is_sent() {
    assert!(!DCOP.capabilities().out_parameters);
    let out = |names: &[&'static str]| {
        let field = |name: &&'static str| Parameter {
            direction: Direction::Out,
            field: shape::Field { name: (*name).into(), shape: Shape::I32 },
        };
        Operation::new("f()".to_owned(), names.iter().map(field).collect(), Shape::Void)
    };
    let (one, two) = (out(&["a"]), out(&["a", "b"]));
    let mut session = ready("anonymous-1", Purpose::Calls);
    let target = profile("app", "o");
    let mut ask = |operation| {
        let expects = Expects::Reply;
        let call = Call {
            profile: &target,
            method: Method::Typed { interface: None, operation },
            arguments: &Nothing,
            expects,
        };
        let result = session.start(Instant::now(), &call);
        (result, drain(&mut *session).len())
    };
    assert!(matches!(ask(&one), (Ok(_), 1..)), "one is a result like a returned one");
    let (Err(failure), 0) = ask(&two) else { panic!() };
    assert_eq!(failure.kind(), Kind::Unsupported);
    assert!(failure.message().contains("one result, and the operation has 2"), "{failure}");
    // Served: the operation is not there, and results of that kind fail.
    let mut session = ready("app", Purpose::Serving);
    feed(&mut *session, &call(2, 500, "kde", "o", "f()", b"")).unwrap();
    let Some(Event::Call(incoming)) = session.poll() else { panic!() };
    let interface = |operation: &Operation| Interface {
        name: "I".into(),
        id: "I".into(),
        identities: (&[]).into(),
        types: None,
        notes: (&[]).into(),
        kind: everywire_model::InterfaceKind::Plain,
        bases: (&[]).into(),
        operations: vec![operation.clone()].into(),
        inherited: 0,
        attributes: (&[]).into(),
        signals: (&[]).into(),
        doc: "".into(),
    };
    assert_eq!(DCOP.operation(&interface(&one), &incoming), Some(0));
    assert_eq!(DCOP.operation(&interface(&two), &incoming), None);
    let results = |sink: &mut dyn Sink| (1, 2).marshal_list(&two.results, sink);
    let failure = session.answer(incoming.id, Answer::Done(&results)).unwrap_err();
    assert_eq!((failure.kind(), failure.completed()), (Kind::Unsupported, Completed::Yes));
    assert_eq!(drain(&mut *session)[1], 4);
}
