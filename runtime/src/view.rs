//! What stands by for every object on a wire, and what that sees of its node.

use crate::creation::CreationScope;
use crate::directory::Entry;
use crate::failures::stopped;
use crate::housekeeper::NodeMaintenance;
use crate::notice::Notice;
use crate::shared::{Shared, WireDefaults};
use crate::sync::{read, write};
use bytes::Bytes;
use everywire_model::object::Local;
use everywire_model::signal::Audience;
use everywire_model::{
    Answer, BindAddress, BoxFuture, CallId, Emission, Endpoint, Failure, Hold, Interface, Link, Object,
    Objects, Reach, Reference, Resolver, Servant, Wire, WireState,
};
use std::sync::{Arc, Weak};

/// The objects of a node, as the state of one wire sees them (`everywire_model::WireState`). It does not keep
/// the node: once that has ended there are no objects, and nothing is sent.
pub(crate) struct View {
    pub(crate) node: Weak<Shared>,
    pub(crate) wire: &'static str,
}

impl View {
    /// Asks the node, or has it do something; nothing, once it has ended.
    fn ask<T: Default>(&self, work: impl FnOnce(&Arc<Shared>) -> T) -> T {
        self.node.upgrade().map(|node| work(&node)).unwrap_or_default()
    }
}

impl Objects for View {
    fn keys(&self) -> Vec<Bytes> {
        self.ask(|node| node.directory.keys())
    }

    fn servants(&self, key: &[u8]) -> Vec<Arc<dyn Servant>> {
        self.ask(|node| {
            let Some(wire) = node.wire_named(self.wire) else { return Vec::new() };
            node.directory.spelled(wire, key).into_iter().map(|entry| entry.servant).collect()
        })
    }

    fn by_prefix(&self, key: &[u8]) -> Option<Arc<dyn Servant>> {
        self.node.upgrade()?.directory.by_prefix(key).map(|entry| entry.servant)
    }

    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        self.node.upgrade().map_or(Ok(()), |node| node.broadcast(emission, Some(self.wire)))
    }

    fn aside(&self, done: Box<dyn Fn(Answer<'_>) + Send + Sync>) -> Arc<dyn Link> {
        Arc::new(LocalLink { done, node: self.node.clone() })
    }

    fn export(&self, servants: Vec<Arc<dyn Servant>>) -> Bytes {
        // Not behind the user's layers: what a wire exports by itself is no servant of the user's.
        self.ask(|node| {
            let key = node.directory.fresh_key();
            servants.into_iter().for_each(|servant| node.insert(&key, Entry::new(servant)));
            key
        })
    }

    fn withdraw(&self, key: &[u8]) {
        self.ask(|node| node.withdraw(key));
    }

    fn classes(&self) -> Vec<(Bytes, Hold<Interface>)> {
        self.ask(|node| node.directory.classes())
    }

    fn create(&self, class: &[u8], asker: &str) -> Option<Result<Bytes, Failure>> {
        let node = self.node.upgrade()?;
        let class = node.directory.class(class)?;
        let key = node.directory.fresh_key();
        let _creation = CreationScope::for_asker(asker);
        Some((class.make)(&key).map(|entries| {
            entries.into_iter().for_each(|entry| node.export(&key, entry));
            key
        }))
    }

    fn publish(&self, type_id: &str, key: &[u8]) -> Reference {
        self.ask(|node| node.publish(type_id, key))
    }

    fn places(&self) -> Vec<BindAddress> {
        self.ask(|node| node.places_of(self.wire))
    }

    fn reach(&self, place: &BindAddress) -> Reach {
        self.ask(|node| node.addresses.reach(place))
    }

    fn listen(&self, address: &str) -> Result<BindAddress, Failure> {
        let node = self.node.upgrade().ok_or_else(stopped)?;
        let wire = node.wire_of(address)?;
        node.serve_at(wire, address)
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        resolver(&self.node)
    }

    fn attend(&self) {
        self.ask(|node| node.housekeeper.attend(node));
    }

    fn keeps(&self, before: usize, now: usize) -> usize {
        self.node.upgrade().map_or(usize::MAX, |node| node.allowance.shares.beside(before, now))
    }

    fn audience(&self, key: &[u8], told: &Audience) {
        self.ask(|node| node.hooks.audience(key, told));
    }

    fn refused(&self, peer: &str, why: &str) {
        let (peer, why) = (peer.to_owned(), why.to_owned());
        self.ask(|node| node.notice(&Notice::Refused { peer, why }));
    }

    fn undelivered(&self, failure: &Failure) {
        self.ask(|node| node.notice(&Notice::Undelivered { failure: failure.clone() }));
    }
}

impl Shared {
    /// Makes the wire's state and its servants, if there are none yet: whoever serves on the wire, or calls
    /// on it, has them.
    pub(crate) fn stand_by(&self, wire: &'static dyn Wire) {
        if read(&self.wire_state).contains_key(wire.name()) {
            return;
        }
        write(&self.wire_state).entry(wire.name()).or_insert_with(|| {
            let wire_state = wire.wire_state(Arc::new(View { node: self.weak(), wire: wire.name() }));
            let servants = wire_state.as_ref().map(|wire_state| wire_state.servants()).unwrap_or_default();
            WireDefaults { wire_state, servants }
        });
    }

    /// The servants that stand by for every object on a wire.
    pub(crate) fn standing_by(&self, wire: &'static dyn Wire) -> Vec<Arc<dyn Servant>> {
        self.stand_by(wire);
        read(&self.wire_state).get(wire.name()).map(|held| held.servants.clone()).unwrap_or_default()
    }

    /// What a wire keeps for this node.
    pub(crate) fn wire_state(&self, wire: &'static dyn Wire) -> Option<Arc<dyn WireState>> {
        self.stand_by(wire);
        read(&self.wire_state).get(wire.name()).and_then(|held| held.wire_state.clone())
    }

    /// The states of all wires that have been used: each is told of what is exported, withdrawn and emitted.
    pub(crate) fn wire_states(&self) -> Vec<Arc<dyn WireState>> {
        read(&self.wire_state).values().filter_map(|held| held.wire_state.clone()).collect()
    }
}

impl NodeMaintenance for Shared {
    fn sweep(&self) {
        Self::sweep(self);
    }

    fn wire_states(&self) -> Vec<Arc<dyn WireState>> {
        Self::wire_states(self)
    }
}

/// A link whose answers stay in this process: for a wire that calls a servant by itself.
struct LocalLink {
    done: Box<dyn Fn(Answer<'_>) + Send + Sync>,
    node: Weak<Shared>,
}

impl Link for LocalLink {
    fn answer(&self, _: CallId, answer: Answer<'_>) {
        (self.done)(answer);
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        if let Some(node) = self.node.upgrade() {
            node.spawn(task, None);
        }
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        resolver(&self.node)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess { name: String::new() }
    }
}

/// That of a node, while it is there.
pub(crate) fn resolver(node: &Weak<Shared>) -> Arc<dyn Resolver> {
    match node.upgrade() {
        Some(node) => node,
        None => Arc::new(NullResolver(stopped)),
    }
}

/// Resolves nothing any more, and says why.
pub(crate) struct NullResolver(pub(crate) fn() -> Failure);

impl Resolver for NullResolver {
    fn resolve(&self, _: &Reference) -> Result<Object, Failure> {
        Err((self.0)())
    }

    fn local(&self, _: &Reference, _: &str) -> Option<Local> {
        None
    }
}
