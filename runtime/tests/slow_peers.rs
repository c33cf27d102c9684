//! Peers that do not read what they are sent: they wait, nobody else does, and nothing spins meanwhile.

#![allow(clippy::unwrap_used)]

use crate::plain::{
    Frame, Honest, LONG, PLAIN, Probe, Raw, Router, Ticked, alone, call, cpu, descriptors, name, node, until,
    until_all_sleep,
};
use everywire_model::Ref;
use everywire_runtime::{Builder, Node, Quotas};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

/// How long a process that has nothing to do is watched, and the CPU time that it may spend meanwhile.
const WATCHED: Duration = Duration::from_millis(250);
const SPENT: Duration = Duration::from_millis(100);
/// A server that lets that many bytes wait for a peer that does not read, and its object.
fn server(name: &str, unsent: usize) -> (Node, Ref<dyn Probe>) {
    let quotas = Quotas { unsent, ..Quotas::default() };
    let server = Builder::new(&[&PLAIN]).shards(1).quotas(quotas).build();
    server.listen(&format!("plain+unix://@{name}")).unwrap();
    let exported = server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    (server, exported)
}

#[track_caller]
fn rests() {
    let before = cpu();
    std::thread::sleep(WATCHED);
    let spent = cpu() - before;
    assert!(spent < SPENT, "{spent:?} of CPU time in {WATCHED:?}");
}

/// Emits the numbers from 0 in a thread of its own.
struct Emitting {
    at: Arc<AtomicI32>,
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Emitting {
    fn begin(exported: Ref<dyn Probe>) -> Self {
        let (at, over) = (Arc::new(AtomicI32::new(-1)), Arc::new(AtomicBool::new(false)));
        let (now, ends) = (Arc::clone(&at), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            for n in 0.. {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                now.store(n, Ordering::Relaxed);
                exported.signals().emit(&Ticked(n)).unwrap();
            }
        });
        Self { at, over, thread }
    }

    /// Waits until it waits, and returns the number of the signal that it is emitting.
    fn waits(&self) -> i32 {
        until_all_sleep();
        let at = self.at.load(Ordering::Relaxed);
        assert!(at > 0 && !self.thread.is_finished());
        at
    }

    fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

#[test]
fn requests_of_a_peer_that_does_not_read_replies_wait_without_a_spin() {
    if !alone() {
        return;
    }
    let name = name("unread-replies");
    let _server = server(&name, 1 << 20);
    let mut peer = Raw::connect(&name);
    // The first reply waits for room, the following ones are more than may wait, and the last requests are not read.
    for id in 1..=12 {
        peer.send(&call(id, "get_bytes", 300_000));
    }
    until_all_sleep();
    rests();
    // Nothing is lost by that.
    for id in 1..=12 {
        let reply = peer.read();
        assert_eq!((reply.id, reply.body.len()), (id, 300_004));
    }
}

#[test]
fn a_refused_peer_reads_what_is_left_for_it_and_then_the_end() {
    let name = name("refused-late");
    let _server = server(&name, 8 << 20);
    // The server waits for some seconds before it closes. A machine that is as slow as that makes the next attempt needed.
    let taken = (0..10).any(|_| {
        let mut peer = Raw::connect(&name);
        peer.send(&call(1, "get_bytes", 4_000_000));
        let mut reply = vec![0; 13];
        peer.0.read_exact(&mut reply).unwrap();
        // No message of the wire: the server refuses it while most of its answer waits for room.
        peer.send(&[0xff; 64]);
        peer.0.read_to_end(&mut reply).unwrap();
        assert!(reply.len() >= 4_000_013);
        // That was the end of what it says only: what the peer still says is taken.
        peer.0.write_all(b"x").is_ok()
    });
    assert!(taken, "the peer read the end with the close of the connection");
}

#[test]
fn an_emitter_waits_for_a_peer_that_does_not_read_and_nothing_spins() {
    if !alone() {
        return;
    }
    let name = name("unread-signals");
    let (_server, exported) = server(&name, 64 << 10);
    let mut peer = Raw::connect(&name);
    peer.begin();
    let emitting = Emitting::begin(exported);
    let reached = emitting.waits();
    // Requests of the peer are there to be read, but not before it has read its signals.
    (2..5).for_each(|id| peer.send(&call(id, "add_one", 1)));
    rests();
    assert_eq!(emitting.at.load(Ordering::Relaxed), reached, "the emitter went on");
    // It reads again: the emitter goes on, and nothing is lost.
    let (mut expected, mut replies) = (0, 0);
    while expected <= reached || replies < 3 {
        let frame = peer.read();
        if frame.kind == 1 {
            replies += 1;
        } else {
            assert_eq!((frame.kind, frame.number()), (5, expected));
            expected += 1;
        }
    }
    drop(peer);
    emitting.end();
}

#[test]
fn a_reply_to_a_callback_that_is_not_read_waits_without_a_spin() {
    if !alone() {
        return;
    }
    let name = name("unread-callback");
    let router = Router::open(&name);
    let client = node(1);
    client.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let far = client.connect::<dyn Probe>(&format!("plainback+unix://@{name}#probe")).unwrap();
    let waiting = std::thread::spawn(move || far.add_one(1).is_err());
    let mut peer = router.accept();
    peer.read();
    peer.send(&call(1, "get_bytes", 1_000_000));
    until_all_sleep();
    rests();
    assert_eq!(peer.read().body.len(), 1_000_004);
    drop(peer);
    assert!(waiting.join().unwrap());
}

#[test]
fn nobody_waits_for_a_slow_peer_but_the_emitter() {
    if !alone() {
        return;
    }
    let name = name("slow-and-quick");
    let (_server, exported) = server(&name, 64 << 10);
    // The slow ones come first: before and after the quick one.
    let mut slow = [Raw::connect(&name), Raw::connect(&name)];
    slow[0].begin();
    let client = node(1);
    let quick = client.connect::<dyn Probe>(&format!("plain+unix://@{name}#probe")).unwrap();
    let heard = Arc::new(AtomicI32::new(-1));
    let counted = Arc::clone(&heard);
    let _listening = quick.signals().on(move |Ticked(n)| counted.store(n, Ordering::Relaxed)).unwrap();
    quick.add_one(1).unwrap();
    slow[1].begin();
    let emitting = Emitting::begin(exported);
    let reached = emitting.waits();
    assert_eq!(heard.load(Ordering::Relaxed), reached, "the signal waits for the slow peer");
    assert_eq!(quick.add_one(1).unwrap(), 2);
    assert_eq!(emitting.at.load(Ordering::Relaxed), reached, "the emitter went on");
    drop(slow);
    emitting.end();
}

/// Descriptors of this process, once those of the tests before are closed: nodes end on threads of their own.
fn settled() -> usize {
    let mut seen = Vec::new();
    loop {
        seen.push(descriptors());
        if let [.., first, second, third, fourth] = seen[..]
            && [second, third, fourth] == [first; 3]
        {
            return fourth;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What has a session read no more.
fn full() -> Vec<u8> {
    Frame { kind: 6, id: 1, body: Vec::new() }.bytes()
}

#[test]
fn a_peer_that_leaves_while_nothing_is_read_from_it_gives_up_its_place() {
    if !alone() {
        return;
    }
    let name = name("left-full");
    let (server, _) = server(&name, 1 << 20);
    let tcp = server.listen("plain://127.0.0.1:0").unwrap();
    let tcp = tcp.trim_start_matches("plain://").trim_end_matches('/').to_owned();
    let before = settled();
    let mut peer = Raw::connect(&name);
    peer.send(&full());
    assert_eq!(peer.read().kind, 6);
    drop(peer);
    until("the server lets go of a peer that left", || descriptors() <= before);
    let mut peer = TcpStream::connect(&tcp).unwrap();
    peer.set_read_timeout(Some(LONG)).unwrap();
    peer.write_all(&full()).unwrap();
    peer.read_exact(&mut [0; 13]).unwrap();
    drop(peer);
    until("the server lets go of a peer that left over TCP", || descriptors() <= before);
}

#[test]
fn what_a_peer_said_before_it_left_is_kept_without_a_spin() {
    if !alone() {
        return;
    }
    let name = name("left-more");
    let (_server, _) = server(&name, 1 << 20);
    let before = settled();
    let mut peer = Raw::connect(&name);
    peer.send(&full());
    assert_eq!(peer.read().kind, 6);
    peer.send(&call(2, "add_one", 1));
    drop(peer);
    rests();
    assert_eq!(descriptors(), before + 1);
}
