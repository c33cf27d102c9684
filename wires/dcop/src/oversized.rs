//! Messages over the limit: the call that one belongs to fails, and nothing else does. Its front, which tells whose call that
//! is, is awaited; the rest is dropped as it comes.

use crate::ice::{FRAME_HEADER, minor};
use crate::limits;
use crate::session::DcopSession;
use bytes::{Buf, BytesMut};
use everywire_model::{Completed, Failure, Initiator};
use std::time::Instant;

/// Header, sender and receiver: what is looked at of a message that is not taken. It is some 8 KiB, so it is
/// read as any small message is.
const FRONT: usize = FRAME_HEADER + 2 * (4 + limits::NAME);

impl DcopSession {
    /// Takes the front of a message of `size` bytes, once it is there, and drops what has come of the rest.
    /// Returns whether it was there. A call is answered as failed, an answer fails the call that waits for
    /// it; nobody waits for anything else.
    #[cold]
    pub(crate) fn take_oversized(&mut self, now: Instant, size: u64, input: &mut BytesMut) -> bool {
        let front = FRONT.min(usize::try_from(size).unwrap_or(usize::MAX));
        if input.len() < front {
            self.wait(now, input.len(), front - input.len());
            return false;
        }
        let mut head = input.split_to(front).freeze();
        self.skip = size - front as u64;
        let kind = head.get(1).copied();
        let key = head.get(8..).and_then(<[u8]>::first_chunk).copied();
        head.advance(FRAME_HEADER.min(head.len()));
        if let (Some(kind), Some(key)) = (kind, key) {
            let (key, limit) = (u32::from_ne_bytes(key), limits::largest(&self.limits));
            match kind {
                minor::CALL | minor::FIND => self.put_unread(kind, key, &head),
                minor::REPLY | minor::REPLY_DELAYED => self.fail_call(key, |_| {
                    Failure::over_limit(Initiator::Peer, "bytes of an answer", size, limit)
                        .with_completed(Completed::Yes)
                        .with_hint("raise the limit of messages: `Builder::max_message`, `--max-message`")
                }),
                minor::REPLY_FAILED => self.refused(key, &head),
                // Nobody waits for anything.
                _ => {}
            }
        }
        self.drop_rest(input);
        true
    }

    /// Drops what has come of a message over the limit; whether that is the whole rest of it.
    pub(crate) fn drop_rest(&mut self, input: &mut BytesMut) -> bool {
        let len = input.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        input.advance(len);
        self.skip -= len as u64;
        self.skip == 0
    }
}
