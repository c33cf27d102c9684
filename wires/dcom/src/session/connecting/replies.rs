//! Answers: results, failing HRESULTs, exceptions, faults.
//!
//! States: `waiting` loses the entry of an answered call (`settle`); `proven` and `unconfirmed` change with
//! the first answers; `doubted` remembers the calls that an unsigned fault ended.
//!
//! Invariants: answers come in any order and are found by number; one that nobody waits for is dropped, but
//! for an answer to a doubted call, which proves a forgery and ends the connection. Where the level signs,
//! results without a signature end the connection. A fault is taken without one, since Windows and Samba do
//! not sign faults, but then never leads to a call of the user being made twice. The HRESULT of a method is
//! the last aligned number of its results.

use super::calls::lower;
use super::state::{Connecting, Context, Job, PendingRequest, Purpose, QueuedCall, Results, Stage};
use crate::frame::{DID_NOT_EXECUTE, FIRST, HEADER, Header, LAST};
use crate::hresult;
use crate::ndr::{POINTED, THAT};
use crate::orpc::{OrpcThat, error_info};
use crate::pdu::cursor::Cursor;
use crate::pdu::{Heading, Pdu, ProtocolError, Response};
use crate::session::assembly::Fragment;
use crate::session::channel::State;
use crate::session::{exception, values};
use crate::standard::dispatch::call::results as invoked;
use bytes::{Bytes, BytesMut};
use everywire_model::{Body, Completed, Failure, Initiator, Kind, Outcome};
use std::sync::Arc;
use std::time::Instant;

/// The most calls that are remembered for having been ended by a fault without a signature. One that falls
/// out of the list loses only the proof of a forgery.
const DOUBTED: usize = 64;

impl Connecting {
    /// A fragment of results.
    #[inline]
    pub(super) fn response_in(
        &mut self,
        now: Instant,
        header: &Header,
        mut message: BytesMut,
    ) -> Result<(), ProtocolError> {
        let (end, shield) = self.channel.open(header, &mut message, None)?;
        if shield.is_none() && self.channel.shields.first().is_some_and(|shield| shield.signs()) {
            return Err(ProtocolError::Unprotected { kind: header.kind.word() });
        }
        // It speaks under the protection that was agreed on.
        self.unconfirmed = false;
        message.truncate(end);
        let message = message.freeze();
        let response = Response::read(&mut Cursor::new(&message, HEADER, header.little))?;
        let stub = message.slice(response.stub);
        if header.flags & (FIRST | LAST) == FIRST | LAST && self.channel.assemblies.is_empty() {
            match self.settle(header.call) {
                Some(purpose) => self.results_in(purpose, stub, header.little),
                None => self.check_doubted(header.call)?,
            }
            return Ok(());
        }
        // Of an answer that nobody waits for, nothing is kept.
        if !self.is_waiting(header.call) {
            self.channel.assemblies.forget(header.call);
            return self.check_doubted(header.call);
        }
        let heading = Heading::answer(header.kind, header.call, response.context);
        let fragment = Fragment { heading, little: header.little, shield };
        let due = self.channel.assembly_due(now);
        let limits = &self.channel.limits;
        let joined = self.channel.assemblies.take(&fragment, header.flags, &stub, limits, due);
        let joined = joined.inspect_err(|breach| {
            if let ProtocolError::OverLimit { size, limit } = *breach
                && let Some(serial) = self.settle(header.call).and_then(|purpose| purpose.serial())
            {
                let failure = Failure::over_limit(Initiator::Here, "bytes in an answer", size, limit)
                    .with_completed(Completed::Yes)
                    .with_hint("raise the message limit of this side, or ask for less at a time");
                self.reply(serial, Outcome::Failed(failure));
            }
        })?;
        if let Some((_, stub)) = joined
            && let Some(purpose) = self.settle(header.call)
        {
            self.results_in(purpose, stub, header.little);
        }
        Ok(())
    }

    /// A failure of the RPC layer, or one of ORPC that has no results.
    ///
    /// Windows and Samba sign no faults, so one without a signature is taken where answers are signed, but for no more than a
    /// rumour: the call may have run, whatever it says, and is not made again. An answer that comes after all shows that the
    /// fault was forged; one that was held back is missed by the next signature.
    pub(super) fn fault_in(&mut self, header: &Header, mut message: BytesMut) -> Result<(), ProtocolError> {
        let (end, shield) = self.channel.open(header, &mut message, None)?;
        let doubtful = shield.is_none() && self.channel.shields.first().is_some_and(|shield| shield.signs());
        let Pdu::Fault(fault) = Pdu::contents(header, &message, end)? else {
            return Err(ProtocolError::Unexpected { kind: header.kind.word() });
        };
        // The flag is the server's word that no servant has seen the call.
        let unexecuted = header.has(DID_NOT_EXECUTE);
        // Some know no other word for a wrong password.
        let unknown = self.unconfirmed && fault.status == hresult::NCA_PROTO_ERROR;
        let failure = match fault_failure(fault.status, unexecuted) {
            // Anybody may have said so: calls that were sent may have run.
            failure if unknown && !doubtful => not_let_in(fault.status).with_completed(failure.completed()),
            _ if unknown => not_let_in(fault.status).with_completed(Completed::Maybe),
            failure => failure,
        };
        self.channel.assemblies.forget(header.call);
        if self.channel.state == State::Unbound || !self.ready || unknown {
            self.give_up(failure);
            return Ok(());
        }
        let other_version = fault.status == hresult::RPC_E_VERSION_MISMATCH;
        match self.settle(header.call) {
            Some(Purpose::System(task)) => {
                if doubtful {
                    self.remember_doubt(header.call);
                }
                self.request_failed(*task, fault.status, &failure);
            }
            Some(Purpose::Held(held)) if other_version && !doubtful => self.send_older(held, failure),
            Some(call) => {
                let failure = if doubtful { self.doubt(header.call, &failure) } else { failure };
                let failure = if call.passes() { self.as_fault(failure, fault.status) } else { failure };
                if let Some(serial) = call.serial() {
                    self.reply(serial, Outcome::Failed(failure));
                }
                self.pump();
            }
            None => self.alter_fault(header.call),
        }
        Ok(())
    }

    /// What a fault without a signature says of a call whose answer is to be signed.
    #[cold]
    fn doubt(&mut self, call: u32, failure: &Failure) -> Failure {
        self.remember_doubt(call);
        let what = format!("{} (told without a signature)", failure.message());
        let told = Failure::new(failure.kind(), failure.initiator(), what).with_completed(Completed::Maybe);
        let told = told.with_code(failure.code().unwrap_or_default());
        told.with_hint(failure.hint().unwrap_or(
            "the peer does not sign what fails: anybody on the way to it could have said so, and the call may have run",
        ))
    }

    /// The oldest of `DOUBTED` calls is forgotten: a true answer to it would then pass for one that nobody
    /// waits for, and is only ignored.
    fn remember_doubt(&mut self, call: u32) {
        if self.doubted.len() >= DOUBTED {
            self.doubted.pop_front();
        }
        self.doubted.push_back(call);
    }

    /// An answer came that nobody waits for.
    #[cold]
    fn check_doubted(&self, call: u32) -> Result<(), ProtocolError> {
        if self.doubted.contains(&call) { Err(ProtocolError::ForgedFault { call }) } else { Ok(()) }
    }

    /// The peer does not speak the version of ORPC that a call was sent by: nothing ran, so it is sent by an older one.
    #[cold]
    fn send_older(&mut self, mut held: Box<QueuedCall>, failure: Failure) {
        match lower(held.target.minor) {
            Some(minor) => {
                self.orpc_minor = self.orpc_minor.min(minor);
                held.target.minor = minor;
                self.jobs.push_front(Job::Call(held));
            }
            None => self.reply(held.serial, Outcome::Failed(failure)),
        }
        self.pump();
    }

    /// The peer refuses an alter_context, and with it the contexts it asked for.
    fn alter_fault(&mut self, call: u32) {
        let asked = |context: &&mut Context| context.call == call && context.stage == Stage::Asked;
        for context in self.contexts.iter_mut().filter(asked) {
            context.stage = Stage::Refused;
        }
        self.pump();
    }

    /// Forgets what was sent; what for.
    #[inline]
    fn settle(&mut self, call: u32) -> Option<Purpose> {
        let first = self.waiting.front()?.call;
        if first == call {
            return self.waiting.pop_front().map(|waiting| waiting.purpose);
        }
        let index = self.find(call, first)?;
        self.waiting.remove(index).map(|waiting| waiting.purpose)
    }

    fn is_waiting(&self, call: u32) -> bool {
        self.waiting.front().is_some_and(|first| self.find(call, first.call).is_some())
    }

    /// Numbers ascend from the first, wrapping.
    /// Entries are appended in the order of their numbers, so the distance from the first one ascends even
    /// across the wrap.
    fn find(&self, call: u32, first: u32) -> Option<usize> {
        let distance = |waiting: &PendingRequest| waiting.call.wrapping_sub(first);
        self.waiting.binary_search_by_key(&call.wrapping_sub(first), distance).ok()
    }

    /// Whole results.
    /// Results of plain DCE/RPC are the whole stub, and have no HRESULT that the wire knows of.
    #[inline]
    fn results_in(&mut self, purpose: Purpose, stub: Bytes, little: bool) {
        let (serial, results) = match purpose {
            Purpose::Call { serial, results } => (serial, results),
            Purpose::Held(held) => return self.held_in(&held, stub, little),
            Purpose::System(task) => return self.request_answered(*task, &stub, little),
        };
        let outcome = if results.orpc {
            self.orpc_outcome(stub, little, results).unwrap_or_else(Outcome::Failed)
        } else {
            Outcome::Done(self.body(stub, 0, little, false))
        };
        self.reply(serial, outcome);
        if !self.jobs.is_empty() {
            self.pump();
        }
    }

    /// The answer to a call that was kept.
    #[cold]
    fn held_in(&mut self, held: &QueuedCall, stub: Bytes, little: bool) {
        self.proven |= held.target.results.orpc;
        let outcome = self.orpc_outcome(stub, little, held.target.results).unwrap_or_else(Outcome::Failed);
        let outcome = match (&held.operation, outcome) {
            (Some(operation), Outcome::Done(body)) => invoked(operation, &body),
            (_, outcome) => outcome,
        };
        self.reply(held.serial, outcome);
        self.pump();
    }

    /// What a method says, behind ORPCTHAT and before its HRESULT.
    #[inline]
    fn orpc_outcome(&self, stub: Bytes, little: bool, results: Results) -> Result<Outcome<Body>, Failure> {
        if results.passed {
            return self.passed_outcome(&stub, little);
        }
        let (that, taken) = leading_that(&stub, little)?;
        if !results.hresult {
            let body = self.body(stub.slice(taken.min(stub.len())..), taken, little, results.foreign);
            return Ok(Outcome::Done(extended(body, &stub, &that)));
        }
        let Some((end, code)) = last_number(&stub, taken, little) else {
            return Err(undecodable(Failure::malformed("results end before their HRESULT", stub.len())));
        };
        if !hresult::is_failure(code) {
            let body = self.body(stub.slice(taken..end), taken, little, results.foreign);
            let body = extended(body, &stub, &that);
            let body = if code == hresult::S_OK { body } else { body.with_status(code.cast_signed()) };
            return Ok(Outcome::Done(body));
        }
        self.failed(code, that)
    }

    /// What a failing HRESULT says, and the extensions beside it.
    #[cold]
    pub(super) fn failed(&self, code: u32, that: Option<OrpcThat>) -> Result<Outcome<Body>, Failure> {
        let extensions = that.map(|that| that.extensions).unwrap_or_default();
        let beside = self.talk.as_ref().map(|talk| Arc::clone(&talk.beside));
        if code == hresult::DISP_E_EXCEPTION
            && let Some(raised) = exception::get(&extensions, self.channel.limits.budget, beside)
        {
            return Ok(raised);
        }
        Err(hresult::failure(code, error_info(&extensions).as_ref()))
    }

    /// Results of a foreign interface have their texts behind pointers; see `is_foreign`.
    #[inline]
    fn body(&self, bytes: Bytes, base: usize, little: bool, foreign: bool) -> Body {
        let mut body = values::body(bytes, base, little, self.channel.limits.budget, self.talk.as_ref());
        if foreign {
            body.dialect |= POINTED;
        }
        body
    }
}

/// The ORPCTHAT that a stub begins with, and how long it is; none if it is the usual one, which says nothing.
#[inline]
pub(super) fn leading_that(stub: &Bytes, little: bool) -> Result<(Option<OrpcThat>, usize), Failure> {
    if stub.first_chunk::<{ OrpcThat::LEN }>() == Some(&[0; OrpcThat::LEN]) {
        return Ok((None, OrpcThat::LEN));
    }
    let parsed = OrpcThat::parse(stub, little).map_err(|violation| undecodable(violation.at(0)))?;
    Ok((Some(parsed.0), parsed.1))
}

/// The last aligned number of a stub, if it is behind the first `taken` octets, and where it is; what follows it is no whole one.
#[inline]
pub(super) fn last_number(stub: &[u8], taken: usize, little: bool) -> Option<(usize, u32)> {
    let end = (stub.len() & !3).saturating_sub(4);
    let raw = stub.get(end..).and_then(|rest| rest.first_chunk()).filter(|_| end >= taken)?;
    Some((end, if little { u32::from_le_bytes(*raw) } else { u32::from_be_bytes(*raw) }))
}

/// Results with the extensions that came with them, if some did.
#[inline]
fn extended(body: Body, stub: &Bytes, that: &Option<OrpcThat>) -> Body {
    match that {
        Some(that) if !that.extensions.is_empty() => values::with_extensions(body, stub, THAT),
        _ => body,
    }
}

/// The failure for a fault.
/// A refusal is told as what it nearly always is: a wrong account or too low a level.
#[cold]
fn fault_failure(status: u32, unexecuted: bool) -> Failure {
    let failure = hresult::fault_failure(status, unexecuted);
    if matches!(status, hresult::NCA_ACCESS_DENIED | hresult::NCA_SEC_PKG_ERROR) {
        let completed = if unexecuted { Completed::No } else { failure.completed() };
        return not_let_in(status).with_completed(completed);
    }
    failure
}

/// The failure of a caller that the peer refuses.
#[cold]
fn not_let_in(status: u32) -> Failure {
    Failure::new(Kind::Refused, Initiator::Peer, "the peer does not let this caller in")
        .with_code(format!("{status:#010x}"))
        .with_hint("check the credentials, and that the level is one the server takes")
}

/// The method has run, but what it said cannot be read.
#[cold]
fn undecodable(failure: Failure) -> Failure {
    failure.with_completed(Completed::Maybe)
}
