//! What is raced: the five published races, their operations, and the figures that were published.

use crate::contestants::published;
use everywire_model::Failure;

/// One of the five published races.
#[derive(Debug, Clone, Copy)]
pub struct Race {
    /// Its number among the five.
    pub number: u8,
    /// The word by which it is asked for.
    pub name: &'static str,
    /// A headline.
    pub title: &'static str,
    /// What is measured, in a sentence.
    pub about: &'static str,
    /// What is called; empty for races that wait for their wires.
    pub operations: &'static [Operation],
    /// The operation that stands for the race where there is room for one.
    pub headline: &'static str,
    /// What was published.
    pub published: &'static [Published],
    /// Whether it is raced between two network namespaces without being asked.
    pub remote: bool,
    /// Whether a call has the server send signals, which the client then waits for: the time is that of one signal.
    pub signals: bool,
    /// Whether a cycle of several calls is timed, and quoted in milliseconds for 1000 of them.
    pub cycles: bool,
    /// The operation that raw bytes do, if that is one of its own: what the others are put in relation to.
    pub floor: Option<&'static str>,
    /// What is to be said beside its figures.
    pub notes: &'static [&'static str],
    /// What is missing before it can be run; empty if nothing is.
    pub waits_for: &'static str,
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
}

/// A published figure.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// The system.
    pub system: &'static str,
    /// The operation, or what it was called there.
    pub operation: &'static str,
    /// Microseconds for one call.
    pub us: f64,
    /// Kilobytes (1000 bytes) a second, where that was published.
    pub kb_per_s: Option<f64>,
    /// Whether it was measured between two machines.
    pub remote: bool,
}

impl Race {
    /// What `system` was measured at, on one machine or between two.
    pub fn published_by(&self, system: &str, operation: &str, remote: bool) -> Option<&'static Published> {
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

    /// Whether an operation is one of the race's own, and not what raw bytes do instead.
    pub fn counts(&self, operation: &str) -> bool {
        self.floor != Some(operation)
    }

    /// Whether it can be run.
    pub fn runs(&self) -> bool {
        !self.operations.is_empty()
    }
}

const fn call(name: &'static str, short: &'static str) -> Operation {
    Operation { name, short, payload: None }
}

/// The way of the first race by which a server keeps who listens to its events.
pub const CONNECTION_POINT: &str = "connection point";
/// The way of the first race by which a client passes a reference to an object of its own.
pub const CALLBACK: &str = "callback";
/// What no cycle of the first race can do without: to be advised, and to be unadvised.
pub const FLOOR: &str = "two round trips";

/// All five, in the order of their numbers.
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
        floor: Some(FLOOR),
        notes: published::CALLBACKS_NOTES,
        waits_for: "",
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
        floor: None,
        notes: published::CALLS_NOTES,
        waits_for: "",
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
        floor: None,
        notes: &[],
        waits_for: "",
    },
    Race {
        number: 3,
        name: "items",
        title: "Reading process data",
        about: "Synchronous reads of float items, each with value, timestamp and quality.",
        operations: &[],
        headline: "read 100",
        published: published::ITEMS,
        remote: false,
        signals: false,
        cycles: false,
        floor: None,
        notes: &[],
        waits_for: "OPC Data Access",
    },
    Race {
        number: 4,
        name: "bytes",
        title: "Bytes on demand",
        about: "GetBytes(n) answers n bytes: 100 B and 1 MB (1,000,000 B), between two processes of one machine, and between two \
                network namespaces.",
        operations: &[
            Operation { name: published::SMALL, short: "100 B", payload: Some(100) },
            Operation { name: published::LARGE, short: "1 MB", payload: Some(1_000_000) },
        ],
        headline: published::LARGE,
        published: published::BYTES,
        remote: true,
        signals: false,
        cycles: false,
        floor: None,
        notes: published::BYTES_NOTES,
        waits_for: "",
    },
    Race {
        number: 5,
        name: "broker",
        title: "The broker that copies messages",
        about: "Copy a message, change its headers, forward it: messages a second.",
        operations: &[],
        headline: "copy, forward",
        published: published::BROKER,
        remote: false,
        signals: false,
        cycles: false,
        floor: None,
        notes: &[],
        waits_for: "the broker",
    },
];

/// The races with these names; without names every race that runs. Signals belong to the race that they have the number of.
///
/// # Errors
/// A name is unknown, or its race waits for something.
pub fn named(names: &[String]) -> Result<Vec<&'static Race>, Failure> {
    if names.is_empty() {
        return Ok(ALL.iter().filter(|race| race.runs()).collect());
    }
    let find = |name: &String| match ALL.iter().find(|race| race.name == name) {
        Some(race) if race.runs() => Ok(race),
        Some(race) => Err(Failure::new(
            everywire_model::Kind::Unsupported,
            everywire_model::Initiator::User,
            format!("race `{name}` cannot be run yet: it waits for {}", race.waits_for),
        )
        .with_hint(known())),
        None => Err(crate::unknown(format!("there is no race `{name}`")).with_hint(known())),
    };
    let found: Vec<&'static Race> = names.iter().map(find).collect::<Result<_, _>>()?;
    let fits = |race: &&Race| {
        found.iter().any(|found| found.name == race.name || (race.signals && found.number == race.number))
    };
    Ok(ALL.iter().filter(fits).collect())
}

fn known() -> String {
    let names: Vec<_> = ALL.iter().filter(|race| race.runs()).map(|race| race.name).collect();
    format!("races that run: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn races_are_found_by_name() {
        let names = |list: &[&str]| named(&list.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(names(&[]).unwrap().len(), 4);
        assert_eq!(names(&["callbacks"]).unwrap()[0].number, 1);
        assert_eq!(
            names(&["calls"]).unwrap().iter().map(|race| race.name).collect::<Vec<_>>(),
            ["calls", "signals"]
        );
        assert_eq!(names(&["signals"]).unwrap().len(), 1);
        assert_eq!(names(&["bytes"]).unwrap()[0].number, 4);
        assert!(names(&["items"]).unwrap_err().message().contains("OPC Data Access"));
        assert!(names(&["horses"]).unwrap_err().hint().unwrap().contains("callbacks, calls, signals, bytes"));
    }

    #[test]
    fn headlines_are_operations_and_published_figures_name_them() {
        for race in ALL.iter().filter(|race| race.runs()) {
            assert!(race.operations.iter().any(|operation| operation.name == race.headline), "{}", race.name);
            for figure in race.published {
                assert!(
                    race.operations.iter().any(|operation| operation.name == figure.operation),
                    "{figure:?}"
                );
            }
        }
    }
}
