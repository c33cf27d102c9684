//! Nothing lost, nothing doubled: callers of each wire reach their server through a relay that breaks connections, and what
//! they were told is held against what the server did.
//!
//! States of a call, by its number, which no other call has: *acknowledged* (it ran once, and the answer is its own), *told
//! that it did not run* (it did not), *told that it ran* (once), *nobody knows* (at most once). In no state did it run twice.
//!
//! The relay's plan of each connection follows from the seed and the connection's number, so that a run can be repeated as
//! far as threads allow:
//!
//! * `EVERYWIRE_FAULTS_SEED` is the seed; it is printed when something is wrong.
//! * `EVERYWIRE_FAULTS_SECONDS` is how long each wire is tried, instead of a few hundred calls. `make soak` sets both.
//!
//! Servers of this file end only when nobody calls any more, or are killed without a word; those that are told to stop while calls
//! are under way are tried in `restarts`.

pub mod course;
pub mod relay;
mod scarce;

use crate::common::dcopserver::DcopServer;
use crate::common::foreign::PATIENCE;
use crate::common::house::{self, INTERFACE, Log, Process, Settings};
use crate::common::{scratch, shelf};
use course::{Course, House};
use everywire::model::Completed;
use everywire::{Failure, Kind, Node};
use relay::{Random, Relay};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Callers at a time: two of them share a connection.
const NODES: usize = 2;
const CALLERS: usize = 2;
/// Calls of each caller in the short run.
const CALLS: usize = 60;
/// How long a call may take. Far more than it needs; only calls whose bytes the relay keeps wait for it.
const DEADLINE: Duration = Duration::from_millis(400);

/// Between a call that failed and the next one of the same caller.
const REST: Duration = Duration::from_millis(20);

/// What callers were told.
#[derive(Default)]
struct Told {
    acknowledged: Vec<i32>,
    failed: Vec<(i32, Failure)>,
}

fn seed() -> u64 {
    std::env::var("EVERYWIRE_FAULTS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0x5eed)
}

fn seconds() -> Option<Duration> {
    let text = std::env::var("EVERYWIRE_FAULTS_SECONDS").ok()?;
    Some(Duration::from_secs(text.parse().expect("EVERYWIRE_FAULTS_SECONDS is a number of seconds")))
}

/// Calls from several threads until the number of calls, or the time, is over.
fn call(address: &str, numbers: &AtomicI32) -> Told {
    let told = Mutex::new(Told::default());
    let end = seconds().map(|seconds| Instant::now() + seconds);
    std::thread::scope(|scope| {
        for _ in 0..NODES {
            let node: Node = Node::builder().deadline(Some(DEADLINE)).build().into();
            for _ in 0..CALLERS {
                let node = node.clone();
                let told = &told;
                scope.spawn(move || {
                    let object = house::object(&node, address);
                    let more = |made: usize| end.map_or(made < CALLS, |end| Instant::now() < end);
                    for made in 0.. {
                        if !more(made) {
                            break;
                        }
                        let number = numbers.fetch_add(1, Ordering::Relaxed);
                        let answer = object.call::<_, (i32,), Failure>(&INTERFACE.operations[0], (number,));
                        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                        match answer {
                            Ok((sum,)) => {
                                assert_eq!(sum, number + 1, "the answer of another call");
                                told.acknowledged.push(number);
                            }
                            Err(failure) => {
                                told.failed.push((number, failure));
                                drop(told);
                                // A server behind a hub takes a moment to come back, and is refused for at once meanwhile.
                                std::thread::sleep(REST);
                            }
                        }
                    }
                });
            }
        }
    });
    told.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What was wrong, a line for each call.
fn wrong(told: &Told, ran: &BTreeMap<i32, u32>) -> Vec<String> {
    let times = |number: &i32| ran.get(number).copied().unwrap_or(0);
    let mut wrong = Vec::new();
    for number in told.acknowledged.iter().filter(|number| times(number) != 1) {
        wrong.push(format!("call {number} was acknowledged and ran {} times", times(number)));
    }
    for (number, failure) in &told.failed {
        let most = match failure.completed() {
            Completed::Yes => 1..=1,
            Completed::No => 0..=0,
            Completed::Maybe => 0..=1,
        };
        if !most.contains(&times(number)) {
            let said = failure.completed();
            wrong.push(format!(
                "call {number} ran {} times, its caller was told {said:?}: {failure}",
                times(number)
            ));
        }
    }
    wrong
}

/// What callers were told, in numbers.
fn summary(told: &Told) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::from([("acknowledged", told.acknowledged.len())]);
    for (_, failure) in &told.failed {
        *counts
            .entry(match failure.completed() {
                Completed::Yes => "told yes",
                Completed::No => "told no",
                Completed::Maybe => "told maybe",
            })
            .or_default() += 1;
    }
    counts
}

/// One wire: a server that lives on, and connections that break.
fn breaks(course: &Course) {
    let seed = seed();
    let house = House::start(course);
    let relay = Relay::start(&course.between, &course.behind, seed);
    let numbers = AtomicI32::new(1);
    let told = call(&course.reference, &numbers);
    // Without the faults everybody is served again, over the same relay.
    relay.heal();
    let after = call_quietly(&course.reference, &numbers);
    let (broken, connections) = relay.stop();
    let ran = house.stop();
    let wrong = wrong(&told, &ran);
    println!(
        "faults {}: seed {seed}, {connections} connections, {broken} broken, {:?}",
        course.name,
        summary(&told)
    );
    assert!(wrong.is_empty(), "{} with seed {seed}:\n{}", course.name, wrong.join("\n"));
    assert_eq!(ran.get(&after), Some(&1), "{}: after the faults", course.name);
    assert!(broken > 1, "{}: only {broken} connections were broken: nothing was tried", course.name);
    assert!(!told.acknowledged.is_empty(), "{}: no call got through", course.name);
    assert!(!told.failed.is_empty(), "{}: no call failed: the faults are too mild", course.name);
}

/// A call when nothing breaks any more; those before may have left a connection that is about to end.
fn call_quietly(address: &str, numbers: &AtomicI32) -> i32 {
    let node: Node = Node::builder().deadline(Some(PATIENCE)).build().into();
    let object = house::object(&node, address);
    let end = Instant::now() + PATIENCE;
    loop {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        match object.call::<_, (i32,), Failure>(&INTERFACE.operations[0], (number,)) {
            Ok((sum,)) => {
                assert_eq!(sum, number + 1);
                return number;
            }
            // A server behind a hub may still be looking for it; the hub of DCOP does not say what is missing.
            Err(failure)
                if matches!(failure.kind(), Kind::NoObject | Kind::NoOperation) && Instant::now() < end =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(failure) => panic!("nothing breaks any more, and a call fails: {failure}"),
        }
    }
}

#[test]
#[ignore = "part of make soak: what is tried depends on how fast the machine is"]
fn nothing_is_lost_or_doubled_on_giop() {
    breaks(&Course::socket("giop", "iiop", "", "", &scratch("faults-giop")));
}

#[test]
#[ignore = "part of make soak: what is tried depends on how fast the machine is"]
fn nothing_is_lost_or_doubled_on_dbus() {
    breaks(&Course::socket("dbus", "dbus", "", "", &scratch("faults-dbus")));
}

#[test]
#[ignore = "part of make soak: what is tried depends on how fast the machine is"]
fn nothing_is_lost_or_doubled_on_dcom() {
    breaks(&Course::socket("dcom", "dcom", "", "?exporter=here", &scratch("faults-dcom")));
}

#[test]
#[ignore = "part of make soak: what is tried depends on how fast the machine is"]
fn nothing_is_lost_or_doubled_on_net_tcp() {
    let dir = scratch("faults-wcf");
    breaks(&Course::socket("wcf", "net.tcp", "?security=none", "?security=none", &dir).under_one_name());
}

#[test]
#[ignore = "part of make soak: what is tried depends on how fast the machine is"]
fn nothing_is_lost_or_doubled_on_http() {
    breaks(&Course::socket("http", "basic", "?security=none", "?security=none", &scratch("faults-http")));
}

/// The relay stands between the caller and the DCOP server.
#[test]
#[ignore = "part of make soak: its calls wait for their deadlines for most of a minute"]
fn nothing_is_lost_or_doubled_on_dcop_for_callers() {
    let server = DcopServer::start("faults-dcop", &[]);
    breaks(&Course::behind_hub(server.socket(), &scratch("faults-dcop-calls"), shelf(), false));
}

/// The relay stands between the DCOP server and the application that serves: it registers again whenever it was cut off.
#[test]
#[ignore = "part of make soak: its calls wait for their deadlines for most of a minute"]
fn nothing_is_lost_or_doubled_on_dcop_for_servers() {
    let server = DcopServer::start("faults-dcop-served", &[]);
    breaks(&Course::behind_hub(server.socket(), &scratch("faults-dcop-serves"), shelf(), true));
}

/// Servers are killed while calls are under way, and another one takes the place: calls of the dead that nobody knows of may
/// not be repeated on the next.
fn kills(course: &Course) {
    let seed = seed();
    let over = AtomicBool::new(false);
    let numbers = AtomicI32::new(1);
    let log = Log::new(course.behind.with_file_name("log"));
    let settings = Settings { connections: 1000, idle: 0, open: true, descriptors: None };
    let (told, killed) = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let (mut random, mut killed) = (Random::new(seed), 0);
            while !over.load(Ordering::Relaxed) {
                // The one before was killed and has left its socket.
                let _ = std::fs::remove_file(&course.behind);
                let server = Process::start(&course.listen, &log, settings);
                std::thread::sleep(Duration::from_millis(20 + random.below(150)));
                drop(server);
                killed += 1;
            }
            killed
        });
        let mut told = Told::default();
        let end = Instant::now() + seconds().unwrap_or(Duration::from_millis(1200));
        // On a busy machine no call may have come through by then: servers do not live for long.
        let tried = |told: &Told| !told.acknowledged.is_empty() && !told.failed.is_empty();
        while Instant::now() < end || (!tried(&told) && Instant::now() < end + PATIENCE) {
            let more = call_for(&course.direct(), &numbers, Duration::from_millis(300));
            told.acknowledged.extend(more.acknowledged);
            told.failed.extend(more.failed);
        }
        over.store(true, Ordering::Relaxed);
        (told, killer.join().expect("it does not panic"))
    });
    let ran = log.read().began;
    let wrong = wrong(&told, &ran);
    println!("kills {}: seed {seed}, {killed} servers killed, {:?}", course.name, summary(&told));
    assert!(wrong.is_empty(), "{} with seed {seed}:\n{}", course.name, wrong.join("\n"));
    assert!(killed > 2 && !told.acknowledged.is_empty() && !told.failed.is_empty(), "nothing was tried");
}

/// Calls of one thread for a while, with a rest after each failure: the next server is on its way.
fn call_for(address: &str, numbers: &AtomicI32, time: Duration) -> Told {
    let node: Node = Node::builder().deadline(Some(DEADLINE)).build().into();
    let object = house::object(&node, address);
    let (mut told, end) = (Told::default(), Instant::now() + time);
    while Instant::now() < end {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        match object.call::<_, (i32,), Failure>(&INTERFACE.operations[0], (number,)) {
            Ok((sum,)) => {
                assert_eq!(sum, number + 1, "the answer of another call");
                told.acknowledged.push(number);
            }
            Err(failure) => {
                told.failed.push((number, failure));
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    told
}

#[test]
#[ignore = "part of make soak: what is tried depends on how fast the machine is"]
fn killed_servers_lose_and_double_nothing() {
    let courses = [
        Course::socket("giop-killed", "iiop", "", "", &scratch("kills-giop")),
        Course::socket("dbus-killed", "dbus", "", "", &scratch("kills-dbus")),
        Course::socket("dcom-killed", "dcom", "", "?exporter=here", &scratch("kills-dcom")),
        Course::socket("wcf-killed", "net.tcp", "?security=none", "?security=none", &scratch("kills-wcf")),
    ];
    // They wait most of the time.
    std::thread::scope(|scope| {
        for course in &courses {
            scope.spawn(move || kills(course));
        }
    });
}
