//! Exceptions that are values as well. In a description of SOAP one type may be a fault and a member; OMG IDL and MIDL know a type
//! or an exception by a name, not both.

use crate::order::name;
use everywire_model::shape::{Name, Struct};
use everywire_model::{Contract, Definition, Hold, Interface, Shape};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// How deep unnamed types are looked into.
pub(crate) const NESTING: usize = 64;

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
    let mut values = Values::default();
    if !raised.is_empty() {
        contract.definitions.iter().for_each(|definition| values.definition(definition));
    }
    let mut values = values.names;
    values.retain(|name| raised.contains(name));
    if values.is_empty() {
        return Cow::Borrowed(contract);
    }
    // OMG IDL tells no names apart by capital letters alone (CORBA, 7.2.3).
    let mut taken: HashSet<String> =
        contract.definitions.iter().map(|definition| name(definition).to_ascii_lowercase()).collect();
    let mut exceptions = HashMap::new();
    let mut definitions = Vec::new();
    for definition in &contract.definitions {
        match definition {
            Definition::Exception(exception) if values.contains(exception.name.as_ref()) => {
                definitions.push(Definition::Type(Shape::Struct(exception.clone())));
                let mut name = format!("{}_exception", exception.name);
                while !taken.insert(name.to_ascii_lowercase()) {
                    name.push('_');
                }
                let renamed = Hold::new(Struct { name: Name::from(name), ..(**exception).clone() });
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

/// The structs that are values.
#[derive(Default)]
struct Values<'c> {
    names: HashSet<&'c str>,
    /// Aliases and maps that were looked into: many others may have them.
    seen: HashSet<usize>,
}

impl<'c> Values<'c> {
    /// Notes the structs that a definition has as values.
    fn definition(&mut self, definition: &'c Definition) {
        match definition {
            Definition::Type(Shape::Struct(shape)) | Definition::Exception(shape) => {
                shape.fields.iter().for_each(|field| self.value(&field.shape, 0));
            }
            Definition::Type(Shape::Union(shape)) => {
                shape.arms.iter().for_each(|arm| self.value(&arm.field.shape, 0));
            }
            Definition::Type(Shape::Alias(alias)) => self.value(&alias.target, 0),
            Definition::Interface(interface) => {
                for operation in interface.operations.iter() {
                    self.value(&operation.returns, 0);
                    operation.parameters.iter().for_each(|parameter| self.value(&parameter.field.shape, 0));
                }
                let fields = interface.signals.iter().flat_map(|signal| signal.fields.fields());
                fields.for_each(|field| self.value(&field.shape, 0));
            }
            Definition::Type(_) | Definition::Constant(_) => {}
        }
    }

    /// Notes the struct that a shape is, or that is inside of one without a definition of its own.
    fn value(&mut self, shape: &'c Shape, depth: usize) {
        if depth > NESTING {
            return;
        }
        match shape {
            Shape::Struct(held) => {
                let Some(held) = held.get() else { return };
                if held.name.is_empty() {
                    held.fields.iter().for_each(|field| self.value(&field.shape, depth + 1));
                } else {
                    self.names.insert(held.name.as_ref());
                }
            }
            Shape::Sequence(sequence) => self.value(&sequence.element, depth + 1),
            Shape::Array(array) => self.value(&array.element, depth + 1),
            Shape::Optional(target) => self.value(target, depth + 1),
            Shape::Pointer(pointer) => self.value(&pointer.target, depth + 1),
            Shape::Alias(alias) if self.seen.insert(alias.identity()) => {
                self.value(&alias.target, depth + 1);
            }
            Shape::Map(map) if self.seen.insert(map.identity()) => {
                self.value(&map.key, depth + 1);
                self.value(&map.value, depth + 1);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::shape::{Alias, Field, Map};

    /// Dictionaries of dictionaries: each has the one before it twice, so that there are 2^60 ways to the first. And the name of
    /// the new exception is one that the contract has already.
    #[test]
    fn each_alias_is_followed_once() {
        let fields = vec![Field { name: Name::from("a"), shape: Shape::I32 }];
        let called = |name: &str| Struct {
            name: Name::from(name.to_owned()),
            id: Name::default(),
            fields: Cow::Owned(fields.clone()),
        };
        let torn = Hold::new(called("Torn"));
        let mut contract = Contract::default();
        let mut last = Shape::Struct(torn.clone());
        for number in 0..60 {
            let target = Shape::Map(Hold::new(Map { key: last.clone(), value: last }));
            let name = Name::from(format!("D{number}"));
            last = Shape::Alias(Hold::new(Alias { name, id: Name::default(), target }));
            contract.definitions.push(Definition::Type(last.clone()));
        }
        contract.definitions.push(Definition::Type(Shape::Struct(Hold::new(called("torn_Exception")))));
        contract.definitions.push(Definition::Exception(torn));
        let apart = apart(&contract);
        let raised = apart.definitions.iter().find_map(|definition| match definition {
            Definition::Exception(exception) => Some(exception.name.as_ref()),
            _ => None,
        });
        assert_eq!(raised, Some("Torn_exception_"));
    }
}
