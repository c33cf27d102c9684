//! What a connecting session has to do: calls that were sent or wait, errands, and what each of them is kept by.
//!
//! A `Held` is made by `calls` or `passing` and consumed when it is sent, unless it may have to be sent
//! again: then it waits for its answer as `Purpose::Held`. A `Task` is made for an errand and consumed by its
//! answer or its failure.

use crate::activation::Activation;
use crate::exporter::Proxy;
use crate::ndr::THIS;
use crate::passing::Lead;
use crate::pdu::Syntax;
use crate::remunknown::Refs;
use everywire_model::visit::Carries;
use everywire_model::{Body, Expects, Failure, Headers, Initiator, Kind, Operation, Profile};
use std::sync::Arc;
use uuid::Uuid;

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
    Call(Box<Held>),
    /// Something that must be asked before.
    Errand(Box<Task>),
}

/// A call that cannot be sent yet.
pub(super) struct Held {
    /// The number by which the runtime knows the call.
    pub(super) serial: u64,
    pub(super) goal: Goal,
    /// Its context and object are known when it is sent.
    pub(super) target: Target,
    /// The encoded arguments, where they do not pass.
    pub(super) values: Vec<u8>,
    /// What passes, and what stands in front of it.
    pub(super) passed: Option<Box<Passed>>,
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
pub(super) enum Way {
    Open(u16),
    /// It was asked for, or has to be.
    Missing {
        asked: bool,
    },
    Refused,
}

/// An errand, and the calls that its answer answers.
pub(super) struct Task {
    pub(super) errand: Errand,
    /// Serials of the calls that end with the errand; empty for what nobody waits for, and for
    /// `Errand::Query`, whose calls are jobs.
    pub(super) waiters: Vec<u64>,
}

/// What this side asks on its own account, before or beside calls of the user.
pub(super) enum Errand {
    /// An object of a class is to be made.
    Activate {
        asked: Activation,
        profile: Profile,
        /// By the older of the two interfaces.
        old: bool,
        /// For a client of this node, which passes such requests on.
        passed: bool,
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
    pub(super) fn new(errand: Errand) -> Self {
        Self { errand, waiters: Vec::new() }
    }
}

impl Errand {
    /// Whether the answer to another errand answers this one, too. References that are granted for one caller nobody else may share.
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
pub(super) struct Passed {
    pub(super) body: Option<Body>,
    /// Extensions that replace or add to those of the body.
    pub(super) edits: Option<Headers>,
}

impl Passed {
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
        Lead::of(passed.carries(), THIS)?;
        Ok(Box::new(passed))
    }

    /// What goes out.
    pub(super) fn carries(&self) -> Carries<'_> {
        Carries { body: self.body.as_ref(), headers: self.edits.as_ref() }
    }
}
