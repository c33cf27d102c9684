//! What this node tells other nodes that it holds: which objects they know of, and which proxies need references (MS-DCOM 3.2.6.1).

use super::imports::Proxy;
use crate::limits::LINGERING;
use crate::lock::lock;
use crate::security::Security;
use everywire_model::Endpoint;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};

/// Where a resolver is, and how it is called.
pub(super) type Resolver = (Vec<Endpoint>, Arc<Security>);

/// See the module. Each lock stands alone, and none is held while another node is asked.
#[derive(Default)]
pub(super) struct Pinger {
    /// Taken away while pings are under way.
    pub(super) sets: Mutex<HashMap<Resolver, ClientSet>>,
    /// Proxies that need references: those that came with none, or gave theirs away.
    pub(super) wanting: Mutex<Vec<Weak<Proxy>>>,
    /// Proxies whose references were passed on without a count: they are kept until the receiver has had time to ask for some.
    pub(super) lingering: Mutex<Vec<Arc<Proxy>>>,
}

/// Objects of one resolver that it knows to be held here.
#[derive(Default)]
pub(super) struct ClientSet {
    /// The set's number at the resolver; 0 before the first ComplexPing.
    pub(super) id: u64,
    /// Of the last ComplexPing; it wraps.
    pub(super) sequence: u16,
    /// OIDs that the resolver has in the set, as far as its answers say.
    pub(super) objects: HashSet<u64>,
    /// Pings in a row without an answer.
    pub(super) failures: u32,
}

impl Pinger {
    /// A proxy needs references. Returns whether the keeper is to be told.
    /// Beyond `LINGERING` a proxy is not noted, and goes on with the references it has.
    pub(super) fn want(&self, proxy: &Arc<Proxy>) -> bool {
        let mut wanting = lock(&self.wanting);
        let known = wanting.iter().any(|held| held.as_ptr() == Arc::as_ptr(proxy));
        if !known && wanting.len() < LINGERING {
            wanting.push(Arc::downgrade(proxy));
        }
        !known
    }

    /// Keeps a proxy for a period or two.
    /// If too many linger, the older half goes at once: what was passed on without a count may then be gone
    /// before the receiver asks.
    pub(super) fn linger(&self, proxy: Arc<Proxy>) {
        let mut lingering = lock(&self.lingering);
        let oldest = if lingering.len() >= LINGERING {
            lingering.drain(..LINGERING / 2).collect()
        } else {
            Vec::new()
        };
        lingering.push(proxy);
        drop(lingering);
        // Without the lock: dropping a proxy enters others.
        drop(oldest);
    }

    /// Ping sets of this node at others.
    pub(super) fn len(&self) -> usize {
        lock(&self.sets).len()
    }
}
