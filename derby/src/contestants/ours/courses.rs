//! What each of our wires races with: its addresses, the contract that its rivals share, and the figures beside it.
//!
//! The races call one face, that of `bench.idl`; where a wire has a contract of its own, its stub is put behind that face.

use super::super::published::{BYTES_CORBA, CALLS_CORBA, CALLS_DBUS, CALLS_DCOP};
use super::super::{Route, dbus as rivals};
use super::servants::{Benchmarking, IRemoteObject};
use super::{dbus, dcop, servants};
use crate::broken;
use everywire::model::{Reference, Wire};
use everywire::{Failure, Node};
use std::collections::BTreeMap;
use std::path::Path;
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
}

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
    pub(super) const ALL: [Self; 3] = [Self::Giop, Self::Dbus, Self::Dcop];

    /// The wire's name.
    pub(super) fn wire(self) -> &'static str {
        match self {
            Self::Giop => "giop",
            Self::Dbus => rivals::WIRE,
            Self::Dcop => "dcop",
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
        }
    }

    /// Whether the contract has signals.
    pub(super) fn signals(self) -> bool {
        self != Self::Giop
    }

    /// Whose figures stand beside, in race 2 and in race 4.
    pub(super) fn published(self) -> [&'static str; 2] {
        match self {
            Self::Giop => [CALLS_CORBA, BYTES_CORBA],
            Self::Dbus => [CALLS_DBUS; 2],
            Self::Dcop => [CALLS_DCOP; 2],
        }
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
            Self::Giop => servants::export(node, largest),
            Self::Dbus => vec![("benchmarking", dbus::export(node, largest))],
            Self::Dcop => vec![("benchmarking", dcop::export(node, largest))],
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
        }
    }
}
