//! The server's half of SASL, line by line. The conversations are those of libdbus's own tests, among others.

#![allow(clippy::unwrap_used)]

use crate::support::{GUID, GUID_TEXT, Hears, Scratch, broken, fixed, hex};
use everywire_auth::own_uid;
use everywire_auth::sasl::{
    Accept, AuthenticatedClient, Identity, Keyring, KeyringError, Mechanism, Progress, SaslError, Server,
    ServerOptions,
};

const ALL: [Mechanism; 3] = [Mechanism::External, Mechanism::CookieSha1, Mechanism::Anonymous];

fn options() -> ServerOptions {
    ServerOptions {
        peer_uid: Some(1000),
        accept: Accept::Users(vec![1000]),
        handles: true,
        ..ServerOptions::new(GUID)
    }
}

fn server(options: ServerOptions) -> Server {
    let mut server = Server::new(options);
    assert_eq!(server.says("\0"), (Ok(Progress::More), String::new()));
    server
}

fn ok() -> String {
    format!("OK {GUID_TEXT}\r\n")
}

fn admitted(identity: Identity, mechanism: Mechanism, handles: bool) -> Progress<AuthenticatedClient> {
    Progress::Done(AuthenticatedClient { identity, mechanism, handles })
}

#[test]
fn external() {
    let mut server = server(options());
    assert_eq!(server.answers("AUTH EXTERNAL 31303030"), ok());
    let (progress, out) = server.says("BEGIN\r\n");
    let expected = admitted(Identity::User(1000), Mechanism::External, false);
    assert_eq!((progress, out.as_str()), (Ok(expected), ""));
}

#[test]
fn external_by_the_kernels_word() {
    let mut server = server(options());
    assert_eq!(server.answers("AUTH EXTERNAL"), "DATA\r\n");
    assert_eq!(server.answers("DATA"), ok());
    assert_eq!(server.answers("NEGOTIATE_UNIX_FD"), "AGREE_UNIX_FD\r\n");
    let expected = admitted(Identity::User(1000), Mechanism::External, true);
    assert_eq!(server.says("BEGIN\r\n").0, Ok(expected));
}

#[test]
fn external_in_the_second_line() {
    let mut server = server(options());
    assert_eq!(server.answers("AUTH EXTERNAL"), "DATA\r\n");
    assert_eq!(server.answers("DATA 31303030"), ok());
}

#[test]
fn external_says_another_user_than_the_kernel() {
    for claim in ["0", "1001", "root", "+1000", "1000 ", "4294968296", "-1", "99999999999999999999999"] {
        let mut server = server(options());
        assert_eq!(
            server.answers(&format!("AUTH EXTERNAL {}", hex(claim))),
            "REJECTED EXTERNAL\r\n",
            "{claim}"
        );
        assert_eq!(server.answers("AUTH EXTERNAL 31303030"), ok(), "and again, rightly");
    }
}

#[test]
fn external_without_credentials_is_not_offered() {
    let mut server = server(ServerOptions { peer_uid: None, mechanisms: ALL.to_vec(), ..options() });
    assert_eq!(server.answers("AUTH"), "REJECTED DBUS_COOKIE_SHA1 ANONYMOUS\r\n");
    assert_eq!(server.answers("AUTH EXTERNAL 31303030"), "REJECTED DBUS_COOKIE_SHA1 ANONYMOUS\r\n");
    assert_eq!(server.answers("AUTH EXTERNAL"), "REJECTED DBUS_COOKIE_SHA1 ANONYMOUS\r\n");
}

#[test]
fn only_invited_users() {
    let mut strict = server(ServerOptions { accept: Accept::Users(vec![0, 7]), ..options() });
    assert_eq!(strict.answers("AUTH EXTERNAL 31303030"), "REJECTED EXTERNAL\r\n");
    let mut open = server(ServerOptions { accept: Accept::Everyone, ..options() });
    assert_eq!(open.answers("AUTH EXTERNAL 31303030"), ok());
    assert_eq!(Accept::own(), Accept::Users(vec![own_uid(), 0]));
}

#[test]
fn anonymous() {
    for first in ["AUTH ANONYMOUS 442d42757320312e312e31", "AUTH ANONYMOUS"] {
        let mut server = server(ServerOptions { mechanisms: ALL.to_vec(), ..options() });
        assert_eq!(server.answers(first), ok());
        let expected = admitted(Identity::Anonymous, Mechanism::Anonymous, false);
        assert_eq!(server.says("BEGIN\r\n").0, Ok(expected));
    }
    assert_eq!(server(options()).answers("AUTH ANONYMOUS 00"), "REJECTED EXTERNAL\r\n", "not by default");
}

#[test]
fn cancel_and_start_over() {
    let mut server = server(options());
    assert_eq!(server.answers("AUTH EXTERNAL 31303030"), ok());
    assert_eq!(server.answers("NEGOTIATE_UNIX_FD"), "AGREE_UNIX_FD\r\n");
    assert_eq!(server.answers("CANCEL"), "REJECTED EXTERNAL\r\n");
    assert_eq!(server.answers("CANCEL"), "ERROR \"not now\"\r\n");
    assert_eq!(server.answers("AUTH EXTERNAL 31303030"), ok());
    assert_eq!(server.answers("AUTH EXTERNAL 31303030"), "ERROR \"not now\"\r\n");
    assert_eq!(server.answers("ERROR \"no guid wanted\""), "REJECTED EXTERNAL\r\n");
    assert_eq!(server.answers("AUTH EXTERNAL"), "DATA\r\n");
    assert_eq!(server.answers("CANCEL"), "REJECTED EXTERNAL\r\n");
    assert_eq!(server.answers("DATA"), "ERROR \"not now\"\r\n");
    assert_eq!(server.answers("NEGOTIATE_UNIX_FD"), "ERROR \"not now\"\r\n");
    assert_eq!(server.answers("AUTH EXTERNAL 31303030"), ok());
    // What was agreed on before the cancellation does not count any more.
    let expected = admitted(Identity::User(1000), Mechanism::External, false);
    assert_eq!(server.says("BEGIN\r\n").0, Ok(expected));
}

#[test]
fn asking_what_there_is_is_no_failure() {
    let mut server = server(options());
    for _ in 0..20 {
        assert_eq!(server.answers("AUTH"), "REJECTED EXTERNAL\r\n");
    }
    assert_eq!(server.answers("AUTH EXTERNAL 31303030"), ok());
}

#[test]
fn odd_lines_get_an_error() {
    let mut server = server(ServerOptions { handles: false, ..options() });
    assert_eq!(server.answers("NONEXISTENT_COMMAND foo bar"), "ERROR \"unknown command\"\r\n");
    assert_eq!(server.answers(""), "ERROR \"unknown command\"\r\n");
    assert_eq!(server.answers("auth EXTERNAL 31303030"), "ERROR \"unknown command\"\r\n");
    assert_eq!(server.answers("AUTH external 31303030"), "REJECTED EXTERNAL\r\n");
    for bad in ["willy", "3130303", "31303030 31", "31303030\n", "31303030\u{e9}"] {
        assert_eq!(
            server.answers(&format!("AUTH EXTERNAL {bad}")),
            "ERROR \"not hexadecimal\"\r\n",
            "{bad:?}"
        );
    }
    assert_eq!(server.answers("AUTH EXTERNAL"), "DATA\r\n");
    assert_eq!(server.answers("DATA 3"), "ERROR \"not hexadecimal\"\r\n");
    assert_eq!(server.answers("DATA"), ok());
    assert_eq!(server.answers("NEGOTIATE_UNIX_FD"), "ERROR \"no file descriptors here\"\r\n");
    assert_eq!(server.says("BEGIN\r\n").0, Ok(admitted(Identity::User(1000), Mechanism::External, false)));
}

#[test]
fn too_many_attempts() {
    let mut server = server(options());
    for _ in 0..5 {
        assert_eq!(server.answers("AUTH EXTERNAL 30"), "REJECTED EXTERNAL\r\n");
    }
    let (progress, out) = server.says("AUTH EXTERNAL 30\r\n");
    assert_eq!(progress, Err(SaslError::TooManyAttempts { limit: 6 }));
    assert_eq!(out, "REJECTED EXTERNAL\r\n", "it is told all the same");
}

fn cookie_options(scratch: &Scratch) -> ServerOptions {
    ServerOptions {
        mechanisms: vec![Mechanism::CookieSha1],
        accept: Accept::own(),
        user: "ann".to_owned(),
        keyring: Keyring::at(scratch.join("keys")),
        ..options()
    }
}

#[test]
fn cookies_for_this_user_only() {
    let scratch = Scratch::new();
    let me = own_uid().to_string();
    let mut server = server(cookie_options(&scratch));
    for other in ["bob", &(own_uid() + 1).to_string()] {
        let reply = server.answers(&format!("AUTH DBUS_COOKIE_SHA1 {}", hex(other)));
        assert_eq!(reply, "REJECTED DBUS_COOKIE_SHA1\r\n", "{other}");
    }
    assert!(!scratch.join("keys").exists(), "nothing is made for strangers");
    for name in [me.as_str(), "ann"] {
        let reply = server.answers(&format!("AUTH DBUS_COOKIE_SHA1 {}", hex(name)));
        assert!(reply.starts_with("DATA "), "{name}: {reply}");
        assert_eq!(server.answers(&format!("DATA {}", hex("00 11"))), "REJECTED DBUS_COOKIE_SHA1\r\n");
        assert_eq!(server.answers(&format!("DATA {}", hex("00 11"))), "ERROR \"not now\"\r\n");
    }
    assert_eq!(server.answers("AUTH DBUS_COOKIE_SHA1"), "DATA\r\n");
    assert!(server.answers(&format!("DATA {}", hex(&me))).starts_with("DATA "));
}

#[test]
fn the_question_has_three_parts() {
    let scratch = Scratch::new();
    let mut server = server(ServerOptions { random: fixed, ..cookie_options(&scratch) });
    let reply = server.answers(&format!("AUTH DBUS_COOKIE_SHA1 {}", hex("ann")));
    let cookie = Keyring::at(scratch.join("keys")).current("org_freedesktop_general", broken).unwrap();
    assert_eq!(cookie.secret, "5a".repeat(24));
    let question = format!("org_freedesktop_general {} {}", cookie.id, "5a".repeat(24));
    assert_eq!(reply, format!("DATA {}\r\n", hex(&question)));
}

#[test]
fn without_random_numbers_there_are_no_cookies() {
    let scratch = Scratch::new();
    let mut server = server(ServerOptions { random: broken, ..cookie_options(&scratch) });
    let reply = server.answers(&format!("AUTH DBUS_COOKIE_SHA1 {}", hex("ann")));
    assert_eq!(reply, "REJECTED DBUS_COOKIE_SHA1\r\n");
    assert_eq!(server.keyring_error(), Some(&KeyringError::NoRandom));
}
