//! Header fields that pass with a body (specification, "Header Fields"): those that nobody here knows, and
//! how many hops a call passed.
//!
//! Fields that came with a body are kept as octets, in the byte order of their message; they are valid, since
//! the whole header was read. Changes of headers are kept apart, and are written in the byte order that the
//! new message will have. Codes below 11 never pass: each connection has its own.

use crate::basics::{BasicWriter, Get, NATIVE_LITTLE, ReadText, WriteText};
use crate::dialect::NAME;
use crate::frame::{HEADER, HOPS, HOPS_NAME, passes};
use crate::signature::check_one;
use crate::walk::skip;
use everywire_model::headers::{Content, number};
use everywire_model::visit::MessageContents;
use everywire_model::{Body, Failure, Header, Visit};
use std::borrow::Cow;

/// The fields to put in front of the others: those that came with the body, without those that the changes
/// replace or remove, and the changes. `little` is the byte order of the new message. Each field is padded to
/// 8, so whatever stands behind keeps its place within its block.
///
/// # Errors
/// A change names no field that may be written, or has a NUL in its text.
pub(crate) fn fields(carries: MessageContents<'_>, little: bool) -> Visit<Cow<'_, [u8]>> {
    let edits = carries.headers;
    let write = |header: &Header, out: &mut Vec<u8>| write(header, little, out);
    let brought = match edits {
        Some(edits) => edits.written(NAME, little, write)?.0,
        None => Cow::Borrowed(&[][..]),
    };
    let Some(own) = carries.body.and_then(Body::headers).filter(|own| !own.is_empty()) else {
        return Ok(brought);
    };
    let mut out = Vec::new();
    if !own.raw().is_empty() {
        each(own.raw(), little, |code, _, _, whole| {
            let name = code.to_string();
            if own.keeps(&name) && edits.is_none_or(|edits| edits.keeps(&name)) {
                out.extend_from_slice(whole);
                out.resize(out.len().next_multiple_of(8), 0);
            }
        })?;
    }
    own.brought().try_for_each(|header| write(header, &mut out))?;
    out.extend_from_slice(&brought);
    Ok(out.into())
}

/// Writes the field that a header stands for, padded to 8.
pub(crate) fn write(header: &Header, little: bool, out: &mut Vec<u8>) -> Visit<()> {
    let code = code(header)?;
    let mut put = BasicWriter { out, shift: 0, swap: little != NATIVE_LITTLE };
    match &header.content {
        Content::Text(text) if text.contains('\0') => {
            let what = "a header field with a NUL in it";
            return Err(Failure::bad_argument(what));
        }
        Content::Text(text) => {
            put.out.reserve(16 + text.len());
            put.out.extend_from_slice(&[code, 1, b's', 0]);
            put.string(text.as_bytes());
        }
        Content::Bytes(bytes) => {
            put.out.extend_from_slice(&[code, 2, b'a', b'y', 0]);
            put.count(bytes.len());
            put.out.extend_from_slice(bytes);
        }
    }
    put.align(8);
    Ok(())
}

/// The code of the field that a header stands for: a header's name is that number, from 11 to 255, in digits.
fn code(header: &Header) -> Result<u8, Failure> {
    header.name.parse().ok().filter(|code| passes(*code)).ok_or_else(|| {
        let what = format!("`{}` names no header field of D-Bus that may be written", header.name);
        Failure::bad_argument(what).with_hint(
            "give its number, from 11 to 255: those below have a meaning that each connection sees to itself",
        )
    })
}

/// Walks over the fields that pass: `see` gets the code, the signature of the value, the value, and all of it.
fn each<'a>(raw: &'a [u8], little: bool, mut see: impl FnMut(u8, &'a [u8], Get<'a>, &'a [u8])) -> Visit<()> {
    let mut get = Get { bytes: raw, pos: 0, base: HEADER, little };
    while get.left() > 0 {
        get.align(8)?;
        let start = get.pos;
        let code = get.u8()?;
        let kind = get.signature()?;
        check_one(kind).map_err(|what| get.bad(what))?;
        let value = get;
        skip(&mut get, kind)?;
        if passes(code) {
            see(code, kind, value, raw.get(start..get.pos).unwrap_or_default());
        }
    }
    Ok(())
}

/// How many hops the header fields beside a body tell of.
pub(crate) fn hops(body: &Body) -> Visit<u32> {
    let Some(headers) = body.headers() else { return Ok(0) };
    let ours = headers.brought().filter(|header| header.name == HOPS_NAME);
    let mut hops = ours.map(Header::number).max().unwrap_or_default();
    if !headers.raw().is_empty() {
        each(headers.raw(), body.little, |code, kind, mut value, _| {
            if code == HOPS && kind == b"s" {
                hops = hops.max(value.string().map_or(0, number));
            }
        })?;
    }
    Ok(hops)
}

/// The header fields beside a body that nobody here knows. Text and octets are told as such, any other value as the bytes of a
/// variant.
pub(crate) fn headers(body: &Body) -> Visit<Vec<Header>> {
    let mut all = Vec::new();
    let Some(headers) = body.headers() else { return Ok(all) };
    let raw = headers.raw();
    each(raw, body.little, |code, kind, mut value, whole| {
        let name = code.to_string();
        let text = match kind {
            b"s" | b"o" => value.string().ok().and_then(|text| str::from_utf8(text).ok()),
            _ => None,
        };
        let octets = match kind {
            b"ay" => value.array().and_then(|len| value.take(len)).ok(),
            _ => None,
        };
        all.push(match (text, octets) {
            (Some(text), _) => Header::text(name, text),
            (None, Some(octets)) => Header::bytes(name, raw.slice_ref(octets)),
            (None, None) => Header::bytes(name, raw.slice_ref(whole.get(1..).unwrap_or_default())),
        });
    })?;
    Ok(all)
}
