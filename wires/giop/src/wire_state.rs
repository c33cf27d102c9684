//! What the wire keeps for a node: the servants that stand by for all objects, and the repository that is made of what is served.
//!
//! The repository is made when somebody asks for it, and again when what is served has changed and it does not have what is asked
//! for. Calls of other objects never come here.

use crate::repository::{self, Repository};
use crate::{naming, repository::key};
use everywire_model::{Failure, Initiator, Interface, Kind, Objects, Servant, WireState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What the wire keeps for a node.
pub(crate) struct Node {
    objects: Arc<dyn Objects>,
    this: Weak<Self>,
    /// Counts changes of what is served.
    changes: AtomicU64,
    /// The repository, and how many changes it has seen.
    repository: Mutex<Option<(u64, Arc<Repository>)>>,
    /// Lists of names that are read bit by bit.
    pub(crate) iterators: naming::Iterators,
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

    /// The repository, if it has this definition; one that is not too old. With nothing to look for, one that has all that is served now.
    pub(crate) fn repository(&self, wanted: Option<&str>) -> Arc<Repository> {
        let changes = self.changes.load(Ordering::Acquire);
        let mut held = self.repository.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((seen, repository)) = &*held
            && (*seen == changes || wanted.is_some_and(|id| repository.has(id)))
        {
            return Arc::clone(repository);
        }
        let made = Arc::new(Repository::of(&*self.objects));
        *held = Some((changes, Arc::clone(&made)));
        made
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

    fn locate(&self, key: &[u8], type_id: Option<&str>) -> Option<Result<(), Failure>> {
        let interface = match key::parse(key) {
            Some((definition, id)) => {
                self.repository(Some(id)).find(definition.kind, id)?;
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

/// The node, if it still runs.
///
/// # Errors
/// It does not.
pub(crate) fn alive(node: &Weak<Node>) -> Result<Arc<Node>, Failure> {
    node.upgrade().ok_or_else(|| Failure::new(Kind::Unreachable, Initiator::Here, "the node was stopped"))
}
