//! Wires: what a protocol's crate exports. The registry is a list of these, and nothing else names a wire.

use crate::body::Codec;
use crate::budget::Limits;
use crate::failure::Failure;
use crate::reference::{Endpoint, Reference};
use crate::session::{Config, Session};

/// A protocol.
pub trait Wire: Send + Sync {
    /// Short name, in lower case; also the name in JSON and in the race tables.
    fn name(&self) -> &'static str;

    /// One line for people: full name, versions, the specification.
    fn title(&self) -> &'static str;

    /// Schemes of the references it parses, the friendly one first.
    fn schemes(&self) -> &'static [&'static str];

    /// What it can carry.
    fn capabilities(&self) -> Capabilities;

    /// Quotas that fit its usual messages.
    fn default_limits(&self) -> Limits {
        Limits::default()
    }

    /// Whether a connection that begins with these bytes speaks this wire.
    fn sniff(&self, first: &[u8]) -> Sniff;

    /// Reads a reference in any of the wire's notations.
    fn parse(&self, text: &str) -> Result<Reference, Failure>;

    /// Writes a reference in the notation that foreign programs read.
    fn print(&self, reference: &Reference) -> String;

    /// Writes a reference in the friendly notation, for people.
    fn print_friendly(&self, reference: &Reference) -> String;

    /// Makes a reference to an object that this process serves at these endpoints.
    fn publish(&self, type_id: &str, endpoints: &[Endpoint], key: &[u8]) -> Reference;

    /// Where to listen, from a friendly address such as `iiop://127.0.0.1:0`.
    fn listen(&self, text: &str) -> Result<Endpoint, Failure>;

    /// A session for the connecting side.
    fn connect(&self, config: &Config) -> Box<dyn Session>;

    /// A session for the accepting side.
    fn accept(&self, config: &Config) -> Box<dyn Session>;

    /// Its values.
    fn codec(&self) -> &'static dyn Codec;

    /// An annotated listing of one direction of a connection; works on truncated and on broken input.
    fn explain(&self, bytes: &[u8]) -> Listing;
}

/// Whether bytes belong to a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sniff {
    /// They do.
    Yes,
    /// They do not.
    No,
    /// Too few to tell.
    More,
}

/// What a wire can carry; a bridge refuses by this before any call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct Capabilities {
    /// Calls without a reply.
    pub oneway: bool,
    /// Out and inout parameters.
    pub out_parameters: bool,
    /// Exceptions with typed fields.
    pub typed_exceptions: bool,
    /// Signals to whoever listens.
    pub signals: bool,
    /// Operating-system handles.
    pub handles: bool,
    /// Object references as values.
    pub references: bool,
    /// Callbacks over the connection that is open.
    pub callbacks_on_connection: bool,
    /// Asking whether an object exists.
    pub probe: bool,
    /// Withdrawing a call.
    pub cancel: bool,
}

/// An annotated listing of messages.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The messages, in order.
    pub messages: Vec<Explained>,
    /// Bytes at the end that are no whole message yet.
    pub rest: usize,
}

/// One message, explained.
#[derive(Debug, Clone, Default)]
pub struct Explained {
    /// One line: kind, number, operation, size.
    pub summary: String,
    /// Kind of message, for counting.
    pub kind: String,
    /// Offset of its first byte.
    pub offset: usize,
    /// Its length.
    pub len: usize,
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// Bytes of values, and where they begin in the message, if it carries any.
    pub body: Option<(usize, usize)>,
}

/// A part of a message.
#[derive(Debug, Clone)]
pub struct Part {
    /// Offset in the message.
    pub offset: usize,
    /// Length.
    pub len: usize,
    /// What it is, in the specification's words.
    pub name: &'static str,
    /// What it says.
    pub value: String,
}
