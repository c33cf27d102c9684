//! Compressed messages: gzip (RFC 1952) and deflate (RFC 1951), as `compressionFormat` of binary encodings and HTTP's
//! `Content-Encoding` have them.
//!
//! A message is packed whole and unpacked whole: over framing each envelope by itself
//! (`application/soap+msbin1+gzip`), over HTTP each body. There is no state between messages.

use crate::limits::Quotas;
use bytes::Bytes;
use everywire_model::{Failure, Initiator, Kind, named_variants};
use flate2::Compression;
use flate2::bufread::{DeflateDecoder, DeflateEncoder, GzDecoder, GzEncoder};
use std::io::Read;

named_variants! {
    /// How messages are compressed, with the names in addresses and content types.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Format {
        /// With a head and a check.
        Gzip "gzip",
        /// Bare.
        /// There is no zlib header around it: that is how .NET's DeflateStream writes it.
        Deflate "deflate",
    }
}

impl Format {
    /// The octets of these parts, smaller, most of the time.
    /// `None` does not happen: memory can be read.
    pub(crate) fn pack(self, parts: &[Bytes]) -> Option<Bytes> {
        let level = Compression::fast();
        // One part alone is not copied.
        let all = match parts {
            [one] => one.clone(),
            parts => parts.concat().into(),
        };
        let mut packed = Vec::new();
        let read = match self {
            Self::Gzip => GzEncoder::new(&all[..], level).read_to_end(&mut packed),
            Self::Deflate => DeflateEncoder::new(&all[..], level).read_to_end(&mut packed),
        };
        read.ok().map(|_| packed.into())
    }

    /// The octets as they were. What the quota counts is what comes out: no more than that is ever made.
    ///
    /// # Errors
    /// It is more than the quota allows, or not compressed so from its beginning to its end.
    pub(crate) fn unpack(self, packed: &Bytes, quotas: &Quotas) -> Result<Bytes, Failure> {
        let most = quotas.max_received_message_size;
        // No capacity beforehand: a gzip trailer announces sizes that nobody has to believe.
        let mut out = Vec::new();
        let mut take = |from: &mut dyn Read| from.take(most.saturating_add(1)).read_to_end(&mut out);
        let mut rest = &packed[..];
        let read = match self {
            Self::Gzip => take(&mut GzDecoder::new(&mut rest)),
            Self::Deflate => take(&mut DeflateDecoder::new(&mut rest)),
        };
        // One byte more than the quota tells too large from just large enough.
        if out.len() as u64 > most {
            return Err(quotas.message_too_large(Initiator::Peer));
        }
        let broken = |what: &str| {
            let what = format!("the compressed message ({}) is broken: {what}", self.word());
            Failure::new(Kind::Malformed, Initiator::Peer, what)
        };
        read.map_err(|error| broken(&error.to_string()))?;
        // A second member, or anything else behind the first, would be read by some peers and not by
        // others.
        if rest.is_empty() { Ok(out.into()) } else { Err(broken("something stands behind it")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri takes hours to pack megabytes")]
    fn what_is_packed_comes_back_and_no_more_than_the_quota() {
        let text = Bytes::from("text ".repeat(2000));
        let quotas = |most| Quotas { max_received_message_size: most, ..Quotas::default() };
        for format in [Format::Gzip, Format::Deflate] {
            let packed = format.pack(&[text.slice(..7), text.slice(7..)]).unwrap();
            assert!(packed.len() < text.len() / 20);
            assert_eq!(format.unpack(&packed, &quotas(10_000)).unwrap(), text);
            let failure = format.unpack(&packed, &quotas(9_999)).unwrap_err();
            assert_eq!(failure.kind(), Kind::LimitExceeded);
            // A bomb: megabytes of nothing, a thousand times smaller.
            let bomb = format.pack(&vec![Bytes::from_static(&[0; 1 << 16]); 1 << 8]).unwrap();
            assert!(bomb.len() < 100_000);
            assert_eq!(format.unpack(&bomb, &quotas(65_536)).unwrap_err().kind(), Kind::LimitExceeded);
            // Inside another, it is not opened: one coding is one coding.
            let outer = format.pack(std::slice::from_ref(&bomb)).unwrap();
            assert_eq!(format.unpack(&outer, &quotas(1 << 20)).unwrap(), bomb);
            for wrong in [
                packed.slice(..packed.len() - 1),
                Bytes::from([&packed[..], b"x"].concat()),
                Bytes::from([&packed[..], &packed[..]].concat()),
                Bytes::from_static(&[0xff; 20]),
                Bytes::new(),
            ] {
                assert_eq!(format.unpack(&wrong, &quotas(100_000)).unwrap_err().kind(), Kind::Malformed);
            }
        }
    }
}
