//! Calls that a peer makes on a connection that was made to call it, on their way to their servants.
//!
//! Each is a task of an event loop, so that all begin in order and none runs under the lock. What the peer sends faster than servants take
//! it would pile up: calls that want no answer are bounded by no other limit. So each one counts with what it keeps in memory. From
//! `BEHIND` on nothing more is read, and the peer waits; a thread that waits for its own reply reads on slowly, since the reply may stand
//! behind the calls, and since a servant may wait for a reply, too; from `FLOOD` on the connection ends. It ends earlier where the memory
//! that a node may hold for its peers is short, and these calls are the most of it: a hundred servers may not take a hundred times as much.
//!
//! Invariant: each call in `Core::called` has a task that takes the first one there, in the order of the tasks, or is held back until the
//! peer has read its answers (`unread`); a task that finds none does nothing, since the calls were given up.

use super::backlog::{BEHIND, FLOOD};
use super::core_guard::CoreGuard;
use super::state::{ANNOUNCED, Connection, Core, Handover};
use crate::shard;
use everywire_model::{Expects, Failure, Incoming, Initiator, Kind};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// What a call takes beside its octets: its task, and its place in the queue.
const TASK: usize = size_of::<Incoming>() + 256;

impl Connection {
    /// Queues a call of the peer for an event loop: all on one, so that they begin in order, and one that blocks does not block the next.
    pub(super) fn hand_over(&self, core: &mut Core, incoming: Box<Incoming>) {
        if self.backlog.is_flood() {
            return self.end_flood(core);
        }
        // The smallest part of a buffer keeps all of it; the first call that was in it counts it. What others keep anyhow is not counted
        // without end.
        let buffer = std::mem::take(&mut core.came).min(ANNOUNCED);
        // One call alone never holds up the others: its servant may wait for one of them.
        let octets = (incoming.body.bytes.len() + buffer + TASK).min(BEHIND);
        let call = Handover::of(self, core, octets);
        core.called.push_back(incoming);
        self.queue_call(call);
    }

    /// Queues the task that takes the first call that waits.
    pub(super) fn queue_call(&self, call: Handover) {
        let registration = self.registration().cloned();
        self.node.queue(
            Box::pin(async move {
                if let Some(connection) = call.connection.upgrade()
                    && let Some(call) = connection.call_back(call)
                    && call.end()
                {
                    connection.listen_on();
                }
            }),
            registration.as_ref(),
        );
    }

    /// The peer asks on, and nothing gets less.
    #[cold]
    pub(super) fn end_flood(&self, core: &mut Core) {
        let what = format!(
            "more than {} MiB of calls of the peer wait for servants here, or of answers for the peer to read them",
            FLOOD >> 20
        );
        self.fail(core, Failure::new(Kind::LimitExceeded, Initiator::Here, what).at(&self.endpoint));
    }

    /// Begins the next call that waits, or holds its task back. Returns the task if it is done.
    fn call_back(self: &Arc<Self>, task: Handover) -> Option<Handover> {
        let mut core = self.enter();
        if self.holds_back(&core) {
            core.held_back.push(task);
            return None;
        }
        // They may have been given up, and nobody waits for an answer over a connection that has ended.
        let incoming = core.called.pop_front();
        if let Some(incoming) = incoming
            && (core.failed.is_none()
                || incoming.expects != Expects::Reply
                || self.capabilities.calls_outlive_callers)
        {
            self.run_callback(core, incoming);
        }
        Some(task)
    }

    /// Tells the node what the calls that wait keep in memory. Returns whether all peers together hold more than they may.
    pub(super) fn weigh_calls(&self) -> bool {
        let source = || self.stream.source(&self.stream.peer(self.endpoint.transport()));
        let this = Weak::clone(&self.this);
        self.backlog.weigh(&self.allowance.shares, source, this)
    }

    /// Memory is short, and these calls are the most of it: they never begin, and the connection to whoever sent them ends.
    #[cold]
    pub(super) fn give_up_calls(&self, core: &mut Core) {
        let held = self.backlog.give_up();
        core.called = VecDeque::new();
        let memory = self.allowance.shares.memory();
        let what = format!(
            "{held} bytes of calls of the peer waited for servants here, or of answers for the peer to read them, when all connections \
             together held the {memory} that the quota `memory` allows"
        );
        self.tell_refused(core, what.clone());
        self.fail(core, Failure::new(Kind::LimitExceeded, Initiator::Here, what).at(&self.endpoint));
    }

    /// A thread that waits for its reply reads only as fast as the peer's calls are taken, or little by little where they are not.
    #[cold]
    pub(super) fn hold_reading<'c>(&'c self, core: CoreGuard<'c>, until: Option<Instant>) -> CoreGuard<'c> {
        drop(core);
        // The calls may be those of the event loop that this thread leads.
        shard::about_to_block();
        self.backlog.hold(until);
        self.enter()
    }
}

impl Handover {
    /// Under the lock, so that the answer behind it sees it.
    fn of(connection: &Connection, core: &mut Core, octets: usize) -> Self {
        if connection.backlog.add(octets) {
            core.heavy |= connection.weigh_calls();
        }
        Self { connection: Weak::clone(&connection.this), octets }
    }

    /// It was handed over. Returns whether reading was held up, and may go on with this.
    fn end(mut self) -> bool {
        self.leave()
    }

    /// Takes no lock of the connection: it may be dropped under that.
    fn leave(&mut self) -> bool {
        let Some(connection) = std::mem::take(&mut self.connection).upgrade() else { return false };
        let (caught_up, lighter) = connection.backlog.remove(self.octets);
        if lighter {
            // Less than before is never too much.
            connection.weigh_calls();
        }
        caught_up
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        self.leave();
    }
}
