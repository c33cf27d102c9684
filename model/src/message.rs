//! Messages: what goes out on a connection, what comes in, and how it is answered.
//!
//! A body is values, or bytes that came by another connection of the same wire and are passed on as they are.
//! Whoever passes one on needs no contract: the operation is named in the wire's own words (`Method::Named`),
//! exceptions and failures come back with their bytes (`Encoded`), and headers travel beside
//! (`crate::Headers`).
//!
//! Who says what. A caller's session is given a `Call` and later yields its `Outcome`; a servant's session
//! yields an `Incoming` and is given an `Answer`. Signals are an `Emission` on one side and an `Incoming`
//! without an answer on the other; a `SignalFilter` says which of them are asked for.
//!
//! Invariants.
//! * What goes out is borrowed, and written before the session returns; what comes in is owned, and its
//!   octets are shared with the buffer that they came in.
//! * A `CallId` names one call on one connection in one direction, and nothing beyond that. `CallId::NONE` is
//!   never answered.
//! * What is passed on leaves as it came. A session of another wire has the same in our words beside it
//!   (`Answer::Passed`), and where there are none, says that the contract is needed
//!   (`needs_contract`).

use crate::body::Body;
use crate::contract::{Interface, Operation, Signal};
use crate::failure::Failure;
use crate::profile::Profile;
use crate::reference::Reference;
use crate::shape::Struct;
use crate::visit::Encode;
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

pub use crate::failure::needs_contract;

/// What to ask an object.
#[derive(Clone, Copy)]
pub enum Method<'a> {
    /// An operation whose contract is here.
    Typed {
        /// The interface that the operation is of, where it is known.
        interface: Option<&'a Interface>,
        /// The operation.
        operation: &'a Operation,
    },
    /// An operation that nobody here knows, in the words of the wire that it came by ([`Incoming::interface`],
    /// [`Incoming::operation`]). Its arguments are a body of that wire, passed on.
    Named {
        /// The interface's name on the wire; empty where the wire or the caller names none.
        interface: &'a [u8],
        /// The operation's name on the wire.
        operation: &'a [u8],
    },
}

impl<'a> Method<'a> {
    /// The interface and the operation.
    ///
    /// # Errors
    /// Nobody here knows them, and this wire cannot call without ([`crate::Kind::Unsupported`]).
    #[inline]
    pub fn typed(self) -> Result<(Option<&'a Interface>, &'a Operation), Failure> {
        match self {
            Self::Typed { interface, operation } => Ok((interface, operation)),
            Self::Named { .. } => Err(needs_contract("a call of an operation that nobody here knows")),
        }
    }

    /// The interface, where its contract is here.
    pub fn interface(self) -> Option<&'a Interface> {
        match self {
            Self::Typed { interface, .. } => interface,
            Self::Named { .. } => None,
        }
    }

    /// The operation's name on wires that send names.
    pub fn name(self) -> &'a [u8] {
        match self {
            Self::Typed { operation, .. } => operation.name.as_bytes(),
            Self::Named { operation, .. } => operation,
        }
    }

    /// The operation's name for people.
    pub fn label(self) -> Cow<'a, str> {
        match self {
            Self::Typed { operation, .. } => Cow::Borrowed(&*operation.label),
            Self::Named { operation, .. } => String::from_utf8_lossy(operation),
        }
    }

    /// Whether the contract says that there is no reply.
    pub fn is_oneway(self) -> bool {
        match self {
            Self::Typed { operation, .. } => operation.oneway,
            Self::Named { .. } => false,
        }
    }
}

/// A call to send.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The object.
    pub profile: &'a Profile,
    /// What to ask it.
    pub method: Method<'a>,
    /// With what: values, or a body that is passed on as it came, and the headers beside it ([`Encode::carries`]).
    pub arguments: &'a dyn Encode,
    /// Whether a reply is wanted.
    pub expects: Expects,
}

/// Whether the caller wants a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expects {
    /// Yes.
    Reply,
    /// No.
    Nothing,
}

/// What came in: a call, or a signal, which nobody waits to be answered.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// To answer; of a signal, [`CallId::NONE`].
    pub id: CallId,
    /// Who sent it, in the wire's terms, where a router stands between, or where users share the connection ([`crate::Peer::shared`]); mostly
    /// empty.
    pub sender: Bytes,
    /// The key of the object that is called, or that has emitted the signal.
    pub key: Bytes,
    /// The interface's name on the wire; empty where the wire or the sender names none.
    pub interface: Bytes,
    /// The operation's or the signal's name on the wire.
    pub operation: Bytes,
    /// The arguments.
    pub body: Body,
    /// Whether the peer waits for an answer.
    pub expects: Expects,
}

impl Incoming {
    /// A signal of the object with this key, by its names on the wire.
    pub fn signal(sender: Bytes, key: Bytes, interface: Bytes, signal: Bytes, body: Body) -> Self {
        let (id, expects) = (CallId::NONE, Expects::Nothing);
        Self { id, sender, key, interface, operation: signal, body, expects }
    }

    /// A signal as it came, to be emitted by whoever passes it on.
    pub fn emission(&self) -> Emission<'_> {
        let topic = Topic::Named { interface: &self.interface, signal: &self.operation };
        Emission { key: &self.key, topic, arguments: &self.body }
    }
}

/// Names one call on one connection. Calls of both directions are numbered apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

impl CallId {
    /// Of what is never answered.
    pub const NONE: Self = Self(u64::MAX);
}

/// A signal to send.
#[derive(Clone, Copy)]
pub struct Emission<'a> {
    /// The key of the object that emits it.
    pub key: &'a [u8],
    /// Which.
    pub topic: Topic<'a>,
    /// With what: values, or a body that is passed on as it came, and the headers beside it ([`Encode::carries`]).
    pub arguments: &'a dyn Encode,
}

impl<'a> Emission<'a> {
    /// Of a signal of a contract.
    pub fn typed(
        key: &'a [u8],
        interface: &'a Interface,
        signal: &'a Signal,
        arguments: &'a dyn Encode,
    ) -> Self {
        Self { key, topic: Topic::Typed { interface, signal }, arguments }
    }
}

/// Which signal of which interface.
#[derive(Clone, Copy)]
pub enum Topic<'a> {
    /// One whose contract is here.
    Typed {
        /// The interface that the signal is of.
        interface: &'a Interface,
        /// The signal.
        signal: &'a Signal,
    },
    /// One that nobody here knows, in the words of the wire that it came by ([`Incoming::interface`],
    /// [`Incoming::operation`]).
    Named {
        /// The interface's name on the wire; may be empty.
        interface: &'a [u8],
        /// The signal's name on the wire.
        signal: &'a [u8],
    },
}

impl<'a> Topic<'a> {
    /// The interface and the signal.
    ///
    /// # Errors
    /// Nobody here knows them, and this wire cannot tell of a signal without ([`crate::Kind::Unsupported`]).
    pub fn typed(self) -> Result<(&'a Interface, &'a Signal), Failure> {
        match self {
            Self::Typed { interface, signal } => Ok((interface, signal)),
            Self::Named { .. } => Err(needs_contract("a signal that nobody here knows")),
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone)]
pub enum Outcome<B> {
    /// With results.
    Done(B),
    /// With an exception that the contract names. On the heap, so that other outcomes are small.
    Raised(Box<Raised<B>>),
    /// With a failure.
    Failed(Failure),
    /// The object is elsewhere: ask there.
    Moved(Reference),
}

/// An exception that a call ended with.
#[derive(Debug, Clone)]
pub struct Raised<B> {
    /// The exception's identity, or its name on wires that send names.
    pub id: String,
    /// Its fields.
    pub body: B,
    /// What the peer says of it to people, beside its fields; empty where it says nothing, and where the text is one of the fields.
    pub text: String,
    /// As it came, where the call was passed on.
    pub encoded: Option<Arc<Encoded>>,
}

/// An exception or a failure in the bytes of the wire that it came by, for whoever passes it on.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// The exception's identity or the failure's code, as the wire spells it; empty where it is in the body.
    pub id: String,
    /// Whether it is an exception of a contract, and not a failure.
    pub raised: bool,
    /// What came behind.
    pub body: Body,
}

/// A failure carries what the wire that it came by said, for whoever passes it on.
impl Failure {
    /// The same failure as it came, for whoever passes it on.
    #[must_use]
    pub fn with_encoded(self, encoded: Encoded) -> Self {
        self.with_original(Arc::new(encoded))
    }

    /// As it came, where the call was passed on.
    pub fn encoded(&self) -> Option<&Encoded> {
        self.original()?.downcast_ref()
    }
}

impl<B> Outcome<B> {
    /// With this exception.
    pub fn raised(id: impl Into<String>, body: B) -> Self {
        Self::Raised(Box::new(Raised { id: id.into(), body, text: String::new(), encoded: None }))
    }
}

/// Which signals of an object somebody listens to.
#[derive(Debug, Clone, Copy, Default)]
pub struct SignalFilter<'a> {
    /// Those of this interface; `None`: of all.
    pub interface: Option<&'a Interface>,
    /// This one; `None`: all.
    pub signal: Option<&'a Signal>,
}

/// How a call is answered.
#[derive(Clone, Copy)]
pub enum Answer<'a> {
    /// With results; also the answer to a probe for an object that is here.
    Done(&'a dyn Encode),
    /// With an exception that the contract names.
    Raised {
        /// The exception.
        shape: &'a Struct,
        /// Its fields, as one struct.
        fields: &'a dyn Encode,
    },
    /// With a failure.
    Failed(&'a Failure),
    /// The object is elsewhere.
    Moved(&'a Reference),
    /// With an exception or a failure of another hop, as it came. A session of another wire answers with `failure` instead.
    Passed {
        /// As it came.
        encoded: &'a Encoded,
        /// The same in our words.
        failure: &'a Failure,
    },
}
