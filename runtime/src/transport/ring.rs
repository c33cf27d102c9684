//! The protocol of two rings: who may read and write how much, and who has to wake whom. No octets and no system calls, so that
//! a model checker can run it in every order of its steps (`runtime/loom`), with atomics of its own ([`crate::sync`]).
//!
//! Invariants, whatever a peer of good will does at the same time:
//!
//! * What lies between head and tail is the consumer's, the rest the producer's; an index is stored after the octets.
//! * A side that sleeps has raised its flag, and looked once more after that. Whoever produced, or made room in a ring that was
//!   more than half full, looks at the flag after that: one of the two sees the other.
//! * Indices of a hostile peer are checked, and used as numbers only.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::io::{self, ErrorKind};

/// Looks in one glance: with the CPU's pause between two they take about a microsecond.
const GLANCES: u32 = 32;

/// The indices of one ring. They only grow; the place in the ring is the index modulo its size.
#[derive(Clone, Copy)]
pub(crate) struct Ring<'m> {
    /// Where the producer goes on.
    pub(crate) tail: &'m AtomicU64,
    /// Where the consumer goes on.
    pub(crate) head: &'m AtomicU64,
}

/// One side of both rings.
pub(crate) struct RingPair<'m> {
    /// The ring that this side fills.
    pub(crate) own: Ring<'m>,
    /// The ring that the peer fills.
    pub(crate) incoming: Ring<'m>,
    /// Raised by this side when it is about to sleep, lowered by whoever wakes it.
    pub(crate) asleep: &'m AtomicU32,
    /// The peer's flag.
    pub(crate) peer_asleep: &'m AtomicU32,
    /// Octets that a ring holds.
    pub(crate) capacity: usize,
}

impl RingPair<'_> {
    /// Where the next octets begin, and how many have arrived.
    #[inline]
    pub(crate) fn arrived(&self) -> io::Result<(u64, usize)> {
        let head = self.incoming.head.load(Ordering::Relaxed);
        let tail = self.incoming.tail.load(Ordering::Acquire);
        Ok((head, self.distance(head, tail)?))
    }

    /// `n` of `ready` octets were copied out. Returns whether the peer's bell is to be rung.
    #[inline]
    pub(crate) fn took(&self, head: u64, n: usize, ready: usize) -> bool {
        self.incoming.head.store(head.wrapping_add(n as u64), Ordering::Release);
        // Only a nearly full ring can have a producer waiting for room.
        ready >= self.capacity / 2 && self.peer_sleeps()
    }

    /// Where the next octets go, and for how many there is room.
    #[inline]
    pub(crate) fn room(&self) -> io::Result<(u64, usize)> {
        let tail = self.own.tail.load(Ordering::Relaxed);
        let head = self.own.head.load(Ordering::Acquire);
        Ok((tail, self.capacity - self.distance(head, tail)?))
    }

    /// Octets up to `tail` were copied in. Returns whether the peer's bell is to be rung.
    #[inline]
    pub(crate) fn put(&self, tail: u64) -> bool {
        self.own.tail.store(tail, Ordering::Release);
        self.peer_sleeps()
    }

    /// Looks for incoming octets for about a microsecond.
    pub(crate) fn glance(&self) -> bool {
        let head = self.incoming.head.load(Ordering::Relaxed);
        for _ in 0..GLANCES {
            if self.incoming.tail.load(Ordering::Acquire) != head {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Raises the flag that asks the peer to ring. Returns whether something has arrived meanwhile: then do not sleep.
    #[inline]
    pub(crate) fn before_sleep(&self, wants_room: bool) -> bool {
        self.asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let ready = self.incoming.head.load(Ordering::Relaxed) != self.incoming.tail.load(Ordering::Acquire);
        let full = || {
            let used =
                self.own.tail.load(Ordering::Relaxed).wrapping_sub(self.own.head.load(Ordering::Acquire));
            used >= self.capacity as u64
        };
        ready || (wants_room && !full())
    }

    /// Lowers the flag.
    #[inline]
    pub(crate) fn after_sleep(&self) {
        self.asleep.store(0, Ordering::Relaxed);
    }

    /// Whether the peer has to be woken; it is asked once only for each time that it sleeps.
    #[inline]
    fn peer_sleeps(&self) -> bool {
        fence(Ordering::SeqCst);
        self.peer_asleep.load(Ordering::Relaxed) != 0 && self.peer_asleep.swap(0, Ordering::AcqRel) != 0
    }

    /// Octets between two indices; a peer that claims more than a ring holds is lying.
    #[inline]
    fn distance(&self, head: u64, tail: u64) -> io::Result<usize> {
        match usize::try_from(tail.wrapping_sub(head)) {
            Ok(n) if n <= self.capacity => Ok(n),
            _ => Err(io::Error::new(ErrorKind::InvalidData, "the peer's ring indices are impossible")),
        }
    }
}
