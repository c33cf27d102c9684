//! Subscriptions, as whoever makes them sees them.

use super::Link;
use super::feed::{Feed, Note};
use super::keeper::{self, FeedNotifier};
use super::single::ItemWanted;
use super::state::State;
use crate::sync::lock;
use crate::{Code, Vqt};
use everywire::{Failure, Initiator};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a subscription asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionRequest {
    /// How often values are sent at most; the server may choose another rate, which is told ([`ActiveSubscription::rate`]).
    pub rate: Duration,
    /// By how much of an item's range it must change to be sent, in percent.
    pub deadband: Option<f32>,
    /// What single items are to have of their own (3.0), by their places among the items. A server that does not take it is told of in
    /// [`ActiveSubscription::notes`], and the group's deadband and rate count.
    pub single: Vec<(usize, ItemWanted)>,
    /// Ask for values at the rate, and take no callbacks; the address can say so as well (`?poll`).
    pub poll: bool,
    /// How often the server is asked whether it is still there. 3.0 servers tell that themselves, by callbacks.
    pub keep_alive: Duration,
    /// How long the first callback may take before values are asked for instead.
    pub silence: Duration,
    /// How long to wait before the subscription is made anew.
    pub pauses: Pauses,
}

impl Default for SubscriptionRequest {
    fn default() -> Self {
        Self {
            rate: Duration::from_secs(1),
            deadband: None,
            single: Vec::new(),
            poll: false,
            keep_alive: Duration::from_secs(10),
            silence: Duration::from_secs(15),
            pauses: Pauses::default(),
        }
    }
}

/// How long to wait before the next attempt: twice as long each time that one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// After the first failure.
    pub first: Duration,
    /// At most.
    pub longest: Duration,
    /// After the server asked its clients to leave, so that it can end before somebody wants it again.
    pub after_shutdown: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(250),
            longest: Duration::from_secs(30),
            after_shutdown: Duration::from_secs(10),
        }
    }
}

impl Pauses {
    /// The pause after this one.
    pub(super) fn after(&self, pause: Duration) -> Duration {
        pause.saturating_mul(2).clamp(self.first, self.longest.max(self.first))
    }
}

/// A value of an item that is subscribed to.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemValue {
    /// Which of the items, as they were given.
    pub index: usize,
    /// Its id.
    pub item: Arc<str>,
    /// Value, quality and time. In a gap: no value, `COMM_FAILURE`, and when the gap was noticed.
    pub value: Vqt,
    /// What the server says of it: `OPC_S_DATAQUEUEOVERFLOW` if values before it were lost.
    pub code: Code,
}

/// How values come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateMode {
    /// The server calls (IOPCDataCallback).
    Callbacks,
    /// The server is asked at the rate (IOPCSyncIO, from its cache), and why.
    Polling {
        /// Why there are no callbacks.
        why: String,
    },
}

/// A subscription that works.
#[derive(Debug, Clone, PartialEq)]
pub struct ActiveSubscription {
    /// How values come.
    pub manner: UpdateMode,
    /// What is spoken: `3.0` or `2.05a`.
    pub version: &'static str,
    /// How often, as the server decided.
    pub rate: Duration,
    /// The deadband in percent, as the server says it is.
    pub deadband: f32,
    /// How often the server tells by callbacks that it is there, if it does.
    pub keep_alive: Option<Duration>,
    /// Items that the server did not take, and why. They are tried again whenever the subscription is made anew.
    pub refused: Vec<(Arc<str>, Code)>,
    /// What is done otherwise than it could be, and why.
    pub notes: Vec<String>,
}

/// What a subscription tells. A listener is called by one thread at a time, in order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// It works, or works in another manner from now on.
    Live(ActiveSubscription),
    /// Values. After each gap, the last value of every item.
    Values(Vec<ItemValue>),
    /// It is interrupted; the next attempt is after the pause. Before the first of these in a row, every item is told to be bad.
    Lost {
        /// Why.
        why: Failure,
        /// How long nothing is tried.
        pause: Duration,
    },
    /// The server asked its clients to leave (IOPCShutdown), and this one left; it comes back after the pause.
    Shutdown {
        /// What the server says.
        reason: String,
        /// How long nothing is tried.
        pause: Duration,
    },
    /// Something came that is no callback of the standard.
    Garbled(Failure),
}

/// Who is told.
pub(super) type Listener = Box<dyn Fn(Event) + Send + Sync>;

/// Items that are subscribed to. It ends when it is dropped, which waits for nobody: the server is told soon after.
///
/// All subscriptions of one [`DataAccess`](super::DataAccess) and its clones share a thread, on which [`Event::Live`], [`Event::Lost`] and
/// values that are asked for are told; callbacks are told on threads of the runtime. A listener that takes its time keeps the others of
/// that server waiting.
#[must_use = "a subscription ends when it is dropped"]
pub struct Subscription {
    state: Arc<State>,
    tell: FeedNotifier,
    done: Mutex<Receiver<()>>,
}

impl Subscription {
    /// Ends it, and waits until the server was told, or cannot be. From a listener it does not wait.
    pub fn end(self) {
        self.stop();
        if !self.tell.is_here() {
            // Nothing is ever sent: it is over when nobody could.
            let _ = lock(&self.done).recv();
        }
    }

    fn stop(&self) {
        self.state.stop();
        self.tell.tell(Note::Stop);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Begins a subscription, which its server's keeper looks after.
pub(super) fn begin(
    link: &Arc<Link>,
    items: Vec<Arc<str>>,
    wanted: SubscriptionRequest,
    listener: Listener,
) -> Result<Subscription, Failure> {
    if u32::try_from(items.len()).is_err() {
        let (most, have) = (u64::from(u32::MAX), items.len() as u64);
        return Err(Failure::over_limit(Initiator::User, "items of a subscription", have, most));
    }
    let state = Arc::new(State::new(items, listener));
    let (done, ended) = channel();
    let (own, feeding) = (Arc::clone(link), Arc::clone(&state));
    let tell = keeper::keep(link, move |tell| Feed::new(own, feeding, wanted, tell, done))?;
    Ok(Subscription { state, tell, done: Mutex::new(ended) })
}
