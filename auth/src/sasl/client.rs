//! The side that connects: D-Bus Specification, "Authentication Protocol", as a state machine over
//! lines.
//!
//! States are in `Stage`: what answer is waited for. A mechanism is tried with `AUTH`, and given up
//! with `CANCEL` where this side cannot answer; each is tried once, in the order of the options, as far
//! as the server offers it. After `OK` file descriptors are agreed on, and `BEGIN` ends it.
//!
//! *Pipelined*, all of it is sent at once with the first mechanism, as if the server had agreed: then
//! only the answers that fit are taken, and anything else ends the connection, since messages may have
//! followed already. `SaslError::Rejected` says what to try on a new one.
//!
//! Invariants: the server's identity is compared with the one that the address promises as soon as it
//! is told: before `BEGIN`, unless all was sent at once. Lines are bounded in length and number
//! (`lines`). What a server says is never put into a path unchecked: the cookie's context has to be a
//! valid name (`keyring`).

use super::lines::{self, Lines};
use super::mechanism::offered;
use super::{Guid, Keyring, KeyringError, Mechanism, Progress, SaslError, challenge};
use crate::{Random, own_uid, system_random};
use bytes::BytesMut;
use everywire_model::hex;

/// What an anonymous client says about itself: D-Bus Specification, "ANONYMOUS".
const TRACE: &str = "everywire";

/// What a client wants.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Mechanisms to try, best first. Each is tried once.
    pub mechanisms: Vec<Mechanism>,
    /// The user to claim to be by `EXTERNAL`. `None` lets the kernel say it, which also works if the server's numbers for
    /// users are others than ours (containers); old GDBus servers do not understand it.
    pub uid: Option<u32>,
    /// The user to claim to be by `DBUS_COOKIE_SHA1`. Empty means the number of the user, which is what libdbus and GDBus
    /// say; a GDBus server takes nothing else.
    pub user: String,
    /// Ask for messages with file descriptors.
    pub negotiate_handles: bool,
    /// Where cookies are.
    pub keyring: Keyring,
    /// The server's identity that the address promises.
    pub expected_guid: Option<Guid>,
    /// Send everything up to `BEGIN` at once if the first mechanism permits (`EXTERNAL` and `ANONYMOUS` do). Messages may
    /// follow at once, those with file descriptors only after [`Progress::Done`]. It saves two round trips with every
    /// server that accepts the mechanism; from one that does not, the connection is lost, and
    /// [`SaslError::Rejected`] says what to try on the next.
    pub pipelined: bool,
    /// Where challenges come from.
    pub random: Random,
}

impl Default for ClientOptions {
    /// `EXTERNAL` as this user, then `DBUS_COOKIE_SHA1`; with file descriptors; not pipelined.
    fn default() -> Self {
        Self {
            mechanisms: vec![Mechanism::External, Mechanism::CookieSha1],
            uid: Some(own_uid()),
            user: String::new(),
            negotiate_handles: true,
            keyring: Keyring::user(),
            expected_guid: None,
            pipelined: false,
            random: system_random,
        }
    }
}

/// What a client has when it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authenticated {
    /// The server's identity.
    pub guid: Guid,
    /// Messages may carry file descriptors.
    pub handles: bool,
    /// The mechanism that the server accepted.
    pub mechanism: Mechanism,
}

/// The client's half of the conversation.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    lines: Lines,
    /// Mechanisms of the options that were not tried, in their order.
    untried: Vec<Mechanism>,
    stage: Stage,
    /// Why the cookie mechanism was given up.
    keyring: Option<KeyringError>,
}

/// What is waited for.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// For nothing: not started.
    Idle,
    /// `OK`, `DATA` or `REJECTED`.
    Answer(Attempt),
    /// `REJECTED`, after `CANCEL`.
    Rejection(Mechanism),
    /// `AGREE_UNIX_FD` or `ERROR`.
    Agreement(Attempt, Guid),
    /// Nothing more.
    Over(Authenticated),
}

/// A mechanism being tried.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    mechanism: Mechanism,
    /// All was sent at once.
    pipelined: bool,
    /// The server may still ask, by `DATA`.
    may_ask: bool,
}

impl Client {
    /// A client that has sent nothing yet.
    pub fn new(options: ClientOptions) -> Self {
        let untried = options.mechanisms.clone();
        Self { options, lines: Lines::default(), untried, stage: Stage::Idle, keyring: None }
    }

    /// Appends what a client says first.
    ///
    /// # Errors
    ///
    /// There are no mechanisms in the options.
    pub fn start(&mut self, out: &mut Vec<u8>) -> Result<(), SaslError> {
        let Some(first) = self.untried.first().copied() else {
            return Err(self.rejected(None, Vec::new(), Vec::new()));
        };
        out.push(0);
        let pipelined = self.options.pipelined && first != Mechanism::CookieSha1;
        self.attempt(first, pipelined, out);
        if pipelined {
            if self.claims_nothing(first) {
                lines::put(&[b"DATA"], out);
            }
            if self.options.negotiate_handles {
                lines::put(&[b"NEGOTIATE_UNIX_FD"], out);
            }
            lines::put(&[b"BEGIN"], out);
        }
        Ok(())
    }

    /// Takes the whole lines of the server's input that belong to the authentication, and appends what is to be said.
    ///
    /// # Errors
    ///
    /// The server rejects everything, or breaks the rules.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Progress<Authenticated>, SaslError> {
        loop {
            if let Stage::Over(done) = self.stage {
                return Ok(Progress::Done(done));
            }
            let Some(line) = self.lines.next(input)? else { return Ok(Progress::More) };
            self.line(&line, out)?;
        }
    }

    /// One line of the server, by what is waited for.
    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<(), SaslError> {
        let (command, arguments) = lines::split(line);
        match (self.stage, command) {
            (Stage::Answer(attempt), b"OK") => self.accepted(attempt, arguments, out),
            (Stage::Answer(attempt), b"DATA") => self.asked(attempt, arguments, out),
            (Stage::Answer(attempt), b"REJECTED") => self.refused(attempt, arguments, out),
            (Stage::Answer(attempt), b"ERROR") if attempt.pipelined => {
                // It may be that only the way of asking is beyond the server.
                let retry_with = self.options.mechanisms.clone();
                Err(self.rejected(Some(attempt.mechanism), Vec::new(), retry_with))
            }
            (Stage::Answer(attempt), b"ERROR") => {
                self.give_up(attempt.mechanism, out);
                Ok(())
            }
            (Stage::Answer(attempt), _) if !attempt.pipelined => {
                lines::put(&[b"ERROR \"unknown command\""], out);
                Ok(())
            }
            (Stage::Answer(_), _) => Err(SaslError::OutOfPlace { wanted: "OK or REJECTED" }),
            (Stage::Rejection(mechanism), b"REJECTED") => self.next(mechanism, arguments, out),
            (Stage::Rejection(_), _) => Err(SaslError::OutOfPlace { wanted: "REJECTED" }),
            (Stage::Agreement(attempt, guid), b"AGREE_UNIX_FD") => {
                self.begin(attempt, guid, true, out);
                Ok(())
            }
            (Stage::Agreement(attempt, guid), b"ERROR") => {
                self.begin(attempt, guid, false, out);
                Ok(())
            }
            (Stage::Agreement(..), _) => Err(SaslError::OutOfPlace { wanted: "AGREE_UNIX_FD or ERROR" }),
            (Stage::Idle | Stage::Over(_), _) => Err(SaslError::OutOfPlace { wanted: "nothing" }),
        }
    }

    /// The server lets us in; the rest is to agree on file descriptors.
    fn accepted(&mut self, attempt: Attempt, guid: &[u8], out: &mut Vec<u8>) -> Result<(), SaslError> {
        let found = Guid::parse(guid).ok_or(SaslError::BadGuid)?;
        if let Some(expected) = self.options.expected_guid.filter(|expected| *expected != found) {
            return Err(SaslError::WrongGuid { expected, found });
        }
        if !self.options.negotiate_handles {
            self.begin(attempt, found, false, out);
            return Ok(());
        }
        if !attempt.pipelined {
            lines::put(&[b"NEGOTIATE_UNIX_FD"], out);
        }
        self.stage = Stage::Agreement(attempt, found);
        Ok(())
    }

    /// The last word of this side, unless it was said already; messages may follow.
    fn begin(&mut self, attempt: Attempt, guid: Guid, handles: bool, out: &mut Vec<u8>) {
        if !attempt.pipelined {
            lines::put(&[b"BEGIN"], out);
        }
        self.stage = Stage::Over(Authenticated { guid, handles, mechanism: attempt.mechanism });
    }

    /// The server asks something.
    fn asked(&mut self, mut attempt: Attempt, question: &[u8], out: &mut Vec<u8>) -> Result<(), SaslError> {
        if attempt.pipelined {
            // Only the question that was answered in advance can be asked.
            if !attempt.may_ask {
                return Err(SaslError::OutOfPlace { wanted: "OK or REJECTED" });
            }
            attempt.may_ask = false;
            self.stage = Stage::Answer(attempt);
            return Ok(());
        }
        let Some(question) = hex::decode(question) else {
            lines::put(&[b"ERROR \"not hexadecimal\""], out);
            return Ok(());
        };
        if !attempt.may_ask {
            self.give_up(attempt.mechanism, out);
            return Ok(());
        }
        let answer = match attempt.mechanism {
            Mechanism::External | Mechanism::Anonymous => self.initial(attempt.mechanism),
            Mechanism::CookieSha1 => {
                match challenge::answer(&question, &self.options.keyring, self.options.random) {
                    Ok(answer) => answer,
                    Err(error) => {
                        self.keyring = Some(error);
                        self.give_up(attempt.mechanism, out);
                        return Ok(());
                    }
                }
            }
        };
        put_data(b"DATA", &answer, out);
        self.stage = Stage::Answer(Attempt { may_ask: false, ..attempt });
        Ok(())
    }

    /// The server rejects the mechanism, and says which others it has.
    fn refused(&mut self, attempt: Attempt, list: &[u8], out: &mut Vec<u8>) -> Result<(), SaslError> {
        if !attempt.pipelined {
            return self.next(attempt.mechanism, list, out);
        }
        let offered = offered(list);
        let retry_with = self.common(&offered).collect();
        Err(self.rejected(Some(attempt.mechanism), offered, retry_with))
    }

    /// Tries the next mechanism that both sides have.
    fn next(&mut self, failed: Mechanism, list: &[u8], out: &mut Vec<u8>) -> Result<(), SaslError> {
        let offered = offered(list);
        let next = self.common(&offered).next();
        match next {
            Some(next) => {
                self.attempt(next, false, out);
                Ok(())
            }
            None => Err(self.rejected(Some(failed), offered, Vec::new())),
        }
    }

    /// Says `AUTH`, with the first response of the mechanism.
    fn attempt(&mut self, mechanism: Mechanism, pipelined: bool, out: &mut Vec<u8>) {
        self.untried.retain(|untried| *untried != mechanism);
        let command = format!("AUTH {mechanism}");
        put_data(command.as_bytes(), &self.initial(mechanism), out);
        let may_ask = !pipelined || self.claims_nothing(mechanism);
        self.stage = Stage::Answer(Attempt { mechanism, pipelined, may_ask });
    }

    /// What is said with `AUTH`, or as the answer to an empty `DATA`; empty: nothing.
    fn initial(&self, mechanism: Mechanism) -> String {
        match mechanism {
            Mechanism::External => self.options.uid.map(|uid| uid.to_string()).unwrap_or_default(),
            Mechanism::CookieSha1 if self.options.user.is_empty() => {
                self.options.uid.unwrap_or_else(own_uid).to_string()
            }
            Mechanism::CookieSha1 => self.options.user.clone(),
            Mechanism::Anonymous => TRACE.to_owned(),
        }
    }

    /// `AUTH` says nothing, so the server will ask.
    fn claims_nothing(&self, mechanism: Mechanism) -> bool {
        mechanism == Mechanism::External && self.options.uid.is_none()
    }

    /// This side cannot go on with the mechanism: the server has to reject it before another is tried.
    fn give_up(&mut self, mechanism: Mechanism, out: &mut Vec<u8>) {
        lines::put(&[b"CANCEL"], out);
        self.stage = Stage::Rejection(mechanism);
    }

    /// Mechanisms that were not tried, and that the server offers.
    fn common(&self, offered: &[String]) -> impl Iterator<Item = Mechanism> {
        self.untried.iter().copied().filter(|ours| offered.iter().any(|theirs| theirs == ours.word()))
    }

    /// The end without success. It takes along why the keyring gave no cookie, if that was asked.
    fn rejected(
        &mut self,
        tried: Option<Mechanism>,
        offered: Vec<String>,
        retry_with: Vec<Mechanism>,
    ) -> SaslError {
        SaslError::Rejected { tried, offered, retry_with, keyring: self.keyring.take() }
    }
}

/// A command with hexadecimal data, or without any if it is empty.
fn put_data(command: &[u8], data: &str, out: &mut Vec<u8>) {
    if data.is_empty() {
        lines::put(&[command], out);
    } else {
        lines::put(&[command, b" ", hex::text(data.as_bytes()).as_bytes()], out);
    }
}
