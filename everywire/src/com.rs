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

#![cfg(feature = "dcom")]

pub use everywire_dcom::standard::{categories, enumerators};
pub use everywire_dcom::{hresult, variant};

use bytes::Bytes;
use everywire_model::{Body, Budget, Context};

/// Values as they travelled in a stub, behind ORPCTHIS or ORPCTHAT, whose octets are `bytes`: for whoever looks at what others say.
#[must_use]
pub fn overheard(bytes: Bytes, little: bool) -> Body {
    Body {
        bytes,
        base: 0,
        little,
        dialect: 0,
        budget: Budget::default(),
        codec: &everywire_dcom::NDR,
        context: Context::default(),
        beside: None,
    }
}
