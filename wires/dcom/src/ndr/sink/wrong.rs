//! What cannot be written, and why.
//!
//! All of these are mistakes of the caller on this side, so they blame the user and nothing was sent.

use crate::ndr::watch::{Contradiction, Subject};
use crate::violations::unsupported;
use everywire_model::visit::Visit;
use everywire_model::{Failure, Initiator};

pub(super) fn count_of(len: usize) -> Visit<u32> {
    u32::try_from(len).map_err(|_| Failure::over_limit(Initiator::User, "elements", len, u32::MAX))
}

#[cold]
pub(super) fn too_long(len: usize, bound: Option<u32>) -> Failure {
    Failure::bad_argument(format!("a length of {len} exceeds the bound of {}", bound.unwrap_or(u32::MAX)))
}

#[cold]
pub(super) fn contradicts(contradiction: &Contradiction) -> Failure {
    let Contradiction { what, said, name } = contradiction;
    match what {
        Subject::Elements(count) if name.bytes().all(|digit| digit.is_ascii_digit()) => {
            Failure::bad_argument(format!("{count} elements, where the contract says {said}"))
                .with_hint(format!("give {said} elements"))
        }
        Subject::Elements(count) => {
            Failure::bad_argument(format!("{count} elements, but `{name}`, which says how many, is {said}"))
                .with_hint(format!("give `{name}` the number of elements"))
        }
        Subject::Arm(arm) => {
            Failure::bad_argument(format!("a union of arm {arm}, but `{name}`, which chooses, is {said}"))
                .with_hint(format!("give the arm for `{name}`"))
        }
        Subject::Offset => unsupported(format_args!(
            "an array of which a part travels that begins at element {said} (`first_is({name})`)"
        )),
    }
}

#[cold]
pub(super) fn miscounted() -> Failure {
    Failure::bad_argument("a composite holds another number of values than it began with")
}
