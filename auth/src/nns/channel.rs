//! One connection's NegotiateStream (MS-NNS 3.1): the handshake at the head of the stream, and
//! protection of what follows.
//!
//! States of a client: *wishing* (its context is not done), *waiting* (it is, and the server has not
//! said so), *standing*. Of a server: *deciding*, *standing*. Each becomes *failed* by the first error,
//! for good. `receive` changes them; what has to be said is put into `out`, and `send` takes it.
//!
//! Invariants: nothing of the caller's goes out or comes in before the context stands. The level that
//! both sides agreed on, as their tokens say, is at least the one that was asked for; otherwise the
//! peer is told so, with one of two numbers and no more. A record has at most 65,535 octets and a frame
//! `MAX_FRAME`, which is checked before it is waited for. Frames are unwrapped in the order in which
//! they came.

use super::ProtectionLevel;
use super::record::{self, DENIED, HEADER, Id, MAX_FRAME, MAX_PLAIN, PREFIX, UNPROTECTED};
use crate::security::{
    Acceptor, Credentials, Established, Initiator, Mechanism, Options, Principal, Protection, UNSEALED,
    Users, acceptor, initiator,
};
use bytes::{Buf, BytesMut};
use everywire_model::{Failure, Initiator as Cause, Kind, SendBuffer};
use std::sync::Arc;

/// What to try where the two sides protect differently.
const SAME_PROTECTION: &str = "say protection= the same on both sides";

/// A state machine: [`receive`](Self::receive) takes what came, [`send`](Self::send) yields what has to go.
pub struct Channel {
    state: State,
    /// Of what the two sides agree on, the least that will do.
    least: ProtectionLevel,
    /// Whether they agreed on less.
    weak: bool,
    /// Records that have to go.
    out: Vec<u8>,
    /// Who the peer is, once the context stands.
    identity: Option<String>,
    /// Those who may be let in, until somebody is.
    users: Option<Arc<dyn Users>>,
    /// The account that the acceptor's table means by it, where it has one.
    account: Option<String>,
    /// The mechanism, for people.
    authentication: &'static str,
}

enum State {
    /// The client's context is not done.
    Wishing(Box<dyn Initiator>),
    /// The client's context is done, and the server has not said that its is.
    Waiting(Box<Established>),
    /// The server's context is not done.
    Deciding(Box<dyn Acceptor>),
    /// Both contexts are done.
    Standing(ProtectedState),
    /// Nothing more may be received.
    Failed,
}

/// A context that stands.
struct ProtectedState {
    protection: Box<dyn Protection>,
    /// What both sides agreed on.
    level: ProtectionLevel,
    /// Of a server that said the last word: .NET says an empty one all the same.
    echo: bool,
    /// A frame, unwrapped in place and wrapped without its prefix; kept for the next.
    scratch: Vec<u8>,
}

impl Channel {
    /// The side that connects. Its first token is made at once, which may ask a key distribution centre, and wait for it.
    ///
    /// # Errors
    ///
    /// There is nothing to prove who calls with.
    pub fn client(
        mechanism: Mechanism,
        credentials: &Credentials,
        options: &Options,
        level: ProtectionLevel,
    ) -> Result<Self, Failure> {
        let mut initiator = initiator(mechanism, credentials, &wishes(options, level))?;
        let first = initiator.step(&[])?;
        let mut channel = Self::new(State::Failed, level);
        channel.state = match first.done {
            Some(done) => {
                record::write(Id::Done, &first.token, &mut channel.out)?;
                State::Waiting(Box::new(done))
            }
            None => {
                record::write(Id::InProgress, &first.token, &mut channel.out)?;
                State::Wishing(initiator)
            }
        };
        Ok(channel)
    }

    /// The side that accepts, by SPNEGO, or NTLM or Kerberos alone, whatever the peer begins with.
    ///
    /// # Errors
    ///
    /// The keys of this side cannot be used.
    pub fn server(users: Arc<dyn Users>, options: &Options, level: ProtectionLevel) -> Result<Self, Failure> {
        let known = Arc::clone(&users);
        let acceptor = acceptor(Mechanism::Negotiate, users, &wishes(options, level))?;
        Ok(Self { users: Some(known), ..Self::new(State::Deciding(acceptor), level) })
    }

    /// A channel in this state, about which nothing else is known.
    fn new(state: State, least: ProtectionLevel) -> Self {
        Self {
            state,
            least,
            weak: false,
            out: Vec::new(),
            identity: None,
            users: None,
            account: None,
            authentication: "none",
        }
    }

    /// Takes what came, and appends to `plain` what it says. Incomplete records stay in `input`. [`send`](Self::send) has to be called
    /// afterwards, even when this fails: the peer may have to be told.
    ///
    /// # Errors
    ///
    /// The peer does not let this side in, or is not let in, or what came was changed on its way. Nothing more may be received.
    pub fn receive(&mut self, input: &mut BytesMut, plain: &mut BytesMut) -> Result<(), Failure> {
        let taken = self.take(input, plain);
        if taken.is_err() {
            self.state = State::Failed;
        }
        taken
    }

    /// Takes whole records until the context stands, and gives the rest to it.
    fn take(&mut self, input: &mut BytesMut, plain: &mut BytesMut) -> Result<(), Failure> {
        while !input.is_empty() {
            if let State::Standing(standing) = &mut self.state {
                return standing.receive(input, plain);
            }
            let Some((id, token)) = record::read(input)? else { return Ok(()) };
            let length = HEADER + token.len();
            let told = self.record(id, token);
            if let (Err(failure), true) = (&told, id != Id::Error) {
                // The peer learns no more than that, and whether it is for the protection.
                let weak = self.weak || failure.code() == Some(UNSEALED);
                let why = if weak { UNPROTECTED } else { DENIED };
                self.out.clear();
                record::write(Id::Error, &why, &mut self.out)?;
            }
            told?;
            input.advance(length);
        }
        Ok(())
    }

    /// Takes one record of the handshake. The state is failed until a new one is put there, so every
    /// way out with an error leaves it so.
    fn record(&mut self, id: Id, token: &[u8]) -> Result<(), Failure> {
        if id == Id::Error {
            let what = format!("the peer ends the authentication: {}", record::reason(token));
            let failure = Failure::new(Kind::Refused, Cause::Peer, what);
            return Err(if record::is_unprotected(token) {
                failure.with_hint(SAME_PROTECTION)
            } else {
                failure
            });
        }
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Wishing(mut initiator) => {
                let step = initiator.step(token)?;
                match (step.done, id) {
                    (Some(done), Id::Done) if step.token.is_empty() => self.stand(done, false),
                    (Some(done), Id::Done) => {
                        record::write(Id::Done, &step.token, &mut self.out)?;
                        self.stand(done, false)
                    }
                    (Some(done), _) => {
                        self.check(&done)?;
                        record::write(Id::Done, &step.token, &mut self.out)?;
                        self.state = State::Waiting(Box::new(done));
                        Ok(())
                    }
                    (None, Id::Done) => Err(unexpected("says that it is done, and this side is not")),
                    (None, _) => {
                        record::write(Id::InProgress, &step.token, &mut self.out)?;
                        self.state = State::Wishing(initiator);
                        Ok(())
                    }
                }
            }
            State::Waiting(done) if id == Id::Done && token.is_empty() => self.stand(*done, false),
            State::Waiting(_) => Err(unexpected("goes on, and this side is done")),
            State::Deciding(mut acceptor) => {
                let step = acceptor.step(token)?;
                match step.done {
                    Some(done) => {
                        self.check(&done)?;
                        record::write(Id::Done, &step.token, &mut self.out)?;
                        self.stand(done, id != Id::Done)
                    }
                    None if id == Id::Done => Err(unexpected("says that it is done, and this side is not")),
                    None => {
                        record::write(Id::InProgress, &step.token, &mut self.out)?;
                        self.state = State::Deciding(acceptor);
                        Ok(())
                    }
                }
            }
            State::Standing(_) | State::Failed => Err(unexpected("comes out of turn")),
        }
    }

    /// Both sides are done: from now on the rest of the stream is protected. `echo`: the peer may still
    /// say an empty last word.
    fn stand(&mut self, done: Established, echo: bool) -> Result<(), Failure> {
        let level = self.check(&done)?;
        let Principal { domain, user, mechanism } = done.principal;
        // Tickets name their users in one way only.
        let users = self.users.take().filter(|_| mechanism.starts_with("NTLM"));
        self.account = users.map(|users| users.account(&domain, &user));
        self.identity = Some(if domain.is_empty() { user } else { format!("{domain}\\{user}") });
        self.authentication = mechanism;
        self.state =
            State::Standing(ProtectedState { protection: done.protection, level, echo, scratch: Vec::new() });
        Ok(())
    }

    /// The level that both sides agreed on, by what they said in their tokens: so .NET does it.
    fn check(&mut self, done: &Established) -> Result<ProtectionLevel, Failure> {
        let level = match () {
            () if done.protection.confidentiality() => ProtectionLevel::EncryptAndSign,
            () if done.protection.integrity() => ProtectionLevel::Sign,
            () => ProtectionLevel::None,
        };
        if level < self.least {
            self.weak = true;
            let what = format!(
                "the peer protects by `{}` only, and this side wants `{}`",
                level.word(),
                self.least.word()
            );
            return Err(Failure::new(Kind::Refused, Cause::Peer, what).with_hint(SAME_PROTECTION));
        }
        Ok(level)
    }

    /// Puts into `out` what has to go: records of the handshake, and once it is over all of `plain`, protected. Until then `plain` is left
    /// alone.
    ///
    /// # Errors
    ///
    /// The context does not protect anymore.
    pub fn send(&mut self, plain: &mut SendBuffer, out: &mut SendBuffer) -> Result<(), Failure> {
        if !self.out.is_empty() {
            out.flat().append(&mut self.out);
        }
        match &mut self.state {
            State::Standing(standing) => standing.send(plain, out),
            _ => Ok(()),
        }
    }

    /// How many bytes are missing from the record or frame that `input` begins with, as far as is known.
    pub fn wanted(&self, input: &[u8]) -> usize {
        let whole = match &self.state {
            State::Standing(ProtectedState { level: ProtectionLevel::None, .. }) => return 0,
            State::Standing(_) => match input.first_chunk::<PREFIX>() {
                Some(prefix) => PREFIX + (u32::from_le_bytes(*prefix) as usize).min(MAX_FRAME),
                None => PREFIX,
            },
            _ => match input.get(3..HEADER) {
                Some(&[high, low]) => HEADER + usize::from(u16::from_be_bytes([high, low])),
                _ => HEADER,
            },
        };
        if input.is_empty() { 0 } else { whole.saturating_sub(input.len()) }
    }

    /// Whether the peer is known, and bytes of the caller may go.
    pub fn is_established(&self) -> bool {
        matches!(self.state, State::Standing(_))
    }

    /// What both sides agreed on, once they did.
    pub fn level(&self) -> Option<ProtectionLevel> {
        match &self.state {
            State::Standing(standing) => Some(standing.level),
            _ => None,
        }
    }

    /// Who the peer proved to be (server), or whom this side said it is (client): `DOMAIN\USER`.
    pub fn peer_identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// The account that the peer proved to be, whichever of its names was used: the one that the acceptor's table means, or else
    /// [`peer_identity`](Self::peer_identity).
    pub fn account(&self) -> Option<&str> {
        self.account.as_deref().or_else(|| self.peer_identity())
    }

    /// By which proof, for people.
    pub fn authentication(&self) -> &'static str {
        self.authentication
    }
}

impl ProtectedState {
    /// Unwraps whole frames; a part of one stays in `input`.
    fn receive(&mut self, input: &mut BytesMut, plain: &mut BytesMut) -> Result<(), Failure> {
        if self.echo {
            // As a frame it would carry 276 octets that begin with a zero: no mechanism has such.
            const ECHO: &[u8] = &[0x14, 1, 0, 0, 0];
            if input.len() < ECHO.len() && ECHO.starts_with(input) {
                return Ok(());
            }
            if input.starts_with(ECHO) {
                input.advance(ECHO.len());
            }
            self.echo = false;
        }
        if self.level == ProtectionLevel::None {
            plain.unsplit(input.split());
            return Ok(());
        }
        while let Some(prefix) = input.first_chunk::<PREFIX>() {
            let length = u32::from_le_bytes(*prefix) as usize;
            if length == 0 || length > MAX_FRAME {
                let (have, most) = (length as u64, MAX_FRAME as u64);
                return Err(Failure::over_limit(
                    Cause::Peer,
                    "octets of a frame of NegotiateStream",
                    have,
                    most,
                ));
            }
            if input.len() < PREFIX + length {
                break;
            }
            input.advance(PREFIX);
            let mut frame = input.split_to(length);
            let sealed = self.level == ProtectionLevel::EncryptAndSign;
            let said = self.protection.unwrap(&mut frame, sealed)?;
            plain.extend_from_slice(frame.get(said).unwrap_or_default());
        }
        Ok(())
    }

    /// Wraps all of `plain`, in frames of at most `MAX_PLAIN` octets.
    fn send(&mut self, plain: &mut SendBuffer, out: &mut SendBuffer) -> Result<(), Failure> {
        if self.level == ProtectionLevel::None {
            out.append(plain);
            return Ok(());
        }
        let sealed = self.level == ProtectionLevel::EncryptAndSign;
        while !plain.is_empty() {
            self.scratch.clear();
            for slice in plain.slices(64, MAX_PLAIN) {
                self.scratch.extend_from_slice(&slice);
            }
            plain.consume(self.scratch.len());
            let flat = out.flat();
            let start = flat.len();
            flat.extend([0; PREFIX]);
            self.protection.wrap(&self.scratch, sealed, flat)?;
            let length = (flat.len() - start - PREFIX) as u32;
            if let Some(place) = flat.get_mut(start..start + PREFIX) {
                place.copy_from_slice(&length.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// The options of a context for this level.
fn wishes(options: &Options, level: ProtectionLevel) -> Options {
    Options {
        integrity: level >= ProtectionLevel::Sign,
        confidentiality: level == ProtectionLevel::EncryptAndSign,
        dce_style: false,
        ..options.clone()
    }
}

#[cold]
fn unexpected(what: &str) -> Failure {
    Failure::new(Kind::Violation, Cause::Peer, format!("a record of NegotiateStream {what}"))
}
