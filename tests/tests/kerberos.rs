//! Contexts of Kerberos and of SPNEGO with it, both sides against each other, with a realm of our own.

#![allow(clippy::unwrap_used)]

use crate::common::kdc::{OTHER_SERVICE, PASSWORD, REALM, SERVICE, USER, realm};
use everywire::Kind;
use everywire_auth::security::{
    Acceptor, Credentials, Established, Initiator, Mechanism, Options, Protection, Secret, UserTable,
    acceptor, initiator,
};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

type Result<T> = std::result::Result<T, everywire::Failure>;

fn credentials(user: &str, password: &str) -> Credentials {
    Credentials { domain: String::new(), user: user.into(), password: Secret::password(password) }
}

fn nobody() -> Arc<UserTable> {
    Arc::new(UserTable::default())
}

/// What both sides want, where the acceptor has these keys.
fn options(keytab: Option<&Path>) -> Options {
    Options {
        integrity: true,
        confidentiality: true,
        dce_style: true,
        target: SERVICE.into(),
        keytab: keytab.map(Path::to_owned),
        ..Options::default()
    }
}

/// Tokens to and fro until both contexts stand, and how many there were.
fn exchange(
    mut ours: Box<dyn Initiator>,
    mut theirs: Box<dyn Acceptor>,
) -> Result<(Established, Established, usize)> {
    let (mut token, mut tokens) = (Vec::new(), 0);
    let (mut here, mut there) = (None, None);
    loop {
        let step = ours.step(&token)?;
        here = here.or(step.done);
        if !step.token.is_empty() {
            let step = theirs.step(&step.token)?;
            there = there.or(step.done);
            tokens += 1 + usize::from(!step.token.is_empty());
            token = step.token;
        }
        match (here, there) {
            (Some(here), Some(there)) => return Ok((here, there, tokens)),
            (one, other) => (here, there) = (one, other),
        }
        assert!(tokens < 10, "they do not come to an end");
    }
}

fn meet(
    mechanism: Mechanism,
    who: &Credentials,
    users: Arc<UserTable>,
    options: &Options,
) -> Result<(Established, Established, usize)> {
    exchange(initiator(mechanism, who, options)?, acceptor(mechanism, users, options)?)
}

fn carry(from: &mut dyn Protection, to: &mut dyn Protection, sealed: Option<Range<usize>>, signature: usize) {
    let plain: Vec<u8> = (0..96).collect();
    let mut message = plain.clone();
    let mut code = vec![0; signature];
    from.protect(&mut message, sealed.clone(), &mut code).unwrap();
    assert_eq!(message == plain, sealed.as_ref().is_none_or(Range::is_empty));
    to.verify(&mut message, sealed, &code).unwrap();
    assert_eq!(message, plain);
}

/// A message of the usual kind, protected.
fn protected(by: &mut dyn Protection, sealed: Option<Range<usize>>) -> ([u8; 96], Vec<u8>) {
    let (mut message, mut code) = ([7; 96], vec![0; by.signature_len()]);
    by.protect(&mut message, sealed, &mut code).unwrap();
    (message, code)
}

#[test]
fn both_sides_agree_at_every_level() {
    let Some(realm) = realm("both_sides_agree_at_every_level") else { return };
    let who = credentials(USER, PASSWORD);
    for mechanism in [Mechanism::Kerberos, Mechanism::Negotiate] {
        for (dce_style, integrity, confidentiality) in [
            (true, false, false),
            (true, true, false),
            (true, true, true),
            (false, true, false),
            (false, true, true),
        ] {
            let keys = realm.keytab();
            let wanted = Options { integrity, confidentiality, dce_style, ..options(Some(&keys)) };
            let (mut ours, mut theirs, tokens) = meet(mechanism, &who, nobody(), &wanted).unwrap();
            assert_eq!(
                tokens,
                if dce_style { 3 } else { 2 } + usize::from(mechanism == Mechanism::Negotiate && dce_style)
            );
            for principal in [&ours.principal, &theirs.principal] {
                let told = (&*principal.domain, &*principal.user, principal.mechanism);
                assert_eq!(told, (REALM, USER, "Kerberos"));
            }
            assert_eq!(ours.session_key, theirs.session_key);
            assert_eq!(ours.session_key.len(), 32, "AES with 256 bits");
            let (ours, theirs) = (&mut *ours.protection, &mut *theirs.protection);
            let length = ours.signature_len();
            assert_eq!(length, theirs.signature_len());
            if dce_style {
                // As Windows has them: RFC 4121 4.2.6 with the checksum of AES; a confounder and a second header in front.
                assert_eq!(length, if confidentiality { 76 } else { 28 });
            }
            for sealed in [16..64, 24..96, 24..24, 0..96] {
                let sealed = confidentiality.then_some(sealed);
                carry(ours, theirs, sealed.clone(), length);
                carry(theirs, ours, sealed, length);
            }
        }
    }
}

#[test]
fn what_happens_to_messages_is_noticed() {
    let Some(realm) = realm("what_happens_to_messages_is_noticed") else { return };
    realm.log_in("10h");
    let keys = realm.keytab();
    for sealed in [None, Some(24..56)] {
        let wanted = Options { confidentiality: sealed.is_some(), ..options(Some(&keys)) };
        let pair = || {
            let (ours, theirs, _) =
                meet(Mechanism::Kerberos, &credentials("", ""), nobody(), &wanted).unwrap();
            (ours.protection, theirs.protection)
        };
        // Changed in any octet: of the message, of the signature.
        let length = pair().0.signature_len();
        for place in (0..96 + length).step_by(7) {
            let (mut ours, mut theirs) = pair();
            let (mut message, mut code) = protected(&mut *ours, sealed.clone());
            match place.checked_sub(96) {
                None => message[place] ^= 1,
                Some(place) => code[place] ^= 1,
            }
            let verdict = theirs.verify(&mut message, sealed.clone(), &code);
            assert_eq!(verdict.unwrap_err().kind(), Kind::Violation, "octet {place}");
        }
        // Again, too early, and back to its sender.
        let (mut ours, mut theirs) = pair();
        let first = protected(&mut *ours, sealed.clone());
        let second = protected(&mut *ours, sealed.clone());
        let third = protected(&mut *ours, sealed.clone());
        theirs.verify(&mut first.0.clone(), sealed.clone(), &first.1).unwrap();
        assert!(theirs.verify(&mut first.0.clone(), sealed.clone(), &first.1).is_err());
        assert!(theirs.verify(&mut third.0.clone(), sealed.clone(), &third.1).is_err());
        assert!(ours.verify(&mut second.0.clone(), sealed.clone(), &second.1).is_err());
        // Lengths and places.
        let (mut ours, mut theirs) = pair();
        assert!(
            ours.protect(&mut [0; 8], sealed.clone().map(|_| 4..9), &mut vec![0; length]).is_err()
                == sealed.is_some()
        );
        assert!(ours.protect(&mut [0; 64], sealed.clone(), &mut vec![0; length - 1]).is_err());
        for wrong in [0, 1, length - 1, length + 1, 200] {
            assert!(theirs.verify(&mut [0; 64], sealed.clone(), &vec![0; wrong]).is_err());
        }
    }
}

#[test]
fn tokens_that_are_not_right_are_refused() {
    let Some(realm) = realm("tokens_that_are_not_right_are_refused") else { return };
    let keys = realm.keytab();
    let who = credentials(USER, PASSWORD);
    // Noise, and the tokens of another exchange.
    let step = |token: &[u8]| {
        acceptor(Mechanism::Kerberos, nobody(), &options(Some(&keys)))
            .unwrap()
            .step(token)
            .map(|step| step.token)
    };
    let first = initiator(Mechanism::Kerberos, &who, &options(None)).unwrap().step(&[]).unwrap().token;
    assert!(!step(&first).unwrap().is_empty());
    assert_eq!(step(&first).unwrap_err().kind(), Kind::Refused, "the same token again");
    for at in (0..first.len()).step_by(first.len() / 40) {
        let mut changed = first.clone();
        changed[at] ^= 0x41;
        assert_eq!(step(&changed).unwrap_err().kind(), Kind::Refused, "octet {at}");
        assert!(step(&first[..at]).is_err());
    }
    assert!(step(&vec![0x60; 70_000]).is_err_and(|failure| failure.kind() == Kind::LimitExceeded));
}

#[test]
fn spnego_falls_back_to_ntlm() {
    let Some(realm) = realm("spnego_falls_back_to_ntlm") else { return };
    let keys = realm.keytab();
    let users = || Arc::new(UserTable::read_file(realm.users(PASSWORD)).unwrap());
    let who = credentials(USER, PASSWORD);
    let used = |wanted: &Options, who: &Credentials| {
        meet(Mechanism::Negotiate, who, users(), wanted).map(|(ours, theirs, _)| {
            assert_eq!(ours.session_key, theirs.session_key);
            (ours.principal.mechanism, theirs.principal.mechanism)
        })
    };
    assert_eq!(used(&options(Some(&keys)), &who).unwrap(), ("Kerberos", "Kerberos"));
    // The server has no keys; then the realm knows no such service; then nobody gets tickets for a number.
    assert_eq!(used(&options(None), &who).unwrap(), ("NTLMv2", "NTLMv2"));
    for target in ["host/nowhere", "host/127.0.0.1", ""] {
        let wanted = Options { target: target.into(), ..options(Some(&keys)) };
        assert_eq!(used(&wanted, &who).unwrap(), ("NTLMv2", "NTLMv2"), "{target}");
    }
    // With a ticket nobody needs to be named, and without a name there is no NTLM.
    assert!(used(&options(Some(&keys)), &credentials("", "")).is_err());
    realm.log_in("10h");
    assert_eq!(used(&options(Some(&keys)), &credentials("", "")).unwrap(), ("Kerberos", "Kerberos"));
    assert!(used(&options(None), &credentials("", "")).is_err());
}

#[test]
fn what_is_lacking_is_told() {
    let Some(realm) = realm("what_is_lacking_is_told") else { return };
    let (keys, other) = (realm.keytab(), realm.other_keytab());
    let told = |who: &Credentials, wanted: &Options| {
        let failure = meet(Mechanism::Kerberos, who, nobody(), wanted).err().expect("it fails");
        assert_eq!(failure.kind(), Kind::Refused, "{failure}");
        failure.message().to_owned()
    };
    let says = |told: String, part: &str| assert!(told.contains(part), "`{part}` is not in: {told}");
    let nobody_named = credentials("", "");
    says(told(&nobody_named, &options(Some(&keys))), "No Kerberos credentials available");
    says(told(&credentials(USER, "pepper"), &options(Some(&keys))), "a ticket for cook: ");
    says(told(&credentials("nobody", "x"), &options(Some(&keys))), "not found in Kerberos database");
    let strange = Credentials { domain: "other.test".into(), ..credentials(USER, PASSWORD) };
    says(told(&strange, &options(Some(&keys))), "OTHER.TEST");
    let unknown = Options { target: "host/nowhere".into(), ..options(Some(&keys)) };
    says(told(&credentials(USER, PASSWORD), &unknown), "host/nowhere@KITCHEN.TEST not found");
    // The server has the keys of another service, the client a ticket for that of the usual name; and the other way round.
    says(told(&credentials(USER, PASSWORD), &options(Some(&other))), "does not let the peer in");
    let matching = Options { target: OTHER_SERVICE.into(), ..options(Some(&other)) };
    meet(Mechanism::Kerberos, &credentials(USER, PASSWORD), nobody(), &matching).unwrap();
    let in_full = Options { target: format!("{OTHER_SERVICE}@{REALM}"), ..options(Some(&other)) };
    meet(Mechanism::Kerberos, &credentials(USER, PASSWORD), nobody(), &in_full).unwrap();
    // No keys at all.
    for bad in ["nothing", "krb5.conf"] {
        let bad = realm.dir().join(bad);
        let failure = acceptor(Mechanism::Kerberos, nobody(), &options(Some(&bad))).err().unwrap();
        says(failure.to_string(), &bad.display().to_string());
    }
    // The cache is another user's.
    realm.log_in("10h");
    says(told(&credentials("guest", ""), &options(Some(&keys))), "guest");
    meet(Mechanism::Kerberos, &credentials(USER, ""), nobody(), &options(Some(&keys))).unwrap();
    realm.let_ticket_expire();
    says(told(&nobody_named, &options(Some(&keys))), "expired");
}

/// What NegotiateStream sends: tokens of their own, in which the message stands somewhere.
#[test]
fn messages_travel_in_tokens() {
    let Some(realm) = realm("messages_travel_in_tokens") else { return };
    let who = credentials(USER, PASSWORD);
    let keys = realm.keytab();
    for (confidentiality, length) in [(false, 28), (true, 60)] {
        let wanted = Options { confidentiality, dce_style: false, ..options(Some(&keys)) };
        let (ours, theirs, _) = meet(Mechanism::Negotiate, &who, nobody(), &wanted).unwrap();
        let (mut ours, mut theirs) = (ours.protection, theirs.protection);
        for size in [0, 1, 15, 16, 1000, 0xfc00] {
            let plain: Vec<u8> = (0..size).map(|n| ((n * 31) >> 3) as u8).collect();
            for _ in 0..2 {
                let mut token = b"before".to_vec();
                ours.wrap(&plain, confidentiality, &mut token).unwrap();
                let mut token = token.split_off(6);
                // RFC 4121 4.2.6.2, as long as Windows has it.
                assert_eq!((&token[..2], token.len()), (&[5, 4][..], size + length));
                assert_eq!(
                    token.windows(16).any(|part| size >= 16 && part == &plain[..16]),
                    size >= 16 && !confidentiality
                );
                let place = theirs.unwrap(&mut token, confidentiality).unwrap();
                assert_eq!(token[place], plain);
                std::mem::swap(&mut ours, &mut theirs);
            }
        }
        let mut token = Vec::new();
        ours.wrap(b"words", confidentiality, &mut token).unwrap();
        let last = token.len() - 1;
        let mut changed = token.clone();
        changed[last] ^= 1;
        assert!(theirs.unwrap(&mut changed, confidentiality).is_err());
        assert!(theirs.unwrap(&mut token[..last].to_vec(), confidentiality).is_err());
        assert!(theirs.unwrap(&mut [], confidentiality).is_err());
    }
    // Signed is not sealed.
    let wanted = Options { dce_style: false, ..options(Some(&keys)) };
    let (mut ours, mut theirs, _) = meet(Mechanism::Kerberos, &who, nobody(), &wanted).unwrap();
    let mut token = Vec::new();
    ours.protection.wrap(b"words", false, &mut token).unwrap();
    assert!(theirs.protection.unwrap(&mut token, true).is_err());
}
