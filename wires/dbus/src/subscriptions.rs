//! Who listens to what on a connection: subscriptions, the match rules they need at the bus, the names they watch.

use bytes::Bytes;
use everywire_model::CallId;
use std::collections::HashMap;

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
    /// Names that are listened to.
    pub(crate) watches: HashMap<Bytes, Watch>,
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
}

impl Subscriptions {
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
