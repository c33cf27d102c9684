//! Details of faults that are no structs.

use super::attributes::is_simple;
use super::builtin;
use super::marks::Mark;
use super::members::written;
use super::names::QName;
use super::services::Services;
use everywire_model::shape::{Field, Name, Struct};
use everywire_model::{Hold, Shape};

/// What stands behind the name of an exception whose element is called as a type is.
const FAULT: &str = "Fault";

impl Services<'_, '_, '_, '_> {
    /// A detail that is a text alone: an exception of one member. None where it is none. It is called as the element is, unless
    /// a type has that name: the elements of .NET's plain types (`FaultContract(typeof(int))`) and of enumerations are called
    /// as their types are.
    pub(super) fn text_alone(&mut self, element: &QName, shape: Shape) -> Option<Hold<Struct>> {
        if !is_simple(&shape) {
            return None;
        }
        let mut id = element.clone();
        while builtin::find(&id).is_some() || self.types.schemas.types.contains_key(&id) {
            id.local.push_str(FAULT);
        }
        let fields = vec![Field { name: Name::from("Value"), shape: Mark::Text.on(written(shape)) }];
        let (name, id) = (self.types.name(&id, "TYPE"), Name::from(id.to_string()));
        Some(Hold::new(Struct { name, id, fields: fields.into() }))
    }
}
