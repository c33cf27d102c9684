//! Constants: those of interfaces that were asked for, and of the modules around them up to the repository
//! itself.
//!
//! The walk goes from each interface outwards (`defined_in`) until it meets a scope that it knows, or the
//! repository. Then each scope is asked for its own constants, the outermost first, so that a constant comes
//! before those whose scope lies deeper.
//!
//! A repository that tells none, or fails at the question, leaves the rest of the contract as it is.
//! Constants with values that this side cannot hold are left out. Scopes are bounded, and so are the
//! constants of one scope; all questions count against the limits in `questions`.

use super::questions::Questions;
use super::types::Types;
use crate::contracts::corba::{DefinitionKind, container, describe};
use everywire_model::{Constant, Reference, TypeCode, Value};
use std::borrow::Cow;
use std::collections::HashSet;

/// Most scopes that are asked for constants, in all. No real contract has nearly as many.
const SCOPES: usize = 500;
/// Most constants of one scope: given to the repository as `max_returned_objs`. A repository that sends more
/// is bounded by the size of a message.
const MOST: i32 = 10_000;

/// The constants of these interfaces and of what is around them. Those of the outermost scope come first. Of
/// two constants with the same scoped name the first is kept.
pub(super) fn of(interfaces: Vec<Reference>, types: &mut Types, questions: &mut Questions) -> Vec<Constant> {
    let mut seen = HashSet::new();
    let mut scopes = Vec::new();
    for interface in interfaces {
        let mut next = Some(interface);
        while let Some(scope) = next.filter(|scope| scopes.len() < SCOPES && seen.insert(identity(scope))) {
            next = around(&scope, questions);
            scopes.push(scope);
        }
    }
    let mut names = HashSet::new();
    let mut constants = Vec::new();
    for scope in scopes.iter().rev() {
        for told in told(scope, questions).unwrap_or_default() {
            let made = constant(&told, types, questions);
            constants.extend(made.filter(|made| names.insert(made.name.clone())));
        }
    }
    constants
}

/// What tells one definition from another: the object key of the reference's first profile. Two repositories
/// with the same keys are not told apart; a contract comes from one repository.
fn identity(definition: &Reference) -> Vec<u8> {
    definition.profiles.first().map(|profile| profile.key.to_vec()).unwrap_or_default()
}

/// The module or the repository that contains a definition; nothing at the repository itself, and where the
/// question fails.
fn around(definition: &Reference, questions: &mut Questions) -> Option<Reference> {
    if definition.type_id == describe::REPOSITORY.id {
        return None;
    }
    questions.ask(definition, &describe::CONTAINED, "defined_in", ()).ok().flatten()
}

/// The constants that a scope contains itself; nothing if it does not answer. `true` excludes those that an
/// interface inherits: they are told by the base.
fn told(scope: &Reference, questions: &mut Questions) -> Option<Vec<container::Description>> {
    let wanted = (DefinitionKind::DkConstant, true, MOST);
    questions.ask(scope, &describe::CONTAINER, "describe_contents", wanted).ok()
}

/// A constant out of its description, which is a `ConstantDescription` in an `any`. The `any` came without a
/// contract, so its fields are found by name. Nothing, if a field is missing, or if this side cannot hold the
/// type.
fn constant(told: &container::Description, types: &mut Types, questions: &mut Questions) -> Option<Constant> {
    let value = told.value.value();
    let Value::Struct(fields) = &*value else { return None };
    let field = |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let (Value::Text(id), Value::Text(name)) = (field("id")?, field("name")?) else { return None };
    let Value::Variant(held) = field("value")? else { return None };
    let shape = types.of(&TypeCode::new(held.0.0.clone()), questions).ok()?;
    let name = types.name(id, name, questions);
    Some(Constant { name, shape, value: held.1.clone(), doc: Cow::Borrowed("") })
}
