//! What the wire keeps for a node: how sessions find what is served, and the servants that everybody is
//! expected to have.
//!
//! One `Node` is shared by all connections of a node, on whatever thread they are. It owns no objects:
//! those stand in the node's own table, and each question goes there. Sessions remember answers together
//! with `changes()`, and ask again when that has moved.

use crate::metadata;
use crate::plan::{self, Plan};
use crate::soap::{Orphans, Sequences};
use bytes::Bytes;
use everywire_model::{Interface, Objects, Servant, WireState};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What the wire keeps for a node.
pub struct Node {
    /// The node's table of exported objects.
    objects: Arc<dyn Objects>,
    /// The metadata endpoint (MEX, WS-Transfer Get) of every object, made when somebody asks first.
    standing: OnceLock<Arc<dyn Servant>>,
    /// Counts changes of what is served: moved with `Release` after the table has changed, read with `Acquire`
    /// before the table is asked.
    changes: AtomicU64,
    /// Reliable sessions over HTTP.
    pub(crate) sequences: Sequences,
    /// Those of clients that have lost their connection.
    pub(crate) orphans: Orphans,
}

impl Node {
    /// For a node that serves these objects.
    pub fn new(objects: Arc<dyn Objects>) -> Arc<Self> {
        let (standing, changes, sequences, orphans) = Default::default();
        Arc::new(Self { objects, standing, changes, sequences, orphans })
    }

    /// The node behind what a session was given.
    /// `None` if the session was given the state of another wire, or none at all.
    pub fn of(wire_state: &Arc<dyn WireState>) -> Option<Arc<Self>> {
        let any: Arc<dyn Any + Send + Sync> = Arc::clone(wire_state) as _;
        any.downcast().ok()
    }

    /// The objects.
    pub fn objects(&self) -> &Arc<dyn Objects> {
        &self.objects
    }

    /// How often what is served has changed: what was looked up before the last time may be wrong.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The key under which the object is exported that a path means: the same, else one that differs in
    /// case only; paths that somebody answers for by how they begin, and those of metadata, stay as they
    /// are.
    pub fn find(&self, path: &[u8]) -> Option<Bytes> {
        let keys = self.objects.keys();
        let known = |path: &[u8]| {
            keys.iter()
                .find(|key| **key == path)
                .or_else(|| keys.iter().find(|key| key.eq_ignore_ascii_case(path)))
                .cloned()
        };
        let trimmed = path.strip_suffix(b"/").unwrap_or(path);
        let passed = || self.objects.by_prefix(path).map(|_| Bytes::copy_from_slice(path));
        known(path).or_else(|| known(trimmed)).or_else(passed).or_else(|| {
            // A path that ends with `mex` means the metadata of the object before it, or of the node.
            let rest = metadata::described(trimmed);
            let served = rest.is_empty() || known(rest).is_some();
            (served && rest.len() < trimmed.len()).then(|| Bytes::copy_from_slice(trimmed))
        })
    }

    /// The key of the object that is exported, if there is one only.
    /// Clients over sockets may leave the path out; where several objects are served, that means none of
    /// them.
    pub fn sole(&self) -> Option<Bytes> {
        only(self.objects.keys().into_iter())
    }

    /// The operation that is asked of an object by an action, or by the first element of a body in Clark notation.
    pub fn plan(&self, key: &[u8], asked: &[u8]) -> Option<Arc<Plan>> {
        let of = |servant: &Arc<dyn Servant>| {
            let interface = servant.interface();
            let operation = interface.operations.get(plan::index_of(interface, asked)?)?;
            Some(Plan::of(Some(interface), operation))
        };
        let own = self.objects.servants(key);
        let here = !own.is_empty();
        own.iter().find_map(of).or_else(|| match self.objects.by_prefix(key).filter(|_| !here) {
            // For these keys it stands before those that stand by for every object.
            Some(servant) => of(&servant),
            None => of(self.standing()),
        })
    }

    /// Whether several operations of an object say this in SOAPAction.
    pub(crate) fn is_shared(&self, key: &[u8], said: &str) -> bool {
        self.objects.servants(key).iter().any(|servant| plan::is_shared(servant.interface(), said))
    }

    /// Whether only somebody who answers for all keys that begin so serves the object: of operations that its interface has not, too.
    pub fn passes(&self, key: &[u8]) -> bool {
        self.objects.by_prefix(key).is_some() && self.objects.servants(key).is_empty()
    }

    /// The key of the only exported object that has an operation with this action: whom a callback is for.
    /// A callback carries no path of its own, so the action is all there is to go by.
    pub fn callee(&self, action: &[u8]) -> Option<Bytes> {
        let has = |key: &Bytes| {
            let servants = self.objects.servants(key);
            servants.iter().any(|servant| plan::index_of(servant.interface(), action).is_some())
        };
        only(self.objects.keys().into_iter().filter(has))
    }

    fn standing(&self) -> &Arc<dyn Servant> {
        self.standing.get_or_init(|| metadata::servant(&self.objects))
    }
}

/// The key, if there is one and no other.
fn only(mut keys: impl Iterator<Item = Bytes>) -> Option<Bytes> {
    keys.next().filter(|_| keys.next().is_none())
}

impl WireState for Node {
    fn servants(&self) -> Vec<Arc<dyn Servant>> {
        vec![Arc::clone(self.standing())]
    }

    fn exported(&self, _: &[u8], _: &Arc<dyn Servant>) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn withdrawn(&self, _: &[u8], _: &Interface) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn prefixes_changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }
}
