//! Signatures as they pass by: checked, compared with shapes, walked over, without building anything. What makes shapes
//! of signatures and back is [`everywire_idl::signature`].

use crate::basics::{Bad, Get};
use crate::limits;
use everywire_idl::signature as spelling;
use everywire_model::shape::{Field, TextKind};
use everywire_model::{Failure, Initiator, Kind, Shape};

/// Whether a signature follows the rules (specification, "Valid Signatures").
pub(crate) fn check(signature: &[u8]) -> Result<(), &'static str> {
    if signature.len() > limits::NAME {
        return Err("it is longer than 255 bytes");
    }
    let mut rest = signature;
    while !rest.is_empty() {
        rest = complete(rest, 0, 0)?;
    }
    Ok(())
}

/// Whether a signature is one complete type, as a variant's must be.
pub(crate) fn check_one(signature: &[u8]) -> Result<(), &'static str> {
    if signature.len() > limits::NAME {
        return Err("it is longer than 255 bytes");
    }
    match complete(signature, 0, 0)? {
        [] => Ok(()),
        _ => Err("it has more than one complete type"),
    }
}

/// What follows the first complete type.
fn complete(signature: &[u8], arrays: u8, structs: u8) -> Result<&[u8], &'static str> {
    let [code, rest @ ..] = signature else { return Err("it ends inside a type") };
    match code {
        b'a' if arrays == limits::NESTING => Err("more than 32 arrays are inside one another"),
        b'a' => match rest {
            [b'{', key, rest @ ..] => {
                if structs == limits::NESTING {
                    return Err("more than 32 structs are inside one another");
                }
                if !is_basic(*key) {
                    return Err("the key of a dict entry is no basic type");
                }
                match complete(rest, arrays + 1, structs + 1)? {
                    [b'}', rest @ ..] => Ok(rest),
                    _ => Err("a dict entry is not one key and one value"),
                }
            }
            _ => complete(rest, arrays + 1, structs),
        },
        b'(' if structs == limits::NESTING => Err("more than 32 structs are inside one another"),
        b'(' => {
            let mut rest = complete(rest, arrays, structs + 1)?;
            loop {
                match rest {
                    [b')', rest @ ..] => return Ok(rest),
                    _ => rest = complete(rest, arrays, structs + 1)?,
                }
            }
        }
        b'v' => Ok(rest),
        code if is_basic(*code) => Ok(rest),
        _ => Err("it has a code that no type has here"),
    }
}

fn is_basic(code: u8) -> bool {
    b"ybnqiuxtdsogh".contains(&code)
}

/// What the values of a type with this first code are aligned to.
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

/// Whether values of these fields have this signature.
#[inline]
pub(crate) fn fits(fields: &[Field], signature: &[u8]) -> bool {
    let mut rest = Some(signature);
    for field in fields {
        rest = rest.and_then(|rest| after(&field.shape, rest, spelling::LENGTH));
    }
    rest.is_some_and(<[u8]>::is_empty)
}

/// Whether a value of this shape has this signature.
pub(crate) fn fits_one(shape: &Shape, signature: &[u8]) -> bool {
    after(shape, signature, spelling::LENGTH).is_some_and(<[u8]>::is_empty)
}

/// What follows the type of the shape in a signature; nothing if the signature has another type here. `left` bounds
/// pointers and aliases, which write nothing.
pub(crate) fn after<'s>(shape: &Shape, signature: &'s [u8], left: usize) -> Option<&'s [u8]> {
    let left = left.checked_sub(1)?;
    let (code, rest) = match shape {
        Shape::Alias(alias) => return after(&alias.target, signature, left),
        Shape::Pointer(pointer) => return after(&pointer.target, signature, left),
        Shape::Void => return Some(signature),
        _ => signature.split_first()?,
    };
    let wanted = match shape {
        Shape::Bool => b'b',
        Shape::U8 | Shape::I8 => b'y',
        Shape::U16 => b'q',
        Shape::I16 => b'n',
        Shape::U32 => b'u',
        Shape::I32 | Shape::Enum(_) => b'i',
        Shape::U64 => b't',
        Shape::I64 => b'x',
        Shape::F32 | Shape::F64 => b'd',
        Shape::Text(text) => match text.kind {
            TextKind::Path => b'o',
            TextKind::Signature => b'g',
            _ => b's',
        },
        Shape::Char | Shape::WideChar | Shape::Reference(_) => b's',
        Shape::Handle => b'h',
        Shape::Variant => b'v',
        Shape::Struct(_) | Shape::Union(_) => b'(',
        _ => b'a',
    };
    if *code != wanted {
        return None;
    }
    let closed = |rest: &'s [u8], by: u8| match rest.split_first() {
        Some((code, rest)) if *code == by => Some(rest),
        _ => None,
    };
    match shape {
        Shape::Struct(shape) => {
            let mut rest = rest;
            for field in shape.fields.iter() {
                rest = after(&field.shape, rest, left)?;
            }
            closed(rest, b')')
        }
        Shape::Union(shape) => {
            let rest = closed(after(&shape.discriminator, rest, left)?, b'v')?;
            closed(rest, b')')
        }
        Shape::Sequence(shape) => after(&shape.element, rest, left),
        Shape::Array(shape) => after(&shape.element, rest, left),
        Shape::Optional(shape) => after(shape, rest, left),
        Shape::Map(map) => {
            let (open, close) = if spelling::is_basic(&map.key) { (b'{', b'}') } else { (b'(', b')') };
            let rest = after(&map.key, closed(rest, open)?, left)?;
            closed(after(&map.value, rest, left)?, close)
        }
        _ => Some(rest),
    }
}

/// Walks over one value and returns what follows its type. The signature was checked; nesting of variants is bounded
/// by `depth`. Arrays are stepped over by their length.
pub(crate) fn skip<'s>(get: &mut Get<'_>, signature: &'s [u8], depth: u32) -> Result<&'s [u8], Bad> {
    let [code, rest @ ..] = signature else { return Err(get.bad("a signature ends inside a type")) };
    let Some(depth) = depth.checked_sub(1) else { return Err(get.bad("values are nested too deeply")) };
    match code {
        b'y' => get.take(1).map(drop)?,
        b'n' | b'q' => get.u16().map(drop)?,
        b'b' | b'i' | b'u' | b'h' => get.u32().map(drop)?,
        b'x' | b't' | b'd' => get.u64().map(drop)?,
        b's' | b'o' => get.string().map(drop)?,
        b'g' => get.signature().map(drop)?,
        b'v' => {
            let inner = get.signature()?;
            check_one(inner).map_err(|what| get.bad(what))?;
            skip(get, inner, depth)?;
        }
        b'a' => {
            let len = get.array()?;
            get.align(alignment(rest.first().copied().unwrap_or(b'y')))?;
            get.take(len)?;
            return complete_element(rest).map_err(|what| get.bad(what));
        }
        _ => {
            get.align(8)?;
            let mut rest = rest;
            while let [first, after @ ..] = rest {
                if matches!(first, b')' | b'}') {
                    return Ok(after);
                }
                rest = skip(get, rest, depth)?;
            }
            return Err(get.bad("a signature ends inside a type"));
        }
    }
    Ok(rest)
}

/// What follows the element type of an array.
fn complete_element(signature: &[u8]) -> Result<&[u8], &'static str> {
    match signature {
        [b'{', _, rest @ ..] => match complete(rest, 0, 0)? {
            [b'}', rest @ ..] => Ok(rest),
            _ => Err("a dict entry is not one key and one value"),
        },
        _ => complete(signature, 0, 0),
    }
}

/// The failure of a shape that this wire has no signature for.
#[cold]
pub(crate) fn unspelled(error: &spelling::SignatureError) -> Failure {
    Failure::new(Kind::Unsupported, Initiator::Here, format!("a value cannot travel by D-Bus: {error}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_follow_the_rules() {
        for good in ["", "i", "a{sv}", "(ii)", "aa(sa{oas}v)", "ay(g)h"] {
            check(good.as_bytes()).unwrap();
        }
        let deep = "a".repeat(33) + "y";
        let nested = "(".repeat(33) + "y" + &")".repeat(33);
        for bad in [
            "a",
            "(",
            ")",
            "()",
            "(i",
            "a{s}",
            "a{vs}",
            "a{sii}",
            "{ss}",
            "z",
            "a{s",
            "(a)",
            deep.as_str(),
            nested.as_str(),
            "a{(s)s}",
        ] {
            assert!(check(bad.as_bytes()).is_err(), "{bad}");
            assert!(spelling::parse(bad).is_err(), "{bad}");
        }
        assert!(check_one(b"ii").is_err() && check_one(b"").is_err() && check_one(b"(ii)").is_ok());
    }

    #[test]
    fn a_shape_fits_its_own_signature_only() {
        let all = ["i", "as", "a{sv}", "a(uv)", "(i(sb)d)", "ah", "aay", "g"];
        for one in all {
            let shape = spelling::parse_one(one).unwrap();
            for other in all {
                assert_eq!(fits_one(&shape, other.as_bytes()), one == other, "{one} {other}");
            }
        }
    }
}
