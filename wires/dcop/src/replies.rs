//! Answers that come: `DCOPReply`, `DCOPReplyDelayed`, `DCOPReplyFailed`, `DCOPReplyWait`.
//!
//! The key tells which call an answer is for; each call has its own. An announcement (`DCOPReplyWait`) needs
//! nothing: the answer it announces comes with the same key. An answer whose key nobody has is passed over;
//! it frees the key of a call that was withdrawn.
//!
//! What the call was for (`CallPurpose`) decides what becomes of the answer. A call of the user ends in exactly one
//! event; before a failure is told the object may be asked why (`reasons`). An answer that does not decode
//! fails its call and nothing else, since it is the callee's and not the server's.

use crate::address::SERVER;
use crate::reasons;
use crate::request_templates::RequestTemplate;
use crate::session::{CallPurpose, DcopSession, Pending};
use crate::strings::{DecodeError, StringReader};
use bytes::Bytes;
use everywire_model::{Completed, Context, Failure, Initiator, Kind, Outcome};
use std::ops::Range;

impl DcopSession {
    /// An answer with results. `delayed`: it was announced before, so it has the number of the announcement
    /// in front.
    pub(crate) fn replied(&mut self, key: u32, payload: &Bytes, delayed: bool) {
        let (kind, data) = match results(payload, delayed) {
            Ok(found) => found,
            Err(bad) => return self.garbled(key, bad),
        };
        // An answer that nobody waits for: to a call that was withdrawn.
        let Some(pending) = self.pending.remove(&key) else { return self.came_late(key) };
        if matches!(pending.asks, CallPurpose::Call) && delayed && kind.is_empty() {
            // An answer that was announced has no other way to fail.
            return self.ask_why(key, pending);
        }
        let id = pending.id(key);
        let Pending { way, asks, number, .. } = pending;
        match asks {
            CallPurpose::Why(way) => {
                let failure = reasons::failure(&way, payload.get(data).unwrap_or_default());
                self.reply(id, Outcome::Failed(failure));
            }
            CallPurpose::Passed if delayed && kind.is_empty() => {
                self.reply(id, Outcome::Failed(refusal(&way)));
            }
            CallPurpose::Call | CallPurpose::Passed => {
                let (kind, mut data) = (payload.slice(kind), payload.slice(data));
                if way.app == SERVER && *kind == *b"bool" && data.len() == 4 {
                    // The server answers `isApplicationRegistered` with a number of four bytes.
                    data = data.slice(3..);
                }
                let types = self.context.again(&kind);
                let body = self.body(data, types);
                self.reply(id, Outcome::Done(body));
            }
            CallPurpose::Probe => {
                let nothing = self.body(Bytes::new(), Context::default());
                self.reply(id, Outcome::Done(nothing));
            }
            CallPurpose::Quiet => {}
            CallPurpose::Connect(slot) => self.connected(slot, says_yes(payload.get(data))),
            CallPurpose::Alive(app) => self.told_alive(&app, says_yes(payload.get(data)), number),
        }
    }

    /// An answer that does not decode: the call fails.
    #[cold]
    fn garbled(&mut self, key: u32, bad: DecodeError) {
        self.fail_call(key, |app| {
            let at = format_args!("the answer of application `{app}`: {}", bad.what);
            Failure::malformed(at, bad.at).with_completed(Completed::Maybe)
        });
    }

    /// An answer that cannot be read: its call fails in this way; `why` is told which application answers.
    #[cold]
    pub(crate) fn fail_call(&mut self, key: u32, why: impl FnOnce(&str) -> Failure) {
        let Some(pending) = self.pending.remove(&key) else { return self.came_late(key) };
        let failure = why(&text(&pending.way.app));
        match pending.asks {
            CallPurpose::Call | CallPurpose::Passed | CallPurpose::Probe | CallPurpose::Why(_) => {
                self.reply(pending.id(key), Outcome::Failed(failure));
            }
            CallPurpose::Quiet => {}
            CallPurpose::Connect(slot) => self.refused_slot(slot, &failure),
            CallPurpose::Alive(app) => self.told_alive(&app, true, pending.number),
        }
    }

    /// There is no answer. With a payload the callee says so, or the server for it; an empty one means that a
    /// callee has died, and mostly has no key that tells which (`deaths`).
    pub(crate) fn refused(&mut self, key: u32, payload: &Bytes) {
        let Some(pending) = self.pending.remove(&key) else {
            if payload.is_empty() {
                self.somebody_died();
            } else {
                self.came_late(key);
            }
            return;
        };
        let id = pending.id(key);
        match pending.asks {
            CallPurpose::Call | CallPurpose::Passed | CallPurpose::Probe | CallPurpose::Why(_)
                if payload.is_empty() =>
            {
                self.reply(id, Outcome::Failed(died(&pending.way.app)));
            }
            CallPurpose::Call => self.ask_why(key, pending),
            CallPurpose::Why(way) => self.reply(id, Outcome::Failed(reasons::nobody(&way))),
            CallPurpose::Passed | CallPurpose::Probe => {
                self.reply(id, Outcome::Failed(refusal(&pending.way)))
            }
            CallPurpose::Quiet => {}
            CallPurpose::Connect(slot) => self.connected(slot, false),
            CallPurpose::Alive(app) => self.told_alive(&app, true, pending.number),
        }
    }

    /// The answer to a call that was withdrawn: its key is free again.
    #[cold]
    fn came_late(&mut self, key: u32) {
        self.withdrawn.remove(&key);
    }
}

/// The ranges of type and data in an answer's payload.
/// Whether a boolean, of whatever width, is true.
fn says_yes(data: Option<&[u8]>) -> bool {
    data.is_some_and(|data| data.iter().any(|byte| *byte != 0))
}

#[inline]
fn results(payload: &Bytes, delayed: bool) -> Result<(Range<usize>, Range<usize>), DecodeError> {
    let mut walk = StringReader::new(payload);
    walk.name()?;
    walk.name()?;
    if delayed {
        walk.u32()?;
    }
    Ok((walk.name()?, walk.data()?))
}

/// Names as people can read them.
pub(crate) fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).escape_debug().to_string()
}

/// The failure of a call that was refused, with the reasons that it can have: the protocol says only that it
/// failed.
#[cold]
pub(crate) fn refusal(way: &RequestTemplate) -> Failure {
    let (app, object, function) = (text(&way.app), text(&way.object), text(&way.function));
    if way.app == SERVER {
        let what = format!("the DCOP server has no function `{function}`, or refuses its arguments");
        return Failure::new(Kind::NoOperation, Initiator::Peer, what);
    }
    if function.is_empty() {
        let what = format!("no application `{app}` is registered, or it has no object `{object}`");
        return Failure::new(Kind::NoObject, Initiator::Peer, what)
            .with_hint(format!("everywire list dcop:{app}"));
    }
    // Every object has these.
    let kind = match &*way.function {
        b"functions()" | b"interfaces()" | b"objects()" => Kind::NoObject,
        _ => Kind::NoOperation,
    };
    let what = format!(
        "`{function}` of object `{object}` in application `{app}` failed: the application is not registered, has no \
         such object, the object has no function of exactly that signature, or it does not take the arguments"
    );
    Failure::new(kind, Initiator::Peer, what).with_completed(Completed::Maybe).with_hint(format!(
        "`everywire list dcop:{app}/{object}` shows the functions, `everywire list dcop:` who is there"
    ))
}

/// The callee left before it answered. Nobody knows whether the call ran.
#[cold]
pub(crate) fn died(app: &[u8]) -> Failure {
    let what = format!("application `{}` ended before it answered", text(app));
    Failure::new(Kind::Unreachable, Initiator::Peer, what).with_completed(Completed::Maybe)
}
