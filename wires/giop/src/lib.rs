//! The CORBA wire: GIOP over byte streams, CDR values, IOR and corbaloc references.
//!
//! Support level: GIOP 1.0, 1.1 and 1.2 are read and answered in the version of the request; requests go out in the
//! version of the reference, 1.2 by default. Both byte orders, fragments both ways, locate, forward, cancel, close,
//! all three ways to name a target, system and user exceptions, UTF-8, ISO-8859-1 and UTF-16 text, `any`, calls both ways
//! over one connection. Not offered: custom and abstract value types. Every node serves an interface
//! repository of what it serves, and a context of names that can be read.
//!
//! The way through the crate: [`Giop`] is the entry; `address`, `ior` and `components` read and write references;
//! `frame` message headers; `cdr`, `sink`, `source`, `typecodes` and `codesets` values; `session` and the files it
//! names the state of a connection; `limits` and `violations` what is refused and how it is called; `explain` listings. `wire_state`
//! keeps what stands by for all objects of a node: `repository` describes them, `naming` names them; `asking` asks others' repositories.

#![forbid(unsafe_code)]

// Generated code names the runtime as `::everywire`; here that is this crate, as far as the code needs it.
extern crate self as everywire;
pub(crate) use everywire_model as model;

mod address;
mod addressing;
mod addressing_trials;
mod asking;
mod bidirectional;
mod cdr;
mod close;
pub mod codesets;
pub mod components;
pub mod contexts;
mod contracts;
mod exceptions;
mod explain;
mod fragments;
pub mod frame;
mod incoming;
pub mod ior;
pub mod limits;
mod locate;
mod naming;
mod passing;
mod replies;
mod repository;
mod request_header;
mod request_heads;
mod requests;
mod session;
mod sink;
mod sockets;
mod source;
pub mod ssl;
mod typecodes;
mod value_types;
mod values;
pub mod violations;
mod wire_state;

pub use address::CORBALOC_PORT;
pub use values::{CDR, Cdr};

use bytes::Bytes;
use everywire_model::wire::{
    Capabilities, Discovery, Greeting, Listing, MessageListing, PresenceList, Sniff,
};
use everywire_model::{
    BindAddress, Body, Codec, Config, Endpoint, Failure, Incoming, Interface, Object, Objects, Profile,
    Reference, Resolver, Session, Wire, WireState,
};
use session::{GiopSession, Role};
use std::sync::Arc;

/// The wire with its defaults, as it is registered.
pub static GIOP: Giop = Giop::new();

/// The CORBA wire. It holds options only; the state of a connection is in its session, that of a node in
/// `wire_state`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Giop {
    /// Most bytes of a message or fragment that is sent; 0: messages are not split.
    fragment: usize,
}

impl Giop {
    /// The wire with its defaults: messages are not sent in fragments, but for large ones to peers with a mark of Sun's ORBs,
    /// since GlassFish's reads no large message.
    pub const fn new() -> Self {
        Self { fragment: 0 }
    }

    /// The same wire, sending messages of GIOP 1.2 that are larger than `bytes` in fragments of that size (rounded
    /// down to a multiple of 8, at least 40).
    #[must_use]
    pub const fn with_fragments(mut self, bytes: usize) -> Self {
        self.fragment = bytes;
        self
    }
}

impl Wire for Giop {
    fn name(&self) -> &'static str {
        "giop"
    }

    fn title(&self) -> &'static str {
        "CORBA: GIOP 1.0 to 1.2 over IIOP (OMG CORBA 3.3 part 2)"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &["iiop", "iiops", "IOR", "ior", "corbaloc", "corbaname"]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            oneway: true,
            out_parameters: true,
            typed_exceptions: true,
            references: true,
            probe: true,
            cancel: true,
            redirects: true,
            ..Capabilities::default()
        }
    }

    fn hop_header(&self) -> Option<&'static str> {
        Some(contexts::HOPS_NAME)
    }

    fn sniff(&self, first: &[u8]) -> Sniff {
        Greeting::begins(first, &frame::MAGIC)
    }

    fn greetings(&self) -> &'static [Greeting] {
        // A LocateRequest of GIOP 1.0 for the empty key.
        const {
            &[Greeting {
                protocol: "GIOP (CORBA)",
                schemes: "iiop://",
                octets: b"GIOP\x01\0\x01\x03\x08\0\0\0\x01\0\0\0\0\0\0\0",
                answers: |seen| Greeting::begins(seen, &frame::MAGIC),
            }]
        }
    }

    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        address::parse(text)
    }

    fn print(&self, reference: &Reference) -> String {
        address::print(reference)
    }

    fn keeps_unknown_profiles(&self) -> bool {
        true
    }

    fn check_way(&self, profile: &Profile, endpoint: &Endpoint) -> Result<(), Failure> {
        address::check_way(profile, endpoint)
    }

    fn print_friendly(&self, reference: &Reference) -> String {
        address::print_friendly(reference)
    }

    fn publish(&self, type_id: &str, places: &[BindAddress], key: &[u8]) -> Reference {
        let endpoints: Vec<Endpoint> =
            places.iter().flat_map(|place| place.profile().endpoints.iter().cloned()).collect();
        address::publish(type_id, &endpoints, key)
    }

    fn listen(&self, text: &str) -> Result<BindAddress, Failure> {
        let (address, is_bidirectional) = bidirectional::take(text)?;
        let address = address::friendly(&address)?;
        let mut place = BindAddress::socket(self.name(), address.endpoint);
        if is_bidirectional {
            bidirectional::turn_on(&mut place)?;
        }
        Ok(place)
    }

    fn calls_both_ways(&self, config: &Config, accepted: bool) -> bool {
        bidirectional::is_both_ways(config, accepted)
    }

    fn connect(&self, config: &Config) -> Box<dyn Session> {
        Box::new(GiopSession::new(Role::Connecting, config, self.fragment))
    }

    fn accept(&self, config: &Config) -> Box<dyn Session> {
        Box::new(GiopSession::new(Role::Accepting, config, self.fragment))
    }

    fn codec(&self) -> &'static dyn Codec {
        &CDR
    }

    fn operation(&self, interface: &Interface, asked: &Incoming) -> Option<usize> {
        let index = interface.index_of(&asked.operation)?;
        // Servants that stand by are of interfaces of the OMG's, and answer for their own keys only.
        let answers = !interface.id.starts_with("IDL:omg.org/")
            || (repository::answers(interface, &asked.key) && naming::answers(interface, &asked.key));
        answers.then_some(index)
    }

    fn wire_state(&self, objects: Arc<dyn Objects>) -> Option<Arc<dyn WireState>> {
        Some(wire_state::Node::new(objects))
    }

    fn discover(&self, object: &Object) -> Result<Discovery, Failure> {
        asking::discover(object)
    }

    fn look_up(&self, text: &str, resolver: &dyn Resolver) -> Option<Result<Reference, Failure>> {
        naming::look_up(text, resolver)
    }

    fn list(&self, text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
        naming::list(text, resolver)
    }

    fn component(&self, tag: u32, data: &[u8]) -> Option<String> {
        components::words(tag, data)
    }

    fn components(&self, tag: u32, data: &[u8]) -> Option<Vec<(u32, Bytes)>> {
        (tag == ior::TAG_MULTIPLE_COMPONENTS).then(|| components::read(data).ok())?
    }

    fn explain(&self, bytes: &[u8]) -> Listing {
        explain::explain(bytes)
    }

    fn body_of(&self, message: &[u8], explained: &MessageListing, _: Option<&Interface>) -> Option<Body> {
        explain::body(message, explained)
    }
}
