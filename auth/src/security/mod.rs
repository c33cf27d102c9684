//! Security contexts: NTLM, SPNEGO and Kerberos, both sides, and the protection of each message
//! afterwards.
//!
//! An `Initiator` and an `Acceptor` turn tokens into tokens until one is `Established`; how tokens
//! travel is the wire's affair. What they establish is a `Principal` and a `Protection`, which signs
//! and seals whole messages.
//!
//! States of either side: it waits for a token; or it is over, by its last token or by an error, and
//! every further token is out of turn. `step` returns `done` at most once.
//!
//! Invariants: a token is at most `MAX_TOKEN` octets, which is checked before it is looked at. Whoever
//! is not let in by NTLM hears one answer (`refused`), and it takes as long for users that there are
//! not. A context that stands has at least the protection that the options ask for, where the mechanism
//! lets that be seen; else the caller checks `integrity` and `confidentiality`. Passwords are
//! overwritten when they are dropped.

mod credentials;
mod exercise;
mod kerberos;
mod ntlm;
mod spnego;
mod users;

pub use credentials::{Credentials, Secret};
pub use exercise::exercise;
pub use users::{UserTable, Users, is_password};

use crate::system_random;
use everywire_model::{Failure, Initiator as Cause, Kind, named_variants};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The code of failures for which nobody is to blame but settings: the peer did not agree to encrypt.
pub(crate) const UNSEALED: &str = "auth Unsealed";

/// Octets that a token may have. Windows stops at 48000; what is larger is refused before it is looked at.
pub const MAX_TOKEN: usize = 64 * 1024;

named_variants! {
    /// How the two sides prove who they are, with the names in addresses.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Mechanism {
        /// NTLM (MS-NLMP), with no wrapping.
        Ntlm "ntlm",
        /// SPNEGO (RFC 4178), which agrees on one of the others.
        #[default]
        Negotiate "negotiate",
        /// Kerberos (RFC 4121), with no wrapping.
        Kerberos "kerberos",
    }
}

/// What a context is asked for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Messages will be signed.
    pub integrity: bool,
    /// Messages will be sealed too.
    pub confidentiality: bool,
    /// The three-legged exchange of DCE/RPC (MS-RPCE 3.3.1.5.2.1).
    pub dce_style: bool,
    /// As acceptor, let in who answers with the NTLM2 session response instead of NTLMv2. It is weaker; the default of
    /// some old clients.
    pub allow_ntlm1_session: bool,
    /// The service's principal name: `RPCSS/host`, `host/host`. The acceptor may leave it empty.
    pub target: String,
    /// The acceptor's Kerberos keys: whoever has a ticket for them is let in. Without them nobody is by Kerberos.
    pub keytab: Option<PathBuf>,
}

/// Who the other side proved to be; for an initiator, whom it said it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// NetBIOS or Kerberos domain; may be empty.
    pub domain: String,
    /// User.
    pub user: String,
    /// The proof: `NTLMv2`, `NTLMv1 with session security`, `Kerberos`.
    pub mechanism: &'static str,
}

/// What comes of one token.
pub struct Step {
    /// To be sent, if it is not empty.
    pub token: Vec<u8>,
    /// The context, once it stands on this side and no further token of the peer is waited for. While it is `None`, the
    /// peer has to answer (an initiator of DCE/RPC then sends the token by `alter_context`, and otherwise by `auth3`).
    pub done: Option<Established>,
}

/// A context that stands.
pub struct Established {
    /// The peer (acceptor) or this side (initiator).
    pub principal: Principal,
    /// Signs and seals.
    pub protection: Box<dyn Protection>,
    /// The key both sides share; upper layers derive their own from it.
    pub session_key: Vec<u8>,
}

/// The side that wants in.
pub trait Initiator: Send {
    /// Takes the acceptor's token (the first time an empty one) and yields the next.
    ///
    /// # Errors
    ///
    /// The token is malformed, the acceptor refuses, or what it offers is too weak for the options.
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure>;
}

/// The side that lets in.
pub trait Acceptor: Send {
    /// Takes the initiator's token and yields the next.
    ///
    /// # Errors
    ///
    /// The token is malformed, or the initiator is not let in ([`Kind::Refused`]; it does not say whether the user or
    /// the password was wrong).
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure>;
}

/// Protects messages in both directions. Messages have to be verified in the order in which they were protected.
pub trait Protection: Send {
    /// Octets of a signature.
    fn signature_len(&self) -> usize;

    /// What the number of sealed octets has to be a multiple of.
    fn pad(&self) -> usize;

    /// Signs a message to be sent, and encrypts `sealed` of it in place. For DCE/RPC it is the whole PDU up to and with
    /// the `sec_trailer`.
    ///
    /// # Errors
    ///
    /// `sealed` lies outside the message, or `signature` is not [`signature_len`](Self::signature_len) octets long.
    fn protect(
        &mut self,
        message: &mut [u8],
        sealed: Option<Range<usize>>,
        signature: &mut [u8],
    ) -> Result<(), Failure>;

    /// Decrypts `sealed` of a received message in place, and checks its signature.
    ///
    /// # Errors
    ///
    /// The signature is wrong: the message, or its order, was changed on its way. Nothing of it may be used, and the
    /// context is of no use anymore.
    fn verify(
        &mut self,
        message: &mut [u8],
        sealed: Option<Range<usize>>,
        signature: &[u8],
    ) -> Result<(), Failure>;

    /// Whether both sides agreed that messages will be signed.
    fn integrity(&self) -> bool {
        true
    }

    /// Whether both sides agreed that messages will be sealed too.
    fn confidentiality(&self) -> bool;

    /// Appends to `out` one token that holds the message, signed and, if `sealed`, encrypted (`GSS_Wrap`, RFC 2743 2.3.3).
    ///
    /// # Errors
    ///
    /// As [`protect`](Self::protect).
    fn wrap(&mut self, message: &[u8], sealed: bool, out: &mut Vec<u8>) -> Result<(), Failure> {
        let start = out.len();
        let signature = self.signature_len();
        out.resize(start + signature, 0);
        out.extend_from_slice(message);
        let (signature, message) = out.get_mut(start..).unwrap_or_default().split_at_mut(signature);
        let all = 0..message.len();
        self.protect(message, sealed.then_some(all), signature)
    }

    /// Checks a token of the peer's in place; yields where in it the message stands.
    ///
    /// # Errors
    ///
    /// The token is no token, was changed on its way, or is not encrypted although it is `sealed`. The context is of no use
    /// anymore.
    fn unwrap(&mut self, token: &mut [u8], sealed: bool) -> Result<Range<usize>, Failure> {
        let whole = token.len();
        let length = self.signature_len();
        let (signature, message) = token.split_at_mut_checked(length).ok_or_else(|| {
            Failure::new(Kind::Violation, Cause::Peer, "a protected message is shorter than its signature")
        })?;
        let all = 0..message.len();
        self.verify(message, sealed.then_some(all), signature)?;
        Ok(length..whole)
    }

    /// A code over octets that are no message: what SPNEGO binds its list of mechanisms with.
    ///
    /// # Errors
    ///
    /// As [`protect`](Self::protect).
    fn mic(&mut self, octets: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut code = vec![0; self.signature_len()];
        self.protect(&mut octets.to_vec(), None, &mut code)?;
        Ok(code)
    }

    /// Checks the peer's code over octets that are no message.
    ///
    /// # Errors
    ///
    /// The code is wrong.
    fn check_mic(&mut self, octets: &[u8], code: &[u8]) -> Result<(), Failure> {
        self.verify(&mut octets.to_vec(), None, code)
    }
}

/// A context for this side's wish to be let in.
///
/// # Errors
///
/// The mechanism is not available, or the options contradict each other.
pub fn initiator(
    mechanism: Mechanism,
    credentials: &Credentials,
    options: &Options,
) -> Result<Box<dyn Initiator>, Failure> {
    Ok(match mechanism {
        Mechanism::Ntlm => Box::new(ntlm::NtlmInitiator::new(credentials, options, system_random)),
        Mechanism::Negotiate => Box::new(spnego::SpnegoInitiator::new(credentials, options)?),
        Mechanism::Kerberos => kerberos::initiator(credentials, options)?,
    })
}

/// A context for a peer that wants to be let in.
///
/// # Errors
///
/// The mechanism is not available, or the options contradict each other.
pub fn acceptor(
    mechanism: Mechanism,
    users: Arc<dyn Users>,
    options: &Options,
) -> Result<Box<dyn Acceptor>, Failure> {
    Ok(match mechanism {
        Mechanism::Ntlm => Box::new(ntlm::NtlmAcceptor::new(users, options, system_random)),
        Mechanism::Negotiate => Box::new(spnego::SpnegoAcceptor::new(users, options)),
        Mechanism::Kerberos => kerberos::acceptor(options)?,
    })
}

/// Looks whether a place whose file of keys is named in the options has such keys: who lets nobody in for want of them learns it when it
/// begins to listen, and not from the first caller.
///
/// # Errors
///
/// A file is named, and it has no key that can be used.
pub fn check_keys(options: &Options) -> Result<(), Failure> {
    if options.keytab.is_some() { kerberos::acceptor(options).map(drop) } else { Ok(()) }
}

/// Refuses tokens that are too long to be honest.
fn check_size(token: &[u8]) -> Result<(), Failure> {
    if token.len() > MAX_TOKEN {
        return Err(Failure::over_limit(
            Cause::Peer,
            "octets of an authentication token",
            token.len() as u64,
            MAX_TOKEN as u64,
        ));
    }
    Ok(())
}

/// The one answer to everyone who is not let in, whatever the reason.
#[cold]
fn refused() -> Failure {
    Failure::new(Kind::Refused, Cause::Peer, "the user or the password is wrong")
}

/// A token came that nobody waits for.
#[cold]
fn out_of_turn() -> Failure {
    Failure::new(Kind::Violation, Cause::Peer, "an authentication token came after the last one")
}
