//! Reliable sessions over HTTP: each message is a request of its own, and the response to it may be of any other.

use super::{Asking, Connecting, Flight};
use bytes::Bytes;
use everywire_http::ProtocolError;
use everywire_model::{CallId, Event, Failure, SendBuffer};
use http::header::CONTENT_TYPE;
use http::response;
use std::time::Instant;

impl Connecting {
    /// Puts the next message of the reliable session into the queue, when there is nobody before it: messages are repeated by
    /// the clock that begins when they leave.
    pub(super) fn pull(&mut self, now: Instant) {
        if self.flight.is_some() || !self.client.is_idle() {
            return;
        }
        let mut envelope = SendBuffer::new();
        while let Some(flushed) = self.exchange.flush(now, &mut envelope) {
            let envelope = std::mem::take(&mut envelope);
            if flushed.answers {
                // Nobody waits for what this side says of a response.
                continue;
            }
            let calls = self.reliable.as_deref().unwrap_or_default();
            let call = calls.iter().find(|call| Some(call.id) == flushed.call);
            // What belongs to no call goes where the session leads.
            // The protocol's own messages (CreateSequence, TerminateSequence) are such.
            let known = call.map(|call| &call.key).or_else(|| Some(&self.last.as_ref()?.0));
            let Some(key) = known.or_else(|| Some(&calls.first()?.key)).cloned() else { continue };
            let id = flushed.call.unwrap_or_else(|| {
                self.next_own += 1;
                CallId(self.next_own)
            });
            let action = flushed.action.unwrap_or_else(|| "".into());
            match self.message(&key, &action, envelope) {
                Ok(request) => {
                    self.queue.push_back((Flight { id, key, kind: Asking::Sequence }, request));
                    return;
                }
                Err(failure) => self.exchange.fail(id, failure),
            }
        }
    }

    /// The reliable session is over, and this connection with it: the next call must not meet the same again.
    #[cold]
    pub(super) fn lost(&mut self, failure: Failure) -> ProtocolError {
        self.exchange.give_up();
        self.cut(failure)
    }

    /// This connection is over; the reliable session may go on over another one.
    #[cold]
    pub(super) fn cut(&mut self, failure: Failure) -> ProtocolError {
        self.abandon(&failure);
        let message = failure.message().to_owned();
        self.refusal = Some(failure);
        ProtocolError::Response { message }
    }

    /// The calls of the reliable session go on over another connection if they can; else they fail.
    pub(super) fn abandon(&mut self, failure: &Failure) {
        self.exchange.disconnected(failure);
        self.take_events();
        self.reliable = self.reliable.take().map(|_| Vec::new());
    }

    /// A response to a message of the reliable session.
    pub(super) fn sequenced(
        &mut self,
        now: Instant,
        flight: &Flight,
        parts: &response::Parts,
        body: Bytes,
    ) -> Result<(), ProtocolError> {
        let status = parts.status;
        let body = match self.plain(&parts.headers, body) {
            Ok(body) => body,
            Err(failure) => return Err(self.lost(failure)),
        };
        let calls = self.reliable.as_deref().unwrap_or_default();
        let tells = calls.iter().any(|call| call.kind == Asking::Told && call.id == flight.id);
        let mut objection = None;
        let content_type = parts.headers.get(CONTENT_TYPE).filter(|_| !body.is_empty());
        if let Some(format) = content_type.and_then(|given| self.format.read(given, self.dialect)) {
            let result = format.envelope(body.clone(), self.dialect, &self.settings.quotas.reader).and_then(
                |document| {
                    if tells {
                        objection = self.exchange.objection_of(&document)?;
                    }
                    self.exchange.receive(now, document, None, &flight.key)
                },
            );
            self.take_events();
            result.map_err(|failure| self.lost(failure))?;
            if let Some(failure) = self.exchange.ended() {
                // The next call begins another one, on another connection.
                self.abandon(&failure);
                self.closed = true;
                self.events.push_back(Event::Closed);
                return Ok(());
            }
        } else if matches!(status.as_u16(), 408 | 502..=504) {
            // Of something between that may be gone the next time.
            // It has not arrived: the session repeats it.
            return Ok(());
        } else if !status.is_success() {
            return Err(self.lost(self.explain(flight, parts, &body)));
        }
        // A one-way message has arrived when its request has a response.
        let told = self.reliable.as_mut().and_then(|calls| {
            let at = calls.iter().position(|call| call.kind == Asking::Told && call.id == flight.id)?;
            Some(calls.swap_remove(at))
        });
        if let Some(call) = told {
            self.exchange.has_arrived(call.id);
            match objection {
                Some(fault) => self.fail(&call, fault),
                None => self.done(call.id, Bytes::new()),
            }
        }
        Ok(())
    }
}
