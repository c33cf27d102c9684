//! Clients that advise, hear a signal, unadvise and let go, over and over, and are killed at random: nothing of them stays.
//!
//! `EVERYWIRE_CYCLES` says how many cycles are made, and 300 are made without it. The promise is about 100 000: a soak test sets it.

use crate::attacks_dcom::target;
use crate::common::dcom_pantry as pantry;
use crate::common::foreign::PATIENCE;
use everywire::model::{Hold, Signal};
use everywire::{Failure, Node};
use everywire_tests::again::{only, this_program};
use pantry::{PANTRY, PANTRY_CLASS};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use target::{COOK, DOMAIN, Held, PASSWORD, Settings, Target, until};

/// Where a process finds what it is to call, and thereby that it is a client.
const CLIENT: &str = "EVERYWIRE_TEST_CLIENT";
/// After how many cycles it leaves.
const LEAVES: &str = "EVERYWIRE_TEST_LEAVES";
/// Clients at a time.
const CLIENTS: usize = 3;
/// What a server may grow by, whatever the number of cycles.
const GROWTH: u64 = 12 << 20;

/// The clients' part of the test: cycles until it is killed, and says after each that it was made.
#[test]
#[ignore = "a client that other tests start"]
fn a_client_that_cycles() {
    let address = std::env::var(CLIENT).expect("other tests start it");
    let node = Node::new();
    // Without a number it goes on until it is killed.
    let cycles = std::env::var(LEAVES).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
    for _ in 0..cycles {
        cycle(&node, &address).unwrap_or_else(|failure| panic!("a cycle: {failure}"));
        println!("#: cycle");
    }
    // What it let go was given back by now.
    std::thread::sleep(Duration::from_millis(300));
}

/// An object is made, a sink advised; a signal comes; the sink is unadvised, the object let go.
fn cycle(node: &Node, address: &str) -> Result<(), Failure> {
    let object = node.object(address)?.typed(Hold::Static(&PANTRY));
    // The first call makes the object; all others go to it.
    let (sum,) = object.call::<_, (i32,), Failure>(&PANTRY.operations[0], (1, 2))?;
    assert_eq!(sum, 3);
    let class = everywire::Object::new(Arc::clone(object.target())).typed(Hold::Static(&PANTRY_CLASS));
    let (tell, told) = mpsc::channel();
    let ticked: &Signal = &PANTRY_CLASS.signals[0];
    let listener = Arc::new(move |event: everywire::SignalEvent<_>| {
        // Whoever listened may have heard enough.
        let _ = tell.send(matches!(event, everywire::SignalEvent::Signal(_)));
    });
    let subscription = class.subscribe(Some(ticked), listener)?;
    object.call::<_, (), Failure>(&PANTRY.operations[4], (1,))?;
    assert_eq!(told.recv_timeout(PATIENCE), Ok(true), "no signal");
    drop(subscription);
    Ok(())
}

/// A client in a process of its own.
struct Client {
    child: Child,
    errors: PathBuf,
}

impl Client {
    fn start(address: &str, number: usize, made: &Arc<AtomicU64>) -> Self {
        let errors = std::env::temp_dir().join(format!("everywire-client-{}-{number}", std::process::id()));
        let mut child = this_program()
            .args(only("a_client_that_cycles"))
            .env(CLIENT, address)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&errors).expect("a log"))
            .spawn()
            .expect("a client starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let made = Arc::clone(made);
        std::thread::spawn(move || {
            let cycles = lines.map_while(Result::ok).filter(|line| line.ends_with("#: cycle"));
            cycles.for_each(|_| {
                made.fetch_add(1, Ordering::Relaxed);
            });
        });
        Self { child, errors }
    }

    /// Whether it runs; it ends only if something went wrong.
    fn check(&mut self) {
        let ended = self.child.try_wait().expect("it can be asked");
        assert!(ended.is_none(), "a client ended: {}", fs::read_to_string(&self.errors).unwrap_or_default());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Without a word, wherever it is.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.errors);
    }
}

/// Lets one client make some cycles, kills it, and waits until the server has forgotten it.
fn one_client(server: &Target, address: &str, number: usize) {
    let made = Arc::new(AtomicU64::new(0));
    let client = Client::start(address, number, &made);
    until("a client makes its first cycles", || made.load(Ordering::Relaxed) > 50);
    drop(client);
    server.recovers();
}

#[test]
fn cycles_with_clients_killed_at_random_leave_nothing_behind() {
    let cycles = std::env::var("EVERYWIRE_CYCLES").ok().map_or(300, |text| text.parse().expect("a number"));
    let own = format!("{DOMAIN};{COOK}:{PASSWORD}@");
    let server = Target::with(&Settings { own, period: Duration::from_secs(20), ..Settings::default() });
    let address = server.address(COOK);
    // Whatever is made once is there before anything is counted.
    one_client(&server, &address, 0);
    let before = (server.resident(), server.threads(), server.descriptors());

    let made = Arc::new(AtomicU64::new(0));
    let mut clients: Vec<_> = (0..CLIENTS).map(|number| Client::start(&address, 2 + number, &made)).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (begun, mut kills, mut most) = (Instant::now(), 0_u64, 0);
    while made.load(Ordering::Relaxed) < cycles || kills < 3 {
        std::thread::sleep(Duration::from_millis(200 + next() % 1500));
        clients.iter_mut().for_each(Client::check);
        let victim = usize::try_from(next() >> 1).unwrap_or_default() % CLIENTS;
        clients[victim] = Client::start(&address, 2 + CLIENTS + usize::try_from(kills).expect("few"), &made);
        kills += 1;
        most = most.max(server.resident());
        assert!(begun.elapsed() < Duration::from_secs(3600), "too slow");
    }
    drop(clients);
    let (made, took) = (made.load(Ordering::Relaxed), begun.elapsed());
    server.recovers();
    assert_eq!(server.held(), Held::nothing());
    // Connections that the server made to the dead are swept up when it makes the next one.
    one_client(&server, &address, 1);
    // A few spare threads may wait for work, a few connections may be on their way.
    let is_back = || server.descriptors() <= before.2 + 2 && server.threads() <= before.1 + 2;
    let end = Instant::now() + PATIENCE;
    while !is_back() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    let after = (server.resident(), server.threads(), server.descriptors());
    println!(
        "{made} cycles and {kills} killed clients in {took:?} ({:.0} cycles/s); memory, threads, descriptors: \
         {before:?} before, {after:?} after, at most {most} bytes meanwhile",
        made as f64 / took.as_secs_f64(),
    );
    assert!(is_back(), "threads or descriptors are not given back");
    let grown = after.0.saturating_sub(before.0);
    assert!(grown < GROWTH, "the server grew by {grown} bytes in {made} cycles");
}

/// Those that leave as they should: what the server opened to call them back is closed when they are gone.
#[test]
fn clients_that_leave_leave_nothing_behind() {
    const CLIENTS: usize = 30;
    let own = format!("{DOMAIN};{COOK}:{PASSWORD}@");
    let server = Target::with(&Settings { own, ..Settings::default() });
    let address = server.address(COOK);
    one_client(&server, &address, 1000);
    let before = (server.threads(), server.descriptors());
    for _ in 0..CLIENTS {
        let output = this_program()
            .args(only("a_client_that_cycles"))
            .envs([(CLIENT, address.as_str()), (LEAVES, "3")])
            .output()
            .expect("a client");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    server.recovers();
    let end = Instant::now() + PATIENCE;
    while server.descriptors() > before.1 + 2 {
        let now = server.descriptors();
        assert!(Instant::now() < end, "{} descriptors before, {now} after {CLIENTS} clients", before.1);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(server.threads() <= before.0 + 2, "{} threads before, {} after", before.0, server.threads());
}
