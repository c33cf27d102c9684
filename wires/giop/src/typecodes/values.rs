//! Type codes that are values. What was read is kept, since its encapsulations mean the same wherever they stand: their
//! alignment and their byte order are their own, and indirections lead nowhere outside. So it is written again octet for
//! octet, after its kind, and kinds whose values this side does not know can pass.

use super::read::is_simple;
use super::{INDIRECTION, kind};
use crate::cdr::{CdrWriter, Get, ReadCdr};
use crate::limits::TYPECODE_DEPTH;
use bytes::Bytes;
use everywire_model::shape::Name;
use everywire_model::{Budget, Failure, Initiator, Kind, TypeCode, Visit};

/// Whether an encapsulation follows this kind. 36 is the greatest kind of the specification (`tk_event`).
fn is_encapsulated(code: u32) -> bool {
    !is_simple(code) && code <= 36
}

/// The words for kinds whose values this side does not know, or that are no values.
fn word(code: u32) -> &'static str {
    match code {
        kind::NULL => "null",
        kind::PRINCIPAL => "principal",
        kind::STRUCT => "struct",
        kind::UNION => "union",
        kind::SEQUENCE => "sequence",
        kind::ARRAY => "array",
        kind::ALIAS => "alias",
        kind::EXCEPT => "exception",
        kind::VALUE => "valuetype",
        kind::BOX => "value box",
        31 => "native",
        32 => "abstract interface",
        33 => "local interface",
        34 => "component",
        35 => "home",
        36 => "eventtype",
        _ => "type",
    }
}

/// Reads a type code that is a value. It is parsed in any case, so its bounds are checked; one of a kind
/// without values here is kept as octets with its kind, id and name.
///
/// # Errors
/// It is malformed, or exceeds a bound.
pub(crate) fn get_value(get: &mut Get<'_>, budget: &mut Budget) -> Visit<TypeCode> {
    get.align(4);
    let mut rest = *get;
    let code = rest.u32()?;
    if code > 36 {
        let what = if code == INDIRECTION {
            "a type code that is a value begins with an indirection"
        } else {
            "no kind of type code"
        };
        return Err(get.bad(what).into());
    }
    if code == kind::NULL {
        *get = rest;
        return Ok(TypeCode::null());
    }
    let mut encoded = Vec::new();
    let mut named = (String::new(), String::new());
    if is_encapsulated(code) {
        let content = rest.octets()?;
        budget.charge_bytes(content.len() as u64)?;
        encoded.extend_from_slice(&code.to_be_bytes());
        encoded.extend_from_slice(content);
        if !matches!(code, kind::SEQUENCE | kind::ARRAY) {
            let mut inner = Get::encapsulation(content)?;
            named = (inner.text()?, inner.text()?);
        }
    } else if code == kind::PRINCIPAL {
        encoded.extend_from_slice(&code.to_be_bytes());
    }
    match super::get(get, budget) {
        // An unnamed remark on the shape says that it was boxed, which the box itself need not.
        Ok(shape) if code != kind::BOX => Ok(TypeCode::new(shape).with_encoded(Bytes::from(encoded))),
        Err(failure) if failure.kind() != Kind::Unsupported => Err(failure),
        _ => {
            *get = rest;
            let (id, name) = named;
            Ok(TypeCode::read(Name::Borrowed(word(code)), id.into(), name.into(), encoded.into()))
        }
    }
}

/// Writes a type code that is a value: octet for octet if it was read, else from its shape.
///
/// # Errors
/// Its shape has no type code, or is of a kind that can only be passed on.
pub(crate) fn put_value(value: &TypeCode, put: &mut CdrWriter<'_>) -> Visit<()> {
    if value.is_null() {
        put.u32(kind::NULL);
        return Ok(());
    }
    if let Some((code, content)) = value.encoded().split_first_chunk() {
        let code = u32::from_be_bytes(*code);
        put.u32(code);
        if is_encapsulated(code) {
            put.octets(content);
        }
        return Ok(());
    }
    match value.shape() {
        Some(shape) => super::put(shape, put, &mut super::OpenTypes::of_a_value(), TYPECODE_DEPTH),
        None => Err(unknown(value.kind())),
    }
}

/// The failure for a type code that has neither octets nor a shape.
#[cold]
fn unknown(kind: &str) -> Failure {
    Failure::new(Kind::Unsupported, Initiator::User, format!("the type code of a {kind} cannot be made here"))
        .with_hint("only one that was read can be passed on")
}
