//! Calls that nobody's thread waits for.

use super::{Completion, Target, Ticket};
use crate::body::Body;
use crate::failure::{Failure, Initiator, Kind};
use crate::session::Outcome;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// A call on its way; a future of its outcome. Dropping it withdraws the call.
pub struct Pending {
    slot: Arc<Mutex<Slot>>,
    target: Option<(Arc<dyn Target>, Ticket)>,
}

struct Slot {
    outcome: Option<Outcome<Body>>,
    waker: Option<Waker>,
}

impl Pending {
    /// Begins a call.
    pub(super) fn begin(target: &Arc<dyn Target>, begin: impl FnOnce(Completion) -> Ticket) -> Self {
        let slot = Arc::new(Mutex::new(Slot { outcome: None, waker: None }));
        let filled = Arc::clone(&slot);
        let ticket = begin(Box::new(move |outcome| {
            let waker = match filled.lock() {
                Ok(mut slot) => {
                    slot.outcome = Some(outcome);
                    slot.waker.take()
                }
                Err(_) => None,
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }));
        Self { slot, target: Some((Arc::clone(target), ticket)) }
    }
}

impl Future for Pending {
    type Output = Outcome<Body>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match self.slot.lock() {
            Ok(mut slot) => {
                let outcome = slot.outcome.take();
                if outcome.is_none() {
                    slot.waker = Some(context.waker().clone());
                }
                outcome
            }
            Err(_) => {
                Some(Outcome::Failed(Failure::new(Kind::Internal, Initiator::Here, "a completion panicked")))
            }
        };
        match outcome {
            Some(outcome) => {
                self.target = None;
                Poll::Ready(outcome)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some((target, ticket)) = self.target.take() {
            target.withdraw(ticket);
        }
    }
}
