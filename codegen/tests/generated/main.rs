//! Generated code: that the recorded files compile without a warning, and that they work.

#![allow(clippy::unwrap_used)]

// Generated code names the runtime as `::everywire`; here that is this crate.
extern crate self as everywire;
pub use async_trait::async_trait;
pub use everywire_model as model;

/// The contract of the races.
#[deny(warnings)]
pub mod bench {
    include!("../golden/bench.rs");
}

/// Every construct that code is generated for.
#[deny(warnings)]
pub mod everything {
    include!("../golden/everything.rs");
}

/// Shapes that other contract languages have.
#[deny(warnings)]
pub mod foreign {
    include!("../golden/foreign.rs");
}

mod build;
mod calls;
mod foreign_contract;
mod memory;
mod values;
