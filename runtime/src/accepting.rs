//! Accepting connections, and making room when there are too many.

use crate::connection::{Connection, Role};
use crate::notice::Notice;
use crate::shared::Shared;
use crate::shares::Source;
use crate::transport::listener::Listener;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Newcomers that are let in before others get their turn, and one more for each of these times since the last ones.
const AT_ONCE: usize = 4;
const ONE_MORE: Duration = Duration::from_micros(250);
/// The most of them in one go.
const MOST_AT_ONCE: usize = 256;
/// Newcomers beyond the quota that are told why at one time; more of them are closed without a word.
const MANNERS: usize = 64;
/// Descriptors that a process needs beside those of its connections.
const SPARE: usize = 128;

impl Shared {
    /// Accepts what waits at a listener; none has been accepted by this thread for so long. No single failure ends it.
    pub(crate) fn accept(&self, listener: &Listener, since: Duration) {
        // Where the calls of all others take long, those who wait for a place must not wait for them a hundred times.
        let more = usize::try_from(since.as_micros() / ONE_MORE.as_micros()).unwrap_or(MOST_AT_ONCE);
        let at_once = MOST_AT_ONCE.min(AT_ONCE.saturating_add(more));
        let allowance = listener.allowance();
        // Whoever comes now gets a moment to speak before it makes room.
        let begun = allowance.shares.number();
        for _ in 0..at_once {
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
                    if !allowance.make_way(Source::Unknown, begun) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    return;
                }
            };
            let address = stream.peer(listener.endpoint().transport());
            let source = stream.source(&address);
            let full =
                allowance.shares.open() >= allowance.shares.most() && !allowance.make_way(source, begun);
            if full && self.turned_away.load(Ordering::Relaxed) >= MANNERS {
                // Too many are being told so already.
                self.notice(&Notice::Refused {
                    peer: address.text,
                    why: allowance.crowded().message().to_owned(),
                });
                continue;
            }
            let Some(node) = self.arc() else { return };
            let (profile, wire) = (listener.profile(), listener.wire());
            let made =
                Connection::new(stream, profile, listener.layer(), node, allowance, wire, Role::Accepted);
            let connection = match made {
                Ok(connection) => connection,
                Err(failure) => {
                    self.notice(&Notice::Refused { peer: address.text, why: failure.to_string() });
                    continue;
                }
            };
            if full {
                // First whoever runs the server hears of it.
                let why = allowance.crowded().message().to_owned();
                self.notice(&Notice::Refused { peer: address.text.clone(), why });
                connection.turn_away(&allowance.crowded());
            } else {
                let tenant: Weak<Connection> = Arc::downgrade(&connection);
                allowance.shares.enter(connection.number(), source, tenant);
            }
            let delivered = self.shard().and_then(|shard| shard.adopt(&connection));
            match delivered {
                Ok(()) => {
                    connection.remind_first();
                    if !full {
                        self.notice(&Notice::Accepted { peer: address.text });
                    }
                }
                Err(error) => {
                    self.notice(&Notice::Starved { why: format!("watching a connection: {error}") })
                }
            }
        }
    }

    /// Takes all descriptors that the system allows, and no more connections than there are descriptors for.
    pub(crate) fn take_descriptors(&self) {
        raise_descriptor_limit();
        let most =
            getrlimit(Resource::Nofile).current.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        // Of very few nobody can say what else they are for.
        if let Some(most) = most.filter(|most| *most > 2 * SPARE) {
            for shares in self.shares() {
                shares.at_most(most - SPARE);
            }
        }
    }
}

/// A server holds a descriptor for each connection: take all the system allows.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        // Refused: then fewer connections fit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}
