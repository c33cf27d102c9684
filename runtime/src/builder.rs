//! How a node is made, and what it tells.

use crate::layer::Layer;
use crate::node::Node;
use crate::patience::Latency;
use crate::quotas::Quotas;
use crate::shared::Shared;
use everywire_model::{CallId, Failure, Limits, Violation, Wire};
use std::sync::Arc;
use std::time::Duration;

/// Something worth telling about a peer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// A connection was accepted.
    Accepted {
        /// Who.
        peer: String,
    },
    /// A connection was closed because a quota was reached, or a peer was not let in.
    Refused {
        /// Who.
        peer: String,
        /// Which quota, and how to raise it; or why the peer was not let in, which it is not told.
        why: String,
    },
    /// A peer broke the protocol; its connection ends.
    Violation {
        /// Who.
        peer: String,
        /// How.
        violation: Violation,
    },
    /// A servant's answer could not be sent as it was.
    Unanswered {
        /// Why.
        failure: Failure,
    },
    /// A signal did not reach a listener that asked for it.
    Undelivered {
        /// Which listener, and why.
        failure: Failure,
    },
    /// The router behind which this process serves is gone; it is looked for again by itself.
    Left {
        /// Why.
        failure: Failure,
    },
    /// The router is back, and this process serves behind it again.
    Joined {
        /// Where.
        place: String,
    },
    /// Accepting failed for want of something; it goes on by itself.
    Starved {
        /// Of what.
        why: String,
    },
    /// A connection by which calls may have come is over: nobody hears answers to those that are under way.
    Closed {
        /// The connection, by the number that [`everywire_model::Link::serial_number`] tells.
        link: u64,
    },
    /// A caller has withdrawn a call: an answer is dropped.
    Withdrawn {
        /// The connection.
        link: u64,
        /// The call.
        call: CallId,
    },
}

/// Gets notices, on the runtime's threads: it must not block.
pub type Observer = Arc<dyn Fn(&Notice) + Send + Sync>;

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

    /// Limits of each connection; by default those of the wire.
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

    /// The node. Nothing is started yet: event loops begin with the first listener or asynchronous call.
    pub fn build(self) -> Node {
        Node::of(Shared::new(self))
    }
}
