//! Values whose own type the contract does not know: what their elements show of it.
//!
//! A value of any type names a type that is neither plain nor in the contract. So the element is looked
//! through once, a shape is made of what stands in it, and the value is read by that shape: texts stay
//! text, repeated elements become lists, all else structs with the names that were found.
//!
//! States: none. Invariants: nothing is lost: what a struct cannot say (attributes, text beside elements,
//! lists beside members) makes the value one text, the XML in the element.

use super::derived::is_placed;
use super::state::ElementSource;
use crate::limits::MAX_NAME;
use crate::nbfx::Item;
use crate::text::is_local;
use crate::values::cursor::{AttributeText, Cursor, TypeName};
use crate::values::names;
use crate::violations::{Violation, unsupported};
use everywire_model::Kind;
use everywire_model::shape::{Field, Hold, Shape, Struct, Text};
use everywire_model::visit::Visit;
use std::collections::HashMap;

/// What is around the element that is looked at.
struct OuterScope {
    /// Where the content of the outermost one begins.
    at: usize,
    /// The open elements, from that one on.
    scope: Vec<AttributeText>,
    /// What prefixes stand for around them, as far as that was asked.
    known: HashMap<String, String>,
}

/// What an element turned out to hold.
/// `both` joins what two elements of one name showed.
#[derive(Default)]
enum ElementContent {
    #[default]
    Nothing,
    Leaf,
    Numbers(Item),
    /// Something that tells its own type.
    Any,
    Elements(Elements),
}

/// The elements in an element.
#[derive(Default)]
struct Elements {
    /// The namespace of the first one, if it was looked for.
    namespace: String,
    /// Their names, each once, and how often it comes.
    members: Vec<(String, usize, ElementContent)>,
}

impl Elements {
    /// An element of this name came so often at once, and showed this.
    fn add(&mut self, name: &str, count: impl FnOnce(usize) -> usize, seen: ElementContent) -> Visit<()> {
        let all = self.members.len();
        match self.members.iter_mut().find(|(known, ..)| known == name) {
            Some((_, held, before)) => {
                *held = count(*held);
                *before = both(std::mem::take(before), seen)?;
            }
            // Names are looked for one after the other: there may not be too many.
            None if all >= MAX_MEMBERS => {
                return Err(unsupported("a value of unknown type with that many members"));
            }
            None => self.members.push((name.to_owned(), count(0), seen)),
        }
        Ok(())
    }
}

impl<'a, C: Cursor<'a>> ElementSource<'a, C> {
    /// The shape of the value in the element that was entered, whose type is called this: that of the contract if it has one
    /// of the name and namespace, else one with what the element holds, all of its leaves as text.
    pub(super) fn shape_of(&mut self, at: usize, local: &str) -> Visit<Shape> {
        if local.len() > MAX_NAME {
            return Err(unsupported("a type whose name is that long"));
        }
        if !is_local(local) {
            return self.wrong(Violation::BadName);
        }
        let types = self.reading.types.as_ref().map(|types| types.named(local)).unwrap_or_default();
        let place = (self.cursor.position(), self.cursor.depth());
        if !types.is_empty() {
            let told = self.frames.last().and_then(|frame| frame.entered.as_ref()?.kind.as_ref());
            let prefix = told.map_or("", TypeName::prefix);
            let namespace = self.cursor.resolve(prefix, place.0, &mut self.budget)?;
            let namespace = namespace.ok_or_else(|| Violation::UnknownPrefix.at(place.0))?;
            let found = types.iter().find(|(known, _)| **known == *namespace);
            // A type of which no namespace is known is known by its name.
            if let Some((_, shape)) = found.or_else(|| types.iter().find(|(_, shape)| !is_placed(shape))) {
                return Ok(shape.clone());
            }
        }
        let (namespace, told) = self.namespace_told(at)?;
        let markup = Some((&*namespace, local));
        if self.cursor.is_marked()? {
            return Ok(names::markup(markup));
        }
        let mut outside = OuterScope { at: place.0, scope: vec![told], known: HashMap::new() };
        let seen = self.look(Some(&mut outside));
        self.cursor.seek(place.0, place.1);
        let shape = or_markup(seen.and_then(|seen| shape(seen, local, &namespace)), markup)?;
        // An enumeration that no operation names, perhaps: whoever gets the text again knows the type.
        Ok(if matches!(shape, Shape::Text(_)) { names::told(&namespace, local, shape) } else { shape })
    }

    /// The namespace of the type that the element tells which starts at this offset, and where it says so.
    pub(super) fn namespace_told(&mut self, at: usize) -> Visit<(String, AttributeText)> {
        let told = self.cursor.told(at, "type")?;
        let prefix = told.value.split_once(':').map_or("", |(prefix, _)| prefix.trim());
        Ok((self.declared(&told, prefix)?, told))
    }

    /// The shape of the value in the element of this name that was entered, which starts at this offset and whose type nobody
    /// tells: it is called as if it were in the namespace of its elements.
    pub(super) fn shape_without_type(&mut self, at: usize, local: &str) -> Visit<Shape> {
        let place = (self.cursor.position(), self.cursor.depth());
        if !is_local(local) {
            return self.wrong(Violation::BadName);
        }
        if self.cursor.is_marked()? {
            return Ok(names::markup(None));
        }
        let told = self.cursor.told(at, "type")?;
        let mut outside = OuterScope { at: place.0, scope: vec![told], known: HashMap::new() };
        let seen = self.look(Some(&mut outside));
        self.cursor.seek(place.0, place.1);
        or_markup(seen.and_then(|seen| shape(seen, local, "")), None).map(names::untold)
    }

    /// What a prefix stands for in the open element, which has this attribute; nothing if it is empty.
    pub(super) fn declared(&mut self, told: &AttributeText, prefix: &str) -> Visit<String> {
        match told.declared.iter().find(|(known, _)| known == prefix) {
            Some((_, namespace)) => Ok(namespace.clone()),
            None => {
                let at = self.cursor.position();
                Ok(self.cursor.namespace(prefix, at, &mut self.budget)?.unwrap_or_default())
            }
        }
    }

    /// What a prefix stands for in the element that was entered last.
    fn inherited(&mut self, outside: &mut OuterScope, prefix: &str) -> Visit<String> {
        let declared = outside.scope.iter().rev().flat_map(|told| &told.declared);
        if let Some((_, namespace)) = declared.into_iter().find(|(known, _)| known == prefix) {
            return Ok(namespace.clone());
        }
        if let Some(namespace) = outside.known.get(prefix) {
            return Ok(namespace.clone());
        }
        let namespace = self.cursor.namespace(prefix, outside.at, &mut self.budget)?.unwrap_or_default();
        outside.known.insert(prefix.to_owned(), namespace.clone());
        Ok(namespace)
    }

    /// Looks through the open element, to its end; for its namespace only if it is the first of its kind, which has an outside.
    fn look(&mut self, mut outside: Option<&mut OuterScope>) -> Visit<ElementContent> {
        self.budget.enter()?;
        let mut elements = Elements::default();
        let mut numbers = None;
        loop {
            if let Some(child) = self.cursor.enter()? {
                self.budget.charge_elements(1)?;
                // Namespaces are looked for in the first element of each name only: the others are like it.
                let is_new = !elements.members.iter().any(|(name, ..)| *name == child.name);
                let mut within = outside.as_deref_mut().filter(|_| is_new);
                if let Some(outside) = &mut within {
                    let told = self.cursor.told(child.at, "type")?;
                    let prefix = told.element.clone();
                    outside.scope.push(told);
                    if elements.members.is_empty() {
                        elements.namespace = self.inherited(outside, &prefix)?;
                    }
                }
                let is_within = within.is_some();
                let seen = if child.nil || child.kind.is_some() {
                    self.cursor.finish()?;
                    if child.nil { ElementContent::Nothing } else { ElementContent::Any }
                } else {
                    self.look(within)?
                };
                if is_within && let Some(outside) = &mut outside {
                    outside.scope.pop();
                }
                // Of names in binary form nobody has said what is in them; these may be written as text.
                if is_new && !is_local(child.name) {
                    return self.wrong(Violation::BadName);
                }
                elements.add(child.name, |count| count + 1, seen)?;
            } else if let Some(run) = self.cursor.array()? {
                // Without items it says nothing.
                numbers = Some(run.kind).filter(|_| !run.data.is_empty()).or(numbers);
            } else {
                break;
            }
        }
        self.cursor.finish()?;
        self.budget.leave();
        Ok(match numbers {
            Some(item) if elements.members.is_empty() => ElementContent::Numbers(item),
            Some(_) => {
                return Err(unsupported("a value of unknown type that has numbers beside other members"));
            }
            None if elements.members.is_empty() => ElementContent::Leaf,
            None => ElementContent::Elements(elements),
        })
    }
}

/// Members of a value whose type is unknown.
/// They are searched one after the other.
const MAX_MEMBERS: usize = 256;

/// A shape, or text that stands for elements where no shape can say what they are.
fn or_markup(shape: Visit<Shape>, told: Option<(&str, &str)>) -> Visit<Shape> {
    match shape {
        Err(failure) if failure.kind() == Kind::Unsupported => Ok(names::markup(told)),
        other => other,
    }
}

/// What two elements of one name have in common.
fn both(one: ElementContent, other: ElementContent) -> Visit<ElementContent> {
    Ok(match (one, other) {
        (ElementContent::Nothing, seen) | (seen, ElementContent::Nothing) => seen,
        (ElementContent::Leaf, ElementContent::Leaf) => ElementContent::Leaf,
        (ElementContent::Any, ElementContent::Any) => ElementContent::Any,
        // An element without anything in it may hold no elements as well as no text.
        (ElementContent::Elements(seen), ElementContent::Leaf)
        | (ElementContent::Leaf, ElementContent::Elements(seen)) => ElementContent::Elements(seen),
        (ElementContent::Elements(mut one), ElementContent::Elements(other)) => {
            for (name, count, seen) in other.members {
                one.add(&name, |most| most.max(count), seen)?;
            }
            ElementContent::Elements(one)
        }
        _ => return Err(unsupported("a value of unknown type whose elements of one name are not alike")),
    })
}

/// A shape that reads it, called like this.
fn shape(seen: ElementContent, local: &str, namespace: &str) -> Visit<Shape> {
    Ok(match seen {
        ElementContent::Nothing => Shape::Optional(Hold::new(text())),
        ElementContent::Leaf => text(),
        ElementContent::Any => Shape::Variant,
        ElementContent::Numbers(item) => Shape::sequence(number(item)),
        ElementContent::Elements(Elements { namespace: inner, members: mut elements }) => {
            // The type's members are in its namespace; those in none are where it is.
            let inner = if inner.is_empty() { namespace } else { &*inner };
            let is_list = local.starts_with("ArrayOf") || elements.iter().any(|(_, count, _)| *count > 1);
            if is_list {
                return match (elements.pop(), elements.is_empty()) {
                    (Some((name, _, seen)), true) => Ok(Shape::sequence(shape(seen, &name, inner)?)),
                    _ => Err(unsupported("a value of unknown type that has lists beside other members")),
                };
            }
            let fields = elements.into_iter().map(|(name, _, seen)| {
                let shape = shape(seen, &name, inner)?;
                Ok(Field { name: name.into(), shape })
            });
            Shape::Struct(Hold::new(Struct {
                name: local.to_owned().into(),
                id: format!("{{{inner}}}{local}").into(),
                fields: fields.collect::<Visit<Vec<_>>>()?.into(),
            }))
        }
    })
}

fn text() -> Shape {
    Shape::Text(Text::WIDE)
}

fn number(item: Item) -> Shape {
    match item {
        Item::Bool => Shape::Bool,
        Item::I16 => Shape::I16,
        Item::I32 => Shape::I32,
        Item::I64 => Shape::I64,
        Item::F32 => Shape::F32,
        Item::F64 => Shape::F64,
        Item::Decimal | Item::DateTime | Item::TimeSpan | Item::Uuid => text(),
    }
}
