//! The types that a value of any shape may be said to be, by the names that a contract gives them.

use super::Notation;
use super::kinds::{EXCEPTION, remarked};
use everywire::model::shape::Shape;
use everywire::model::{Contract, Definition};
use everywire::{Failure, Node, Reference};
use std::sync::Arc;

/// The named types of a contract.
#[derive(Clone, Default)]
pub(crate) struct Types(Arc<[Shape]>);

impl Types {
    /// Those of this contract: its types and its exceptions.
    pub(crate) fn of(contract: &Contract) -> Self {
        let shape = |definition: &Definition| match definition {
            Definition::Type(shape) => Some(shape.clone()),
            Definition::Exception(exception) => Some(remarked(EXCEPTION, Shape::Struct(exception.clone()))),
            Definition::Constant(_) | Definition::Interface(_) => None,
        };
        Self(contract.definitions.iter().filter_map(shape).collect())
    }

    /// The type with this scoped name, or whose name ends so, if only one does.
    pub(crate) fn named(&self, word: &str) -> Option<Shape> {
        let name = |shape: &Shape| match shape {
            Shape::Alias(held) if held.name.is_empty() => held.target.noun(),
            shape => shape.noun(),
        };
        if let Some(exact) = self.0.iter().find(|shape| name(shape) == word) {
            return Some(exact.clone());
        }
        let mut last = self.0.iter().filter(|shape| crate::contract::last_part(&name(shape)) == word);
        match (last.next(), last.next()) {
            (Some(only), None) => Some(only.clone()),
            _ => None,
        }
    }
}

/// How values are spelled where a contract is known: references by a node, types by their names.
#[derive(Clone)]
pub(crate) struct Words {
    pub(crate) node: Node,
    pub(crate) types: Types,
}

impl Notation for Words {
    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        Notation::parse(&self.node, text)
    }

    fn print(&self, reference: &Reference) -> String {
        Notation::print(&self.node, reference)
    }

    fn types(&self) -> Types {
        self.types.clone()
    }
}
