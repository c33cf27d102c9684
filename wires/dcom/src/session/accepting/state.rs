//! What an accepting session knows: of the connection, of what was agreed on, and of the calls that it has to answer.
//!
//! Each field is owned by the session alone; nothing of it is shared but the exporter, which outlives
//! connections.

use crate::activation::Activation;
use crate::exporter::{Exporter, IpidEntry};
use crate::pdu::Syntax;
use crate::remunknown::Query;
use crate::security::{Level, Security};
use crate::session::channel::Channel;
use crate::session::security_context::ValueContext;
use crate::session::values::End;
use bytes::Bytes;
use everywire_auth::security::Acceptor;
use everywire_model::{PeerAddress, Profile};
use std::sync::Arc;
use uuid::Uuid;

/// The session of a side that was connected to: waits for a bind.
pub struct Accepting {
    pub(super) channel: Channel,
    /// What this place demands.
    pub(super) place: Arc<Security>,
    /// The way to it.
    pub(super) way: Profile,
    /// How references are called that nobody in particular sends.
    pub(super) back: Arc<Security>,
    /// Text of this place's port, which a bind_ack tells.
    pub(super) port: Vec<u8>,
    pub(super) peer: PeerAddress,
    /// Whether the peer is on this machine.
    pub(super) local: bool,
    /// Where it ends here.
    pub(super) end: End,
    pub(super) exporter: Option<Arc<Exporter>>,
    /// For callers that nobody knows.
    pub(super) talk: Option<ValueContext>,
    /// Association group, once one was joined.
    pub(super) group: Option<u32>,
    /// The fragment size that was agreed on.
    pub(super) size: u16,
    /// Whether the rest of an orphaned call need not come.
    pub(super) keeps_on_orphan: bool,
    /// Whether the client takes faults that are signed.
    pub(super) signs_faults: bool,
    /// What a fault about the request that is looked at is told of.
    pub(super) blame: FaultTarget,
    pub(super) contexts: Vec<Presentation>,
    pub(super) admissions: Vec<Admission>,
    /// Calls taken and not answered; their serials ascend.
    pub(super) serving: Vec<InboundCall>,
    /// How many of them get no reply.
    pub(super) unheard: usize,
    /// How many of them are withdrawn.
    pub(super) withdrawn: usize,
    pub(super) next_serial: u64,
    /// What the management interface counts, not yet told to it: calls that came, and answers sent.
    pub(super) counted: [u32; 2],
    /// Whether it was told that this peer calls at too low a level.
    pub(super) told_level: bool,
    /// There is no place for this peer: its bind is refused.
    pub(super) turned_away: bool,
    /// What the last call's IPID stood for: most calls go where the last one went.
    pub(super) last: Option<(Uuid, IpidEntry)>,
}

/// A presentation context.
pub(super) struct Presentation {
    pub(super) id: u16,
    pub(super) syntax: Syntax,
    /// The interface as the peer names it, 16 bytes in wire order.
    pub(super) interface: Bytes,
    /// What its calls go to.
    pub(super) target: Target,
    /// Whether it is IRemUnknown, by either name.
    pub(super) node: bool,
    /// Whether no operation's results hold their HRESULT themselves.
    pub(super) ordinary: bool,
    /// Whether it is derived from IDispatch, once that mattered.
    pub(super) dispatches: Option<bool>,
}

/// What the calls by a presentation context go to.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// Objects, with ORPCTHIS.
    Objects,
    /// What makes objects, with ORPCTHIS.
    Activation,
    /// The node itself, as plain DCE/RPC.
    Node,
    /// The object under this key, whose procedures are called as plain DCE/RPC.
    Procedures(Bytes),
}

/// Where a fault points to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FaultTarget {
    pub(super) call: u32,
    pub(super) context: u16,
    /// Whether fragments of another call were missing: whatever is wrong then is an error of the protocol.
    pub(super) crowded: bool,
}

/// A security context that is being made, or that was refused.
pub(super) struct Admission {
    pub(super) id: u32,
    pub(super) mechanism: u8,
    pub(super) level: Level,
    /// It began with the bind, so that calls without a trailer come by it.
    pub(super) first: bool,
    /// `None`: refused.
    pub(super) acceptor: Option<Box<dyn Acceptor>>,
}

/// A call of the peer.
pub(super) struct InboundCall {
    /// The number that the runtime knows the call by: unique on this connection, unlike `call`, which the
    /// client chooses.
    pub(super) serial: u64,
    pub(super) call: u32,
    pub(super) context: u16,
    /// Index in `Channel::shields` of the context by which it came, and by which its answer is protected.
    pub(super) shield: Option<usize>,
    /// The object that was called, as the node knows it; empty for the node itself.
    pub(super) key: Bytes,
    pub(super) iid: Uuid,
    pub(super) opnum: u16,
    /// Whether ORPCTHIS came before its values, so that ORPCTHAT and an HRESULT belong to the answer.
    pub(super) orpc: bool,
    /// Whether results hold their HRESULT themselves.
    pub(super) keeps_hresult: bool,
    /// Whether the interface is of another contract language than MIDL.
    pub(super) foreign: bool,
    /// Whether the client waits for an answer.
    pub(super) replies: bool,
    /// Withdrawn: the answer will be dropped. The entry stays until then, so that withdrawing calls does not let a peer
    /// have more of them executed at a time than the limit.
    pub(super) cancelled: bool,
    /// What was asked for that is elsewhere, and is answered with references of this node's.
    pub(super) hop: Option<Box<RemoteQuery>>,
}

/// What was asked for that is elsewhere.
pub(super) enum RemoteQuery {
    /// An object of a class.
    Object {
        activation: Activation,
        /// By the older of the two interfaces.
        old: bool,
    },
    /// Interfaces of an object.
    Interfaces {
        query: Query,
        /// By RemQueryInterface2.
        second: bool,
    },
}
