//! Helpers of the tests that span rooms.

#![forbid(unsafe_code)]

pub mod peers;
