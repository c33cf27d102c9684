//! Who waits for the outcome of a call without a thread, also where that goes on over another connection (`resuming`).

use everywire_model::object::Completion;
use everywire_model::{Body, Completed, Failure, Initiator, Kind, Outcome, Reference};
use std::time::Instant;

/// Who waits for the outcome of a call without a thread. Whoever has it must see that it is told, or that
/// nobody wants it any more: a future whose asker is dropped untold would wait for ever.
pub(crate) struct CallCompletion {
    done: Completion,
    /// What the call is withdrawn by.
    pub(super) ticket: u64,
    /// How often it has gone on over another connection.
    pub(super) moves: usize,
}

impl CallCompletion {
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
    /// Who waits, until the call has gone on: dropped before that, it is told that the call does not go on
    /// and may have run.
    pub(super) asker: Option<CallCompletion>,
    pub(super) way: Reference,
    pub(super) until: Option<Instant>,
}

impl Resuming {
    /// The call of somebody, by the way that its session told.
    pub(super) fn new(mut asker: CallCompletion, way: Reference, until: Option<Instant>) -> Self {
        asker.moves += 1;
        Self { asker: Some(asker), way, until }
    }

    /// Tells whoever waits, if the call has not gone on.
    pub(super) fn fail(&mut self, failure: Failure) {
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
