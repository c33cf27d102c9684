//! What those who run plants meet, and what helps.

use super::Address;
use crate::Code;
use everywire::{Failure, Kind};

/// `REGDB_E_CLASSNOTREG`.
const NOT_REGISTERED: u32 = 0x8004_0154;
/// `CO_E_CLASSSTRING`.
const NO_PROG_ID: u32 = 0x8004_01f3;
/// `RPC_S_SERVER_UNAVAILABLE`, as an HRESULT.
const UNAVAILABLE: u32 = 0x8007_06ba;
/// `CONNECT_E_CANNOTCONNECT`.
const CANNOT_CONNECT: u32 = 0x8004_0202;

/// The failure, with what to try where that is known, after what it says itself.
pub(super) fn advised(failure: Failure) -> Failure {
    let Some(hint) = hint(&failure) else { return failure };
    match failure.hint() {
        // It may pass here twice.
        Some(own) if own.contains(hint) || !is_of_connection(&failure) => failure,
        Some(own) => {
            let both = format!("{own}; {hint}");
            failure.with_hint(both)
        }
        None => failure.with_hint(hint),
    }
}

/// Whether what stands in the way is the connection, of which the wire knows less than those who run plants.
fn is_of_connection(failure: &Failure) -> bool {
    matches!(failure.kind(), Kind::Unreachable | Kind::Refused)
}

fn hint(failure: &Failure) -> Option<&'static str> {
    let code = failure.code().filter(|code| code.starts_with("0x")).map(|_| Code::of(failure).0);
    Some(match (code, failure.kind()) {
        (Some(0x8007_0005 | 5), _) | (None, Kind::Refused) => {
            "access is denied (0x80070005): the account must exist on the server's machine and have the rights of launch and activation there (dcomcnfg, group `Distributed COM Users`), and since KB5004442 calls must be signed: ?level=integrity or privacy"
        }
        (Some(UNAVAILABLE), _) | (None, Kind::Unreachable) => {
            "nobody answers there (0x800706BA): is the machine on, is its name right, and does its firewall let in port 135 and the ports of DCOM (49152 to 65535, unless dcomcnfg narrows them)?"
        }
        (Some(NOT_REGISTERED), _) => {
            "no server of this class is registered there (0x80040154): `everywire list opcda://HOST` tells which there are; a server of 32 bits may be registered for another user only"
        }
        (Some(NO_PROG_ID), _) => {
            "no server is called so there (0x800401F3): `everywire list opcda://HOST` tells which there are, or name the CLSID"
        }
        (Some(CANNOT_CONNECT), _) => {
            "the server cannot call back: no callbacks through the firewall, or it does not know the account; ?poll does without them"
        }
        _ => return None,
    })
}

/// Why an item was not read, written or told of, with what to do about it.
#[must_use]
pub fn refused(server: &Address, item: &str, code: Code) -> Failure {
    of_item(server, item, Failure::from(code))
}

/// The failure of something that was asked about an item, with what to do about it where nothing else is known.
pub(super) fn of_item(server: &Address, item: &str, failure: Failure) -> Failure {
    let known = failure.hint().is_none() && failure.code().is_some();
    match item_hint(server, item, Code::of(&failure)).filter(|_| known) {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

fn item_hint(server: &Address, item: &str, code: Code) -> Option<String> {
    let (place, item_place) = (server.without_item(), server.with_item(item));
    Some(match code {
        Code::UNKNOWN_ITEM | Code::INVALID_ITEM => format!(
            "`everywire list '{place}'` shows the items; they are written as the server writes them, upper and lower case too"
        ),
        Code::BAD_RIGHTS => {
            format!("`everywire describe '{item_place}'` tells whether it can be read and written")
        }
        Code::BAD_TYPE | Code::TYPE_MISMATCH | Code::BAD_VARTYPE | Code::RANGE | Code::OVERFLOW => {
            format!("`everywire describe '{item_place}'` tells its type and its range")
        }
        Code::INVALID_PROPERTY => format!("`everywire describe '{item_place}'` tells its properties"),
        _ => return None,
    })
}

/// Whether the server, or the connection to it, is no more: then what was got from it means nothing.
pub(super) fn is_gone(failure: &Failure) -> bool {
    matches!(failure.kind(), Kind::Unreachable | Kind::NoObject)
}

/// Whether the object is no more, or does not answer: then nobody is there to be told anything.
pub(super) fn leaves_nobody(failure: &Failure) -> bool {
    is_gone(failure) || failure.kind() == Kind::TimedOut
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire::Initiator;

    #[test]
    fn what_items_meet_says_what_to_do() {
        let address = Address::parse("opcda://ada@h/Plant.1/x?poll").expect("an address");
        let hint = |code| refused(&address, "a/b", code).hint().map(str::to_owned).unwrap_or_default();
        assert!(hint(Code::UNKNOWN_ITEM).starts_with("`everywire list 'opcda://ada@h/Plant.1?poll'`"));
        assert!(hint(Code::RANGE).starts_with("`everywire describe 'opcda://ada@h/Plant.1/a/b?poll'`"));
        assert_eq!(Code::of(&refused(&address, "x", Code::FAIL)), Code::FAIL);
    }

    #[test]
    fn what_plants_meet_is_explained() {
        for (kind, code, word) in [
            (Kind::Refused, Some("0x80070005"), "dcomcnfg"),
            (Kind::Refused, Some("0x00000005"), "dcomcnfg"),
            (Kind::Unreachable, None, "port 135"),
            (Kind::Internal, Some("0x800706ba"), "port 135"),
            (Kind::NoObject, Some("0x80040154"), "registered"),
            (Kind::Internal, Some("0x80040202"), "?poll"),
        ] {
            let failure = Failure::new(kind, Initiator::Peer, "so");
            let failure = code.into_iter().fold(failure, |failure, code| failure.with_code(code));
            let advised = advised(failure);
            assert!(advised.hint().is_some_and(|hint| hint.contains(word)), "{advised:?}");
        }
        let known = Failure::new(Kind::Unreachable, Initiator::Peer, "so").with_hint("own");
        let twice = advised(advised(known));
        assert!(
            twice
                .hint()
                .is_some_and(|hint| hint.starts_with("own; ") && hint.matches("port 135").count() == 1)
        );
        let own =
            Failure::new(Kind::NoObject, Initiator::Peer, "so").with_code("0x80040154").with_hint("own");
        assert_eq!(advised(own).hint(), Some("own"));
    }
}
