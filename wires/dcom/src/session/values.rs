//! Values in stubs, and what stands before and behind them in ORPC calls.
//!
//! Invariants: values are aligned from the beginning of the stub, ORPCTHIS or ORPCTHAT included, so each body
//! knows its `base`. References inside of values are counted for the connection's peer: `ValueContext` names the
//! node, the peer's account and the security that calls to those references will use.

use super::security_context::ValueContext;
use crate::exporter::{Correspondence, Exporter};
use crate::ndr::{self, NdrSink, References, WHOLE};
use crate::objref::SIGNATURE;
use crate::security::{Security, is_tcp};
use bytes::Bytes;
use everywire_model::{Attachments, Body, Budget, Config, Encode, Headers, Visit, WireState};
use std::net::IpAddr;
use std::sync::Arc;

/// This side's end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// It is a socket of this machine's own: such ones may be told.
    pub(crate) sockets: bool,
    /// The local address of the connection: bindings are told as a peer that came by it can reach them.
    /// `None` if the connection has no IP address.
    pub(crate) address: Option<IpAddr>,
}

impl End {
    /// Of a connection with this configuration.
    pub(crate) fn of(config: &Config) -> Self {
        Self { sockets: !is_tcp(config.profile.endpoints.first()), address: config.local }
    }
}

impl ValueContext {
    /// For a connection with this security, to or from this principal, and of this association group (0: not agreed on).
    pub(crate) fn new(
        exporter: &Arc<Exporter>,
        security: &Arc<Security>,
        principal: &str,
        end: End,
        association: u32,
    ) -> Self {
        let mut both = Correspondence::new(Arc::clone(exporter), Arc::clone(security), principal);
        (both.local, both.address, both.association) = (end.sockets, end.address, association);
        let both = Arc::new(both);
        let wire_state = Arc::clone(&both) as Arc<dyn WireState>;
        Self {
            beside: Arc::new(Attachments { wire_state: Some(wire_state), ..Attachments::default() }),
            references: both,
        }
    }

    /// What stands beside a body in which there may be references.
    #[cold]
    fn beside_one_body(&self) -> Arc<Attachments> {
        let wire_state = Arc::new(self.references.of_one_body()) as Arc<dyn WireState>;
        Arc::new(Attachments { wire_state: Some(wire_state), ..Attachments::default() })
    }
}

/// Whether there may be an OBJREF in values that begin `base` bytes into their stub: OBJREFs are aligned, and
/// begin with a word of their own. Whole blocks are looked at without a branch, so that this is done at the
/// speed of memory. A false alarm costs an allocation; a miss would have a body that is read twice count its
/// references twice, so none may happen.
fn mentions_objects(values: &[u8], base: usize) -> bool {
    let aligned = values.get(base.next_multiple_of(4) - base..).unwrap_or_default();
    let (words, _) = aligned.as_chunks::<4>();
    let found = |block: &[[u8; 4]]| {
        block.iter().fold(false, |found, word| found | (*word == SIGNATURE.to_le_bytes()))
    };
    words.chunks(64).any(found)
}

/// Appends values to the stub that begins at `stub`.
#[inline]
pub(crate) fn put(
    out: &mut Vec<u8>,
    stub: usize,
    values: &dyn Encode,
    talk: Option<&ValueContext>,
) -> Visit<()> {
    put_as(out, stub, values, talk, false).map(|_| ())
}

/// The same for results, and returns the HRESULT of success that was said with them; `foreign`: of an interface of another
/// contract language than MIDL.
#[inline]
pub(crate) fn put_as(
    out: &mut Vec<u8>,
    stub: usize,
    values: &dyn Encode,
    talk: Option<&ValueContext>,
    foreign: bool,
) -> Visit<u32> {
    let mut sink = NdrSink::into(std::mem::take(out), stub, true).with_texts_behind_pointers(foreign);
    if let Some(talk) = talk {
        sink = sink.with_references(Arc::clone(&talk.references) as _);
    }
    if let Err(failure) = values.encode(&mut sink) {
        // The caller's buffer may hold other messages: it comes back as it was, also after a failure.
        *out = sink.into_buffer();
        return Err(failure);
    }
    let status = sink.said_status();
    *out = sink.into_bytes()?;
    Ok(status)
}

/// Appends a number, aligned in the stub.
#[inline]
pub(crate) fn put_u32(out: &mut Vec<u8>, stub: usize, value: u32) {
    let len = out.len().saturating_sub(stub);
    let pad = len.next_multiple_of(4) - len;
    out.extend_from_slice([0; 3].get(..pad).unwrap_or_default());
    out.extend_from_slice(&value.to_le_bytes());
}

/// A whole stub that passes, of which ORPCTHIS or ORPCTHAT ([`crate::ndr::THIS`], [`crate::ndr::THAT`]) takes `base` bytes.
pub(crate) fn passing(
    stub: &Bytes,
    base: usize,
    little: bool,
    budget: Budget,
    talk: Option<&ValueContext>,
    kind: u32,
) -> Body {
    let base = base.min(stub.len());
    let wire_state = talk.and_then(|talk| talk.beside.wire_state.clone());
    let headers = Headers::received(stub.slice(..base));
    let beside = Some(Arc::new(Attachments { wire_state, headers, ..Attachments::default() }));
    Body { dialect: kind | WHOLE, beside, ..ndr::body(stub.slice(base..), base, little, budget) }
}

/// The same values with the extensions in front of them as headers.
#[cold]
pub(crate) fn with_extensions(body: Body, stub: &Bytes, kind: u32) -> Body {
    let headers = Headers::received(stub.slice(..body.base.min(stub.len())));
    let mut body = body.with_headers(headers);
    body.dialect |= kind;
    body
}

/// Values that begin `base` bytes into their stub.
#[inline]
pub(crate) fn body(
    bytes: Bytes,
    base: usize,
    little: bool,
    budget: Budget,
    talk: Option<&ValueContext>,
) -> Body {
    let dialect = talk.map_or(0, |talk| talk.references.dialect());
    let beside = talk.map(|talk| {
        // Wine does not align OBJREFs.
        if dialect != 0 || mentions_objects(&bytes, base) {
            talk.beside_one_body()
        } else {
            Arc::clone(&talk.beside)
        }
    });
    Body { dialect, beside, ..ndr::body(bytes, base, little, budget) }
}

/// A stub without an octet, for calls and answers that carry no values.
pub(crate) fn empty_body(budget: Budget) -> Body {
    ndr::body(Bytes::new(), 0, true, budget)
}
