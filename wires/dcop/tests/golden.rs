//! The captured session between programs of KDE 3.5: what the server said is fed, and what this side says is compared
//! wherever there is no freedom (the second half of a header's first word is not used, keys are this side's own).

#![allow(clippy::unwrap_used)]

use crate::support::*;
use everywire_dcop::ice::Core;
use everywire_dcop::{DATA_STREAM, DCOP};
use everywire_model::visit::Nothing;
use everywire_model::*;
use std::time::Instant;

/// With the bytes that mean nothing, and the key, cleared.
fn plain(message: &[u8]) -> Vec<u8> {
    let mut plain = message.to_vec();
    plain[2..4].fill(0);
    plain[8..12].fill(0);
    plain
}

/// With another key.
fn with_key(message: &[u8], key: u32) -> Vec<u8> {
    let mut message = message.to_vec();
    message[8..12].copy_from_slice(&key.to_le_bytes());
    message
}

/// Values of a body, written again.
fn again(body: &Body, shape: &Shape) -> Vec<u8> {
    DATA_STREAM.write(&mut |sink| body.pipe(shape, sink)).unwrap().bytes.to_vec()
}

/// Whether the data have a null string in them: this side writes it as an empty one.
fn has_null(function: &str, data: &[u8]) -> bool {
    data == [0xff; 4] || (function.contains("(QCString)") && data == [0; 4])
}

#[test]
fn the_handshake_is_the_one_of_kde() {
    let mut session = DCOP.connect_with(&config("goldclient", Purpose::Serving), COOKIE);
    let mut sent = Vec::new();
    let all = captured();
    let of = |way: &str| {
        all.iter()
            .filter(|captured| captured.way == way && captured.title.starts_with("ICE"))
            .collect::<Vec<_>>()
    };
    for (ours, theirs) in of("C2->S").iter().zip(of("S->C2")) {
        // The greeting goes first; then each message of theirs brings one of ours.
        let bytes = drain(&mut *session);
        assert_eq!(Core::read(&bytes, true).unwrap(), Core::read(&ours.bytes, true).unwrap());
        sent.push(bytes);
        feed(&mut *session, &theirs.bytes).unwrap();
    }
    assert_eq!(sent.len(), 5);
    let mut register = b"\0\0\0\0".to_vec();
    register.extend(names(&["DCOPServer", "", "registerAs(QCString)"]));
    register.extend([0, 0, 0, 15]);
    put_name(&mut register, "goldclient");
    let bytes = drain(&mut *session);
    assert_eq!((&bytes[..2], &bytes[12..]), (&[1, 2][..], &register[..]));
    assert!(session.poll().is_none());
}

#[test]
fn calls_are_written_and_answers_read_as_kde_does() {
    let all = captured();
    let mut session = ready("goldclient", Purpose::Serving);
    let mut tried = 0;
    let theirs: Vec<_> = all.iter().filter(|captured| captured.way.contains("C2")).collect();
    for (index, captured) in theirs.iter().enumerate() {
        if captured.way != "C2->S"
            || !captured.title.starts_with("DCOPCall")
            || captured.title.contains("to='DCOPServer'")
        {
            continue;
        }
        let mut walk = Walk(&captured.bytes[12..]);
        let (from, to, object, function) = (walk.name(), walk.name(), walk.name(), walk.name());
        assert_eq!(from, "goldclient");
        let data = walk.data();
        let mut asked = operation(&function, "void");
        let arguments = body(data, function.split_once('(').unwrap().1.strip_suffix(')').unwrap());
        asked.arguments = DATA_STREAM.shape(&arguments).unwrap();
        let profile = profile(&to, &object);
        let write = |sink: &mut dyn Sink| arguments.pipe(&asked.arguments, sink);
        let call = Call {
            profile: &profile,
            method: Method::Typed { interface: None, operation: &asked },
            arguments: &write,
            expects: Expects::Reply,
        };
        let id = session.start(Instant::now(), &call).unwrap();
        let sent = drain(&mut *session);
        if has_null(&function, data) {
            assert_eq!(plain(&sent)[12..sent.len() - 9], plain(&captured.bytes)[12..sent.len() - 9]);
        } else {
            assert_eq!(plain(&sent), plain(&captured.bytes), "{}", captured.title);
        }
        // The answers up to the next call, with our key.
        let key = key(&sent);
        assert!(key >= 42);
        for answer in theirs.iter().skip(index + 1).take_while(|next| next.way == "S->C2") {
            feed(&mut *session, &with_key(&answer.bytes, key)).unwrap();
            if answer.title.starts_with("DCOPReplyWait") {
                assert!(session.poll().is_none());
                continue;
            }
            if answer.title.starts_with("DCOPReplyFailed") {
                // The object is asked why, in place of the call; it does not tell that either.
                assert!(session.poll().is_none());
                let question = drain(&mut *session);
                assert!(question.windows(12).any(|name| name == b"functions()\0"), "{question:?}");
                assert_eq!(self::key(&question), key);
                feed(&mut *session, &with_key(&answer.bytes, key)).unwrap();
            }
            let Some(Event::Reply { id: of, outcome }) = session.poll() else { panic!("{}", answer.title) };
            assert_eq!(of, id);
            match outcome {
                Outcome::Done(body) => {
                    assert!(
                        answer
                            .title
                            .contains(&format!("replyType='{}'", String::from_utf8_lossy(&body.context)))
                    );
                    let shape = DATA_STREAM.shape(&body).unwrap();
                    if !has_null("(QCString)", &body.bytes) && !has_null("", &body.bytes) {
                        assert_eq!(again(&body, &shape), body.bytes);
                    }
                }
                Outcome::Failed(failure) => {
                    assert!(answer.title.starts_with("DCOPReplyFailed"));
                    assert!(matches!(failure.kind(), Kind::NoObject), "{failure:?}");
                    assert!(failure.message().contains(&object) && failure.hint().is_some());
                }
                other => panic!("{other:?}"),
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 21);
}

#[test]
fn an_application_answers_byte_for_byte_as_kde_does() {
    let all = captured();
    let mut session = ready("benchserver", Purpose::Serving);
    let theirs: Vec<_> = all.iter().filter(|captured| captured.way.contains("C1")).collect();
    let mut tried = 0;
    for (index, captured) in theirs.iter().enumerate() {
        let asks = ["DCOPCall", "DCOPFind", "DCOPSend"].iter().any(|kind| captured.title.starts_with(kind));
        if captured.way != "S->C1" || !asks {
            continue;
        }
        feed(&mut *session, &captured.bytes).unwrap();
        let answer = theirs.get(index + 1).filter(|next| next.way == "C1->S");
        match session.poll().unwrap() {
            Event::Call(call) => {
                assert_eq!(&*call.sender, b"goldclient");
                assert_eq!(call.expects == Expects::Nothing, captured.title.starts_with("DCOPSend"));
                if call.expects == Expects::Nothing {
                    continue;
                }
                let answer = answer.unwrap();
                let mut walk = Walk(&answer.bytes[12..]);
                let (_, _) = (walk.name(), walk.name());
                if answer.title.starts_with("DCOPReplyFailed") {
                    let failure = Failure::new(Kind::NoOperation, Initiator::User, "no");
                    session.answer(call.id, Answer::Failed(&failure)).unwrap();
                } else if answer.title.starts_with("DCOPReplyWait") {
                    // It answers at once instead.
                    session.answer(call.id, Answer::Done(&Nothing)).unwrap();
                    drain(&mut *session);
                    continue;
                } else {
                    let kind = walk.name();
                    let data = walk.data();
                    let results = body(data, &kind);
                    let shape = DATA_STREAM.shape(&results).unwrap();
                    let write = |sink: &mut dyn Sink| results.pipe(&shape, sink);
                    session.answer(call.id, Answer::Done(&write)).unwrap();
                    if has_null("(QCString)", data) || has_null("", data) {
                        drain(&mut *session);
                        continue;
                    }
                }
                let sent = drain(&mut *session);
                assert_eq!(key(&sent), key(&answer.bytes));
                assert_eq!(plain(&sent), plain(&answer.bytes), "{}", answer.title);
            }
            Event::Probe { id, key, .. } => {
                assert_eq!(&*key, b"bench");
                session.answer(id, Answer::Done(&Nothing)).unwrap();
                assert_eq!(plain(&drain(&mut *session)), plain(&answer.unwrap().bytes));
            }
            other => panic!("{other:?}"),
        }
        tried += 1;
    }
    assert_eq!(tried, 17);
}

#[test]
fn signals_are_told_as_kde_does() {
    let all = captured();
    let emitted: Vec<_> = all.iter().filter(|c| c.way == "C1->S" && c.title.contains("obj='emit'")).collect();
    let mut session = ready("benchserver", Purpose::Serving);
    let field = |name: &'static str| shape::Field { name: name.into(), shape: Shape::I32 };
    // The signature is the signal's name, or made from its name and shapes.
    for name in ["Hello(int)", "Hello"] {
        let signal = Signal::new(name, vec![field("i")]);
        let interface = Interface {
            name: "X".into(),
            id: "X".into(),
            identities: (&[]).into(),
            types: None,
            notes: (&[]).into(),
            kind: everywire_model::InterfaceKind::Plain,
            bases: (&[]).into(),
            operations: (&[]).into(),
            inherited: 0,
            attributes: (&[]).into(),
            signals: vec![signal.clone()].into(),
            doc: "".into(),
        };
        for (number, captured) in (0i32..).zip(&emitted) {
            let write = |sink: &mut dyn Sink| (number,).marshal_list(&signal.fields, sink);
            let topic = Topic::Typed { interface: &interface, signal: &signal };
            let emission = Emission { key: b"bench", topic, arguments: &write };
            session.emit(Instant::now(), &emission).unwrap();
            let sent = drain(&mut *session);
            assert_eq!(plain(&sent), plain(&captured.bytes));
            assert_eq!(key(&sent), 1);
        }
    }
    assert_eq!(emitted.len(), 2);
}

#[test]
fn answers_to_calls_at_the_same_time_find_their_calls_by_key() {
    let mut session = ready("pipe", Purpose::Calls);
    let asked = [
        operation("slow(int)", "QString"),
        operation("in_out_int_call(int)", "int"),
        operation("out_int_call()", "int"),
    ];
    let ids: Vec<_> = asked.iter().map(|asked| start(&mut *session, "benchserver", "bench", asked)).collect();
    let keys: Vec<_> = messages(&drain(&mut *session)).iter().map(|message| key(message)).collect();
    let mut order = Vec::new();
    for line in golden("pipeline.txt").lines().filter(|line| line.starts_with("reply")) {
        let words: Vec<_> = line.split(' ').collect();
        let [_, _, op, _, name, payload] = words[..] else { panic!("{line}") };
        let number = usize::from(name.bytes().last().unwrap() - b'1');
        let bytes = message(op.parse().unwrap(), keys[number], &unhex(payload));
        feed(&mut *session, &bytes).unwrap();
        while let Some(Event::Reply { id, outcome: Outcome::Done(body) }) = session.poll() {
            let value = body.read(|source| Value::decode(&asked[number].results, source)).unwrap();
            let Value::Struct(fields) = value else { panic!() };
            order.push((id, fields[0].1.clone()));
        }
    }
    let expected =
        [(ids[1], Value::Integer(5)), (ids[2], Value::Integer(42)), (ids[0], Value::Text("late".into()))];
    assert_eq!(order, expected);
    assert_eq!(session.outstanding(), 0);
}

#[test]
fn every_captured_message_is_explained_to_its_end() {
    let mut bytes: Vec<u8> = Vec::new();
    let all: Vec<_> = captured().into_iter().filter(|captured| captured.way == "C1->S").collect();
    all.iter().for_each(|captured| bytes.extend(&captured.bytes));
    let listing = DCOP.explain(&bytes);
    assert_eq!((listing.messages.len(), listing.rest), (all.len(), 0));
    for message in &listing.messages {
        assert!(
            message.parts.iter().all(|part| part.name != "ends early" && part.name != "violation"),
            "{message:?}"
        );
        // Parts lie in the message, and the cookie is not shown.
        assert!(message.parts.iter().all(|part| part.offset + part.len <= message.len));
        assert!(!message.summary.contains("65e17f6c"));
    }
    assert!(listing.messages.iter().any(|m| m.summary.contains("benchserver -> goldclient int:")));
    // Cut off anywhere, it is still explained.
    for end in (0..bytes.len()).step_by(7) {
        let _ = DCOP.explain(&bytes[..end]);
    }
    assert_eq!(DCOP.sniff(&bytes[..8]), wire::Sniff::Yes);
    assert_eq!(DCOP.sniff(&bytes[..3]), wire::Sniff::More);
    assert_eq!(DCOP.sniff(b"GIOP\x01\x02\0\0"), wire::Sniff::No);
}
