//! Calls that nobody's thread waits for.

use super::target::{Completion, Target, Ticket};
use crate::body::Body;
use crate::failure::{Failure, Initiator, Kind};
use crate::message::Outcome;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// A call on its way; a future of its outcome. Dropping it withdraws the call.
pub struct Pending {
    told: ResultSlot<Outcome<Body>>,
    target: Option<(Arc<dyn Target>, Ticket)>,
}

impl Pending {
    /// Begins a call.
    pub(super) fn begin(target: &Arc<dyn Target>, begin: impl FnOnce(Completion) -> Ticket) -> Self {
        let (told, tell) = ResultSlot::new();
        let ticket = begin(Box::new(tell));
        Self { told, target: Some((Arc::clone(target), ticket)) }
    }
}

impl Future for Pending {
    type Output = Outcome<Body>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = Pin::new(&mut self.told).poll(context);
        outcome.map(|outcome| {
            self.target = None;
            outcome.unwrap_or_else(Outcome::Failed)
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some((target, ticket)) = self.target.take() {
            target.withdraw(ticket);
        }
    }
}

/// A way to an object that is being found: a future of the target to call then, whose deadline is what is left. Nothing, if a call
/// can begin at once.
pub(super) fn preparing(
    target: &Arc<dyn Target>,
) -> Option<impl Future<Output = Result<Arc<dyn Target>, Failure>> + use<>> {
    if target.is_ready() {
        return None;
    }
    let (told, tell) = ResultSlot::new();
    target.prepare(Box::new(tell));
    Some(async { told.await? })
}

/// What somebody will tell, on some thread; a failure if they panicked over it.
struct ResultSlot<T>(Arc<Mutex<Slot<T>>>);

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

impl<T: Send + 'static> ResultSlot<T> {
    /// The future, and how to tell.
    fn new() -> (Self, impl FnOnce(T) + Send) {
        let slot = Arc::new(Mutex::new(Slot { value: None, waker: None }));
        let filled = Arc::clone(&slot);
        let tell = move |value| {
            let waker = match filled.lock() {
                Ok(mut slot) => {
                    slot.value = Some(value);
                    slot.waker.take()
                }
                Err(_) => None,
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        };
        (Self(slot), tell)
    }
}

impl<T> Future for ResultSlot<T> {
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Ok(mut slot) = self.0.lock() else {
            let failure = Failure::new(Kind::Internal, Initiator::Here, "a completion panicked");
            return Poll::Ready(Err(failure));
        };
        if let Some(value) = slot.value.take() {
            return Poll::Ready(Ok(value));
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
