//! Responses that are no envelopes: statuses, with a sentence for people.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};

/// A response with one more header.
pub(super) fn with<B>(mut response: Response<B>, name: HeaderName, value: &'static str) -> Response<B> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

/// A status alone.
pub(super) fn empty<B: Default>(status: StatusCode) -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = status;
    response
}

/// A status with a sentence for people.
pub(super) fn told(status: StatusCode, text: &str) -> Response<Vec<Bytes>> {
    let said = empty::<()>(status).map(|()| vec![Bytes::copy_from_slice(text.as_bytes())]);
    with(said, CONTENT_TYPE, "text/plain; charset=utf-8")
}
