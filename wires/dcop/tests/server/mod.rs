//! The server against what a real one was seen to do, and against clients that mean it no good.

#![allow(clippy::unwrap_used)]

mod attacks;
mod golden;
pub(crate) mod net;
mod routing;
mod signals;
mod trinity;
mod world;
