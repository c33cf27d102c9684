//! Who answers where another wire was expected: what [`everywire::stranger`] finds, told with what went wrong.

pub(crate) use everywire::stranger::{Answer, Foreign, Met, Stream, connect, text};

use crate::trouble::{Trouble, VIOLATION};
use everywire::model::{Endpoint, Reference, Wire};
use everywire::wires::ALL;
use everywire::{Kind, stranger};

/// Adds to a failure which protocol answers where the object was looked for, if it is another one's.
/// That takes further connections to the peer, so it is done only for failures that may come from the
/// connection itself.
pub(crate) fn named(trouble: Box<Trouble>, reference: &Reference) -> Box<Trouble> {
    if !trouble.is_of_connection() {
        return trouble;
    }
    match stranger::diagnosis(reference, ALL) {
        None => trouble,
        // What was said at first tells more than the silence after it.
        Some(told) if told.is_silence && trouble.exit() == VIOLATION => trouble,
        Some(told) => {
            let exit = trouble.exit();
            let trouble = trouble.adding(told.found).hint(told.hint);
            if told.is_wrong_wire { trouble.as_kind(exit, Kind::WrongWire.word()) } else { trouble }
        }
    }
}

/// Which protocol is spoken at an endpoint: that of the wire that is expected is tried first.
pub(crate) fn who(expected: Option<&'static dyn Wire>, endpoint: &Endpoint) -> Met {
    stranger::who(ALL, expected, endpoint)
}
