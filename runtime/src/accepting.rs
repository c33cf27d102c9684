//! Accepting connections, and making room when there are too many.

use crate::connection::{Connection, Role};
use crate::failures::stopped;
use crate::notice::Notice;
use crate::private_count;
use crate::shared::Shared;
use crate::shares::Source;
use crate::transport::listener::Listener;
use everywire_model::{Failure, Initiator, Kind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Newcomers that are accepted in one go before the connections of others get their turn. One more is
/// accepted for each `ONE_MORE` since this thread accepted last: where calls take long, newcomers must not
/// wait for a whole round of them each.
const AT_ONCE: usize = 4;
const ONE_MORE: Duration = Duration::from_micros(250);
/// The most of them in one go.
const MOST_AT_ONCE: usize = 256;
/// Newcomers beyond the quota that are told why at one time, in the whole node: each holds a descriptor while
/// it is told. More of them are closed without a word.
const MANNERS: usize = 64;
/// Descriptors that a process needs beside those of accepted connections: event loops, bells, files,
/// connections that it makes. The quota of connections is lowered to the limit of descriptors less this.
const SPARE: usize = 128;

impl Shared {
    /// Accepts what waits at a listener, on the thread that leads the listener's event loop. `since` is how
    /// long this thread has accepted nothing. No single failure ends the listener: its socket stays watched,
    /// and the next event comes by here again.
    ///
    /// Order of the checks: first the quota of connections; then whether a connection makes way; then whether
    /// the newcomer is told why there is no place. Only a newcomer with a place enters the shares.
    pub(crate) fn accept(&self, listener: &Listener, since: Duration) {
        // Where the calls of all others take long, those who wait for a place must not wait for them a hundred times.
        let more = usize::try_from(since.as_micros() / ONE_MORE.as_micros()).unwrap_or(MOST_AT_ONCE);
        let at_once = MOST_AT_ONCE.min(AT_ONCE.saturating_add(more));
        let allowance = &listener.allowance;
        // The number is taken before the first newcomer has one: those of one round do not end each other, but for one whose
        // source has fewer (`Shares::oldest_fresh`).
        let begun = allowance.shares.number();
        let refuse = |peer, why| self.notice(&Notice::Refused { peer, why });
        for _ in 0..at_once {
            let stream = match listener.acceptor.accept() {
                Ok(stream) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if has_left(&error) => continue,
                Err(error) => {
                    self.notice(&Notice::Starved {
                        why: format!("accepting at {}: {error}", listener.endpoint),
                    });
                    // Out of descriptors or memory. The listener stays readable: give others a moment to let go.
                    if !allowance.make_way(Source::Unknown, begun) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    return;
                }
            };
            let address = stream.peer(listener.endpoint.transport());
            let source = stream.source(&address);
            let full = allowance.shares.is_full(private_count::count()) && !allowance.make_way(source, begun);
            if full && self.turned_away.load(Ordering::Relaxed) >= MANNERS {
                // Too many are being told so already.
                refuse(address.text, allowance.crowded().message().to_owned());
                continue;
            }
            let Some(node) = self.arc() else { return };
            let (terms, wire, role) = (listener.terms(), listener.wire, Role::Accepted);
            let made =
                Connection::new(stream, &terms.profile, terms.layer.as_ref(), node, allowance, wire, role);
            let connection = match made {
                Ok(connection) => connection,
                Err(failure) => {
                    refuse(address.text, failure.to_string());
                    continue;
                }
            };
            if full {
                // First whoever runs the server hears of it.
                refuse(address.text.clone(), allowance.crowded().message().to_owned());
                connection.turn_away(&allowance.crowded());
            } else {
                let tenant: Weak<Connection> = Arc::downgrade(&connection);
                allowance.shares.enter(connection.number, source, tenant);
            }
            let delivered = self.shard().and_then(|shard| shard.adopt(&connection));
            match delivered {
                Ok(()) => {
                    connection.remind_first();
                    if !full {
                        self.notice(&Notice::Accepted { peer: address.text });
                    }
                }
                // It stops just now. The newcomer would wait without end.
                Err(_) if self.stopped.load(Ordering::Acquire) => return connection.cut(&stopped()),
                Err(error) => {
                    let why = format!("watching a connection: {error}");
                    connection.cut(&Failure::new(Kind::Busy, Initiator::Here, why.clone()));
                    self.notice(&Notice::Starved { why });
                }
            }
        }
    }

    /// Raises this process's limit of descriptors to what the system allows, and lowers the quotas of
    /// connections to what then fits. Called for each listener that is bound.
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

/// Whether accepting failed because the newcomer has left already, or a signal came: nothing is short. Over shared memory it may
/// leave while it is told where the memory is.
pub(crate) fn has_left(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Interrupted
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::BrokenPipe
            | ErrorKind::NotConnected
    )
}

/// A server holds a descriptor for each connection: take all the system allows.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        // Refused: then fewer connections fit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}
