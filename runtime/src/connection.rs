//! A connection: a stream, the session it carries, and who waits for what on it.
//!
//! Everything that changes is behind one lock (`Core`), held for as long as it takes to move bytes between stream and
//! session, never while a servant runs or a thread sleeps.
//!
//! `state` is what a connection is made of; it knows who waits (`call_completion`, `reply_slot`, `call_gate`), its node and its place in a
//! shard. Each other file is one thing that a connection does, and knows `state`. So no file here stands both above and below
//! another: only the data of a connection, a node and a shard point to one another.

mod apart;
mod backlog;
pub(crate) mod backward;
mod call_completion;
mod call_gate;
mod call_permit;
pub(crate) mod calling;
mod company;
mod core_guard;
mod deadlines;
mod deferred_list;
mod ending;
mod handover;
mod link;
mod listening;
mod opening;
mod parting;
mod reading;
mod reply_slot;
mod resuming;
mod sending;
mod serving;
mod state;
mod unread;
mod waker;
mod weighing;

pub(crate) use call_completion::CallCompletion;
pub(crate) use call_permit::CallPermit;
pub(crate) use serving::flush_before_blocking;
pub(crate) use state::{Connection, Role, ServeOutcome, served, serves};
