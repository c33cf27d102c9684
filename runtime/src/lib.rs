//! The runtime: the only sockets, clocks and threads of Everywire.
//!
//! Sessions are without I/O; this crate drives them. It meets the wires only through their [`everywire_model::Wire`]
//! entry, and transports know nothing of wires: any wire that is a byte stream runs over TCP, Unix sockets and shared
//! memory alike.
//!
//! * [`Node`]: a process's place among others: listens, exports servants, connects to objects.
//! * *Caller's fast path*: the calling thread sends its request and reads its own reply; there is no reader thread. When
//!   several calls are under way on a connection, whoever reads hands the others theirs ([`connection`](self)).
//! * *Shards*: event loops, one a CPU, that serve any number of connections; an idle connection costs memory only. A
//!   servant that blocks is noticed, and another thread takes its shard over ([`blocking`]).
//! * *Adaptive spinning*: both sides look for the next byte for a while, yielding the CPU, before they sleep ([`Latency`]).

#![warn(unsafe_op_in_unsafe_fn)]

mod accepting;
mod alarms;
mod builder;
mod clock;
mod connection;
mod creation;
mod directory;
mod emitting;
mod failures;
mod heap;
mod hooks;
mod housekeeper;
pub mod hub;
mod joining;
pub mod layer;
mod lending;
mod links;
mod local_target;
mod memory_here;
mod monitor;
mod node;
mod notice;
mod private_connections;
mod private_count;
mod quotas;
mod reach;
mod renewal;
mod resolving;
mod shard;
mod shared;
mod shares;
mod signals;
mod spans;
mod spin_wait;
mod stopping;
pub mod stranger;
mod supervisor;
mod sync;
mod target;
mod tasks;
mod terms;
mod timers;
mod transport;
mod view;
mod worker_pool;

pub use builder::Builder;
pub use connection::backward::caller;
pub use creation::asker;
pub use lending::{LoanHandle, WeakNode};
pub use monitor::Monitor;
pub use node::Node;
pub use notice::{Notice, Observer};
pub use private_connections::PrivateConnections;
pub use quotas::Quotas;
pub use renewal::Renewal;
pub use shard::blocking;
pub use spin_wait::Latency;
