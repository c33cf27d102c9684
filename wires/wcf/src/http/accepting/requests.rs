//! What a request asks for: who may, at which path, in which coding and format, and the envelope in it.
//!
//! The order is that of cost: who calls, the method, the path, the coding, the content type; the body is
//! unpacked only when all of that is right.

use super::door::unauthorized;
use super::responses::{told, with};
use super::{Accepting, ParsedHead};
use crate::compression;
use crate::http::content;
use crate::http::{SOAP_ACTION, broken_envelope};
use crate::settings::Encoding;
use bytes::Bytes;
use everywire_http::basic;
use everywire_http::coding::{Coding, is_taken};
use everywire_model::{Failure, Kind, Violation, reference};
use http::header::{ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use std::time::Instant;

impl Accepting {
    /// One request, whole.
    pub(super) fn take(&mut self, now: Instant, parts: &Parts, body: Bytes) -> Result<(), Violation> {
        if self.refuses() {
            return Ok(());
        }
        let Some(head) = self.asked(parts) else { return Ok(()) };
        let body = match Coding::of(&parts.headers) {
            Coding::Gzip => compression::Format::Gzip.unpack(&body, &self.settings.quotas),
            _ => Ok(body),
        };
        let result = body.and_then(|body| self.open(now, body, &head));
        // Where each request says who calls, each is asked.
        if !self.settings.basic_login || self.settings.users.is_none() {
            self.server.keep(parts, || head);
        }
        self.came(now, result)
    }

    /// A request whose head is a known one.
    pub(super) fn take_again(
        &mut self,
        now: Instant,
        head: &ParsedHead,
        body: Bytes,
    ) -> Result<(), Violation> {
        if self.refuses() {
            return Ok(());
        }
        let result = self.open(now, body, head);
        self.came(now, result)
    }

    /// What the head of a request with a message says; nothing if it was answered already.
    fn asked(&mut self, parts: &Parts) -> Option<ParsedHead> {
        if let Some(users) = &self.settings.users
            && self.settings.basic_login
        {
            match basic::account(parts.headers.get(AUTHORIZATION), users.as_ref()) {
                Some(account) => self.believe(account),
                None => return self.refuse(unauthorized()),
            }
        }
        let path = parts.uri.path();
        match parts.method {
            Method::POST => {}
            Method::GET | Method::HEAD => {
                let host = parts.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
                let query = parts.uri.query().unwrap_or_default();
                if self.ask_for_page(path, query, host) {
                    return None;
                }
                let page = self.page(path, query, host);
                return self.refuse(page);
            }
            _ => {
                let response = told(StatusCode::METHOD_NOT_ALLOWED, "POST takes messages, GET pages");
                return self.refuse(with(response, ALLOW, "POST, GET, HEAD"));
            }
        }
        let Some(key) = self.key(path) else {
            return self.refuse(told(StatusCode::NOT_FOUND, &format!("there is no endpoint at {path}")));
        };
        let (coding, zips) = (Coding::of(&parts.headers), self.settings.compressed.is_some());
        if coding != Coding::Plain && (coding != Coding::Gzip || !zips) {
            // What is small becomes large only where somebody said that it may.
            let response = told(StatusCode::UNSUPPORTED_MEDIA_TYPE, "messages are not decompressed here");
            return self.refuse(with(response, ACCEPT_ENCODING, if zips { "gzip" } else { "identity" }));
        }
        let compresses = zips && is_taken(parts.headers.get(ACCEPT_ENCODING));
        // None at all is as wrong as any other.
        let nothing = HeaderValue::from_static("");
        let given = parts.headers.get(CONTENT_TYPE).unwrap_or(&nothing);
        let Some(format) = self.format.read(given, self.dialect) else {
            let failure = content::mismatch(&String::from_utf8_lossy(given.as_bytes()), self.dialect);
            return self.refuse(told(StatusCode::UNSUPPORTED_MEDIA_TYPE, failure.message()));
        };
        let action = parts.headers.get(&SOAP_ACTION).and_then(|value| value.to_str().ok());
        let action = action.map(|action| action.trim().trim_matches('"')).or(format.action.as_deref());
        let action = action.map(Into::into);
        let packs = format.related.is_some() || self.settings.encoding == Encoding::Mtom;
        Some(ParsedHead { key, format, action, packs, compresses })
    }

    /// Answers a request that is no message to take.
    fn refuse<T>(&mut self, response: Response<Vec<Bytes>>) -> Option<T> {
        self.server.respond(response);
        None
    }

    /// Refuses a request where there is no place for the peer.
    fn refuses(&mut self) -> bool {
        let Some(why) = &self.turned_away else { return false };
        let response = with(told(StatusCode::SERVICE_UNAVAILABLE, why), CONNECTION, "close");
        self.server.respond(with(response, RETRY_AFTER, "1"));
        true
    }

    /// Takes the envelope within a body.
    fn open(&mut self, now: Instant, body: Bytes, head: &ParsedHead) -> Result<(), Failure> {
        (self.packs, self.compresses) = (head.packs, head.compresses);
        let document = head.format.envelope(body, self.dialect, &self.settings.quotas.reader)?;
        self.exchange.receive(now, document, head.action.as_deref(), &head.key)
    }

    /// A request's envelope was taken, or could not be.
    fn came(&mut self, now: Instant, result: Result<(), Failure>) -> Result<(), Violation> {
        let Err(failure) = result else {
            self.sort(now);
            return Ok(());
        };
        let status = match failure.kind() {
            Kind::LimitExceeded => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        };
        self.server.close(told(status, failure.message()));
        Err(broken_envelope(&failure, self.server.received()))
    }

    /// The key that a path stands for, if an object is exported under it.
    pub(super) fn key(&mut self, path: &str) -> Option<Bytes> {
        if let Some((known, key)) = &self.known
            && **known == *path
        {
            return Some(key.clone());
        }
        let wanted = Bytes::from(reference::unescape(path.strip_prefix('/').unwrap_or(path))?);
        let key = match &self.node {
            Some(node) => node.find(&wanted)?,
            None => wanted,
        };
        self.known = Some((path.into(), key.clone()));
        // They were for the path before.
        self.server.forget();
        Some(key)
    }

    /// Whether the object that was asked for last is exported no longer.
    /// Without a node nobody knows, and the answer of the exchange is taken for it.
    pub(super) fn is_gone(&self) -> bool {
        match (&self.node, &self.known) {
            (Some(node), Some((_, key))) => node.find(key).is_none(),
            _ => true,
        }
    }
}
