//! What a wire's peers expect of everybody who serves, and what a wire keeps for a node.

use crate::bind_address::BindAddress;
use crate::body::NodeState;
use crate::contract::{Attribute, Interface};
use crate::failure::Failure;
use crate::link::Link;
use crate::message::{Answer, Emission, SignalFilter};
use crate::object::{Object, Resolver, Servant};
use crate::profile::Lease;
use crate::reach::Reach;
use crate::reference::Reference;
use crate::shape::Hold;
use crate::signal::{Audience, Backlog, Listener, Subscription};
use crate::visit::Encode;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;

/// The objects that a process serves, as [`WireState`] servants see them; implemented by the runtime.
pub trait Objects: Send + Sync {
    /// The keys, sorted.
    fn keys(&self) -> Vec<Bytes>;
    /// The servants under a key, one for each interface.
    fn servants(&self, key: &[u8]) -> Vec<Arc<dyn Servant>>;
    /// The servant that answers for all keys that begin as this one; it is asked where nothing is served under the key itself.
    fn by_prefix(&self, _key: &[u8]) -> Option<Arc<dyn Servant>> {
        None
    }
    /// Sends a signal on connections of this wire only.
    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure>;
    /// A link whose answers go nowhere but to `done`: for asking a servant on one's own account. `done` runs once, unless
    /// the servant never answers.
    fn aside(&self, done: Box<dyn Fn(Answer<'_>) + Send + Sync>) -> Arc<dyn Link>;
    /// Serves an object under a fresh key until it is withdrawn.
    fn export(&self, servants: Vec<Arc<dyn Servant>>) -> Bytes;
    /// Serves the key no longer.
    fn withdraw(&self, key: &[u8]);
    /// The classes: keys under which objects are made when somebody asks for them, and what these will be.
    fn classes(&self) -> Vec<(Bytes, Hold<Interface>)>;
    /// Makes an object of a class and serves it under a fresh key, which is returned; `None` if there is no such class. `asker`: for
    /// whom, by the account that was proved, else by where that is; empty for this process.
    fn create(&self, class: &[u8], asker: &str) -> Option<Result<Bytes, Failure>>;
    /// A reference to an object that is served here.
    fn publish(&self, type_id: &str, key: &[u8]) -> Reference;
    /// Where this node serves on this wire.
    fn places(&self) -> Vec<BindAddress>;
    /// Where others reach one of these places.
    fn reach(&self, place: &BindAddress) -> Reach {
        Reach { endpoints: place.profile().endpoints.clone(), wildcard: false }
    }
    /// Serves at one more address of this wire.
    fn listen(&self, address: &str) -> Result<BindAddress, Failure>;
    /// Turns references into objects.
    fn resolver(&self) -> Arc<dyn Resolver>;
    /// [`WireState::due`] has changed: it is asked again.
    fn attend(&self);
    /// The wire keeps so many bytes for its peers beside what their connections hold, and kept `before`. They count against the
    /// memory that all peers may hold. Returns how many the wire may keep so.
    fn keeps(&self, _before: usize, _now: usize) -> usize {
        usize::MAX
    }
    /// A signal did not reach a listener that asked for it: whoever looks after this node is told.
    fn undelivered(&self, _failure: &Failure) {}
    /// A peer was not let in, or not let through: whoever looks after this node is told why, which the peer is not.
    fn refused(&self, _peer: &str, _why: &str) {}
    /// Something happened among those who listen to an object: whoever serves it is told.
    fn audience(&self, _key: &[u8], _told: &Audience) {}
}

/// What a wire's peers expect of everybody who serves, beside the exported objects: introspection, properties. A call
/// that no exported servant answers is offered to these servants, whatever its key. Sessions get it with their
/// [`crate::Config`], so it is also where a wire keeps what outlives a connection.
pub trait WireState: NodeState {
    /// The servants, mostly none. A request knows the key that was asked ([`crate::Request::key`]).
    fn servants(&self) -> Vec<Arc<dyn Servant>> {
        Vec::new()
    }
    /// Whether one of these servants serves the object under a key that nobody exported, and of that type where one is asked for;
    /// nothing where none does.
    fn locate(&self, _key: &[u8], _type_id: Option<&str>) -> Option<Result<(), Failure>> {
        None
    }
    /// An object was exported.
    fn exported(&self, _key: &[u8], _servant: &Arc<dyn Servant>) {}
    /// An object is served no longer.
    fn withdrawn(&self, _key: &[u8], _interface: &Interface) {}
    /// Other keys than before are answered for by how they begin ([`Objects::by_prefix`]).
    fn prefixes_changed(&self) {}
    /// An attribute changed.
    fn changed(&self, _key: &[u8], _interface: &Interface, _attribute: &Attribute) -> Result<(), Failure> {
        Ok(())
    }
    /// An attribute changed, and `answer` writes what the operation that reads it would answer.
    fn changed_to(
        &self,
        key: &[u8],
        interface: &Interface,
        attribute: &Attribute,
        _answer: &dyn Encode,
    ) -> Result<(), Failure> {
        self.changed(key, interface, attribute)
    }
    /// A signal is emitted: for whoever asked for it in another way than by a connection that carries signals.
    fn emit(&self, _emission: &Emission<'_>) -> Result<(), Failure> {
        Ok(())
    }
    /// Listens to signals of an object elsewhere, where that takes more than its connection; `None` if it does not.
    fn subscribe(
        &self,
        _object: &Object,
        _filter: SignalFilter<'_>,
        _listener: &Listener,
    ) -> Option<Result<Subscription, Failure>> {
        None
    }
    /// Whether an object elsewhere has an interface, where the wire has a way to ask; `None` if it has not.
    fn offers(&self, _object: &Object, _interface: &str) -> Option<Result<bool, Failure>> {
        None
    }
    /// Whether it is known when nobody elsewhere refers to an object any more.
    fn counts_references(&self) -> bool {
        false
    }
    /// Of a hop: where a call of what stands here under this key goes on, whose backend is `to`. `None`: to the object of the same key
    /// there, as on all wires whose messages name keys.
    fn onward(&self, _key: &[u8], _to: &Reference) -> Option<Reference> {
        None
    }
    /// The object under a key is to be served until nobody refers to it any more, elsewhere or by this lease.
    fn lend(&self, _key: &[u8]) -> Lease {
        Lease::default()
    }
    /// Another lease of an object that was lent before; `None` if it has ended meanwhile, or ends just now.
    fn lend_again(&self, _key: &[u8]) -> Option<Lease> {
        None
    }
    /// Has a listener ([`Audience`]) hear no more of an object; whether it listened.
    fn dismiss(&self, _key: &[u8], _interface: &str, _listener: u32) -> bool {
        false
    }
    /// What waits for the listener of an object that is furthest behind.
    fn backlog(&self, _key: &[u8]) -> Backlog {
        Backlog::default()
    }
    /// When `tend` wants to be called; [`Objects::attend`] says that this has changed.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Time has passed. Runs on a thread of its own and may call other objects.
    fn tend(&self, _now: Instant) {}
    /// The node ends: the last occasion to tell others, in a moment.
    fn leave(&self) {}
}

impl<T: WireState> NodeState for T {
    fn leads_on(&self, key: &[u8], to: &Reference) -> Option<Reference> {
        self.onward(key, to)
    }
}
