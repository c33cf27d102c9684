//! The connections' lives: handshake, messages, end.
//!
//! States of a connection: in the handshake it is in `handshakes`, with the time by which that must be over;
//! then it is up, and registers an id when it likes. While a message has begun and is not whole it is in
//! `begun`, with a time. `leave` takes it out of everything: whoever waits for it is told, its signals end,
//! its id is free. The table of connections keeps it, to be closed, until the driver says that it is gone.
//!
//! Invariants: `names` has exactly the connections with an id; `listening` and `clients` are counts of the
//! connections with the property, kept by whoever changes it; `entries` is 0 when nobody is connected, which
//! tests look at.
//!
//! What protects others: connections and handshakes are bounded, the oldest handshake gives way to a new one;
//! messages and handshakes have a time; what others send to a full queue is dropped, and a queue over twice its
//! quota, of answers that its connection does not read, ends the connection (`settle`).

use super::Settings;
use super::peers::{Outbox, Peer, Peers, Slot, State};
use super::signals::Signals;
use crate::address::SERVER;
use crate::ice::{Acceptor, CoreAction, FRAME_HEADER, Framing, Peek, ProtocolError, late, minor};
use crate::limits::{FIRST_KEY, LONGEST, NO_TREE};
use bytes::BytesMut;
use everywire_model::message_clock::time_for;
use everywire_model::{HubEvent, PeerId, SendBuffer, Violation};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// All that a server knows of its peers.
#[derive(Debug)]
pub(super) struct Router {
    /// What is permitted.
    pub(super) settings: Settings,
    /// All connections.
    pub(super) peers: Peers,
    /// What leaves.
    pub(super) post: Outbox,
    /// Connections by the ids they registered.
    pub(super) names: HashMap<Vec<u8>, Slot>,
    /// Who hears what.
    pub(super) signals: Signals,
    /// Connections that want to hear of registrations.
    pub(super) listening: usize,
    /// Registered applications, without daemons.
    pub(super) clients: usize,
    /// Room for results of the server's own functions.
    pub(super) scratch: Vec<u8>,
    /// What peers have to show.
    cookie: Arc<[u8]>,
    /// Goes up by one; starts again after the greatest.
    next_key: u32,
    /// Handshakes that are not over, with the time by which they must be; the oldest first.
    handshakes: VecDeque<(Instant, PeerId)>,
    /// Connections that have begun a message, with the time by which it must be whole.
    begun: BTreeSet<(Instant, PeerId)>,
}

impl Router {
    /// Nobody is connected.
    pub(super) fn new(cookie: Arc<[u8]>, settings: Settings) -> Self {
        Self {
            settings,
            peers: Peers::default(),
            post: Outbox {
                events: VecDeque::new(),
                lagging: Vec::new(),
                quota: settings.queue,
                share: settings.queue.min(settings.queues / settings.connections.max(1)),
                all: settings.queues,
                queued: 0,
                sending: None,
            },
            names: HashMap::new(),
            signals: Signals::default(),
            listening: 0,
            clients: 0,
            scratch: Vec::new(),
            cookie,
            next_key: FIRST_KEY,
            handshakes: VecDeque::new(),
            begun: BTreeSet::new(),
        }
    }

    /// Somebody connects: greeted, or closed at once if there are too many.
    pub(super) fn connected(&mut self, id: PeerId, now: Instant) {
        let acceptor = Acceptor::new(self.cookie.clone());
        let mut greeting = Vec::new();
        acceptor.greet(&mut greeting);
        let full = self.peers.len() >= self.settings.connections;
        let slot = self.peers.insert(id, acceptor);
        if full {
            self.cut(slot);
            return;
        }
        if self.handshakes.len() >= self.settings.half_open
            && let Some((_, oldest)) = self.handshakes.pop_front()
            && let Some(slot) = self.peers.slot(oldest)
        {
            self.cut(slot);
        }
        self.handshakes.push_back((now + self.settings.handshake, id));
        if let Some(peer) = self.peers.get_mut(slot) {
            peer.out.flat().extend_from_slice(&greeting);
            self.post.flush(slot, peer);
        }
    }

    /// Takes what has come from a connection.
    ///
    /// # Errors
    /// It broke the protocol: it is out of everything already, and the driver closes it.
    pub(super) fn receive(
        &mut self,
        id: PeerId,
        now: Instant,
        input: &mut BytesMut,
    ) -> Result<(), Violation> {
        let Some(slot) = self.peers.slot(id) else {
            input.clear();
            return Ok(());
        };
        self.post.count(&mut self.peers);
        let result = self.messages(slot, input);
        if result.is_err() {
            self.leave(slot);
        } else {
            self.time(slot, now, input.len());
        }
        self.settle();
        result
    }

    /// Whoever has begun a message gets time for it; the time runs on until the message is whole.
    #[inline]
    fn time(&mut self, slot: Slot, now: Instant, have: usize) {
        let Some(peer) = self.peers.get_mut(slot) else { return };
        let begun = have > 0 && peer.up();
        if begun && peer.due.is_none() {
            let time = time_for(self.settings.message_time, (have + peer.wanted) as u64);
            peer.due = now.checked_add(time);
            self.begun.extend(peer.due.map(|due| (due, peer.id)));
        } else if !begun && let Some(due) = peer.due.take() {
            self.begun.remove(&(due, peer.id));
        }
    }

    /// Handles everything whole at the front of the input.
    fn messages(&mut self, slot: Slot, input: &mut BytesMut) -> Result<(), Violation> {
        loop {
            let Some(peer) = self.peers.get_mut(slot) else { return Ok(()) };
            match &mut peer.state {
                State::Gone => {
                    input.clear();
                    return Ok(());
                }
                State::Handshake(acceptor) => {
                    let progress = acceptor.receive(input, peer.out.flat());
                    peer.wanted = acceptor.wanted();
                    peer.received = acceptor.offset();
                    if !peer.out.is_empty() {
                        self.post.flush(slot, peer);
                    }
                    // Who has not shown the cookie is not given memory either.
                    if peer.out.len() > self.settings.greeting {
                        self.post.lagging.push(slot);
                    }
                    let Some(framing) = Framing::new(progress?, self.settings.message) else { return Ok(()) };
                    peer.state = State::Up(framing);
                    let id = peer.id;
                    self.handshakes.retain(|(_, other)| *other != id);
                }
                State::Up(framing) => {
                    let framing = *framing;
                    let offset = peer.received;
                    match self.message(slot, framing, input) {
                        Ok(true) => {}
                        Ok(false) => return Ok(()),
                        Err(wrong) => return Err(wrong.violation(offset)),
                    }
                }
            }
        }
    }

    /// One message; `false` if none is whole.
    #[inline]
    fn message(&mut self, slot: Slot, framing: Framing, input: &mut BytesMut) -> Result<bool, ProtocolError> {
        let Some(peer) = self.peers.get_mut(slot) else { return Ok(false) };
        if peer.skip > 0 {
            return Ok(peer.drop_rest(input));
        }
        let peek = match framing.peek(input) {
            Err(ProtocolError::OverLimit { size, .. }) if size <= LONGEST && input.first() != Some(&0) => {
                return self.oversized(slot, size, input);
            }
            other => other?,
        };
        let Some(peer) = self.peers.get_mut(slot) else { return Ok(false) };
        let len = match peek {
            Peek::Missing(missing) => {
                peer.wanted = missing;
                return Ok(false);
            }
            Peek::Ice(len) => len,
            Peek::Dcop(head) => FRAME_HEADER + head.len,
        };
        peer.wanted = 0;
        if let Some(due) = peer.due.take() {
            self.begun.remove(&(due, peer.id));
        }
        peer.received += len as u64;
        peer.sequence = peer.sequence.wrapping_add(1);
        match peek {
            Peek::Missing(_) => {}
            Peek::Dcop(head) => self.dcop(slot, head, input)?,
            Peek::Ice(len) => {
                let raw = input.split_to(len);
                let late = late(&raw, framing.little, peer.sequence, peer.out.flat());
                if !peer.out.is_empty() {
                    self.post.flush(slot, peer);
                }
                if late? == CoreAction::Close {
                    self.cut(slot);
                }
            }
        }
        // A queue that has grown too long by this message takes no more.
        if !self.post.lagging.is_empty() {
            self.settle();
        }
        Ok(true)
    }

    /// The key for an answer of the server to a call with this key.
    pub(super) fn key(&mut self, key: u32) -> u32 {
        if key != 0 {
            return key;
        }
        let given = self.next_key;
        self.next_key = given.checked_add(1).unwrap_or(FIRST_KEY);
        given
    }

    /// Closes connections whose queue has grown too long.
    pub(super) fn settle(&mut self) {
        while let Some(slot) = self.post.lagging.pop() {
            // What it does not read, it is not sent any more.
            if let Some(peer) = self.peers.get_mut(slot)
                && !matches!(peer.state, State::Gone)
            {
                peer.out = SendBuffer::new();
                self.post.weigh(peer);
                self.cut(slot);
            }
        }
    }

    /// Closes a connection.
    fn cut(&mut self, slot: Slot) {
        let Some(peer) = self.peers.get(slot) else { return };
        self.post.events.push_back(HubEvent::Close(peer.id));
        self.leave(slot);
    }

    /// Takes a connection out of everything, apart from the table of connections. Done twice it does nothing.
    fn leave(&mut self, slot: Slot) {
        let Some(peer) = self.peers.get_mut(slot) else { return };
        if matches!(std::mem::replace(&mut peer.state, State::Gone), State::Gone) {
            return;
        }
        let id = peer.id;
        let name = std::mem::take(&mut peer.name);
        let (serving, mut calling) = (std::mem::take(&mut peer.serving), std::mem::take(&mut peer.calling));
        calling.sort_unstable();
        calling.dedup();
        self.listening -= usize::from(std::mem::take(&mut peer.notifications) > 0);
        self.clients -= usize::from(!peer.daemon && !name.is_empty());
        peer.wanted = 0;
        if let Some(due) = peer.due.take() {
            self.begun.remove(&(due, id));
        }
        self.handshakes.retain(|(_, other)| *other != id);
        self.signals.forget(slot, b"");
        for wait in serving {
            let Some(caller) = self.peers.get_mut(wait.caller) else { continue };
            if let Some(at) = caller.calling.iter().position(|callee| *callee == slot) {
                caller.calling.swap_remove(at);
            }
            self.post.message(wait.caller, caller, minor::REPLY_FAILED, NO_TREE, |_| {});
        }
        for callee in calling {
            if let Some(callee) = self.peers.get_mut(callee) {
                callee.serving.retain(|wait| wait.caller != slot);
            }
        }
        if !name.is_empty() {
            self.names.remove(&name);
            self.notify(slot, "applicationRemoved", &name);
        }
    }

    /// The driver says that a connection is gone.
    pub(super) fn disconnected(&mut self, id: PeerId) {
        let Some(slot) = self.peers.slot(id) else { return };
        self.leave(slot);
        if let Some(peer) = self.peers.get(slot) {
            self.post.forget(peer);
        }
        self.peers.remove(slot);
        self.settle();
    }

    /// When `expire` wants to be called.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let handshake = self.handshakes.front().map(|(at, _)| *at);
        [handshake, self.begun.first().map(|(at, _)| *at)].into_iter().flatten().min()
    }

    /// Closes connections whose handshake, or message, takes too long.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((at, id)) = self.begun.first().copied()
            && at <= now
        {
            self.begun.pop_first();
            if let Some(slot) = self.peers.slot(id) {
                self.cut(slot);
            }
        }
        while let Some((at, id)) = self.handshakes.front().copied()
            && at <= now
        {
            self.handshakes.pop_front();
            if let Some(slot) = self.peers.slot(id) {
                self.cut(slot);
            }
        }
        self.settle();
    }

    /// Tells everybody who listens that the session ends. In KDE's spelling and in Trinity's.
    pub(super) fn terminate(&mut self) {
        let Self { signals, peers, post, .. } = self;
        for signal in [&b"terminateKDE()"[..], b"terminateTDE()"] {
            signals.emit(None, signal, &[], peers, post);
        }
        self.settle();
    }

    /// Entries in all tables, for tests that look for what is left behind.
    pub(super) fn entries(&self) -> usize {
        let calls = |(_, peer): (Slot, &Peer)| peer.serving.len() + peer.calling.len();
        self.peers.iter().map(calls).sum::<usize>()
            + self.peers.len()
            + self.names.len()
            + self.handshakes.len()
            + self.begun.len()
            + self.listening
            + self.clients
            + self.signals.len()
    }
}

/// Whether nobody may have this id: that of the server itself.
pub(super) fn reserved(name: &[u8]) -> bool {
    name == SERVER
}
