//! What each of our wires races with: its addresses, the contract that its rivals share, and the figures beside it.
//!
//! The races call one face, that of `bench.idl`; where a wire has a contract of its own, its stub is put behind that face.

use super::super::published::{BYTES_CORBA, CALLBACKS_WIRE, CALLS_CORBA, CALLS_DBUS, CALLS_DCOP};
use super::super::{Route, dbus as rivals};
use super::cycles::{self, Cycles};
use super::servants::{Benchmarking, IRemoteObject};
use super::{dbus, dcom, dcop, servants};
use crate::broken;
use crate::race::Race;
use everywire::model::{Reference, Wire};
use everywire::{Failure, Node};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A wire that races, with its contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// GIOP: `bench.idl`.
    Giop,
    /// D-Bus: `bench.dbus.xml`.
    Dbus,
    /// DCOP: `bench.dcop.kidl`.
    Dcop,
    /// DCOM: `bench.dcom.midl`.
    Dcom,
}

/// The level of protection that is the default.
pub(super) const INTEGRITY: &str = "integrity";

/// The name of what makes server objects, among the references of a server.
const FACTORY: &str = "Factory";

/// What a client calls.
pub(super) struct Stubs {
    pub(super) calls: Arc<dyn Benchmarking>,
    pub(super) bytes: Arc<dyn IRemoteObject>,
    /// Has so many signals sent, and returns when all of them have come.
    pub(super) hear: Option<Hear>,
}

/// Takes the number of signals in a burst.
pub(super) type Hear = Box<dyn FnMut(u32) -> Result<(), Failure>>;

impl Course {
    pub(super) const ALL: [Self; 4] = [Self::Giop, Self::Dbus, Self::Dcop, Self::Dcom];

    /// The wire's name.
    pub(super) fn wire(self) -> &'static str {
        match self {
            Self::Giop => "giop",
            Self::Dbus => rivals::WIRE,
            Self::Dcop => "dcop",
            Self::Dcom => CALLBACKS_WIRE,
        }
    }

    /// The course of the wire with this name.
    pub(super) fn of(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|course| course.wire() == wire)
    }

    /// The course of the wire that this address is of.
    pub(super) fn at(address: &str) -> Self {
        let scheme = address.split(['+', ':']).next().unwrap_or_default();
        Self::of(scheme).unwrap_or(Self::Giop)
    }

    /// The wire for people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Giop => "CORBA",
            Self::Dbus => "D-Bus",
            Self::Dcop => "DCOP",
            Self::Dcom => "DCOM",
        }
    }

    /// The wire itself.
    pub(super) fn speech(self) -> Option<&'static dyn Wire> {
        everywire::wires::named(self.wire())
    }

    /// Messages in one direction of a connection.
    pub(super) fn messages(self, stream: &[u8]) -> usize {
        let stream = if self == Self::Dbus { dbus::without_greeting(stream) } else { stream };
        self.speech().map_or(0, |wire| wire.explain(stream).messages.len())
    }

    /// The same as a function.
    pub(super) fn frames(self) -> fn(&[u8]) -> usize {
        match self {
            Self::Giop => |stream| Self::Giop.messages(stream),
            Self::Dbus => |stream| Self::Dbus.messages(stream),
            Self::Dcop => |stream| Self::Dcop.messages(stream),
            Self::Dcom => |stream| Self::Dcom.messages(stream),
        }
    }

    /// Whether the contract has signals.
    pub(super) fn signals(self) -> bool {
        matches!(self, Self::Dbus | Self::Dcop)
    }

    /// Whose figures stand beside, in race 2 and in race 4.
    pub(super) fn published(self) -> Option<[&'static str; 2]> {
        Some(match self {
            Self::Giop => [CALLS_CORBA, BYTES_CORBA],
            Self::Dbus => [CALLS_DBUS; 2],
            Self::Dcop => [CALLS_DCOP; 2],
            Self::Dcom => return None,
        })
    }

    /// Where a server listens: for peers, or through a router at this address.
    pub(super) fn address(
        self,
        transport: &str,
        socket: &Path,
        port: Option<u16>,
        router: Option<&str>,
        host: &str,
    ) -> String {
        let scheme = match self {
            Self::Giop => "iiop",
            Self::Dbus => "dbus",
            Self::Dcop => "dcop",
            Self::Dcom => "dcom",
        };
        match (router, self) {
            (Some(router), Self::Dbus) => format!("{scheme}:{router}#{}", dbus::NAME),
            (Some(router), _) => format!("{scheme}+unix://{router}#{}", dcop::APPLICATION),
            (None, _) if transport == "tcp" => format!("{scheme}://{host}:{}", port.unwrap_or(0)),
            (None, _) => format!("{scheme}+{transport}://{}", socket.display()),
        }
    }

    /// The text of a reference, through another socket of the router than that of the address it was served at.
    pub(super) fn moved(self, text: &str, address: &str, socket: &str) -> String {
        match address.split_once(':').and_then(|(_, rest)| rest.split_once('#')) {
            Some((router, _)) if self == Self::Dbus => {
                text.replacen(router, &format!("unix:path={socket}"), 1)
            }
            _ => text.to_owned(),
        }
    }

    /// Serves the contract; names and references.
    pub(super) fn export(self, node: &Node, largest: u64) -> Vec<(&'static str, Reference)> {
        match self {
            Self::Giop => {
                let mut all = servants::export(node, largest);
                all.push((FACTORY, cycles::giop::export(node)));
                all
            }
            Self::Dbus => {
                vec![("benchmarking", dbus::export(node, largest)), (FACTORY, cycles::dbus::export(node))]
            }
            Self::Dcop => {
                vec![("benchmarking", dcop::export(node, largest)), (FACTORY, cycles::dcop::export(node))]
            }
            Self::Dcom => {
                let mut all = dcom::export(node, largest);
                all.extend(cycles::dcom::export(node));
                all
            }
        }
    }

    /// Finds the objects of the contract among references by name.
    pub(super) fn connect(self, node: &Node, references: &BTreeMap<&str, &str>) -> Result<Stubs, Failure> {
        let find = |name: &str| {
            references.get(name).copied().ok_or_else(|| broken(format!("no reference `{name}`")))
        };
        match self {
            Self::Giop => Ok(Stubs {
                calls: Arc::clone(node.connect::<dyn Benchmarking>(find("benchmarking")?)?.as_arc()),
                bytes: Arc::clone(node.connect::<dyn IRemoteObject>(find("IRemoteObject")?)?.as_arc()),
                hear: None,
            }),
            Self::Dbus => dbus::connect(node, find("benchmarking")?),
            Self::Dcop => dcop::connect(node, find("benchmarking")?),
            Self::Dcom => dcom::connect(node, find("benchmarking")?, find("IRemoteObject")?),
        }
    }

    /// Whether there is a connection point, and whether there is a callback.
    pub(super) fn cycles(self, route: Route) -> [bool; 2] {
        match self {
            Self::Giop => [false, true],
            // Between peers nobody has to say that they listen.
            Self::Dbus => [route != Route::Direct, true],
            Self::Dcop => [true, false],
            Self::Dcom => [true, true],
        }
    }

    /// Where a client is called back, if its own connections do not do.
    pub(super) fn home(self, transport: &str, socket: &Path, host: &str) -> Option<String> {
        match (self, transport) {
            (_, "in-process") | (Self::Dbus | Self::Dcop, _) => None,
            (Self::Giop | Self::Dcom, _) => Some(self.address(transport, socket, None, None, host)),
        }
    }

    /// Finds what makes server objects.
    pub(super) fn connect_cycles(
        self,
        node: &Node,
        references: &BTreeMap<&str, &str>,
        home: Option<&str>,
    ) -> Result<Cycles, Failure> {
        let factory =
            || references.get(FACTORY).copied().ok_or_else(|| broken(format!("no reference `{FACTORY}`")));
        match self {
            Self::Giop => cycles::giop::connect(node, factory()?, home),
            Self::Dbus => cycles::dbus::connect(node, factory()?, dbus::is_of_a_bus(factory()?)),
            Self::Dcop => cycles::dcop::connect(node, factory()?),
            Self::Dcom => cycles::dcom::connect(node, references, home),
        }
    }

    /// Routes that race, with the second parts of names.
    pub(super) fn routes(self) -> &'static [(Route, &'static str, &'static str)] {
        match self {
            Self::Giop => &[
                (Route::Direct, "shm", "shared memory"),
                (Route::Direct, "unix", "Unix socket"),
                (Route::Direct, "tcp", "TCP"),
            ],
            Self::Dbus => &[
                (Route::Direct, "shm", "shared memory"),
                (Route::Direct, "unix", "Unix socket"),
                (Route::Direct, "tcp", "TCP"),
                (Route::DbusDaemon, "daemon", "dbus-daemon"),
                (Route::DbusBroker, "broker", "dbus-broker"),
            ],
            Self::Dcop => &[(Route::Dcopserver, "hub", "our dcopserver")],
            Self::Dcom => &[
                (Route::Direct, "shm", "shared memory"),
                (Route::Direct, "unix", "Unix socket"),
                (Route::Direct, "tcp", "TCP"),
            ],
        }
    }

    /// Whether a race calls objects that are not among the references of the server.
    pub(super) fn hands_out(self, race: &Race) -> bool {
        match self {
            Self::Giop => race.cycles,
            Self::Dcom => true,
            Self::Dbus | Self::Dcop => false,
        }
    }

    /// Levels of protection that race over this transport: the first is the default. None on wires that have none.
    pub(super) fn levels(self, transport: &str) -> &'static [&'static str] {
        match (self, transport) {
            (Self::Dcom, "tcp") => &[INTEGRITY, "connect", "none"],
            (Self::Dcom, _) => &["none"],
            _ => &[""],
        }
    }

    /// Writes what both sides must know beside the address.
    pub(super) fn introduce(self, dir: &Path) -> Result<(), Failure> {
        if self == Self::Dcom { cycles::dcom::introduce(dir) } else { Ok(()) }
    }

    /// The variable by which they find it.
    pub(super) fn credentials(self, dir: &Path) -> Option<(&'static str, PathBuf)> {
        (self == Self::Dcom).then(|| (cycles::dcom::CREDENTIALS_VARIABLE, cycles::dcom::credentials(dir)))
    }

    /// An address to listen at, at a level of protection.
    pub(super) fn protected(self, address: String, level: &str, transport: &str, dir: &Path) -> String {
        // The kernel vouches for who is at the other end of a socket.
        if self == Self::Dcom && transport == "tcp" {
            cycles::dcom::protected(&address, level, dir)
        } else {
            address
        }
    }
}
