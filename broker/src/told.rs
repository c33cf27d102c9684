//! What callers learn of a failure.

use crate::metrics::RouteMetrics;
use everywire::model::failure::Completed;
use everywire::{Failure, Initiator, Kind};
use everywire_model::Visit;
use prometheus_client::metrics::counter::Counter;
use std::cell::{Cell, OnceCell};

/// What is said before the reason.
const UNREADABLE: &str = "the target's answer cannot be read: ";

/// The same, where the caller's wire has no way to write the answer.
const UNTOLD: &str = "the target has answered, and its result cannot be written for the caller: ";

/// Whether a place is that of a target.
fn is_address(place: &str) -> bool {
    place.contains("://") || place.starts_with("tcp:") || place.starts_with("unix:")
}

/// A failure in words for callers. What the target said is told as it is; of what the broker saw itself, such as an address that does
/// not answer, only the kind. A place stays where it is one within values, or the servant's own word: otherwise it is the target's address.
pub(crate) fn told(failure: &Failure) -> Failure {
    let own = failure.initiator() != Initiator::Peer;
    // The broker's own word on what came from the target: an answer would have the wire's code.
    let seen = failure.code().is_none();
    let (initiator, what) = match failure.kind() {
        Kind::Violation if seen => (Initiator::Peer, "what the target sent breaks the rules of its protocol"),
        Kind::LimitExceeded if seen && failure.completed() == Completed::Maybe => {
            let what = "a message of the target is larger than the broker takes";
            let hint = "raise the broker's `max-message`, if the message is wanted";
            let told = Failure::new(Kind::LimitExceeded, Initiator::Peer, what).with_hint(hint);
            return told.with_completed(Completed::Maybe);
        }
        Kind::Unreachable | Kind::WrongWire => {
            (Initiator::Peer, "the target cannot be reached, or its connection broke")
        }
        Kind::Refused if own => (Initiator::Peer, "the broker and the target do not let each other in"),
        Kind::TimedOut if own || seen => (Initiator::Peer, "the target did not answer in time"),
        // Not malformed to the caller, who would look at the own arguments.
        Kind::Malformed if failure.completed() != Completed::No => {
            let what = format!("{UNREADABLE}{}", failure.message());
            let told = Failure::new(Kind::Violation, Initiator::Peer, what);
            return told.with_completed(failure.completed());
        }
        Kind::BadArgument | Kind::Malformed => return failure.clone(),
        _ if failure.place().is_empty() => return failure.clone(),
        _ if failure.completed() == Completed::Yes && !is_address(failure.place()) => return failure.clone(),
        _ => (failure.initiator(), failure.message()),
    };
    let mut plain = Failure::new(failure.kind(), initiator, what).with_completed(failure.completed());
    if let Some(code) = failure.code() {
        plain = plain.with_code(code);
    }
    match failure.hint() {
        Some(hint) if what == failure.message() => plain.with_hint(hint),
        _ => plain,
    }
}

/// The same failure, of results or an exception of the target's that do not decode, or that the caller's wire cannot carry, in words for
/// callers: what they have sent was read, and nothing of it was wrong.
pub(crate) fn unreadable(failure: Failure) -> Failure {
    let (kind, before) = match failure.kind() {
        Kind::Malformed => (Kind::Malformed, UNREADABLE),
        Kind::BadArgument => (Kind::Internal, UNTOLD),
        _ => return failure,
    };
    let what = format!("{before}{}", failure.message());
    let told = Failure::new(kind, Initiator::Peer, what).with_completed(Completed::Yes);
    if failure.place().is_empty() { told } else { told.at(failure.place()) }
}

/// A word for whether a call ran.
pub(crate) fn word(completed: Completed) -> &'static str {
    match completed {
        Completed::Yes => "yes",
        Completed::No => "no",
        Completed::Maybe => "maybe",
    }
}

/// Counts how a call ended, as its answer is written: before its caller can know of it.
pub(crate) struct AnswerCount<'m> {
    metrics: &'m RouteMetrics,
    /// What counts it, if the answer can be written.
    written: &'m Counter,
    counted: Cell<bool>,
    /// Why the answer could not be written.
    failure: OnceCell<Failure>,
}

impl<'m> AnswerCount<'m> {
    pub(crate) fn new(metrics: &'m RouteMetrics, written: &'m Counter) -> Self {
        Self { metrics, written, counted: Cell::new(false), failure: OnceCell::new() }
    }

    /// The values of the answer were written, or not. Returns the same in words for callers.
    ///
    /// # Errors
    /// They were not.
    pub(crate) fn note(&self, put: Visit<()>) -> Visit<()> {
        let put = put.map_err(unreadable);
        if !self.counted.replace(true) {
            match &put {
                Ok(()) => {
                    self.written.inc();
                }
                Err(failure) => {
                    self.metrics.failed(failure.kind());
                    let _ = self.failure.set(failure.clone());
                }
            }
        }
        put
    }

    /// The answer was given. Why its caller did not get it, where that is so.
    pub(crate) fn end(self) -> Option<Failure> {
        if !self.counted.get() {
            // Nobody waits for it any more.
            self.written.inc();
        }
        self.failure.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_do_not_learn_where_targets_are() {
        let answered = |place: &str| {
            let failure =
                Failure::new(Kind::LimitExceeded, Initiator::Peer, "the quota is exceeded").at(place);
            told(&failure.with_code("x").with_completed(Completed::Yes)).to_string()
        };
        for place in ["net.tcp://127.0.0.1:808/Account", "tcp:127.0.0.1:808", "unix:/run/a.sock"] {
            assert!(!answered(place).contains(place), "{}", answered(place));
        }
        // Within the values it is the caller's own matter.
        assert!(answered("orders[3].price").contains("orders[3].price"));
    }
}
