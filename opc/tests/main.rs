//! The tests of OPC.

mod captures;
mod engine;
mod remote;
mod server;
