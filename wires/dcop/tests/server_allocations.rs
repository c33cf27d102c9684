//! A call between two applications takes no memory on its way, once the connections have warmed up.

#![allow(clippy::unwrap_used)]

use crate::server::net;
use allocation_counter::measure;
use bytes::BytesMut;
use everywire_model::{Hub, HubEvent, PeerId};
use net::{Net, call, reply};

#[test]
fn a_call_takes_no_memory_on_its_way() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    let (call, reply) = (call("a", "b", "o", "f(int)", &[0; 4]), reply("b", "a", "int", &[0; 4]));
    let mut input = BytesMut::with_capacity(64 << 10);
    let mut passed = 0;
    let mut round = |input: &mut BytesMut| {
        for (from, message) in [(a, &call), (b, &reply)] {
            input.clear();
            input.reserve(message.len());
            input.extend_from_slice(message);
            net.server.receive(PeerId(from), net.now, input, &mut Vec::new()).unwrap();
            while let Some(event) = net.server.poll() {
                let HubEvent::Flush(to) = event else { panic!("{event:?}") };
                let buffer = net.server.transmit(to).unwrap();
                let len = buffer.contiguous().unwrap().len();
                assert_eq!(len, message.len());
                buffer.consume(len);
                passed += 1;
            }
        }
    };
    (0..100).for_each(|_| round(&mut input));
    let taken = measure(|| (0..1000).for_each(|_| round(&mut input))).count_total;
    assert_eq!(passed, 2 * 1100);
    // The test's own buffer is made anew a few times.
    assert!(taken <= 20, "{taken} allocations in 1000 rounds");
}
