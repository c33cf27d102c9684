//! What subscribers get, and what is told of them.

use crate::failure::Failure;
use crate::message::Incoming;
use std::fmt;
use std::sync::Arc;

/// What a subscriber gets.
#[derive(Debug, Clone)]
pub enum SignalEvent<T> {
    /// A signal.
    Signal(T),
    /// Whoever emits it has left. The subscription stands: should they come back, signals go on.
    OwnerLost(Failure),
    /// A signal that does not decode: the other side has another contract.
    Undecodable(Failure),
    /// The connection broke: the subscription is over, and must be made anew.
    Disconnected(Failure),
}

/// What happens among those who listen to an object, on wires where they are known: told to whoever serves it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Audience {
    /// Somebody listens from now on.
    Joined {
        /// The identity of the interface whose calls the signals are.
        interface: String,
        /// Who: a number that nobody else has who listens to that interface of the object.
        listener: u32,
        /// How many listen to it now.
        listeners: usize,
    },
    /// Somebody listens no longer: of their own accord, or because they are no more, or were dismissed.
    Left {
        /// The identity of the interface whose calls the signals are.
        interface: String,
        /// Who.
        listener: u32,
        /// How many listen to it now.
        listeners: usize,
    },
    /// A signal did not reach a listener, or the listener answered it with a failure.
    Failed {
        /// The identity of the interface whose calls the signals are.
        interface: String,
        /// Who.
        listener: u32,
        /// Why.
        failure: Failure,
        /// How many signals were given up for it, too, since the last time that this was told.
        lost: u64,
    },
}

/// What waits for the listener of an object that is furthest behind, on wires where listeners are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Signals that wait for it; not the one that is on its way.
    pub signals: usize,
    /// Bytes that these hold, about.
    pub bytes: usize,
    /// Whose it is: the account, or where it is called.
    pub listener: String,
}

/// Gets signals, on the runtime's threads, in order.
pub type Listener = Arc<dyn Fn(SignalEvent<Incoming>) + Send + Sync>;

/// Ends when dropped.
#[must_use = "a subscription ends when it is dropped"]
pub struct Subscription(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Subscription {
    /// A subscription that is ended by `end`.
    pub fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(end)))
    }

    /// Lets it last as long as the connection, or the process.
    pub fn forever(mut self) {
        self.0 = None;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}
