//! What a shape alone tells about its bytes: alignment, least size, pointers, conformance.
//!
//! All functions are pure and look at the shape alone, never at a message. They stop at pointers, so that a
//! type which contains itself by a pointer ends. `least` and `fixed` serve the checks before anything is
//! allocated: a count from the wire is accepted only if the rest of the stub can hold so many times the least
//! size.
//!
//! The rules are those of C706 14.2 and 14.3: a primitive is aligned to its width, a struct to its widest
//! member, a union to its widest arm or its discriminator, a pointer (any string, sequence or map that is not
//! in place) to four.

use everywire_model::shape::{Alias, Enum, Name, Order, Sequence, Shape, Struct, Text, TextKind, Union};
use everywire_model::{Hold, ms_union};

/// Where a value stands, which decides how strings, sequences and pointers are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Embedding {
    /// A parameter.
    Top,
    /// Directly behind a pointer.
    Behind,
    /// Inside a struct, array or union.
    Within,
    /// The last field of a struct whose conformance was moved to the front.
    Tail,
    /// The content of a VARIANT.
    Arm,
}

/// How a value is held where the name of an alias says more than the shape behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As its shape says.
    Plain,
    /// A boolean of 16 bits (MS-OAUT 2.2.27).
    VariantBool,
    /// A sequence held as a SAFEARRAY, reached through two pointers (MS-OAUT 2.2.30). The first pointer
    /// stands in place, the second one begins what the first points to.
    Safearray,
    /// A string of MIDL in an array of a fixed size (`[string] char name[20]`, kept as `string(20)`): a varying array in place, whose
    /// last element is the NUL (C706 14.3.4.1).
    FixedString,
}

/// What fixed strings look like.
static NARROW_UNITS: Sequence =
    Sequence { element: Shape::U8, bound: None, order: Order::Varying, size: None };
static WIDE_UNITS: Sequence =
    Sequence { element: Shape::U16, bound: None, order: Order::Varying, size: None };
static NARROW_STRING: Shape = Shape::Sequence(Hold::Static(&NARROW_UNITS));
static WIDE_STRING: Shape = Shape::Sequence(Hold::Static(&WIDE_UNITS));

/// The form of a shape, and the shape behind its aliases.
pub(super) fn form(shape: &Shape) -> (Form, &Shape) {
    let mut shape = shape;
    while let Shape::Alias(alias) = shape {
        let form = form_of(alias);
        if form != Form::Plain {
            return (form, alias.target.resolved());
        }
        shape = &alias.target;
    }
    (Form::Plain, shape)
}

#[cold]
fn form_of(alias: &Alias) -> Form {
    match (last_part(&alias.name), alias.target.resolved()) {
        ("VARIANT_BOOL", Shape::Bool) => Form::VariantBool,
        ("SAFEARRAY" | "LPSAFEARRAY" | "PSAFEARRAY", Shape::Sequence(_)) => Form::Safearray,
        (name, Shape::Text(_)) if name.starts_with("string(") => Form::FixedString,
        _ => Form::Plain,
    }
}

/// The shape whose bytes in place look as those of this one do, whatever form its alias has.
pub(super) fn held(shape: &Shape) -> &Shape {
    match form(shape) {
        (Form::VariantBool, _) => &Shape::I16,
        // A pointer, as a VARIANT is.
        (Form::Safearray, _) => &Shape::Variant,
        (Form::FixedString, Shape::Text(Text { kind: TextKind::Narrow, .. })) => &NARROW_STRING,
        (Form::FixedString, _) => &WIDE_STRING,
        (Form::Plain, shape) => shape,
    }
}

/// The last part of a scoped name.
pub(super) fn last_part(name: &Name) -> &str {
    name.rsplit("::").next().unwrap_or_default()
}

/// Bytes of an enumeration.
/// An enumeration has 16 bits on the wire unless MIDL says `v1_enum` (C706 14.2.5).
pub(super) fn enum_width(shape: &Enum) -> usize {
    if shape.bits == 16 { 2 } else { 4 }
}

/// Bytes of a value that stands in place, whole, and holds nothing else; none of any other.
pub(super) fn width(shape: &Shape) -> Option<usize> {
    match shape {
        Shape::Char => Some(1),
        Shape::WideChar => Some(2),
        Shape::Enum(shape) => Some(enum_width(shape)),
        shape => shape.width(),
    }
}

/// Bits of the discriminator of a union.
pub(super) fn bits_of(union: &Union) -> u32 {
    width(union.discriminator.resolved()).and_then(|width| u32::try_from(width * 8).ok()).unwrap_or(i64::BITS)
}

/// Alignment of a value inside a struct or array; `tail` says whether a sequence here belongs to the struct itself.
pub(crate) fn alignment(shape: &Shape, tail: bool) -> usize {
    match held(shape) {
        Shape::Void => 1,
        Shape::Struct(shape) => {
            let last = shape.fields.len().saturating_sub(1);
            let fields = shape.fields.iter().enumerate();
            fields.map(|(index, field)| alignment(&field.shape, tail && index == last)).max().unwrap_or(1)
        }
        Shape::Union(shape) => {
            let arms = shape.arms.iter().map(|arm| alignment(&arm.field.shape, false));
            arms.max().unwrap_or(1).max(alignment(&shape.discriminator, false))
        }
        Shape::Array(shape) => alignment(&shape.element, false),
        // Count and pointer, in a struct.
        Shape::Sequence(shape) if shape.order == Order::Free => 4,
        Shape::Sequence(shape) if shape.order == Order::Varying => alignment(&shape.element, false).max(4),
        Shape::Sequence(shape) if tail => alignment(&shape.element, false),
        shape => width(shape).unwrap_or(4),
    }
}

/// What comes behind the discriminator of a union is aligned to this whichever arm it is; 1 where each arm has its own alignment, as
/// in most unions.
pub(super) fn arms_alignment(union: &Union) -> usize {
    if !ms_union::is(union) {
        return 1;
    }
    union.arms.iter().map(|arm| alignment(&arm.field.shape, false)).max().unwrap_or(1)
}

/// Alignment of the struct of a key and its value; 1 of what is no map.
pub(super) fn pair_alignment(shape: &Shape) -> usize {
    match shape {
        Shape::Map(map) => alignment(&map.key, false).max(alignment(&map.value, false)),
        _ => 1,
    }
}

/// The fewest bytes that a value inside an array takes, padding apart.
pub(super) fn least(shape: &Shape) -> usize {
    match held(shape) {
        Shape::Void => 0,
        Shape::Struct(shape) => shape.fields.iter().map(|field| least(&field.shape)).sum(),
        Shape::Union(shape) => least(&shape.discriminator),
        Shape::Array(shape) => least(&shape.element).saturating_mul(shape.len as usize),
        Shape::Sequence(shape) if matches!(shape.order, Order::Varying | Order::Free) => 8,
        Shape::Map(_) => 8,
        shape => width(shape).unwrap_or(4),
    }
}

/// The bytes that every value in place takes, from a multiple of its alignment; nothing if they differ.
pub(super) fn fixed(shape: &Shape) -> Option<usize> {
    match held(shape) {
        Shape::Union(_) => None,
        Shape::Sequence(shape) if shape.order == Order::Varying => None,
        Shape::Struct(shape) => shape.fields.iter().try_fold(0_usize, |at, field| {
            at.checked_next_multiple_of(alignment(&field.shape, false))?.checked_add(fixed(&field.shape)?)
        }),
        Shape::Array(shape) => fixed_run(&shape.element, shape.len as usize),
        shape => Some(least(shape)),
    }
}

/// The same for so many values in a row.
pub(super) fn fixed_run(element: &Shape, count: usize) -> Option<usize> {
    let size = fixed(element)?;
    let Some(others) = count.checked_sub(1) else { return Some(0) };
    size.checked_next_multiple_of(alignment(element, false))?.checked_mul(others)?.checked_add(size)
}

/// Whether the bytes of a value in place hold pointers whose referents are deferred.
pub(super) fn has_pointers(shape: &Shape, tail: bool) -> bool {
    match held(shape) {
        Shape::Text(_)
        | Shape::Map(_)
        | Shape::Optional(_)
        | Shape::Pointer(_)
        | Shape::Variant
        | Shape::Reference(_)
        | Shape::Handle => true,
        Shape::Struct(shape) => {
            let last = shape.fields.len().saturating_sub(1);
            let mut fields = shape.fields.iter().enumerate();
            fields.any(|(index, field)| has_pointers(&field.shape, tail && index == last))
        }
        Shape::Union(shape) => shape.arms.iter().any(|arm| has_pointers(&arm.field.shape, false)),
        Shape::Array(shape) => has_pointers(&shape.element, false),
        Shape::Sequence(shape) => {
            shape.order == Order::Free
                || !(tail || shape.order == Order::Varying)
                || has_pointers(&shape.element, false)
        }
        _ => false,
    }
}

/// The conformant array that ends a struct, directly or as the end of its last struct.
/// C706 14.3.7.1: the maximum count of such an array stands before the outermost struct that it ends.
pub(super) fn tail_of(shape: &Struct) -> Option<&Sequence> {
    match form(&shape.fields.last()?.shape) {
        (Form::Plain, Shape::Sequence(last)) if !matches!(last.order, Order::Varying | Order::Free) => {
            Some(last)
        }
        (Form::Plain, Shape::Struct(last)) => tail_of(last),
        _ => None,
    }
}
