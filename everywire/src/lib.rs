//! One object, every wire.
//!
//! Describe an interface once, implement it once, and serve it on any wire; or call an old server that nobody may touch.
//!
//! ```no_run
//! use everywire::Node;
//!
//! let node = Node::new();
//! let address = node.listen("iiop://127.0.0.1:2809")?;
//! println!("serving at {address}");
//! # Ok::<(), everywire::Failure>(())
//! ```
//!
//! * [`Node`] listens, exports servants, and connects to objects; [`connect`] does so with a node of its own.
//! * Stubs, skeletons and types are generated from a contract at build time; [`include_contract!`] takes them in.
//! * The crate `everywire-dynamic` calls objects whose types are known no earlier than at run time: JSON in, JSON out.
//! * [`model`] is the neutral core, [`wires`] the list of wires.
//! * Each wire is a feature of this crate, all of them on by default. Turn them off, and on again those that you need: a program for one
//!   wire is built from a third of the crates. The feature `tracing`, off by default, makes calls spans of the crate of that name.
//!
//! The guide is in `docs/guide.md`.

#![forbid(unsafe_code)]

pub mod com;
pub mod wires;

pub use async_trait::async_trait;
pub use bytes;
pub use bytes::Bytes;
pub use everywire_model as model;
pub use everywire_model::{
    Failure, Initiator, Interface, Kind, Limits, Object, Ref, Reference, Remote, SignalEvent, Signaller,
    Subscription, Success, Value, signal::Audience,
};
pub use everywire_runtime::{
    Apart, Builder, Latency, Lent, Monitor, Notice, Observer, Quotas, WeakNode, blocking, caller, hub, layer,
    stranger,
};

use std::ops::Deref;
use std::sync::OnceLock;

/// A process's place among others, speaking every wire. See [`everywire_runtime::Node`] for what it can do.
#[derive(Clone)]
pub struct Node(everywire_runtime::Node);

impl Node {
    /// A node with the usual settings.
    #[must_use]
    pub fn new() -> Self {
        Self(Self::builder().build())
    }

    /// Settings for a node.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new(wires::ALL)
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}

impl From<everywire_runtime::Node> for Node {
    fn from(node: everywire_runtime::Node) -> Self {
        Self(node)
    }
}

impl Deref for Node {
    type Target = everywire_runtime::Node;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A typed reference to an object, from text in any notation of any wire, through a node that all such calls share.
///
/// # Errors
/// The text is no reference. Whether the object can be reached shows at the first call.
pub fn connect<I: Remote + ?Sized>(reference: &str) -> Result<Ref<I>, Failure> {
    shared().connect(reference)
}

/// An untyped object, from text in any notation of any wire.
///
/// # Errors
/// The text is no reference.
pub fn object(reference: &str) -> Result<Object, Failure> {
    shared().object(reference)
}

fn shared() -> &'static Node {
    static NODE: OnceLock<Node> = OnceLock::new();
    NODE.get_or_init(Node::new)
}

/// Takes in what the build script generated from `contracts/NAME.idl`: `everywire::include_contract!("account");`
#[macro_export]
macro_rules! include_contract {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
