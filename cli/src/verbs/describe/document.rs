//! A contract as JSON.

use super::name_of;
use crate::people;
use everywire::model::shape::{Field, Shape};
use everywire::model::{Contract, Definition, Direction, InterfaceKind, Operation};
use everywire::{Failure, Initiator, Interface, Kind, Reference};
use everywire_dynamic::json::{self, Notation};
use serde_json::{Value as Json, json};

/// The contract as JSON: definitions in the order of the file. Types are named where they have names,
/// so the document is as large as the contract and not larger.
pub(super) fn contract(contract: &Contract) -> Json {
    json!({"definitions": contract.definitions.iter().map(definition).collect::<Vec<_>>()})
}

/// An interface as JSON.
pub(super) fn interface(interface: &Interface) -> Json {
    json!({
        "kind": if interface.kind == InterfaceKind::Class { "class" } else { "interface" },
        "name": interface.name,
        "id": interface.id,
        "doc": interface.doc,
        "bases": interface.bases.iter().map(|base| base.name.as_ref()).collect::<Vec<_>>(),
        "attributes": interface.attributes.iter().map(|attribute| json!({
            "name": attribute.name,
            "shape": shape(&attribute.shape),
            "readonly": attribute.setter.is_none(),
        })).collect::<Vec<_>>(),
        "operations": interface.operations.iter().enumerate().map(|(index, held)| {
            operation(held, index < interface.inherited)
        }).collect::<Vec<_>>(),
        "signals": interface.signals.iter().map(|signal| json!({
            "name": signal.name,
            "label": signal.label,
            "fields": fields(signal.fields.fields()),
            "listener": signal.sink.as_ref().map(|(listener, _)| listener.name.as_ref()),
            "doc": signal.doc,
        })).collect::<Vec<_>>(),
    })
}

/// One definition; `kind` tells which other keys there are.
fn definition(definition: &Definition) -> Json {
    match definition {
        Definition::Interface(held) => interface(held),
        Definition::Constant(constant) => json!({
            "kind": "constant",
            "name": constant.name,
            "shape": shape(&constant.shape),
            "value": json::write(&constant.shape, &constant.value, &NoReferences),
            "doc": constant.doc,
        }),
        Definition::Exception(held) => {
            json!({"kind": "exception", "name": held.name, "id": held.id, "fields": fields(&held.fields)})
        }
        Definition::Type(held) => match held {
            Shape::Struct(held) => {
                json!({"kind": "struct", "name": held.name, "id": held.id, "fields": fields(&held.fields)})
            }
            Shape::Union(held) => json!({
                "kind": "union",
                "name": held.name,
                "id": held.id,
                "discriminator": shape(&held.discriminator),
                "arms": held.arms.iter().map(|arm| json!({
                    "labels": arm.labels,
                    "default": arm.default,
                    "name": arm.field.name,
                    "shape": shape(&arm.field.shape),
                })).collect::<Vec<_>>(),
            }),
            Shape::Enum(held) => json!({
                "kind": "enum",
                "name": held.name,
                "id": held.id,
                "members": held.members.iter().map(|(name, value)| json!({"name": name, "value": value}))
                    .collect::<Vec<_>>(),
            }),
            Shape::Alias(held) => {
                json!({"kind": "alias", "name": held.name, "id": held.id, "shape": shape(&held.target)})
            }
            _ => json!({"kind": "type", "name": name_of(definition)}),
        },
    }
}

/// An operation; `inherited` if a base interface has it.
fn operation(operation: &Operation, inherited: bool) -> Json {
    json!({
        "name": operation.name,
        "label": operation.label,
        "signature": people::signature(operation),
        "oneway": operation.oneway,
        "idempotent": operation.idempotent,
        "inherited": inherited,
        "parameters": operation.parameters.iter().map(|parameter| json!({
            "direction": match parameter.direction {
                Direction::In => "in",
                Direction::Out => "out",
                Direction::InOut => "inout",
            },
            "name": parameter.field.name,
            "shape": shape(&parameter.field.shape),
        })).collect::<Vec<_>>(),
        "returns": shape(&operation.returns),
        "raises": operation.raises.iter().map(|raised| raised.name.as_ref()).collect::<Vec<_>>(),
        "doc": operation.doc,
    })
}

/// Fields in their order.
fn fields(fields: &[Field]) -> Json {
    fields.iter().map(|field| json!({"name": field.name, "shape": shape(&field.shape)})).collect()
}

/// A shape as it is written in a contract: named ones by name only.
fn shape(held: &Shape) -> Json {
    match held {
        Shape::Text(text) => {
            json!({"kind": "text", "bound": text.bound, "text": format!("{:?}", text.kind).to_lowercase()})
        }
        Shape::Sequence(held) => {
            json!({"kind": "sequence", "element": shape(&held.element), "bound": held.bound})
        }
        Shape::Array(held) => json!({"kind": "array", "element": shape(&held.element), "len": held.len}),
        Shape::Map(held) => json!({"kind": "map", "key": shape(&held.key), "value": shape(&held.value)}),
        Shape::Optional(held) => json!({"kind": "optional", "target": shape(held)}),
        Shape::Pointer(held) => json!({"kind": "pointer", "target": shape(&held.target)}),
        Shape::Reference(held) => json!({"kind": "reference", "interface": held.name}),
        Shape::Alias(held) if held.name.is_empty() => shape(&held.target),
        other => Json::from(other.noun().into_owned()),
    }
}

/// Constants contain no references.
struct NoReferences;

impl Notation for NoReferences {
    fn parse(&self, _: &str) -> Result<Reference, Failure> {
        Err(Failure::new(Kind::Unsupported, Initiator::User, "a constant holds no reference"))
    }

    fn print(&self, _: &Reference) -> String {
        String::new()
    }
}
