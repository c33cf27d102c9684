//! What comes out of a session for the calling side, and how a connection ends.
//!
//! States: *open*; *draining*: refused, the peer is told why and may finish talking; *failed*: whoever waits
//! has the failure, and the event loop gives up its place. There is no way back.
//!
//! Invariants: a connection fails once, and the first failure is the one that everybody gets. It is set before
//! events are delivered, because what they lead to may come here again. Nothing of others runs under the lock:
//! it is put into `after`, and done when the lock is free. Each waiter gets exactly one outcome.

use super::state::{Connection, Core, DeferredAction, LINGER, Role, Waiter};
use crate::clock::lately;
use crate::notice::Notice;
use crate::transport::Stream;
use bytes::BytesMut;
use everywire_model::{
    Answer, CallId, Completed, Event, Expects, Failure, Initiator, Kind, Outcome, SignalEvent, Violation,
};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Reads after a write that failed; more than a socket holds is not lost by chance.
const LAST_READS: u32 = 64;

impl Connection {
    /// The peer's end of the stream came without a goodbye: calls may have run.
    pub(super) fn closed(&self, core: &Core) -> Failure {
        let what = format!("the peer closed the connection{}", when(core));
        Failure::new(Kind::Unreachable, Initiator::Peer, what)
            .with_completed(Completed::Maybe)
            .at(&self.endpoint)
    }

    /// The transport failed: calls may have run.
    pub(super) fn broken(&self, core: &Core, error: &io::Error) -> Failure {
        let what = format!("the connection broke{}: {error}", when(core));
        Failure::new(Kind::Unreachable, Initiator::Here, what)
            .with_completed(Completed::Maybe)
            .at(&self.endpoint)
    }

    /// Bytes of this side do not get through any more. What the peer said before it left comes first: answers of calls under way, and
    /// perhaps a goodbye that tells what became of the others.
    #[cold]
    pub(super) fn lose(&self, core: &mut Core, error: &io::Error) {
        if core.reads_asleep {
            // It wakes at once, may have read already, and reads the rest: nobody may come between.
            core.broken =
                Some(error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error));
            return;
        }
        for _ in 0..LAST_READS {
            if core.failed.is_some() || !matches!(self.fill(core), Ok(true)) {
                break;
            }
            self.deliver_all(core);
        }
        let failure = self.broken(core, error);
        self.fail(core, failure);
    }

    /// Tells the node's observer why this peer is refused something.
    pub(super) fn tell_refused(&self, core: &mut Core, why: String) {
        let peer = self.stream.peer(self.endpoint.transport()).text;
        core.deferred.push(DeferredAction::Notice(Notice::Refused { peer, why }));
    }

    /// The peer broke the protocol. The observer is told, then the peer in the wire's words, and whoever
    /// waits here. An accepted peer may finish talking for a moment (`linger`), so that it reads why; the
    /// connection to any other ends at once.
    pub(super) fn refuse(&self, core: &mut Core, violation: Violation) {
        let peer = self.stream.peer(self.endpoint.transport()).text;
        let called = (!self.is_accepted()).then(|| self.endpoint.clone());
        core.deferred.push(DeferredAction::Notice(Notice::Violation {
            peer,
            violation: violation.clone(),
            called,
        }));
        let failure = core.session.refusal().unwrap_or_else(|| violation.into()).at(&self.endpoint);
        core.session.disconnected(&failure);
        self.deliver_all(core);
        if self.is_accepted() && core.draining.is_none() && self.flush(core).is_ok() {
            self.linger(core);
        } else {
            self.fail(core, failure);
        }
    }

    /// Closing now would have the kernel discard what the peer has not read yet, and answer its next bytes
    /// with a reset; so it may finish talking first, for `LINGER`. What it says is thrown away.
    pub(super) fn linger(&self, core: &mut Core) {
        core.draining = Some(Instant::now() + LINGER);
        core.input = BytesMut::new();
        if core.session.transmit().is_empty() {
            self.end_writing();
        }
    }

    /// Nothing follows what was sent: the peer of a connection that lingers reads its end. What could not be sent at once goes first.
    #[cold]
    pub(super) fn end_writing(&self) {
        if let Stream::Socket(fd) = &self.stream {
            let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Write);
        }
    }

    /// Ends the connection, once: whoever waits gets the failure, or what the session knows better; listeners
    /// are told; the event loop gives up its place; memory is free for others. What runs code of others is
    /// put off until the lock is free.
    pub(super) fn fail(&self, core: &mut Core, failure: Failure) {
        if core.failed.is_some() {
            return;
        }
        // First of all, since what follows delivers events, which may come here again.
        core.failed = Some(failure.clone());
        self.over.store(true, Ordering::Release);
        self.unload(core);
        core.session.disconnected(&failure);
        self.deliver_all(core);
        self.drop_waiting(core, None);
        if !core.parked.is_empty() {
            let parked = std::mem::take(&mut core.parked);
            core.apart -= parked.len();
            for call in &parked {
                self.let_go(core, call.incoming.id);
            }
            core.deferred.push(DeferredAction::NotBegun(parked));
        }
        self.weigh_calls_left(core);
        for waiting in std::mem::take(&mut core.waiting) {
            core.complete(waiting, Outcome::Failed(failure.clone()));
        }
        for (_, subscriber) in core.listeners.drain() {
            self.event_queue.post(subscriber, SignalEvent::Disconnected(failure.clone()));
        }
        self.rouse();
        self.stream.shutdown();
        if let Some(registration) = self.registration() {
            // Its place is given up soon, also if nothing that is watched tells of its end.
            registration.remind(lately(), core.reminded.take());
        }
        let mut hear = self.node.directory.prefix_servants();
        hear.extend(self.backward.get().cloned());
        if core.hands_over {
            // What was said before the end comes first.
            core.hears_end = hear;
        } else if !hear.is_empty() {
            core.deferred.push(DeferredAction::Hear(hear, None));
        }
        if self.role == Role::Joined && core.peer.is_some() {
            core.deferred.push(DeferredAction::Left(failure));
        }
        let may_be_called = self.is_serving() || self.both_ways;
        if may_be_called && self.node.is_observed() {
            core.deferred.push(DeferredAction::Notice(Notice::Closed { link: self.serial_number }));
        }
    }

    /// Calls that wait for their turn to be handed over, and that nobody wants any more, are never begun: the one with this number, or
    /// where the connection has failed all of them that were to be answered. Others were said and are done, whoever has left; on wires whose calls
    /// outlive their callers, all of them.
    fn drop_waiting(&self, core: &mut Core, id: Option<CallId>) {
        if core.in_turn.is_empty() {
            return;
        }
        let in_turn = std::mem::take(&mut core.in_turn);
        let (gone, left): (VecDeque<_>, VecDeque<_>) =
            in_turn.into_iter().partition(|(incoming, _)| match id {
                Some(id) => incoming.id == id,
                None => incoming.expects == Expects::Reply && !self.capabilities.calls_outlive_callers,
            });
        core.in_turn = left;
        for (incoming, found) in gone {
            self.let_go(core, incoming.id);
            core.deferred.push(DeferredAction::Stale(found));
            if core.failed.is_none() {
                let withdrawn =
                    Failure::new(Kind::Cancelled, Initiator::Peer, "the caller withdrew the call");
                // A session that has forgotten the call already has nothing to say.
                let _ = core.session.answer(incoming.id, Answer::Failed(&withdrawn));
            }
        }
    }

    fn serve_nothing(&self, core: &mut Core, id: CallId) {
        let what = "nothing is served on this connection";
        let failure = Failure::new(Kind::NoObject, Initiator::Here, what);
        let before = self.unsent_before(core);
        let _ = core.session.answer(id, Answer::Failed(&failure));
        if self.owe(core, before) {
            self.end_flood(core);
        }
    }

    /// Hands all events that the session has to whom they concern.
    #[inline]
    pub(super) fn deliver_all(&self, core: &mut Core) {
        while let Some(event) = core.session.poll() {
            self.deliver(core, event);
        }
    }

    /// Hands an event of the calling side to whom it concerns: a reply to its waiter, the reading thread or a
    /// thread that still sends; signals to their listeners; calls to an event loop. An answer that nobody
    /// waits for is dropped: its call was given up.
    pub(super) fn deliver(&self, core: &mut Core, event: Event) {
        match event {
            Event::Reply { id, outcome } => {
                if let Some(at) = core.waiting.iter().position(|waiting| waiting.id == id) {
                    let waiting = core.waiting.swap_remove(at);
                    let ends = !matches!(outcome, Outcome::Moved(_));
                    match waiting.waiter {
                        Waiter::Future(asker) if ends && self.keeps_order(core) => {
                            // Mostly no signal is on its way: then the answer is told when the lock is free, with no task in between.
                            if self.tells_at_once(core) && self.event_queue.claim() {
                                core.deferred.push(DeferredAction::InOrder(asker, outcome));
                            } else {
                                self.event_queue.answer(asker, outcome);
                                self.rouse();
                            }
                        }
                        _ => core.complete(waiting, outcome),
                    }
                } else if core.reader == Some(id) {
                    core.own = Some(outcome);
                } else if let Some((_, kept)) = core.sending.iter_mut().find(|(sent, _)| *sent == id) {
                    *kept = Some(outcome);
                }
            }
            Event::Ready(peer) => core.peer = Some(peer),
            Event::Closed => {
                let failure = Failure::new(Kind::Unreachable, Initiator::Peer, "the peer said goodbye")
                    .at(&self.endpoint);
                self.fail(core, failure);
            }
            // Connections that serve do so in `serving`. On others an event loop answers callbacks.
            Event::Call(incoming) if self.both_ways => {
                self.hand_over(core, incoming);
            }
            Event::Call(incoming) => self.serve_nothing(core, incoming.id),
            Event::Probe { id, key, type_id, .. } if self.both_ways => {
                self.answer_probe(core, id, &key, type_id.as_deref());
            }
            Event::Probe { id, .. } => self.serve_nothing(core, id),
            Event::Signal { subscriptions, heard } if subscriptions.is_empty() => {
                let hear = self.node.directory.prefix_servants();
                if !hear.is_empty() && self.role == Role::Accepted {
                    core.deferred.push(DeferredAction::Heard(hear, *heard));
                }
            }
            Event::Signal { subscriptions, heard } => self.hear(core, &subscriptions, *heard),
            Event::Lost { subscription, failure } => {
                if let Some(subscriber) = core.listeners.get(&subscription) {
                    self.event_queue.post(Arc::clone(subscriber), SignalEvent::OwnerLost(failure));
                    self.rouse();
                }
            }
            Event::Overheard(message) => core.overheard.push_back(message),
            Event::Cancelled(id) => {
                self.drop_waiting(core, Some(id));
                let hear = self.node.directory.prefix_servants();
                if !hear.is_empty() {
                    core.deferred.push(DeferredAction::Hear(hear, Some(id)));
                }
                if self.node.is_observed() {
                    core.deferred.push(DeferredAction::Notice(Notice::Withdrawn {
                        link: self.serial_number,
                        call: id,
                    }));
                }
            }
        }
    }
}

/// When a connection ended, where that says more than which calls wait: no call has gone out before the greeting is over.
fn when(core: &Core) -> &'static str {
    if core.peer.is_none() { " before the greeting was over" } else { "" }
}
