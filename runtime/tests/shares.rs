//! What peers may hold of a node: memory, answers that are not read, connections; and who makes room.

#![allow(clippy::unwrap_used)]

use crate::hub_memory::allocated;
use crate::plain::{
    Does, Frame, Honest, LONG, PLAIN, PLAINBACK, PLAINMUTE, Probe, Raw, alone, call, name, node, probe_at,
    until, until_all_sleep,
};
use everywire_model::Ref;
use everywire_runtime::{Builder, Node, Notice, Quotas};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The refusals of a server.
type Refusals = Arc<Mutex<Vec<String>>>;

/// A server over TCP with an object, its address, and what it refuses.
fn server(quotas: Quotas) -> (Node, SocketAddr, Refusals) {
    let refusals = Refusals::default();
    let told = Arc::clone(&refusals);
    let observer = Arc::new(move |notice: &Notice| {
        if let Notice::Refused { why, .. } = notice {
            told.lock().unwrap().push(why.clone());
        }
    });
    let server = Builder::new(&[&PLAIN]).shards(1).quotas(quotas).observer(observer).build();
    let bound = server.listen("plain://0.0.0.0:0").unwrap();
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let port: u16 = bound.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    (server, SocketAddr::from((Ipv4Addr::LOCALHOST, port)), refusals)
}

/// A connection from the address 127.0.0.`last`.
fn from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, last), 0)).unwrap();
    connect(&socket, &to).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Calls and waits for the answer.
fn asks(peer: &mut TcpStream) -> bool {
    peer.write_all(&call(1, "add_one", 41)).is_ok() && {
        let mut reply = [0; 17];
        peer.read_exact(&mut reply).is_ok() && reply[13] == 42
    }
}

/// Whether the server has closed it.
fn is_closed(peer: &mut TcpStream) -> bool {
    peer.set_nonblocking(true).unwrap();
    let closed = loop {
        match peer.read(&mut [0; 4096]) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() != ErrorKind::WouldBlock,
        }
    };
    peer.set_nonblocking(false).unwrap();
    closed
}

/// The beginning of a message of a megabyte, and half of the rest.
fn half() -> Vec<u8> {
    let mut bytes = (1u32 << 20).to_le_bytes().to_vec();
    bytes.resize(512 << 10, 0);
    bytes
}

#[test]
fn peers_that_hold_back_the_end_of_large_messages_make_room_for_each_other() {
    let quotas = Quotas { memory: Some(16 << 20), ..Quotas::default() };
    let (server, address, refusals) = server(quotas);
    let mut honest = from(2, address);
    assert!(asks(&mut honest));
    let mut hostile: Vec<TcpStream> = Vec::new();
    let mut most = 0;
    for _ in 0..100 {
        let mut peer = from(1, address);
        peer.write_all(&half()).unwrap();
        hostile.push(peer);
        most = most.max(server.memory_held());
    }
    until("some are closed", || refusals.lock().unwrap().len() >= 60);
    assert!(most <= 20 << 20, "{most} bytes of 16 MiB were held");
    until("the rest fits", || server.memory_held() <= 16 << 20);
    assert!(refusals.lock().unwrap().iter().all(|why| why.contains("`memory`")));
    // One from elsewhere is served, also with a message that is larger than what each of the others holds.
    let mut large = [&(700_009u32).to_le_bytes()[..], &[9], &[0; 700_008]].concat();
    large.extend(call(1, "add_one", 1));
    assert!(asks(&mut honest));
    let kept = hostile.iter_mut().filter_map(|peer| (!is_closed(peer)).then_some(())).count();
    assert!((10..=40).contains(&kept), "{kept} of 100 are left");
    drop(hostile);
    until("what they held is free", || server.memory_held() == 0);
}

#[test]
fn a_buffer_that_an_honest_peer_does_not_need_is_free_before_it_is_closed() {
    // The least that a node takes is room for two of the largest messages.
    let quotas = Quotas { memory: Some(1), ..Quotas::default() };
    let server = Builder::new(&[&PLAIN]).shards(1).max_message(1 << 20).quotas(quotas).build();
    let bound = server.listen("plain://127.0.0.1:0").unwrap();
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let clients: Vec<Node> = (0..8).map(|_| node(1)).collect();
    let objects: Vec<Ref<dyn Probe>> =
        clients.iter().map(|client| client.connect(&probe_at(&bound)).unwrap()).collect();
    for _ in 0..3 {
        for object in &objects {
            assert_eq!(object.get_bytes(900_000).unwrap().len(), 900_000);
        }
    }
    assert_eq!(server.connections(), 8, "nobody was closed");
}

/// Calls that want no answer are answered by nobody, and what they came with is held no longer than others'.
#[test]
fn calls_without_answers_hold_nothing_when_they_are_over() {
    const MANY: usize = 64;
    let quotas = Quotas { memory: Some(16 << 20), ..Quotas::default() };
    let server = Builder::new(&[&PLAIN]).shards(1).quotas(quotas).build();
    let bound = server.listen("plain://127.0.0.1:0").unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&count);
    server.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |n| {
            counts.fetch_add(1, Ordering::Relaxed);
            n + 1
        })),
    );
    let port: u16 = bound.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    let mut peer = from(1, SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let body = [&b"\x01\x05probe\x07add_one\0\0\0\0"[..], &vec![0; 1 << 20]].concat();
    let note = Frame { kind: 0, id: 0, body }.bytes();
    for sent in 1..=MANY {
        peer.write_all(&note).unwrap();
        until("it is served", || count.load(Ordering::Relaxed) == sent);
    }
    // Four times the memory of the node has gone over it.
    until("nothing is held but buffers", || server.memory_held() <= 4 << 20);
    assert!(peer.write_all(&call(1, "add_one", 41)).is_ok());
    peer.read_exact(&mut [0; 17]).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), MANY + 1);
    drop(peer);
    until("nothing is held", || server.memory_held() == 0);
}

/// A servant that waits until it is let go on, a server that has it, and what it refuses.
fn slow_server(memory: usize) -> (Node, SocketAddr, Refusals, Arc<Barred>) {
    let (server, address, refusals) = server(Quotas { memory: Some(memory), ..Quotas::default() });
    let barred = Arc::new(Barred::default());
    let bar = Arc::clone(&barred);
    server.export::<dyn Probe>("slow", Arc::new(Does(move |n| bar.pass(n))));
    (server, address, refusals, barred)
}

/// Where calls wait, and how many have passed.
#[derive(Default)]
struct Barred {
    passed: Mutex<(bool, usize)>,
    opened: Condvar,
}

impl Barred {
    fn pass(&self, n: i32) -> i32 {
        let mut passed = self.opened.wait_while(self.passed.lock().unwrap(), |passed| !passed.0).unwrap();
        passed.1 += 1;
        n
    }

    fn open(&self) {
        self.passed.lock().unwrap().0 = true;
        self.opened.notify_all();
    }

    fn passed(&self) -> usize {
        self.passed.lock().unwrap().1
    }
}

/// A call that wants no answer, with a megabyte.
fn large_note() -> Vec<u8> {
    let body = [&b"\x01\x04slow\x07add_one\0\0\0\0"[..], &vec![0; 1 << 20]].concat();
    Frame { kind: 0, id: 0, body }.bytes()
}

#[test]
fn calls_that_their_caller_leaves_behind_count_until_they_are_done() {
    const MANY: usize = 8;
    let (server, address, _, barred) = slow_server(64 << 20);
    let mut peer = from(1, address);
    (0..MANY).for_each(|_| peer.write_all(&large_note()).unwrap());
    until("all are held", || server.memory_held() >= MANY << 20);
    drop(peer);
    until("the connection is over", || server.connections() == 0);
    let held = server.memory_held();
    assert!(held >= MANY << 20, "{held} bytes of {MANY} calls of a megabyte");
    let small = Frame { kind: 0, id: 0, body: b"\x01\x04slow\x07add_one\0\0\0\0".into() }.bytes();
    from(1, address).write_all(&small).unwrap();
    until("a small one counts, too", || server.connections() == 0 && server.memory_held() > held);
    barred.open();
    until("all are done", || barred.passed() == MANY + 1);
    until("nothing is held", || server.memory_held() == 0);
}

#[test]
fn calls_that_callers_leave_behind_make_room_for_others() {
    let (server, address, refusals, barred) = slow_server(16 << 20);
    for last in 1..=20 {
        let mut peer = from(last, address);
        // It may be refused before it has sent all.
        let _ = (0..6).try_for_each(|_| peer.write_all(&large_note()));
        drop(peer);
        until("the connection is over", || server.connections() == 0);
        until("it fits", || server.memory_held() <= 16 << 20);
    }
    let refused = refusals.lock().unwrap().iter().any(|why| why.contains("a connection that has ended"));
    assert!(refused, "{:?}", refusals.lock().unwrap());
    assert!(asks(&mut from(21, address)), "others are served");
    barred.open();
    until("nothing is held", || server.memory_held() == 0);
}

#[test]
fn requests_of_a_peer_that_reads_no_answers_are_not_served() {
    // No look at its silence wakes the server by chance.
    let quotas = Quotas { unsent: 1 << 20, first_message: LONG * 100, idle: None, ..Quotas::default() };
    let (server, address, _) = server(quotas);
    let mut hostile = from(1, address);
    // Together they fit into one read; their answers are 200 MB.
    let requests: Vec<u8> = (1..=1000).flat_map(|id| call(id, "get_bytes", 200_000)).collect();
    hostile.write_all(&requests).unwrap();
    let mut honest = from(2, address);
    assert!(asks(&mut honest));
    until("answers wait", || server.memory_held() > 0);
    for _ in 0..100 {
        assert!(asks(&mut honest));
        let held = server.memory_held();
        assert!(held < 2 << 20, "{held} bytes wait for a peer that does not read");
    }
    // Nothing is lost by that: it reads, and gets all of them.
    for _ in 0..1000 {
        let mut head = [0; 13];
        hostile.read_exact(&mut head).unwrap();
        let mut body = vec![0; u32::from_le_bytes(*head.first_chunk().unwrap()) as usize - 9];
        hostile.read_exact(&mut body).unwrap();
        assert_eq!(body.len(), 200_004);
    }
}

/// Small answers go into one buffer. What that has in memory, and not what is in it, is what the node holds.
#[test]
fn answers_that_wait_hold_no_more_memory_than_is_counted() {
    // The allocations of the whole process are counted.
    if !alone() {
        return;
    }
    // A buffer that doubles has room for ten million when it has six.
    let quotas = Quotas { unsent: 6_000_000, first_message: LONG * 100, idle: None, ..Quotas::default() };
    let (server, address, _) = server(quotas);
    let mut hostile = from(1, address);
    assert!(asks(&mut hostile));
    let requests: Vec<u8> = (1..=2000).flat_map(|id| call(id, "get_bytes", 10_000)).collect();
    let before = allocated();
    hostile.write_all(&requests).unwrap();
    until("answers wait", || server.memory_held() >= 5_900_000);
    until_all_sleep();
    let (held, more) = (server.memory_held(), allocated() - before);
    assert!(more < held + (1 << 20), "{held} bytes are counted, {more} are there");
    assert!(held < 7_000_000, "{held} bytes are held of six million");
    // All of them come.
    let mut answers = vec![0; 2000 * (4 + 9 + 4 + 10_000)];
    hostile.read_exact(&mut answers).unwrap();
}

#[test]
fn quiet_connections_of_the_source_with_most_make_room_for_newcomers() {
    let quotas = Quotas { connections: 6, ..Quotas::default() };
    let (server, address, refusals) = server(quotas);
    let mut lonely = from(2, address);
    assert!(asks(&mut lonely));
    let mut many: Vec<TcpStream> = (0..5)
        .map(|_| {
            let mut peer = from(1, address);
            assert!(asks(&mut peer));
            peer
        })
        .collect();
    // Whoever is in the middle of a request stays: now nobody makes room, and the newcomer is told and closed.
    let next = call(1, "add_one", 41);
    for peer in many.iter_mut().chain([&mut lonely]) {
        peer.write_all(&next[..3]).unwrap();
    }
    // They have arrived when the server has slept again: it is told of them in order with what it is asked now.
    std::thread::sleep(Duration::from_millis(100));
    let mut early = from(3, address);
    let mut words = Vec::new();
    early.read_to_end(&mut words).unwrap();
    assert_eq!(words[4], 4, "a goodbye: {words:?}");
    assert!(refusals.lock().unwrap()[0].contains("`connections`"));
    for peer in many.iter_mut().chain([&mut lonely]) {
        peer.write_all(&next[3..]).unwrap();
        peer.read_exact(&mut [0; 17]).unwrap();
    }
    std::thread::sleep(Duration::from_millis(1100));
    assert!(asks(&mut many[0]));
    let mut newcomer = from(3, address);
    assert!(asks(&mut newcomer));
    assert!(asks(&mut lonely), "it has one connection only");
    assert!(asks(&mut many[0]), "it was used just now");
    let closed = many.iter_mut().filter_map(|peer| is_closed(peer).then_some(())).count();
    assert_eq!((closed, server.connections()), (1, 6));
}

/// Of callers at one address, those who proved to be somebody count as that account.
#[test]
fn the_account_with_most_connections_makes_room_though_others_share_its_address() {
    let quotas = Quotas { connections: 4, ..Quotas::default() };
    let (server, address, _) = server(quotas);
    let enter = |name: &str| {
        let mut peer = from(1, address);
        let body = [&[u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
        peer.write_all(&Frame { kind: 7, id: 0, body }.bytes()).unwrap();
        assert!(asks(&mut peer));
        peer
    };
    let mut bob = enter("bob");
    let mut ann: Vec<TcpStream> = (0..3).map(|_| enter("ann")).collect();
    std::thread::sleep(Duration::from_millis(1100));
    let _newcomer = enter("cy");
    assert!(!is_closed(&mut bob), "the one that was quiet longest, but the only one of its account");
    let closed = ann.iter_mut().filter_map(|peer| is_closed(peer).then_some(())).count();
    assert_eq!((closed, server.connections()), (1, 4));
}

#[test]
fn the_oldest_stranger_of_the_source_with_most_makes_room_first() {
    let quotas = Quotas { connections: 5, ..Quotas::default() };
    let (server, address, _) = server(quotas);
    let mut alone = from(2, address);
    until("it is accepted", || server.connections() == 1);
    let mut crowd: Vec<TcpStream> = (0..4).map(|_| from(1, address)).collect();
    until("all are accepted", || server.connections() == 5);
    let mut newcomer = from(3, address);
    assert!(asks(&mut newcomer));
    assert!(asks(&mut alone), "the oldest of all, but of a source with few");
    until("one of the crowd is closed", || is_closed(&mut crowd[0]));
    assert!(!is_closed(&mut crowd[1]));
}

/// Whether the server has said something that nobody asked for: its goodbye, or the end.
fn ends(peer: &TcpStream) -> bool {
    peer.set_nonblocking(true).unwrap();
    let told = peer.peek(&mut [0]);
    peer.set_nonblocking(false).unwrap();
    told.is_ok()
}

#[test]
fn idle_connections_end_and_busy_ones_do_not() {
    let quotas = Quotas { idle: Some(Duration::from_millis(500)), ..Quotas::default() };
    let server = Builder::new(&[&PLAINMUTE]).shards(1).quotas(quotas).build();
    let bound = server.listen("plainmute://127.0.0.1:0").unwrap();
    let (begun, has_begun) = channel();
    let (go_on, goes_on) = channel();
    let goes_on = Mutex::new(goes_on);
    server.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |v| {
            if v < 0 {
                begun.send(()).unwrap();
                goes_on.lock().unwrap().recv().unwrap();
            }
            v + 1
        })),
    );
    let address = bound.trim_start_matches("plainmute://").trim_end_matches('/').parse().unwrap();
    let mut busy = from(1, address);
    busy.write_all(&call(1, "add_one", -1)).unwrap();
    has_begun.recv().unwrap();
    let mut silent = from(1, address);
    assert!(asks(&mut silent));
    until("who is silent is gone", || server.connections() == 1);
    // The call of the other has taken longer. Its time begins with its answer: who is silent since before that ends first.
    let mut next = from(1, address);
    assert!(asks(&mut next));
    std::thread::sleep(Duration::from_millis(100));
    go_on.send(()).unwrap();
    busy.read_exact(&mut [0; 17]).unwrap();
    until("the next one ends", || {
        let first = ends(&busy);
        let ends = ends(&next);
        assert!(ends || !first, "it ended right after its answer");
        ends
    });
    until("all are gone", || server.connections() == 0);
}

/// Who may be called, or listens, may be silent for ever, if it reads.
#[test]
fn a_peer_that_reads_no_answers_ends_on_every_wire() {
    for wire in [&PLAIN, &PLAINBACK] {
        let scheme = wire.schemes[0];
        let name = name(&format!("deaf-{scheme}"));
        // No look for another reason comes in time.
        let (idle, first_message) = (Some(Duration::from_millis(300)), LONG * 100);
        let quotas = Quotas { idle, first_message, ..Quotas::default() };
        let server = Builder::new(&[wire]).shards(1).quotas(quotas).build();
        server.listen(&format!("{scheme}+unix://@{name}")).unwrap();
        server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
        let (mut silent, mut deaf) = (Raw::connect(&name), Raw::connect(&name));
        silent.begin();
        deaf.begin();
        deaf.send(&call(2, "get_bytes", 4_000_000));
        until("who does not read is gone", || server.connections() == 1);
        silent.begin();
    }
}

#[test]
fn a_listener_with_quotas_in_its_address_has_them_apart_from_its_node() {
    let server = Builder::new(&[&PLAIN, &PLAINMUTE]).shards(1).build();
    let at = |address: &str| -> SocketAddr {
        let bound = server.listen(address).unwrap();
        bound.split("//").nth(1).unwrap().trim_end_matches('/').parse().unwrap()
    };
    let one = at("plain://127.0.0.1:0?max-connections=1&memory=3MiB");
    let hasty = at("plainmute://127.0.0.1:0?idle=300ms");
    let usual = at("plain://127.0.0.1:0");
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let (mut only, mut others) = (from(1, one), [from(1, usual), from(1, usual)]);
    assert!(asks(&mut only) && others.iter_mut().all(asks));
    // Its one place is taken by somebody who calls.
    let (mut late, mut words) = (from(1, one), Vec::new());
    late.read_to_end(&mut words).expect("it is told, and closed");
    assert_eq!(words.get(4), Some(&4), "a goodbye: {words:?}");
    assert!(asks(&mut only) && others.iter_mut().all(asks));
    // What is held there counts there, and for the node as a whole.
    only.write_all(&half()).unwrap();
    until("half a message is held", || server.memory_held() >= 512 << 10);
    // Elsewhere whoever is silent for so long stays.
    let mut silent = from(1, hasty);
    assert!(asks(&mut silent));
    // It hears a goodbye, and then nothing.
    assert!(silent.read_to_end(&mut Vec::new()).is_ok(), "closed");
    assert!(others.iter_mut().all(asks));
}

#[test]
fn quotas_in_an_address_that_make_no_sense_are_refused_before_anybody_listens() {
    let server = Builder::new(&[&PLAIN]).shards(1).build();
    for (option, word) in [("memory=lots", "memory"), ("idle=0s", "idle"), ("max-connections=none", "count")]
    {
        let failure = server.listen(&format!("plain://127.0.0.1:0?{option}")).unwrap_err();
        assert!(failure.message().contains(word), "{failure}");
    }
    assert!(server.listen("plain://127.0.0.1:0?idle=5m").unwrap().ends_with('/'));
}
