//! The tests of authentication: one program, a module a subject.

#![allow(clippy::unwrap_used)]

mod attacks;
mod client;
mod ice;
mod keyring;
mod nns;
mod pairs;
mod real_clients;
mod real_server;
mod real_streams;
mod security;
mod server;
mod support;
