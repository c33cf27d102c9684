//! Failures that several parts of the runtime tell, in the same words.

use everywire_model::reference::escape;
use everywire_model::{Completed, Endpoint, Failure, Initiator, Kind, Method};
use std::fmt::Display;

/// The failure of everything once a node was stopped.
pub(crate) fn stopped() -> Failure {
    Failure::new(Kind::Cancelled, Initiator::User, "the node was stopped")
}

/// What a call is answered that comes while its server ends. `Busy` and not executed: a caller may try again
/// elsewhere.
pub(crate) fn ending() -> Failure {
    Failure::new(Kind::Busy, Initiator::Peer, "the server is about to end and takes no new calls")
        .with_hint("try again: the call was not executed, and a successor may be there by then")
}

/// A call took longer than its caller lets it. It may have run: the request is with the peer, who is only
/// told that nobody waits.
pub(crate) fn timed_out(endpoint: &Endpoint) -> Failure {
    Failure::new(Kind::TimedOut, Initiator::User, "no reply came before the deadline")
        .with_completed(Completed::Maybe)
        .at(endpoint)
        .with_hint("raise the deadline if the operation needs more time")
}

/// No event loop could be made: the system has no thread or descriptor for it.
pub(crate) fn no_loop(error: impl Display) -> Failure {
    Failure::new(Kind::Internal, Initiator::Here, format!("cannot start an event loop: {error}"))
}

pub(crate) fn nobody_at(endpoint: &Endpoint) -> Failure {
    let what = format!("nothing in this process answers at {endpoint}");
    Failure::new(Kind::Unreachable, Initiator::User, what)
}

/// The failure, with the operation that failed.
pub(crate) fn of_operation(failure: Failure, method: Method<'_>) -> Failure {
    failure.at(format_args!("operation {}", method.label()))
}

/// The object that was asked for is not here.
pub(crate) fn no_object(key: &[u8]) -> Failure {
    let key = escape(key);
    Failure::new(Kind::NoObject, Initiator::Peer, format!("no object has the key `{key}`"))
}

/// What the first attempt brings that does not fail, or else the last failure; nothing, if there is nothing to try.
pub(crate) fn first_of<W, T>(
    ways: impl IntoIterator<Item = W>,
    mut attempt: impl FnMut(W) -> Result<T, Failure>,
) -> Option<Result<T, Failure>> {
    let mut last = None;
    for way in ways {
        let tried = attempt(way);
        if tried.is_ok() {
            return Some(tried);
        }
        last = Some(tried);
    }
    last
}
