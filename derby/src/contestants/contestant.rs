//! A contestant, how it is started, and where its sides meet.
//!
//! A `Contestant` is a line of a table: names and kinds that never change. What it does is its `Setup`,
//! which holds no state of a race either: it makes `Launch`es, and the engine starts them. So a
//! contestant can be asked in any order and as often as one likes; only `prepare` may take long.
//!
//! Order: `prepare` once; for each placement `server` (and `hop`, when the backend is there); for each
//! round `client`. A `ServerPlace` is made anew for each server, in a directory that no other server has.

use super::{Missing, Route};
use crate::measure::Plan;
use crate::placement::Placement;
use crate::process::Launch;
use crate::race::Race;
use crate::relay::RelayAddress;
use everywire_model::Failure;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// One operation of one client ends after this long at the latest, where calls are counted and no time
/// decides.
pub(crate) const OPERATION: Duration = Duration::from_secs(20);

/// Somebody who races.
pub struct Contestant {
    /// The word by which it is picked, such as `omniorb-tcp`; no other has it.
    pub name: String,
    /// For tables and charts.
    pub title: String,
    /// `raw`, `everywire` or the rival's name: the first word of `name`.
    pub family: &'static str,
    /// Name of the wire; `None` for raw bytes and in process.
    pub wire: Option<&'static str>,
    /// `in-process`, `shm`, `unix` or `tcp`.
    pub transport: &'static str,
    /// `default`, `lowest-latency`, a level of protection, a form of a hop, or what a raw contestant
    /// does. Verdicts compare the default modes.
    pub mode: &'static str,
    /// What stands between its client and its server.
    pub route: Route,
    /// The systems whose published figures stand beside it: in races 2 and 3 the first, in race 4 the
    /// second. `None`: nothing of its kind was published.
    pub published: Option<[&'static str; 2]>,
    /// How to start it.
    pub setup: Box<dyn Setup>,
}

impl Contestant {
    /// Whether it races at this placement. Between two namespaces only TCP without a router leads from
    /// one side to the other.
    pub(crate) fn runs_at(&self, placement: &Placement) -> bool {
        let reaches = !placement.remote || (self.transport == "tcp" && self.route == Route::Direct);
        reaches && self.setup.runs_at(placement)
    }
}

/// How a contestant is started.
pub trait Setup {
    /// Builds what is to be built, once: a second call finds it done. Returns its version, if it has
    /// one of its own.
    ///
    /// # Errors
    /// Something has to be installed first; `Missing` says what and how.
    fn prepare(&self) -> Result<Option<String>, Missing>;
    /// Whether it has what a race asks for. Most have the calls and the bytes; signals, cycles, process
    /// data and hops have to be said.
    fn enters(&self, race: &Race) -> bool {
        !race.signals && !race.cycles && !race.reads() && !race.passes()
    }
    /// Whether it has this operation of a race that it enters.
    fn does(&self, race: &Race, operation: &str) -> bool {
        race.counts(operation)
    }
    /// Its server, which writes `stand.ref_file` when it is ready and then runs until it is killed. `None`: it needs
    /// none.
    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure>;
    /// Its client, which prints a [`crate::measure::Line`] for each operation of the race.
    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure>;
    /// The wire and the binding between its client and its backend, for those that race with a hop between the two or without one; that is a
    /// race of its own.
    fn lane(&self) -> Option<&'static str> {
        None
    }
    /// What stands between client and backend: it listens at `front`, and passes everything on to `back`, both ports of the loopback
    /// interface; the backend is there. `None`: client and backend meet.
    fn hop(&self, _: &ServerPlace<'_>, _front: u16, _back: u16) -> Result<Option<Intermediary>, Failure> {
        Ok(None)
    }
    /// Whether it makes sense at this placement; at the remote one only what speaks TCP, without a router, is asked.
    fn runs_at(&self, _: &Placement) -> bool {
        true
    }
    /// Whether each of its processes takes long to start: it races after the others, and where the time is short only where the
    /// kernel puts it and between two machines, and its frames are not counted.
    fn starts_slowly(&self) -> bool {
        false
    }
    /// About how long [`Setup::prepare`] will take on two CPUs, where that is long and was not done before.
    fn building(&self) -> Duration {
        Duration::ZERO
    }
    /// About how long its server and what stands before it take to start, where there are so many of them that it counts.
    fn starting(&self) -> Duration {
        Duration::ZERO
    }
    /// Whether it has processes that nobody here started, and whose CPU time nobody can tell from that of others.
    fn leaves_helpers(&self) -> bool {
        false
    }
    /// One operation of one client takes no longer, where there is a call that long.
    fn longest(&self) -> Duration {
        OPERATION
    }
    /// Whether all that it does in this race passes a relay in front of its server.
    fn passes_a_relay(&self, _: &Race) -> bool {
        true
    }
    /// A function that counts the frames in one direction of a connection; `None`: a relay cannot see
    /// its bytes.
    fn frames(&self) -> Option<fn(&[u8]) -> usize>;
}

/// A program that stands between a client and a backend, and how one sees that it is ready.
pub struct Intermediary {
    /// It.
    pub launch: Launch,
    /// The file that it writes when it is ready; `None`: it is when it takes connections.
    pub ready: Option<PathBuf>,
}

/// Where a server and its clients meet: all that a `Setup` is told of one of its servers.
pub struct ServerPlace<'a> {
    /// A directory of their own, which is removed after the heat.
    pub dir: &'a Path,
    /// Written by the server, in one step, when it is ready: `NAME<TAB>REFERENCE` lines.
    pub ref_file: PathBuf,
    /// The address of the router that both sides connect to, if there is one.
    pub router: Option<&'a str>,
    /// The port to listen on; `None`: any.
    pub port: Option<u16>,
    /// Where the references point instead of to the server itself: to a relay or a hop, through which
    /// clients then come.
    pub publish: Option<&'a RelayAddress>,
    /// On which CPUs.
    pub placement: &'a Placement,
    /// The address at which the server can be reached over TCP.
    pub host: &'a str,
    /// The same of the client, for those who are called back.
    pub client_host: &'a str,
}

impl ServerPlace<'_> {
    /// The server's socket, for those that have one.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("server.sock")
    }

    /// A socket of the client's own, for those who are called back; no two clients have the same.
    pub fn client_socket(&self) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        self.dir.join(format!("client-{}.sock", COUNT.fetch_add(1, Ordering::Relaxed)))
    }
}
