//! Both sides of NTLM and SPNEGO against each other, by what everyone may use.

#![allow(clippy::unwrap_used)]

use everywire_auth::security::{
    Credentials, Established, MAX_TOKEN, Mechanism, Options, Protection, Secret, UserTable, acceptor,
    exercise, initiator,
};
use everywire_model::{Failure, Kind};
use std::fs::{self, Permissions};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

fn credentials(user: &str, word: &str) -> Credentials {
    Credentials { domain: "HOME".into(), user: user.into(), password: Secret::parse(word) }
}

fn table(text: &str) -> Arc<UserTable> {
    Arc::new(UserTable::parse(text).unwrap())
}

fn options(integrity: bool, confidentiality: bool) -> Options {
    Options { integrity, confidentiality, target: "host/there".into(), ..Options::default() }
}

/// Runs the exchange to its end: what each side has then, and how many tokens it took.
fn meet(
    mechanism: Mechanism,
    credentials: &Credentials,
    users: &Arc<UserTable>,
    options: &Options,
) -> Result<(Established, Established, usize), Failure> {
    let mut ours = initiator(mechanism, credentials, options)?;
    let mut theirs = acceptor(mechanism, Arc::clone(users) as _, options)?;
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
        if let (Some(_), Some(_)) = (&here, &there) {
            return Ok((here.unwrap(), there.unwrap(), tokens));
        }
        assert!(tokens < 10, "they do not come to an end");
    }
}

/// A context of NTLM with sealing.
fn sealing() -> (Established, Established) {
    let options = options(true, true);
    let (ours, theirs, _) =
        meet(Mechanism::Ntlm, &credentials("ada", "engine"), &table("ada:engine"), &options).unwrap();
    (ours, theirs)
}

fn carry(from: &mut dyn Protection, to: &mut dyn Protection, sealed: Option<Range<usize>>, number: u8) {
    let plain: Vec<u8> = (0..64).map(|index| index ^ number).collect();
    let mut message = plain.clone();
    let mut signature = vec![0; from.signature_len()];
    from.protect(&mut message, sealed.clone(), &mut signature).unwrap();
    assert_eq!(message == plain, sealed.is_none());
    to.verify(&mut message, sealed, &signature).unwrap();
    assert_eq!(message, plain);
}

#[test]
fn every_option_of_both_mechanisms() {
    let users = table("ada:engine\n");
    for (mechanism, tokens) in [(Mechanism::Ntlm, 3), (Mechanism::Negotiate, 4)] {
        for (integrity, confidentiality) in [(false, false), (true, false), (true, true), (false, true)] {
            let options = options(integrity, confidentiality);
            let (mut ours, mut theirs, count) =
                meet(mechanism, &credentials("Ada", "engine"), &users, &options).unwrap();
            assert_eq!(count, tokens);
            assert_eq!(ours.session_key, theirs.session_key);
            assert_eq!(ours.session_key.len(), 16);
            let who = &theirs.principal;
            assert_eq!((&*who.domain, &*who.user, who.mechanism), ("HOME", "Ada", "NTLMv2"));
            for number in 0..20 {
                let sealed = (number % 3 != 0).then_some(24..56);
                let (ours, theirs) = (&mut *ours.protection, &mut *theirs.protection);
                if number % 2 == 0 {
                    carry(ours, theirs, sealed, number);
                } else {
                    carry(theirs, ours, sealed, number);
                }
            }
        }
    }
}

#[test]
fn session_keys_differ_from_login_to_login() {
    assert_ne!(sealing().0.session_key, sealing().0.session_key);
}

#[test]
fn who_is_let_in() {
    // The digest of `engine`.
    let digest = "$NT$f37f94c55b793fe20cd3cd8d27ad0a98";
    let users =
        table(&format!("# ours\nada:engine\n\nHOME\\Bob:word:with:colons \nAWAY\\cid:far\ndan:{digest}\n"));
    assert_eq!(users.len(), 4);
    let options = options(true, false);
    let try_as = |user: &str, word: &str| {
        meet(Mechanism::Ntlm, &credentials(user, word), &users, &options)
            .map(|(_, theirs, _)| theirs.principal.user)
    };
    assert_eq!(try_as("ADA", "engine").unwrap(), "ADA");
    assert_eq!(try_as("bob", "word:with:colons ").unwrap(), "bob");
    assert_eq!(try_as("dan", "engine").unwrap(), "dan");
    assert_eq!(try_as("dan", digest).unwrap(), "dan");
    assert_eq!(try_as("ada", digest).unwrap(), "ada");
    // A wrong password, none, one in the wrong case, a user of another domain, nobody: all the same answer.
    let answers = [
        try_as("ada", "wheel"),
        try_as("ada", ""),
        try_as("ada", "Engine"),
        try_as("cid", "far"),
        try_as("eve", "engine"),
        try_as("", ""),
    ]
    .map(|answer| answer.unwrap_err());
    for answer in &answers {
        assert_eq!(answer.kind(), Kind::Refused);
        assert_eq!(answer.to_string(), answers[0].to_string());
    }
}

#[test]
fn no_octet_of_the_last_message_can_be_changed() {
    let (users, credentials, options) =
        (table("ada:engine"), credentials("ada", "engine"), options(true, false));
    let mut ours = initiator(Mechanism::Ntlm, &credentials, &options).unwrap();
    let first = ours.step(&[]).unwrap().token;
    // As many acceptors as octets would need other challenges; the message has the same length each time.
    let length = {
        let mut theirs = acceptor(Mechanism::Ntlm, Arc::clone(&users) as _, &options).unwrap();
        ours.step(&theirs.step(&first).unwrap().token).unwrap().token.len()
    };
    for place in 0..length {
        let mut ours = initiator(Mechanism::Ntlm, &credentials, &options).unwrap();
        let mut theirs = acceptor(Mechanism::Ntlm, Arc::clone(&users) as _, &options).unwrap();
        let challenge = theirs.step(&ours.step(&[]).unwrap().token).unwrap().token;
        let mut last = ours.step(&challenge).unwrap().token;
        assert_eq!(last.len(), length);
        last[place] ^= 1 << (place % 8);
        assert!(theirs.step(&last).is_err(), "octet {place}");
        assert!(theirs.step(&last).is_err(), "and no second try");
    }
}

#[test]
fn changed_messages_are_noticed() {
    for place in 0..80 {
        let (mut ours, mut theirs) = sealing();
        let (mut message, mut signature) = ([7; 64], [0; 16]);
        ours.protection.protect(&mut message, Some(24..56), &mut signature).unwrap();
        let broken = if place < 64 { &mut message[place] } else { &mut signature[place - 64] };
        *broken ^= 1;
        let verdict = theirs.protection.verify(&mut message, Some(24..56), &signature);
        assert_eq!(verdict.unwrap_err().kind(), Kind::Violation, "octet {place}");
    }
}

#[test]
fn repeated_and_reordered_messages_are_noticed() {
    let (mut ours, mut theirs) = sealing();
    let protect = |ours: &mut Established| {
        let (mut message, mut signature) = ([7; 64], [0; 16]);
        ours.protection.protect(&mut message, None, &mut signature).unwrap();
        (message, signature)
    };
    let (mut first, signature) = protect(&mut ours);
    theirs.protection.verify(&mut first, None, &signature).unwrap();
    assert!(theirs.protection.verify(&mut first, None, &signature).is_err());

    let (mut ours, mut theirs) = sealing();
    protect(&mut ours);
    let (mut second, signature) = protect(&mut ours);
    assert!(theirs.protection.verify(&mut second, None, &signature).is_err());
}

#[test]
fn a_message_does_not_come_back_to_its_sender() {
    let (mut ours, _) = sealing();
    let (mut message, mut signature) = ([7; 64], [0; 16]);
    ours.protection.protect(&mut message, None, &mut signature).unwrap();
    assert!(ours.protection.verify(&mut message, None, &signature).is_err());
}

#[test]
fn ranges_and_lengths_are_checked() {
    let (mut ours, _) = sealing();
    let mut message = [7; 64];
    assert!(ours.protection.protect(&mut message, Some(60..65), &mut [0; 16]).is_err());
    assert!(ours.protection.protect(&mut message, Some(Range { start: 8, end: 4 }), &mut [0; 16]).is_err());
    assert!(ours.protection.protect(&mut message, None, &mut [0; 15]).is_err());
    assert!(ours.protection.verify(&mut message, None, &[0; 17]).is_err());
}

#[test]
fn hostile_tokens() {
    let options = options(true, true);
    for mechanism in [Mechanism::Ntlm, Mechanism::Negotiate] {
        let huge = vec![0; MAX_TOKEN + 1];
        let over = acceptor(mechanism, table("ada:engine"), &options).unwrap().step(&huge);
        assert_eq!(over.err().unwrap().kind(), Kind::LimitExceeded);
    }
    // Beginnings that lead somewhere, with noise behind them.
    let mut noise = 0x2545_f491_4f6c_dd1d_u64;
    let starts: [&[u8]; 6] = [
        b"",
        b"NTLMSSP\0\x01\0\0\0",
        b"NTLMSSP\0\x02\0\0\0",
        b"NTLMSSP\0\x03\0\0\0",
        b"\x60\x48\x06\x06\x2b\x06\x01\x05\x05\x02\xa0\x3e\x30\x3c\xa0\x0e\x30\x0c\x06\x0a",
        b"\xa1\x40\x30\x3e\xa0\x03\x0a\x01\x01\xa2\x20\x04\x1e",
    ];
    for round in 0..1200_usize {
        let mut token = starts[round % starts.len()].to_vec();
        for _ in 0..round % 97 {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            token.push((noise & if round % 2 == 0 { 0xff } else { 0x0f }) as u8);
        }
        assert!(!exercise(&token), "{token:02x?}");
    }
}

#[test]
fn kerberos_says_what_it_lacks() {
    let options = Options { keytab: Some("/no/such/keys".into()), ..options(true, false) };
    let missing = acceptor(Mechanism::Kerberos, table("ada:engine"), &options).err().unwrap();
    let library = missing.kind() == Kind::Unsupported;
    assert!(library || missing.message().contains("/no/such/keys"), "{missing}");
    assert!(missing.hint().is_some());
    let digest = credentials("ada", "$NT$f37f94c55b793fe20cd3cd8d27ad0a98");
    let hashed = initiator(Mechanism::Kerberos, &digest, &options).err().unwrap();
    assert_eq!(hashed.kind(), Kind::BadArgument);
}

#[test]
fn nobody_is_not_offered_by_spnego() {
    // A number has no ticket, and nobody has no password.
    let options = Options { target: "host/127.0.0.1".into(), ..options(true, false) };
    let refused = initiator(Mechanism::Negotiate, &credentials("", ""), &options).err().unwrap();
    assert_eq!(refused.kind(), Kind::Refused);
}

/// It goes with what is in it, however the test ends.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_of_secrets() {
    let folder = Folder(std::env::temp_dir().join(format!("everywire-security-{}", std::process::id())));
    fs::create_dir_all(&folder.0).unwrap();
    let write = |name: &str, mode: u32, text: &str| -> PathBuf {
        let path = folder.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    };

    let path = write("good", 0o600, "username = ada\npassword=  pass = word \ndomain=HOME\n");
    let read = Credentials::read_file(&path).unwrap();
    assert_eq!(
        (&*read.user, &*read.domain, read.password.as_password()),
        ("ada", "HOME", Some(" pass = word "))
    );
    assert!(!format!("{read:?}").contains("pass = word"));

    let hashed = format!("username=ada\npassword=$NT${}\n", "5e".repeat(16));
    let read = Credentials::read_file(write("hashed", 0o400, &hashed)).unwrap();
    assert_eq!(read.password.as_nt_hash(), Some(&[0x5e; 16]));

    let open = Credentials::read_file(write("open", 0o640, "username=ada\n")).unwrap_err();
    assert_eq!(open.kind(), Kind::Refused);
    assert!(UserTable::read_file(write("users", 0o644, "ada:engine\n")).is_err());
    assert_eq!(UserTable::read_file(write("users", 0o600, "ada:engine\n")).unwrap().len(), 1);
    assert!(Credentials::read_file(write("nobody", 0o600, "password=x\n")).is_err());
    assert!(Credentials::read_file(folder.0.join("missing")).is_err());

    for (text, line) in [("ada\n", 1), ("a:b\n\n:x\n", 3), ("a:$NT$beef\n", 1)] {
        let bad = UserTable::read_file(write("users", 0o600, text)).unwrap_err();
        assert!(bad.message().starts_with(&format!("line {line}:")), "{bad}");
        assert!(!bad.to_string().contains("beef"), "{bad}");
    }
}
