//! What a request asks for: who may, at which path, in which coding and format, and the envelope in it.
//!
//! The order is that of cost: who calls, the method, the path, the coding, the content type; the body is
//! unpacked only when all of that is right.

use super::door::unauthorized;
use super::responses::{told, with};
use super::{Accepting, ParsedHead};
use crate::compression;
use crate::http::content::{self, Format};
use crate::http::{SOAP_ACTION, broken_envelope};
use crate::settings::Encoding;
use bytes::Bytes;
use everywire_http::basic;
use everywire_http::coding::{Coding, is_taken};
use everywire_model::{Failure, Kind, Violation, reference};
use http::header::{ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use std::sync::Arc;
use std::time::Instant;

impl Accepting {
    /// One request, whole.
    pub(super) fn take(&mut self, now: Instant, parts: &Parts, body: Bytes) -> Result<(), Violation> {
        if self.refuses() {
            return Ok(());
        }
        if let Some(users) = &self.settings.users
            && self.settings.basic_login
        {
            let Some(account) = basic::account(parts.headers.get(AUTHORIZATION), users.as_ref()) else {
                self.server.respond(unauthorized().map(|_| Vec::new()));
                return Ok(());
            };
            self.believe(account);
        }
        let path = parts.uri.path();
        match parts.method {
            Method::POST => {}
            Method::GET | Method::HEAD => {
                let host = parts.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
                let query = parts.uri.query().unwrap_or_default();
                if !self.ask_for_page(path, query, host) {
                    let response = self.page(path, query, host);
                    self.server.respond(response);
                }
                return Ok(());
            }
            _ => {
                let response = told(StatusCode::METHOD_NOT_ALLOWED, "POST takes messages, GET pages");
                self.server.respond(with(response, ALLOW, "POST, GET, HEAD"));
                return Ok(());
            }
        }
        let Some(key) = self.key(path) else {
            self.server.respond(told(StatusCode::NOT_FOUND, &format!("there is no endpoint at {path}")));
            return Ok(());
        };
        let coding = Coding::of(&parts.headers);
        if coding != Coding::Plain && (coding != Coding::Gzip || self.settings.compressed.is_none()) {
            // What is small becomes large only where somebody said that it may.
            let response = told(StatusCode::UNSUPPORTED_MEDIA_TYPE, "messages are not decompressed here");
            let taken = if self.settings.compressed.is_some() { "gzip" } else { "identity" };
            self.server.respond(with(response, ACCEPT_ENCODING, taken));
            return Ok(());
        }
        self.compresses = self.settings.compressed.is_some() && is_taken(parts.headers.get(ACCEPT_ENCODING));
        // None at all is as wrong as any other.
        let nothing = HeaderValue::from_static("");
        let given = parts.headers.get(CONTENT_TYPE).unwrap_or(&nothing);
        let Some(format) = self.format.read(given, self.dialect) else {
            let failure = content::mismatch(&String::from_utf8_lossy(given.as_bytes()), self.dialect);
            self.server.respond(told(StatusCode::UNSUPPORTED_MEDIA_TYPE, failure.message()));
            return Ok(());
        };
        let action = parts.headers.get(&SOAP_ACTION).and_then(|value| value.to_str().ok());
        let action = action.map(|action| action.trim().trim_matches('"')).or(format.action.as_deref());
        self.packs = format.related.is_some() || self.settings.encoding == Encoding::Mtom;
        let body = match coding {
            Coding::Gzip => compression::Format::Gzip.unpack(&body, &self.settings.quotas),
            _ => Ok(body),
        };
        self.keep_parsed(parts, &key, &format, action);
        let result = body.and_then(|body| self.open(now, body, &format, action, &key));
        self.came(now, result)
    }

    /// Keeps what a head says, if it can be known again.
    fn keep_parsed(&mut self, parts: &Parts, key: &Bytes, format: &Arc<Format>, action: Option<&str>) {
        // Where each request says who calls, each is asked.
        if self.settings.basic_login && self.settings.users.is_some() {
            return;
        }
        let (packs, compresses) = (self.packs, self.compresses);
        self.server.keep(parts, || {
            let (key, format, action) = (key.clone(), Arc::clone(format), action.map(Into::into));
            ParsedHead { key, format, action, packs, compresses }
        });
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
        (self.packs, self.compresses) = (head.packs, head.compresses);
        let result = self.open(now, body, &head.format, head.action.as_deref(), &head.key);
        self.came(now, result)
    }

    /// Refuses a request where there is no place for the peer.
    fn refuses(&mut self) -> bool {
        let Some(why) = &self.turned_away else { return false };
        let response = with(told(StatusCode::SERVICE_UNAVAILABLE, why), CONNECTION, "close");
        self.server.respond(with(response, RETRY_AFTER, "1"));
        true
    }

    /// Takes the envelope within a body.
    fn open(
        &mut self,
        now: Instant,
        body: Bytes,
        format: &Format,
        action: Option<&str>,
        key: &Bytes,
    ) -> Result<(), Failure> {
        let document = format.envelope(body, self.dialect, &self.settings.quotas.reader)?;
        self.exchange.receive(now, document, action, key)
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
