//! Sessions: one connection's protocol, without I/O.
//!
//! Bytes go in by [`Session::receive`] and come out of [`Session::transmit`]; calls go in by [`Session::start`] and
//! [`Session::answer`] and come out as [`Event`]s of [`Session::poll`]. Time is an argument. Whoever drives a session
//! (a *link*, in the runtime) polls until `None` after each `receive`, and sends what `transmit` holds after anything
//! else.

use crate::body::{Body, Handle};
use crate::budget::Limits;
use crate::contract::Operation;
use crate::failure::{Failure, Violation};
use crate::reference::{Endpoint, Profile, Reference};
use crate::rope::Rope;
use crate::shape::Struct;
use crate::visit::Encode;
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::time::Instant;

/// One connection's protocol.
///
/// Methods fall into four families: *input* (`receive`, `expire`, `disconnected`), *requests* of the local side (`start`,
/// `probe`, `answer`, `cancel`, `close`), *output* (`poll`, `transmit`), and *questions* (`wanted`, `deadline`,
/// `outstanding`).
pub trait Session: Send {
    /// Takes complete messages from the front of `input`, and leaves the rest there for the next time.
    ///
    /// # Errors
    /// The peer broke the protocol. Whatever the session wants to tell it is in `transmit`; then the link closes.
    fn receive(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation>;

    /// How many bytes are missing until the message begun in `receive` is whole, as far as is known; 0 if none has
    /// begun. The link reads large messages straight into a buffer of that size.
    fn wanted(&self) -> usize;

    /// What happened, in order.
    fn poll(&mut self) -> Option<Event>;

    /// What is to be sent.
    fn transmit(&mut self) -> &mut Rope;

    /// Begins a call. The arguments are encoded at once; nothing of a failed encoding is sent.
    fn start(&mut self, now: Instant, call: &Call<'_>) -> Result<CallId, Failure>;

    /// Asks the peer whether it has the object; the answer is an [`Event::Reply`] with an empty body, a failure or
    /// [`Outcome::Moved`]. Wires that cannot ask answer [`crate::Kind::Unsupported`].
    fn probe(&mut self, now: Instant, profile: &Profile) -> Result<CallId, Failure>;

    /// Answers an [`Event::Call`] or an [`Event::Probe`]. Answers to unknown, cancelled or oneway calls are dropped.
    ///
    /// # Errors
    /// The results do not encode (or exceed a limit); the caller of the operation got that failure instead.
    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure>;

    /// Withdraws a call: tells the peer, and forgets it. No event follows.
    fn cancel(&mut self, id: CallId);

    /// Says goodbye, in the peer's terms; the link then sends what is left and closes.
    fn close(&mut self);

    /// The connection ended. Outstanding calls come out of `poll` as failures.
    fn disconnected(&mut self, failure: &Failure);

    /// When `expire` wants to be called.
    fn deadline(&self) -> Option<Instant>;

    /// Time has passed.
    fn expire(&mut self, now: Instant) -> Result<(), Violation>;

    /// Calls begun by either side and not yet answered.
    fn outstanding(&self) -> usize;
}

/// How a session is made.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Quotas.
    pub limits: Limits,
    /// What is known about the peer before the first byte.
    pub peer: PeerAddress,
}

/// What the transport knows about the peer.
#[derive(Debug, Clone, Default)]
pub struct PeerAddress {
    /// Transport and address, as text.
    pub text: String,
    /// Process and user, where the kernel vouches for them: (pid, uid).
    pub credentials: Option<(i32, u32)>,
}

/// An authenticated peer. Only a session can obtain one, by reaching the state in which its protocol lets calls through;
/// code that needs an authenticated peer takes `&Peer`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Peer {
    /// Where it is.
    pub address: PeerAddress,
    /// How it was authenticated, such as `none`, `unix credentials`.
    pub authentication: &'static str,
}

impl Peer {
    /// For sessions only: the protocol of `address` reached the state in which calls are let through.
    pub fn admitted(address: PeerAddress, authentication: &'static str) -> Self {
        Self { address, authentication }
    }
}

/// Names one call on one connection. Calls of both directions are numbered apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// A call to send.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The object.
    pub profile: &'a Profile,
    /// What to ask it.
    pub operation: &'a Operation,
    /// With what.
    pub arguments: &'a dyn Encode,
    /// Whether a reply is wanted.
    pub expects: Expects,
}

/// Whether the caller wants a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expects {
    /// Yes.
    Reply,
    /// No.
    Nothing,
}

/// What a session tells its link.
#[derive(Debug)]
pub enum Event {
    /// The peer is admitted: calls may be sent and will come.
    Ready(Peer),
    /// The peer calls.
    Call(Incoming),
    /// The peer asks whether this side has an object; to be answered like a call. An object that is here but not of
    /// the type asked for is answered with [`crate::Kind::BadReference`].
    Probe {
        /// To answer.
        id: CallId,
        /// The object's key.
        key: Bytes,
        /// The identity of the interface that it must have, if the peer asks for that too.
        type_id: Option<Box<str>>,
    },
    /// A call came back.
    Reply {
        /// Which.
        id: CallId,
        /// With what.
        outcome: Outcome<Body>,
    },
    /// The peer withdrew a call; an answer to it will be dropped.
    Cancelled(CallId),
    /// The peer said goodbye. Calls that it did not execute came back as failures that may be tried again.
    Closed,
}

/// A call that came in.
#[derive(Debug)]
pub struct Incoming {
    /// To answer.
    pub id: CallId,
    /// The object's key.
    pub key: Bytes,
    /// The operation's name on the wire.
    pub operation: Bytes,
    /// The arguments.
    pub body: Body,
    /// Whether the peer waits for an answer.
    pub expects: Expects,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub enum Outcome<B> {
    /// With results.
    Done(B),
    /// With an exception that the contract names.
    Raised {
        /// The exception's identity, or its name on wires that send names.
        id: String,
        /// Its fields.
        body: B,
    },
    /// With a failure.
    Failed(Failure),
    /// The object is elsewhere: ask there.
    Moved(Reference),
}

/// How a call is answered.
#[derive(Clone, Copy)]
pub enum Answer<'a> {
    /// With results; also the answer to a probe for an object that is here.
    Done(&'a dyn Encode),
    /// With an exception that the contract names.
    Raised {
        /// The exception.
        shape: &'a Struct,
        /// Its fields, as one struct.
        fields: &'a dyn Encode,
    },
    /// With a failure.
    Failed(&'a Failure),
    /// The object is elsewhere.
    Moved(&'a Reference),
}

/// The answering half of a connection, and what a servant may need beside: implemented by the runtime's links.
pub trait Link: Send + Sync {
    /// Answers a call.
    fn answer(&self, id: CallId, answer: Answer<'_>);
    /// Runs a future on the runtime's threads.
    fn spawn(&self, task: crate::object::BoxFuture<'static, ()>);
    /// Turns references into objects.
    fn resolver(&self) -> Arc<dyn crate::object::Resolver>;
    /// Who is at the other end.
    fn peer(&self) -> Option<Peer>;
    /// Which endpoint it came in by, for messages.
    fn endpoint(&self) -> Endpoint;
}
