//! Exceptions that are values as well. In a description of SOAP one type may be a fault and a member; OMG IDL and MIDL know a type
//! or an exception by a name, not both.

use everywire_model::shape::{Name, Struct};
use everywire_model::{Contract, Definition, Hold, Interface, Shape};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// How deep unnamed types are looked into.
const NESTING: usize = 64;

/// The contract with a struct of the old name and an exception of another one for each exception that is a value, too.
pub(crate) fn apart(contract: &Contract) -> Cow<'_, Contract> {
    let raised: HashSet<&str> = contract
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::Exception(exception) => Some(exception.name.as_ref()),
            _ => None,
        })
        .collect();
    let mut values = HashSet::new();
    if !raised.is_empty() {
        contract.definitions.iter().for_each(|definition| used(definition, &mut values));
    }
    values.retain(|name| raised.contains(name));
    if values.is_empty() {
        return Cow::Borrowed(contract);
    }
    let mut exceptions = HashMap::new();
    let mut definitions = Vec::new();
    for definition in &contract.definitions {
        match definition {
            Definition::Exception(exception) if values.contains(exception.name.as_ref()) => {
                definitions.push(Definition::Type(Shape::Struct(exception.clone())));
                let name = Name::from(format!("{}_exception", exception.name));
                let renamed = Hold::new(Struct { name, ..(**exception).clone() });
                exceptions.insert(exception.name.to_string(), renamed.clone());
                definitions.push(Definition::Exception(renamed));
            }
            Definition::Interface(interface) => {
                definitions.push(Definition::Interface(raising(interface, &exceptions)));
            }
            other => definitions.push(other.clone()),
        }
    }
    Cow::Owned(Contract { definitions })
}

/// An interface whose operations raise the new exceptions.
fn raising(interface: &Hold<Interface>, exceptions: &HashMap<String, Hold<Struct>>) -> Hold<Interface> {
    let mut out = (**interface).clone();
    for operation in out.operations.to_mut() {
        let new = |raised: &Hold<Struct>| exceptions.get(raised.name.as_ref()).unwrap_or(raised).clone();
        operation.raises = operation.raises.iter().map(new).collect();
    }
    Hold::new(out)
}

/// The structs that a definition has as values.
fn used<'c>(definition: &'c Definition, found: &mut HashSet<&'c str>) {
    match definition {
        Definition::Type(Shape::Struct(shape)) | Definition::Exception(shape) => {
            shape.fields.iter().for_each(|field| value(&field.shape, found, 0));
        }
        Definition::Type(Shape::Union(shape)) => {
            shape.arms.iter().for_each(|arm| value(&arm.field.shape, found, 0));
        }
        Definition::Type(Shape::Alias(alias)) => value(&alias.target, found, 0),
        Definition::Interface(interface) => {
            for operation in interface.operations.iter() {
                value(&operation.returns, found, 0);
                operation.parameters.iter().for_each(|parameter| value(&parameter.field.shape, found, 0));
            }
            let fields = interface.signals.iter().flat_map(|signal| signal.fields.fields());
            fields.for_each(|field| value(&field.shape, found, 0));
        }
        Definition::Type(_) | Definition::Constant(_) => {}
    }
}

/// The struct that a shape is, or that is inside of one without a definition of its own.
fn value<'c>(shape: &'c Shape, found: &mut HashSet<&'c str>, depth: usize) {
    if depth > NESTING {
        return;
    }
    match shape {
        Shape::Struct(held) => {
            let Some(held) = held.get() else { return };
            if held.name.is_empty() {
                held.fields.iter().for_each(|field| value(&field.shape, found, depth + 1));
            } else {
                found.insert(held.name.as_ref());
            }
        }
        Shape::Sequence(sequence) => value(&sequence.element, found, depth + 1),
        Shape::Array(array) => value(&array.element, found, depth + 1),
        Shape::Optional(target) => value(target, found, depth + 1),
        Shape::Pointer(pointer) => value(&pointer.target, found, depth + 1),
        Shape::Alias(alias) => value(&alias.target, found, depth + 1),
        Shape::Map(map) => {
            value(&map.key, found, depth + 1);
            value(&map.value, found, depth + 1);
        }
        _ => {}
    }
}
