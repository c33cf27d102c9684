//! What a connection may ask of its place in a shard. A shard that has ended is asked in vain, and so is one
//! that has forgotten the connection.

use super::state::{CONTROL, Registration, Shard};
use crate::connection::Connection;
use crate::transport::Stream;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::sync::Arc;
use std::time::Instant;

impl Registration {
    /// Has the shard look at the connection by `when`, and no longer at `before`.
    pub(crate) fn remind(&self, when: Instant, before: Option<Instant>) {
        if let Some(shard) = self.shard.upgrade() {
            shard.remind(self.token, when, before);
        }
    }

    /// Watches an accepted connection for bytes, for room to write, for both, or for its end alone; of an end
    /// the kernel tells once, because it stays.
    pub(crate) fn watch(&self, connection: &Connection, reading: bool, writing: bool) {
        // A bell cannot be watched for room; the peer rings it when there is some.
        if let (Some(shard), (stream, None)) = (self.shard.upgrade(), connection.stream.watched()) {
            let flags = flags(reading, writing);
            // Removed meanwhile: then nothing is to be watched.
            let _ = epoll::modify(shard.watching(connection), stream, EventData::new_u64(self.token), flags);
        }
    }

    /// The connection moves from the strangers to the callers, or back: `change` records which it is now.
    pub(crate) fn change_place(
        &self,
        connection: &Connection,
        reading: bool,
        writing: bool,
        change: impl FnOnce(),
    ) {
        if let (Some(shard), (stream, None)) = (self.shard.upgrade(), connection.stream.watched()) {
            // Removed meanwhile: then nothing is to be watched.
            let watched = epoll::delete(shard.watching(connection), stream).is_ok();
            change();
            if watched {
                let flags = flags(reading, writing);
                let _ = epoll::add(shard.watching(connection), stream, EventData::new_u64(self.token), flags);
            }
        }
    }

    /// Watches for the next bytes, or for room, once; for bytes as long as there are some, if `lasting`.
    pub(crate) fn arm(&self, stream: &Stream, reading: bool, writing: bool, lasting: bool) {
        if let Some(shard) = self.shard.upgrade() {
            let (fd, control) = stream.watched();
            let once = !lasting || writing || control.is_some();
            let mut flags = if once { EventFlags::ONESHOT } else { EventFlags::empty() };
            flags.set(EventFlags::IN, reading || control.is_some());
            flags.set(EventFlags::OUT, writing && control.is_none());
            let late = stream.before_sleep(writing);
            let _ = epoll::modify(&shard.epoll, fd, EventData::new_u64(self.token), flags);
            if let Some(control) = control {
                let flags = EventFlags::IN | EventFlags::ONESHOT;
                let _ = epoll::modify(&shard.epoll, control, EventData::new_u64(self.token | CONTROL), flags);
                if late {
                    // It came before the flag was up, so nobody will ring: ring ourselves.
                    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
                }
            }
        }
    }

    /// Watches for no more bytes, though [`Self::arm`] asked for them; for room, if that is still wanted.
    pub(crate) fn disarm(&self, stream: &Stream, writing: bool) {
        if let Some(shard) = self.shard.upgrade() {
            let (fd, control) = stream.watched();
            let mut flags = EventFlags::ONESHOT;
            flags.set(EventFlags::OUT, writing && control.is_none());
            let _ = epoll::modify(&shard.epoll, fd, EventData::new_u64(self.token), flags);
        }
    }

    /// The shard.
    pub(crate) fn shard(&self) -> Option<Arc<Shard>> {
        self.shard.upgrade()
    }
}

/// What epoll is to tell of a connection that serves: all the time, but for the end.
fn flags(reading: bool, writing: bool) -> EventFlags {
    if !reading && !writing {
        // The kernel tells of an end whether it is asked or not, and would do so again and again.
        return EventFlags::RDHUP | EventFlags::ONESHOT;
    }
    let mut flags = if reading { EventFlags::IN } else { EventFlags::empty() };
    flags.set(EventFlags::OUT, writing);
    flags
}
