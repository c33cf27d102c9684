//! A wire made for these tests: as little protocol as a session can have, so that what fails is the runtime.
//!
//! ```text
//! u32 length of the rest | u8 kind | u64 call | kind-specific
//! kind 0 call    u8 oneway | u8 len, key | u8 len, operation | values
//! kind 1 results values        kind 2 failure text        kind 3 probe  u8 len, key        kind 4 goodbye
//! kind 5 signal  u8 len, key | u8 len, name | values      (sent to every peer; subscribing is local)
//! kind 6 full    from now on nothing is read from whoever said so, who gets the same back
//! kind 7 account u8 len, name                             (who is believed to be whoever says so)
//! kind 8 withdrawn                                        (whoever made the call wants no answer)
//! kind 9 keeps busy                                       (the event loop, for as long as the test says)
//! ```
//! Values: little-endian numbers, text and bytes with a u32 length.

#![allow(dead_code, unused_imports, unreachable_pub, clippy::unwrap_used, missing_docs)]

mod measure;
mod probe;
mod raw;
mod session;
mod values;

pub use measure::{LONG, SHORT, alone, block_on, cpu, descriptors, until, until_all_sleep};
pub use probe::{Does, Honest, Probe, Ticked, interface};
pub use raw::{Frame, Raw, Router, call, name, ticked};

use bytes::Bytes;
use everywire_model::*;
use everywire_runtime::{Builder, Node};
use session::PlainSession;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use values::PlainCodec;

/// Clients make a connection for calls, servers listen.
pub static PLAIN: Plain = Plain::of(&["plain"]);
/// Servers may call back on the connection that their client made.
pub static PLAINBACK: Plain = Plain { callbacks: true, ..Plain::of(&["plainback"]) };
/// Servers connect to a router and are called on that connection.
pub static PLAINHUB: Plain = Plain { joins: true, ..Plain::of(&["plainhub"]) };
/// A connection carries one call at a time.
pub static PLAINSERIAL: Plain = Plain { serial: true, ..Plain::of(&["plainserial"]) };

/// Carries no signals.
pub static PLAINMUTE: Plain = Plain { mute: true, ..Plain::of(&["plainmute"]) };

/// Makes what a wire keeps for a node.
pub type Keep = fn(Arc<dyn Objects>) -> Arc<dyn WireState>;

/// What becomes of a call without an answer when its connection ends.
pub type Fate = fn(&Profile, CallId) -> Outcome<Body>;

pub struct Plain {
    pub schemes: &'static [&'static str],
    pub callbacks: bool,
    pub joins: bool,
    /// Whether a connection carries one call at a time.
    pub serial: bool,
    /// Whether it carries no signals.
    pub mute: bool,
    /// What it keeps for a node; then a connection is for keys with the same first byte.
    pub keeps: Option<Keep>,
    /// What a session knows of its calls when its connection ends; nothing, if it knows no more than that.
    pub fate: Option<Fate>,
    /// The times that sessions are given with what comes.
    pub times: Option<&'static Mutex<Vec<Instant>>>,
    /// Whether something is due at any time, and a reply takes so long to be read that the event loop comes to see to it.
    pub restless: bool,
    /// By what sessions measure the time of a message, instead of by its age.
    pub slowness: Option<&'static Slowness>,
    /// What asks a server who it is.
    pub greets: &'static [wire::Greeting],
    /// What a session does with a message that keeps its event loop busy.
    pub keeps_busy: fn(),
}

/// How sessions see the time of a message that has begun, told by a test.
pub struct Slowness {
    /// Whether its time is over.
    pub late: AtomicBool,
    /// How often it was looked at.
    pub looks: AtomicUsize,
    /// How long the peer was said to have been unread in all, in microseconds; then no message is late.
    pub unread: AtomicU64,
}

impl Slowness {
    pub const fn new() -> Self {
        Self { late: AtomicBool::new(false), looks: AtomicUsize::new(0), unread: AtomicU64::new(0) }
    }
}

/// Options of addresses: a connection is for keys with the same first byte.
#[derive(PartialEq, Eq, Hash)]
struct FirstByte;

impl std::fmt::Display for FirstByte {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("scope=first-byte")
    }
}

impl Options for FirstByte {
    fn scope(&self, profile: &Profile) -> Bytes {
        profile.key.slice(..1)
    }
}

impl Plain {
    /// A wire for calls, of connections that carry several at once.
    pub const fn of(schemes: &'static [&'static str]) -> Self {
        Self {
            schemes,
            callbacks: false,
            joins: false,
            serial: false,
            mute: false,
            keeps: None,
            fate: None,
            times: None,
            restless: false,
            slowness: None,
            greets: &[],
            keeps_busy: || {},
        }
    }
}

/// A node with so many event loops.
pub fn node(shards: usize) -> Node {
    Builder::new(&[&PLAIN, &PLAINBACK, &PLAINHUB, &PLAINSERIAL]).shards(shards).build()
}

/// The address of the object `probe` at an address as `Node::listen` returned it.
pub fn probe_at(bound: &str) -> String {
    let separator = if bound.contains('#') || bound.ends_with('/') { "" } else { "/" };
    format!("{bound}{separator}probe")
}

/// A server with a servant, the servant's reference there, and the address of it.
pub fn serve(address: &str, servant: Arc<dyn Probe>) -> (Node, Ref<dyn Probe>, String) {
    let server = node(1);
    let bound = server.listen(address).unwrap();
    let exported = server.export::<dyn Probe>("probe", servant);
    (server, exported, probe_at(&bound))
}

/// An address on each transport; `test` makes it this test's own.
pub fn addresses(test: &str) -> Vec<String> {
    let name = name(test);
    vec![
        format!("plain://{}:0", own_loopback()),
        format!("plain+unix://@{name}-u"),
        format!("plain+shm://@{name}-s"),
    ]
}

/// An address of the loopback network that no other process has: a port of it that is given back is taken by nobody else before whoever
/// comes next listens there again.
fn own_loopback() -> String {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    format!("127.{}.{middle}.{low}", 64 | (high & 0x3f))
}

impl Wire for Plain {
    fn name(&self) -> &'static str {
        self.schemes[0]
    }
    fn title(&self) -> &'static str {
        "the plain wire of the runtime's tests"
    }
    fn schemes(&self) -> &'static [&'static str] {
        self.schemes
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            oneway: true,
            probe: true,
            signals: !self.mute,
            callbacks_on_connection: self.callbacks,
            ..Capabilities::default()
        }
    }
    fn sniff(&self, _: &[u8]) -> Sniff {
        Sniff::Yes
    }
    fn greetings(&self) -> &'static [wire::Greeting] {
        self.greets
    }
    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        let address = Address::parse(text, None)?;
        Ok(self.publish("", &[BindAddress::socket(self.name(), address.endpoint)], &address.key))
    }
    fn print(&self, reference: &Reference) -> String {
        let profile = &reference.profiles[0];
        let endpoint = profile.endpoints[0].clone();
        Address { scheme: self.name().into(), endpoint, key: profile.key.clone() }.to_string()
    }
    fn print_friendly(&self, reference: &Reference) -> String {
        self.print(reference)
    }
    fn publish(&self, type_id: &str, places: &[BindAddress], key: &[u8]) -> Reference {
        let profile = Profile {
            wire: self.name(),
            version: (1, 0),
            endpoints: places.iter().flat_map(|place| place.profile().endpoints.clone()).collect(),
            key: Bytes::copy_from_slice(key),
            options: if self.keeps.is_some() { FirstByte.into() } else { ProfileOptions::default() },
            ..Profile::default()
        };
        Reference { type_id: type_id.into(), profiles: vec![profile], foreign: vec![] }
    }
    fn listen(&self, text: &str) -> Result<BindAddress, Failure> {
        let place = BindAddress::socket(self.name(), Address::parse(text, None)?.endpoint);
        Ok(if self.joins { BindAddress::Join(place.profile().clone()) } else { place })
    }
    fn connect(&self, config: &Config) -> Box<dyn Session> {
        Box::new(PlainSession::new(config, self))
    }
    fn accept(&self, config: &Config) -> Box<dyn Session> {
        Box::new(PlainSession::new(config, self))
    }
    fn wire_state(&self, objects: Arc<dyn Objects>) -> Option<Arc<dyn WireState>> {
        self.keeps.map(|keep| keep(objects))
    }
    fn codec(&self) -> &'static dyn Codec {
        &PlainCodec
    }
    fn explain(&self, _: &[u8]) -> Listing {
        Listing::default()
    }
}
