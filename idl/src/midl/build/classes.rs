//! Coclasses: what their objects answer, and what they call.
//!
//! A class becomes an interface of the kind `Class`. Its bases are the interfaces that its objects answer,
//! the default one first, and all their operations are its own, so that a caller sees the object as one. The
//! interfaces marked `source` are those that the object calls: each of their methods becomes a signal.
//!
//! An interface that is described nowhere is left out with a note; the class is of use without it.

use super::super::ast::{CoclassInterface, Ident, Item, has};
use super::super::known;
use super::{Builder, doc};
use crate::empty::empty;
use everywire_model::contract::LEFT_OUT;
use everywire_model::shape::{Field, Name};
use everywire_model::{Attribute as Property, Definition, Hold, Interface, InterfaceKind, Operation, Signal};
use std::borrow::Cow;
use std::collections::HashSet;

impl Builder<'_> {
    /// Defines a class, or waits for the last pass where one of its interfaces may still come.
    pub(super) fn class(&mut self, item: &Item, ident: &Ident, interfaces: &[CoclassInterface]) {
        let waits = |interface: &CoclassInterface| {
            let name = &interface.ident.name;
            !self.interfaces.contains_key(name) && known::interface(name).is_none()
        };
        if !self.is_last && interfaces.iter().any(waits) {
            return;
        }
        if !self.declare(&ident.name, ident.span) {
            return;
        }
        // The default interface comes first; the order of the others stays. Callers ask for the default
        // interface first.
        let sorted = |source: bool| {
            let mut list: Vec<&CoclassInterface> = interfaces
                .iter()
                .filter(|interface| has(&interface.attributes, "source") == source)
                .collect();
            list.sort_by_key(|interface| !has(&interface.attributes, "default"));
            list
        };
        let (mut bases, mut sources, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for (list, into) in [(sorted(false), &mut bases), (sorted(true), &mut sources)] {
            for interface in list {
                match self.coclass_interface(&interface.ident) {
                    Some(found) => into.push(found),
                    None => {
                        let what = format!("interface `{}`: it is described nowhere", interface.ident.name);
                        left_out.push((Name::Borrowed(LEFT_OUT), Name::from(what)));
                    }
                }
            }
        }

        let Some((operations, attributes)) = self.operations(&bases, ident) else { return };
        let mut signals = Vec::new();
        let mut names: HashSet<Name> = HashSet::new();
        for source in &sources {
            if self.room(source.operations.len(), ident.span).is_none() {
                return;
            }
            for (index, operation) in source.operations.iter().enumerate() {
                // The number of a method in its source is how the object calls it.
                signals.push(signal(source, index, operation, &mut names));
            }
        }
        let inherited = operations.len();
        let id = self.ids.get(&ident.name).cloned().unwrap_or_default();
        let hold = Hold::new(Interface {
            notes: Cow::Owned(left_out),
            kind: InterfaceKind::Class,
            bases: Cow::Owned(bases),
            operations: Cow::Owned(operations),
            inherited,
            attributes: Cow::Owned(attributes),
            signals: Cow::Owned(signals),
            doc: doc(&item.attributes, &item.doc),
            ..empty(Name::from(ident.name.clone()), Name::from(id))
        });
        self.interfaces.insert(ident.name.clone(), hold.clone());
        self.definitions.push(Definition::Interface(hold));
    }

    /// An interface of a class; nothing if it is described nowhere. Another class is none.
    fn coclass_interface(&mut self, ident: &Ident) -> Option<Hold<Interface>> {
        let spelled = self.spelled(&ident.name).filter(|_| !self.interfaces.contains_key(&ident.name));
        let name = spelled.as_deref().unwrap_or(&ident.name);
        if let Some(known) = self.interfaces.get(name) {
            // The name may be that of a class, which nobody answers.
            if known.kind != InterfaceKind::Class {
                return Some(known.clone());
            }
        } else if let Some(root) = known::root(name) {
            return Some(root);
        } else if let Some(referent) = known::interface(name) {
            // Its methods are not described here, so nobody can call them by this contract.
            let bases = known::root("IUnknown").into_iter().collect();
            return Some(Hold::new(Interface { bases, ..empty(referent.name, referent.id) }));
        }
        None
    }

    /// The operations of all interfaces above a class, each interface once, a base before what is derived
    /// from it. A name that another interface has already gets its own interface's name before it. None where
    /// there are too many.
    fn operations(
        &mut self,
        bases: &[Hold<Interface>],
        ident: &Ident,
    ) -> Option<(Vec<Operation>, Vec<Property>)> {
        let mut lineage: Vec<&Interface> = Vec::new();
        for base in bases {
            ancestors(base, &mut lineage);
        }
        let (mut operations, mut attributes) = (Vec::new(), Vec::<Property>::new());
        let mut names: HashSet<Name> = HashSet::new();
        for interface in lineage {
            let first = operations.len();
            let own = interface.operations.get(interface.inherited..).unwrap_or_default();
            self.room(own.len(), ident.span)?;
            for operation in own {
                let mut operation = operation.clone();
                if names.contains(&operation.name) {
                    let name = Name::from(format!("{}_{}", interface.name, operation.name));
                    (operation.name, operation.label) = (name.clone(), name);
                }
                names.insert(operation.name.clone());
                operations.push(operation);
            }
            for property in interface.attributes.iter().filter(|p| p.getter >= interface.inherited) {
                if attributes.iter().any(|known| known.name == property.name) {
                    continue;
                }
                // Numbers count from the interface's own operations; here they stand behind those of others.
                let moved = |number: usize| number - interface.inherited.min(number) + first;
                let mut property = property.clone();
                property.getter = moved(property.getter);
                property.setter = property.setter.map(moved);
                attributes.push(property);
            }
        }
        Some((operations, attributes))
    }
}

/// An interface and all above it, each once, the furthest bases first. Depth is bounded by `ANCESTORS`.
fn ancestors<'i>(interface: &'i Interface, seen: &mut Vec<&'i Interface>) {
    if seen.iter().any(|known| known.name == interface.name) {
        return;
    }
    for base in interface.bases.iter() {
        ancestors(base, seen);
    }
    seen.push(interface);
}

/// The signal that a method of a source interface is. `index` is the method's number in the source interface,
/// by which it is called.
fn signal(
    source: &Hold<Interface>,
    index: usize,
    operation: &Operation,
    names: &mut HashSet<Name>,
) -> Signal {
    let name = if names.contains(&operation.name) {
        Name::from(format!("{}_{}", source.name, operation.name))
    } else {
        operation.name.clone()
    };
    names.insert(name.clone());
    let fields: Vec<Field> = operation.arguments.fields().to_vec();
    let mut signal = Signal::new(name, fields);
    signal.sink = Some((source.clone(), index));
    signal.doc = operation.doc.clone();
    signal
}
