//! Signals of servants here, to whoever listens.

use crate::connection::Connection;
use crate::notice::Notice;
use crate::shard::Registration;
use crate::shared::Shared;
use crate::signals::{Delivery, EventQueue, LocalListener, PATIENCE, Subscriber};
use crate::sync::lock;
use bytes::Bytes;
use everywire_model::native::NATIVE;
use everywire_model::signal::{Backlog, Listener};
use everywire_model::{
    Attribute, Codec, Emission, Emitter, Encode, Failure, Incoming, Initiator, Interface, Kind, Resolver,
    SignalEvent, SignalFilter, Subscription,
};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

impl Shared {
    /// Sends a signal on all connections that carry signals, or only on those of one wire. Everybody gets the
    /// signal before anybody slow is waited for; all slow peers together have `PATIENCE`, and those that have
    /// not read by then are cut off.
    ///
    /// # Errors
    /// That of the first connection that could not carry the signal; the others got it all the same.
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

    /// Has an event loop deliver what waits in a queue of events: the loop of the connection that the events
    /// came by. Does nothing if somebody delivers already. After the delivery the connection `after` reads
    /// on, which may have stopped reading because listeners were behind.
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

    /// Queues a signal for those who listen within this process.
    ///
    /// # Errors
    /// Too many signals wait for these listeners, or the arguments are of another shape than the signal's.
    fn tell_here(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        let (interface, signal) = emission.topic.typed()?;
        let mut subscribers = self.listeners.matching(emission.key, interface, signal);
        let Some(last) = subscribers.pop() else { return Ok(()) };
        if self.listeners.event_queue.is_flooded() {
            let what = "too many signals, or more than 512 MiB of them, wait for a listener in this process";
            return Err(Failure::new(Kind::LimitExceeded, Initiator::Here, what));
        }
        let body = NATIVE.write(&mut |sink| emission.arguments.encode(sink))?;
        let own = Bytes::copy_from_slice;
        let (interface, signal) = (own(interface.id.as_bytes()), own(signal.name.as_bytes()));
        let heard = Incoming::signal(Bytes::new(), own(emission.key), interface, signal, body);
        for subscriber in subscribers {
            self.listeners.event_queue.post_copy(subscriber, SignalEvent::Signal(heard.clone()));
        }
        self.listeners.event_queue.post(last, SignalEvent::Signal(heard));
        self.dispatch(&self.listeners.event_queue, None, None);
        Ok(())
    }
}

impl Emitter for Shared {
    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        let (_, signal) = emission.topic.typed()?;
        let here = self.tell_here(emission);
        let elsewhere = self.broadcast(emission, None);
        let otherwise = self.wire_states().iter().try_for_each(|wire_state| wire_state.emit(emission));
        here.and(elsewhere)
            .and(otherwise)
            .map_err(|failure| failure.at(format_args!("signal {}", signal.label)))
    }

    fn changed(&self, key: &[u8], interface: &Interface, attribute: &Attribute) -> Result<(), Failure> {
        self.wire_states().iter().try_for_each(|wire_state| wire_state.changed(key, interface, attribute))
    }

    fn changed_to(
        &self,
        key: &[u8],
        interface: &Interface,
        attribute: &Attribute,
        answer: &dyn Encode,
    ) -> Result<(), Failure> {
        let mut each = self.wire_states().into_iter();
        each.try_for_each(|wire_state| wire_state.changed_to(key, interface, attribute, answer))
    }

    fn listen(&self, key: &[u8], filter: SignalFilter<'_>, listener: Listener) -> Subscription {
        let id = self.listeners.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.listeners.held).push(LocalListener {
            id,
            key: Bytes::copy_from_slice(key),
            interface: filter.interface.map(|interface| interface.id.to_string()),
            signal: filter.signal.map(|signal| signal.name.to_string()),
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
        let each = self.wire_states().into_iter().map(|wire_state| wire_state.backlog(key));
        each.max_by_key(|one| one.signals).unwrap_or_default()
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
