//! What those who run plants meet, and what helps.

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

/// Whether the server, or the connection to it, is no more: then what was got from it means nothing.
pub(super) fn is_gone(failure: &Failure) -> bool {
    matches!(failure.kind(), Kind::Unreachable | Kind::NoObject)
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire::Initiator;

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
