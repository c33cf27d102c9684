//! Signatures while values are read and written: alignment and width. What they are made of, and
//! whether they follow the rules, is told by [`everywire_idl::signature`].

use everywire_idl::signature as spelling;
use everywire_model::shape::{Field, TextKind};
use everywire_model::{Failure, Initiator, Kind, Shape};

pub(crate) use everywire_idl::signature::{check, check_one, fits, fits_one};

/// What the values of a type with this first code are aligned to. Codes of arrays, texts and numbers of 32
/// bits have 4.
#[inline]
pub(crate) fn alignment(code: u8) -> usize {
    match code {
        b'n' | b'q' => 2,
        b'x' | b't' | b'd' | b'(' | b'{' => 8,
        b'y' | b'g' | b'v' => 1,
        _ => 4,
    }
}

/// What the values of a shape are aligned to.
#[inline]
pub(crate) fn alignment_of(shape: &Shape) -> usize {
    match shape.resolved() {
        Shape::Void | Shape::U8 | Shape::I8 | Shape::Variant => 1,
        Shape::Text(text) if text.kind == TextKind::Signature => 1,
        Shape::U16 | Shape::I16 => 2,
        Shape::U64 | Shape::I64 | Shape::F32 | Shape::F64 | Shape::Struct(_) | Shape::Union(_) => 8,
        Shape::Pointer(pointer) => alignment_of(&pointer.target),
        _ => 4,
    }
}

/// How many bytes each value of a shape takes, where that is always the same and they follow without gaps.
/// Nothing for composites and texts.
#[inline]
pub(crate) fn width_of(shape: &Shape) -> Option<usize> {
    match shape.resolved() {
        Shape::U8 | Shape::I8 => Some(1),
        Shape::U16 | Shape::I16 => Some(2),
        Shape::Bool | Shape::U32 | Shape::I32 | Shape::Enum(_) | Shape::Handle => Some(4),
        Shape::U64 | Shape::I64 | Shape::F32 | Shape::F64 => Some(8),
        Shape::Pointer(pointer) => width_of(&pointer.target),
        _ => None,
    }
}

/// The failure of a shape that this wire has no signature for.
#[cold]
pub(crate) fn unspelled(error: &spelling::SignatureError) -> Failure {
    Failure::unsupported(format!("a value cannot travel by D-Bus: {error}"))
        .with_hint("pass it in another shape, or use a wire that has it")
}

/// The failure of values that have another type than the contract says.
#[cold]
pub(crate) fn mismatch(kind: Kind, fields: &[Field], found: &[u8]) -> Failure {
    let mut wanted = String::new();
    for field in fields {
        if let Err(error) = spelling::of(&field.shape, &mut wanted) {
            return unspelled(&error);
        }
    }
    let found = found.escape_ascii();
    Failure::new(kind, Initiator::Peer, format!("values of the type `{wanted}` are expected, `{found}` came"))
        .with_hint("compare the contract of both sides")
}
