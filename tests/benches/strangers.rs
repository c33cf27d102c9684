//! What a server gives its honest callers while others block it or attack it: wall-clock figures, which no test asserts.
//!
//! `cargo bench -p everywire-tests --bench strangers -- blocking` has 600 callers of a servant that sleeps for a second, over one
//! connection and over 600, and an echo beside them. `-- hostile` has 3,900 peers that are idle, slow, broken or come and go, and
//! compares the latency of an honest caller with what it has while the same peers attack another process. `-- threads` has one, two
//! and eight threads call over one connection. Without an argument all three.

use everywire::{Failure, Node};
use everywire_tests::bench::Benchmarking;
use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Callers of the servant that sleeps.
const CALLERS: usize = 600;
/// Peers that attack.
const HOSTILE: usize = 3_900;
/// How long an honest caller is timed.
const TIMED: Duration = Duration::from_secs(10);

/// Sleeps for so many milliseconds in `in_int_call`, echoes in `in_out_int_call`.
struct Sleeper;

impl Benchmarking for Sleeper {
    fn void_call(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn in_int_call(&self, milliseconds: i32) -> Result<(), Failure> {
        std::thread::sleep(Duration::from_millis(milliseconds.unsigned_abs().into()));
        Ok(())
    }
    fn out_int_call(&self) -> Result<i32, Failure> {
        Ok(42)
    }
    fn in_out_int_call(&self, v: i32) -> Result<i32, Failure> {
        Ok(v)
    }
    fn in_string_call(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
    fn out_string_call(&self) -> Result<String, Failure> {
        Ok(String::new())
    }
    fn in_out_string_call(&self, v: &str) -> Result<String, Failure> {
        Ok(v.to_owned())
    }
}

/// This program again, as a server or an attacker; it ends with its standard input.
struct Other(Child, String);

impl Other {
    fn start(arguments: &[&str]) -> Self {
        let program = env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut line).expect("its first line");
        Self(child, line.trim().to_owned())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself.
        let _ = self.0.wait();
    }
}

fn serve() {
    let node = Node::new();
    let bound = node.listen("iiop://127.0.0.1:0").expect("an address");
    node.export::<dyn Benchmarking>("benchmarking", Arc::new(Sleeper));
    println!("{}/benchmarking", bound.trim_end_matches('/'));
    // The end of the input is the end of whoever started it.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    node.stop_within(Duration::ZERO);
}

fn blocking() {
    for shared in [true, false] {
        let server = Other::start(&["serve"]);
        let connect = || {
            let node = Node::new();
            let object = node.connect::<dyn Benchmarking>(&server.1).expect("an address");
            object.void_call().expect("a call");
            (node, object)
        };
        let first = connect();
        let callers: Vec<_> = (0..CALLERS).map(|_| if shared { first.clone() } else { connect() }).collect();
        let (echo, over) = (connect(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let echoes = scope.spawn(|| {
                let mut worst = Duration::ZERO;
                while !over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    echo.1.in_out_int_call(1).expect("an echo");
                    worst = worst.max(begun.elapsed());
                    std::thread::sleep(Duration::from_millis(1));
                }
                worst
            });
            let begun = Instant::now();
            std::thread::scope(|scope| {
                for (_, object) in &callers {
                    scope.spawn(|| object.in_int_call(1000).expect("a slow call"));
                }
            });
            let took = begun.elapsed();
            over.store(true, Ordering::Relaxed);
            let worst = echoes.join().expect("echoes");
            let connections = if shared { 1 } else { CALLERS };
            println!(
                "{CALLERS} callers of a second, {connections} connections: {took:.2?}; worst echo beside them {worst:.1?}"
            );
        });
    }
}

/// Attacks the server at this port until its own input ends.
fn attack(port: u16) {
    let place = SocketAddr::from(([127, 0, 0, 1], port));
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ends.store(true, Ordering::Relaxed);
    });
    let connect = || {
        let stream = TcpStream::connect(place).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(stream)
    };
    let mut peers: Vec<Option<TcpStream>> = (0..HOSTILE).map(|_| connect()).collect();
    println!("attacks");
    let header = b"GIOP\x01\x02\x01\x00\x00\x00\x10\x00";
    let mut round = 0usize;
    while !over.load(Ordering::Relaxed) {
        for (at, peer) in peers.iter_mut().enumerate().skip(round % 10).step_by(10) {
            match at % 4 {
                // Idle.
                0 => {}
                // Slow: an octet of a message of a megabyte.
                1 => {
                    let octet = header.get(round / 10).copied().unwrap_or(0);
                    let sent = peer.as_mut().map(|peer| peer.write(&[octet]));
                    if matches!(sent, Some(Err(error)) if error.kind() != ErrorKind::WouldBlock) {
                        *peer = connect();
                    }
                }
                // Broken: comes, says nonsense, and comes again.
                2 => {
                    let _ = peer.as_mut().map(|peer| peer.write(b"nonsense that is no protocol"));
                    *peer = connect();
                }
                // Comes and goes.
                _ => *peer = connect(),
            }
        }
        round += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Latencies of an honest caller: median and 99th of a hundred, in microseconds.
fn honest(address: &str) -> (f64, f64) {
    let node = Node::new();
    let object = node.connect::<dyn Benchmarking>(address).expect("an address");
    let mut times = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < TIMED {
        let call = Instant::now();
        object.in_out_int_call(1).expect("an honest call");
        times.push(call.elapsed().as_secs_f64() * 1e6);
        std::thread::sleep(Duration::from_micros(500));
    }
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default();
    (at(0.5), at(0.99))
}

fn hostile() {
    let (victim, other) = (Other::start(&["serve"]), Other::start(&["serve"]));
    let port = |server: &Other| {
        let place = server.1.trim_start_matches("iiop://").split('/').next().unwrap_or_default();
        place.rsplit(':').next().unwrap_or_default().to_owned()
    };
    for round in 1..=3 {
        let quiet = honest(&victim.1);
        let elsewhere = {
            let _attack = Other::start(&["attack", &port(&other)]);
            honest(&victim.1)
        };
        std::thread::sleep(Duration::from_secs(1));
        let here = {
            let _attack = Other::start(&["attack", &port(&victim)]);
            honest(&victim.1)
        };
        std::thread::sleep(Duration::from_secs(1));
        println!(
            "round {round}, {HOSTILE} hostile peers: median/p99 us: quiet {:.0}/{:.0}; attack on another process {:.0}/{:.0}; on this one \
             {:.0}/{:.0}; p99 ratio {:.2}",
            quiet.0,
            quiet.1,
            elsewhere.0,
            elsewhere.1,
            here.0,
            here.1,
            here.1 / elsewhere.1
        );
    }
}

/// Calls a second of so many threads over one connection.
fn throughput(address: &str, threads: usize) -> f64 {
    let node = Node::new();
    let object = node.connect::<dyn Benchmarking>(address).expect("an address");
    object.void_call().expect("a call");
    let (over, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = 0;
                while !over.load(Ordering::Relaxed) {
                    object.in_out_int_call(1).expect("a call");
                    own += 1;
                }
                calls.fetch_add(own, Ordering::Relaxed);
            });
        }
        std::thread::sleep(Duration::from_secs(1));
        over.store(true, Ordering::Relaxed);
    });
    calls.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64()
}

/// In turn, five times; the medians.
fn threads() {
    let server = Other::start(&["serve"]);
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..5 {
        for (rates, threads) in rates.iter_mut().zip([1, 2, 8]) {
            rates.push(throughput(&server.1, threads));
        }
    }
    let [one, two, eight] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or_default()
    });
    println!(
        "calls a second over one connection: one thread {one:.0}, two {two:.0} ({:.2} of one), eight {eight:.0} ({:.2})",
        two / one,
        eight / one
    );
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve(),
        ["attack", port] => attack(port.parse().expect("a port")),
        ["blocking"] => blocking(),
        ["hostile"] => hostile(),
        ["threads"] => threads(),
        _ => {
            threads();
            blocking();
            hostile();
        }
    }
}
