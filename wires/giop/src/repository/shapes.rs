//! Which values have a type code, and how names and identities of definitions look.
//!
//! Maps, optional values (but for value types) and handles of other wires have no type code, so operations with such parameters or
//! results are not in the repository, and an exception with such a field is not told. A type that contains
//! itself is looked at once (`seen`, by the identity of its description).

use everywire_model::describe::{Direction, Name};
use everywire_model::shape::{Hold, Struct};
use everywire_model::value_type::ValueType;
use everywire_model::{Operation, Shape};
use std::collections::HashSet;

/// Deepest nesting of types that is looked at: contracts have less.
pub(super) const DEPTH: usize = 100;

/// Whether calls of an operation can travel on this wire: all parameters and the result have type codes.
pub(super) fn travels(operation: &Operation) -> bool {
    let mut seen = HashSet::new();
    let carried = operation.parameters.iter().map(|parameter| &parameter.field.shape);
    carried.chain([&operation.returns]).all(|shape| shape_has_code(shape, &mut seen, DEPTH))
}

/// Whether an exception can travel, by its fields.
pub(super) fn raised_travels(raised: &Struct) -> bool {
    let mut seen = HashSet::new();
    raised.fields.iter().all(|field| shape_has_code(&field.shape, &mut seen, DEPTH))
}

/// Whether values of a shape have a type code.
pub(super) fn has_code(shape: &Shape) -> bool {
    shape_has_code(shape, &mut HashSet::new(), DEPTH)
}

/// A type that was seen before counts as true: the first look decides.
fn shape_has_code(shape: &Shape, seen: &mut HashSet<usize>, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    match shape {
        Shape::Optional(content) if ValueType::of(content).is_some() => shape_has_code(content, seen, depth),
        Shape::Map(_) | Shape::Optional(_) | Shape::Handle => false,
        Shape::Struct(held) => {
            !seen.insert(held.identity())
                || held.fields.iter().all(|field| shape_has_code(&field.shape, seen, depth))
        }
        Shape::Union(held) => {
            !seen.insert(held.identity())
                || held.arms.iter().all(|arm| shape_has_code(&arm.field.shape, seen, depth))
        }
        Shape::Sequence(held) => !seen.insert(held.identity()) || shape_has_code(&held.element, seen, depth),
        Shape::Array(held) => shape_has_code(&held.element, seen, depth),
        Shape::Alias(held) => shape_has_code(&held.target, seen, depth),
        Shape::Pointer(held) => shape_has_code(&held.target, seen, depth),
        _ => true,
    }
}

/// The id of what an interface or a module contains, by the rule of the specification for ids of the format `IDL:`.
pub(super) fn id_inside(around: &str, name: &str) -> String {
    match around.strip_prefix("IDL:").and_then(|rest| rest.rsplit_once(':')) {
        Some((path, version)) => format!("IDL:{path}/{name}:{version}"),
        None => format!("{around}/{name}"),
    }
}

/// The id of what is around something, whose id and scoped name these are.
pub(super) fn id_around(id: &str, scope: &str) -> String {
    let path = id.strip_prefix("IDL:").and_then(|rest| rest.rsplit_once(':')).map(|(path, _)| path);
    match path.and_then(|path| path.rsplit_once('/')) {
        Some((path, _)) if path.ends_with(&scope.replace("::", "/")) => format!("IDL:{path}:1.0"),
        _ => format!("IDL:{}:1.0", scope.replace("::", "/")),
    }
}

/// The version that an id tells; `1.0` for ids of other formats.
pub(super) fn version(id: &str) -> String {
    match id.strip_prefix("IDL:").and_then(|rest| rest.rsplit_once(':')) {
        Some((_, version)) => version.to_owned(),
        None => "1.0".to_owned(),
    }
}

/// The exceptions of an operation that travel.
pub(super) fn raises(operation: &Operation) -> impl Iterator<Item = &Hold<Struct>> {
    operation.raises.iter().filter(|raised| raised_travels(raised))
}

/// The last part of a scoped name.
pub(super) fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// What a parameter is called; some languages leave that out.
pub(super) fn parameter_name(name: &Name, index: usize) -> String {
    if name.is_empty() { format!("arg_{}", index + 1) } else { name.to_string() }
}

/// The specification's word for a direction.
pub(super) fn mode(direction: Direction) -> crate::contracts::corba::ParameterMode {
    use crate::contracts::corba::ParameterMode;
    match direction {
        Direction::In => ParameterMode::ParamIn,
        Direction::Out => ParameterMode::ParamOut,
        Direction::InOut => ParameterMode::ParamInout,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contracts::id_of;

    #[test]
    fn ids_follow_the_rules_of_the_specification() {
        assert_eq!(id_of("", "a::B"), "IDL:a/B:1.0");
        assert_eq!(
            id_inside("IDL:omg.org/CosNaming/NamingContext:1.0", "list"),
            "IDL:omg.org/CosNaming/NamingContext/list:1.0"
        );
        assert_eq!(id_inside("f309a3b0", "list"), "f309a3b0/list");
        assert_eq!(id_around("IDL:omg.org/CosNaming/Name:1.0", "CosNaming"), "IDL:omg.org/CosNaming:1.0");
        assert_eq!(id_around("IDL:odd:1.0", "a::b"), "IDL:a/b:1.0");
        assert_eq!((version("IDL:a:2.3").as_str(), version("x").as_str()), ("2.3", "1.0"));
    }
}
