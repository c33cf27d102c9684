//! The side that lets in (MS-NLMP 3.2.5).
//!
//! States: *start*; *challenged*, with all that was said before, since an integrity code is over all of
//! it; *over*. A token in any state but the first two is out of turn.
//!
//! Invariants: only what was offered in the challenge can be agreed on. A challenge is drawn for each
//! exchange and good for one answer. The flag that promises an integrity code is part of what the proof
//! is computed over, so nobody on the way can take it out. For a user that there is not the same is
//! computed with a random hash.

use super::initiator::apply;
use super::keys::{self, Key};
use super::message::{self, Authenticate, malformed};
use super::pairs::{self, Pairs};
use super::protection::NtlmProtection;
use super::{draw, file_time, flags, host_names};
use crate::Random;
use crate::security::{
    Acceptor, Cause, Established, Options, Principal, Step, Users, check_size, out_of_turn, refused,
};
use everywire_model::{Failure, Kind};
use std::sync::Arc;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Octets of an answer before the list about the server: the proof, and what both sides' clocks and dice said.
const ANSWER_HEADER: usize = 16 + 28;
/// Octets of the answers of version 1.
const OLD_ANSWER: usize = 24;

/// The exchange as seen by who lets in.
pub(crate) struct NtlmAcceptor {
    users: Arc<dyn Users>,
    /// Whether the answer of NTLMv1 with session security is taken.
    old_too: bool,
    /// Whether messages have to be sealed.
    private: bool,
    random: Random,
    state: State,
}

enum State {
    Start,
    Challenged(Challenged),
    Over,
}

/// What was said before the last message.
pub(super) struct Challenged {
    pub(super) first: Vec<u8>,
    pub(super) second: Vec<u8>,
    pub(super) challenge: [u8; 8],
    pub(super) offered: u32,
}

/// A peer that proved what it said.
struct ProvenPeer {
    session: Key,
    mechanism: &'static str,
    /// Its message has an integrity code.
    has_mic: bool,
}

impl NtlmAcceptor {
    pub(crate) fn new(users: Arc<dyn Users>, options: &Options, random: Random) -> Self {
        Self {
            users,
            old_too: options.allow_ntlm1_session,
            private: options.confidentiality,
            random,
            state: State::Start,
        }
    }

    /// The first message came: answers with a challenge.
    fn challenge(&mut self, token: &[u8]) -> Result<Step, Failure> {
        let wanted = message::read_negotiate(token)?;
        self.check_strength(wanted)?;
        let offered = wanted & flags::ACCEPTED | flags::TARGET_INFO | flags::TARGET_SERVER;
        let challenge: [u8; 8] = draw(self.random)?;
        let (netbios, dns) = host_names();
        let name = keys::utf16(&netbios);
        let second = target_info(&name, &keys::utf16(&dns))
            .and_then(|info| message::write_challenge(offered, challenge, &name, &info))
            .ok_or_else(|| {
                Failure::new(Kind::Internal, Cause::Here, "this host's name is too long for NTLM")
            })?;
        let reply = second.clone();
        self.state = State::Challenged(Challenged { first: token.to_vec(), second, challenge, offered });
        Ok(Step { token: reply, done: None })
    }

    /// The second message came: checks the proof, and establishes the context.
    pub(super) fn authenticate(&self, before: &Challenged, token: &[u8]) -> Result<Step, Failure> {
        let said = Authenticate::read(token)?;
        self.check_strength(said.flags)?;
        // Nothing that was not offered, whatever it claims now.
        let agreed = said.flags & before.offered;
        if self.private && agreed & flags::SEAL == 0 {
            let what = "the peer wants to seal without having asked for it";
            return Err(Failure::new(Kind::Refused, Cause::Here, what).with_code(crate::security::UNSEALED));
        }
        if said.flags & flags::ANONYMOUS != 0 || said.user.is_empty() {
            return Err(refused().with_hint("the peer gives no name"));
        }
        let text = |bytes| keys::from_utf16(bytes).ok_or_else(|| malformed("a name is no UTF-16"));
        let (domain, user) = (text(said.domain)?, text(said.user)?);
        let secret = self.users.secret(&domain, &user);
        // Who is unknown takes as long as who has the wrong password.
        let hash = match &secret {
            Some(secret) => keys::nt_hash(secret),
            None => Zeroizing::new(draw(self.random)?),
        };
        let proven = match said.nt.len() {
            OLD_ANSWER => self.old_answer(before, &said, &hash),
            _ => answer(before, &said, &hash, &user),
        }?;
        // The peer is told the same for both; this side's log may tell them apart.
        let who = if domain.is_empty() { user.clone() } else { format!("{domain}\\{user}") };
        let who = who.escape_debug();
        if secret.is_none() {
            return Err(refused().with_hint(format!("there is no user `{who}` here")));
        }
        let Some(proven) = proven else {
            return Err(refused().with_hint(format!("`{who}` has another password here")));
        };

        // Without messages to sign, some exchange no key although both want to (MS-NLMP 3.2.5.1.2), and some do.
        let may_be_left_out = agreed & (flags::SIGN | flags::SEAL) == 0 && said.key.is_empty();
        let session = if agreed & flags::KEY_EXCHANGE != 0 && !may_be_left_out {
            let sealed: [u8; 16] =
                said.key.try_into().map_err(|_| malformed("a session key has 16 octets"))?;
            let mut session = Zeroizing::new(sealed);
            apply(&proven.session, session.as_mut_slice());
            session
        } else {
            proven.session
        };
        if proven.has_mic {
            let code = message::mic_of(token)?;
            let mut without = token.to_vec();
            message::set_mic(&mut without, [0; 16]);
            let expected = keys::hmac(&session, &[&before.first, &before.second, &without]);
            if !bool::from(expected.ct_eq(&code)) {
                return Err(refused());
            }
        }
        let protection = Box::new(NtlmProtection::new(&session, agreed, true));
        let principal = Principal { domain, user, mechanism: proven.mechanism };
        let done = Established { principal, protection, session_key: session.to_vec() };
        Ok(Step { token: Vec::new(), done: Some(done) })
    }

    /// The NTLM2 session response: weaker, as the password's hash is used with no salt and DES.
    fn old_answer(
        &self,
        before: &Challenged,
        said: &Authenticate<'_>,
        hash: &Key,
    ) -> Result<Option<ProvenPeer>, Failure> {
        if !self.old_too {
            return Err(Failure::new(
                Kind::Refused,
                Cause::Here,
                "the peer answers with NTLMv1, which is not let in",
            )
            .with_hint("set the client to NTLMv2, or allow NTLMv1 with session security on this side"));
        }
        let chosen = said.lm.first_chunk().ok_or_else(|| malformed("it has no challenge of the peer's"))?;
        let expected = keys::session_response(hash, before.challenge, *chosen);
        if !bool::from(expected.as_slice().ct_eq(said.nt)) {
            return Ok(None);
        }
        let session = keys::session_base(hash, before.challenge, *chosen);
        Ok(Some(ProvenPeer { session, mechanism: "NTLMv1 with session security", has_mic: false }))
    }

    /// Refuses what is not spoken here, and sealing with short keys.
    fn check_strength(&self, wanted: u32) -> Result<(), Failure> {
        if wanted & flags::NEEDED != flags::NEEDED {
            let what = "the peer wants NTLM without Unicode or extended session security";
            return Err(Failure::new(Kind::Unsupported, Cause::Peer, what));
        }
        if self.private && wanted & flags::KEY_128 == 0 {
            let what = "the peer wants to seal with keys of fewer than 128 bits";
            return Err(Failure::new(Kind::Refused, Cause::Here, what));
        }
        Ok(())
    }
}

impl Acceptor for NtlmAcceptor {
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure> {
        check_size(token)?;
        match std::mem::replace(&mut self.state, State::Over) {
            State::Start => self.challenge(token),
            State::Challenged(before) => self.authenticate(&before, token),
            State::Over => Err(out_of_turn()),
        }
    }
}

/// NTLMv2's answer.
fn answer(
    before: &Challenged,
    said: &Authenticate<'_>,
    hash: &Key,
    user: &str,
) -> Result<Option<ProvenPeer>, Failure> {
    let Some((proof, temp)) = said.nt.split_first_chunk::<16>() else {
        // Nothing, or what was never an answer: it proves nothing.
        return Ok(None);
    };
    let info = said.nt.get(ANSWER_HEADER..).ok_or_else(|| malformed("the answer ends too early"))?;
    let info = Pairs::read(info)?;
    let key = keys::ntlm2_key(hash, user, said.domain);
    let expected = keys::hmac(&key, &[&before.challenge, temp]);
    if !bool::from(expected.ct_eq(proof)) {
        return Ok(None);
    }
    let session = keys::hmac(&key, &[proof]);
    let has_mic = info.flags()? & pairs::HAS_MIC != 0;
    Ok(Some(ProvenPeer { session, mechanism: "NTLMv2", has_mic }))
}

/// What the acceptor says about itself: a server that is its own domain.
fn target_info(netbios: &[u8], dns: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    pairs::put(&mut out, pairs::NETBIOS_DOMAIN, netbios)?;
    pairs::put(&mut out, pairs::NETBIOS_COMPUTER, netbios)?;
    pairs::put(&mut out, pairs::DNS_DOMAIN, dns)?;
    pairs::put(&mut out, pairs::DNS_COMPUTER, dns)?;
    pairs::put(&mut out, pairs::TIMESTAMP, &file_time())?;
    pairs::put(&mut out, pairs::END, &[])?;
    Some(out)
}
