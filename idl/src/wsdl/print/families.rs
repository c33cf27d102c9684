//! Types that extend one another, as the unions of a contract tell.
//!
//! The model has no inheritance of structs: the reader made a union of a type and all that extend it. Here
//! the way back is found: in such a union, a struct that begins with the same fields as the first arm extends
//! it. A type may be in several families; its base is the nearest one.

use super::super::marks::CHOICES;
use super::super::names::{self, QName};
use everywire_model::shape::{Struct, Union};
use everywire_model::{Hold, Interface, Shape};
use std::collections::{HashMap, HashSet};

/// The base of each type that extends another.
#[derive(Default)]
pub(super) struct Families {
    bases: HashMap<QName, Hold<Struct>>,
    /// Names of the enumerations that select arms; no schema has them.
    kinds: HashSet<String>,
}

impl Families {
    /// The families among these types, and among those that the interfaces use. Everything that is reachable
    /// is walked once, with a list of its own instead of recursion.
    pub(super) fn of(types: &[Shape], interfaces: &[&Interface]) -> Self {
        let mut families = Self::default();
        let mut pending: Vec<&Shape> = types.iter().collect();
        for interface in interfaces {
            for operation in interface.operations.iter() {
                pending.extend([&operation.arguments, &operation.results]);
                let details = operation.raises.iter().flat_map(|detail| detail.fields.iter());
                pending.extend(details.map(|field| &field.shape));
                for derived in operation.raises.iter() {
                    let base = names::base_detail(operation, derived);
                    let is_base = |detail: &&Hold<Struct>| QName::parse(&detail.id) == base;
                    if base.is_some()
                        && let Some(base) = operation.raises.iter().find(is_base)
                    {
                        families.learn(base, derived);
                    }
                }
            }
            pending.extend(interface.signals.iter().map(|signal| &signal.fields));
        }
        let mut seen = HashSet::new();
        while let Some(shape) = pending.pop() {
            match shape {
                Shape::Struct(of) => {
                    let of = of.get().filter(|of| seen.insert(std::ptr::from_ref(*of).addr()));
                    pending.extend(of.iter().flat_map(|of| of.fields.iter()).map(|field| &field.shape));
                }
                Shape::Union(of) => {
                    if let Some(union) = of.get().filter(|of| seen.insert(std::ptr::from_ref(*of).addr())) {
                        families.add(union);
                        pending.extend(union.arms.iter().map(|arm| &arm.field.shape));
                    }
                }
                Shape::Sequence(of) => pending.push(&of.element),
                Shape::Array(of) => pending.push(&of.element),
                Shape::Map(of) => pending.extend([&of.key, &of.value]),
                Shape::Optional(target) => pending.push(target),
                Shape::Pointer(of) => pending.push(&of.target),
                Shape::Alias(of) => pending.push(&of.target),
                _ => {}
            }
        }
        families
    }

    /// Learns from one more union. The nearest base of a type is the one with the most fields, and among those the one with
    /// the fewest types.
    pub(super) fn add(&mut self, union: &Union) {
        if !is_family(union) && union.id != CHOICES {
            return;
        }
        if let Shape::Enum(kind) = &union.discriminator {
            self.kinds.insert(kind.name.to_string());
        }
        if union.id == CHOICES {
            return;
        }
        let mut structs = union.arms.iter().filter_map(|arm| match &arm.field.shape {
            Shape::Struct(shape) => Some(shape),
            _ => None,
        });
        let Some(base) = structs.next() else { return };
        structs.for_each(|derived| self.learn(base, derived));
    }

    /// Learns that one type may extend another, directly or not.
    fn learn(&mut self, base: &Hold<Struct>, derived: &Hold<Struct>) {
        let Some(name) = QName::parse(&derived.id) else { return };
        let extends = derived.fields.len() >= base.fields.len()
            && base
                .fields
                .iter()
                .zip(derived.fields.iter())
                .all(|(own, inherited)| own.name == inherited.name);
        let nearer = self.bases.get(&name).is_none_or(|known| {
            known.fields.len() < base.fields.len()
                || (known.fields.len() == base.fields.len() && self.extends(&base.id, &known.id))
        });
        if extends && nearer {
            self.bases.insert(name, base.clone());
        }
    }

    /// Whether the first is known to extend the second; ends also where bases go in a circle.
    fn extends(&self, derived: &str, base: &str) -> bool {
        let mut at = QName::parse(derived);
        for _ in 0..=self.bases.len() {
            match at.as_ref().and_then(|name| self.bases.get(name)) {
                Some(next) if next.id == base => return true,
                Some(next) => at = QName::parse(&next.id),
                None => return false,
            }
        }
        false
    }

    /// The type that another one extends, if it extends any.
    pub(super) fn base(&self, name: &QName) -> Option<&Hold<Struct>> {
        let base = self.bases.get(name)?;
        // A type extends no type that extends it.
        (!self.extends(&base.id, &name.to_string())).then_some(base)
    }

    /// Whether an enumeration only selects arms of a family or a choice.
    pub(super) fn is_kind(&self, name: &str) -> bool {
        self.kinds.contains(name)
    }
}

/// Whether a union is a type and all that extend it. Its first arm has the union's own identity, and all arms
/// are structs with names.
pub(super) fn is_family(union: &Union) -> bool {
    let structs = |arm: &everywire_model::shape::Arm| match &arm.field.shape {
        Shape::Struct(shape) => shape.get().is_some_and(|shape| QName::parse(&shape.id).is_some()),
        _ => false,
    };
    let first = union.arms.first().and_then(|arm| match &arm.field.shape {
        Shape::Struct(shape) => shape.get(),
        _ => None,
    });
    first.is_some_and(|first| first.id == union.id) && union.arms.iter().all(structs)
}
