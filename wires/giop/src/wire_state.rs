//! What the wire keeps for a node: the servants that stand by for all objects, and the repository that is made of what is served.
//!
//! The repository is made when somebody asks for it, and again when what is served has changed and it does not have what is asked
//! for; while objects come and go, making it takes a tenth of a thread's time at the most, unless an object itself is asked what it is.
//! Calls of other objects never come here.

use crate::contracts::IS_A;
use crate::repository::{self, Repository};
use crate::{naming, repository::key};
use everywire_model::{
    Failure, Initiator, Interface, Kind, MarshalList, Object, Objects, Request, Servant, WireState,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A repository that was made lasts ten times as long as making it took, so that making it takes a tenth of a
/// thread's time at the most, whatever clients ask.
const LASTS: u32 = 10;

/// What the wire keeps for a node.
pub(crate) struct Node {
    objects: Arc<dyn Objects>,
    /// For the servants, which must not keep the node alive.
    this: Weak<Self>,
    /// Counts changes of what is served.
    changes: AtomicU64,
    /// The last one that was made. The lock is held while another one is made, so that several askers do not
    /// make it at once.
    repository: Mutex<Option<CachedRepository>>,
    /// Lists of names that are read bit by bit.
    pub(crate) iterators: naming::Iterators,
}

/// A repository that was made.
struct CachedRepository {
    repository: Arc<Repository>,
    /// How many changes it has seen.
    seen: u64,
    /// When another one may be made.
    lasts: Option<Instant>,
}

/// What a repository is wanted for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RepositoryQuery<'a> {
    /// Whatever is in it.
    Any,
    /// A definition that somebody asks for, by its id.
    Definition(&'a str),
    /// The interface of an object that is served, by its id.
    Served(&'a str),
}

impl Node {
    /// For a node that serves these objects.
    pub(crate) fn new(objects: Arc<dyn Objects>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            objects,
            this: this.clone(),
            changes: AtomicU64::new(0),
            repository: Mutex::default(),
            iterators: naming::Iterators::default(),
        })
    }

    /// The objects.
    pub(crate) fn objects(&self) -> &dyn Objects {
        &*self.objects
    }

    /// The repository: one that has what is wanted, if anything has. Holders of an older one may go on with
    /// it: it never changes.
    pub(crate) fn repository(&self, wanted: RepositoryQuery<'_>) -> Arc<Repository> {
        let changes = self.changes.load(Ordering::Acquire);
        let mut held = self.repository.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        if let Some(made) = &*held {
            // What is there is told, even if its object was withdrawn since; another one is made for what is
            // missing.
            let fits = match wanted {
                RepositoryQuery::Any => false,
                RepositoryQuery::Definition(id) | RepositoryQuery::Served(id) => made.repository.has(id),
            };
            let lasts = !matches!(wanted, RepositoryQuery::Served(_))
                && made.lasts.is_some_and(|until| begun < until);
            if fits || lasts || made.seen == changes {
                return Arc::clone(&made.repository);
            }
        }
        let repository = Arc::new(Repository::of(&*self.objects));
        let now = Instant::now();
        let took = now.saturating_duration_since(begun).max(Duration::from_micros(1));
        let lasts = now.checked_add(took.saturating_mul(LASTS));
        *held = Some(CachedRepository { repository: Arc::clone(&repository), seen: changes, lasts });
        repository
    }
}

impl WireState for Node {
    fn servants(&self) -> Vec<Arc<dyn Servant>> {
        let mut all = repository::servants(&self.this);
        all.extend(naming::servants(&self.this));
        all
    }

    fn exported(&self, _: &[u8], _: &Arc<dyn Servant>) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn withdrawn(&self, _: &[u8], _: &Interface) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn offers(&self, object: &Object, interface: &str) -> Option<Result<bool, Failure>> {
        let is = object.call::<_, (bool,), Failure>(&IS_A, (interface,));
        Some(is.map(|(is,)| is))
    }

    fn locate(&self, key: &[u8], type_id: Option<&str>) -> Option<Result<(), Failure>> {
        let interface = match key::parse(key) {
            Some((definition, id)) => {
                self.repository(RepositoryQuery::Definition(id)).find(definition.kind, id)?;
                definition.interface
            }
            None => naming::locate(self, key)?,
        };
        Some(match type_id {
            Some(id) if !interface.is_a(id) => {
                Err(Failure::new(Kind::BadReference, Initiator::Peer, format!("the object is no `{id}`")))
            }
            _ => Ok(()),
        })
    }
}

/// Serves an interface of the wire's own. It holds the node weakly, since the node holds its servants.
pub(crate) struct NodeServant {
    node: Weak<Node>,
    interface: &'static Interface,
    answer: NodeAnswer,
}

/// Answers a call.
type NodeAnswer = fn(&Node, &mut Request) -> Result<(), Failure>;

impl NodeServant {
    /// Serves this interface by what answers its calls.
    pub(crate) fn serving(
        node: &Weak<Node>,
        interface: &'static Interface,
        answer: NodeAnswer,
    ) -> Arc<dyn Servant> {
        Arc::new(Self { node: node.clone(), interface, answer })
    }
}

impl Servant for NodeServant {
    fn interface(&self) -> &Interface {
        self.interface
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| match self.node.upgrade() {
            Some(node) => (self.answer)(&node, request),
            None => Err(Failure::new(Kind::Unreachable, Initiator::Here, "the node was stopped")),
        });
    }
}

/// Answers with these results; what does not encode becomes the failure.
pub(crate) fn reply<R: MarshalList>(request: &mut Request, results: R) -> Result<(), Failure> {
    request.reply::<R, Failure>(Ok(results))
}
