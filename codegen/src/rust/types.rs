//! Shapes as types of Rust.
//!
//! Three ways of writing one shape: `owned` for a value that is held, `parameter` for one that is lent to a
//! call, `result` for one that comes back, where references are typed. A shape means the same type in all
//! modules, only its path differs (`from`).
//!
//! What a value can be null in the contract becomes an `Option`. Pointers become boxes, since they may point
//! back; a member that may hold its own struct is boxed as well. Octets are `Bytes`, which are shared and not
//! copied.

use super::definitions::is_tuple;
use super::plan::Plan;
use everywire_model::Shape;
use everywire_model::shape::{Map, PointerKind, Struct};

/// Which of the two traits of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TraitKind {
    /// The blocking trait.
    Blocking,
    /// The asynchronous trait.
    Asynchronous,
}

/// How types are written in one module.
#[derive(Clone, Copy)]
pub(super) struct Types<'p, 'c> {
    pub(super) plan: &'p Plan<'c>,
    /// Path of the module.
    pub(super) from: &'p [String],
    pub(super) trait_kind: TraitKind,
}

impl Types<'_, '_> {
    /// The type that holds a value of this shape: in fields, elements, arms. Aliases that the contract
    /// defines are written by their names.
    pub(super) fn owned(&self, shape: &Shape) -> String {
        match shape {
            Shape::Void => "()".into(),
            Shape::Bool => "bool".into(),
            Shape::U8 => "u8".into(),
            Shape::I8 => "i8".into(),
            Shape::U16 => "u16".into(),
            Shape::I16 => "i16".into(),
            Shape::U32 => "u32".into(),
            Shape::I32 => "i32".into(),
            Shape::U64 => "u64".into(),
            Shape::I64 => "i64".into(),
            Shape::F32 => "f32".into(),
            Shape::F64 => "f64".into(),
            Shape::Char | Shape::WideChar => "char".into(),
            Shape::Text(_) => "String".into(),
            Shape::Struct(shape) => self.record(shape),
            Shape::Union(shape) => self.named(&shape.name).unwrap_or_else(|| unknown(&shape.name)),
            Shape::Enum(shape) => self.named(&shape.name).unwrap_or_else(|| unknown(&shape.name)),
            Shape::Sequence(sequence) => match sequence.element.resolved() {
                Shape::U8 => "ew::Bytes".into(),
                _ => format!("Vec<{}>", self.owned(&sequence.element)),
            },
            Shape::Array(array) => format!("[{}; {}]", self.owned(&array.element), array.len),
            Shape::Map(map) => self.map(map),
            Shape::Optional(target) => format!("Option<{}>", self.owned(target)),
            // A reference pointer is never null.
            Shape::Pointer(pointer) if pointer.kind == PointerKind::Ref => {
                format!("Box<{}>", self.owned(&pointer.target))
            }
            Shape::Pointer(pointer) => format!("Option<Box<{}>>", self.owned(&pointer.target)),
            Shape::Variant => "ew::Variant".into(),
            Shape::TypeCode => "ew::TypeCode".into(),
            Shape::Reference(_) => "Option<ew::Reference>".into(),
            Shape::Handle => "ew::Handle".into(),
            Shape::Alias(alias) => self.named(&alias.name).unwrap_or_else(|| self.owned(&alias.target)),
        }
    }

    /// The type of a member of the struct with this name. Where it may hold the struct again, it is kept in a box.
    pub(super) fn member(&self, of: &str, shape: &Shape) -> String {
        match shape {
            Shape::Alias(alias) if alias.name.is_empty() => self.member(of, &alias.target),
            Shape::Optional(target) if !of.is_empty() && self.plan.graph.contains(target, of) => {
                format!("Option<Box<{}>>", self.owned(target))
            }
            _ => self.owned(shape),
        }
    }

    /// A struct by its name, or as a tuple.
    fn record(&self, shape: &Struct) -> String {
        if is_tuple(shape) {
            let fields: Vec<_> = shape.fields.iter().map(|field| self.owned(&field.shape)).collect();
            return tuple(&fields);
        }
        match self.plan.find_struct(shape) {
            Some(place) => Plan::path(self.from, &place.path, &place.name),
            None => unknown(&shape.name),
        }
    }

    /// A map, or the pairs of one whose keys have no order. Keys with fractions, and structs, have no order.
    fn map(&self, map: &Map) -> String {
        let (key, value) = (self.owned(&map.key), self.owned(&map.value));
        if ordered(&map.key) { format!("BTreeMap<{key}, {value}>") } else { format!("Vec<({key}, {value})>") }
    }

    /// The type of a result, or of a parameter passed by value: references are typed.
    pub(super) fn result(&self, shape: &Shape) -> String {
        match self.referent(shape) {
            Some(interface) => format!("Option<ew::Ref<dyn {interface}>>"),
            None => self.owned(shape),
        }
    }

    /// The type of an in or inout parameter. What is small is passed by value; what has parts, by reference.
    pub(super) fn parameter(&self, shape: &Shape) -> String {
        match shape.resolved() {
            Shape::Text(_) => "&str".into(),
            Shape::Sequence(sequence) if !is_octet(&sequence.element) => {
                format!("&[{}]", self.owned(&sequence.element))
            }
            Shape::Map(map) if !ordered(&map.key) => {
                format!("&[({}, {})]", self.owned(&map.key), self.owned(&map.value))
            }
            Shape::Optional(_)
            | Shape::Pointer(_)
            | Shape::Struct(_)
            | Shape::Union(_)
            | Shape::Array(_)
            | Shape::Map(_)
            | Shape::Variant
            | Shape::TypeCode => {
                format!("&{}", self.owned(shape))
            }
            _ => self.result(shape),
        }
    }

    /// The trait behind a reference that is a parameter or a result, if the contract defines it. It is the
    /// trait of the kind that is being written.
    pub(super) fn referent(&self, shape: &Shape) -> Option<String> {
        let Shape::Reference(referent) = shape.resolved() else { return None };
        let (_, family) = self.plan.interface(&referent.name)?;
        let place = self.plan.find(&referent.name)?;
        let name = match self.trait_kind {
            TraitKind::Blocking => &family.blocking,
            TraitKind::Asynchronous => &family.asynchronous,
        };
        Some(Plan::path(self.from, &place.path, name))
    }

    /// The path to a named type. None where it is not defined, or only a spelling.
    pub(super) fn named(&self, name: &str) -> Option<String> {
        let place = self.plan.find(name).filter(|place| place.shown)?;
        Some(Plan::path(self.from, &place.path, &place.name))
    }
}

/// A tuple of this many parts. A tuple of one needs a comma.
pub(super) fn tuple(parts: &[String]) -> String {
    match parts {
        [one] => format!("({one},)"),
        several => format!("({})", several.join(", ")),
    }
}

/// Whether a list of these is `Bytes`.
fn is_octet(shape: &Shape) -> bool {
    matches!(shape.resolved(), Shape::U8)
}

/// A type that the contract uses and does not define: the compiler will say so in these words.
fn unknown(name: &str) -> String {
    format!("{}NotInThisContract", crate::names::camel(name))
}

/// Whether values of this shape have an order, and so can be keys. It must say so only of types that
/// implement `Ord`.
fn ordered(shape: &Shape) -> bool {
    match shape.resolved() {
        Shape::Bool
        | Shape::U8
        | Shape::I8
        | Shape::U16
        | Shape::I16
        | Shape::U32
        | Shape::I32
        | Shape::U64
        | Shape::I64
        | Shape::Char
        | Shape::WideChar
        | Shape::Text(_)
        | Shape::Enum(_) => true,
        Shape::Struct(shape) => is_tuple(shape) && shape.fields.iter().all(|field| ordered(&field.shape)),
        Shape::Sequence(shape) => ordered(&shape.element),
        Shape::Array(shape) => ordered(&shape.element),
        Shape::Optional(target) => ordered(target),
        _ => false,
    }
}
