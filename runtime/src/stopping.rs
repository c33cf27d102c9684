//! The end of a node: calls under way end and are answered, new ones are refused in the wire's words, then connections end with
//! their goodbyes.
//!
//! States: *serving*, *draining* (nothing is listened at, every new call is refused, connections without a call end one by one),
//! *stopped*. There is no way back.
//!
//! Invariant: a call that is refused has not begun, and says so; nobody says goodbye while a call of that connection is under way.

use crate::connection::Connection;
use crate::shared::Shared;
use everywire_model::{Failure, Initiator, Kind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Between two looks at the calls that are under way.
const STEP: Duration = Duration::from_millis(2);

impl Shared {
    /// Stops listening, and refuses every call from now on.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.shards().iter().for_each(|shard| shard.close_listeners());
    }

    /// Whether new calls are refused.
    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Drains, waits for so long at the most until no call is under way, and stops. A servant may do this: nobody waits for its own
    /// call.
    pub(crate) fn stop_within(&self, grace: Duration) {
        self.drain();
        // This thread may be the one that has to serve the others.
        crate::shard::about_to_block();
        let until = Instant::now().checked_add(grace);
        while self.under_way() > 0 && until.is_none_or(|until| Instant::now() < until) {
            std::thread::sleep(STEP);
        }
        self.stop();
    }

    /// Connections with calls under way, and calls from within this process; connections without any end.
    fn under_way(&self) -> usize {
        let why = Failure::new(Kind::Unreachable, Initiator::Here, "the node was stopped");
        let serving = |connection: &Arc<Connection>| connection.is_serving() && !connection.is_over();
        let all = self.shards().iter().flat_map(|shard| shard.connections());
        let inward = self.inward.load(Ordering::SeqCst).saturating_sub(crate::local_target::inside(self));
        inward + all.filter(serving).filter(|connection| !connection.retire(&why)).count()
    }
}
