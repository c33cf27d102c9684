//! Messages that pass without a contract: bodies as they came, with another header in front (specification, "Message Format").
//!
//! What a body's bytes depend on is kept: its byte order is that of the whole new message, its signature and its handles go with it,
//! and it begins at a multiple of eight as every body does. Flags pass as far as the next hop has a use for them, header fields that
//! nobody here knows pass as they came. A body was not looked at when it came in: it is walked over before it goes out, for a bus
//! ends the connection of whoever sends it a message that does not hold together, and so do other peers. What came by a bus was
//! looked at there.
//!
//! Invariants:
//! * Fields that came are in the byte order of the body beside which they came, and so is the message that they leave by.
//! * The fields that are put in front of the others fill blocks of eight: nothing behind them moves within its block.

use crate::basics::{BasicWriter, Get, NATIVE_LITTLE, patch};
use crate::dialect::{LOOKED_AT, NAME, flags};
use crate::frame::HEADER;
use crate::header_fields::fields;
use crate::heads::{Envelope, RouteHead};
use crate::limits;
use crate::pending_calls::Pending;
use crate::requests::{asked, flags as call_flags};
use crate::routes::CallForm;
use crate::session::DbusSession;
use crate::signature::check;
use crate::sink::{Head, Scratch, Setup, over, unsupported};
use crate::walk::look;
use everywire_model::message::needs_contract;
use everywire_model::shape::Struct;
use everywire_model::visit::MessageContents;
use everywire_model::{
    Body, Call, CallId, Encode, Encoded, Expects, Failure, Hold, Initiator, Method, Outcome, SendBuffer,
    Visit,
};
use std::borrow::Cow;
use std::sync::Arc;

/// An error that answers a call which was passed on, as it came. The outcome keeps its meaning for whoever
/// reads it; who passes it on finds the name and the body in it.
pub(crate) fn with_encoded(outcome: Outcome<Body>, name: &str, body: Body) -> Outcome<Body> {
    let encoded = |raised| Encoded { id: name.to_owned(), raised, body };
    match outcome {
        Outcome::Failed(failure) => Outcome::Failed(failure.with_encoded(encoded(false))),
        Outcome::Raised(mut raised) => {
            raised.encoded = Some(Arc::new(encoded(true)));
            Outcome::Raised(raised)
        }
        outcome => outcome,
    }
}

impl DbusSession {
    /// Sends a call by names, or one whose body is passed on, or that has headers.
    ///
    /// # Errors
    /// The body cannot leave by this connection as it is; a header may not be written; a name is none.
    /// Nothing was sent.
    #[cold]
    pub(crate) fn request_with(
        &mut self,
        call: &Call<'_>,
        carries: MessageContents<'_>,
    ) -> Result<CallId, Failure> {
        let (serial, setup) = (self.take_serial(), self.setup());
        let (route, raises) = match call.method {
            Method::Typed { interface, operation } => {
                (self.routes.call(call.profile, interface, operation)?, operation.raises.clone())
            }
            Method::Named { interface, operation } => {
                (self.routes.named_call(call.profile, interface, operation)?, Default::default())
            }
        };
        let unwraps = route.asks == CallForm::Get;
        if route.asks != CallForm::Plain && carries.body.is_some() {
            return Err(needs_contract("the value of a property"));
        }
        let flags = call_flags(call.expects) | carries.body.map_or(0, flags);
        let mut head = RouteHead::new(route, serial, flags);
        Self::send_with(&mut self.out, &mut self.scratch, setup, &mut head, call.arguments, carries)?;
        if call.expects == Expects::Reply {
            let to = self.bus.is_some().then(|| asked(call.profile));
            let passed = carries.body.is_some();
            self.waiting.insert(serial, Pending::Call { raises, unwraps, passed, to });
        }
        Ok(CallId(serial.into()))
    }

    /// Appends a message whose body is passed on, or that has headers; nothing of it is left if that fails.
    /// Without a body it is `send` with more header fields. With one, the bytes are put behind the header by
    /// reference, if they are many.
    ///
    /// # Errors
    /// As `request_with`, and a message over the limit.
    #[cold]
    pub(crate) fn send_with(
        out: &mut SendBuffer,
        scratch: &mut Scratch,
        setup: Setup,
        envelope: &mut impl Envelope,
        values: &dyn Encode,
        carries: MessageContents<'_>,
    ) -> Visit<()> {
        let little = carries.body.map_or(NATIVE_LITTLE, |body| body.little);
        let mut envelope = ExtendedHead { fields: fields(carries, little)?, envelope, little };
        let Some(body) = carries.body else { return Self::send(out, scratch, setup, &mut envelope, values) };
        let signature = looked_at(body, setup, &mut scratch.passed)?;
        if !body.handles().is_empty() {
            envelope.announce();
        }
        let mark = out.mark();
        let (start, index) = (out.position(), out.flat().len());
        let mut sent = envelope.begin(signature, None, out.flat());
        let size = (out.position() - start).saturating_add(body.bytes.len()) as u64;
        if sent.is_ok() && size > setup.limit {
            sent = Err(over(size, setup.limit));
        }
        if let Err(failure) = sent {
            out.truncate(mark);
            return Err(failure);
        }
        let swap = little != NATIVE_LITTLE;
        let end = out.flat().len();
        let mut put = BasicWriter { out: out.flat(), shift: 0, swap };
        put.patch(index + 4, u32::try_from(body.bytes.len()).unwrap_or(u32::MAX));
        if !body.handles().is_empty() {
            put.patch(end - 4, u32::try_from(body.handles().len()).unwrap_or(u32::MAX));
            out.attach(start, body.handles().to_vec());
        }
        out.splice(body.bytes.clone());
        Ok(())
    }
}

/// A header with more fields, and in the byte order of the body that follows. It stands around the header
/// that writes the rest, and changes what that has written.
struct ExtendedHead<'e, E> {
    envelope: &'e mut E,
    /// Whole blocks of eight.
    fields: Cow<'e, [u8]>,
    little: bool,
}

impl<E: Envelope> ExtendedHead<'_, E> {
    /// Completes what was written from `start` on: the header, and perhaps values behind it. The additional
    /// fields become the first ones, directly behind the fixed part.
    ///
    /// # Errors
    /// The fields of the header are too many together: a peer of this kind would end the connection.
    fn complete(&self, start: usize, flat: &mut Vec<u8>) -> Visit<()> {
        if self.little != NATIVE_LITTLE {
            turn(flat, start);
        }
        if self.fields.is_empty() {
            return Ok(());
        }
        let at = start + 12;
        let Some(held) = flat.get(at..).and_then(<[u8]>::first_chunk) else { return Ok(()) };
        let held = if self.little { u32::from_le_bytes(*held) } else { u32::from_be_bytes(*held) };
        let len = held.saturating_add(u32::try_from(self.fields.len()).unwrap_or(u32::MAX));
        if len as usize > limits::FIELDS {
            return Err(Failure::over_limit(Initiator::Here, "bytes of header fields", len, limits::FIELDS));
        }
        BasicWriter { out: flat, shift: 0, swap: self.little != NATIVE_LITTLE }.patch(at, len);
        let (first, end) = (start + HEADER, flat.len());
        flat.extend_from_slice(&self.fields);
        flat.copy_within(first..end, first + self.fields.len());
        if let Some(place) = flat.get_mut(first..first + self.fields.len()) {
            place.copy_from_slice(&self.fields);
        }
        Ok(())
    }
}

impl<E: Envelope> Head for ExtendedHead<'_, E> {
    fn repeat(&mut self, list: &Hold<Struct>, flat: &mut Vec<u8>) -> bool {
        let start = flat.len();
        let repeated = self.envelope.repeat(list, flat) && self.complete(start, flat).is_ok();
        if !repeated {
            // `begin` says why.
            flat.truncate(start);
        }
        repeated
    }

    fn begin(&mut self, signature: &str, list: Option<&Hold<Struct>>, flat: &mut Vec<u8>) -> Visit<()> {
        let start = flat.len();
        self.envelope.begin(signature, list, flat)?;
        self.complete(start, flat)
    }
}

impl<E: Envelope> Envelope for ExtendedHead<'_, E> {
    fn len(&self) -> usize {
        self.envelope.len() + self.fields.len()
    }

    fn announce(&mut self) {
        self.envelope.announce();
    }

    fn announces(&self) -> bool {
        self.envelope.announces()
    }
}

/// Turns a header of our own into the other byte order. It knows the fields that headers of this crate have:
/// texts, numbers and one signature.
fn turn(flat: &mut [u8], start: usize) {
    let Some(order) = flat.get_mut(start) else { return };
    *order = if *order == b'l' { b'B' } else { b'l' };
    let number = |flat: &[u8], at: usize| {
        let raw = flat.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        u32::from_ne_bytes(raw)
    };
    let len = number(flat, start + 12) as usize;
    let mut at = start + HEADER;
    let end = at + len;
    while at < end {
        // A field: its code, a signature of one letter, and the value, which is a text, a number or a signature.
        let kind = flat.get(at + 2).copied();
        let value = at + 4;
        let held = number(flat, value);
        at = match kind {
            Some(b'g') => value + 2 + flat.get(value).map_or(0, |len| usize::from(*len)),
            Some(b's' | b'o') => value + 5 + held as usize,
            _ => value + 4,
        };
        if kind != Some(b'g') {
            patch(flat, value, held.swap_bytes());
        }
        at = start + (at - start).next_multiple_of(8);
    }
    for at in [4, 8, 12] {
        let held = number(flat, start + at);
        patch(flat, start + at, held.swap_bytes());
    }
}

/// Checks that a body may go out as it is on this connection. Returns its signature, which the new header has
/// to name. Mostly that is the one of the body before, `last`, which is not checked again.
///
/// # Errors
/// It is a body of another wire, a part of one, has handles that may not pass, or does not hold together.
fn looked_at<'s>(body: &Body, setup: Setup, last: &'s mut String) -> Visit<&'s str> {
    if body.codec.name() != NAME {
        return Err(needs_contract("a body of another wire"));
    }
    if body.base & 7 != 0 {
        // The value of a property, taken out of its variant.
        return Err(needs_contract("a part of a body"));
    }
    if last.as_bytes() != &*body.context {
        check(&body.context).map_err(|what| Failure::malformed(what, 0))?;
        last.clear();
        // What was checked is ASCII.
        last.push_str(str::from_utf8(&body.context).unwrap_or_default());
    }
    let signature = last.as_str();
    let handles = body.handles().len();
    if handles > limits::HANDLES {
        return Err(Failure::over_limit(Initiator::Here, "handles in a message", handles, limits::HANDLES));
    }
    if handles > 0 && !setup.handles {
        return Err(unsupported("a handle, over this connection,")
            .with_hint("handles pass over Unix sockets only, where both sides agreed to it"));
    }
    if body.dialect & LOOKED_AT == 0 {
        let mut get = Get { bytes: &body.bytes, pos: 0, base: body.base, little: body.little };
        look(&mut get, signature.as_bytes(), handles)?;
        if get.left() > 0 {
            return Err(get.bad("more bytes than the signature tells of").into());
        }
    }
    Ok(signature)
}
