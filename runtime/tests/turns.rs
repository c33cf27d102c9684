//! Connections have turns: one that has brought much does not keep the others waiting until all of it is served. And a peer that said in
//! time what it had to say is not blamed for the time in which an event loop did something else.

#![allow(clippy::unwrap_used)]

use crate::plain::{Does, Frame, Honest, LONG, PLAIN, Plain, Probe, Raw, SHORT, alone, call, name};
use everywire_runtime::{Builder, Notice, Quotas};
use std::io::Write;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, Instant};

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

/// Where the event loop is kept: once when it has come, once when it may go on.
static KEPT: Barrier = Barrier::new(2);
static PLAINKEPT: Plain = Plain {
    keeps_busy: || {
        KEPT.wait();
        KEPT.wait();
    },
    ..Plain::of(&["plainkept"])
};

#[test]
fn who_spoke_in_time_is_heard_though_the_server_was_late() {
    // More than an event loop looks at in one go.
    const NEWCOMERS: usize = 40;
    if !alone() {
        return;
    }
    let name = name("late");
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let observer = Arc::new(move |notice: &Notice| {
        if matches!(notice, Notice::Accepted { .. }) {
            // Nobody listens any more once all were accepted.
            let _ = tell.lock().unwrap().send(());
        }
    });
    let quotas = Quotas { first_message: SHORT, ..Quotas::default() };
    let server = Builder::new(&[&PLAINKEPT]).shards(1).quotas(quotas).observer(observer).build();
    server.listen(&format!("plainkept+unix://@{name}")).unwrap();
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let mut busy = Raw::connect(&name);
    busy.begin();
    let mut newcomers: Vec<Raw> = (0..NEWCOMERS).map(|_| Raw::connect(&name)).collect();
    (0..=NEWCOMERS).for_each(|_| told.recv_timeout(LONG).unwrap());
    let begun = Instant::now();
    busy.send(&Frame { kind: 9, id: 0, body: Vec::new() }.bytes());
    KEPT.wait();
    newcomers.iter_mut().for_each(|newcomer| newcomer.send(&call(1, "add_one", 1)));
    // The time of the last one is over, too.
    std::thread::sleep(
        (begun + SHORT + Duration::from_millis(100)).saturating_duration_since(Instant::now()),
    );
    KEPT.wait();
    newcomers.iter_mut().for_each(|newcomer| assert_eq!(newcomer.read().number(), 2));
}
