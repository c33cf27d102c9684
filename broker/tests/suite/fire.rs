//! The broker under fire: targets that die, callers that do nothing or next to nothing, copies that nobody reads, files that change, all of it
//! at full load.
//!
//! Short here, bounded by counts; `make soak` runs the same for as long as `EVERYWIRE_FIRE_SECONDS` says and with as many as the
//! promises of `docs/broker.md` name, and prints what it saw.

use super::{LONG, Running, Scratch, Store, contract, own_loopback, start, until};
use everywire::model::Completed;
use everywire::{Node, Ref};
use everywire_tests::shop::market::Shop;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the long form takes; none: the short one.
fn long() -> Option<Duration> {
    let seconds = std::env::var("EVERYWIRE_FIRE_SECONDS").ok()?;
    Some(Duration::from_secs(seconds.parse().expect("a number of seconds")))
}

/// So many in the short form, and so many in the long one.
fn many(short: usize, all: usize) -> usize {
    if long().is_some() { all } else { short }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Bytes that this process has in memory now.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn text(targets: &[String], typed: bool, more: &str) -> String {
    let to: Vec<_> = targets.iter().map(|target| format!("\"{target}\"")).collect();
    let contract = match typed {
        true => format!("contract = \"{}\"\ninterface = \"Shop\"", contract()),
        false => String::new(),
    };
    format!(
        "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[[route]]\nname = \"shop\"\nmatch = {{ key = \"shop\" }}\nto = [{}]\n{contract}\n{more}\n",
        to.join(", ")
    )
}

/// A target that is killed and comes back at the same place, with what it has counted.
struct Target {
    node: Node,
    store: Arc<Store>,
    address: String,
}

impl Target {
    fn new() -> Self {
        let (node, store) = (Node::new(), Store::new());
        let address = node.listen(&format!("iiop://{}:0", own_loopback())).unwrap();
        node.export::<dyn Shop>("shop", store.clone());
        Self { node, store, address }
    }

    fn reference(&self) -> String {
        format!("{}/shop", self.address.trim_end_matches('/'))
    }

    /// Its connections are cut in the middle of whatever they carry.
    fn kill(&mut self) {
        let old = std::mem::replace(&mut self.node, Node::new());
        old.stop_within(Duration::ZERO);
        drop(old);
        // Before anybody can ask for it.
        self.node.export::<dyn Shop>("shop", self.store.clone());
        until("its port is free", || self.node.listen(&self.address).is_ok());
    }
}

/// What a caller was told of each call that may run once.
type Told = Arc<Mutex<HashMap<i32, Option<Completed>>>>;

/// Callers that call until they are stopped.
struct Load {
    over: Arc<AtomicBool>,
    next: Arc<AtomicI32>,
    done: Arc<AtomicU64>,
    told: Told,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// So many who make calls that may run once, and so many who make those that may run twice.
    fn start(reference: &str, once: usize, twice: usize) -> Self {
        let mut load = Self {
            over: Arc::default(),
            next: Arc::default(),
            done: Arc::default(),
            told: Arc::default(),
            threads: Vec::new(),
        };
        for at in 0..once + twice {
            let (over, next, done, told) = (
                Arc::clone(&load.over),
                Arc::clone(&load.next),
                Arc::clone(&load.done),
                Arc::clone(&load.told),
            );
            let reference = reference.to_owned();
            load.threads.push(thread::spawn(move || {
                let client = Node::new();
                let shop = client.connect::<dyn Shop>(&reference).unwrap();
                while !over.load(Ordering::Relaxed) {
                    if at < once {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        let failed = match shop.count(n) {
                            Ok(answered) => {
                                assert_eq!(answered, n);
                                None
                            }
                            Err(failure) => Some(failure.completed()),
                        };
                        told.lock().unwrap().insert(n, failed);
                    } else {
                        shop.noted()
                            .unwrap_or_else(|failure| panic!("it may run twice, and failed: {failure:?}"));
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        load
    }

    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Waits for so many calls more.
    fn go_on(&self, calls: u64) {
        let until_then = self.done() + calls;
        until("calls go on", || {
            assert!(self.threads.iter().all(|thread| !thread.is_finished()), "a caller has ended");
            self.done() >= until_then
        });
    }

    /// Ends, and returns what was told of each call that may run once.
    fn end(self) -> (u64, HashMap<i32, Option<Completed>>) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        (self.done.load(Ordering::Relaxed), std::mem::take(&mut *self.told.lock().unwrap()))
    }
}

/// Each call ran as often as its caller was told. Returns how many were done, not run, and perhaps run.
fn at_most_once(stores: &[&Store], told: &HashMap<i32, Option<Completed>>) -> (usize, usize, usize) {
    let mut counts = (0, 0, 0);
    for (n, failed) in told {
        let ran: u32 = stores
            .iter()
            .map(|store| store.counted.lock().unwrap().get(n).copied().unwrap_or_default())
            .sum();
        assert!(ran <= 1, "call {n} ran {ran} times: {failed:?}");
        match failed {
            None | Some(Completed::Yes) => {
                assert_eq!(ran, 1, "call {n} was done, and did not run");
                counts.0 += 1;
            }
            Some(Completed::No) => {
                assert_eq!(ran, 0, "call {n} was not done, and ran");
                counts.1 += 1;
            }
            Some(Completed::Maybe) => counts.2 += 1,
        }
    }
    counts
}

fn nothing_is_left(broker: &Running) {
    until("nothing is under way", || broker.metric(r#"calls_under_way{route="shop"}"#).abs() < 0.1);
}

#[test]
fn targets_that_are_killed_in_turn_double_no_call_and_fail_none_that_may_run_twice() {
    for typed in [true, false] {
        let before = descriptors();
        let mut targets = [Target::new(), Target::new()];
        let both: Vec<_> = targets.iter().map(Target::reference).collect();
        let broker = start(&text(&both, typed, "retries = 20\nidempotent = \"noted\""));
        let load = Load::start(&broker.reference("shop"), many(2, 4), many(2, 4));
        load.go_on(50);
        let (begun, mut kills) = (Instant::now(), 0);
        while long().map_or(kills < 10, |time| begun.elapsed() < time / 2) {
            targets[kills % 2].kill();
            kills += 1;
            // Until it has its share again.
            load.go_on(50);
        }
        let took = begun.elapsed();
        let (calls, told) = load.end();
        let stores: Vec<_> = targets.iter().map(|target| &*target.store).collect();
        let (done, not, maybe) = at_most_once(&stores, &told);
        nothing_is_left(&broker);
        println!(
            "fire: typed {typed}: {calls} calls in {took:.1?}, {kills} kills; of those that may run once {done} done, {not} not run, {maybe} perhaps run, none doubled"
        );
        assert!(done > 0);
        drop((broker, targets));
        until("no descriptor is left", || descriptors() <= before + 2);
    }
}

#[test]
fn idle_and_slow_callers_keep_nobody_from_being_served() {
    let (idle, slow, calls) = (many(100, 10_000), many(20, 1000), many(200, 20_000));
    let target = Target::new();
    let broker = start(&text(&[target.reference()], true, ""));
    let reference = broker.reference("shop");
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&reference).unwrap();
    let quiet = times(&shop, calls / 4);
    let memory = resident();
    // In a process of their own, which has descriptors for them.
    let mut crowd = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "suite::fire::a_crowd_that_does_next_to_nothing",
            "--nocapture",
            "--include-ignored",
        ])
        .env(CROWD, format!("{reference} {idle} {slow}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(crowd.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("the crowd is there")), "it came");
    let each = resident().saturating_sub(memory) / (idle + slow);
    let busy = times(&shop, calls);
    println!(
        "fire: {idle} idle and {slow} slow callers, {each} bytes for each, beside an honest one: {calls} calls, none failed; p50 {:.1?} p99 {:.1?}, without them {:.1?} and {:.1?}",
        busy.0, busy.1, quiet.0, quiet.1
    );
    // Those that do nothing are still welcome, as it finds when it is told to end.
    drop(crowd.stdin.take());
    assert!(crowd.wait().unwrap().success());
    assert_eq!(shop.count(1).unwrap(), 1);
}

/// Where the crowd is told whom to call, and how many they are.
const CROWD: &str = "EVERYWIRE_FIRE_CROWD";

/// What the test above runs as a process: callers that have called once and then do nothing, and others that send an octet from time to
/// time of a request that never ends.
#[test]
#[ignore = "it is half of another test"]
fn a_crowd_that_does_next_to_nothing() {
    let Ok(told) = std::env::var(CROWD) else { return };
    let words: Vec<&str> = told.split(' ').collect();
    let (reference, idle, slow) =
        (words[0], words[1].parse::<usize>().unwrap(), words[2].parse::<usize>().unwrap());
    let place = reference.trim_start_matches("iiop://").split('/').next().unwrap();
    let address: SocketAddr = place.parse().unwrap();
    let call = noted(reference);
    let ask = |stream: &mut TcpStream| {
        stream.write_all(&call).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!((&answer[..4], answer[7]), (&b"GIOP"[..], 1), "it was answered");
        let mut rest = vec![0; u32::from_be_bytes(answer[8..].try_into().unwrap()) as usize];
        if answer[6] & 1 == 1 {
            rest = vec![0; u32::from_le_bytes(answer[8..].try_into().unwrap()) as usize];
        }
        stream.read_exact(&mut rest).unwrap();
    };
    let mut idle: Vec<_> = (0..idle)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(LONG)).unwrap();
            ask(&mut stream);
            stream
        })
        .collect();
    let mut slow: Vec<_> = (0..slow).map(|_| TcpStream::connect(address).unwrap()).collect();
    let over = Arc::<AtomicBool>::default();
    let dribble = {
        let (over, call) = (Arc::clone(&over), call.clone());
        thread::spawn(move || {
            for octet in &call[..call.len() - 1] {
                for stream in &mut slow {
                    // It may have been sent away.
                    let _ = stream.write_all(&[*octet]);
                }
                if over.load(Ordering::Relaxed) {
                    return;
                }
                thread::sleep(Duration::from_millis(500));
            }
        })
    };
    println!("the crowd is there");
    // Until the other process has done what it wanted.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    over.store(true, Ordering::Relaxed);
    dribble.join().unwrap();
    idle.iter_mut().for_each(ask);
}

/// Calls, none of which may fail: the median of their times, and what one in a hundred takes longer than.
fn times(shop: &Ref<dyn Shop>, calls: usize) -> (Duration, Duration) {
    let mut times: Vec<_> = (0..calls)
        .map(|_| {
            let begun = Instant::now();
            shop.noted().unwrap_or_else(|failure| panic!("{failure:?}"));
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// A request of GIOP 1.0 for `noted` of the object behind a reference.
fn noted(reference: &str) -> Vec<u8> {
    let key = reference.rsplit_once('/').unwrap().1.as_bytes();
    let mut body = Vec::new();
    let number = |body: &mut Vec<u8>, value: usize| {
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend_from_slice(&u32::try_from(value).unwrap().to_be_bytes());
    };
    number(&mut body, 0);
    number(&mut body, 7);
    body.push(1);
    number(&mut body, key.len());
    body.extend_from_slice(key);
    number(&mut body, 6);
    body.extend_from_slice(b"noted\0");
    number(&mut body, 0);
    let mut message = b"GIOP\x01\0\0\0".to_vec();
    message.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
    message.extend_from_slice(&body);
    message
}

#[test]
fn a_copy_that_nobody_reads_costs_bounded_memory_and_no_call_waits() {
    let target = Target::new();
    let broker = start(&text(&[target.reference()], true, "copy = { program = \"exec sleep 1000\" }"));
    let reference = broker.reference("shop");
    let before = resident();
    let (over, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let callers: Vec<_> = (0..many(2, 8))
        .map(|_| {
            let (over, done, reference) = (Arc::clone(&over), Arc::clone(&done), reference.clone());
            thread::spawn(move || {
                let client = Node::new();
                let shop = client.connect::<dyn Shop>(&reference).unwrap();
                let text = "x".repeat(100_000);
                while !over.load(Ordering::Relaxed) {
                    shop.set_title(&text).unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let lost = || broker.metric(r#"copies_lost_total{route="shop",to="exec"}"#);
    let begun = Instant::now();
    let mut most = 0;
    until("its place was full for long", || {
        most = most.max(resident().saturating_sub(before));
        match long() {
            Some(time) => begun.elapsed() >= time / 2,
            None => lost() >= 500.0,
        }
    });
    over.store(true, Ordering::Relaxed);
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    let (lost, taken) = (lost(), broker.metric(r#"copies_total{route="shop",to="exec"}"#));
    println!(
        "fire: a copy that nobody reads: {} calls in {:.1?}, {taken} copies taken, {lost} lost, {} MiB more at the most",
        done.load(Ordering::Relaxed),
        begun.elapsed(),
        most >> 20
    );
    assert!(lost >= 1.0 && taken >= 1.0);
    let calls = broker.metric(r#"calls_total{route="shop",outcome="done"}"#);
    assert!((lost + taken - calls).abs() < 0.1, "{lost} and {taken} of {calls}: each copy was counted");
    // What waits for a place is bounded by 64 MiB.
    assert!(most < 160 << 20, "{most} bytes");
}

#[test]
fn no_call_is_lost_while_the_file_is_read_again_and_again() {
    let scratch = Scratch::new();
    let rounds = many(50, 1000);
    let targets = [Target::new(), Target::new()];
    let broker = start(&text(&[targets[0].reference()], true, ""));
    let file = scratch.path("broker.toml");
    let load = Load::start(&broker.reference("shop"), many(2, 4), many(1, 4));
    load.go_on(10);
    let begun = Instant::now();
    for round in 0..rounds {
        // Other targets, with a contract and without one.
        let target = [targets[round % 2].reference()];
        std::fs::write(&file, text(&target, round % 4 < 2, "")).unwrap();
        broker
            .broker
            .reload_file(std::path::Path::new(&file))
            .unwrap_or_else(|mistakes| panic!("{mistakes}"));
        if round % 10 == 0 {
            load.go_on(10);
        }
    }
    let took = begun.elapsed();
    let (calls, told) = load.end();
    let stores: Vec<_> = targets.iter().map(|target| &*target.store).collect();
    let (done, not, maybe) = at_most_once(&stores, &told);
    println!(
        "fire: {rounds} reloads in {took:.1?}, {calls} calls meanwhile, {done} of those that may run once were done, {not} refused, {maybe} lost"
    );
    assert_eq!((not, maybe), (0, 0));
    nothing_is_left(&broker);
}
