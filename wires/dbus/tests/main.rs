//! The tests of the D-Bus wire: one program, a module a subject.

#![allow(clippy::unwrap_used)]

mod allocations;
mod attacks;
mod bus;
mod captures;
mod common;
mod passing;
mod sessions;
mod strangers;
mod values;
