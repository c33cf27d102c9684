//! D-Bus sessions under hostile bytes, before and after the greeting, of either side, with a bus or without, in any pieces,
//! with calls, answers, signals, subscriptions, handles and time in between.

use crate::driver::{Driver, steps};
use bytes::Bytes;
use everywire_dbus::{DBUS, TAG_BUS, TAG_NAME};
use everywire_model::visit::Nothing;
use everywire_model::{
    Config, Emission, Endpoint, Event, Expects, Handle, Interface, Method, Operation, PeerAddress, Profile,
    Purpose, Session, Shape, Signal, SignalFilter, Topic, Value, Wire,
};
use std::sync::Arc;
use std::time::Duration;

fn drive(session: &mut dyn Session, data: &[u8], profile: &Profile, calls: bool) {
    let mut driver = Driver::new(session, &[], 4 << 20);
    let operation = Operation::new("Op", vec![], Shape::Void);
    let signal = Signal::new("Told", vec![]);
    let interface = Interface {
        name: "a::B".into(),
        id: "a.B".into(),
        operations: vec![operation.clone()].into(),
        signals: vec![signal.clone()].into(),
        ..Interface::default()
    };
    let method = Method::Typed { interface: Some(&interface), operation: &operation };
    let file: Handle = Arc::new(std::fs::File::open("/dev/null").expect("it is always there").into());
    for (step, piece) in steps(data, 1) {
        if step.is_multiple_of(7) {
            driver.handles.push(Arc::clone(&file));
        }
        if !driver.receive(piece) {
            break;
        }
        driver.poll(step, |event| {
            // Whatever came reads, or is refused.
            if let Event::Call(call) = event
                && let Some(shape) = DBUS.codec().shape(&call.body)
            {
                drop(call.body.read(|source| Value::decode(&shape, source)));
            }
        });
        if calls && step.is_multiple_of(5) {
            driver.call_or_cancel(profile, method, Expects::Reply, step.is_multiple_of(10));
            let topic = Topic::Typed { interface: &interface, signal: &signal };
            drop(driver.session.emit(driver.now, &Emission { key: b"a", topic, arguments: &Nothing }));
            let filter = SignalFilter { interface: Some(&interface), signal: Some(&signal) };
            if let Ok(id) = driver.session.subscribe(driver.now, profile, filter)
                && step.is_multiple_of(15)
            {
                driver.session.unsubscribe(id);
            }
        }
        if !driver.wait(Duration::from_millis(step.into())) {
            break;
        }
    }
    driver.end();
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
