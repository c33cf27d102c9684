//! What stands before the stub of a message: a header, and the fields of a request or response.

use crate::frame::{self, HEADER, PduKind};
use crate::pdu::{put_request, put_response};
use uuid::Uuid;

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
