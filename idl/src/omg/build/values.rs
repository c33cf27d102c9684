//! Value types (CORBA 3.0, 3.9): optional structs, whose remark says what only GIOP and OMG IDL need (`everywire_model::value_type`).
//!
//! Of a value type its members travel, those of its base first. Operations, factories and supported interfaces do not, so they are
//! read over, and their types may be what they like. An abstract base adds nothing.
//!
//! Others may hold the cell of a value type before it is known. If it cannot be made in the end, the cell is filled with what no wire
//! of OMG IDL carries: calls that need it fail by its name, and the rest of the contract can be used.

use super::super::ast::{Ident, ItemKind, TypeSpec, ValueType};
use super::super::ids::join;
use super::super::parser::ABSTRACT_VALUE;
use super::Builder;
use super::named_item::{NamedItem, Typed};
use crate::report::Problem;
use everywire_model::shape::{self, Alias, Field, Name};
use everywire_model::value_type::{self, Level};
use everywire_model::{Definition, Hold, Shape};
use std::borrow::Cow;
use std::rc::Rc;

/// The base of a value type: its fields, its remark, its scoped name, its depth.
struct Base {
    fields: Vec<Field>,
    content: Shape,
    name: String,
    depth: usize,
}

impl Builder<'_> {
    /// A value type with members.
    pub(super) fn value(&mut self, value: &ValueType) -> Option<()> {
        self.open(&value.ident, "valuetype")?;
        let made = self.members_of(value);
        if made.is_none() {
            self.give_up(&value.ident.name);
        }
        let (content, depth) = made.map_or((None, 1), |(content, depth)| (Some(content), depth));
        let typed = self.close(&value.ident, content, depth, Shape::Optional, |shape| match shape {
            Shape::Optional(Hold::Later(cell)) => Some(*cell),
            _ => None,
        })?;
        // What is defined is the value itself, as it is where it is not null.
        if let (Some(last), Shape::Optional(content)) = (self.definitions.last_mut(), typed.shape) {
            *last = Definition::Type((*content).clone());
        }
        Some(())
    }

    /// The content of a value type, and its depth.
    fn members_of(&mut self, value: &ValueType) -> Option<(Shape, usize)> {
        let (name, id) = self.identity(&value.ident.name);
        let base = self.base(value)?;
        let (mut fields, inherited) = match &base {
            Some(base) => (base.fields.clone(), base.depth),
            None => (Vec::new(), 0),
        };
        let ancestors: Rc<[String]> = match &base {
            Some(base) => {
                let further =
                    self.value_bases.get(&base.name.to_ascii_lowercase()).cloned().unwrap_or_default();
                std::iter::once(base.name.clone()).chain(further.iter().cloned()).collect()
            }
            None => Rc::default(),
        };
        self.value_bases.insert(name.to_ascii_lowercase(), Rc::clone(&ancestors));
        let (members, depth) = self.inside(&value.ident.name, ancestors, |b| {
            let (mut members, mut depth, mut lacking, mut broken) = (String::new(), inherited, None, false);
            for item in &value.items {
                match &item.kind {
                    ItemKind::StateMember(public, spec, declarators) => {
                        b.lacking = None;
                        let typed = b.spec(spec);
                        for declarator in declarators {
                            let declared = b.declare(&declarator.ident, NamedItem::Member).is_some();
                            let whole =
                                typed.clone().and_then(|typed| b.inline(typed, spec.span, declarator));
                            let Some(whole) = whole.filter(|_| declared) else {
                                broken = true;
                                lacking = lacking.or_else(|| b.lacking.clone());
                                continue;
                            };
                            depth = depth.max(whole.depth);
                            members.push(if *public { 'u' } else { 'r' });
                            fields.push(Field {
                                name: declarator.ident.name.clone().into(),
                                shape: whole.shape,
                            });
                        }
                    }
                    _ => {
                        b.item(item);
                    }
                }
            }
            b.lacking = lacking;
            (!broken).then_some((members, depth))
        })?;
        let depth = self.deeper(depth, value.ident.span)?;
        let mut levels =
            vec![Level { id: &id, truncatable: value.truncatable && base.is_some(), members: &members }];
        if let Some(value_type::ValueType::State(bases)) =
            base.as_ref().and_then(|base| value_type::ValueType::of(&base.content))
        {
            levels.extend(bases);
        }
        let body = shape::Struct { name, id: id.clone(), fields: Cow::Owned(fields) };
        Some((value_type::of_members(&levels, Shape::Struct(Hold::new(body))), depth))
    }

    /// The base with members, which is the first one if any is. None after a mistake, or where it is not supported.
    fn base(&mut self, value: &ValueType) -> Option<Option<Base>> {
        let mut found = None;
        for name in &value.bases {
            self.lacking = None;
            match self.resolve(name) {
                Some(NamedItem::Type(typed)) if state(&typed.shape).is_some() => {
                    let content = state(&typed.shape)?.clone();
                    found = Some(Base {
                        fields: content.fields().to_vec(),
                        name: content.resolved().noun().into_owned(),
                        content,
                        depth: typed.depth,
                    });
                }
                // It has no members.
                None if self.lacking.as_deref().is_some_and(|what| what.starts_with(ABSTRACT_VALUE)) => {}
                None => return None,
                Some(other) => {
                    let message =
                        format!("`{}` is {}, not a value type that is complete", name.text(), other.noun());
                    self.report.add(Problem::new(name.span, message));
                    return None;
                }
            }
        }
        self.lacking = None;
        Some(found)
    }

    /// A type whose values are those of another, or null.
    pub(super) fn value_box(&mut self, ident: &Ident, spec: &TypeSpec) -> Option<()> {
        let typed = self.spec(spec).and_then(|typed| self.not_void(typed, spec.span));
        let (name, id) = self.identity(&ident.name);
        let what = match typed {
            Some(typed) => {
                let shape = boxed(name, id, typed.shape);
                NamedItem::Type(Typed { shape, depth: self.deeper(typed.depth, spec.span)?, complete: true })
            }
            None => NamedItem::Broken,
        };
        let defined = match &what {
            NamedItem::Type(typed) => Some(typed.shape.clone()),
            _ => None,
        };
        self.declare(ident, what)?;
        match defined {
            Some(shape) => self.definitions.push(Definition::Type(shape)),
            None => self.lacks_too(&ident.name),
        }
        Some(())
    }

    /// A value type that was announced is left out, or has a mistake.
    pub(super) fn give_up(&mut self, name: &str) {
        let key = join(self.scope(), name).to_ascii_lowercase();
        if let Some(symbol) = self.symbols.get_mut(&key)
            && let NamedItem::Open { keyword: "valuetype", shape } = &symbol.what
        {
            fill(&symbol.name, shape.as_ref());
            symbol.what = NamedItem::Broken;
        }
    }
}

/// What a value type with members holds, whatever the type is called; none for other types and for one that is not complete.
fn state(shape: &Shape) -> Option<&Shape> {
    let Shape::Optional(content) = shape.resolved() else { return None };
    let content = content.get()?;
    match value_type::ValueType::of(content) {
        Some(value_type::ValueType::State(_)) => Some(content),
        Some(_) => None,
        None => Some(content).filter(|content| !content.fields().is_empty()),
    }
}

/// The shape of a value box.
pub(super) fn boxed(name: Name, id: Name, content: Shape) -> Shape {
    let content = value_type::of_box(&id, &name, content);
    Shape::Alias(Hold::new(Alias { name, id, target: Shape::Optional(Hold::new(content)) }))
}

/// Fills the cell of a value type that cannot be made with what CDR does not carry.
pub(super) fn fill(name: &str, shape: Option<&Shape>) {
    if let Some(Shape::Optional(Hold::Later(cell))) = shape {
        let alias = Alias { name: name.to_owned().into(), id: Name::default(), target: Shape::Handle };
        let _ = cell.set(Shape::Alias(Hold::new(alias)));
    }
}
