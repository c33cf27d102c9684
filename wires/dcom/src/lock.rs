//! Locks that stay usable when a thread panics while it holds one.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock's content. Whatever a thread that panicked left is still whole: no table of this wire is changed in steps that can panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
