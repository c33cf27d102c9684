//! What a connecting session knows: of the connection, of what was agreed on, of what the peer has to answer;
//! and what it has to do: calls that were sent or wait, system requests, and what each of them is kept by.
//!
//! States of a presentation context (`Stage`): asked for, accepted or refused; it never goes back.
//!
//! Invariants: call numbers in `waiting` ascend (wrapping). A `QueuedCall` is made by `calls` or `passing` and
//! consumed when it is sent, unless it may have to be sent again: then it waits for its answer as
//! `Purpose::QueuedCall`. A `Task` is made for a system request and consumed by its answer or its failure.

use crate::activation::Activation;
use crate::exporter::{Exporter, Proxy};
use crate::ndr::THIS;
use crate::passing::MessagePrefix;
use crate::pdu::Syntax;
use crate::remunknown::Refs;
use crate::security::Security;
use crate::session::channel::Channel;
use crate::session::security_context::ValueContext;
use everywire_auth::security::Initiator as Authentication;
use everywire_model::visit::MessageContents;
use everywire_model::{Body, Expects, Failure, Headers, Initiator, Kind, Operation, PeerAddress, Profile};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use uuid::Uuid;

/// Protocol sequences that are offered: `ncacn_ip_tcp`.
pub(super) const PROTSEQS: [u16; 1] = [7];
/// Impersonation level RPC_C_IMP_LEVEL_IDENTIFY: the server may know who calls, but not act as the caller.
pub(super) const IDENTIFY: u32 = 2;

/// The session of a side that connects: speaks first.
#[derive(Default)]
pub struct Connecting {
    pub(super) channel: Channel,
    pub(super) security: Arc<Security>,
    pub(super) peer: PeerAddress,
    pub(super) exporter: Option<Arc<Exporter>>,
    pub(super) talk: Option<ValueContext>,
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
    pub(super) waiting: VecDeque<PendingRequest>,
    pub(super) next_call: u32,
    pub(super) next_serial: u64,
    /// What waits for a system request, for its turn, or for being let in.
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
    pub(super) known: Option<CachedInterface>,
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
pub(super) struct PendingRequest {
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
    Held(Box<QueuedCall>),
    System(Box<Task>),
}

impl Purpose {
    /// Of a call of the user.
    pub(super) fn serial(&self) -> Option<u64> {
        match self {
            Self::Call { serial, .. } => Some(*serial),
            Self::Held(held) => Some(held.serial),
            Self::System(_) => None,
        }
    }

    /// Whether it passes as it came, and so do its results.
    pub(super) fn passes(&self) -> bool {
        match self {
            Self::Call { results, .. } => results.passed,
            Self::Held(held) => held.target.results.passed,
            Self::System(_) => false,
        }
    }
}

/// What is known of the interface that was called last.
pub(super) struct CachedInterface {
    /// Where its description is, and its identity there: both have to fit.
    pub(super) address: usize,
    pub(super) id: String,
    pub(super) syntax: Syntax,
    pub(super) base: u16,
    pub(super) orpc: bool,
    /// Whether it is called by IDispatch only.
    pub(super) dispatch: bool,
    /// Of which interface the results are: IDispatch's if it is that under the identity of a dispinterface.
    pub(super) results_of: Uuid,
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

/// Where a request goes, and as what.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Target {
    pub(super) syntax: Syntax,
    pub(super) context: u16,
    pub(super) opnum: u16,
    pub(super) object: Option<Uuid>,
    /// Minor version of ORPC.
    pub(super) minor: u16,
    pub(super) results: Results,
}

/// How the results of a method are held.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Results {
    /// Whether ORPCTHAT stands before them, as ORPCTHIS does before the arguments.
    pub(super) orpc: bool,
    /// Whether they end with an HRESULT that is the wire's.
    pub(super) hresult: bool,
    /// Whether the interface is of another contract language than MIDL.
    pub(super) foreign: bool,
    /// Whether they pass as they came, as the call does, of which nobody here knows the operation.
    pub(super) passed: bool,
}

/// What stands in the queue of a connection until a presentation context, an IPID or a way is known.
pub(super) enum Job {
    /// A call of the user.
    Call(Box<QueuedCall>),
    /// Something that must be asked before.
    System(Box<Task>),
}

/// A call that cannot be sent yet.
pub(super) struct QueuedCall {
    /// The number by which the runtime knows the call.
    pub(super) serial: u64,
    pub(super) goal: Goal,
    /// Its context and object are known when it is sent.
    pub(super) target: Target,
    /// The encoded arguments, where they do not pass.
    pub(super) values: Vec<u8>,
    /// What passes, and what stands in front of it.
    pub(super) passed: Option<Box<OpaqueCall>>,
    /// Whether an answer comes; a call without one is forgotten as soon as it is sent.
    pub(super) expects: Expects,
    /// What Invoke was asked for, if it is called.
    pub(super) operation: Option<Box<Operation>>,
}

/// What a held call goes to. The IPID of a proxy is looked up when the call is sent: it may have to be asked
/// for first.
pub(super) enum Goal {
    /// An object of which this process has a proxy.
    Object(Arc<Proxy>),
    /// An interface of the node, or an IPID that somebody else counts references of.
    Node {
        object: Option<Uuid>,
        /// Of procedures: the way by which they are looked for.
        way: Option<Arc<Profile>>,
    },
}

/// What became of a job that was looked at.
pub(super) enum Progress {
    /// It was sent, or is over.
    Done,
    /// It waits on.
    Waits(Job),
    /// It waits, and this must be asked for it.
    Needs(Job, Box<Task>),
}

/// What is known about an interface's presentation context.
pub(super) enum ContextState {
    Open(u16),
    /// It was asked for, or has to be.
    Missing {
        asked: bool,
    },
    Refused,
}

/// A system request, and the calls that its answer answers.
pub(super) struct Task {
    pub(super) request: SystemRequest,
    /// Serials of the calls that end with the request; empty for what nobody waits for, and for
    /// `SystemRequest::Query`, whose calls are jobs.
    pub(super) waiters: Vec<u64>,
}

/// What this side asks on its own account, before or beside calls of the user.
pub(super) enum SystemRequest {
    /// An object of a class is to be made.
    Activate {
        asked: Activation,
        profile: Profile,
        /// By the older of the two interfaces.
        old: bool,
        /// For a client of this node, which passes such requests on.
        passed: bool,
        /// What goes in front of it then.
        lead: Option<MessagePrefix<'static>>,
    },
    /// Interfaces of an object for somebody else.
    QueryFor { proxy: Arc<Proxy>, iids: Vec<Uuid> },
    /// Where an object is.
    Resolve { proxy: Arc<Proxy>, profile: Profile },
    /// An interface of an object; calls that wait for it are among the jobs.
    Query { proxy: Arc<Proxy>, iid: Uuid },
    /// Where procedures are served.
    Map { syntax: Syntax, profile: Arc<Profile> },
    /// Whether there is anybody: ServerAlive.
    Alive,
    /// References are given back; nobody waits.
    Release { node: Uuid, minor: u16, refs: Vec<Refs> },
}

impl Task {
    pub(super) fn new(request: SystemRequest) -> Self {
        Self { request, waiters: Vec::new() }
    }
}

impl SystemRequest {
    /// Whether the answer to another system request answers this one, too. References that are granted for one caller nobody else may share.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Activate { asked, passed: false, .. },
                Self::Activate { asked: other, passed: false, .. },
            ) => (asked.clsid, &asked.iids) == (other.clsid, &other.iids),
            (Self::Resolve { proxy, .. }, Self::Resolve { proxy: other, .. }) => Arc::ptr_eq(proxy, other),
            (Self::Query { proxy, iid }, Self::Query { proxy: other, iid: i }) => {
                iid == i && Arc::ptr_eq(proxy, other)
            }
            _ => false,
        }
    }

    /// Whether it is the call itself that somebody waits for, and not what a call needs.
    pub(super) fn is_call(&self) -> bool {
        matches!(self, Self::Activate { .. } | Self::QueryFor { .. })
    }
}

/// What is kept of a call that passes, or that has headers beside its values.
pub(super) struct OpaqueCall {
    pub(super) body: Option<Body>,
    /// Extensions that replace or add to those of the body.
    pub(super) edits: Option<Headers>,
}

impl OpaqueCall {
    /// Headers beside values.
    ///
    /// # Errors
    /// The call is one of plain RPC.
    pub(super) fn beside(headers: Headers, orpc: bool) -> Result<Box<Self>, Failure> {
        if !orpc {
            let what = "calls of plain RPC have no headers";
            return Err(Failure::new(Kind::Unsupported, Initiator::User, what));
        }
        let passed = Self { body: None, edits: Some(headers) };
        // What is no extension is told now, and not when its turn comes.
        MessagePrefix::of(passed.carries(), THIS)?;
        Ok(Box::new(passed))
    }

    /// What goes out.
    pub(super) fn carries(&self) -> MessageContents<'_> {
        MessageContents { body: self.body.as_ref(), headers: self.edits.as_ref() }
    }
}
