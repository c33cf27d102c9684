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

mod acknowledgements;
mod callers;
mod cell;

use crate::common::dcom::{alone, users};
use crate::common::dcopserver::DcopServer;
use crate::common::foreign::bus;
use crate::common::house::Ran;
use crate::common::scratch;
use acknowledgements::Loss;
use callers::{Client, Told};
use cell::Cell;
use everywire_derby::buses::Program;
use everywire_tests::peers::cached;
use std::collections::BTreeMap;

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

/// How connections are evicted between calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evicting {
    /// When they are silent: the quota `idle`.
    Quota,
    /// When they are silent: this option of the address.
    Option(&'static str),
    /// Never for silence, since whoever is silent may wait to be called; but quiet ones make room for others.
    Others,
}

/// A wire, and how its server and its client are addressed.
#[derive(Clone, Copy)]
struct Course<'a> {
    name: &'static str,
    scheme: &'static str,
    serving: &'a str,
    calling: &'static str,
    /// How a foreign client finds the object, with `PORT` or `SOCKET` in it; with `CELL` where that would be the same in all cells.
    foreign: &'a str,
    /// Where a server for foreign clients listens, unless at a socket; 0: where the system likes.
    port: u16,
    /// What clients and servers both connect to instead: its address for servers, without the scheme.
    hub: Option<&'a str>,
    evicting: Evicting,
}

const GIOP: Course<'_> = Course {
    name: "giop",
    scheme: "iiop",
    serving: "",
    calling: "",
    foreign: "corbaloc:iiop:1.2@127.0.0.1:PORT/counter",
    port: 0,
    hub: None,
    evicting: Evicting::Quota,
};
const DBUS: Course<'_> =
    Course { name: "dbus", scheme: "dbus", foreign: "unix:path=SOCKET", evicting: Evicting::Others, ..GIOP };
const DCOM: Course<'_> = Course {
    name: "dcom",
    scheme: "dcom",
    calling: "?exporter=here",
    foreign: "127.0.0.1#CELL",
    port: 135,
    ..GIOP
};
const NET_TCP: Course<'_> = Course {
    name: "net.tcp",
    scheme: "net.tcp",
    serving: "?security=none",
    calling: "?security=none",
    foreign: "net.tcp://127.0.0.1:PORT/counter",
    evicting: Evicting::Option("ReceiveTimeout"),
    ..GIOP
};
const HTTP: Course<'_> = Course {
    name: "http",
    scheme: "basic",
    foreign: "http://127.0.0.1:PORT/counter",
    evicting: Evicting::Option("IdleTimeout"),
    ..NET_TCP
};

/// Rows of the table.
#[derive(Default)]
struct Sheet {
    lines: Vec<String>,
    /// What callers were told, and how often.
    reasons: BTreeMap<String, u32>,
    wrong: Vec<String>,
}

impl Sheet {
    /// Holds what the callers of a row were told against the file.
    fn enter(
        &mut self,
        course: &str,
        who: &str,
        what: &str,
        told: &BTreeMap<i32, Told>,
        log: &Ran,
        all: usize,
    ) {
        let mut counts = BTreeMap::from([("answered", 0), ("no", 0), ("maybe", 0), ("ended", 0)]);
        let (mut doubled, mut lost) = (0, 0);
        for (number, told) in told {
            *counts.get_mut(told.word).expect("one of the words") += 1;
            if told.word != "answered" {
                let text: String = told.text.chars().filter(|c| !c.is_ascii_digit()).collect();
                *self.reasons.entry(format!("{what}: {}: {text}", told.word)).or_default() += 1;
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
                self.wrong.push(format!(
                    "{course}, {what}: call {number} began {began} times and ended {ended} times; its caller was told {told:?}"
                ));
            }
        }
        let executed = counts["answered"] + counts["ended"];
        self.lines.push(format!(
            "| {course} | {who} | {what} | {executed} | {} | {} | {doubled} doubled, {lost} lost |",
            counts["no"], counts["maybe"]
        ));
        if told.len() != all {
            self.wrong.push(format!("{what}: {} of {all} calls ended", told.len()));
        }
        if executed == 0 {
            self.wrong.push(format!("{what}: no call was answered"));
        }
    }

    /// Prints the rows. What a test prints that runs in a network of its own is seen on standard error alone.
    fn close(self) {
        let lines = self.lines.join("\n");
        eprintln!("{lines}");
        for (reason, times) in &self.reasons {
            eprintln!("{times} × {reason}");
        }
        assert!(self.wrong.is_empty(), "{lines}\n{}", self.wrong.join("\n"));
    }
}

/// All endings for one client of one wire.
fn table(course: &Course<'_>, who: &str, client: &Client) {
    let mut sheet = Sheet::default();
    // A server has one connection to a hub, which is neither idle nor a newcomer among others.
    let many = if course.hub.is_some() { 4 } else { ENDINGS.len() };
    for (ending, what) in ENDINGS.into_iter().take(many) {
        let mut cell = Cell::new(course, ending, what, client, who);
        let mut told = BTreeMap::new();
        for round in 0..calls() / ROUND {
            told.extend(cell.round(round * ROUND));
        }
        let all = usize::try_from(calls() / ROUND * ROUND).expect("positive");
        sheet.enter(course.name, who, what, &told, &cell.end(), all);
    }
    sheet.close();
}

macro_rules! ours {
    ($($test:ident: $course:ident;)*) => {$(
        #[test]
        fn $test() {
            table(&$course, "Everywire", &Client::Ours);
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

macro_rules! of_others {
    ($($test:ident: $course:ident, $who:literal, $client:expr;)*) => {$(
        #[test]
        fn $test() {
            let client: fn(&str) -> Option<Client> = $client;
            let Some(client) = client(stringify!($test)) else { return };
            table(&$course, $who, &client);
        }
    )*};
}

of_others! {
    calls_of_omniorb_begin_at_most_once_however_connections_end: GIOP, "omniORB", callers::omniorb;
    calls_of_gdbus_begin_at_most_once_however_connections_end: DBUS, "GDBus", callers::gdbus;
    calls_of_pynettcp_begin_at_most_once_however_connections_end:
        NET_TCP, "pynettcp", |test| callers::python(test, "pynettcp", &["nettcp"]);
    // Any Python would do.
    calls_of_python_over_http_begin_at_most_once_however_connections_end:
        HTTP, "Python's http.client", |test| callers::python(test, "pynettcp", &["http"]);
    calls_of_mono_begin_at_most_once_however_connections_end_on_net_tcp:
        NET_TCP, "Mono", |test| callers::mono(test, "tcp");
    calls_of_mono_begin_at_most_once_however_connections_end_on_http:
        HTTP, "Mono", |test| callers::mono(test, "basic");
}

/// impacket looks for port 135 alone.
#[test]
fn calls_of_impacket_begin_at_most_once_however_connections_end() {
    let test = "calls_of_impacket_begin_at_most_once_however_connections_end";
    if cached(test, "impacket").is_none() || !alone(test) {
        return;
    }
    let Some(client) = callers::impacket(test) else { return };
    let serving = format!("?users={}", users(&scratch("e-users")).display());
    table(&Course { serving: &serving, ..DCOM }, "impacket", &client);
}

/// The name of the server on a bus.
const NAME: &str = "org.example.Counting";

/// A client of a bus, and a server of ours that has a name there.
fn on_a_bus(test: &str, who: &str, client: &Client) {
    let Some(bus) = bus(test, Program::Daemon) else { return };
    let hub = format!(":{}#{NAME}", bus.address());
    let foreign = format!("{}#{NAME}", bus.address());
    table(&Course { name: "dbus, a bus", hub: Some(&hub), foreign: &foreign, ..DBUS }, who, client);
}

#[test]
fn our_calls_begin_at_most_once_however_connections_end_on_a_bus() {
    let test = "our_calls_begin_at_most_once_however_connections_end_on_a_bus";
    on_a_bus(test, "Everywire", &Client::Ours);
}

#[test]
fn calls_of_gdbus_begin_at_most_once_however_connections_end_on_a_bus() {
    let test = "calls_of_gdbus_begin_at_most_once_however_connections_end_on_a_bus";
    let Some(client) = callers::gdbus(test) else { return };
    on_a_bus(test, "GDBus", &client);
}

/// A client of DCOP's server, and an application of ours that is registered there.
fn on_dcop(server: &DcopServer, who: &str, client: &Client) {
    let hub = format!("+unix://{}#counting", server.socket().display());
    let course =
        Course { name: "dcop", scheme: "dcop", hub: Some(&hub), foreign: "counting/counter", ..GIOP };
    table(&course, who, client);
}

#[test]
fn our_calls_begin_at_most_once_however_connections_end_on_dcop() {
    on_dcop(&DcopServer::start("e-dcop", &[]), "Everywire", &Client::Ours);
}

#[test]
fn calls_of_a_peer_made_by_hand_begin_at_most_once_however_connections_end_on_dcop() {
    let test = "calls_of_a_peer_made_by_hand_begin_at_most_once_however_connections_end_on_dcop";
    let server = DcopServer::start("e-dcop-hand", &[]);
    let Some(client) = callers::dcop(test, &server) else { return };
    on_dcop(&server, "made by hand", &client);
}

/// The session goes on over another connection, and with it the calls: all are answered.
#[test]
fn calls_whose_acknowledgements_are_lost_begin_once_over_http() {
    let course =
        Course { name: "http, reliable", scheme: "wshttp", calling: "?security=none&reliable=on", ..HTTP };
    let mut sheet = Sheet::default();
    acknowledgements::row(&course, Loss::Acknowledgement, "cut before the acknowledgement", &mut sheet);
    acknowledgements::row(&course, Loss::Answer, "cut before the answer", &mut sheet);
    assert!(sheet.reasons.is_empty(), "{:?}", sheet.reasons);
    sheet.close();
}

/// The session ends with its connection.
#[test]
fn calls_whose_acknowledgements_are_lost_begin_at_most_once_over_net_tcp() {
    let course = Course { name: "net.tcp, reliable", calling: "?security=none&reliable=on", ..NET_TCP };
    let mut sheet = Sheet::default();
    acknowledgements::row(&course, Loss::Acknowledgement, "cut before the acknowledgement", &mut sheet);
    acknowledgements::row(&course, Loss::Answer, "cut before the answer", &mut sheet);
    acknowledgements::row(&course, Loss::Patience, "late acknowledgement, message sent again", &mut sheet);
    sheet.close();
}
