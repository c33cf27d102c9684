//! The exporter of a node: its tables, and what they alone tell.
//!
//! The parts know nothing of each other but what their constructors are given; what takes several of them is above, in the files
//! beside this one.
//!
//! Invariants: an exporter is made once for a node and lives as long as it. `this` leads to itself for what
//! must keep or find it. OXID and the IPID of IRemUnknown are random and never change. Each part locks for
//! itself.

use super::associations::Associations;
use super::classes::RunningObjectTable;
use super::clock::Clock;
use super::exports::{Exports, IpidEntry};
use super::imports::Imports;
use super::node_bindings::NodeBindings;
use super::numbers::{random_uuid, unused};
use super::pinger::Pinger;
use super::sets::Sets;
use crate::VERSION;
use crate::bindings::DualStringArray;
use crate::resolver::OxidResolution;
use crate::security::{Level, Security};
use crate::standard::State;
use bytes::Bytes;
use everywire_model::{Objects, Servant};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use uuid::Uuid;

/// How often clients say what they hold (MS-DCOM 3.1.2.2).
pub const PING_PERIOD: Duration = Duration::from_secs(120);

/// The exporter of a node: everything that DCOM keeps beyond single connections.
pub struct Exporter {
    pub(super) this: Weak<Self>,
    pub(super) objects: Arc<dyn Objects>,
    pub(super) oxid: u64,
    pub(super) rem_unknown: Uuid,
    /// What the IPID of IRemUnknown stands for: an empty key, so that calls go to the node's own servants.
    pub(super) unknown: IpidEntry,
    pub(super) exports: Exports,
    pub(super) sets: Sets,
    pub(super) imports: Arc<Imports>,
    pub(super) pinger: Pinger,
    pub(super) clock: Arc<Clock>,
    /// How often clients ping, unless a place says otherwise.
    pub(super) period: Duration,
    pub(super) places: NodeBindings,
    pub(super) running: RunningObjectTable,
    pub(super) associations: Associations,
    /// The class objects that somebody asked for: CLSID and key.
    pub(super) factories: Mutex<HashMap<Uuid, Bytes>>,
    pub(super) standard: State,
    pub(super) servants: OnceLock<Vec<Arc<dyn Servant>>>,
}

/// How many entries the tables of an exporter have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects of this node that are known elsewhere, or kept by [`ExportGuard`](super::ExportGuard)s.
    pub objects: usize,
    /// Interfaces of them.
    pub ipids: usize,
    /// Ping sets of others here.
    pub sets: usize,
    /// Objects elsewhere that are held here.
    pub proxies: usize,
    /// Exporters elsewhere.
    pub oxids: usize,
    /// IPIDs with references to be given back.
    pub releases: usize,
    /// Ping sets of this node elsewhere.
    pub pinged: usize,
    /// Association groups.
    pub associations: usize,
}

impl Exporter {
    /// The exporter of a node.
    pub fn new(objects: Arc<dyn Objects>) -> Arc<Self> {
        Self::with_period(objects, PING_PERIOD)
    }

    /// The same with another ping period.
    pub fn with_period(objects: Arc<dyn Objects>, period: Duration) -> Arc<Self> {
        let running = RunningObjectTable::default();
        for key in objects.keys() {
            let servants = objects.servants(&key);
            running.enter(&key, None);
            servants.iter().for_each(|servant| running.enter(&key, Some(servant.interface())));
        }
        let clock = Arc::new(Clock::new());
        let imports = Arc::new(Imports::new(Arc::clone(&clock), Arc::clone(&objects)));
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            objects,
            oxid: unused(|_| false),
            rem_unknown: random_uuid(),
            unknown: IpidEntry::new(Bytes::new(), false, false, Arc::default()),
            exports: Exports::default(),
            sets: Sets::default(),
            imports,
            pinger: Pinger::default(),
            clock,
            period,
            places: NodeBindings::default(),
            running,
            associations: Associations::default(),
            factories: Mutex::default(),
            standard: State::default(),
            servants: OnceLock::new(),
        })
    }

    /// The objects of the node.
    pub fn objects(&self) -> &Arc<dyn Objects> {
        &self.objects
    }

    /// What the standard interfaces keep.
    pub fn standard(&self) -> &State {
        &self.standard
    }

    /// The identity of this exporter.
    pub fn oxid(&self) -> u64 {
        self.oxid
    }

    /// The IPID of this exporter's IRemUnknown.
    pub fn rem_unknown(&self) -> Uuid {
        self.rem_unknown
    }

    /// Itself, for those who must not keep it alive.
    pub fn weak(&self) -> Weak<Self> {
        Weak::clone(&self.this)
    }

    pub(super) fn arc(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    /// Where this node listens: bindings of its resolver, and of its exporter, which are one.
    pub fn bindings(&self) -> DualStringArray {
        self.places.bindings(&self.objects.places(), &*self.objects)
    }

    /// Where this exporter is, for OXID resolution and activation.
    /// The hint is the lowest level of all places: a client that starts there is let in somewhere, and is
    /// told more by the answer.
    pub fn resolution(&self) -> OxidResolution {
        let places = self.objects.places();
        let least =
            places.iter().map(|place| Security::of(place.profile()).level).min().unwrap_or(Level::None);
        OxidResolution {
            bindings: self.places.bindings(&places, &*self.objects),
            rem_unknown: self.rem_unknown,
            authn_hint: least as u32,
            version: (VERSION.0.into(), VERSION.1.into()),
        }
    }

    /// What an IPID stands for; `None` once it is disconnected. Counts as a sign of life of whoever holds the object.
    pub fn served(&self, ipid: Uuid) -> Option<IpidEntry> {
        if ipid == self.rem_unknown {
            return Some(self.unknown.clone());
        }
        self.exports.served(ipid)
    }

    /// Which connections belong together.
    pub fn associations(&self) -> &Associations {
        &self.associations
    }

    /// How many entries the tables have.
    pub fn counts(&self) -> Counts {
        let (objects, ipids) = self.exports.counts();
        let (proxies, oxids, releases) = self.imports.counts();
        let (sets, pinged, associations) = (self.sets.len(), self.pinger.len(), self.associations.len());
        Counts { objects, ipids, sets, proxies, oxids, releases, pinged, associations }
    }
}
