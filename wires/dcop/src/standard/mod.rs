//! What every application and every object answers without being told (as `DCOPClient` and `DCOPObject` of KDE's
//! library do): `objects()` of the object `DCOPClient`, `functions()` and `interfaces()` of each object; and calls to
//! the default object and to all objects with a prefix.

mod describe;
mod forward;
#[cfg(test)]
mod tests;

use crate::servers;
use crate::trees::Tree;
use bytes::Bytes;
pub(crate) use describe::BASE;
use describe::{functions, interfaces};
use everywire_model::describe::*;
use everywire_model::{Failure, Initiator, Kind, Objects, Request, Servant, WireState};
use forward::Forward;
pub(crate) use forward::{SEARCH, found};
use std::sync::{Arc, Mutex, PoisonError};

/// The object that stands for the application.
pub(crate) const CLIENT: &[u8] = b"DCOPClient";

/// Another id of the default object.
pub(crate) const DEFAULT: &[u8] = b"default";

static OPERATIONS: [Operation; 3] = [
    operation!("interfaces()", () -> sequence!(TEXT)),
    operation!("functions()", () -> sequence!(TEXT)),
    operation!("objects()", () -> sequence!(TEXT)),
];

/// It stands by for every object; the first two operations are of each, the third is of `DCOPClient` alone.
static OBJECT: Interface = interface!("DCOPObject", "DCOPObject", [], 0, &OPERATIONS);

/// Whether an object id means others: the default object, or all with a prefix.
fn means_others(id: &[u8]) -> bool {
    matches!(id, b"" | DEFAULT) || id.ends_with(b"*")
}

/// The number of the operation that stands for any call to an id that means others, if this is its interface.
pub(crate) fn several(interface: &Interface, id: &[u8]) -> Option<usize> {
    if means_others(id) { interface.index_of(forward::ANY.as_bytes()) } else { None }
}

/// The answers of an application.
pub(crate) struct Standard {
    shared: Arc<Shared>,
}

/// What they are made from.
pub(crate) struct Shared {
    /// What the node serves.
    pub(crate) objects: Arc<dyn Objects>,
    /// Keys in the order of their export: the first that is still there is the default object.
    order: Mutex<Vec<Bytes>>,
}

impl Standard {
    /// For a node that serves these objects.
    pub(crate) fn new(objects: Arc<dyn Objects>) -> Self {
        // What was exported before has no order any more.
        let order = Mutex::new(objects.keys());
        Self { shared: Arc::new(Shared { objects, order }) }
    }
}

impl WireState for Standard {
    fn servants(&self) -> Vec<Arc<dyn Servant>> {
        let shared = || Arc::clone(&self.shared);
        vec![Arc::new(StandardFunctions { shared: shared() }), Arc::new(Forward { shared: shared() })]
    }

    fn exported(&self, key: &[u8], _: &Arc<dyn Servant>) {
        let mut order = self.shared.order.lock().unwrap_or_else(PoisonError::into_inner);
        if !order.iter().any(|held| held == key) {
            order.push(Bytes::copy_from_slice(key));
        }
    }

    fn withdrawn(&self, key: &[u8], _: &Interface) {
        // One of several interfaces may be gone only.
        if self.shared.objects.servants(key).is_empty() {
            let mut order = self.shared.order.lock().unwrap_or_else(PoisonError::into_inner);
            order.retain(|held| held != key);
        }
    }
}

impl Shared {
    /// The key of the default object. Nothing, if nothing is served.
    pub(crate) fn default(&self) -> Option<Bytes> {
        let order = self.order.lock().unwrap_or_else(PoisonError::into_inner).clone();
        order.into_iter().find(|key| !self.objects.servants(key).is_empty())
    }

    /// The keys that an object id in a message means.
    pub(crate) fn meant(&self, id: &[u8]) -> Vec<Bytes> {
        match id {
            b"" | DEFAULT => self.default().into_iter().collect(),
            [prefix @ .., b'*'] => {
                self.objects.keys().into_iter().filter(|key| key.starts_with(prefix)).collect()
            }
            exact => {
                let there = !self.objects.servants(exact).is_empty();
                if there { vec![Bytes::copy_from_slice(exact)] } else { Vec::new() }
            }
        }
    }
}

/// Serves what every object tells of itself.
struct StandardFunctions {
    shared: Arc<Shared>,
}

impl StandardFunctions {
    /// The result of an operation about the object with this id. `trinity`: types are spelled as Trinity's
    /// programs do.
    ///
    /// # Errors
    /// There is no such object, or more than one is meant; or it has no such function.
    fn tell(&self, index: usize, id: &[u8], trinity: bool) -> Result<Vec<String>, Failure> {
        let objects = &self.shared.objects;
        if id == CLIENT {
            if index != 2 {
                let what = "DCOPClient has only objects()";
                return Err(Failure::new(Kind::NoOperation, Initiator::User, what));
            }
            let default = self.shared.default();
            let mut ids = Vec::new();
            for key in objects.keys() {
                if default.as_ref() == Some(&key) {
                    ids.push(String::from_utf8_lossy(DEFAULT).into_owned());
                }
                ids.push(String::from_utf8_lossy(&key).into_owned());
            }
            return Ok(ids);
        }
        let [key] = self.shared.meant(id).try_into().map_err(|_| no_object(id))?;
        let servants = objects.servants(&key);
        match index {
            0 => Ok(interfaces(&servants)),
            1 => Ok(functions(&servants, trinity)),
            _ => Err(Failure::new(Kind::NoOperation, Initiator::User, "only DCOPClient has objects()")),
        }
    }
}

impl Servant for StandardFunctions {
    fn interface(&self) -> &Interface {
        &OBJECT
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            // As the programs at the server that asks spell their types.
            let trinity = servers::tree(request.body().dialect).is_some_and(Tree::is_of_trinity);
            let told = self.tell(request.index(), request.key(), trinity);
            request.reply(told.map(|told| (told,)))
        });
    }
}

/// Nothing has this id.
pub(crate) fn no_object(id: &[u8]) -> Failure {
    let what = format!("there is no object `{}`", id.escape_ascii());
    Failure::new(Kind::NoObject, Initiator::User, what)
}
