//! Reading: bytes of the stream go into the session.
//!
//! Mostly under the lock, and only what is there ([`Connection::fill`]). A thread that waits for its reply and would sleep in any case
//! sleeps in its read, without the lock ([`Connection::sleep_and_read`]): on a busy CPU each system call counts. Invariant: while
//! `reads_asleep` nobody else reads, so that bytes reach the session in their order.

use super::core_guard::CoreGuard;
use super::state::{ANNOUNCED, Connection, Core, KEEP};
use crate::clock::lately;
use crate::shard;
use crate::transport::NAP;
use bytes::BytesMut;
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::time::Instant;

/// Bytes of the beginning of a message that are dearer to move than a new buffer is.
const LARGE: usize = 8 << 10;

thread_local! {
    /// A buffer for connections that hold no bytes of their own: thousands of idle ones share it.
    static SCRATCH: Cell<Option<BytesMut>> = const { Cell::new(None) };
}

impl Connection {
    /// Reads once and feeds the session. `Ok(false)`: nothing was there. `Err`: the connection has ended
    /// here, and whoever waited was told.
    pub(super) fn fill(&self, core: &mut Core) -> Result<bool, ()> {
        let wanted = core.session.wanted();
        // A message that has begun, or that is large, is read into a buffer of the connection's own; all else
        // into the one of this thread.
        if !core.input.is_empty() || wanted > 0 || core.large {
            let mut input = std::mem::take(&mut core.input);
            let wanted = if input.is_empty() { wanted.max(core.expected) } else { wanted };
            let result = self.read_into(core, &mut input, wanted);
            if input.is_empty() && !core.large {
                SCRATCH.set(Some(SCRATCH.take().unwrap_or(input)));
            } else {
                core.input = input;
            }
            return result;
        }
        if core.expected > 0 {
            return self.fill_expected(core);
        }
        let mut scratch = take_scratch();
        let result = self.read_into(core, &mut scratch, wanted);
        keep_rest(core, scratch);
        result
    }

    /// Reads into a buffer that has room for a message like the last one, which would have to be moved otherwise.
    #[inline(never)]
    fn fill_expected(&self, core: &mut Core) -> Result<bool, ()> {
        let mut input = BytesMut::with_capacity(core.expected);
        let handles = if self.handles { Some(&mut core.handles) } else { None };
        let read = self.stream.read(&mut input, 0, handles);
        if input.len() < input.capacity() / 2 {
            // What is small must not keep so much memory.
            let mut scratch = take_scratch();
            scratch.extend_from_slice(&input);
            drop(input);
            let result = self.take_in(core, &mut scratch, 0, read);
            keep_rest(core, scratch);
            return result;
        }
        let result = self.take_in(core, &mut input, 0, read);
        if !input.is_empty() {
            keep_beginning(core, &mut input);
        }
        result
    }

    #[inline]
    fn read_into(&self, core: &mut Core, input: &mut BytesMut, wanted: usize) -> Result<bool, ()> {
        let before = input.len();
        // What a caller announces is not allocated before some of it has come: at most as much again, or a little.
        let wanted = if self.is_accepted() { wanted.min(before.max(ANNOUNCED)) } else { wanted };
        let handles = if self.handles { Some(&mut core.handles) } else { None };
        let read = self.stream.read(input, wanted, handles);
        self.take_in(core, input, before, read)
    }

    /// Feeds the session with what was read behind the first `before` bytes.
    #[inline]
    fn take_in(
        &self,
        core: &mut Core,
        input: &mut BytesMut,
        before: usize,
        read: io::Result<usize>,
    ) -> Result<bool, ()> {
        match read {
            Ok(0) => {
                let failure = self.closed(core);
                self.fail(core, failure);
                return Err(());
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(false);
            }
            Err(error) => {
                let failure = self.broken(core, &error);
                self.fail(core, failure);
                return Err(());
            }
        }
        if core.draining.is_some() {
            // Nobody looks at what comes now, so nothing of it is kept open either.
            input.clear();
            core.handles.clear();
            return Ok(true);
        }
        // When a message must be whole is counted exactly.
        let now = if before == 0 { lately() } else { Instant::now() };
        if self.is_serving() {
            core.used = now;
        }
        core.came = input.len();
        // Sessions answer some of what comes by themselves.
        let unsent = self.unsent_before(core);
        if let Err(violation) = core.session.receive(now, input, &mut core.handles) {
            self.refuse(core, violation);
            input.clear();
        }
        if self.owe(core, unsent) {
            self.end_flood(core);
        }
        let wanted = core.session.wanted();
        core.large |= wanted > KEEP;
        if before == 0 {
            core.expected = room_for_next(core.came.saturating_add(wanted));
        }
        Ok(true)
    }

    /// Whether a wait that begins is to be slept through: then a look costs a system call, and finds nothing. On a Unix socket it may, if
    /// the writer shares the CPU: it lets the reader run at once. Memory is looked at without a system call.
    #[inline]
    pub(super) fn sleeps_at_once(&self, core: &mut Core) -> bool {
        self.is_told_of()
            && core.company == 0
            && core.spin_wait.sleeps_at_once()
            && core.session.transmit().is_empty()
            && (self.is_over_tcp() || !core.spin_wait.glances_now())
    }

    /// The thread that reads sleeps until something can be done, in its read if it can. Other threads may
    /// begin calls meanwhile; a failure to send that they meet is left in `broken` for this thread.
    pub(super) fn sleep_and_read<'c>(
        &'c self,
        mut core: CoreGuard<'c>,
        until: Option<Instant>,
    ) -> CoreGuard<'c> {
        if self.may_read_asleep(&mut core, until) {
            core.reads_asleep = true;
            drop(core);
            shard::about_to_block();
            let mut scratch = take_scratch();
            let mut handles = Vec::new();
            let read = self.stream.sleep_and_read(&mut scratch, self.handles.then_some(&mut handles));
            core = self.enter();
            core.reads_asleep = false;
            core.handles.append(&mut handles);
            let over = matches!(&read, Err(error) if error.kind() == ErrorKind::WouldBlock);
            // What became of the connection is in the core.
            let moved =
                core.failed.is_none() && matches!(self.take_in(&mut core, &mut scratch, 0, read), Ok(true));
            keep_rest(&mut core, scratch);
            if let Some(error) = core.broken.take() {
                self.lose(&mut core, &error);
            }
            if moved {
                core.spin_wait.slept();
            }
            if !over {
                return core;
            }
        }
        core = self.sleep(core, until);
        core.spin_wait.slept();
        core
    }

    /// Whether this thread may sleep in its read: nobody else reads here, no message is half there, nothing has to be sent, and the time
    /// is not over before a nap is.
    fn may_read_asleep(&self, core: &mut Core, until: Option<Instant>) -> bool {
        if self.is_serving()
            || !self.is_told_of()
            || core.large
            || core.draining.is_some()
            || !core.input.is_empty()
            || !core.session.transmit().is_empty()
            || core.session.wanted() > 0
            || until.is_some_and(|until| until < lately() + NAP * 2)
        {
            return false;
        }
        if !core.bounded {
            core.bounded = self.stream.bound_sleep().is_ok();
        }
        core.bounded
    }
}

/// The buffer of this thread. Taken and not borrowed: a session may ask others, who may call somewhere on this thread.
#[inline]
fn take_scratch() -> BytesMut {
    let mut scratch = SCRATCH.take().unwrap_or_default();
    if scratch.capacity() < 16 << 10 {
        scratch.reserve(KEEP);
    }
    scratch
}

/// Room for a message like one of so many octets, a little more than it has, if the buffer of a thread is too small for it and the room
/// is not too large to be kept free for what may not come.
#[inline]
fn room_for_next(last: usize) -> usize {
    if last <= KEEP || last > ANNOUNCED { 0 } else { (last + last / 8).min(ANNOUNCED) }
}

/// Gives it back, unless the beginning of a message takes it along.
#[inline]
fn keep_rest(core: &mut Core, mut scratch: BytesMut) {
    if scratch.is_empty() || !keep_beginning(core, &mut scratch) {
        SCRATCH.set(Some(scratch));
    }
}

/// The beginning of a message stays with its connection, in a buffer of its own; a large one whose rest has room behind it takes the
/// buffer along, so that it is not moved. Returns whether it did.
#[inline]
fn keep_beginning(core: &mut Core, buffer: &mut BytesMut) -> bool {
    let (came, room) = (buffer.len(), buffer.capacity());
    let wanted = core.session.wanted();
    // No more than half of the buffer stays unused.
    let fits = wanted > 0 && wanted <= room - came && came + wanted >= room / 2;
    if came >= LARGE && fits && core.input.is_empty() {
        core.input = std::mem::take(buffer);
        return true;
    }
    let rest = buffer.split();
    core.input.reserve(rest.len().max(core.session.wanted().min(KEEP) + rest.len()));
    core.input.extend_from_slice(&rest);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_kept_for_what_a_thread_has_none_for_and_never_for_much() {
        for (last, room) in
            [(0, 0), (KEEP, 0), (KEEP + 8, KEEP + 8 + KEEP / 8 + 1), (ANNOUNCED + 1, 0), (usize::MAX, 0)]
        {
            assert_eq!(room_for_next(last), room, "{last}");
        }
        assert_eq!(room_for_next(ANNOUNCED), ANNOUNCED);
    }
}
