//! What the two sides make of each other's lists, and of somebody who changes them on the way.

use super::token::{self, Init, Progress, Reply};
use super::{SpnegoAcceptor, SpnegoInitiator};
use crate::security::{Acceptor, Credentials, Initiator, Mechanism, Options, Secret, UserTable, initiator};
use everywire_model::Kind;
use std::sync::Arc;

fn credentials() -> Credentials {
    Credentials { domain: "HOME".into(), user: "ada".into(), password: Secret::password("engine") }
}

fn acceptor() -> SpnegoAcceptor {
    let mut users = UserTable::default();
    users.insert(None, "ada", Secret::password("engine"));
    SpnegoAcceptor::new(Arc::new(users), &Options::default())
}

/// NTLM with integrity, not wrapped.
fn ntlm() -> Box<dyn Initiator> {
    let options = Options { integrity: true, ..Options::default() };
    initiator(Mechanism::Ntlm, &credentials(), &options).unwrap()
}

#[test]
fn tokens_read_as_written() {
    let list = token::write_list(&[token::KERBEROS, token::NTLM]);
    let written = token::write_init(&list, &[7; 300]);
    let init = Init::read(&written).unwrap();
    assert_eq!((init.list, init.mechanisms), (&*list, vec![token::KERBEROS, token::NTLM]));
    assert_eq!(init.token, Some(&[7; 300][..]));
    for length in 0..written.len() {
        assert!(Init::read(&written[..length]).is_err(), "{length}");
    }

    let reply = Reply {
        progress: Some(Progress::WantsMic),
        mechanism: Some(token::NTLM),
        token: Some(b"token"),
        mic: Some(b"code"),
    };
    let written = reply.write();
    let read = Reply::read(&written).unwrap();
    assert_eq!((read.progress, read.mechanism), (reply.progress, reply.mechanism));
    assert_eq!((read.token, read.mic), (reply.token, reply.mic));
}

#[test]
fn too_many_mechanisms() {
    let list = token::write_list(&[token::NTLM; 33]);
    assert!(Init::read(&token::write_init(&list, b"")).is_err());
}

#[test]
fn second_choice_is_signed_by_both() {
    let (mut inner, mut acceptor) = (ntlm(), acceptor());
    let list = token::write_list(&[token::KERBEROS, token::NTLM]);
    let answer = acceptor.step(&token::write_init(&list, b"a ticket")).unwrap();
    let reply = Reply::read(&answer.token).unwrap();
    assert_eq!((reply.progress, reply.mechanism), (Some(Progress::WantsMic), Some(token::NTLM)));
    assert!(reply.token.is_none());

    let first = inner.step(&[]).unwrap().token;
    let answer = acceptor.step(&respond(Some(&first), None)).unwrap();
    let challenge = Reply::read(&answer.token).unwrap().token.unwrap().to_vec();
    let last = inner.step(&challenge).unwrap();
    let mut ours = last.done.unwrap().protection;

    // Who does not sign is asked to, and not let in before.
    let answer = acceptor.step(&respond(Some(&last.token), None)).unwrap();
    assert!(answer.done.is_none());
    assert_eq!(Reply::read(&answer.token).unwrap().progress, Some(Progress::WantsMic));
    let mic = ours.mic(&list).unwrap();
    let end = acceptor.step(&respond(None, Some(&mic))).unwrap();
    let mut theirs = end.done.unwrap().protection;
    let reply = Reply::read(&end.token).unwrap();
    assert_eq!(reply.progress, Some(Progress::Completed));
    ours.check_mic(&list, reply.mic.unwrap()).unwrap();

    let (mut message, mut signature) = (b"first message".to_vec(), [0; 16]);
    ours.protect(&mut message, Some(0..13), &mut signature).unwrap();
    assert_eq!(signature[12], 1, "the codes over the list count as messages");
    theirs.verify(&mut message, Some(0..13), &signature).unwrap();
    assert_eq!(message, b"first message");
}

#[test]
fn a_shortened_list_is_noticed() {
    let (mut inner, mut acceptor) = (ntlm(), acceptor());
    let sent = token::write_list(&[token::KERBEROS, token::NTLM]);
    let changed = token::write_list(&[token::NTLM]);
    let first = inner.step(&[]).unwrap().token;
    let answer = acceptor.step(&token::write_init(&changed, &first)).unwrap();
    let last = inner.step(Reply::read(&answer.token).unwrap().token.unwrap()).unwrap();
    let mic = last.done.unwrap().protection.mic(&sent).unwrap();
    let refused = acceptor.step(&respond(Some(&last.token), Some(&mic))).err().unwrap();
    assert_eq!(refused.kind(), Kind::Violation);
}

#[test]
fn a_server_that_does_not_sign_is_left() {
    let options = Options { integrity: true, ..Options::default() };
    let (mut initiator, mut acceptor) = (SpnegoInitiator::new(&credentials(), &options).unwrap(), acceptor());
    let first = initiator.step(&[]).unwrap().token;
    let challenge = acceptor.step(&first).unwrap().token;
    let last = initiator.step(&challenge).unwrap();
    assert!(last.done.is_none());
    assert!(Reply::read(&last.token).unwrap().mic.is_some());
    let end = acceptor.step(&last.token).unwrap();
    assert!(end.done.is_some());
    let unsigned = Reply { progress: Some(Progress::Completed), ..Reply::default() }.write();
    assert!(initiator.step(&unsigned).is_err());
}

#[test]
fn a_rejection_is_a_refusal() {
    let mut initiator = SpnegoInitiator::new(&credentials(), &Options::default()).unwrap();
    initiator.step(&[]).unwrap();
    let reply = Reply { progress: Some(Progress::Rejected), ..Reply::default() }.write();
    assert_eq!(initiator.step(&reply).err().unwrap().kind(), Kind::Refused);
}

#[test]
fn nothing_in_common() {
    let list = token::write_list(&[token::KERBEROS]);
    let refused = acceptor().step(&token::write_init(&list, b"a ticket")).err().unwrap();
    assert_eq!(refused.kind(), Kind::Refused);
}

#[test]
fn codes_before_there_is_a_key() {
    let (mut inner, mut acceptor) = (ntlm(), acceptor());
    let list = token::write_list(&[token::NTLM]);
    acceptor.step(&token::write_init(&list, &inner.step(&[]).unwrap().token)).unwrap();
    assert!(acceptor.step(&respond(None, Some(&[0; 16]))).is_err());
}

fn respond(token: Option<&[u8]>, mic: Option<&[u8]>) -> Vec<u8> {
    Reply { token, mic, ..Reply::default() }.write()
}
