//! What goes back: envelopes, alone or in a package, compressed or not; pages; statuses with a sentence for people.

use super::Accepting;
use crate::compression;
use crate::http::compression::{GZIP, SMALL};
use crate::http::multipart;
use crate::metadata;
use bytes::Bytes;
use everywire_model::SendBuffer;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};

const MIME_VERSION: HeaderName = HeaderName::from_static("mime-version");

impl Accepting {
    /// Answers the request in hand.
    pub(super) fn respond(&mut self, response: Response<Vec<Bytes>>) {
        self.server.respond(response);
    }

    /// Answers with an envelope.
    pub(super) fn reply(&mut self, mut envelope: SendBuffer, fault: bool) {
        self.room = envelope.len();
        // SOAP 1.1 (6.2) says so, and WCF does so with SOAP 1.2, too.
        let status = if fault { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
        if self.server.is_repeating() && !self.packs && !self.compresses {
            return self.server.reply(status, &self.content_type, &mut envelope);
        }
        let mut parts = envelope.into_parts();
        let mut content_type = self.content_type.clone();
        let mut response = Response::new(Vec::new());
        if self.packs {
            let (packed, body) = multipart::pack(self.dialect, parts);
            parts = body;
            content_type = HeaderValue::try_from(packed).unwrap_or(content_type);
            response.headers_mut().insert(MIME_VERSION, HeaderValue::from_static("1.0"));
        }
        if self.compresses
            && parts.iter().map(Bytes::len).sum::<usize>() >= SMALL
            && let Some(packed) = compression::Format::Gzip.pack(&parts)
        {
            parts = vec![packed];
            response.headers_mut().insert(CONTENT_ENCODING, GZIP);
        }
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        *response.status_mut() = status;
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
        let mut response = Response::new(vec![Bytes::from(page.body)]);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
        response
    }
}

/// A status alone.
pub(super) fn empty(status: StatusCode) -> Response<Vec<Bytes>> {
    let mut response = Response::new(Vec::new());
    *response.status_mut() = status;
    response
}

/// A status with a sentence for people.
pub(super) fn told(status: StatusCode, text: &str) -> Response<Vec<Bytes>> {
    let mut response = empty(status);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    *response.body_mut() = vec![Bytes::copy_from_slice(text.as_bytes())];
    response
}
