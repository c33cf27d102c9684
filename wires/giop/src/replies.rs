//! Answers: sent and taken (CORBA 3.3 part 2, section 9.4.3).
//!
//! Sending: `answer_call` turns an answer of the model into a status and values. If the results do not
//! encode, nothing of them is left in the output and the caller gets that failure as a system exception. So
//! each request is answered exactly once, whatever the servant returns.
//!
//! Taking: `reply_in` reads the header of the reply, finds the call by its number and makes an `Outcome`. The
//! values stay encoded (`reply_body`); only exceptions, forwards and addressing are read here. A number that
//! nobody waits for is passed over, since cancelled calls may still be answered. A header that does not
//! decode ends the connection, because the stream cannot be trusted then; an exception that does not decode
//! fails its call alone.

use crate::cdr::{CdrWriter, Get, ReadCdr, WriteCdr};
use crate::codesets::Dialect;
use crate::contracts::exception_id;
use crate::exceptions::{self, FailureDetail, SystemException};
use crate::frame::{HEADER, Header, MessageKind};
use crate::requests::shift;
use crate::session::{CodeSetState, GiopSession, InboundCall, RequestKind, ResultsIn};
use crate::values::Cdr;
use crate::violations::ProtocolError;
use crate::{contexts, ior};
use bytes::Bytes;
use everywire_model::{
    Answer, Body, CallId, Completed, Encode, Encoded, Event, Failure, Initiator, Kind, Outcome, Raised,
    Reference, Sink, Visit,
};
use std::sync::Arc;

// The numbers of `ReplyStatusType_1_2`; 4 and 5 exist in GIOP 1.2 only.
const NO_EXCEPTION: u32 = 0;
const USER_EXCEPTION: u32 = 1;
const SYSTEM_EXCEPTION: u32 = 2;
const LOCATION_FORWARD: u32 = 3;
const LOCATION_FORWARD_PERM: u32 = 4;
const NEEDS_ADDRESSING_MODE: u32 = 5;

impl GiopSession {
    /// Answers a call; one whose results do not encode gets that failure instead. `_non_existent` and `_is_a`
    /// come as probes: an answer without a body says yes, it is here, and becomes the boolean that the
    /// operation returns. If such a probe was passed on, the answer has a body, which is taken as it is.
    ///
    /// # Errors
    /// The results do not encode; the caller was told.
    pub(crate) fn answer_call(&mut self, serving: &InboundCall, answer: Answer<'_>) -> Result<(), Failure> {
        let sent = match answer {
            Answer::Done(results)
                if serving.asks != RequestKind::Call && results.carries().body.is_some() =>
            {
                self.put_reply(serving, NO_EXCEPTION, results)
            }
            Answer::Done(_) if serving.asks == RequestKind::NonExistent => {
                self.put_reply(serving, NO_EXCEPTION, &|sink: &mut dyn Sink| sink.bool(false))
            }
            Answer::Done(_) if serving.asks == RequestKind::IsA => {
                self.put_reply(serving, NO_EXCEPTION, &|sink: &mut dyn Sink| sink.bool(true))
            }
            Answer::Failed(failure)
                if serving.asks == RequestKind::IsA && failure.kind() == Kind::BadReference =>
            {
                self.put_reply(serving, NO_EXCEPTION, &|sink: &mut dyn Sink| sink.bool(false))
            }
            Answer::Done(results) => self.put_reply(serving, NO_EXCEPTION, results),
            Answer::Raised { shape, fields } => {
                let id = exception_id(shape);
                self.put_reply(serving, USER_EXCEPTION, &|sink: &mut dyn Sink| {
                    sink.text(&everywire_model::shape::Text::NARROW, &id)?;
                    fields.encode(sink)
                })
            }
            Answer::Failed(failure) => {
                self.put_exception(serving, failure);
                return Ok(());
            }
            Answer::Moved(reference) => self.put_forward(serving, reference),
            Answer::Passed { encoded, failure } => {
                let status = if encoded.raised { USER_EXCEPTION } else { SYSTEM_EXCEPTION };
                if self.put_reply(serving, status, &encoded.body).is_err() {
                    self.put_exception(serving, failure);
                }
                return Ok(());
            }
        };
        sent.inspect_err(|failure| {
            // The servant ran, only its results do not travel.
            let failure = failure.clone().with_completed(Completed::Yes);
            self.put_exception(serving, &failure);
        })
    }

    /// Bodies that are passed on, and headers, take the way by `passing`.
    fn put_reply(&mut self, serving: &InboundCall, status: u32, values: &dyn Encode) -> Visit<()> {
        let (id, dialect) = (serving.id, serving.dialect);
        let carries = values.carries();
        if carries.body.is_some() || carries.headers.is_some() {
            return self.put_reply_with(serving, status, values, carries);
        }
        self.message(dialect.minor, MessageKind::Reply, |session, start| {
            let mut put = CdrWriter { shift: shift(session, start), out: session.out.flat(), swap: false };
            if dialect.minor >= 2 {
                put.u32s([id, status, 0]);
            } else {
                put.u32s([0, id, status]);
            }
            session.body(start, dialect, values)
        })
    }

    /// Tells the caller to ask at another place, for now. LOCATION_FORWARD_PERM is never sent: who forgets
    /// the old place cannot come back to it.
    fn put_forward(&mut self, serving: &InboundCall, reference: &Reference) -> Visit<()> {
        self.put_reply(serving, LOCATION_FORWARD, &|sink: &mut dyn Sink| sink.reference(Some(reference)))
    }

    /// Answers with a system exception, and beside it, in a service context, what a peer of this make can
    /// show its user. Other ORBs ignore the context.
    pub(crate) fn put_exception(&mut self, serving: &InboundCall, failure: &Failure) {
        let (id, minor) = (serving.id, serving.dialect.minor);
        let sent = self.message(minor, MessageKind::Reply, |session, start| {
            let mut put = CdrWriter { shift: shift(session, start), out: session.out.flat(), swap: false };
            if minor >= 2 {
                put.u32(id);
                put.u32(SYSTEM_EXCEPTION);
            }
            put.u32(1);
            put.u32(contexts::FAILURE);
            put.encapsulated(|put| FailureDetail::put(failure, put));
            if minor >= 2 {
                put.align(8);
            } else {
                put.u32(id);
                put.u32(SYSTEM_EXCEPTION);
            }
            exceptions::put(failure, &mut put);
            Ok(())
        });
        if sent.is_err() {
            // A limit below the size of an exception: the peer at least learns that something is wrong.
            self.send_error();
        }
    }

    /// An answer of the peer. GIOP 1.0 and 1.1 have the service contexts before the number and no status
    /// above LOCATION_FORWARD.
    ///
    /// # Errors
    /// The header of the reply does not decode, or has a status that does not exist.
    #[inline]
    pub(crate) fn reply_in(&mut self, header: &Header, message: Bytes) -> Result<(), ProtocolError> {
        // Mostly results are asked for, and come with nothing beside them: no exception and no service context are two zeros, in either
        // byte order.
        if header.minor == 2
            && self.passed.is_empty()
            && let Some((&id, rest)) = message.get(HEADER..).and_then(<[u8]>::split_first_chunk::<4>)
            && let Some(&[0, 0, 0, 0, 0, 0, 0, 0]) = rest.first_chunk()
        {
            let id = if header.little { u32::from_le_bytes(id) } else { u32::from_be_bytes(id) };
            if self.settle(id) {
                self.trials.settle(id, true);
                self.sets_told = CodeSetState::Heard;
                let results = ResultsIn { id, little: header.little, message };
                if self.results.is_none() && self.events.is_empty() {
                    self.results = Some(results);
                } else {
                    let event = self.results_event(results);
                    self.events.push_back(event);
                }
            }
            return Ok(());
        }
        self.other_reply_in(header, message)
    }

    /// A reply of another kind, or with contexts.
    #[inline(never)]
    fn other_reply_in(&mut self, header: &Header, message: Bytes) -> Result<(), ProtocolError> {
        let mut get = Get { bytes: &message, pos: HEADER, base: 0, little: header.little };
        let mut explained = None;
        let (mut passes, mut of_sun) = (false, false);
        let mut see = |id, data| {
            of_sun |= id == contexts::SUN_VERSION;
            passes |= contexts::passes(id);
            if id == contexts::FAILURE {
                explained = Some(data);
            }
            Ok(())
        };
        let (id, status, list);
        if header.minor >= 2 {
            id = get.u32()?;
            status = get.u32()?;
            let start = get.pos;
            contexts::each(&mut get, &mut see)?;
            list = start..get.pos;
            get.align(8);
        } else {
            contexts::each(&mut get, &mut see)?;
            list = HEADER..get.pos;
            id = get.u32()?;
            status = get.u32()?;
        }
        if of_sun {
            self.meet_sun();
        }
        let greatest = if header.minor >= 2 { NEEDS_ADDRESSING_MODE } else { LOCATION_FORWARD };
        if status > greatest {
            return Err(ProtocolError::Status { status });
        }
        if !self.is_awaited(id, status == NEEDS_ADDRESSING_MODE, get) {
            return Ok(());
        }
        match status {
            NO_EXCEPTION | USER_EXCEPTION => self.sets_told = CodeSetState::Heard,
            LOCATION_FORWARD | LOCATION_FORWARD_PERM if self.sets_told == CodeSetState::Once => {
                self.sets_told = CodeSetState::Again;
            }
            _ => {}
        }
        // As it came, for whoever passes it on.
        let passed = if self.passed.is_empty() || !self.was_passed(id) {
            None
        } else {
            let body = self.reply_body(header.minor, header.little, get.pos, message.clone());
            Some(body.with_headers(passes.then(|| contexts::received(&message, list))))
        };
        let encoded = |raised: bool| passed.clone().map(|body| Encoded { id: String::new(), raised, body });
        let outcome = match status {
            NO_EXCEPTION => Outcome::Done(
                passed.unwrap_or_else(|| self.reply_body(header.minor, header.little, get.pos, message)),
            ),
            SYSTEM_EXCEPTION => {
                let explained = explained.and_then(|data| FailureDetail::get(data).ok());
                let failure = match SystemException::get(&mut get) {
                    Ok(exception) => exception.into_failure(explained),
                    Err(bad) => undecodable("a system exception", bad.into()),
                };
                Outcome::Failed(match encoded(false) {
                    Some(encoded) => failure.with_encoded(encoded),
                    None => failure,
                })
            }
            USER_EXCEPTION => match get.text() {
                Ok(id) => {
                    let encoded = encoded(true).map(Arc::new);
                    let body = self.reply_body(header.minor, header.little, get.pos, message);
                    Outcome::Raised(Box::new(Raised { id, body, text: String::new(), encoded }))
                }
                Err(bad) => Outcome::Failed(undecodable("an exception", bad.into())),
            },
            LOCATION_FORWARD | LOCATION_FORWARD_PERM => forwarded(&mut get),
            _ => Outcome::Failed(self.other_addressing(&mut get)),
        };
        self.reply(id, outcome);
        Ok(())
    }

    /// Whether a call ends by the answer with this number. Not if it went out again, since the peer wants its object named in another way;
    /// nor if nobody waits: it was oneway, or was withdrawn.
    #[inline]
    pub(crate) fn is_awaited(&mut self, id: u32, wants_other_addressing: bool, get: Get<'_>) -> bool {
        if (wants_other_addressing && self.ask_again(id, get)) || !self.settle(id) {
            return false;
        }
        self.trials.settle(id, !wants_other_addressing);
        true
    }

    /// What follows `at` in a reply, as a body: in the byte order and version of the reply, in the character
    /// sets of the connection. The body shares the bytes of the message.
    #[inline]
    fn reply_body(&self, minor: u8, little: bool, at: usize, mut message: Bytes) -> Body {
        let base = at.min(message.len());
        bytes::Buf::advance(&mut message, base);
        let dialect = self.dialect.or_else(|| self.own_sets()).unwrap_or_default();
        let dialect = Dialect { minor, ..dialect };
        Body { beside: self.beside_bodies(), ..Cdr::body(message, base, little, dialect, self.limits.budget) }
    }

    /// The results of a call, behind the number of it, the status and the count of contexts.
    #[inline]
    pub(crate) fn results_body(&self, results: ResultsIn) -> Body {
        let ResultsIn { id: _, little, message } = results;
        self.reply_body(2, little, HEADER + 12, message)
    }

    /// The same as an event.
    fn results_event(&self, results: ResultsIn) -> Event {
        Event::Reply { id: CallId(results.id.into()), outcome: Outcome::Done(self.results_body(results)) }
    }

    /// The results that came before all other events, as an event.
    #[cold]
    pub(crate) fn poll_results(&mut self) -> Option<Event> {
        self.results.take().map(|results| self.results_event(results))
    }
}

/// Where a forward points. The caller of the session follows it; nil cannot be followed.
pub(crate) fn forwarded(get: &mut Get<'_>) -> Outcome<Body> {
    match ior::get(get) {
        Ok(Some(reference)) => Outcome::Moved(reference),
        Ok(None) => Outcome::Failed(Failure::new(
            Kind::BadReference,
            Initiator::Peer,
            "the peer says the object moved, and gives nil for its place",
        )),
        Err(bad) => Outcome::Failed(undecodable("the place an object moved to", bad.into())),
    }
}

/// The failure of an answer that came and cannot be read: the servant may have run.
pub(crate) fn undecodable(what: &str, failure: Failure) -> Failure {
    failure.with_completed(Completed::Maybe).at(what)
}
