//! The contracts that this wire brings: the interface repository, the naming service, and what every object answers.
//!
//! The first two are in OMG IDL (`contracts/`); their code was generated from it, and a test of the generator holds both together.
//! The operations of every object have names that no IDL can spell (CORBA 3.3 part 2, section 9.4.2.2).

use everywire_model::contract::{Interface, Operation};
use everywire_model::describe::{ANY_OBJECT, Shape, TEXT, interface, operation};
use everywire_model::shape::Struct;

/// `module CORBA`: the interface repository.
#[allow(dead_code, unreachable_pub, clippy::pedantic, clippy::enum_variant_names)]
mod repository {
    include!("../generated/repository.rs");
}

/// `module CosNaming`: the naming service.
#[allow(dead_code, unreachable_pub, clippy::pedantic, clippy::enum_variant_names)]
mod naming {
    include!("../generated/naming.rs");
}

pub(crate) use naming::cos_naming;
pub(crate) use repository::corba;

/// What every object answers, besides what is a question whether it is there (`_is_a`, `_non_existent`).
/// Their indices (0, 1, 2) are those that `repository::object` serves.
pub(crate) static OBJECT: Interface =
    interface!("CORBA::Object", "IDL:omg.org/CORBA/Object:1.0", [], 0, &OBJECT_OPERATIONS);

static OBJECT_OPERATIONS: [Operation; 3] = [
    operation!("_interface", () -> ANY_OBJECT),
    operation!("_component", () -> ANY_OBJECT),
    operation!("_repository_id", () -> TEXT),
];

/// The object's description in an interface repository. It answers nil where the server has no interface
/// repository.
pub(crate) static INTERFACE: &Operation = &OBJECT_OPERATIONS[0];

/// Asks an object elsewhere for its type; here this is no call of a servant.
pub(crate) static IS_A: Operation = operation!("_is_a", (in "logical_type_id": TEXT) -> Shape::Bool);

/// The repository id of something with this name: its own identity, or the usual form of its name, where its
/// contract gave it none (as in a language without ids). The same name gives the same id each time, so
/// references by it stay valid.
pub(crate) fn id_of(id: &str, name: &str) -> String {
    if id.is_empty() { format!("IDL:{}:1.0", name.replace("::", "/")) } else { id.to_owned() }
}

/// An exception's repository id. One whose language gives it none with a format (`Bank.Overdrawn` of D-Bus) gets the usual form of its
/// scoped name, which is what a client that is made from the contract in OMG IDL knows.
pub(crate) fn exception_id(raised: &Struct) -> String {
    id_of(if raised.id.contains(':') { &raised.id } else { "" }, &raised.name)
}
