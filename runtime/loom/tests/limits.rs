//! What the model checker takes for possible although the memory model forbids it: the models are written around it.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;
use std::sync::atomic::{AtomicBool, Ordering as Real};

/// Whether some order of steps ends with what C++ (and so Rust) forbids: thread B replaced the value that was there first, so that
/// both stores of thread A come after B's; A's fence came before B's, since A did not see what B had told; and yet B reads
/// its own value after its fence, and not A's later one.
fn forgets_what_was_stored(store: fn(&AtomicU32, u32)) -> bool {
    let seen = std::sync::Arc::new(AtomicBool::new(false));
    let tell = std::sync::Arc::clone(&seen);
    crate::explore(3, move || {
        let flag = Arc::new(AtomicU32::new(5));
        let told = Arc::new(AtomicU32::new(0));
        let (its_flag, its_told) = (Arc::clone(&flag), Arc::clone(&told));
        let other = thread::spawn(move || {
            store(&its_flag, 6);
            store(&its_flag, 7);
            fence(Ordering::SeqCst);
            its_told.load(Ordering::Relaxed)
        });
        let before = flag.swap(0, Ordering::AcqRel);
        told.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let after = flag.load(Ordering::Relaxed);
        let heard = other.join().unwrap();
        if before == 5 && heard == 0 && after == 0 {
            tell.store(true, Real::SeqCst);
        }
    });
    seen.load(Real::SeqCst)
}

/// loom does not place an exchange directly after the store that it read, so that plain stores of others may come between. When
/// this fails, loom has learnt it, and [`crate::sync::atomic::AtomicU32`] can be loom's own.
#[test]
fn plain_stores_are_forgotten_beside_an_exchange() {
    assert!(forgets_what_was_stored(|flag, value| flag.store(value, Ordering::Relaxed)));
}

/// So the models store by an exchange.
#[test]
fn exchanges_are_not_forgotten() {
    assert!(!forgets_what_was_stored(|flag, value| {
        flag.swap(value, Ordering::Relaxed);
    }));
}
