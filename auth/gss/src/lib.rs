//! Kerberos by GSS-API (RFC 2743, RFC 4121) through the system's own library, MIT's `libgssapi_krb5.so.2`.
//!
//! The library is looked for when it is first needed, so neither building nor starting a program needs it. This crate is
//! the only place that calls it; what it offers is safe: a [`Name`] and a [`Credential`] begin an [`Initiation`] or an
//! [`Acceptance`], whose tokens lead to a [`Context`], which signs and seals.
//!
//! The library reads its configuration and its tickets as ever (`$KRB5_CONFIG`, `$KRB5CCNAME`).

#![warn(unsafe_op_in_unsafe_fn)]

mod abi;
mod context;
mod credential;
mod exchange;
mod library;
mod name;
mod status;

pub use context::{Context, Part};
pub use credential::Credential;
pub use exchange::{Acceptance, Flags, Initiation, Step};
pub use library::{LIBRARY, available};
pub use name::Name;
pub use status::{Error, Reason};
