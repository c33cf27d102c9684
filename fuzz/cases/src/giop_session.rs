//! A server and a client session of GIOP under hostile bytes, in any pieces, with answers, calls and time in between.

use bytes::BytesMut;
use everywire_giop::GIOP;
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Call, Config, Event, Expects, Failure, Initiator, Kind, Method, Operation, Session, Shape, Wire,
};
use std::time::{Duration, Instant};

fn drive(session: &mut dyn Session, mut data: &[u8], calls: bool) {
    let start = Instant::now();
    let mut now = start;
    let mut input = BytesMut::new();
    let reference = GIOP.parse("iiop://localhost:1/key").expect("a good reference");
    let operation = Operation::new("op", vec![], Shape::Void);
    while let [step, rest @ ..] = data {
        data = rest;
        let len = usize::from(*step).min(data.len());
        let (piece, rest) = data.split_at(len);
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
        if calls && step % 5 == 0 {
            let profile = &reference.profiles[0];
            let call = Call {
                profile,
                method: Method::Typed { interface: None, operation: &operation },
                arguments: &Nothing,
                expects: Expects::Reply,
            };
            if let Ok(id) = session.start(now, &call)
                && step % 10 == 0
            {
                session.cancel(id);
            }
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
}

/// Gives the octets to this case.
pub fn giop_session(data: &[u8]) {
    let config = Config::default();
    let [side, data @ ..] = data else { return };
    if side % 2 == 0 {
        drive(&mut *GIOP.accept(&config), data, false);
    } else {
        drive(&mut *GIOP.connect(&config), data, true);
    }
}
