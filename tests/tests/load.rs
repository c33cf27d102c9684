//! Mixed load: on every wire at once, clients that come, call in any order and leave, for as long as one likes. Every answer is right,
//! and afterwards the servers hold what they held before.
//!
//! `EVERYWIRE_LOAD_SECONDS` says how long, 3 s without it; `make soak` takes hours. `EVERYWIRE_LOAD_SEED` repeats a run.

use crate::common::foreign::until;
use crate::common::{Server, scratch};
use everywire::{Failure, Node, Ref};
use everywire_tests::bench::{Benchmarking, IRemoteObject};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Clients of each server.
const CLIENTS: u64 = 2;
/// Calls of a client before it leaves and another comes.
const CALLS: u64 = 200;
/// What a server may grow by after the first quarter of the time, however long that is.
const GROWTH: u64 = 24 << 20;

/// A server on one wire, and the longest answer that its clients take.
struct House {
    name: &'static str,
    server: Server,
    largest: u64,
}

fn houses() -> Vec<House> {
    let dir = scratch("load");
    std::fs::create_dir_all(&dir).expect("a directory");
    let here = dir.display();
    let places = [
        ("iiop", "iiop://127.0.0.1:0".to_owned(), 1 << 20),
        ("iiop+unix", format!("iiop+unix://{here}/giop.socket"), 1 << 20),
        ("iiop+shm", format!("iiop+shm://{here}/shm.socket"), 1 << 20),
        ("dbus", format!("dbus+unix://{here}/dbus.socket"), 1 << 20),
        ("dcom", "dcom://127.0.0.1:0?level=none".to_owned(), 1 << 20),
        // WCF's quota for a message is 64 KiB, of which a third is base64 over HTTP.
        ("net.tcp", "net.tcp://127.0.0.1:0?security=none".to_owned(), 40_000),
        ("basic", "basic://127.0.0.1:0".to_owned(), 40_000),
    ];
    let start = |(name, address, largest): (&'static str, String, u64)| House {
        name,
        server: Server::ours(&address, &dir.join(name), 4),
        largest,
    };
    places.map(start).into()
}

/// Numbers that look random and are the same for the same seed (a multiplier of Steele and Vigna's).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// One client: comes, calls, leaves. Returns how many calls it made.
fn visit(house: &House, dice: &mut Dice, end: Instant) -> Result<u64, Failure> {
    let node: Node = Node::builder().deadline(Some(Duration::from_secs(300))).build().into();
    let bench: Ref<dyn Benchmarking> =
        node.connect(&house.server.reference("benchmarking")).expect("a reference");
    let bytes: Ref<dyn IRemoteObject> =
        node.connect(&house.server.reference("IRemoteObject")).expect("a reference");
    let mut made = 0;
    while made < CALLS && Instant::now() < end {
        match dice.below(6) {
            0 => bench.void_call()?,
            1 | 2 => {
                let number = i32::try_from(dice.below(1 << 31)).expect("it fits");
                assert_eq!(bench.in_out_int_call(number)?, number.wrapping_add(1), "{}", house.name);
            }
            3 | 4 => {
                let text = "äø€x".repeat(usize::try_from(dice.below(500)).expect("small"));
                let back = bench.in_out_string_call(&text)?;
                assert_eq!(back, text, "{}", house.name);
            }
            _ => {
                let count = dice.below(house.largest);
                let asked = i32::try_from(count).expect("small");
                let back = bytes.get_bytes(asked)?;
                assert_eq!(back.len() as u64, count, "{}", house.name);
            }
        }
        made += 1;
    }
    Ok(made)
}

fn number(name: &str, unless: u64) -> u64 {
    std::env::var(name).ok().map_or(unless, |text| text.parse().expect("a number"))
}

/// Open descriptors of a server.
fn descriptors(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it runs").count()
}

#[test]
fn clients_of_all_wires_come_and_go_and_leave_nothing_behind() {
    let time = Duration::from_secs(number("EVERYWIRE_LOAD_SECONDS", 3));
    let seed = number("EVERYWIRE_LOAD_SEED", 1);
    let houses = houses();
    let before: Vec<usize> = houses.iter().map(|house| descriptors(&house.server)).collect();
    let run = |seed: u64, time: Duration| {
        let (end, calls) = (Instant::now() + time, AtomicU64::new(0));
        thread::scope(|scope| {
            for (at, house) in (0u64..).zip(&houses) {
                for client in 0..CLIENTS {
                    let calls = &calls;
                    scope.spawn(move || {
                        let mut dice = Dice(seed.wrapping_mul(1000) + at * CLIENTS + client);
                        while Instant::now() < end {
                            let made = visit(house, &mut dice, end);
                            let made = made.unwrap_or_else(|failure| panic!("{}: {failure}", house.name));
                            calls.fetch_add(made, Ordering::Relaxed);
                        }
                    });
                }
            }
        });
        calls.into_inner()
    };
    let first = run(seed, time / 4);
    let held: Vec<u64> = houses.iter().map(|house| house.server.resident()).collect();
    let calls = first + run(seed + 1, time - time / 4);
    for ((house, before), held) in houses.iter().zip(before).zip(held) {
        // The event loops and what they need came with the first client.
        until("the connections are closed", || descriptors(&house.server) <= before + 16);
        let grown = house.server.resident().saturating_sub(held);
        println!("{}: {} KiB grown", house.name, grown >> 10);
        assert!(grown < GROWTH, "{}: {grown} bytes grown", house.name);
        assert_eq!(house.server.log(), "", "{}", house.name);
    }
    println!("load: {calls} calls, seed {seed}");
    assert!(calls > 0);
}
