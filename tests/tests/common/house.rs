//! A servant that writes down which calls began and which ended, and a server for it in a process of its own, which does what it is
//! told through its input.
//!
//! States: *shut* (calls are held), *open*. Words to the server: `open`, `shut`, `drain` (take no more calls), `stop` (end without
//! waiting for calls), `quiet` (say so when no connection is left), `starve` (take every descriptor that there is), `feed` (give them back). SIGTERM: take no more calls, end when those under way are answered. What
//! it has done it says: `shut`, `drained`, `stopped`, `quiet`, `starved`, `fed`.
//!
//! Invariant: the file has a line of a call before the call does anything, and another one before its answer is sent, so the file
//! outlives whatever ends the server. A call that cannot be written down does not begin.

use super::foreign::until;
use crate::restarts::LONG;
use everywire::model::shape::{Field, Shape};
use everywire::model::{
    Completed, Direction, Hold, Initiator, InterfaceKind, Kind, Object, Operation, Parameter, Request,
    Servant,
};
use everywire::{Failure, Interface, Node, Notice, Quotas};
use everywire_tests::again::{only, this_program};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::time::Duration;

/// Where a process finds the address that it is to serve, and thereby that it is a server; its list; what it is like.
const ADDRESS: &str = "EVERYWIRE_HOUSE_SERVE";
const LOG: &str = "EVERYWIRE_HOUSE_LOG";
const CONNECTIONS: &str = "EVERYWIRE_HOUSE_CONNECTIONS";
const IDLE: &str = "EVERYWIRE_HOUSE_IDLE";
const OPEN: &str = "EVERYWIRE_HOUSE_OPEN";
const DESCRIPTORS: &str = "EVERYWIRE_HOUSE_DESCRIPTORS";

/// The class of the counter, for those who ask for one.
const CLASS: &str = "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a0f2";

/// What a servant answers that cannot write down a call.
pub const FULL: &str = "the disk is full";

/// The largest message that a server takes, in bytes.
const LARGEST: u64 = 64 << 10;

pub static INTERFACE: LazyLock<Interface> = LazyLock::new(|| {
    let input = |shape| Parameter { direction: Direction::In, field: Field { name: "v".into(), shape } };
    Interface {
        name: "test.Counter".into(),
        id: "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a0f1".into(),
        identities: vec![].into(),
        types: None,
        notes: vec![].into(),
        kind: InterfaceKind::Plain,
        bases: vec![].into(),
        operations: vec![
            Operation::new("count", vec![input(Shape::I32)], Shape::I32),
            Operation::new("large", vec![input(Shape::sequence(Shape::U8))], Shape::I32),
        ]
        .into(),
        inherited: 0,
        attributes: vec![].into(),
        signals: vec![].into(),
        doc: "".into(),
    }
});

/// The object at an address.
pub fn object(node: &Node, address: &str) -> Object {
    node.object(address).expect("an address").typed(Hold::Static(&INTERFACE))
}

/// What a server is to be like.
#[derive(Clone, Copy)]
pub struct Settings {
    pub connections: i32,
    /// Milliseconds that a connection may be silent; 0: for ever.
    pub idle: u64,
    /// Whether it is open from the beginning.
    pub open: bool,
    /// How many descriptors it may have, if not as many as we may.
    pub descriptors: Option<u64>,
}

/// This process may have no more descriptors than so many.
pub fn allow_descriptors(many: u64) {
    let limit = libc::rlimit { rlim_cur: many, rlim_max: many };
    // SAFETY: the call gets a pointer to a live struct of the right type.
    let done = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// The file of the calls that began and of those that ended.
pub struct Log(PathBuf);

/// What is in it: how often each call began, and ended.
#[derive(Default)]
pub struct Ran {
    pub began: BTreeMap<i32, u32>,
    pub ended: BTreeMap<i32, u32>,
    /// Connections that were accepted.
    pub accepted: usize,
}

impl Log {
    pub fn new(path: PathBuf) -> Self {
        File::create(&path).expect("a list of calls");
        Self(path)
    }

    /// A counter that writes into it.
    pub fn counter(&self, open: bool) -> Counter {
        let log = File::options().append(true).open(&self.0).expect("a list of calls");
        Counter(Arc::new(Gate { open: Mutex::new(open), changed: Condvar::new(), log }))
    }

    pub fn read(&self) -> Ran {
        let mut ran = Ran::default();
        for line in fs::read_to_string(&self.0).expect("a list of calls").lines() {
            let (word, number) = line.split_once(' ').expect("a word and a number");
            let list = match word {
                "began" => &mut ran.began,
                "ended" => &mut ran.ended,
                _ => {
                    ran.accepted += 1;
                    continue;
                }
            };
            *list.entry(number.trim_start().parse().expect("a number")).or_default() += 1;
        }
        ran
    }
}

/// A server under way. It is killed with this value.
pub struct Process {
    child: Child,
    input: ChildStdin,
    said: Mutex<BufReader<ChildStdout>>,
}

impl Process {
    pub fn start(listen: &str, log: &Log, settings: Settings) -> Self {
        let mut child = this_program()
            .args(only("serve_the_counter"))
            .env(ADDRESS, listen)
            .env(LOG, &log.0)
            .env(CONNECTIONS, settings.connections.to_string())
            .env(IDLE, settings.idle.to_string())
            .env(OPEN, u8::from(settings.open).to_string())
            .env(DESCRIPTORS, settings.descriptors.unwrap_or(0).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server starts");
        let input = child.stdin.take().expect("piped");
        let said = Mutex::new(BufReader::new(child.stdout.take().expect("piped")));
        let process = Self { child, input, said };
        process.hear("ready ");
        process
    }

    /// Waits until it says a line with this word; what follows it.
    fn hear(&self, word: &str) -> String {
        let mut said = self.said.lock().expect("whole");
        loop {
            let mut line = String::new();
            let read = said.read_line(&mut line).expect("text");
            assert!(read > 0, "the server never says `{word}`");
            if let Some((_, rest)) = line.split_once(&format!("#: {word}")) {
                return rest.trim_end().to_owned();
            }
        }
    }

    fn tell(&self, word: &str) {
        // It may have been killed.
        let _ = writeln!(&self.input, "{word}");
    }

    /// Lets calls go.
    pub fn open(&self) {
        self.tell("open");
    }

    /// Holds calls from now on.
    pub fn shut(&self) {
        self.tell("shut");
        self.hear("shut");
    }

    /// As SIGTERM does: returns when the place is free.
    pub fn terminate(&self) {
        let id = i32::try_from(self.child.id()).expect("a process number");
        // SAFETY: a signal to a child of ours that nobody has waited for.
        unsafe { libc::kill(id, libc::SIGTERM) };
        self.hear("drained");
    }

    /// Frees the place.
    pub fn drain(&self) {
        self.tell("drain");
        self.hear("drained");
    }

    /// Ends all connections.
    pub fn stop(&self) {
        self.tell("stop");
        self.hear("stopped");
    }

    /// Waits until no connection is left.
    pub fn quiet(&self) {
        self.tell("quiet");
        self.hear("quiet");
    }

    /// Leaves it no descriptor; how many it had.
    pub fn starve(&self) -> usize {
        self.tell("starve");
        self.hear("starved ").parse().expect("a number")
    }

    /// Gives it back what it was left without.
    pub fn feed(&self) {
        self.tell("feed");
        self.hear("fed");
    }

    /// Waits until it has stopped.
    pub fn stopped(&self) {
        self.hear("stopped");
    }

    /// Ends at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Holds calls back while it is shut, and writes down those that begin and end.
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    log: File,
}

impl Gate {
    /// Whether it is written down. A line of sixteen octets is written whole or not at all, also where the disk is full.
    fn note(&self, word: &str, number: i32) -> bool {
        // One write for one line; the kernel has it even if this process is killed now.
        (&self.log).write_all(format!("{word:5} {number:>9}\n").as_bytes()).is_ok()
    }

    fn set(&self, open: bool) {
        *self.open.lock().expect("whole") = open;
        self.changed.notify_all();
    }
}

/// Answers with one more.
pub struct Counter(Arc<Gate>);

impl Servant for Counter {
    fn interface(&self) -> &Interface {
        &INTERFACE
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let (number,) = request.arguments::<(i32,)>()?;
            if !self.0.note("began", number) {
                let full = Failure::new(Kind::Internal, Initiator::Here, FULL);
                return request.reply(Err::<(i32,), _>(full.with_completed(Completed::No)));
            }
            everywire::blocking(|| {
                let mut open = self.0.open.lock().expect("whole");
                while !*open {
                    open = self.0.changed.wait(open).expect("whole");
                }
            });
            if !self.0.note("ended", number) {
                let full = Failure::new(Kind::Internal, Initiator::Here, FULL);
                return request.reply(Err::<(i32,), _>(full.with_completed(Completed::Yes)));
            }
            request.reply(Ok::<_, Failure>((number + 1,)))
        });
    }
}

static TERMINATED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    TERMINATED.store(true, Ordering::Release);
}

fn say(word: &str) {
    println!("#: {word}");
}

/// Serves if the environment says so, until the input ends.
#[test]
#[ignore = "a server that another test starts"]
fn serve_the_counter() {
    let (Ok(address), Some(log)) = (std::env::var(ADDRESS), std::env::var_os(LOG)) else { return };
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok()).expect("a number");
    // SAFETY: the handler does nothing but store a flag.
    unsafe { libc::signal(libc::SIGTERM, on_signal as *const () as libc::sighandler_t) };
    match number(DESCRIPTORS) {
        0 => {}
        many => allow_descriptors(many),
    }
    let mut hoard = Vec::new();
    let quotas = Quotas {
        connections: usize::try_from(number(CONNECTIONS)).expect("few"),
        idle: Some(number(IDLE)).filter(|idle| *idle > 0).map(Duration::from_millis),
        ..Quotas::default()
    };
    let counter = Arc::new(Log(log.into()).counter(number(OPEN) > 0));
    let gate = Arc::clone(&counter.0);
    let noting = Arc::clone(&gate);
    let observer = Arc::new(move |notice: &Notice| {
        if matches!(notice, Notice::Accepted { .. }) {
            // Where the disk is full nobody counts connections.
            let _ = noting.note("taken", 0);
        }
    });
    let node: Node = Node::builder().max_message(LARGEST).quotas(quotas).observer(observer).build().into();
    node.export_servant("counter", Arc::clone(&counter) as Arc<dyn Servant>);
    node.export_class_servants(CLASS, Hold::Static(&INTERFACE), move |_| Ok(vec![Arc::clone(&counter) as _]));
    let mut at = node.listen(&address);
    // A hub may not have seen yet that the one before is gone, whose name it was.
    until("the place is free", || {
        if at.is_err() && address.contains('#') {
            at = node.listen(&address);
        }
        at.is_ok() || !address.contains('#')
    });
    let at = at.unwrap_or_else(|failure| panic!("{address}: {failure}"));
    say(&format!("ready {at}"));
    let ending = node.clone();
    std::thread::spawn(move || {
        while !TERMINATED.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        ending.drain();
        say("drained");
        ending.stop_within(LONG);
        say("stopped");
    });
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.as_str() {
            "open" => gate.set(true),
            "shut" => {
                gate.set(false);
                say("shut");
            }
            "quiet" => {
                until("no connection is left", || node.connections() == 0);
                say("quiet");
            }
            "starve" => {
                hoard.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
                say(&format!("starved {}", hoard.len()));
            }
            "feed" => {
                hoard.clear();
                say("fed");
            }
            "drain" => {
                node.drain();
                say("drained");
            }
            "stop" => {
                node.stop_within(Duration::ZERO);
                say("stopped");
            }
            other => panic!("no word: {other}"),
        }
    }
    // The test is over; calls that are still held would keep this process.
    std::process::exit(0);
}
