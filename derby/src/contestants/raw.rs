//! The measure of the machine: the same bytes as a call, without any protocol. Nobody who uses the same
//! transport in the same way can be faster.
//!
//! Sockets block and use one thread a connection (`stream`); shared memory is looked at without rest
//! (`memory`). A request and a reply have the size of a GIOP call's (`sizes`), and for process data
//! that of a DCOM read's, so that the ratio to raw is that of the protocol alone.
//!
//! Invariant: raw contestants do every operation of a race, or, where it has a floor, that alone;
//! shared memory has one client only.

mod memory;
mod stream;

use super::{Contestant, Missing, Route, ServerPlace, Setup};
use crate::measure::{Plan, measure, several};
use crate::process::Launch;
use crate::race::{ALL, Clients, Operation, Race};
use crate::relay::RelayAddress;
use crate::{broken, unknown};
use everywire_model::Failure;
use std::path::{Path, PathBuf};

/// Raw Unix sockets, raw TCP, raw shared memory.
pub(super) fn all() -> Vec<Contestant> {
    let contestant = |name: &str, title: &str, transport, mode| Contestant {
        name: name.to_owned(),
        title: title.to_owned(),
        family: "raw",
        wire: None,
        transport,
        mode,
        route: Route::Direct,
        published: None,
        setup: Box::new(Raw { transport }),
    };
    vec![
        contestant("raw-unix", "raw Unix socket", "unix", "blocking"),
        contestant("raw-tcp", "raw TCP", "tcp", "blocking"),
        contestant("raw-shm", "raw shared memory", "shm", "spin"),
    ]
}

struct Raw {
    transport: &'static str,
}

/// Bytes of the request and of the reply of an operation, as a call of the usual wire has them: its
/// headers, the name of the operation, and the values. Both are at least 8, which `stream` needs for
/// its lengths.
fn sizes(operation: &Operation) -> (usize, usize) {
    const REQUEST: usize = 76;
    const REPLY: usize = 28;
    /// A length, 24 characters and their end, rounded up.
    const TEXT: usize = 32;
    /// A request and a reply of the other wire, and what each has for an item: a handle; handle, time, quality, a variant and a code.
    const ASKED: [usize; 2] = [84, 4];
    const TOLD: [usize; 2] = [56, 48];
    if let Some(items) = operation.reads.and_then(|reads| usize::try_from(reads.items).ok()) {
        return (ASKED[0] + ASKED[1] * items, TOLD[0] + TOLD[1] * items);
    }
    match operation.name {
        "in_string_call" => (REQUEST + TEXT, REPLY),
        "out_string_call" => (REQUEST, REPLY + TEXT),
        "in_out_string_call" => (REQUEST + TEXT, REPLY + TEXT),
        _ => (REQUEST, REPLY + operation.payload.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)),
    }
}

/// The largest reply that is made room for: more than the 1 MB of race 4.
const LARGEST: usize = 2 << 20;

impl Setup for Raw {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        Ok(None)
    }

    fn enters(&self, race: &Race) -> bool {
        !race.accompanies() && !race.passes()
    }

    /// Instead of a cycle, that which no cycle can do without.
    fn does(&self, race: &Race, operation: &str) -> bool {
        let found = race.operations.iter().find(|known| known.name == operation);
        let reads = found.and_then(|operation| operation.reads);
        let alone = reads.is_none_or(|reads| reads.clients == Clients::One);
        race.floor.is_none_or(|floor| floor == operation) && (alone || self.transport != "shm")
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        let mut launch = Launch::own("raw-server")?.with([self.transport]).with([&stand.ref_file]);
        launch = match self.transport {
            "tcp" => launch.with([format!("{}:{}", stand.host, stand.port.unwrap_or(0))]),
            _ => launch.with([stand.socket()]),
        };
        Ok(Some(match stand.publish {
            Some(RelayAddress::Tcp(port)) => launch.with([format!("{}:{port}", stand.host)]),
            Some(RelayAddress::Unix(path)) => launch.with([path]),
            None => launch,
        }))
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        let spin = if stand.placement.shares_a_cpu() { "yield" } else { "spin" };
        Ok(Launch::own("raw-client")?
            .with([self.transport])
            .with([&stand.ref_file])
            .with([race.name, spin])
            .with(plan.arguments()))
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        (self.transport != "shm").then_some(stream::frames)
    }
}

/// Becomes a server: `TRANSPORT REF-FILE PLACE`, and the place to publish if that is another one.
/// Returns only when it fails.
pub(crate) fn serve(arguments: &[String]) -> Result<(), Failure> {
    let [transport, ref_file, place, publish @ ..] = arguments else {
        return Err(unknown("raw-server: arguments are missing"));
    };
    let ready = |address: String| publish_reference(Path::new(ref_file), publish.first().unwrap_or(&address));
    match transport.as_str() {
        "unix" => stream::serve_unix(Path::new(place), ready),
        "tcp" => stream::serve_tcp(place.parse().map_err(|_| unknown("raw-server: no place"))?, ready),
        "shm" => memory::serve(ready),
        other => Err(unknown(format!("raw-server: unknown transport {other}"))),
    }
}

/// Writes the file in one step: whoever sees it sees all of it.
fn publish_reference(ref_file: &Path, address: &str) -> Result<(), Failure> {
    let partial = PathBuf::from(format!("{}.partial", ref_file.display()));
    std::fs::write(&partial, format!("raw\t{address}\n"))
        .and_then(|()| std::fs::rename(&partial, ref_file))
        .map_err(|error| broken(format!("{}: {error}", ref_file.display())))
}

/// Becomes a client: TRANSPORT REF-FILE RACE spin|yield PLAN.
pub(crate) fn race(arguments: &[String]) -> Result<(), Failure> {
    let [transport, ref_file, race, spin, plan @ ..] = arguments else {
        return Err(unknown("raw-client: arguments are missing"));
    };
    let plan = Plan::parse(plan)?;
    let Some(race) = ALL.iter().find(|known| known.name == race) else {
        return Err(unknown("raw-client: unknown race"));
    };
    let text = std::fs::read_to_string(ref_file).map_err(|error| broken(format!("{ref_file}: {error}")))?;
    let Some(address) = text.trim_end().strip_prefix("raw\t") else {
        return Err(broken(format!("{ref_file}: no address")));
    };
    let mut exchange: Box<dyn Exchange> = match transport.as_str() {
        "shm" => Box::new(memory::Client::open(Path::new(address), spin == "yield")?),
        other => stream(other, address)?,
    };
    for operation in race.operations {
        let (request, reply) = sizes(operation);
        match operation.reads.map(|reads| reads.clients) {
            Some(Clients::Threads(number)) if transport != "shm" && plan.wants(operation.name) => {
                let streams = (0..number).map(|_| stream(transport, address));
                let mut streams = streams.collect::<Result<Vec<_>, _>>()?;
                let calls = streams.iter_mut().map(|stream| || stream.call(request, reply)).collect();
                several::threads(&plan, operation.name, calls)?;
                continue;
            }
            Some(Clients::Processes(number)) if transport != "shm" => {
                let launch = Launch::own("raw-member")?.with([transport.as_str(), address, operation.name]);
                several::processes(&plan, operation.name, number, &launch)?;
                continue;
            }
            Some(Clients::Threads(_) | Clients::Processes(_)) => continue,
            Some(Clients::One) | None => {}
        }
        let exchanges = match race.floor {
            Some(floor) if floor == operation.name => 2,
            Some(_) => continue,
            None => 1,
        };
        measure(&plan, operation.name, operation.payload, 1, || {
            (0..exchanges).try_for_each(|_| exchange.call(request, reply))
        })?;
    }
    Ok(())
}

/// A socket to a server.
fn stream(transport: &str, address: &str) -> Result<Box<dyn Exchange + Send>, Failure> {
    Ok(match transport {
        "unix" => Box::new(stream::unix(Path::new(address))?),
        "tcp" => Box::new(stream::tcp(address.parse().map_err(|_| unknown("raw-client: no place"))?)?),
        other => return Err(unknown(format!("raw-client: unknown transport {other}"))),
    })
}

/// Becomes one of several clients: TRANSPORT ADDRESS OPERATION PLAN.
pub(crate) fn member(arguments: &[String]) -> Result<(), Failure> {
    let [transport, address, operation, plan @ ..] = arguments else {
        return Err(unknown("raw-member: arguments are missing"));
    };
    let mut all = ALL.iter().flat_map(|race| race.operations);
    let Some(operation) = all.find(|known| known.name == operation) else {
        return Err(unknown("raw-member: unknown operation"));
    };
    let (request, reply) = sizes(operation);
    let mut exchange = stream(transport, address)?;
    several::member(&Plan::parse(plan)?, operation.name, || exchange.call(request, reply))
}

/// A connection to a raw server.
trait Exchange {
    /// Sends a request of so many bytes, and waits for a reply of so many.
    fn call(&mut self, request: usize, reply: usize) -> Result<(), Failure>;
}
