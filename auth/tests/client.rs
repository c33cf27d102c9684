//! The client's half of SASL, line by line.

#![allow(clippy::unwrap_used)]

use crate::support::{GUID, GUID_TEXT, Hears, Scratch, chmod, fixed, hex};
use everywire_auth::own_uid;
use everywire_auth::sasl::{
    Authenticated, Client, ClientOptions, Guid, Keyring, KeyringError, Mechanism, Progress, SaslError,
};

fn options(mechanisms: &[Mechanism]) -> ClientOptions {
    ClientOptions { mechanisms: mechanisms.to_vec(), uid: Some(1000), ..ClientOptions::default() }
}

fn started(options: ClientOptions, first: &str) -> Client {
    let mut client = Client::new(options);
    let mut out = Vec::new();
    client.start(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), first);
    client
}

fn done(handles: bool, mechanism: Mechanism) -> Progress<Authenticated> {
    Progress::Done(Authenticated { guid: GUID, handles, mechanism })
}

#[test]
fn external_with_handles() {
    let mut client = started(options(&[Mechanism::External]), "\0AUTH EXTERNAL 31303030\r\n");
    assert_eq!(client.answers(&format!("OK {GUID_TEXT}")), "NEGOTIATE_UNIX_FD\r\n");
    let (progress, out) = client.says("AGREE_UNIX_FD\r\n");
    assert_eq!((progress, out.as_str()), (Ok(done(true, Mechanism::External)), "BEGIN\r\n"));
}

#[test]
fn a_server_without_handles_is_no_failure() {
    let mut client = started(options(&[Mechanism::External]), "\0AUTH EXTERNAL 31303030\r\n");
    client.answers(&format!("OK {GUID_TEXT}"));
    let (progress, out) = client.says("ERROR \"what?\"\r\n");
    assert_eq!((progress, out.as_str()), (Ok(done(false, Mechanism::External)), "BEGIN\r\n"));
}

#[test]
fn handles_are_not_asked_for_in_vain() {
    let asked = ClientOptions { negotiate_handles: false, ..options(&[Mechanism::Anonymous]) };
    let mut client = started(asked, "\0AUTH ANONYMOUS 657665727977697265\r\n");
    let (progress, out) = client.says(&format!("OK {GUID_TEXT}\r\n"));
    assert_eq!((progress, out.as_str()), (Ok(done(false, Mechanism::Anonymous)), "BEGIN\r\n"));
}

#[test]
fn the_kernel_may_say_who_we_are() {
    let asked = ClientOptions { uid: None, ..options(&[Mechanism::External]) };
    let mut client = started(asked, "\0AUTH EXTERNAL\r\n");
    assert_eq!(client.answers("DATA"), "DATA\r\n");
    assert_eq!(client.answers(&format!("OK {GUID_TEXT}")), "NEGOTIATE_UNIX_FD\r\n");
}

#[test]
fn falls_back_to_what_both_have_in_our_order() {
    let ours = [Mechanism::External, Mechanism::CookieSha1, Mechanism::Anonymous];
    let mut client = started(options(&ours), "\0AUTH EXTERNAL 31303030\r\n");
    let next = client.answers("REJECTED EXTERNAL KERBEROS_V4 ANONYMOUS DBUS_COOKIE_SHA1");
    assert_eq!(next, "AUTH DBUS_COOKIE_SHA1 31303030\r\n");
    assert_eq!(client.answers("REJECTED ANONYMOUS"), "AUTH ANONYMOUS 657665727977697265\r\n");
    let (progress, out) = client.says("REJECTED EXTERNAL ANONYMOUS FUTURE \x1b[31m lower\r\n");
    assert_eq!(out, "");
    let error = SaslError::Rejected {
        tried: Some(Mechanism::Anonymous),
        offered: ["EXTERNAL", "ANONYMOUS", "FUTURE"].map(String::from).to_vec(),
        retry_with: vec![],
        keyring: None,
    };
    assert_eq!(
        error.to_string(),
        "the server rejected the authentication by ANONYMOUS; it offers EXTERNAL, ANONYMOUS, FUTURE"
    );
    assert_eq!(progress, Err(error));
}

#[test]
fn pipelined_all_at_once() {
    let asked = ClientOptions { pipelined: true, ..options(&[Mechanism::External]) };
    let mut client = started(asked, "\0AUTH EXTERNAL 31303030\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n");
    let mut input = bytes::BytesMut::from(format!("OK {GUID_TEXT}\r\nAGREE_UNIX_FD\r\nl\x02\x01").as_str());
    let mut out = Vec::new();
    assert_eq!(client.receive(&mut input, &mut out), Ok(done(true, Mechanism::External)));
    assert_eq!((&input[..], out.len()), (&b"l\x02\x01"[..], 0), "messages stay where they are");
    // Asked again, it says the same and takes nothing.
    assert_eq!(client.receive(&mut input, &mut out), Ok(done(true, Mechanism::External)));
    assert_eq!(input.len(), 3);
}

#[test]
fn pipelined_and_the_kernel_says_who_we_are() {
    let asked = ClientOptions { pipelined: true, uid: None, ..options(&[Mechanism::External]) };
    let mut client = started(asked, "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n");
    let (progress, out) = client.says(&format!("DATA\r\nOK {GUID_TEXT}\r\nERROR\r\n"));
    assert_eq!((progress, out.as_str()), (Ok(done(false, Mechanism::External)), ""));
}

#[test]
fn pipelined_and_rejected_says_what_to_try_next() {
    let ours = [Mechanism::External, Mechanism::CookieSha1, Mechanism::Anonymous];
    let asked = ClientOptions { pipelined: true, ..options(&ours) };
    let mut client = Client::new(asked);
    client.start(&mut Vec::new()).unwrap();
    let (progress, out) = client.says("REJECTED DBUS_COOKIE_SHA1 SRP\r\nERROR\r\n");
    assert_eq!(out, "");
    let Err(SaslError::Rejected { tried, offered, retry_with, .. }) = progress else {
        panic!("{progress:?}")
    };
    assert_eq!((tried, retry_with), (Some(Mechanism::External), vec![Mechanism::CookieSha1]));
    assert_eq!(offered, ["DBUS_COOKIE_SHA1", "SRP"]);
}

#[test]
fn pipelined_and_not_understood_says_try_again() {
    let ours = [Mechanism::External, Mechanism::CookieSha1];
    let asked = ClientOptions { pipelined: true, uid: None, ..options(&ours) };
    let mut client = Client::new(asked);
    client.start(&mut Vec::new()).unwrap();
    let Err(SaslError::Rejected { retry_with, .. }) = client.says("ERROR\r\n").0 else { panic!() };
    assert_eq!(retry_with, ours);
}

#[test]
fn the_cookie_mechanism_is_never_pipelined() {
    let asked = ClientOptions { pipelined: true, ..options(&[Mechanism::CookieSha1]) };
    started(asked, "\0AUTH DBUS_COOKIE_SHA1 31303030\r\n");
    let named = ClientOptions { user: "ann".to_owned(), ..options(&[Mechanism::CookieSha1]) };
    started(named, "\0AUTH DBUS_COOKIE_SHA1 616e6e\r\n");
    let unsaid = ClientOptions { uid: None, ..options(&[Mechanism::CookieSha1]) };
    started(unsaid, &format!("\0AUTH DBUS_COOKIE_SHA1 {}\r\n", hex(&own_uid().to_string())));
}

#[test]
fn no_mechanism_at_all() {
    let error = Client::new(options(&[])).start(&mut Vec::new()).unwrap_err();
    assert_eq!(error.name(), "Rejected");
    assert!(error.to_string().contains("no mechanism to offer"), "{error}");
}

#[test]
fn errors_cancel_the_attempt() {
    let ours = [Mechanism::External, Mechanism::Anonymous];
    let mut client = started(options(&ours), "\0AUTH EXTERNAL 31303030\r\n");
    assert_eq!(client.answers("ERROR \"no\""), "CANCEL\r\n");
    assert_eq!(client.answers("REJECTED ANONYMOUS"), "AUTH ANONYMOUS 657665727977697265\r\n");
    assert_eq!(client.answers("NONEXISTENT_COMMAND foo bar"), "ERROR \"unknown command\"\r\n");
    assert_eq!(client.answers("DATA zz"), "ERROR \"not hexadecimal\"\r\n");
    // Once again what was said already, and then no more.
    assert_eq!(client.answers("DATA"), "DATA 657665727977697265\r\n");
    assert_eq!(client.answers("DATA"), "CANCEL\r\n");
    assert_eq!(client.says("OK 00\r\n").0, Err(SaslError::OutOfPlace { wanted: "REJECTED" }));
}

#[test]
fn another_server_than_the_address_promises() {
    let expected = Guid([1; 16]);
    let asked = ClientOptions { expected_guid: Some(expected), ..options(&[Mechanism::External]) };
    let mut client = started(asked, "\0AUTH EXTERNAL 31303030\r\n");
    let (progress, out) = client.says(&format!("OK {GUID_TEXT}\r\n"));
    assert_eq!(out, "", "BEGIN must not follow");
    let error = progress.unwrap_err();
    assert_eq!(error, SaslError::WrongGuid { expected, found: GUID });
    assert!(error.to_string().contains(GUID_TEXT), "{error}");
    assert!(error.to_string().contains(&expected.to_string()), "{error}");
}

#[test]
fn guids_are_strict() {
    for bad in [
        "",
        "1234deadbeef",
        "ed39834e91f5c9027710e4666b010b1",
        "ed39834e91f5c9027710e4666b010b1g",
        &"0".repeat(34),
    ] {
        let mut client = started(options(&[Mechanism::External]), "\0AUTH EXTERNAL 31303030\r\n");
        assert_eq!(client.says(&format!("OK {bad}\r\n")).0, Err(SaslError::BadGuid), "{bad:?}");
    }
    assert_eq!(Guid::parse(GUID_TEXT.to_uppercase().as_bytes()), Some(GUID));
    assert_eq!(Guid::fresh(fixed).unwrap().to_string(), "5a".repeat(16));
}

#[test]
fn a_keyring_that_others_can_read_is_not_used() {
    let scratch = Scratch::new();
    let cookie = Keyring::at(scratch.join("keys")).current("context", fixed).unwrap();
    let ask = |directory: &str, question: &str| {
        let ours = [Mechanism::CookieSha1];
        let asked = ClientOptions { keyring: Keyring::at(scratch.join(directory)), ..options(&ours) };
        let mut client = started(asked, "\0AUTH DBUS_COOKIE_SHA1 31303030\r\n");
        assert_eq!(client.answers(&format!("DATA {}", hex(question))), "CANCEL\r\n");
        let Err(SaslError::Rejected { keyring, .. }) = client.says("REJECTED EXTERNAL\r\n").0 else {
            panic!()
        };
        keyring.expect("a reason")
    };
    assert!(matches!(ask("none", "context 1 ab"), KeyringError::Missing { .. }));
    let other = cookie.id ^ 1;
    assert_eq!(ask("keys", &format!("context {other} ab")), KeyringError::NoCookie { id: other });
    for bad in [
        "context 1",
        "context 1 ab more",
        "context -1 ab",
        "context 4294967296 ab",
        "context 1 ",
        "context  ab",
        "",
    ] {
        assert_eq!(ask("keys", bad), KeyringError::BadChallenge, "{bad:?}");
    }
    for bad in ["../keys/context", "context.lock", ".", "", "a\\b", "a\tb", "\u{e9}"] {
        assert_eq!(ask("keys", &format!("{bad} 1 ab")), KeyringError::BadContext, "{bad:?}");
    }
    chmod(&scratch.join("keys/context"), 0o640);
    let error = ask("keys", &format!("context {} ab", cookie.id));
    assert!(error.to_string().ends_with("has mode 640, which lets others in"), "{error}");
}
