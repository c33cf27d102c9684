//! The side that wants in (MS-NLMP 3.1.5).
//!
//! States: *start*; *challenged*, with its own first message, since an integrity code is over all
//! three; *over*. The context stands when the second message is made: the acceptor says nothing more.
//!
//! Invariants: nothing that depends on the password is sent to a server that does not offer extended
//! session security. Only NTLMv2 is answered. If the server tells the time, the answer has an integrity
//! code, and the answer for LM is empty.

use super::keys::{self, Key};
use super::message::{self, Authenticate, Challenge};
use super::pairs::{self, Pairs};
use super::protection::NtlmProtection;
use super::{draw, file_time, flags, host_names};
use crate::Random;
use crate::security::{
    Cause, Credentials, Established, Initiator, Options, Principal, Step, check_size, out_of_turn,
};
use everywire_model::{Failure, Kind};
use zeroize::Zeroizing;

/// The exchange as seen by who wants in.
pub(crate) struct NtlmInitiator {
    user: String,
    domain: String,
    hash: Key,
    /// The service's principal name, which the proof covers.
    target: String,
    /// The flags of the first message.
    wanted: u32,
    random: Random,
    state: State,
}

enum State {
    Start,
    /// The first message was sent.
    Challenged(Vec<u8>),
    Over,
}

impl NtlmInitiator {
    pub(crate) fn new(credentials: &Credentials, options: &Options, random: Random) -> Self {
        let mut wanted = flags::NEEDED
            | flags::REQUEST_TARGET
            | flags::ALWAYS_SIGN
            | flags::VERSION
            | flags::KEY_128
            | flags::KEY_56;
        if options.integrity || options.confidentiality {
            // Without messages to sign, some exchange no key although both want to (MS-NLMP 3.1.5.1.2), and some do.
            wanted |= flags::SIGN | flags::KEY_EXCHANGE;
        }
        if options.confidentiality {
            wanted |= flags::SEAL;
        }
        Self {
            user: credentials.user.clone(),
            domain: credentials.domain.clone(),
            hash: keys::nt_hash(&credentials.password),
            target: options.target.clone(),
            wanted,
            random,
            state: State::Start,
        }
    }

    fn answer(&self, negotiate: &[u8], token: &[u8]) -> Result<Step, Failure> {
        let challenge = Challenge::read(token)?;
        let agreed = self.agree(challenge.flags)?;
        let stamp = challenge.info.timestamp()?;
        let info = self.target_info(challenge.info, stamp.is_some())?;
        let chosen: [u8; 8] = draw(self.random)?;
        let domain = keys::utf16(&self.domain);
        let key = keys::ntlm2_key(&self.hash, &self.user, &domain);

        // Two revisions of the answer, the clock, this side's challenge; zeros between and behind.
        let mut answer = vec![1, 1, 0, 0, 0, 0, 0, 0];
        answer.extend(stamp.unwrap_or_else(file_time));
        answer.extend(chosen);
        answer.extend([0; 4]);
        answer.extend(&info);
        answer.extend([0; 4]);
        let proof = keys::hmac(&key, &[&challenge.challenge, &answer]);
        let base = keys::hmac(&key, &[&*proof]);
        let nt = [proof.as_slice(), &answer].concat();
        // Who sends an integrity code sends nothing to LM.
        let lm = if stamp.is_some() {
            vec![0; 24]
        } else {
            [keys::hmac(&key, &[&challenge.challenge, &chosen]).as_slice(), &chosen].concat()
        };

        let mut sealed_key = Zeroizing::new(Vec::new());
        let session = if agreed & flags::KEY_EXCHANGE != 0 {
            let session = Zeroizing::new(draw(self.random)?);
            sealed_key = Zeroizing::new(session.to_vec());
            apply(&base, &mut sealed_key);
            session
        } else {
            base
        };
        let mut out = Authenticate {
            lm: &lm,
            nt: &nt,
            domain: &domain,
            user: &keys::utf16(&self.user),
            workstation: &keys::utf16(&host_names().0),
            key: &sealed_key,
            flags: agreed,
        }
        .write()
        .ok_or_else(|| Failure::bad_argument("a name is too long for NTLM, or the server's list is"))?;
        if stamp.is_some() {
            let code = keys::hmac(&session, &[negotiate, token, &out]);
            message::set_mic(&mut out, *code);
        }
        Ok(Step { token: out, done: Some(self.established(&session, agreed)) })
    }

    /// What both sides want, if that is enough.
    fn agree(&self, offered: u32) -> Result<u32, Failure> {
        let agreed = offered & self.wanted | offered & flags::TARGET_INFO;
        let weak = |what: &str| {
            Failure::new(Kind::Refused, Cause::Here, format!("the server does not offer {what}"))
                .with_hint("it is set to protocols that are easily broken; nothing was sent that depends on the password")
        };
        if agreed & flags::EXTENDED_SECURITY == 0 {
            return Err(weak("extended session security"));
        }
        if agreed & flags::UNICODE == 0 {
            return Err(weak("Unicode"));
        }
        if self.wanted & flags::SEAL != 0 && agreed & flags::KEY_128 == 0 {
            return Err(weak("sealing keys of 128 bits"));
        }
        // Some servers do not repeat these; both sides have the keys all the same.
        Ok(agreed | flags::NTLM | self.wanted & (flags::SIGN | flags::SEAL))
    }

    /// The server's list with what this side has to say: the service's name, and whether there is an
    /// integrity code. `with_mic` is that.
    fn target_info(&self, theirs: Pairs<'_>, with_mic: bool) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        if theirs.is_empty() && self.target.is_empty() {
            return Ok(vec![0; 4]);
        }
        let mut say = || {
            for (id, value) in theirs.iter() {
                if ![pairs::FLAGS, pairs::TARGET_NAME, pairs::CHANNEL_BINDINGS].contains(&id) {
                    pairs::put(&mut out, id, value)?;
                }
            }
            let bits = theirs.flags().ok()? | if with_mic { pairs::HAS_MIC } else { 0 };
            pairs::put(&mut out, pairs::FLAGS, &bits.to_le_bytes())?;
            pairs::put(&mut out, pairs::CHANNEL_BINDINGS, &[0; 16])?;
            pairs::put(&mut out, pairs::TARGET_NAME, &keys::utf16(&self.target))?;
            pairs::put(&mut out, pairs::END, &[])
        };
        say().ok_or_else(|| message::malformed("the target information makes no sense"))?;
        Ok(out)
    }

    fn established(&self, session: &Key, agreed: u32) -> Established {
        Established {
            principal: Principal {
                domain: self.domain.clone(),
                user: self.user.clone(),
                mechanism: "NTLMv2",
            },
            protection: Box::new(NtlmProtection::new(session, agreed, false)),
            session_key: session.to_vec(),
        }
    }
}

impl Initiator for NtlmInitiator {
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure> {
        check_size(token)?;
        match std::mem::replace(&mut self.state, State::Over) {
            State::Start => {
                let first = message::write_negotiate(self.wanted);
                self.state = State::Challenged(first.clone());
                Ok(Step { token: first, done: None })
            }
            State::Challenged(first) => self.answer(&first, token),
            State::Over => Err(out_of_turn()),
        }
    }
}

/// Encrypts or decrypts a session key.
pub(super) fn apply(key: &Key, bytes: &mut [u8]) {
    use rc4::StreamCipher;
    keys::rc4(key).apply_keystream(bytes);
}
