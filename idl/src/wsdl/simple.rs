//! Simple types of schemas: enumerations, flags, and restrictions of others.
//!
//! What no shape can hold becomes text with a remark: the value still travels, and is not checked. Facets
//! (patterns, lengths) are not kept: the service checks them.

use super::builtin::Typed;
use super::names::QName;
use super::tree::Node;
use super::types::{Types, annotation};
use crate::report::{Problem, Report};
use everywire_model::shape::{Enum, Name, Text};
use everywire_model::{Hold, Shape};
use std::borrow::Cow;
use std::collections::HashSet;

impl<'n, 't> Types<'n, 't, '_> {
    /// Reads a simple type. None after a mistake in the base.
    pub(super) fn simple(&mut self, name: &QName, node: &'n Node<'t>) -> Option<Typed> {
        if node.one("restriction").is_none() && self.is_made_of_itself(name, node) {
            let message = format!("the simple type `{name}` is a list or a union of itself");
            self.report.add(Problem::new(node.span(), message));
            return None;
        }
        if let Some(list) = node.one("list") {
            let members =
                list.below("restriction").map(|restriction| members(restriction, true, self.report));
            return Some(match members {
                Some(members) if !members.is_empty() => {
                    let members: Vec<String> =
                        members.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    // A value of flags is a list of names in one text; the alias tells the wire which names
                    // and numbers there are.
                    let id = format!("{name};list,{}", members.join(","));
                    Typed::plain(self.aliased(name, &id, Shape::Text(Text::NARROW)), true)
                }
                _ => {
                    self.remark(format!("{name}: a list in one text is read as text"));
                    Typed::plain(self.aliased(name, &name.to_string(), Shape::Text(Text::NARROW)), false)
                }
            });
        }
        let Some(restriction) = node.one("restriction") else {
            self.remark(format!("{name}: a union of simple types is read as text"));
            return Some(Typed::plain(
                self.aliased(name, &name.to_string(), Shape::Text(Text::NARROW)),
                false,
            ));
        };
        let members = members(restriction, false, self.report);
        if !members.is_empty() {
            let values: HashSet<i32> = members.iter().map(|(_, value)| *value).collect();
            let mut taken = HashSet::new();
            // An enumeration of the model is looked up both ways.
            let unique = members.iter().all(|(name, _)| taken.insert(name.clone()));
            if !unique || values.len() != members.len() {
                self.remark(format!("{name}: members of the same name or value are read as text"));
                return Some(Typed::plain(
                    self.aliased(name, &name.to_string(), Shape::Text(Text::NARROW)),
                    false,
                ));
            }
            let members = members.into_iter().map(|(name, value)| (Name::from(name), value)).collect();
            let shape = Enum {
                name: self.name(name, ""),
                id: Name::from(name.to_string()),
                members: Cow::Owned(members),
                bits: 32,
                open: false,
            };
            return Some(Typed::plain(Shape::Enum(Hold::new(shape)), true));
        }
        // A restriction of another type is that type under a name of its own.
        let base = match restriction.qname("base") {
            Some(base) => self.used(&base, restriction)?,
            None => Typed::plain(Shape::Text(Text::NARROW), false),
        };
        let shape = self.aliased(name, &name.to_string(), base.shape);
        Some(Typed { name: name.clone(), shape, depth: base.depth + 1, ..base })
    }

    /// Whether a list or a union of types has itself among them, on whatever way: none may (XML Schema part 1, 3.14.6, and part 2,
    /// 4.1.3). Of a union with very many types only the first ones are looked at: all of them become text anyway.
    fn is_made_of_itself(&self, name: &QName, node: &'n Node<'t>) -> bool {
        let (mut next, mut seen) = (vec![node], HashSet::new());
        while let Some(node) = next.pop() {
            let named = [("list", "itemType"), ("union", "memberTypes"), ("restriction", "base")];
            for (part, attribute) in named {
                let Some(part) = node.one(part) else { continue };
                next.extend(part.all("simpleType"));
                for part_name in part.get(attribute).unwrap_or_default().split_ascii_whitespace() {
                    let part_name = part.resolve(part_name);
                    if part_name == *name {
                        return true;
                    }
                    if let Some(named) = self.schemas.types.get(&part_name)
                        && seen.len() < MAX_PARTS
                        && seen.insert(part_name)
                    {
                        next.push(named);
                    }
                }
            }
        }
        false
    }
}

/// How many types are looked at to find out whether a type is made of itself.
const MAX_PARTS: usize = 64;

/// The members of an enumeration and their values: those that are given, else counted on (or doubled, for
/// flags). Empty where a member is no identifier that the alias could hold: then the type is no enumeration.
fn members(restriction: &Node<'_>, flags: bool, report: &mut Report) -> Vec<(String, i32)> {
    let (mut members, mut next) = (Vec::new(), Some(i32::from(flags)));
    for enumeration in restriction.all("enumeration") {
        let Some(name) = enumeration.needed("value", report) else { continue };
        // Behind the last brace of an alias is its name (`QName::parse`).
        let parts = |c: char| c.is_control() || matches!(c, ',' | '=' | ';') || (flags && c == '}');
        if name.is_empty() || name.chars().any(parts) {
            // No name: the type is text.
            return Vec::new();
        }
        let given = annotation(enumeration, "EnumerationValue").map(|text| text.parse::<i32>().ok());
        let Some(value) = given.unwrap_or(next) else {
            report.add(Problem::new(enumeration.span(), "the value of this member does not fit 32 bits"));
            continue;
        };
        next = if flags { value.checked_mul(2) } else { value.checked_add(1) };
        members.push((name.to_owned(), value));
    }
    members
}
