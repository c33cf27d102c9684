//! The dynamic caller against servers of ours on each wire, and against servers of others.

#![allow(clippy::unwrap_used)]

mod buses;
mod failures;
mod signals;
mod support;
mod wires;
