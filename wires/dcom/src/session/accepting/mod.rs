//! The side that was connected to.
//!
//! `state` is what a session knows; the other files are what it does: `binding` agrees on contexts, sizes and
//! who calls, and knows where the calls of an interface go, `requests` takes calls and decides whether they are let through,
//! `answers` answers them, `passing` those that pass without a contract.
//!
//! States: `channel.state` is `Unbound` until a bind was accepted, then `Open`, then `Over` (the peer broke
//! the protocol, the connection ended, or `close`). `serving` has the calls that were taken and not answered,
//! in the order of their serials; the runtime answers each once by its serial. The association group is
//! entered with the bind and left once, by `close`, `disconnected` or drop.
//!
//! Invariants: a PDU that breaks the protocol is answered, as far as it has a call that can be told of it,
//! and ends the connection. A call withdrawn by the peer keeps its entry until the servant answers, so that
//! the limit of calls at a time holds. An answer to an unknown or withdrawn call is dropped without a
//! failure. Nothing is called back over this connection.

mod answers;
mod binding;
mod passing;
mod requests;
mod state;

pub use state::Accepting;

use super::channel::{Channel, State};
use super::security_context::ValueContext;
use super::values::End;
use crate::exporter::Exporter;
use crate::frame::{Header, PduKind};
use crate::hresult;
use crate::pdu::{Fault, Heading, Pdu, ProtocolError};
use crate::security::{Level, Security};
use answers::unsupported;
use bytes::BytesMut;
use everywire_model::{
    Answer, Call, CallId, Config, Emission, Event, Failure, Handle, Profile, SendBuffer, Session, Violation,
};
use state::FaultTarget;
use std::sync::Arc;
use std::time::Instant;

/// After how many calls and answers the node's counters are told.
const TOLD_AT_ONCE: u32 = 256;

impl Accepting {
    /// A session for a connection that came in by the place that the configuration's profile describes.
    /// Without a `WireState` of this wire in the configuration there are no objects, and their calls get
    /// faults.
    pub fn new(config: &Config) -> Self {
        let place = Security::of(&config.profile);
        let exporter = config.wire_state.as_ref().and_then(Exporter::of);
        let end = End::of(config);
        // What nobody in particular sends is called by nobody, unless the place has an account of its own.
        let back = if place.credentials.is_some() || end.sockets {
            Arc::new(place.for_references_of(&config.peer, &config.profile))
        } else {
            Arc::new(Security::new(Level::None))
        };
        let talk = exporter.as_ref().map(|exporter| ValueContext::new(exporter, &back, "", end, 0));
        Self {
            channel: Channel::new(&config.limits),
            port: binding::secondary_address(&config.profile),
            local: binding::is_local(&config.peer, &config.profile),
            place,
            way: config.profile.clone(),
            back,
            end,
            peer: config.peer.clone(),
            exporter,
            talk,
            group: None,
            size: 0,
            keeps_on_orphan: false,
            signs_faults: false,
            blame: FaultTarget::default(),
            contexts: Vec::new(),
            admissions: Vec::new(),
            serving: Vec::new(),
            unheard: 0,
            withdrawn: 0,
            next_serial: 1,
            last: None,
            counted: [0; 2],
            told_level: false,
            turned_away: false,
        }
    }

    #[inline]
    fn take(&mut self, now: Instant, header: &Header, message: BytesMut) -> Result<(), ProtocolError> {
        match header.kind {
            // The runtime's quota of connections is used up; the bind learns it as a local limit.
            _ if self.turned_away => Err(ProtocolError::Full),
            PduKind::Request => self.request_in(now, header, message),
            PduKind::Bind => self.bind_in(header, &message),
            PduKind::AlterContext => self.alter_in(header, &message),
            PduKind::Auth3 => self.auth3_in(header, &message),
            PduKind::CoCancel => {
                self.cancel_in(header);
                Ok(())
            }
            PduKind::Orphaned => {
                self.orphaned_in(header);
                Ok(())
            }
            kind => Err(ProtocolError::Unexpected { kind: kind.word() }),
        }
    }

    /// Tells the peer of a breach, as far as the protocol has a word for it.
    /// `None` as header: the framing itself is broken, so no call can be named. A bind is answered by a
    /// bind_nak, everything else by a fault. Statuses are those that Windows and Samba send for the same
    /// mistake, as Samba's tests of raw PDUs expect them.
    #[cold]
    fn breach(&mut self, breach: ProtocolError, header: Option<&Header>) -> Violation {
        let Some(header) = header else { return self.channel.broken(breach) };
        let kind = header.kind;
        let status = match breach {
            ProtocolError::Signature => hresult::NCA_SEC_PKG_ERROR,
            ProtocolError::Denied | ProtocolError::Authentication { mechanism: 1.., .. }
                if kind != PduKind::Request =>
            {
                hresult::NCA_SEC_PKG_ERROR
            }
            ProtocolError::Verification { .. }
            | ProtocolError::Unprotected { .. }
            | ProtocolError::UnknownSecurityContext { .. }
            | ProtocolError::SecurityContextReused { .. }
            | ProtocolError::Authentication { .. }
            | ProtocolError::Denied => hresult::NCA_ACCESS_DENIED,
            ProtocolError::AuthLength { .. } if kind == PduKind::Auth3 => hresult::NCA_FAULT_REMOTE_NO_MEMORY,
            _ => hresult::NCA_PROTO_ERROR,
        };
        let known = self.channel.state == State::Open && kind == PduKind::Request;
        match breach {
            _ if kind == PduKind::Bind => self.send_nak(header.call, binding::nak_reason(&breach)),
            ProtocolError::Unfinished { .. } => self.send_fault(header.call, 0, status, true),
            ProtocolError::FragmentLength { .. } => self.send_fault(header.call, 0, status, false),
            _ if known => {
                let FaultTarget { call, context, crowded } = self.blame;
                let status = if crowded { hresult::NCA_PROTO_ERROR } else { status };
                self.send_fault(call, context, status, false);
            }
            _ => self.send_fault(header.call, 0, status, true),
        }
        self.channel.broken(breach)
    }

    /// Tells of a call's failure, protected as the call was where the client takes that.
    /// Only a client that asked for signed faults at the bind takes them with a trailer; see
    /// `FEATURE_SIGNED_FAULTS`.
    #[cold]
    fn send_fault_by(
        &mut self,
        shield: Option<usize>,
        call: u32,
        context: u16,
        status: u32,
        unexecuted: bool,
    ) {
        let flags = if unexecuted { crate::frame::DID_NOT_EXECUTE } else { 0 };
        let heading = Heading { flags, ..Heading::answer(PduKind::Fault, call, context) };
        let signs = self.signs_faults && shield.is_some();
        // The status, and four reserved octets.
        let contents = u64::from(status).to_le_bytes();
        let put = |out: &mut Vec<u8>| {
            out.extend(contents);
            Ok(())
        };
        if !(signs && self.channel.message(&heading, shield, true, put).is_ok()) {
            self.send_fault(call, context, status, unexecuted);
        }
    }

    /// An unsigned fault: header, context, status. `unexecuted` says that no servant has seen the call, so
    /// the client may try again.
    fn send_fault(&mut self, call: u32, context: u16, status: u32, unexecuted: bool) {
        let flags = if unexecuted { crate::frame::DID_NOT_EXECUTE } else { 0 };
        let fault = Fault { context, cancels: 0, flags: 0, status, stub: 0..0 };
        self.channel.negotiate(&Pdu::Fault(fault), flags, call, None);
    }

    /// Counts calls and answers. Connections share the node's counters, so they are told
    /// of many calls at a time.
    #[inline]
    fn count(&mut self, calls: u32, answers: u32) {
        let [came, sent] = &mut self.counted;
        *came += calls;
        *sent += answers;
        if *came + *sent >= TOLD_AT_ONCE {
            self.tell_counts();
        }
    }

    #[cold]
    fn tell_counts(&mut self) {
        let [came, sent] = std::mem::take(&mut self.counted);
        if let Some(exporter) = &self.exporter {
            exporter.standard().traffic.add(came, sent);
        }
    }

    /// Tells what was counted, and gives the association group back; safe to be called more than once.
    fn leave(&mut self) {
        self.tell_counts();
        if let (Some(group), Some(exporter)) = (self.group.take(), &self.exporter) {
            exporter.associations().leave(group);
        }
    }
}

impl Session for Accepting {
    fn receive(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        // Nothing of this protocol uses handles; what a transport passes is closed.
        handles.clear();
        loop {
            match self.channel.next(now, input) {
                Ok(Some((header, message))) => {
                    let fits = if header.length > self.channel.recv {
                        Err(ProtocolError::FragmentLength { length: header.length, limit: self.channel.recv })
                    } else {
                        Ok(())
                    };
                    if let Err(breach) = fits.and_then(|()| self.take(now, &header, message)) {
                        return Err(self.breach(breach, Some(&header)));
                    }
                }
                Ok(None) => return Ok(()),
                Err(breach) => return Err(self.breach(breach, None)),
            }
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

    fn start(&mut self, _: Instant, _: &Call<'_>) -> Result<CallId, Failure> {
        Err(one_way())
    }

    fn probe(&mut self, _: Instant, _: &Profile) -> Result<CallId, Failure> {
        Err(one_way())
    }

    fn emit(&mut self, _: Instant, _: &Emission<'_>) -> Result<(), Failure> {
        // Signals are calls that the node makes, not this connection.
        Ok(())
    }

    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure> {
        let Ok(index) = self.serving.binary_search_by_key(&id.0, |serving| serving.serial) else {
            return Ok(());
        };
        let serving = self.serving.remove(index);
        self.unheard -= usize::from(!serving.replies);
        if serving.cancelled {
            self.withdrawn -= 1;
            return Ok(());
        }
        if !serving.replies || self.channel.state != State::Open {
            return Ok(());
        }
        self.answer_call(&serving, answer)
    }

    fn cancel(&mut self, _: CallId) {}

    fn held(&self) -> usize {
        self.channel.assemblies.held()
    }

    fn turn_away(&mut self, _: &Failure) -> bool {
        self.turned_away = true;
        true
    }

    fn close(&mut self) {
        if self.channel.state == State::Open {
            self.channel.negotiate(&Pdu::Shutdown, 0, 0, None);
        }
        self.channel.state = State::Over;
        self.leave();
    }

    fn disconnected(&mut self, _: &Failure) {
        self.channel.state = State::Over;
        self.leave();
    }

    fn deadline(&self) -> Option<Instant> {
        self.channel.deadline()
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        self.channel.check_time(now).map_err(|breach| self.breach(breach, None))
    }

    fn outstanding(&self) -> usize {
        self.serving.len() - self.withdrawn
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.leave();
    }
}

impl std::fmt::Debug for Accepting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Accepting({:?}, {} calls)", self.channel.state, self.serving.len())
    }
}

#[cold]
fn one_way() -> Failure {
    unsupported("calls cannot go back over a connection that the peer opened")
        .with_hint("connect to the peer's own endpoint")
}
