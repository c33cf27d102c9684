//! Asking and telling where objects are (CORBA 3.3 part 2, sections 9.4.5 and 9.4.6).
//!
//! A LocateRequest is a call without an operation. `probe` sends one and its answer is an `Event::Reply` with
//! an empty body, a failure, or `Outcome::Moved`; one that comes is an `Event::Probe`, answered as calls are.
//! Both directions use the same lists of open calls as requests do (`waiting`, `serving`), so the same limits
//! hold.
//!
//! The numbers of the status are those of section 9.4.6; from 3 on they exist in GIOP 1.2 only.

use crate::cdr::{CdrWriter, Get};
use crate::codesets::Dialect;
use crate::exceptions::{self, SystemException};
use crate::frame::{HEADER, Header, MessageKind};
use crate::ior;
use crate::replies::forwarded;
use crate::request_header::put_target;
use crate::requests::{octets_at, shift, target};
use crate::session::{GiopSession, InboundCall, RequestKind};
use crate::values::Cdr;
use crate::violations::ProtocolError;
use bytes::Bytes;
use everywire_model::{Answer, CallId, Event, Expects, Failure, Initiator, Kind, Outcome, Profile, Visit};

const UNKNOWN_OBJECT: u32 = 0;
const OBJECT_HERE: u32 = 1;
const OBJECT_FORWARD: u32 = 2;
const OBJECT_FORWARD_PERM: u32 = 3;
const SYSTEM_EXCEPTION: u32 = 4;
const NEEDS_ADDRESSING_MODE: u32 = 5;

impl GiopSession {
    /// Asks whether the peer has the object.
    ///
    /// # Errors
    /// The connection is closed, was opened by the peer, or has too many calls open.
    pub(crate) fn locate(&mut self, profile: &Profile) -> Result<CallId, Failure> {
        self.check_can_ask()?;
        let minor = profile.version.1.min(2);
        let id = self.next_id;
        self.put_locate(id, profile)?;
        self.take_id(minor);
        self.waiting.push_back(id);
        if minor >= 2 && self.trials.is_on() {
            self.keep_locate(id, profile);
        }
        Ok(CallId(id.into()))
    }

    /// Writes the message.
    pub(crate) fn put_locate(&mut self, id: u32, profile: &Profile) -> Visit<()> {
        let minor = profile.version.1.min(2);
        self.message(minor, MessageKind::LocateRequest, |session, start| {
            let addressing = session.addressing;
            let mut put = CdrWriter { shift: shift(session, start), out: session.out.flat(), swap: false };
            put.u32(id);
            if minor >= 2 {
                put_target(profile, addressing, &mut put);
            } else {
                put.octets(&profile.key);
            }
            Ok(())
        })
    }

    /// The peer asks whether this side has an object. It becomes an `Event::Probe`; who has the object
    /// answers it.
    pub(crate) fn locate_in(&mut self, header: &Header, message: &Bytes) -> Result<(), ProtocolError> {
        let mut get = Get { bytes: message, pos: HEADER, base: 0, little: header.little };
        let id = get.u32()?;
        let key = if header.minor >= 2 { target(&mut get)? } else { octets_at(&mut get)? };
        if get.left() > 0 {
            return Err(ProtocolError::Trailing { kind: header.kind.word(), bytes: get.left() });
        }
        let dialect = Dialect { minor: header.minor, ..Dialect::default() };
        if let Some(id) = self.enter(id, dialect, RequestKind::Locate, Expects::Reply)? {
            self.events.push_back(Event::Probe { id, key: message.slice(key), type_id: None, asked: None });
        }
        Ok(())
    }

    /// Tells where an object is. GIOP 1.0 and 1.1 have no status for a failure, so there every failure says
    /// that the object is unknown.
    pub(crate) fn answer_locate(&mut self, serving: &InboundCall, answer: Answer<'_>) -> Result<(), Failure> {
        let local = self.local;
        match answer {
            Answer::Done(_) => self.put_located(serving, OBJECT_HERE, |_| {}),
            Answer::Moved(reference) => {
                self.put_located(serving, OBJECT_FORWARD, |put| ior::put(Some(reference), local, put))
            }
            Answer::Failed(failure) if failure.kind() == Kind::NoObject || serving.dialect.minor < 2 => {
                self.put_located(serving, UNKNOWN_OBJECT, |_| {})
            }
            Answer::Failed(failure) => {
                self.put_located(serving, SYSTEM_EXCEPTION, |put| exceptions::put(failure, put))
            }
            Answer::Raised { .. } | Answer::Passed { .. } => {
                self.put_located(serving, UNKNOWN_OBJECT, |_| {})
            }
        }
    }

    /// Answers a locate request that never became an event.
    pub(crate) fn refuse_locate(&mut self, id: u32, failure: &Failure) {
        let serving = InboundCall {
            serial: 0,
            id,
            dialect: Dialect::OURS,
            asks: RequestKind::Locate,
            cancelled: false,
        };
        if self.put_located(&serving, SYSTEM_EXCEPTION, |put| exceptions::put(failure, put)).is_err() {
            self.send_error();
        }
    }

    /// `fill` writes what belongs to the status.
    fn put_located(
        &mut self,
        serving: &InboundCall,
        status: u32,
        fill: impl FnOnce(&mut CdrWriter<'_>),
    ) -> Result<(), Failure> {
        self.message(serving.dialect.minor, MessageKind::LocateReply, |session, start| {
            let mut put = CdrWriter { shift: shift(session, start), out: session.out.flat(), swap: false };
            put.u32(serving.id);
            put.u32(status);
            fill(&mut put);
            Ok(())
        })
    }

    /// The peer tells where an object is. An answer that nobody waits for is passed over.
    pub(crate) fn located_in(&mut self, header: &Header, message: Bytes) -> Result<(), ProtocolError> {
        let mut get = Get { bytes: &message, pos: HEADER, base: 0, little: header.little };
        let id = get.u32()?;
        let status = get.u32()?;
        if status > NEEDS_ADDRESSING_MODE {
            return Err(ProtocolError::Status { status });
        }
        if !self.is_awaited(id, status == NEEDS_ADDRESSING_MODE, get) {
            return Ok(());
        }
        let outcome = match status {
            OBJECT_HERE => {
                let dialect = Dialect { minor: header.minor, ..Dialect::default() };
                Outcome::Done(Cdr::body(Bytes::new(), 0, header.little, dialect, self.limits.budget))
            }
            UNKNOWN_OBJECT => {
                let failure = Failure::new(Kind::NoObject, Initiator::Peer, "the peer has no such object");
                Outcome::Failed(failure.with_hint("the server does not know this key, or not any more"))
            }
            OBJECT_FORWARD | OBJECT_FORWARD_PERM => forwarded(&mut get),
            SYSTEM_EXCEPTION => Outcome::Failed(match SystemException::get(&mut get) {
                Ok(exception) => exception.into_failure(None),
                Err(bad) => bad.into(),
            }),
            _ => Outcome::Failed(self.other_addressing(&mut get)),
        };
        self.reply(id, outcome);
        Ok(())
    }
}
