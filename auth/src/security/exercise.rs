//! Hostile bytes for every state of both sides, for the fuzzer and the tests.

use super::{Credentials, Mechanism, Options, Secret, UserTable, acceptor, initiator};
use std::sync::Arc;

/// Gives the octets to initiators and acceptors of NTLM and SPNEGO as the first, the second and the third token, and as
/// a change to the right last token. Yields whether an acceptor let somebody in, which nobody earns this way.
#[doc(hidden)]
pub fn exercise(bytes: &[u8]) -> bool {
    [Mechanism::Ntlm, Mechanism::Negotiate]
        .into_iter()
        .any(|mechanism| as_tokens(mechanism, bytes) || as_a_change(mechanism, bytes))
}

fn as_tokens(mechanism: Mechanism, bytes: &[u8]) -> bool {
    let (credentials, users, options) = parties();
    let Ok(mut ours) = initiator(mechanism, &credentials, &options) else { return false };
    let Ok(mut theirs) = acceptor(mechanism, users, &options) else { return false };
    let Ok(first) = ours.step(&[]) else { return false };
    drop(ours.step(bytes));
    let let_in = theirs.step(bytes).is_ok_and(|step| step.done.is_some());
    let (_, users, _) = parties();
    let Ok(mut theirs) = acceptor(mechanism, users, &options) else { return let_in };
    drop(theirs.step(&first.token));
    let_in || theirs.step(bytes).is_ok_and(|step| step.done.is_some())
}

/// The first octets say where, the others what is put there instead.
fn as_a_change(mechanism: Mechanism, bytes: &[u8]) -> bool {
    let Some((place, change)) = bytes.split_first_chunk::<2>() else { return false };
    let (credentials, users, options) = parties();
    let Ok(mut ours) = initiator(mechanism, &credentials, &options) else { return false };
    let Ok(mut theirs) = acceptor(mechanism, users, &options) else { return false };
    let mut exchange = || {
        let first = ours.step(&[]).ok()?;
        let challenge = theirs.step(&first.token).ok()?;
        ours.step(&challenge.token).ok()
    };
    let Some(last) = exchange() else { return false };
    let place = usize::from(u16::from_le_bytes(*place)) % last.token.len().max(1);
    let mut changed = last.token.clone();
    changed.iter_mut().skip(place).zip(change).for_each(|(old, new)| *old = *new);
    let let_in = theirs.step(&changed).is_ok_and(|step| step.done.is_some());
    // SPNEGO's frames may be written in more than one way, and its code over a list of one may be missing; NTLM's message
    // vouches for each of its octets.
    let_in && changed != last.token && mechanism == Mechanism::Ntlm
}

fn parties() -> (Credentials, Arc<UserTable>, Options) {
    let secret = Secret::nt_hash([0x5e; 16]);
    let mut users = UserTable::default();
    users.insert(None, "ada", secret.clone());
    let credentials = Credentials { domain: "HOME".into(), user: "ada".into(), password: secret };
    let options = Options { integrity: true, allow_ntlm1_session: true, ..Options::default() };
    (credentials, Arc::new(users), options)
}
