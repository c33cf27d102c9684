//! What waits for the thread that writes it: copies.
//!
//! They stand in one row in memory, which the writer takes as a whole: putting a copy allocates nothing, and the writer is woken only
//! when it sleeps. Invariant: those that wait and those that the writer has in hand are together no more, in number and in bytes, than
//! the queue allows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that may wait for a place, whatever their number.
const MOST_BYTES: usize = 64 << 20;
/// A row with room for more copies than this is given back to the system when it was emptied.
const KEPT_ROOM: usize = 4096;

/// The copies that wait for one place.
pub(super) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    told: Condvar,
    /// Copies that it holds at the most.
    most: usize,
    /// What the writer has in hand.
    copies_in_hand: AtomicUsize,
    bytes_in_hand: AtomicUsize,
}

struct Waiting<T> {
    /// Each with its bytes.
    copies: Vec<(T, usize)>,
    bytes: usize,
    closed: bool,
    /// Whether the writer sleeps until something comes.
    asleep: bool,
}

/// What the writer took: all that waited, in its order.
pub(super) struct Batch<'a, T> {
    queue: &'a Queue<T>,
    copies: std::vec::Drain<'a, (T, usize)>,
}

impl<T> Queue<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            waiting: Mutex::new(Waiting { copies: Vec::new(), bytes: 0, closed: false, asleep: false }),
            told: Condvar::new(),
            most,
            copies_in_hand: AtomicUsize::new(0),
            bytes_in_hand: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a copy of so many bytes, if there is room for it. Never waits for the writer.
    pub(super) fn put(&self, copy: T, bytes: usize) -> bool {
        let mut waiting = self.lock();
        let copies = waiting.copies.len() + self.copies_in_hand.load(Ordering::Relaxed);
        let held = waiting.bytes + self.bytes_in_hand.load(Ordering::Relaxed);
        if waiting.closed || copies >= self.most || held + bytes > MOST_BYTES {
            return false;
        }
        waiting.bytes += bytes;
        waiting.copies.push((copy, bytes));
        if std::mem::take(&mut waiting.asleep) {
            drop(waiting);
            self.told.notify_one();
        }
        true
    }

    /// Takes no more copies.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.told.notify_all();
    }

    /// What waits, without waiting for more. `row` is where the copies stand meanwhile; it comes empty.
    pub(super) fn take<'a>(&'a self, row: &'a mut Vec<(T, usize)>) -> Batch<'a, T> {
        if row.capacity() > KEPT_ROOM {
            *row = Vec::new();
        }
        let mut waiting = self.lock();
        std::mem::swap(&mut waiting.copies, row);
        self.bytes_in_hand.fetch_add(std::mem::take(&mut waiting.bytes), Ordering::Relaxed);
        self.copies_in_hand.fetch_add(row.len(), Ordering::Relaxed);
        drop(waiting);
        Batch { queue: self, copies: row.drain(..) }
    }

    /// Waits until there is something to take, at most so long. Whether there can still come something.
    pub(super) fn wait(&self, time: Option<Duration>) -> bool {
        let mut waiting = self.lock();
        if waiting.copies.is_empty() && !waiting.closed {
            waiting.asleep = true;
            let is_idle = |waiting: &mut Waiting<T>| waiting.copies.is_empty() && !waiting.closed;
            waiting = match time {
                None => self.told.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner),
                Some(time) => {
                    let waited = self.told.wait_timeout_while(waiting, time, is_idle);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            waiting.asleep = false;
        }
        !(waiting.closed && waiting.copies.is_empty())
    }
}

impl<T> Iterator for Batch<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let (copy, bytes) = self.copies.next()?;
        // What is in hand was counted before it could be taken.
        self.queue.copies_in_hand.fetch_sub(1, Ordering::Relaxed);
        self.queue.bytes_in_hand.fetch_sub(bytes, Ordering::Relaxed);
        Some(copy)
    }
}

/// What was not written is counted no more.
impl<T> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_hand_counts_as_what_waits() {
        let (queue, mut row) = (Queue::new(2), Vec::new());
        assert!(queue.put(1, 10) && queue.put(2, 10));
        assert!(!queue.put(3, 10));
        let mut batch = queue.take(&mut row);
        assert!(!queue.put(3, 10));
        assert_eq!(batch.next(), Some(1));
        assert!(queue.put(3, 10));
        assert!(!queue.put(4, 10));
        drop(batch);
        assert_eq!(queue.take(&mut row).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn bytes_are_bounded_whatever_the_number() {
        let (queue, mut row) = (Queue::new(100), Vec::new());
        assert!(queue.put(1, MOST_BYTES));
        assert!(!queue.put(2, 1));
        let mut batch = queue.take(&mut row);
        assert!(!queue.put(2, 1));
        assert_eq!(batch.next(), Some(1));
        assert!(queue.put(2, 1));
    }

    #[test]
    fn the_writer_wakes_for_the_first_copy_and_for_the_end() {
        let queue = Queue::new(10);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut row, mut found) = (Vec::new(), Vec::new());
                while queue.wait(None) {
                    found.extend(queue.take(&mut row));
                }
                found
            });
            assert!((0..5).all(|copy| queue.put(copy, 1)));
            queue.close();
            assert!(!queue.put(9, 1));
            assert_eq!(writer.join().unwrap_or_default(), [0, 1, 2, 3, 4]);
        });
    }
}
