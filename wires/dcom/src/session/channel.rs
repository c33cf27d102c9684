//! What both sides of a connection share: taking PDUs off the stream, putting messages on it.
//!
//! States: `state` goes from `Unbound` to `Open` (the bind was accepted) to `Over`, and never back; the
//! accepting and the connecting session change it. `xmit` and `recv` are set by the bind. `shields` only
//! grows, so an index into it stays valid as long as the connection lasts. `due` runs while a PDU has begun
//! and is not whole; each open assembly has a time of its own.
//!
//! Invariants: a PDU is given out only when all of it is there. Once `Over`, input is dropped unread. A
//! message that is put on the stream is either complete or not there at all: if its stub fails or exceeds
//! `limits.message`, the buffer is cut back to where it began. Every fragment has `xmit` octets at the most.
//! A sequence number of a shield is used only for a fragment that stays in the buffer: `split` runs after the
//! stub is complete, since a signature cannot be taken back.

use super::assembly::Assemblies;
use super::security_context::{self, SecurityContext};
use crate::frame::{self, FIRST, HEADER, Header, LAST, MIN_FRAGMENT};
use crate::pdu::{Heading, Pdu, ProtocolError};
use bytes::BytesMut;
use everywire_model::MessageClock;
use everywire_model::{Event, Failure, Initiator, Limits, SendBuffer, Violation, Visit};
use std::collections::VecDeque;
use std::time::Instant;

/// The largest fragment that peers of any make get and may send: what Windows answers on TCP.
pub(crate) const FRAGMENT: u16 = 5840;

/// The largest fragment where the peer asks for exactly that: fewer headers and signatures in large messages.
/// The greatest multiple of 8 that the 16 bits of `frag_length` can say.
pub(crate) const LARGE_FRAGMENT: u16 = 65_528;

/// How far a connection is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing was agreed on.
    #[default]
    Unbound,
    /// Calls may be made.
    Open,
    /// Either side said goodbye, the peer broke the protocol, or the connection ended.
    Over,
}

/// What both roles of a connection have in common; the module's header says what changes when.
#[derive(Default)]
pub(crate) struct Channel {
    pub(crate) state: State,
    pub(crate) limits: Limits,
    pub(crate) out: SendBuffer,
    pub(crate) events: VecDeque<Event>,
    /// Minor version of the protocol, as the client said.
    pub(crate) minor: u8,
    /// Most bytes of a fragment that is sent, trailer included.
    pub(crate) xmit: u16,
    /// Most bytes of a fragment that is taken.
    pub(crate) recv: u16,
    /// Whether headers are signed.
    pub(crate) header_signing: bool,
    /// Whether several calls may be under way.
    pub(crate) multiplex: bool,
    /// The security contexts that stand, in the order in which they came to. None is ever removed.
    pub(crate) shields: Vec<SecurityContext>,
    pub(crate) assemblies: Assemblies,
    /// Bytes of whole PDUs received so far.
    pub(crate) received: u64,
    /// Bytes missing of the PDU at the front of the input.
    pub(crate) missing: usize,
    /// When the PDU at the front of the input must be whole, and seconds it was given.
    due: MessageClock,
}

impl Channel {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limits: limits.clone(), xmit: FRAGMENT, recv: u16::MAX, ..Self::default() }
    }

    /// Fails unless the connection is this far.
    pub(crate) fn expect(&self, state: State, header: &Header) -> Result<(), ProtocolError> {
        if self.state == state { Ok(()) } else { Err(ProtocolError::Unexpected { kind: header.kind.word() }) }
    }

    /// The security context of this index.
    #[inline]
    pub(crate) fn shield(&self, index: Option<usize>) -> Option<&SecurityContext> {
        index.and_then(|index| self.shields.get(index))
    }

    /// Takes the next whole PDU from the front of the input.
    #[inline]
    pub(crate) fn next(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
    ) -> Result<Option<(Header, BytesMut)>, ProtocolError> {
        self.missing = 0;
        if self.state == State::Over {
            // What comes after goodbye concerns nobody.
            input.clear();
            self.due.stop();
            return Ok(None);
        }
        let Some(raw) = input.first_chunk::<HEADER>() else {
            self.wait(now, input.len(), HEADER);
            return Ok(None);
        };
        let header = Header::read(raw)?;
        let len = usize::from(header.length);
        if input.len() < len {
            self.wait(now, input.len(), len);
            return Ok(None);
        }
        self.due.stop();
        self.received += len as u64;
        Ok(Some((header, input.split_to(len))))
    }

    /// Checks what protects a call's PDU; decrypts it in place. Yields where its contents end, and by which context it came
    /// protected, if by one. `begun` is the security context under which the message began that this fragment continues: whatever
    /// the trailer says, it has to be that one's, and so it has for the fragments that follow.
    #[inline]
    pub(crate) fn open(
        &mut self,
        header: &Header,
        message: &mut [u8],
        begun: Option<usize>,
    ) -> Result<(usize, Option<usize>), ProtocolError> {
        let Some(trailer) = header.trailer(message)? else { return Ok((message.len(), None)) };
        let head = security_context::head(header);
        if trailer.contents_end() < head {
            return Err(ProtocolError::AuthLength { length: header.auth_length });
        }
        let context = trailer.context;
        // The newest is the one in use.
        let named = || self.shields.iter().rposition(|shield| shield.id == context);
        // A fragment of a protected message is checked with the keys of the first one, even if its trailer
        // names another context: then its signature is tried, and the difference is told apart from a
        // forgery.
        let index = begun.or_else(named).ok_or(ProtocolError::UnknownSecurityContext { context })?;
        let Some(shield) = self.shields.get_mut(index) else {
            return Err(ProtocolError::UnknownSecurityContext { context });
        };
        if begun.is_none() && !shield.fits(&trailer) {
            return Err(ProtocolError::SecurityContextReused { context });
        }
        // At level connect nothing is signed, though some send what looks like a signature.
        if shield.signs() {
            shield.verify(message, &trailer, head)?;
        }
        if !shield.fits(&trailer) {
            return Err(ProtocolError::FragmentDiffers { call: header.call, what: "security context" });
        }
        Ok((trailer.contents_end(), Some(index)))
    }

    /// Appends a message that `fill` writes the stub of, in this byte order, in as many fragments as it needs; nothing of it is left if
    /// that fails or the message gets too large. `fill` gets the buffer, whose end is where the stub begins.
    #[inline]
    pub(crate) fn message(
        &mut self,
        heading: &Heading,
        shield: Option<usize>,
        little: bool,
        fill: impl FnOnce(&mut Vec<u8>) -> Visit<()>,
    ) -> Visit<()> {
        let minor = self.minor;
        let out = self.out.flat();
        let start = out.len();
        heading.put(minor, FIRST | LAST, 0, out);
        let stub = out.len();
        let result = fill(out).and_then(|()| {
            let size = out.len().saturating_sub(stub);
            if size as u64 > self.limits.message {
                return Err(too_large(size as u64, self.limits.message));
            }
            // The allocation hint, behind the header, was written as 0 before the size was known.
            let hint = u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes();
            if let Some(place) = out.get_mut(start + HEADER..).and_then(<[u8]>::first_chunk_mut) {
                *place = hint;
            }
            let shield = shield.and_then(|index| self.shields.get_mut(index)).filter(|shield| shield.signs());
            if shield.is_none() && out.len() - start <= usize::from(self.xmit) {
                finish(out, start, little);
                return Ok(());
            }
            let limit = usize::from(self.xmit);
            split(out, start, stub, &Fragmentation { minor, heading, limit, little }, shield)
        });
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// Appends a PDU that is no part of a call, with a token of authentication if there is one.
    /// The token's padding is to 4 octets, relative to the PDU; such PDUs are never signed or sealed.
    pub(crate) fn negotiate(&mut self, pdu: &Pdu, flags: u8, call: u32, token: Option<&Token>) {
        let out = self.out.flat();
        let start = out.len();
        frame::put(out, self.minor, pdu.kind(), FIRST | LAST | flags, 0, call);
        pdu.write_contents(out, start, &[]);
        if let Some(token) = token {
            let pad = frame::pad(out, start, 4);
            frame::put_trailer(out, token.mechanism, token.level, pad, token.context);
            out.extend_from_slice(&token.value);
            frame::set_auth_length(out, start, token.value.len());
        }
        frame::set_length(out, start);
    }

    /// Notes that a PDU has begun and `whole - have` bytes of it are missing.
    fn wait(&mut self, now: Instant, have: usize, whole: usize) {
        if have == 0 {
            self.due.stop();
            return;
        }
        self.missing = whole - have;
        self.due.allow(now, self.limits.message_time);
    }

    /// When `check_time` has something to say at the earliest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due.due().into_iter().chain(self.assemblies.due()).min()
    }

    /// Fails if a PDU or a fragmented message that had begun is not whole by `now`.
    pub(crate) fn check_time(&mut self, now: Instant) -> Result<(), ProtocolError> {
        let assemblies = self.assemblies.due().filter(|due| *due <= now);
        let late = self.due.late(now).or_else(|| assemblies.map(|_| self.limits.message_time.as_secs()));
        late.map_or(Ok(()), |seconds| Err(ProtocolError::TooSlow { seconds }))
    }

    /// When a fragmented message that begins now must be whole.
    pub(crate) fn assembly_due(&self, now: Instant) -> Instant {
        now.checked_add(self.limits.time_for(self.limits.message)).unwrap_or(now)
    }

    /// The violation.
    /// After this nothing is read any more; what is in `out` (a fault, a bind_nak) is still sent.
    #[cold]
    pub(crate) fn broken(&mut self, breach: ProtocolError) -> Violation {
        self.state = State::Over;
        self.assemblies = Assemblies::default();
        self.due.stop();
        self.missing = 0;
        breach.violation(self.received)
    }
}

/// A token to be sent in a security trailer.
pub(crate) struct Token {
    pub(crate) mechanism: u8,
    pub(crate) level: u8,
    pub(crate) context: u32,
    pub(crate) value: Vec<u8>,
}

/// How a message is cut.
struct Fragmentation<'a> {
    minor: u8,
    heading: &'a Heading,
    /// Bytes that a fragment may have.
    limit: usize,
    little: bool,
}

/// Rewrites the message that stands from `start` on, its stub from `stub` on, as fragments, protected if there is a shield.
fn split(
    out: &mut Vec<u8>,
    start: usize,
    stub: usize,
    cut: &Fragmentation<'_>,
    mut shield: Option<&mut SecurityContext>,
) -> Visit<()> {
    let Fragmentation { minor, heading, limit, little } = *cut;
    let limit = limit.max(MIN_FRAGMENT.into());
    let overhead = heading.len() + shield.as_ref().map_or(0, |shield| shield.overhead());
    // The trailer's padding counts in the fragment, so a room of whole 16s keeps each fragment below the
    // limit.
    // Fragments but the last carry a multiple of 16, which needs no padding.
    let room = (limit.saturating_sub(overhead) & !15).max(16);
    let size = out.len().saturating_sub(stub);
    if size <= room
        && let Some(shield) = shield
    {
        return shield.protect(out, start, stub - start, little);
    }
    // The stub is copied once more here, since a header goes between its parts.
    let whole = out.split_off(stub);
    out.truncate(start);
    let mut left = whole.len();
    for (index, part) in whole.chunks(room).enumerate() {
        let begin = out.len();
        let first = if index == 0 { FIRST } else { 0 };
        let last = if left == part.len() { LAST } else { 0 };
        heading.put(minor, first | last, left, out);
        left -= part.len();
        let head = out.len() - begin;
        out.extend_from_slice(part);
        match &mut shield {
            Some(shield) => shield.protect(out, begin, head, little)?,
            None => finish(out, begin, little),
        }
    }
    Ok(())
}

/// Ends an unprotected PDU, which was written little-endian.
#[inline]
fn finish(out: &mut [u8], start: usize, little: bool) {
    frame::set_length(out, start);
    if !little {
        frame::turn_pdu(out.get_mut(start..).unwrap_or_default());
    }
}

#[cold]
fn too_large(size: u64, limit: u64) -> Failure {
    Failure::over_limit(Initiator::Here, "bytes in a message", size, limit)
        .with_hint("raise the message limit, or send less at a time")
}
