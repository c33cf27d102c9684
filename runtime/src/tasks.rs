//! Asynchronous servants: futures that run on a shard's thread.

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
/// it runs is queued again, and if another thread comes to it while it still runs, that thread goes on with others: the
/// one that runs it queues it once more.
pub(crate) struct Task<Q> {
    future: Mutex<Option<BoxFuture<'static, ()>>>,
    /// Whether it is in the queue and has not begun to run since.
    queued: AtomicBool,
    /// Whether its turn came while it was running.
    missed: AtomicBool,
    shard: Weak<Q>,
}

impl<Q: Queue> Task<Q> {
    /// Runs the future until it first has to wait; the shard continues it.
    pub(crate) fn start(future: BoxFuture<'static, ()>, shard: &Arc<Q>) {
        Self::new(future, shard).run();
    }

    /// Has the shard run the future, and continue it.
    pub(crate) fn queue(future: BoxFuture<'static, ()>, shard: &Arc<Q>) {
        shard.enqueue(Self::new(future, shard));
    }

    fn new(future: BoxFuture<'static, ()>, shard: &Arc<Q>) -> Arc<Self> {
        Arc::new(Self {
            future: Mutex::new(Some(future)),
            queued: AtomicBool::new(true),
            missed: AtomicBool::new(false),
            shard: Arc::downgrade(shard),
        })
    }

    /// Continues the future.
    pub(crate) fn run(self: &Arc<Self>) {
        // Before the future is polled: a waker that comes from now on queues it again, so nothing that it
        // tells is missed.
        self.queued.store(false, Ordering::Release);
        // Told before the lock is tried: whoever has it looks after letting go.
        self.missed.store(true, Ordering::SeqCst);
        let Ok(mut held) = self.future.try_lock() else { return };
        self.missed.store(false, Ordering::SeqCst);
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
            return;
        }
        drop(held);
        if self.missed.swap(false, Ordering::SeqCst) {
            self.wake_by_ref();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::lock;
    use std::sync::mpsc;

    /// A queue that somebody runs by hand.
    #[derive(Default)]
    struct Row(Mutex<Vec<Arc<Task<Row>>>>);

    impl Queue for Row {
        fn enqueue(&self, task: Arc<Task<Self>>) {
            lock(&self.0).push(task);
        }
    }

    #[test]
    fn a_future_whose_turn_comes_while_it_runs_runs_once_more_and_holds_nobody_up() {
        let row = Arc::new(Row::default());
        let ((entered, inside), (leave, left)) = (mpsc::channel(), mpsc::channel::<()>());
        let mut polls = 0;
        let future = std::future::poll_fn(move |context| {
            polls += 1;
            if polls == 2 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            entered.send(()).unwrap();
            left.recv().unwrap();
            Poll::Pending
        });
        Task::queue(Box::pin(future), &row);
        let task = lock(&row.0).pop().unwrap();
        let first = std::thread::spawn({
            let task = Arc::clone(&task);
            move || task.run()
        });
        inside.recv().unwrap();
        // It was woken while it runs; whoever comes to it now goes on at once.
        let woken = lock(&row.0).pop().unwrap();
        woken.run();
        assert!(lock(&row.0).is_empty());
        leave.send(()).unwrap();
        first.join().unwrap();
        lock(&row.0).pop().unwrap().run();
        assert!(lock(&task.future).is_none(), "it has ended");
    }
}
