//! The side that wants in (RFC 4178 4, MS-SPNG 3.1).
//!
//! The first token of the most wanted mechanism is sent along on trust. The server may choose another
//! one of the list, which then begins anew. Kerberos is offered only where a ticket was got.
//!
//! Invariants: a list of several mechanisms is always signed, so that nobody on the way can choose for
//! both. The server chooses once, in its first reply. The context is handed out only when the server says that it has completed, and, where this
//! side signed or the choice was not its first, only with the server's code over the list.

use super::token::{self, Progress, Reply, malformed};
use crate::security::{
    Cause, Credentials, Established, Initiator, Mechanism, Options, Step, check_size, initiator, kerberos,
    out_of_turn,
};
use everywire_model::{Failure, Kind};

/// The exchange as seen by who wants in.
pub(crate) struct SpnegoInitiator {
    credentials: Credentials,
    options: Options,
    /// What is offered, most wanted first, and the context of each once it is begun.
    offers: Vec<(&'static [u8], Mechanism)>,
    /// The list as it was sent: codes are over these octets.
    list: Vec<u8>,
    inner: Option<Box<dyn Initiator>>,
    /// Which of the offers `inner` is.
    chosen: usize,
    /// The context, until the server has completed.
    established: Option<Established>,
    /// This side's code over the list went out: the peer owes one.
    signed: bool,
    /// The peer's code over the list was right.
    vouched: bool,
    /// A reply came: the server has chosen, if only by saying nothing of it.
    answered: bool,
    /// No further token is waited for.
    over: bool,
}

impl SpnegoInitiator {
    pub(crate) fn new(credentials: &Credentials, options: &Options) -> Result<Self, Failure> {
        let mut offers = Vec::new();
        if kerberos::promising(credentials, options) {
            offers.push((token::KERBEROS, Mechanism::Kerberos));
        }
        // Who is not named may have a ticket all the same.
        if !credentials.user.is_empty() {
            offers.push((token::NTLM, Mechanism::Ntlm));
        }
        if offers.is_empty() {
            let what = "there is nothing to prove who calls with: no user is named, and there is no Kerberos for this server";
            return Err(Failure::new(Kind::Refused, Cause::User, what).with_hint(
                "give the user's name and password, or set up Kerberos and get a ticket by `kinit`",
            ));
        }
        // A list of several is always signed: who is on the way could else choose. One of a single mechanism has nothing to choose,
        // and servers take a context that can sign for one that will.
        let options = Options { integrity: options.integrity || offers.len() > 1, ..options.clone() };
        Ok(Self {
            credentials: credentials.clone(),
            options,
            offers,
            list: Vec::new(),
            inner: None,
            chosen: 0,
            established: None,
            signed: false,
            vouched: false,
            answered: false,
            over: false,
        })
    }

    /// The first token. A mechanism that cannot begin is not offered, if there is another.
    fn begin(&mut self) -> Result<Step, Failure> {
        // Who gets no ticket does not offer Kerberos.
        let first = loop {
            match self.restart(0) {
                Ok(first) => break first,
                Err(_) if self.offers.len() > 1 => drop(self.offers.remove(0)),
                Err(failure) => return Err(failure),
            }
        };
        let names: Vec<_> = self.offers.iter().map(|(name, _)| *name).collect();
        self.list = token::write_list(&names);
        Ok(Step { token: token::write_init(&self.list, &first), done: None })
    }

    /// The first token of the offer's mechanism.
    fn restart(&mut self, chosen: usize) -> Result<Vec<u8>, Failure> {
        let (_, mechanism) =
            *self.offers.get(chosen).ok_or_else(|| malformed("it chooses nothing on offer"))?;
        let mut inner = initiator(mechanism, &self.credentials, &self.options)?;
        let step = inner.step(&[])?;
        self.established = step.done;
        self.inner = Some(inner);
        self.chosen = chosen;
        Ok(step.token)
    }

    /// Takes a reply of the server.
    fn go_on(&mut self, reply: &Reply<'_>) -> Result<Step, Failure> {
        if reply.progress == Some(Progress::Rejected) {
            let what = "the server lets nobody in with what was offered";
            return Err(Failure::new(Kind::Refused, Cause::Peer, what));
        }
        let mut out = None;
        if let Some(name) = reply.mechanism {
            let same = |known: &[u8]| {
                known == name || known == token::KERBEROS && name == token::KERBEROS_OF_WINDOWS
            };
            let chosen = self.offers.iter().position(|(known, _)| same(known));
            let chosen = chosen.ok_or_else(|| malformed("it chooses what was not offered"))?;
            if chosen != self.chosen {
                // RFC 4178 4.2.2: only the first reply names a mechanism. A server that changed its mind could do so for ever.
                if self.answered {
                    return Err(malformed("it chooses a second time"));
                }
                out = Some(self.restart(chosen)?);
            }
        }
        self.answered = true;
        match reply.token {
            Some(bytes) if out.is_none() && !bytes.is_empty() => {
                let inner = self.inner.as_mut().ok_or_else(out_of_turn)?;
                let step = inner.step(bytes)?;
                out = Some(step.token).filter(|token| !token.is_empty());
                self.established = step.done;
            }
            _ => {}
        }
        let completed = reply.progress == Some(Progress::Completed);
        let Some(established) = &mut self.established else {
            return match out {
                Some(token) if !completed => Ok(Step { token: respond(Some(&token), None), done: None }),
                _ => Err(malformed("it ends before the two agreed")),
            };
        };
        // Some send a code although nothing is signed; it stands for nothing then.
        if let Some(code) = reply.mic.filter(|_| established.protection.integrity()) {
            established.protection.check_mic(&self.list, code)?;
            self.vouched = true;
        }
        // An offer other than the first may have been somebody else's choice, so it has to be vouched for.
        let signs = established.protection.integrity();
        if completed && !self.vouched && (signs && self.signed || self.chosen != 0) {
            return Err(malformed("the server does not sign the list of mechanisms"));
        }
        let mut mic = None;
        let asked = reply.mic.is_some() || reply.progress == Some(Progress::WantsMic);
        if !self.signed && !completed && (asked || established.protection.integrity()) {
            mic = Some(established.protection.mic(&self.list)?);
            self.signed = true;
        }
        let token = if out.is_some() || mic.is_some() {
            respond(out.as_deref(), mic.as_deref())
        } else if completed {
            Vec::new()
        } else {
            return Err(malformed("it neither ends nor goes on"));
        };
        let done = if completed { self.established.take() } else { None };
        self.over = done.is_some();
        Ok(Step { token, done })
    }
}

impl Initiator for SpnegoInitiator {
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure> {
        check_size(token)?;
        if std::mem::replace(&mut self.over, true) {
            return Err(out_of_turn());
        }
        let step = if self.inner.is_none() { self.begin() } else { self.go_on(&Reply::read(token)?) }?;
        self.over = step.done.is_some();
        Ok(step)
    }
}

fn respond(token: Option<&[u8]>, mic: Option<&[u8]>) -> Vec<u8> {
    Reply { token, mic, ..Reply::default() }.write()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::security::Secret;

    /// RFC 4178 4.2.2: a mechanism is named in the first reply alone.
    #[test]
    fn a_server_chooses_once() {
        let credentials =
            Credentials { domain: "HOME".into(), user: "ada".into(), password: Secret::password("engine") };
        let mut initiator = SpnegoInitiator::new(&credentials, &Options::default()).unwrap();
        // A second choice that needs no ticket.
        initiator.offers = vec![(token::KERBEROS, Mechanism::Ntlm), (token::NTLM, Mechanism::Ntlm)];
        initiator.step(&[]).unwrap();
        let choose = |name| Reply { mechanism: Some(name), ..Reply::default() }.write();
        initiator.step(&choose(token::NTLM)).unwrap();
        let refused = initiator.step(&choose(token::KERBEROS)).err().unwrap();
        assert!(refused.message().contains("a second time"), "{refused}");
    }
}
