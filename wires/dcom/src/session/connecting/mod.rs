//! The side that connects.
//!
//! `binding` agrees on contexts and says who calls, `calls` sends calls, `jobs` are the calls that wait for something
//! and the errands they wait for, `errands` asks for what they need, `mapping` where procedures are, `passing` has calls
//! that pass without a contract, `replies` takes answers, `wine` sends calls on where a connection carries one interface.

mod binding;
mod calls;
mod errands;
mod jobs;
mod mapping;
mod passing;
mod replies;
mod wine;

use super::channel::{Channel, State};
use super::shield::Talk;
use super::values::End;
use crate::exporter::Exporter;
use crate::frame::{Header, PduKind};
use crate::pdu::{Breach, Syntax};
use crate::security::Security;
use crate::wine::{MINOR, interface_of};
use bytes::{Bytes, BytesMut};
use calls::Known;
pub(crate) use calls::put_this;
use errands::Task;
use everywire_auth::security::Initiator as Authentication;
use everywire_model::{
    Answer, Body, Call, CallId, Completed, Config, Emission, Endpoint, Event, Failure, Handle, Initiator,
    Kind, Outcome, Peer, PeerAddress, Profile, SendBuffer, Session, Violation,
};
use jobs::{Held, Job};
use replies::Results;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// The session of a side that connects: speaks first.
pub struct Connecting {
    channel: Channel,
    security: Arc<Security>,
    peer: PeerAddress,
    exporter: Option<Arc<Exporter>>,
    talk: Option<Talk>,
    /// Proves who this side is, until that is done.
    authentication: Option<Box<dyn Authentication>>,
    /// Why nothing can be called here, if so.
    unusable: Option<Failure>,
    /// Whether this side is known by now, as far as it wants to be.
    ready: bool,
    contexts: Vec<Context>,
    /// The next number of a presentation context.
    next_context: u16,
    /// What was sent and not answered; numbers ascend (wrapping).
    waiting: VecDeque<Waiting>,
    next_call: u32,
    next_serial: u64,
    /// What waits for an errand, for its turn, or for being let in.
    jobs: VecDeque<Job>,
    /// The only interface that it can call, where the peer takes no other.
    only: Option<Uuid>,
    /// Minor version of ORPC, where the peer's is not known.
    orpc_minor: u16,
    /// Whether the last token is not known to have let this side in: an auth3 is not answered.
    unconfirmed: bool,
    /// The last calls that were ended by faults without a signature.
    doubted: VecDeque<u32>,
    /// Whether the peer took an ORPC version that it was sent.
    proven: bool,
    /// Causality of the calls of this connection, counted up.
    causality: u128,
    /// The interface that was called last.
    known: Option<Known>,
}

/// A presentation context.
struct Context {
    id: u16,
    syntax: Syntax,
    stage: Stage,
    /// By which PDU it was asked for.
    call: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The peer was asked.
    Asked,
    /// It may be used.
    Accepted,
    /// The peer has no such interface, or does not speak NDR.
    Refused,
}

/// What was sent and not answered.
struct Waiting {
    call: u32,
    purpose: Purpose,
}

enum Purpose {
    /// A call of the user.
    Call {
        serial: u64,
        /// Whether results begin with ORPCTHAT.
        orpc: bool,
        kind: Results,
    },
    /// One that may be sent again, or was sent by Invoke.
    Held(Box<Held>),
    Errand(Box<Task>),
}

impl Purpose {
    /// Of a call of the user.
    fn serial(&self) -> Option<u64> {
        match self {
            Self::Call { serial, .. } => Some(*serial),
            Self::Held(held) => Some(held.serial),
            Self::Errand(_) => None,
        }
    }

    /// Whether it passes as it came, and so do its results.
    fn passes(&self) -> bool {
        match self {
            Self::Call { kind, .. } => kind.passed,
            Self::Held(held) => held.passed.as_ref().is_some_and(|passed| passed.answers_pass()),
            Self::Errand(_) => false,
        }
    }
}

impl Connecting {
    /// A session for a way: speaks at once.
    pub fn new(config: &Config) -> Self {
        let security = Security::of(&config.profile);
        let exporter = config.wire_state.as_ref().and_then(Exporter::of);
        let sockets = !matches!(config.profile.endpoints.first(), Some(Endpoint::Tcp { .. }) | None);
        let end = End { sockets, address: config.local };
        let talk = exporter.as_ref().map(|exporter| Talk::new(exporter, &security, "", end, 0));
        let only = interface_of(&config.profile, &security.dialect);
        let mut this = Self {
            channel: Channel::new(&config.limits),
            unusable: security.lack().or_else(|| security.distrusts(&config.peer, &config.profile)),
            security,
            peer: config.peer.clone(),
            exporter,
            talk,
            authentication: None,
            ready: false,
            contexts: Vec::new(),
            next_context: 0,
            waiting: VecDeque::new(),
            next_call: 1,
            next_serial: 1,
            jobs: VecDeque::new(),
            orpc_minor: if only.is_some() { MINOR } else { crate::VERSION.1.into() },
            only,
            unconfirmed: false,
            doubted: VecDeque::new(),
            proven: false,
            causality: Uuid::new_v4().as_u128(),
            known: None,
        };
        if this.unusable.is_none() {
            this.send_bind(&config.profile);
        }
        if this.unusable.is_some() {
            this.tell_each_call();
        }
        this
    }

    #[inline]
    fn take(&mut self, now: Instant, header: &Header, message: BytesMut) -> Result<(), Breach> {
        match header.kind {
            PduKind::Response => self.response_in(now, &self.answering(header), message),
            PduKind::Fault => self.fault_in(&self.answering(header), message),
            PduKind::BindAck => self.bind_ack_in(header, &message),
            PduKind::BindNak => self.bind_nak_in(header, &message),
            PduKind::AlterContextResponse => self.alter_response_in(header, &message),
            PduKind::Shutdown => {
                self.goodbye();
                Ok(())
            }
            kind => Err(Breach::Unexpected { kind: kind.word() }),
        }
    }

    /// Nothing is sent after goodbye, or to who does not let this side in.
    fn check_open(&mut self) -> Result<(), Failure> {
        if let Some(failure) = self.unusable.take() {
            // Told once: the next call tries anew, by then there may be a ticket, or the peer may think otherwise.
            self.channel.state = State::Over;
            return Err(failure);
        }
        if self.channel.state == State::Over {
            return Err(Failure::new(Kind::Unreachable, Initiator::Here, "the connection is closed")
                .with_hint("connect again; a reference does so by itself"));
        }
        let limit = self.channel.limits.outstanding;
        if self.waiting.len() + self.jobs.len() >= limit {
            let limit = limit as u64;
            return Err(Failure::over_limit(
                Initiator::Here,
                "calls open on one connection",
                limit + 1,
                limit,
            )
            .with_hint("wait for answers, or raise the limit of outstanding calls"));
        }
        Ok(())
    }

    fn take_serial(&mut self) -> u64 {
        let serial = self.next_serial;
        self.next_serial += 1;
        serial
    }

    fn reply(&mut self, serial: u64, outcome: Outcome<Body>) {
        self.channel.events.push_back(Event::Reply { id: CallId(serial), outcome });
    }

    /// Everything that waits comes back with this failure.
    fn fail_all(&mut self, failure: &Failure) {
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting.purpose {
                Purpose::Errand(task) => self.fail_task(*task, failure),
                call => {
                    if let Some(serial) = call.serial() {
                        self.reply(serial, Outcome::Failed(failure.clone()));
                    }
                }
            }
        }
        for job in std::mem::take(&mut self.jobs) {
            // Nothing of these was sent.
            self.fail_job(job, &failure.clone().with_completed(Completed::No));
        }
    }

    /// Nothing can be called here, now or later.
    fn give_up(&mut self, failure: Failure) {
        self.channel.state = State::Over;
        self.fail_all(&failure);
        self.unusable = Some(failure);
        if self.ready {
            self.channel.events.push_back(Event::Closed);
        } else {
            self.tell_each_call();
        }
    }

    /// Nobody is to wait for a greeting: each call is told why it cannot be made.
    fn tell_each_call(&mut self) {
        self.channel.events.push_back(Event::Ready(Peer::admitted(self.peer.clone(), "none")));
    }

    /// The peer wants the connection to end: what it did not answer, it did not execute or will not tell.
    fn goodbye(&mut self) {
        let failure = Failure::new(Kind::Unreachable, Initiator::Peer, "the peer closes the connection")
            .with_completed(Completed::Maybe);
        self.channel.state = State::Over;
        self.fail_all(&failure);
        self.channel.events.push_back(Event::Closed);
    }
}

impl Session for Connecting {
    fn receive(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        // Nothing of this protocol uses handles; what a transport passes is closed.
        handles.clear();
        loop {
            let taken = match self.channel.next(now, input) {
                Ok(Some((header, message))) => self.take(now, &header, message),
                Ok(None) => return Ok(()),
                Err(breach) => Err(breach),
            };
            taken.map_err(|breach| self.channel.broken(breach))?;
        }
    }

    fn wanted(&self) -> usize {
        self.channel.missing
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        self.channel.events.pop_front()
    }

    #[inline]
    fn transmit(&mut self) -> &mut SendBuffer {
        &mut self.channel.out
    }

    fn start(&mut self, _: Instant, call: &Call<'_>) -> Result<CallId, Failure> {
        self.begin(call)
    }

    fn probe(&mut self, _: Instant, profile: &Profile) -> Result<CallId, Failure> {
        self.begin_probe(profile)
    }

    fn emit(&mut self, _: Instant, _: &Emission<'_>) -> Result<(), Failure> {
        // Signals are calls that the node makes, not this connection.
        Ok(())
    }

    fn answer(&mut self, _: CallId, _: Answer<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn cancel(&mut self, id: CallId) {
        self.withdraw(id.0);
    }

    fn close(&mut self) {
        // The protocol has no goodbye for clients: the connection ends.
        self.channel.state = State::Over;
    }

    fn disconnected(&mut self, failure: &Failure) {
        self.channel.state = State::Over;
        self.fail_all(failure);
    }

    fn deadline(&self) -> Option<Instant> {
        self.channel.deadline()
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        self.channel.check_time(now).map_err(|breach| self.channel.broken(breach))
    }

    fn outstanding(&self) -> usize {
        self.waiting.len() + self.jobs.len()
    }
}

impl std::fmt::Debug for Connecting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (waiting, jobs) = (self.waiting.len(), self.jobs.len());
        write!(f, "Connecting({:?}, {waiting} calls sent, {jobs} held)", self.channel.state)
    }
}

/// Nothing to tell.
fn empty_body(budget: everywire_model::Budget) -> Body {
    super::values::body(Bytes::new(), 0, true, budget, None)
}
