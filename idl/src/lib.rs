//! Contract languages in, one interface model out, and back.
//!
//! [`read`] picks the language by the file's extension; each language has a module of its own. Mistakes in a contract
//! come back as [`Diagnostics`]: several at once, each with its place, the line itself and what was expected.
//!
//! ```
//! let contract = everywire_idl::omg::parse("interface Clock { long long now(); };", "clock.idl").unwrap();
//! assert_eq!(contract.interface("Clock").unwrap().operations[0].name, "now");
//! ```

#![forbid(unsafe_code)]

mod diagnostics;
mod languages;
pub mod omg;
mod report;

pub use diagnostics::{Diagnostic, Diagnostics, Note};
pub use languages::{Language, languages, read};
