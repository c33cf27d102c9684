//! The side that lets in (RFC 4178 4, MS-SPNG 3.2).
//!
//! States: *start*; *bare*, where the peer speaks a mechanism without SPNEGO around it; *agreed* on a
//! mechanism, whose context may already stand while codes over the list are waited for; *over*.
//!
//! Invariants: the mechanism is the first of the initiator's list that this side can do. If that is not
//! the first of the list, and the mechanism can sign, the context is handed out only after the peer's
//! code over the list was right.

use super::token::{self, Init, Progress, Reply, malformed};
use crate::security::{
    Acceptor, Cause, Established, Mechanism, Options, Step, Users, acceptor, check_size, kerberos, ntlm,
    out_of_turn,
};
use everywire_model::{Failure, Kind};
use std::sync::Arc;

/// The exchange as seen by who lets in.
pub(crate) struct SpnegoAcceptor {
    users: Arc<dyn Users>,
    options: Options,
    state: State,
}

enum State {
    Start,
    /// The peer left out SPNEGO and began with NTLM, as Windows does now and then, or with Kerberos.
    Bare(Box<dyn Acceptor>),
    Agreed(Box<MechanismExchange>),
    Over,
}

/// The exchange of the mechanism that was agreed on.
struct MechanismExchange {
    inner: Box<dyn Acceptor>,
    /// The list of mechanisms as the initiator sent it: codes are over these octets.
    list: Vec<u8>,
    /// The mechanism was not the initiator's first wish, so both have to sign the list.
    second_choice: bool,
    /// The context, while the codes are still to be exchanged.
    established: Option<Established>,
}

impl SpnegoAcceptor {
    pub(crate) fn new(users: Arc<dyn Users>, options: &Options) -> Self {
        Self { users, options: options.clone(), state: State::Start }
    }

    /// The first token: chooses the mechanism.
    fn begin(&mut self, token: &[u8]) -> Result<Step, Failure> {
        let bare = match () {
            () if ntlm::is_message(token) => Some(Mechanism::Ntlm),
            () if token::is_kerberos(token) && kerberos::accepting(&self.options) => {
                Some(Mechanism::Kerberos)
            }
            () => None,
        };
        if let Some(mechanism) = bare {
            let mut inner = acceptor(mechanism, Arc::clone(&self.users), &self.options)?;
            let step = inner.step(token)?;
            self.state = State::Bare(inner);
            return Ok(step);
        }
        let init = Init::read(token)?;
        let known = |name: &[u8]| match name {
            token::NTLM => Some(Mechanism::Ntlm),
            token::KERBEROS | token::KERBEROS_OF_WINDOWS if kerberos::accepting(&self.options) => {
                Some(Mechanism::Kerberos)
            }
            _ => None,
        };
        let choice =
            init.mechanisms.iter().enumerate().find_map(|(index, name)| Some((index, *name, known(name)?)));
        let Some((index, name, mechanism)) = choice else {
            let what = "the peer offers neither NTLM nor a Kerberos that this side has keys for";
            return Err(Failure::new(Kind::Refused, Cause::Here, what));
        };
        let mut agreed = MechanismExchange {
            inner: acceptor(mechanism, Arc::clone(&self.users), &self.options)?,
            list: init.list.to_vec(),
            second_choice: index != 0,
            established: None,
        };
        // The token came with the first wish; any other mechanism begins anew.
        let step = match init.token {
            Some(optimistic) if index == 0 => agreed.take(Some(optimistic), None, Some(name))?,
            _ => {
                let progress = if index == 0 { Progress::Incomplete } else { Progress::WantsMic };
                let reply = Reply { progress: Some(progress), mechanism: Some(name), ..Reply::default() };
                Step { token: reply.write(), done: None }
            }
        };
        if step.done.is_none() {
            self.state = State::Agreed(Box::new(agreed));
        }
        Ok(step)
    }
}

impl MechanismExchange {
    /// One token of the mechanism, or a code, or both. `name` is the mechanism for the first reply.
    fn take(
        &mut self,
        token: Option<&[u8]>,
        mic: Option<&[u8]>,
        name: Option<&[u8]>,
    ) -> Result<Step, Failure> {
        let mut out = Vec::new();
        match token {
            Some(bytes) if self.established.is_none() => {
                let step = self.inner.step(bytes)?;
                out = step.token;
                self.established = step.done;
            }
            None if mic.is_some() => {}
            _ => return Err(malformed("it has nothing that is waited for")),
        }
        let reply = |progress, mic: Option<&[u8]>| {
            Reply {
                progress: Some(progress),
                mechanism: name,
                token: Some(&*out).filter(|token| !token.is_empty()),
                mic,
            }
            .write()
        };
        let Some(established) = &mut self.established else {
            return if mic.is_some() {
                Err(malformed("it signs the list before there is a key"))
            } else {
                Ok(Step { token: reply(Progress::Incomplete, None), done: None })
            };
        };
        let ours = match mic {
            Some(code) => {
                established.protection.check_mic(&self.list, code)?;
                Some(established.protection.mic(&self.list)?)
            }
            None if self.second_choice && established.protection.integrity() => {
                return Ok(Step { token: reply(Progress::WantsMic, None), done: None });
            }
            None => None,
        };
        Ok(Step { token: reply(Progress::Completed, ours.as_deref()), done: self.established.take() })
    }
}

impl Acceptor for SpnegoAcceptor {
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure> {
        check_size(token)?;
        match std::mem::replace(&mut self.state, State::Over) {
            State::Start => self.begin(token),
            State::Bare(mut inner) => inner.step(token),
            State::Agreed(mut agreed) => {
                let reply = Reply::read(token)?;
                if reply.progress == Some(Progress::Rejected) {
                    return Err(Failure::new(Kind::Refused, Cause::Peer, "the peer gave up"));
                }
                let step = agreed.take(reply.token.filter(|token| !token.is_empty()), reply.mic, None)?;
                if step.done.is_none() {
                    self.state = State::Agreed(agreed);
                }
                Ok(step)
            }
            State::Over => Err(out_of_turn()),
        }
    }
}
