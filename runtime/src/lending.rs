//! Objects that end by themselves, and what their servants are told: that nobody refers to them any more, and who listens.

use crate::directory::Entry;
use crate::node::{Guard, Node};
use crate::shared::{IN_PROCESS, Shared};
use crate::sync::lock;
use bytes::Bytes;
use everywire_model::object::Remote as RemoteTrait;
use everywire_model::signal::Audience;
use everywire_model::{Emitter, Lease, Ref, Reference, Servant, Signaller, WireState};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

/// A node that is not kept running by whoever has this: for servants, which the node holds.
#[derive(Debug, Clone)]
pub struct WeakNode(Weak<Guard>);

impl WeakNode {
    /// The node, if it still runs.
    pub fn upgrade(&self) -> Option<Node> {
        self.0.upgrade().map(|guard| Node { guard })
    }
}

/// What an object that is about to be lent knows of itself ([`Node::lend`]).
pub struct LoanHandle<I: ?Sized> {
    node: Weak<Shared>,
    key: Bytes,
    of: PhantomData<fn() -> Arc<I>>,
}

impl<I: RemoteTrait + ?Sized> LoanHandle<I> {
    /// The key under which it will be served.
    pub fn key(&self) -> &Bytes {
        &self.key
    }

    /// Emits its signals.
    pub fn signaller(&self) -> Signaller<I> {
        let node: Weak<dyn Emitter> = self.node.clone();
        Signaller::new(node, self.key.clone())
    }

    /// A reference to it, at all addresses that the node listens at now. It does not keep the object.
    pub fn reference(&self) -> Reference {
        let node = self.node.upgrade();
        node.map(|node| node.publish(&I::interface().id, &self.key)).unwrap_or_default()
    }
}

impl<I: ?Sized> fmt::Debug for LoanHandle<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({:?})", self.key)
    }
}

impl Node {
    /// The same node, for those who are not to keep it running.
    pub fn downgrade(&self) -> WeakNode {
        WeakNode(Arc::downgrade(&self.guard))
    }

    /// Serves an object for a caller, under a fresh key, until nobody refers to it any more: no reference that this returned, nor a
    /// copy of one, is left in this process, and callers elsewhere have released theirs or have been silent for too long. Then
    /// it is withdrawn, and [`Node::on_end`] tells. `make` is told the object's key and what emits its signals.
    ///
    /// Where this node listens on a wire that does not count references, or listens nowhere, the object is served until it is
    /// withdrawn.
    pub fn lend<I: RemoteTrait + ?Sized>(&self, make: impl FnOnce(&LoanHandle<I>) -> Arc<I>) -> Ref<I> {
        let shared = &self.guard.shared;
        let key = shared.directory.fresh_key();
        let servant = make(&LoanHandle { node: shared.weak(), key: key.clone(), of: PhantomData });
        shared.export(&key, Entry::typed(Arc::clone(&servant)));
        let reference = shared.lend(&I::interface().id, &key);
        let emitter = Arc::clone(shared) as Arc<dyn Emitter>;
        Ref::local(servant, reference, key, emitter)
    }

    /// The same for an object that is not typed, or has several interfaces: a servant for each, of which the first says what it mainly
    /// is.
    pub fn lend_servants(&self, servants: Vec<Arc<dyn Servant>>) -> Reference {
        let shared = &self.guard.shared;
        let key = shared.directory.fresh_key();
        let type_id = servants.first().map(|servant| servant.interface().id.to_string()).unwrap_or_default();
        servants.into_iter().for_each(|servant| shared.export(&key, Entry::new(servant)));
        shared.lend(&type_id, &key)
    }

    /// Serves an object that was exported under a key from now on only until nobody refers to it any more, as [`Node::lend`] does. The
    /// reference is one to this interface of it.
    pub fn lend_exported(&self, key: impl AsRef<[u8]>, type_id: &str) -> Reference {
        self.guard.shared.lend(type_id, key.as_ref())
    }

    /// One more reference to an object that was lent before, which it does not outlive. `None` if it has ended, also where it ends at this
    /// very moment on another thread, or if its references are not counted.
    pub fn lend_again(&self, key: impl AsRef<[u8]>, type_id: &str) -> Option<Reference> {
        let (shared, key) = (&self.guard.shared, key.as_ref());
        let reference = shared.lend_by(type_id, key, &|wire_state| wire_state.lend_again(key))?;
        let is_counted = reference.profiles.iter().any(|profile| !profile.lease.is_empty());
        is_counted.then_some(reference)
    }

    /// Serves an object that was exported under a key from now on only as long as somebody elsewhere refers to it; without such, no longer
    /// at all. Returns whether somebody does. Where this node listens on a wire that does not count references, nobody is known to.
    pub fn release(&self, key: impl AsRef<[u8]>) -> bool {
        let (shared, key) = (&self.guard.shared, key.as_ref());
        let reference = shared.lend("", key);
        let is_counted = reference.profiles.iter().any(|profile| !profile.lease.is_empty());
        // Ours was the only one if the object ends with it.
        drop(reference);
        if !is_counted {
            shared.withdraw(key);
        }
        !shared.directory.get(key).is_empty()
    }

    /// Tells when the object under a key is served no longer, whoever ended it. It is not told when the node ends.
    pub fn on_end(&self, key: impl AsRef<[u8]>, ended: impl FnOnce() + Send + 'static) {
        let key = Bytes::copy_from_slice(key.as_ref());
        lock(&self.guard.shared.hooks.endings).entry(key).or_default().push(Box::new(ended));
    }

    /// Tells who begins to listen to the signals of the object under a key, who ends, and whom a signal did not reach, as long as the
    /// object is served: on wires where listeners are known, those whose signals are calls of them. It is told on the
    /// threads of the runtime, and must not wait.
    pub fn on_audience(&self, key: impl AsRef<[u8]>, watcher: impl Fn(&Audience) + Send + Sync + 'static) {
        let key = Bytes::copy_from_slice(key.as_ref());
        lock(&self.guard.shared.hooks.watchers).entry(key).or_default().push(Arc::new(watcher));
    }

    /// Has a listener hear no more of the object under a key: one of those of which [`Node::on_audience`] tells. Returns whether
    /// it listened.
    pub fn dismiss(&self, key: impl AsRef<[u8]>, interface: &str, listener: u32) -> bool {
        let wire_states = self.guard.shared.wire_states();
        wire_states.iter().any(|wire_state| wire_state.dismiss(key.as_ref(), interface, listener))
    }
}

impl Shared {
    /// Has the wires count the references to an object, and makes one with a lease in each profile: as
    /// long as a copy of the lease lives in this process, the wire counts one reference here. There are none
    /// unless every wire that the node serves on counts: on another wire nobody could say when the last
    /// reference is gone.
    fn lend(&self, type_id: &str, key: &[u8]) -> Reference {
        self.lend_by(type_id, key, &|wire_state| Some(wire_state.lend(key))).unwrap_or_default()
    }

    /// The same with leases that `lease` makes; `None` if it makes none for one of the wires.
    fn lend_by(
        &self,
        type_id: &str,
        key: &[u8],
        lease: &dyn Fn(&dyn WireState) -> Option<Lease>,
    ) -> Option<Reference> {
        let mut reference = self.publish(type_id, key);
        let wires = reference.profiles.iter().map(|profile| profile.wire);
        let wires: Vec<&'static str> = wires.filter(|name| *name != IN_PROCESS).collect();
        let counting = |name: &str| {
            let wire = self.wire_named(name)?;
            self.wire_state(wire).filter(|wire_state| wire_state.counts_references())
        };
        if wires.is_empty() || !wires.iter().all(|name| counting(name).is_some()) {
            return Some(reference);
        }
        // Two listeners of one wire have one lease: it is the wire that counts, not the address.
        let mut leases: HashMap<&str, Lease> = HashMap::new();
        for profile in reference.profiles.iter_mut().filter(|profile| profile.wire != IN_PROCESS) {
            let held = match leases.get(profile.wire) {
                Some(held) => held.clone(),
                None => lease(&*counting(profile.wire)?)?,
            };
            profile.lease = leases.entry(profile.wire).or_insert(held).clone();
        }
        Some(reference)
    }
}
