//! Both sides of framing under hostile bytes, in any pieces, with answers, calls and time in between; and the listing of the
//! same bytes, which never points outside its messages.

use crate::driver::{Driver, steps};
use everywire_model::{Config, Expects, Method, Operation, Session, Shape};
use everywire_wcf::explain::explain;
use everywire_wcf::framing::{Accepting, Connecting};
use std::time::Duration;

/// What one session sends leads the fuzzer to the next: the beginning of every connection is given.
const BUFFERED: &[u8] = b"\x00\x01\x00\x01\x02\x02\x0anet.tcp://\x03\x08\x0c";
const STREAMED: &[u8] = b"\x00\x01\x00\x01\x01\x02\x0anet.tcp://\x03\x07\x0c";

fn drive(session: &mut dyn Session, config: &Config, opening: &[u8], data: &[u8], calls: bool) {
    // As much as the quota says.
    let mut driver = Driver::new(session, opening, (64 << 10) + 8);
    let operation = Operation::new("op", vec![], Shape::Void);
    let method = Method::Typed { interface: None, operation: &operation };
    for (step, piece) in steps(data, 1) {
        if !driver.receive(piece) {
            break;
        }
        driver.poll(step, |_| {});
        if calls && step.is_multiple_of(5) {
            let expects = if step.is_multiple_of(2) { Expects::Reply } else { Expects::Nothing };
            driver.call_or_cancel(&config.profile, method, expects, step.is_multiple_of(4));
        }
        if !driver.wait(Duration::from_millis(u64::from(step) * 10)) {
            break;
        }
    }
    driver.end();
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
