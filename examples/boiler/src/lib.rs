//! What the contract became, and a servant of it.

mod kettle;

everywire::include_contract!("boiler");

pub use kettle::{CLASS, Kettle, TOO_HOT};
