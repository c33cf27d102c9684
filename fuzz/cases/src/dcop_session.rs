//! An application's session of DCOP under a hostile server, before and after it was admitted: any bytes in any pieces,
//! with answers, calls, signals, subscriptions and time in between.

use bytes::BytesMut;
use everywire_dcop::DCOP;
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Call, CallId, Config, Event, Expects, Failure, Initiator, Interest, Kind, Method, Operation,
    Purpose, Session, Shape, Signal, Wire,
};
use std::time::{Duration, Instant};

/// What a server says until it has registered `app`: byte order, authentication twice, and the name.
const ADMISSION: [&[u8]; 6] = [
    b"\0\x01\0\0\0\0\0\0",
    b"\0\x03\0\0\x01\0\0\0\0\0\0\0\0\0\0\0",
    b"\0\x06\0\0\x02\0\0\0\x03\0MIT\0\0\0\x03\x001.0\0\0\0",
    b"\0\x03\0\0\x01\0\0\0\0\0\0\0\0\0\0\0",
    b"\0\x08\0\x02\x02\0\0\0\x03\0KDE\0\0\0\x03\x002.0\0\0\0",
    b"\x02\x03\0\0\x21\0\0\0\x38\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09QCString\0\0\0\0\x08\0\0\0\x04app\0",
];

fn drive(session: &mut dyn Session, admit: bool, mut data: &[u8]) {
    let mut now = Instant::now();
    let mut input = BytesMut::new();
    if admit {
        for said in ADMISSION {
            session.transmit();
            input.extend_from_slice(said);
            session.receive(now, &mut input, &mut Vec::new()).expect("a server that behaves is heard");
        }
        assert!(matches!(session.poll(), Some(Event::Ready(_))), "not admitted");
    }
    let reference = DCOP.parse("dcop+unix:///tmp/s#other/object").expect("a good reference");
    let profile = &reference.profiles[0];
    let operation = Operation::new("op()", vec![], Shape::Void);
    let signal = Signal::new("changed()", vec![]);
    let mut listening: Option<CallId> = None;
    while let [step, rest @ ..] = data {
        data = rest;
        let (piece, rest) = data.split_at(usize::from(*step).min(data.len()));
        data = rest;
        input.extend_from_slice(piece);
        if session.receive(now, &mut input, &mut Vec::new()).is_err() {
            break;
        }
        // A peer cannot make the session wait for more than the limit says.
        assert!(session.wanted() <= 4 << 20, "{} bytes wanted", session.wanted());
        while let Some(event) = session.poll() {
            let failure = Failure::new(Kind::Internal, Initiator::Here, "fuzz");
            let answered = match event {
                Event::Call(call) if step % 3 == 0 => session.answer(call.id, Answer::Failed(&failure)),
                Event::Call(call) if step % 3 == 1 => session.answer(call.id, Answer::Done(&Nothing)),
                Event::Probe { id, .. } => session.answer(id, Answer::Done(&Nothing)),
                _ => Ok(()),
            };
            // An answer that cannot be sent is the caller's loss only.
            drop(answered);
        }
        let expects = Expects::Reply;
        let call = Call {
            profile,
            method: Method::Typed { interface: None, operation: &operation },
            arguments: &Nothing,
            expects,
        };
        match step % 7 {
            0 | 1 => drop(session.start(now, &call).map(|id| {
                if step % 2 == 0 {
                    session.cancel(id)
                }
            })),
            2 => drop(session.probe(now, profile)),
            3 => {
                listening =
                    session.subscribe(now, &Interest { profile, interface: None, signal: Some(&signal) }).ok()
            }
            4 => listening.take().into_iter().for_each(|id| session.unsubscribe(id)),
            _ => {}
        }
        now += Duration::from_millis(u64::from(*step));
        if session.deadline().is_some_and(|deadline| deadline <= now) && session.expire(now).is_err() {
            break;
        }
        let sent = session.transmit().len();
        session.transmit().consume(sent);
    }
    session.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "over"));
    while session.poll().is_some() {}
    assert_eq!(session.outstanding(), 0);
}

/// Gives the octets to this case.
pub fn dcop_session(data: &[u8]) {
    let [mode, data @ ..] = data else { return };
    let reference = DCOP.parse("dcop+unix:///tmp/s#app").expect("a good reference");
    let purpose = if mode & 1 == 0 { Purpose::Serving } else { Purpose::Calls };
    let config = Config { profile: reference.profiles[0].clone(), purpose, ..Config::default() };
    drive(&mut *DCOP.connect_with(&config, b"0123456789abcdef"), mode & 2 == 0, data);
}
