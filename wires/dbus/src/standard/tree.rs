//! The tree of objects as peers see it: paths made of keys, and nodes that are there only because something is below.

use super::errors;
use super::object_managers::ObjectManagers;
use crate::names::{of_interface, path_of_key, respell};
use everywire_model::{Attribute, Bytes, Failure, Interface, Objects, Servant};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The served objects, and which managers were asked for them. Copies are of the same tree.
#[derive(Clone)]
pub(super) struct Tree(pub(super) Arc<dyn Objects>, Arc<ObjectManagers>);

/// An object of the tree, as it was served when it was looked up.
pub(super) struct Exported {
    /// The key that it was exported under.
    pub(super) key: Bytes,
    /// Its path.
    pub(super) path: String,
    /// Its servants, at least one.
    pub(super) servants: Vec<Arc<dyn Servant>>,
}

impl Tree {
    /// Nothing has been asked yet.
    pub(super) fn new(objects: Arc<dyn Objects>) -> Self {
        Self(objects, Arc::default())
    }

    /// The managers that were asked for their objects.
    pub(super) fn asked(&self) -> &ObjectManagers {
        &self.1
    }

    /// The object that a peer means by this key, which is a path of the wire: some keys are spelled otherwise there.
    pub(super) fn object(&self, asked: &[u8]) -> Option<Exported> {
        let held = |key: Bytes| {
            let servants = self.0.servants(&key);
            (!servants.is_empty()).then(|| Exported { path: path_of_key(&key), key, servants })
        };
        held(Bytes::copy_from_slice(asked)).or_else(|| respell(asked).and_then(held))
    }

    /// As [`Tree::object`], for a caller who asks it something.
    ///
    /// # Errors
    /// Nothing is there, or only a node without interfaces of its own.
    pub(super) fn expect(&self, asked: &[u8], interface: &str) -> Result<Exported, Failure> {
        self.object(asked).ok_or_else(|| match path_of_key(asked) {
            path if path == "/" => errors::unknown_interface(&path, interface),
            path => errors::unknown_object(&path),
        })
    }

    /// The objects below a path, at any depth. Costs a look at all keys of the node.
    pub(super) fn below(&self, path: &str) -> Vec<Exported> {
        let keys = self.0.keys().into_iter();
        keys.filter_map(|key| {
            let at = path_of_key(&key);
            below(path, &at)?;
            let servants = self.0.servants(&key);
            (!servants.is_empty()).then_some(Exported { key, path: at, servants })
        })
        .collect()
    }

    /// The next elements of the paths below a path.
    pub(super) fn children(&self, path: &str) -> BTreeSet<String> {
        let keys = self.0.keys().into_iter();
        keys.filter_map(|key| {
            let at = path_of_key(&key);
            below(path, &at)?.split('/').next().map(str::to_owned)
        })
        .collect()
    }

    /// The keys of the exported objects above a path, and the root, whether exported or not. Costs no more where there
    /// are many objects.
    pub(super) fn above(&self, path: &str) -> Vec<Bytes> {
        let mut keys = Vec::new();
        if path != "/" {
            keys.push(Bytes::from_static(b"/"));
        }
        let ends = path.match_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
        keys.extend(
            ends.filter_map(|end| self.object(path.get(1..end)?.as_bytes()).map(|object| object.key)),
        );
        keys
    }
}

impl Exported {
    /// Whether one of the servants has this very interface. Interfaces are compared by their names on the
    /// wire.
    pub(super) fn serves(&self, interface: &Interface) -> bool {
        self.servants.iter().any(|servant| of_interface(servant.interface()) == of_interface(interface))
    }

    /// The interfaces, those inherited from too: on this wire each has members of its own only.
    pub(super) fn interfaces(&self) -> Vec<&Interface> {
        let mut all = Vec::new();
        for servant in &self.servants {
            collect(servant.interface(), &mut all);
        }
        all
    }

    /// The servant that has this interface, and what it is to be asked for; the first one for each interface counts.
    pub(super) fn servant(&self, interface: &str) -> Option<(&Arc<dyn Servant>, &Interface)> {
        self.servants.iter().find_map(|servant| {
            let mut all = Vec::new();
            collect(servant.interface(), &mut all);
            let found = all.into_iter().find(|held| of_interface(held) == interface)?;
            Some((servant, found))
        })
    }

    /// The property, of this interface or of one that it inherits from, or of any if the name is empty.
    pub(super) fn property(&self, interface: &str, name: &str) -> Option<(&Arc<dyn Servant>, &Attribute)> {
        self.servants.iter().find_map(|servant| {
            let whole = servant.interface();
            if !interface.is_empty() {
                let mut all = Vec::new();
                collect(whole, &mut all);
                let wanted = all.into_iter().find(|held| of_interface(held) == interface)?;
                wanted.attributes.iter().find(|held| held.name == name)?;
            }
            // Numbers of accessors count in the servant's own interface.
            Some((servant, whole.attributes.iter().find(|held| held.name == name)?))
        })
    }
}

/// An interface and those it inherits from, each once.
pub(super) fn collect<'a>(interface: &'a Interface, into: &mut Vec<&'a Interface>) {
    if into.iter().any(|held| of_interface(held) == of_interface(interface)) {
        return;
    }
    into.push(interface);
    for base in interface.bases.iter() {
        collect(base, into);
    }
}

/// Whether an attribute is the interface's own, not inherited.
pub(super) fn is_own(interface: &Interface, attribute: &Attribute) -> bool {
    attribute.getter >= interface.inherited
}

/// The interface that an attribute is of: this one, or the one it is inherited from.
pub(super) fn declaring<'a>(interface: &'a Interface, attribute: &Attribute) -> &'a Interface {
    match interface.operations.get(attribute.getter) {
        Some(getter) => interface.declaring(&getter.name),
        None => interface,
    }
}

/// What is left of `path` below `above`, without the slash between them; nothing unless it is below.
fn below<'a>(above: &str, path: &'a str) -> Option<&'a str> {
    let rest = if above == "/" { path } else { path.strip_prefix(above)? };
    rest.strip_prefix('/').filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_elements_are_below() {
        assert_eq!(below("/", "/a/b"), Some("a/b"));
        assert_eq!(below("/a", "/a/b"), Some("b"));
        assert_eq!(below("/a", "/ab"), None);
        assert_eq!(below("/a", "/a"), None);
        assert_eq!(below("/", "/"), None);
    }
}
