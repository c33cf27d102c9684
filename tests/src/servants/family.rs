//! Objects of `family.idl`, and a house that gives them away.

use crate::kin::family::{Base, Home, Leaf, Middle, Other};
use everywire::{Failure, Node, Ref, WeakNode};
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct Thing;

impl Base for Thing {
    fn one(&self) -> Result<i32, Failure> {
        Ok(1)
    }
}

impl Middle for Thing {
    fn two(&self) -> Result<i32, Failure> {
        Ok(2)
    }
}

impl Leaf for Thing {
    fn three(&self) -> Result<i32, Failure> {
        Ok(3)
    }
}

impl Other for Thing {
    fn four(&self) -> Result<i32, Failure> {
        Ok(4)
    }
}

/// Gives the object of a key as what that says, or as no more than a `Base`.
struct House(WeakNode);

impl Home for House {
    fn find(&self, what: &str) -> Result<Option<Ref<dyn Base>>, Failure> {
        let node = self.0.upgrade().expect("it runs");
        let (key, says) = what.split_once(' ').expect("two words");
        let found = node.reference(key).expect("it is served");
        let found = if says == "bare" { found.with_type("IDL:family/Base:1.0".to_owned()) } else { found };
        Ok(Some(node.narrow(found)?))
    }
}

/// A house with an object of each kind: `leaf`, `other`, `base`. What it is asked for is a key, and `itself` or `bare`.
#[must_use]
pub fn house(address: &str) -> Node {
    let node = Node::new();
    node.listen(address).expect("it listens");
    node.export::<dyn Leaf>("leaf", Arc::new(Thing));
    node.export::<dyn Other>("other", Arc::new(Thing));
    node.export::<dyn Base>("base", Arc::new(Thing));
    node.export::<dyn Home>("home", Arc::new(House(node.downgrade())));
    node
}

/// The contract as a file in a folder, without the word on what a `Leaf` is.
#[must_use]
pub fn without_leaf(folder: &Path) -> PathBuf {
    let file = folder.join("family.idl");
    let whole = include_str!("../../contracts/family.idl");
    let known: String =
        whole.lines().filter(|line| !line.contains("Leaf")).map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, known).expect("a file");
    file
}
