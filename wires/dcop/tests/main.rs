//! The tests of the DCOP wire: one program, a module a subject.

#![allow(clippy::unwrap_used)]

mod allocations;
mod attacks;
mod dialogue;
mod golden;
mod passing;
mod references;
mod server;
mod server_allocations;
mod support;
mod trees;
mod trinity;
mod values;
