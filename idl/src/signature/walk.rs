//! Signatures as they pass by: checked, and compared with shapes, without building anything.
//!
//! `check` comes first for bytes from a peer; the other functions are safe for any bytes but expect a
//! signature that was checked. A dict entry counts as a struct here.
//!
//! Recursion is bounded by the depths in `complete`, and by the signature's length in `after`.

use super::{ARRAYS, LENGTH, STRUCTS, code, is_basic};
use everywire_model::Shape;
use everywire_model::shape::Field;

/// Whether a signature follows the rules.
///
/// # Errors
/// The rule that it breaks.
#[inline]
pub fn check(signature: &[u8]) -> Result<(), &'static str> {
    if signature.len() > LENGTH {
        return Err("it is longer than 255 bytes");
    }
    let mut rest = signature;
    while !rest.is_empty() {
        rest = complete(rest, 0, 0)?;
    }
    Ok(())
}

/// Whether a signature is one complete type, as a variant's must be.
///
/// # Errors
/// The rule that it breaks.
#[inline]
pub fn check_one(signature: &[u8]) -> Result<(), &'static str> {
    if signature.len() > LENGTH {
        return Err("it is longer than 255 bytes");
    }
    match complete(signature, 0, 0)? {
        [] => Ok(()),
        _ => Err("it has more than one complete type"),
    }
}

/// What follows the element type of an array in a signature, which begins with that type: it is given the part
/// behind the `a`. A dict entry stands without its array here, which is why `complete` alone would refuse it;
/// its key is not looked at, since `check` did that.
///
/// # Errors
/// The rule that the element type breaks.
#[inline]
pub fn element(signature: &[u8]) -> Result<&[u8], &'static str> {
    match signature {
        [b'{', _, rest @ ..] => match complete(rest, 0, 0)? {
            [b'}', rest @ ..] => Ok(rest),
            _ => Err("a dict entry is not one key and one value"),
        },
        _ => complete(signature, 0, 0),
    }
}

/// What follows the first complete type. `arrays` and `structs` count what is open around it.
#[inline]
fn complete(signature: &[u8], arrays: usize, structs: usize) -> Result<&[u8], &'static str> {
    let [code, rest @ ..] = signature else { return Err("it ends inside a type") };
    match code {
        b'a' if arrays == ARRAYS => Err("more than 32 arrays are inside one another"),
        b'a' => match rest {
            [b'{', key, rest @ ..] => {
                if !is_basic_code(*key) {
                    return Err("the key of a dict entry is no basic type");
                }
                match complete(rest, arrays + 1, structs)? {
                    [b'}', rest @ ..] => Ok(rest),
                    _ => Err("a dict entry is not one key and one value"),
                }
            }
            _ => complete(rest, arrays + 1, structs),
        },
        b'(' if structs == STRUCTS => Err("more than 32 structs are inside one another"),
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
        code if is_basic_code(*code) => Ok(rest),
        _ => Err("it has a code that no type has here"),
    }
}

/// Basic types may be keys of dict entries; `v` is no container by its code, but may not be a key either.
#[inline]
fn is_basic_code(code: u8) -> bool {
    matches!(code, b'y' | b'b' | b'n' | b'q' | b'i' | b'u' | b'x' | b't' | b'd' | b's' | b'o' | b'g' | b'h')
}

/// Whether values of these fields have this signature. The fields together must use up the signature. This
/// runs for each message that is decoded, so nothing is allocated.
#[inline]
pub fn fits(fields: &[Field], signature: &[u8]) -> bool {
    let mut rest = signature;
    for field in fields {
        // Most fields have one code.
        let next = match (code(&field.shape), rest.split_first()) {
            (Some(wanted), Some((found, rest))) if wanted == *found => Some(rest),
            (Some(_), _) => None,
            (None, _) => after(&field.shape, rest, LENGTH),
        };
        match next {
            Some(next) => rest = next,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Whether a signature begins with the type of the shape; then, what follows it.
#[inline]
pub fn fits_one<'s>(shape: &Shape, signature: &'s [u8]) -> Option<&'s [u8]> {
    after(shape, signature, LENGTH)
}

/// `left` bounds pointers and aliases, which write nothing. Every step takes one from `left`; None when it is
/// used up, as by a type that contains itself.
#[inline]
fn after<'s>(shape: &Shape, signature: &'s [u8], left: usize) -> Option<&'s [u8]> {
    let left = left.checked_sub(1)?;
    match shape {
        Shape::Alias(alias) => return after(&alias.target, signature, left),
        Shape::Pointer(pointer) => return after(&pointer.target, signature, left),
        Shape::Void => return Some(signature),
        _ => {}
    }
    let (found, rest) = signature.split_first()?;
    let wanted = match shape {
        Shape::Struct(_) | Shape::Union(_) => b'(',
        shape => code(shape).unwrap_or(b'a'),
    };
    if *found != wanted {
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
            let (open, close) = if is_basic(&map.key) { (b'{', b'}') } else { (b'(', b')') };
            let rest = after(&map.key, closed(rest, open)?, left)?;
            closed(after(&map.value, rest, left)?, close)
        }
        _ => Some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, parse_one};
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
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(check_one(b"ii").is_err() && check_one(b"").is_err() && check_one(b"(ii)").is_ok());
        assert_eq!(element(b"{sv}i").unwrap(), b"i");
        assert!(element(b"{s}").is_err());
    }

    #[test]
    fn a_shape_fits_its_own_signature_only() {
        let all = ["i", "as", "a{sv}", "a(uv)", "(i(sb)d)", "ah", "aay", "g"];
        for one in all {
            let shape = parse_one(one).unwrap();
            for other in all {
                let same = fits_one(&shape, other.as_bytes()).is_some_and(<[u8]>::is_empty);
                assert_eq!(same, one == other, "{one} {other}");
                let field = Field { name: "x".into(), shape: shape.clone() };
                assert_eq!(fits(&[field], other.as_bytes()), one == other, "{one} {other}");
            }
        }
    }
}
