//! Attributes: what is read by one operation and perhaps written by another.
//!
//! Some wires describe attributes, others only operations: there, the attribute `Level` of a contract is
//! described as the operation `_get_Level`. It is an attribute here, too.

use crate::call::{CallError, Options, invoke};
use crate::operation::{READS, WRITES, accessor, of_class};
use everywire::Object;
use everywire_model::{Failure, Hold, Initiator, Interface, Kind, Notify, Shape, Value};

/// An attribute, or what another language's contract calls one.
#[derive(Debug, Clone, Copy)]
pub struct Attribute<'i> {
    /// Its name.
    pub name: &'i str,
    /// Its type.
    pub shape: &'i Shape,
    /// Whether it can be written.
    pub written: bool,
    /// The operation that reads it, by its place in the interface.
    pub getter: usize,
    /// How its changes are announced, on wires that declare it.
    pub notify: Notify,
}

/// Those of an interface: its attributes first, in their order.
pub fn attributes(interface: &Interface) -> Vec<Attribute<'_>> {
    let writes = |name: &str| accessor(interface, name, &WRITES).is_some();
    let attributes = interface.attributes.iter().map(|attribute| Attribute {
        name: &attribute.name,
        shape: &attribute.shape,
        written: attribute.setter.is_some() || writes(&attribute.name),
        getter: attribute.getter,
        notify: attribute.notify,
    });
    // Operations with the names of accessors, of contracts that do not say so.
    let told = interface.operations.iter().enumerate().filter_map(|(getter, held)| {
        let name = held.label.strip_prefix(READS[0])?;
        let [result] = held.results.fields() else { return None };
        let plain = held.arguments.fields().is_empty() && interface.attribute_of(getter).is_none();
        let shape = &result.shape;
        plain.then(|| Attribute { name, shape, written: writes(name), getter, notify: Notify::default() })
    });
    attributes.chain(told).collect()
}

/// Whether an operation, by its place in the interface, reads or writes an attribute.
pub fn is_accessor(interface: &Interface, index: usize) -> bool {
    let Some(held) = interface.operations.get(index) else { return false };
    if interface.attribute_of(index).is_some() {
        return true;
    }
    let marks = READS.iter().take(1).chain(&WRITES);
    let name = marks.filter_map(|mark| held.label.strip_prefix(mark)).next();
    name.is_some_and(|name| attributes(interface).iter().any(|attribute| attribute.name == name))
}

/// What an attribute holds, and its type; `getter` is [`Attribute::getter`].
///
/// # Errors
/// The call that reads it has no result.
pub fn read(
    object: &Object,
    interface: &Hold<Interface>,
    getter: usize,
) -> Result<(Shape, Value), CallError> {
    let lost = || Failure::new(Kind::NoOperation, Initiator::Here, "it has no operation that reads it");
    let getter = interface.operations.get(getter).ok_or_else(lost)?;
    // A class is called by its interfaces.
    let (interface, getter) = of_class(interface, getter);
    let object = object.clone().typed(interface.clone());
    let mut results = invoke(&object, getter, &Value::Struct(Vec::new()), Options::default())?;
    let (Some(field), Value::Struct(values)) = (results.shape.fields().first(), &mut results.value) else {
        return Err(lost().into());
    };
    // The first result alone: accessors have no other.
    let value = values.drain(..).next().map(|(_, value)| value).ok_or_else(lost)?;
    Ok((field.shape.clone(), value))
}
