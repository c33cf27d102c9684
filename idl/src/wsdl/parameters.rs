//! What the elements of messages are to an operation: its parameters, in which direction, and its return value.

use super::builtin;
use super::marks::{self, Mark, unmarked};
use super::tree::Node;
use everywire_model::shape::Field;
use everywire_model::{Direction, Parameter, Shape};

/// The members of a type that stands around parameters. None where it is a value of its own. Its members must be plain
/// elements in one sequence.
pub(super) fn wrapped<'n, 't>(own: &'n Node<'t>) -> Option<Vec<&'n Node<'t>>> {
    let mut parts = own.children.iter().filter(|child| child.local != "annotation");
    match parts.next() {
        None => Some(Vec::new()),
        Some(part) if part.local == "sequence" && parts.next().is_none() => {
            let plain = |child: &&Node<'_>| child.local == "element" || child.local == "annotation";
            part.children.iter().all(|child| plain(&child)).then(|| part.all("element").collect())
        }
        Some(_) => None,
    }
}

/// Parameters by direction: what goes both ways is in both messages with one type; `NAMEResult` first is the
/// return value. Other members of the reply are `out` parameters.
pub(super) fn parameters(name: &str, request: Vec<Field>, mut reply: Vec<Field>) -> (Vec<Parameter>, Shape) {
    let mut returns = Shape::Void;
    if reply.first().is_some_and(|first| first.name == format!("{name}Result")) {
        returns = reply.remove(0).shape;
    }
    let mut parameters = Vec::new();
    for field in request {
        let back = reply.iter().position(|out| out.name == field.name && same(&out.shape, &field.shape));
        if let Some(at) = back {
            reply.remove(at);
        }
        let direction = if back.is_some() { Direction::InOut } else { Direction::In };
        parameters.push(Parameter { direction, field });
    }
    parameters.extend(reply.into_iter().map(|field| Parameter { direction: Direction::Out, field }));
    (parameters, returns)
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
