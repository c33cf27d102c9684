//! Faults: failures and exceptions on the wire, and back.

mod read;
mod write;

pub(super) use read::{Fault, failure};
pub(super) use write::{Said, said};
