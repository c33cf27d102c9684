//! Peers that mean harm, before they are authenticated.

#![allow(clippy::unwrap_used)]

use crate::support::{GUID, GUID_TEXT, Hears};
use bytes::BytesMut;
use everywire_auth::sasl::{
    Client, ClientOptions, MAX_LINE, MAX_LINES, Mechanism, Progress, SaslError, Server, ServerOptions,
};

fn server() -> Server {
    Server::new(ServerOptions { peer_uid: Some(0), ..ServerOptions::new(GUID) })
}

fn client(pipelined: bool) -> Client {
    let mut client = Client::new(ClientOptions {
        mechanisms: vec![Mechanism::External],
        uid: Some(0),
        pipelined,
        ..ClientOptions::default()
    });
    client.start(&mut Vec::new()).unwrap();
    client
}

/// Feeds bytes one by one until something is wrong, and says how many that took.
fn drip(machine: &mut impl Hears, bytes: impl Iterator<Item = u8>) -> (usize, SaslError) {
    let (mut input, mut out) = (BytesMut::new(), Vec::new());
    for (count, byte) in bytes.enumerate() {
        input.extend_from_slice(&[byte]);
        if let Err(error) = machine.hear(&mut input, &mut out) {
            return (count + 1, error);
        }
        assert!(out.len() <= 64 * MAX_LINES, "an attacker makes us say {} bytes", out.len());
    }
    panic!("everything was accepted");
}

#[test]
fn d7_an_endless_line() {
    let wrong = SaslError::LineTooLong { limit: MAX_LINE };
    let line = || std::iter::repeat(b'A');
    assert_eq!(drip(&mut server(), std::iter::once(0).chain(line())), (MAX_LINE + 2, wrong.clone()));
    assert_eq!(drip(&mut client(false), line()), (MAX_LINE + 1, wrong.clone()));
    assert_eq!(drip(&mut client(true), line()), (MAX_LINE + 1, wrong.clone()));
    // Neither does half an end of line help, nor a line that is whole but too long.
    assert_eq!(drip(&mut client(false), std::iter::repeat(b'\r')), (MAX_LINE + 1, wrong.clone()));
    assert_eq!(drip(&mut client(false), std::iter::repeat(b'\n')), (MAX_LINE + 1, wrong.clone()));
    let whole = |len: usize| format!("{}\r\n", "A".repeat(len - 2));
    assert_eq!(client(false).says(&whole(MAX_LINE + 1)).0, Err(wrong));
    assert_eq!(client(false).says(&whole(MAX_LINE)).0, Ok(Progress::More));
}

#[test]
fn d7_endless_lines() {
    let wrong = SaslError::TooManyLines { limit: MAX_LINES };
    for line in ["\r\n", "AUTH\r\n", "AUTH EXTERNAL zz\r\n", "NEGOTIATE_UNIX_FD\r\n", "BLAH\r\n"] {
        let (count, error) = drip(&mut server(), b"\0".iter().chain(line.as_bytes().iter().cycle()).copied());
        assert_eq!((count, error), (1 + (MAX_LINES + 1) * line.len(), wrong.clone()), "{line:?}");
    }
    for line in ["\r\n", "BLAH\r\n", "DATA zz\r\n"] {
        let (count, error) = drip(&mut client(false), line.as_bytes().iter().cycle().copied());
        assert_eq!((count, error), ((MAX_LINES + 1) * line.len(), wrong.clone()), "{line:?}");
    }
    // Success does not reset the count: OK, CANCEL, OK, CANCEL... ends by the attempts.
    let again = b"AUTH EXTERNAL 30\r\nCANCEL\r\n";
    let (_, error) = drip(&mut server(), b"\0".iter().chain(again.iter().cycle()).copied());
    assert_eq!(error.name(), "TooManyAttempts");
}

#[test]
fn d8_no_zero_byte() {
    for first in ["A", "l", "\r\n", "\u{1}"] {
        let found = first.as_bytes()[0];
        assert_eq!(server().says(first).0, Err(SaslError::NoNul { found }));
    }
    assert_eq!(server().says("").0, Ok(Progress::More));
    // Only one is taken off.
    assert_eq!(server().says("\0\0AUTH\r\n").1, "ERROR \"unknown command\"\r\n");
}

#[test]
fn d8_begin_before_ok() {
    for before in
        ["", "AUTH\r\n", "AUTH EXTERNAL\r\n", "AUTH EXTERNAL 31\r\n", "AUTH EXTERNAL 30\r\nCANCEL\r\n"]
    {
        let (progress, _) = server().says(&format!("\0{before}BEGIN\r\nl\x01\0\x01"));
        assert_eq!(progress, Err(SaslError::EarlyBegin), "{before:?}");
    }
}

#[test]
fn d8_messages_right_after_the_end_are_not_touched() {
    let mut input = BytesMut::from(&b"\0AUTH EXTERNAL 30\r\nBEGIN\r\nBEGIN\r\nl\x01"[..]);
    let progress = server().receive(&mut input, &mut Vec::new());
    assert!(matches!(progress, Ok(Progress::Done(_))), "{progress:?}");
    assert_eq!(&input[..], b"BEGIN\r\nl\x01");
}

#[test]
fn d8_a_server_that_begins_messages_too_early() {
    for early in ["l\x02\0\x01\r\n", "AGREE_UNIX_FD\r\n", "BEGIN\r\n"] {
        let (progress, _) = client(true).says(early);
        assert_eq!(progress.unwrap_err().name(), "OutOfPlace", "{early:?}");
        let (progress, out) = client(true).says(&format!("OK {GUID_TEXT}\r\n{early}"));
        match early {
            "AGREE_UNIX_FD\r\n" => assert!(matches!(progress, Ok(Progress::Done(_)))),
            _ => assert_eq!(progress.unwrap_err().name(), "OutOfPlace", "{early:?}"),
        }
        assert_eq!(out, "");
    }
    // It was told who we are, so it has nothing to ask.
    assert_eq!(client(true).says("DATA\r\n").0.unwrap_err().name(), "OutOfPlace");
    assert_eq!(
        client(false).says(&format!("OK {GUID_TEXT}\r\nREJECTED\r\n")).0.unwrap_err().name(),
        "OutOfPlace"
    );
}

#[test]
fn d8_a_client_that_was_never_started_hears_nothing() {
    let mut client = Client::new(ClientOptions::default());
    assert_eq!(client.says(&format!("OK {GUID_TEXT}\r\n")).0.unwrap_err().name(), "OutOfPlace");
}

#[test]
fn failures_say_who_and_what() {
    use everywire_model::{Failure, Initiator, Kind};
    let failure = Failure::from(SaslError::EarlyBegin);
    assert_eq!((failure.kind(), failure.initiator()), (Kind::Violation, Initiator::Peer));
    assert_eq!(failure.message(), "BEGIN came before the client was authenticated (EarlyBegin)");
    assert_eq!(Failure::from(SaslError::TooManyAttempts { limit: 6 }).kind(), Kind::Refused);
}
