//! HTTP sessions under hostile bytes, of either side and every binding, in any pieces, with calls, answers and time in
//! between.

use crate::driver::{Driver, steps};
use bytes::Bytes;
use everywire_model::{Config, Expects, Method, Operation, Profile, Session, Shape};
use everywire_wcf::{address, http};
use std::time::Duration;

const BINDINGS: [(&str, &str); 5] = [
    ("basic", ""),
    ("wshttp", ""),
    ("binhttp", ""),
    ("basic", "&encoding=mtom"),
    ("basic", "&compression=gzip"),
];

fn drive(session: &mut dyn Session, data: &[u8], profile: &Profile, calls: bool) {
    // As much as the quota says.
    let mut driver = Driver::new(session, &[], 1 << 16);
    let operation = Operation::new("Op", vec![], Shape::Void);
    let method = Method::Typed { interface: None, operation: &operation };
    for (step, piece) in steps(data, 4) {
        if calls && step.is_multiple_of(3) {
            let expects = if step.is_multiple_of(2) { Expects::Reply } else { Expects::Nothing };
            driver.call_or_cancel(profile, method, expects, step.is_multiple_of(15));
            if step.is_multiple_of(21) {
                drop(driver.session.probe(driver.now, profile));
            }
        }
        if !driver.receive(piece) {
            break;
        }
        driver.poll(step, |_| {});
        if !driver.wait(Duration::from_millis(u64::from(step) * 8)) {
            break;
        }
    }
    driver.end();
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
