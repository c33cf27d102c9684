//! What a node tells of its peers.

use everywire_model::{CallId, Endpoint, Failure, Violation};
use std::sync::Arc;

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
        /// Where this node has called it; nothing, if it has come by itself.
        called: Option<Endpoint>,
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
