//! Value types of CORBA as shapes.
//!
//! A value type is an optional value: null, or a struct of its members, those of its base first. A value box is an optional
//! of what is in it. What only GIOP and OMG IDL need beside that stands in a remark on the content (an alias without a name,
//! which others look through): `#value KIND ID ...` has for each type, the most derived one first, its repository id and how its own
//! members are seen (`u`, public, or `r`, private), behind a `t` if a value may be cut down to the next type, or an `n`;
//! `#valuebox ID NAME` is a box.

use crate::contract::{Contract, Definition};
use crate::shape::{Alias, Hold, Name, Shape};
use std::borrow::Cow;

const STATE: &str = "#value ";
const BOX: &str = "#valuebox ";

/// What a value type is, apart from its content.
#[derive(Debug, Clone, Copy)]
pub enum ValueType<'s> {
    /// It has members. The types from its own to its furthest base.
    State(Levels<'s>),
    /// It holds a value of another type.
    Boxed {
        /// Repository id.
        id: &'s str,
        /// Scoped name.
        name: &'s str,
    },
}

/// A type and its bases, the most derived first.
#[derive(Debug, Clone, Copy)]
pub struct Levels<'s>(&'s str);

/// One of these types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level<'s> {
    /// Repository id.
    pub id: &'s str,
    /// Whether a value of it may be cut down to the next type.
    pub truncatable: bool,
    /// A letter for each of its own members: `u` for a public one, `r` for a private one.
    pub members: &'s str,
}

impl<'s> Iterator for Levels<'s> {
    type Item = Level<'s>;

    fn next(&mut self) -> Option<Level<'s>> {
        let mut words = self.0.splitn(3, ' ');
        let (kind, id) = (words.next()?, words.next()?);
        self.0 = words.next().unwrap_or_default();
        let members = kind.get(1..)?;
        Some(Level { id, truncatable: kind.starts_with('t'), members })
    }
}

impl<'s> ValueType<'s> {
    /// What an optional value was remarked to be; nothing, if it is no value type.
    pub fn of(content: &'s Shape) -> Option<Self> {
        let Shape::Alias(held) = content else { return None };
        if !held.name.is_empty() {
            return None;
        }
        if let Some(levels) = held.id.strip_prefix(STATE) {
            return Some(Self::State(Levels(levels)));
        }
        let (id, name) = held.id.strip_prefix(BOX)?.split_once(' ')?;
        Some(Self::Boxed { id, name })
    }

    /// Its repository id.
    pub fn id(&self) -> &'s str {
        match self {
            Self::Boxed { id, .. } => id,
            Self::State(levels) => { *levels }.next().map_or("", |level| level.id),
        }
    }

    /// The types that a value of it tells, its own first: one, or with all to which it may be cut down.
    pub fn told(&self) -> impl Iterator<Item = &'s str> + use<'s> {
        let levels = match self {
            Self::State(levels) => *levels,
            Self::Boxed { .. } => Levels(""),
        };
        let mut goes_on = true;
        let bases = levels.map_while(move |level| {
            let told = goes_on.then_some(level.id);
            goes_on = level.truncatable;
            told
        });
        std::iter::once(self.id()).chain(bases.skip(1))
    }
}

/// The content of a value type with members. `levels` has its own type first; no id has a space in it.
pub fn of_members(levels: &[Level<'_>], members: Shape) -> Shape {
    let mut id = STATE.to_owned();
    for level in levels {
        if id.len() > STATE.len() {
            id.push(' ');
        }
        id.push(if level.truncatable { 't' } else { 'n' });
        id.push_str(level.members);
        id.push(' ');
        id.push_str(level.id);
    }
    remarked(id, members)
}

/// The content of a value box.
pub fn of_box(id: &str, name: &str, content: Shape) -> Shape {
    remarked(format!("{BOX}{id} {name}"), content)
}

fn remarked(id: String, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: Name::default(), id: id.into(), target }))
}

/// The contract with plain structs where value types are defined, for those who look no further: uses of them are optional.
pub fn as_structs(contract: &Contract) -> Cow<'_, Contract> {
    let of_value = |definition: &Definition| match definition {
        Definition::Type(shape) if ValueType::of(shape).is_some() => {
            Some(Definition::Type(shape.resolved().clone()))
        }
        _ => None,
    };
    if !contract.definitions.iter().any(|definition| of_value(definition).is_some()) {
        return Cow::Borrowed(contract);
    }
    let definitions = contract.definitions.iter().map(|held| of_value(held).unwrap_or_else(|| held.clone()));
    Cow::Owned(Contract { definitions: definitions.collect() })
}
