//! The contents of each PDU (C706 12.6.4; MS-RPCE 2.2.2).
//!
//! [`Pdu::parse`] takes whole PDUs apart, in both byte orders; [`Pdu::write`] writes them, little-endian.
//!
//! Everything is written little-endian: the receiver converts (C706 14.1). A count that has 8 bits on the wire is cut together with
//! its list, so the two never disagree. Lengths are patched in when the PDU is complete (`frame::set_length`). A security trailer is
//! added by `session::security_context`, not here.
//!
//! States: none. A `Pdu` is a value; what may come when is the business of the sessions.
//!
//! Invariants: stubs are not copied, they are ranges of the message, which lie between the contents of the
//! header and the security trailer. Counts of contexts and results have 8 bits on the wire and each element
//! takes 24 octets at least, so the vectors are bounded by the length of the PDU (65535 octets); contexts are
//! bounded by `limits::CONTEXTS_AT_ONCE` as well. What `alloc_hint` says allocates nothing. Octets behind the
//! last counted element are ignored, since peers pad.
//!
//! Hot paths (request, response) do not come through `Pdu::parse` but call `Request::read` and
//! `Response::read` directly, and write with `Heading::put`.

pub(crate) mod cursor;
mod protocol_error;
mod syntax;

pub use protocol_error::ProtocolError;
pub use syntax::{
    ContextElement, ContextResult, FEATURE_KEEP_ON_ORPHAN, FEATURE_SECURITY_MULTIPLEX, FEATURE_SIGNED_FAULTS,
    NDR, NDR64, Syntax,
};

use crate::frame::{self, HEADER, Header, OBJECT, PduKind, Trailer};
use crate::limits;
use cursor::Cursor;
use std::ops::Range;
use uuid::Uuid;

/// The contents of one PDU. Stubs are ranges of the PDU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pdu {
    /// A fragment of a call.
    Request(Request),
    /// A fragment of its results.
    Response(Response),
    /// The call failed: a status in place of results.
    Fault(Fault),
    /// The client opens the connection and says which interfaces it wants to call.
    Bind(Bind),
    /// The server accepts the connection; each presentation context has a result of its own.
    BindAck(BindAck),
    /// The server refuses the whole connection, with a reason.
    BindNak(BindNak),
    /// The client needs more presentation contexts, or has more tokens.
    AlterContext(Bind),
    /// The answer to an alter_context, with the contents of a bind_ack.
    AlterContextResponse(BindAck),
    /// The third token of three.
    Auth3,
    /// The server wants the connection to end.
    Shutdown,
    /// The client withdraws a call.
    CoCancel,
    /// The client has forgotten a call.
    Orphaned,
}

/// What stands before the stub of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// How long the sender thinks the stub is; never trusted.
    pub alloc_hint: u32,
    /// The presentation context, so the interface: a number that the client chose in a bind or an
    /// alter_context.
    pub context: u16,
    /// The operation, counted from 0 with the first operation of the interface that the presentation context
    /// names; for an object's interface IUnknown's three are counted.
    pub opnum: u16,
    /// The object: the IPID in a call of ORPC. `None` if the flag `OBJECT` is not set, as in calls of plain
    /// DCE/RPC.
    pub object: Option<Uuid>,
    /// Where the stub is.
    pub stub: Range<usize>,
}

/// What stands before the stub of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// How long the sender thinks the stub is; never trusted.
    pub alloc_hint: u32,
    /// Presentation context.
    pub context: u16,
    /// Cancels that came meanwhile.
    pub cancels: u8,
    /// Where the stub is.
    pub stub: Range<usize>,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Presentation context.
    pub context: u16,
    /// Cancels that came meanwhile.
    pub cancels: u8,
    /// 1: extended error information follows (MS-RPCE 2.2.2.9).
    pub flags: u8,
    /// What failed: a status of DCE (`nca_s_...`), a Win32 error, or an HRESULT; see `hresult`.
    pub status: u32,
    /// What follows: extended error information if `flags` say so, which is skipped; otherwise nothing.
    pub stub: Range<usize>,
}

/// A bind or an alter_context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The largest fragment that its sender sends.
    pub max_xmit: u16,
    /// The largest fragment that its sender takes.
    pub max_recv: u16,
    /// The association group to join; 0 for a new one.
    pub group: u32,
    /// Presentation contexts.
    pub contexts: Vec<ContextElement>,
}

/// A bind_ack or an alter_context_resp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAck {
    /// The largest fragment that its sender sends.
    pub max_xmit: u16,
    /// The largest fragment that its sender takes.
    pub max_recv: u16,
    /// The association group that the server chose, or confirms; never 0. Further connections of the same
    /// client may name it.
    pub group: u32,
    /// The secondary address, without the final NUL; empty in an alter_context_resp. For TCP it is the port
    /// as decimal digits, and no client needs it.
    pub address: Vec<u8>,
    /// One for each context that was asked for, in the same order; the number of a context is not repeated.
    pub results: Vec<ContextResult>,
}

/// A bind_nak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindNak {
    /// Why, as one of the numbers in `nak`.
    pub reason: u16,
    /// The versions that its sender speaks.
    pub versions: Vec<(u8, u8)>,
}

/// Why a bind is refused altogether (C706 12.6.3.1, MS-RPCE 2.2.2.5).
pub mod nak {
    /// No reason is given.
    pub const NOT_SPECIFIED: u16 = 0;
    /// Too much to do.
    pub const CONGESTION: u16 = 1;
    /// A limit.
    pub const LOCAL_LIMIT: u16 = 2;
    /// The version of the protocol.
    pub const VERSION: u16 = 4;
    /// The mechanism of authentication.
    pub const AUTHENTICATION_TYPE: u16 = 8;
    /// The token.
    pub const INVALID_CHECKSUM: u16 = 9;
}

impl Pdu {
    /// Takes a whole PDU apart.
    ///
    /// # Errors
    /// It ends too early, or counts contradict its length.
    pub fn parse(message: &[u8]) -> Result<(Header, Self, Option<Trailer>), ProtocolError> {
        let raw = message.first_chunk::<HEADER>().ok_or(ProtocolError::Truncated { what: "header" })?;
        let header = Header::read(raw)?;
        let message = message
            .get(..usize::from(header.length))
            .ok_or(ProtocolError::FragmentLength { length: header.length, limit: u16::MAX })?;
        let trailer = header.trailer(message)?;
        // The token of an auth3 follows four octets that mean nothing, or less (MS-RPCE 2.2.2.7).
        let end = trailer.map_or(message.len(), |trailer| trailer.contents_end());
        let pdu = Self::contents(&header, message, end)?;
        Ok((header, pdu, trailer))
    }

    /// Takes the contents apart: `message` from the header up to `end`, where a security trailer or its padding begins.
    /// `end` beyond the message counts as an empty message, and the first read fails.
    ///
    /// # Errors
    /// As [`Pdu::parse`].
    pub fn contents(header: &Header, message: &[u8], end: usize) -> Result<Self, ProtocolError> {
        let mut cursor = Cursor::new(message.get(..end).unwrap_or_default(), HEADER, header.little);
        Ok(match header.kind {
            PduKind::Request => Self::Request(Request::read(header, &mut cursor)?),
            PduKind::Response => Self::Response(Response::read(&mut cursor)?),
            PduKind::Fault => Self::Fault(Fault::read(&mut cursor)?),
            PduKind::Bind => Self::Bind(Bind::read(&mut cursor)?),
            PduKind::AlterContext => Self::AlterContext(Bind::read(&mut cursor)?),
            PduKind::BindAck => Self::BindAck(BindAck::read(&mut cursor)?),
            PduKind::AlterContextResponse => Self::AlterContextResponse(BindAck::read(&mut cursor)?),
            PduKind::BindNak => Self::BindNak(BindNak::read(&mut cursor)?),
            PduKind::Auth3 => Self::Auth3,
            PduKind::Shutdown => Self::Shutdown,
            PduKind::CoCancel => Self::CoCancel,
            PduKind::Orphaned => Self::Orphaned,
        })
    }

    /// Which kind it is.
    pub fn kind(&self) -> PduKind {
        match self {
            Self::Request(_) => PduKind::Request,
            Self::Response(_) => PduKind::Response,
            Self::Fault(_) => PduKind::Fault,
            Self::Bind(_) => PduKind::Bind,
            Self::BindAck(_) => PduKind::BindAck,
            Self::BindNak(_) => PduKind::BindNak,
            Self::AlterContext(_) => PduKind::AlterContext,
            Self::AlterContextResponse(_) => PduKind::AlterContextResponse,
            Self::Auth3 => PduKind::Auth3,
            Self::Shutdown => PduKind::Shutdown,
            Self::CoCancel => PduKind::CoCancel,
            Self::Orphaned => PduKind::Orphaned,
        }
    }

    /// Appends a whole PDU without security trailer. `stub` is what follows the header of a request, response or fault
    /// (the ranges in it are not looked at).
    pub fn write(&self, out: &mut Vec<u8>, flags: u8, call: u32, stub: &[u8]) {
        let start = out.len();
        let object = matches!(self, Self::Request(request) if request.object.is_some());
        let flags = if object { flags | frame::OBJECT } else { flags };
        frame::put(out, 0, self.kind(), flags, 0, call);
        self.write_contents(out, start, stub);
        frame::set_length(out, start);
    }

    /// Appends the contents; the header was put at `start`.
    /// An auth3 has four octets before its trailer, which mean nothing and keep it aligned (MS-RPCE 2.2.2.7).
    pub(crate) fn write_contents(&self, out: &mut Vec<u8>, start: usize, stub: &[u8]) {
        match self {
            Self::Request(request) => {
                put_request(out, request.alloc_hint, request.context, request.opnum);
                if let Some(object) = request.object {
                    out.extend_from_slice(&object.to_bytes_le());
                }
                out.extend_from_slice(stub);
            }
            Self::Response(response) => {
                put_response(out, response.alloc_hint, response.context, response.cancels);
                out.extend_from_slice(stub);
            }
            Self::Fault(fault) => {
                fault.write(out);
                out.extend_from_slice(stub);
            }
            Self::Bind(bind) | Self::AlterContext(bind) => bind.write(out),
            Self::BindAck(ack) | Self::AlterContextResponse(ack) => ack.write(out, start),
            Self::BindNak(nak) => nak.write(out, start),
            Self::Auth3 => out.extend_from_slice(&[0; 4]),
            Self::Shutdown | Self::CoCancel | Self::Orphaned => {}
        }
    }
}

impl Request {
    /// Reads what stands before the stub.
    #[inline]
    pub(crate) fn read(header: &Header, cursor: &mut Cursor<'_>) -> Result<Self, ProtocolError> {
        const WHAT: &str = "request header";
        let alloc_hint = cursor.u32(WHAT)?;
        let context = cursor.u16(WHAT)?;
        let opnum = cursor.u16(WHAT)?;
        let object = if header.has(OBJECT) { Some(cursor.uuid("object UUID")?) } else { None };
        Ok(Self { alloc_hint, context, opnum, object, stub: cursor.rest() })
    }
}

impl Response {
    /// Reads what stands before the stub.
    #[inline]
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, ProtocolError> {
        const WHAT: &str = "response header";
        let alloc_hint = cursor.u32(WHAT)?;
        let context = cursor.u16(WHAT)?;
        let [cancels, _] = cursor.octets(WHAT)?;
        Ok(Self { alloc_hint, context, cancels, stub: cursor.rest() })
    }
}

impl Fault {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, ProtocolError> {
        const WHAT: &str = "fault header";
        cursor.u32(WHAT)?;
        let context = cursor.u16(WHAT)?;
        let [cancels, flags] = cursor.octets(WHAT)?;
        let status = cursor.u32(WHAT)?;
        // Four reserved octets, which some leave out.
        let _ = cursor.octets::<4>(WHAT);
        Ok(Self { context, cancels, flags, status, stub: cursor.rest() })
    }

    fn write(&self, out: &mut Vec<u8>) {
        // The hint of a fault is the length of the whole PDU without trailer, which is what Windows says. The
        // octet that is reserved in a response has the flags of a fault.
        put_response(out, 32, self.context, self.cancels);
        if let Some(flags) = out.last_mut() {
            *flags = self.flags;
        }
        out.extend_from_slice(&self.status.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
    }
}

impl Bind {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, ProtocolError> {
        const WHAT: &str = "presentation contexts";
        let (max_xmit, max_recv) = (cursor.u16(WHAT)?, cursor.u16(WHAT)?);
        let group = cursor.u32(WHAT)?;
        let [count, _, _, _] = cursor.octets(WHAT)?;
        if usize::from(count) > limits::CONTEXTS_AT_ONCE {
            return Err(ProtocolError::Contexts { limit: limits::CONTEXTS_AT_ONCE });
        }
        let contexts = (0..count).map(|_| ContextElement::read(cursor)).collect::<Result<_, _>>()?;
        Ok(Self { max_xmit, max_recv, group, contexts })
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_sizes(out, self.max_xmit, self.max_recv, self.group);
        put_list(out, &self.contexts, |context, out| context.write(out));
    }
}

impl BindAck {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, ProtocolError> {
        const WHAT: &str = "results";
        let (max_xmit, max_recv) = (cursor.u16(WHAT)?, cursor.u16(WHAT)?);
        let group = cursor.u32(WHAT)?;
        let len = cursor.u16("secondary address")?;
        let address = cursor.take(usize::from(len), "secondary address")?;
        let address = address.strip_suffix(&[0]).unwrap_or(address).to_vec();
        cursor.align(4, WHAT)?;
        let [count, _, _, _] = cursor.octets(WHAT)?;
        let results = (0..count).map(|_| ContextResult::read(cursor)).collect::<Result<_, _>>()?;
        Ok(Self { max_xmit, max_recv, group, address, results })
    }

    fn write(&self, out: &mut Vec<u8>, start: usize) {
        put_sizes(out, self.max_xmit, self.max_recv, self.group);
        let terminated = !self.address.is_empty();
        let len = u16::try_from(self.address.len() + usize::from(terminated)).unwrap_or(0);
        out.extend_from_slice(&len.to_le_bytes());
        if len > 0 {
            out.extend_from_slice(&self.address);
            out.push(0);
        }
        frame::pad(out, start, 4);
        put_list(out, &self.results, |result, out| result.write(out));
    }
}

impl BindNak {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, ProtocolError> {
        const WHAT: &str = "reason";
        let reason = cursor.u16(WHAT)?;
        let mut versions = Vec::new();
        // Some send the reason alone.
        if let Ok([count]) = cursor.octets(WHAT) {
            for _ in 0..count {
                let Ok([major, minor]) = cursor.octets(WHAT) else { break };
                versions.push((major, minor));
            }
        }
        Ok(Self { reason, versions })
    }

    fn write(&self, out: &mut Vec<u8>, start: usize) {
        out.extend_from_slice(&self.reason.to_le_bytes());
        out.push(u8::try_from(self.versions.len()).unwrap_or(u8::MAX));
        for (major, minor) in self.versions.iter().take(u8::MAX.into()) {
            out.extend_from_slice(&[*major, *minor]);
        }
        // The PDU ends at a multiple of 4.
        frame::pad(out, start, 4);
    }
}

/// What stands before the stub of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heading {
    pub(crate) kind: PduKind,
    /// Flags beside those of fragments and of the object.
    pub(crate) flags: u8,
    pub(crate) call: u32,
    pub(crate) context: u16,
    /// The operation of a request; 0 in answers, which do not carry it.
    pub(crate) opnum: u16,
    /// The object of a request: the IPID in calls of ORPC, `None` in calls of plain DCE/RPC and in answers.
    pub(crate) object: Option<Uuid>,
}

impl Heading {
    /// Of an answer of this kind.
    pub(crate) fn answer(kind: PduKind, call: u32, context: u16) -> Self {
        Self { kind, flags: 0, call, context, opnum: 0, object: None }
    }

    /// Appends it, for a stub of `hint` bytes.
    #[inline]
    pub(crate) fn put(&self, minor: u8, flags: u8, hint: usize, out: &mut Vec<u8>) {
        let hint = u32::try_from(hint).unwrap_or(u32::MAX);
        let object = if self.object.is_some() { frame::OBJECT } else { 0 };
        frame::put(out, minor, self.kind, self.flags | flags | object, 0, self.call);
        if self.kind == PduKind::Request {
            put_request(out, hint, self.context, self.opnum);
            if let Some(object) = self.object {
                out.extend_from_slice(&object.to_bytes_le());
            }
        } else {
            put_response(out, hint, self.context, 0);
        }
    }

    /// How long it is.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        if self.object.is_some() { HEADER + 24 } else { HEADER + 8 }
    }
}

/// Appends what stands before the object or the stub of a request.
#[inline]
fn put_request(out: &mut Vec<u8>, alloc_hint: u32, context: u16, opnum: u16) {
    let ([h0, h1, h2, h3], [c0, c1], [o0, o1]) =
        (alloc_hint.to_le_bytes(), context.to_le_bytes(), opnum.to_le_bytes());
    out.extend_from_slice(&[h0, h1, h2, h3, c0, c1, o0, o1]);
}

/// Appends what stands before the stub of a response.
#[inline]
fn put_response(out: &mut Vec<u8>, alloc_hint: u32, context: u16, cancels: u8) {
    let ([h0, h1, h2, h3], [c0, c1]) = (alloc_hint.to_le_bytes(), context.to_le_bytes());
    out.extend_from_slice(&[h0, h1, h2, h3, c0, c1, cancels, 0]);
}

/// A count of 8 bits in a word of 32, and as many elements.
fn put_list<T>(out: &mut Vec<u8>, all: &[T], write: impl Fn(&T, &mut Vec<u8>)) {
    let count = u8::try_from(all.len()).unwrap_or(u8::MAX);
    out.extend_from_slice(&[count, 0, 0, 0]);
    all.iter().take(count.into()).for_each(|item| write(item, out));
}

/// The first eight octets of bind, bind_ack, alter_context and alter_context_resp.
fn put_sizes(out: &mut Vec<u8>, max_xmit: u16, max_recv: u16, group: u32) {
    out.extend_from_slice(&max_xmit.to_le_bytes());
    out.extend_from_slice(&max_recv.to_le_bytes());
    out.extend_from_slice(&group.to_le_bytes());
}
