//! The way of a message. Only its first two fields are looked at: who sends it, and to whom.
//!
//! `dcop` takes a whole message off the input and passes it on to the queue of its receiver: by copy, or by
//! reference if it is large. Everything else is done here and passes nothing on: calls of the server's own
//! functions, sends to several, messages to nobody.
//!
//! State: each call that is passed on is noted twice, at the callee (`serving`: who waits, with which key)
//! and at the caller (`calling`: whom it waits for), until a reply takes it out or one of the two leaves. A
//! reply that is announced for later stays noted by its number. So a reply finds its caller by what was
//! noted, and one that nobody waits for is dropped.
//!
//! What protects others: a caller must give its own id, or nobody could answer it; calls are bounded for each
//! caller, each callee and each tree; a call that finds no room in the callee's queue fails, a send is
//! dropped, and an answer that finds none marks the receiver as lagging. A payload whose first fields reach beyond its end is a
//! violation of its sender.

use super::fields::{Fields, Text};
use super::peers::{Slot, Wait};
use super::router::Router;
use crate::address::SERVER;
use crate::ice::{FRAME_HEADER, Head, ProtocolError, minor};
use crate::limits::FIRST_KEY;
use crate::strings::{put_data, put_name};
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::send_buffer::SPLICE;

/// The ends of a message's way, as they stand in it.
#[derive(Clone, Copy)]
struct RouteEnds<'a> {
    /// Whom it says that it is from.
    from: Text<'a>,
    /// An id, or a prefix and `*`.
    to: Text<'a>,
}

impl RouteEnds<'_> {
    /// As they stand at the front of a message.
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.from.raw());
        out.extend_from_slice(self.to.raw());
    }

    /// Those of the answer.
    fn back(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

impl Router {
    /// Takes a whole message from the front of the input, and passes it on.
    ///
    /// # Errors
    /// Its payload is not what its kind needs.
    #[inline]
    pub(super) fn dcop(&mut self, slot: Slot, head: Head, input: &mut BytesMut) -> Result<(), ProtocolError> {
        let end = FRAME_HEADER + head.len;
        let payload = input.get(FRAME_HEADER..end).unwrap_or_default();
        let receiver = self.route(slot, head, payload)?;
        let Some((target, peer)) = receiver.and_then(|slot| Some((slot, self.peers.get_mut(slot)?))) else {
            input.advance(end);
            return Ok(());
        };
        if head.len < SPLICE {
            self.post.copy(target, peer, head.minor, head.key, payload);
            input.advance(end);
        } else {
            input.advance(FRAME_HEADER);
            let payload = input.split_to(head.len).freeze();
            self.post.splice(target, peer, head.minor, head.key, payload);
        }
        Ok(())
    }

    /// A message over the limit: the call that it belongs to fails, and nothing else does. Its front, which
    /// tells whose call that is, is awaited; the rest is dropped as it comes. Whether the next message may be
    /// looked for.
    #[cold]
    pub(super) fn oversized(
        &mut self,
        slot: Slot,
        size: u64,
        input: &mut BytesMut,
    ) -> Result<bool, ProtocolError> {
        // Two ids and the number of a reply.
        let front = FRAME_HEADER + 2 * (4 + self.settings.name + 1) + 4;
        let front = front.min(usize::try_from(size).unwrap_or(usize::MAX));
        let Some(peer) = self.peers.get_mut(slot) else { return Ok(false) };
        if let Some(missing) = front.checked_sub(input.len()).filter(|missing| *missing > 0) {
            peer.wanted = missing;
            return Ok(false);
        }
        let head = input.split_to(front);
        peer.skip = size - front as u64;
        peer.received += front as u64;
        peer.sequence = peer.sequence.wrapping_add(1);
        if let (Some([_, kind]), Some(key)) =
            (head.first_chunk(), head.get(8..).and_then(<[u8]>::first_chunk))
        {
            let payload = head.get(FRAME_HEADER..).unwrap_or_default();
            self.fail_oversized(slot, *kind, u32::from_ne_bytes(*key), payload)?;
        }
        Ok(self.peers.get_mut(slot).is_some_and(|peer| peer.drop_rest(input)))
    }

    /// Tells whoever waits for what a message over the limit would have brought.
    fn fail_oversized(
        &mut self,
        slot: Slot,
        kind: u8,
        key: u32,
        payload: &[u8],
    ) -> Result<(), ProtocolError> {
        let mut fields = Fields::new(payload);
        let ends = RouteEnds { from: fields.text("the sender's id")?, to: fields.text("the receiver's id")? };
        let head = Head { minor: kind, key, len: payload.len() };
        match kind {
            minor::CALL | minor::FIND => self.fail(slot, key, ends),
            minor::REPLY | minor::REPLY_FAILED => {
                if let Some(caller) = self.reply(slot, head, ends.to) {
                    self.tell(caller, minor::REPLY_FAILED, key, |out| ends.put(out));
                }
            }
            minor::REPLY_DELAYED => {
                let id = fields.take("the number of a reply")?;
                if let Some(caller) = self.reply_delayed(slot, head, ends.to, id) {
                    // A reply that was announced fails by having no type.
                    self.tell(caller, minor::REPLY_DELAYED, key, |out| {
                        ends.put(out);
                        out.extend_from_slice(&id);
                        put_name(out, b"");
                        put_data(out, b"");
                    });
                }
            }
            // Nobody waits for anything.
            _ => {}
        }
        Ok(())
    }

    /// To whom the message is to be passed on as it is; everything else is done here. Fields behind the two
    /// ids are read only where the server itself is asked.
    #[inline]
    fn route(&mut self, slot: Slot, head: Head, payload: &[u8]) -> Result<Option<Slot>, ProtocolError> {
        let mut fields = Fields::new(payload);
        let from = fields.text("the sender's id")?;
        let to = fields.text("the receiver's id")?;
        let ends = RouteEnds { from, to };
        match head.minor {
            minor::CALL | minor::FIND => self.call(slot, head, ends, &mut fields),
            minor::REPLY | minor::REPLY_FAILED => Ok(self.reply(slot, head, to)),
            minor::SEND => self.send(slot, head, ends, &mut fields, payload),
            minor::REPLY_WAIT => {
                let id = fields.take("the number of a reply")?;
                Ok(self.reply_wait(slot, head, to, id))
            }
            _ => {
                let id = fields.take("the number of a reply")?;
                Ok(self.reply_delayed(slot, head, to, id))
            }
        }
    }

    /// A message that nobody answers. Whoever gives another id than its own is not heard, and what finds no room
    /// in the receiver's queue is dropped.
    fn send(
        &mut self,
        slot: Slot,
        head: Head,
        ends: RouteEnds<'_>,
        fields: &mut Fields<'_>,
        payload: &[u8],
    ) -> Result<Option<Slot>, ProtocolError> {
        let to = ends.to.bytes();
        if to == SERVER {
            let (object, function) = (fields.text("the object")?, fields.text("the function")?);
            let data = fields.data("the arguments")?;
            let mut reply = std::mem::take(&mut self.scratch);
            reply.clear();
            // Nobody hears whether there is such a function.
            let _ = self.serve(slot, object.bytes(), function.bytes(), data, &mut reply);
            self.scratch = reply;
            return Ok(None);
        }
        if !self.speaks_as(slot, ends.from) {
            return Ok(None);
        }
        if let Some(target) = self.find(slot, to) {
            let peer = self.peers.get(target);
            return Ok(peer.filter(|peer| self.post.has_room(peer, head.len)).map(|_| target));
        }
        if let Some(prefix) = to.strip_suffix(b"*") {
            self.multicast(prefix, head.key, payload);
        }
        Ok(None)
    }

    /// To all ids that begin so, the sender's own included.
    fn multicast(&mut self, prefix: &[u8], key: u32, payload: &[u8]) {
        let shared = (payload.len() >= SPLICE).then(|| Bytes::copy_from_slice(payload));
        for (_, &target) in self.names.iter().filter(|(name, _)| name.starts_with(prefix)) {
            let Some(peer) = self.peers.get_mut(target) else { continue };
            if !self.post.has_room(peer, payload.len()) {
                continue;
            }
            match &shared {
                Some(payload) => self.post.splice(target, peer, minor::SEND, key, payload.clone()),
                None => self.post.copy(target, peer, minor::SEND, key, payload),
            }
        }
    }

    /// A call or a search: passed on, served here, or failed.
    #[inline]
    fn call(
        &mut self,
        slot: Slot,
        head: Head,
        ends: RouteEnds<'_>,
        fields: &mut Fields<'_>,
    ) -> Result<Option<Slot>, ProtocolError> {
        if let Some(target) = self.find(slot, ends.to.bytes()) {
            if let Some(depth) = self.may_call(slot, ends.from, head.key)
                && let Some(callee) = self.peers.get_mut(target)
                && callee.serving.len() < self.settings.waiting
                && self.post.has_room(callee, head.len)
            {
                callee.serving.push(Wait { caller: slot, key: head.key, depth, delayed: None });
                if let Some(caller) = self.peers.get_mut(slot) {
                    caller.calling.push(target);
                }
                return Ok(Some(target));
            }
        } else if head.minor == minor::CALL && ends.to.bytes() == SERVER {
            let (object, function) = (fields.text("the object")?, fields.text("the function")?);
            let data = fields.data("the arguments")?;
            let mut reply = std::mem::take(&mut self.scratch);
            reply.clear();
            let kind = self.serve(slot, object.bytes(), function.bytes(), data, &mut reply);
            if let Some(kind) = kind {
                let key = self.key(head.key);
                self.tell(slot, minor::REPLY, key, |out| {
                    ends.back().put(out);
                    put_name(out, kind);
                    put_data(out, &reply);
                });
            }
            self.scratch = reply;
            if kind.is_some() {
                return Ok(None);
            }
        }
        self.fail(slot, head.key, ends);
        Ok(None)
    }

    /// Tells a caller that there will be no reply. The failure names the ends the other way round.
    #[cold]
    fn fail(&mut self, slot: Slot, key: u32, ends: RouteEnds<'_>) {
        let key = self.key(key);
        self.tell(slot, minor::REPLY_FAILED, key, |out| ends.back().put(out));
    }

    /// Puts a message of the server itself into a connection's queue.
    fn tell(&mut self, to: Slot, kind: u8, key: u32, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(peer) = self.peers.get_mut(to) {
            self.post.message(to, peer, kind, key, write);
        }
    }

    /// A reply, or a failure, of a callee: the caller that it is for. The call is over.
    fn reply(&mut self, slot: Slot, head: Head, to: Text<'_>) -> Option<Slot> {
        let (caller, at) = self.asked(slot, head.key, to)?;
        self.peers.get_mut(slot)?.serving.remove(at);
        self.answered(slot, caller);
        self.admit(caller, head.len)
    }

    /// The reply comes later, under this number: the call stays noted, by that.
    fn reply_wait(&mut self, slot: Slot, head: Head, to: Text<'_>, id: [u8; 4]) -> Option<Slot> {
        let (caller, at) = self.asked(slot, head.key, to)?;
        self.peers.get_mut(slot)?.serving.get_mut(at)?.delayed = Some(id);
        self.admit(caller, head.len)
    }

    /// The reply that was announced under this number. It is found by the caller's id, or by the key where
    /// the caller has another id by now.
    fn reply_delayed(&mut self, slot: Slot, head: Head, to: Text<'_>, id: [u8; 4]) -> Option<Slot> {
        let caller = self.find(slot, to.bytes());
        let serving = &self.peers.get(slot)?.serving;
        let announced = |wait: &Wait| wait.delayed == Some(id);
        let at = serving.iter().position(|wait| Some(wait.caller) == caller && announced(wait));
        let at = at.or_else(|| {
            serving
                .iter()
                .position(|wait| wait.key == head.key && announced(wait) && self.renamed(wait.caller))
        })?;
        let caller = self.peers.get_mut(slot)?.serving.remove(at).caller;
        self.answered(slot, caller);
        self.admit(caller, head.len)
    }

    /// Which of those who wait for a connection a reply to this id is for, and where it waits. Callees echo the key; one who
    /// gives none answers the oldest call. A key that nobody waits for is that of a caller who has left: somebody else may have its
    /// id by now, whose calls are not to be answered by that. Callers that were renamed meanwhile are found by the key alone.
    #[inline]
    fn asked(&mut self, slot: Slot, key: u32, to: Text<'_>) -> Option<(Slot, usize)> {
        let caller = self.find(slot, to.bytes());
        let serving = &self.peers.get(slot)?.serving;
        let open = |wait: &Wait| Some(wait.caller) == caller && wait.delayed.is_none();
        let at = serving.iter().position(|wait| open(wait) && wait.key == key);
        let former = || {
            let open = |wait: &Wait| wait.key == key && wait.delayed.is_none() && self.renamed(wait.caller);
            serving.iter().position(open)
        };
        let oldest = || if key < FIRST_KEY { serving.iter().position(open) } else { None };
        let at = at.or_else(former).or_else(oldest)?;
        Some((serving.get(at)?.caller, at))
    }

    /// Whether a connection had another id before.
    fn renamed(&self, slot: Slot) -> bool {
        self.peers.get(slot).is_some_and(|peer| peer.renamed)
    }

    /// The caller waits for one reply less of this callee.
    fn answered(&mut self, callee: Slot, caller: Slot) {
        if let Some(caller) = self.peers.get_mut(caller)
            && let Some(at) = caller.calling.iter().position(|slot| *slot == callee)
        {
            caller.calling.swap_remove(at);
        }
    }

    /// How deep a call nests, if it may be made at all: only under one's own id, to which the reply finds its way, and
    /// within the quotas.
    #[inline]
    fn may_call(&self, slot: Slot, from: Text<'_>, key: u32) -> Option<u32> {
        let caller = self.peers.get(slot)?;
        let served = caller.serving.iter().filter(|wait| wait.key == key);
        let depth = served.map(|wait| wait.depth).max().unwrap_or_default() + 1;
        let known = !caller.name.is_empty() && caller.name == from.bytes();
        let room = caller.calling.len() < self.settings.outstanding && depth <= self.settings.depth;
        (known && room).then_some(depth)
    }

    /// Whether a connection gives its own id as the sender's.
    fn speaks_as(&self, slot: Slot, from: Text<'_>) -> bool {
        self.peers.get(slot).is_some_and(|peer| peer.name == from.bytes())
    }

    /// The connection with this id. The receiver of the last message is tried first.
    #[inline]
    fn find(&mut self, slot: Slot, name: &[u8]) -> Option<Slot> {
        if name.is_empty() {
            return None;
        }
        let last = self.peers.get(slot)?.last;
        if self.peers.get(last).is_some_and(|peer| peer.name == name) {
            return Some(last);
        }
        let found = self.names.get(name).copied()?;
        self.peers.get_mut(slot)?.last = found;
        Some(found)
    }

    /// The same connection, if its queue has room for so many bytes that it has asked for; else it lags too far
    /// behind.
    #[inline]
    fn admit(&mut self, slot: Slot, len: usize) -> Option<Slot> {
        let queued = self.peers.get(slot)?.out.len();
        if queued == 0 || queued.saturating_add(len) <= self.post.quota.saturating_mul(2) {
            return Some(slot);
        }
        self.post.lagging.push(slot);
        None
    }
}
