//! What was told and is not printed yet: a channel that is bounded by what its news hold.
//!
//! Whoever reads the output may be slow, or stand still, and peers send as much as they like. Beyond `MOST` the teller
//! waits; then the node reads no more from the connection, and the peer or the bus waits, too.

use everywire::model::{Incoming, SignalEvent};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Octets that may wait; 64 MiB.
const MOST: usize = 64 << 20;
/// What news are taken to hold beside their values.
const NEWS: usize = 512;

/// What was told, with the round of the subscriptions that told it; `None` when it is time to end.
pub(super) type BacklogEvent = Option<(u32, SignalEvent<Incoming>)>;

/// Octets that wait; nothing when nobody reads any more.
#[derive(Default)]
struct QueuedOctets {
    octets: Mutex<Option<usize>>,
    fewer: Condvar,
}

impl QueuedOctets {
    fn lock(&self) -> MutexGuard<'_, Option<usize>> {
        self.octets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells.
#[derive(Clone)]
pub(super) struct BacklogSender {
    news: mpsc::Sender<BacklogEvent>,
    waiting: Arc<QueuedOctets>,
}

/// Gets what is told, in its order.
pub(super) struct BacklogReceiver {
    news: mpsc::Receiver<BacklogEvent>,
    waiting: Arc<QueuedOctets>,
}

pub(super) fn backlog() -> (BacklogSender, BacklogReceiver) {
    let (tell, told) = mpsc::channel();
    let waiting = Arc::new(QueuedOctets { octets: Mutex::new(Some(0)), fewer: Condvar::new() });
    (BacklogSender { news: tell, waiting: Arc::clone(&waiting) }, BacklogReceiver { news: told, waiting })
}

impl BacklogSender {
    /// Waits for room first, but not with the word that it is time to end.
    pub(super) fn tell(&self, news: BacklogEvent) {
        let full = |octets: &mut Option<usize>| news.is_some() && octets.is_some_and(|octets| octets >= MOST);
        let mut octets = self.waiting.lock();
        if full(&mut octets) {
            let wait = || self.waiting.fewer.wait_while(octets, full).unwrap_or_else(PoisonError::into_inner);
            octets = everywire::blocking(wait);
        }
        if let Some(octets) = &mut *octets {
            *octets += size(&news);
        }
        drop(octets);
        // The program may be ending.
        let _ = self.news.send(news);
    }
}

impl BacklogReceiver {
    /// The next news; waits for so long at the most, or as long as it takes.
    ///
    /// # Errors
    /// There are none in this time, or ever.
    pub(super) fn next(&self, within: Option<Duration>) -> Result<BacklogEvent, RecvTimeoutError> {
        let news = match within {
            Some(within) => self.news.recv_timeout(within)?,
            None => self.news.recv().map_err(|_| RecvTimeoutError::Disconnected)?,
        };
        if let Some(octets) = &mut *self.waiting.lock() {
            *octets -= size(&news);
        }
        self.waiting.fewer.notify_all();
        Ok(news)
    }
}

impl Drop for BacklogReceiver {
    fn drop(&mut self) {
        *self.waiting.lock() = None;
        self.waiting.fewer.notify_all();
    }
}

fn size(news: &BacklogEvent) -> usize {
    match news {
        Some((_, SignalEvent::Signal(heard))) => {
            let parts = [&heard.sender, &heard.key, &heard.interface, &heard.operation, &heard.body.bytes];
            NEWS + parts.into_iter().map(|part| part.len()).sum::<usize>()
        }
        _ => NEWS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire::Bytes;
    use everywire::model::native::NATIVE;
    use everywire::model::{Codec, Shape};

    fn heard(octets: usize) -> BacklogEvent {
        let values = vec![0; octets];
        let body = NATIVE.write(&mut |sink| sink.bytes(&Shape::sequence(Shape::U8), &values)).unwrap();
        let none = Bytes::new;
        Some((0, SignalEvent::Signal(Incoming::signal(none(), none(), none(), none(), body))))
    }

    #[test]
    fn a_teller_waits_for_whoever_prints() {
        const ONE: usize = 1 << 20;
        let (tell, told) = backlog();
        let count = 3 * MOST / ONE;
        let teller = std::thread::spawn(move || (0..count).for_each(|_| tell.tell(heard(ONE))));
        let waiting = Arc::clone(&told.waiting);
        let octets = || waiting.lock().unwrap_or_default();
        while octets() < MOST {
            assert!(!teller.is_finished(), "it told everything");
            std::thread::yield_now();
        }
        for _ in 0..count {
            assert!(octets() < MOST + 2 * ONE, "{} octets wait", octets());
            told.next(None).unwrap();
        }
        teller.join().unwrap();
        assert_eq!(octets(), 0);
    }

    #[test]
    fn who_ends_is_not_waited_for() {
        let (tell, told) = backlog();
        tell.tell(heard(MOST));
        tell.tell(None);
        drop(told);
        tell.tell(heard(1));
    }
}
