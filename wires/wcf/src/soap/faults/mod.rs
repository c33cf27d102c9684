//! Faults: failures and exceptions on the wire, and back.
//!
//! `write` chooses code, subcode, reason and action for a failure as WCF's dispatcher does, so that clients
//! of .NET throw the exception that they would expect; `read` tells from those what a caller here should
//! do.

mod read;
mod write;

pub(super) use read::{Fault, failure};
pub(super) use write::{FaultContents, said};
