//! The tests of the CORBA wire: one program, a module a subject.

#![allow(clippy::unwrap_used)]

mod allocations;
mod attacks;
mod both_ways;
mod cdr;
mod code_sets;
mod dialogue;
mod fragments;
mod golden;
mod long_doubles;
mod passing;
mod references;
mod request_heads;
mod support;
mod typecodes;
mod value_types;
