//! What callers learn of a failure.

use everywire::model::failure::Completed;
use everywire::{Failure, Initiator, Kind};

/// What is said before the reason.
const UNREADABLE: &str = "the target's answer cannot be read: ";

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

/// The same failure, of results or an exception of the target's that do not decode, in words for callers: what they have sent was read.
pub(crate) fn unreadable(failure: Failure) -> Failure {
    if failure.kind() != Kind::Malformed {
        // The caller's wire cannot carry them.
        return failure;
    }
    let what = format!("{UNREADABLE}{}", failure.message());
    let told = Failure::new(Kind::Malformed, Initiator::Peer, what).with_completed(Completed::Yes);
    if failure.place().is_empty() { told } else { told.at(failure.place()) }
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
