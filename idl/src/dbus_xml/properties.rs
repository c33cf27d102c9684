//! Properties: attributes and their accessors.
//!
//! A property travels as the calls `Get` and `Set` of `org.freedesktop.DBus.Properties`; the model knows it
//! as an attribute with two operations, which the wire turns into those calls. So their names begin with
//! `_get_` and `_set_`, which no method of D-Bus can be confused with in practice.

use super::annotations::{Annotations, GET_RAISES, SET_RAISES};
use super::exceptions;
use super::names::{self, identifier};
use super::read::Reader;
use crate::report::Problem;
use crate::unique::Unique;
use crate::xml::Element;
use everywire_model::shape::{Field, Name};
use everywire_model::{Attribute, Direction, Notify, Operation, Parameter, Shape};
use std::borrow::Cow;

/// Reads a property and appends its accessors. `usual` is how changes are announced where the property itself does
/// not say it. None after a mistake; then nothing is appended.
pub(super) fn read(
    reader: &mut Reader<'_>,
    element: &Element<'_>,
    usual: Notify,
    operations: &mut Vec<Operation>,
    labels: &mut Unique,
) -> Option<Attribute> {
    let name = reader.needed(element, "name")?;
    // The specification has no rule for these names. `(` would make the accessor's name look like a signature
    // of DCOP.
    if name.value.is_empty() || name.value.len() > names::LENGTH || name.value.contains(['(', ':']) {
        reader.report.add(Problem::new(name.span, "this is no name of a property"));
        return None;
    }
    let name = name.value.to_string();
    let shape = reader.shape(element)?;
    let access = reader.needed(element, "access")?;
    let (read, write) = match access.value.as_ref() {
        "read" => (true, false),
        "write" => (false, true),
        "readwrite" => (true, true),
        _ => {
            let problem = Problem::new(access.span, "this is no access to a property");
            reader.report.add(problem.expected(["`read`", "`write`", "`readwrite`"]));
            return None;
        }
    };
    let annotations = Annotations::of(element, reader.report);
    let get_raises = exceptions::of(reader, element, GET_RAISES)?;
    let set_raises = if write { exceptions::of(reader, element, SET_RAISES)? } else { Vec::new() };
    let label = identifier(&name);
    // A method of the same name keeps it.
    let label = if labels.has(&label) { format!("get_{label}") } else { label };
    let returns = if read { shape.clone() } else { Shape::Void };
    let mut getter = Operation::new(format!("_get_{name}"), Vec::new(), returns);
    getter.label = Name::from(labels.name(&label));
    getter.doc = Name::from(annotations.doc.clone());
    getter.notes = annotations.kept.into();
    getter.raises = get_raises.into();
    let at = operations.len();
    operations.push(getter);
    if write {
        let field = Field { name: Cow::Borrowed("value"), shape: shape.clone() };
        let parameter = Parameter { direction: Direction::In, field };
        let mut setter = Operation::new(format!("_set_{name}"), vec![parameter], Shape::Void);
        setter.label = Name::from(labels.name(&format!("set_{}", identifier(&name))));
        setter.doc = Name::from(annotations.doc);
        setter.raises = set_raises.into();
        operations.push(setter);
    }
    Some(Attribute {
        name: Name::from(name),
        shape,
        getter: at,
        setter: write.then_some(at + 1),
        notify: annotations.notify.unwrap_or(usual),
    })
}
