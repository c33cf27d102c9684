//! Framing with compressed messages (`compressionFormat` of binaryMessageEncoding), both sides.

#![allow(clippy::unwrap_used)]

use crate::channels::*;
use everywire_model::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use std::io::Write;

/// An extensible encoding record with this content type, behind mode and via of a preamble, and its end.
fn preamble(mode: u8, content_type: &str) -> Vec<u8> {
    let via = VIA.as_bytes();
    let mut bytes = vec![0, 1, 0, 1, mode, 2, u8::try_from(via.len()).unwrap()];
    bytes.extend_from_slice(via);
    bytes.extend_from_slice(&[4, u8::try_from(content_type.len()).unwrap()]);
    bytes.extend_from_slice(content_type.as_bytes());
    bytes.push(0x0c);
    bytes
}

#[test]
fn calls_and_replies_pass_compressed() {
    for (options, content_type, mode) in [
        ("compression=gzip", "application/soap+msbinsession1+gzip", 2),
        ("compression=deflate", "application/soap+msbinsession1+deflate", 2),
        ("compression=gzip&mode=streamed", "application/soap+msbin1+gzip", 1),
        ("compression=deflate&encoding=binary", "application/soap+msbin1+deflate", 2),
    ] {
        let client = || connecting(&format!("{VIA}?{options}"));
        assert_eq!(sent(&mut client()), preamble(mode, content_type), "{options}");
        let format = options.split('&').next().unwrap();
        for piece in [1, usize::MAX] {
            let mut pair = Pair::new(client(), accepting(&format!("security=none&{format}")));
            pair.piece = piece;
            for _ in 0..3 {
                let id = pair.call(Expects::Reply);
                pair.carry();
                assert_eq!(pair.serve(), 1, "{options}");
                pair.carry();
                let told = events(&mut *pair.client);
                let came = |event: &Event| matches!(event, Event::Reply { id: replied, outcome: Outcome::Done(_) } if *replied == id);
                assert!(told.iter().any(came), "{options}: {told:?}");
            }
            // Nothing of a call can be read in what is sent.
            pair.call(Expects::Nothing);
            let bytes = sent(&mut *pair.client);
            assert!(!bytes.windows(4).any(|window| window == b"Echo"), "{options}");
        }
    }
}

#[test]
fn a_listener_takes_the_compression_that_its_address_says_and_none() {
    let gzip = preamble(2, "application/soap+msbinsession1+gzip");
    for (options, opening, taken) in [
        ("security=none", gzip.clone(), false),
        ("security=none&compression=deflate", gzip.clone(), false),
        ("security=none&compression=gzip", gzip, true),
        ("security=none&compression=gzip", preamble(2, "application/soap+msbinsession1"), true),
        ("security=none&compression=gzip", preamble(2, "application/soap+msbinsession1+gzip+gzip"), false),
        ("security=none&compression=gzip", preamble(2, "application/soap+xml; charset=utf-8+gzip"), false),
        ("security=none&compression=gzip", preamble(1, "application/soap+msbinsession1+gzip"), false),
    ] {
        let mut server = accepting(options);
        let result = give(&mut server, &opening);
        let said = sent(&mut server);
        assert_eq!((result.is_ok(), said == [0x0b]), (taken, taken), "{options}");
        if !taken {
            assert!(String::from_utf8_lossy(&said).ends_with("ContentTypeInvalid"), "{options}");
        }
    }
}

/// A few hundred octets that mean megabytes, the same inside another, and what is no compressed message.
#[test]
fn n2_what_comes_out_counts() {
    let zeros = vec![0; 4 << 20];
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&zeros).unwrap();
    let gzip = gzip.finish().unwrap();
    let mut again = GzEncoder::new(Vec::new(), Compression::best());
    again.write_all(&gzip).unwrap();
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    deflate.write_all(&zeros).unwrap();
    for (format, message, name, fault) in [
        ("gzip", gzip.clone(), Violation::OVER_LIMIT, "MaxMessageSizeExceededFault"),
        ("deflate", deflate.finish().unwrap(), Violation::OVER_LIMIT, "MaxMessageSizeExceededFault"),
        ("gzip", again.finish().unwrap(), "Envelope", ""),
        ("gzip", gzip[..gzip.len() - 4].to_vec(), Violation::OVER_LIMIT, ""),
        ("gzip", b"no gzip".to_vec(), "Envelope", ""),
    ] {
        let mut server = accepting(&format!("security=none&compression={format}"));
        give(&mut server, &preamble(2, &format!("application/soap+msbinsession1+{format}"))).unwrap();
        sent(&mut server);
        let mut record = vec![0x06];
        let mut size = message.len();
        while size > 0x7f {
            record.push((size & 0x7f) as u8 | 0x80);
            size >>= 7;
        }
        record.push(u8::try_from(size).unwrap());
        record.extend_from_slice(&message);
        let violation = give(&mut server, &record).unwrap_err();
        assert_eq!(violation.name, name, "{format}: {violation:?}");
        assert!(String::from_utf8_lossy(&sent(&mut server)).ends_with(fault));
    }
}
