//! What peers expect of everybody who serves (specification, "Standard Interfaces"), and what is asked of them.
//!
//! * [`wire_state`]: `Peer`, `Introspectable`, `Properties` and `ObjectManager` for all served objects, with signals.
//! * [`discover`]: an object's contract, from its own description.
//! * [`list`]: who is on a bus, and which objects somebody there has.
//! * [`driver`]: the bus itself as an object.

mod asking;
mod bundle;
mod changes;
mod contracts;
mod discover;
pub mod driver;
mod errors;
mod introspect;
mod later;
mod list;
mod manager;
mod object_managers;
mod peer;
mod people;
mod properties;
#[cfg(test)]
mod tests;
mod tree;
mod wait;

pub use contracts::{COMMON, INTROSPECTABLE, NEWS, OBJECT_MANAGER, PEER, PROPERTIES};
pub use discover::discover;
pub use list::list;
pub use peer::machine_id;

use changes::Changes;
use everywire_model::{Attribute, Encode, Failure, Interface, Objects, Servant, WireState};
use std::sync::Arc;
use tree::Tree;

/// The standard interfaces of the objects that a process serves.
pub fn wire_state(objects: Arc<dyn Objects>) -> Arc<dyn WireState> {
    let tree = Tree::new(objects);
    let servants: [Arc<dyn Servant>; 4] = [
        Arc::new(properties::Properties(tree.clone())),
        Arc::new(introspect::Introspectable(tree.clone())),
        Arc::new(peer::Peer),
        Arc::new(manager::Manager(tree.clone())),
    ];
    Arc::new(Standard { tree, servants, changes: Changes::default() })
}

/// What the wire keeps for a node: the tree of its objects, the four servants that stand by, and changes that
/// are not told yet.
struct Standard {
    tree: Tree,
    servants: [Arc<dyn Servant>; 4],
    changes: Changes,
}

impl WireState for Standard {
    fn servants(&self) -> Vec<Arc<dyn Servant>> {
        self.servants.to_vec()
    }

    fn exported(&self, key: &[u8], servant: &Arc<dyn Servant>) {
        manager::tell_added(&self.tree, key, servant);
    }

    fn withdrawn(&self, key: &[u8], interface: &Interface) {
        if self.tree.0.servants(key).is_empty() {
            self.changes.forget(key);
        }
        manager::tell_removed(&self.tree, key, interface);
    }

    fn changed(&self, key: &[u8], interface: &Interface, attribute: &Attribute) -> Result<(), Failure> {
        self.changes.tell(&self.tree, key, interface, attribute)
    }

    fn changed_to(
        &self,
        key: &[u8],
        interface: &Interface,
        attribute: &Attribute,
        answer: &dyn Encode,
    ) -> Result<(), Failure> {
        self.changes.tell_known(&self.tree, key, interface, attribute, answer)
    }
}
