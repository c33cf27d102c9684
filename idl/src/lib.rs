//! Contract languages in, one interface model out, and back.
//!
//! [`read`] picks the language by the file's extension; each language has a module of its own. Mistakes in a contract
//! come back as [`Diagnostics`]: several at once, each with its place, the line itself and what was expected. A
//! [`Language`] also prints contracts, those of other languages too; what it cannot say is [`Unprintable`].
//!
//! Each language is a feature, all of them on by default: `omg`, `midl`, `dbus-xml`, `kidl`, `wsdl`.
//!
//! ```
//! let contract = everywire_idl::omg::parse("interface Clock { long long now(); };", "clock.idl").unwrap();
//! assert_eq!(contract.interface("Clock").unwrap().operations[0].name, "now");
//! ```

#![forbid(unsafe_code)]
// What several languages share has parts that a single one does not need.
#![cfg_attr(
    not(all(feature = "dbus-xml", feature = "kidl", feature = "midl", feature = "omg", feature = "wsdl")),
    allow(dead_code)
)]

#[cfg(feature = "dbus-xml")]
pub mod dbus_xml;
mod diagnostics;
mod empty;
#[cfg(any(feature = "dbus-xml", feature = "kidl", feature = "wsdl"))]
pub mod encoding;
mod file;
#[cfg(feature = "kidl")]
pub mod kidl;
mod languages;
#[cfg(feature = "midl")]
pub mod midl;
#[cfg(feature = "omg")]
pub mod omg;
#[cfg(any(feature = "midl", feature = "omg"))]
mod order;
mod preprocessing;
#[cfg(any(feature = "midl", feature = "omg"))]
mod raised;
#[cfg(any(feature = "midl", feature = "omg", feature = "wsdl"))]
mod read_cache;
mod report;
#[cfg(feature = "dbus-xml")]
pub mod signature;
mod unique;
mod unprintable;
#[cfg(feature = "wsdl")]
pub mod wsdl;
#[cfg(any(feature = "dbus-xml", feature = "kidl", feature = "wsdl"))]
mod xml;

pub use diagnostics::{Diagnostic, Diagnostics, Note};
pub use languages::{Language, language_of, languages, read, read_with};
pub use preprocessing::Preprocessing;
pub use unprintable::Unprintable;
