//! Compressed bodies (`Content-Encoding: gzip`, RFC 9110 §8.4), where the address asks for them.

use crate::limits::Quotas;
use bytes::Bytes;
use everywire_model::{Failure, Initiator, Kind};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};
use std::io::{Read, Write};

/// The name of the coding.
pub(super) const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// Octets of a body that is not worth the trouble.
pub(super) const SMALL: usize = 1024;

/// How a body is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// As it stands.
    Plain,
    /// By gzip, once.
    Gzip,
    /// Otherwise, or several times.
    Other,
}

impl Coding {
    /// What the headers say.
    pub(super) fn of(headers: &HeaderMap) -> Self {
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
pub(super) fn is_taken(accepted: Option<&HeaderValue>) -> bool {
    let Some(accepted) = accepted.and_then(|value| value.to_str().ok()) else { return false };
    accepted.split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|q| q.trim_matches(['0', '.']).is_empty());
        ["gzip", "x-gzip", "*"].iter().any(|known| name.trim().eq_ignore_ascii_case(known)) && !refused
    })
}

/// The body, smaller.
pub(super) fn pack(parts: &[Bytes]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for part in parts {
        encoder.write_all(part).ok()?;
    }
    encoder.finish().ok().map(Bytes::from)
}

/// The body as it was. What the quota counts is what comes out: no more than that is ever made.
///
/// # Errors
/// It is larger than the quota allows, or no gzip from its beginning to its end.
pub(super) fn unpack(body: &Bytes, quotas: &Quotas) -> Result<Bytes, Failure> {
    let most = quotas.max_received_message_size;
    let broken = |what: &str| {
        Failure::new(
            Kind::Malformed,
            Initiator::Peer,
            format!("the compressed body (gzip) is broken: {what}"),
        )
    };
    let mut decoder = GzDecoder::new(&body[..]);
    let mut out = Vec::new();
    let read = (&mut decoder).take(most.saturating_add(1)).read_to_end(&mut out);
    if out.len() as u64 > most {
        return Err(quotas.message_too_large(Initiator::Peer));
    }
    read.map_err(|error| broken(&error.to_string()))?;
    if !decoder.into_inner().is_empty() {
        return Err(broken("something stands behind it"));
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_no_more_than_the_quota() {
        let text = Bytes::from("text ".repeat(2000));
        let packed = pack(&[text.slice(..7), text.slice(7..)]).unwrap();
        assert!(packed.len() < text.len() / 20);
        let quotas = |most| Quotas { max_received_message_size: most, ..Quotas::default() };
        assert_eq!(unpack(&packed, &quotas(10_000)).unwrap(), text);
        let failure = unpack(&packed, &quotas(9_999)).unwrap_err();
        assert_eq!(failure.kind(), Kind::LimitExceeded);
        // A bomb: a gigabyte of nothing, a thousand times smaller.
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        (0..64).for_each(|_| bomb.write_all(&vec![0; 1 << 20]).unwrap());
        let bomb = Bytes::from(bomb.finish().unwrap());
        assert_eq!(unpack(&bomb, &quotas(65_536)).unwrap_err().kind(), Kind::LimitExceeded);
        // Inside another, it is not opened: one coding is one coding.
        let outer = pack(std::slice::from_ref(&bomb)).unwrap();
        assert_eq!(unpack(&outer, &quotas(1 << 20)).unwrap(), bomb);
        for wrong in [
            packed.slice(..packed.len() - 1),
            packed.slice(1..),
            Bytes::from([&packed[..], b"x"].concat()),
            Bytes::from([&packed[..], &packed[..]].concat()),
            Bytes::new(),
        ] {
            assert_eq!(unpack(&wrong, &quotas(100_000)).unwrap_err().kind(), Kind::Malformed);
        }
    }

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
