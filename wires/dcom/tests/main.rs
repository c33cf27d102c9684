//! The tests of the DCOM wire: one program, a module a subject.

#![allow(clippy::unwrap_used)]

mod attacks;
mod captures;
mod common;
mod deferral;
mod dialogue;
mod exporter;
mod golden;
mod hostile;
mod ndr_automation;
mod ndr_oracle;
mod ndr_rows;
mod ndr_sizes;
mod ndr_unions;
mod ndr_variants;
mod ndr_words;
mod passing;
mod review;
mod sessions_allocations;
mod sessions_golden;
mod sessions_kinds;
mod standard;
mod support;
mod told;
