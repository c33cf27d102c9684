//! Attacks on the framing, by the numbers of the list of attacks: silence (N1), sizes (N2), upgrades (N6), URIs (N7).

#![allow(clippy::unwrap_used)]

use crate::channels::*;
use bytes::BytesMut;
use everywire_model::*;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn n1_a_silent_peer_is_timed_from_the_start() {
    let mut server = accepting("security=none");
    let due = server.deadline().unwrap();
    assert!(due <= Instant::now() + 30 * SECOND);
    server.expire(due - SECOND).unwrap();
    assert_eq!(server.expire(due).unwrap_err().name, "NoPreamble");
    assert!(sent(&mut server).is_empty());
}

#[test]
fn n1_a_preamble_byte_by_byte_gets_no_more_time() {
    let mut server = accepting("security=none&ChannelInitializationTimeout=5");
    let due = server.deadline().unwrap();
    let (mut input, mut now) = (BytesMut::new(), Instant::now());
    for octet in unhex(&PREAMBLE[..PREAMBLE.len() - 2]) {
        now += Duration::from_millis(10);
        input.extend_from_slice(&[octet]);
        server.receive(now, &mut input, &mut Vec::new()).unwrap();
        assert_eq!(server.deadline(), Some(due));
    }
    assert_eq!(server.expire(due).unwrap_err().name, "NoPreamble");
}

#[test]
fn n1_an_idle_channel_is_ended_and_its_peer_is_told() {
    let mut server = accepting("security=none&ReceiveTimeout=120");
    give(&mut server, &unhex(PREAMBLE)).unwrap();
    sent(&mut server);
    events(&mut server);
    let due = server.deadline().unwrap();
    server.expire(due - SECOND).unwrap();
    assert!(events(&mut server).is_empty());
    server.expire(due).unwrap();
    assert_eq!(sent(&mut server), [0x07]);
    assert!(matches!(events(&mut server)[..], [Event::Closed]));
}

#[test]
fn n1_a_pooled_connection_is_not_kept_for_ever() {
    let mut server = accepting("security=none&IdleTimeout=60");
    give(&mut server, &unhex(PREAMBLE)).unwrap();
    give(&mut server, &[0x07]).unwrap();
    sent(&mut server);
    events(&mut server);
    let due = server.deadline().unwrap();
    assert!(due <= Instant::now() + 60 * SECOND);
    server.expire(due).unwrap();
    assert!(matches!(events(&mut server)[..], [Event::Closed]));
}

/// The time of a message counts from its first byte: trickling does not lengthen it, its size does.
#[test]
fn n1_a_message_that_trickles_is_given_up() {
    for begin in ["0680808002", "05808080010000"] {
        let singleton = begin.starts_with("05");
        let preamble = if singleton {
            PREAMBLE.replacen("0102", "0101", 1).replacen("03080c", "03070c", 1)
        } else {
            PREAMBLE.to_owned()
        };
        let mut server = accepting("security=none&MaxReceivedMessageSize=10000000");
        give(&mut server, &unhex(&preamble)).unwrap();
        let mut input = BytesMut::from(&unhex(begin)[..]);
        let now = Instant::now();
        server.receive(now, &mut input, &mut Vec::new()).unwrap();
        let due = server.deadline().unwrap();
        for step in 1..10 {
            input.extend_from_slice(&[0]);
            server.receive(now + step * SECOND, &mut input, &mut Vec::new()).unwrap();
            assert_eq!(server.deadline(), Some(due));
        }
        assert_eq!(server.expire(due).unwrap_err().name, "TooSlow");
    }
}

/// Chunks of one byte each share the time of their message.
#[test]
fn n1_chunks_that_trickle_are_given_up() {
    let mut server = accepting("security=none");
    give(&mut server, &unhex(&PREAMBLE.replacen("0102", "0101", 1).replacen("03080c", "03070c", 1))).unwrap();
    let now = Instant::now();
    let mut input = BytesMut::from(&[0x05, 0x01, 0x56][..]);
    server.receive(now, &mut input, &mut Vec::new()).unwrap();
    let due = server.deadline().unwrap();
    for step in 1..20 {
        input.extend_from_slice(&[0x01, 0x02]);
        server.receive(now + step * SECOND, &mut input, &mut Vec::new()).unwrap();
    }
    assert_eq!(server.deadline(), Some(due));
    assert_eq!(server.expire(due).unwrap_err().name, "TooSlow");
}

#[test]
fn n1_a_server_that_does_not_acknowledge_is_given_up() {
    let mut client = connecting(&format!("{VIA}?OpenTimeout=5&mode=streamed"));
    let due = client.deadline().unwrap();
    assert!(due <= Instant::now() + 5 * SECOND);
    assert_eq!(client.expire(due).unwrap_err().name, "NoPreamble");
}

/// Each record with a size, in each way that a size can be wrong: refused at once, nothing is waited for.
#[test]
fn n2_sizes_above_31_bits_or_with_needless_bytes_are_refused() {
    let sizes = ["8080808008", "ffffffff0f", "8080808080", "8000", "ff8000", "80808000", "8080808000"];
    for size in sizes {
        for (head, name) in
            [("00010001020", "2"), ("0001000102020178", "04"), (PREAMBLE, "06"), (PREAMBLE, "08")]
        {
            let mut server = accepting("security=none");
            let bytes = unhex(&format!("{head}{name}{size}"));
            assert_eq!(give(&mut server, &bytes).unwrap_err().name, "Size", "{head}{name}{size}");
            assert_eq!(server.wanted(), 0);
        }
        let mut client = connecting(VIA);
        give(&mut client, &[0x0b]).unwrap();
        assert_eq!(give(&mut client, &unhex(&format!("06{size}"))).unwrap_err().name, "Size");
    }
}

#[test]
fn n2_sizes_above_their_quota_are_refused_before_anything_comes() {
    let cases = [
        ("0001000102", "02ffffffff07", "ViaTooLong", "TextTooLong"),
        ("0001000102", "028110", "ViaTooLong", "TextTooLong"),
        (PREAMBLE, "06ffffffff07", "MaxMessageSizeExceededFault", "OverLimit"),
        (PREAMBLE, "06818004", "MaxMessageSizeExceededFault", "OverLimit"),
    ];
    for (head, record, fault, violation) in cases {
        let mut server = accepting("security=none");
        give(&mut server, &unhex(head)).unwrap();
        sent(&mut server);
        let refused = give(&mut server, &unhex(record)).unwrap_err();
        assert_eq!(refused.name, violation, "{record}");
        assert!(String::from_utf8_lossy(&sent(&mut server)).ends_with(fault));
    }
    // The largest that is taken is waited for.
    let mut server = accepting("security=none");
    let mut input = BytesMut::from(&unhex(&format!("{PREAMBLE}06808004"))[..]);
    server.receive(Instant::now(), &mut input, &mut Vec::new()).unwrap();
    assert_eq!(server.wanted(), 65_536);
}

#[test]
fn n2_chunks_whose_sizes_add_up_beyond_any_number_are_refused() {
    let mut server = accepting("security=none");
    give(&mut server, &unhex(&PREAMBLE.replacen("0102", "0101", 1).replacen("03080c", "03070c", 1))).unwrap();
    give(&mut server, &[0x05, 0x01, 0x56]).unwrap();
    assert_eq!(give(&mut server, &[0xff, 0xff, 0xff, 0xff, 0x07]).unwrap_err().name, "OverLimit");
}

#[test]
fn n2_empty_records_are_refused() {
    for (head, record) in [("0001000102", "0200"), (PREAMBLE, "0600"), (PREAMBLE, "0800")] {
        let mut server = accepting("security=none");
        assert_eq!(give(&mut server, &unhex(&format!("{head}{record}"))).unwrap_err().name, "Empty");
    }
    let mut server = accepting("security=none");
    give(&mut server, &unhex(&PREAMBLE.replacen("0102", "0101", 1).replacen("03080c", "03070c", 1))).unwrap();
    assert_eq!(give(&mut server, &[0x05, 0x00]).unwrap_err().name, "Empty");
}

/// Users of a place, in a file of their own.
struct Users(std::path::PathBuf);

impl Users {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("framing-users-{name}-{}", std::process::id()));
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .unwrap();
        writeln!(file, "joe:secret").unwrap();
        Self(path)
    }

    fn options(&self) -> String {
        format!("security=windows&users={}", self.0.display())
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const WINDOWS: &str = "net.tcp://joe:secret@localhost:8898/Demo?security=windows";
const NEGOTIATE: &[u8] = b"\x09\x15application/negotiate";
const TLS: &[u8] = b"\x09\x13application/ssl-tls";

/// Up to the encoding.
fn opening() -> Vec<u8> {
    unhex(&PREAMBLE[..PREAMBLE.len() - 2])
}

#[test]
fn n6_the_upgrade_that_was_agreed_on_protects_all_that_follows() {
    let users = Users::new("agreed");
    for piece in [1, usize::MAX] {
        let mut pair = Pair::new(connecting(WINDOWS), accepting(&users.options()));
        pair.piece = piece;
        pair.call(Expects::Reply);
        pair.carry();
        assert_eq!(pair.serve(), 1);
        pair.carry();
        let events = events(&mut *pair.client);
        assert!(matches!(&events[0], Event::Ready(peer) if peer.authentication != "none"), "{events:?}");
        assert!(matches!(&events[1], Event::Reply { outcome: Outcome::Done(_), .. }));
        // Nothing of a call can be read on its way.
        pair.call(Expects::Reply);
        let bytes = sent(&mut *pair.client);
        assert!(!bytes.windows(4).any(|window| window == b"Echo"));
    }
}

/// A key and a certificate by nobody else, in a directory of their own.
struct Papers(std::path::PathBuf);

impl Papers {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("framing-papers-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let made = std::process::Command::new("openssl")
            .args(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
                    .split(' '),
            )
            .args("-addext subjectAltName=DNS:localhost -keyout own.key -out own.pem".split(' '))
            .current_dir(&path)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        std::fs::set_permissions(path.join("own.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        Self(path)
    }
}

impl Drop for Papers {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn n6_tls_protects_all_that_follows() {
    let papers = Papers::new();
    let path = papers.0.display();
    for piece in [1, usize::MAX] {
        let client = connecting(&format!("{VIA}?security=tls&ca={path}/own.pem"));
        let server = accepting(&format!("security=tls&cert={path}/own.pem&key={path}/own.key"));
        let mut pair = Pair::new(client, server);
        pair.piece = piece;
        pair.call(Expects::Reply);
        pair.carry();
        assert_eq!(pair.serve(), 1);
        pair.carry();
        let events = events(&mut *pair.client);
        assert!(matches!(&events[0], Event::Ready(peer) if peer.authentication != "none"), "{events:?}");
        assert!(matches!(&events[1], Event::Reply { outcome: Outcome::Done(_), .. }));
    }
    // Nobody signed it for those who do not know it.
    let mut client = connecting(&format!("{VIA}?security=tls"));
    let mut server = accepting(&format!("security=tls&cert={path}/own.pem&key={path}/own.key"));
    call(&mut client, Expects::Reply).unwrap();
    let refused = loop {
        let said = sent(&mut client);
        assert!(!said.is_empty(), "nobody refused");
        give(&mut server, &said).unwrap();
        if let Err(violation) = give(&mut client, &sent(&mut server)) {
            break violation;
        }
    };
    assert_eq!(refused.name, "Authentication");
    let failure = failures(&mut client).remove(0);
    assert_eq!((failure.kind(), failure.completed()), (Kind::Refused, Completed::No));
    assert!(failure.hint().unwrap().contains("ca=FILE"), "{failure}");
}

#[test]
fn n6_streamed_calls_end_with_the_protection_of_their_connection() {
    let users = Users::new("streamed");
    let mut pair = Pair::new(connecting(&format!("{WINDOWS}&mode=streamed")), accepting(&users.options()));
    pair.call(Expects::Reply);
    pair.call(Expects::Reply);
    pair.carry();
    assert_eq!(pair.serve(), 1);
    // The connection is not over while the answer is still to be sent.
    assert!(events(&mut *pair.server).is_empty());
    pair.carry();
    let outcomes: Vec<bool> = events(&mut *pair.client)
        .into_iter()
        .filter_map(|event| match event {
            Event::Reply { outcome: Outcome::Failed(failure), .. } => {
                assert_eq!(failure.completed(), Completed::No);
                Some(false)
            }
            Event::Reply { .. } => Some(true),
            _ => None,
        })
        .collect();
    // The second call was not begun: it may be tried again on another connection.
    assert_eq!(outcomes, [true, false]);
    assert!(matches!(events(&mut *pair.server)[..], [Event::Closed]));
}

#[test]
fn n6_no_byte_is_taken_between_the_request_and_the_handshake() {
    let users = Users::new("early");
    for early in [&b"\x0c"[..], b"\x16", b"\x16\x01\x00\x00\x00", NEGOTIATE] {
        let mut server = accepting(&users.options());
        let bytes = [&opening(), NEGOTIATE, early].concat();
        assert_eq!(give(&mut server, &bytes).unwrap_err().name, "EarlyBytes");
        assert!(calls(&mut server).is_empty());
    }
    for early in [&b"\x0b"[..], b"\x14\x01\x00\x00\x00", b"\x06\x01x"] {
        let mut client = connecting(WINDOWS);
        call(&mut client, Expects::Reply).unwrap();
        assert_eq!(give(&mut client, &[b"\x0a", early].concat()).unwrap_err().name, "EarlyBytes");
        assert_eq!(failures(&mut client).len(), 1);
    }
}

/// Who asks for protection does not talk without.
#[test]
fn n6_an_upgrade_cannot_be_left_out() {
    let mut client = connecting(WINDOWS);
    call(&mut client, Expects::Reply).unwrap();
    let said = sent(&mut client);
    assert!(said.ends_with(NEGOTIATE));
    assert_eq!(give(&mut client, &[0x0b]).unwrap_err().name, "Unexpected");
    assert!(sent(&mut client).is_empty());
    let users = Users::new("left-out");
    let mut server = accepting(&users.options());
    assert_eq!(give(&mut server, &unhex(PREAMBLE)).unwrap_err().name, "SecurityRequired");
    // Whoever left it out learns why.
    let mut client = connecting(VIA);
    sent(&mut client);
    call(&mut client, Expects::Reply).unwrap();
    give(&mut client, &sent(&mut server)).unwrap_err();
    let failure = failures(&mut client).remove(0);
    assert!(failure.message().contains("demands security"), "{failure}");
    assert!(failure.hint().unwrap().contains("security=tls"));
    // So does whoever asked in vain.
    let (mut client, mut server) = (connecting(WINDOWS), accepting("security=none"));
    give(&mut server, &sent(&mut client)).unwrap_err();
    call(&mut client, Expects::Reply).unwrap();
    give(&mut client, &sent(&mut server)).unwrap_err();
    assert!(failures(&mut client)[0].hint().unwrap().contains("?security=none"));
    assert!(sent(&mut server).is_empty());
}

#[test]
fn n6_another_upgrade_than_the_demanded_one_is_refused() {
    let users = Users::new("another");
    for other in [TLS, b"\x09\x15application/unixposix", b"\x09\x01x", b"\x09\x15APPLICATION/NEGOTIATE"] {
        let mut server = accepting(&users.options());
        let refused = give(&mut server, &[&opening(), other].concat()).unwrap_err();
        assert_eq!(refused.name, "Upgrade");
        assert!(String::from_utf8_lossy(&sent(&mut server)).ends_with("UpgradeInvalid"));
    }
    // A place without security has none to offer.
    let mut server = accepting("security=none");
    assert_eq!(give(&mut server, &[&opening(), NEGOTIATE].concat()).unwrap_err().name, "Upgrade");
}

#[test]
fn n6_messages_before_the_end_of_the_preamble_are_refused() {
    for early in [&b"\x06\x01x"[..], b"\x05\x01x\x00", b"\x07", b"\x0b", b"\x0a", b"\x00\x01\x00"] {
        let mut server = accepting("security=none");
        assert_eq!(give(&mut server, &[&opening(), early].concat()).unwrap_err().name, "Unexpected");
        assert!(events(&mut server).is_empty());
    }
}

#[test]
fn n6_a_wrong_password_opens_nothing() {
    let users = Users::new("wrong");
    let mut client = connecting(&WINDOWS.replace("secret", "guess"));
    let mut server = accepting(&users.options());
    call(&mut client, Expects::Reply).unwrap();
    let refused = loop {
        if let Err(violation) = give(&mut server, &sent(&mut client)) {
            break violation;
        }
        if give(&mut client, &sent(&mut server)).is_err() {
            panic!("the client was told before the server knew");
        }
    };
    assert_eq!(refused.name, "Authentication");
    assert!(events(&mut server).is_empty());
}

/// The kernel's word is asked for, and counts only where there is one.
#[test]
fn n6_the_kernels_upgrade_needs_the_kernels_word() {
    let unix = [&opening()[..], b"\x09\x15application/unixposix\x0c"].concat();
    let mut config = place("security=none");
    let mut server = everywire_wcf::framing::Accepting::new(&config);
    assert_eq!(give(&mut server, &unix).unwrap_err().name, "Upgrade");
    config.peer.credentials = Some((1, 1000));
    let mut server = everywire_wcf::framing::Accepting::new(&config);
    give(&mut server, &unix).unwrap();
    assert_eq!(sent(&mut server), [0x0a, 0x0b]);
    let events = events(&mut server);
    assert!(matches!(&events[..], [Event::Ready(peer)] if peer.authentication == "unix credentials"));
}

#[test]
fn n7_vias_of_other_schemes_and_none_are_refused() {
    for via in [
        "http://localhost:8898/Demo",
        "localhost/Demo",
        "net.tcp:/Demo",
        "x",
        "file:///Demo",
        "net.tcpx://h/Demo",
    ] {
        let mut bytes = unhex("0001000102");
        bytes.extend_from_slice(&[0x02, u8::try_from(via.len()).unwrap()]);
        bytes.extend_from_slice(via.as_bytes());
        bytes.extend_from_slice(&[0x03, 0x08, 0x0c]);
        let mut server = accepting("security=none");
        let refused = give(&mut server, &bytes).unwrap_err();
        assert_eq!(refused.name, "NoEndpoint", "{via}");
        assert!(String::from_utf8_lossy(&sent(&mut server)).ends_with("EndpointNotFound"));
    }
}

/// Up to the encoding, for this via.
fn opening_to(via: &str) -> Vec<u8> {
    let head = [0x02, u8::try_from(via.len()).unwrap()];
    [&unhex("0001000102")[..], &head, via.as_bytes(), &[0x03, 0x08]].concat()
}

/// The whole path counts, but for the case of its letters; the host does not.
#[test]
fn n7_a_via_must_name_an_endpoint_exactly() {
    const KEYS: &[&str] = &["Demo", "a/b"];
    for served in ["net.tcp://h/Demo", "net.tcp://other:1/Demo", "NET.TCP://h/demo", "net.tcp://h/a/b"] {
        let mut server = accepting_for(KEYS);
        give(&mut server, &[&opening_to(served)[..], &[0x0c]].concat()).unwrap();
        assert_eq!(sent(&mut server), [0x0b], "{served}");
    }
    for other in [
        "net.tcp://h/",
        "net.tcp://h",
        "net.tcp://h/Dem",
        "net.tcp://h/Demo/x",
        "net.tcp://h/x/Demo",
        "net.tcp://h/a",
        "net.tcp://h//Demo",
        "net.tcp://h/../Demo",
    ] {
        let mut server = accepting_for(KEYS);
        assert_eq!(give(&mut server, &opening_to(other)).unwrap_err().name, "NoEndpoint", "{other}");
        assert!(String::from_utf8_lossy(&sent(&mut server)).ends_with("EndpointNotFound"));
    }
}

#[test]
fn n7_a_via_that_is_no_text_is_refused() {
    for via in [&b"net.tcp://h/\xff"[..], b"\xc3", b"net.tcp://h/\xed\xa0\x80"] {
        let mut bytes = unhex("0001000102");
        bytes.extend_from_slice(&[0x02, u8::try_from(via.len()).unwrap()]);
        bytes.extend_from_slice(via);
        let mut server = accepting("security=none");
        assert_eq!(give(&mut server, &bytes).unwrap_err().name, "Via");
    }
}

#[test]
fn n7_content_types_longer_than_the_quota_are_refused_before_they_come() {
    let mut server = accepting("security=none");
    let bytes = [&unhex(&PREAMBLE[..PREAMBLE.len() - 6])[..], &[0x04, 0x81, 0x02]].concat();
    assert_eq!(give(&mut server, &bytes).unwrap_err().name, "TextTooLong");
    assert!(String::from_utf8_lossy(&sent(&mut server)).ends_with("ContentTypeTooLong"));
}

#[test]
fn n7_unknown_encodings_and_records_are_refused() {
    for octet in 0x09..=0xff {
        let mut server = accepting("security=none");
        let bytes = [&unhex(&PREAMBLE[..PREAMBLE.len() - 6])[..], &[0x03, octet]].concat();
        assert_eq!(give(&mut server, &bytes).unwrap_err().name, "ContentType");
    }
    for octet in 0x0d..=0xff {
        let mut server = accepting("security=none");
        // A letter alone may be the first one of another protocol.
        assert_eq!(give(&mut server, &[octet, 0xff]).unwrap_err().name, "UnknownRecord");
        sent(&mut server);
        assert_eq!(give(&mut server, &[0x0c]).map_err(|violation| violation.name), Ok(()));
        assert!(sent(&mut server).is_empty(), "nothing is said after a refusal");
    }
}

/// What is said of a via is what the peer wrote, made harmless.
#[test]
fn n7_control_characters_of_a_via_do_not_reach_messages() {
    let via = b"http://h/\x1b[2J\n";
    let mut bytes = unhex("0001000102");
    bytes.extend_from_slice(&[0x02, u8::try_from(via.len()).unwrap()]);
    bytes.extend_from_slice(via);
    bytes.extend_from_slice(&[0x03, 0x08]);
    let mut server = accepting("security=none");
    let refused = give(&mut server, &bytes).unwrap_err();
    assert!(!refused.message.contains(['\x1b', '\n']), "{:?}", refused.message);
}

#[test]
fn n6_too_little_protection_is_not_told_as_a_wrong_password() {
    let users = Users::new("little");
    let mut client = connecting(&format!("{WINDOWS}&protection=None"));
    let mut server = accepting(&users.options());
    call(&mut client, Expects::Reply).unwrap();
    let failure = loop {
        // Whichever side finds out first, the other is told.
        let _ = give(&mut server, &sent(&mut client));
        let _ = give(&mut client, &sent(&mut server));
        if let Some(failure) = failures(&mut client).pop() {
            break failure;
        }
    };
    assert!(!failure.message().contains("password"), "{failure}");
    assert!(failure.hint().unwrap().contains("protection="), "{failure}");
}

/// A channel of one streamed call has one envelope each way (MC-NMF, Singleton-Unsized).
#[test]
fn n2_a_second_envelope_of_a_streamed_call_is_refused() {
    let mut pair = Pair::streamed();
    pair.carry();
    pair.call(Expects::Reply);
    let call = sent(&mut *pair.client);
    let (envelope, end) = call.split_at(call.len() - 1);
    assert_eq!((envelope[0], end), (0x05, &[0x07][..]));
    give(&mut *pair.server, envelope).unwrap();
    assert_eq!(calls(&mut *pair.server).len(), 1);
    let violation = give(&mut *pair.server, envelope).unwrap_err();
    assert_eq!(violation.name, "Unexpected");
    assert!(calls(&mut *pair.server).is_empty());
}
