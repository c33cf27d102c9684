//! Who listens to what on a connection: subscriptions, the match rules they need at the bus, the names they watch.

use crate::limits;
use bytes::Bytes;
use everywire_model::CallId;
use std::collections::{HashMap, VecDeque};

/// Who listens to what. `signals` changes it; all of it ends with the connection.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// How many there have been. Numbers of subscriptions, rules and watches are made of it.
    pub(crate) count: u64,
    /// By the number that the user knows, confirmed or not.
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

/// What somebody listens to.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// Empty for all objects.
    pub(crate) key: Bytes,
    /// Where it stands in `by_name`.
    pub(crate) name: Box<[u8]>,
    /// From whom: a name that is watched, the bus, or empty without a bus.
    pub(crate) sender: Bytes,
    /// The match rules that it uses.
    pub(crate) rules: Vec<String>,
    /// Answers of the bus that are missing.
    pub(crate) awaits: usize,
}

/// A match rule at the bus, by its text.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    /// Tells it from those with the same text before it.
    pub(crate) number: u64,
    /// Subscriptions that use it, and an idle watch that does.
    pub(crate) users: usize,
    /// The bus has taken it.
    pub(crate) confirmed: bool,
    /// Subscriptions that wait for that.
    pub(crate) waiting: Vec<CallId>,
}

/// A name on the bus whose owner is followed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Tells it from those of the same name before it.
    pub(crate) number: u64,
    /// Its unique name; empty if nobody owns the name.
    pub(crate) owner: Bytes,
    /// Whether the bus has told the owner.
    pub(crate) known: bool,
    /// The number of this side's next call when the bus told the owner last: calls before it may have reached another one.
    pub(crate) since: u32,
    /// Subscriptions to whoever owns the name.
    pub(crate) users: Vec<CallId>,
    /// Those that wait for the first word of the bus.
    pub(crate) waiting: Vec<CallId>,
    /// The match rule that keeps the owner up to date while nobody listens.
    pub(crate) rule: Option<String>,
}

impl Subscriptions {
    /// Whether an answer to the call of this number to a name may come from this sender. Where the name is watched and its owner was told
    /// before the call left, from that one alone: the bus tells of another owner before that one gets a call, and before its answer comes.
    pub(crate) fn may_answer(&self, name: &[u8], call: u32, sender: &[u8]) -> bool {
        let Some(watch) = self.watches.get(name).filter(|watch| watch.known && !watch.owner.is_empty())
        else {
            return true;
        };
        // Numbers go round: more than half of them behind is before.
        watch.owner == sender || call.wrapping_sub(watch.since) > u32::MAX / 2
    }

    /// To be called when a subscription to this name has ended. If nobody listens to the name any more and
    /// its owner is known, it stays watched: whoever subscribes and unsubscribes in turn would otherwise ask
    /// the bus three things more each time. `keeper` is the text of the rule that keeps the owner up to date.
    /// Of the rules of the subscription, those are returned that the bus is to forget.
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

    /// Those that nobody was told of, in the order in which they began.
    pub(crate) fn unconfirmed(&self) -> Vec<CallId> {
        let mut ids: Vec<_> =
            self.all.iter().filter(|(_, held)| held.awaits > 0).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// Those that a signal is for, by the four combinations of interface and member that a subscription may
    /// name.
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

    /// While nobody owns a watched name, no signal counts.
    fn is_from(&self, wanted: &Bytes, sender: &[u8]) -> bool {
        match self.watches.get(wanted) {
            Some(watch) => !watch.owner.is_empty() && watch.owner == sender,
            None => wanted.is_empty() || wanted == sender,
        }
    }
}

/// What signals are found by: interface, NUL, and member. No name has a NUL in it.
pub(crate) fn key_of(interface: &[u8], member: &[u8]) -> Box<[u8]> {
    [interface, b"\0", member].concat().into_boxed_slice()
}
