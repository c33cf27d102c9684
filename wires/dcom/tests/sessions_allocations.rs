//! A small call and its answer take hardly any memory, once a connection has warmed up.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use allocation_counter::measure;
use bytes::BytesMut;
use everywire_dcom::standard::contracts::FIND_CONNECTION_POINT;
use everywire_dcom::standard::guid::Guid;
use everywire_dcom::{Level, NDR};
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

/// Allocations of a thousand calls, both sides together.
fn thousand(level: Level) -> u64 {
    let terms = Terms::at(level);
    let mut pair = Pair::new(terms);
    let counter = interface("Counter", COUNTER);
    let way = pair.activate(&class_way(terms.way()), &counter);
    let id = pair.call(&way, &counter, 0, &put_int(1));
    let incoming = pair.incoming();
    pair.server.answer(incoming.id, Answer::Done(&put_int(2))).unwrap();
    done(pair.outcome(id));
    let Pair { mut client, mut server, .. } = pair;
    let (mut to_server, mut to_client) = (BytesMut::with_capacity(4096), BytesMut::with_capacity(4096));
    let (now, mut handles) = (Instant::now(), Vec::new());
    let operation = &counter.operations[0];
    let call = Call {
        profile: &way,
        method: Method::Typed { interface: Some(&counter), operation },
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
    measure(|| (0..1000).for_each(|_| round())).count_total
}

#[test]
fn a_warm_call_takes_the_memory_it_is_handed_on_in() {
    let open = thousand(Level::None);
    let signed = thousand(Level::Integrity);
    assert!(open < 3_050, "{open} allocations for 1000 calls");
    // Signing takes none.
    assert!(signed < open + 50, "{signed} allocations for 1000 signed calls");
}

/// Reading a GUID takes the list of the structures that are open, and no memory for its octets.
#[test]
fn a_guid_is_read_from_where_it_is() {
    let id = uuid::uuid!("6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1b10");
    let body = Body {
        bytes: Bytes::copy_from_slice(&id.to_bytes_le()),
        base: 0,
        little: true,
        dialect: 0,
        context: Context::default(),
        budget: Budget::default(),
        codec: &NDR,
        beside: None,
    };
    let read = || assert_eq!(body.decode::<(Guid,)>(&FIND_CONNECTION_POINT.arguments).unwrap().0.0, id);
    read();
    assert_eq!(measure(read).count_total, 1);
}
