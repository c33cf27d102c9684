//! Who listens to what on a connection: subscriptions, the match rules they need at the bus, the names they watch.

use crate::limits;
use bytes::Bytes;
use everywire_model::CallId;
use std::collections::{HashMap, VecDeque};

/// Who listens to what.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// How many there have been.
    pub(crate) count: u64,
    pub(crate) all: HashMap<CallId, Subscription>,
    /// By interface, NUL, and signal; either is empty where all are meant.
    pub(crate) by_name: HashMap<Box<[u8]>, Vec<CallId>>,
    /// Match rules at the bus.
    pub(crate) rules: HashMap<String, Rule>,
    /// Names that are listened to, or were lately.
    pub(crate) watches: HashMap<Bytes, Watch>,
    /// Those of them that nobody listens to now, the longest first.
    pub(crate) idle: VecDeque<Bytes>,
    /// Goes up with every change of what a signal is for.
    pub(crate) generation: u64,
}

#[derive(Debug)]
pub(crate) struct Subscription {
    /// Empty for all objects.
    pub(crate) key: Bytes,
    pub(crate) name: Box<[u8]>,
    /// From whom: a name that is watched, the bus, or empty without a bus.
    pub(crate) sender: Bytes,
    pub(crate) rules: Vec<String>,
    /// Answers of the bus that are missing.
    pub(crate) awaits: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Rule {
    /// Tells it from those with the same text before it.
    pub(crate) number: u64,
    pub(crate) users: usize,
    pub(crate) confirmed: bool,
    pub(crate) waiting: Vec<CallId>,
}

#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Tells it from those of the same name before it.
    pub(crate) number: u64,
    /// Its unique name; empty if nobody owns the name.
    pub(crate) owner: Bytes,
    pub(crate) known: bool,
    pub(crate) users: Vec<CallId>,
    pub(crate) waiting: Vec<CallId>,
    /// The match rule that keeps the owner up to date while nobody listens.
    pub(crate) rule: Option<String>,
}

impl Subscriptions {
    /// Nobody listens to a name any more. If its owner is known, it stays watched: whoever subscribes and unsubscribes in
    /// turn would otherwise ask the bus three things more each time. Of the rules of the last subscription, those are
    /// returned that the bus is to forget.
    pub(crate) fn leave(&mut self, name: &Bytes, mut rules: Vec<String>, keeper: &str) -> Vec<String> {
        let Some(watch) = self.watches.get_mut(name).filter(|watch| watch.users.is_empty()) else {
            return rules;
        };
        if watch.rule.is_none() && self.rules.get(keeper).is_some_and(|rule| rule.confirmed) {
            watch.rule = rules.iter().position(|rule| rule == keeper).map(|at| rules.swap_remove(at));
        }
        if !watch.known || watch.rule.is_none() {
            rules.extend(self.watches.remove(name).and_then(|watch| watch.rule));
            return rules;
        }
        // A subscription that failed before it used the watch found it idle.
        self.idle.retain(|idle| idle != name);
        self.idle.push_back(name.clone());
        if self.idle.len() > limits::IDLE_WATCHES {
            let oldest = self.idle.pop_front().and_then(|oldest| self.watches.remove(&oldest));
            rules.extend(oldest.and_then(|watch| watch.rule));
        }
        rules
    }

    /// Those that nobody was told of.
    pub(crate) fn unconfirmed(&self) -> Vec<CallId> {
        let mut ids: Vec<_> =
            self.all.iter().filter(|(_, held)| held.awaits > 0).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// Those that a signal is for.
    pub(crate) fn hearers(&self, sender: &[u8], key: &[u8], interface: &[u8], member: &[u8]) -> Vec<CallId> {
        let mut found = Vec::new();
        for name in [key_of(interface, member), key_of(interface, b""), key_of(b"", member), key_of(b"", b"")]
        {
            let Some(ids) = self.by_name.get(&name) else { continue };
            let fits = |id: &&CallId| {
                self.all.get(id).is_some_and(|held| {
                    (held.key.is_empty() || held.key == key) && self.is_from(&held.sender, sender)
                })
            };
            found.extend(ids.iter().filter(fits).copied());
        }
        found
    }

    fn is_from(&self, wanted: &Bytes, sender: &[u8]) -> bool {
        match self.watches.get(wanted) {
            Some(watch) => !watch.owner.is_empty() && watch.owner == sender,
            None => wanted.is_empty() || wanted == sender,
        }
    }
}

/// What signals of an interface are found by.
pub(crate) fn key_of(interface: &[u8], member: &[u8]) -> Box<[u8]> {
    [interface, b"\0", member].concat().into_boxed_slice()
}
