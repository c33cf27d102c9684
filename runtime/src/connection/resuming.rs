//! Futures whose calls have left when their connection ends, and may have run: where the wire knows how such a call goes on, it
//! does so over another connection, as that of a caller who blocks. The session knows what was asked, so neither operation nor
//! arguments are kept for it here.

use crate::shard;
use crate::shared::Shared;
use crate::target::FORWARDS;
use everywire_model::object::Completion;
use everywire_model::visit::Nothing;
use everywire_model::{
    Body, Call, Completed, Expects, Failure, Initiator, Kind, Method, Operation, Outcome, Reference, Shape,
};
use std::time::Instant;

/// Who waits for the outcome of a call without a thread.
pub(crate) struct Asker {
    done: Completion,
    /// What the call is withdrawn by.
    pub(super) ticket: u64,
    /// How often it has gone on over another connection.
    moves: usize,
}

impl Asker {
    /// Whoever begins a call.
    pub(crate) fn new(ticket: u64, done: Completion) -> Self {
        Self { done, ticket, moves: 0 }
    }

    /// The call has its outcome.
    pub(crate) fn tell(self, outcome: Outcome<Body>) {
        (self.done)(match outcome {
            Outcome::Failed(failure) if self.moves > 0 && failure.completed() == Completed::No => {
                // Only what it was to go on with has not happened.
                Outcome::Failed(failure.with_completed(Completed::Maybe))
            }
            outcome => outcome,
        });
    }
}

/// A call that goes on over another connection.
pub(super) struct Resuming {
    /// Somebody, as long as it does not.
    asker: Option<Asker>,
    way: Reference,
    until: Option<Instant>,
}

impl Resuming {
    /// The call of somebody, by the way that its session told.
    pub(super) fn new(mut asker: Asker, way: Reference, until: Option<Instant>) -> Self {
        asker.moves += 1;
        Self { asker: Some(asker), way, until }
    }

    /// Goes on, on an event loop: finding the way may take a while. Without one the call fails.
    pub(super) fn begin(self, node: &Shared) {
        if self.asker.as_ref().is_some_and(|asker| asker.moves > FORWARDS) {
            return;
        }
        let held = node.weak();
        let task = async move {
            shard::about_to_block();
            if let Some(node) = held.upgrade() {
                self.go_on(&node);
            }
        };
        node.queue(Box::pin(task), None);
    }

    fn go_on(mut self, node: &Shared) {
        // What it was is the session's to know.
        let operation = Operation::new("", vec![], Shape::Void);
        let mut last = None;
        for profile in &self.way.profiles {
            for endpoint in &profile.endpoints {
                let found = node.connection(profile, endpoint, self.until, None);
                // Once the call has begun, it is the session that says when the next one may.
                let found = found.and_then(|found| node.register(&found.0).map(|()| found));
                let (connection, _turn) = match found {
                    Ok(found) => found,
                    Err(failure) => {
                        last = Some(failure);
                        continue;
                    }
                };
                let Some(asker) = self.asker.take() else { return };
                let call = Call {
                    profile,
                    method: Method::Typed { interface: None, operation: &operation },
                    arguments: &Nothing,
                    expects: Expects::Reply,
                };
                if let Err((failure, asker)) = connection.call_and_go(call, Instant::now(), self.until, asker)
                {
                    asker.tell(Outcome::Failed(failure));
                }
                return;
            }
        }
        if let Some(failure) = last {
            self.fail(failure);
        }
    }

    fn fail(&mut self, failure: Failure) {
        if let Some(asker) = self.asker.take() {
            asker.tell(Outcome::Failed(failure));
        }
    }
}

impl Drop for Resuming {
    fn drop(&mut self) {
        let what =
            "the connection ended before the answer came, and the call does not go on over another one";
        self.fail(Failure::new(Kind::Unreachable, Initiator::Here, what).with_completed(Completed::Maybe));
    }
}
