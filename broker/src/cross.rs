//! Values on their way from one wire to another: straight from source to sink, but for references, which are
//! replaced.
//!
//! States: none. Invariants: each value that is opened at the source is opened at the sink, and closed at
//! both in the same order, whatever the shape; a failure of either side ends the copy in the middle, and
//! what was written is thrown away by whoever made the sink. Depth, counts and sizes are charged to the
//! source's budget as they are read, before the sink is told of them.

use everywire_model::pipe::{discriminator, pipe, put_discriminator};
use everywire_model::shape::Referent;
use everywire_model::{Body, Reference, Shape, Sink, Source, Visit, Wire};

/// Puts another reference in the place of one that passes. Called in the order in which references stand in
/// the values; nil is not asked about.
pub(crate) type Replace<'r> = dyn Fn(&Referent, Reference) -> Visit<Reference> + 'r;

/// Passes the values of a body on. Without references to replace, the codecs may take a shorter way
/// (`Body::pipe`).
pub(crate) fn pass(
    body: &Body,
    list: &Shape,
    sink: &mut dyn Sink,
    replace: Option<&Replace<'_>>,
) -> Visit<()> {
    match replace {
        None => body.pipe(list, sink),
        Some(replace) => body.read(|source| {
            sink.status(source.status())?;
            cross(list, source, sink, replace)
        }),
    }
}

/// Whether a wire has references as values: others carry nil at the most.
pub(crate) fn has_references(wire: &dyn Wire) -> bool {
    wire.capabilities().references
}

/// Whether a value of this shape may hold references: a variant may, since only its value says what it holds.
pub(crate) fn carries(shape: &Shape) -> bool {
    any(shape, &mut Vec::new(), &|shape| matches!(shape, Shape::Reference(_) | Shape::Variant))
}

/// Whether a shape, or one within it, is such. `seen` has the identities of composites that were looked into;
/// it begins empty.
pub(crate) fn any(shape: &Shape, seen: &mut Vec<usize>, is: &dyn Fn(&Shape) -> bool) -> bool {
    // Types that contain themselves are looked into once.
    let mut fresh = |identity: usize| {
        let fresh = !seen.contains(&identity);
        if fresh {
            seen.push(identity);
        }
        fresh
    };
    if is(shape) {
        return true;
    }
    match shape {
        Shape::Struct(held) => {
            fresh(held.identity()) && held.fields.iter().any(|field| any(&field.shape, seen, is))
        }
        Shape::Union(held) => {
            fresh(held.identity()) && held.arms.iter().any(|arm| any(&arm.field.shape, seen, is))
        }
        Shape::Sequence(held) => fresh(held.identity()) && any(&held.element, seen, is),
        Shape::Array(held) => any(&held.element, seen, is),
        Shape::Map(held) => any(&held.key, seen, is) || any(&held.value, seen, is),
        Shape::Optional(held) => fresh(held.identity()) && any(held, seen, is),
        Shape::Pointer(held) => fresh(held.identity()) && any(&held.target, seen, is),
        Shape::Alias(held) => any(&held.target, seen, is),
        _ => false,
    }
}

/// One value. How deep it nests is bounded by the source's budget.
fn cross<'a>(
    shape: &Shape,
    source: &mut dyn Source<'a>,
    sink: &mut dyn Sink,
    replace: &Replace<'_>,
) -> Visit<()> {
    match shape {
        Shape::Reference(referent) => match source.reference()? {
            Some(reference) => sink.reference(Some(&replace(referent, reference)?)),
            None => sink.reference(None),
        },
        Shape::Alias(alias) => cross(&alias.target, source, sink, replace),
        Shape::Struct(fields) => {
            let len = source.open(shape)?;
            sink.open(shape, len)?;
            fields.fields.iter().try_for_each(|field| cross(&field.shape, source, sink, replace))?;
            close(shape, source, sink)
        }
        Shape::Sequence(_) | Shape::Array(_) => {
            let element = shape.element().map_or(&Shape::Void, Shape::resolved);
            if element.width().is_some() {
                return pipe(shape, source, sink);
            }
            let len = source.open(shape)?;
            sink.open(shape, len)?;
            (0..len).try_for_each(|_| cross(element, source, sink, replace))?;
            close(shape, source, sink)
        }
        Shape::Map(map) => {
            let len = source.open(shape)?;
            sink.open(shape, len)?;
            for _ in 0..len {
                cross(&map.key, source, sink, replace)?;
                cross(&map.value, source, sink, replace)?;
            }
            close(shape, source, sink)
        }
        Shape::Optional(target) => maybe(shape, target, source, sink, replace),
        Shape::Pointer(pointer) => maybe(shape, &pointer.target, source, sink, replace),
        Shape::Union(union) => {
            source.open(shape)?;
            let chosen = discriminator(&union.discriminator, source)?;
            let arm = union.select(chosen);
            source.arm(shape, arm)?;
            sink.open(shape, arm.map_or(0, |arm| arm + 1))?;
            put_discriminator(&union.discriminator, chosen, sink)?;
            if let Some(arm) = arm.and_then(|arm| union.arms.get(arm)) {
                cross(&arm.field.shape, source, sink, replace)?;
            }
            close(shape, source, sink)
        }
        Shape::Variant => {
            source.open(shape)?;
            let content = source.content()?;
            sink.open(shape, 1)?;
            sink.content(&content)?;
            cross(&content, source, sink, replace)?;
            close(shape, source, sink)
        }
        _ => pipe(shape, source, sink),
    }
}

fn close<'a>(shape: &Shape, source: &mut dyn Source<'a>, sink: &mut dyn Sink) -> Visit<()> {
    source.close(shape)?;
    sink.close(shape)
}

/// A value that may be absent: 0 or 1 elements.
fn maybe<'a>(
    shape: &Shape,
    target: &Shape,
    source: &mut dyn Source<'a>,
    sink: &mut dyn Sink,
    replace: &Replace<'_>,
) -> Visit<()> {
    let len = source.open(shape)?;
    sink.open(shape, len)?;
    if len > 0 {
        cross(target, source, sink, replace)?;
    }
    close(shape, source, sink)
}
