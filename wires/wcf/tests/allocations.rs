//! A small call over net.tcp and its answer take no memory of their own, once a connection has warmed up.

use crate::channels::{Pair, VIA, operation};
use allocation_counter::measure;
use bytes::BytesMut;
use everywire_model::visit::Nothing;
use everywire_model::{Answer, Call, Event, Expects, Method, Outcome, Session};
use everywire_wcf::address;
use std::time::Instant;

/// Moves what one session sent into the other's input buffer, as a link does.
fn carry(from: &mut dyn Session, input: &mut BytesMut) {
    let out = from.transmit();
    let bytes = out.contiguous().unwrap();
    input.reserve(bytes.len());
    input.extend_from_slice(bytes);
    let len = out.len();
    out.consume(len);
}

#[test]
fn a_warm_call_takes_the_memory_it_is_handed_on_in() {
    let mut pair = Pair::buffered();
    pair.carry();
    let (mut client, mut server) = (pair.client, pair.server);
    while client.poll().is_some() || server.poll().is_some() {}
    let profile = address::parse(VIA).unwrap().profiles[0].clone();
    let operation = operation();
    let (mut to_server, mut to_client) = (BytesMut::with_capacity(4096), BytesMut::with_capacity(4096));
    let (now, mut handles) = (Instant::now(), Vec::new());
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &operation },
        arguments: &Nothing,
        expects: Expects::Reply,
    };
    let mut round = || {
        client.start(now, &call).unwrap();
        carry(&mut *client, &mut to_server);
        server.receive(now, &mut to_server, &mut handles).unwrap();
        while let Some(event) = server.poll() {
            if let Event::Call(incoming) = event {
                server.answer(incoming.id, Answer::Done(&Nothing)).unwrap();
            }
        }
        carry(&mut *server, &mut to_client);
        client.receive(now, &mut to_client, &mut handles).unwrap();
        let mut answered = false;
        while let Some(event) = client.poll() {
            answered |= matches!(event, Event::Reply { outcome: Outcome::Done(_), .. });
        }
        assert!(answered);
    };
    (0..300).for_each(|_| round());
    let taken = measure(|| (0..1000).for_each(|_| round())).count_total;
    // One piece for each call that comes in, which goes on to the servant; the input buffers wrap round now and then.
    assert!(taken < 1050, "{taken} allocations for 1000 calls");
}
