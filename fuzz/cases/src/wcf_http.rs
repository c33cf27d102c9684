//! HTTP sessions under hostile bytes, of either side and every binding, in any pieces, with calls, answers and time in
//! between.

use bytes::{Bytes, BytesMut};
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Call, Config, Event, Expects, Failure, Initiator, Kind, Method, Operation, Profile, Session,
    Shape,
};
use everywire_wcf::{address, http};
use std::time::{Duration, Instant};

const BINDINGS: [(&str, &str); 5] = [
    ("basic", ""),
    ("wshttp", ""),
    ("binhttp", ""),
    ("basic", "&encoding=mtom"),
    ("basic", "&compression=gzip"),
];

fn drive(session: &mut dyn Session, mut data: &[u8], profile: &Profile, calls: bool) {
    let mut now = Instant::now();
    let mut input = BytesMut::new();
    let operation = Operation::new("Op", vec![], Shape::Void);
    let failure = Failure::new(Kind::Internal, Initiator::Here, "fuzz");
    while let [step, rest @ ..] = data {
        let (piece, rest) = rest.split_at((usize::from(*step) * 4).min(rest.len()));
        data = rest;
        if calls && step % 3 == 0 {
            let expects = if step % 2 == 0 { Expects::Reply } else { Expects::Nothing };
            let call = Call {
                profile,
                method: Method::Typed { interface: None, operation: &operation },
                arguments: &Nothing,
                expects,
            };
            if let Ok(id) = session.start(now, &call)
                && step % 15 == 0
            {
                session.cancel(id);
            }
            if step % 21 == 0 {
                drop(session.probe(now, profile));
            }
        }
        input.extend_from_slice(piece);
        if session.receive(now, &mut input, &mut Vec::new()).is_err() {
            break;
        }
        // A peer cannot make the session wait for more than the quota says.
        assert!(session.wanted() <= 1 << 16, "{} bytes wanted", session.wanted());
        while let Some(event) = session.poll() {
            if let Event::Call(call) = event {
                drop(match step % 3 {
                    0 => session.answer(call.id, Answer::Failed(&failure)),
                    1 => session.answer(call.id, Answer::Done(&Nothing)),
                    _ => Ok(()),
                });
            }
        }
        now += Duration::from_millis(u64::from(*step) * 8);
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
pub fn wcf_http(data: &[u8]) {
    let [side, data @ ..] = data else { return };
    let (scheme, options) = BINDINGS[usize::from(side / 2) % BINDINGS.len()];
    let way = address::parse(&format!("{scheme}://127.0.0.1:8000/echo?security=none{options}"))
        .expect("it is an address")
        .profiles
        .remove(0);
    if side % 2 == 0 {
        let place = Profile { key: Bytes::new(), ..way.clone() };
        let mut session = http::Accepting::new(&Config { profile: place, ..Config::default() });
        drive(&mut session, data, &way, false);
    } else {
        let mut session = http::Connecting::new(&Config { profile: way.clone(), ..Config::default() });
        drive(&mut session, data, &way, true);
    }
}
