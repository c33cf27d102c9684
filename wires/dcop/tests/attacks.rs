//! Hostile servers and hostile applications behind them, at a session.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use bytes::BytesMut;
use everywire_dcop::{DCOP, limits};
use everywire_model::visit::Nothing;
use everywire_model::*;
use std::time::{Duration, Instant};

fn refused(session: &mut dyn Session, bytes: &[u8]) -> &'static str {
    feed(session, bytes).unwrap_err().name
}

#[test]
fn c4_names_whose_counts_lie_fail_their_message_only() {
    // What the sender's name says decides whether it can be told.
    for (payload, told) in [
        ("ffffffff", false),
        ("7fffffff61", false),
        ("0000000361", false),
        // No NUL at the end; one inside.
        ("0000000261620000000100", false),
        ("0000000461006200", false),
        // Cut off after one name, two, four.
        ("000000026100", true),
        ("0000000261000000000262", true),
        ("00000002610000000002620000000002630000000002640000", true),
        // More data than the message has.
        ("0000000100000000010000000001000000000100000000ff00", true),
    ] {
        for minor in [1, 2, 7] {
            let mut session = ready("app", Purpose::Serving);
            feed(&mut *session, &message(minor, 77, &unhex(payload))).unwrap();
            assert!(session.poll().is_none(), "{payload}");
            let sent = messages(&drain(&mut *session));
            let failures = usize::from(told && minor != 1);
            assert_eq!(sent.len(), failures, "{payload}");
            assert!(sent.iter().all(|message| message[1] == 4 && key(message) == 77));
            // Others are served as before.
            feed(&mut *session, &call(2, 1, "x", "o", "f()", b"")).unwrap();
            assert!(matches!(session.poll(), Some(Event::Call(_))));
        }
    }
    let long = "x".repeat(limits::NAME + 1);
    let mut session = ready("app", Purpose::Serving);
    feed(&mut *session, &call(2, 77, "x", "o", &long, b"")).unwrap();
    assert!(session.poll().is_none() && drain(&mut *session)[1] == 4);
}

#[test]
fn c4_answers_that_do_not_decode_fail_their_call_only() {
    let mut session = ready("app", Purpose::Calls);
    let asked = operation("f()", "int");
    for (minor, payload) in [
        (3, "ffffffff"),
        (3, "0000000261000000000262000000000269"),
        (3, "00000002610000000002620000000002690000000009"),
        (6, "000000026100000000026200"),
    ] {
        let (one, other) = (start(&mut *session, "x", "o", &asked), start(&mut *session, "x", "o", &asked));
        let keys: Vec<u32> = messages(&drain(&mut *session)).iter().map(|sent| key(sent)).collect();
        feed(&mut *session, &message(minor, keys[0], &unhex(payload))).unwrap();
        let Some(Event::Reply { id, outcome: Outcome::Failed(failure) }) = session.poll() else { panic!() };
        assert_eq!((id, failure.kind(), failure.completed()), (one, Kind::Malformed, Completed::Maybe));
        feed(&mut *session, &reply(keys[1], "int", &[0, 0, 0, 1])).unwrap();
        assert!(
            matches!(session.poll(), Some(Event::Reply { id, outcome: Outcome::Done(_) }) if id == other)
        );
        // Nobody waits for this one any more.
        feed(&mut *session, &message(minor, keys[0], &unhex(payload))).unwrap();
        assert!(session.poll().is_none());
    }
}

#[test]
fn c4_lengths_over_the_limit_are_refused_before_the_message_is_there() {
    let mut session = ready("app", Purpose::Serving);
    let mut head = message(2, 77, b"");
    head[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(refused(&mut *session, &head), Violation::OVER_LIMIT);
    let mut session = ready("app", Purpose::Serving);
    assert_eq!(refused(&mut *session, &message(9, 77, b"")), "Minor");
    let mut session = ready("app", Purpose::Serving);
    assert_eq!(refused(&mut *session, b"\x05\x02\0\0\0\0\0\0\0\0\0\0"), "Major");
}

#[test]
fn c4_messages_over_the_limit_fail_their_call_and_not_the_connection() {
    const LIMIT: u64 = 1 << 16;
    let large = vec![7; usize::try_from(LIMIT).unwrap()];
    let mut config = config("app", Purpose::Serving);
    config.limits = config.limits.with_message(LIMIT);
    for piece in [1000, 70_000] {
        let mut session = ready_with(&config, "app");
        let say = |session: &mut dyn Session, bytes: &[u8]| {
            let mut input = BytesMut::new();
            for piece in bytes.chunks(piece) {
                input.extend_from_slice(piece);
                session.receive(Instant::now(), &mut input, &mut Vec::new()).unwrap();
                assert!(input.len() < 16 << 10, "the rest is dropped as it comes");
            }
        };
        // A call under way stays; the large one fails, and a send is nobody's.
        say(&mut *session, &call(2, 77, "x", "o", "f()", b""));
        let Some(Event::Call(held)) = session.poll() else { panic!() };
        say(&mut *session, &call(2, 78, "y", "o", "f(QByteArray)", &large));
        say(&mut *session, &call(1, 1, "y", "o", "f(QByteArray)", &large));
        let sent = messages(&drain(&mut *session));
        assert_eq!(sent.len(), 1);
        assert_eq!((sent[0][1], key(&sent[0]), &sent[0][12..]), (4, 78, &names(&["app", "y"])[..]));
        session.answer(held.id, Answer::Done(&Nothing)).unwrap();
        assert_eq!(key(&drain(&mut *session)), 77);
        // An answer.
        let asked = operation("f()", "int");
        let (one, other) = (start(&mut *session, "x", "o", &asked), start(&mut *session, "x", "o", &asked));
        let keys: Vec<u32> = messages(&drain(&mut *session)).iter().map(|sent| key(sent)).collect();
        say(&mut *session, &reply(keys[0], "QByteArray", &large));
        let Some(Event::Reply { id, outcome: Outcome::Failed(failure) }) = session.poll() else { panic!() };
        assert_eq!((id, failure.kind(), failure.completed()), (one, Kind::LimitExceeded, Completed::Yes));
        say(&mut *session, &reply(keys[1], "int", &[0, 0, 0, 1]));
        assert!(
            matches!(session.poll(), Some(Event::Reply { id, outcome: Outcome::Done(_) }) if id == other)
        );
    }
}

#[test]
fn c4_values_that_end_early_fail_the_call_and_not_the_connection() {
    let mut session = ready("app", Purpose::Serving);
    feed(&mut *session, &call(2, 77, "x", "o", "f(QString)", &unhex("0000001000"))).unwrap();
    let Some(Event::Call(call_in)) = session.poll() else { panic!() };
    let failure = call_in.body.decode::<(String,)>(&shape("QString")).unwrap_err();
    assert_eq!(failure.kind(), Kind::Malformed);
    session.answer(call_in.id, Answer::Failed(&failure)).unwrap();
    assert_eq!(drain(&mut *session)[1], 4);
    feed(&mut *session, &call(2, 78, "x", "o", "f(QString)", &unhex("00000000"))).unwrap();
    assert!(matches!(session.poll(), Some(Event::Call(_))));
}

#[test]
fn c5_a_call_tree_ends_at_its_depth() {
    let mut session = ready("app", Purpose::Serving);
    for depth in 0..limits::CALL_DEPTH + 3 {
        feed(&mut *session, &call(2, 4711, if depth % 2 == 0 { "b" } else { "c" }, "o", "again()", b""))
            .unwrap();
    }
    let taken: Vec<_> = events(&mut *session);
    assert_eq!(taken.len(), limits::CALL_DEPTH as usize);
    // The rest failed at once.
    let failed = messages(&drain(&mut *session));
    assert!(failed.len() == 3 && failed.iter().all(|message| message[1] == 4 && key(message) == 4711));
    // Calls of other trees are taken as before, and this one again when it has been answered.
    feed(&mut *session, &call(2, 4712, "b", "o", "again()", b"")).unwrap();
    assert!(matches!(session.poll(), Some(Event::Call(_))));
    for event in taken.into_iter().rev() {
        let Event::Call(call) = event else { panic!() };
        session.answer(call.id, Answer::Done(&Nothing)).unwrap();
    }
    feed(&mut *session, &call(2, 4711, "b", "o", "again()", b"")).unwrap();
    assert!(matches!(session.poll(), Some(Event::Call(_))));
}

#[test]
fn c5_calls_beyond_the_limit_fail_and_memory_stays() {
    let mut config = config("app", Purpose::Serving);
    config.limits.outstanding = 8;
    let mut session = ready_with(&config, "app");
    for key in 100..200 {
        feed(&mut *session, &call(2, key, "x", "o", "f()", b"")).unwrap();
    }
    assert_eq!(events(&mut *session).len(), 8);
    assert_eq!(messages(&drain(&mut *session)).len(), 92);
    assert_eq!(session.outstanding(), 8);
}

#[test]
fn c5_announcements_and_answers_that_nobody_waits_for_leave_no_trace() {
    let mut session = ready("app", Purpose::Calls);
    for key in 0..1000 {
        let mut wait = names(&["a", "b"]);
        wait.extend([0, 0, 0, 1]);
        feed(&mut *session, &message(5, key, &wait)).unwrap();
        feed(&mut *session, &reply(key, "int", &[0, 0, 0, 1])).unwrap();
        feed(&mut *session, &message(4, key, &names(&["a", "b"]))).unwrap();
        feed(&mut *session, &message(4, 1, b"")).unwrap();
    }
    assert!(session.poll().is_none() && drain(&mut *session).is_empty());
    assert_eq!(session.outstanding(), 0);
}

#[test]
fn c5_an_answer_that_overtakes_another_of_the_same_call_tree_announces_it() {
    let mut session = ready("app", Purpose::Serving);
    for function in ["first()", "second()"] {
        feed(&mut *session, &call(2, 100, "kde", "o", function, b"")).unwrap();
    }
    feed(&mut *session, &call(2, 101, "other", "o", "third()", b"")).unwrap();
    let ids: Vec<_> = events(&mut *session)
        .into_iter()
        .map(|event| match event {
            Event::Call(call) => call.id,
            other => panic!("{other:?}"),
        })
        .collect();
    let number = operation("x()", "int");
    let done = |n: i32| {
        let results = number.results.clone();
        move |sink: &mut dyn Sink| (n,).marshal_list(&results, sink)
    };
    session.answer(ids[1], Answer::Done(&done(2))).unwrap();
    session.answer(ids[2], Answer::Done(&done(3))).unwrap();
    session.answer(ids[0], Answer::Done(&done(1))).unwrap();
    let sent = messages(&drain(&mut *session));
    let kinds: Vec<_> = sent.iter().map(|message| (message[1], key(message))).collect();
    assert_eq!(kinds, [(5, 100), (3, 100), (3, 101), (6, 100)]);
    let mut walk = Walk(&sent[0][12..]);
    assert_eq!((walk.name(), walk.name(), walk.u32()), ("app".into(), "kde".into(), 1));
    let mut walk = Walk(&sent[3][12..]);
    assert_eq!((walk.name(), walk.name(), walk.u32()), ("app".into(), "kde".into(), 1));
    assert_eq!((walk.name(), walk.data()), ("int".into(), &[0, 0, 0, 1][..]));
    // In order nothing is announced; a failure of an announced one is an answer without a type.
    for function in ["first()", "second()"] {
        feed(&mut *session, &call(2, 100, "kde", "o", function, b"")).unwrap();
    }
    let calls: Vec<_> = events(&mut *session);
    let [Event::Call(one), Event::Call(two)] = &calls[..] else { panic!() };
    session.answer(two.id, Answer::Done(&Nothing)).unwrap();
    session.answer(one.id, Answer::Failed(&Failure::new(Kind::Internal, Initiator::Here, "no"))).unwrap();
    let kinds: Vec<_> = messages(&drain(&mut *session)).iter().map(|message| message[1]).collect();
    assert_eq!(kinds, [5, 3, 6]);
}

#[test]
fn a_server_that_keeps_silent_is_given_up() {
    let mut session = DCOP.connect_with(&config("app", Purpose::Calls), COOKIE);
    let start = Instant::now();
    drain(&mut *session);
    session.receive(start, &mut BytesMut::new(), &mut Vec::new()).unwrap();
    let due = session.deadline().unwrap();
    assert!(session.expire(due - Duration::from_millis(1)).is_ok());
    assert_eq!(session.expire(due).unwrap_err().name, "TooSlow");
    // Half a message, later.
    let mut session = ready("app", Purpose::Calls);
    assert!(session.deadline().is_none());
    let whole = call(1, 1, "x", "o", "f()", &[0; 100]);
    feed(&mut *session, &whole[..40]).unwrap();
    assert_eq!(session.wanted(), whole.len() - 40);
    let due = session.deadline().unwrap();
    assert_eq!(session.expire(due).unwrap_err().name, "TooSlow");
}

#[test]
fn names_that_are_taken_are_refused_unless_a_suffix_will_do() {
    let mut session = DCOP.connect_with(&config("app", Purpose::Serving), COOKIE);
    feed(&mut *session, &handshake()).unwrap();
    let violation = feed(&mut *session, &reply(56, "QCString", &names(&["app-2"]))).unwrap_err();
    assert_eq!(violation.name, "NameTaken");
    assert!(violation.message.contains("unique=no"));
    let place = Config {
        profile: DCOP.listen("dcop+unix:///tmp/x#app?unique=no").unwrap().profile().clone(),
        purpose: Purpose::Serving,
        ..Config::default()
    };
    ready_with(&place, "app-2");
    // A server that does not register at all.
    let mut session = DCOP.connect_with(&config("app", Purpose::Calls), COOKIE);
    feed(&mut *session, &handshake()).unwrap();
    assert_eq!(refused(&mut *session, &reply(56, "QCString", &names(&[""]))), "NotRegistered");
}

#[test]
fn calls_before_registration_are_refused() {
    let mut session = DCOP.connect_with(&config("app", Purpose::Serving), COOKIE);
    feed(&mut *session, &handshake()).unwrap();
    assert_eq!(refused(&mut *session, &call(2, 1, "x", "o", "f()", b"")), "TooEarly");
}

#[test]
fn there_are_no_peers_and_no_overhearing() {
    let mut session = DCOP.accept(&Config::default());
    let violation = feed(&mut *session, b"\0\x01\0\0\0\0\0\0").unwrap_err();
    assert!(violation.name == "NoPeers" && violation.message.contains("everywire dcopserver"));
    let mut session = DCOP.connect(&config("", Purpose::Monitoring));
    assert!(session.deadline().is_some_and(|due| due <= Instant::now()));
    assert_eq!(session.expire(Instant::now()).unwrap_err().name, "NoMonitoring");
}

#[test]
fn any_pieces_of_any_messages_never_panic() {
    let mut state = 7u64;
    let mut roll = move |sides: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % sides
    };
    let whole: Vec<u8> =
        captured().iter().filter(|c| c.way == "S->C1").flat_map(|c| c.bytes.clone()).collect();
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..roll(4) {
            let at = roll(bytes.len());
            bytes[at] = u8::try_from(roll(256)).unwrap();
        }
        let mut session = DCOP.connect_with(&config("", Purpose::Calls), COOKIE);
        let mut input = BytesMut::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + roll(rest.len()));
            rest = after;
            input.extend_from_slice(piece);
            if session.receive(Instant::now(), &mut input, &mut Vec::new()).is_err() {
                break;
            }
            while let Some(event) = session.poll() {
                if let Event::Call(call) = event {
                    session.answer(call.id, Answer::Done(&Nothing)).unwrap();
                }
            }
            drain(&mut *session);
        }
        session.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "over"));
        assert_eq!(session.outstanding(), 0);
    }
}

#[test]
fn c5_a_search_that_is_overtaken_is_answered_under_the_number_that_was_announced() {
    let mut session = ready("app", Purpose::Serving);
    let yes = |sink: &mut dyn Sink| (true,).marshal_list(&operation("f()", "bool").results, sink);
    for (object, function) in [("o", ""), ("o", "is()")] {
        feed(&mut *session, &call(7, 100, "kde", object, function, b"")).unwrap();
        feed(&mut *session, &call(2, 100, "kde", "o", "second()", b"")).unwrap();
        let all = events(&mut *session);
        let found = match &all[0] {
            Event::Probe { id, .. } => *id,
            Event::Call(call) => call.id,
            other => panic!("{other:?}"),
        };
        let Event::Call(second) = &all[1] else { panic!("{all:?}") };
        session.answer(second.id, Answer::Done(&Nothing)).unwrap();
        session.answer(found, Answer::Done(&yes)).unwrap();
        let sent = messages(&drain(&mut *session));
        let kinds: Vec<_> = sent.iter().map(|message| (message[1], key(message))).collect();
        assert_eq!(kinds, [(5, 100), (3, 100), (6, 100)], "`{object}` `{function}`");
        let (mut wait, mut last) = (Walk(&sent[0][12..]), Walk(&sent[2][12..]));
        let number = (wait.name(), wait.name(), wait.u32()).2;
        assert_eq!((last.name(), last.name(), last.u32()), ("app".into(), "kde".into(), number));
        assert_eq!(
            (last.name(), last.data()),
            ("DCOPRef".into(), &names(&["app", "o"]).into_iter().chain([0; 4]).collect::<Vec<_>>()[..])
        );
    }
}
