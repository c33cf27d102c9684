//! What a node keeps of connection points: the points of its objects, the sinks that were advised, and what it listens to itself.
//!
//! Locks: `held`, the sinks of one point, and the line of one sink each stand alone; none is taken under
//! another. Under `held` the servants of an object are looked up, under `served` the object that stands for a
//! point is made, and under the lock of a line the emitter's arguments are copied; nothing else of other
//! parts is called under them.

use super::listening::Listening;
use super::missed_replies::MissedReplies;
use super::store::{Account, Store};
use crate::lock::lock;
use bytes::Bytes;
use everywire_model::{Hold, Interface, Object, Objects, Reference};
use std::collections::HashMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;
use uuid::Uuid;

/// The connection points of a node's objects, and what this node listens to.
#[derive(Default)]
pub(in crate::standard) struct Points {
    /// By the key of the object, those of its points that somebody asked for.
    pub(super) held: Mutex<HashMap<Bytes, Vec<Arc<Point>>>>,
    pub(super) listening: Mutex<Vec<Weak<Listening>>>,
    /// What waits for the sinks of each principal.
    pub(super) accounts: Mutex<HashMap<String, Weak<Account>>>,
    /// Held by each sink that is being asked for its interface.
    pub(super) asking: Arc<()>,
}

/// A connection point: an object and one of its source interfaces.
pub(super) struct Point {
    /// The object whose signals these are.
    pub(super) key: Bytes,
    /// The source interface.
    pub(super) iid: Uuid,
    /// The source interface as listeners implement it.
    pub(super) interface: Hold<Interface>,
    /// The objects of its node.
    pub(super) objects: Weak<dyn Objects>,
    /// The key of the object that stands for it, as long as that is served.
    pub(super) served: Mutex<Option<Bytes>>,
    /// In the order in which they were advised, which is that of emission.
    pub(super) sinks: Mutex<Vec<Arc<SinkConnection>>>,
    /// The cookie given last; it wraps.
    pub(super) last_cookie: AtomicU32,
}

/// A sink and its connection.
pub(super) struct SinkConnection {
    /// What the listener unadvises by.
    pub(super) cookie: u32,
    /// Who advised it: quotas count by it. Empty for this process.
    pub(super) principal: String,
    /// The sink as it came; it holds the references that the listener gave.
    pub(super) reference: Reference,
    /// The same as an object to be called, with the time that a call may take.
    pub(super) object: Object,
    /// The same, for the first call.
    pub(super) sought: Object,
    /// The point, which holds the sinks.
    pub(super) point: Weak<Point>,
    pub(super) line: Mutex<Line>,
}

/// What waits for a sink, and how it is called now.
pub(super) struct Line {
    pub(super) waiting: Store,
    /// Calls that were sent and have not ended.
    pub(super) under_way: usize,
    /// Somebody sends: what others want sent they leave in `waiting`.
    pub(super) sending: bool,
    /// The way to it is known: a call does not wait for it to be found.
    pub(super) settled: bool,
    /// It is called by IDispatch.
    pub(super) by_name: bool,
    /// It is advised no more: nothing is sent.
    pub(super) gone: bool,
    /// When a call of it ended last, or it was asked whether it is there.
    pub(super) last: Instant,
    /// Questions whether it is there that it did not answer since.
    pub(super) unanswered: MissedReplies,
    /// Signals that were given up since the last failure that was told.
    pub(super) lost: u64,
    /// It refused a call: until then it is not called.
    pub(super) refused: Option<Instant>,
}

/// How a sink is called, where that is known because it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStyle {
    /// By its source interface.
    Directly,
    /// By IDispatch.
    ByName,
}

impl Points {
    /// The connection point of an object for a source interface, if somebody asked for it before.
    pub(super) fn of(&self, key: &[u8], iid: Uuid) -> Option<Arc<Point>> {
        lock(&self.held).get(key)?.iter().find(|point| point.iid == iid).cloned()
    }

    /// Whether nobody asked for any of an object's.
    pub(super) fn is_empty(&self, key: &[u8]) -> bool {
        !lock(&self.held).contains_key(key)
    }

    /// What waits for the sinks of a principal.
    pub(super) fn account(&self, principal: &str) -> Arc<Account> {
        let mut accounts = lock(&self.accounts);
        if let Some(held) = accounts.get(principal).and_then(Weak::upgrade) {
            return held;
        }
        accounts.retain(|_, held| held.strong_count() > 0);
        let made = Arc::<Account>::default();
        accounts.insert(principal.to_owned(), Arc::downgrade(&made));
        made
    }

    /// The sinks of all points, copied, so that they can be called without a lock.
    pub(super) fn sinks(&self) -> Vec<Arc<SinkConnection>> {
        let points: Vec<_> = lock(&self.held).values().flatten().cloned().collect();
        points.iter().flat_map(|point| lock(&point.sinks).clone()).collect()
    }

    /// The subscriptions of this node elsewhere; those that ended are taken off the list here.
    pub(super) fn listening(&self) -> Vec<Arc<Listening>> {
        let mut listening = lock(&self.listening);
        listening.retain(|held| held.strong_count() > 0);
        listening.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Line {
    /// Of a sink to which nothing was sent yet.
    pub(super) fn new(account: Arc<Account>, by_name: bool) -> Self {
        Self {
            waiting: Store::new(account),
            under_way: 0,
            sending: false,
            settled: false,
            by_name,
            gone: false,
            last: Instant::now(),
            unanswered: MissedReplies::default(),
            lost: 0,
            refused: None,
        }
    }

    /// Whether the time is still running in which a sink that refused a call is left alone.
    pub(super) fn is_refused(&mut self) -> bool {
        let Some(until) = self.refused else { return false };
        let is_refused = Instant::now() < until;
        if !is_refused {
            self.refused = None;
        }
        is_refused
    }
}
