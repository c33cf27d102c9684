//! The tests of TLS: one program, a module a subject.

#![allow(clippy::unwrap_used)]

mod papers;
mod sessions;
mod streams;
