//! Asynchronous servants: futures that run on a shard's thread.

use crate::sync::lock;
use everywire_model::BoxFuture;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};

/// What runs futures: a shard.
pub(crate) trait Queue: Send + Sync + Sized + 'static {
    /// Queues a future that can go on.
    fn enqueue(&self, task: Arc<Task<Self>>);
}

/// One future of a servant, with its place in the queue of a shard.
///
/// States: *waiting*, for a waker; *queued*, once somebody woke it, which puts it into the queue once however
/// many do; *running*, under the lock of `future`; *over*: `future` is `None`. A future that is woken while
/// it runs is queued again.
pub(crate) struct Task<Q> {
    future: Mutex<Option<BoxFuture<'static, ()>>>,
    /// Whether it is in the queue and has not begun to run since.
    queued: AtomicBool,
    shard: Weak<Q>,
}

impl<Q: Queue> Task<Q> {
    /// Runs the future until it first has to wait; the shard continues it.
    pub(crate) fn start(future: BoxFuture<'static, ()>, shard: &Arc<Q>) {
        let task = Arc::new(Self {
            future: Mutex::new(Some(future)),
            queued: AtomicBool::new(true),
            shard: Arc::downgrade(shard),
        });
        task.run();
    }

    /// Has the shard run the future, and continue it.
    pub(crate) fn queue(future: BoxFuture<'static, ()>, shard: &Arc<Q>) {
        let task = Arc::new(Self {
            future: Mutex::new(Some(future)),
            queued: AtomicBool::new(true),
            shard: Arc::downgrade(shard),
        });
        shard.enqueue(task);
    }

    /// Continues the future.
    pub(crate) fn run(self: &Arc<Self>) {
        // Before the future is polled: a waker that comes from now on queues it again, so nothing that it
        // tells is missed.
        self.queued.store(false, Ordering::Release);
        let mut held = lock(&self.future);
        let Some(future) = held.as_mut() else { return };
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        // A servant that panics ends with its future: dropping its request answers the caller.
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
        if !matches!(polled, Ok(Poll::Pending)) {
            let ended = held.take();
            drop(held);
            // Dropping runs code of the user's, which may panic again.
            let _ = catch_unwind(AssertUnwindSafe(move || drop(ended)));
        }
    }
}

impl<Q: Queue> Wake for Task<Q> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel)
            && let Some(shard) = self.shard.upgrade()
        {
            shard.enqueue(Arc::clone(self));
        }
    }
}
