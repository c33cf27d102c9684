//! Calls that begin on a thread of the pool, because their operation was seen to block.
//!
//! States of such a call: *queued* with the pool; *parked* with its connection, whose peer does not read its answers: it is queued again when
//! there is room; *running*; over. Invariant: `Core::apart` counts those that are not over, and each counts in the weight of the connection
//! (`weighing`). A call whose caller has left is not begun, unless it wants no answer or its wire
//! has calls that outlive their callers. One that is parked is not begun then in any case: its caller read no answers.

use super::state::{ApartCall, Connection, Core, DeferredAction, serves};
use crate::directory::CachedLookup;
use crate::worker_pool::{Job, blocking_records};
use everywire_model::{Expects, Incoming};
use std::sync::Arc;

impl Connection {
    /// Has a call begin on a thread of the pool. Given back, if there is none.
    #[cold]
    pub(super) fn begin_apart(
        self: &Arc<Self>,
        core: &mut Core,
        incoming: Box<Incoming>,
        found: &CachedLookup,
    ) -> Result<(), Job> {
        core.apart += 1;
        let records = found.records.clone().unwrap_or_else(|| blocking_records(0));
        let (servant, index) = (Arc::clone(&found.servant), found.index);
        self.queue_apart(ApartCall { incoming, servant, index, records })
    }

    fn queue_apart(self: &Arc<Self>, call: ApartCall) -> Result<(), Job> {
        let (this, records, index) = (Arc::clone(self), Arc::clone(&call.records), call.index);
        self.node.pool.run(Job { run: Box::new(move || this.run_apart(call)), records, index })
    }

    /// Runs a call, or parks it. Returns whether its servant was asked.
    fn run_apart(self: &Arc<Self>, call: ApartCall) -> bool {
        let mut core = self.enter();
        if call.incoming.expects == Expects::Reply && core.failed.is_some() {
            if !self.capabilities.calls_outlive_callers {
                core.apart -= 1;
                return false;
            }
        } else if call.incoming.expects == Expects::Reply {
            let unsent = core.session.unsent();
            if self.owes_too_much(&core, unsent) {
                core.parked.push(call);
                return false;
            }
        }
        drop(core);
        // A servant that stops its node must not wait for its own call.
        serves(std::ptr::from_ref(&**self).addr());
        self.dispatch(call.incoming, &call.servant, call.index);
        serves(0);
        let mut core = self.enter();
        core.apart -= 1;
        self.weigh(&mut core);
        true
    }

    /// There is room for answers again: calls that were parked are queued.
    #[inline]
    pub(super) fn unpark(self: &Arc<Self>, core: &mut Core) {
        if !core.parked.is_empty() {
            self.unpark_all(core);
        }
    }

    #[cold]
    fn unpark_all(self: &Arc<Self>, core: &mut Core) {
        for call in std::mem::take(&mut core.parked) {
            if let Err(job) = self.queue_apart(call) {
                core.deferred.push(DeferredAction::Run(job));
            }
        }
    }
}
