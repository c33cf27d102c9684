//! D-Bus sessions under hostile bytes, before and after the greeting, of either side, with a bus or without, in any pieces,
//! with calls, answers, signals, subscriptions, handles and time in between.

use bytes::{Bytes, BytesMut};
use everywire_dbus::{DBUS, TAG_BUS, TAG_NAME};
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Call, Config, Emission, Endpoint, Event, Expects, Failure, Handle, Initiator, Interest,
    Interface, Kind, Method, Operation, PeerAddress, Profile, Purpose, Session, Shape, Signal, Topic, Value,
    Wire,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn drive(session: &mut dyn Session, mut data: &[u8], profile: &Profile, calls: bool) {
    let mut now = Instant::now();
    let mut input = BytesMut::new();
    let mut handles: Vec<Handle> = Vec::new();
    let operation = Operation::new("Op", vec![], Shape::Void);
    let signal = Signal::new("Told", vec![]);
    let interface = Interface {
        name: "a::B".into(),
        id: "a.B".into(),
        identities: vec![].into(),
        notes: vec![].into(),
        kind: everywire_model::InterfaceKind::Plain,
        bases: vec![].into(),
        operations: vec![operation.clone()].into(),
        inherited: 0,
        attributes: vec![].into(),
        signals: vec![signal.clone()].into(),
        doc: "".into(),
    };
    let file: Handle = Arc::new(std::fs::File::open("/dev/null").expect("it is always there").into());
    let failure = Failure::new(Kind::Internal, Initiator::Here, "fuzz");
    while let [step, rest @ ..] = data {
        let (piece, rest) = rest.split_at(usize::from(*step).min(rest.len()));
        data = rest;
        input.extend_from_slice(piece);
        if step % 7 == 0 {
            handles.push(Arc::clone(&file));
        }
        if session.receive(now, &mut input, &mut handles).is_err() {
            break;
        }
        // A peer cannot make the session wait for more than the limit says.
        assert!(session.wanted() <= 4 << 20, "{} bytes wanted", session.wanted());
        while let Some(event) = session.poll() {
            let answered = match event {
                Event::Call(call) => {
                    // Whatever came reads, or is refused.
                    if let Some(shape) = DBUS.codec().shape(&call.body) {
                        drop(call.body.read(|source| Value::decode(&shape, source)));
                    }
                    match step % 3 {
                        0 => session.answer(call.id, Answer::Failed(&failure)),
                        1 => session.answer(call.id, Answer::Done(&Nothing)),
                        _ => Ok(()),
                    }
                }
                _ => Ok(()),
            };
            // An answer that cannot be sent is the caller's loss only.
            drop(answered);
        }
        if calls && step % 5 == 0 {
            let call = Call {
                profile,
                method: Method::Typed { interface: Some(&interface), operation: &operation },
                arguments: &Nothing,
                expects: Expects::Reply,
            };
            if let Ok(id) = session.start(now, &call)
                && step % 10 == 0
            {
                session.cancel(id);
            }
            drop(session.emit(
                now,
                &Emission {
                    key: b"a",
                    topic: Topic::Typed { interface: &interface, signal: &signal },
                    arguments: &Nothing,
                },
            ));
            let interest = Interest { profile, interface: Some(&interface), signal: Some(&signal) };
            if let Ok(id) = session.subscribe(now, &interest)
                && step % 15 == 0
            {
                session.unsubscribe(id);
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
pub fn dbus_session(data: &[u8]) {
    let [side, data @ ..] = data else { return };
    let mut profile = Profile {
        wire: "dbus",
        endpoints: vec![Endpoint::Unix { path: "/fuzz".into() }],
        key: Bytes::from_static(b"a"),
        ..Profile::default()
    };
    if side & 4 != 0 {
        profile.components.push((TAG_BUS, Bytes::from_static(b"session")));
        profile.components.push((TAG_NAME, Bytes::from_static(b"a.B")));
    }
    let purpose = match side >> 4 {
        1 => Purpose::Serving,
        2 => Purpose::Monitoring,
        _ => Purpose::Calls,
    };
    let peer = PeerAddress { text: "unix:/fuzz".into(), credentials: Some((1, 0)) };
    let config = Config { peer, profile: profile.clone(), purpose, ..Config::default() };
    match side % 4 {
        0 => drive(&mut *DBUS.accept(&config), data, &profile, false),
        1 => drive(&mut *DBUS.connect(&config), data, &profile, true),
        2 => drive(&mut *DBUS.admitted(&config), data, &profile, true),
        // Past the greeting of a server that lets this side in, what follows is the bus's or the peer's.
        _ => {
            let greeting = b"OK 0123456789abcdef0123456789abcdef\r\nAGREE_UNIX_FD\r\n";
            let mut all = vec![u8::try_from(greeting.len()).expect("short")];
            all.extend_from_slice(greeting);
            all.extend_from_slice(data);
            drive(&mut *DBUS.connect(&config), &all, &profile, true);
        }
    }
}
