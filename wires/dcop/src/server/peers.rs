//! The connections of a server, and what is to be done about them.
//!
//! `Peers` is a table of connections by slot, with an index by the driver's numbers; `Outbox` holds what
//! leaves: events for the driver and messages in the connections' queues. Both are data for `router`, `route`
//! and `signals`, which decide.
//!
//! States of a connection (`State`): `Handshake`, `Up`, `Gone`; it stays in the table, `Gone`, until the
//! driver says that it is disconnected, and then its slot may be used again. Invariant: whoever holds a slot
//! of somebody else (`serving`, `calling`, names, rules) is told when that leaves (`Router::leave`), so no
//! slot is held over its end; `last` is checked against the name.
//!
//! What others send to a connection (calls, sends, signals, news) finds room in its queue up to the quota
//! (`Outbox::has_room`) and is dropped beyond it: nobody can have somebody else closed by sending faster than he
//! reads. What a connection has asked for itself has as much room once more; a queue over that marks its
//! connection as lagging, and the router closes it. Where all queues together hold more than they may, the quota of what others
//! send is an even share of that; where they hold twice as much, by what their connections have asked for, the longest one lags.
//! Nothing else is done meanwhile, since many messages may be written in one go.

use crate::ice::{Acceptor, FRAME_HEADER, Framing, put_message, set_length};
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::number_hasher::NumberHasher;
use everywire_model::{HubEvent, PeerId, SendBuffer};
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// Where a connection stands in the table, as long as it lasts.
pub(super) type Slot = usize;

/// How far a connection is.
#[derive(Debug, Default)]
pub(super) enum State {
    /// Nobody knows yet who it is.
    Handshake(Acceptor),
    /// It speaks DCOP.
    Up(Framing),
    /// It is to be closed: nothing of it is read any more, and it is in no other table.
    #[default]
    Gone,
}

/// Somebody waits for a reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    /// Who.
    pub(super) caller: Slot,
    /// The key of the call.
    pub(super) key: u32,
    /// How many calls with this key are below it, itself included.
    pub(super) depth: u32,
    /// The number under which the reply was announced for later.
    pub(super) delayed: Option<[u8; 4]>,
}

/// A connection.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// The driver's number for it.
    pub(super) id: PeerId,
    /// How far it is.
    pub(super) state: State,
    /// Its queue: what is to be sent to it.
    pub(super) out: SendBuffer,
    /// Bytes of that in `Outbox::queued`.
    counted: usize,
    /// Whether an event tells the driver to send.
    flushing: bool,
    /// The id it registered; empty if none.
    pub(super) name: Vec<u8>,
    /// Whom its last message was for: the next one mostly is for the same.
    pub(super) last: Slot,
    /// Who waits for a reply from it, the longest first.
    pub(super) serving: Vec<Wait>,
    /// From whom it waits for replies, once for each.
    pub(super) calling: Vec<Slot>,
    /// How often it asked to be told of registrations, less how often it declined.
    pub(super) notifications: u32,
    /// Whether it says that the server need not live for it.
    pub(super) daemon: bool,
    /// Whether it writes types as Trinity does: `TQCString`.
    pub(super) trinity: bool,
    /// Bytes still to come of a message over the limit: they are read and dropped.
    pub(super) skip: u64,
    /// Bytes missing from the message that has begun.
    pub(super) wanted: usize,
    /// When that message must be whole.
    pub(super) due: Option<Instant>,
    /// Whether it had another id before.
    pub(super) renamed: bool,
    /// Bytes read.
    pub(super) received: u64,
    /// Messages read since the handshake.
    pub(super) sequence: u32,
}

impl Peer {
    /// The opcode in messages to it. 0 where there is none yet.
    fn opcode(&self) -> u8 {
        match &self.state {
            State::Up(framing) => framing.my_opcode,
            _ => 0,
        }
    }

    /// Drops what has come of a message over the limit; whether that is the whole rest of it.
    pub(super) fn drop_rest(&mut self, input: &mut BytesMut) -> bool {
        let len = input.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        input.advance(len);
        self.skip -= len as u64;
        self.received += len as u64;
        self.wanted = 0;
        self.skip == 0
    }

    /// Whether it takes messages.
    pub(super) fn up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// By slot.
    slots: Vec<Option<Box<Peer>>>,
    /// Slots that nobody has.
    free: Vec<Slot>,
    /// By the driver's number, which it gives one after the other.
    index: HashMap<PeerId, Slot, NumberHasher>,
}

impl Peers {
    /// A new connection, in the handshake.
    pub(super) fn insert(&mut self, id: PeerId, acceptor: Acceptor) -> Slot {
        let state = State::Handshake(acceptor);
        let peer = Box::new(Peer { id, state, last: Slot::MAX, ..Peer::default() });
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(peer);
        }
        self.index.insert(id, slot);
        slot
    }

    /// Its slot may be used again from now on.
    pub(super) fn remove(&mut self, slot: Slot) {
        if let Some(peer) = self.slots.get_mut(slot).and_then(Option::take) {
            self.index.remove(&peer.id);
            self.free.push(slot);
        }
    }

    /// Nothing, if it has left.
    #[inline]
    pub(super) fn slot(&self, id: PeerId) -> Option<Slot> {
        self.index.get(&id).copied()
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> Option<&Peer> {
        self.slots.get(slot)?.as_deref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Peer> {
        self.slots.get_mut(slot)?.as_deref_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &Peer)> {
        self.slots.iter().enumerate().filter_map(|(slot, peer)| Some((slot, peer.as_deref()?)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Slot, &mut Peer)> {
        self.slots.iter_mut().enumerate().filter_map(|(slot, peer)| Some((slot, peer.as_deref_mut()?)))
    }

    /// The one with the longest queue.
    #[cold]
    fn longest(&mut self) -> Option<Slot> {
        self.iter_mut().max_by_key(|(_, peer)| peer.out.len()).map(|(slot, _)| slot)
    }

    /// Connections, those that are to be closed included.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }
}

/// What leaves: events for the driver, and messages into the connections' queues.
#[derive(Debug)]
pub(super) struct Outbox {
    /// What the driver has to do, in order.
    pub(super) events: VecDeque<HubEvent>,
    /// Connections whose queue has grown too long.
    pub(super) lagging: Vec<Slot>,
    /// Bytes that one queue may hold of what others send; of answers, twice as many.
    pub(super) quota: usize,
    /// The even share of a queue, which is its quota while all queues hold more than `all`.
    pub(super) share: usize,
    /// Bytes that all queues may hold.
    pub(super) all: usize,
    /// Bytes in all queues; what the driver has sent of `sending` is taken off by `count`.
    pub(super) queued: usize,
    /// The connection whose queue the driver was given last.
    pub(super) sending: Option<Slot>,
}

impl Outbox {
    /// Whether a message of others with `len` more bytes finds room in a connection's queue. One does in an empty queue, until all
    /// of them hold twice as much as they may.
    #[inline]
    pub(super) fn has_room(&self, peer: &Peer, len: usize) -> bool {
        let together = self.queued.saturating_add(len);
        let quota = if together <= self.all { self.quota } else { self.share };
        peer.out.len().saturating_add(len) <= quota
            || peer.out.is_empty() && together <= self.all.saturating_mul(2)
    }

    /// Takes off what the driver has sent of the queue that it was given last. Where all queues still hold twice as much as they
    /// may, the longest one lags.
    #[inline]
    pub(super) fn count(&mut self, peers: &mut Peers) {
        if let Some(peer) = self.sending.take().and_then(|slot| peers.get_mut(slot)) {
            self.weigh(peer);
        }
        if self.queued > self.all.saturating_mul(2) {
            self.lagging.extend(peers.longest());
        }
    }

    /// Counts a queue as it is now.
    #[inline]
    pub(super) fn weigh(&mut self, peer: &mut Peer) {
        let len = peer.out.len();
        self.queued = (self.queued + len).saturating_sub(std::mem::replace(&mut peer.counted, len));
    }

    /// A connection is gone, and what waited for it.
    pub(super) fn forget(&mut self, peer: &Peer) {
        self.queued = self.queued.saturating_sub(peer.counted);
    }

    /// Has the driver send what is in a connection's queue. One event for each connection is under way at
    /// most.
    #[inline]
    pub(super) fn flush(&mut self, slot: Slot, peer: &mut Peer) {
        self.weigh(peer);
        if peer.out.len() > self.quota.saturating_mul(2) {
            self.lagging.push(slot);
        }
        if !peer.flushing {
            peer.flushing = true;
            self.events.push_back(HubEvent::Flush(peer.id));
        }
    }

    /// Puts a message of the server itself into a connection's queue; `write` appends its payload. Nothing,
    /// if it takes none.
    pub(super) fn message(
        &mut self,
        slot: Slot,
        peer: &mut Peer,
        minor: u8,
        key: u32,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.message_and(slot, peer, minor, key, write, None);
    }

    /// The same with a last part that is passed on by reference, if it is large.
    pub(super) fn message_and(
        &mut self,
        slot: Slot,
        peer: &mut Peer,
        minor: u8,
        key: u32,
        write: impl FnOnce(&mut Vec<u8>),
        part: Option<Bytes>,
    ) {
        if !peer.up() {
            return;
        }
        let opcode = peer.opcode();
        let out = peer.out.flat();
        let start = put_message(out, opcode, minor, key, 0);
        write(out);
        let len = out.len() - start - FRAME_HEADER + part.as_ref().map_or(0, Bytes::len);
        set_length(out, start, u32::try_from(len).unwrap_or(u32::MAX));
        if let Some(part) = part {
            peer.out.splice(part);
        }
        self.flush(slot, peer);
    }

    /// Passes a payload on by copy. The key's bytes pass as they are.
    #[inline]
    pub(super) fn copy(&mut self, slot: Slot, peer: &mut Peer, minor: u8, key: u32, payload: &[u8]) {
        let opcode = peer.opcode();
        let out = peer.out.flat();
        out.reserve(FRAME_HEADER + payload.len());
        put_message(out, opcode, minor, key, u32::try_from(payload.len()).unwrap_or(u32::MAX));
        out.extend_from_slice(payload);
        self.flush(slot, peer);
    }

    /// Passes a large payload on by reference.
    pub(super) fn splice(&mut self, slot: Slot, peer: &mut Peer, minor: u8, key: u32, payload: Bytes) {
        let opcode = peer.opcode();
        put_message(peer.out.flat(), opcode, minor, key, u32::try_from(payload.len()).unwrap_or(u32::MAX));
        peer.out.splice(payload);
        self.flush(slot, peer);
    }

    /// The next event. Events about connections that have left are passed over.
    pub(super) fn poll(&mut self, peers: &mut Peers) -> Option<HubEvent> {
        loop {
            let event = self.events.pop_front()?;
            match event {
                HubEvent::Flush(id) => {
                    let slot = peers.slot(id);
                    // Somebody who has left meanwhile needs nothing any more.
                    let Some(peer) = slot.and_then(|slot| peers.get_mut(slot)) else { continue };
                    peer.flushing = false;
                    return Some(event);
                }
                HubEvent::Close(id) if peers.slot(id).is_none() => {}
                _ => return Some(event),
            }
        }
    }
}
