//! What is raced: the five published races, their operations, and the figures that were published.
//!
//! The table `ALL` is constant and has no states. Everything that differs between races is a field of
//! `Race` or of `Operation`: no other file asks for a race by its name, but for the placement beside a
//! busy CPU, which only `calls` has unasked.
//!
//! * A race may *accompany* the other one of its number (`signals`, `rates`): it is raced whenever that
//!   is.
//! * Invariant: a headline and every published figure name operations of their race. A test holds that.
//! * The names of operations are those of the contracts under `derby/contracts`, since contestants in
//!   other languages are told them as text.

use crate::contestants::published;
use everywire_model::Failure;

/// One of the five published races.
#[derive(Debug, Clone, Copy)]
pub struct Race {
    /// Its number among the five publications, from 1. Two races may have the same.
    pub number: u8,
    /// The word by which it is asked for.
    pub name: &'static str,
    /// A headline.
    pub title: &'static str,
    /// What is measured, in a sentence.
    pub about: &'static str,
    /// What is called, in the order of the report's columns.
    pub operations: &'static [Operation],
    /// The operation that stands for the race where there is room for one.
    pub headline: &'static str,
    /// What was published, of all systems and distances; empty for the races that accompany another.
    pub published: &'static [PublishedFigure],
    /// Whether it is raced between two network namespaces without being asked.
    pub remote: bool,
    /// Whether a call has the server send signals, which the client then waits for: the time is that of one signal.
    pub signals: bool,
    /// Whether a cycle of several calls is timed, and quoted in milliseconds for 1000 of them.
    pub cycles: bool,
    /// Whether it goes at a rate of its own, so that not the time of a call counts but what it costs both sides: it has no rounds.
    pub rated: bool,
    /// The operation that raw bytes do, if that is one of its own: what the others are put in relation to.
    pub floor: Option<&'static str>,
    /// What is to be said beside its figures.
    pub notes: &'static [&'static str],
}

/// An operation of a race.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Its name, as in the contract.
    pub name: &'static str,
    /// For tables.
    pub short: &'static str,
    /// Bytes that a call transfers, where that is the point.
    pub payload: Option<u64>,
    /// Items that a call reads, and by how many clients at once, where that is the point.
    pub reads: Option<ReadMode>,
    /// The message that passes a hop, and over how many connections at once, where that is the point.
    pub passes: Option<Passes>,
}

/// A message that passes a hop between a client and a backend: a call and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes {
    /// Orders in the answer.
    pub orders: u32,
    /// About so many octets of them.
    pub octets: u32,
    /// Connections that call at once, each from a thread of its own.
    pub connections: u32,
}

/// How items are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadMode {
    /// Items of one call.
    pub items: u32,
    /// Who calls.
    pub clients: Clients,
}

/// Who calls at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// One.
    One,
    /// So many, each a thread with a connection of its own, in one process.
    Threads(u32),
    /// So many, each a process.
    Processes(u32),
}

impl Clients {
    /// How many.
    pub const fn number(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Threads(n) | Self::Processes(n) => n,
        }
    }
}

impl Operation {
    /// Items in a second, of all clients together, where a call of one of them takes so many microseconds.
    pub fn items_per_s(&self, us: f64) -> Option<f64> {
        let reads = self.reads?;
        Some(f64::from(reads.items) * f64::from(reads.clients.number()) * 1e6 / us)
    }
}

/// A published figure.
#[derive(Debug, Clone, Copy)]
pub struct PublishedFigure {
    /// The system.
    pub system: &'static str,
    /// The operation, or what it was called there.
    pub operation: &'static str,
    /// Microseconds for one call; where a rate was published it is converted.
    pub us: f64,
    /// Kilobytes (1000 bytes) a second, where that was published.
    pub kb_per_s: Option<f64>,
    /// Whether it was measured between two machines.
    pub remote: bool,
    /// The CPU time of client and server, in percent of one CPU, as text since ranges were published;
    /// empty where there is none.
    pub cpu: &'static str,
}

impl Race {
    /// What `system` was measured at, on one machine or between two. `None` if nobody published that.
    pub fn published_by(
        &self,
        system: &str,
        operation: &str,
        remote: bool,
    ) -> Option<&'static PublishedFigure> {
        self.published.iter().find(|figure| {
            figure.system == system && figure.operation == operation && figure.remote == remote
        })
    }

    /// Whether figures were published of one machine, of two, or of both: `false` stands for one.
    pub fn distances(&self) -> Vec<bool> {
        let of = |remote: &bool| self.published.iter().any(|figure| figure.remote == *remote);
        [false, true].into_iter().filter(of).collect()
    }

    /// Whether its point is how many bytes a call transfers.
    pub fn transfers(&self) -> bool {
        self.operations.iter().any(|operation| operation.payload.is_some())
    }

    /// Whether its point is how many items a call reads.
    pub fn reads(&self) -> bool {
        self.operations.iter().any(|operation| operation.reads.is_some())
    }

    /// Whether its point is what stands between client and backend.
    pub fn passes(&self) -> bool {
        self.operations.iter().any(|operation| operation.passes.is_some())
    }

    /// Whether it is raced whenever the other race of its number is.
    pub fn accompanies(&self) -> bool {
        self.signals || self.rated
    }

    /// Whether an operation is one of the race's own: what raw bytes do instead (the floor) is in no
    /// verdict.
    pub fn counts(&self, operation: &str) -> bool {
        self.floor != Some(operation)
    }
}

/// An operation of which nothing but the time counts.
const fn call(name: &'static str, short: &'static str) -> Operation {
    Operation { name, short, payload: None, reads: None, passes: None }
}

/// An operation whose point is how many bytes it answers.
const fn transfer(name: &'static str, short: &'static str, bytes: u64) -> Operation {
    Operation { payload: Some(bytes), ..call(name, short) }
}

/// An operation that reads items.
const fn read(name: &'static str, items: u32, clients: Clients) -> Operation {
    Operation { reads: Some(ReadMode { items, clients }), ..call(name, name) }
}

/// A message that passes a hop: so many orders in the answer, of about a hundred octets each, over so
/// many connections at once.
const fn pass(name: &'static str, orders: u32, connections: u32) -> Operation {
    Operation { passes: Some(Passes { orders, octets: orders * 100, connections }), ..call(name, name) }
}

/// The way of the first race by which a server keeps who listens to its events.
pub const CONNECTION_POINT: &str = "connection point";
/// The way of the first race by which a client passes a reference to an object of its own.
pub const CALLBACK: &str = "callback";
/// What no cycle of the first race can do without: to be advised, and to be unadvised.
pub const FLOOR: &str = "two round trips";

/// Reads of the third race: 100 items by one client.
pub const READ_100: &str = "read 100";
/// One item by one client.
pub const READ_1: &str = "read 1";
/// 100 items by each of four clients in one process.
pub const FOUR_THREADS: &str = "read 100, 4 threads";
/// 100 items by each of four clients, each a process.
pub const FOUR_PROCESSES: &str = "read 100, 4 processes";
/// The message of the fifth race that stands for the others.
pub const HEADLINE_PASSED: &str = "10 kB x 32";
/// So many items a second, as was called typical.
pub const TYPICAL: &str = "5,000 items/s";
/// Exception mode, with a hundredth of the items changing.
pub const FEW_CHANGE: &str = "exception mode, 1 % changing";
/// The same with all of them changing.
pub const ALL_CHANGE: &str = "exception mode, all changing";

/// All races, in the order of their numbers; those of one number stand side by side.
pub static ALL: &[Race] = &[
    Race {
        number: 1,
        name: "callbacks",
        title: "Callbacks against connection points",
        about: "One cycle makes the client object and the server object, (finds the connection point,) advises, unadvises, and \
                releases both. The time is that of 1000 cycles.",
        operations: &[
            call(CONNECTION_POINT, "connection point"),
            call(CALLBACK, "callback"),
            call(FLOOR, "two round trips"),
        ],
        headline: CALLBACK,
        published: published::CALLBACKS,
        remote: true,
        signals: false,
        cycles: true,
        rated: false,
        floor: Some(FLOOR),
        notes: published::CALLBACKS_NOTES,
    },
    Race {
        number: 2,
        name: "calls",
        title: "Seven functions",
        about: "Seven functions that take and give nothing, an integer or a string, one call after the other; client and \
                server are two processes of one machine.",
        operations: &[
            call("void_call", "void"),
            call("in_int_call", "in int"),
            call("out_int_call", "out int"),
            call("in_out_int_call", "inout int"),
            call("in_string_call", "in str"),
            call("out_string_call", "out str"),
            call("in_out_string_call", "inout str"),
        ],
        headline: "in_out_int_call",
        published: published::CALLS,
        remote: false,
        signals: false,
        cycles: false,
        rated: false,
        floor: None,
        notes: published::CALLS_NOTES,
    },
    Race {
        number: 2,
        name: "signals",
        title: "Signals to one subscriber",
        about: "The server is told to send 1,000 signals; the client counts those that reach it. The time is that of one \
                signal.",
        operations: &[call("Hello", "signal")],
        headline: "Hello",
        published: &[],
        remote: false,
        signals: true,
        cycles: false,
        rated: false,
        floor: None,
        notes: &[],
    },
    Race {
        number: 3,
        name: "opc",
        title: "Reading process data",
        about: "Synchronous reads of float items from the server's cache, 100 and one at a time, each with value, timestamp and \
                quality. The server changes its values meanwhile, and the reader checks all three.",
        operations: &[
            read(READ_100, 100, Clients::One),
            read(READ_1, 1, Clients::One),
            read(FOUR_THREADS, 100, Clients::Threads(4)),
            read(FOUR_PROCESSES, 100, Clients::Processes(4)),
        ],
        headline: READ_100,
        published: published::ITEMS,
        remote: true,
        signals: false,
        cycles: false,
        rated: false,
        floor: None,
        notes: published::ITEMS_NOTES,
    },
    Race {
        number: 3,
        name: "rates",
        title: "Process data at a rate",
        about: "One client reads 5,000 items a second, 100 at a time; and one hears of the changes of 100,000 items in ten groups that \
                are updated each second (exception mode), where a hundredth of them changes each second, and where all of them do.",
        operations: &[
            Operation { short: "typical", ..read(TYPICAL, 100, Clients::One) },
            Operation { short: "1 % changes", ..read(FEW_CHANGE, 1, Clients::One) },
            Operation { short: "all change", ..read(ALL_CHANGE, 1, Clients::One) },
        ],
        headline: TYPICAL,
        published: &[],
        remote: true,
        signals: false,
        cycles: false,
        rated: true,
        floor: None,
        notes: published::RATES_NOTES,
    },
    Race {
        number: 4,
        name: "bytes",
        title: "Bytes on demand",
        about: "GetBytes(n) answers n bytes: 100 B and 1 MB (1,000,000 B), between two processes of one machine, and between two \
                network namespaces.",
        operations: &[
            transfer(published::SMALL, "100 B", 100),
            transfer(published::LARGE, "1 MB", 1_000_000),
        ],
        headline: published::LARGE,
        published: published::BYTES,
        remote: true,
        signals: false,
        cycles: false,
        rated: false,
        floor: None,
        notes: published::BYTES_NOTES,
    },
    Race {
        number: 5,
        name: "broker",
        title: "The broker that copies messages",
        about: "`Order[] GetOrders(int)` through a hop between client and backend, three processes: the hop passes the message, copies it, changes \
                its headers, in either order, or knows its types. A message is a call with its answer.",
        operations: &[
            pass("100 B", 1, 1),
            pass("1 kB", 10, 1),
            pass("10 kB", 100, 1),
            pass("50 kB", 500, 1),
            pass("100 B x 32", 1, 32),
            pass("1 kB x 32", 10, 32),
            pass(HEADLINE_PASSED, 100, 32),
            pass("50 kB x 32", 500, 32),
        ],
        headline: HEADLINE_PASSED,
        published: published::BROKER,
        remote: false,
        signals: false,
        cycles: false,
        rated: false,
        floor: None,
        notes: published::BROKER_NOTES,
    },
];

/// The races with these names; without names every race. Signals and rates belong to the race that they have the number of.
///
/// # Errors
/// A name is unknown.
pub fn named(names: &[String]) -> Result<Vec<&'static Race>, Failure> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let find = |name: &String| {
        let found = ALL.iter().find(|race| race.name == name);
        found.ok_or_else(|| crate::unknown(format!("there is no race `{name}`")).with_hint(known()))
    };
    let found: Vec<&'static Race> = names.iter().map(find).collect::<Result<_, _>>()?;
    let fits = |race: &&Race| {
        found
            .iter()
            .any(|found| found.name == race.name || (race.accompanies() && found.number == race.number))
    };
    Ok(ALL.iter().filter(fits).collect())
}

fn known() -> String {
    let names: Vec<_> = ALL.iter().map(|race| race.name).collect();
    format!("races are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn races_are_found_by_name() {
        let names = |list: &[&str]| named(&list.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(names(&[]).unwrap().len(), 7);
        assert_eq!(names(&["callbacks"]).unwrap()[0].number, 1);
        assert_eq!(
            names(&["calls"]).unwrap().iter().map(|race| race.name).collect::<Vec<_>>(),
            ["calls", "signals"]
        );
        assert_eq!(names(&["signals"]).unwrap().len(), 1);
        assert_eq!(names(&["bytes"]).unwrap()[0].number, 4);
        assert_eq!(
            names(&["opc"]).unwrap().iter().map(|race| race.name).collect::<Vec<_>>(),
            ["opc", "rates"]
        );
        assert_eq!(names(&["broker"]).unwrap()[0].number, 5);
        assert!(names(&["horses"]).unwrap_err().hint().unwrap().contains("callbacks, calls, signals, opc"));
    }

    #[test]
    fn headlines_are_operations_and_published_figures_name_them() {
        for race in ALL {
            assert!(race.operations.iter().any(|operation| operation.name == race.headline), "{}", race.name);
            // Of what passes a hop forms were published, and no sizes.
            for figure in race.published.iter().filter(|_| !race.passes()) {
                assert!(
                    race.operations.iter().any(|operation| operation.name == figure.operation),
                    "{figure:?}"
                );
            }
        }
    }
}
