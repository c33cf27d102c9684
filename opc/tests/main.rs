//! The tests of OPC.

mod engine;
