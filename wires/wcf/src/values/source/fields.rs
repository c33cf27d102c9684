//! What stands for a field among elements and attributes.
//!
//! Marks are aliases without a name whose identity begins with a sign: `@` for an attribute; `#` alone is text
//! (`everywire_idl::wsdl::marks`). Other languages have such aliases, too (`#fixed 10 2`).

use everywire_idl::wsdl::marks::{Mark, unmarked};
use everywire_model::shape::{Shape, Struct};

/// Whether a field is no element.
#[inline]
pub(super) fn is_apart(fields: &Struct, index: usize) -> bool {
    match fields.fields.get(index).map(|field| &field.shape) {
        Some(Shape::Alias(alias)) => alias.name.is_empty() && (alias.id.starts_with('@') || alias.id == "#"),
        _ => false,
    }
}

/// Whether a field is a list of elements of several names, and this one of them.
pub(super) fn is_choice(shape: &Shape, name: &str) -> bool {
    if Mark::of(shape) != Some(Mark::Choices) {
        return false;
    }
    match unmarked(shape).element().map(Shape::resolved) {
        Some(Shape::Union(union)) => union.arms.iter().any(|arm| arm.field.name == name),
        _ => false,
    }
}

/// Whether an element is that of a field. The element of what an operation returns is called as it likes, as long as it is
/// not called like another field.
pub(super) fn is_field(fields: &Struct, index: usize, name: &str, wraps: bool) -> bool {
    match fields.fields.get(index) {
        Some(field) if field.name == name => true,
        Some(field) if wraps && field.name == "return" => {
            name.ends_with("Result") || !fields.fields.iter().any(|other| other.name == name)
        }
        _ => false,
    }
}
