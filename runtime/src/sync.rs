//! Locks that outlive a panic: a servant that panics must not take its connection's neighbours with it.
//!
//! What the model checker runs (`transport/ring.rs`, `terms.rs`) takes atomics, locks and conditions from here; there
//! (`runtime/loom`) this module is another one, which tries every order of their steps.

pub(crate) use std::sync::atomic;
pub(crate) use std::sync::{Condvar, Mutex};
use std::sync::{MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The lock, also if a thread panicked while it held it: code under a lock leaves its data whole before it
/// calls what may panic.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
