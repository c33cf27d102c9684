//! Calls that a peer makes on a connection that was made to call it, on their way to their servants.
//!
//! Each is a task of an event loop, so that all begin in order and none runs under the lock. What the peer sends faster than servants take
//! it would pile up: calls that want no answer are bounded by no other limit. So each one counts with what it keeps in memory. From
//! `BEHIND` on nothing more is read, and the peer waits; a thread that waits for its own reply reads on slowly, since the reply may stand
//! behind the calls, and since a servant may wait for a reply, too; from `FLOOD` on the connection ends.

use super::core_guard::CoreGuard;
use super::state::{ANNOUNCED, Connection, Core};
use crate::shard;
use crate::sync::lock;
use everywire_model::{Failure, Incoming, Initiator, Kind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Octets that may wait before the connection is read no further.
const BEHIND: usize = 16 << 20;
/// Octets that may wait at all. More than [`BEHIND`] come only where a call on the same connection must go on reading.
const FLOOD: usize = 128 << 20;
/// What a call takes beside its octets: its task, and its place in the queue.
const TASK: usize = size_of::<Incoming>() + 256;
/// How long a thread that must read on leaves servants to catch up before each read.
const HOLD: Duration = Duration::from_millis(2);

/// What is on its way on one connection.
#[derive(Default)]
pub(super) struct Waiting {
    calls: AtomicUsize,
    octets: AtomicUsize,
    /// Threads that read on slowly sleep here.
    slow: Mutex<()>,
    caught_up: Condvar,
}

impl Waiting {
    /// Whether none is.
    pub(super) fn is_empty(&self) -> bool {
        // Whoever sees that also sees what the servants did.
        self.calls.load(Ordering::Acquire) == 0
    }

    /// Whether so many are that no more is to be read.
    pub(super) fn is_behind(&self) -> bool {
        self.octets.load(Ordering::Acquire) > BEHIND
    }

    /// Sleeps until servants have caught up, but not for long.
    fn hold(&self, until: Option<Instant>) {
        let left = until.map_or(HOLD, |until| until.saturating_duration_since(Instant::now()).min(HOLD));
        let guard = lock(&self.slow);
        let slept = self.caught_up.wait_timeout_while(guard, left, |()| self.is_behind());
        drop(slept.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Connection {
    /// Queues a call of the peer for an event loop: all on one, so that they begin in order, and one that blocks does not block the next.
    pub(super) fn hand_over(&self, core: &mut Core, incoming: Box<Incoming>) {
        if self.handing_over.octets.load(Ordering::Relaxed) > FLOOD {
            let what = format!(
                "more than {} MiB of calls of the peer wait for servants here, and a reply may be behind them",
                FLOOD >> 20
            );
            return self
                .fail(core, Failure::new(Kind::LimitExceeded, Initiator::Here, what).at(&self.endpoint));
        }
        // The smallest part of a buffer keeps all of it; the first call that was in it counts it. What others keep anyhow is not counted
        // without end.
        let buffer = std::mem::take(&mut core.came).min(ANNOUNCED);
        // One call alone never holds up the others: its servant may wait for one of them.
        let octets = (incoming.body.bytes.len() + buffer + TASK).min(BEHIND);
        let call = HandingOver::of(self, octets);
        let registration = self.registration().cloned();
        self.node.queue(
            Box::pin(async move {
                if let Some(connection) = call.connection.upgrade() {
                    connection.call_back(incoming);
                    if call.end() {
                        connection.listen_on();
                    }
                }
            }),
            registration.as_ref(),
        );
    }

    /// A thread that waits for its reply reads only as fast as the peer's calls are taken, or little by little where they are not.
    #[cold]
    pub(super) fn hold_reading<'c>(&'c self, core: CoreGuard<'c>, until: Option<Instant>) -> CoreGuard<'c> {
        drop(core);
        // The calls may be those of the event loop that this thread leads.
        shard::about_to_block();
        self.handing_over.hold(until);
        self.enter()
    }
}

/// A call of the peer, from when it came until it was handed over, or was dropped because its event loop ended.
struct HandingOver {
    connection: Weak<Connection>,
    octets: usize,
}

impl HandingOver {
    /// Under the lock, so that the answer behind it sees it.
    fn of(connection: &Connection, octets: usize) -> Self {
        let waiting = &connection.handing_over;
        waiting.calls.fetch_add(1, Ordering::Relaxed);
        waiting.octets.fetch_add(octets, Ordering::Relaxed);
        Self { connection: Weak::clone(&connection.this), octets }
    }

    /// It was handed over. Returns whether reading was held up, and may go on with this.
    fn end(mut self) -> bool {
        self.leave()
    }

    /// Takes no lock of the connection: it may be dropped under that.
    fn leave(&mut self) -> bool {
        let Some(connection) = std::mem::take(&mut self.connection).upgrade() else { return false };
        let waiting = &connection.handing_over;
        let before = waiting.octets.fetch_sub(self.octets, Ordering::AcqRel);
        // Whoever sees it also sees what the servant did.
        waiting.calls.fetch_sub(1, Ordering::Release);
        let caught_up = before > BEHIND && before - self.octets <= BEHIND;
        if caught_up {
            drop(lock(&waiting.slow));
            waiting.caught_up.notify_all();
        }
        caught_up
    }
}

impl Drop for HandingOver {
    fn drop(&mut self) {
        self.leave();
    }
}
