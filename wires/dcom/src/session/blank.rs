//! Blank values: what stands for results where an operation failed.
//!
//! A failing HRESULT is the last value of the results, so all results before it must be there in some form
//! (MS-DCOM 2.2.13.4), and nobody looks at their content. Zeros, nulls and empty sequences are what any
//! client can read.

use everywire_model::shape::{Enum, PointerKind, Shape};
use everywire_model::visit::{Sink, Visit};
use everywire_model::{Failure, Value};

/// Nesting that is enough for any contract; a type that contains itself without a pointer has no value.
const DEPTH: u32 = 64;

/// Writes zeros, nulls and nothing, as the shape has room for.
pub(crate) fn put(shape: &Shape, sink: &mut dyn Sink) -> Visit<()> {
    fill(shape, sink, DEPTH)
}

fn fill(shape: &Shape, sink: &mut dyn Sink, depth: u32) -> Visit<()> {
    let unsupported = |what| Failure::unsupported(what);
    let depth =
        depth.checked_sub(1).ok_or_else(|| unsupported("a shape without an end has no blank value"))?;
    match shape.resolved() {
        Shape::Void | Shape::Alias(_) => Ok(()),
        Shape::Bool => sink.bool(false),
        Shape::Char => sink.char('\0', false),
        Shape::WideChar => sink.char('\0', true),
        Shape::Text(text) => sink.text(text, ""),
        Shape::Struct(held) => {
            sink.open(shape, held.fields.len())?;
            held.fields.iter().try_for_each(|field| fill(&field.shape, sink, depth))?;
            sink.close(shape)
        }
        Shape::Array(array) => {
            sink.open(shape, array.len as usize)?;
            (0..array.len).try_for_each(|_| fill(&array.element, sink, depth))?;
            sink.close(shape)
        }
        Shape::Sequence(_) | Shape::Map(_) | Shape::Optional(_) => {
            sink.open(shape, 0)?;
            sink.close(shape)
        }
        Shape::Pointer(pointer) => {
            // Only a reference pointer cannot be null.
            let full = pointer.kind == PointerKind::Ref;
            sink.open(shape, full.into())?;
            if full {
                fill(&pointer.target, sink, depth)?;
            }
            sink.close(shape)
        }
        Shape::Variant => {
            sink.open(shape, 1)?;
            sink.content(&Shape::Void)?;
            sink.close(shape)
        }
        Shape::Enum(held) => sink.enumerant(held, first(held)),
        Shape::Union(union) => {
            let discriminator = match union.discriminator.resolved() {
                Shape::Enum(held) => first(held).into(),
                _ => 0,
            };
            let arm = union.select(discriminator);
            sink.open(shape, arm.map_or(0, |arm| arm + 1))?;
            fill(&union.discriminator, sink, depth)?;
            if let Some(arm) = arm.and_then(|arm| union.arms.get(arm)) {
                fill(&arm.field.shape, sink, depth)?;
            }
            sink.close(shape)
        }
        number if number.width().is_some() => Value::Integer(0).encode(number, sink),
        Shape::Reference(_) => sink.reference(None),
        _ => Err(unsupported("this shape has no blank value")),
    }
}

/// The member that stands for nothing.
fn first(shape: &Enum) -> i32 {
    shape.members.first().map_or(0, |(_, value)| *value)
}
