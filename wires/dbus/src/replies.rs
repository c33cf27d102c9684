//! Answers: sent and taken.
//!
//! Sending: each call that wants an answer is answered once, whatever the servant returns; results that do
//! not encode are taken back, and an error goes out. Errors are a name and a text.
//!
//! Taking: an answer is matched by the serial number of the call and, on a bus, by who sent it (`awaited`).
//! What the call was for decides what becomes of it: a call of the user or a probe becomes an event, answers
//! of the bus go to `joining` and `signals`. An answer that nobody waits for is passed over.

use crate::basics::{Get, ReadText};
use crate::dialect::RESULTS;
use crate::errors;
use crate::heads::ReplyHead;
use crate::incoming::ReceivedMessage;
use crate::names;
use crate::passing;
use crate::pending_calls::Pending;
use crate::serving::Caller;
use crate::session::DbusSession;
use crate::signature::check_one;
use crate::violations::ProtocolError;
use bytes::Bytes;
use everywire_model::shape::Text;
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Body, CallId, Completed, Context, Encode, Failure, Initiator, Kind, Outcome, Sink, Visit,
};

impl DbusSession {
    /// Answers a call; one whose results do not encode gets that failure instead. D-Bus cannot say that an
    /// object has moved, so that is an error with the new place in its text.
    ///
    /// # Errors
    /// The results do not encode; the caller was told.
    pub(crate) fn answer_call(&mut self, caller: &Caller, answer: Answer<'_>) -> Result<(), Failure> {
        let sent = match answer {
            Answer::Done(results) => self.put_reply(caller.serial, &caller.name, "", results),
            Answer::Raised { shape, fields } => {
                let name = names::of_exception(shape);
                self.put_reply(caller.serial, &caller.name, &name, fields)
            }
            Answer::Passed { encoded, failure } => {
                let fits = names::is_interface(encoded.id.as_bytes())
                    && self.put_reply(caller.serial, &caller.name, &encoded.id, &encoded.body).is_ok();
                if !fits {
                    self.refuse(caller.serial, &caller.name, failure);
                }
                return Ok(());
            }
            Answer::Failed(failure) => {
                self.refuse(caller.serial, &caller.name, failure);
                return Ok(());
            }
            Answer::Moved(reference) => {
                let place = crate::address::print(reference);
                let what = format!("the object has moved, which D-Bus cannot say: {place}");
                // Told as the bus tells it of a call that never began: `NotSupported` leaves that open.
                let failure = Failure::new(Kind::Unreachable, Initiator::Peer, what);
                self.refuse(caller.serial, &caller.name, &failure);
                return Ok(());
            }
        };
        sent.inspect_err(|failure| {
            // The servant ran, only its results do not travel.
            let failure = failure.clone().with_completed(Completed::Yes);
            self.refuse(caller.serial, &caller.name, &failure);
        })
    }

    /// Writes an answer to the call `reply` of `caller`: results, or an error where `error` names one.
    #[inline]
    fn put_reply(&mut self, reply: u32, caller: &Bytes, error: &str, values: &dyn Encode) -> Visit<()> {
        let (serial, setup) = (self.take_serial(), self.setup());
        let mut head = ReplyHead::new(&mut self.answered, serial, reply, caller, error);
        let carries = values.carries();
        if carries.body.is_some() || carries.headers.is_some() {
            return Self::send_with(&mut self.out, &mut self.scratch, setup, &mut head, values, carries);
        }
        Self::send(&mut self.out, &mut self.scratch, setup, &mut head, values)
    }

    /// Answers with an error: the name that stands for the failure, and its message as the text. A NUL, which
    /// no text may have, is replaced.
    pub(crate) fn refuse(&mut self, reply: u32, caller: &Bytes, failure: &Failure) {
        let name = errors::name(failure);
        let text = failure.message().replace('\0', "\u{fffd}");
        let message = |sink: &mut dyn Sink| sink.text(&Text::NARROW, &text);
        if self.put_reply(reply, caller, &name, &message).is_err() {
            // A text over the limit: the name alone tells most.
            let _ = self.put_reply(reply, caller, &name, &Nothing);
        }
    }

    /// The call of this number, if it waits for an answer from whoever sent it. Nobody waits for the answer
    /// to a call that was withdrawn, or that wanted none. `known` is the index of the answer's header fields.
    #[inline]
    pub(crate) fn awaited(&mut self, reply: u32, known: usize, is_error: bool) -> Option<Pending> {
        let pending = self.waiting.remove(reply)?;
        if self.bus.is_some() {
            let sender = self.seen.get(known).map(|known| &*known.fields.sender).unwrap_or_default();
            let owns =
                || pending.named().is_none_or(|name| self.subscriptions.may_answer(name, reply, sender));
            if !(pending.accepts(sender, is_error) && (sender == names::BUS.as_bytes() || owns())) {
                // Somebody else on the bus answers: the real answer is still to come.
                self.waiting.insert(reply, pending);
                return None;
            }
        }
        Some(pending)
    }

    /// Results came. They stay encoded; only the variant around the value of a property is taken off here.
    ///
    /// # Errors
    /// The bus answers a step of joining with something else than it has to.
    #[inline]
    pub(crate) fn returned(&mut self, message: ReceivedMessage) -> Result<(), ProtocolError> {
        let reply = message.reply;
        let Some(pending) = self.awaited(reply, message.known, false) else { return Ok(()) };
        let Some(known) = self.seen.get(message.known) else { return Ok(()) };
        let (signature, headers) = (known.signature.clone(), known.headers_beside(&pending));
        let body = self.body(message, signature, RESULTS).with_headers(headers);
        let id = CallId(reply.into());
        match pending {
            Pending::Call { unwraps: false, .. } => self.reply(id, Outcome::Done(body)),
            Pending::Call { .. } => {
                let outcome = match unwrapped(body) {
                    Ok(body) => Outcome::Done(body),
                    Err(failure) => Outcome::Failed(failure.with_completed(Completed::Yes)),
                };
                self.reply(id, outcome);
            }
            Pending::Probe(_) => {
                let nothing = Body { bytes: Bytes::new(), context: Context::default(), ..body };
                self.reply(id, Outcome::Done(nothing));
            }
            Pending::Match(rule, number) => self.matched(&rule, number, &Ok(())),
            Pending::Owner(name, number) => self.owner_told(&name, number, &Ok(body)),
            pending => return self.joined(&pending, &body),
        }
        Ok(())
    }

    /// An error came.
    ///
    /// # Errors
    /// The bus refuses a step of joining.
    pub(crate) fn refused(&mut self, message: ReceivedMessage) -> Result<(), ProtocolError> {
        let reply = message.reply;
        let Some(pending) = self.awaited(reply, message.known, true) else { return Ok(()) };
        let Some(known) = self.seen.get(message.known) else { return Ok(()) };
        let (name, signature) = (known.fields.error.clone(), known.signature.clone());
        let headers = known.headers_beside(&pending);
        let from_bus = known.fields.sender == names::BUS;
        let name = String::from_utf8_lossy(&name);
        let body = self.body(message, signature, RESULTS).with_headers(headers);
        let id = CallId(reply.into());
        match pending {
            Pending::Call { raises, passed: true, .. } => {
                let outcome = errors::outcome(&name, &raises, body.clone(), from_bus);
                self.reply(id, passing::with_encoded(outcome, &name, body));
            }
            Pending::Call { raises, .. } => self.reply(id, errors::outcome(&name, &raises, body, from_bus)),
            Pending::Probe(_) => {
                let failure = errors::failure(&name, &body, from_bus);
                let failure = match failure.kind() {
                    // Some say so of an object that is not there.
                    Kind::NoOperation => Failure::new(Kind::NoObject, Initiator::Peer, failure.message())
                        .with_code(&*name)
                        .with_hint("there is no such object, or it does not describe itself"),
                    _ => failure,
                };
                self.reply(id, Outcome::Failed(failure));
            }
            pending => return self.not_settled(pending, errors::failure(&name, &body, from_bus)),
        }
        Ok(())
    }

    /// The bus did not do what it was asked for: a subscription fails, or the connection ends, if it cannot
    /// be used without that.
    pub(crate) fn not_settled(&mut self, pending: Pending, failure: Failure) -> Result<(), ProtocolError> {
        match pending {
            Pending::Match(rule, number) => self.matched(&rule, number, &Err(failure)),
            Pending::Owner(name, number) => self.owner_told(&name, number, &Err(failure)),
            pending => return Err(self.unwelcome(&pending, &failure)),
        }
        Ok(())
    }
}

/// The value in a variant, as a body of its own. It shares the bytes; alignment still counts from the
/// beginning of the message.
///
/// # Errors
/// The results are no variant, or its signature is invalid.
fn unwrapped(mut body: Body) -> Visit<Body> {
    if *body.context != *b"v" {
        let found = body.context.escape_ascii();
        return Err(Failure::malformed(format_args!("a property came as `{found}`, not in a variant"), 0));
    }
    let mut get = Get { bytes: &body.bytes, pos: 0, base: body.base, little: body.little };
    let signature = get.signature()?;
    check_one(signature).map_err(|what| get.bad(what))?;
    let at = get.pos;
    body.context = signature.into();
    body.bytes = body.bytes.slice(at..);
    body.base += at;
    Ok(body)
}
