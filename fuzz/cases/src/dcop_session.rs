//! An application's session of DCOP under a hostile server, before and after it was admitted: any bytes in any pieces,
//! with answers, calls, signals, subscriptions and time in between.

use crate::driver::{Driver, steps};
use everywire_dcop::DCOP;
use everywire_model::{
    CallId, Config, Event, Expects, Method, Operation, Purpose, Session, Shape, Signal, SignalFilter, Wire,
};
use std::time::Duration;

/// What a server says until it has registered `app`: byte order, authentication twice, and the name.
const ADMISSION: [&[u8]; 6] = [
    b"\0\x01\0\0\0\0\0\0",
    b"\0\x03\0\0\x01\0\0\0\0\0\0\0\0\0\0\0",
    b"\0\x06\0\0\x02\0\0\0\x03\0MIT\0\0\0\x03\x001.0\0\0\0",
    b"\0\x03\0\0\x01\0\0\0\0\0\0\0\0\0\0\0",
    b"\0\x08\0\x02\x02\0\0\0\x03\0KDE\0\0\0\x03\x002.0\0\0\0",
    b"\x02\x03\0\0\x21\0\0\0\x38\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09QCString\0\0\0\0\x08\0\0\0\x04app\0",
];

fn drive(session: &mut dyn Session, admit: bool, data: &[u8]) {
    let mut driver = Driver::new(session, &[], 4 << 20);
    if admit {
        for said in ADMISSION {
            driver.session.transmit();
            assert!(driver.receive(said), "a server that behaves is heard");
        }
        assert!(matches!(driver.session.poll(), Some(Event::Ready(_))), "not admitted");
    }
    let reference = DCOP.parse("dcop+unix:///tmp/s#other/object").expect("a good reference");
    let profile = &reference.profiles[0];
    let operation = Operation::new("op()", vec![], Shape::Void);
    let method = Method::Typed { interface: None, operation: &operation };
    let signal = Signal::new("changed()", vec![]);
    let filter = SignalFilter { interface: None, signal: Some(&signal) };
    let mut listening: Option<CallId> = None;
    for (step, piece) in steps(data, 1) {
        if !driver.receive(piece) {
            break;
        }
        driver.poll(step, |_| {});
        match step % 7 {
            0 | 1 => driver.call_or_cancel(profile, method, Expects::Reply, step.is_multiple_of(2)),
            2 => drop(driver.session.probe(driver.now, profile)),
            3 => listening = driver.session.subscribe(driver.now, profile, filter).ok(),
            4 => listening.take().into_iter().for_each(|id| driver.session.unsubscribe(id)),
            _ => {}
        }
        if !driver.wait(Duration::from_millis(step.into())) {
            break;
        }
    }
    driver.end();
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
