//! What a status means to the caller, where no envelope came with it.
//!
//! Such responses come from the server in front of a service: IIS, a proxy, a load balancer. Whether the
//! call may be tried again is the question that `Completed` answers; a status that is given before a
//! message is dispatched says no to it for certain.

use super::content;
use crate::soap::Dialect;
use everywire_model::{Completed, Failure, Initiator, Kind};
use http::StatusCode;

/// The failure behind a response without an envelope; `body` is what the server wrote for people.
pub(super) fn explain(status: StatusCode, dialect: Dialect, address: &str, body: &[u8]) -> Failure {
    let (kind, message, hint) = match status.as_u16() {
        200..=299 => (
            Kind::Malformed,
            "the service answered without an envelope",
            "it may take this operation as one-way: compare the contracts",
        ),
        300..=399 => (
            Kind::BadReference,
            "the service is at another address",
            "use the address that the response's Location names",
        ),
        400 => (
            Kind::Violation,
            "the server did not understand the request",
            "is it a service of this binding? basic://, wshttp:// and binhttp:// speak differently",
        ),
        401 => (
            Kind::Refused,
            "the server wants to know who calls",
            "write USER:PASSWORD@ before the host; over TLS a service may want the user in the message: add ?security=username",
        ),
        403 => (
            Kind::Refused,
            "the server does not permit it",
            "the user lacks the right, or the address demands https",
        ),
        404 | 410 => (
            Kind::NoObject,
            "there is no endpoint at this address",
            "compare the path with that of the service's ?wsdl; services of IIS end in .svc, and an endpoint may have a path below",
        ),
        405 => (
            Kind::NoObject,
            "this address takes no messages",
            "is it the address of the endpoint, not of its page?",
        ),
        407 => (Kind::Refused, "a proxy wants to know who calls", "name the service directly"),
        408 => (Kind::TimedOut, "the server waited too long for the request", "call again"),
        413 => (
            Kind::LimitExceeded,
            "the request is larger than the service accepts",
            "raise MaxReceivedMessageSize (65536 by default) of the service's binding, and maxAllowedContentLength of IIS",
        ),
        415 => (
            Kind::Unsupported,
            "the service reads messages of another content type",
            "its binding differs: text/xml is basic://, application/soap+xml is wshttp://, application/soap+msbin1 is binhttp://, multipart/related is ?encoding=mtom",
        ),
        429 | 503 => (
            Kind::Busy,
            "the service is too busy, or not running",
            "try again later; behind IIS its application pool may have stopped",
        ),
        502 | 504 => {
            (Kind::Unreachable, "a gateway did not reach the service", "is the service behind it running?")
        }
        _ => (Kind::Internal, "the server failed", "its log says why; it sent no envelope"),
    };
    // The service may have done it where only the answer is missing.
    let completed = match kind {
        Kind::Malformed | Kind::Unreachable | Kind::Internal => Completed::Maybe,
        _ => Completed::No,
    };
    let text = String::from_utf8_lossy(body.get(..400).unwrap_or(body));
    let said = text.trim();
    let said =
        if said.is_empty() || said.starts_with('<') { String::new() } else { format!(": {}", clip(said)) };
    let sent = if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        format!(" ({} was sent)", content::of(dialect))
    } else {
        String::new()
    };
    Failure::new(kind, Initiator::Peer, format!("{message}{sent}{said}"))
        .with_code(format!("HTTP {status}"))
        .with_completed(completed)
        .with_hint(hint)
        .at(address)
}

/// The failure behind a 401 to a request that said who calls.
pub(super) fn wrong_login(address: &str) -> Failure {
    let hint = "compare USER:PASSWORD@ with what the service knows; it may want the user in the message: add ?security=username";
    Failure::new(Kind::Refused, Initiator::Peer, "the user or the password is wrong")
        .with_code(format!("HTTP {}", StatusCode::UNAUTHORIZED))
        .with_completed(Completed::No)
        .with_hint(hint)
        .at(address)
}

/// What a server writes may be a page, and goes to a terminal.
fn clip(text: &str) -> String {
    text.chars().take(200).map(|char| if char.is_control() { ' ' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_to_do() {
        for (status, kind, word) in [
            (401, Kind::Refused, "USER:PASSWORD"),
            (403, Kind::Refused, "right"),
            (404, Kind::NoObject, "path"),
            (413, Kind::LimitExceeded, "MaxReceivedMessageSize"),
            (415, Kind::Unsupported, "wshttp://"),
            (503, Kind::Busy, "later"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let failure = explain(status, Dialect::BASIC, "http://h/x", b"text for people");
            assert_eq!((failure.kind(), failure.completed()), (kind, Completed::No));
            assert!(
                failure.hint().unwrap().contains(word) && failure.message().contains("people"),
                "{failure}"
            );
            assert!(failure.code().unwrap().contains(status.as_str()));
        }
        let failure = wrong_login("http://h/x");
        assert!(failure.message().contains("password is wrong"), "{failure}");
    }
}
