//! What becomes of requests: results, failures behind statuses, pages. Calls that expect nothing are answered too, if only with
//! a status.

use super::{Asking, Connecting, Flight, is_refusal, unasked};
use crate::compression;
use crate::http::content;
use crate::http::statuses::{explain, hint, stray, wrong_login};
use crate::values::bare;
use bytes::Bytes;
use everywire_http::coding::Coding;
use everywire_model::{CallId, Completed, Event, Failure, Initiator, Kind, Outcome};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode, response};
use std::time::Instant;

impl Connecting {
    /// One response to a request that is of no reliable session.
    pub(super) fn returned(&mut self, now: Instant, flight: &Flight, parts: &response::Parts, body: Bytes) {
        let (status, headers) = (parts.status, &parts.headers);
        match flight.kind {
            Asking::Nobody | Asking::Sequence => {}
            Asking::Told => match self.taken(flight, parts, body) {
                Ok(()) => self.done(flight.id, Bytes::new()),
                Err(failure) => self.fail(flight, failure),
            },
            Asking::Probe => {
                // Whatever a page costs its reader, an endpoint is there; only a missing one is not.
                if matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) || is_refusal(status) {
                    self.fail(flight, self.explain(flight, parts, b""));
                } else {
                    self.done(flight.id, Bytes::new());
                }
            }
            Asking::Page if status.is_success() => {
                let page = self.readdressed(flight, body);
                self.done(flight.id, page);
            }
            Asking::Page => {
                // Who is no service says so in plain words, such as a listener of another protocol.
                let body = self.plain(headers, body).unwrap_or_default();
                self.fail(flight, self.explain(flight, parts, &body));
            }
            Asking::Message => {
                let content_type = headers.get(CONTENT_TYPE);
                // Faults may come with other statuses, too; what has the right type is an envelope.
                let body = match self.plain(headers, body) {
                    Ok(body) => body,
                    Err(failure) => return self.fail(flight, failure),
                };
                let format = content_type.and_then(|given| self.format.read(given, self.dialect));
                if body.is_empty() && status.is_success() && self.exchange.is_passed(flight.id) {
                    // Whoever passes a message on does not know whether it has an answer.
                    self.exchange.cancel(flight.id);
                    return self.done(flight.id, Bytes::new());
                }
                let Some(format) = format.filter(|_| !body.is_empty()) else {
                    let address = self.settings.via(&flight.key);
                    let stray = stray(status, headers, self.dialect, &address, &body);
                    let failure = match content_type {
                        _ if let Some(stray) = stray => stray,
                        Some(given)
                            if !body.is_empty()
                                && (status == StatusCode::OK || content::is_envelope(given)) =>
                        {
                            let given = String::from_utf8_lossy(given.as_bytes()).into_owned();
                            let hint = if content::has_attachments(&given) {
                                "set the service to answer without attachments, or with those of MTOM"
                            } else {
                                hint(StatusCode::UNSUPPORTED_MEDIA_TYPE)
                            };
                            content::mismatch(&given, self.dialect)
                                .with_code(format!("HTTP {status}"))
                                .with_completed(Completed::Maybe)
                                .with_hint(hint)
                        }
                        _ => self.explain(flight, parts, &body),
                    };
                    return self.fail(flight, failure);
                };
                let said = (!status.is_success()).then(|| body.clone());
                let result = format
                    .envelope(body, self.dialect, &self.settings.quotas.reader)
                    .and_then(|document| self.exchange.receive(now, document, None, &flight.key))
                    .map_err(|failure| self.unreadable(flight, parts, said, failure));
                self.conclude(flight, result);
            }
        }
    }

    /// A call has its outcome now, whatever came.
    pub(super) fn conclude(&mut self, flight: &Flight, result: Result<(), Failure>) {
        let mut concluded = false;
        while let Some(event) = self.exchange.poll() {
            concluded |= matches!(&event, Event::Reply { id, .. } if *id == flight.id);
            self.events.push_back(event);
        }
        if !concluded {
            let failure = result.err().unwrap_or_else(|| {
                let message = "the response answers another request";
                Failure::new(Kind::Violation, Initiator::Peer, message).with_completed(Completed::Maybe)
            });
            self.fail(flight, failure);
        }
    }

    /// The request has come to nothing: its call, if somebody waits, fails.
    pub(super) fn fail(&mut self, flight: &Flight, failure: Failure) {
        match flight.kind {
            // Their calls are the exchange's.
            Asking::Nobody | Asking::Sequence => {}
            Asking::Message => self.exchange.fail(flight.id, failure),
            Asking::Told | Asking::Probe | Asking::Page => {
                self.events.push_back(Event::Reply { id: flight.id, outcome: Outcome::Failed(failure) });
            }
        }
    }

    /// It has worked; the bytes are a page, or nothing.
    pub(super) fn done(&mut self, id: CallId, bytes: Bytes) {
        let body = bare(bytes, self.limits.budget);
        self.events.push_back(Event::Reply { id, outcome: Outcome::Done(body) });
    }

    /// What a status means, with what was called.
    pub(super) fn explain(&self, flight: &Flight, parts: &response::Parts, body: &[u8]) -> Failure {
        let status = parts.status;
        let address = self.settings.via(&flight.key);
        if status == StatusCode::UNAUTHORIZED && self.settings.basic_login {
            return wrong_login(&address);
        }
        explain(status, &parts.headers, self.dialect, &address, body)
    }

    /// What an answer means that cannot be read: behind the status of an error its text is for people, whatever its type says.
    /// That type is one of envelopes, so it may be the service that answered, after it did what was asked, with any status
    /// (SOAP 1.2, part 2, section 7.5.2: 400 for a fault of the sender).
    #[cold]
    fn unreadable(
        &self,
        flight: &Flight,
        parts: &response::Parts,
        said: Option<Bytes>,
        failure: Failure,
    ) -> Failure {
        let failure = match said {
            Some(body) if failure.kind() == Kind::Malformed => self.explain(flight, parts, &body),
            _ => failure,
        };
        failure.with_completed(Completed::Maybe)
    }

    /// Whether the service has taken a message that expects nothing: 202 or another success says so, everything else why it
    /// has not (WCF's services say faults even then).
    fn taken(&mut self, flight: &Flight, parts: &response::Parts, body: Bytes) -> Result<(), Failure> {
        let status = parts.status;
        let body = self.plain(&parts.headers, body)?;
        let given = parts.headers.get(CONTENT_TYPE).filter(|_| !body.is_empty());
        if let Some(format) = given.and_then(|given| self.format.read(given, self.dialect)) {
            let said = (!status.is_success()).then(|| body.clone());
            let objection = format
                .envelope(body.clone(), self.dialect, &self.settings.quotas.reader)
                .and_then(|document| self.exchange.objection_of(&document))
                .map_err(|failure| self.unreadable(flight, parts, said, failure))?;
            if let Some(fault) = objection {
                return Err(fault);
            }
            if !status.is_success() {
                // Who writes an envelope may have done what was asked.
                return Err(self.explain(flight, parts, &body).with_completed(Completed::Maybe));
            }
        }
        if status.is_success() { Ok(()) } else { Err(self.explain(flight, parts, &body)) }
    }

    /// The body of a response as it was before it was compressed.
    pub(super) fn plain(&self, headers: &HeaderMap, body: Bytes) -> Result<Bytes, Failure> {
        match Coding::of(headers) {
            Coding::Plain => Ok(body),
            Coding::Gzip if self.settings.compressed.is_some() => {
                compression::Format::Gzip.unpack(&body, &self.settings.quotas)
            }
            _ => Err(unasked(headers)),
        }
        .map_err(|failure| failure.with_completed(Completed::Maybe))
    }
}
