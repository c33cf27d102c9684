//! Both sides of framing under hostile bytes, in any pieces, with answers, calls and time in between; and the listing of the
//! same bytes, which never points outside its messages.

use bytes::BytesMut;
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Call, Config, Event, Expects, Failure, Initiator, Kind, Method, Operation, Session, Shape,
};
use everywire_wcf::explain::explain;
use everywire_wcf::framing::{Accepting, Connecting};
use std::time::{Duration, Instant};

/// What one session sends leads the fuzzer to the next: the beginning of every connection is given.
const BUFFERED: &[u8] = b"\x00\x01\x00\x01\x02\x02\x0anet.tcp://\x03\x08\x0c";
const STREAMED: &[u8] = b"\x00\x01\x00\x01\x01\x02\x0anet.tcp://\x03\x07\x0c";

fn drive(session: &mut dyn Session, config: &Config, opening: &[u8], mut data: &[u8], calls: bool) {
    let mut now = Instant::now();
    let mut input = BytesMut::from(opening);
    let operation = Operation::new("op", vec![], Shape::Void);
    let profile = &config.profile;
    while let [step, rest @ ..] = data {
        let (piece, rest) = rest.split_at(usize::from(*step).min(rest.len()));
        data = rest;
        input.extend_from_slice(piece);
        if session.receive(now, &mut input, &mut Vec::new()).is_err() {
            break;
        }
        // A peer cannot make the session wait for more than the quota says.
        assert!(session.wanted() <= (64 << 10) + 8, "{} bytes wanted", session.wanted());
        while let Some(event) = session.poll() {
            let failure = Failure::new(Kind::Internal, Initiator::Here, "fuzz");
            let answered = match event {
                Event::Call(call) if step % 3 == 0 => session.answer(call.id, Answer::Failed(&failure)),
                Event::Call(call) if step % 3 == 1 => session.answer(call.id, Answer::Done(&Nothing)),
                _ => Ok(()),
            };
            // An answer that cannot be sent is the caller's loss only.
            drop(answered);
        }
        if calls && step % 5 == 0 {
            let arguments = &Nothing;
            let expects = if step % 2 == 0 { Expects::Reply } else { Expects::Nothing };
            let call = Call {
                profile,
                method: Method::Typed { interface: None, operation: &operation },
                arguments,
                expects,
            };
            if let Ok(id) = session.start(now, &call)
                && step % 4 == 0
            {
                session.cancel(id);
            }
        }
        now += Duration::from_millis(u64::from(*step) * 10);
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
pub fn wcf_framing(data: &[u8]) {
    let [side, data @ ..] = data else { return };
    let address = if side & 8 == 0 { "net.tcp://h/x" } else { "net.tcp://h/x?mode=streamed" };
    let reference = everywire_wcf::address::parse(address).expect("a good address");
    let config = Config { profile: reference.profiles[0].clone(), ..Config::default() };
    match side % 4 {
        0 => drive(&mut Accepting::new(&config), &config, &[], data, false),
        1 => drive(&mut Accepting::new(&config), &config, BUFFERED, data, false),
        2 => drive(&mut Accepting::new(&config), &config, STREAMED, data, false),
        _ => drive(&mut Connecting::new(&config), &config, &[0x0b], data, true),
    }
    for message in explain(data).messages {
        assert!(message.offset + message.len <= data.len());
        for part in message.parts {
            assert!(part.offset + part.len <= message.len, "{part:?}");
        }
    }
}
