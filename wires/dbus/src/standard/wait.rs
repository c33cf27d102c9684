//! Waiting for futures on the calling thread: many calls go out first, and are then waited for in turn.

use everywire_model::{Failure, MarshalList, Object, Operation, UnmarshalList};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Calls that are outstanding at a time: well below what buses allow one connection.
const AT_ONCE: usize = 48;

/// Calls the operation on each object, and yields the results in order. It returns when the last one has been
/// answered, or its time limit has passed.
pub(super) fn call_each<A, R>(calls: &[(Object, A)], operation: &Operation) -> Vec<Result<R, Failure>>
where
    A: MarshalList + Clone + Send,
    R: for<'a> UnmarshalList<'a>,
{
    let some = calls.chunks(AT_ONCE);
    some.flat_map(|some| {
        // A call is on its way as soon as its future exists, where there is a connection.
        let begun: Vec<_> = some
            .iter()
            .map(|(object, arguments)| object.call_async::<A, R, Failure>(operation, arguments.clone()))
            .collect();
        begun.into_iter().map(wait).collect::<Vec<_>>()
    })
    .collect()
}

/// Waits for a future on this thread, which sleeps meanwhile.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
