//! Calls that begin on a thread of the pool, because their operation was seen to block.
//!
//! States of such a call: *queued*: a job of the pool takes it from `Core::queued`, unless it was dropped to make room; *parked* with its
//! connection, whose peer does not read its answers: it is queued again when there is room; *running*; over. Invariant: `Core::apart`
//! counts those that are not over, and each counts in the weight of the connection (`weighing`). A call whose caller has left is not
//! begun, unless it wants no answer or its wire has calls that outlive their callers. One that is parked is not begun then in any case:
//! its caller read no answers.

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
        self.queue_apart(core, ApartCall { incoming, servant, index, records })
    }

    fn queue_apart(self: &Arc<Self>, core: &mut Core, call: ApartCall) -> Result<(), Job> {
        let (this, records, index) = (Arc::clone(self), Arc::clone(&call.records), call.index);
        core.jobs += 1;
        let number = core.jobs;
        core.queued.push_back((number, call));
        self.node.pool.run(Job { run: Box::new(move || this.run_apart(number)), records, index })
    }

    /// Runs a call, or parks it. Returns whether its servant was asked.
    fn run_apart(self: &Arc<Self>, number: u64) -> bool {
        let mut core = self.enter();
        // It may have been dropped to make room.
        let Some(at) = core.queued.iter().position(|(queued, _)| *queued == number) else { return false };
        let Some((_, call)) = core.queued.remove(at) else { return false };
        if call.incoming.expects == Expects::Reply && core.failed.is_some() {
            if !self.capabilities.calls_outlive_callers {
                core.apart -= 1;
                self.let_go(&mut core, call.incoming.id);
                self.weigh(&mut core);
                core.deferred.push(DeferredAction::NotBegun(vec![call]));
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
            if let Err(job) = self.queue_apart(core, call) {
                core.deferred.push(DeferredAction::Run(job));
            }
        }
    }
}
