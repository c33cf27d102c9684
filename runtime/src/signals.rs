//! Signals: from servants here to whoever listens, and from elsewhere to listeners here.

use crate::builder::Notice;
use crate::connection::{Asker, Connection};
use crate::registration::Registration;
use crate::shared::Shared;
use crate::sync::lock;
use bytes::Bytes;
use everywire_model::signal::{Backlog, Listener};
use everywire_model::{
    Attribute, Body, Completed, Emission, Emitter, Encode, Failure, Incoming, Initiator, Interface, Kind,
    Outcome, Resolver, Signal, SignalEvent, Subscription, Topic,
};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Signals that may wait for a listener before no more are read for it.
pub(crate) const WAITING: usize = 4096;
/// Signals that may wait for a listener at all, when a call on the same connection must go on reading.
pub(crate) const FLOOD: usize = 1 << 20;

/// How long an emitter waits for peers that do not read its signals.
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

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    delivering: bool,
}

/// What is on its way.
enum Item {
    SignalEvent(Arc<Subscriber>, SignalEvent<Incoming>),
    /// An answer that came behind signals, where their order is kept.
    Answer(Asker, Outcome<Body>),
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
        lock(&self.queue).items.push_back(Item::SignalEvent(subscriber, event));
    }

    /// Queues the outcome of a call; as [`EventQueue::post`].
    pub(crate) fn answer(&self, asker: Asker, outcome: Outcome<Body>) {
        lock(&self.queue).items.push_back(Item::Answer(asker, outcome));
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.queue).items.len()
    }

    /// Whether the caller must have a [`Delivery`] made, because something waits and nobody delivers.
    fn rouse(&self) -> bool {
        let mut queue = lock(&self.queue);
        let needed = !queue.items.is_empty() && !queue.delivering;
        queue.delivering |= needed;
        needed
    }

    /// The next batch; `None` when nothing is left.
    fn next(&self) -> Option<VecDeque<Item>> {
        let mut queue = lock(&self.queue);
        if queue.items.is_empty() {
            queue.delivering = false;
            return None;
        }
        Some(std::mem::take(&mut queue.items))
    }
}

/// One run of a courier. Dropped before it ran, because its event loop has ended, it throws away what waits: listeners may
/// hold what holds the event loop.
struct Delivery {
    event_queue: Arc<EventQueue>,
    made: bool,
}

impl Delivery {
    fn make(mut self) {
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
            let items = std::mem::take(&mut lock(&self.event_queue.queue).items);
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
    held: Mutex<Vec<LocalListener>>,
    next: AtomicU64,
    event_queue: Arc<EventQueue>,
}

struct LocalListener {
    id: u64,
    key: Bytes,
    interface: Option<String>,
    signal: Option<String>,
    subscriber: Arc<Subscriber>,
}

impl Listeners {
    fn matching(&self, key: &[u8], interface: &Interface, signal: &Signal) -> Vec<Arc<Subscriber>> {
        let fits = |held: &&LocalListener| {
            held.key == key
                && held.interface.as_ref().is_none_or(|id| *id == interface.id)
                && held.signal.as_ref().is_none_or(|name| *name == signal.name)
        };
        lock(&self.held).iter().filter(fits).map(|held| Arc::clone(&held.subscriber)).collect()
    }

    fn remove(&self, id: u64) {
        let removed = {
            let mut held = lock(&self.held);
            let at = held.iter().position(|held| held.id == id);
            at.map(|at| held.swap_remove(at))
        };
        if let Some(removed) = removed {
            removed.subscriber.end();
        }
    }

    /// Forgets everybody.
    pub(crate) fn clear(&self) {
        let held = std::mem::take(&mut *lock(&self.held));
        // Without the lock: dropping listeners runs code of the user's.
        drop(held);
    }
}

impl Shared {
    /// Sends a signal on all connections that carry signals, or only on those of one wire. All get it before anybody slow is
    /// waited for.
    ///
    /// # Errors
    /// The first connection's that could not carry it; the others got it all the same.
    pub(crate) fn broadcast(&self, emission: &Emission<'_>, wire: Option<&str>) -> Result<(), Failure> {
        let mut result = Ok(());
        let mut slow = Vec::new();
        for connection in self.audience(wire) {
            match connection.emit(emission) {
                Ok(false) => {}
                Ok(true) => slow.push(connection),
                Err(failure) => result = result.and(Err(failure)),
            }
        }
        if !slow.is_empty() {
            let until = Instant::now() + PATIENCE;
            slow.iter().for_each(|connection| connection.await_reader(until));
        }
        result
    }

    /// Has what a courier holds delivered by an event loop: that of the connection it is for.
    pub(crate) fn dispatch(
        &self,
        event_queue: &Arc<EventQueue>,
        after: Option<&Weak<Connection>>,
        registration: Option<&Registration>,
    ) {
        if event_queue.rouse() {
            let delivery = Delivery { event_queue: Arc::clone(event_queue), made: false };
            let after = after.cloned();
            let deliver = async move {
                delivery.make();
                if let Some(connection) = after.and_then(|connection| connection.upgrade()) {
                    connection.listen_on();
                }
            };
            self.queue(Box::pin(deliver), registration);
        }
    }

    /// Tells those who listen within this process.
    fn tell_here(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        let (interface, signal) = emission.topic.typed()?;
        let subscribers = self.listeners.matching(emission.key, interface, signal);
        if subscribers.is_empty() {
            return Ok(());
        }
        if self.listeners.event_queue.waiting() > FLOOD {
            let what = format!("more than {FLOOD} signals wait for a listener in this process");
            return Err(Failure::new(Kind::LimitExceeded, Initiator::Here, what));
        }
        let heard = self.heard_here(emission)?;
        for subscriber in subscribers {
            self.listeners.event_queue.post(subscriber, SignalEvent::Signal(heard.clone()));
        }
        self.dispatch(&self.listeners.event_queue, None, None);
        Ok(())
    }

    /// A signal as listeners of this process get it: in the terms of the first wire that can carry it.
    fn heard_here(&self, emission: &Emission<'_>) -> Result<Incoming, Failure> {
        let (interface, signal) = emission.topic.typed()?;
        let own = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let mut failure =
            Failure::new(Kind::Unsupported, Initiator::User, "this node speaks no wire to carry a signal by");
        for wire in &self.wires {
            match wire.codec().write(&mut |sink| emission.arguments.encode(sink)) {
                Ok(body) => {
                    let key = Bytes::copy_from_slice(emission.key);
                    let (interface, signal) = (own(&interface.id), own(&signal.name));
                    return Ok(Incoming::signal(Bytes::new(), key, interface, signal, body));
                }
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }
}

impl Emitter for Shared {
    fn emit(
        &self,
        key: &[u8],
        interface: &Interface,
        signal: &Signal,
        arguments: &dyn Encode,
    ) -> Result<(), Failure> {
        let emission = Emission { key, topic: Topic::Typed { interface, signal }, arguments };
        let here = self.tell_here(&emission);
        let elsewhere = self.broadcast(&emission, None);
        let otherwise = self.wire_states().iter().try_for_each(|wire_state| wire_state.emit(&emission));
        here.and(elsewhere)
            .and(otherwise)
            .map_err(|failure| failure.at(format_args!("signal {}", signal.label)))
    }

    fn changed(&self, key: &[u8], interface: &Interface, attribute: &Attribute) -> Result<(), Failure> {
        self.wire_states().iter().try_for_each(|wire_state| wire_state.changed(key, interface, attribute))
    }

    fn listen(
        &self,
        key: &[u8],
        interface: Option<&Interface>,
        signal: Option<&Signal>,
        listener: Listener,
    ) -> Subscription {
        let id = self.listeners.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.listeners.held).push(LocalListener {
            id,
            key: Bytes::copy_from_slice(key),
            interface: interface.map(|interface| interface.id.to_string()),
            signal: signal.map(|signal| signal.name.to_string()),
            subscriber: Subscriber::new(listener),
        });
        let node = self.weak();
        Subscription::new(move || {
            if let Some(node) = node.upgrade() {
                node.listeners.remove(id);
            }
        })
    }

    fn backlog(&self, key: &[u8]) -> Backlog {
        let each = self.wire_states();
        each.iter()
            .map(|wire_state| wire_state.backlog(key))
            .max_by_key(|one| one.signals)
            .unwrap_or_default()
    }

    fn undelivered(&self, failure: &Failure) {
        self.notice(&Notice::Undelivered { failure: failure.clone() });
    }

    fn offers(&self, key: &[u8], interface: &str) -> bool {
        self.directory.get(key).iter().any(|entry| entry.servant.interface().is_a(interface))
    }

    fn resolver(&self) -> Option<Arc<dyn Resolver>> {
        Some(self.arc()?)
    }
}

/// The failure of everything once a node was stopped.
pub(crate) fn stopped() -> Failure {
    Failure::new(Kind::Cancelled, Initiator::User, "the node was stopped")
}
