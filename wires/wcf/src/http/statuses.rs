//! What a status means to the caller, where no envelope came with it: HTTP's meaning, and what to do in terms of WCF.

use super::content;
use crate::soap::{Dialect, Form, Soap};
use everywire_http::statuses::{completed, meaning, said};
use everywire_model::{Completed, Failure, Initiator, Kind};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, StatusCode};

/// The failure behind a response without an envelope; `body` is what the server wrote for people.
pub(super) fn explain(
    status: StatusCode,
    headers: &HeaderMap,
    dialect: Dialect,
    address: &str,
    body: &[u8],
) -> Failure {
    let (kind, message) = if status.is_success() {
        (Kind::Malformed, "the service answered without an envelope")
    } else {
        meaning(status)
    };
    let sent = if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        format!(" ({} was sent)", content::of(dialect))
    } else if status.is_redirection() {
        // It is another's text as the page is, and bounded as that.
        headers.get(LOCATION).map_or_else(String::new, |location| said(location.as_bytes()))
    } else {
        String::new()
    };
    Failure::new(kind, Initiator::Peer, format!("{message}{sent}{}", said(body)))
        .with_code(format!("HTTP {status}"))
        .with_completed(completed(status, headers))
        .with_hint(hint(status))
        .at(address)
}

/// The failure behind an envelope whose content type is none of this binding's: it is of the other version of SOAP, in which a
/// server says that it does not know this one (SOAP 1.2 part 1, 5.4.7 and appendix A), or nobody says what it is. `None`: it is
/// no such envelope.
#[cold]
pub(super) fn stray(
    status: StatusCode,
    headers: &HeaderMap,
    dialect: Dialect,
    address: &str,
    body: &[u8],
) -> Option<Failure> {
    let spoken = content::version(body)?;
    let (number, hint) = match spoken {
        Soap::V11 => ("1.1", "the service speaks SOAP 1.1: write basic:// before its address"),
        Soap::V12 => (
            "1.2",
            "the service speaks SOAP 1.2: write soap12:// before its address, or wshttp:// where it wants WS-Addressing",
        ),
    };
    let (message, hint) = if spoken != dialect.soap {
        (
            format!(
                "the service answered with an envelope of SOAP {number}, and not of the version that it was called in"
            ),
            hint,
        )
    } else if dialect.form == Form::Text && !headers.contains_key(CONTENT_TYPE) {
        let message = "the service answered with an envelope without a Content-Type".to_owned();
        (message, "it has to say what it sends: text/xml in SOAP 1.1, application/soap+xml in SOAP 1.2")
    } else {
        return None;
    };
    let failure = Failure::new(Kind::Unsupported, Initiator::Peer, message)
        .with_code(format!("HTTP {status}"))
        .with_completed(Completed::Maybe)
        .with_hint(hint);
    Some(failure.at(address))
}

/// What the caller can do.
pub(super) fn hint(status: StatusCode) -> &'static str {
    match status.as_u16() {
        200..=299 => "it may take this operation as one-way: compare the contracts",
        300..=399 => "use the address that the response's Location names",
        400 => {
            "is it a service of this binding? basic://, wshttp://, soap12:// and binhttp:// speak differently"
        }
        401 => {
            "write USER:PASSWORD@ before the host; over TLS a service may want the user in the message: add ?security=username"
        }
        403 => "the user lacks the right, or the address demands https",
        404 | 410 => {
            "compare the path with that of the service's ?wsdl; services of IIS end in .svc, and an endpoint may have a path below"
        }
        405 => "is it the address of the endpoint, not of its page?",
        407 => "name the service directly",
        408 => "call again if the call may run twice",
        413 => {
            "raise MaxReceivedMessageSize (65536 by default) of the service's binding, and maxAllowedContentLength of IIS"
        }
        415 => {
            "its binding differs: text/xml is basic://, application/soap+xml is wshttp:// (with WS-Addressing) or soap12://, application/soap+msbin1 is binhttp://, multipart/related is ?encoding=mtom"
        }
        429 | 503 => "try again later; behind IIS its application pool may have stopped",
        502 | 504 => "is the service behind it running?",
        _ => "its log says why; it sent no envelope",
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::{RETRY_AFTER, VIA};

    #[test]
    fn every_error_says_what_to_do() {
        let later = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("1"))]);
        // As Varnish writes it, also of a service that broke off in the middle.
        let mut passed_on = later.clone();
        passed_on.insert(VIA, HeaderValue::from_static("1.1 cache (Varnish/7.1)"));
        let none = HeaderMap::new();
        for (status, headers, kind, word, completed) in [
            (400, &none, Kind::Violation, "basic://", Completed::Maybe),
            (401, &none, Kind::Refused, "USER:PASSWORD", Completed::No),
            (403, &none, Kind::Refused, "right", Completed::No),
            (404, &none, Kind::NoObject, "path", Completed::No),
            (407, &none, Kind::Refused, "directly", Completed::No),
            (408, &none, Kind::TimedOut, "again", Completed::Maybe),
            (413, &none, Kind::LimitExceeded, "MaxReceivedMessageSize", Completed::No),
            (415, &none, Kind::Unsupported, "wshttp://", Completed::No),
            (307, &none, Kind::BadReference, "Location", Completed::No),
            (303, &none, Kind::BadReference, "Location", Completed::Maybe),
            (503, &later, Kind::Busy, "later", Completed::No),
            (503, &passed_on, Kind::Busy, "later", Completed::Maybe),
            (503, &none, Kind::Busy, "later", Completed::Maybe),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let failure = explain(status, headers, Dialect::BASIC, "http://h/x", b"text for people");
            assert_eq!((failure.kind(), failure.completed()), (kind, completed), "{status}");
            assert!(
                failure.hint().unwrap().contains(word) && failure.message().contains("people"),
                "{failure}"
            );
            assert!(failure.code().unwrap().contains(status.as_str()));
        }
        let moved = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static("https://h/y.svc"))]);
        for status in [StatusCode::MOVED_PERMANENTLY, StatusCode::FOUND, StatusCode::PERMANENT_REDIRECT] {
            let failure = explain(status, &moved, Dialect::BASIC, "http://h/x", b"<html/>");
            assert_eq!(failure.message(), "the service is at another address: https://h/y.svc");
        }
        let failure = wrong_login("http://h/x");
        assert!(failure.message().contains("password is wrong"), "{failure}");
    }
}
