//! Service contexts: what travels beside a call (CORBA 3.3 part 2, section 7.7).
//!
//! A context is a number and octets, mostly an encapsulation. The session reads those that it knows and keeps
//! the list as it came (`received`), without reading it, for whoever asks for headers or passes the call on.
//! Contexts that speak of the connection (`passes`) never pass on to another.

use crate::cdr::{DecodeError, Get};
use bytes::Bytes;
use everywire_model::headers::number;
use everywire_model::{Body, Header, Headers, Visit};
use std::ops::Range;

/// Which code sets the client uses from now on.
pub const CODE_SETS: u32 = 1;
/// The client's own listening points, for callbacks on the same connection (`bidirectional`).
pub const BI_DIR_IIOP: u32 = 5;
/// The version of Sun's ORB, beside each message of GlassFish and of Java up to version 10.
pub const SUN_VERSION: u32 = 0x4e45_4f00;
/// Ours: kind, message and hint of a failure, beside a system exception.
pub const FAILURE: u32 = 0x4557_4601;
/// Ours: fills a header up, and says nothing.
pub const FILL: u32 = 0x4557_4602;
/// Ours: how many hops a call has passed, in digits.
pub const HOPS: u32 = 0x4557_4603;
/// The same, as a header is called. It is `header_name` of `HOPS`; headers that the broker sets are found by
/// it.
pub(crate) const HOPS_NAME: &str = "0x45574603";

/// The list of contexts of a message, as headers that came. It begins at a multiple of 4, so that its numbers
/// stay where they were. No octet is copied: the headers are a slice of the message.
pub(crate) fn received(message: &Bytes, list: Range<usize>) -> Headers {
    let start = list.start.next_multiple_of(4).min(list.end);
    Headers::received(message.slice(start..list.end))
}

/// Name of a context, for listings.
pub fn name(id: u32) -> &'static str {
    match id {
        0 => "transaction",
        CODE_SETS => "code sets",
        2 => "chain bypass check",
        3 => "chain bypass info",
        4 => "logical thread",
        BI_DIR_IIOP => "bidirectional",
        6 => "sending context runtime",
        9 => "unknown exception info",
        15 => "security attribute service",
        17 => "Java exception detail",
        SUN_VERSION => "version of Sun's ORB",
        FAILURE => "failure",
        FILL => "filler",
        HOPS => "hops",
        _ => "context",
    }
}

/// Whether a hop passes it on: those that do not speak of the connection that they came by. The version of Sun's ORB says
/// what the other end of a connection reads, and that is the hop; an ORB of that family takes a peer without it for one that
/// keeps to the specification, as its own versions since 1.4 do.
pub(crate) fn passes(id: u32) -> bool {
    !matches!(id, CODE_SETS | BI_DIR_IIOP | SUN_VERSION | FILL)
}

/// Passes over a list of contexts, showing each to `see`. The count is bounded by what the message can hold.
/// Each entry takes 8 octets at least.
// Of each message.
#[inline(always)]
pub(crate) fn each<'a>(
    get: &mut Get<'a>,
    see: impl FnMut(u32, &'a [u8]) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    // Mostly there is none: after the first request of a connection nothing is left to say.
    match get.count()? {
        0 => Ok(()),
        count => each_of(count, get, see),
    }
}

#[inline(never)]
fn each_of<'a>(
    count: usize,
    get: &mut Get<'a>,
    mut see: impl FnMut(u32, &'a [u8]) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    if count > get.left() / 8 {
        return Err(get.bad("a count of service contexts exceeds the message"));
    }
    for _ in 0..count {
        let id = get.u32()?;
        see(id, get.octets()?)?;
    }
    Ok(())
}

/// A context's name among headers. Eight hexadecimal digits behind `0x`, so that each number has one name.
pub(crate) fn header_name(id: u32) -> String {
    format!("{id:#010x}")
}

/// How many hops the contexts that came beside a body tell of. The greatest, if several contexts tell: a peer
/// cannot make a loop look shorter by a second context. 0 if none does, or if what stands there is no number.
pub(crate) fn hops(body: &Body) -> Visit<u32> {
    let mut hops = 0;
    beside(body, |_, id, data| {
        if id == HOPS {
            hops = hops.max(number(data));
        }
    })?;
    Ok(hops)
}

/// Shows each context that came beside a body to `see`, with the list that it is in.
fn beside(body: &Body, mut see: impl FnMut(&Bytes, u32, &[u8])) -> Visit<()> {
    let Some(raw) = body.headers().map(Headers::raw).filter(|raw| !raw.is_empty()) else { return Ok(()) };
    let mut get = Get { bytes: raw, pos: 0, base: 0, little: body.little };
    each(&mut get, |id, data| {
        see(raw, id, data);
        Ok(())
    })?;
    Ok(())
}

/// The contexts that came beside a body and may pass on, as headers: each named by its number, with its
/// octets shared with the message.
pub(crate) fn headers(body: &Body) -> Visit<Vec<Header>> {
    let mut all = Vec::new();
    beside(body, |raw, id, data| {
        if passes(id) {
            all.push(Header::bytes(header_name(id), raw.slice_ref(data)));
        }
    })?;
    Ok(all)
}
