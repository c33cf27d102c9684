//! Wires: what a protocol's crate exports. The registry is a list of these, and nothing else names a wire.
//!
//! A `Wire` is one constant for the whole process: it reads and writes references, makes sessions (`connect`,
//! `accept`), and says what it can carry. What a wire keeps for a node is in the state that it makes for that
//! (`Wire::wire_state`); what it keeps for a connection is in the session. Sessions do no I/O.
//!
//! Three kinds of methods:
//! * what each wire has to answer: names, references, sessions, its codec, how a connection begins (`sniff`),
//!   a listing;
//! * what has an answer that fits most wires: numbers of operations, words for keys, protection, discovery. A
//!   wire says otherwise where it differs;
//! * what serves listings and captures only (`explain`, `body_of`, `called`, `is_raised`, `packet`).
//!
//! Invariants.
//! * Everything here may be called by many threads at once.
//! * Octets from a stranger are looked at by `sniff`, `is_message` and `explain`: these take anything, whole
//!   or not, and do not fail.
//! * What a wire does not have is a failure of `Kind::Unsupported` that names the wire (`Wire::without`), or
//!   `None`; never a guess.
//! * `Capabilities` tell beforehand what a bridge will not be able to pass on.

use crate::body::{Body, Codec};
use crate::budget::Limits;
use crate::contract::{Contract, Interface, Signal};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, Initiator, Kind};
use crate::hub::Program;
use crate::message::Incoming;
use crate::object::{Object, Resolver};
use crate::profile::Profile;
use crate::reference::Reference;
use crate::session::{Config, Session};
use crate::shape::{Hold, Struct};
use crate::wire_state::{Objects, WireState};
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

pub use crate::bind_address::BindAddress;

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

    /// The largest message that peers may bring, in bytes, where these limits hold: what a node always has memory for. `limits.message`
    /// bounds what is sent, too.
    fn largest_received(&self, limits: &Limits) -> u64 {
        limits.message
    }

    /// Whether a connection that begins with these bytes speaks this wire.
    fn sniff(&self, first: &[u8]) -> Sniff;

    /// Whether a message begins with these bytes anywhere in a connection: a capture may begin in the middle of one. Where all messages
    /// begin alike, that is what [`Wire::sniff`] tells.
    fn is_message(&self, first: &[u8]) -> bool {
        matches!(self.sniff(first), Sniff::Yes)
    }

    /// What a client may say first, so that a server's answer shows its protocol: for each protocol of the wire one.
    fn greetings(&self) -> &'static [Greeting] {
        &[]
    }

    /// Reads a reference in any of the wire's notations.
    fn parse(&self, text: &str) -> Result<Reference, Failure>;

    /// Writes a reference in the notation that foreign programs read.
    fn print(&self, reference: &Reference) -> String {
        self.print_friendly(reference)
    }

    /// Writes a reference in the friendly notation, for people.
    fn print_friendly(&self, reference: &Reference) -> String;

    /// Whether this wire keeps profiles that it does not know in [`Reference::foreign`]: then it also prints a reference that has no others.
    fn keeps_unknown_profiles(&self) -> bool {
        false
    }

    /// Makes a reference to an object that this process serves at these places (each as `listen` returned it, with the
    /// endpoint that was bound).
    fn publish(&self, type_id: &str, places: &[BindAddress], key: &[u8]) -> Reference;

    /// Where to serve, from a friendly address such as `iiop://127.0.0.1:0`.
    fn listen(&self, text: &str) -> Result<BindAddress, Failure>;

    /// A session for the connecting side.
    /// Speaks first.
    fn connect(&self, config: &Config) -> Box<dyn Session>;

    /// A session for the accepting side.
    fn accept(&self, config: &Config) -> Box<dyn Session>;

    /// Whether calls go both ways over a connection that is made so; `accepted`: on the side that accepts it. The peer may be called then,
    /// and may call.
    fn calls_both_ways(&self, _config: &Config, _accepted: bool) -> bool {
        self.capabilities().callbacks_on_connection
    }

    /// Its values.
    fn codec(&self) -> &'static dyn Codec;

    /// The number of the operation that a call asks for. Called when a connection asks something new, not for each call.
    fn operation(&self, interface: &Interface, asked: &Incoming) -> Option<usize> {
        interface.index_of(&asked.operation)
    }

    /// Whether the names of a call alone tell that it is for the operation with this number. Where its types tell, too, whoever remembers
    /// by the names which operation was called has to ask [`Wire::operation`] for each call.
    fn is_told_by_names(&self, _interface: &Interface, _index: usize) -> bool {
        true
    }

    /// Another key under which the object may have been exported, where the wire cannot spell every key.
    fn respell(&self, _key: &[u8]) -> Option<Bytes> {
        None
    }

    /// Whether a call is for the wire's own servants alone, whoever answers for keys that begin as this one.
    fn is_own(&self, _asked: &Incoming) -> bool {
        false
    }

    /// What a call that passes names in place of this key, where messages name no keys: a hop compares by that.
    fn named_as<'k>(&self, key: &'k [u8]) -> Cow<'k, str> {
        String::from_utf8_lossy(key)
    }

    /// The key that a call that passes came with, for patterns and for people.
    fn key_word<'k>(&self, key: &'k [u8]) -> Cow<'k, str> {
        String::from_utf8_lossy(key)
    }

    /// The interface and the operation that a call that passes names, for patterns and for people. Both are empty where it asks for an
    /// object itself.
    fn call_words<'k>(&self, interface: &'k [u8], operation: &'k [u8]) -> (Cow<'k, str>, Cow<'k, str>) {
        (String::from_utf8_lossy(interface), String::from_utf8_lossy(operation))
    }

    /// What this wire's peers expect of everybody who serves (introspection, properties), and whatever else the wire keeps
    /// for a node. Made once for each node, before its first connection or listener of this wire.
    fn wire_state(&self, _objects: Arc<dyn Objects>) -> Option<Arc<dyn WireState>> {
        None
    }

    /// Interfaces that objects of this wire may have whatever their contracts say, and those that they lead to. A hop that reads values by a
    /// contract passes references to such objects as if the contract defined them.
    fn common_interfaces(&self) -> &'static [&'static Interface] {
        &[]
    }

    /// Interfaces that listeners to the signals of an object implement, and that follow from its interface, where signals are calls of the
    /// listeners. A hop passes references to such listeners as if the contract defined them.
    fn listener_interfaces(&self, _of: &Interface) -> Vec<Hold<Interface>> {
        Vec::new()
    }

    /// Whether peers can ask for a new object of a class.
    fn makes_objects(&self) -> bool {
        false
    }

    /// What a hop answers to a caller who asked for an object, so that the caller calls it where it is and not by the hop; `answer` is
    /// what came back to the hop that had asked for it elsewhere. Nothing if that names no object.
    fn handed_over(&self, _answer: &Body) -> Option<Body> {
        None
    }

    /// Asks an object for its contract, and for objects below it.
    fn discover(&self, _object: &Object) -> Result<Discovery, Failure> {
        Err(self.without("objects do not tell their contract").with_hint("give the contract's file"))
    }

    /// Looks whether an object may be called at one of the endpoints of its profile, before anything is sent there.
    ///
    /// # Errors
    /// The profile demands what a connection there does not give ([`Kind::Refused`]).
    fn check_way(&self, _profile: &Profile, _endpoint: &Endpoint) -> Result<(), Failure> {
        Ok(())
    }

    /// The interface of the calls that an object of this interface makes back, over the very connection that it is called by: its
    /// callback contract, where the contract names one.
    fn callbacks<'c>(&self, _contract: &'c Contract, _of: &Interface) -> Option<&'c Hold<Interface>> {
        None
    }

    /// The same way, on whose connections what the other end calls back is for the object under this key and no other. Nothing
    /// where nobody is called back by such a way.
    fn called_back(&self, _way: &Profile, _key: &Bytes) -> Option<Profile> {
        None
    }

    /// Whether a call by this way ends where it was begun, so that whoever began it need not wait: a hop calls so. Else an object is on
    /// another connection for each of its interfaces, and only a thread that waits follows it there.
    fn carries_futures(&self, _way: &Profile) -> bool {
        true
    }

    /// Interfaces that may be tried on every object, whether it tells that it has them or not: the wire's specification expects them of
    /// everybody who serves.
    fn common(&self) -> &'static [Hold<Interface>] {
        &[]
    }

    /// The greatest TCP segment at a listening socket, in bytes, where peers of the wire suffer from large ones; mostly none.
    fn segment(&self, _place: &Profile) -> Option<u16> {
        None
    }

    /// The reference that a text means which somebody else has to be asked for, such as a name that a service keeps; nothing where
    /// [`Wire::parse`] reads all that it says.
    fn look_up(&self, _text: &str, _resolver: &dyn Resolver) -> Option<Result<Reference, Failure>> {
        None
    }

    /// Who is there to be called, at an address of this wire.
    fn list(&self, _text: &str, _resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
        Err(self.without("nobody keeps a list of servers"))
    }

    /// Servers of its own that the wire needs, to be run by `everywire NAME`.
    fn programs(&self) -> &'static [Program] {
        &[]
    }

    /// What a component of a profile says, in words for people; nothing where the wire does not know it.
    fn component(&self, _tag: u32, _data: &[u8]) -> Option<String> {
        None
    }

    /// The components of a profile that this wire knows and does not call by; nothing if it is another's.
    fn components(&self, _tag: u32, _data: &[u8]) -> Option<Vec<(u32, Bytes)>> {
        None
    }

    /// Who may call at this place and who may listen in, as far as a reference says: one line for people.
    fn protection(&self, profile: &Profile) -> String {
        let tcp = profile.endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Tcp { .. }));
        let who = if tcp { "reaches the port" } else { "may open the socket" };
        if let Some(layered) = profile.endpoints.iter().find_map(Endpoint::layer) {
            return layered.protection();
        }
        format!("none: no authentication, no encryption; whoever {who} can call")
    }

    /// What the header is called that tells the next hop how many of them a call has passed, in digits ([`Codec::hops`] reads it);
    /// nothing where calls have no headers.
    fn hop_header(&self) -> Option<&'static str> {
        None
    }

    /// How objects of this wire tell that attributes have changed, where they do so by a signal.
    fn news(&self) -> Option<&'static ChangeSignal> {
        None
    }

    /// The failure of something this wire does not have.
    #[doc(hidden)]
    fn without(&self, what: &str) -> Failure {
        Failure::new(Kind::Unsupported, Initiator::User, format!("on {}, {what}", self.name()))
    }

    /// What a number says by which an operation succeeded ([`crate::Success::code`]), for people: the number, and its name if it
    /// has one.
    fn status(&self, status: i32) -> String {
        format!("{status:#010x}")
    }

    /// An annotated listing of one direction of a connection; works on truncated and on broken input.
    fn explain(&self, bytes: &[u8]) -> Listing;

    /// The values of a message that [`Self::explain`] found, for whoever knows their types; some tell them themselves
    /// ([`crate::Codec::shape`]). Nothing where there are none, where they are not whole, or where the listing shows them itself.
    /// `called`: the interface of the call, or of the call that is answered, where it is known; on DCE/RPC only it says
    /// whether anything stands in front of the values.
    fn body_of(
        &self,
        _message: &[u8],
        explained: &MessageListing,
        _called: Option<&Interface>,
    ) -> Option<Body> {
        explained.values.clone()
    }

    /// The link type (of tcpdump's list) of captures that hold a message of this wire as it is, a packet each; nothing if none does, or if
    /// these octets are no message.
    fn packet(&self, _message: &[u8]) -> Option<u16> {
        None
    }

    /// Whether what a message raises that [`Self::explain`] found is this exception of a contract: it has its identity or its name.
    fn is_raised(&self, explained: &MessageListing, exception: &Struct) -> bool {
        let raised = explained.part("exception").or_else(|| explained.part("ERROR_NAME"));
        raised.is_some_and(|raised| exception.is_called(raised))
    }

    /// Which operation of an interface a message that [`Self::explain`] found calls, or which of its signals it is: that of its name, unless
    /// a wire has numbers.
    fn called(&self, explained: &MessageListing, interface: &Interface) -> Option<MemberIndex> {
        let name = ["operation", "MEMBER", "function"].iter().find_map(|name| explained.part(name))?;
        let name = name.trim_matches('`');
        if let Some(index) = interface.operations.iter().position(|operation| operation.name == name) {
            return Some(MemberIndex::Operation(index));
        }
        interface.signals.iter().position(|signal| signal.name == name).map(MemberIndex::Signal)
    }
}

/// What a message is of, in an interface: numbers in its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberIndex {
    /// An operation.
    Operation(usize),
    /// A signal.
    Signal(usize),
}

/// A signal that tells of changed attributes, for whoever passes it on.
pub struct ChangeSignal {
    /// The interface that declares it: that of no object's own contract.
    pub interface: &'static Interface,
    /// The signal.
    pub signal: &'static Signal,
    /// Whether it tells, with these fields, of attributes of an interface or of one that it inherits.
    pub is_of: fn(&Body, &Interface) -> bool,
}

/// What an object told of itself.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// Its interfaces; those that every object of the wire has come last.
    pub contract: Contract,
    /// How many interfaces are its own.
    pub own: usize,
    /// Keys of the objects below it.
    pub children: Vec<Bytes>,
    /// Where it says that it answers, in the friendly notation, if that is not how it was asked.
    pub addresses: Vec<String>,
}

/// Somebody who can be called.
#[derive(Debug, Clone, Default)]
pub struct Presence {
    /// A name.
    pub name: String,
    /// Where to find out more, in the friendly notation.
    pub address: String,
    /// What is known: (what, value), such as `("pid", "17")`; the same ones in the same order for each.
    pub details: Vec<(&'static str, String)>,
}

/// Those who can be called, as far as they were found: a list of them.
#[derive(Debug, Clone, Default)]
pub struct PresenceList {
    /// They themselves.
    pub found: Vec<Presence>,
    /// What was not looked at or did not answer, and how to ask for it, a sentence each; empty if the list is whole.
    pub left_out: Vec<String>,
}

impl From<Vec<Presence>> for PresenceList {
    /// A whole list.
    fn from(found: Vec<Presence>) -> Self {
        Self { found, left_out: Vec::new() }
    }
}

impl std::ops::Deref for PresenceList {
    type Target = [Presence];

    fn deref(&self) -> &[Presence] {
        &self.found
    }
}

/// What every server of a protocol answers, whoever says it and whatever it serves.
#[derive(Debug, Clone, Copy)]
pub struct Greeting {
    /// The protocol, for people.
    pub protocol: &'static str,
    /// How addresses of such servers begin, for people.
    pub schemes: &'static str,
    /// The octets to send.
    pub octets: &'static [u8],
    /// Whether the octets that came back are an answer of this protocol.
    pub answers: fn(&[u8]) -> Sniff,
}

impl Greeting {
    /// Whether octets begin with these.
    pub fn begins(seen: &[u8], with: &[u8]) -> Sniff {
        match seen.len().min(with.len()) {
            len if seen.get(..len) != with.get(..len) => Sniff::No,
            len if len < with.len() => Sniff::More,
            _ => Sniff::Yes,
        }
    }
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
    /// Signals are calls of the listener's own objects, so nobody connects only to listen.
    pub signals_are_calls: bool,
    /// Signals of an object come by the connection that the object is called by, and by no other: nobody connects to hear all objects of a
    /// peer.
    pub signals_by_object: bool,
    /// Operating-system handles.
    pub handles: bool,
    /// Object references as values.
    pub references: bool,
    /// Callbacks over the connection that is open, whatever its addresses say ([`Wire::calls_both_ways`] tells of single connections).
    pub callbacks_on_connection: bool,
    /// Asking whether an object exists.
    pub probe: bool,
    /// Withdrawing a call.
    pub cancel: bool,
    /// A call that came is carried out also when its caller has left: where many a caller that wants no answer does not say so.
    pub calls_outlive_callers: bool,
    /// A reference may lead to somebody who tells where the object is: asynchronous calls ask that first.
    pub forwards: bool,
    /// Who serves can send a caller to where the object is: by an answer to a call ([`crate::Answer::Moved`]), by a description of the
    /// object that callers read first, or by what they get who ask for an object ([`Wire::handed_over`]).
    pub redirects: bool,
}

/// An annotated listing of messages.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The messages, in order.
    pub messages: Vec<MessageListing>,
    /// Bytes at the end that are no whole message yet.
    pub rest: usize,
    /// How many more bytes that message needs at least, by the length that it tells; 0 where it tells none yet.
    pub lacks: usize,
}

/// What is at the front of octets that are listed.
#[derive(Debug)]
pub enum ListingFront {
    /// Too little to tell how long the message is.
    Incomplete,
    /// A message that is so long by what it tells, explained as far as it is here.
    Message(usize, MessageListing),
    /// No message, by its header of so many octets: the kind for counting, and what is wrong. Where the next one begins is not known.
    Violation(&'static str, usize, String),
}

impl Listing {
    /// Lists the messages of one direction of a connection. `front` is given the octets from a message on.
    pub fn of(bytes: &[u8], mut front: impl FnMut(&[u8]) -> ListingFront) -> Self {
        let mut listing = Self::default();
        let mut offset = 0;
        while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            match front(rest) {
                ListingFront::Incomplete => {
                    listing.rest = rest.len();
                    break;
                }
                ListingFront::Message(len, mut message) => {
                    message.offset = offset;
                    if rest.len() < len {
                        message.summary.push_str(&format!(", {} of {len} bytes here", rest.len()));
                        (listing.rest, listing.lacks) = (rest.len(), len - rest.len());
                    }
                    listing.messages.push(message);
                    offset = offset.saturating_add(len.max(1));
                }
                ListingFront::Violation(kind, header, value) => {
                    let (kind, summary, len) = (kind.to_owned(), value.clone(), rest.len());
                    let parts = vec![Part { offset: 0, len: header, name: "violation", value }];
                    let found = MessageListing { summary, kind, offset, len, parts, ..Default::default() };
                    listing.messages.push(found);
                    break;
                }
            }
        }
        listing
    }
}

/// One message, explained.
#[derive(Debug, Clone, Default)]
pub struct MessageListing {
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
    /// The values themselves, where the octets of this message alone do not tell them: earlier ones have words of theirs, or the message is
    /// in pieces.
    pub values: Option<Body>,
}

impl MessageListing {
    /// What the first part of this name says.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<&str> {
        self.parts.iter().find(|part| part.name == name).map(|part| part.value.as_str())
    }
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
