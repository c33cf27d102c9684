//! NegotiateStream: both sides against each other, .NET's first words, and hostile bytes.

#![allow(clippy::unwrap_used)]

use bytes::BytesMut;
use everywire_auth::nns::{Channel, ProtectionLevel};
use everywire_auth::security::{Credentials, Mechanism, Options, Secret, UserTable};
use everywire_model::{Failure, Kind, SendBuffer};
use std::sync::Arc;

const LEVELS: [ProtectionLevel; 3] =
    [ProtectionLevel::None, ProtectionLevel::Sign, ProtectionLevel::EncryptAndSign];

fn credentials(word: &str) -> Credentials {
    Credentials { domain: "HOME".into(), user: "ada".into(), password: Secret::password(word) }
}

fn options() -> Options {
    // Nobody gets a ticket for a number: so Kerberos is not even tried.
    Options { target: "host/127.0.0.1".into(), ..Options::default() }
}

fn client(mechanism: Mechanism, word: &str, level: ProtectionLevel) -> Channel {
    Channel::client(mechanism, &credentials(word), &options(), level).unwrap()
}

fn server(level: ProtectionLevel) -> Channel {
    let users = Arc::new(UserTable::parse("ada:engine").unwrap());
    Channel::server(users, &options(), level).unwrap()
}

/// What goes over the line until neither side has anything to say: (to the server, to the client).
fn pass(
    client: &mut Channel,
    server: &mut Channel,
    from_client: &[u8],
    from_server: &[u8],
    piece: usize,
) -> Result<[Vec<u8>; 4], Failure> {
    let (mut up, mut down) = (SendBuffer::new(), SendBuffer::new());
    up.flat().extend_from_slice(from_client);
    down.flat().extend_from_slice(from_server);
    let [mut line_up, mut line_down] = [Vec::new(), Vec::new()];
    let [mut at_server, mut at_client, mut in_server, mut in_client] = [(); 4].map(|()| BytesMut::new());
    let mut failure = None;
    loop {
        let (mut there, mut back) = (SendBuffer::new(), SendBuffer::new());
        client.send(&mut up, &mut there)?;
        server.send(&mut down, &mut back)?;
        if there.is_empty() && back.is_empty() {
            return match failure {
                Some(failure) => Err(failure),
                None => Ok([at_client.to_vec(), at_server.to_vec(), line_up, line_down]),
            };
        }
        let (there, back) = (there.to_vec(), back.to_vec());
        for part in there.chunks(piece) {
            in_server.extend_from_slice(part);
            if let Err(told) = server.receive(&mut in_server, &mut at_server) {
                failure = failure.or(Some(told));
                in_server.clear();
            }
            assert!(in_server.is_empty() || server.wanted(&in_server) > 0, "it knows what is missing");
        }
        for part in back.chunks(piece) {
            in_client.extend_from_slice(part);
            if let Err(told) = client.receive(&mut in_client, &mut at_client) {
                failure = failure.or(Some(told));
                in_client.clear();
            }
        }
        line_up.extend(there);
        line_down.extend(back);
    }
}

#[test]
fn bytes_pass_at_every_level() {
    let large: Vec<u8> = (0..140_003_u32).map(|n| ((n * 31) >> 3) as u8).collect();
    for mechanism in [Mechanism::Negotiate, Mechanism::Ntlm] {
        for level in LEVELS {
            for piece in [usize::MAX, 1009, 1] {
                let large = if piece == 1 { &large[..2_000] } else { &large };
                let (mut ours, mut theirs) = (client(mechanism, "engine", level), server(level));
                let [at_client, at_server, up, down] =
                    pass(&mut ours, &mut theirs, large, b"and back", piece).unwrap();
                assert!(at_server == large && at_client == b"and back", "{mechanism:?} {level:?}");
                assert_eq!((theirs.peer_identity(), theirs.account()), (Some("HOME\\ada"), Some("ada")));
                let seen =
                    |line: &[u8], words: &[u8]| line.windows(words.len()).any(|window| window == words);
                let sealed = ours.level() == Some(ProtectionLevel::EncryptAndSign);
                assert_eq!(ours.level(), theirs.level());
                assert!(ours.level() >= Some(level));
                assert_eq!(seen(&up, &large[1000..1100]) || seen(&down, b"and back"), !sealed, "{level:?}");
            }
        }
    }
}

#[test]
fn frames_are_as_large_as_those_of_dotnet() {
    let (mut ours, mut theirs) =
        (client(Mechanism::Negotiate, "engine", ProtectionLevel::Sign), server(ProtectionLevel::Sign));
    pass(&mut ours, &mut theirs, b"", b"", usize::MAX).unwrap();
    let [.., up, _] = pass(&mut ours, &mut theirs, &[7; 100_000], b"", usize::MAX).unwrap();
    assert_eq!(up[..4], (0xfc00_u32 + 16).to_le_bytes());
    let second = 4 + 0xfc00 + 16;
    assert_eq!(up[second..second + 4], (100_000 - 0xfc00_u32 + 16).to_le_bytes());
}

#[test]
fn wrong_passwords_are_told_so() {
    let (mut ours, mut theirs) = (
        client(Mechanism::Negotiate, "difference", ProtectionLevel::EncryptAndSign),
        server(ProtectionLevel::EncryptAndSign),
    );
    let failure = pass(&mut ours, &mut theirs, b"a", b"b", usize::MAX).unwrap_err();
    assert_eq!(failure.kind(), Kind::Refused, "{failure}");
    assert!(!ours.is_established() && !theirs.is_established());
    // The client learns why.
    let mut channel = client(Mechanism::Ntlm, "engine", ProtectionLevel::Sign);
    let mut denied = BytesMut::from(&b"\x15\x01\x00\x00\x08\x00\x00\x00\x00\x80\x09\x03\x0c"[..]);
    let failure = channel.receive(&mut denied, &mut BytesMut::new()).unwrap_err();
    assert!(failure.message().contains("SEC_E_LOGON_DENIED"), "{failure}");
}

#[test]
fn less_protection_than_wanted_is_refused() {
    for (asked, wanted) in [
        (ProtectionLevel::None, ProtectionLevel::Sign),
        (ProtectionLevel::Sign, ProtectionLevel::EncryptAndSign),
    ] {
        let (mut ours, mut theirs) = (client(Mechanism::Ntlm, "engine", asked), server(wanted));
        let failure = pass(&mut ours, &mut theirs, b"a", b"b", usize::MAX).unwrap_err();
        assert!(failure.kind() == Kind::Refused && !theirs.is_established(), "{failure}");
    }
    // More is taken.
    let (mut ours, mut theirs) =
        (client(Mechanism::Ntlm, "engine", ProtectionLevel::EncryptAndSign), server(ProtectionLevel::None));
    pass(&mut ours, &mut theirs, b"a", b"b", usize::MAX).unwrap();
    assert_eq!(theirs.level(), Some(ProtectionLevel::EncryptAndSign));
}

/// The first record of Microsoft's client, as it was recorded.
const FIRST: &str = "160100004a604806062b0601050502a03e303ca00e300c060a2b06010401823702020aa22a04284e544c4d5353500001000000378218e200000000000000000000000000000000060200000000000f";

#[test]
fn dotnet_is_answered() {
    let first: Vec<u8> =
        (0..FIRST.len()).step_by(2).map(|at| u8::from_str_radix(&FIRST[at..at + 2], 16).unwrap()).collect();
    let mut theirs = server(ProtectionLevel::EncryptAndSign);
    let (mut plain, mut out) = (BytesMut::new(), SendBuffer::new());
    theirs.receive(&mut BytesMut::from(&*first), &mut plain).unwrap();
    theirs.send(&mut SendBuffer::new(), &mut out).unwrap();
    let answer = out.to_vec();
    assert_eq!(answer[..3], [0x16, 1, 0]);
    assert_eq!(usize::from(u16::from_be_bytes([answer[3], answer[4]])), answer.len() - 5);
    assert!(answer.windows(12).any(|window| window == b"NTLMSSP\0\x02\0\0\0"));
    assert!(plain.is_empty());
}

#[test]
fn an_empty_last_word_of_dotnet_is_passed_over() {
    for level in LEVELS {
        let (mut ours, mut theirs) = (client(Mechanism::Negotiate, "engine", level), server(level));
        pass(&mut ours, &mut theirs, b"", b"", usize::MAX).unwrap();
        let (mut plain, mut out, mut said) = (SendBuffer::new(), SendBuffer::new(), BytesMut::new());
        plain.flat().extend_from_slice(b"\x0cwords");
        ours.send(&mut plain, &mut out).unwrap();
        let mut line = BytesMut::from(&b"\x14\x01\x00\x00\x00"[..]);
        line.extend_from_slice(&out.to_vec());
        let mut input = BytesMut::new();
        for byte in line {
            input.extend_from_slice(&[byte]);
            theirs.receive(&mut input, &mut said).unwrap();
        }
        assert_eq!(said, b"\x0cwords"[..], "{level:?}");
    }
}

#[test]
fn hostile_bytes_end_it() {
    // What came in plain before the handshake is no record; nor are records of other versions or with other ids.
    for bytes in [
        &b"\x0c"[..],
        b"\x06\x05",
        b"\x17\x01\x00\x00\x00",
        b"\x16\x02\x00\x00\x00",
        b"\x14\x01\x00\x00\x00",
        b"\x16\x01\x00\x00\x00",
    ] {
        let (mut theirs, mut plain) = (server(ProtectionLevel::None), BytesMut::new());
        let failure = theirs.receive(&mut BytesMut::from(bytes), &mut plain).unwrap_err();
        assert!(matches!(failure.kind(), Kind::Violation | Kind::Refused | Kind::Malformed), "{failure}");
        assert!(plain.is_empty() && !theirs.is_established());
        assert!(theirs.receive(&mut BytesMut::from(bytes), &mut plain).is_err(), "it stays failed");
    }
    let frames: [&[u8]; 5] = [
        &[0, 0, 0, 0],
        &[0, 0, 1, 0x80],
        &[1, 0, 1, 0],
        &[8, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4],
        &[20, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 1, 2, 3, 4],
    ];
    for bytes in frames {
        let level = ProtectionLevel::EncryptAndSign;
        let (mut ours, mut theirs) = (client(Mechanism::Negotiate, "engine", level), server(level));
        pass(&mut ours, &mut theirs, b"", b"", usize::MAX).unwrap();
        let mut plain = BytesMut::new();
        let failure = theirs.receive(&mut BytesMut::from(bytes), &mut plain).unwrap_err();
        assert!(
            matches!(failure.kind(), Kind::Violation | Kind::LimitExceeded) && plain.is_empty(),
            "{failure}"
        );
        assert!(!theirs.is_established());
    }
}

#[test]
fn frames_that_come_again_or_late_end_it() {
    let level = ProtectionLevel::Sign;
    let frames = |ours: &mut Channel| {
        [b"one", b"two"].map(|words| {
            let (mut plain, mut out) = (SendBuffer::new(), SendBuffer::new());
            plain.flat().extend_from_slice(words);
            ours.send(&mut plain, &mut out).unwrap();
            out.to_vec()
        })
    };
    for order in [[0, 0], [1, 0]] {
        let (mut ours, mut theirs) = (client(Mechanism::Negotiate, "engine", level), server(level));
        pass(&mut ours, &mut theirs, b"", b"", usize::MAX).unwrap();
        let frames = frames(&mut ours);
        let mut plain = BytesMut::new();
        let told: Result<(), _> = order
            .into_iter()
            .try_for_each(|at: usize| theirs.receive(&mut BytesMut::from(&*frames[at]), &mut plain));
        assert_eq!(told.unwrap_err().kind(), Kind::Violation);
    }
}
