//! The side that accepts: D-Bus Specification, "Authentication Protocol", as a state machine over
//! lines.
//!
//! States are in `Stage`: the zero byte; `AUTH`; the answer to a question; `BEGIN`; over. A client that
//! fails is told which mechanisms there are, and may try again until it has failed `MAX_ATTEMPTS`
//! times.
//!
//! Invariants: a client is let in as a user only if the kernel names that user (`EXTERNAL`), or if it
//! can read the keyring of this process's user (`DBUS_COOKIE_SHA1`), and only if `accept` lets that
//! user in. No other user's keyring is touched. A challenge is good for one answer. A client learns
//! from a rejection nothing but the mechanisms. Lines are bounded in length and number. Descriptors are
//! agreed on anew after each new start.

use super::challenge::{CONTEXT, Challenge};
use super::cookies::number;
use super::lines::{self, Lines};
use super::{Guid, Keyring, KeyringError, MAX_ATTEMPTS, Mechanism, Progress, SaslError};
use crate::{Random, own_uid, system_random};
use bytes::{Buf, BytesMut};
use everywire_model::hex;

/// What a server demands.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The identity of the address that the client connected to.
    pub guid: Guid,
    /// Mechanisms allowed, best first. `EXTERNAL` is offered only if `peer_uid` is known.
    pub mechanisms: Vec<Mechanism>,
    /// The peer's user, as the kernel says.
    pub peer_uid: Option<u32>,
    /// Who may come in by `EXTERNAL` and by `DBUS_COOKIE_SHA1`.
    pub accept: Accept,
    /// The name of this process's user, by which a client of `DBUS_COOKIE_SHA1` may call itself. Its number always does.
    pub user: String,
    /// Messages may carry file descriptors.
    pub handles: bool,
    /// Where cookies are kept.
    pub keyring: Keyring,
    /// Where challenges and cookies come from.
    pub random: Random,
}

impl ServerOptions {
    /// `EXTERNAL` only, for this user and root; the peer's user unknown; no file descriptors.
    pub fn new(guid: Guid) -> Self {
        Self {
            guid,
            mechanisms: vec![Mechanism::External],
            peer_uid: None,
            accept: Accept::own(),
            user: String::new(),
            handles: false,
            keyring: Keyring::user(),
            random: system_random,
        }
    }
}

/// Whom a server lets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accept {
    /// These users.
    Users(Vec<u32>),
    /// Every user: others decide later, as a bus does for each message.
    Everyone,
}

impl Accept {
    /// The user of this process, and root.
    pub fn own() -> Self {
        Self::Users(vec![own_uid(), 0])
    }

    fn lets_in(&self, uid: u32) -> bool {
        match self {
            Self::Users(users) => users.contains(&uid),
            Self::Everyone => true,
        }
    }
}

/// Who a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// This user.
    User(u32),
    /// Nobody knows.
    Anonymous,
}

/// What a server has when it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthenticatedClient {
    /// Who the client is.
    pub identity: Identity,
    /// How it showed that.
    pub mechanism: Mechanism,
    /// Messages may carry file descriptors.
    pub handles: bool,
}

/// The server's half of the conversation.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    lines: Lines,
    stage: Stage,
    /// How often the client was rejected.
    failures: usize,
    /// Whether descriptors were agreed on, since the last `OK`.
    handles: bool,
    /// Why a cookie could not be offered.
    keyring: Option<KeyringError>,
}

/// What is waited for.
#[derive(Debug)]
enum Stage {
    /// The zero byte.
    Nul,
    /// `AUTH`.
    Auth,
    /// `DATA`: the initial response of this mechanism, which did not come with `AUTH`.
    Initial(Mechanism),
    /// `DATA`: the answer to this challenge.
    Answer(Challenge),
    /// `BEGIN`.
    Begin(Identity, Mechanism),
    /// Nothing more.
    Over(AuthenticatedClient),
}

impl Server {
    /// A server that has heard nothing yet.
    pub fn new(options: ServerOptions) -> Self {
        Self {
            options,
            lines: Lines::default(),
            stage: Stage::Nul,
            failures: 0,
            handles: false,
            keyring: None,
        }
    }

    /// Takes the whole lines of the client's input that belong to the authentication, and appends what is to be said.
    ///
    /// # Errors
    ///
    /// The client fails too often, or breaks the rules.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Progress<AuthenticatedClient>, SaslError> {
        loop {
            match self.stage {
                Stage::Over(done) => return Ok(Progress::Done(done)),
                Stage::Nul => match input.first() {
                    None => return Ok(Progress::More),
                    Some(0) => {
                        input.advance(1);
                        self.stage = Stage::Auth;
                    }
                    Some(&found) => return Err(SaslError::NoNul { found }),
                },
                _ => {
                    let Some(line) = self.lines.next(input)? else { return Ok(Progress::More) };
                    self.line(&line, out)?;
                }
            }
        }
    }

    /// Whether the client has shown who it is, and has yet to say `BEGIN`.
    pub fn knows_client(&self) -> bool {
        matches!(self.stage, Stage::Begin(..))
    }

    /// Why the last cookie asked for could not be offered; for the log of whoever runs the server, not for the peer.
    pub fn keyring_error(&self) -> Option<&KeyringError> {
        self.keyring.as_ref()
    }

    /// One line of the client, by what is waited for. A command at the wrong time is an `ERROR`, but
    /// for an early `BEGIN`, behind which messages would follow.
    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<(), SaslError> {
        let (command, arguments) = lines::split(line);
        match (command, &self.stage) {
            (b"BEGIN", &Stage::Begin(identity, mechanism)) => {
                self.stage = Stage::Over(AuthenticatedClient { identity, mechanism, handles: self.handles });
                Ok(())
            }
            (b"BEGIN", _) => Err(SaslError::EarlyBegin),
            (b"AUTH", Stage::Auth) => self.auth(arguments, out),
            (b"DATA", &Stage::Initial(mechanism)) => match self.data(arguments, out) {
                Some(initial) => self.initial(mechanism, &initial, out),
                None => Ok(()),
            },
            (b"DATA", Stage::Answer(_)) => match self.data(arguments, out) {
                Some(answer) => self.answer(&answer, out),
                None => Ok(()),
            },
            (b"ERROR", _) | (b"CANCEL", Stage::Initial(_) | Stage::Answer(_) | Stage::Begin(..)) => {
                self.reject(out)
            }
            (b"NEGOTIATE_UNIX_FD", Stage::Begin(..)) if self.options.handles => {
                self.handles = true;
                lines::put(&[b"AGREE_UNIX_FD"], out);
                Ok(())
            }
            (b"NEGOTIATE_UNIX_FD", Stage::Begin(..)) => {
                lines::put(&[b"ERROR \"no file descriptors here\""], out);
                Ok(())
            }
            (b"AUTH" | b"DATA" | b"CANCEL" | b"NEGOTIATE_UNIX_FD", _) => {
                lines::put(&[b"ERROR \"not now\""], out);
                Ok(())
            }
            _ => {
                lines::put(&[b"ERROR \"unknown command\""], out);
                Ok(())
            }
        }
    }

    /// A mechanism is asked for, with its first response or without.
    fn auth(&mut self, arguments: &[u8], out: &mut Vec<u8>) -> Result<(), SaslError> {
        let (name, initial) = lines::split(arguments);
        if name.is_empty() {
            // Whoever only asks what there is has not failed.
            self.offer(out);
            return Ok(());
        }
        let named = str::from_utf8(name).ok().and_then(Mechanism::of_word);
        let Some(mechanism) = named.filter(|mechanism| self.offers(*mechanism)) else {
            return self.reject(out);
        };
        if initial.is_empty() && mechanism != Mechanism::Anonymous {
            lines::put(&[b"DATA"], out);
            self.stage = Stage::Initial(mechanism);
            return Ok(());
        }
        match self.data(initial, out) {
            Some(initial) => self.initial(mechanism, &initial, out),
            None => Ok(()),
        }
    }

    /// What the client says first about itself.
    fn initial(&mut self, mechanism: Mechanism, said: &[u8], out: &mut Vec<u8>) -> Result<(), SaslError> {
        match mechanism {
            Mechanism::External => {
                let peer = self.options.peer_uid;
                let claimed = if said.is_empty() { peer } else { user_number(said) };
                match peer.filter(|peer| claimed == Some(*peer)) {
                    Some(uid) => self.admit(uid, mechanism, out),
                    None => self.reject(out),
                }
            }
            Mechanism::CookieSha1 if self.is_own(said) => self.challenge(out),
            Mechanism::CookieSha1 => self.reject(out),
            Mechanism::Anonymous => {
                self.ok(Identity::Anonymous, mechanism, out);
                Ok(())
            }
        }
    }

    /// Asks for a proof that the client can read this user's keyring.
    fn challenge(&mut self, out: &mut Vec<u8>) -> Result<(), SaslError> {
        let random = self.options.random;
        let cookie = self.options.keyring.current(CONTEXT, random);
        match cookie.and_then(|cookie| Challenge::new(cookie, random)) {
            Ok(challenge) => {
                lines::put(&[b"DATA ", hex::text(challenge.question().as_bytes()).as_bytes()], out);
                self.stage = Stage::Answer(challenge);
                Ok(())
            }
            Err(error) => {
                self.keyring = Some(error);
                self.reject(out)
            }
        }
    }

    /// The answer to the challenge.
    fn answer(&mut self, answer: &[u8], out: &mut Vec<u8>) -> Result<(), SaslError> {
        // A challenge is good for one answer.
        match std::mem::replace(&mut self.stage, Stage::Auth) {
            Stage::Answer(challenge) if challenge.accepts(answer) => {
                self.admit(own_uid(), Mechanism::CookieSha1, out)
            }
            _ => self.reject(out),
        }
    }

    /// Lets a user in who has proved it, if that user may come in at all.
    fn admit(&mut self, uid: u32, mechanism: Mechanism, out: &mut Vec<u8>) -> Result<(), SaslError> {
        if !self.options.accept.lets_in(uid) {
            return self.reject(out);
        }
        self.ok(Identity::User(uid), mechanism, out);
        Ok(())
    }

    /// Says `OK`; `BEGIN` has to follow.
    fn ok(&mut self, identity: Identity, mechanism: Mechanism, out: &mut Vec<u8>) {
        lines::put(&[b"OK ", self.options.guid.to_string().as_bytes()], out);
        self.stage = Stage::Begin(identity, mechanism);
    }

    /// Counts a failure, and says what there is; the last one ends the connection after that.
    fn reject(&mut self, out: &mut Vec<u8>) -> Result<(), SaslError> {
        self.offer(out);
        self.failures += 1;
        if self.failures == MAX_ATTEMPTS {
            return Err(SaslError::TooManyAttempts { limit: MAX_ATTEMPTS });
        }
        Ok(())
    }

    /// Says what there is, and starts over.
    fn offer(&mut self, out: &mut Vec<u8>) {
        self.stage = Stage::Auth;
        self.handles = false;
        out.extend_from_slice(b"REJECTED");
        for mechanism in self.options.mechanisms.iter().filter(|mechanism| self.offers(**mechanism)) {
            out.push(b' ');
            out.extend_from_slice(mechanism.word().as_bytes());
        }
        lines::put(&[], out);
    }

    /// Whether a mechanism is allowed, and possible on this connection.
    fn offers(&self, mechanism: Mechanism) -> bool {
        let possible = mechanism != Mechanism::External || self.options.peer_uid.is_some();
        possible && self.options.mechanisms.contains(&mechanism)
    }

    /// Decodes what a client sends, or tells it that this is no hexadecimal text.
    fn data(&self, digits: &[u8], out: &mut Vec<u8>) -> Option<Vec<u8>> {
        let data = hex::decode(digits);
        if data.is_none() {
            lines::put(&[b"ERROR \"not hexadecimal\""], out);
        }
        data
    }

    /// Whether this names the user of this process, whose keyring is the only one we look into.
    fn is_own(&self, name: &[u8]) -> bool {
        let by_name = !self.options.user.is_empty() && name == self.options.user.as_bytes();
        by_name || user_number(name) == Some(own_uid())
    }
}

/// A user's number as a client writes it.
fn user_number(digits: &[u8]) -> Option<u32> {
    number(digits).and_then(|uid| u32::try_from(uid).ok())
}
