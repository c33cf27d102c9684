//! Messages that the exchange sends on its own account.
//!
//! Faults to messages that reached nobody come first, then what a reliable session has to send: its control
//! messages, messages that its window lets go, repetitions, acknowledgements.

use super::sending::OutboundMessage;
use super::state::{Addressee, Flushed, Refusal, SoapChannel};
use crate::dictionary::Outgoing;
use crate::plan::Plan;
use crate::soap::faults::FaultContents;
use crate::soap::ids::MessageId;
use crate::soap::rm::NextMessage;
use crate::soap::template::HeadContents;
use everywire_model::{Failure, SendBuffer};
use std::sync::Arc;
use std::time::Instant;

impl SoapChannel {
    /// Appends the next message that the exchange sends on its own account, or that a reliable session lets through now;
    /// called until there is none, after everything else.
    #[inline]
    pub fn flush(&mut self, now: Instant, out: &mut SendBuffer) -> Option<Flushed> {
        self.clock = now;
        if self.own.is_empty() && self.reliable.is_none() { None } else { self.flush_one(out) }
    }

    #[cold]
    fn flush_one(&mut self, out: &mut SendBuffer) -> Option<Flushed> {
        let flushed = self.flush_own(out).or_else(|| self.put_next(out));
        // Nothing else was to be sent: perhaps the request at hand gets no answer any more.
        let refused =
            self.reliable.as_mut().filter(|_| flushed.is_none()).and_then(|reliable| reliable.refused());
        let Some((said, relates_to)) = refused else { return flushed };
        self.fault(said, relates_to);
        self.flush_own(out)
    }

    fn flush_own(&mut self, out: &mut SendBuffer) -> Option<Flushed> {
        while let Some(Refusal { said, relates_to, not_understood, to, echoed }) = self.own.pop_front() {
            // Such a fault is of no sequence, so the session must not number it.
            let held = self.reliable.take();
            let addressee = Addressee { relates_to: relates_to.as_ref(), to: to.as_deref(), echoed: &echoed };
            let put = self.put_fault(&said, addressee, &not_understood, None, out);
            self.reliable = held;
            if put.is_ok() {
                let action = Some(said.action.as_ref().into());
                return Some(Flushed { fault: true, action, answers: true, call: None });
            }
        }
        None
    }

    /// Appends the next message of a reliable session, if one may go.
    pub(super) fn put_next(&mut self, out: &mut SendBuffer) -> Option<Flushed> {
        let mut reliable = self.reliable.take()?;
        // The client says nothing more, and is owed nothing: the service ends its own sequence, too.
        if self.serving.len() == 0 && reliable.session().is_told_all() {
            reliable.session().close();
        }
        let flushed =
            reliable.next(self.clock, self.waker.as_ref()).and_then(|next| self.put_reliable(next, out));
        self.reliable = Some(reliable);
        flushed
    }

    fn put_reliable(&mut self, next: NextMessage, out: &mut SendBuffer) -> Option<Flushed> {
        let NextMessage { message, headers, answers } = next;
        let saying = HeadContents {
            action: &message.action,
            message_id: message.message_id.as_ref(),
            relates_to: message.relates_to.as_ref(),
            to: message.to.as_deref(),
            reply_to: message.reply_to.as_deref(),
            headers: &headers,
            not_understood: &[],
        };
        let sent = OutboundMessage { saying, call: message.call, fault: message.fault, ..Default::default() };
        // Kept by the session until it is acknowledged: the splice shares its bytes.
        let body = message.body.clone();
        let content = |_: &mut Outgoing, out: &mut SendBuffer| {
            out.splice(body.clone());
            Ok(None)
        };
        self.send(&sent, &content, out).ok()?;
        let action = Some(message.action.as_ref().into());
        Some(Flushed { fault: message.fault, action, answers, call: message.call })
    }

    /// Time has passed; then see [`SoapChannel::flush`].
    ///
    /// # Errors
    /// The peer is gone, as far as a reliable session can tell.
    pub fn expire(&mut self, now: Instant) -> Result<(), Failure> {
        self.clock = now;
        self.session().map_or(Ok(()), |mut session| session.expire(now))
    }

    /// Ends a reliable session, once everything has arrived; then see [`SoapChannel::flush`].
    pub fn close(&mut self) {
        if let Some(mut session) = self.session() {
            session.close();
        }
    }

    /// Whether the request that came last gets its response later, from [`SoapChannel::flush`]: the waker tells when to look.
    pub fn is_awaiting(&self) -> bool {
        self.reliable.as_ref().is_some_and(|reliable| reliable.is_awaiting())
    }

    pub(super) fn is_http(&self) -> bool {
        self.settings.binding.is_http()
    }

    /// What a request says outside of its envelope.
    pub(super) fn asked_outside<'p>(&self, plan: &'p Plan, key: &[u8]) -> &'p Arc<str> {
        if self.dialect.addressing {
            &plan.action
        } else if plan.by_port.is_empty() {
            &plan.soap_action
        } else {
            plan.action_at(&self.settings.via(key), self.dialect.soap.version())
        }
    }

    pub(super) fn fault(&mut self, said: FaultContents, relates_to: Option<MessageId>) {
        let (not_understood, to, echoed) = (Vec::new(), None, Vec::new());
        self.own.push_back(Refusal { said, relates_to, not_understood, to, echoed });
    }
}
