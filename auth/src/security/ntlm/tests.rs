//! The worked examples of MS-NLMP 4.2, and what foreign clients send.

use super::acceptor::{Challenged, NtlmAcceptor};
use super::keys::{self, Key};
use super::message::{self, Authenticate, Challenge};
use super::protection::NtlmProtection;
use super::{NtlmInitiator, flags};
use crate::security::{Credentials, Initiator, Options, Protection, Secret, Step, UserTable};
use everywire_model::hex;
use everywire_model::{Failure, Kind};
use std::io;
use std::sync::Arc;
use zeroize::Zeroizing;

const SERVER: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
const CLIENT: [u8; 8] = [0xaa; 8];
const FLAGS_1: u32 = 0x820a_8233;
const FLAGS_2: u32 = 0xe28a_8233;
const SEALED: &str = "50006c00610069006e007400650078007400";

/// 4.2.3.3.
const OLD_MESSAGE: &str = "4e544c4d5353500003000000180018006c00000018001800840000000c000c0048000000080008005400000010001000\
    5c000000000000009c000000358208820501280a0000000f44006f006d00610069006e00550073006500720043004f004d005000550054004500\
    5200aaaaaaaaaaaaaaaa000000000000000000000000000000007537f803ae367128ca458204bde7caf81e97ed2683267232";
/// 4.2.4.3.
const MESSAGE: &str = "4e544c4d5353500003000000180018006c00000054005400840000000c000c0048000000080008005400000010001000\
    5c00000010001000d8000000358288e20501280a0000000f44006f006d00610069006e00550073006500720043004f004d005000550054004500\
    520086c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa68cd0ab851e51c96aabc927bebef6a1c01010000000000000000000000000000\
    aaaaaaaaaaaaaaaa0000000002000c0044006f006d00610069006e0001000c005300650072007600650072000000000000000000\
    c5dad2544fc9799094ce1ce90bc9d03e";
/// 4.2.4.3.
const CHALLENGE: &str = "4e544c4d53535000020000000c000c003800000033828ae20123456789abcdef00000000000000002400240044000000\
    060070170000000f53006500720076006500720002000c0044006f006d00610069006e0001000c0053006500720076006500720000000000";

fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text.replace(' ', "").as_bytes()).unwrap()
}

fn key(text: &str) -> Key {
    Zeroizing::new(bytes(text).try_into().unwrap())
}

fn hash() -> Key {
    keys::nt_hash(&Secret::password("Password"))
}

/// All dice show five.
fn fives(out: &mut [u8]) -> io::Result<()> {
    out.fill(0x55);
    Ok(())
}

fn users(name: &str, word: &str) -> Arc<UserTable> {
    let mut users = UserTable::default();
    users.insert(None, name, Secret::password(word));
    Arc::new(users)
}

fn accept(message: &str, flags: u32, word: &str, old_too: bool) -> Result<Step, Failure> {
    let options = Options { allow_ntlm1_session: old_too, ..Options::default() };
    let before =
        Challenged { first: vec![], second: bytes(CHALLENGE), challenge: SERVER, offered: flags | 4 };
    NtlmAcceptor::new(users("user", word), &options, fives).authenticate(&before, &bytes(message))
}

#[test]
fn keys_of_version_1_with_a_client_challenge() {
    assert_eq!(hash(), key("a4f49c406510bdcab6824ee7c30fd852"));
    let response = keys::session_response(&hash(), SERVER, CLIENT);
    assert_eq!(hex::text(&response), "7537f803ae367128ca458204bde7caf81e97ed2683267232");
    assert_eq!(keys::session_base(&hash(), SERVER, CLIENT), key("eb93429a8bd952f8b89c55b87f475edc"));
}

#[test]
fn keys_of_version_2() {
    let ntlm2 = keys::ntlm2_key(&hash(), "User", &keys::utf16("Domain"));
    assert_eq!(ntlm2, key("0c868a403bfd7a93a3001ef22ef02e3f"));
    let message = bytes(MESSAGE);
    let said = Authenticate::read(&message).unwrap();
    let proof = keys::hmac(&ntlm2, &[&SERVER, &said.nt[16..]]);
    assert_eq!(proof, key("68cd0ab851e51c96aabc927bebef6a1c"));
    assert_eq!(keys::hmac(&ntlm2, &[&*proof]), key("8de40ccadbc14a82f15cb0ad0de95ca3"));
}

#[test]
fn a_sealed_message_with_a_56_bit_key() {
    let session = key("eb93429a8bd952f8b89c55b87f475edc");
    assert_eq!(keys::seal_key(&session, FLAGS_1, false), key("04dd7f014d8504d265a25cc86a3a7c06"));
    assert_eq!(keys::sign_key(&session, false), key("60e799be5c72fc92922ae8ebe961fb8d"));
    let sealed = seal(&session, FLAGS_1);
    assert_eq!(
        sealed,
        ("a02372f6530273f3aa1eb90190ce5200c99d".into(), "01000000ff2aeb52f681793a00000000".into())
    );
}

#[test]
fn a_sealed_message_with_a_chosen_key() {
    let session = Zeroizing::new([0x55; 16]);
    assert_eq!(keys::seal_key(&session, FLAGS_2, false), key("59f600973cc4960a25480a7c196e4c58"));
    assert_eq!(keys::sign_key(&session, false), key("4788dc861b4782f35d43fd98fe1a2d39"));
    let sealed = seal(&session, FLAGS_2);
    assert_eq!(
        sealed,
        ("54e50165bf1936dc996020c1811b0f06fb5f".into(), "010000007fb38ec5c55d497600000000".into())
    );
}

fn seal(session: &Key, agreed: u32) -> (String, String) {
    let (mut text, mut signature) = (bytes(SEALED), [0; 16]);
    let mut ours = NtlmProtection::new(session, agreed, false);
    ours.protect(&mut text, Some(0..18), &mut signature).unwrap();
    let out = (hex::text(&text), hex::text(&signature));
    let mut theirs = NtlmProtection::new(session, agreed, true);
    theirs.verify(&mut text, Some(0..18), &signature).unwrap();
    assert_eq!(hex::text(&text), SEALED);
    out
}

#[test]
fn the_answer_to_the_example() {
    let done = accept(MESSAGE, FLAGS_2, "Password", false).unwrap().done.unwrap();
    assert_eq!(done.session_key, [0x55; 16]);
    let who = (&*done.principal.domain, &*done.principal.user, done.principal.mechanism);
    assert_eq!(who, ("Domain", "User", "NTLMv2"));
    assert_eq!(accept(MESSAGE, FLAGS_2, "password", false).err().unwrap().kind(), Kind::Refused);
}

#[test]
fn the_older_answer_only_where_allowed() {
    let done = accept(OLD_MESSAGE, FLAGS_1, "Password", true).unwrap().done.unwrap();
    assert_eq!(hex::text(&done.session_key), "eb93429a8bd952f8b89c55b87f475edc");
    assert_eq!(done.principal.mechanism, "NTLMv1 with session security");
    let refused = accept(OLD_MESSAGE, FLAGS_1, "Password", false).err().unwrap();
    assert_eq!(refused.kind(), Kind::Refused);
    assert!(refused.message().contains("NTLMv1"), "{refused}");
    assert_eq!(accept(OLD_MESSAGE, FLAGS_1, "password", true).err().unwrap().kind(), Kind::Refused);
}

#[test]
fn the_example_challenge_is_answered() {
    let credentials =
        Credentials { domain: "Domain".into(), user: "User".into(), password: Secret::password("Password") };
    let signing = Options { integrity: true, ..Options::default() };
    let mut initiator = NtlmInitiator::new(&credentials, &signing, fives);
    initiator.step(&[]).unwrap();
    let step = initiator.step(&bytes(CHALLENGE)).unwrap();
    assert_eq!(step.done.unwrap().session_key, [0x55; 16]);
    let said = Authenticate::read(&step.token).unwrap();
    // No clock in the challenge: no integrity code, and an answer for LM.
    let ntlm2 = keys::ntlm2_key(&hash(), "User", &keys::utf16("Domain"));
    assert_eq!(said.lm, [&*keys::hmac(&ntlm2, &[&SERVER, &[0x55; 8]]) as &[u8], &[0x55; 8]].concat());
    assert_eq!(message::mic_of(&step.token).unwrap(), [0; 16]);
    assert_eq!(said.flags & flags::KEY_EXCHANGE, flags::KEY_EXCHANGE);
    let accepted = accept(&hex::text(&step.token), FLAGS_2, "Password", false).unwrap().done.unwrap();
    assert_eq!(accepted.session_key, [0x55; 16]);
}

#[test]
fn a_weak_challenge_gets_no_answer() {
    for missing in [flags::EXTENDED_SECURITY, flags::UNICODE, flags::KEY_128] {
        let mut weak = bytes(CHALLENGE);
        weak[20..24].copy_from_slice(&(FLAGS_2 & !missing).to_le_bytes());
        let credentials = Credentials {
            domain: String::new(),
            user: "User".into(),
            password: Secret::password("Password"),
        };
        let options = Options { confidentiality: true, ..Options::default() };
        let mut initiator = NtlmInitiator::new(&credentials, &options, fives);
        initiator.step(&[]).unwrap();
        assert_eq!(initiator.step(&weak).err().unwrap().kind(), Kind::Refused, "{missing:x}");
    }
}

#[test]
fn names_survive_upper_case_as_windows_has_it() {
    // Windows knows no upper case of ß that is one letter; the domain is taken as it is.
    let one = keys::ntlm2_key(&hash(), "straße", b"");
    assert_eq!(one, keys::ntlm2_key(&hash(), "STRAßE", b""));
    assert_ne!(one, keys::ntlm2_key(&hash(), "STRASSE", b""));
}

#[test]
fn lengths_and_offsets_are_checked() {
    let whole = bytes(MESSAGE);
    for length in 0..whole.len() {
        let cut = Authenticate::read(&whole[..length]);
        assert!(cut.is_err() || length >= 0xd8, "{length}");
    }
    for place in [12, 20, 28, 36, 44, 52] {
        for (length, offset) in [(0xffff_u16, 64_u32), (1, u32::MAX), (1, 0x7fff_ffff), (16, 0xe8 - 15)] {
            let mut bent = whole.clone();
            bent[place..place + 2].copy_from_slice(&length.to_le_bytes());
            bent[place + 4..place + 8].copy_from_slice(&offset.to_le_bytes());
            assert!(Authenticate::read(&bent).is_err(), "{place} {length} {offset}");
        }
    }
    let challenge = bytes(CHALLENGE);
    for length in 0..challenge.len() {
        assert!(Challenge::read(&challenge[..length]).is_err(), "{length}");
    }
}
