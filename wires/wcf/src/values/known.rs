//! The types that a contract names: what a value of any type may say that it is.
//!
//! A value of any type (`object`, `anyType`) tells its type by `i:type`, and the reader must find the shape
//! behind that name. WCF asks for KnownType attributes; here every type is known that an
//! operation of the interface names, or that the contract defines (`Interface::types`). The table is made
//! for operations that have such values, and for nobody else.

use super::names::is_derived;
use everywire_idl::wsdl::names::{self, QName, SCHEMA, SERIALIZATION};
use everywire_model::shape::{Field, Shape};
use everywire_model::{Interface, Operation};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Named types and collections of them, by the local part of their names.
#[derive(Debug, Default)]
pub struct Types(HashMap<Box<str>, Vec<(Box<str>, Shape)>>);

impl Types {
    /// Those of an interface, if the operation has values of any type.
    pub(crate) fn of(interface: Option<&Interface>, operation: &Operation) -> Option<Arc<Self>> {
        let mut walk = Walk::default();
        walk.operation(operation);
        if !walk.any {
            return None;
        }
        for other in interface.iter().flat_map(|interface| interface.operations.iter()) {
            walk.operation(other);
        }
        let types = interface.and_then(|interface| interface.types.as_ref());
        types.iter().flat_map(|types| types.iter()).for_each(|shape| walk.shape(shape));
        Some(Arc::new(walk.found))
    }

    /// All of both.
    /// For bodies of several operations on one channel: the table goes beside all of them.
    pub(crate) fn with(&self, other: &Self) -> Self {
        let mut all = Self(self.0.clone());
        for (local, types) in &other.0 {
            types.iter().for_each(|(namespace, shape)| all.add(local, namespace, shape));
        }
        all
    }

    /// Whether it has all of the other's.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|(local, types)| {
            let known = self.named(local);
            types.iter().all(|(namespace, _)| known.iter().any(|(known, _)| known == namespace))
        })
    }

    /// The types of this name, in whatever namespace.
    /// More than one only where two namespaces have a type of that name.
    pub(super) fn named(&self, local: &str) -> &[(Box<str>, Shape)] {
        self.0.get(local).map(Vec::as_slice).unwrap_or_default()
    }

    fn add(&mut self, local: &str, namespace: &str, shape: &Shape) {
        let types = self.0.entry(local.into()).or_default();
        if !types.iter().any(|(known, _)| **known == *namespace) {
            types.push((namespace.into(), shape.clone()));
        }
    }
}

#[derive(Default)]
struct Walk {
    found: Types,
    /// Where the definitions are that were walked through.
    /// A type that contains itself would be walked for ever.
    seen: HashSet<usize>,
    /// Whether a value of any type was met.
    any: bool,
}

impl Walk {
    fn operation(&mut self, operation: &Operation) {
        self.fields(operation.arguments.fields());
        self.fields(operation.results.fields());
        operation.raises.iter().for_each(|detail| self.fields(&detail.fields));
    }

    fn fields(&mut self, fields: &[Field]) {
        fields.iter().for_each(|field| self.shape(&field.shape));
    }

    fn found(&mut self, shape: &Shape) {
        let name = names::of_shape(shape);
        self.found.add(&name.local, &name.namespace, shape);
    }

    fn shape(&mut self, shape: &Shape) {
        let mut is_new = |at: usize| self.seen.insert(at);
        match shape {
            Shape::Variant => self.any = true,
            Shape::Struct(held) if is_new(held.identity()) => {
                self.found(shape);
                self.fields(&held.fields);
            }
            Shape::Enum(_) => self.found(shape),
            Shape::Union(held) if is_new(held.identity()) => {
                // Of a type that others extend the union has the name, too; a value that tells this name is of the type itself.
                if !is_derived(held) {
                    self.found(shape);
                }
                held.arms.iter().for_each(|arm| self.shape(&arm.field.shape));
            }
            Shape::Alias(held) if is_new(held.identity()) => {
                // Flags are text under a name of their own, and so are restrictions of text; types of XML Schema need no contract.
                let is_named = || {
                    let name = QName::parse(&held.id);
                    name.is_some_and(|name| ![SCHEMA, SERIALIZATION].contains(&&*name.namespace))
                };
                if matches!(shape.resolved(), Shape::Sequence(_) | Shape::Map(_)) || is_named() {
                    self.found(shape);
                }
                self.shape(&held.target);
            }
            Shape::Sequence(_) | Shape::Array(_) => {
                self.found(shape);
                shape.element().into_iter().for_each(|element| self.shape(element));
            }
            Shape::Map(held) => {
                self.found(shape);
                self.shape(&held.key);
                self.shape(&held.value);
            }
            Shape::Optional(target) => self.shape(target),
            Shape::Pointer(pointer) => self.shape(&pointer.target),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
