//! The tests of the runtime: one program, a module a subject.

#![allow(clippy::unwrap_used)]

mod backward;
mod blocking;
mod callbacks;
mod calls;
mod hub;
mod hub_memory;
mod joining;
mod leaks;
mod listening;
mod order;
mod parting;
mod plain;
mod review;
mod serial;
mod sessions;
mod shares;
mod signals;
mod slow_peers;
mod starved;
mod stranger;
mod turns;
mod wire_state;
