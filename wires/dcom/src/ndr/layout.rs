//! What a shape alone tells about its bytes: alignment, least size, pointers, conformance.

use everywire_model::shape::{Enum, Order, Sequence, Shape, Struct};

/// Where a value stands, which decides how strings, sequences and pointers are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A parameter.
    Top,
    /// Directly behind a pointer.
    Behind,
    /// Inside a struct, array or union.
    Within,
    /// The last field of a struct whose conformance was moved to the front.
    Tail,
    /// The content of a VARIANT.
    Arm,
}

/// Bytes of an enumeration.
pub(super) fn enum_width(shape: &Enum) -> usize {
    if shape.bits == 16 { 2 } else { 4 }
}

/// Alignment of a value inside a struct or array; `tail` says whether a sequence here belongs to the struct itself.
pub(super) fn alignment(shape: &Shape, tail: bool) -> usize {
    match shape.resolved() {
        Shape::Void | Shape::Char | Shape::Alias(_) => 1,
        Shape::WideChar => 2,
        Shape::Enum(shape) => enum_width(shape),
        Shape::Struct(shape) => {
            let last = shape.fields.len().saturating_sub(1);
            let fields = shape.fields.iter().enumerate();
            fields.map(|(index, field)| alignment(&field.shape, tail && index == last)).max().unwrap_or(1)
        }
        Shape::Union(shape) => {
            let arms = shape.arms.iter().map(|arm| alignment(&arm.field.shape, false));
            arms.max().unwrap_or(1).max(alignment(&shape.discriminator, false))
        }
        Shape::Array(shape) => alignment(&shape.element, false),
        Shape::Sequence(shape) if shape.order == Order::Varying => alignment(&shape.element, false).max(4),
        Shape::Sequence(shape) if tail => alignment(&shape.element, false),
        shape => shape.width().unwrap_or(4),
    }
}

/// The fewest bytes that a value inside an array takes, padding apart.
pub(super) fn least(shape: &Shape) -> usize {
    match shape.resolved() {
        Shape::Void | Shape::Alias(_) => 0,
        Shape::Char => 1,
        Shape::WideChar => 2,
        Shape::Enum(shape) => enum_width(shape),
        Shape::Struct(shape) => shape.fields.iter().map(|field| least(&field.shape)).sum(),
        Shape::Union(shape) => least(&shape.discriminator),
        Shape::Array(shape) => least(&shape.element).saturating_mul(shape.len as usize),
        Shape::Sequence(shape) if shape.order == Order::Varying => 8,
        shape => shape.width().unwrap_or(4),
    }
}

/// Whether the bytes of a value in place hold pointers whose referents are deferred.
pub(super) fn has_pointers(shape: &Shape, tail: bool) -> bool {
    match shape.resolved() {
        Shape::Text(_)
        | Shape::Map(_)
        | Shape::Optional(_)
        | Shape::Pointer(_)
        | Shape::Variant
        | Shape::Reference(_)
        | Shape::Handle => true,
        Shape::Struct(shape) => {
            let last = shape.fields.len().saturating_sub(1);
            let mut fields = shape.fields.iter().enumerate();
            fields.any(|(index, field)| has_pointers(&field.shape, tail && index == last))
        }
        Shape::Union(shape) => shape.arms.iter().any(|arm| has_pointers(&arm.field.shape, false)),
        Shape::Array(shape) => has_pointers(&shape.element, false),
        Shape::Sequence(shape) => {
            !(tail || shape.order == Order::Varying) || has_pointers(&shape.element, false)
        }
        _ => false,
    }
}

/// The conformant array that ends a struct, directly or as the end of its last struct.
pub(super) fn tail_of(shape: &Struct) -> Option<&Sequence> {
    match shape.fields.last()?.shape.resolved() {
        Shape::Sequence(last) if last.order != Order::Varying => Some(last),
        Shape::Struct(last) => tail_of(last),
        _ => None,
    }
}
