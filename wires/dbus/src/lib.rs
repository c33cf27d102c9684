//! The D-Bus wire: messages, signatures, buses and peers.
//!
//! Support level: clients and servers on a bus, and peer to peer; all types, in both byte orders, with the
//! specification's limits; handles; signals with match rules and watched names; queued names; monitoring; `EXTERNAL`,
//! `DBUS_COOKIE_SHA1` and `ANONYMOUS`; addresses `unix:`, `tcp:`, `nonce-tcp:`, `autolaunch:`; the standard interfaces. Not
//! offered: `unixexec:`, `launchd:`, being a bus.
//!
//! The way through the crate: [`Dbus`] is the entry; `address` and `addresses` read and write references; `frame` message
//! headers; `basics`, `sink`, `source`, `walk` and `signature` values; `session` and the files it names the state of a connection;
//! [`standard`] what everybody is expected to answer; `limits` and `violations` what is refused and how it is called;
//! `explain` listings.

#![forbid(unsafe_code)]

mod address;
mod addresses;
mod admission;
mod basics;
mod dialect;
mod errors;
mod explain;
pub mod frame;
mod greeting;
mod header_cache;
mod header_fields;
mod heads;
mod incoming;
mod joining;
pub mod limits;
pub mod names;
mod nonce;
mod outgoing;
mod passing;
mod pending_calls;
mod replies;
mod requests;
mod routes;
mod serving;
mod session;
mod signals;
mod signature;
mod sink;
mod source;
pub mod standard;
mod subscriptions;
mod values;
pub mod violations;
mod walk;

pub use address::{
    ALLOW_REPLACEMENT, DO_NOT_QUEUE, REPLACE_EXISTING, TAG_AUTH, TAG_BUS, TAG_CALL, TAG_FLAGS, TAG_GUID,
    TAG_NAME, TAG_NONCE,
};
pub use values::{VALUES, Values};

use bytes::Bytes;
use everywire_model::wire::{Capabilities, Greeting, Listing, MemberIndex, MessageListing, Sniff};
use everywire_model::{
    BindAddress, Body, ChangeSignal, Codec, Config, Discovery, Failure, Hold, Incoming, Interface, Limits,
    Object, Objects, PresenceList, Profile, Reference, Resolver, Session, Wire, WireState,
};
use session::DbusSession;
use std::sync::Arc;

/// The wire, as it is registered.
pub static DBUS: Dbus = Dbus;

/// The D-Bus wire. It has no options; the state of a connection is in its session, that of a node in
/// `standard`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dbus;

impl Dbus {
    /// A session peer to peer whose peer is admitted already: for what tests the protocol behind the greeting.
    #[doc(hidden)]
    pub fn admitted(self, config: &Config) -> Box<dyn Session> {
        Box::new(DbusSession::admitted(config))
    }
}

/// `LINKTYPE_DBUS` of tcpdump's list: what `dbus-monitor --pcap` writes.
const LINK_TYPE: u16 = 231;

impl Wire for Dbus {
    fn name(&self) -> &'static str {
        address::WIRE
    }

    fn title(&self) -> &'static str {
        "D-Bus: protocol version 1, over a message bus or peer to peer (D-Bus Specification 0.43)"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &["dbus"]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            oneway: true,
            out_parameters: true,
            typed_exceptions: true,
            signals: true,
            handles: true,
            references: true,
            callbacks_on_connection: true,
            probe: true,
            // `dbus-send` without `--print-reply` leaves at once, and does not set NO_REPLY_EXPECTED. Buses and libdbus deliver its call.
            calls_outlive_callers: true,
            ..Capabilities::default()
        }
    }

    fn default_limits(&self) -> Limits {
        Limits::default().with_message(limits::USUAL)
    }

    fn hop_header(&self) -> Option<&'static str> {
        Some(frame::HOPS_NAME)
    }

    fn news(&self) -> Option<&'static ChangeSignal> {
        Some(&standard::NEWS)
    }

    fn sniff(&self, first: &[u8]) -> Sniff {
        explain::sniff(first)
    }

    fn greetings(&self) -> &'static [Greeting] {
        // A server answers AUTH without a mechanism by those that it has.
        const {
            &[Greeting {
                protocol: "D-Bus",
                schemes: "dbus:// or dbus:",
                octets: b"\0AUTH\r\n",
                answers: |seen| Greeting::begins(seen, b"REJECTED"),
            }]
        }
    }

    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        address::parse(text)
    }

    fn print(&self, reference: &Reference) -> String {
        address::print(reference)
    }

    fn print_friendly(&self, reference: &Reference) -> String {
        address::print_friendly(reference)
    }

    fn publish(&self, type_id: &str, places: &[BindAddress], key: &[u8]) -> Reference {
        address::publish(type_id, places, key)
    }

    fn listen(&self, text: &str) -> Result<BindAddress, Failure> {
        address::listen(text)
    }

    fn connect(&self, config: &Config) -> Box<dyn Session> {
        Box::new(DbusSession::connecting(config))
    }

    fn accept(&self, config: &Config) -> Box<dyn Session> {
        Box::new(DbusSession::accepting(config))
    }

    fn codec(&self) -> &'static dyn Codec {
        &VALUES
    }

    fn operation(&self, interface: &Interface, asked: &Incoming) -> Option<usize> {
        requests::operation(interface, asked)
    }

    fn is_told_by_names(&self, interface: &Interface, index: usize) -> bool {
        requests::is_told_by_names(interface, index)
    }

    fn respell(&self, key: &[u8]) -> Option<Bytes> {
        names::respell(key)
    }

    fn wire_state(&self, objects: Arc<dyn Objects>) -> Option<Arc<dyn WireState>> {
        Some(standard::wire_state(objects))
    }

    fn discover(&self, object: &Object) -> Result<Discovery, Failure> {
        standard::discover(object)
    }

    fn common(&self) -> &'static [Hold<Interface>] {
        &standard::COMMON
    }

    fn list(&self, text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
        standard::list(text, resolver)
    }

    fn protection(&self, profile: &Profile) -> String {
        greeting::protection(profile)
    }

    fn explain(&self, bytes: &[u8]) -> Listing {
        explain::explain(bytes)
    }

    fn body_of(&self, message: &[u8], explained: &MessageListing, _: Option<&Interface>) -> Option<Body> {
        explain::body(message, explained)
    }

    fn called(&self, explained: &MessageListing, interface: &Interface) -> Option<MemberIndex> {
        requests::called(explained, interface)
    }

    fn packet(&self, message: &[u8]) -> Option<u16> {
        explain::is_message(message).then_some(LINK_TYPE)
    }
}
