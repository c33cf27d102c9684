//! Details of faults: exceptions of the contract, and what a detail may be beside its declared type.

use super::attributes::is_simple;
use super::builtin;
use super::marks::Mark;
use super::members::written;
use super::names::DERIVED;
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

    /// Adds an exception to those of an operation whose usual action is this, and says its element and its action where they
    /// are not the usual ones.
    pub(super) fn raise(
        &mut self,
        element: &QName,
        action: Option<String>,
        usual: &str,
        detail: &Hold<Struct>,
        notes: &mut Vec<(Name, Name)>,
        raises: &mut Vec<Hold<Struct>>,
    ) {
        let id = identity(detail).unwrap_or_else(|| element.clone());
        if !self.exceptions.iter().any(|(known, _)| *known == id) {
            self.exceptions.push((id.clone(), detail.clone()));
        }
        if id != *element {
            notes.push((Name::from(format!("wcf:detail:{id}")), Name::from(element.to_string())));
        }
        if let Some(action) = action.filter(|action| *action != format!("{usual}{}Fault", id.local)) {
            notes.push((Name::from(format!("wcf:fault:{id}")), Name::from(action)));
        }
        if !raises.iter().any(|known| known.id == detail.id) {
            raises.push(detail.clone());
        }
    }

    /// Adds the types that extend those of details: a detail may be of each of them, in the same element and by the same
    /// action, and says by `xsi:type` of which. What a contract declares as a detail of its own is that one.
    pub(super) fn raise_derived(
        &mut self,
        families: Vec<(QName, QName, Option<String>, Hold<Struct>)>,
        usual: &str,
        notes: &mut Vec<(Name, Name)>,
        raises: &mut Vec<Hold<Struct>>,
    ) {
        for (name, element, action, base) in families {
            if !self.types.schemas.is_extended(&name) {
                continue;
            }
            let Some(Shape::Union(family)) = self.types.family(&name).map(|typed| typed.shape) else {
                continue;
            };
            let Some(base) = identity(&base) else { continue };
            let action = action.unwrap_or_else(|| format!("{usual}{}Fault", base.local));
            for arm in family.arms.iter().skip(1) {
                let Shape::Struct(detail) = &arm.field.shape else { continue };
                let Some(id) = identity(detail) else { continue };
                if raises.iter().any(|known| known.id == detail.id) {
                    continue;
                }
                notes.push((Name::from(format!("{DERIVED}{id}")), Name::from(base.to_string())));
                self.raise(&element, Some(action.clone()), usual, detail, notes, raises);
            }
        }
    }
}

/// The name of an exception's type.
fn identity(detail: &Hold<Struct>) -> Option<QName> {
    QName::parse(detail.get().map_or("", |detail| detail.id.as_ref()))
}
