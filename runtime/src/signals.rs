//! Signals on their way to listeners here, and who listens.
//!
//! States of a queue: *idle*; *waiting*: something is in it and a delivery is asked for; *delivering*: a
//! delivery tells what was in it, or whoever has claimed it tells an answer.
//!
//! Invariants: one thread at a time tells, in the order in which things came; what comes meanwhile waits. What
//! waits is bounded by number and by octets: from the first bound on the connection is read no further, at the
//! second one it ends.

use crate::connection::CallCompletion;
use crate::failures::stopped;
use crate::sync::lock;
use bytes::Bytes;
use everywire_model::signal::Listener;
use everywire_model::{Body, Completed, Incoming, Interface, Outcome, Signal, SignalEvent};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Signals that may wait for listeners before their connection is read no further: the peer's socket fills,
/// and the peer waits.
const WAITING: usize = 4096;
/// Octets of their values from which on it is the same: 64 MiB.
const WAITING_OCTETS: usize = 64 << 20;
/// Signals that may wait for listeners at all. More than `WAITING` come only where a call on the same
/// connection must go on reading; at this number the connection is ended.
const FLOOD: usize = 1 << 20;
/// Octets of their values at which it is the same: 512 MiB.
const FLOOD_OCTETS: usize = 512 << 20;

/// How long an emitter waits for all peers together that do not read its signals; then they are cut off.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Somebody who listens, until the subscription is dropped.
pub(crate) struct Subscriber {
    listener: Listener,
    over: AtomicBool,
}

impl Subscriber {
    pub(crate) fn new(listener: Listener) -> Arc<Self> {
        Arc::new(Self { listener, over: AtomicBool::new(false) })
    }

    /// The subscription was dropped: what is on its way is not told any more.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }
}

/// Signals on their way to listeners. One thread at a time delivers, in order.
#[derive(Default)]
pub(crate) struct EventQueue {
    queue: Mutex<Queue>,
}

/// `delivering` is set by `rouse` and `claim`, and cleared by `next` and `told`, under the lock: so there is one delivery at a
/// time, and none is missed.
#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    /// Octets of the values of signals in it.
    octets: usize,
    delivering: bool,
}

/// What is on its way.
enum Item {
    SignalEvent(Arc<Subscriber>, SignalEvent<Incoming>),
    /// An answer that came behind signals, where their order is kept.
    Answer(CallCompletion, Outcome<Body>),
}

impl Item {
    fn deliver(self) {
        match self {
            Self::SignalEvent(subscriber, _) if subscriber.over.load(Ordering::Acquire) => {}
            Self::SignalEvent(subscriber, event) => (subscriber.listener)(event),
            Self::Answer(asker, outcome) => asker.tell(outcome),
        }
    }
}

impl EventQueue {
    /// Queues; somebody must see to [`EventQueue::rouse`] afterwards.
    pub(crate) fn post(&self, subscriber: Arc<Subscriber>, event: SignalEvent<Incoming>) {
        let mut queue = lock(&self.queue);
        if let SignalEvent::Signal(heard) = &event {
            queue.octets += heard.body.bytes.len();
        }
        queue.items.push_back(Item::SignalEvent(subscriber, event));
    }

    /// The same for one more who hears a signal: its values are there once, and are counted where they are posted.
    pub(crate) fn post_copy(&self, subscriber: Arc<Subscriber>, event: SignalEvent<Incoming>) {
        lock(&self.queue).items.push_back(Item::SignalEvent(subscriber, event));
    }

    /// Queues the outcome of a call; as [`EventQueue::post`].
    pub(crate) fn answer(&self, asker: CallCompletion, outcome: Outcome<Body>) {
        lock(&self.queue).items.push_back(Item::Answer(asker, outcome));
    }

    /// Whether nothing is on its way, so that the caller may tell an answer itself. If so, all that comes waits until it has called
    /// [`EventQueue::told`].
    pub(crate) fn claim(&self) -> bool {
        let mut queue = lock(&self.queue);
        let idle = queue.items.is_empty() && !queue.delivering;
        queue.delivering |= idle;
        idle
    }

    /// Whoever has claimed it has told its answer; somebody must see to [`EventQueue::rouse`] afterwards if this says that something has
    /// come meanwhile.
    pub(crate) fn told(&self) -> bool {
        let mut queue = lock(&self.queue);
        queue.delivering = false;
        !queue.items.is_empty()
    }

    /// Whether listeners are so far behind that no more is to be read for them.
    pub(crate) fn is_behind(&self) -> bool {
        let queue = lock(&self.queue);
        queue.items.len() > WAITING || queue.octets > WAITING_OCTETS
    }

    /// Whether more waits than there may.
    pub(crate) fn is_flooded(&self) -> bool {
        let queue = lock(&self.queue);
        queue.items.len() > FLOOD || queue.octets > FLOOD_OCTETS
    }

    /// Whether the caller must have a [`Delivery`] made, because something waits and nobody delivers.
    pub(crate) fn rouse(&self) -> bool {
        let mut queue = lock(&self.queue);
        let needed = !queue.items.is_empty() && !queue.delivering;
        queue.delivering |= needed;
        needed
    }

    /// All that waits, as one batch; `None` when nothing is left: then the delivery ends, and the next event
    /// needs another.
    fn next(&self) -> Option<VecDeque<Item>> {
        let mut queue = lock(&self.queue);
        if queue.items.is_empty() {
            queue.delivering = false;
            return None;
        }
        queue.octets = 0;
        Some(std::mem::take(&mut queue.items))
    }
}

/// One run over a queue of events. If it is dropped before it ran, because its event loop has ended, it
/// throws away the events that wait, and tells those who wait for answers that the node was stopped:
/// listeners may hold what holds the event loop.
pub(crate) struct Delivery {
    pub(crate) event_queue: Arc<EventQueue>,
    pub(crate) made: bool,
}

impl Delivery {
    /// Delivers until nothing is left.
    pub(crate) fn make(mut self) {
        self.made = true;
        while let Some(items) = self.event_queue.next() {
            for item in items {
                // A listener that panics has told the log; the others still get theirs.
                let _ = catch_unwind(AssertUnwindSafe(|| item.deliver()));
            }
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.made {
            let items = {
                let mut queue = lock(&self.event_queue.queue);
                // The next event needs another delivery.
                queue.delivering = false;
                queue.octets = 0;
                std::mem::take(&mut queue.items)
            };
            // Without the lock: dropping listeners runs code of the user's, and so does an outcome.
            for item in items {
                if let Item::Answer(asker, _) = item {
                    asker.tell(Outcome::Failed(stopped().with_completed(Completed::Yes)));
                }
            }
        }
    }
}

/// Listeners to objects of this process.
#[derive(Default)]
pub(crate) struct Listeners {
    pub(crate) held: Mutex<Vec<LocalListener>>,
    pub(crate) next: AtomicU64,
    pub(crate) event_queue: Arc<EventQueue>,
}

/// A listener to an object of this process; `None` for any interface, or any signal.
pub(crate) struct LocalListener {
    pub(crate) id: u64,
    pub(crate) key: Bytes,
    pub(crate) interface: Option<String>,
    pub(crate) signal: Option<String>,
    pub(crate) subscriber: Arc<Subscriber>,
}

impl Listeners {
    /// Those who listen to this signal of this object.
    pub(crate) fn matching(
        &self,
        key: &[u8],
        interface: &Interface,
        signal: &Signal,
    ) -> Vec<Arc<Subscriber>> {
        let fits = |held: &&LocalListener| {
            held.key == key
                && held.interface.as_ref().is_none_or(|id| *id == interface.id)
                && held.signal.as_ref().is_none_or(|name| *name == signal.name)
        };
        lock(&self.held).iter().filter(fits).map(|held| Arc::clone(&held.subscriber)).collect()
    }

    /// A subscription was dropped: its listener is told nothing more, not even what waits already.
    pub(crate) fn remove(&self, id: u64) {
        let removed: Vec<_> = lock(&self.held).extract_if(.., |held| held.id == id).collect();
        removed.iter().for_each(|removed| removed.subscriber.end());
    }

    /// Forgets everybody.
    pub(crate) fn clear(&self) {
        let held = std::mem::take(&mut *lock(&self.held));
        // Without the lock: dropping listeners runs code of the user's.
        drop(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::native::NATIVE;
    use everywire_model::{Codec, Shape};

    #[test]
    fn what_comes_while_an_answer_is_told_waits_for_it() {
        let queue = Arc::new(EventQueue::default());
        let said = Arc::new(Mutex::new(Vec::new()));
        let asker = |number: u32| {
            let said = Arc::clone(&said);
            CallCompletion::new(0, Box::new(move |_| said.lock().unwrap().push(number)))
        };
        let done = || Outcome::Done(NATIVE.write(&mut |_| Ok(())).unwrap());
        assert!(queue.claim() && !queue.claim());
        queue.answer(asker(2), done());
        assert!(!queue.rouse(), "nobody else delivers meanwhile");
        asker(1).tell(done());
        assert!(queue.told() && !queue.claim(), "what came is next");
        assert!(queue.rouse() && !queue.rouse());
        Delivery { event_queue: Arc::clone(&queue), made: false }.make();
        assert_eq!(*said.lock().unwrap(), [1, 2]);
        assert!(queue.claim() && !queue.told() && queue.claim());
    }

    #[test]
    fn a_few_large_signals_are_as_much_as_many_small_ones() {
        let subscriber = Subscriber::new(Arc::new(|_| {}));
        let queue = Arc::new(EventQueue::default());
        let heard = |octets: usize| {
            let values = vec![0; octets];
            let body = NATIVE.write(&mut |sink| sink.bytes(&Shape::sequence(Shape::U8), &values)).unwrap();
            let none = Bytes::new;
            Incoming::signal(none(), none(), none(), none(), body)
        };
        let post = |heard: &Incoming| {
            queue.post_copy(Arc::clone(&subscriber), SignalEvent::Signal(heard.clone()));
            queue.post(Arc::clone(&subscriber), SignalEvent::Signal(heard.clone()));
        };
        let (large, small) = (heard(WAITING_OCTETS / 2), heard(0));
        post(&large);
        assert!(!queue.is_behind());
        post(&large);
        assert!(queue.is_behind() && !queue.is_flooded());
        for _ in 0..2 * FLOOD_OCTETS / WAITING_OCTETS {
            post(&large);
        }
        assert!(queue.is_flooded());
        assert!(queue.rouse());
        Delivery { event_queue: Arc::clone(&queue), made: false }.make();
        assert!(!queue.is_behind() && !queue.is_flooded());
        (0..=WAITING / 2).for_each(|_| post(&small));
        assert!(queue.is_behind() && !queue.is_flooded());
    }
}
