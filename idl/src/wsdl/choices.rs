//! Elements of which a message has one or another: choices that are repeated, and elements for which others stand
//! (`substitutionGroup`; XML Schema 1.0, part 1, 3.3.6).
//!
//! A reference to an element for which others stand is a choice of that element, unless it is abstract, and of all that stand for it or for
//! one of those, in the order of the documents. A choice that is repeated is a list of unions, whose arms are called as the elements.
//!
//! Bounds: an element for which more than [`SUBSTITUTES`] stand is read alone; each alternative counts as a member at each place.

use super::builtin::{self, Typed};
use super::limits::SUBSTITUTES;
use super::marks::{self, CHOICES, Mark};
use super::members::{MemberPosition, Members};
use super::names::{QName, SCHEMA};
use super::tree::Node;
use super::types::Types;
use everywire_model::shape::{Arm, Enum, Field, Name, Union};
use everywire_model::{Definition, Hold, Shape};
use std::borrow::Cow;
use std::collections::HashSet;

/// An element that may stand somewhere: the name of the global element that it is, its own name, and its type.
type Found = (Option<QName>, (String, Typed));

impl<'n, 't> Types<'n, 't, '_> {
    /// What may stand where an element is referred to. None where that is the element alone.
    pub(super) fn replaced(&self, element: &Node<'_>) -> Option<Vec<QName>> {
        let head = element.resolve(element.get("ref")?.trim());
        let says = |name: &QName, what, words: &[&str]| {
            let said = self.schemas.elements.get(name).and_then(|node| node.get(what));
            said.is_some_and(|said| said.split_ascii_whitespace().any(|word| words.contains(&word)))
        };
        if says(&head, "block", &["substitution", "#all"]) {
            return None;
        }
        let (mut all, mut next) = (vec![head], 0);
        while let Some(name) = all.get(next) {
            for other in self.schemas.substitutes.get(name).into_iter().flatten() {
                if all.len() > 2 * SUBSTITUTES {
                    return None;
                }
                if !all.contains(other) {
                    all.push(other.clone());
                }
            }
            next += 1;
        }
        let is_replaced = all.len() > 1;
        all.retain(|name| !says(name, "abstract", &["true", "1"]));
        (is_replaced && !all.is_empty() && all.len() <= SUBSTITUTES).then_some(all)
    }

    /// Adds the elements that may stand where one is referred to: alternatives of a choice, or the only one of them. How deep their types
    /// are.
    pub(super) fn replaced_element(
        &mut self,
        of: &QName,
        element: &'n Node<'t>,
        all: &[QName],
        place: MemberPosition,
        members: &mut Members,
    ) -> Option<usize> {
        let found = self.alternatives(of, element, all)?;
        let place = if found.len() > 1 {
            if place.choice.is_none() {
                members.choices = members.choices.saturating_add(1);
            }
            let choice = place.choice.or(Some(members.choices));
            MemberPosition { optional: true, alternative: true, choice, ..place }
        } else {
            place
        };
        let mut depth = 0;
        for (global, found) in found {
            let field = self.found(of, element, global, found, place)?;
            depth = depth.max(self.add_element(of, field, members));
        }
        Some(depth)
    }

    /// The same where the element is repeated: a list of any of them, called as the element.
    pub(super) fn replaced_list(
        &mut self,
        of: &QName,
        element: &'n Node<'t>,
        all: &[QName],
        members: &mut Members,
    ) -> Option<usize> {
        let mut found = self.alternatives(of, element, all)?;
        if found.len() == 1
            && let Some((global, only)) = found.pop()
        {
            let field = self.found(of, element, global, only, MemberPosition::default())?;
            return Some(self.add_element(of, field, members));
        }
        let name = element.qname("ref")?.local;
        let found = found.into_iter().map(|found| (element, found)).collect();
        self.list_of_choices(of, found, &name, members)
    }

    /// The elements of these names. One that cannot be read for what is missing is left out, but for the last.
    fn alternatives(&mut self, of: &QName, element: &'n Node<'t>, all: &[QName]) -> Option<Vec<Found>> {
        let mut found = Vec::with_capacity(all.len());
        for name in all {
            self.count(element)?;
            match self.global(element, name) {
                Some(read) => found.push((Some(name.clone()), read)),
                None if self.lost.is_some() && !self.report.failed() => {
                    let lost = self.lost.clone().unwrap_or_default();
                    self.remark(format!("{of}: {name} is left out: {lost}"));
                }
                None => return None,
            }
        }
        if found.is_empty() {
            return None;
        }
        self.lost = None;
        Some(found)
    }

    /// A choice that is repeated: a list of whatever it chooses from.
    pub(super) fn choices(
        &mut self,
        of: &QName,
        choice: &'n Node<'t>,
        members: &mut Members,
    ) -> Option<usize> {
        let mut found = Vec::new();
        for element in &choice.children {
            self.count(element)?;
            if element.space != SCHEMA {
                continue;
            }
            if element.local != "element" {
                if element.local != "annotation" {
                    self.remark(format!("{of}: {} in a choice that is repeated is left out", element.local));
                }
                continue;
            }
            match self.replaced(element) {
                Some(all) => {
                    let all = self.alternatives(of, element, &all)?;
                    found.extend(all.into_iter().map(|found| (element, found)));
                }
                None => {
                    let read = self.element(of, element)?;
                    found.push((element, (element.qname("ref"), read)));
                }
            }
        }
        self.list_of_choices(of, found, "Items", members)
    }

    /// A list of elements of several names, each with where it is named. Each arm is called as its element.
    fn list_of_choices(
        &mut self,
        of: &QName,
        found: Vec<(&'n Node<'t>, Found)>,
        label: &str,
        members: &mut Members,
    ) -> Option<usize> {
        let (mut fields, mut elsewhere, mut depth) = (Vec::new(), Vec::new(), 0);
        let mut known = HashSet::new();
        for (element, (global, (local, typed))) in found {
            if !known.insert(local.clone()) {
                self.remark(format!("{of}: a second element {local} of a choice is left out"));
                continue;
            }
            depth = depth.max(typed.depth);
            elsewhere.push(self.elsewhere(of, element, global.as_ref()));
            let global = global.and_then(|name| self.schemas.elements.get(&name).copied());
            let nillable = element.get("nillable").or_else(|| global?.get("nillable"));
            let nil = nillable == Some("true") && !builtin::is_emptiable(&typed.shape);
            let shape = match typed.shape {
                Shape::Optional(_) => typed.shape,
                shape if nil => Shape::Optional(Hold::new(shape)),
                shape => shape,
            };
            fields.push(Field { name: Name::from(local), shape });
        }
        if fields.is_empty() {
            return Some(0);
        }
        // Where all are of one namespace the list says so, otherwise each arm.
        let several = elsewhere.iter().any(|namespace| Some(namespace) != elsewhere.first());
        if several {
            for (field, namespace) in fields.iter_mut().zip(&elsewhere) {
                if let Some(namespace) = namespace {
                    field.shape = marks::within(namespace, field.shape.clone());
                }
            }
        }
        let number = if members.lists == 1 { String::new() } else { members.lists.to_string() };
        let list = QName::new(of.namespace.clone(), format!("{}Item{number}", of.local));
        members.lists += 1;
        // The type may be walked again as a base of others: its list is one type.
        let union = match self.lists.get(&list) {
            Some(union) => union.clone(),
            None => {
                let union = self.chosen(&list, fields)?;
                self.lists.insert(list, union.clone());
                union
            }
        };
        let items = Mark::Choices.on(Shape::sequence(union));
        let items = match elsewhere.into_iter().next().flatten().filter(|_| !several) {
            Some(namespace) => marks::within(&namespace, items),
            None => items,
        };
        let other = format!("{label}{}", members.lists - 1);
        if !members.add(label, "Choices", items.clone()) && !members.add(&other, "Choices", items) {
            self.remark(format!("{of}: another choice that is repeated is left out"));
        }
        Some(depth + 2)
    }

    /// The union of the elements of a choice. Its identity tells the wire that arms are elements.
    fn chosen(&mut self, list: &QName, fields: Vec<Field>) -> Option<Shape> {
        let (mut arms, mut names) = (Vec::new(), Vec::<(Name, i32)>::new());
        for field in fields {
            let number = i32::try_from(names.len()).ok()?;
            names.push((field.name.clone(), number));
            arms.push(Arm { labels: Cow::Owned(vec![number.into()]), default: false, field });
        }
        // A new name, because an interface may have the name of the list.
        let union_name = self.new_name(list, "TYPE");
        let kind = Enum {
            name: Name::from(self.names.name(&format!("{union_name}Kind"))),
            id: Name::from(""),
            members: Cow::Owned(names),
            bits: 32,
            open: false,
        };
        let kind = Shape::Enum(Hold::new(kind));
        self.definitions.push((QName::default(), Definition::Type(kind.clone())));
        let id = Name::from(CHOICES);
        let union = Union { name: union_name, id, discriminator: kind, arms: Cow::Owned(arms) };
        let union = Shape::Union(Hold::new(union));
        self.definitions.push((QName::default(), Definition::Type(union.clone())));
        Some(union)
    }
}
