//! Who listens to one-way callbacks, on either side of a channel.
//!
//! WCF has callbacks and no subscriptions: a client with a callback contract is called back as long as its
//! channel is open. So a client that opens a channel to an object listens to it, unless the contract has an
//! operation `Subscribe`; then only after that has succeeded.

use bytes::Bytes;
use everywire_model::CallId;

/// Who listens.
#[derive(Default)]
pub(super) struct Listeners {
    /// Accepting side: objects that the channel was opened to.
    pub(super) opened: Vec<Bytes>,
    /// Accepting side: objects whose `Subscribe` succeeded last.
    pub(super) chosen: Vec<Bytes>,
    /// Calling side.
    pub(super) subscriptions: Vec<Subscription>,
}

/// A subscription of this side.
pub(super) struct Subscription {
    pub(super) id: CallId,
    pub(super) key: Bytes,
    /// Action and name of each signal; `None` means all there are.
    pub(super) signals: Option<Vec<(String, Bytes)>>,
}

/// How many objects one channel may be opened to.
/// Over framing it is one for each preamble of a connection. What is beyond hears nothing.
const OPENED: usize = 64;

impl Listeners {
    /// The channel was opened to an object.
    pub(super) fn open(&mut self, key: &Bytes) {
        if !self.opened.contains(key) && self.opened.len() < OPENED {
            self.opened.push(key.clone());
        }
    }

    /// The peer subscribed to an object, or does not listen to it any more. The latest choice counts; it is
    /// made when `Subscribe` or `Unsubscribe` was answered without a fault, and at once where it is
    /// one-way.
    pub(super) fn choose(&mut self, key: &Bytes, listens: bool) {
        self.chosen.retain(|held| held != key);
        if listens && self.chosen.len() < OPENED {
            self.chosen.push(key.clone());
        }
    }

    /// The subscriptions that a callback with this action is for, with the object and the name of the signal; `any`: also those that
    /// name none.
    pub(super) fn find(&self, action: &str, any: bool) -> Option<(Vec<CallId>, Bytes, Bytes)> {
        let mut found: Option<(Vec<CallId>, Bytes, Bytes)> = None;
        for subscription in &self.subscriptions {
            let name = match &subscription.signals {
                Some(signals) => match signals.iter().find(|(held, _)| held == action) {
                    Some((_, name)) => name.clone(),
                    None => continue,
                },
                None if !any => continue,
                None => Bytes::copy_from_slice(action.rsplit('/').next().unwrap_or(action).as_bytes()),
            };
            match &mut found {
                Some((ids, ..)) => ids.push(subscription.id),
                None => found = Some((vec![subscription.id], subscription.key.clone(), name)),
            }
        }
        found
    }
}
