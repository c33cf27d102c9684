//! Protocols that are no wire's, whose servers people meet by a wrong port.

use everywire_model::Sniff;
use everywire_model::wire::Greeting;

/// A protocol that is no wire's.
#[derive(Debug)]
pub struct ForeignProtocol {
    /// For people.
    pub protocol: &'static str,
    /// What to try; empty for nothing in particular.
    pub hint: &'static str,
    /// What to ask its servers.
    pub octets: &'static [u8],
    /// Whether octets are an answer of theirs.
    pub answers: fn(&[u8]) -> Sniff,
}

/// A protocol whose servers begin with a word, before they are asked or whatever they are asked.
const fn banner(protocol: &'static str, answers: fn(&[u8]) -> Sniff) -> ForeignProtocol {
    ForeignProtocol { protocol, hint: "", octets: b"", answers }
}

/// Those whose servers say who they are by themselves.
static BANNERS: [ForeignProtocol; 9] = [
    banner("SSH", |seen| Greeting::begins(seen, b"SSH-")),
    banner("VNC", |seen| Greeting::begins(seen, b"RFB 0")),
    banner("SMTP or FTP", |seen| Greeting::begins(seen, b"220")),
    banner("IMAP", |seen| Greeting::begins(seen, b"* OK")),
    banner("POP3", |seen| Greeting::begins(seen, b"+OK")),
    banner("NATS", |seen| Greeting::begins(seen, b"INFO {")),
    banner("Redis", |seen| Greeting::begins(seen, b"-ERR")),
    // Length and number of a packet, and version 10 of the protocol in words.
    banner("MySQL", |seen| match seen {
        [_, _, 0, 0, 10, b'1'..=b'9', ..] => Sniff::Yes,
        _ => Sniff::No,
    }),
    TLS,
];

/// What TLS is called.
pub(super) const ENCRYPTED: &str = "TLS";

/// TLS: an alert, or the server's part of the handshake (RFC 8446, 5.1).
const TLS: ForeignProtocol = ForeignProtocol {
    protocol: ENCRYPTED,
    hint: "it wants encryption: use the scheme of the wire that has TLS below it, such as iiops:// or wshttps://, or a port that takes connections in the clear",
    octets: CLIENT_HELLO,
    answers: |seen| match seen {
        [] | [0x15 | 0x16] | [0x15 | 0x16, 3] => Sniff::More,
        [0x15 | 0x16, 3, 0..=4, ..] => Sniff::Yes,
        _ => Sniff::No,
    },
};

/// Those whose servers have to be asked.
pub(super) static ASKED: [ForeignProtocol; 2] = [
    TLS,
    ForeignProtocol {
        protocol: "OPC UA",
        hint: "OPC Data Access is opcda://; OPC UA is another protocol, which clients of its own speak",
        // Hello (OPC 10000-6, 7.1.2.3): version 0, buffers of 64 KiB, no limits, the URL `opc.tcp://a`.
        octets: b"HELF\x2b\0\0\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\x0b\0\0\0opc.tcp://a",
        answers: |seen| match seen {
            [b'A', ..] => Greeting::begins(seen, b"ACKF"),
            _ => Greeting::begins(seen, b"ERRF"),
        },
    },
];

/// A ClientHello of TLS 1.2 with four suites, two curves and two kinds of signatures (RFC 5246, 7.4.1.2): enough to be answered.
const CLIENT_HELLO: &[u8] = b"\x16\x03\x01\x00\x4b\x01\x00\x00\x47\x03\x03\
everywire asks: who is there? ..\
\x00\x00\x08\xc0\x2f\xc0\x2b\xc0\x30\x00\x9c\x01\x00\x00\x16\
\x00\x0a\x00\x06\x00\x04\x00\x1d\x00\x17\
\x00\x0d\x00\x08\x00\x06\x04\x01\x04\x03\x08\x04";

/// The protocol whose servers begin so.
pub(super) fn of_banner(seen: &[u8]) -> Option<&'static ForeignProtocol> {
    BANNERS.iter().find(|known| matches!((known.answers)(seen), Sniff::Yes))
}

/// Whether an answer is the one in HTTP by which servers of HTTPS send away who does not encrypt.
pub(super) fn sends_away(octets: &[u8]) -> bool {
    octets.starts_with(b"HTTP/1.") && octets.get(8..12) == Some(b" 400")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_of_the_hello_are_true() {
        assert_eq!(CLIENT_HELLO.len(), 5 + 0x4b);
        assert_eq!(CLIENT_HELLO.get(8).copied(), Some(0x47));
        assert_eq!(ASKED[1].octets.len(), 0x2b);
    }

    #[test]
    fn servers_are_known_by_their_first_word() {
        let name = |seen: &[u8]| of_banner(seen).map(|known| known.protocol);
        assert_eq!(name(b"SSH-2.0-OpenSSH_9.2p1\r\n"), Some("SSH"));
        assert_eq!(name(b"220 mail.example ESMTP\r\n"), Some("SMTP or FTP"));
        assert_eq!(name(b"J\0\0\0\n8.0.36\0"), Some("MySQL"));
        assert_eq!(name(b"\x15\x03\x01\0\x02\x02\x46"), Some("TLS"));
        assert_eq!(name(b"GIOP"), None);
        assert_eq!(name(b""), None);
    }
}
