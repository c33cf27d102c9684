//! What a status means to a caller, where no answer of the service came with it.
//!
//! Such responses come from the server in front of a service: a web server, a proxy, a load balancer. Whether the
//! call may be tried again is the question that [`completed`] answers; a status that is given before a
//! request is dispatched says no to it for certain.

use everywire_model::{Completed, Kind};
use http::header::{RETRY_AFTER, VIA};
use http::{HeaderMap, StatusCode};

/// The kind of failure behind a status that is no success, and a sentence.
pub fn meaning(status: StatusCode) -> (Kind, &'static str) {
    match status.as_u16() {
        300..=399 => (Kind::BadReference, "the service is at another address"),
        400 => (Kind::Violation, "the server did not understand the request"),
        401 => (Kind::Refused, "the server wants to know who calls"),
        403 => (Kind::Refused, "the server does not permit it"),
        404 | 410 => (Kind::NoObject, "there is no endpoint at this address"),
        405 => (Kind::NoObject, "this address takes no messages"),
        407 => (Kind::Refused, "a proxy wants to know who calls"),
        408 => (Kind::TimedOut, "the server waited too long for the request"),
        413 => (Kind::LimitExceeded, "the request is larger than the service accepts"),
        415 => (Kind::Unsupported, "the service reads messages of another content type"),
        429 | 503 => (Kind::Busy, "the service is too busy, or not running"),
        502 | 504 => (Kind::Unreachable, "a gateway did not reach the service"),
        _ => (Kind::Internal, "the server failed"),
    }
}

/// Whether the call behind a response without an answer was executed. *No* stands only for what a server says before it hands
/// a request on.
pub fn completed(status: StatusCode, headers: &HeaderMap) -> Completed {
    match status.as_u16() {
        301 | 307 | 308 | 401 | 403..=405 | 407 | 410 | 413 | 415 | 429 => Completed::No,
        // A server without room says when to come again. Without that it may be a gateway whose service broke the
        // connection (Envoy), or a service that was too slow (Spring). A cache says it also of a service that broke off in the
        // middle; it says that it is between (Varnish).
        503 if headers.contains_key(RETRY_AFTER) && !headers.contains_key(VIA) => Completed::No,
        // Also 408, which a gateway says of a request that it has handed on whole (Envoy before 504 took its place),
        // 302 and 303, which lead on from what was done (RFC 9110 §15.4), and 400, which a fault of the sender has (SOAP 1.2
        // part 2, 7.5.2).
        _ => Completed::Maybe,
    }
}

/// Characters of what a server wrote that are repeated.
const SAID: usize = 400;

/// What the server wrote for people, on one line behind a colon; nothing where that is a page.
pub fn said(body: &[u8]) -> String {
    // A character takes four bytes at the most, so what is cut within one lies behind the last that is repeated.
    let text = String::from_utf8_lossy(body.get(..4 * SAID).unwrap_or(body));
    // Files of pages may begin with a byte order mark.
    match text.trim_start_matches('\u{feff}').trim() {
        said if said.is_empty() || said.starts_with('<') => String::new(),
        // It goes to a terminal.
        said => {
            let clip = said.chars().take(SAID).map(|char| if char.is_control() { ' ' } else { char });
            [':', ' '].into_iter().chain(clip).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn a_page_is_not_repeated_and_a_text_is_cut_between_characters() {
        assert_eq!(said("\u{feff}<!DOCTYPE html><title>404</title>".as_bytes()), "");
        assert_eq!(said("漢".repeat(600).as_bytes()), format!(": {}", "漢".repeat(400)));
    }
}
