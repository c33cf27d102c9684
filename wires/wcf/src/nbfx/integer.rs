//! Multi-byte integers (MC-NBFX 2.1.2): seven bits a byte, the lowest first.
//!
//! Microsoft calls them MultiByteInt31. Needless bytes (a last one of zero) are refused, so each value has
//! one spelling: what was read can be compared and spliced as bytes.

pub use super::int31::put;
pub(crate) use super::int31::{parse, put_string};
use crate::violations::Violation;
use everywire_model::visit::Visit;

/// Reads one at `at`; also returns where it ends.
///
/// # Errors
/// [`Violation::Truncated`]; [`Violation::BadInteger`] above 31 bits or with needless bytes.
pub fn read(bytes: &[u8], at: usize) -> Visit<(u32, usize)> {
    match parse(bytes.get(at..).unwrap_or_default()) {
        Ok(Some((value, width))) => Ok((value, at + width)),
        Ok(None) => Err(Violation::Truncated.at(at)),
        Err(()) => Err(Violation::BadInteger.at(at)),
    }
}
