//! Sessions: one connection's protocol, without I/O.
//!
//! Bytes go in by [`Session::receive`] and come out of [`Session::transmit`]; calls go in by [`Session::start`] and
//! [`Session::answer`] and come out as [`Event`]s of [`Session::poll`]. Time is an argument. Whoever drives a session
//! (a *link*, in the runtime) polls until `None` after each `receive`, and sends what `transmit` holds after anything
//! else.

use crate::body::{Body, Handle};
use crate::budget::Limits;
use crate::failure::{Failure, Initiator, Kind, Violation};
use crate::message::{Answer, Call, Incoming, Outcome};
use crate::profile::{Lease, Profile};
use crate::send_buffer::SendBuffer;
use crate::wire_state::WireState;
use bytes::{Bytes, BytesMut};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

pub use crate::link::{Link, Peer, PeerAddress};
pub use crate::message::{CallId, Emission, SignalFilter, Topic};

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

    /// Whether the next event is the reply to this call: then `take_reply` gives its outcome, for less than `poll` costs. A session need
    /// not tell.
    fn has_reply(&self, _id: CallId) -> bool {
        false
    }

    /// The outcome that `has_reply` told of. Nobody asks without that.
    fn take_reply(&mut self, _id: CallId) -> Outcome<Body> {
        no_reply()
    }

    /// What is to be sent.
    fn transmit(&mut self) -> &mut SendBuffer;

    /// Begins a call. The arguments are encoded at once; nothing of a failed encoding is sent.
    fn start(&mut self, now: Instant, call: &Call<'_>) -> Result<CallId, Failure>;

    /// Asks the peer whether it has the object; the answer is an [`Event::Reply`] with an empty body, a failure or
    /// [`Outcome::Moved`]. Wires that cannot ask answer [`crate::Kind::Unsupported`].
    fn probe(&mut self, now: Instant, profile: &Profile) -> Result<CallId, Failure>;

    /// Tells the peer, or everybody behind it who listens, of a signal of an object served here.
    fn emit(&mut self, _now: Instant, _emission: &Emission<'_>) -> Result<(), Failure> {
        Err(Failure::unsupported("this wire carries no signals"))
    }

    /// Asks for signals. An [`Event::Reply`] confirms or refuses; from then on they come as [`Event::Signal`] until
    /// [`Session::unsubscribe`].
    fn subscribe(
        &mut self,
        _now: Instant,
        _profile: &Profile,
        _filter: SignalFilter<'_>,
    ) -> Result<CallId, Failure> {
        Err(Failure::unsupported("this wire carries no signals"))
    }

    /// Ends a subscription. No event follows.
    fn unsubscribe(&mut self, _id: CallId) {}

    /// Answers an [`Event::Call`] or an [`Event::Probe`]. Answers to unknown, cancelled or oneway calls are dropped.
    ///
    /// # Errors
    /// The results do not encode (or exceed a limit); the caller of the operation got that failure instead.
    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure>;

    /// Withdraws a call: tells the peer, and forgets it. No event follows.
    fn cancel(&mut self, id: CallId);

    /// Says goodbye, in the peer's terms; the link then sends what is left and closes.
    fn close(&mut self);

    /// Tells a peer that has just connected that there is no place for it, in its terms. Returns whether the words for that answer
    /// the peer's first message: then the link goes on until that has come and was answered. Otherwise it sends what is left and
    /// closes.
    fn turn_away(&mut self, _why: &Failure) -> bool {
        self.close();
        false
    }

    /// Bytes that it holds of messages that are not whole yet, and of whole ones that were not polled, beside what the link reads
    /// into: they count against the memory that all peers may hold.
    fn held(&self) -> usize {
        0
    }

    /// Whether a goodbye is under way to which the peer has to answer before the rest of it can go: the link reads on for a
    /// moment before it closes.
    fn is_closing(&self) -> bool {
        false
    }

    /// The connection ended. Outstanding calls come out of `poll` as failures.
    fn disconnected(&mut self, failure: &Failure);

    /// After this side was refused: the way by which another connection may be let in, if there is one.
    fn again(&self) -> Option<Profile> {
        None
    }

    /// Where this side serves now that a router has let it in, if that is not the place that was asked for: the router may have given it
    /// another name.
    fn granted(&self, _asked: &Profile) -> Option<Profile> {
        None
    }

    /// What became of this side's greeting, where `receive` or `expire` failed: told to callers instead of the violation.
    fn refusal(&mut self) -> Option<Failure> {
        None
    }

    /// Whether a router stands between this side and whoever it talks to: waits are longer then, and the router needs the
    /// CPU meanwhile.
    fn is_routed(&self) -> bool {
        false
    }

    /// Whether its protocol carries one call at a time: while one is outstanding, others are better off on a connection of
    /// their own. A call that is begun all the same waits for its turn; one that expects nothing ends its turn with an
    /// [`Event::Reply`], too. A call that is withdrawn while it has its turn stays outstanding until the peer is done with it.
    fn one_at_a_time(&self) -> bool {
        false
    }

    /// Whether the peer serves objects at its end of the connection, where calls go both ways ([`crate::Wire::calls_both_ways`]): it may
    /// be silent until it is called.
    fn peer_serves(&self) -> bool {
        true
    }

    /// Whether it wants to read no more before it was polled again: what it has is waiting for something else.
    fn read_paused(&self) -> bool {
        false
    }

    /// Octets that wait for the peer to read, those included that `transmit` does not show yet.
    fn unsent(&mut self) -> usize {
        self.transmit().len()
    }

    /// When `expire` wants to be called.
    fn deadline(&self) -> Option<Instant>;

    /// Time has passed.
    fn expire(&mut self, now: Instant) -> Result<(), Violation>;

    /// What the peer has sent was not read for so long, since this side was behind: a message that has begun may take as much longer.
    /// Only connections that this side has made are left unread so, of wires that are called back on them.
    fn postpone(&mut self, _by: Duration) {}

    /// Calls begun by either side and not yet answered.
    fn outstanding(&self) -> usize;
}

/// What [`Session::take_reply`] gives where there is no such reply.
#[cold]
pub fn no_reply() -> Outcome<Body> {
    Outcome::Failed(Failure::new(Kind::Internal, Initiator::Here, "a reply was taken that is not there"))
}

/// How a session is made.
#[derive(Clone, Default)]
pub struct Config {
    /// Quotas.
    pub limits: Limits,
    /// What is known about the peer before the first byte.
    pub peer: PeerAddress,
    /// The address of this side's end of the connection, over TCP.
    pub local: Option<IpAddr>,
    /// The way that leads, or led the peer, here: of the object that is asked for first when connecting, of the place
    /// listened at when accepting. Its components are the wire's to read.
    pub profile: Profile,
    /// What the connection is for.
    pub purpose: Purpose,
    /// What the wire keeps for this node, as [`crate::Wire::wire_state`] made it.
    pub wire_state: Option<Arc<dyn WireState>>,
    /// What a profile has in its lease whose object the peer serves at its end of this very connection: the runtime calls such an object
    /// over the connection. Empty where it cannot.
    pub way_back: Lease,
    /// To be rung when the session has something to tell that did not come by its own connection: its link polls it then.
    pub waker: Option<Waker>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limits, peer, local: _, profile, purpose, wire_state: _, way_back: _, waker: _ } = self;
        write!(f, "Config({peer:?}, {profile:?}, {purpose:?}, {limits:?})")
    }
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// Calls to objects at the other end, or behind it; or the accepting side of any connection.
    #[default]
    Calls,
    /// Serving objects through a router: calls come in on a connection that this side made.
    Serving,
    /// Overhearing what others say: everything comes out as [`Event::Overheard`].
    Monitoring,
}

/// What a session tells its link.
#[derive(Debug)]
pub enum Event {
    /// The peer is admitted: calls may be sent and will come.
    Ready(Peer),
    /// The peer calls. On the heap, because it goes through many hands.
    Call(Box<Incoming>),
    /// The peer asks whether this side has an object; to be answered like a call. An object that is here but not of
    /// the type asked for is answered with [`crate::Kind::BadReference`].
    Probe {
        /// To answer.
        id: CallId,
        /// The object's key.
        key: Bytes,
        /// The identity of the interface that it must have, if the peer asks for that too.
        type_id: Option<Box<str>>,
        /// The question as a call, where it came as one: for whoever passes it on.
        asked: Option<Box<Incoming>>,
    },
    /// A call came back. Where calls are carried one at a time ([`Session::one_at_a_time`]), those that expect nothing come back
    /// too: done, without results, when the peer has taken them; or with the failure that kept them from it.
    Reply {
        /// Which.
        id: CallId,
        /// With what.
        outcome: Outcome<Body>,
    },
    /// A signal came, for these subscriptions. On the heap, so that other events are small.
    Signal {
        /// Subscriptions that it is for, as `subscribe` numbered them.
        subscriptions: Vec<CallId>,
        /// The signal.
        heard: Box<Incoming>,
    },
    /// Whoever a subscription listens to has left. It stands: should they come back, signals go on.
    Lost {
        /// Which.
        subscription: CallId,
        /// Why.
        failure: Failure,
    },
    /// A message between others, as it was sent (monitoring only).
    Overheard(Bytes),
    /// The peer withdrew a call; an answer to it will be dropped.
    Cancelled(CallId),
    /// The peer said goodbye. Calls that it did not execute came back as failures that may be tried again.
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Up to this many bytes are copied in place; more by a call of `memcpy`, and a reply is passed on nine times.
    const IN_PLACE: usize = 128;

    #[test]
    fn what_each_call_passes_on_is_copied_in_place() {
        let sizes = [size_of::<Body>(), size_of::<Outcome<Body>>(), size_of::<Option<Event>>()];
        assert!(sizes.iter().all(|size| *size <= IN_PLACE), "{sizes:?}");
    }
}
