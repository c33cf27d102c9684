//! What an accepted connection holds of the node's memory, and its end when that is too much.
//!
//! State: `weight` is what the shares were told last, rounded down to `GRAIN`. It is the capacity of the
//! input buffer, what the session holds (half messages, assemblies), the memory of the send buffer (what of it is used and what is not; it
//! settles first), large bodies of calls under way, calls that wait for their turn, and those that were given to the pool. One that
//! has failed weighs what its calls hold that go on without their caller. Connections of the calling side (`number` 0) weigh nothing
//! but the calls of their peer, and answers that it does not read (`backlog`).
//!
//! Invariant: nobody is made to give room while a lock of a connection is held: `heavy` is noted, and seen to
//! when the lock is let go.

use super::state::{Connection, Core, DeferredAction};
use crate::shard::Registration;
use crate::shares::{GRAIN, Tenant};
use crate::sync::lock;
use bytes::BytesMut;
use everywire_model::{CallId, Failure, Incoming, Initiator, Kind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Bodies of requests below this size are not counted while their call is under way: to count each small call
/// costs more than it saves.
const SMALL: usize = 1 << 10;
/// What a call counts that waits for its turn or was given to the pool, beside a body that is counted by itself.
const WAITING: usize = SMALL + size_of::<Incoming>();

impl Connection {
    /// Tells the shares what this connection holds now, if that has changed by a grain.
    #[inline]
    pub(super) fn weigh(&self, core: &mut Core) {
        if self.number == 0 {
            return;
        }
        let input = if core.input.is_empty() && !core.large { 0 } else { core.input.capacity() };
        let waiting = (core.in_turn.len() + core.apart) * WAITING;
        let buffer = core.session.transmit();
        // What the peer did not take at once may stay for long.
        buffer.settle();
        let unsent = buffer.held();
        let bytes = (input + core.session.held() + unsent + core.bodies + waiting) & !(GRAIN - 1);
        if bytes != core.weight {
            self.tell_weight(core, bytes);
        }
    }

    /// It has failed: what its calls hold that go on counts, however little that is.
    pub(super) fn weigh_calls_left(&self, core: &mut Core) {
        if self.number != 0 {
            self.tell_weight(core, 0);
        }
    }

    #[cold]
    fn tell_weight(&self, core: &mut Core, bytes: usize) {
        let bytes = match core.failed {
            None => bytes,
            // Rounded up: there is no limit to how many connections may have been here.
            Some(_) => (core.bodies + (core.in_turn.len() + core.apart) * WAITING).next_multiple_of(GRAIN),
        };
        core.weight = bytes;
        core.heavy |= self.allowance.shares.weigh(self.number, bytes);
    }

    /// A call begins: what it came with is held until it is answered.
    #[inline]
    pub(super) fn hold_body(&self, core: &mut Core, incoming: &Incoming) {
        if incoming.body.bytes.len() >= SMALL && self.number != 0 {
            core.under_way.push((incoming.id, incoming.body.bytes.len()));
            core.bodies += incoming.body.bytes.len();
            self.holds_bodies.store(true, Ordering::Relaxed);
        }
    }

    /// A call was answered, or is over without an answer.
    #[inline]
    pub(super) fn let_go(&self, core: &mut Core, id: CallId) {
        if let Some(at) = core.under_way.iter().position(|(held, _)| *held == id) {
            core.bodies -= core.under_way.swap_remove(at).1;
            self.holds_bodies.store(!core.under_way.is_empty(), Ordering::Relaxed);
        }
    }

    /// It has sent a whole message: it is no stranger any more.
    #[inline(always)]
    pub(super) fn establish(&self, core: &mut Core) {
        if !core.served {
            self.establish_first(core);
        }
    }

    #[cold]
    fn establish_first(&self, core: &mut Core) {
        core.served = true;
        if self.number != 0 {
            self.allowance.shares.establish(self.number);
        }
    }

    /// It is over, and what it held is free: buffers, and its place among those that are open. What was not sent yet is dropped. What
    /// its calls hold counts until they are done (`tell_weight`): nobody gets rid of that by leaving.
    pub(super) fn unload(&self, core: &mut Core) {
        core.input = BytesMut::new();
        core.large = false;
        let buffer = core.session.transmit();
        buffer.consume(buffer.len());
        buffer.shrink();
        self.settle_unread(core);
        if self.number != 0 {
            self.allowance.shares.give_up_place(self.number);
        }
    }

    /// It has ended, and memory is short: of the calls that its peer has left behind those are dropped that have not begun. Those that
    /// run cannot be; they count no longer, since nobody could make room for them.
    #[cold]
    fn drop_calls_left(&self, core: &mut Core) {
        let (held, memory) = (core.weight, self.allowance.shares.memory());
        while let Some((_, found)) = core.in_turn.pop_front() {
            core.deferred.push(DeferredAction::Stale(found));
        }
        let queued: Vec<_> = core.queued.drain(..).map(|(_, call)| call).collect();
        core.apart -= queued.len();
        core.deferred.push(DeferredAction::NotBegun(queued));
        (core.weight, core.bodies) = (0, 0);
        core.under_way = Vec::new();
        self.holds_bodies.store(false, Ordering::Relaxed);
        self.allowance.shares.leave(self.number);
        let why = format!(
            "calls of a connection that has ended held {held} bytes when all connections together held the {memory} that the quota \
             `memory` allows; those that had not begun were dropped"
        );
        self.tell_refused(core, why);
    }
}

impl Tenant for Connection {
    /// Memory is short, and this one holds most: it lets go of buffers that it keeps for the next message, and if there are none,
    /// ends.
    fn make_room(&self) {
        let mut core = self.enter();
        if self.number == 0 {
            return self.give_up_calls(&mut core);
        }
        if core.failed.is_some() {
            return self.drop_calls_left(&mut core);
        }
        if core.input.is_empty() && (core.large || core.session.transmit().is_empty()) {
            core.input = BytesMut::new();
            core.large = false;
            core.session.transmit().shrink();
            let before = core.weight;
            self.weigh(&mut core);
            if core.weight < before {
                return;
            }
        }
        let (held, memory) = (core.weight, self.allowance.shares.memory());
        let why = format!(
            "it held {held} bytes when all connections together held the {memory} that the quota `memory` allows; raise it if they \
             are wanted"
        );
        self.tell_refused(&mut core, why);
        core.session.close();
        let _ = self.flush(&mut core);
        // Calls that wait for their turn have not begun.
        while let Some((_, found)) = core.in_turn.pop_front() {
            core.deferred.push(DeferredAction::Stale(found));
        }
        let what = "the connection made room: it held most of the memory that all connections may hold";
        self.fail(&mut core, Failure::new(Kind::Busy, Initiator::Here, what));
    }

    /// Whether nobody misses it for the moment: no call is under way, and nothing is on its way. It may wait for signals: where
    /// connections are short, that is no reason to have no place for others.
    fn is_quiet(&self) -> bool {
        let Ok(mut core) = self.core.try_lock() else { return false };
        let resting = core.failed.is_none() && core.session.outstanding() == 0 && core.input.is_empty();
        resting && core.session.transmit().is_empty()
    }

    /// When bytes came or went last, of one that is quiet.
    fn used(&self) -> Instant {
        lock(&self.core).used
    }

    fn make_way(self: Arc<Self>) {
        self.cut(&Failure::new(Kind::Busy, Initiator::Here, "made room for another connection"));
        if let Some(shard) = self.registration().and_then(Registration::shard) {
            shard.forget(&self);
        }
    }
}
