//! How a session is served that has something to tell which did not come by its own connection.

use super::state::{Connection, ServeOutcome};
use crate::shard;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Wake;

/// What a session of an accepted connection is given to wake it with (`Config::waker`), made before the
/// connection is.
#[derive(Default)]
pub(super) struct ConnectionWaker(OnceLock<Weak<Connection>>);

impl ConnectionWaker {
    /// Says which connection it is.
    pub(super) fn lead_to(&self, connection: &Arc<Connection>) {
        // There is one only.
        let _ = self.0.set(Arc::downgrade(connection));
    }
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Whoever wakes may hold the lock of another connection, or of this one.
        if let Some(connection) = self.0.get().and_then(Weak::upgrade) {
            connection.serve_soon();
        }
    }
}

impl Connection {
    /// Has its event loop serve what its session has.
    pub(super) fn serve_soon(&self) {
        self.queue(|connection| connection.serve_again());
    }

    /// The same for what was left in the session so that others had their turn, as [`super::state::Core::turn_queued`] says until then.
    pub(super) fn take_next_turn(&self) {
        self.queue(|connection| {
            connection.enter().turn_queued = false;
            connection.serve_again();
        });
    }

    fn queue(&self, work: fn(&Arc<Self>)) {
        let this = Weak::clone(&self.this);
        self.node.queue(
            Box::pin(async move {
                if let Some(connection) = this.upgrade() {
                    work(&connection);
                }
            }),
            self.registration(),
        );
    }

    /// Serves what its session has now, on the thread that leads the event loop.
    fn serve_again(self: &Arc<Self>) {
        let served = shard::with_lead_of_no_call(|leader| self.serve(leader, true));
        match served {
            Some(ServeOutcome::Over) => {
                if let Some(shard) = self.registration().and_then(crate::shard::Registration::shard) {
                    shard.forget(self);
                }
            }
            // What came meanwhile was not read; a bell tells of it once only.
            Some(_) => {
                if let (bell, Some(_)) = self.stream.watched() {
                    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
                }
            }
            // This thread was taken for blocked just now: whoever leads serves it.
            None => self.serve_soon(),
        }
    }
}
