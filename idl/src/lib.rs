//! Contract languages in, one interface model out, and back.
//!
//! [`read`] picks the language by the file's extension; each language has a module of its own. Mistakes in a contract
//! come back as [`Diagnostics`]: several at once, each with its place, the line itself and what was expected. A
//! [`Language`] also prints contracts, those of other languages too; what it cannot say is [`Unprintable`].
//!
//! ```
//! let contract = everywire_idl::omg::parse("interface Clock { long long now(); };", "clock.idl").unwrap();
//! assert_eq!(contract.interface("Clock").unwrap().operations[0].name, "now");
//! ```

#![forbid(unsafe_code)]

pub mod dbus_xml;
mod diagnostics;
mod file;
pub mod kidl;
mod languages;
pub mod midl;
pub mod omg;
mod report;
pub mod signature;
mod unique;
pub mod wsdl;
mod xml;

pub use diagnostics::{Diagnostic, Diagnostics, Note};
pub use languages::{Language, Preprocessing, Unprintable, language_of, languages, read, read_with};
