//! Taking messages off the stream: headers, limits, time (CORBA 3.3 part 2, section 9.4).
//!
//! `take_messages` is a loop over the front of the input. One of four things is there: bytes to be thrown
//! away (`discarding`), bytes of a fragment under way (`filling`), a header, or the beginning of one. It
//! returns when it needs more bytes; then `missing` tells the link how many, and `due` when they must be
//! here.
//!
//! Order of checks, before anything is copied: the magic, then version, flags and kind (`Header::read`), then
//! the size against the limit, then time. A message over the limit is read far enough to name the call that
//! it belongs to, so that its caller learns why; its other bytes are counted and dropped as they come, never
//! kept.
//!
//! A violation is final: `wrong` puts MessageError into the output, `Session::receive` then calls `broken`,
//! and nothing more is taken. `received` counts the bytes of whole messages, for the place that a violation
//! tells.

use crate::cdr::Get;
use crate::codesets::Dialect;
use crate::fragments::SLACK;
use crate::frame::{HEADER, Header, MAGIC, MessageKind};
use crate::limits;
use crate::session::{DiscardState, GiopSession, InboundCall, RequestKind, State};
use crate::violations::ProtocolError;
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::{Completed, Failure, Initiator, Kind, Outcome, Violation};
use std::time::Instant;

impl GiopSession {
    /// Handles all whole messages at the front of the input. What is not whole stays in the input.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub(crate) fn take_messages(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Violation> {
        self.missing = 0;
        loop {
            if self.state != State::Open {
                // What comes after goodbye concerns nobody.
                input.clear();
                self.due.stop();
                return Ok(());
            }
            if self.discarding.is_some() || self.filling.is_some() {
                let went_on = if self.discarding.is_some() { self.discard(input) } else { self.fill(input) };
                if !went_on? {
                    return Ok(());
                }
                continue;
            }
            let Some(raw) = input.first_chunk::<HEADER>() else {
                if input.len() >= MAGIC.len() {
                    self.begins_as_giop(input)?;
                }
                return self.wait(now, input.len(), HEADER);
            };
            let header = Header::read(raw).map_err(|wrong| self.wrong(wrong))?;
            let len = header.len();
            let too_large = len > limits::largest(&self.limits);
            if too_large || header.kind == MessageKind::Fragment {
                let went_on = match too_large {
                    true => self.too_large(now, &header, input)?,
                    false => self.begin_fragment(now, &header, input)?,
                };
                if !went_on {
                    return Ok(());
                }
                continue;
            }
            // The limit was checked, so the length fits.
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            if input.len() < len {
                self.wait(now, input.len(), len)?;
                if header.more {
                    self.missing += SLACK;
                }
                return Ok(());
            }
            self.due.stop();
            let message = input.split_to(len);
            if header.more {
                self.begin_assembly(now, &header, message)?;
            } else {
                self.message_in(&header, message.freeze())?;
            }
            self.received += len as u64;
        }
    }

    /// Tells another protocol by its first four octets: it may have no more to say than an alert of seven.
    /// TLS, for one, answers a plain message so.
    #[cold]
    fn begins_as_giop(&mut self, input: &[u8]) -> Result<(), Violation> {
        match input.first_chunk::<4>() {
            Some(found) if *found != MAGIC => Err(self.wrong(ProtocolError::NotGiop { found: *found })),
            _ => Ok(()),
        }
    }

    /// A whole message, joined if it came in fragments; `message` begins with the header. A client gets no
    /// requests, unless it has said that it takes some (`bidirectional`).
    #[inline(always)]
    pub(crate) fn message_in(&mut self, header: &Header, message: Bytes) -> Result<(), Violation> {
        if !self.takes_requests()
            && matches!(
                header.kind,
                MessageKind::Request | MessageKind::LocateRequest | MessageKind::CancelRequest
            )
        {
            return Err(self.wrong(ProtocolError::NotBidirectional { kind: header.kind.word() }));
        }
        let handled = match header.kind {
            MessageKind::Request => self.request_in(header, message),
            MessageKind::Reply => self.reply_in(header, message),
            MessageKind::LocateRequest => self.locate_in(header, &message),
            MessageKind::LocateReply => self.located_in(header, message),
            MessageKind::CancelRequest => self.cancel_in(header, &message),
            MessageKind::CloseConnection => self.goodbye_in(header),
            MessageKind::MessageError => self.error_in(header),
            // Fragments were taken before (`begin_fragment`).
            MessageKind::Fragment => Ok(()),
        };
        handled.map_err(|wrong| self.wrong(wrong))
    }

    /// Notes that a message has begun and `whole - have` bytes of it are missing. `have` 0 means that nothing
    /// has begun, and stops the clock. The time for all of it counts from the first call for this message.
    pub(crate) fn wait(&mut self, now: Instant, have: usize, whole: usize) -> Result<(), Violation> {
        if have == 0 {
            self.due.stop();
            return Ok(());
        }
        self.missing = whole - have;
        self.due.allow(now, self.limits.time_for(whole as u64));
        Ok(())
    }

    /// Looks at the message at the front and at all open assemblies.
    ///
    /// # Errors
    /// One of them has had its time: a peer must not hold memory by sending slowly.
    pub(crate) fn check_time(&mut self, now: Instant) -> Result<(), Violation> {
        let late = self.due.late(now).or_else(|| {
            let late = self.assemblies.iter().find(|assembly| assembly.due <= now)?;
            Some(self.limits.time_for(late.bytes.len() as u64).as_secs())
        });
        match late {
            Some(seconds) => Err(self.wrong(ProtocolError::TooSlow { seconds })),
            None => Ok(()),
        }
    }

    /// A message over the limit. The call that it belongs to learns why: one of ours comes back as a failure,
    /// a request of the peer gets a system exception, if GIOP 1.2 lets us see its number. Returns whether to
    /// go on with the input.
    ///
    /// # Errors
    /// The connection cannot go on: the message names no call, is a reply, or is so large that throwing its
    /// bytes away would be a service to an attacker (`COURTESY`).
    fn too_large(&mut self, now: Instant, header: &Header, input: &mut BytesMut) -> Result<bool, Violation> {
        let (size, limit) = (header.len(), limits::largest(&self.limits));
        let violation = ProtocolError::OverLimit { size, limit };
        // In GIOP 1.2 the number of the call comes first, so that the refusal can name it.
        let names_call =
            header.minor >= 2 && matches!(header.kind, MessageKind::Request | MessageKind::Reply);
        // What nobody takes is not waited for either.
        let is_refused = header.kind == MessageKind::Request
            && (!self.takes_requests() || size > limit.saturating_mul(limits::COURTESY));
        if !names_call || is_refused {
            return Err(self.wrong(violation));
        }
        /// The header, the request id, and the response flags of a request.
        const SEEN: usize = HEADER + 5;
        let Some(seen) = input.first_chunk::<SEEN>() else {
            self.wait(now, input.len(), SEEN)?;
            return Ok(false);
        };
        let mut get = Get { bytes: seen, pos: HEADER, base: 0, little: header.little };
        let (Ok(id), Ok(flags)) = (get.u32(), get.u8()) else { return Err(self.wrong(violation)) };
        if header.kind == MessageKind::Reply {
            if self.settle(id) {
                let failure = Failure::over_limit(Initiator::Here, "bytes in a GIOP reply", size, limit)
                    .with_completed(Completed::Yes)
                    .with_hint("raise the message limit of this side, or ask for less at a time");
                self.reply(id, Outcome::Failed(failure));
            }
            return Err(self.wrong(violation));
        }
        if flags & 1 != 0 {
            let failure = Failure::over_limit(Initiator::Peer, "bytes in a GIOP request", size, limit)
                .with_hint("raise the server's message limit, or send less at a time");
            self.refuse(id, header.minor, &failure);
        }
        // The connection ends when the request has passed: then nothing unread makes the transport drop the refusal.
        self.pass_over(now, size, Some(violation.violation(self.received)));
        Ok(true)
    }

    /// Begins to throw away `size` bytes from the front of the input. If `violation` is given, the connection
    /// ends when they have passed.
    pub(crate) fn pass_over(&mut self, now: Instant, size: u64, violation: Option<Violation>) {
        self.discarding = Some(DiscardState { left: size, violation });
        self.due.stop();
        self.due.allow(now, self.limits.time_for(size));
    }

    /// Throws away what is here of the bytes to be passed over; whether all have passed.
    fn discard(&mut self, input: &mut BytesMut) -> Result<bool, Violation> {
        let Some(discarding) = &mut self.discarding else { return Ok(true) };
        let here = usize::try_from(discarding.left).unwrap_or(usize::MAX).min(input.len());
        input.advance(here);
        discarding.left -= here as u64;
        self.received += here as u64;
        if discarding.left == 0 {
            // Other calls may be under way here, and a goodbye would say that they never began. The refusal was the answer to
            // this one, its bytes have passed, and the next message can be read.
            let violation = discarding.violation.take().filter(|_| self.serving.is_empty());
            let Some(violation) = violation else {
                self.discarding = None;
                self.due.stop();
                return Ok(true);
            };
            // The refusal was the answer; a goodbye after it lets the peer try its next call on a new connection.
            self.say_goodbye();
            return Err(violation);
        }
        self.missing = usize::try_from(discarding.left).unwrap_or(usize::MAX).min(limits::CHUNK);
        Ok(false)
    }

    /// Answers a call that never became an event with a system exception. Such a call has no entry in
    /// `serving`.
    pub(crate) fn refuse(&mut self, id: u32, minor: u8, failure: &Failure) {
        let dialect = Dialect { minor, ..Dialect::OURS };
        let serving = InboundCall { serial: 0, id, dialect, asks: RequestKind::Call, cancelled: false };
        self.put_exception(&serving, failure);
    }

    /// The violation with the place where it happened. MessageError, which tells the peer, is put into the
    /// output.
    #[cold]
    pub(crate) fn wrong(&mut self, wrong: ProtocolError) -> Violation {
        self.send_error();
        wrong.violation(self.received)
    }

    /// After a violation, or when the connection has ended, nothing more is taken or sent, and memory of
    /// unfinished messages is given back.
    pub(crate) fn broken(&mut self) {
        self.state = State::Broken;
        self.assemblies = Vec::new();
        self.filling = None;
        self.discarding = None;
        self.due.stop();
        self.missing = 0;
    }

    /// A failure that says the connection is over its quota of calls. The peer gets it as TRANSIENT, which it
    /// may try again.
    pub(crate) fn busy(&self) -> Failure {
        let limit = self.limits.outstanding as u64;
        let what = format!("more than {limit} calls are open on this connection");
        Failure::new(Kind::Busy, Initiator::Peer, what)
            .with_hint("wait for answers before sending more, or raise the limit of outstanding calls")
    }
}
