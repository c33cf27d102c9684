//! What waits for the thread that writes it: copies.
//!
//! They stand in blocks, which the writer takes all at once and gives back empty: putting a copy allocates nothing and moves no other
//! copy, and the writer is woken only when it sleeps. Invariant: those that wait and those that the writer has in hand are together no
//! more, in number and in bytes, than the queue allows.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that may wait for a place, whatever their number.
const MOST_BYTES: usize = 64 << 20;
/// Copies in a block.
const BLOCK: usize = 64;
/// More blocks than this are given back to the system when they were emptied.
const KEPT_BLOCKS: usize = 64;

/// What a queue holds.
pub(super) trait QueueItem {
    /// Bytes that it keeps in memory.
    fn bytes(&self) -> usize;
}

impl QueueItem for Bytes {
    fn bytes(&self) -> usize {
        self.len()
    }
}

/// Blocks of copies. Only the last ones may be empty.
pub(super) type Blocks<T> = Vec<VecDeque<T>>;

/// The copies that wait for one place.
pub(super) struct Queue<T> {
    waiting: Mutex<QueueState<T>>,
    told: Condvar,
    /// Copies that it holds at the most.
    most: usize,
    /// What the writer has in hand.
    copies_in_hand: AtomicUsize,
    bytes_in_hand: AtomicUsize,
}

struct QueueState<T> {
    blocks: Blocks<T>,
    /// The block that is being filled.
    at: usize,
    copies: usize,
    bytes: usize,
    closed: bool,
    /// Whether the writer sleeps until something comes.
    asleep: bool,
}

/// What the writer took: all that waited, in its order.
pub(super) struct Batch<'a, T: QueueItem> {
    queue: &'a Queue<T>,
    blocks: &'a mut Blocks<T>,
    /// The block that is being emptied.
    at: usize,
}

impl<T: QueueItem> Queue<T> {
    pub(super) fn new(most: usize) -> Self {
        let waiting =
            QueueState { blocks: Vec::new(), at: 0, copies: 0, bytes: 0, closed: false, asleep: false };
        Self {
            waiting: Mutex::new(waiting),
            told: Condvar::new(),
            most,
            copies_in_hand: AtomicUsize::new(0),
            bytes_in_hand: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a copy of so many bytes, if there is room for it; it is made where it waits, and moved no more. Never waits for the
    /// writer.
    #[inline]
    pub(super) fn put(&self, bytes: usize, make: impl FnOnce() -> T) -> bool {
        let mut waiting = self.lock();
        let copies = waiting.copies + self.copies_in_hand.load(Ordering::Relaxed);
        let held = waiting.bytes + self.bytes_in_hand.load(Ordering::Relaxed);
        if waiting.closed || copies >= self.most || held + bytes > MOST_BYTES {
            return false;
        }
        waiting.push(make);
        waiting.copies += 1;
        waiting.bytes += bytes;
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

    /// What waits, without waiting for more. `blocks` is where the copies stand meanwhile; they come empty.
    pub(super) fn take<'a>(&'a self, blocks: &'a mut Blocks<T>) -> Batch<'a, T> {
        blocks.truncate(KEPT_BLOCKS);
        let mut waiting = self.lock();
        std::mem::swap(&mut waiting.blocks, blocks);
        waiting.at = 0;
        self.copies_in_hand.fetch_add(std::mem::take(&mut waiting.copies), Ordering::Relaxed);
        self.bytes_in_hand.fetch_add(std::mem::take(&mut waiting.bytes), Ordering::Relaxed);
        drop(waiting);
        Batch { queue: self, blocks, at: 0 }
    }

    /// Waits until there is something to take, at most so long. Whether there can still come something.
    pub(super) fn wait(&self, time: Option<Duration>) -> bool {
        let mut waiting = self.lock();
        if waiting.copies == 0 && !waiting.closed {
            waiting.asleep = true;
            let is_idle = |waiting: &mut QueueState<T>| waiting.copies == 0 && !waiting.closed;
            waiting = match time {
                None => self.told.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner),
                Some(time) => {
                    let waited = self.told.wait_timeout_while(waiting, time, is_idle);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            waiting.asleep = false;
        }
        !(waiting.closed && waiting.copies == 0)
    }
}

impl<T> QueueState<T> {
    #[inline]
    fn push(&mut self, make: impl FnOnce() -> T) {
        if self.blocks.get(self.at).is_some_and(|block| block.len() == block.capacity()) {
            self.at += 1;
        }
        if self.at == self.blocks.len() {
            self.blocks.push(VecDeque::with_capacity(BLOCK));
        }
        if let Some(block) = self.blocks.get_mut(self.at) {
            block.push_back(make());
        }
    }
}

impl<T: QueueItem> Iterator for Batch<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let copy = loop {
            match self.blocks.get_mut(self.at)?.pop_front() {
                Some(held) => break held,
                None => self.at += 1,
            }
        };
        // What is in hand was counted before it could be taken.
        self.queue.copies_in_hand.fetch_sub(1, Ordering::Relaxed);
        self.queue.bytes_in_hand.fetch_sub(copy.bytes(), Ordering::Relaxed);
        Some(copy)
    }
}

/// What was not written is counted no more.
impl<T: QueueItem> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy with this number, of so many bytes.
    #[derive(Debug, PartialEq)]
    struct TestCopy(usize, usize);

    impl QueueItem for TestCopy {
        fn bytes(&self) -> usize {
            self.1
        }
    }

    #[test]
    fn what_is_in_hand_counts_as_what_waits() {
        let (queue, mut blocks) = (Queue::new(2), Vec::new());
        assert!(queue.put(10, || TestCopy(1, 10)) && queue.put(10, || TestCopy(2, 10)));
        assert!(!queue.put(10, || TestCopy(3, 10)));
        let mut batch = queue.take(&mut blocks);
        assert!(!queue.put(10, || TestCopy(3, 10)));
        assert_eq!(batch.next().map(|copy| copy.0), Some(1));
        assert!(queue.put(10, || TestCopy(3, 10)));
        assert!(!queue.put(10, || TestCopy(4, 10)));
        drop(batch);
        assert_eq!(queue.take(&mut blocks).collect::<Vec<_>>(), [TestCopy(3, 10)]);
    }

    #[test]
    fn copies_keep_their_order_over_many_blocks() {
        let (queue, mut blocks) = (Queue::new(usize::MAX), Vec::new());
        for round in [3 * BLOCK + 1, 1, 2 * BLOCK * KEPT_BLOCKS, BLOCK] {
            assert!((0..round).all(|copy| queue.put(1, || TestCopy(copy, 1))));
            assert!(queue.take(&mut blocks).map(|copy| copy.0).eq(0..round), "{round}");
        }
        assert_eq!(queue.take(&mut blocks).count(), 0);
    }

    #[test]
    fn bytes_are_bounded_whatever_the_number() {
        let (queue, mut blocks) = (Queue::new(100), Vec::new());
        assert!(queue.put(MOST_BYTES, || TestCopy(1, MOST_BYTES)));
        assert!(!queue.put(1, || TestCopy(2, 1)));
        let mut batch = queue.take(&mut blocks);
        assert!(!queue.put(1, || TestCopy(2, 1)));
        assert_eq!(batch.next().map(|copy| copy.0), Some(1));
        assert!(queue.put(1, || TestCopy(2, 1)));
    }

    #[test]
    fn the_writer_wakes_for_the_first_copy_and_for_the_end() {
        let queue = Queue::new(10);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut blocks, mut found) = (Vec::new(), Vec::new());
                while queue.wait(None) {
                    found.extend(queue.take(&mut blocks).map(|copy: TestCopy| copy.0));
                }
                found
            });
            assert!((0..5).all(|copy| queue.put(1, || TestCopy(copy, 1))));
            queue.close();
            assert!(!queue.put(1, || TestCopy(9, 1)));
            assert_eq!(writer.join().unwrap_or_default(), [0, 1, 2, 3, 4]);
        });
    }
}
