//! Answers: sent and taken.

use crate::basics::Get;
use crate::errors;
use crate::incoming::Arrived;
use crate::names;
use crate::outgoing::ReplyHead;
use crate::serving::Caller;
use crate::session::{DbusSession, Pending};
use crate::signature::check_one;
use crate::values::RESULTS;
use crate::violations::Wrong;
use bytes::Bytes;
use everywire_model::shape::Text;
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Body, CallId, Completed, Encode, Failure, Initiator, Kind, Outcome, Sink, Visit,
};

impl DbusSession {
    /// Answers a call; one whose results do not encode gets that failure instead.
    pub(crate) fn answer_call(&mut self, caller: &Caller, answer: Answer<'_>) -> Result<(), Failure> {
        let sent = match answer {
            Answer::Done(results) => self.put_reply(caller.serial, &caller.name, "", results),
            Answer::Raised { shape, fields } => {
                let name = names::of_exception(shape);
                self.put_reply(caller.serial, &caller.name, &name, fields)
            }
            Answer::Failed(failure) => {
                self.refuse(caller.serial, &caller.name, failure);
                return Ok(());
            }
            Answer::Moved(reference) => {
                let place = crate::address::print(reference);
                let failure = Failure::new(
                    Kind::Unsupported,
                    Initiator::Peer,
                    format!("the object has moved, which D-Bus cannot say: {place}"),
                );
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

    #[inline]
    fn put_reply(&mut self, reply: u32, caller: &Bytes, error: &str, values: &dyn Encode) -> Visit<()> {
        let (serial, setup) = (self.take_serial(), self.setup());
        let mut head = ReplyHead::new(serial, reply, caller, error);
        Self::send(&mut self.out, &mut self.scratch, setup, &mut head, values)
    }

    /// Answers with an error.
    pub(crate) fn refuse(&mut self, reply: u32, caller: &Bytes, failure: &Failure) {
        let name = errors::name(failure);
        let text = failure.message().replace('\0', "\u{fffd}");
        let message = |sink: &mut dyn Sink| sink.text(&Text::NARROW, &text);
        if self.put_reply(reply, caller, &name, &message).is_err() {
            // A text over the limit: the name alone tells most.
            let _ = self.put_reply(reply, caller, &name, &Nothing);
        }
    }

    /// Results came.
    pub(crate) fn returned(&mut self, message: Arrived) -> Result<(), Wrong> {
        // An answer that nobody waits for: to a call that was withdrawn, or that wanted none.
        let Some(pending) = self.waiting.remove(&message.reply) else { return Ok(()) };
        let signature =
            self.seen.get(message.known).map(|known| known.fields.signature.clone()).unwrap_or_default();
        let body = self.body(&message, signature, RESULTS);
        let id = CallId(message.reply.into());
        match pending {
            Pending::Call { unwraps: false, .. } => self.reply(id, Outcome::Done(body)),
            Pending::Call { .. } => {
                let outcome = match unwrapped(body) {
                    Ok(body) => Outcome::Done(body),
                    Err(failure) => Outcome::Failed(failure.with_completed(Completed::Yes)),
                };
                self.reply(id, outcome);
            }
            Pending::Probe => {
                self.reply(id, Outcome::Done(Body { bytes: Bytes::new(), context: Bytes::new(), ..body }));
            }
            Pending::Match(rule) => self.matched(&rule, &Ok(())),
            Pending::Owner(name) => self.owner_told(&name, &Ok(body)),
            pending => return self.joined(&pending, &body),
        }
        Ok(())
    }

    /// An error came.
    pub(crate) fn refused(&mut self, message: Arrived) -> Result<(), Wrong> {
        let Some(pending) = self.waiting.remove(&message.reply) else { return Ok(()) };
        let Some(known) = self.seen.get(message.known) else { return Ok(()) };
        let (name, signature) = (known.fields.error.clone(), known.fields.signature.clone());
        let name = String::from_utf8_lossy(&name);
        let body = self.body(&message, signature, RESULTS);
        let id = CallId(message.reply.into());
        match pending {
            Pending::Call { raises, .. } => self.reply(id, errors::outcome(&name, &raises, body)),
            Pending::Probe => {
                let failure = errors::failure(&name, &body);
                let failure = match failure.kind() {
                    // Some say so of an object that is not there.
                    Kind::NoOperation => Failure::new(Kind::NoObject, Initiator::Peer, failure.message())
                        .with_code(&*name)
                        .with_hint("there is no such object, or it does not describe itself"),
                    _ => failure,
                };
                self.reply(id, Outcome::Failed(failure));
            }
            Pending::Match(rule) => self.matched(&rule, &Err(errors::failure(&name, &body))),
            Pending::Owner(owned) => self.owner_told(&owned, &Err(errors::failure(&name, &body))),
            pending => return Err(self.unwelcome(&pending, &errors::failure(&name, &body))),
        }
        Ok(())
    }
}

/// The value in a variant, as a body of its own.
fn unwrapped(mut body: Body) -> Visit<Body> {
    if body.context != "v" {
        let found = body.context.escape_ascii();
        return Err(Failure::malformed(format_args!("a property came as `{found}`, not in a variant"), 0));
    }
    let mut get = Get { bytes: &body.bytes, pos: 0, base: body.base, little: body.little };
    let signature = get.signature()?;
    check_one(signature).map_err(|what| get.bad(what))?;
    let at = get.pos;
    body.context = body.bytes.slice_ref(signature);
    body.bytes = body.bytes.slice(at..);
    body.base += at;
    Ok(body)
}
