//! Connections apart: those of one caller, which nobody else in the node calls on.
//!
//! A hop has one set for each client: then what a session agrees on with its backend (character sets, dictionaries, an account) is
//! what the client agreed on with the hop, and a client that leaves ends what was there for it alone.

use crate::connection::Connection;
use crate::failures::{no_loop, stopped};
use crate::shard::{Shard, led_here};
use crate::shared::{PoolKey, Shared};
use crate::sync::lock;
use everywire_model::{Emission, Failure, Link, Servant};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Numbers them in this process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A set of connections of its own, for the objects that are resolved by it. Where one of its connections has
/// a listener, signals and the answers that nobody's thread waits for ([`everywire_model::Target::submit`])
/// are told in the order in which they came, one at a time: whoever is told must not wait for another of them
/// there. The connections end with a goodbye when this set and the last of its objects are dropped, and
/// what was said on them is sent; a peer that does not read has 5 s for that.
pub struct PrivateConnections {
    /// The number of this set in the pool's keys (`PoolKey`): no object outside the set finds its
    /// connections.
    pub(crate) number: u64,
    pub(crate) node: Weak<Shared>,
    /// The event loop that its connections belong to: that of whoever it was made for.
    shard: Weak<Shard>,
    /// Who is asked when a peer calls on one of its connections.
    backward: OnceLock<Arc<dyn Servant>>,
}

impl PrivateConnections {
    /// Its connections belong to the event loop that the calling thread leads, if it leads one: then one
    /// thread reads what a client asks and what its backend answers.
    pub(crate) fn new(node: Weak<Shared>) -> Arc<Self> {
        let shard = led_here().map(|shard| Arc::downgrade(&shard)).unwrap_or_default();
        Arc::new(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            node,
            shard,
            backward: OnceLock::new(),
        })
    }

    /// Has this servant answer what peers ask on connections that are made from now on, where the wire carries calls both ways: whatever
    /// they ask for. What its interface has comes with its number, all else with its body unread ([`everywire_model::Request::UNKNOWN`]).
    /// It also hears when one of these connections is over. The first one stays.
    pub fn serve_back(&self, servant: Arc<dyn Servant>) {
        // Another one would get calls of peers that know the first.
        let _ = self.backward.set(servant);
    }

    /// Tells the peers of its connections of a signal. Waits for those that do not read, until they are cut off.
    ///
    /// # Errors
    /// It does not encode.
    pub fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        let node = self.node.upgrade().ok_or_else(stopped)?;
        let links = lock(&node.links);
        let own = links.iter().filter(|(key, _)| self.has(key));
        let held: Vec<_> = own.map(|(_, connection)| Arc::clone(connection)).collect();
        drop(links);
        held.iter().try_for_each(|connection| Link::emit(&**connection, emission))
    }

    /// A connection was made for this set. Its event loop watches it all the time, so that answers are read
    /// by the thread that passes them on; calls of the peer go to the servant of `serve_back`, if there is
    /// one.
    pub(crate) fn take_in(&self, connection: &Arc<Connection>) -> Result<(), Failure> {
        connection.last();
        connection.count_as_private();
        if let Some(servant) = self.backward.get() {
            connection.serve_back(Arc::clone(servant));
        }
        match self.shard.upgrade() {
            Some(shard) if connection.registration().is_none() => shard.reserve(connection).map_err(no_loop),
            _ => Ok(()),
        }
    }

    fn has(&self, key: &PoolKey) -> bool {
        key.apart == Some(self.number)
    }
}

impl Drop for PrivateConnections {
    fn drop(&mut self) {
        let Some(node) = self.node.upgrade() else { return };
        let gone: Vec<_> = lock(&node.links).extract_if(|key, _| self.has(key)).collect();
        if gone.is_empty() {
            return;
        }
        // A goodbye may take a moment, and this thread may be an event loop.
        node.apart(Box::new(move || {
            gone.iter().for_each(|(_, connection)| connection.finish());
        }));
    }
}
