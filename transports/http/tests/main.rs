//! The tests of HTTP, without a wire above it: one program, a module a subject.

#![allow(clippy::unwrap_used)]

mod foreign;
mod loopback;
mod repetition;
