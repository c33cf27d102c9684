//! How a node is made.

use crate::layer::Layer;
use crate::notice::Observer;
use crate::quotas::Quotas;
use crate::spin_wait::Latency;
use everywire_model::{Limits, Wire};
use std::sync::Arc;
use std::time::Duration;

/// How a node is made.
#[derive(Clone)]
pub struct Builder {
    pub(crate) wires: Vec<&'static dyn Wire>,
    pub(crate) latency: Latency,
    pub(crate) limits: Option<Limits>,
    pub(crate) depth: Option<u32>,
    pub(crate) quotas: Quotas,
    pub(crate) deadline: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) probe_time: Option<Duration>,
    pub(crate) shards: usize,
    pub(crate) observer: Option<Observer>,
    pub(crate) layers: Vec<Arc<dyn Layer>>,
}

impl Builder {
    /// A builder for a node that speaks these wires; `everywire::Node::builder` knows all of them.
    pub fn new(wires: &[&'static dyn Wire]) -> Self {
        Self {
            wires: wires.to_vec(),
            latency: Latency::Default,
            limits: None,
            depth: None,
            quotas: Quotas::default(),
            deadline: Some(Duration::from_secs(30)),
            grace: Duration::from_secs(30),
            probe_time: None,
            shards: std::thread::available_parallelism().map_or(1, usize::from),
            observer: None,
            layers: Vec::new(),
        }
    }

    /// How eagerly to wait for bytes.
    #[must_use]
    pub fn latency(mut self, latency: Latency) -> Self {
        self.latency = latency;
        self
    }

    /// Limits of each connection (bytes of a message, elements, depth); by default those of its wire.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// The largest message, in bytes (4 MiB unless raised).
    #[must_use]
    pub fn max_message(self, bytes: u64) -> Self {
        let limits = self.limits.clone().unwrap_or_default().with_message(bytes);
        self.limits(limits)
    }

    /// In how many levels received values may nest (64 unless raised, at most 1000). Where a wire has a limit of its own, the
    /// smaller one holds.
    #[must_use]
    pub fn max_depth(mut self, levels: u32) -> Self {
        self.depth = Some(levels);
        self
    }

    /// What peers may hold of this process.
    #[must_use]
    pub fn quotas(mut self, quotas: Quotas) -> Self {
        self.quotas = quotas;
        self
    }

    /// The time limit of each call, 30 s unless set; `None` waits for ever.
    #[must_use]
    pub fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long calls under way may take when the node is stopped, 30 s unless set.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long a server may take for each answer that tells [`Node::diagnose`](crate::Node::diagnose) who it is: 0.5 s unless set,
    /// and 0.15 s behind a call whose deadline is over. Slow networks and busy machines need more.
    #[must_use]
    pub fn probe_time(mut self, each: Duration) -> Self {
        self.probe_time = Some(each);
        self
    }

    /// Event loops, one a CPU unless set.
    #[must_use]
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = shards.max(1);
        self
    }

    /// Who gets notices.
    #[must_use]
    pub fn observer(mut self, observer: Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Something that sees each call before the servant, behind the layers that were added before it.
    #[must_use]
    pub fn layer(mut self, layer: impl Layer + 'static) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }
}
