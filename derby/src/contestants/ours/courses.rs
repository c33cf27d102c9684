//! What each of our wires races with: its addresses, the contract that its rivals share, and the
//! figures beside it.
//!
//! The races call one face, that of `bench.idl`; where a wire has a contract of its own, its stub is
//! put behind that face. A `WireCourse` is a wire, a `CourseRoute` leads from clients to a server of it. Both are
//! constants: what is decided for one contestant is an argument.
//!
//! Invariant: all that the derby knows of a wire of ours beside its stubs is here, in one `match` for
//! each question, so a new wire is found by the compiler.

use super::super::frames::messages;
use super::super::published::{
    BYTES_CORBA, BYTES_NAMED_PIPE, BYTES_NET_TCP, BYTES_WS_HTTP, CALLBACKS_WIRE, CALLS_CORBA, CALLS_DBUS,
    CALLS_DCOP,
};
use super::super::{Route, dbus as rivals, mono as services};
use super::cycles::{self, Cycles};
use super::servants::{Benchmarking, IRemoteObject};
use super::stubs::Stubs;
use super::{dbus, dcom, dcop, servants, wcf};
use crate::broken;
use crate::race::Race;
use everywire::model::{Reference, Wire};
use everywire::{Failure, Node};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A wire that races, with its contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireCourse {
    /// GIOP: `bench.idl`.
    Giop,
    /// D-Bus: `bench.dbus.xml`.
    Dbus,
    /// DCOP: `bench.dcop.kidl`.
    Dcop,
    /// DCOM: `bench.dcom.midl`.
    Dcom,
    /// WCF: `bench.wsdl`.
    Wcf,
}

/// The level of protection that is the default.
pub(super) const INTEGRITY: &str = "integrity";

/// In place of a level: servers of GIOP call back on the connection that the client has made.
pub(super) const BOTH_WAYS: &str = "bidirectional";

/// The name of what makes server objects, among the references of a server.
const FACTORY: &str = "Factory";

/// A way from clients to a server; each becomes a contestant.
#[derive(Debug)]
pub(super) struct CourseRoute {
    /// The second part of a contestant's name.
    pub(super) name: &'static str,
    /// `shm`, `unix` or `tcp`.
    pub(super) transport: &'static str,
    /// For people.
    pub(super) title: &'static str,
    /// The scheme of its addresses, without the transport.
    pub(super) scheme: &'static str,
    pub(super) route: Route,
    /// Whose figures stand beside, in race 2 and in race 4.
    pub(super) published: Option<[&'static str; 2]>,
}

impl CourseRoute {
    const fn new(
        name: &'static str,
        transport: &'static str,
        title: &'static str,
        scheme: &'static str,
        published: Option<[&'static str; 2]>,
    ) -> Self {
        Self { name, transport, title, scheme, route: Route::Direct, published }
    }

    /// Over each transport.
    const fn all(scheme: &'static str, published: Option<[&'static str; 2]>) -> [Self; 3] {
        [
            Self::new("shm", "shm", "shared memory", scheme, published),
            Self::new("unix", "unix", "Unix socket", scheme, published),
            Self::new("tcp", "tcp", "TCP", scheme, published),
        ]
    }

    /// Through a router, which is reached over its Unix socket.
    const fn routed(
        route: Route,
        name: &'static str,
        title: &'static str,
        scheme: &'static str,
        published: Option<[&'static str; 2]>,
    ) -> Self {
        Self { route, ..Self::new(name, "unix", title, scheme, published) }
    }
}

static GIOP: [CourseRoute; 3] = CourseRoute::all("iiop", Some([CALLS_CORBA, BYTES_CORBA]));
static DBUS: [CourseRoute; 5] = {
    const FIGURES: Option<[&str; 2]> = Some([CALLS_DBUS; 2]);
    let [shm, unix, tcp] = CourseRoute::all("dbus", FIGURES);
    [
        shm,
        unix,
        tcp,
        CourseRoute::routed(Route::DbusDaemon, "daemon", "dbus-daemon", "dbus", FIGURES),
        CourseRoute::routed(Route::DbusBroker, "broker", "dbus-broker", "dbus", FIGURES),
    ]
};
static DCOP: [CourseRoute; 1] =
    [CourseRoute::routed(Route::Dcopserver, "hub", "our dcopserver", "dcop", Some([CALLS_DCOP; 2]))];
static DCOM: [CourseRoute; 3] = CourseRoute::all("dcom", None);
/// The bindings; those over HTTP as they are found in the wild, over TCP.
static WCF: [CourseRoute; 6] = [
    CourseRoute::new("shm", "shm", "NetTcp in shared memory", "net.tcp", Some([BYTES_NET_TCP; 2])),
    CourseRoute::new("pipe", "unix", "NamedPipe (Unix socket)", "net.tcp", Some([BYTES_NAMED_PIPE; 2])),
    CourseRoute::new("nettcp", "tcp", "NetTcp", "net.tcp", Some([BYTES_NET_TCP; 2])),
    CourseRoute::new("basic", "tcp", "BasicHttp", "basic", None),
    CourseRoute::new("ws", "tcp", "WSHttp", "wshttp", Some([BYTES_WS_HTTP; 2])),
    CourseRoute::new("binhttp", "tcp", "binary over HTTP", "binhttp", None),
];

impl WireCourse {
    pub(super) const ALL: [Self; 5] = [Self::Giop, Self::Dbus, Self::Dcop, Self::Dcom, Self::Wcf];

    /// The wire's name.
    pub(super) fn wire(self) -> &'static str {
        match self {
            Self::Giop => "giop",
            Self::Dbus => rivals::WIRE,
            Self::Dcop => "dcop",
            Self::Dcom => CALLBACKS_WIRE,
            Self::Wcf => services::WIRE,
        }
    }

    /// The course of the wire with this name.
    pub(super) fn of(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|course| course.wire() == wire)
    }

    /// The course of the wire that this address is of, by its scheme; that of GIOP if nobody knows the
    /// scheme.
    pub(super) fn at(address: &str) -> Self {
        let scheme = address.split(['+', ':']).next().unwrap_or_default();
        let wire = everywire::wires::ALL.iter().find(|wire| wire.schemes().contains(&scheme));
        wire.and_then(|wire| Self::of(wire.name())).unwrap_or(Self::Giop)
    }

    /// The wire for people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Giop => "CORBA",
            Self::Dbus => "D-Bus",
            Self::Dcop => "DCOP",
            Self::Dcom => "DCOM",
            Self::Wcf => "WCF",
        }
    }

    /// The wire itself.
    pub(super) fn speech(self) -> Option<&'static dyn Wire> {
        everywire::wires::named(self.wire())
    }

    /// Messages in one direction of a connection.
    pub(super) fn messages(self, stream: &[u8]) -> usize {
        messages(self.wire(), stream)
    }

    /// The same as a function, which a relay is given.
    pub(super) fn frames(self) -> fn(&[u8]) -> usize {
        match self {
            Self::Giop => |stream| Self::Giop.messages(stream),
            Self::Dbus => |stream| Self::Dbus.messages(stream),
            Self::Dcop => |stream| Self::Dcop.messages(stream),
            Self::Dcom => |stream| Self::Dcom.messages(stream),
            Self::Wcf => |stream| Self::Wcf.messages(stream),
        }
    }

    /// Whether the contract has signals.
    pub(super) fn signals(self) -> bool {
        matches!(self, Self::Dbus | Self::Dcop)
    }

    /// Where a server listens: for peers, or through a router at this address.
    pub(super) fn address(
        self,
        way: &CourseRoute,
        socket: &Path,
        port: Option<u16>,
        router: Option<&str>,
        host: &str,
    ) -> String {
        let scheme = way.scheme;
        match (router, self) {
            (Some(router), Self::Dbus) => format!("{scheme}:{router}#{}", dbus::NAME),
            (Some(router), _) => format!("{scheme}+unix://{router}#{}", dcop::APPLICATION),
            (None, _) if way.transport == "tcp" => format!("{scheme}://{host}:{}", port.unwrap_or(0)),
            (None, _) => format!("{scheme}+{}://{}", way.transport, socket.display()),
        }
    }

    /// The text of a reference that leads through another socket than that of the address it was served
    /// at, be it the router's or its own. On most wires the endpoint in the reference says all, and
    /// nothing is to be done.
    pub(super) fn moved(self, text: &str, address: &str, socket: &str) -> String {
        match address.split_once(':').and_then(|(_, rest)| rest.split_once('#')) {
            Some((router, _)) if self == Self::Dbus => {
                text.replacen(router, &format!("unix:path={socket}"), 1)
            }
            _ if self == Self::Wcf => wcf::moved(text, address),
            _ => text.to_owned(),
        }
    }

    /// Serves the contract, and returns the names and references that clients look for. The node must
    /// listen already, since a reference says where.
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
            Self::Wcf => vec![(wcf::SERVICE, wcf::export(node, largest))],
        }
    }

    /// Finds the objects of the contract among references by name.
    ///
    /// # Errors
    /// A name is missing, a reference is wrong, or nobody answers there.
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
            Self::Wcf => wcf::connect(node, find(wcf::SERVICE)?),
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
            Self::Wcf => [false, false],
        }
    }

    /// Where a client listens to be called back; `None` where calls come back by the connection that it
    /// has made.
    pub(super) fn home(self, way: &CourseRoute, socket: &Path, host: &str) -> Option<String> {
        match self {
            Self::Dbus | Self::Dcop | Self::Wcf => None,
            Self::Giop | Self::Dcom => Some(self.address(way, socket, None, None, host)),
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
            Self::Wcf => Ok(Cycles::default()),
        }
    }

    /// How clients reach servers, each way a contestant.
    pub(super) fn ways(self) -> &'static [CourseRoute] {
        match self {
            Self::Giop => &GIOP,
            Self::Dbus => &DBUS,
            Self::Dcop => &DCOP,
            Self::Dcom => &DCOM,
            Self::Wcf => &WCF,
        }
    }

    /// Whether a race calls objects that are not among the references of the server: what a relay is
    /// put in front of would then be passed by.
    pub(super) fn hands_out(self, race: &Race) -> bool {
        match self {
            Self::Giop => race.cycles,
            Self::Dcom => true,
            Self::Dbus | Self::Dcop | Self::Wcf => false,
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

    /// Writes what both sides must know beside the address into the directory of the contestant, before
    /// its server starts.
    pub(super) fn introduce(self, dir: &Path) -> Result<(), Failure> {
        if self == Self::Dcom { cycles::dcom::introduce(dir) } else { Ok(()) }
    }

    /// The variable by which they find it.
    pub(super) fn credentials(self, dir: &Path) -> Option<(&'static str, PathBuf)> {
        (self == Self::Dcom).then(|| (cycles::dcom::CREDENTIALS_VARIABLE, cycles::dcom::credentials(dir)))
    }

    /// An address to listen at, at a level of protection, with the options that the wire needs.
    pub(super) fn protected(self, address: String, level: &str, transport: &str, dir: &Path) -> String {
        // The kernel vouches for who is at the other end of a socket.
        match self {
            Self::Dcom if transport == "tcp" => cycles::dcom::protected(&address, level, dir),
            Self::Wcf => wcf::open(&address, transport),
            Self::Giop if level == BOTH_WAYS => format!("{address}?bidirectional=on"),
            _ => address,
        }
    }
}
