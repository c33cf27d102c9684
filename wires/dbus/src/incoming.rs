//! Taking messages off the stream: headers, limits, handles, time.

use crate::frame::{self, HEADER, Header};
use crate::limits;
use crate::seen::fields_of;
use crate::session::{DbusSession, Pending, Stage};
use crate::values::VALUES;
use crate::violations::Wrong;
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::{Body, CallId, Completed, Event, Failure, Handle, Initiator, Outcome, Violation};
use std::sync::Arc;
use std::time::Instant;

/// A message, its fields recognised.
pub(crate) struct Arrived {
    pub(crate) header: Header,
    /// Where the fields are remembered.
    pub(crate) known: usize,
    /// The call that it answers.
    pub(crate) reply: u32,
    pub(crate) bytes: Bytes,
    pub(crate) handles: Option<Arc<[Handle]>>,
}

impl DbusSession {
    /// Handles everything whole at the front of the input.
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
                    // What is passed before anybody knows who passes it is closed.
                    handles.clear();
                    if !self.greet(input)? {
                        return Ok(());
                    }
                    continue;
                }
                _ => {}
            }
            if self.discarding.is_some() {
                if !self.discard(input) {
                    return Ok(());
                }
                continue;
            }
            let Some(raw) = input.first_chunk::<HEADER>() else {
                return self.wait(now, input.len(), HEADER, handles);
            };
            let header = Header::read(raw).map_err(|wrong| self.wrong(&wrong))?;
            let len = header.len();
            if len > limits::largest(&self.limits) {
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
            self.due = None;
            self.take(&header, len, input, handles).map_err(|wrong| self.wrong(&wrong))?;
            self.received += len as u64;
        }
    }

    /// Takes a whole message.
    #[inline]
    fn take(
        &mut self,
        header: &Header,
        len: usize,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Wrong> {
        if matches!(self.stage, Stage::Overhearing) {
            handles.clear();
            self.events.push_back(Event::Overheard(input.split_to(len).freeze()));
            return Ok(());
        }
        let (known, reply) = self.seen.find(header, fields_of(header, input)?)?;
        let announced = self.seen.get(known).map_or(0, |known| known.fields.handles as usize);
        let handles = if announced == 0 { None } else { Some(self.taken(announced, handles)?) };
        let bytes = if header.body == 0 {
            input.advance(len);
            Bytes::new()
        } else {
            input.advance(header.body_at());
            input.split_to(header.body as usize).freeze()
        };
        self.arrived(Arrived { header: *header, known, reply, bytes, handles })
    }

    /// The handles that a message announces.
    fn taken(&self, announced: usize, handles: &mut Vec<Handle>) -> Result<Arc<[Handle]>, Wrong> {
        if announced > limits::HANDLES {
            return Err(Wrong::TooManyHandles { count: announced });
        }
        if !self.handles {
            return Err(Wrong::HandlesUnasked);
        }
        if handles.len() < announced {
            return Err(Wrong::Handles { announced, came: handles.len() });
        }
        Ok(handles.drain(..announced).collect())
    }

    #[inline]
    fn arrived(&mut self, message: Arrived) -> Result<(), Wrong> {
        let unsigned = self.seen.get(message.known).is_some_and(|known| known.fields.signature.is_empty());
        if unsigned && message.header.body > 0 {
            return Err(Wrong::NoSignature { bytes: message.header.body });
        }
        match message.header.kind {
            frame::METHOD_CALL => self.called(message),
            frame::METHOD_RETURN => return self.returned(message),
            frame::ERROR => return self.refused(message),
            frame::SIGNAL => self.signalled(message),
            // Unknown types must be ignored.
            _ => {}
        }
        Ok(())
    }

    /// The values of a message.
    #[inline]
    pub(crate) fn body(&self, message: &Arrived, signature: Bytes, dialect: u32) -> Body {
        Body {
            bytes: message.bytes.clone(),
            base: message.header.body_at(),
            little: message.header.little,
            dialect,
            context: signature,
            budget: self.limits.budget,
            codec: &VALUES,
            handles: message.handles.clone(),
        }
    }

    /// Notes that a message has begun and `whole - have` bytes of it are missing.
    fn wait(&mut self, now: Instant, have: usize, whole: usize, handles: &[Handle]) -> Result<(), Violation> {
        if handles.len() > limits::HANDLES {
            return Err(self.wrong(&Wrong::TooManyHandles { count: handles.len() }));
        }
        if have == 0 {
            self.due = None;
            return match handles.len() {
                0 => Ok(()),
                came => Err(self.wrong(&Wrong::Handles { announced: 0, came })),
            };
        }
        if !handles.is_empty() && !self.handles {
            return Err(self.wrong(&Wrong::HandlesUnasked));
        }
        self.missing = whole - have;
        let mut time = limits::message_time(&self.limits, whole as u64);
        if !handles.is_empty() {
            // A handle in flight keeps something open, maybe this connection itself.
            time = time.min(limits::PENDING_HANDLES);
        }
        // The time that was given counts from the first byte, and grows when the size becomes known.
        match self.due {
            Some((due, seconds)) if seconds < time.as_secs() => {
                let more = std::time::Duration::from_secs(time.as_secs() - seconds);
                self.due = Some((due.checked_add(more).unwrap_or(due), time.as_secs()));
            }
            Some(_) => {}
            None => self.due = now.checked_add(time).map(|due| (due, time.as_secs())),
        }
        Ok(())
    }

    /// A message over the limit: the call it belongs to learns why, and its bytes are thrown away as they come. Whether
    /// to go on with the input.
    fn too_large(
        &mut self,
        now: Instant,
        header: &Header,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<bool, Violation> {
        let (size, limit) = (header.len(), limits::largest(&self.limits));
        let sane = size <= limits::MESSAGE && size <= limit.saturating_mul(limits::COURTESY);
        if !sane || !matches!(self.stage, Stage::Open) {
            return Err(self.wrong(&Wrong::OverLimit { size, limit }));
        }
        if input.len() < header.body_at() {
            self.wait(now, input.len(), header.body_at(), handles)?;
            return Ok(false);
        }
        let found = fields_of(header, input).and_then(|raw| self.seen.find(header, raw));
        let (known, reply) = found.map_err(|wrong| self.wrong(&wrong))?;
        let (announced, sender) = self.seen.get(known).map_or_else(Default::default, |known| {
            (known.fields.handles as usize, known.fields.sender.clone())
        });
        if announced > 0 {
            self.taken(announced, handles).map_err(|wrong| self.wrong(&wrong))?;
        }
        match header.kind {
            frame::METHOD_CALL if header.flags & frame::NO_REPLY_EXPECTED == 0 => {
                let failure = Failure::over_limit(Initiator::Peer, "bytes in a D-Bus message", size, limit)
                    .with_hint("raise the server's message limit, or send less at a time");
                self.refuse(header.serial, &sender, &failure);
            }
            frame::METHOD_RETURN | frame::ERROR => {
                if let Some(Pending::Call { .. } | Pending::Probe) = self.waiting.remove(&reply) {
                    let failure = Failure::over_limit(Initiator::Here, "bytes in a D-Bus reply", size, limit)
                        .with_completed(Completed::Yes)
                        .with_hint("raise the message limit of this side, or ask for less at a time");
                    self.reply(CallId(reply.into()), Outcome::Failed(failure));
                }
            }
            _ => {}
        }
        self.discarding = Some(size);
        let time = limits::message_time(&self.limits, size);
        self.due = now.checked_add(time).map(|due| (due, time.as_secs()));
        Ok(true)
    }

    /// Throws bytes away; whether to go on.
    fn discard(&mut self, input: &mut BytesMut) -> bool {
        let left = self.discarding.unwrap_or(0);
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        input.advance(here);
        self.received += here as u64;
        let left = left - here as u64;
        self.discarding = (left > 0).then_some(left);
        if left > 0 {
            self.missing = usize::try_from(left).unwrap_or(usize::MAX).min(limits::CHUNK);
            return false;
        }
        self.due = None;
        true
    }

    /// The violation. The protocol has no word for it: the connection closes.
    #[cold]
    pub(crate) fn wrong(&self, wrong: &Wrong) -> Violation {
        wrong.violation(self.received)
    }
}
