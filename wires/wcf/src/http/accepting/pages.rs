//! Pages of services whose contracts are not here: whoever answers for their paths is asked for them.

use super::Accepting;
use super::responses::{told, with};
use crate::address;
use crate::metadata::{describes, operation};
use crate::settings::Settings;
use crate::values::bare;
use bytes::Bytes;
use everywire_model::{Answer, CallId, Event, Expects, Failure, Incoming, Kind};
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

/// Numbers of requests that the exchange knows nothing of begin here.
const PAGES: u64 = 1 << 62;

impl Accepting {
    /// Asks for a page of a description, if somebody else has it than this node; whether that is so.
    pub(super) fn ask_for_page(&mut self, path: &str, query: &str, host: Option<&str>) -> bool {
        let Some(key) = self.key(path).filter(|_| describes(query)) else { return false };
        if !self.node.as_ref().is_some_and(|node| node.passes(&key)) {
            return false;
        }
        // The address as the asker spells it: the page's own addresses become that.
        let url = self.url(path, host, &key);
        let Some(operation) = operation(&url, query) else { return false };
        self.pages += 1;
        let id = CallId(PAGES + self.pages);
        let body = bare(Bytes::new(), self.exchange.budget());
        let (sender, interface, expects) = (Bytes::new(), Bytes::new(), Expects::Reply);
        let asks = Incoming { id, sender, key, interface, operation, body, expects };
        self.current = Some(id);
        self.page = Some((id, query.into()));
        self.events.push_back(Event::Call(Box::new(asks)));
        true
    }

    /// Whether a call asks for a page.
    pub(super) fn is_page(&self, id: CallId) -> bool {
        self.page.as_ref().is_some_and(|(page, _)| *page == id)
    }

    /// The page that was asked for is there, or is not.
    pub(super) fn give_page(&mut self, answer: Answer<'_>) {
        let Some((_, query)) = self.page.take() else { return };
        self.current = None;
        let response = match answer {
            Answer::Done(results) => match results.carries().body {
                Some(page) => {
                    with(Response::new(vec![page.bytes.clone()]), CONTENT_TYPE, "text/xml; charset=utf-8")
                }
                None => told(StatusCode::NOT_FOUND, "there is no such page"),
            },
            Answer::Moved(reference) => {
                let there = address::own(reference).map(|profile| Settings::of(profile).via(&profile.key));
                let place = there.and_then(|there| HeaderValue::try_from(format!("{there}?{query}")).ok());
                let mut response = told(StatusCode::TEMPORARY_REDIRECT, "the service is elsewhere");
                if let Some(place) = place {
                    response.headers_mut().insert(LOCATION, place);
                }
                response
            }
            Answer::Failed(failure) | Answer::Passed { failure, .. } => refused(failure),
            Answer::Raised { .. } => told(StatusCode::BAD_GATEWAY, "the service answered with an exception"),
        };
        self.server.respond(response);
    }
}

/// What a browser can show of a failure.
fn refused(failure: &Failure) -> Response<Vec<Bytes>> {
    match failure.kind() {
        Kind::NoObject | Kind::NoOperation | Kind::Unsupported => {
            told(StatusCode::NOT_FOUND, "there is no such page")
        }
        Kind::Refused => told(StatusCode::FORBIDDEN, failure.message()),
        Kind::Busy => with(told(StatusCode::SERVICE_UNAVAILABLE, failure.message()), RETRY_AFTER, "1"),
        Kind::TimedOut => told(StatusCode::GATEWAY_TIMEOUT, failure.message()),
        _ => told(StatusCode::BAD_GATEWAY, failure.message()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Initiator;

    #[test]
    fn a_page_of_a_busy_service_says_when_to_come_again() {
        let response = refused(&Failure::new(Kind::Busy, Initiator::Peer, "too many calls wait"));
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers().get("retry-after").map(HeaderValue::as_bytes), Some(&b"1"[..]));
    }
}
