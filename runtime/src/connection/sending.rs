//! Handing to the transport what the session has to send.

use super::state::{Connection, Core, PIECE, SERVING, YIELDS};
use crate::spin_wait::make_way;
use std::io::{self, ErrorKind};

impl Connection {
    /// Whether the calling thread serves this connection, and will send what its servant answers and emits. Not one that
    /// was preempted because its servant blocked: nobody knows when that returns.
    pub(super) fn sends_later(&self) -> bool {
        SERVING.get() == std::ptr::from_ref(self).addr() && crate::shard::leads_here()
    }

    /// Sends what there is to send (`flush`); an error ends the connection. Whether there was none.
    #[inline]
    pub(super) fn send(&self, core: &mut Core) -> bool {
        let Err(error) = self.flush(core) else { return true };
        let failure = self.broken(core, &error);
        self.fail(core, failure);
        false
    }

    /// The same; before the connection ends, what has come is taken (`lose`).
    #[inline]
    pub(super) fn send_or_lose(&self, core: &mut Core) -> bool {
        self.flush(core).map_err(|error| self.lose(core, &error)).is_ok()
    }

    /// Sends what there is to send, as far as the transport takes it, in pieces of `PIECE`. What is left is
    /// sent when there is room: see `await_room`. An error is the caller's to handle; the connection is not
    /// ended here.
    pub(super) fn flush(&self, core: &mut Core) -> io::Result<()> {
        let buffer = core.session.transmit();
        let mut vain = 0;
        while !buffer.is_empty() {
            match self.stream.write(buffer, PIECE) {
                Ok(n) => {
                    buffer.consume(n);
                    vain = 0;
                    if !buffer.is_empty() {
                        // A peer on this CPU takes the piece while it is in the cache.
                        make_way();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    vain += 1;
                    if vain > YIELDS || buffer.len() < PIECE / 2 || !make_way() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.settle_unread(core);
        Ok(())
    }
}
