//! What a connecting session knows: of the connection, of what was agreed on, and of what the peer has to answer.

use super::work::{Held, Job, Results, Task};
use crate::exporter::{Exporter, Proxy};
use crate::pdu::Syntax;
use crate::security::Security;
use crate::session::channel::Channel;
use crate::session::shield::Talk;
use everywire_auth::security::Initiator as Authentication;
use everywire_model::{Failure, PeerAddress};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use uuid::Uuid;

/// The session of a side that connects: speaks first.
pub struct Connecting {
    pub(super) channel: Channel,
    pub(super) security: Arc<Security>,
    pub(super) peer: PeerAddress,
    pub(super) exporter: Option<Arc<Exporter>>,
    pub(super) talk: Option<Talk>,
    /// Proves who this side is, until that is done.
    pub(super) authentication: Option<Box<dyn Authentication>>,
    /// Why nothing can be called here, if so.
    pub(super) unusable: Option<Failure>,
    /// Whether this side is known by now, as far as it wants to be.
    pub(super) ready: bool,
    pub(super) contexts: Vec<Context>,
    /// The next number of a presentation context.
    pub(super) next_context: u16,
    /// What was sent and not answered; numbers ascend (wrapping).
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) next_call: u32,
    pub(super) next_serial: u64,
    /// What waits for an errand, for its turn, or for being let in.
    pub(super) jobs: VecDeque<Job>,
    /// The only interface that it can call, where the peer takes no other.
    pub(super) only: Option<Uuid>,
    /// Minor version of ORPC, where the peer's is not known.
    pub(super) orpc_minor: u16,
    /// Whether the last token is not known to have let this side in: an auth3 is not answered.
    pub(super) unconfirmed: bool,
    /// The last calls that were ended by faults without a signature.
    pub(super) doubted: VecDeque<u32>,
    /// Whether the peer took an ORPC version that it was sent.
    pub(super) proven: bool,
    /// Causality of the calls of this connection, counted up.
    pub(super) causality: u128,
    /// The interface that was called last.
    pub(super) known: Option<Known>,
}

/// A presentation context.
pub(super) struct Context {
    pub(super) id: u16,
    pub(super) syntax: Syntax,
    pub(super) stage: Stage,
    /// By which PDU it was asked for.
    pub(super) call: u32,
}

/// How far the negotiation of a presentation context is. It never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The peer was asked.
    Asked,
    /// It may be used.
    Accepted,
    /// The peer has no such interface, or does not speak NDR.
    Refused,
}

/// What was sent and not answered.
pub(super) struct Waiting {
    pub(super) call: u32,
    pub(super) purpose: Purpose,
}

/// What the answer to a call is for. `Call` keeps only what reading its results needs; a call that may have
/// to be sent again keeps all of it.
pub(super) enum Purpose {
    /// A call of the user.
    Call {
        serial: u64,
        results: Results,
    },
    /// One that may be sent again, or was sent by Invoke.
    Held(Box<Held>),
    Errand(Box<Task>),
}

impl Purpose {
    /// Of a call of the user.
    pub(super) fn serial(&self) -> Option<u64> {
        match self {
            Self::Call { serial, .. } => Some(*serial),
            Self::Held(held) => Some(held.serial),
            Self::Errand(_) => None,
        }
    }

    /// Whether it passes as it came, and so do its results.
    pub(super) fn passes(&self) -> bool {
        match self {
            Self::Call { results, .. } => results.passed,
            Self::Held(held) => held.target.results.passed,
            Self::Errand(_) => false,
        }
    }
}

/// What is known of the interface that was called last.
pub(super) struct Known {
    /// Where its description is, and its identity there: both have to fit.
    pub(super) address: usize,
    pub(super) id: String,
    pub(super) syntax: Syntax,
    pub(super) base: u16,
    pub(super) orpc: bool,
    /// Whether it is called by IDispatch only.
    pub(super) dispatch: bool,
    /// Whether no operation's results hold their HRESULT themselves.
    pub(super) ordinary: bool,
    /// Whether it is of another contract language than MIDL.
    pub(super) foreign: bool,
    /// Number of the presentation context, once it was accepted.
    pub(super) context: Option<u16>,
    /// The object it was called of last.
    pub(super) recent: Option<Recent>,
}

/// Where the last call of an interface went: the next one mostly goes there, too.
pub(super) struct Recent {
    /// It keeps the place in memory from being another object's.
    pub(super) proxy: Weak<Proxy>,
    pub(super) ipid: Uuid,
    pub(super) minor: u16,
}
