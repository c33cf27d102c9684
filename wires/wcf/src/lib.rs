//! The WCF wire: net.tcp and the named pipe (MC-NMF framing, .NET binary XML), and SOAP over HTTP.
//!
//! Supported: duplex, singleton and streamed framing with upgrades to TLS and to Windows authentication, sessions and their
//! dictionaries; BasicHttp, WSHttp, binary XML and MTOM over HTTP; one-way, request-reply and duplex contracts, faults with
//! typed detail, headers, reliable sessions; the DataContract mapping; metadata both ways. Not supported: message security
//! beyond a user name over a protected transport, transactions, graphs of objects (`z:Ref` is read as a tree).
//! `docs/wires/wcf.md` says which peers were seen working.
//!
//! [`address`] reads references and places, [`settings`] is what they say; [`framing`] and [`http`] have the state machines of
//! both roles around [`soap`], the messages; [`values`] are their bodies, in [`nbfx`] or as [`text`]; [`metadata`] describes
//! services. Named after the specifications MC-NMF, MC-NBFX, MC-NBFS, MC-NBFSE, MS-NNS, SOAP 1.1 and 1.2, WS-Addressing 1.0.

#![forbid(unsafe_code)]

pub mod address;
pub mod compression;
pub mod dictionary;
pub mod explain;
pub mod framing;
pub mod http;
pub mod layer;
pub mod limits;
mod markup;
pub mod metadata;
pub mod nbfx;
pub mod plan;
pub mod settings;
pub mod soap;
pub mod text;
pub mod throttle;
pub mod values;
pub mod violations;
pub mod wire_state;

pub use settings::Settings;
pub use values::{BodyContext, Form, Layout, QName, XML};
pub use violations::Violation;

use bytes::Bytes;
use everywire_model::contract::note;
use everywire_model::shape::Struct;
use everywire_model::wire::{
    Capabilities, Discovery, Greeting, Listing, MemberIndex, MessageListing, PresenceList, Sniff,
};
use everywire_model::{
    BindAddress, Codec, Config, Contract, Failure, Hold, Incoming, Interface, Limits, Object, Objects,
    Profile, Reference, Resolver, Session, Wire, WireState,
};
use std::sync::Arc;

/// The wire, for the registry.
pub static WCF: Wcf = Wcf;

/// The entry of the wire: it has no state. All that a node keeps stands in `wire_state::Node`, all of a
/// connection in its session.
#[derive(Debug, Clone, Copy)]
pub struct Wcf;

/// The greatest TCP segment at listening sockets, in bytes: `Wcf::segment` says why it is set at all.
/// Sixteen thousand is far below the 64 KiB of a loopback device, and above what real networks carry, so
/// those never notice.
const SEGMENT: u16 = 16_000;

/// The largest message that is sent, in bytes, unless the endpoint's own quota is larger. It protects this
/// side's memory: what a receiver takes is its own quota, and it says so in a fault.
const LARGEST_SENT: u64 = 64 << 20;

impl Wire for Wcf {
    fn name(&self) -> &'static str {
        "wcf"
    }

    fn title(&self) -> &'static str {
        "WCF: net.tcp and named pipe (MC-NMF, MC-NBFSE), SOAP 1.1 and 1.2 over HTTP, WS-Addressing 1.0"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &address::NAMES
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            oneway: true,
            out_parameters: true,
            typed_exceptions: true,
            signals: true,
            signals_by_object: true,
            callbacks_on_connection: true,
            probe: true,
            // By descriptions: no message of SOAP says that an object has moved.
            redirects: true,
            // Of references only nil.
            ..Capabilities::default()
        }
    }

    fn default_limits(&self) -> Limits {
        // What comes is bounded by the quotas of each endpoint (`MaxReceivedMessageSize`), which name themselves. This is for what is
        // sent: a value of few octets elsewhere may be many here.
        Limits::default().with_message(LARGEST_SENT)
    }

    /// What each endpoint takes unless its address says more.
    fn largest_received(&self, _: &Limits) -> u64 {
        limits::Quotas::MAX_RECEIVED_MESSAGE_SIZE
    }

    /// The name of this wire's SOAP header that counts hops: a router reads and raises it to notice rings.
    fn hop_header(&self) -> Option<&'static str> {
        Some(soap::HOPS)
    }

    fn sniff(&self, first: &[u8]) -> Sniff {
        sniff(first)
    }

    fn greetings(&self) -> &'static [Greeting] {
        const {
            &[
                Greeting {
                    protocol: "net.tcp (WCF)",
                    schemes: "net.tcp://",
                    // Version 1.0, duplex, an address, binary with a session, end (MC-NMF 2.2.3).
                    octets: b"\0\x01\0\x01\x02\x02\x14net.tcp://localhost/\x03\x08\x0c",
                    answers: |seen| match seen {
                        [] | [8] | [8, _] => Sniff::More,
                        // An acknowledgement, or a fault: a URL with its length.
                        [0x0b, ..] | [8, _, b'h', ..] => Sniff::Yes,
                        _ => Sniff::No,
                    },
                },
                Greeting {
                    protocol: "HTTP",
                    schemes: "basic://, wshttp://, soap12:// or binhttp://",
                    octets: b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                    answers: |seen| match Greeting::begins(seen, b"HTTP/1.") {
                        // That server answers the other greeting.
                        Sniff::Yes if framing::Accepting::refuses_http(seen) => Sniff::No,
                        told => told,
                    },
                },
            ]
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
        if Settings::of(&config.profile).binding.is_http() {
            http::connecting(config)
        } else {
            Box::new(framing::Connecting::new(config))
        }
    }

    fn accept(&self, config: &Config) -> Box<dyn Session> {
        if Settings::of(&config.profile).binding.is_http() {
            http::accepting(config)
        } else {
            Box::new(framing::Accepting::new(config))
        }
    }

    fn codec(&self) -> &'static dyn Codec {
        &values::XML
    }

    fn callbacks<'c>(&self, contract: &'c Contract, of: &Interface) -> Option<&'c Hold<Interface>> {
        let id = note(&of.notes, "wcf:callback")?;
        contract.interfaces().find(|interface| interface.id == id)
    }

    fn called_back(&self, way: &Profile, key: &Bytes) -> Option<Profile> {
        let mut settings = (*Settings::of(way)).clone();
        if settings.binding.is_http() || settings.mode == settings::Mode::Streamed {
            return None;
        }
        settings.callback = Some(key.clone());
        Some(Profile { options: settings.into(), ..way.clone() })
    }

    fn operation(&self, interface: &Interface, asked: &Incoming) -> Option<usize> {
        plan::index_of(interface, &asked.operation)
    }

    fn wire_state(&self, objects: Arc<dyn Objects>) -> Option<Arc<dyn WireState>> {
        Some(wire_state::Node::new(objects))
    }

    fn segment(&self, place: &Profile) -> Option<u16> {
        // Microsoft's framing clients make their receive buffers 8 KiB when they are connected: the large segments of a
        // loopback device do not fit, and are sent again after 200 ms. Smaller ones cost nobody anything that shows.
        (!Settings::of(place).binding.is_http()).then_some(SEGMENT)
    }

    fn discover(&self, object: &Object) -> Result<Discovery, Failure> {
        metadata::discover(object)
    }

    fn list(&self, text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
        metadata::list(text, resolver)
    }

    fn protection(&self, profile: &Profile) -> String {
        address::protection(profile)
    }

    fn explain(&self, bytes: &[u8]) -> Listing {
        explain::explain(bytes)
    }

    fn called(&self, explained: &MessageListing, interface: &Interface) -> Option<MemberIndex> {
        explain::called(explained, interface)
    }

    fn is_raised(&self, explained: &MessageListing, exception: &Struct) -> bool {
        explain::is_raised(explained, exception)
    }
}

/// Whether a connection begins with a version record of framing (MC-NMF 2.2.3.1) or a request of HTTP.
fn sniff(first: &[u8]) -> Sniff {
    const BEGINNINGS: [&[u8]; 5] = [&[0, 1, 0, 1], b"POST /", b"GET /", b"HEAD /", b"OPTIONS "];
    let all = BEGINNINGS.map(|with| Greeting::begins(first, with));
    // One that fits is enough, and one that may still fit is waited for.
    [Sniff::Yes, Sniff::More].into_iter().find(|sniff| all.contains(sniff)).unwrap_or(Sniff::No)
}
