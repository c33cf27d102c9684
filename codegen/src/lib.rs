//! From a contract to code: stubs and skeletons that people like to read.
//!
//! In a build script:
//!
//! ```no_run
//! everywire_codegen::compile("contracts/account.idl");
//! ```
//!
//! and in the program `everywire::include_contract!("account");`. The same text comes from
//! [`rust::generate`] for any [`everywire_model::Contract`]. `docs/generated-code.md` describes what is generated.

#![forbid(unsafe_code)]

pub mod build;
mod names;
mod page;
pub mod rust;

pub use build::{Builder, compile};
pub use rust::Options;
