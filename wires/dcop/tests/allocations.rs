//! A small call and its answer, and a signal, take no memory of their own, once a connection has warmed up.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use allocation_counter::measure;
use bytes::BytesMut;
use everywire_model::*;
use std::time::Instant;

/// Moves what one session sent into the other's input buffer, as the server does: with its own opcode.
fn carry(from: &mut dyn Session, input: &mut BytesMut) {
    let out = from.transmit();
    let bytes = out.contiguous().unwrap();
    input.reserve(bytes.len());
    let at = input.len();
    input.extend_from_slice(bytes);
    input[at] = 2;
    let len = out.len();
    out.consume(len);
}

#[test]
fn a_warm_call_takes_the_memory_it_is_handed_on_in() {
    let (mut client, mut server) = (ready("client", Purpose::Calls), ready("app", Purpose::Serving));
    let (mut to_server, mut to_client) = (BytesMut::with_capacity(4096), BytesMut::with_capacity(4096));
    let (now, mut handles) = (Instant::now(), Vec::new());
    // One whose signature is its name, and one whose signature is made.
    let whole = operation("f(int)", "int");
    let mut made = operation("g(int)", "int");
    made.name = "g".into();
    let (one, other) = (profile("app", "one"), profile("app", "other"));
    let mut round = || {
        for (profile, operation) in [(&one, &whole), (&other, &made), (&one, &made)] {
            let put = |sink: &mut dyn Sink| (7i32,).marshal_list(&operation.arguments, sink);
            let call = Call {
                profile,
                method: Method::Typed { interface: None, operation },
                arguments: &put,
                expects: Expects::Reply,
            };
            client.start(now, &call).unwrap();
            carry(&mut *client, &mut to_server);
            server.receive(now, &mut to_server, &mut handles).unwrap();
            while let Some(event) = server.poll() {
                if let Event::Call(incoming) = event {
                    let (v,) = incoming.body.decode::<(i32,)>(&operation.arguments).unwrap();
                    let results = |sink: &mut dyn Sink| (v + 1,).marshal_list(&operation.results, sink);
                    server.answer(incoming.id, Answer::Done(&results)).unwrap();
                }
            }
            carry(&mut *server, &mut to_client);
            client.receive(now, &mut to_client, &mut handles).unwrap();
            let mut answered = false;
            while let Some(event) = client.poll() {
                if let Event::Reply { outcome: Outcome::Done(body), .. } = event {
                    assert_eq!(body.decode::<(i32,)>(&operation.results).unwrap(), (8,));
                    answered = true;
                }
            }
            assert!(answered);
        }
    };
    (0..300).for_each(|_| round());
    let taken = measure(|| (0..1000).for_each(|_| round())).count_total;
    // One piece for each call that comes in, which goes on to the servant; the input buffers wrap round now and then.
    assert!(taken < 3500, "{taken} allocations for 3000 calls");
}
