//! What may stand between a client and a server: nothing, or a program through which every message goes.

use super::Missing;
use crate::broken;
use crate::buses::{Bus, Program, Settings};
use crate::placement::Placement;
use crate::process::{ChildGuard, Launch};
use everywire_model::Failure;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A router has this long to become ready.
const READY: Duration = Duration::from_secs(20);

/// Where our `dcopserver` says where it is.
const AUTHORITY: &str = "authority";

/// What stands between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// Nothing: both sides are peers.
    Direct,
    /// `dbus-daemon`.
    DbusDaemon,
    /// `dbus-broker`.
    DbusBroker,
    /// Our own `dcopserver`.
    Dcopserver,
    /// A forwarder of raw bytes.
    Forwarder,
    /// HAProxy.
    Haproxy,
    /// nginx.
    Nginx,
    /// A router on Mono's WCF.
    MonoRouter,
    /// Our own broker.
    Broker,
}

impl Route {
    /// For tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Direct => "peer to peer",
            Self::DbusDaemon => "dbus-daemon",
            Self::DbusBroker => "dbus-broker",
            Self::Dcopserver => "dcopserver",
            Self::Forwarder => "a forwarder",
            Self::Haproxy => "HAProxy",
            Self::Nginx => "nginx",
            Self::MonoRouter => "a router on Mono",
            Self::Broker => "our broker",
        }
    }

    /// Name and version of the router.
    ///
    /// # Errors
    /// It is not installed.
    pub(super) fn version(self) -> Result<Option<String>, Missing> {
        self.bus().map(Program::version).transpose()
    }

    /// The program of a message bus, if this is one.
    fn bus(self) -> Option<Program> {
        match self {
            Self::DbusDaemon => Some(Program::Daemon),
            Self::DbusBroker => Some(Program::Broker),
            _ => None,
        }
    }

    /// The program finds the router's secrets, and no others, in the directory of the router.
    pub(super) fn at_home(self, launch: Launch, dir: &Path) -> Launch {
        if self != Self::Dcopserver {
            return launch;
        }
        launch
            .where_is("HOME", dir)
            .where_is("ICEAUTHORITY", dir.join("cookies"))
            .where_is("DCOPAUTHORITY", dir.join(AUTHORITY))
    }

    /// Starts the router on the CPU of the server, and waits until it takes connections. `None` for a
    /// direct way, and for hops, which are started when their backend is there.
    ///
    /// # Errors
    /// It is not installed, or is not ready in time.
    pub(crate) fn start(self, dir: &Path, placement: &Placement) -> Result<Option<Router>, Failure> {
        if let Some(program) = self.bus() {
            let settings = Settings { cpu: placement.server, ..Settings::default() };
            let bus = Bus::start(program, &settings)?;
            return Ok(Some(Router {
                address: bus.address().to_owned(),
                socket: bus.socket(),
                id: bus.id(),
                _program: RouterProcess::Bus(bus),
            }));
        }
        // What passes messages on between two others is started when the backend is there.
        if self != Self::Dcopserver {
            return Ok(None);
        }
        let socket = dir.join("hub.sock");
        let launch = self.at_home(Launch::own("hub")?, dir).with([&socket]);
        let mut running = ChildGuard::start(&launch, &placement.server.into(), dir, "hub")?;
        // It tells its clients where it is when it is ready for them.
        running.await_file(&dir.join(AUTHORITY), READY)?;
        let address = socket.to_str().ok_or_else(|| broken("a path that is no text"))?.to_owned();
        Ok(Some(Router { address, id: running.id(), socket, _program: RouterProcess::Own(running) }))
    }
}

/// A router that is ready. It ends when this is dropped.
pub struct Router {
    /// Where it is, in the words of its contestants.
    pub address: String,
    /// Its socket.
    pub socket: PathBuf,
    /// Its process.
    pub id: u32,
    _program: RouterProcess,
}

/// Kept only to be ended.
#[allow(dead_code)]
enum RouterProcess {
    Bus(Bus),
    Own(ChildGuard),
}
