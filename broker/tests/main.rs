//! The tests of the broker.
#![allow(clippy::unwrap_used)]

mod suite;
