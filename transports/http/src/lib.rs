//! HTTP/1.1 as a layer of transport, without I/O: bytes in, bytes out.
//!
//! * [`Server`] takes what came, yields requests whole, and writes the answers. It bounds heads, bodies, what is sent
//!   ahead and how slowly something may come; a [`RequestFilter`] answers what needs no body. Heads that come again are known
//!   again, with what its user made of them.
//! * [`Client`] takes a request, and yields the response whole, or why there is none.
//! * [`basic`] says and reads who calls, [`coding`] and [`media_type`] read what headers say of a body, [`statuses`]
//!   says what a status means to a caller.
//!
//! Requests and responses are those of the crate `http`: a method, a path and headers, with a body of bytes. What they
//! mean is their user's affair. A connection carries one request at a time: the next one is looked at when the one
//! before it has its answer. TLS is another layer, below this one.

#![forbid(unsafe_code)]

pub mod basic;
mod body;
mod chunks;
mod client;
pub mod coding;
mod head_cache;
mod heads;
pub mod media_type;
mod pipe;
mod request_slot;
mod server;
pub mod statuses;
pub mod violations;

pub use client::{Client, ClientOutcome};
pub use head_cache::PostHead;
pub use heads::MAX_HEAD;
pub use request_slot::RequestFilter;
pub use server::{BODY_RATE, Bounds, HEAD_TIME, MAX_PIPELINED, Server, ServerEvent};
pub use violations::ProtocolError;
