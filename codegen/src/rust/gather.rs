//! Types that a contract uses without defining them: those a language knows from elsewhere, and nameless
//! ones.
//!
//! MIDL knows `GUID`, kidl knows `QRect`, and introspection of D-Bus has structs without any name. Each of
//! these becomes a type of the generated text once, in front of the definition that is the first to use it. A
//! nameless struct is called by where it is used first; short ones are tuples and need no name.

use super::definitions::{is_tuple, local, name_of, type_name};
use crate::names::camel;
use everywire_model::shape::Shape;
use everywire_model::{Contract, Definition, Hold, Interface};
use std::collections::HashSet;

/// A type that is used and not defined.
pub(super) enum TypeUse<'c> {
    /// It has a name.
    Named(&'c Shape, &'c str),
    /// A struct without a name that is too long for a tuple, and a name made from where it is used first.
    Nameless(&'c Shape, String),
}

/// For each definition of a contract, the types that it is the first to use. What they use themselves comes
/// before them. As long as the contract's definitions, in their order.
pub(super) fn gather(contract: &Contract) -> Vec<Vec<TypeUse<'_>>> {
    let mut walk = Walk {
        known: contract.definitions.iter().map(|definition| name_of(definition).to_owned()).collect(),
        found: Vec::new(),
    };
    contract
        .definitions
        .iter()
        .map(|definition| {
            // Names for what has none begin with the definition that uses it.
            let name = camel(local(name_of(definition)));
            match definition {
                Definition::Type(shape) => walk.parts(shape, &name),
                Definition::Exception(exception) => {
                    for field in exception.fields.iter() {
                        walk.shape(&field.shape, &(name.clone() + &camel(&field.name)));
                    }
                }
                Definition::Constant(constant) => walk.shape(&constant.shape, &name),
                Definition::Interface(interface) => walk.interface(interface, &name),
            }
            std::mem::take(&mut walk.found)
        })
        .collect()
}

struct Walk<'c> {
    /// Names and fingerprints of what is defined or found.
    known: HashSet<String>,
    found: Vec<TypeUse<'c>>,
}

impl<'c> Walk<'c> {
    /// The types of operations, attributes and signals, inherited ones too.
    fn interface(&mut self, interface: &'c Hold<Interface>, name: &str) {
        for operation in interface.operations.iter() {
            for list in [&operation.arguments, &operation.results] {
                for field in list.fields() {
                    let part = if field.name == "return" { "Result".to_owned() } else { camel(&field.name) };
                    self.shape(&field.shape, &format!("{name}{}{part}", camel(&operation.label)));
                }
            }
        }
        for attribute in interface.attributes.iter() {
            self.shape(&attribute.shape, &format!("{name}{}", camel(&attribute.name)));
        }
        for signal in interface.signals.iter() {
            for field in signal.fields.fields() {
                let part = camel(&field.name);
                self.shape(&field.shape, &format!("{name}{}{part}", camel(&signal.label)));
            }
        }
    }

    /// A use of a type; `place` is a name for it, should it have none. Named types are looked into once, so
    /// types that contain themselves end.
    fn shape(&mut self, shape: &'c Shape, place: &str) {
        let name = type_name(shape);
        if !name.is_empty() {
            if self.known.insert(name.to_owned()) {
                self.parts(shape, &camel(local(name)));
                self.found.push(TypeUse::Named(shape, name));
            }
            return;
        }
        self.parts(shape, place);
        if let Shape::Struct(fields) = shape
            && !is_tuple(fields)
            && self.known.insert(fingerprint(shape))
        {
            self.found.push(TypeUse::Nameless(shape, place.to_owned()));
        }
    }

    /// The types that a type is made of. `place` is the name by which nameless types inside are called.
    fn parts(&mut self, shape: &'c Shape, place: &str) {
        match shape {
            Shape::Struct(shape) => {
                for field in shape.fields.iter() {
                    self.shape(&field.shape, &(place.to_owned() + &camel(&field.name)));
                }
            }
            Shape::Union(shape) => {
                self.shape(&shape.discriminator, place);
                for arm in shape.arms.iter() {
                    self.shape(&arm.field.shape, &(place.to_owned() + &camel(&arm.field.name)));
                }
            }
            Shape::Sequence(shape) => self.shape(&shape.element, &format!("{place}Item")),
            Shape::Array(shape) => self.shape(&shape.element, &format!("{place}Item")),
            Shape::Map(shape) => {
                self.shape(&shape.key, &format!("{place}Key"));
                self.shape(&shape.value, &format!("{place}Value"));
            }
            Shape::Optional(target) => self.shape(target, place),
            Shape::Pointer(pointer) => self.shape(&pointer.target, place),
            Shape::Alias(alias) => self.shape(&alias.target, place),
            _ => {}
        }
    }
}

/// A text that two shapes share if they look the same; it is no name. It begins with a character that no name
/// has.
pub(super) fn fingerprint(shape: &Shape) -> String {
    let mut out = String::from("<");
    write(shape, &mut out);
    out
}

/// Appends what tells a shape apart; a named type is its name.
fn write(shape: &Shape, out: &mut String) {
    let name = type_name(shape);
    if !name.is_empty() {
        out.push_str(name);
        return;
    }
    match shape {
        Shape::Struct(shape) => {
            out.push('(');
            for field in shape.fields.iter() {
                out.push_str(&field.name);
                out.push(':');
                write(&field.shape, out);
                out.push(',');
            }
            out.push(')');
        }
        Shape::Sequence(shape) => {
            out.push_str(&format!("{:?}{:?}[", shape.order, shape.bound));
            write(&shape.element, out);
        }
        Shape::Array(shape) => {
            out.push_str(&format!("{}[", shape.len));
            write(&shape.element, out);
        }
        Shape::Map(shape) => {
            out.push('{');
            write(&shape.key, out);
            out.push(':');
            write(&shape.value, out);
        }
        Shape::Optional(target) => {
            out.push('?');
            write(target, out);
        }
        Shape::Pointer(pointer) => {
            out.push_str(&format!("{:?} ", pointer.kind));
            write(&pointer.target, out);
        }
        Shape::Alias(alias) => write(&alias.target, out),
        other => out.push_str(&format!("{other:?}")),
    }
}
