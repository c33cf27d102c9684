//! The DCOP wire: ICE, `QDataStream` values, the side of applications and the server that routes between them.
//!
//! Support level: everything that programs of KDE 3 and Trinity do. Applications register at the server with the cookie
//! of this user, call (several calls at a time), send, search, serve, announce late answers, tell and hear signals;
//! every object tells its functions and interfaces, every application its objects. All types of Qt that have a
//! describable value travel, `QVariant` too. Not offered: the bridge to Qt widgets (object `qt`), proxies; more than one
//! result of a call, and reasons of a failure, for which the protocol has no words.
//!
//! A program of KDE's that waits for an answer serves only its own call tree, whose key is that of its call. What this
//! process calls while all calls that it serves have one key goes out under that key, so such a program can be called
//! back, also by another connection of this process and under the id of that. It cannot be while calls of several trees
//! are served here, for nothing tells which of them a call is made for; nor for a second call at a time in one tree.
//!
//! The way through the crate: [`Dcop`] is the entry; `address`, `servers` and `cookies` find objects and servers; `types`
//! and `variants` name types, `sink`, `source` and `values` carry values; `session` and the files it names are the state
//! of a connection; [`ice`] has frames and handshakes, [`server`] the router; `standard` what every application answers,
//! `discover` and `list` what is asked of them; `limits` and `violations` what is refused and how it is called;
//! `explain` listings.

#![forbid(unsafe_code)]

mod address;
mod calls;
mod cookies;
mod deaths;
mod discover;
mod explain;
pub mod ice;
mod inbound_calls;
mod incoming;
pub mod limits;
mod list;
mod names;
mod oversized;
mod passing;
mod reasons;
mod registration;
mod replies;
mod request_templates;
pub mod server;
mod servers;
mod serving;
mod session;
mod signals;
mod sink;
mod slots;
mod source;
mod standard;
mod strings;
mod trees;
mod types;
mod values;
mod variants;
pub mod violations;

pub use address::{ANY_SUFFIX, APPLICATION};
pub use values::{DATA_STREAM, DataStream};

use everywire_model::wire::{Capabilities, Greeting, Listing, MessageListing, Sniff};
use everywire_model::{
    BindAddress, Body, Codec, Config, Discovery, Failure, Incoming, Interface, Object, Objects, PresenceList,
    Profile, Program, Purpose, Reference, Resolver, Session, Wire, WireState,
};
use session::DcopSession;
use std::sync::Arc;
use violations::ProtocolError;

/// The wire, as it is registered.
pub static DCOP: Dcop = Dcop;

/// The DCOP wire. It has no options; the state of a connection is in its session.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dcop;

impl Dcop {
    /// A session for the connecting side with this cookie, whatever the authority files say.
    pub fn connect_with(&self, config: &Config, cookie: &[u8]) -> Box<dyn Session> {
        Box::new(DcopSession::new(config, Ok(cookie.to_vec())))
    }
}

impl Wire for Dcop {
    fn name(&self) -> &'static str {
        "dcop"
    }

    fn title(&self) -> &'static str {
        "DCOP: Desktop Communication Protocol 2.0 of KDE 3 and Trinity, over ICE"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &["dcop"]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            oneway: true,
            // One result travels, whether it is returned or put out.
            signals: true,
            references: true,
            probe: true,
            ..Capabilities::default()
        }
    }

    fn sniff(&self, first: &[u8]) -> Sniff {
        explain::sniff(first)
    }

    fn greetings(&self) -> &'static [Greeting] {
        // ICE's ByteOrder, which both sides send first.
        const {
            &[Greeting {
                protocol: "ICE (DCOP)",
                schemes: "dcop:",
                octets: &[0, 1, 0, 0, 0, 0, 0, 0],
                answers: explain::sniff,
            }]
        }
    }

    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        address::parse(text)
    }

    fn print_friendly(&self, reference: &Reference) -> String {
        address::print(reference)
    }

    fn publish(&self, type_id: &str, places: &[BindAddress], key: &[u8]) -> Reference {
        address::publish(type_id, places, key)
    }

    fn listen(&self, text: &str) -> Result<BindAddress, Failure> {
        address::listen(text)
    }

    fn connect(&self, config: &Config) -> Box<dyn Session> {
        if config.purpose == Purpose::Monitoring {
            return Box::new(DcopSession::refusing(ProtocolError::NoMonitoring));
        }
        Box::new(DcopSession::new(config, cookies::find(config.profile.endpoints.first())))
    }

    fn accept(&self, _: &Config) -> Box<dyn Session> {
        Box::new(DcopSession::refusing(ProtocolError::NoPeers))
    }

    fn codec(&self) -> &'static dyn Codec {
        &DATA_STREAM
    }

    fn operation(&self, interface: &Interface, asked: &Incoming) -> Option<usize> {
        types::operation(interface, &asked.operation).or_else(|| standard::several(interface, &asked.key))
    }

    fn wire_state(&self, objects: Arc<dyn Objects>) -> Option<Arc<dyn WireState>> {
        Some(Arc::new(standard::Standard::new(objects)))
    }

    fn discover(&self, object: &Object) -> Result<Discovery, Failure> {
        discover::discover(object)
    }

    fn list(&self, text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
        list::list(text, resolver)
    }

    fn programs(&self) -> &'static [Program] {
        std::slice::from_ref(&server::PROGRAM)
    }

    fn protection(&self, _: &Profile) -> String {
        "whoever has the server's cookie may call everybody (MIT-MAGIC-COOKIE-1); no encryption".to_owned()
    }

    fn explain(&self, bytes: &[u8]) -> Listing {
        explain::explain(bytes)
    }

    fn body_of(&self, message: &[u8], explained: &MessageListing, _: Option<&Interface>) -> Option<Body> {
        explain::body(message, explained)
    }
}
