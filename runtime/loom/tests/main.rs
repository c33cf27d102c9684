//! The runtime's protocols under loom, which runs a model in every order of its steps that the memory model allows.
//!
//! What runs is the runtime's own source: `transport/ring.rs`, how two sides of shared memory pass octets on and wake each
//! other, and `terms.rs`, how the lead of a shard is handed over. They take atomics and locks from `crate::sync`, which is
//! loom's here.
//!
//! `cargo test --release` in this folder; `LOOM_MAX_PREEMPTIONS=4` and more look deeper, and take longer. A failure prints which
//! model it was; `LOOM_LOG=trace LOOM_LOCATION=1` shows the order of steps.

#![allow(dead_code)]

#[path = "../../src/transport/ring.rs"]
mod ring;
#[path = "../../src/terms.rs"]
mod terms;

mod limits;
mod rings;
mod shards;

/// What stands for the runtime's module of this name.
mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex};
    use std::sync::PoisonError;

    pub(crate) mod atomic {
        pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

        /// The flags that a side raises before it sleeps. A store is an exchange here, since loom lets plain
        /// stores of others come between an exchange and the store that it read ([`crate::limits`]): it would
        /// find sleepers that nobody wakes, in orders that no machine has.
        pub(crate) struct AtomicU32(loom::sync::atomic::AtomicU32);

        impl AtomicU32 {
            pub(crate) fn new(value: u32) -> Self {
                Self(loom::sync::atomic::AtomicU32::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> u32 {
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: u32, order: Ordering) {
                self.0.swap(value, order);
            }

            pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
                self.0.swap(value, order)
            }
        }
    }

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a model with at most so many preemptions, unless the environment says otherwise. Nearly all faults of such protocols
/// need two or three.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(model);
}
