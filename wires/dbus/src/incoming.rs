//! Taking messages off the stream: headers, limits, handles, time.
//!
//! `take_messages` is a loop over the front of the input. By the stage of the session there is the greeting,
//! a message for somebody else (a monitor), or a message of this side; bytes of a refused message are thrown
//! away first (`discarding`). It returns when it needs more bytes; then `missing` tells the link how many,
//! and `due` when they must be here.
//!
//! Handles come beside the bytes, in the order of the messages that announce them. A message takes as many as
//! its header says (`taken`); a message that is thrown away drops its own, or the next one would
//! get them. Handles without a message, too many of them, or on a connection that did not agree to pass them,
//! are violations, and close what they keep open. While handles wait for the rest of their message the time
//! is short (`PENDING_HANDLES`).
//!
//! Limits: size before anything is copied, then the fields. A message over the limit is refused, and its call
//! fails. Peer to peer the connection ends where it is many times over the limit (`COURTESY`), or has too
//! many fields or handles. On a bus a message may be anybody's, so there the connection stays in these cases,
//! too (`too_large`, `excess`).

use crate::dialect;
use crate::frame::{self, Fields, HEADER, Header};
use crate::header_cache::fields_of;
use crate::limits;
use crate::pending_calls::Pending;
use crate::session::{DbusSession, Stage};
use crate::values::VALUES;
use crate::violations::ProtocolError;
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::{
    Attachments, Body, CallId, Completed, Context, Event, Failure, Handle, Initiator, Outcome, Violation,
};
use std::sync::Arc;
use std::time::Instant;

/// A message whose fields are recognised and whose handles are taken.
#[derive(Clone)]
pub(crate) struct ReceivedMessage {
    pub(crate) header: Header,
    /// Where the fields are remembered: an index into `seen`, valid until the next message.
    pub(crate) known: usize,
    /// The serial number of the call that it answers; 0 if it answers none.
    pub(crate) reply: u32,
    /// The body, sharing the bytes that were read.
    pub(crate) bytes: Bytes,
    /// The handles that came with it.
    pub(crate) beside: Option<Arc<Attachments>>,
}

impl DbusSession {
    /// Handles everything whole at the front of the input; the rest stays there.
    ///
    /// # Errors
    /// The peer broke the protocol. What it passed is closed.
    pub(crate) fn take_messages(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        self.missing = 0;
        loop {
            match &self.stage {
                Stage::Closed | Stage::Broken => {
                    input.clear();
                    handles.clear();
                    return Ok(());
                }
                Stage::Greeting(_) => {
                    let admitted = self.greet(now, input).inspect_err(|_| handles.clear())?;
                    // What is passed before anybody knows who passes it is closed; what came in one piece with the last
                    // word of the greeting is of the first message.
                    if !admitted || !self.handles || input.is_empty() {
                        handles.clear();
                    }
                    if !admitted {
                        return Ok(());
                    }
                    continue;
                }
                // What others pass to one another is not wanted.
                Stage::Overhearing => handles.clear(),
                Stage::Joining | Stage::Open => {}
            }
            if self.discarding.is_some() {
                if !self.discard(input, handles)? {
                    return Ok(());
                }
                continue;
            }
            let Some(raw) = input.first_chunk::<HEADER>() else {
                return self.wait(now, input.len(), HEADER, handles);
            };
            let header = Header::read(raw).map_err(|wrong| self.wrong(&wrong))?;
            let len = header.len();
            if len > limits::largest(&self.limits) || header.fields as usize > limits::FIELDS {
                if !self.too_large(now, &header, input, handles)? {
                    return Ok(());
                }
                continue;
            }
            // The limit was checked, so the length fits.
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            if input.len() < len {
                return self.wait(now, input.len(), len, handles);
            }
            self.due.stop();
            self.take(&header, len, input, handles).map_err(|wrong| self.wrong(&wrong))?;
            self.received += len as u64;
        }
    }

    /// Takes a whole message. `len` is its length, header included; all of it is in the input.
    #[inline]
    fn take(
        &mut self,
        header: &Header,
        len: usize,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), ProtocolError> {
        if matches!(self.stage, Stage::Overhearing) {
            self.events.push_back(Event::Overheard(input.split_to(len).freeze()));
            return Ok(());
        }
        let raw = fields_of(header, input)?;
        let (index, reply) = match self.seen.again(header, raw) {
            Some(again) => again,
            None => self.seen.find(header, raw)?,
        };
        let Some(known) = self.seen.get(index) else { return Ok(()) };
        if known.excess {
            return self.excess(header, index, reply, len, input, handles);
        }
        if header.body > 0 && known.fields.signature.is_empty() {
            return Err(ProtocolError::NoSignature { bytes: header.body });
        }
        let announced = known.fields.handles as usize;
        let beside = match announced {
            0 => None,
            _ => Some(Arc::new(Attachments {
                handles: self.taken(announced, handles)?,
                ..Attachments::default()
            })),
        };
        let bytes = if header.body == 0 {
            input.advance(len);
            Bytes::new()
        } else {
            // The whole message, for that is what is cheaply taken off.
            let mut bytes = input.split_to(len).freeze();
            bytes.advance(header.body_at());
            bytes
        };
        let message = ReceivedMessage { header: *header, known: index, reply, bytes, beside };
        match header.kind {
            frame::METHOD_CALL => {
                self.check_unread()?;
                self.called(message);
            }
            frame::METHOD_RETURN => return self.returned(message),
            frame::ERROR => return self.refused(message),
            frame::SIGNAL => self.signalled(message),
            // Unknown types must be ignored.
            _ => {}
        }
        Ok(())
    }

    /// Takes the handles that a message announces out of `handles`, in the order in which they came.
    /// Without them, nothing is looked at.
    fn taken(&self, announced: usize, handles: &mut Vec<Handle>) -> Result<Vec<Handle>, ProtocolError> {
        if announced == 0 {
            return Ok(Vec::new());
        }
        if !self.handles {
            return Err(ProtocolError::HandlesUnasked);
        }
        if handles.len() < announced {
            return Err(ProtocolError::Handles { announced, came: handles.len() });
        }
        Ok(handles.drain(..announced).collect())
    }

    /// The values of a message.
    #[inline]
    pub(crate) fn body(&self, message: ReceivedMessage, signature: Context, dialect: u32) -> Body {
        Body {
            bytes: message.bytes,
            base: message.header.body_at(),
            little: message.header.little,
            dialect: dialect::dialect(dialect, message.header.flags, self.bus.is_some()),
            context: signature,
            budget: self.limits.budget,
            codec: &VALUES,
            beside: message.beside,
        }
    }

    /// Notes that a message has begun and `whole - have` bytes of it are missing. Handles that came are
    /// checked at once, and not only when the message is whole.
    fn wait(&mut self, now: Instant, have: usize, whole: usize, handles: &[Handle]) -> Result<(), Violation> {
        // A bus passes on more than is taken here.
        let most = if self.bus.is_some() { limits::HANDLES_PASSED } else { limits::HANDLES };
        if handles.len() > most {
            return Err(self.wrong(&ProtocolError::TooManyHandles { count: handles.len() }));
        }
        if have == 0 {
            self.due.stop();
            return match handles.len() {
                0 => Ok(()),
                came => Err(self.wrong(&ProtocolError::Handles { announced: 0, came })),
            };
        }
        if !handles.is_empty() && !self.handles {
            return Err(self.wrong(&ProtocolError::HandlesUnasked));
        }
        self.missing = whole - have;
        let mut time = self.limits.time_for(whole as u64);
        if !handles.is_empty() {
            // A handle in flight keeps something open, maybe this connection itself.
            time = time.min(limits::PENDING_HANDLES);
        }
        self.due.allow(now, time);
        Ok(())
    }

    /// A message over the limit: the call it belongs to learns why, and its bytes are thrown away as they come. Whether
    /// to go on with the input.
    ///
    /// A bus passes on what anybody there sends; none of that may end the connection to the bus.
    fn too_large(
        &mut self,
        now: Instant,
        header: &Header,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<bool, Violation> {
        let (size, limit, on_bus) = (header.len(), limits::largest(&self.limits), self.bus.is_some());
        let too_many_fields = header.fields as usize > limits::FIELDS;
        if too_many_fields && !on_bus {
            let (size, limit) = (header.fields.into(), limits::FIELDS as u64);
            return Err(self.wrong(&ProtocolError::Fields { size, limit }));
        }
        let sane = size <= limits::MESSAGE
            && header.body_at() as u64 <= limit
            && (on_bus || size <= limit.saturating_mul(limits::COURTESY));
        if !sane || !matches!(self.stage, Stage::Open | Stage::Overhearing) {
            return Err(self.wrong(&ProtocolError::OverLimit { size, limit }));
        }
        if matches!(self.stage, Stage::Open) {
            if input.len() < header.body_at() {
                self.wait(now, input.len(), header.body_at(), handles)?;
                return Ok(false);
            }
            let told = if too_many_fields {
                self.pass_over(header, input, handles)
            } else {
                self.tell_too_large(header, input, handles)
            };
            told.map_err(|wrong| self.wrong(&wrong))?;
        }
        self.discarding = Some(size);
        self.due.stop();
        self.due.allow(now, self.limits.time_for(size));
        Ok(true)
    }

    /// A message that is not even looked at; its handles may not be taken for those of the next one. On a bus
    /// only: its caller learns nothing.
    fn pass_over(
        &self,
        header: &Header,
        input: &[u8],
        handles: &mut Vec<Handle>,
    ) -> Result<(), ProtocolError> {
        let announced = Fields::announced(fields_of(header, input)?, header.little)? as usize;
        self.taken(announced, handles).map(drop)
    }

    /// A message over the limit whose fields are within theirs: they are read to learn whom to tell.
    fn tell_too_large(
        &mut self,
        header: &Header,
        input: &[u8],
        handles: &mut Vec<Handle>,
    ) -> Result<(), ProtocolError> {
        let (size, limit) = (header.len(), limits::largest(&self.limits));
        let (index, reply) = self.seen.find(header, fields_of(header, input)?)?;
        let announced = self.seen.get(index).map_or(0, |known| known.fields.handles as usize);
        drop(self.taken(announced, handles)?);
        let here = Failure::over_limit(Initiator::Peer, "bytes in a D-Bus message", size, limit)
            .with_hint("raise the server's message limit, or send less at a time");
        let there = Failure::over_limit(Initiator::Here, "bytes in a D-Bus reply", size, limit)
            .with_hint("raise the message limit of this side, or ask for less at a time");
        self.turn_away(header, index, reply, &here, there)
    }

    /// A message with more handles, or a longer path, than is taken here.
    #[cold]
    fn excess(
        &mut self,
        header: &Header,
        index: usize,
        reply: u32,
        len: usize,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), ProtocolError> {
        let (announced, path) = self
            .seen
            .get(index)
            .map_or((0, 0), |known| (known.fields.handles as usize, known.fields.path.len()));
        let too_many = announced > limits::HANDLES;
        if self.bus.is_none() {
            return Err(match too_many {
                true => ProtocolError::TooManyHandles { count: announced },
                false => ProtocolError::FieldValue { field: frame::field::word(frame::field::PATH) },
            });
        }
        drop(self.taken(announced, handles)?);
        input.advance(len);
        let (what, size, limit) = match too_many {
            true => ("handles in a message", announced, limits::HANDLES),
            false => ("bytes in an object path", path, limits::PATH),
        };
        let failure = |side| Failure::over_limit(side, what, size, limit);
        self.turn_away(header, index, reply, &failure(Initiator::Peer), failure(Initiator::Here))
    }

    /// Whoever waits for what a message would have brought learns that it is not taken. A call that wants no
    /// answer, and a signal, are dropped without a word.
    fn turn_away(
        &mut self,
        header: &Header,
        index: usize,
        reply: u32,
        to_caller: &Failure,
        of_reply: Failure,
    ) -> Result<(), ProtocolError> {
        match header.kind {
            frame::METHOD_CALL if header.flags & frame::NO_REPLY_EXPECTED == 0 => {
                let sender =
                    self.seen.get(index).map(|known| known.fields.sender.clone()).unwrap_or_default();
                self.refuse(header.serial, &sender, to_caller);
            }
            frame::METHOD_RETURN | frame::ERROR => {
                let Some(pending) = self.awaited(reply, index, header.kind == frame::ERROR) else {
                    return Ok(());
                };
                let failure = of_reply.with_completed(Completed::Yes);
                match pending {
                    Pending::Call { .. } | Pending::Probe(_) => {
                        self.reply(CallId(reply.into()), Outcome::Failed(failure));
                    }
                    pending => return self.not_settled(pending, failure),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Throws away what is here of a refused message; whether all of it has passed.
    fn discard(&mut self, input: &mut BytesMut, handles: &[Handle]) -> Result<bool, Violation> {
        let left = self.discarding.unwrap_or(0);
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        input.advance(here);
        self.received += here as u64;
        let left = left - here as u64;
        self.discarding = (left > 0).then_some(left);
        if left > 0 {
            // Those of the message came with its beginning.
            if !handles.is_empty() {
                return Err(self.wrong(&ProtocolError::Handles { announced: 0, came: handles.len() }));
            }
            self.missing = usize::try_from(left).unwrap_or(usize::MAX).min(limits::CHUNK);
            return Ok(false);
        }
        self.due.stop();
        Ok(true)
    }

    /// The violation. The protocol has no word for it: the connection closes.
    #[cold]
    pub(crate) fn wrong(&self, wrong: &ProtocolError) -> Violation {
        wrong.violation(self.received)
    }
}
