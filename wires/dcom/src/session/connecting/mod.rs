//! The side that connects.
//!
//! `state` is what a session knows and has to do; the other files are what it does: `binding` agrees on contexts
//! and says who calls, `calls` sends calls, `jobs` are the calls that wait for something and the system requests they wait
//! for, `system_requests` asks for what they need and where procedures are, `passing` has calls that pass without a
//! contract, `replies` takes answers.
//!
//! States: `channel.state` goes from `Unbound` (a bind was sent) to `Open` (it was accepted) to `Over`;
//! `ready` follows `Open` once the authentication has ended. `unusable` holds the reason why nothing can be
//! called; the first call takes it and ends the session. A request stands in `waiting` until its answer
//! comes, everything that cannot be sent yet in `jobs`; both count against `limits.outstanding`.
//!
//! Invariants: `Event::Ready` comes exactly once, even if nothing can be called: then the first call gets the
//! reason. When the connection ends for any reason (`goodbye`, `disconnected`, `give_up`), everything in
//! `waiting` and `jobs` gets a failure, and calls that were still kept as jobs say that they were not sent
//! (`Completed::No`).

mod binding;
mod calls;
mod jobs;
mod passing;
mod replies;
mod state;
mod system_requests;

pub use state::Connecting;

use super::channel::{Channel, State};
use super::security_context::ValueContext;
use super::values::End;
use crate::exporter::Exporter;
use crate::frame::{Header, PduKind};
use crate::pdu::ProtocolError;
use crate::security::Security;
use crate::wine::{MINOR, interface_of};
use bytes::BytesMut;
use everywire_model::{
    Answer, Body, Call, CallId, Completed, Config, Emission, Event, Failure, Handle, Initiator, Kind,
    Outcome, Peer, Profile, SendBuffer, Session, Violation,
};
use state::Purpose;
use std::time::Instant;

impl Connecting {
    /// A session for a way: speaks at once.
    /// The bind is in the send buffer when this returns, unless the profile lacks what its level needs or
    /// points where the account must not be shown.
    pub fn new(config: &Config) -> Self {
        let security = Security::of(&config.profile);
        let exporter = config.wire_state.as_ref().and_then(Exporter::of);
        let talk =
            exporter.as_ref().map(|exporter| ValueContext::new(exporter, &security, "", End::of(config), 0));
        let only = interface_of(&config.profile, &security.dialect);
        let mut this = Self {
            channel: Channel::new(&config.limits),
            unusable: security.lack().or_else(|| security.distrusts(&config.peer, &config.profile)),
            security,
            peer: config.peer.clone(),
            exporter,
            talk,
            next_call: 1,
            next_serial: 1,
            orpc_minor: if only.is_some() { MINOR } else { crate::VERSION.1.into() },
            only,
            causality: crate::exporter::random_uuid().as_u128(),
            ..Self::default()
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
    fn take(&mut self, now: Instant, header: &Header, message: BytesMut) -> Result<(), ProtocolError> {
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
            kind => Err(ProtocolError::Unexpected { kind: kind.word() }),
        }
    }

    /// Fails if no call can be begun: the peer is unusable, the connection is over, or as many calls are
    /// outstanding as may be.
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
        self.channel.limits.check_outstanding(self.waiting.len() + self.jobs.len())
    }

    fn take_serial(&mut self) -> u64 {
        let serial = self.next_serial;
        self.next_serial += 1;
        serial
    }

    /// Ends a call of the user that begins: nobody has to be asked.
    fn answer_at_once(&mut self, outcome: Outcome<Body>) -> CallId {
        let serial = self.take_serial();
        self.reply(serial, outcome);
        CallId(serial)
    }

    /// Ends a call of the user.
    fn reply(&mut self, serial: u64, outcome: Outcome<Body>) {
        self.channel.events.push_back(Event::Reply { id: CallId(serial), outcome });
    }

    /// Everything that waits comes back with this failure.
    fn fail_all(&mut self, failure: &Failure) {
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting.purpose {
                Purpose::System(task) => self.fail_task(*task, failure),
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
    /// If nobody was told yet that the connection is ready, the runtime waits for that: it is told so, and
    /// the next call gets the failure.
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
        self.end(&failure);
    }

    /// Ends the connection.
    fn end(&mut self, failure: &Failure) {
        self.channel.state = State::Over;
        self.fail_all(failure);
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
