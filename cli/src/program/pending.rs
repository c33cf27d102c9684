//! What all parts of a program's servant work on: calls that wait for the program, and locks.

use everywire::model::Request;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call that the program has not answered yet: the request, and the number of its operation in the
/// interface.
pub(super) struct Pending {
    pub(super) request: Request,
    pub(super) index: usize,
}

/// Locks, also after a panic elsewhere: what a lock guards here is whole at any time.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
