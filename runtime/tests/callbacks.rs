//! Callbacks on the connection that a client made for its own calls.

#![allow(clippy::unwrap_used)]

use crate::plain::{
    Does, Frame, Honest, LONG, PLAINBACK, Plain, Probe, Raw, Router, Slowness, block_on, call, interface,
    name, node, until,
};
use bytes::Bytes;
use everywire_model::{Failure, Kind, Outcome, Ref, Sink};
use everywire_runtime::{Builder, Node, Quotas, blocking};
use std::collections::HashSet;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// A client with a servant, the object it calls, and that object's server, played by hand.
fn client(test: &str, servant: Arc<dyn Probe>) -> (Node, Ref<dyn Probe>, Router) {
    let name = name(test);
    let server = Router::open(&name);
    let client = node(2);
    client.export::<dyn Probe>("probe", servant);
    let far = client.connect::<dyn Probe>(&format!("plainback+unix://@{name}#probe")).unwrap();
    (client, far, server)
}

/// Has the client call; it waits for a reply now.
fn asks(far: &Ref<dyn Probe>, server: &Router) -> (Raw, u64, JoinHandle<i32>) {
    let far = far.clone();
    let waiting = std::thread::spawn(move || far.add_one(1).unwrap());
    let mut peer = server.accept();
    let asked = peer.read();
    assert_eq!((asked.kind, asked.number()), (0, 1));
    (peer, asked.id, waiting)
}

fn replies(peer: &mut Raw, id: u64, waiting: JoinHandle<i32>) {
    peer.send(&Frame { kind: 1, id, body: 2_i32.to_le_bytes().into() }.bytes());
    assert_eq!(waiting.join().unwrap(), 2);
}

#[test]
fn large_replies_to_callbacks_go_out_during_a_call_and_after_it() {
    const LARGE: i32 = 2_000_000;
    let (_client, far, server) = client("large-callbacks", Arc::new(Honest::default()));
    let (mut peer, id, waiting) = asks(&far, &server);
    let calls_back = |peer: &mut Raw, id| {
        peer.send(&call(id, "get_bytes", LARGE));
        // The peer is slow to read: most of the reply has to wait for room.
        std::thread::sleep(Duration::from_millis(30));
        let reply = peer.read();
        assert_eq!((reply.kind, reply.id, reply.number()), (1, id, 0x0707_0707));
        assert_eq!(reply.body.len(), 4 + usize::try_from(LARGE).unwrap());
    };
    calls_back(&mut peer, 1);
    calls_back(&mut peer, 2);
    replies(&mut peer, id, waiting);
    calls_back(&mut peer, 3);
    calls_back(&mut peer, 4);
}

#[test]
fn callbacks_begin_in_the_order_in_which_they_came() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let servant = move |v| {
        seen.lock().unwrap().push((std::thread::current().id(), v));
        v
    };
    let (_client, far, server) = client("callbacks-order", Arc::new(Does(servant)));
    let (mut peer, id, waiting) = asks(&far, &server);
    let calls_back = |peer: &mut Raw| {
        let all: Vec<u8> = (0..200).flat_map(|v| call(u64::try_from(v).unwrap(), "add_one", v)).collect();
        peer.send(&all);
        (0..200).for_each(|_| assert_eq!(peer.read().kind, 1));
        let mut began = std::mem::take(&mut *order.lock().unwrap());
        // A thread that gets no CPU for long is taken for blocked, and another one goes on behind it. Each begins them in order.
        let threads: HashSet<_> = began.iter().map(|(thread, _)| *thread).collect();
        for thread in threads {
            let own = began.iter().filter(|(by, _)| *by == thread);
            assert!(own.is_sorted_by_key(|(_, v)| *v), "{began:?}");
        }
        began.sort_by_key(|(_, v)| *v);
        assert!(began.iter().map(|(_, v)| *v).eq(0..200), "{began:?}");
    };
    calls_back(&mut peer);
    replies(&mut peer, id, waiting);
    calls_back(&mut peer);
}

#[test]
fn a_callback_that_blocks_does_not_block_the_next() {
    let (open, gate) = mpsc::channel();
    let (open, gate) = (Mutex::new(open), Mutex::new(gate));
    let servant = move |v| match v {
        0 => blocking(|| gate.lock().unwrap().recv_timeout(LONG)).is_ok().into(),
        _ => open.lock().unwrap().send(()).map_or(-1, |()| v),
    };
    let (_client, far, server) = client("callbacks-blocking", Arc::new(Does(servant)));
    let (mut peer, id, waiting) = asks(&far, &server);
    peer.send(&[call(1, "add_one", 0), call(2, "add_one", 7)].concat());
    let mut results: Vec<_> = (0..2).map(|_| peer.read()).map(|reply| (reply.id, reply.number())).collect();
    results.sort_unstable();
    assert_eq!(results, [(1, 1), (2, 7)]);
    replies(&mut peer, id, waiting);
}

/// Calls that want no answer, of `size` octets each.
fn note(size: usize) -> Vec<u8> {
    let body = [&b"\x01\x05probe\x07add_one\0\0\0\0"[..], &vec![0; size]].concat();
    Frame { kind: 0, id: 0, body }.bytes()
}

/// A servant that waits at a gate, and counts.
fn gated() -> (Arc<RwLock<()>>, Arc<AtomicUsize>, Arc<dyn Probe>) {
    let (gate, count) = (Arc::new(RwLock::new(())), Arc::new(AtomicUsize::new(0)));
    let (waits, counts) = (Arc::clone(&gate), Arc::clone(&count));
    let servant = move |v| {
        drop(waits.read().unwrap());
        counts.fetch_add(1, Ordering::Relaxed);
        v
    };
    (gate, count, Arc::new(Does(servant)))
}

#[test]
fn calls_without_answers_do_not_pile_up_behind_a_servant_and_none_is_lost() {
    const MANY: usize = 100;
    let (gate, count, servant) = gated();
    let (_client, far, server) = client("callbacks-pile", servant);
    let (mut peer, id, waiting) = asks(&far, &server);
    replies(&mut peer, id, waiting);
    let all = note(1 << 20).repeat(MANY);
    let closed = gate.write().unwrap();
    peer.0.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut sent = 0;
    while sent < all.len()
        && let Ok(more) = peer.0.write(&all[sent..])
    {
        sent += more;
    }
    assert!(sent < all.len() / 2, "{sent} octets were read though no servant has taken a call");
    drop(closed);
    peer.0.set_write_timeout(Some(LONG)).unwrap();
    peer.send(&all[sent..]);
    until("all were called", || count.load(Ordering::Relaxed) == MANY);
}

static UNREAD: Slowness = Slowness::new();
static PLAINUNREAD: Plain = Plain { callbacks: true, slowness: Some(&UNREAD), ..Plain::of(&["plainunread"]) };

/// The rest of a message that has begun is not read while servants are behind, which may take longer than a message may.
#[test]
fn a_peer_that_is_not_read_is_not_taken_for_slow() {
    const LARGE: usize = 15;
    const MANY: usize = 1000;
    let (gate, count, servant) = gated();
    let name = name("callbacks-unread");
    let server = Router::open(&name);
    let client = Builder::new(&[&PLAINUNREAD]).shards(2).build();
    client.export::<dyn Probe>("probe", servant);
    let far = client.connect::<dyn Probe>(&format!("plainunread+unix://@{name}#probe")).unwrap();
    let (mut peer, id, waiting) = asks(&far, &server);
    replies(&mut peer, id, waiting);
    // The last are read some at a time, and the last of those in part.
    let all = [note(1 << 20).repeat(LARGE), note(10_000).repeat(MANY)].concat();
    let closed = gate.write().unwrap();
    peer.0.set_nonblocking(true).unwrap();
    let mut sent = 0;
    until("no more is read", || match peer.0.write(&all[sent..]) {
        Ok(more) => {
            sent += more;
            false
        }
        Err(_) => client.memory_held() >= 16 << 20,
    });
    // Each look at the clock asks several times.
    let looks = || {
        let before = UNREAD.looks.load(Ordering::Relaxed);
        until("its time was looked at", || UNREAD.looks.load(Ordering::Relaxed) > before + 20);
    };
    looks();
    UNREAD.late.store(true, Ordering::Relaxed);
    looks();
    drop(closed);
    peer.0.set_nonblocking(false).unwrap();
    peer.send(&all[sent..]);
    until("all were called", || count.load(Ordering::Relaxed) == LARGE + MANY);
    assert!(UNREAD.unread.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_reply_behind_calls_that_no_servant_takes_is_not_waited_for_without_end() {
    let (gate, _, servant) = gated();
    let (_client, far, server) = client("callbacks-flood", servant);
    let closed = gate.write().unwrap();
    let waiting = std::thread::spawn(move || far.add_one(1));
    let mut peer = server.accept();
    let id = peer.read().id;
    let note = note(1 << 20);
    if (0..300).all(|_| peer.0.write_all(&note).is_ok()) {
        peer.send(&Frame { kind: 1, id, body: 2_i32.to_le_bytes().into() }.bytes());
    }
    let failure = waiting.join().unwrap().map_err(|failure| failure.kind());
    drop(closed);
    assert_eq!(failure, Err(Kind::LimitExceeded));
}

#[test]
fn many_calls_without_answers_before_a_reply_all_reach_their_servant() {
    // More than may wait at once (16 MiB), and less than is too much for whoever waits for a reply (128 MiB), even if no servant runs
    // meanwhile: each counts as some 700 octets at the most.
    const MANY: usize = 120_000;
    let (_gate, count, servant) = gated();
    let (client, far, server) = client("callbacks-burst", servant);
    let (mut peer, id, waiting) = asks(&far, &server);
    let all = note(0).repeat(1000);
    (0..MANY / 1000).for_each(|_| peer.send(&all));
    replies(&mut peer, id, waiting);
    until("all were called", || count.load(Ordering::Relaxed) == MANY);
    // The same while a future waits.
    let far = client.object(&format!("plainback+unix://@{}#probe", name("callbacks-burst"))).unwrap();
    let reply = far.submit(&interface().operations[0], &|sink: &mut dyn Sink| sink.i32(1));
    let id = peer.read().id;
    (0..MANY / 1000).for_each(|_| peer.send(&all));
    peer.send(&Frame { kind: 1, id, body: 2_i32.to_le_bytes().into() }.bytes());
    assert!(matches!(block_on(reply), Some(Outcome::Done(_))));
    until("all were called", || count.load(Ordering::Relaxed) == 2 * MANY);
}

/// Each of six servers sends less than one connection may keep, and the node has room for what two of them send.
#[test]
fn calls_of_many_servers_that_no_servant_takes_stay_within_the_memory_of_their_node() {
    let (gate, count, servant) = gated();
    let quotas = Quotas { memory: Some(32 << 20), ..Quotas::default() };
    let client = Builder::new(&[&PLAINBACK]).shards(2).quotas(quotas).build();
    client.export::<dyn Probe>("probe", servant);
    let closed = gate.write().unwrap();
    let mut servers: Vec<_> = (0..6)
        .map(|at| {
            let name = name(&format!("callbacks-crowd-{at}"));
            let server = Router::open(&name);
            let far = client.connect::<dyn Probe>(&format!("plainback+unix://@{name}#probe")).unwrap();
            let waiting = std::thread::spawn(move || far.add_one(1));
            let mut peer = server.accept();
            let id = peer.read().id;
            (peer, id, waiting)
        })
        .collect();
    let all = note(1 << 20).repeat(12);
    let mut most = 0;
    for (peer, ..) in &mut servers {
        // Whoever holds most is cut off.
        let _ = peer.0.write_all(&all);
        most = most.max(client.memory_held());
    }
    until("four make room", || servers.iter().filter(|(.., waiting)| waiting.is_finished()).count() >= 4);
    until("the rest fits", || client.memory_held() <= 32 << 20);
    // Room is made after the message with which there is too much; another thread may have read one meanwhile.
    assert!(most <= 36 << 20, "{most} octets were held");
    let mut kept = 0;
    for (mut peer, id, waiting) in servers {
        if waiting.is_finished() {
            assert_eq!(waiting.join().unwrap().unwrap_err().kind(), Kind::LimitExceeded);
        } else {
            kept += 1;
            peer.send(&Frame { kind: 1, id, body: 2_i32.to_le_bytes().into() }.bytes());
            assert_eq!(waiting.join().unwrap().unwrap(), 2, "calls beside it are no harm");
        }
    }
    drop(closed);
    assert!((1..=2).contains(&kept), "{kept} are left");
    until("what they held is free", || client.memory_held() == 0);
    until("the calls of those that are left were made", || count.load(Ordering::Relaxed) >= 12 * kept);
}

/// Makes a MiB at each call, and notes how many of them nobody has read.
#[derive(Default)]
struct Ahead(Mutex<(usize, usize)>);

impl Ahead {
    fn made(&self) {
        let mut ahead = self.0.lock().unwrap();
        ahead.0 += 1;
        ahead.1 = ahead.1.max(ahead.0);
    }

    fn read(&self) {
        self.0.lock().unwrap().0 -= 1;
    }
}

impl Probe for Ahead {
    fn add_one(&self, v: i32) -> Result<i32, Failure> {
        Ok(v + 1)
    }
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        self.made();
        Honest::default().get_bytes(n)
    }
    fn wait_ms(&self, ms: i32) -> Result<i32, Failure> {
        Ok(ms)
    }
    fn call_back(&self, n: i32, _: Option<Ref<dyn Probe>>) -> Result<i32, Failure> {
        Ok(n)
    }
    fn hello(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn panic(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The server asks for 64 MiB in 64 calls before it reads any; a call of the client waits meanwhile, or none does.
fn asks_before_it_reads(test: &str, waits: bool) {
    const MANY: u64 = 64;
    // As many as the quota `unsent` takes, those in buffers of the kernel, and those that are being made or read.
    const FEW: usize = 8 + 8;
    let ahead = Arc::new(Ahead::default());
    let (client, far, server) = client(test, Arc::clone(&ahead) as Arc<dyn Probe>);
    let (mut peer, id, mut waiting) = asks(&far, &server);
    if !waits {
        replies(&mut peer, id, waiting);
        waiting = std::thread::spawn(|| 2);
    }
    let all: Vec<u8> = (0..MANY).flat_map(|id| call(id, "get_bytes", 1 << 20)).collect();
    peer.send(&all);
    until("the quota is full", || client.memory_held() >= 8 << 20);
    // Calls begin in their order; an answer whose thread is slow may be overtaken.
    let mut missing: HashSet<u64> = (0..MANY).collect();
    while !missing.is_empty() {
        let reply = peer.read();
        assert_eq!((reply.kind, reply.body.len()), (1, 4 + (1 << 20)));
        assert!(missing.remove(&reply.id), "{} was answered before", reply.id);
        ahead.read();
    }
    let (left, most) = *ahead.0.lock().unwrap();
    assert_eq!(left, 0);
    assert!(most <= FEW, "{most} answers waited");
    replies(&mut peer, id, waiting);
    until("what they held is free", || client.memory_held() == 0);
}

#[test]
fn calls_of_a_server_that_reads_no_answers_wait_and_none_is_lost() {
    asks_before_it_reads("callbacks-unread", false);
}

#[test]
fn calls_of_a_server_that_reads_no_answers_wait_also_while_it_is_called() {
    asks_before_it_reads("callbacks-unread-called", true);
}

/// A question whether an object exists that does not. The answer is three times as long: it spells the key.
fn question(id: u64) -> Vec<u8> {
    Frame { kind: 3, id, body: vec![255; 256] }.bytes()
}

#[test]
fn questions_of_a_server_that_reads_no_answers_are_read_no_further_and_none_is_lost() {
    const MANY: u64 = 30_000;
    let (client, far, server) = client("callbacks-questions", Arc::new(Honest::default()));
    let (mut peer, id, waiting) = asks(&far, &server);
    replies(&mut peer, id, waiting);
    let all: Vec<u8> = (0..MANY).flat_map(question).collect();
    let mut sent = 0;
    peer.0.set_nonblocking(true).unwrap();
    until("no more is read", || match peer.0.write(&all[sent..]) {
        Ok(more) => {
            sent += more;
            assert!(sent < all.len(), "all was read");
            false
        }
        Err(_) => client.memory_held() >= 16 << 20,
    });
    peer.0.set_nonblocking(false).unwrap();
    std::thread::scope(|scope| {
        let mut writer = Raw(peer.0.try_clone().unwrap());
        scope.spawn(move || writer.send(&all[sent..]));
        (0..MANY).for_each(|id| assert_eq!(peer.read().id, id));
    });
    until("what they held is free", || client.memory_held() == 0);
}

#[test]
fn answers_that_a_server_does_not_read_stay_within_the_memory_of_their_node() {
    let name = name("callbacks-curious");
    let server = Router::open(&name);
    let quotas = Quotas { memory: Some(8 << 20), ..Quotas::default() };
    // Under a sanitizer 20,000 questions take longer than a call may.
    let client = Builder::new(&[&PLAINBACK]).shards(2).quotas(quotas).deadline(None).build();
    client.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let far = client.connect::<dyn Probe>(&format!("plainback+unix://@{name}#probe")).unwrap();
    let waiting = std::thread::spawn(move || far.add_one(1));
    let mut peer = server.accept();
    let id = peer.read().id;
    let all: Vec<u8> = (0..10_000).flat_map(question).collect();
    // The client waits for its reply behind them.
    if (0..2).all(|_| peer.0.write_all(&all).is_ok()) {
        peer.send(&Frame { kind: 1, id, body: 2_i32.to_le_bytes().into() }.bytes());
    }
    let failure = waiting.join().unwrap().map_err(|failure| failure.kind());
    assert_eq!(failure, Err(Kind::LimitExceeded));
    until("what they held is free", || client.memory_held() == 0);
}
