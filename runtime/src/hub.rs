//! Routers over real sockets: one thread drives a [`Hub`] and all its peers (`everywire_model::hub`: bytes
//! in, bytes out, no I/O of its own). The thread is the caller of `run`; it owns the streams, the buffers and
//! the clock.
//!
//! A hub does little for each message, so a second thread would cost more in waking than it saves. Peers that
//! were busy last are read directly, in the order in which they are expected to talk; the kernel is asked
//! about the others.
//!
//! States: *looking* at the hot peers; *asking* the kernel without waiting, after `LOOKS` looks; *asleep* in
//! the same question until the hub's deadline, when patience is over; *finished*, after the bell or the hub's
//! own word: then the hub says goodbye to everybody, what it still wants sent is written as far as sockets
//! take it, and all is closed.
//!
//! Invariants: a peer's token is its place in the slab and a generation, so an event or a request of the hub
//! for a peer that is gone finds nobody. Whatever the hub is told (`connected`, `receive`, `disconnected`,
//! `expire`), its wishes are carried out by `settle` before the next look. `disconnected` is told once for
//! each peer that was `connected`.
//!
//! Bounds against hostile peers: connections (`Settings::connections`; more are closed at once); memory for a
//! message that was announced grows with what has come of it, and all peers together have so much
//! (`Settings::memory`), beyond which the one that holds most is closed; a large buffer is given back when
//! little is left in it; one write takes `PIECE` at most. What may wait for a peer that does not read is for
//! the hub to bound.

use crate::accepting::{has_left, raise_descriptor_limit};
use crate::clock::rest;
use crate::failures::no_loop;
use crate::memory_here::memory_here;
use crate::shares::GRAIN;
use crate::spin_wait::{Latency, SpinWait};
use crate::transport::Stream;
use crate::transport::listener::Acceptor;
use bytes::BytesMut;
use everywire_model::{Failure, Hub, HubEvent, PeerAddress, PeerId, Violation};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use slab::Slab;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Peers that are looked at without asking the kernel.
const HOT: usize = 4;
/// Looks between two questions to the kernel.
const LOOKS: u32 = 16;
/// Reads from a peer that takes nothing any more; more than a socket holds is not lost by chance.
const LAST_READS: u32 = 64;
/// Bytes written to one peer in one go.
const PIECE: usize = 1 << 20;
/// The largest buffer that a quiet peer keeps.
const KEEP: usize = 64 << 10;
/// Marks a listener's token.
const LISTENER: u64 = 1 << 63;
/// The token of the stop bell.
const BELL: u64 = u64::MAX;

/// Gets the peer that is closed, and why, on the hub's thread.
pub type Observer = Arc<dyn Fn(&str, &Cause<'_>) + Send + Sync>;

/// Why a peer is closed.
#[derive(Debug)]
pub enum Cause<'c> {
    /// It broke the protocol.
    Violation(&'c Violation),
    /// It held most when all together held more than they may.
    Memory {
        /// Bytes that it held.
        held: usize,
        /// Bytes that all may hold.
        memory: usize,
    },
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(violation) => violation.fmt(f),
            Self::Memory { held, memory } => write!(
                f,
                "it held {held} bytes of messages that had not come whole, the most, when all peers together held more than the \
                 {memory} that `memory` allows"
            ),
        }
    }
}

/// How a hub is driven.
#[derive(Clone)]
pub struct Settings {
    /// How eagerly to wait for bytes.
    pub latency: Latency,
    /// Connections at one time; newcomers beyond that are closed.
    pub connections: usize,
    /// Bytes of messages that have not come whole, of all peers together. When there are more, the peer that holds most of them is
    /// closed; one alone may always send its message to the end. `None`: a quarter of the memory that this process can have.
    pub memory: Option<usize>,
    /// Told of peers that are closed for what they did: who, and why.
    pub observer: Option<Observer>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { latency: Latency::Default, connections: 4096, memory: None, observer: None }
    }
}

/// Ends a hub from another thread, or from a signal handler's thread: an eventfd that the hub's loop watches.
#[derive(Clone)]
pub struct Stop(Arc<OwnedFd>);

impl Stop {
    /// A bell that has not been rung.
    pub fn new() -> Result<Self, Failure> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map(|bell| Self(Arc::new(bell)))
            .map_err(no_loop)
    }

    /// Asks the hub to end: it says goodbye to everybody first.
    pub fn stop(&self) {
        // A bell that cannot be rung any louder has been heard.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// Runs a hub until it finishes or is stopped.
///
/// # Errors
/// It cannot listen where it wants to, or what it needs of the system is not to be had.
pub fn run(hub: &mut dyn Hub, settings: &Settings, stop: &Stop) -> Result<(), Failure> {
    let mut acceptors = Vec::new();
    let mut bound = Vec::new();
    for endpoint in hub.endpoints() {
        let (acceptor, endpoint) = Acceptor::bind(&endpoint)?;
        acceptors.push(acceptor);
        bound.push(endpoint);
    }
    raise_descriptor_limit();
    let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(no_loop)?;
    let watch = |fd, token: u64| epoll::add(&epoll, fd, EventData::new_u64(token), EventFlags::IN);
    watch(stop.0.as_fd(), BELL).map_err(no_loop)?;
    for (index, acceptor) in acceptors.iter().enumerate() {
        watch(acceptor.watched(), LISTENER | index as u64).map_err(no_loop)?;
    }
    hub.opened(&bound)?;
    let mut driver = Driver {
        hub,
        settings,
        epoll: &epoll,
        peers: Slab::new(),
        generation: 0,
        hot: VecDeque::new(),
        memory: settings.memory.unwrap_or_else(memory_here),
        held: 0,
        heavy: BTreeSet::new(),
        finished: false,
    };
    driver.run(&acceptors);
    driver.hub.close();
    driver.settle();
    Ok(())
}

/// All that the loop works on. Tokens of epoll: a peer's is its `PeerId` (generation from bit 32 on, place in
/// the slab below), a listener's is its number with bit 63, the bell's is all ones.
struct Driver<'h> {
    hub: &'h mut dyn Hub,
    settings: &'h Settings,
    epoll: &'h OwnedFd,
    peers: Slab<Peer>,
    generation: u64,
    /// Who is expected to talk next, first.
    hot: VecDeque<PeerId>,
    /// Bytes of messages that all peers may hold, and do hold; those of them that hold any, by how much.
    memory: usize,
    held: usize,
    heavy: BTreeSet<(usize, PeerId)>,
    finished: bool,
}

struct Peer {
    id: PeerId,
    stream: Stream,
    address: PeerAddress,
    /// What has come and the hub has not taken: the beginning of a message.
    input: BytesMut,
    /// What it counts for that, in steps of `GRAIN`.
    weight: usize,
    /// Whether the kernel was asked to tell of room to write.
    writing: bool,
}

/// Where a peer is in the slab.
fn place(id: PeerId) -> usize {
    usize::try_from(id.0 & 0xffff_ffff).unwrap_or(usize::MAX)
}

impl Driver<'_> {
    fn run(&mut self, acceptors: &[Acceptor]) {
        let mut spin_wait = SpinWait::new(self.settings.latency);
        let mut events: Vec<epoll::Event> = Vec::with_capacity(64);
        let mut looks = 0;
        while !self.finished {
            let mut busy = false;
            for index in 0..self.hot.len() {
                let Some(id) = self.hot.get(index).copied() else { break };
                if self.read(id) {
                    busy = true;
                    break;
                }
            }
            if busy {
                spin_wait.rewarded();
                spin_wait.after_sending(None);
            }
            looks += 1;
            let idle = !busy && !spin_wait.look_again();
            if !idle && looks < LOOKS && !self.hot.is_empty() {
                continue;
            }
            looks = 0;
            events.clear();
            let timeout =
                if idle { self.hub.deadline().map(rest) } else { Some(Timespec { tv_sec: 0, tv_nsec: 0 }) };
            // Interrupted: the loop comes back here.
            let _ = epoll::wait(self.epoll, spare_capacity(&mut events), timeout.as_ref());
            if !events.is_empty() {
                if idle {
                    spin_wait.slept();
                }
                spin_wait.rewarded();
            }
            for event in &events {
                self.handle(event.data.u64(), event.flags, acceptors);
            }
            let now = Instant::now();
            if self.hub.deadline().is_some_and(|deadline| deadline <= now) {
                self.hub.expire(now);
                self.settle();
            }
        }
    }

    /// Handles one event of the kernel, by its token.
    fn handle(&mut self, token: u64, flags: EventFlags, acceptors: &[Acceptor]) {
        if token == BELL {
            self.finished = true;
        } else if token & LISTENER != 0 {
            let index = usize::try_from(token & !LISTENER).unwrap_or(usize::MAX);
            if let Some(acceptor) = acceptors.get(index) {
                self.accept(acceptor);
            }
        } else {
            let id = PeerId(token);
            if flags.contains(EventFlags::OUT) {
                self.flush(id);
                self.settle();
            }
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                self.read(id);
                self.expect(id, false);
            }
        }
    }

    /// Accepts what waits at a listener, 64 at the most, so that newcomers do not keep the peers waiting.
    fn accept(&mut self, acceptor: &Acceptor) {
        for _ in 0..64 {
            let stream = match acceptor.accept() {
                Ok(stream) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if has_left(&error) => continue,
                Err(_) => {
                    // Out of descriptors or memory; the listener stays readable: give others a moment to let go.
                    std::thread::sleep(Duration::from_millis(1));
                    return;
                }
            };
            // Closed without a word: a hub has no message for those whom it does not know.
            if self.peers.len() >= self.settings.connections {
                continue;
            }
            let address = stream.peer(acceptor.transport);
            self.generation = (self.generation + 1) & 0x3fff_ffff;
            let entry = self.peers.vacant_entry();
            let id = PeerId(self.generation << 32 | entry.key() as u64);
            let watched =
                epoll::add(self.epoll, stream.watched().0, EventData::new_u64(id.0), EventFlags::IN);
            if watched.is_err() {
                continue;
            }
            let input = BytesMut::new();
            entry.insert(Peer { id, stream, address: address.clone(), input, weight: 0, writing: false });
            self.hub.connected(id, address, Instant::now());
            self.settle();
        }
    }

    /// The peer of this id, unless it is gone and its place has another one.
    fn peer(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.peers.get_mut(place(id)).filter(|peer| peer.id == id)
    }

    /// Reads from a peer and has the hub look at it. Returns whether anything came.
    fn read(&mut self, id: PeerId) -> bool {
        let wanted = self.hub.wanted(id);
        let Some(peer) = self.peer(id) else {
            self.hot.retain(|held| *held != id);
            return false;
        };
        // What a peer announces is not allocated before some of it has come.
        let wanted = wanted.min(peer.input.len().max(PIECE / 4));
        match peer.stream.read(&mut peer.input, wanted, None) {
            Ok(1..) => {
                let mut input = std::mem::take(&mut peer.input);
                let large = input.len() > KEEP;
                // No router passes handles on.
                let mut handles = Vec::new();
                let received = self.hub.receive(id, Instant::now(), &mut input, &mut handles);
                if let Some(peer) = self.peer(id) {
                    // A large buffer is not kept by a peer that has little left to say.
                    let own = large && input.len() <= KEEP;
                    peer.input = if own { BytesMut::from(&input[..]) } else { input };
                }
                self.settle();
                match received {
                    Ok(()) => self.weigh(id),
                    Err(violation) => self.dismiss(id, &Cause::Violation(&violation)),
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return false;
            }
            Ok(0) | Err(_) => {
                self.lose(id);
                self.settle();
            }
        }
        true
    }

    /// Counts what a peer holds; whoever holds most is closed while that is too much.
    #[inline]
    fn weigh(&mut self, id: PeerId) {
        let Some(peer) = self.peer(id) else { return };
        let bytes = if peer.input.is_empty() { 0 } else { peer.input.capacity() & !(GRAIN - 1) };
        let before = std::mem::replace(&mut peer.weight, bytes);
        if bytes != before {
            self.shift(id, before, bytes);
            self.make_room();
        }
    }

    /// A peer counts for `after` bytes, and counted for `before`.
    fn shift(&mut self, id: PeerId, before: usize, after: usize) {
        self.heavy.remove(&(before, id));
        if after > 0 {
            self.heavy.insert((after, id));
        }
        self.held = self.held - before + after;
    }

    fn make_room(&mut self) {
        while self.held > self.memory && self.heavy.len() > 1 {
            let Some((held, id)) = self.heavy.last().copied() else { return };
            self.dismiss(id, &Cause::Memory { held, memory: self.memory });
        }
    }

    /// Closes a peer for what it did. What the hub has to say of that goes out before the end.
    #[cold]
    fn dismiss(&mut self, id: PeerId, cause: &Cause<'_>) {
        if let (Some(observer), Some(peer)) = (self.settings.observer.clone(), self.peer(id)) {
            observer(&peer.address.text, cause);
        }
        self.flush(id);
        self.lose(id);
        self.settle();
    }

    /// Does what the hub wants done.
    fn settle(&mut self) {
        while let Some(event) = self.hub.poll() {
            match event {
                HubEvent::Flush(id) => {
                    self.flush(id);
                    self.expect(id, true);
                }
                HubEvent::Close(id) => {
                    self.flush(id);
                    self.lose(id);
                }
                HubEvent::Finish => self.finished = true,
            }
        }
    }

    /// A peer is likely to talk next: whoever was just sent something before all others.
    fn expect(&mut self, id: PeerId, next: bool) {
        if self.hot.front() == Some(&id) {
            return;
        }
        let held = self.hot.iter().position(|other| *other == id);
        match (held, next) {
            (Some(_), false) => return,
            (Some(at), true) => {
                self.hot.remove(at);
            }
            (None, _) => {}
        }
        if next {
            self.hot.push_front(id);
        } else {
            self.hot.push_back(id);
        }
        self.hot.truncate(HOT);
    }

    /// Writes what the hub has for a peer, as far as the socket takes it; the kernel tells when there is room
    /// for the rest.
    fn flush(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(place(id)).filter(|peer| peer.id == id) else { return };
        let Some(buffer) = self.hub.transmit(id) else { return };
        let mut failed = false;
        while !buffer.is_empty() {
            match peer.stream.write(buffer, PIECE) {
                Ok(n) => buffer.consume(n),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        let writing = !buffer.is_empty();
        if writing != peer.writing && !failed {
            peer.writing = writing;
            let mut flags = EventFlags::IN;
            flags.set(EventFlags::OUT, writing);
            // The peer is watched as long as it is in the slab.
            let _ = epoll::modify(self.epoll, peer.stream.watched().0, EventData::new_u64(id.0), flags);
        }
        if failed {
            self.hear_out(id);
            self.lose(id);
        }
    }

    /// A peer takes nothing any more. What it said before it left comes first: answers, perhaps, that others wait for.
    #[cold]
    fn hear_out(&mut self, id: PeerId) {
        for _ in 0..LAST_READS {
            let Some(peer) = self.peer(id) else { return };
            if !matches!(peer.stream.read(&mut peer.input, 0, None), Ok(1..)) {
                return;
            }
            let (mut input, mut handles) = (std::mem::take(&mut peer.input), Vec::new());
            if self.hub.receive(id, Instant::now(), &mut input, &mut handles).is_err() {
                return;
            }
            if let Some(peer) = self.peer(id) {
                peer.input = input;
            }
        }
    }

    /// Closes a peer's stream and tells the hub. Does nothing if the peer is gone.
    fn lose(&mut self, id: PeerId) {
        if self.peer(id).is_some() {
            let peer = self.peers.remove(place(id));
            self.shift(id, peer.weight, 0);
            // Closing would do it, too.
            let _ = epoll::delete(self.epoll, peer.stream.watched().0);
            self.hot.retain(|held| *held != id);
            drop(peer);
            self.hub.disconnected(id, Instant::now());
        }
    }
}
