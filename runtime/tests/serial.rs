//! Connections that carry one call at a time: what is lost is told, and nobody waits behind a call that was given up.

#![allow(clippy::unwrap_used)]

use crate::plain::{Frame, LONG, Probe, Router, SHORT, name, node};
use everywire_model::{Completed, Kind};
use std::sync::mpsc;

#[test]
fn a_oneway_call_that_meets_a_closing_connection_is_not_lost_without_a_word() {
    let name = name("serial-closes");
    let listener = Router::open(&name);
    let peer = std::thread::spawn(move || {
        let mut peer = listener.accept();
        let first = peer.read();
        peer.send(&Frame { kind: 1, id: first.id, body: Vec::new() }.bytes());
        // It is read, and closing is all that becomes of it.
        peer.read();
    });
    let client = node(1);
    let far = client.connect::<dyn Probe>(&format!("plainserial+unix://@{name}#probe")).unwrap();
    far.hello().unwrap();
    let failure = far.hello().unwrap_err();
    assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::Maybe), "{failure}");
    peer.join().unwrap();
}

#[test]
fn nobody_waits_behind_a_call_that_was_given_up() {
    let name = name("serial-slow");
    let listener = Router::open(&name);
    let (done, end) = mpsc::channel::<()>();
    let peer = std::thread::spawn(move || {
        let mut silent = listener.accept();
        silent.read();
        let mut other = listener.accept();
        let call = other.read();
        other.send(&Frame { kind: 1, id: call.id, body: 2_i32.to_le_bytes().to_vec() }.bytes());
        end.recv_timeout(LONG).unwrap();
        // The first one has ended: nothing more can come of it.
        silent.drain();
    });
    let client = node(1);
    let far = client.connect::<dyn Probe>(&format!("plainserial+unix://@{name}#probe")).unwrap();
    let hasty = client.resolve(far.reference()).unwrap().with_deadline(Some(SHORT));
    let hasty = hasty.into_typed::<dyn Probe>();
    assert_eq!(hasty.add_one(0).unwrap_err().kind(), Kind::TimedOut);
    assert_eq!(far.add_one(1).unwrap(), 2);
    done.send(()).unwrap();
    peer.join().unwrap();
}
