//! One object, every wire.
//!
//! Describe an interface once, implement it once, and serve it on any wire; or call an old server that nobody may touch.
//!
//! # First steps
//!
//! All examples are about this contract, `vaults.idl`. One line in `build.rs`, `everywire_codegen::compile("vaults.idl")`, and
//! `everywire::include_contract!("vaults")` make a trait of it, and the types that it uses.
//!
//! ```idl
//! module vaults {
//!   exception Overdrawn { double missing; string account; };
//!   exception Frozen {};
//!   interface Vault {
//!     double balance(in string account);
//!     void withdraw(in string account, in double amount) raises (Overdrawn, Frozen);
//!     #pragma signal taken(in string account, in double amount)
//!   };
//! };
//! ```
//!
//! **Serve.** The object implements the trait. One node may listen at addresses of any wires; port 0 is a free one.
//!
//! ```
//! # #[allow(dead_code)] mod vault { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../codegen/tests/golden/vault.rs")); }
//! # #[allow(unused_imports)]
//! # use vault::vaults::{Overdrawn, Vault, VaultTaken, WithdrawError};
//! use everywire::{Failure, Node};
//! use std::sync::Arc;
//!
//! struct Room;
//!
//! impl Vault for Room {
//!     fn balance(&self, _account: &str) -> Result<f64, Failure> {
//!         Ok(8.0)
//!     }
//!     fn withdraw(&self, account: &str, amount: f64) -> Result<(), WithdrawError> {
//!         if amount > 8.0 {
//!             return Err(Overdrawn { missing: amount - 8.0, account: account.to_owned() }.into());
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Failure> {
//! let node = Node::new();
//! node.listen("iiop://127.0.0.1:0")?;
//! node.listen("net.tcp://127.0.0.1:0?security=none")?;
//! let vault = node.export::<dyn Vault>("vault", Arc::new(Room));
//! println!("{:?}", node.addresses(vault.reference()));
//! // `node.wait()` stays until SIGTERM, and answers the calls under way.
//! # Ok(())
//! # }
//! ```
//!
//! **Call.** The caller has the same trait. Exceptions of the contract are values; everything else that goes wrong is a [`Failure`], which says
//! whether the call ran.
//!
//! ```
//! # #[allow(dead_code)] mod vault { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../codegen/tests/golden/vault.rs")); }
//! # use vault::vaults::{Overdrawn, Vault, WithdrawError};
//! # use everywire::Node;
//! # use std::sync::Arc;
//! # struct Room;
//! # impl Vault for Room {
//! #     fn balance(&self, _: &str) -> Result<f64, Failure> { Ok(8.0) }
//! #     fn withdraw(&self, account: &str, amount: f64) -> Result<(), WithdrawError> {
//! #         if amount > 8.0 { return Err(Overdrawn { missing: amount - 8.0, account: account.to_owned() }.into()); }
//! #         Ok(())
//! #     }
//! # }
//! use everywire::Failure;
//!
//! fn take(address: &str) -> Result<(), Failure> {
//!     let vault = everywire::connect::<dyn Vault>(address)?;
//!     println!("{}", vault.balance("ada")?);
//!     match vault.withdraw("ada", 10.0) {
//!         Ok(()) => println!("taken"),
//!         Err(WithdrawError::Overdrawn(overdrawn)) => println!("{} too much", overdrawn.missing),
//!         Err(WithdrawError::Frozen(_)) => println!("frozen"),
//!         Err(WithdrawError::Failure(failure)) => return Err(failure),
//!     }
//!     Ok(())
//! }
//! # fn main() -> Result<(), Failure> {
//! # let node = Node::new();
//! # node.listen("iiop://127.0.0.1:0")?;
//! # let vault = node.export::<dyn Vault>("vault", Arc::new(Room));
//! # take(&node.print_friendly(vault.reference()))
//! # }
//! ```
//!
//! **A time limit** belongs to a reference: all calls through it have it.
//!
//! ```
//! # #[allow(dead_code)] mod vault { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../codegen/tests/golden/vault.rs")); }
//! # use vault::vaults::{Overdrawn, Vault, WithdrawError};
//! # use everywire::{Failure, Node};
//! # use std::sync::Arc;
//! # struct Room;
//! # impl Vault for Room {
//! #     fn balance(&self, _: &str) -> Result<f64, Failure> { Ok(8.0) }
//! #     fn withdraw(&self, account: &str, amount: f64) -> Result<(), WithdrawError> {
//! #         if amount > 8.0 { return Err(Overdrawn { missing: amount - 8.0, account: account.to_owned() }.into()); }
//! #         Ok(())
//! #     }
//! # }
//! # fn main() -> Result<(), Failure> {
//! # let node = Node::new();
//! # node.listen("iiop://127.0.0.1:0")?;
//! # let served = node.export::<dyn Vault>("vault", Arc::new(Room));
//! # let address = node.print_friendly(served.reference());
//! use std::time::Duration;
//!
//! let vault = everywire::connect::<dyn Vault>(&address)?.with_deadline(Some(Duration::from_secs(5)))?;
//! vault.withdraw("ada", 3.0)?;
//! # Ok(())
//! # }
//! ```
//!
//! **Signals**, on wires that have them: the server emits, whoever subscribed hears.
//!
//! ```
//! # #[allow(dead_code)] mod vault { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../codegen/tests/golden/vault.rs")); }
//! # use vault::vaults::{Overdrawn, Vault, VaultTaken, WithdrawError};
//! # use everywire::{Failure, Node};
//! # use std::sync::Arc;
//! # struct Room;
//! # impl Vault for Room {
//! #     fn balance(&self, _: &str) -> Result<f64, Failure> { Ok(8.0) }
//! #     fn withdraw(&self, account: &str, amount: f64) -> Result<(), WithdrawError> {
//! #         if amount > 8.0 { return Err(Overdrawn { missing: amount - 8.0, account: account.to_owned() }.into()); }
//! #         Ok(())
//! #     }
//! # }
//! # fn main() -> Result<(), Failure> {
//! # let socket = format!("dbus+unix://{}/everywire-signals-{}.sock", std::env::temp_dir().display(), std::process::id());
//! # let server = Node::new();
//! # server.listen(&socket)?;
//! # let served = server.export::<dyn Vault>("vault", Arc::new(Room));
//! # let address = server.print_friendly(served.reference());
//! # let (tell, heard) = std::sync::mpsc::channel();
//! # let tell = std::sync::Mutex::new(tell);
//! let vault = everywire::connect::<dyn Vault>(&address)?;
//! let subscription = vault.signals().on(move |taken: VaultTaken| {
//!     println!("{} took {}", taken.account, taken.amount);
//! #     let _ = tell.lock().map(|tell| tell.send(taken.amount));
//! })?;
//! // In the server:
//! server.signaller::<dyn Vault>("vault").emit(&VaultTaken { account: "ada".to_owned(), amount: 3.0 })?;
//! # assert_eq!(heard.recv().ok(), Some(3.0));
//! # drop(subscription);
//! # Ok(())
//! # }
//! ```
//!
//! Without a contract at build time, `everywire-dynamic` calls by names, with JSON.
//!
//! # What is where
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
    Builder, Latency, LoanHandle, Monitor, Notice, Observer, PrivateConnections, Quotas, Renewal, WeakNode,
    asker, blocking, caller, hub, layer, stranger,
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
