//! What ends a connection, on each wire, for our client and for foreign ones: no call is lost, and none is doubled.
//!
//! A server is a process of its own. Its servant writes the number of each call into a file when the call begins, and again when it ends,
//! so the file outlives whatever kills the server. What each caller was told is held against the file:
//!
//! * a call begins at most once;
//! * *answered* (and a failure that says that the call was executed): it began, and it ended;
//! * *not executed*: it never began;
//! * *maybe*: anything else.
//!
//! Calls are *held* by the servant until the test lets them go, so that a connection ends while calls are under way however fast the machine
//! is. A table of what callers were told is printed; its numbers vary from run to run, the rules do not.
//!
//! `EVERYWIRE_ENDINGS_CALLS` is how many calls each cell of the table has; `make soak` sets it to 10,000.

mod callers;
mod house;

use crate::common::foreign::until;
use crate::common::scratch;
use callers::{Caller, Foreign, Ours, Told};
use house::{Log, Process, Settings};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Calls that are held in each round; two of them share a connection where the client lets them.
const HELD: i32 = 20;
/// Calls of each round: those that are held, and those that come while the connection ends.
const ROUND: i32 = 40;
/// Calls that are beside each other are slots; each slot has its number in the client.
const SLOTS: i32 = 20;

/// Calls in each cell.
fn calls() -> i32 {
    let text = std::env::var("EVERYWIRE_ENDINGS_CALLS").ok();
    text.map_or(200, |text| text.parse().expect("EVERYWIRE_ENDINGS_CALLS is a number of calls"))
}

/// What ends a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// SIGTERM: calls under way are answered, a successor takes the place.
    Shutdown,
    /// A server that stops without waiting for its calls, with a goodbye where the wire has one, and a successor at its place.
    Goodbye,
    /// The server is killed, and a successor takes its place.
    Kill,
    /// Another call on the same connection is over the limit.
    Large,
    /// The server closes connections that are silent for a few milliseconds, while their client is about to call again.
    Idle,
    /// There are fewer places than connections: quiet ones are evicted, newcomers are refused.
    Newcomers,
}

const ENDINGS: [(Ending, &str); 6] = [
    (Ending::Shutdown, "shutdown (SIGTERM), successor"),
    (Ending::Goodbye, "stop without grace, successor"),
    (Ending::Kill, "kill -9, successor"),
    (Ending::Large, "another call over the limit"),
    (Ending::Idle, "idle eviction"),
    (Ending::Newcomers, "no place for newcomers"),
];

/// A wire, and how its server and its client are addressed.
struct Course {
    name: &'static str,
    scheme: &'static str,
    serving: &'static str,
    calling: &'static str,
    /// How the foreign client finds the object, with `PORT` or `SOCKET` in it.
    foreign: &'static str,
}

const GIOP: Course = Course {
    name: "giop",
    scheme: "iiop",
    serving: "",
    calling: "",
    foreign: "corbaloc:iiop:1.2@127.0.0.1:PORT/counter",
};
const DBUS: Course =
    Course { name: "dbus", scheme: "dbus", serving: "", calling: "", foreign: "unix:path=SOCKET" };
const DCOM: Course =
    Course { name: "dcom", scheme: "dcom", serving: "", calling: "?exporter=here", foreign: "" };
const NET_TCP: Course = Course {
    name: "net.tcp",
    scheme: "net.tcp",
    serving: "?security=none",
    calling: "?security=none",
    foreign: "net.tcp://127.0.0.1:PORT/counter",
};
const HTTP: Course = Course {
    name: "http",
    scheme: "basic",
    serving: "?security=none",
    calling: "?security=none",
    foreign: "127.0.0.1:PORT",
};

/// Where the servers of a cell listen, one after another.
struct Place {
    listen: String,
    reference: String,
    socket: Option<PathBuf>,
}

/// A cell of the table under way.
struct Cell<'c> {
    course: &'c Course,
    ending: Ending,
    /// The foreign program, with its arguments; ours if there is none.
    client: Option<&'c [String]>,
    log: Log,
    place: Place,
    server: Process,
}

impl<'c> Cell<'c> {
    fn new(course: &'c Course, ending: Ending, what: &str, client: Option<&'c [String]>) -> Self {
        let who = if client.is_some() { "foreign" } else { "ours" };
        let dir = scratch(&format!("e-{}-{who}-{}", course.name, what.split(' ').next().expect("a word")));
        let socket = dir.join("s");
        let log = Log::new(dir.join("log"));
        let by_port = course.foreign.contains("PORT") && client.is_some();
        let (scheme, serving) = (course.scheme, course.serving);
        let first = if by_port {
            format!("{scheme}://127.0.0.1:0{serving}")
        } else {
            format!("{scheme}+unix://{}{serving}", socket.display())
        };
        let server = Process::start(&first, &log, settings(ending));
        let place = if by_port {
            let port = server.port().to_string();
            Place {
                listen: format!("{scheme}://127.0.0.1:{port}{serving}"),
                reference: course.foreign.replace("PORT", &port),
                socket: None,
            }
        } else {
            let path = socket.display().to_string();
            let reference = match client {
                Some(_) => course.foreign.replace("SOCKET", &path),
                None => format!("{scheme}+unix://{path}#counter{}", course.calling),
            };
            Place { listen: first, reference, socket: Some(socket) }
        };
        Self { course, ending, client, log, place, server }
    }

    fn caller(&self) -> Box<dyn Caller> {
        match self.client {
            Some(program) => Box::new(Foreign::start(program, &self.place.reference)),
            None => Box::new(Ours::new(&self.place.reference)),
        }
    }

    fn successor(&self) -> Process {
        let process = Process::start(&self.place.listen, &self.log, settings(self.ending));
        process.open();
        process
    }

    /// Calls that are held, and what happens to them; what each was told.
    fn round(&mut self, first: i32) -> BTreeMap<i32, Told> {
        let caller = self.caller();
        let (held, late) = (first..first + HELD, first + HELD..first + ROUND);
        let begin = |numbers: std::ops::Range<i32>| {
            for number in numbers {
                caller.call(number, number % SLOTS);
            }
        };
        match self.ending {
            Ending::Shutdown | Ending::Goodbye | Ending::Kill => {
                begin(held.clone());
                self.began(held.clone(), HELD);
                let middle = late.start + HELD / 2;
                let mut answered = BTreeMap::new();
                let successor = match self.ending {
                    Ending::Kill => {
                        self.server.kill();
                        // Nobody removes the socket of a process that was killed.
                        self.place.socket.iter().for_each(|socket| drop(std::fs::remove_file(socket)));
                        begin(late.start..middle);
                        self.successor()
                    }
                    Ending::Shutdown => {
                        self.server.terminate();
                        let successor = self.successor();
                        if first / ROUND % 2 == 0 {
                            // No other call comes beside those under way, and all of them are answered.
                            self.server.open();
                            answered = caller.told(HELD);
                            let lost: Vec<_> =
                                answered.values().filter(|told| told.word != "answered").collect();
                            let name = self.course.name;
                            assert!(
                                lost.is_empty(),
                                "{name}: under way at a shutdown, not answered: {lost:?}"
                            );
                        }
                        begin(late.start..middle);
                        successor
                    }
                    _ => {
                        self.server.drain();
                        let successor = self.successor();
                        self.server.stop();
                        begin(late.start..middle);
                        successor
                    }
                };
                self.server.open();
                begin(middle..late.end);
                let many = ROUND - i32::try_from(answered.len()).expect("few");
                answered.extend(caller.told(many));
                if self.ending == Ending::Shutdown {
                    self.server.stopped();
                }
                self.server = successor;
                self.server.shut();
                return answered;
            }
            Ending::Large => {
                self.server.shut();
                begin(held.clone());
                self.began(held, HELD);
                let middle = late.start + HELD / 2;
                for number in late.start..middle {
                    caller.large(number, number % SLOTS);
                }
                begin(middle..late.end);
                self.server.open();
            }
            Ending::Idle => {
                self.server.open();
                for number in first..first + ROUND {
                    caller.call(number, number % SLOTS);
                    // Long enough that others of its connections become idle meanwhile.
                    std::thread::sleep(std::time::Duration::from_micros(400));
                }
            }
            Ending::Newcomers => {
                self.server.shut();
                begin(held.clone());
                // Each has a place and is held, or was refused.
                until("calls begin or are told", || {
                    let (ran, told) = (self.log.read(), caller.tellings().lock().expect("whole"));
                    held.clone().all(|number| ran.began.contains_key(&number) || told.contains_key(&number))
                });
                begin(late.start..late.start + HELD / 2);
                self.server.open();
                begin(late.start + HELD / 2..late.end);
            }
        }
        caller.told(ROUND)
    }

    /// Waits until so many of these calls have begun.
    fn began(&self, numbers: std::ops::Range<i32>, many: i32) {
        let many = usize::try_from(many).expect("few");
        until("calls begin", || {
            let began = self.log.read().began;
            numbers.clone().filter(|number| began.contains_key(number)).count() >= many
        });
    }
}

/// Places for connections where there are few.
const PLACES: i32 = 4;

fn settings(ending: Ending) -> Settings {
    Settings {
        connections: if ending == Ending::Newcomers { PLACES } else { 1000 },
        idle: if ending == Ending::Idle { 4 } else { 0 },
    }
}

/// All endings for one client of one wire.
fn table(course: &Course, who: &str, client: Option<&[String]>) {
    let mut lines = Vec::new();
    let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (ending, what) in ENDINGS {
        let mut cell = Cell::new(course, ending, what, client);
        let mut told = BTreeMap::new();
        for round in 0..calls() / ROUND {
            told.extend(cell.round(round * ROUND));
        }
        let server = &mut cell.server;
        server.open();
        server.kill();
        let log = cell.log.read();
        let mut counts = BTreeMap::from([("answered", 0), ("no", 0), ("maybe", 0), ("ended", 0)]);
        let (mut doubled, mut lost) = (0, 0);
        for (number, told) in &told {
            *counts.get_mut(told.word).expect("one of the words") += 1;
            if told.word != "answered" {
                let text: String = told.text.chars().filter(|c| !c.is_ascii_digit()).collect();
                *reasons.entry(format!("{what}: {}: {text}", told.word)).or_default() += 1;
            }
            let began = log.began.get(number).copied().unwrap_or(0);
            let ended = log.ended.get(number).copied().unwrap_or(0);
            let fits = match told.word {
                "answered" | "ended" => began == 1 && ended == 1,
                "no" => began == 0,
                _ => began <= 1,
            };
            doubled += u32::from(began > 1);
            lost += u32::from(!fits && began <= 1);
            if !fits {
                wrong.push(format!(
                    "{}, {what}: call {number} began {began} times and ended {ended} times; its caller was told {told:?}",
                    course.name
                ));
            }
        }
        let executed = counts["answered"] + counts["ended"];
        lines.push(format!(
            "| {} | {who} | {what} | {executed} | {} | {} | {doubled} doubled, {lost} lost |",
            course.name, counts["no"], counts["maybe"]
        ));
        let all = usize::try_from(calls() / ROUND * ROUND).expect("positive");
        if told.len() != all {
            wrong.push(format!("{what}: {} of {all} calls ended", told.len()));
        }
        if executed == 0 {
            wrong.push(format!("{what}: no call was answered"));
        }
    }
    println!("{}", lines.join("\n"));
    for (reason, times) in &reasons {
        println!("{times} × {reason}");
    }
    assert!(wrong.is_empty(), "{} with {who}:\n{}\n{}", course.name, lines.join("\n"), wrong.join("\n"));
}

/// The server's part of the tests below.
#[test]
#[ignore = "a server that another test starts"]
fn serve_an_ending() {
    house::serve_as_told();
}

macro_rules! ours {
    ($($test:ident: $course:ident;)*) => {$(
        #[test]
        fn $test() {
            table(&$course, "Everywire", None);
        }
    )*};
}

ours! {
    our_calls_begin_at_most_once_however_connections_end_on_giop: GIOP;
    our_calls_begin_at_most_once_however_connections_end_on_dbus: DBUS;
    our_calls_begin_at_most_once_however_connections_end_on_dcom: DCOM;
    our_calls_begin_at_most_once_however_connections_end_on_net_tcp: NET_TCP;
    our_calls_begin_at_most_once_however_connections_end_on_http: HTTP;
}

#[test]
fn calls_of_omniorb_begin_at_most_once_however_connections_end() {
    let test = "calls_of_omniorb_begin_at_most_once_however_connections_end";
    let Some(program) = callers::omniorb(test) else { return };
    table(&GIOP, "omniORB", Some(&program));
}

#[test]
fn calls_of_gdbus_begin_at_most_once_however_connections_end() {
    let test = "calls_of_gdbus_begin_at_most_once_however_connections_end";
    let Some(program) = callers::gdbus(test) else { return };
    table(&DBUS, "GDBus", Some(&program));
}

#[test]
fn calls_of_python_over_http_begin_at_most_once_however_connections_end() {
    let test = "calls_of_python_over_http_begin_at_most_once_however_connections_end";
    let Some(program) = callers::python(test, "http") else { return };
    table(&HTTP, "Python's http.client", Some(&program));
}

#[test]
fn calls_of_pynettcp_begin_at_most_once_however_connections_end() {
    let test = "calls_of_pynettcp_begin_at_most_once_however_connections_end";
    let Some(program) = callers::python(test, "nettcp") else { return };
    table(&NET_TCP, "pynettcp", Some(&program));
}
