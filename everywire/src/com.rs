//! What programs of COM have beside calls: HRESULTs by name, enumerators, values of VARIANTs as other types, classes
//! by their categories.
//!
//! ```
//! use everywire::com::{enumerators, hresult};
//!
//! let names = enumerators::strings(["Reactor.Level", "Reactor.Temperature"]);
//! assert_eq!(names.interface().name, "IEnumString");
//! assert_eq!(hresult::name(1).map(|(symbol, _)| symbol), Some("S_FALSE"));
//! ```

pub use everywire_dcom::standard::{categories, enumerators};
pub use everywire_dcom::{hresult, variant};
