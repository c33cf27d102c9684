//! Accepting connections, and making room when there are too many.

use crate::builder::Notice;
use crate::connection::{Connection, Role};
use crate::seat::Seat;
use crate::shared::Shared;
use crate::transport::listener::Listener;
use everywire_model::{Failure, Initiator, Kind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Shared {
    /// Accepts what waits at a listener. No single failure ends it.
    pub(crate) fn accept(&self, listener: &Listener) {
        let begun = Instant::now();
        for _ in 0..64 {
            let stream = match listener.accept() {
                Ok(stream) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) =>
                {
                    continue;
                }
                Err(error) => {
                    self.notice(&Notice::Starved {
                        why: format!("accepting at {}: {error}", listener.endpoint()),
                    });
                    // Out of descriptors or memory. The listener stays readable: give others a moment to let go.
                    self.make_room(begun);
                    std::thread::sleep(Duration::from_millis(1));
                    return;
                }
            };
            let peer = stream.peer(listener.endpoint().transport()).text;
            if self.accepted.fetch_add(1, Ordering::Relaxed) >= self.quotas.connections {
                let now = self.accepted_now();
                self.accepted.store(now + 1, Ordering::Relaxed);
                if now >= self.quotas.connections && !self.make_room(begun) {
                    self.accepted.fetch_sub(1, Ordering::Relaxed);
                    let why = format!(
                        "{now} connections are open, the quota `connections`; raise it if they are wanted"
                    );
                    self.notice(&Notice::Refused { peer, why });
                    continue;
                }
            }
            let Some(node) = self.arc() else { return };
            let connection =
                Connection::new(stream, listener.profile(), node, listener.wire(), Role::Accepted);
            let seated = self.shard().and_then(|shard| shard.adopt(&connection));
            match seated {
                Ok(()) => {
                    if let Some(seat) = connection.seat() {
                        seat.remind(connection.first_deadline().unwrap_or_else(Instant::now));
                    }
                    self.notice(&Notice::Accepted { peer });
                }
                Err(error) => {
                    self.notice(&Notice::Starved { why: format!("watching a connection: {error}") })
                }
            }
        }
    }

    /// Connections that were accepted and are open.
    pub(crate) fn accepted_now(&self) -> usize {
        self.shards()
            .iter()
            .flat_map(|shard| shard.connections())
            .filter(|connection| connection.is_accepted() && !connection.is_over())
            .count()
    }

    /// Ends the oldest connection that has not sent a whole message yet, of those that were there before.
    fn make_room(&self, before: Instant) -> bool {
        let oldest = self
            .shards()
            .iter()
            .flat_map(|shard| shard.connections())
            .filter(|connection| {
                !connection.is_over() && connection.is_half_open() && connection.begun() < before
            })
            .min_by_key(|connection| connection.begun());
        let Some(oldest) = oldest else { return false };
        oldest.cut(&Failure::new(Kind::Busy, Initiator::Here, "made room for another connection"));
        if let Some(shard) = oldest.seat().and_then(Seat::shard) {
            shard.forget(&oldest);
        }
        true
    }
}

/// A server holds a descriptor for each connection: take all the system allows.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        // Refused: then fewer connections fit, and the quota tells.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}
