//! The types of a contract by their names, by which a value of any shape names its type.

use super::Notation;
use super::kinds::{EXCEPTION, remarked};
use everywire::{Failure, Node, Reference};
use everywire_model::shape::{Name, Shape};
use everywire_model::{Contract, Definition};
use std::sync::Arc;

/// The named types of a contract.
#[derive(Clone, Default)]
pub struct Types(Arc<[Shape]>);

impl Types {
    /// Those of this contract: its types and its exceptions.
    pub fn of(contract: &Contract) -> Self {
        let shape = |definition: &Definition| match definition {
            Definition::Type(shape) => Some(shape.clone()),
            Definition::Exception(exception) => Some(remarked(EXCEPTION, Shape::Struct(exception.clone()))),
            Definition::Constant(_) | Definition::Interface(_) => None,
        };
        Self(contract.definitions.iter().filter_map(shape).collect())
    }

    /// The type with this scoped name, or whose name ends so, if only one does.
    pub fn named(&self, word: &str) -> Option<Shape> {
        let name = |shape: &Shape| match shape {
            Shape::Alias(held) if held.name.is_empty() => held.target.noun(),
            shape => shape.noun(),
        };
        // A whole name is never taken for a part of another one.
        if let Some(exact) = self.0.iter().find(|shape| name(shape) == word) {
            return Some(exact.clone());
        }
        let mut last = self.0.iter().filter(|shape| crate::wording::last_part(&name(shape)) == word);
        match (last.next(), last.next()) {
            (Some(only), None) => Some(only.clone()),
            _ => None,
        }
    }
}

impl Types {
    /// The scoped name of the type with this identity. Nothing where the identity is empty.
    pub(super) fn name_of(&self, id: &str) -> Option<&Name> {
        if id.is_empty() {
            return None;
        }
        self.0.iter().filter_map(identity).find(|(known, _)| *known == id).map(|(_, name)| name)
    }
}

/// Identity and name of a type that has both.
fn identity(shape: &Shape) -> Option<(&Name, &Name)> {
    match shape {
        Shape::Struct(held) => Some((&held.id, &held.name)),
        Shape::Union(held) => Some((&held.id, &held.name)),
        Shape::Enum(held) => Some((&held.id, &held.name)),
        Shape::Alias(held) if held.name.is_empty() => identity(&held.target),
        Shape::Alias(held) => Some((&held.id, &held.name)),
        _ => None,
    }
}

/// How values are spelled where a contract is known: references by a node, types by their names.
#[derive(Clone)]
pub struct NodeNotation {
    node: Node,
    types: Types,
    files: bool,
}

impl NodeNotation {
    /// References are those of this node, types those of a contract. JSON opens no files.
    pub fn new(node: Node, types: Types) -> Self {
        Self { node, types, files: false }
    }

    /// The same, where JSON may name files to open or to read: for whoever writes it on this machine.
    #[must_use]
    pub fn opening_files(self) -> Self {
        Self { files: true, ..self }
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }
}

impl Notation for NodeNotation {
    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        Notation::parse(&self.node, text)
    }

    fn print(&self, reference: &Reference) -> String {
        Notation::print(&self.node, reference)
    }

    fn types(&self) -> Types {
        self.types.clone()
    }

    fn opens_files(&self) -> bool {
        self.files
    }
}
