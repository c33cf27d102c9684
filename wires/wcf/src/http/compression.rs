//! How the bodies of messages are packed, and that their headers say so.

use super::multipart;
use crate::compression::Format;
use crate::soap::Dialect;
use bytes::Bytes;
use everywire_http::coding::GZIP;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Octets of a body that is not worth the trouble.
/// Below that the head of gzip and the time cost more than the bytes saved.
const SMALL: usize = 1024;

const MIME_VERSION: HeaderName = HeaderName::from_static("mime-version");

/// Packs an envelope as the headers then say: with its octets in parts of their own (MTOM), and compressed where that
/// is worth the trouble.
pub(super) fn pack(
    dialect: Dialect,
    mut parts: Vec<Bytes>,
    packs: bool,
    compresses: bool,
    headers: &mut HeaderMap,
) -> Vec<Bytes> {
    if packs {
        let (mut content_type, body) = multipart::pack(dialect, parts);
        parts = body;
        // SOAP 1.2 without addressing says the action there alone.
        let held = headers.get(CONTENT_TYPE).and_then(|held| held.to_str().ok());
        if let Some((_, action)) = held.and_then(|held| held.split_once("; action=")) {
            content_type = format!("{content_type}; action={action}");
        }
        headers.insert(MIME_VERSION, HeaderValue::from_static("1.0"));
        if let Ok(content_type) = HeaderValue::try_from(content_type) {
            headers.insert(CONTENT_TYPE, content_type);
        }
    }
    if compresses
        && parts.iter().map(Bytes::len).sum::<usize>() >= SMALL
        && let Some(packed) = Format::Gzip.pack(&parts)
    {
        headers.insert(CONTENT_ENCODING, GZIP);
        return vec![packed];
    }
    parts
}
