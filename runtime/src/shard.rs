//! Shards: event loops, one a CPU, each serving any number of connections.
//!
//! One thread at a time *leads* a shard. It looks at the connections that were busy last, without asking the kernel
//! about the others; when nothing has come for a while it sleeps in `epoll_wait`. A servant runs on the leading thread.
//! If it blocks, it is *preempted*: another thread takes the lead, and the old one ends when its servant returns. Blocking
//! is noticed at once when it happens in a stub of ours or in [`blocking`], and by a supervisor within 10 to 45 ms
//! otherwise.
//!
//! `state` is what a shard is made of; `leader` and `threads` are what its threads do, `registration` what connections ask of it.

mod leader;
mod many_callers;
mod registration;
mod state;
mod threads;

pub use leader::blocking;
pub(crate) use leader::{Leader, about_to_block, leads_here, led_here, with_lead_of_no_call};
pub(crate) use state::{Registration, Shard};
