//! Writing PDUs, always little-endian: the receiver converts (C706 14.1).
//!
//! Invariants: a count that has 8 bits on the wire is cut together with its list, so the two never disagree.
//! Lengths are patched in when the PDU is complete (`frame::set_length`). A security trailer is added by
//! `session::shield`, not here.

use super::{Bind, BindAck, BindNak, Fault, Pdu};
use crate::frame::{self, PduKind};

impl Pdu {
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

/// Appends what stands before the object or the stub of a request.
#[inline]
pub(crate) fn put_request(out: &mut Vec<u8>, alloc_hint: u32, context: u16, opnum: u16) {
    let ([h0, h1, h2, h3], [c0, c1], [o0, o1]) =
        (alloc_hint.to_le_bytes(), context.to_le_bytes(), opnum.to_le_bytes());
    out.extend_from_slice(&[h0, h1, h2, h3, c0, c1, o0, o1]);
}

/// Appends what stands before the stub of a response.
#[inline]
pub(crate) fn put_response(out: &mut Vec<u8>, alloc_hint: u32, context: u16, cancels: u8) {
    let ([h0, h1, h2, h3], [c0, c1]) = (alloc_hint.to_le_bytes(), context.to_le_bytes());
    out.extend_from_slice(&[h0, h1, h2, h3, c0, c1, cancels, 0]);
}

impl Fault {
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
    fn write(&self, out: &mut Vec<u8>) {
        put_sizes(out, self.max_xmit, self.max_recv, self.group);
        put_list(out, &self.contexts, |context, out| context.write(out));
    }
}

impl BindAck {
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
