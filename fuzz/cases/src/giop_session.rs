//! A server and a client session of GIOP under hostile bytes, in any pieces, with answers, calls and time in between.

use crate::driver::{Driver, steps};
use everywire_giop::GIOP;
use everywire_model::{Config, Expects, Lease, Method, Operation, Session, Shape, Wire};
use std::sync::Arc;
use std::time::Duration;

fn drive(session: &mut dyn Session, data: &[u8], calls: bool) {
    // The longest message, and what the next read may bring of the one behind it.
    let mut driver = Driver::new(session, &[], (4 << 20) + (16 << 10));
    let reference = GIOP.parse("iiop://localhost:1/key").expect("a good reference");
    let operation = Operation::new("op", vec![], Shape::Void);
    let method = Method::Typed { interface: None, operation: &operation };
    for (step, piece) in steps(data, 1) {
        if !driver.receive(piece) {
            break;
        }
        driver.poll(step, |_| {});
        if calls && step.is_multiple_of(5) {
            driver.call_or_cancel(&reference.profiles[0], method, Expects::Reply, step.is_multiple_of(10));
        }
        if !driver.wait(Duration::from_millis(step.into())) {
            break;
        }
    }
    driver.end();
}

/// Gives the octets to this case.
pub fn giop_session(data: &[u8]) {
    let config = Config::default();
    let [side, data @ ..] = data else { return };
    match side % 4 {
        0 => drive(&mut *GIOP.accept(&config), data, false),
        // One that may be called over its own connection, and that is.
        2 => {
            let place = GIOP.listen("iiop://localhost:1?bidirectional=on").expect("a good address");
            let way_back = Lease::new(Arc::new(()));
            let config = Config { profile: place.profile().clone(), way_back, ..config };
            drive(&mut *GIOP.accept(&config), data, true);
        }
        _ => drive(&mut *GIOP.connect(&config), data, true),
    }
}
