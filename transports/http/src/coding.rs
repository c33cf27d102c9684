//! What headers say of how a body is packed (`Content-Encoding: gzip`, RFC 9110 §8.4). Its user unpacks it, by his own bounds.

use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};

/// The name of the coding.
pub const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// How a body is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// As it stands.
    Plain,
    /// By gzip, once.
    Gzip,
    /// Otherwise, or several times.
    /// Nothing here reads that; the peer is told so with 415, or the call fails.
    Other,
}

impl Coding {
    /// What the headers say.
    pub fn of(headers: &HeaderMap) -> Self {
        // Two fields, or a list in one, are two codings one upon the other.
        let mut all = headers.get_all(CONTENT_ENCODING).iter();
        match (all.next(), all.next()) {
            (None, _) => Self::Plain,
            (Some(one), None) if one.as_bytes().eq_ignore_ascii_case(b"identity") => Self::Plain,
            (Some(one), None)
                if [&b"gzip"[..], b"x-gzip"].iter().any(|name| one.as_bytes().eq_ignore_ascii_case(name)) =>
            {
                Self::Gzip
            }
            _ => Self::Other,
        }
    }
}

/// Whether somebody takes answers in this coding (RFC 9110 §12.5.3).
pub fn is_taken(accepted: Option<&HeaderValue>) -> bool {
    let Some(accepted) = accepted.and_then(|value| value.to_str().ok()) else { return false };
    accepted.split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        // A weight of 0, however many zeros, means that it is not wanted.
        let refused = weight.trim().strip_prefix("q=").is_some_and(|q| q.trim_matches(['0', '.']).is_empty());
        ["gzip", "x-gzip", "*"].iter().any(|known| name.trim().eq_ignore_ascii_case(known)) && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_are_told_by_their_headers() {
        let coding = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            values.iter().for_each(|value| {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
            });
            Coding::of(&headers)
        };
        assert_eq!([coding(&[]), coding(&["identity"])], [Coding::Plain; 2]);
        assert_eq!([coding(&["gzip"]), coding(&["X-GZIP"])], [Coding::Gzip; 2]);
        assert_eq!([coding(&["br"]), coding(&["gzip, gzip"]), coding(&["gzip", "gzip"])], [Coding::Other; 3]);
        let taken = |value| is_taken(Some(&HeaderValue::from_static(value)));
        assert!(taken("deflate, gzip;q=0.5") && taken("*") && taken("GZip"));
        assert!(!taken("gzip;q=0") && !taken("gzip; q=0.000") && !taken("deflate, br") && !is_taken(None));
    }
}
