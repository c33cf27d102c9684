//! The DCOM wire: DCE/RPC over a byte stream (C706, MS-RPCE), NDR, and ORPC on top (MS-DCOM, MS-OAUT).
//!
//! Supported: connection-oriented DCE/RPC 5.0 and 5.1 with fragments, several contexts and several calls
//! under way, NTLM and SPNEGO from level `connect` to `privacy`, Kerberos with the cargo feature `kerberos`
//! of `everywire-auth`; transfer syntax NDR 2.0 (32 bits), in both byte orders on reading; activation, OXID
//! resolution, reference counting and pings in both roles; connection points as subscriptions; `IDispatch`
//! and type information for every object served; endpoint mapper and management interface, all behind one
//! port. Not supported: NDR64, the connectionless protocol, named pipes, the fields of a VT_RECORD, custom marshalling.
//! `docs/wires/dcom.md` says which peers were seen working.
//!
//! [`address`] reads references and places, [`session`] has the state machines of both roles, [`exporter`]
//! what outlives connections, [`standard`] the interfaces that every node and every object answers, [`ndr`]
//! the values.
//!
//! States: this file has none; `Dcom` is a unit struct. A connection's state is in a `Session`, a node's
//! (exports, proxies, ping sets) in the one `exporter::Exporter` that `wire_state` makes for it.
//!
//! Invariants: an `Incoming` of this wire has the IID as 16 octets (little-endian parts) in `interface` and
//! the operation number as 2 octets, little-endian, in `operation`. The number is the one on the wire, which
//! counts the three operations of IUnknown and the four of IDispatch where an interface has them
//! (`opnum_base`). An empty key stands for the node itself: the resolver, the activators and IRemUnknown.

#![forbid(unsafe_code)]

// Generated code names the runtime as `::everywire`; here that is this crate, as far as the code needs it.
extern crate self as everywire;
pub(crate) use everywire_model as model;

pub mod activation;
pub mod address;
pub mod bindings;
mod classes;
pub mod discover;
pub mod explain;
pub mod exporter;
pub mod frame;
pub mod hresult;
pub mod limits;
pub mod list;
mod lock;
pub mod names;
pub mod ndr;
pub mod objref;
pub mod orpc;
mod passing;
pub mod pdu;
pub mod remunknown;
pub mod resolver;
pub mod security;
pub mod session;
pub mod standard;
pub mod stub;
mod tags;
pub mod tower;
pub mod variant;
pub mod violations;
mod ways;
pub mod wine;

pub use ndr::{NDR, Ndr, NdrSink, NdrSource};
pub use security::{Level, Security};
pub use violations::Violation;

use bytes::Bytes;
use everywire_idl::midl;
use everywire_model::wire::{
    Capabilities, Discovery, Greeting, Listing, MemberIndex, MessageListing, PresenceList, Sniff,
};
use everywire_model::{
    BindAddress, Body, Codec, Config, Failure, Hold, Incoming, Interface, InterfaceKind, Object, Objects,
    Profile, Reference, Resolver, Session, Wire, WireState,
};
use std::borrow::Cow;
use std::sync::Arc;
use uuid::{Uuid, uuid};

/// The version of ORPC that this side speaks (MS-DCOM 2.2.11).
pub const VERSION: (u8, u8) = (5, 7);

/// IUnknown.
pub const IUNKNOWN: Uuid = uuid!("00000000-0000-0000-c000-000000000046");
/// IDispatch.
pub const IDISPATCH: Uuid = uuid!("00020400-0000-0000-c000-000000000046");
/// The endpoint mapper.
pub const ENDPOINT_MAPPER: Uuid = uuid!("e1af8308-5d1f-11c9-91a4-08002b14a0fa");
/// The management interface of every server.
pub const MANAGEMENT: Uuid = uuid!("afa8bd80-7d8a-11c9-bef4-08002b102989");
/// IObjectExporter, the OXID resolver.
pub const OBJECT_EXPORTER: Uuid = uuid!("99fcfec4-5260-101b-bbcb-00aa0021347a");

/// IRemoteSCMActivator, which creates objects.
pub const SCM_ACTIVATOR: Uuid = uuid!("000001a0-0000-0000-c000-000000000046");
/// IRemUnknown.
pub const REM_UNKNOWN: Uuid = uuid!("00000131-0000-0000-c000-000000000046");
/// IRemUnknown2.
pub const REM_UNKNOWN2: Uuid = uuid!("00000143-0000-0000-c000-000000000046");
/// IRemoteActivation, whose operation is number 0 although it is called as an object's.
pub const REMOTE_ACTIVATION: Uuid = uuid!("4d9f4ab8-7d1c-11cf-861e-0020af6e7c57");

/// The wire, for the registry.
pub static DCOM: Dcom = Dcom;

/// The implementation of `Wire` for DCOM; it holds no state.
#[derive(Debug, Clone, Copy)]
pub struct Dcom;

/// The identity of an interface on this wire.
pub fn iid_of(interface: &Interface) -> Uuid {
    midl::iid(interface)
}

/// Whether an interface is of another contract language than MIDL, by its identity there. MIDL has no texts among results that are
/// in place: whoever reads the interface as MIDL ([`midl::print`]) finds pointers to them.
pub(crate) fn is_foreign(interface: &Interface) -> bool {
    interface.id.len() != 36 || Uuid::try_parse(&interface.id).is_err()
}

/// Whether calls of an interface carry ORPCTHIS and ORPCTHAT: all do, but those of plain DCE/RPC.
pub fn is_orpc(iid: Uuid) -> bool {
    !matches!(iid, ENDPOINT_MAPPER | MANAGEMENT | OBJECT_EXPORTER)
}

/// Whether an interface is plain DCE/RPC's: nothing stands in front of the values of its calls, and no HRESULT behind them.
pub(crate) fn is_plain(interface: &Interface) -> bool {
    interface.kind == InterfaceKind::Procedures || !is_orpc(iid_of(interface))
}

/// The number on the wire of the first operation that `interface` declares itself. An object's interface
/// begins behind the three operations of IUnknown, a dispatch interface behind four more of IDispatch. Plain
/// DCE/RPC counts from 0, and so does IRemoteActivation, which carries ORPCTHIS but is derived from nothing.
pub fn opnum_base(interface: &Interface) -> u16 {
    if is_plain(interface) || iid_of(interface) == REMOTE_ACTIVATION {
        0
    } else if dispatches(interface) {
        7
    } else {
        3
    }
}

/// The version of an interface: COM's have none, those of plain DCE/RPC say theirs in the identity of the
/// language `dce` (`UUID/MAJOR.MINOR`). A bind of a COM interface says version 0.0, so 0.0 is also what an
/// unreadable version becomes.
pub fn version_of(interface: &Interface) -> (u16, u16) {
    match iid_of(interface) {
        ENDPOINT_MAPPER => return (3, 0),
        MANAGEMENT => return (1, 0),
        _ => {}
    }
    // The IDL reader keeps `UUID/MAJOR.MINOR`; a version without a UUID before it is taken as well.
    let told = interface.identities.iter().find(|(language, _)| language == "dce").map(|(_, id)| id.as_ref());
    let told = told.map(|id: &str| id.rsplit_once('/').map_or(id, |(_, version)| version));
    let (major, minor) = told.and_then(|version| version.split_once('.')).unwrap_or(("0", "0"));
    (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
}

/// Whether an interface is derived from IDispatch.
/// Such an interface has IDispatch's four operations before its own, which moves its numbers by four.
pub fn dispatches(interface: &Interface) -> bool {
    matches!(interface.kind, InterfaceKind::Dual | InterfaceKind::Dispatch)
        || interface.bases.iter().any(|base| iid_of(base) == IDISPATCH || dispatches(base))
}

impl Wire for Dcom {
    fn name(&self) -> &'static str {
        "dcom"
    }

    fn title(&self) -> &'static str {
        "DCOM: DCE/RPC, NDR and ORPC 5.7 (C706, MS-RPCE, MS-DCOM, MS-OAUT)"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &["dcom", "objref"]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // A call without an answer (`MAYBE`, `[maybe]`) is a form of plain DCE/RPC that COM never uses:
            // each ORPC call is answered with an HRESULT at least.
            oneway: false,
            out_parameters: true,
            // An HRESULT and IErrorInfo's texts are all that COM says of a failure.
            typed_exceptions: false,
            signals: true,
            // A connection point calls the sink like any other object, on a connection that the server opens
            // to the client's exporter.
            signals_are_calls: true,
            signals_by_object: false,
            handles: false,
            references: true,
            callbacks_on_connection: false,
            probe: true,
            cancel: true,
            calls_outlive_callers: false,
            forwards: true,
            // Who asks for an object may get one of another exporter. No answer to a call of an object names another.
            redirects: true,
        }
    }

    fn common_interfaces(&self) -> &'static [&'static Interface] {
        &standard::contracts::COMMON
    }

    fn listener_interfaces(&self, of: &Interface) -> Vec<Hold<Interface>> {
        standard::points::sources(of).into_iter().map(|source| source.interface).collect()
    }

    fn makes_objects(&self) -> bool {
        true
    }

    fn carries_futures(&self, way: &Profile) -> bool {
        !security::Security::of(way).dialect.is_wine()
    }

    fn hop_header(&self) -> Option<&'static str> {
        Some(orpc::HOPS_NAME)
    }

    fn handed_over(&self, answer: &Body) -> Option<Body> {
        exporter::handed_over(answer)
    }

    fn sniff(&self, first: &[u8]) -> Sniff {
        frame::sniff(first)
    }

    fn is_message(&self, first: &[u8]) -> bool {
        frame::is_message(first)
    }

    fn greetings(&self) -> &'static [Greeting] {
        const {
            &[Greeting {
                protocol: "DCE/RPC (DCOM)",
                schemes: "dcom://",
                octets: frame::GREETING,
                answers: frame::is_answer,
            }]
        }
    }

    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        address::parse(text)
    }

    fn print_friendly(&self, reference: &Reference) -> String {
        address::print_friendly(reference)
    }

    fn publish(&self, type_id: &str, places: &[BindAddress], key: &[u8]) -> Reference {
        let ways = places
            .iter()
            .map(|place| Profile { key: Bytes::copy_from_slice(key), ..place.profile().clone() });
        Reference { type_id: type_id.to_owned(), profiles: ways.collect(), foreign: Vec::new() }
    }

    fn listen(&self, text: &str) -> Result<BindAddress, Failure> {
        address::listen(text)
    }

    fn connect(&self, config: &Config) -> Box<dyn Session> {
        Box::new(session::Connecting::new(config))
    }

    fn accept(&self, config: &Config) -> Box<dyn Session> {
        Box::new(session::Accepting::new(config))
    }

    fn codec(&self) -> &'static dyn Codec {
        &NDR
    }

    fn operation(&self, interface: &Interface, asked: &Incoming) -> Option<usize> {
        let iid = Uuid::from_bytes_le(*asked.interface.first_chunk()?);
        let opnum = u16::from_le_bytes(*asked.operation.first_chunk()?);
        number(interface, iid, opnum).or_else(|| standard::dispatch_index(interface, iid, opnum))
    }

    fn is_own(&self, asked: &Incoming) -> bool {
        // The node's, or plain DCE/RPC of it: which keys there are, their callers do not name.
        let iid = asked.interface.first_chunk();
        asked.key.is_empty() || iid.is_some_and(|iid| !is_orpc(Uuid::from_bytes_le(*iid)))
    }

    // The CLSID that a client must name in an activation to reach the object under this key.
    fn named_as<'k>(&self, key: &'k [u8]) -> Cow<'k, str> {
        midl::clsid_of_key(key).to_string().into()
    }

    // Keys of objects that stand for one elsewhere are `CLASS`, `SEPARATOR` and a number of their own:
    // statistics count by the class, or each object would have a line of its own.
    fn key_word<'k>(&self, key: &'k [u8]) -> Cow<'k, str> {
        let class = key.split(|octet| *octet == exporter::SEPARATOR).next().unwrap_or_default();
        String::from_utf8_lossy(class)
    }

    fn call_words<'k>(&self, interface: &'k [u8], operation: &'k [u8]) -> (Cow<'k, str>, Cow<'k, str>) {
        let iid = interface.try_into().ok().map(Uuid::from_bytes_le);
        let opnum = operation.try_into().ok().map(u16::from_le_bytes);
        match iid.zip(opnum) {
            // Objects and interfaces are asked for.
            Some((REM_UNKNOWN | REM_UNKNOWN2 | SCM_ACTIVATOR | REMOTE_ACTIVATION, _)) => {
                (Cow::Borrowed(""), Cow::Borrowed(""))
            }
            Some((iid, opnum)) => (iid.to_string().into(), opnum.to_string().into()),
            None => (String::from_utf8_lossy(interface), String::from_utf8_lossy(operation)),
        }
    }

    fn wire_state(&self, objects: Arc<dyn Objects>) -> Option<Arc<dyn WireState>> {
        Some(exporter::Exporter::new(objects))
    }

    fn discover(&self, object: &Object) -> Result<Discovery, Failure> {
        discover::discover(object)
    }

    fn list(&self, text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
        list::list(text, resolver)
    }

    fn protection(&self, profile: &Profile) -> String {
        let security = Security::of(profile);
        let local = !security::is_tcp(profile.endpoints.first());
        match security.level {
            Level::None if local => "none beyond the socket's: whoever may open it can call".to_owned(),
            Level::None => {
                "none: no authentication, no signature, no encryption; whoever reaches the port can call"
                    .to_owned()
            }
            Level::Connect => {
                "level connect: callers are known, but nothing is signed or encrypted".to_owned()
            }
            Level::Privacy => {
                "level privacy: callers are known, every fragment is signed and encrypted".to_owned()
            }
            level => format!(
                "level {}: callers are known and every fragment is signed; nothing is encrypted",
                level.word()
            ),
        }
    }

    fn status(&self, status: i32) -> String {
        let code = status.cast_unsigned();
        match hresult::name(code) {
            Some((symbol, _)) => format!("{code:#010x} ({symbol})"),
            None => format!("{code:#010x}"),
        }
    }

    fn explain(&self, bytes: &[u8]) -> Listing {
        explain::explain(bytes)
    }

    fn body_of(
        &self,
        message: &[u8],
        explained: &MessageListing,
        called: Option<&Interface>,
    ) -> Option<Body> {
        explain::body(message, explained, called.is_some_and(is_plain))
    }

    fn called(&self, explained: &MessageListing, interface: &Interface) -> Option<MemberIndex> {
        explain::called(explained, interface)
    }
}

/// The number in `interface` of the operation that is number `opnum` on the wire of the interface `iid`, which is this one or a
/// base of it.
/// `None`: `iid` is neither of them, or `opnum` lies beyond the last operation or among those of IUnknown and
/// IDispatch, which `standard` answers. The search of bases goes by name, since a derived interface lists the
/// operations of its bases among its own.
fn number(interface: &Interface, iid: Uuid, opnum: u16) -> Option<usize> {
    if interface.kind == InterfaceKind::Class {
        return classes::number(interface, iid, opnum);
    }
    if iid_of(interface) == iid {
        let index = usize::from(opnum.checked_sub(opnum_base(interface))?);
        return (index < interface.operations.len()).then_some(index);
    }
    // IUnknown is a base of nearly all: one without operations is not asked which it is.
    let mut bases = interface.bases.iter().filter(|base| !base.operations.is_empty());
    bases.find_map(|base| {
        let index = number(base, iid, opnum)?;
        let name = &base.operations.get(index)?.name;
        interface.operations.iter().position(|operation| operation.name == *name)
    })
}
