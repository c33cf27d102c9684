//! What goes back: envelopes, alone or in a package, compressed or not; pages; statuses with a sentence for people.

use super::Accepting;
use crate::http::compression::pack;
use crate::metadata;
use bytes::Bytes;
use everywire_model::SendBuffer;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};

impl Accepting {
    /// Answers the request in hand.
    pub(super) fn respond(&mut self, response: Response<Vec<Bytes>>) {
        self.server.respond(response);
    }

    /// Answers with an envelope.
    pub(super) fn reply(&mut self, envelope: SendBuffer, fault: bool) {
        self.room = envelope.len();
        // SOAP 1.1 (6.2) says so, and WCF does so with SOAP 1.2, too.
        let status = if fault { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
        if !self.packs && !self.compresses {
            return self.server.reply(status, &self.content_type, envelope);
        }
        let mut response = empty(status);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.content_type.clone());
        let parts = pack(self.dialect, envelope.into_parts(), self.packs, self.compresses, headers);
        *response.body_mut() = parts;
        self.respond(response);
    }

    /// A page for people, or of metadata.
    pub(super) fn page(&mut self, path: &str, query: &str, host: Option<&str>) -> Response<Vec<Bytes>> {
        let missing = || told(StatusCode::NOT_FOUND, &format!("there is no page at {path}"));
        let Some(key) = self.key(path) else { return missing() };
        let Some(node) = &self.node else { return missing() };
        let own = self.settings.via(&key);
        let asked = match host {
            Some(host) => format!("{}://{host}{path}", self.settings.uri_scheme),
            None => own.clone(),
        };
        let Some(page) = metadata::page(node.objects().as_ref(), &key, query, &[asked, own]) else {
            return missing();
        };
        with(Response::new(vec![Bytes::from(page.body)]), CONTENT_TYPE, page.content_type)
    }
}

/// A response with one more header.
pub(super) fn with<B>(mut response: Response<B>, name: HeaderName, value: &'static str) -> Response<B> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

/// A status alone.
pub(super) fn empty(status: StatusCode) -> Response<Vec<Bytes>> {
    let mut response = Response::new(Vec::new());
    *response.status_mut() = status;
    response
}

/// A status with a sentence for people.
pub(super) fn told(status: StatusCode, text: &str) -> Response<Vec<Bytes>> {
    let said = empty(status).map(|_| vec![Bytes::copy_from_slice(text.as_bytes())]);
    with(said, CONTENT_TYPE, "text/plain; charset=utf-8")
}
