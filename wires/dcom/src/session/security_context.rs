//! Security contexts that stand: signing, sealing and checking single PDUs (MS-RPCE 2.2.2.11, 3.3.1.5.2).
//!
//! A PDU of a call at level integrity or privacy ends with padding to 16, the security trailer, and the
//! signature. Signed are header, contents, padding and trailer (if headers are signed, and always with NTLM),
//! or contents and padding of the stub alone. Sealed, at level privacy, are stub and padding.
//!
//! States: keys and sequence numbers of both directions, inside of `protection`; they advance with each PDU,
//! so PDUs must be protected and checked in the order in which they travel. `whole` may turn on once, by an
//! alter_context that agrees on header signing.
//!
//! Invariants: `head` is where the stub begins, which the sender's header alone decides; what is decrypted
//! never lies before it. The length of a signature is constant for what is sent; for what is received the
//! trailer's length counts, and the mechanism checks it.

use crate::exporter::Correspondence;
use crate::frame::{self, Header, TRAILER, Trailer};
use crate::pdu::ProtocolError;
use crate::security::Level;
use bytes::Bytes;
use everywire_auth::security::{Established, Mechanism, Principal, Protection};
use everywire_model::{Attachments, Failure, Initiator, Kind, Visit};
use std::ops::Range;
use std::sync::Arc;

/// Stubs are padded to a multiple of this before they are signed, as all other implementations do.
const PAD: usize = 16;

/// A security context that stands.
pub(crate) struct SecurityContext {
    /// Its number on this connection.
    pub(crate) id: u32,
    /// Security provider, as trailers number it.
    pub(crate) mechanism: u8,
    pub(crate) level: Level,
    protection: Box<dyn Protection>,
    /// Whether the headers are signed as well as the stub, so that no verification trailer is needed.
    pub(crate) whole: bool,
    /// Octets of a signature that this side makes.
    signature: usize,
    /// For references in what was protected by it; `None`: those of the connection.
    pub(crate) correspondence: Option<ValueContext>,
    /// Who is at the other end, for messages.
    pub(crate) principal: Bytes,
}

/// What the values of a connection need beside their bytes.
#[derive(Clone)]
pub(crate) struct ValueContext {
    pub(crate) beside: Arc<Attachments>,
    pub(crate) references: Arc<Correspondence>,
}

/// The numbers of the mechanisms in security trailers (MS-RPCE 2.2.1.1.7).
const NUMBERS: [(Mechanism, u8); 3] =
    [(Mechanism::Negotiate, 9), (Mechanism::Ntlm, 10), (Mechanism::Kerberos, 16)];

/// The number of a mechanism.
pub(crate) fn number(mechanism: Mechanism) -> u8 {
    NUMBERS.iter().find(|(held, _)| *held == mechanism).map_or(0, |(_, number)| *number)
}

/// The mechanism with that number.
pub(crate) fn mechanism(number: u8) -> Option<Mechanism> {
    NUMBERS.iter().find(|(_, held)| *held == number).map(|(mechanism, _)| *mechanism)
}

impl SecurityContext {
    pub(crate) fn new(id: u32, mechanism: u8, level: Level, headers: bool, established: Established) -> Self {
        let Established { principal, protection, .. } = established;
        // NTLM signs headers whether or not that was agreed on.
        let whole = headers || principal.mechanism.starts_with("NTLM");
        let (signature, principal) = (protection.signature_len(), name(&principal).into());
        Self { id, mechanism, level, protection, whole, signature, correspondence: None, principal }
    }

    /// Whether each PDU carries a signature.
    #[inline]
    pub(crate) fn signs(&self) -> bool {
        self.level.is_signed()
    }

    /// Bytes that it adds to a PDU beside padding.
    pub(crate) fn overhead(&self) -> usize {
        TRAILER + self.signature
    }

    /// Ends the PDU that began at `start` and whose stub begins `head` bytes later: padding, trailer, signature.
    pub(crate) fn protect(
        &mut self,
        out: &mut Vec<u8>,
        start: usize,
        head: usize,
        little: bool,
    ) -> Visit<()> {
        let pad = frame::pad(out, start + head, PAD);
        let sealed = head..out.len() - start;
        frame::put_trailer(out, self.mechanism, self.level as u8, pad, self.id);
        let signed = out.len();
        out.resize(signed + self.signature, 0);
        frame::set_length(out, start);
        frame::set_auth_length(out, start, self.signature);
        if !little {
            // The byte order is turned before signing, since the signature covers what travels.
            frame::turn_pdu(out.get_mut(start..).unwrap_or_default());
            frame::turn(out, &[(signed - 4, 4)]);
        }
        let (front, signature) = out.split_at_mut_checked(signed).ok_or_else(misplaced)?;
        let message = front.get_mut(start..).ok_or_else(misplaced)?;
        let (message, sealed) = self.covered(message, sealed).ok_or_else(misplaced)?;
        self.protection.protect(message, sealed, signature)
    }

    /// What is signed of a PDU up to its signature, whose padded stub is at `stub`; and what of that is sealed.
    fn covered<'m>(
        &self,
        front: &'m mut [u8],
        stub: Range<usize>,
    ) -> Option<(&'m mut [u8], Option<Range<usize>>)> {
        let (signed, stub) = if self.whole {
            (front, stub)
        } else {
            let len = stub.len();
            (front.get_mut(stub)?, 0..len)
        };
        Some((signed, (self.level == Level::Privacy).then_some(stub)))
    }

    /// Checks a PDU, and decrypts its stub in place, which begins at `head`.
    /// On failure the connection has to end: after one PDU that does not fit, the keys of the direction are
    /// out of step.
    pub(crate) fn verify(
        &mut self,
        message: &mut [u8],
        trailer: &Trailer,
        head: usize,
    ) -> Result<(), ProtocolError> {
        // How long signatures are that others make is the mechanism's to say: those of Kerberos differ.
        let split = message.split_at_mut_checked(trailer.value()).filter(|_| head <= trailer.at);
        let (front, signature) = split.ok_or(ProtocolError::Signature)?;
        let (message, sealed) = self.covered(front, head..trailer.at).ok_or(ProtocolError::Signature)?;
        self.protection.verify(message, sealed, signature).map_err(|_| ProtocolError::Signature)
    }

    /// Whether a trailer was made with this context.
    pub(crate) fn fits(&self, trailer: &Trailer) -> bool {
        (self.id, self.mechanism, self.level as u8) == (trailer.context, trailer.mechanism, trailer.level)
    }
}

#[cold]
fn misplaced() -> Failure {
    Failure::new(Kind::Internal, Initiator::Here, "a PDU ends before it begins")
}

/// A principal's name, for messages and quotas.
pub(crate) fn name(principal: &Principal) -> String {
    if principal.domain.is_empty() {
        principal.user.clone()
    } else {
        format!("{}\\{}", principal.domain, principal.user)
    }
}

/// Where the part of a PDU begins that may be sealed.
/// C706 12.6.4.9 and 12.6.4.10: the fixed fields behind the header take 8 octets in requests, responses and
/// faults; an object's UUID takes 16 more.
#[inline]
pub(crate) fn head(header: &Header) -> usize {
    const CALL: usize = frame::HEADER + 8;
    if header.kind == frame::PduKind::Request && header.has(frame::OBJECT) { CALL + 16 } else { CALL }
}

/// How a peer is known, in a word for people.
pub(crate) fn authentication(mechanism: &str, level: Level) -> &'static str {
    macro_rules! words {
        ($name:literal) => {
            match level {
                Level::None => "none",
                Level::Connect => concat!($name, ", connect"),
                Level::Call => concat!($name, ", call"),
                Level::Packet => concat!($name, ", packet"),
                Level::Integrity => concat!($name, ", integrity"),
                Level::Privacy => concat!($name, ", privacy"),
            }
        };
    }
    if mechanism.starts_with("NTLMv2") {
        words!("NTLMv2")
    } else if mechanism.starts_with("NTLM") {
        words!("NTLMv1 with session security")
    } else {
        words!("Kerberos")
    }
}
