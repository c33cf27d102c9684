//! A small call and its answer take no memory, once a connection has warmed up.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use allocation_counter::measure;
use bytes::BytesMut;
use everywire_giop::GIOP;
use everywire_model::*;
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
    let mut client = GIOP.connect(&Config::default());
    let mut server = GIOP.accept(&Config::default());
    let (mut to_server, mut to_client) = (BytesMut::with_capacity(4096), BytesMut::with_capacity(4096));
    let (profile, operation, now, mut handles) = (profile(b"key"), int(), Instant::now(), Vec::new());
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: None, operation: &operation },
        arguments: &put_int(7),
        expects: Expects::Reply,
    };
    let mut round = || {
        client.start(now, &call).unwrap();
        carry(&mut *client, &mut to_server);
        server.receive(now, &mut to_server, &mut handles).unwrap();
        while let Some(event) = server.poll() {
            if let Event::Call(incoming) = event {
                let (v,) = incoming.body.decode::<(i32,)>(&operation.arguments).unwrap();
                server.answer(incoming.id, Answer::Done(&put_int(v + 1))).unwrap();
            }
        }
        carry(&mut *server, &mut to_client);
        client.receive(now, &mut to_client, &mut handles).unwrap();
        while let Some(event) = client.poll() {
            if let Event::Reply { outcome: Outcome::Done(body), .. } = event {
                assert_eq!(body.decode::<(i32,)>(&operation.results).unwrap(), (8,));
            }
        }
    };
    (0..300).for_each(|_| round());
    let taken = measure(|| (0..1000).for_each(|_| round())).count_total;
    // One piece for each call that comes in, which goes on to the servant; the input buffers wrap round now and then.
    assert!(taken < 1050, "{taken} allocations for 1000 calls");
}
