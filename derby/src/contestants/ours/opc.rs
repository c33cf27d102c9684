//! The third race: an OPC server of ours and its clients, in process and over DCOM at each of its
//! levels.
//!
//! Client and server are made of the public crates for OPC, as a user would make them. The server
//! changes its values all the time, and clients check each value that they read (`values`), so that a
//! cache that is never renewed does not win.
//!
//! Contestants differ in transport, in level of protection (those of DCOM over TCP; on sockets of one
//! machine the kernel vouches for the peer) and in the number of the server's event loops.

mod client;
mod rates;
mod server;
pub(in crate::contestants) mod values;

use super::cycles::dcom::{CREDENTIALS_VARIABLE, PASSWORD, USER, credentials, introduce, protected};
use super::{DEFAULT, FAMILY, INTEGRITY, NOWHERE};
use crate::contestants::published::{CALLBACKS_WIRE, ITEMS_DCOM, ITEMS_IN_PROCESS};
use crate::contestants::{Contestant, Missing, Route, ServerPlace, Setup};
use crate::measure::Plan;
use crate::placement::Placement;
use crate::process::Launch;
use crate::race::{Clients, Race, ReadMode};
use crate::unknown;
use everywire::Failure;
use std::path::Path;

/// One event loop serves all clients.
const ONE_SHARD: &str = "one-shard";
/// As many as there are CPUs.
const ALL_SHARDS: &str = "all";

/// All of them, the default first.
pub(super) fn all() -> Vec<Contestant> {
    let contestant = |name: &str, title: &str, transport: &'static str, mode, level, shards| Contestant {
        name: format!("{FAMILY}-opc-{name}"),
        title: format!("Everywire OPC, {title}"),
        family: FAMILY,
        wire: (transport != "in-process").then_some(CALLBACKS_WIRE),
        transport,
        mode,
        route: Route::Direct,
        published: Some([if transport == "in-process" { ITEMS_IN_PROCESS } else { ITEMS_DCOM }; 2]),
        setup: Box::new(Opc { transport, level, shards, mode }),
    };
    let tcp = |name: &str, title: &str, level: &'static str| {
        contestant(name, title, "tcp", if level == INTEGRITY { DEFAULT } else { level }, level, ALL_SHARDS)
    };
    vec![
        contestant("inproc", "in process", "in-process", DEFAULT, "", ALL_SHARDS),
        tcp("tcp", "TCP", INTEGRITY),
        tcp("tcp-connect", "TCP, level connect", "connect"),
        tcp("tcp-privacy", "TCP, level privacy", "privacy"),
        contestant("tcp-one-shard", "TCP, one event loop", "tcp", ONE_SHARD, INTEGRITY, "1"),
        contestant("unix", "Unix socket", "unix", DEFAULT, "none", ALL_SHARDS),
        contestant("shm", "shared memory", "shm", DEFAULT, "none", ALL_SHARDS),
    ]
}

/// One of them. `level` is empty in process.
struct Opc {
    transport: &'static str,
    /// Of protection.
    level: &'static str,
    /// Event loops of the server.
    shards: &'static str,
    mode: &'static str,
}

impl Opc {
    fn is_remote(&self) -> bool {
        self.transport != "in-process"
    }

    /// An address of this transport at this level; `host` with a port, if it is one of those.
    fn address(&self, socket: &Path, place: &str, dir: &Path) -> String {
        let address = match self.transport {
            "tcp" => format!("dcom://{place}"),
            other => format!("dcom+{other}://{}", socket.display()),
        };
        // The kernel vouches for who is at the other end of a socket.
        if self.transport == "tcp" { protected(&address, self.level, dir) } else { address }
    }
}

impl Setup for Opc {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        Ok(None)
    }

    /// What exception mode costs is told by the level that plants must use, and by the cheapest.
    fn enters(&self, race: &Race) -> bool {
        race.reads()
            && (!race.rated
                || (self.transport == "tcp"
                    && ["integrity", "connect"].contains(&self.level)
                    && self.mode != ONE_SHARD))
    }

    fn does(&self, race: &Race, operation: &str) -> bool {
        let found = race.operations.iter().find(|known| known.name == operation);
        let Some(ReadMode { items, clients }) = found.and_then(|operation| operation.reads) else {
            return false;
        };
        match clients {
            Clients::One => race.rated || self.mode != ONE_SHARD || items > 1,
            Clients::Threads(_) | Clients::Processes(_) => self.is_remote(),
        }
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        if !self.is_remote() {
            return Ok(None);
        }
        introduce(stand.dir)?;
        let place = format!("{}:{}", stand.host, stand.port.unwrap_or(0));
        let address = self.address(&stand.socket(), &place, stand.dir);
        Ok(Some(serving(&address, self.shards, stand)?))
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        if !self.is_remote() {
            return Ok(Launch::own("opc-in-process")?.with([race.name]).with(plan.arguments()));
        }
        let home = if race.rated {
            self.address(&stand.client_socket(), &format!("{}:0", stand.client_host), stand.dir)
        } else {
            NOWHERE.to_owned()
        };
        Ok(Launch::own(if race.rated { "opc-rates" } else { "opc-client" })?
            .where_is(CREDENTIALS_VARIABLE, credentials(stand.dir))
            .with([&stand.ref_file])
            .with([home])
            .with([race.name])
            .with(plan.arguments()))
    }

    fn runs_at(&self, placement: &Placement) -> bool {
        self.is_remote() || !placement.parts_the_sides()
    }

    fn passes_a_relay(&self, _: &Race) -> bool {
        // Activation leads to another place than the reference says.
        false
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        None
    }
}

/// A server of the race's items at this address, which anybody's client may read.
pub(in crate::contestants) fn serving(
    address: &str,
    shards: &str,
    stand: &ServerPlace<'_>,
) -> Result<Launch, Failure> {
    Ok(Launch::own("opc-server")?
        .where_is(CREDENTIALS_VARIABLE, credentials(stand.dir))
        .with([&stand.ref_file])
        .with([address, shards]))
}

/// What clients must know to call a server for those that cannot sign.
pub(in crate::contestants) struct Open {
    /// The server.
    pub(in crate::contestants) launch: Launch,
    /// Who may call.
    pub(in crate::contestants) user: &'static str,
    /// How they prove it.
    pub(in crate::contestants) password: &'static str,
    /// Of the server.
    pub(in crate::contestants) class: &'static str,
}

/// A server at port 135 of this host for clients that cannot sign, and how they call it.
pub(in crate::contestants) fn open(stand: &ServerPlace<'_>, host: &str) -> Result<Open, Failure> {
    introduce(stand.dir)?;
    let address = protected(&format!("dcom://{host}:135"), "connect", stand.dir);
    let launch = serving(&format!("{address}&ntlm1=session"), ALL_SHARDS, stand)?;
    Ok(Open { launch, user: USER, password: PASSWORD, class: server::CLASS })
}

/// Becomes a server or a client.
pub(super) fn child(kind: &str, arguments: &[String]) -> Result<(), Failure> {
    match (kind, arguments) {
        ("opc-server", [ref_file, address, shards]) => server::serve(Path::new(ref_file), address, shards),
        ("opc-client", [ref_file, _, race, plan @ ..]) => {
            client::remote(Path::new(ref_file), super::known(race)?, &Plan::parse(plan)?)
        }
        ("opc-member", [ref_file, operation, plan @ ..]) => {
            client::member(Path::new(ref_file), operation, &Plan::parse(plan)?)
        }
        ("opc-in-process", [race, plan @ ..]) => client::in_process(super::known(race)?, &Plan::parse(plan)?),
        ("opc-rates", [ref_file, home, race, plan @ ..]) => {
            rates::run(Path::new(ref_file), home, super::known(race)?, &Plan::parse(plan)?)
        }
        _ => Err(unknown(format!("wrong arguments of a child for OPC: {kind} {}", arguments.join(" ")))),
    }
}
