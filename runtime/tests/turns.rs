//! Connections have turns: one that has brought much does not keep the others waiting until all of it is served.

#![allow(clippy::unwrap_used)]

use crate::plain::{Does, PLAIN, Probe, Raw, call, name};
use everywire_runtime::Builder;
use std::io::Write;
use std::sync::{Arc, Mutex};

/// Calls that come in one go.
const PIPELINED: i32 = 1000;
/// What the argument of the call is that comes later.
const LATER: i32 = -7;

#[test]
fn who_comes_later_is_served_before_all_that_another_has_pipelined() {
    let name = name("turns");
    let server = Builder::new(&[&PLAIN]).shards(1).build();
    server.listen(&format!("plain+unix://@{name}")).unwrap();
    let (order, later) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(None::<Raw>)));
    let (served, asks) = (Arc::clone(&order), Arc::clone(&later));
    server.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |n| {
            served.lock().unwrap().push(n);
            // While the first of the many is served, all the others have come.
            if n == 100
                && let Some(later) = &*asks.lock().unwrap()
            {
                (&later.0).write_all(&call(1, "add_one", LATER)).unwrap();
            }
            n + 1
        })),
    );
    let (mut many, mut one) = (Raw::connect(&name), Raw::connect(&name));
    many.begin();
    one.begin();
    *later.lock().unwrap() = Some(Raw(one.0.try_clone().unwrap()));
    order.lock().unwrap().clear();
    let all: Vec<u8> =
        (0..PIPELINED).flat_map(|n| call(u64::try_from(n).unwrap(), "add_one", 100 + n)).collect();
    many.send(&all);
    assert_eq!(one.read().number(), LATER + 1);
    // Nothing is lost. A thread that is kept from running for long may be overtaken.
    let mut answers: Vec<i32> = (0..PIPELINED).map(|_| many.read().number()).collect();
    answers.sort_unstable();
    assert!(answers.into_iter().eq(101..101 + PIPELINED));
    let before = order.lock().unwrap().iter().position(|n| *n == LATER).unwrap();
    assert!(before <= 200, "{before} calls of another were served before it");
}
