//! Values in stubs, and what stands before and behind them in ORPC calls.

use super::shield::Talk;
use crate::exporter::{Correspondence, Exporter};
use crate::ndr::{NDR, NdrSink};
use crate::security::Security;
use bytes::Bytes;
use everywire_model::{Ambient, Beside, Body, Budget, Encode, Visit};
use std::sync::Arc;

impl Talk {
    /// For a connection with this security, to or from this principal.
    pub(crate) fn new(
        exporter: &Arc<Exporter>,
        security: &Arc<Security>,
        principal: &str,
        within_machine: bool,
    ) -> Self {
        let both = Correspondence::new(Arc::clone(exporter), Arc::clone(security), principal);
        let both = Arc::new(both.with_local(within_machine));
        let ambient = Arc::clone(&both) as Arc<dyn Ambient>;
        Self { beside: Arc::new(Beside { handles: Vec::new(), ambient: Some(ambient) }), references: both }
    }
}

/// Appends values to the stub that begins at `stub`.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, stub: usize, values: &dyn Encode, talk: Option<&Talk>) -> Visit<()> {
    let mut sink = NdrSink::into(std::mem::take(out), stub, true);
    if let Some(talk) = talk {
        sink = sink.with_references(Arc::clone(&talk.references));
    }
    if let Err(failure) = values.encode(&mut sink) {
        *out = sink.into_buffer();
        return Err(failure);
    }
    *out = sink.into_bytes()?;
    Ok(())
}

/// Appends a number, aligned in the stub.
#[inline]
pub(crate) fn put_u32(out: &mut Vec<u8>, stub: usize, value: u32) {
    let len = out.len().saturating_sub(stub);
    let pad = len.next_multiple_of(4) - len;
    out.extend_from_slice([0; 3].get(..pad).unwrap_or_default());
    out.extend_from_slice(&value.to_le_bytes());
}

/// Values that begin `base` bytes into their stub.
#[inline]
pub(crate) fn body(bytes: Bytes, base: usize, little: bool, budget: Budget, talk: Option<&Talk>) -> Body {
    let beside = talk.map(|talk| Arc::clone(&talk.beside));
    Body { bytes, base, little, dialect: 0, context: Bytes::new(), budget, codec: &NDR, beside }
}
