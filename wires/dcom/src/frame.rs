//! PDU headers and security trailers (C706 12.6.3.1; MS-RPCE 2.2.2.1, 2.2.2.11).
//!
//! A PDU on a connection is: header (16 octets), contents by kind, stub, padding of the trailer, trailer (8
//! octets), value of the trailer (`auth_length` octets). `frag_length` counts all of it; `auth_length` counts
//! the value alone, and 0 means that there is neither trailer nor value.
//!
//! States: none. All functions work on one slice; `session::channel` splits the stream into PDUs,
//! `session::assembly` joins fragments.
//!
//! Invariants: a header that `Header::read` gives back has version 5.0 or 5.1, a kind of the
//! connection-oriented protocol, a length of 16 at least, and a known data representation (little or big
//! endian, ASCII, IEEE). The upper bound of a length, the agreed fragment size, is not known here: the
//! session checks it. A `Trailer` lies wholly behind the header and inside of the PDU, and its padding too,
//! so `contents_end` cannot underflow. Contents of padding are not looked at, for Windows, impacket and Samba
//! leave random octets there. Everything written is little-endian.

use crate::pdu::ProtocolError;
use everywire_model::named_variants;
use everywire_model::wire::Sniff;

/// Bytes in a PDU header.
pub const HEADER: usize = 16;

/// Bytes in a security trailer, without the value.
pub const TRAILER: usize = 8;

/// The smallest fragment that every implementation must take, in bytes.
/// C706 names it `MustRecvFragSize`: it fits into one frame of Ethernet.
pub const MIN_FRAGMENT: u16 = 1432;

/// The first fragment of a call, or a PDU that is whole.
pub const FIRST: u8 = 0x01;
/// The last fragment of a call.
pub const LAST: u8 = 0x02;
/// In a request or response: a cancel was pending at the sender.
/// Neither side here acts on it: a cancel comes as a PDU of its own.
pub const PENDING_CANCEL: u8 = 0x04;
/// In a bind, a bind_ack and their like: headers are signed too (the same bit as [`PENDING_CANCEL`]).
pub const HEADER_SIGNING: u8 = 0x04;
/// Several calls may be open on this connection at a time.
pub const MULTIPLEX: u8 = 0x10;
/// In a fault: the operation did not run.
pub const DID_NOT_EXECUTE: u8 = 0x20;
/// In a request: nobody waits for an answer.
pub const MAYBE: u8 = 0x40;
/// In a request: an object's UUID stands before the stub.
pub const OBJECT: u8 = 0x80;

named_variants! {
    /// Kinds of PDUs on a connection, with the specification's words.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PduKind: u8 {
        /// A call.
        Request = 0 "request",
        /// Its results.
        Response = 2 "response",
        /// The call failed: a status in place of results.
        Fault = 3 "fault",
        /// The client opens the connection and says which interfaces it wants to call.
        Bind = 11 "bind",
        /// The server accepts the connection.
        BindAck = 12 "bind_ack",
        /// The server refuses the whole connection, with a reason.
        BindNak = 13 "bind_nak",
        /// The client needs more presentation contexts, or has more tokens.
        AlterContext = 14 "alter_context",
        /// The answer to an alter_context.
        AlterContextResponse = 15 "alter_context_resp",
        /// The third token of three.
        Auth3 = 16 "auth3",
        /// The server wants the connection to end.
        Shutdown = 17 "shutdown",
        /// The client withdraws a call.
        CoCancel = 18 "co_cancel",
        /// The client has forgotten a call that it sent, or was sending.
        Orphaned = 19 "orphaned",
    }
}

/// A PDU header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The minor version; the major is 5.
    pub minor: u8,
    /// Kind of PDU.
    pub kind: PduKind,
    /// Flags, such as [`FIRST`].
    pub flags: u8,
    /// Whether numbers are little-endian.
    pub little: bool,
    /// Whole length of the PDU, in bytes.
    pub length: u16,
    /// Bytes of the security trailer's value; 0 if there is no trailer. The trailer itself (8 bytes) and its
    /// padding are not counted.
    pub auth_length: u16,
    /// The number of the call (`call_id`), chosen by the client and repeated in each fragment and in the
    /// answer. Nothing keeps a client from using one number for all calls, one after another: node-dcom
    /// always says 0.
    pub call: u32,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// Another protocol, a version or a kind that this crate does not know, or a length less than a header's.
    #[inline]
    pub fn read(raw: &[u8; HEADER]) -> Result<Self, ProtocolError> {
        let [major, minor, ptype, flags, drep, characters, _, _, l0, l1, a0, a1, c0, c1, c2, c3] = *raw;
        if major != 5 || minor > 1 {
            return Err(ProtocolError::Version { major, minor });
        }
        let Some(kind) = PduKind::of_number(ptype) else { return Err(ProtocolError::PduType { ptype }) };
        // Any other label is refused: EBCDIC, and VAX, Cray or IBM numbers, are spoken by no peer of today.
        // Byte order in the high half, ASCII or EBCDIC in the low; then the format of floating point numbers.
        let little = match drep {
            0x10 => true,
            0x00 => false,
            octet => return Err(ProtocolError::DataRepresentation { octet }),
        };
        if characters != 0 {
            return Err(ProtocolError::DataRepresentation { octet: characters });
        }
        let short = |raw| if little { u16::from_le_bytes(raw) } else { u16::from_be_bytes(raw) };
        let call = [c0, c1, c2, c3];
        let call = if little { u32::from_le_bytes(call) } else { u32::from_be_bytes(call) };
        let header =
            Self { minor, kind, flags, little, length: short([l0, l1]), auth_length: short([a0, a1]), call };
        if usize::from(header.length) < HEADER {
            return Err(ProtocolError::FragmentLength { length: header.length, limit: u16::MAX });
        }
        Ok(header)
    }

    /// Whether this flag is set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The security trailer of the PDU `message`, which begins with this header; `None` if it has none.
    /// The end of the value is the end of the PDU, so the trailer is found from there backwards.
    ///
    /// # Errors
    /// The trailer, its value or its padding do not fit.
    #[inline]
    pub fn trailer(&self, message: &[u8]) -> Result<Option<Trailer>, ProtocolError> {
        if self.auth_length == 0 {
            return Ok(None);
        }
        let wrong = || ProtocolError::AuthLength { length: self.auth_length };
        let at = message
            .len()
            .min(usize::from(self.length))
            .checked_sub(TRAILER + usize::from(self.auth_length))
            .filter(|at| *at >= HEADER)
            .ok_or_else(wrong)?;
        let raw = message.get(at..).and_then(<[u8]>::first_chunk::<TRAILER>).ok_or_else(wrong)?;
        let [mechanism, level, pad, _, c0, c1, c2, c3] = *raw;
        let context = [c0, c1, c2, c3];
        let context = if self.little { u32::from_le_bytes(context) } else { u32::from_be_bytes(context) };
        if at - HEADER < usize::from(pad) {
            return Err(wrong());
        }
        Ok(Some(Trailer { mechanism, level, pad, context, at }))
    }
}

/// A security trailer (`sec_trailer`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// The security provider: 9 SPNEGO, 10 NTLM, 16 Kerberos.
    pub mechanism: u8,
    /// The level of protection, 1 (none) to 6 (privacy), MS-RPCE 2.2.1.1.8. Not checked here.
    pub level: u8,
    /// Octets of padding before the trailer.
    pub pad: u8,
    /// The security context.
    pub context: u32,
    /// Where the trailer begins in the PDU; its value begins [`TRAILER`] bytes later and ends the PDU.
    pub at: usize,
}

impl Trailer {
    /// Where the PDU's own contents end.
    #[inline]
    pub fn contents_end(&self) -> usize {
        self.at - usize::from(self.pad)
    }

    /// Where the value begins.
    #[inline]
    pub fn value(&self) -> usize {
        self.at + TRAILER
    }
}

/// Appends a header, little-endian; the length is patched in by [`set_length`].
#[inline]
pub fn put(out: &mut Vec<u8>, minor: u8, kind: PduKind, flags: u8, auth_length: u16, call: u32) {
    let ([a0, a1], [c0, c1, c2, c3]) = (auth_length.to_le_bytes(), call.to_le_bytes());
    out.extend_from_slice(&[5, minor, kind as u8, flags, 0x10, 0, 0, 0, 0, 0, a0, a1, c0, c1, c2, c3]);
}

/// Sets the length of the PDU that begins at `start` to all that follows; a longer one than the field can say becomes its
/// greatest value.
/// Callers cut fragments to the agreed size before, so this happens to no PDU of the sessions.
#[inline]
pub fn set_length(out: &mut [u8], start: usize) {
    set(out, start + 8, out.len().saturating_sub(start));
}

/// Sets a number of 16 bits, or its greatest value.
#[inline]
fn set(out: &mut [u8], at: usize, value: usize) {
    let value = u16::try_from(value).unwrap_or(u16::MAX);
    if let Some(place) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = value.to_le_bytes();
    }
}

/// Appends zeros up to a multiple of `to`, counted from `start`; how many.
pub(crate) fn pad(out: &mut Vec<u8>, start: usize, to: usize) -> u8 {
    let len = out.len().saturating_sub(start);
    let pad = len.next_multiple_of(to) - len;
    out.resize(out.len() + pad, 0);
    u8::try_from(pad).unwrap_or_default()
}

/// Appends a security trailer without its value, little-endian.
pub fn put_trailer(out: &mut Vec<u8>, mechanism: u8, level: u8, pad: u8, context: u32) {
    let [c0, c1, c2, c3] = context.to_le_bytes();
    out.extend_from_slice(&[mechanism, level, pad, 0, c0, c1, c2, c3]);
}

/// Sets the length of the security trailer's value in the header that begins at `start`.
#[inline]
pub fn set_auth_length(out: &mut [u8], start: usize, length: usize) {
    set(out, start + 10, length);
}

/// A bind to the resolver's interface (IObjectExporter), without authentication: what any server has, or refuses by name.
pub(crate) const GREETING: &[u8] = &[
    5, 0, 11, 3, 0x10, 0, 0, 0, 72, 0, 0, 0, 1, 0, 0,
    0, // header: bind, first and last fragment, 72 octets, call 1
    0xd0, 0x16, 0xd0, 0x16, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1,
    0, // fragments of 5840 octets, one context, one transfer syntax
    0xc4, 0xfe, 0xfc, 0x99, 0x60, 0x52, 0x1b, 0x10, 0xbb, 0xcb, 0, 0xaa, 0, 0x21, 0x34, 0x7a, 0, 0, 0, 0,
    0x04, 0x5d, 0x88, 0x8a, 0xeb, 0x1c, 0xc9, 0x11, 0x9f, 0xe8, 0x08, 0, 0x2b, 0x10, 0x48, 0x60, 2, 0, 0, 0,
];

/// Whether octets are the beginning of an answer to a bind: bind_ack, bind_nak or a fault.
pub(crate) fn is_answer(seen: &[u8]) -> Sniff {
    match seen {
        [5, 0..=1, 3 | 12 | 13, ..] => Sniff::Yes,
        [] | [5] | [5, 0..=1] => Sniff::More,
        _ => Sniff::No,
    }
}

/// Whether a PDU of any kind begins here: its whole header is one, with the two octets of the data representation that are always 0.
pub(crate) fn is_message(first: &[u8]) -> bool {
    first
        .first_chunk::<HEADER>()
        .is_some_and(|raw| raw.get(6..8) == Some(&[0, 0]) && Header::read(raw).is_ok())
}

/// Whether a connection begins with a bind.
/// The six octets that are looked at tell it from all other wires: GIOP and D-Bus begin with letters, and a
/// request or a response never comes first. A bind that lacks one of the flags would be a fragment, which no
/// bind may be.
pub fn sniff(first: &[u8]) -> Sniff {
    let fits = |(at, octet): (usize, &u8)| match at {
        0 => *octet == 5,
        1 => *octet <= 1,
        2 => *octet == PduKind::Bind as u8,
        3 => octet & (FIRST | LAST) == FIRST | LAST,
        4 => matches!(octet, 0x10 | 0),
        _ => *octet == 0,
    };
    match first.iter().take(6).enumerate().all(fits) {
        true if first.len() < 6 => Sniff::More,
        true => Sniff::Yes,
        false => Sniff::No,
    }
}

/// Puts a PDU into the other byte order: its header, and what stands before the stub of a request or
/// response. The stub and the trailer are left alone. Messages that pass through this node keep the byte
/// order of their stubs, so their PDUs are turned after they were written. A buffer that is too short is left
/// as far as it cannot be turned.
pub(crate) fn turn_pdu(pdu: &mut [u8]) {
    let Some(&[_, _, kind, flags, ..]) = pdu.first_chunk::<{ HEADER }>() else { return };
    turn(pdu, &[(8, 2), (10, 2), (12, 4), (16, 4), (20, 2)]);
    if kind == PduKind::Request as u8 {
        turn(pdu, &[(22, 2)]);
        if flags & OBJECT != 0 {
            turn(pdu, &[(24, 4), (28, 2), (30, 2)]);
        }
    }
    if let Some(representation) = pdu.get_mut(4) {
        *representation = 0;
    }
}

/// Puts numbers into the other byte order: where each is, and how many octets it has. Those that are not all there stay as they are.
pub(crate) fn turn(octets: &mut [u8], numbers: &[(usize, usize)]) {
    for (at, size) in numbers {
        if let Some(number) = octets.get_mut(*at..at + size) {
            number.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::{Pdu, Request};

    #[test]
    fn a_pdu_is_put_into_the_other_byte_order() {
        let object = uuid::uuid!("45570001-1a8c-11d3-b68f-00c04f8b72e7");
        let request = Request { alloc_hint: 9, context: 2, opnum: 3, object: Some(object), stub: 0..0 };
        let mut out = Vec::new();
        Pdu::Request(request).write(&mut out, FIRST | LAST, 77, &[1, 2, 3, 4]);
        turn_pdu(&mut out);
        let (header, pdu, _) = Pdu::parse(&out).unwrap();
        assert!(!header.little && header.call == 77 && usize::from(header.length) == out.len());
        let Pdu::Request(read) = pdu else { panic!() };
        assert_eq!((read.alloc_hint, read.context, read.opnum, read.object), (9, 2, 3, Some(object)));
        assert_eq!(&out[read.stub], [1, 2, 3, 4]);
        for len in 0..out.len() {
            turn_pdu(&mut out[..len]);
        }
    }
}
