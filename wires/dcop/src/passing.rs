//! Calls, answers and signals that pass without a contract: a function is its signature, the data are bytes that nobody looks at, and
//! a result has its type in front.
//!
//! A search (`DCOPFind`) is a call as well: of no function where it is for an object, of `?` and the function where it is for one
//! object of several. There are no headers, and a failure is told without a reason. References in data name applications: they lead
//! past the hop. Signatures pass as they are spelled, so that both sides of a hop are of KDE's kind or both of Trinity's.

use crate::standard::SEARCH;
use crate::strings::StringReader;
use crate::values::NAME;
use bytes::Bytes;
use everywire_model::message::needs_contract;
use everywire_model::visit::MessageContents;
use everywire_model::{Body, Encode, Failure, Headers, Visit};

/// The body that is passed on in place of values, if one is.
///
/// # Errors
/// It is of another wire, or headers are to go with it.
#[inline]
pub(crate) fn passed(values: &dyn Encode) -> Visit<Option<&Body>> {
    match values.carries() {
        MessageContents { body: None, headers: None } => Ok(None),
        carries => as_stream(carries),
    }
}

/// Headers that came with the body are none of this wire's, whose messages have none; only changes count.
#[cold]
fn as_stream(carries: MessageContents<'_>) -> Visit<Option<&Body>> {
    let own = carries.body.and_then(Body::headers);
    if own.into_iter().chain(carries.headers).flat_map(Headers::brought).next().is_some() {
        let what = "a header cannot travel by DCOP, whose messages have none";
        return Err(Failure::unsupported(what));
    }
    match carries.body {
        Some(body) if body.codec.name() != NAME => Err(needs_contract("a body of another wire")),
        body => Ok(body),
    }
}

/// The function that a search is for, if the operation is one: empty where the search is for an object.
pub(crate) fn searched(operation: &[u8]) -> Option<&[u8]> {
    if operation.is_empty() { Some(operation) } else { operation.strip_prefix(SEARCH) }
}

/// The object that a search found elsewhere: of the reference that is the answer. Nothing, if the answer is
/// no reference or does not decode.
pub(crate) fn found(body: &Body) -> Option<Bytes> {
    if !matches!(&*body.context, b"DCOPRef") {
        return None;
    }
    let mut walk = StringReader::new(&body.bytes);
    walk.name().ok()?;
    let object = walk.name().ok()?;
    Some(body.bytes.slice(object))
}

/// The signature of a signal that is told by its name on the wire; where that is the name alone, the body knows the rest.
pub(crate) fn signature_of<'a>(signal: &'a [u8], body: Option<&'a Body>) -> &'a [u8] {
    match body {
        Some(body) if !signal.contains(&b'(') => &body.context,
        _ => signal,
    }
}
