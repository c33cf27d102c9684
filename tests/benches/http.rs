//! What a request costs over HTTP with many callers who keep their connections, beside servers of the HTTP library alone. Wall-clock
//! figures, which no test asserts.
//!
//! `cargo bench -p everywire-tests --bench http [-- CALLERS [ROUNDS]]`: three servers, each a process, in turn and round by round, with
//! the same load: ours with a small call of `bench.wsdl`, an echo that takes the body and answers as many octets, and an echo that
//! reads the envelope as XML for the number in it and writes one like ours. First with the server on one CPU and its callers on
//! another, then wherever the kernel puts them. It prints the server's CPU time a request (user and system, as the kernel counts
//! it) and the latencies, medians over the rounds, and what ours is of the others'.
//!
//! `-- serve` and `-- load ADDRESS CALLERS REQUESTS` are its parts, for a profiler.

#[path = "http/echo.rs"]
mod echo;
#[path = "http/load.rs"]
mod load;

use echo::Answers;
use everywire::model::Bytes;
use everywire::{Failure, Node};
use load::{Callers, Round};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

#[allow(unreachable_pub, missing_docs, clippy::pedantic)]
mod contract {
    everywire::include_contract!("services/bench");
}
use contract::IRemoteObject;

/// Callers, unless said otherwise.
const CALLERS: usize = 200;
/// Rounds of each server and placement, unless said otherwise.
const ROUNDS: usize = 9;
/// How long a round is.
const ROUND: Duration = Duration::from_millis(1500);
/// The number that is sent and comes back.
const NUMBER: i32 = 1_234_567;

/// Answers at once.
struct Quick;

impl IRemoteObject for Quick {
    fn get_bytes(&self, _: i32) -> Result<Bytes, Failure> {
        Ok(Bytes::new())
    }
    fn put_bytes(&self, _: Bytes) -> Result<i32, Failure> {
        Ok(0)
    }
    fn void_call(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn in_int(&self, _: i32) -> Result<(), Failure> {
        Ok(())
    }
    fn out_int(&self) -> Result<i32, Failure> {
        Ok(42)
    }
    fn in_out_int(&self, x: i32) -> Result<i32, Failure> {
        Ok(x)
    }
    fn in_string(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
    fn out_string(&self) -> Result<String, Failure> {
        Ok(String::new())
    }
    fn in_out_string(&self, s: &str) -> Result<String, Failure> {
        Ok(s.to_owned())
    }
}

/// This program again, as a server; it ends with its standard input.
struct Server(Child, SocketAddr);

impl Server {
    fn start(arguments: &[&str], cpus: Option<&CpuSet>) -> Self {
        let before = sched_getaffinity(None).expect("the CPUs");
        if let Some(cpus) = cpus {
            // A process inherits the CPUs of the thread that starts it.
            sched_setaffinity(None, cpus).expect("a CPU");
        }
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        sched_setaffinity(None, &before).expect("the CPUs");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut line).expect("its first line");
        let place = line.trim().parse().expect("an address");
        Self(child, place)
    }

    /// Seconds of CPU that it has used: user and system.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("its times");
        // After the program's name, which may hold anything.
        let (_, rest) = stat.rsplit_once(')').expect("a name");
        let times =
            rest.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("ticks"));
        times.sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself.
        let _ = self.0.wait();
    }
}

fn serve() {
    let node = Node::new();
    let bound = node.listen("basic://127.0.0.1:0").expect("an address");
    node.export("bench", Arc::new(Quick) as Arc<dyn IRemoteObject>);
    println!("{}", bound.trim_start_matches("basic://").split(['/', '?']).next().unwrap_or_default());
    // The end of the input is the end of whoever started it.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    node.stop_within(Duration::ZERO);
}

fn echo(answers: Answers) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("its address"));
    std::thread::spawn(move || echo::serve(&listener, &answers).expect("an echo"));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// The request that our client sends, as it stands.
fn request() -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("basic://{}/bench", listener.local_addr().expect("its address"));
    let asks = std::thread::spawn(move || {
        let node = Node::new();
        // Nobody will answer it.
        node.connect::<dyn IRemoteObject>(&address).map(|object| object.in_out_int(NUMBER).is_ok())
    });
    let request = message(&mut listener.accept().expect("our client").0);
    asks.join().expect("no panic").expect("an address");
    request
}

/// One whole message.
fn message(stream: &mut TcpStream) -> Vec<u8> {
    let mut message = Vec::new();
    while load::whole(&message) != Some(message.len()) {
        let mut room = [0; 4096];
        let n = stream.read(&mut room).expect("more of a message");
        assert!(n > 0, "it ended early: {}", String::from_utf8_lossy(&message));
        message.extend_from_slice(&room[..n]);
    }
    message
}

/// The answer of the server at this place.
fn answer(place: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(place).expect("a server");
    stream.write_all(request).expect("room");
    String::from_utf8(message(&mut stream)).expect("an envelope")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Some of this program's CPUs.
fn one(which: usize) -> Option<CpuSet> {
    let all = sched_getaffinity(None).expect("the CPUs");
    let cpu = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).nth(which)?;
    let mut one = CpuSet::new();
    one.set(cpu);
    Some(one)
}

/// All servers in turn, with these CPUs for them and for their callers.
fn race(what: &str, request: &[u8], (callers, rounds): (usize, usize), cpus: [Option<CpuSet>; 2]) {
    let ours = Server::start(&["serve"], cpus[0].as_ref());
    let like = answer(ours.1, request);
    let body = like.split_once("\r\n\r\n").expect("a body").1;
    let bare = Server::start(&["echo", body], cpus[0].as_ref());
    let reads = Server::start(&["reads", body], cpus[0].as_ref());
    let servers =
        [("Everywire, basic://", ours), ("hyper, bare echo", bare), ("hyper, reads the XML", reads)];
    for (name, server) in &servers {
        let said = answer(server.1, request);
        assert_eq!(
            (said.len(), said.split_once("\r\n\r\n").map(|all| all.1)),
            (like.len(), Some(body)),
            "{name}"
        );
    }
    let before = sched_getaffinity(None).expect("the CPUs");
    if let Some(cpu) = &cpus[1] {
        sched_setaffinity(None, cpu).expect("a CPU");
    }
    let mut all: Vec<_> = servers
        .iter()
        .map(|(_, server)| Callers::new(server.1, callers, request).expect("connections"))
        .collect();
    let mut results: Vec<Vec<(f64, Round)>> = vec![Vec::new(); servers.len()];
    for round in 0..=rounds {
        for (((_, server), callers), results) in servers.iter().zip(&mut all).zip(&mut results) {
            let used = server.cpu();
            let done = callers.round(ROUND).expect("answers");
            // The first is for warmth.
            if round > 0 {
                results.push(((server.cpu() - used) * 1e6 / done.requests as f64, done));
            }
        }
    }
    sched_setaffinity(None, &before).expect("the CPUs");
    println!(
        "{what}: {callers} callers, {} octets there, {} back, medians of {rounds} rounds",
        request.len(),
        like.len()
    );
    let figures = |of: &[(f64, Round)]| {
        let middle = |figure: fn(&(f64, Round)) -> f64| median(of.iter().map(figure).collect());
        [
            middle(|(cpu, _)| *cpu),
            middle(|(_, round)| round.median),
            middle(|(_, round)| round.p99),
            middle(|(_, round)| round.worst),
            middle(|(_, round)| round.requests as f64 / round.seconds),
        ]
    };
    let [ours, ..] = &results[..] else { return };
    for ((name, _), theirs) in servers.iter().zip(&results) {
        let [cpu, middle, p99, worst, rate] = figures(theirs);
        // Round by round, since neighbours ran beside the same machine's others.
        let ratio = |figure: fn(&(f64, Round)) -> f64| {
            median(ours.iter().zip(theirs).map(|(ours, theirs)| figure(ours) / figure(theirs)).collect())
        };
        println!(
            "  {name:21} {cpu:6.2} us of CPU a request, median {middle:6.0} us, p99 {p99:6.0}, worst {worst:6.0}, {rate:6.0} a second; ours is \
             {:.2} in CPU, {:.2} in the median, {:.2} in the p99",
            ratio(|(cpu, _)| *cpu),
            ratio(|(_, round)| round.median),
            ratio(|(_, round)| round.p99),
        );
    }
}

/// Calls one server this often, and does nothing else.
fn drive(place: SocketAddr, callers: usize, milliseconds: u64) {
    let mut callers = Callers::new(place, callers, &request()).expect("connections");
    let done = callers.round(Duration::from_millis(milliseconds)).expect("answers");
    println!("{done:?}");
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let number = |text: &str| text.parse::<usize>().expect("a number");
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve(),
        ["echo", body] => echo(Answers::Bare(Bytes::copy_from_slice(body.as_bytes()))),
        ["reads", body] => {
            let (before, after) = body.split_once(&NUMBER.to_string()).expect("the number");
            echo(Answers::Reads(Arc::new([before.to_owned(), after.to_owned()])));
        }
        ["load", place, callers, milliseconds] => {
            drive(place.parse().expect("an address"), number(callers), number(milliseconds) as u64);
        }
        ref said => {
            let callers = said.first().map_or(CALLERS, |said| number(said));
            let rounds = said.get(1).map_or(ROUNDS, |said| number(said));
            let request = request();
            if let (Some(first), Some(second)) = (one(0), one(1)) {
                race(
                    "server and callers on a CPU each",
                    &request,
                    (callers, rounds),
                    [Some(first), Some(second)],
                );
            }
            race("anywhere", &request, (callers, rounds), [None, None]);
        }
    }
}
