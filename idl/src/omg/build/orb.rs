//! Plain types of the module CORBA that contracts use and no file defines.
//!
//! The `orb.idl` of the specification has sequences of the basic types there (`CORBA::StringSeq` and its like). Contracts of TAO and
//! others use them. Each is defined when a contract first names it, so that contracts have no definitions that they do not need.

use super::super::ast::{Ident, ScopedName};
use super::super::ids::join;
use super::super::limits;
use super::Builder;
use super::named_item::{NamedItem, Typed};
use super::names::Symbol;
use everywire_model::shape::{Alias, Name, Order, Sequence, Text, TextKind};
use everywire_model::{Definition, Hold, Shape};
use std::mem::discriminant;

/// What the sequence of this name in the module CORBA has as elements.
fn element(name: &str) -> Option<Shape> {
    Some(match name {
        "AnySeq" => Shape::Variant,
        "BooleanSeq" => Shape::Bool,
        "CharSeq" => Shape::Char,
        "WCharSeq" => Shape::WideChar,
        "OctetSeq" => Shape::U8,
        "ShortSeq" => Shape::I16,
        "UShortSeq" => Shape::U16,
        "LongSeq" => Shape::I32,
        "ULongSeq" => Shape::U32,
        "LongLongSeq" => Shape::I64,
        "ULongLongSeq" => Shape::U64,
        "FloatSeq" => Shape::F32,
        "DoubleSeq" => Shape::F64,
        "StringSeq" => Shape::Text(Text { kind: TextKind::Narrow, bound: None }),
        "WStringSeq" => Shape::Text(Text { kind: TextKind::Wide, bound: None }),
        _ => return None,
    })
}

/// Whether every `orb.idl` has this type, with this meaning: one of the sequences, or one of the plain types that are read for it.
pub(in crate::omg) fn is_of_the_orb(shape: &Shape) -> bool {
    let Shape::Alias(alias) = shape else { return false };
    let Some(plain) = alias.name.strip_prefix("CORBA::") else { return false };
    let text = Shape::Text(Text { kind: TextKind::Narrow, bound: None });
    let means = match plain {
        "Identifier" | "RepositoryId" | "ScopedName" => same(&alias.target, &text),
        "PolicyType" => same(&alias.target, &Shape::U32),
        _ => element(plain).is_some_and(|wanted| match &alias.target {
            Shape::Sequence(sequence) => sequence.bound.is_none() && same(&sequence.element, &wanted),
            _ => false,
        }),
    };
    means && alias.id.strip_prefix("IDL:omg.org/CORBA/").and_then(|id| id.strip_suffix(":1.0")) == Some(plain)
}

/// Whether two types without names inside are the same.
fn same(one: &Shape, other: &Shape) -> bool {
    match (one, other) {
        (Shape::Text(one), Shape::Text(other)) => one.kind == other.kind && one.bound == other.bound,
        (Shape::Sequence(one), Shape::Sequence(other)) => {
            one.bound == other.bound && same(&one.element, &other.element)
        }
        (
            Shape::Variant
            | Shape::Bool
            | Shape::Char
            | Shape::WideChar
            | Shape::U8
            | Shape::I16
            | Shape::U16,
            _,
        )
        | (Shape::I32 | Shape::U32 | Shape::I64 | Shape::U64 | Shape::F32 | Shape::F64, _) => {
            discriminant(one) == discriminant(other)
        }
        _ => false,
    }
}

impl Builder<'_> {
    /// Defines what a name means that is one of these types and was found nowhere. The key of the new symbol.
    pub(super) fn of_the_orb(&mut self, name: &ScopedName) -> Option<String> {
        let plain = match name.parts.as_slice() {
            [module, plain] if module.name == "CORBA" => plain,
            [plain] if !name.absolute && self.scopes.first().is_some_and(|scope| scope.name == "CORBA") => {
                plain
            }
            _ => return None,
        };
        let text = match plain.name.as_str() {
            "StringValue" => Some(Text::NARROW),
            "WStringValue" => Some(Text::WIDE),
            _ => None,
        };
        let element = text.map(Shape::Text).or_else(|| element(&plain.name))?;
        let full = join("CORBA", &plain.name);
        let key = full.to_ascii_lowercase();
        let is_full = self.definitions.len() >= limits::DEFINITIONS || self.symbols.len() >= limits::NODES;
        if is_full || self.symbols.contains_key(&key) {
            return None;
        }
        let module = self.symbols.entry("corba".to_owned()).or_insert_with(|| Symbol {
            name: "CORBA".to_owned(),
            span: plain.span,
            what: NamedItem::Module,
        });
        if module.name != "CORBA" || !matches!(module.what, NamedItem::Module) {
            return None;
        }
        let (id, named) =
            (Name::from(format!("IDL:omg.org/CORBA/{}:1.0", plain.name)), Name::from(full.clone()));
        let shape = if text.is_some() {
            super::values::boxed(named, id, element)
        } else {
            let sequence = Sequence { element, bound: None, order: Order::Free, size: None };
            let target = Shape::Sequence(Hold::new(sequence));
            Shape::Alias(Hold::new(Alias { name: named, id, target }))
        };
        self.definitions.push(Definition::Type(shape.clone()));
        let what = NamedItem::Type(Typed { shape, depth: 2, complete: true });
        self.symbols.insert(key.clone(), Symbol { name: full, span: plain.span, what });
        Some(key)
    }

    /// Whether the module CORBA has this type already, with the same meaning. Files of ORBs define the types that we define for
    /// `orb.idl`, before it or behind it (TAO's `Policy.pidl`).
    pub(super) fn is_told_again(&self, ident: &Ident, target: &Shape) -> bool {
        let key = join(self.scope(), &ident.name).to_ascii_lowercase();
        self.scope() == "CORBA"
            && self.symbols.get(&key).is_some_and(|symbol| match &symbol.what {
                NamedItem::Type(Typed { shape: Shape::Alias(alias), .. }) => {
                    alias.name.rsplit("::").next() == Some(ident.name.as_str()) && same(&alias.target, target)
                }
                _ => false,
            })
    }
}
