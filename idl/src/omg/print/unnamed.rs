//! Names for structs that have none.
//!
//! D-Bus and DCOP have structs without a name; OMG IDL has none, and in its place nothing else may stand: a struct travels
//! as its fields, one after the other (CORBA 3.0, 15.3.2.1), and whoever wrote or read an `any` there would misread it.
//! So each gets a name, made of where it stands: interface, operation and parameter. Equal ones of one interface are one.
//!
//! Invariants: what stands inside comes before what it stands in, so that the text can be read in one go; a struct with a name
//! ends the descent, so types that contain themselves are no danger.

use crate::order::name;
use crate::raised::NESTING;
use everywire_model::shape::{Array, Field, Name, Sequence, Struct};
use everywire_model::{Contract, Definition, Hold, Interface, Shape};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The contract with a name for each struct that has none, where there is one.
pub(super) fn named(contract: &Contract) -> Cow<'_, Contract> {
    let taken = contract.definitions.iter().map(|definition| name(definition).to_ascii_lowercase()).collect();
    let mut namer = Namer { taken, made: Vec::new(), known: HashMap::new(), scope: String::new() };
    let mut definitions = Vec::new();
    let mut found = false;
    for definition in &contract.definitions {
        let definition = match definition {
            Definition::Interface(interface) => Definition::Interface(namer.interface(interface)),
            Definition::Type(Shape::Struct(held)) if let Some(body) = held.get() => {
                namer.scope.clone_from(&parent(&body.name).to_owned());
                Definition::Type(Shape::Struct(namer.fields(held, body)))
            }
            Definition::Exception(held) if let Some(body) = held.get() => {
                namer.scope.clone_from(&parent(&body.name).to_owned());
                Definition::Exception(namer.fields(held, body))
            }
            other => other.clone(),
        };
        found |= !namer.made.is_empty();
        definitions.append(&mut namer.made);
        definitions.push(definition);
        namer.known.clear();
    }
    if found { Cow::Owned(Contract { definitions }) } else { Cow::Borrowed(contract) }
}

/// The scope of a name.
fn parent(name: &str) -> &str {
    name.rsplit_once("::").map_or("", |(scope, _)| scope)
}

/// The last part of a name.
fn last(name: &str) -> &str {
    name.rsplit_once("::").map_or(name, |(_, last)| last)
}

struct Namer {
    /// Names of the contract, in lower case: OMG IDL does not tell them apart by case.
    taken: HashSet<String>,
    /// Definitions of structs that got a name with the definition at hand.
    made: Vec<Definition>,
    /// Those, by what they are made of.
    known: HashMap<String, Hold<Struct>>,
    /// Where new names stand.
    scope: String,
}

impl Namer {
    fn interface(&mut self, interface: &Hold<Interface>) -> Hold<Interface> {
        self.scope = interface.name.to_string();
        let mut out = (**interface).clone();
        for operation in out.operations.to_mut() {
            operation.returns = self.shape(&operation.returns, &operation.label, 0);
            for parameter in operation.parameters.to_mut() {
                let hint = format!("{}_{}", operation.label, parameter.field.name);
                parameter.field.shape = self.shape(&parameter.field.shape, &hint, 0);
            }
        }
        for attribute in out.attributes.to_mut() {
            attribute.shape = self.shape(&attribute.shape, &attribute.name.clone(), 0);
        }
        for signal in out.signals.to_mut() {
            if let Shape::Struct(fields) = &signal.fields {
                let each = |field: &Field| {
                    let hint = format!("{}_{}", signal.label, field.name);
                    Field { name: field.name.clone(), shape: self.shape(&field.shape, &hint, 0) }
                };
                let fields =
                    Struct { fields: fields.fields.iter().map(each).collect(), ..(**fields).clone() };
                signal.fields = Shape::Struct(Hold::new(fields));
            }
        }
        if self.made.is_empty() { interface.clone() } else { Hold::new(out) }
    }

    /// A struct with a name of its own, whose fields may be of structs without one.
    fn fields(&mut self, held: &Hold<Struct>, body: &Struct) -> Hold<Struct> {
        let before = self.made.len();
        let each = |field: &Field| {
            let hint = format!("{}_{}", last(&body.name), field.name);
            Field { name: field.name.clone(), shape: self.shape(&field.shape, &hint, 0) }
        };
        let fields = body.fields.iter().map(each).collect();
        if self.made.len() == before {
            return held.clone();
        }
        Hold::new(Struct { fields, ..body.clone() })
    }

    /// A shape in which each struct has a name. What OMG IDL does not have (maps, optional values, pointers) is left as it is.
    fn shape(&mut self, shape: &Shape, hint: &str, depth: usize) -> Shape {
        if depth > NESTING {
            return shape.clone();
        }
        let mut inner = |shape: &Shape| self.shape(shape, hint, depth + 1);
        match shape {
            Shape::Sequence(held) if let Some(held) = held.get() => {
                let (element, size) = (inner(&held.element), held.size.clone());
                Shape::Sequence(Hold::new(Sequence { element, size, ..*held }))
            }
            Shape::Array(held) if let Some(held) = held.get() => {
                Shape::Array(Hold::new(Array { element: inner(&held.element), len: held.len }))
            }
            Shape::Struct(held) if let Some(body) = held.get().filter(|body| body.name.is_empty()) => {
                Shape::Struct(self.structure(body, hint, depth))
            }
            other => other.clone(),
        }
    }

    fn structure(&mut self, held: &Struct, hint: &str, depth: usize) -> Hold<Struct> {
        let each = |field: &Field| {
            let hint = format!("{hint}_{}", field.name);
            Field { name: field.name.clone(), shape: self.shape(&field.shape, &hint, depth + 1) }
        };
        let fields: Vec<Field> = held.fields.iter().map(each).collect();
        let mut key = String::new();
        fields.iter().for_each(|field| {
            key.push_str(&field.name);
            write(&field.shape, &mut key);
        });
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let scope = if self.scope.is_empty() { String::new() } else { format!("{}::", self.scope) };
        let mut name = format!("{scope}{hint}_s");
        while !self.taken.insert(name.to_ascii_lowercase()) {
            name.push('_');
        }
        let name = Name::from(name);
        let made = Hold::new(Struct { name, id: Name::Borrowed(""), fields: fields.into() });
        self.made.push(Definition::Type(Shape::Struct(made.clone())));
        self.known.insert(key, made.clone());
        made
    }
}

/// A text that two equal shapes have in common. Structs in it have names already.
fn write(shape: &Shape, key: &mut String) {
    match shape {
        Shape::Sequence(held) => {
            key.push_str(&format!(" sequence {:?} {:?}", held.bound, held.size));
            write(&held.element, key);
        }
        Shape::Array(held) => {
            key.push_str(&format!(" array {}", held.len));
            write(&held.element, key);
        }
        Shape::Alias(alias) if alias.name.is_empty() => write(&alias.target, key),
        Shape::Alias(alias) => key.push_str(&format!(" {}", alias.name)),
        Shape::Text(text) => key.push_str(&format!(" {text:?}")),
        Shape::Reference(referent) => key.push_str(&format!(" reference {}", referent.name)),
        other => key.push_str(&format!(" {}", other.noun())),
    }
    key.push(';');
}
