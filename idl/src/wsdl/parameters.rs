//! What the elements of messages are to an operation: its parameters, in which direction, and its return value.

use super::builtin;
use super::marks::{self, Mark, unmarked};
use super::tree::Node;
use super::types::many;
use everywire_model::shape::Field;
use everywire_model::{Direction, Hold, Parameter, Shape};

/// The members of a type that stands around parameters, each with whether it may be left out. None where the type is a value of
/// its own. Its members must be plain elements in one sequence, or alone in a choice, as our own descriptions have them.
pub(super) fn wrapped<'n, 't>(own: &'n Node<'t>) -> Option<Vec<(&'n Node<'t>, bool)>> {
    let mut parts = own.children.iter().filter(|child| child.local != "annotation");
    match parts.next() {
        None => Some(Vec::new()),
        Some(part) if part.local == "sequence" && parts.next().is_none() => {
            let members = part.children.iter().filter(|child| child.local != "annotation");
            members
                .map(|child| if child.local == "element" { Some((child, false)) } else { alone(child) })
                .collect()
        }
        Some(_) => None,
    }
}

/// The value of an element of its own, a bare part or a header, which may be nil where the element says so and no empty value says
/// the same.
pub(super) fn or_nil(element: &Node<'_>, shape: Shape) -> Shape {
    let is_value = matches!(shape, Shape::Optional(_)) || builtin::is_emptiable(&shape);
    if element.get("nillable") == Some("true") && !is_value {
        Shape::Optional(Hold::new(shape))
    } else {
        shape
    }
}

/// The one element of a choice that may be missing.
fn alone<'n, 't>(choice: &'n Node<'t>) -> Option<(&'n Node<'t>, bool)> {
    let mut parts = choice.children.iter().filter(|child| child.local != "annotation");
    let only = parts.next().filter(|part| part.local == "element" && parts.next().is_none())?;
    (choice.local == "choice" && choice.get("minOccurs") == Some("0") && !many(choice))
        .then_some((only, true))
}

/// Parameters by direction: what goes both ways is in both messages with one type; `NAMEResult` first is the
/// return value. Other members of the reply are `out` parameters, each before those that stand behind it there: both
/// messages are written in the order of the parameters, and readers with the schema at hand want that of the schema.
pub(super) fn parameters(name: &str, request: Vec<Field>, mut reply: Vec<Field>) -> (Vec<Parameter>, Shape) {
    let mut returns = Shape::Void;
    if reply.first().is_some_and(|first| first.name == format!("{name}Result")) {
        returns = reply.remove(0).shape;
    }
    let is_same = |out: &Field, field: &Field| out.name == field.name && same(&out.shape, &field.shape);
    let goes_both_ways = |out: &Field| request.iter().any(|field| is_same(out, field));
    // Each with whether the request has it, too.
    let mut reply: Vec<(bool, Field)> = reply.into_iter().map(|out| (goes_both_ways(&out), out)).collect();
    let out = |field: Field| Parameter { direction: Direction::Out, field };
    let mut parameters = Vec::new();
    for field in request {
        let Some(at) = reply.iter().position(|(both, out)| *both && is_same(out, &field)) else {
            parameters.push(Parameter { direction: Direction::In, field });
            continue;
        };
        let mut before: Vec<_> = reply.drain(..=at).collect();
        before.pop();
        let (later, passed): (Vec<_>, Vec<_>) = before.into_iter().partition(|(both, _)| *both);
        parameters.extend(passed.into_iter().map(|(_, field)| out(field)));
        drop(reply.splice(..0, later));
        parameters.push(Parameter { direction: Direction::InOut, field });
    }
    parameters.extend(reply.into_iter().map(|(_, field)| out(field)));
    (parameters, returns)
}

/// Whether a second element of a reply is an `out` parameter that is called as the element of the return value before it:
/// `int Get(out int GetResult)` of .NET.
pub(super) fn is_beside_result(operation: &str, before: &[Field], name: &str) -> bool {
    let is_result = name.strip_suffix("Result") == Some(operation);
    let mut same = before.iter().map(|field| &*field.name).enumerate().filter(|(_, known)| *known == name);
    is_result && same.next().is_some_and(|(at, _)| at == 0) && same.next().is_none()
}

/// Whether two members are one parameter: with the same mark, the same presence and the same type.
fn same(one: &Shape, other: &Shape) -> bool {
    if Mark::of(one) != Mark::of(other) || marks::namespace(one) != marks::namespace(other) {
        return false;
    }
    match (unmarked(one), unmarked(other)) {
        (Shape::Optional(one), Shape::Optional(other)) => same(one, other),
        (Shape::Optional(_), _) | (_, Shape::Optional(_)) => false,
        _ => {
            let kind = std::mem::discriminant(one) == std::mem::discriminant(other);
            kind && builtin::name(one) == builtin::name(other)
        }
    }
}
