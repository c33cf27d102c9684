//! Servants that block without saying so: all their callers are served at a time, and nobody beside them waits.

#![allow(clippy::unwrap_used)]

use crate::plain::{Does, Frame, Honest, LONG, PLAIN, Probe, Raw, alone, call, interface, name, node, until};
use bytes::Bytes;
use everywire_model::{Failure, Interface, Limits, Link, Ref, Remote, Request, Servant};
use everywire_runtime::{Builder, Node, Quotas};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Callers at a time.
const CALLERS: usize = 600;

/// Where servants wait until somebody lets them go.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    inside: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        self.inside.fetch_add(1, Ordering::SeqCst);
        let mut open = self.open.lock().unwrap();
        while !*open {
            let (back, waited) = self.opened.wait_timeout(open, LONG).unwrap();
            assert!(!waited.timed_out(), "nobody opens");
            open = back;
        }
    }

    fn set(&self, open: bool) {
        *self.open.lock().unwrap() = open;
        self.opened.notify_all();
    }

    fn inside(&self) -> usize {
        self.inside.load(Ordering::SeqCst)
    }
}

/// A server whose `add_one` waits at a gate.
fn server(name: &str) -> (Node, Arc<Gate>) {
    let server = Builder::new(&[&PLAIN]).shards(2).build();
    server.listen(&format!("plain+unix://@{name}")).unwrap();
    let gate = Arc::new(Gate::default());
    let passed = Arc::clone(&gate);
    server.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |n| {
            passed.pass();
            n + 1
        })),
    );
    (server, gate)
}

/// Threads of the pools of this process.
fn pooled() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with("everywire-block")).count()
}

/// Nearly all of them went to the pool at once: the supervisor had to notice a few of them.
fn few_were_noticed() {
    let pooled = pooled();
    assert!(pooled >= CALLERS - 20, "{pooled} of {CALLERS} run in the pool");
}

/// Somebody who asks for something else is answered while all of them wait.
fn echoes(name: &str) {
    let client = node(1);
    let object = client.connect::<dyn Probe>(&format!("plain+unix://@{name}#probe")).unwrap();
    for n in 0..50 {
        assert_eq!(object.get_bytes(n).unwrap().len(), usize::try_from(n).unwrap());
    }
}

#[test]
fn all_callers_of_one_connection_are_inside_at_once() {
    if !alone() {
        return;
    }
    let name = name("blocking-one");
    let (_server, gate) = server(&name);
    let mut peer = Raw::connect(&name);
    for round in 1..=2 {
        gate.set(false);
        for id in 0..CALLERS {
            peer.send(&call(u64::try_from(id).unwrap(), "add_one", 1));
        }
        until("all of them are inside", || gate.inside() == round * CALLERS);
        few_were_noticed();
        echoes(&name);
        gate.set(true);
        for _ in 0..CALLERS {
            assert_eq!(peer.read().number(), 2);
        }
    }
}

#[test]
fn callers_of_as_many_connections_are_inside_at_once() {
    if !alone() {
        return;
    }
    let name = name("blocking-many");
    let (_server, gate) = server(&name);
    let mut peers: Vec<Raw> = (0..CALLERS).map(|_| Raw::connect(&name)).collect();
    for peer in &mut peers {
        peer.send(&call(1, "add_one", 1));
    }
    until("all of them are inside", || gate.inside() == CALLERS);
    few_were_noticed();
    echoes(&name);
    gate.set(true);
    for peer in &mut peers {
        assert_eq!(peer.read().number(), 2);
    }
}

#[test]
fn more_callers_than_threads_wait_for_their_turn() {
    let name = name("blocking-few");
    let quotas = Quotas { blocked_threads: 3, ..Quotas::default() };
    let server = Builder::new(&[&PLAIN]).shards(1).quotas(quotas).build();
    server.listen(&format!("plain+unix://@{name}")).unwrap();
    let (inside, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    server.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |n| {
            seen.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(40));
            inside.fetch_sub(1, Ordering::SeqCst);
            n + 1
        })),
    );
    let mut peer = Raw::connect(&name);
    for id in 0..20 {
        peer.send(&call(id, "add_one", 1));
    }
    for _ in 0..20 {
        assert_eq!(peer.read().number(), 2);
    }
    // Beside the pool, the shard itself has one thread more than may be blocked.
    assert!(most.load(Ordering::SeqCst) <= 3 + 4, "{most:?} at a time");
}

#[test]
fn a_servant_of_the_pool_may_stop_its_node() {
    let name = name("blocking-stops");
    let server = Builder::new(&[&PLAIN]).shards(1).build();
    server.listen(&format!("plain+unix://@{name}")).unwrap();
    let held = Arc::new(Mutex::new(Some(server.clone())));
    server.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |n| {
            if n < 0 {
                // Nobody waits for this call: the node would be stopped after its grace only.
                held.lock().unwrap().take().unwrap().stop_within(LONG * 10);
            }
            std::thread::sleep(Duration::from_millis(50));
            n + 1
        })),
    );
    let mut peer = Raw::connect(&name);
    for n in [1, 1, 1] {
        peer.send(&call(1, "add_one", n));
        assert_eq!(peer.read().number(), 2);
    }
    peer.send(&call(2, "add_one", -1));
    peer.drain();
}

/// What passes calls on: the calls of a connection come to it in their order.
struct InOrder(Arc<dyn Servant>);

impl Servant for InOrder {
    fn interface(&self) -> &Interface {
        self.0.interface()
    }

    fn dispatch(&self, request: Request) {
        self.0.dispatch(request);
    }

    fn keeps_order(&self) -> bool {
        true
    }
}

#[test]
fn calls_of_one_connection_keep_their_order_where_a_servant_wants_that() {
    const CALLS: i32 = 400;
    let name = name("blocking-order");
    let server = Builder::new(&[&PLAIN]).shards(1).build();
    server.listen(&format!("plain+unix://@{name}")).unwrap();
    let (gate, left) = (Arc::new(Gate::default()), Arc::new(Mutex::new(Vec::new())));
    let (passed, leaves) = (Arc::clone(&gate), Arc::clone(&left));
    let slow: Arc<dyn Probe> = Arc::new(Does(move |n| {
        // The first keeps the event loop; the others would overtake it.
        if n == 0 {
            passed.pass();
        }
        leaves.lock().unwrap().push(n);
        n + 1
    }));
    server.export_servant("probe", Arc::new(InOrder(<dyn Probe as Remote>::skeleton(slow))));
    server.export::<dyn Probe>("beside", Arc::new(Does(|n| n)));
    let mut peer = Raw::connect(&name);
    let all: Vec<u8> = (0..CALLS).flat_map(|n| call(u64::try_from(n).unwrap(), "add_one", n)).collect();
    peer.send(&all);
    until("the first is inside", || gate.inside() == 1);
    // Others are served meanwhile, by the thread that has the lead now: it has seen all calls of the first connection, too.
    let client = node(1);
    let beside = client.connect::<dyn Probe>(&format!("plain+unix://@{name}#beside")).unwrap();
    for n in 0..50 {
        assert_eq!(beside.add_one(n).unwrap(), n);
    }
    assert!(left.lock().unwrap().is_empty());
    until("those that wait count as memory", || server.memory_held() >= 300 << 10);
    gate.set(true);
    for _ in 0..CALLS {
        peer.read();
    }
    assert_eq!(*left.lock().unwrap(), (0..CALLS).collect::<Vec<_>>());
    // The connection keeps the buffer of its last answers.
    until("nothing waits", || server.memory_held() <= 64 << 10);
}

#[test]
fn calls_that_wait_for_their_turn_are_not_begun_when_their_caller_has_left() {
    let name = name("blocking-left");
    let server = Builder::new(&[&PLAIN]).shards(1).build();
    server.listen(&format!("plain+unix://@{name}")).unwrap();
    let (gate, begun) = (Arc::new(Gate::default()), Arc::new(Mutex::new(Vec::new())));
    let (passed, begins) = (Arc::clone(&gate), Arc::clone(&begun));
    let slow: Arc<dyn Probe> = Arc::new(Does(move |n| {
        begins.lock().unwrap().push(n);
        if n == 0 {
            passed.pass();
        }
        n + 1
    }));
    server.export_servant("probe", Arc::new(InOrder(<dyn Probe as Remote>::skeleton(slow))));
    let mut peer = Raw::connect(&name);
    let all: Vec<u8> = (0..400).flat_map(|n| call(u64::try_from(n).unwrap(), "add_one", n)).collect();
    peer.send(&all);
    until("the first is inside", || gate.inside() == 1);
    until("the others wait", || server.memory_held() >= 300 << 10);
    drop(peer);
    until("nothing waits any more", || server.memory_held() == 0);
    gate.set(true);
    // Whoever comes now is served behind the last of them.
    let client = node(1);
    let again = client.connect::<dyn Probe>(&format!("plain+unix://@{name}#probe")).unwrap();
    assert_eq!(again.add_one(1000).unwrap(), 1001);
    server.stop_within(LONG);
    assert_eq!(*begun.lock().unwrap(), [0, 1000]);
}

/// Passes calls on in their order, and notes them and the end of their connection.
#[derive(Default)]
struct Notes {
    gate: Gate,
    noted: Mutex<Vec<String>>,
}

impl Servant for Notes {
    fn interface(&self) -> &Interface {
        interface()
    }

    fn dispatch(&self, request: Request) {
        self.gate.pass();
        self.noted.lock().unwrap().push(format!("call {}", request.id().0));
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn closed(&self, _: &dyn Link) {
        self.noted.lock().unwrap().push("end".into());
    }
}

#[test]
fn the_end_of_a_connection_is_told_behind_the_calls_that_were_said_before_it() {
    let name = name("blocking-end");
    let server = Builder::new(&[&PLAIN]).shards(1).build();
    server.listen(&format!("plain+unix://@{name}")).unwrap();
    let notes = Arc::new(Notes::default());
    server.export_prefix("pro", Arc::clone(&notes) as Arc<dyn Servant>);
    let mut peer = Raw::connect(&name);
    let oneway = |id| Frame { kind: 0, id, body: b"\x01\x05probe\x05hello".to_vec() }.bytes();
    let all: Vec<u8> = (0..400).flat_map(oneway).collect();
    peer.send(&all);
    until("the first is inside", || notes.gate.inside() == 1);
    until("the others wait", || server.memory_held() >= 300 << 10);
    drop(peer);
    until("its connection is over", || server.connections() == 0);
    notes.gate.set(true);
    let expected: Vec<String> = (0..400).map(|n| format!("call {n}")).chain(["end".into()]).collect();
    until("all is told", || notes.noted.lock().unwrap().len() == expected.len());
    assert_eq!(*notes.noted.lock().unwrap(), expected);
}

/// Where `get_bytes` sleeps, and then works on what it returns for a while.
#[derive(Default)]
struct Makes {
    honest: Honest,
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Makes {
    /// Waits until none is begun any more, and none is under way.
    fn settles(&self) {
        let mut seen = Vec::new();
        until("no call is under way", || {
            std::thread::sleep(Duration::from_millis(100));
            seen.push((self.begun.load(Ordering::SeqCst), self.ended.load(Ordering::SeqCst)));
            matches!(seen[..], [.., (begun, ended), next, last] if begun == ended && [next, last] == [(begun, ended); 2])
        });
    }
}

impl Probe for Makes {
    fn add_one(&self, v: i32) -> Result<i32, Failure> {
        self.honest.add_one(v)
    }
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(50));
        let mut made = vec![7; usize::try_from(n).unwrap()];
        (0..200).for_each(|_| made.rotate_left(1));
        self.ended.fetch_add(1, Ordering::SeqCst);
        Ok(made.into())
    }
    fn wait_ms(&self, ms: i32) -> Result<i32, Failure> {
        self.honest.wait_ms(ms)
    }
    fn call_back(&self, n: i32, to: Option<Ref<dyn Probe>>) -> Result<i32, Failure> {
        self.honest.call_back(n, to)
    }
    fn hello(&self) -> Result<(), Failure> {
        self.honest.hello()
    }
    fn panic(&self) -> Result<(), Failure> {
        self.honest.panic()
    }
}

/// What `/proc/self/status` says of this process's memory, in bytes.
fn memory(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    value.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn answers_of_operations_that_block_cost_little_more_than_the_budget() {
    const PEERS: usize = 50;
    const PIPELINED: u64 = 50;
    const BUDGET: usize = 32 << 20;
    // The answers of those calls that begin while others sleep, eight each millisecond, are made at about one time, and are in no budget.
    // Without a bound for those that run it would be those of a thousand threads.
    const BESIDE: usize = 192 << 20;
    if !alone() {
        return;
    }
    let name = name("blocking-memory");
    let quotas = Quotas { memory: Some(BUDGET), unsent: 1 << 20, ..Quotas::default() };
    let limits = Limits { message: 1 << 20, ..Limits::default() };
    let server = Builder::new(&[&PLAIN]).shards(1).quotas(quotas).limits(limits).build();
    server.listen(&format!("plain+unix://@{name}")).unwrap();
    let servant = Arc::new(Makes::default());
    server.export::<dyn Probe>("probe", Arc::clone(&servant) as Arc<dyn Probe>);
    let mut peers: Vec<Raw> = (0..PEERS).map(|_| Raw::connect(&name)).collect();
    let before = memory("VmRSS:");
    let requests: Vec<u8> = (0..PIPELINED).flat_map(|id| call(id, "get_bytes", 400_000)).collect();
    peers.iter_mut().for_each(|peer| peer.send(&requests));
    servant.settles();
    let most = memory("VmHWM:") - before;
    println!("{} MiB at the most, {} calls", most >> 20, servant.begun.load(Ordering::SeqCst));
    assert!(most < BUDGET + BESIDE, "{} MiB beside a budget of {}", most >> 20, BUDGET >> 20);
    // Whoever has a place and reads is served.
    let client = node(1);
    let honest = client.connect::<dyn Probe>(&format!("plain+unix://@{name}#probe")).unwrap();
    assert_eq!(honest.get_bytes(1000).unwrap().len(), 1000);
}
