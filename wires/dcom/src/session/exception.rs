//! Exceptions of contract languages that have them (CORBA, D-Bus): a failing HRESULT, and an extension that
//! says which.
//!
//! COM has no exceptions with members. The call gets DISP_E_EXCEPTION, which any client of COM understands as
//! a failure, and an ORPC_EXTENT in its ORPCTHAT has identity and members for a client of this
//! implementation. Others skip it, as MS-DCOM 2.2.21 has them do.

use crate::ndr::{self, NdrSink};
use crate::orpc::Extent;
use bytes::Bytes;
use everywire_model::shape::Struct;
use everywire_model::{Attachments, Body, Budget, Encode, Outcome, Visit};
use std::sync::Arc;
use uuid::{Uuid, uuid};

/// The extension's identity: the exception's id as counted UTF-8, then, at a multiple of 8, its fields in NDR.
pub(crate) const EXTENT: Uuid = uuid!("5a3c4f0e-79d1-4d0b-9f5e-3b1de2f0c6a8");

/// The extension for an exception.
pub(crate) fn put(shape: &Struct, fields: &dyn Encode) -> Visit<Extent> {
    let id = if shape.id.is_empty() { &shape.name } else { &shape.id };
    let mut data = u32::try_from(id.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    data.extend_from_slice(id.as_bytes());
    data.resize(data.len().next_multiple_of(8), 0);
    let mut sink = NdrSink::into(data, 0, true);
    fields.encode(&mut sink)?;
    Ok(Extent { id: EXTENT, data: sink.into_bytes()?.into() })
}

/// The exception among these extensions.
/// `None`: no such extension, or one that cannot be read; the failing HRESULT is then all there is.
pub(crate) fn get(
    extents: &[Extent],
    budget: Budget,
    beside: Option<Arc<Attachments>>,
) -> Option<Outcome<Body>> {
    let data = &extents.iter().find(|extent| extent.id == EXTENT)?.data;
    let len = usize::try_from(u32::from_le_bytes(*data.first_chunk()?)).ok()?;
    let end = len.checked_add(4)?;
    let id = String::from_utf8(data.get(4..end)?.to_vec()).ok()?;
    // What is too short for its id is no exception; too short a body fails when the members are read.
    let base = end.next_multiple_of(8);
    let bytes = if base <= data.len() { data.slice(base..) } else { Bytes::new() };
    let body = Body { beside, ..ndr::body(bytes, base, true, budget) };
    Some(Outcome::raised(id, body))
}
