//! What both sides of a handshake do with what comes: they take it message by message, each in its turn.

use super::core::{Core, HEADER, IceHeader};
use super::{NATIVE_LITTLE, Progress, ProtocolError};
use bytes::{Buf, BytesMut};
use everywire_model::Violation;

/// How far the peer's stream was read.
#[derive(Debug)]
pub(super) struct Received {
    /// The peer's byte order; this machine's until it has said its own.
    pub(super) little: bool,
    /// Messages read. Errors name the message that was wrong by this number.
    pub(super) sequence: u32,
    /// Bytes of whole messages taken.
    pub(super) offset: u64,
    /// Bytes missing from the message that has begun; 0 if none.
    pub(super) wanted: usize,
}

impl Default for Received {
    fn default() -> Self {
        Self { little: NATIVE_LITTLE, sequence: 0, offset: 0, wanted: 0 }
    }
}

/// One side.
pub(super) trait Handshake {
    fn received(&mut self) -> &mut Received;

    /// One message, in its turn.
    ///
    /// # Errors
    /// It is out of turn, or asks for what this side does not speak.
    fn message(&mut self, core: &Core<'_>, out: &mut Vec<u8>) -> Result<Progress, ProtocolError>;

    /// Tells the peer what it did wrong, in ICE's terms, where this side does so.
    fn complain(&self, _wrong: &ProtocolError, _minor: u8, _out: &mut Vec<u8>) {}

    /// Takes complete messages from `input` and appends to `out` what is to be sent: on an error too.
    ///
    /// # Errors
    /// Those of `message`, and of what is none; the connection is to be closed.
    fn take(&mut self, input: &mut BytesMut, out: &mut Vec<u8>) -> Result<Progress, Violation> {
        loop {
            self.received().wanted = 0;
            let Some(first) = input.first_chunk::<HEADER>() else { return Ok(Progress::More) };
            let (minor, little) = (first[1], self.received().little);
            let header = IceHeader::read(first, little);
            if let Ok(header) = &header
                && let Some(missing) = header.len.checked_sub(input.len()).filter(|missing| *missing > 0)
            {
                self.received().wanted = missing;
                return Ok(Progress::More);
            }
            self.received().sequence += 1;
            let taken = header.and_then(|header| {
                let raw = input.get(..header.len).unwrap_or_default();
                let progress = self.message(&Core::read(raw, little)?, out)?;
                Ok((header.len, progress))
            });
            let (len, progress) = taken.map_err(|wrong| {
                self.complain(&wrong, minor, out);
                wrong.violation(self.received().offset)
            })?;
            input.advance(len);
            self.received().offset += len as u64;
            if progress != Progress::More {
                return Ok(progress);
            }
        }
    }
}
