//! Two sides of shared memory: what one puts into its ring arrives at the other whole and in order, and nobody sleeps for ever.

use crate::explore;
use crate::ring::{Ring, RingPair};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::Notify;
use loom::thread;

/// Octets that a ring holds here: few, so that it fills.
const CAPACITY: usize = 2;

/// What the mapping holds, and the two bells.
struct Memory {
    tails: [AtomicU64; 2],
    heads: [AtomicU64; 2],
    asleep: [AtomicU32; 2],
    /// loom fails when one side touches an octet while the other may.
    octets: [[UnsafeCell<u8>; CAPACITY]; 2],
    bells: [Notify; 2],
}

impl Memory {
    fn new(asleep: u32) -> Arc<Self> {
        let indices = || [AtomicU64::new(0), AtomicU64::new(0)];
        let octets = || [UnsafeCell::new(0), UnsafeCell::new(0)];
        Arc::new(Self {
            tails: indices(),
            heads: indices(),
            asleep: [AtomicU32::new(asleep), AtomicU32::new(asleep)],
            octets: [octets(), octets()],
            bells: [Notify::new(), Notify::new()],
        })
    }

    fn side(&self, side: usize) -> RingPair<'_> {
        let ring = |number: usize| Ring { tail: &self.tails[number], head: &self.heads[number] };
        RingPair {
            own: ring(side),
            incoming: ring(1 - side),
            asleep: &self.asleep[side],
            peer_asleep: &self.asleep[1 - side],
            capacity: CAPACITY,
        }
    }

    /// As `Channel::write`: puts as much as there is room for.
    fn write(&self, side: usize, octets: &[u8]) -> usize {
        let protocol = self.side(side);
        let (tail, room) = protocol.room().expect("the peer is of good will");
        let part = &octets[..octets.len().min(room)];
        for (index, octet) in (tail..).zip(part) {
            self.octets[side][index as usize % CAPACITY].with_mut(|held| unsafe { *held = *octet });
        }
        if !part.is_empty() && protocol.put(tail + part.len() as u64) {
            self.bells[1 - side].notify();
        }
        part.len()
    }

    /// As `Channel::read`: takes what has arrived, at most `most`.
    fn read(&self, side: usize, most: usize, into: &mut Vec<u8>) -> usize {
        let protocol = self.side(side);
        let (head, ready) = protocol.arrived().expect("the peer is of good will");
        let n = ready.min(most);
        for index in head..head + n as u64 {
            let octet = self.octets[1 - side][index as usize % CAPACITY].with(|held| unsafe { *held });
            into.push(octet);
        }
        if n > 0 && protocol.took(head, n, ready) {
            self.bells[1 - side].notify();
        }
        n
    }

    /// As `Stream::wait`: sleeps until the peer rings, unless it is too late to.
    fn sleep(&self, side: usize, wants_room: bool) {
        let protocol = self.side(side);
        if !protocol.before_sleep(wants_room) {
            self.bells[side].wait();
        }
        protocol.after_sleep();
    }

    fn send(&self, side: usize, mut octets: &[u8]) {
        while !octets.is_empty() {
            let n = self.write(side, octets);
            octets = &octets[n..];
            if n == 0 {
                self.sleep(side, true);
            }
        }
    }

    fn receive(&self, side: usize, count: usize, most: usize) -> Vec<u8> {
        let mut got = Vec::new();
        while got.len() < count {
            if self.read(side, most, &mut got) == 0 {
                self.sleep(side, false);
            }
        }
        got
    }
}

#[test]
fn a_sleeper_is_woken_by_what_comes() {
    for asleep in [0, 1] {
        explore(3, move || {
            let memory = Memory::new(asleep);
            let producer = Arc::clone(&memory);
            let producing = thread::spawn(move || producer.send(0, &[7]));
            assert_eq!(memory.receive(1, 1, CAPACITY), [7]);
            producing.join().unwrap();
        });
    }
}

#[test]
fn a_full_ring_wakes_its_producer_when_there_is_room() {
    for most in [1, CAPACITY] {
        explore(2, move || {
            let memory = Memory::new(0);
            let producer = Arc::clone(&memory);
            let producing = thread::spawn(move || producer.send(0, &[1, 2, 3]));
            assert_eq!(memory.receive(1, 3, most), [1, 2, 3]);
            producing.join().unwrap();
        });
    }
}

#[test]
fn a_call_and_its_answer_wake_both_sides() {
    explore(3, || {
        let memory = Memory::new(1);
        let server = Arc::clone(&memory);
        let serving = thread::spawn(move || {
            let asked = server.receive(0, 1, CAPACITY);
            server.send(0, &[asked[0] + 1]);
        });
        memory.send(1, &[41]);
        assert_eq!(memory.receive(1, 1, CAPACITY), [42]);
        serving.join().unwrap();
    });
}

#[test]
fn impossible_indices_are_refused() {
    explore(2, || {
        let memory = Memory::new(0);
        memory.tails[0].store(CAPACITY as u64 + 1, loom::sync::atomic::Ordering::Relaxed);
        assert!(memory.side(1).arrived().is_err());
        assert!(memory.side(0).room().is_err());
    });
}

/// What the test below runs: a side that sleeps without heeding that something has come meanwhile.
#[test]
#[ignore = "it fails, as it should, and takes its process along"]
fn careless() {
    explore(3, || {
        let memory = Memory::new(0);
        let producer = Arc::clone(&memory);
        let producing = thread::spawn(move || producer.send(0, &[7]));
        let mut got = Vec::new();
        while memory.read(1, CAPACITY, &mut got) == 0 {
            let _ = memory.side(1).before_sleep(false);
            memory.bells[1].wait();
            memory.side(1).after_sleep();
        }
        producing.join().unwrap();
    });
}

/// The models would notice: without the last look somebody sleeps for ever in some order of steps.
#[test]
fn without_the_last_look_somebody_sleeps_for_ever() {
    let said = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "rings::careless", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(!said.status.success() && text.contains("deadlock"), "{text}");
}
