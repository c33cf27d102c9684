//! Work for another thread.

use super::tree::Tree;
use std::future::poll_fn;
use std::task::Poll;

/// Runs a task on the runtime's threads, never on the calling one: whoever says that something changed may
/// well hold the lock that the accessors of it are going to take. It runs once, at some time after this
/// returns.
pub(super) fn later(tree: &Tree, task: impl FnOnce() + Send + 'static) {
    let mut task = Some(task);
    let mut begun = false;
    let future = poll_fn(move |context| {
        // The first time may be on the calling thread.
        if !std::mem::replace(&mut begun, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(task) = task.take() {
            task();
        }
        Poll::Ready(())
    });
    tree.0.aside(Box::new(|_| {})).spawn(Box::pin(future));
}
