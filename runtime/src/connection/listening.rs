//! Signals on a connection: those it brings, those it carries away, and the waiting that goes with both.
//!
//! States. A connection is first *admitted* (`admit` waits for the greeting), then it serves and, where its
//! wire has signals, is one of those whom the node's objects tell (`begin_serving`). A listener is *asked
//! for* from when `subscribe` has put it into `Core::listeners`, *confirmed* when the peer has answered, and
//! *over* with `unsubscribe` or the connection.
//!
//! Invariants.
//! * A listener is known before the peer is asked: signals may come right behind the answer. One that the
//!   peer refuses is taken out again.
//! * Signals of a connection are queued in the order in which they came, under the connection's lock, and told
//!   without it, by a delivery that the node is asked for (`rouse`).
//! * Whoever emits does not hold the lock while it waits for a peer that does not read; one that does not
//!   read in time is cut off, alone.
//! * Where somebody passes signals on (`keep_order`), answers and signals are told in the order in which they
//!   came; an answer that is told at once (`tells_at_once`) overtakes no call of the peer.
//!
//! Bounds. Nothing is read for listeners that are far behind (`signals`), and in a flood the connection
//! ends. The quota `unsent` is what may wait for a peer to read before its emitter waits too. `TOGETHER`
//! octets of signals may go with an answer.

use super::state::{Connection, Core, DeferredAction};
use crate::shard;
use crate::signals::Subscriber;
use bytes::Bytes;
use everywire_model::{
    CallId, Completed, Emission, Failure, Incoming, Initiator, Kind, Outcome, Profile, SignalEvent,
    SignalFilter,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Bytes of signals that the servant of a call may emit before they are sent: below that they go with its
/// answer.
const TOGETHER: usize = 64 << 10;

impl Connection {
    /// Waits until the peer lets calls through: the session's greeting and authentication, whose end is
    /// `Event::Ready`.
    ///
    /// # Errors
    /// The peer refused or left, or the time is over. No call has begun.
    pub(crate) fn admit(&self, until: Instant) -> Result<(), Failure> {
        let mut core = self.enter();
        loop {
            while core.peer.is_none()
                && let Some(event) = core.session.poll()
            {
                self.deliver(&mut core, event);
            }
            if core.peer.is_some() {
                let routed = core.session.is_routed();
                core.spin_wait.behind_router(routed, !self.is_serving());
                self.routed.store(routed, Ordering::Relaxed);
                // What was sent along with the last word of the greeting must not wait for the first call.
                let _ = self.flush(&mut core);
                return Ok(());
            }
            if let Some(failure) = core.failed.clone() {
                return Err(failure.with_completed(Completed::No));
            }
            if until <= Instant::now() {
                let what = "the peer did not finish its greeting in time";
                let failure = Failure::new(Kind::TimedOut, Initiator::Peer, what).at(&self.endpoint);
                self.fail(&mut core, failure.clone());
                return Err(failure);
            }
            if !self.make_progress(&mut core) && core.failed.is_none() {
                core = self.sleep(core, Some(until));
            }
        }
    }

    /// After this side was refused: the way by which another connection may be let in, if the session knows
    /// one.
    pub(crate) fn again(&self) -> Option<Profile> {
        self.enter().session.again()
    }

    /// Where it serves behind a router that gave it another place than this.
    pub(crate) fn granted(&self, asked: &Profile) -> Option<Profile> {
        self.enter().session.granted(asked)
    }

    /// Waits for the next message that is overheard; `None` when `until` has passed.
    pub(crate) fn next_overheard(&self, until: Option<Instant>) -> Result<Option<Bytes>, Failure> {
        let mut core = self.enter();
        loop {
            if let Some(message) = core.overheard.pop_front() {
                return Ok(Some(message));
            }
            self.deliver_all(&mut core);
            if !core.overheard.is_empty() {
                continue;
            }
            if let Some(failure) = core.failed.clone() {
                return Err(failure);
            }
            if self.make_progress(&mut core) || core.failed.is_some() {
                continue;
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(None);
            }
            core = self.sleep(core, until);
        }
    }

    /// An event loop has adopted a connection that this process made to serve on: what came with the greeting
    /// is served now. Called once, after `admit`.
    pub(crate) fn begin_serving(self: &Arc<Self>) {
        if self.capabilities.signals {
            self.node.join_audience(self);
        }
        let mut core = self.enter();
        core.served = true;
        self.tell_of(&mut core);
        // There is room to write, so the loop comes by at once.
        self.watch(&mut core, true, true);
    }

    /// Sends a signal to the peer. Returns whether more waits for the peer to read than it may: then the emitter waits in
    /// [`Connection::await_reader`].
    ///
    /// # Errors
    /// The arguments do not encode.
    pub(crate) fn emit(&self, emission: &Emission<'_>) -> Result<bool, Failure> {
        let mut core = self.enter();
        if core.failed.is_some() || core.peer.is_none() {
            return Ok(false);
        }
        let now = Instant::now();
        core.used = now;
        core.session.emit(now, emission)?;
        let later = self.sends_later();
        if later && core.session.unsent() < TOGETHER {
            return Ok(false);
        }
        if self.send(&mut core) && !core.session.transmit().is_empty() && !later {
            self.await_room(&mut core);
            self.remind(&mut core);
        }
        self.weigh(&mut core);
        Ok(core.failed.is_none() && core.session.unsent() > self.allowance.quotas.unsent)
    }

    /// Waits until at most the quota `unsent` waits for the peer to read. One that does not read in time is
    /// cut off. Sleeps without the lock.
    pub(crate) fn await_reader(&self, until: Instant) {
        loop {
            let mut core = self.enter();
            self.send(&mut core);
            if core.failed.is_some() || core.session.unsent() <= self.allowance.quotas.unsent {
                return;
            }
            if until <= Instant::now() {
                let why = "it does not read its signals; the quota `unsent` says how much may wait";
                self.tell_refused(&mut core, why.to_owned());
                let what = "the peer did not read its signals";
                return self.fail(&mut core, Failure::new(Kind::TimedOut, Initiator::Peer, what));
            }
            drop(core);
            shard::about_to_block();
            self.stream.wait_for_room(until);
        }
    }

    /// From now on answers are told behind the signals that came before them, and signals behind answers: for those who pass them on.
    /// Whoever is told of a signal may not wait for an answer there.
    pub(crate) fn keep_order(&self) {
        self.in_order.store(true, Ordering::Relaxed);
    }

    /// Whether an answer waits for its turn among signals.
    pub(super) fn keeps_order(&self, core: &Core) -> bool {
        self.in_order.load(Ordering::Relaxed) && !core.listeners.is_empty()
    }

    /// Whether an answer in that order may be told as soon as the lock is free, if no signal is on its way. Not before a call of the peer
    /// that came before it; and only where the event loop reads. Another thread keeps the lock for as long as it finds something, and
    /// signals would wait meanwhile; and a call that comes behind the answer could begin before that is told.
    pub(super) fn tells_at_once(&self, core: &Core) -> bool {
        core.pumping && self.backlog.is_empty()
    }

    /// Listens to signals, from when the peer has confirmed it: the session's subscription is a call, whose
    /// number names the subscription from then on. The listener is known before the answer comes, since
    /// signals may come right behind it.
    pub(crate) fn subscribe(
        &self,
        profile: &Profile,
        filter: SignalFilter<'_>,
        subscriber: &Arc<Subscriber>,
        now: Instant,
        until: Option<Instant>,
    ) -> Result<CallId, Failure> {
        let mut core = self.enter();
        core.used = now;
        if let Some(failure) = &core.failed {
            return Err(failure.clone());
        }
        let id = core.session.subscribe(now, profile, filter)?;
        core.listeners.insert(id, Arc::clone(subscriber));
        self.send(&mut core);
        let refused = match self.await_outcome(core, id, until) {
            Outcome::Done(_) => {
                // From now on an event loop reads, whenever no caller does.
                self.listen_on();
                return Ok(id);
            }
            Outcome::Failed(failure) => failure,
            Outcome::Raised(_) | Outcome::Moved(_) => {
                Failure::new(Kind::Internal, Initiator::Peer, "the peer refused the subscription")
            }
        };
        self.unsubscribe(id);
        Err(refused)
    }

    /// Listens no longer.
    pub(crate) fn unsubscribe(&self, id: CallId) {
        let mut core = self.enter();
        let Some(subscriber) = core.listeners.remove(&id) else { return };
        subscriber.end();
        if core.failed.is_none() {
            core.session.unsubscribe(id);
            // The peer is told when it can be; if the connection breaks, there is nothing to tell.
            let _ = self.flush(&mut core);
            self.arm(&mut core);
        }
        core.deferred.push(DeferredAction::Forget(subscriber));
    }

    /// Queues a signal for those whom it is for; a flood ends the connection.
    pub(super) fn hear(&self, core: &mut Core, subscriptions: &[CallId], heard: Incoming) {
        if self.event_queue.is_flooded() {
            let what =
                "too many signals, or more than 512 MiB of them, wait for a listener that does not return";
            self.fail(core, Failure::new(Kind::LimitExceeded, Initiator::Here, what).at(&self.endpoint));
            return;
        }
        let mut subscribers = subscriptions.iter().filter_map(|id| core.listeners.get(id));
        let last = subscribers.next_back();
        for subscriber in subscribers {
            self.event_queue.post_copy(Arc::clone(subscriber), SignalEvent::Signal(heard.clone()));
        }
        if let Some(subscriber) = last {
            self.event_queue.post(Arc::clone(subscriber), SignalEvent::Signal(heard));
        }
        self.rouse();
    }

    /// Whether the peer may call over this connection, whoever made it.
    pub(crate) fn is_called_back(&self) -> bool {
        self.both_ways
    }

    /// Whether something may come that nobody has called for: signals, callbacks.
    pub(super) fn is_listening(&self, core: &Core) -> bool {
        !core.listeners.is_empty() || (self.both_ways && !self.node.directory.is_empty())
    }

    /// Whether listeners, or servants of the peer's calls, are so far behind that no more is read for them.
    pub(super) fn is_behind(&self) -> bool {
        self.event_queue.is_behind() || self.backlog.is_behind()
    }

    /// Sees to it that signals reach their listeners.
    pub(super) fn rouse(&self) {
        self.node.dispatch(&self.event_queue, Some(&self.this), self.registration());
    }

    /// Listeners have caught up, or servants: signals and calls are read again.
    pub(crate) fn listen_on(&self) {
        let mut core = self.enter();
        self.arm(&mut core);
    }
}
