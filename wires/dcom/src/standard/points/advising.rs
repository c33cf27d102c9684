//! A connection point, and who is advised of its signals.
//!
//! Invariants: cookies of one point are never 0 and never the same as another that is in use. `SINKS` and
//! `SINKS_OF_PRINCIPAL` are checked twice: before a sink is asked for its interface, and under the lock when
//! it is entered. Observers are told when no lock is held.

use super::source::{Source, sources};
use super::store::Account;
use super::tables::{CallStyle, Point, Points, SinkConnection};
use crate::exporter::Exporter;
use crate::hresult::{CONNECT_E_ADVISELIMIT, CONNECT_E_NOCONNECTION};
use crate::lock::lock;
use crate::standard::serving::refused;
use bytes::Bytes;
use everywire_model::signal::Audience;
use everywire_model::{Failure, Object, Reference};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// Sinks that a principal may advise of one source interface of an object.
pub const SINKS_OF_PRINCIPAL: usize = 256;
/// Sinks that may be advised of one source interface of an object.
pub const SINKS: usize = 4096;
impl Points {
    /// The connection point of an object for a source interface, if it has that.
    /// Points are made when somebody asks for them, and stay until the object is withdrawn.
    pub(super) fn find(&self, exporter: &Exporter, key: &[u8], iid: Uuid) -> Option<Arc<Point>> {
        let mut held = lock(&self.held);
        let found = held.get(key).and_then(|points| points.iter().find(|point| point.iid == iid).cloned());
        if found.is_some() {
            return found;
        }
        let source = sources_of(exporter, key).into_iter().find(|source| source.iid == iid)?;
        let point = Arc::new(Point {
            key: Bytes::copy_from_slice(key),
            iid,
            interface: source.interface,
            objects: Arc::downgrade(exporter.objects()),
            served: Mutex::default(),
            sinks: Mutex::default(),
            last_cookie: AtomicU32::new(0),
        });
        held.entry(point.key.clone()).or_default().push(Arc::clone(&point));
        Some(point)
    }
}

impl Point {
    /// Whether there is room for one more sink of a principal.
    pub(super) fn admit(sinks: &[Arc<SinkConnection>], principal: &str) -> Result<(), Failure> {
        let own = sinks.iter().filter(|sink| sink.principal == principal).count();
        if sinks.len() >= SINKS || own >= SINKS_OF_PRINCIPAL {
            return Err(refused(CONNECT_E_ADVISELIMIT));
        }
        Ok(())
    }

    /// Advises a sink of a principal, which is reached as `manner` says; the cookie.
    pub(super) fn advise(
        self: &Arc<Self>,
        (principal, account): (String, Arc<Account>),
        reference: Reference,
        object: &Object,
        manner: Option<CallStyle>,
    ) -> Result<u32, Failure> {
        let mut sinks = lock(&self.sinks);
        Self::admit(&sinks, &principal)?;
        let cookie = loop {
            // 0 is no cookie, and none is given twice.
            let next = self.last_cookie.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if next != 0 && sinks.iter().all(|sink| sink.cookie != next) {
                break next;
            }
        };
        sinks.push(SinkConnection::new((cookie, principal, account), reference, object, self, manner));
        let listeners = sinks.len();
        drop(sinks);
        self.tell(&Audience::Joined { interface: self.iid.to_string(), listener: cookie, listeners });
        Ok(cookie)
    }

    /// Tells whoever serves the object what happened among those who listen. No lock is held.
    pub(super) fn tell(&self, told: &Audience) {
        if let Some(objects) = self.objects.upgrade() {
            objects.audience(&self.key, told);
        }
    }

    /// Forgets a sink, as its listener asks for.
    pub(super) fn unadvise(&self, cookie: u32) -> Result<(), Failure> {
        if self.remove(cookie) { Ok(()) } else { Err(refused(CONNECT_E_NOCONNECTION)) }
    }

    /// Forgets a sink. Whether it was there.
    pub(super) fn remove(&self, cookie: u32) -> bool {
        let mut sinks = lock(&self.sinks);
        let Some(at) = sinks.iter().position(|sink| sink.cookie == cookie) else { return false };
        let sink = sinks.remove(at);
        let listeners = sinks.len();
        // Not under the lock: its references are released with it.
        drop(sinks);
        sink.end();
        self.tell(&Audience::Left { interface: self.iid.to_string(), listener: cookie, listeners });
        true
    }
}

/// The source interfaces of the object under a key.
pub(in crate::standard) fn sources_of(exporter: &Exporter, key: &[u8]) -> Vec<Source> {
    let mut all: Vec<Source> = Vec::new();
    for servant in exporter.objects().servants(key) {
        for source in sources(servant.interface()) {
            if all.iter().all(|held| held.iid != source.iid) {
                all.push(source);
            }
        }
    }
    all
}
