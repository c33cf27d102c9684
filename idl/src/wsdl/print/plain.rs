//! Faults whose detail is a value of a plain type: the element is there already, beside the type of its name.
//!
//! The model has an exception of one member for them, whose name no type has. It is no type of a schema.

use super::super::builtin;
use super::super::marks::{Mark, unmarked};
use super::super::names::{self, QName};
use everywire_model::shape::{Name, Struct};
use everywire_model::{Interface, Shape};
use std::collections::HashSet;

/// The value that the element of a detail is of, if the exception was made for it.
pub(super) fn value<'d>(detail: &'d Struct, element: &QName) -> Option<&'d Shape> {
    let [field] = &*detail.fields else { return None };
    let value = unmarked(&field.shape);
    let is_own = builtin::find(element).is_some() || names::of_shape(value) == *element;
    let is_made =
        Mark::of(&field.shape) == Some(Mark::Text) && names::type_name(&detail.id, &detail.name) != *element;
    (is_own && is_made).then_some(value)
}

/// The identities of such exceptions.
pub(super) fn details(interfaces: &[&Interface]) -> HashSet<Name> {
    let operations = interfaces.iter().flat_map(|interface| interface.operations.iter());
    let all = operations.flat_map(|operation| operation.raises.iter().map(move |detail| (operation, detail)));
    all.filter(|(operation, detail)| value(detail, &names::detail(operation, detail)).is_some())
        .map(|(_, detail)| detail.id.clone())
        .collect()
}
