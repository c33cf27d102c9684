//! What callers learn of a failure.

use everywire::model::failure::Completed;
use everywire::{Failure, Initiator, Kind};

/// A failure in words for callers. What the target said is told as it is; of what the broker saw itself, such as an address that does
/// not answer, only the kind. A place stays where it is one within values, or the servant's own word: otherwise it is the target's address.
pub(crate) fn told(failure: &Failure) -> Failure {
    let own = failure.initiator() != Initiator::Peer;
    // The broker's own word on what came from the target: an answer would have the wire's code.
    let seen = failure.code().is_none() && failure.completed() == Completed::Maybe;
    let (initiator, what) = match failure.kind() {
        Kind::Violation if seen => (Initiator::Peer, "what the target sent breaks the rules of its protocol"),
        Kind::LimitExceeded if seen => {
            let what = "a message of the target is larger than the broker takes";
            let hint = "raise the broker's `max-message`, if the message is wanted";
            let told = Failure::new(Kind::LimitExceeded, Initiator::Peer, what).with_hint(hint);
            return told.with_completed(Completed::Maybe);
        }
        Kind::Unreachable | Kind::WrongWire => {
            (Initiator::Peer, "the target cannot be reached, or its connection broke")
        }
        Kind::Refused if own => (Initiator::Peer, "the broker and the target do not let each other in"),
        Kind::TimedOut if own => (Initiator::Peer, "the target did not answer in time"),
        Kind::BadArgument | Kind::Malformed => return failure.clone(),
        _ if failure.place().is_empty() || failure.completed() == Completed::Yes => return failure.clone(),
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
