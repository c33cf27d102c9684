//! Signals: from servants here to whoever listens, and from elsewhere to listeners here.

use crate::connection::Connection;
use crate::shared::Shared;
use crate::sync::lock;
use bytes::Bytes;
use everywire_model::object::Listener;
use everywire_model::{
    Answer, Attribute, BoxFuture, CallId, Emission, Emitter, Encode, Endpoint, Failure, Heard, Initiator,
    Interface, Kind, Link, Objects, Peer, Resolver, Servant, Signal, Subscription, Tidings,
};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Signals that may wait for a listener before no more are read for it.
pub(crate) const WAITING: usize = 4096;
/// Signals that may wait for a listener at all, when a call on the same connection must go on reading.
pub(crate) const FLOOD: usize = 1 << 20;

/// Signals on their way to listeners. One thread at a time delivers, in order.
#[derive(Default)]
pub(crate) struct Courier {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<(Listener, Tidings<Heard>)>,
    delivering: bool,
}

impl Courier {
    /// Queues; somebody must see to [`Courier::rouse`] afterwards.
    pub(crate) fn post(&self, listener: Listener, tidings: Tidings<Heard>) {
        lock(&self.queue).items.push_back((listener, tidings));
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.queue).items.len()
    }

    /// Whether the caller must have [`Courier::deliver`] run, because something waits and nobody does.
    pub(crate) fn rouse(&self) -> bool {
        let mut queue = lock(&self.queue);
        let needed = !queue.items.is_empty() && !queue.delivering;
        queue.delivering |= needed;
        needed
    }

    /// Delivers until nothing is left.
    pub(crate) fn deliver(&self) {
        loop {
            let items = {
                let mut queue = lock(&self.queue);
                if queue.items.is_empty() {
                    queue.delivering = false;
                    return;
                }
                std::mem::take(&mut queue.items)
            };
            for (listener, tidings) in items {
                // A listener that panics has told the log; the others still get theirs.
                let _ = catch_unwind(AssertUnwindSafe(|| listener(tidings)));
            }
        }
    }
}

/// Listeners to objects of this process.
#[derive(Default)]
pub(crate) struct Listeners {
    held: Mutex<Vec<LocalListener>>,
    next: AtomicU64,
    courier: Arc<Courier>,
}

struct LocalListener {
    id: u64,
    key: Bytes,
    interface: Option<String>,
    signal: Option<String>,
    listener: Listener,
}

impl Listeners {
    fn matching(&self, emission: &Emission<'_>) -> Vec<Listener> {
        let fits = |held: &&LocalListener| {
            held.key == emission.key
                && held.interface.as_ref().is_none_or(|id| *id == emission.interface.id)
                && held.signal.as_ref().is_none_or(|name| *name == emission.signal.name)
        };
        lock(&self.held).iter().filter(fits).map(|held| Arc::clone(&held.listener)).collect()
    }
}

impl Shared {
    /// Sends a signal on all connections that carry signals, or only on those of one wire.
    fn broadcast(&self, emission: &Emission<'_>, wire: Option<&str>) -> Result<(), Failure> {
        for connection in self.audience(wire) {
            connection.emit(emission)?;
        }
        Ok(())
    }

    /// Has what a courier holds delivered by an event loop.
    pub(crate) fn dispatch(&self, courier: &Arc<Courier>, after: Option<Weak<Connection>>) {
        if courier.rouse() {
            let courier = Arc::clone(courier);
            self.queue(Box::pin(async move {
                courier.deliver();
                if let Some(connection) = after.and_then(|connection| connection.upgrade()) {
                    connection.listen_on();
                }
            }));
        }
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
        let emission = Emission { key, interface, signal, arguments };
        let listeners = self.listeners.matching(&emission);
        if !listeners.is_empty()
            && let Some(wire) = self.wires.first()
        {
            let own = |text: &str| Bytes::copy_from_slice(text.as_bytes());
            let heard = Heard {
                sender: Bytes::new(),
                key: Bytes::copy_from_slice(key),
                interface: own(&interface.id),
                signal: own(&signal.name),
                body: wire.codec().write(&mut |sink| arguments.encode(sink))?,
            };
            for listener in listeners {
                self.listeners.courier.post(listener, Tidings::Signal(heard.clone()));
            }
            self.dispatch(&self.listeners.courier, None);
        }
        self.broadcast(&emission, None).map_err(|failure| failure.at(format_args!("signal {}", signal.label)))
    }

    fn changed(&self, key: &[u8], interface: &Interface, attribute: &Attribute) -> Result<(), Failure> {
        self.ambients().iter().try_for_each(|ambient| ambient.changed(key, interface, attribute))
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
            listener,
        });
        let node = self.weak();
        Subscription::new(move || {
            if let Some(node) = node.upgrade() {
                lock(&node.listeners.held).retain(|held| held.id != id);
            }
        })
    }
}

/// The objects of a node, as the ambient servants of one wire see them.
pub(crate) struct View {
    pub(crate) node: Weak<Shared>,
    pub(crate) wire: &'static str,
}

impl Objects for View {
    fn keys(&self) -> Vec<Bytes> {
        self.node.upgrade().map(|node| node.directory.keys()).unwrap_or_default()
    }

    fn servants(&self, key: &[u8]) -> Vec<Arc<dyn Servant>> {
        let Some(node) = self.node.upgrade() else { return Vec::new() };
        let Some(wire) = node.wire_named(self.wire) else { return Vec::new() };
        node.directory.spelled(wire, key).into_iter().map(|entry| entry.servant).collect()
    }

    fn emit(
        &self,
        key: &[u8],
        interface: &Interface,
        signal: &Signal,
        arguments: &dyn Encode,
    ) -> Result<(), Failure> {
        match self.node.upgrade() {
            Some(node) => node.broadcast(&Emission { key, interface, signal, arguments }, Some(self.wire)),
            None => Ok(()),
        }
    }

    fn aside(&self, done: Box<dyn Fn(Answer<'_>) + Send + Sync>) -> Arc<dyn Link> {
        Arc::new(Aside { done, node: self.node.clone() })
    }
}

/// A link whose answers stay in this process.
struct Aside {
    done: Box<dyn Fn(Answer<'_>) + Send + Sync>,
    node: Weak<Shared>,
}

impl Link for Aside {
    fn answer(&self, _: CallId, answer: Answer<'_>) {
        (self.done)(answer);
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        if let Some(node) = self.node.upgrade() {
            node.spawn(task, None);
        }
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        match self.node.upgrade() {
            Some(node) => node,
            None => Arc::new(Stopped),
        }
    }

    fn peer(&self) -> Option<Peer> {
        None
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess { name: String::new() }
    }
}

/// Resolves nothing any more.
struct Stopped;

impl Resolver for Stopped {
    fn resolve(&self, _: &everywire_model::Reference) -> Result<everywire_model::Object, Failure> {
        Err(stopped())
    }

    fn local(&self, _: &everywire_model::Reference, _: &str) -> Option<everywire_model::object::Local> {
        None
    }
}

/// The failure of everything once a node was stopped.
pub(crate) fn stopped() -> Failure {
    Failure::new(Kind::Cancelled, Initiator::User, "the node was stopped")
}
