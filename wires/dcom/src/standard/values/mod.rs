//! Values between two servants of this process: arguments that came as VARIANTs, results that leave as such.
//!
//! They never were a stub: references in them count no holder, as they would if they were marshalled in between.

mod collect;
mod source;

pub(super) use collect::{collect, collect_results};
pub(crate) use source::body_of;

use everywire_model::{Failure, Initiator, Kind};

/// Values are visited against the grammar, or do not fit.
#[cold]
fn misfit(what: &str) -> Failure {
    Failure::new(Kind::BadArgument, Initiator::Here, format!("values do not fit their shapes: {what}"))
}
