//! Messages on their way out.
//!
//! Every message without a passed body goes through `send`: the values are encoded behind the header, which
//! the sink asks for with the first value; then the lengths are patched in. It borrows parts of the session
//! instead of all of it, because the header is mostly borrowed from the session, too.
//!
//! Invariant: the send buffer holds whole messages only. Whatever fails, or gets too large, is taken back
//! before anything is returned.

use crate::basics::patch;
use crate::heads::Envelope;
use crate::limits;
use crate::session::DbusSession;
use crate::sink::{DbusSink, Scratch, Setup, over};
use everywire_model::{Encode, SendBuffer, Visit};

impl DbusSession {
    /// Appends a message; nothing of it is left if that fails or it gets too large. Runs twice where handles
    /// come up inside of variants: their count is a header field that the first attempt had no room for.
    /// Handles are attached to the first byte of the message.
    ///
    /// # Errors
    /// Values do not encode, or the message exceeds the limit.
    #[inline]
    pub(crate) fn send(
        out: &mut SendBuffer,
        scratch: &mut Scratch,
        setup: Setup,
        envelope: &mut impl Envelope,
        values: &dyn Encode,
    ) -> Visit<()> {
        loop {
            let mark = out.mark();
            let (start, index) = (out.position(), out.flat().len());
            let mut sink = DbusSink::new(out, 0, envelope, scratch, setup);
            let mut written = values.encode(&mut sink);
            if written.is_ok() {
                written = sink.finish();
            }
            let size = (out.position() - start) as u64;
            if written.is_ok() && size > setup.limit {
                written = Err(over(size, setup.limit));
            }
            if let Err(failure) = written {
                out.truncate(mark);
                return Err(failure);
            }
            if !scratch.handles.is_empty() && !envelope.announces() {
                // Handles inside of variants: the signature did not tell.
                out.truncate(mark);
                envelope.announce();
                continue;
            }
            let body = u32::try_from(size - envelope.len() as u64).unwrap_or(u32::MAX);
            patch(out.flat(), index + 4, body);
            if !scratch.handles.is_empty() {
                let handles = std::mem::take(&mut scratch.handles);
                let count = u32::try_from(handles.len()).unwrap_or(u32::MAX);
                patch(out.flat(), index + envelope.len() - 4, count);
                out.attach(start, handles);
            }
            return Ok(());
        }
    }

    /// How values are written on this connection now.
    #[inline]
    pub(crate) fn setup(&self) -> Setup {
        Setup { swap: false, limit: limits::largest(&self.limits), handles: self.handles, several: false }
    }
}
