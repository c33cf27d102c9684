//! Failures: what happened, who caused it, where, and what to do.
//!
//! A `Failure` has parts that are read by different people, and each is asked for by itself:
//! * for programs: its `Kind`, the same whichever wire it came by; whether the servant ran (`Completed`),
//!   which alone says whether trying again is safe; who caused it (`Initiator`); and the wire's own code, for
//!   whoever knows that wire;
//! * for people: one sentence, the place, and a hint what to try;
//! * for hops: the octets in which it came, so that it leaves as it came (`crate::Encoded`).
//!
//! Invariants.
//! * It is one pointer wide, so that the good path of every `Result` stays small; making one costs an
//!   allocation, and is never on the good path.
//! * `Completed::No` is said only where the servant cannot have run, or says itself that it did nothing (`Failure::declined`). It
//!   is what a new failure says: whoever reports of a call that has left says otherwise, and so does whoever answers with what a
//!   servant returned.
//! * Words of kinds and names of violations are stable: metrics, JSON and tests count by them. New kinds come
//!   last.
//! * Places are put in front as a failure goes outwards, so they read from the outside to the inside.
//!
//! A `Violation` is the same for a connection: a peer broke the protocol. It becomes a failure of all calls
//! that were under way, of which nobody knows whether they ran, unless the peer did not let this side in at
//! all.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Everything that can go wrong with a call, apart from an exception that the contract names.
///
/// One pointer wide, so that the good path of every `Result` stays small.
#[derive(Clone)]
pub struct Failure(Box<Details>);

#[derive(Clone)]
struct Details {
    kind: Kind,
    initiator: Initiator,
    completed: Completed,
    /// A servant has said that it does nothing for the call.
    declined: bool,
    message: String,
    code: Option<String>,
    place: String,
    hint: Option<String>,
    original: Option<Arc<dyn Any + Send + Sync>>,
}

crate::named_variants! {
    /// What kind of failure: the portable form of its code, the same whichever wire it came by. Its word is stable, for machines: JSON,
    /// metrics, tests. [`Failure::code`] is the wire's own. New kinds come last.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Kind {
        /// The peer cannot be reached, or the connection broke.
        Unreachable "unreachable",
        /// The peer, or this side, does not permit it.
        Refused "refused",
        /// The deadline passed.
        TimedOut "timed-out",
        /// The caller withdrew the call.
        Cancelled "cancelled",
        /// The peer answers, but has no such object.
        NoObject "no-object",
        /// The object has no such operation.
        NoOperation "no-operation",
        /// An argument does not fit the contract, as this side or the peer says.
        BadArgument "bad-argument",
        /// Bytes that came do not decode as the contract says; a peer that says so of a call means its arguments
        /// ([`Failure::as_answered`]).
        Malformed "malformed",
        /// A quota (size, count, depth) would be exceeded.
        LimitExceeded "limit-exceeded",
        /// The peer is too busy, for now.
        Busy "busy",
        /// Known, but not supported.
        Unsupported "unsupported",
        /// The servant or the peer's runtime failed.
        Internal "internal",
        /// The peer broke the rules of the protocol.
        Violation "violation",
        /// A reference, an address or a contract cannot be understood.
        BadReference "bad-reference",
        /// A server of another protocol answers at the address. No wire tells this by itself: whoever asks who is there does.
        WrongWire "wrong-wire",
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Who caused a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initiator {
    /// The caller: wrong arguments, a deadline too short.
    User,
    /// This side's runtime.
    Here,
    /// The other side.
    Peer,
}

/// Whether the servant ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// It ran to its end.
    Yes,
    /// It did not run: trying again is safe.
    No,
    /// Nobody knows.
    Maybe,
}

impl Completed {
    /// A stable word for machines: JSON, tests.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Maybe => "maybe",
        }
    }
}

impl Failure {
    /// A failure of this kind, with one sentence on what happened.
    #[cold]
    pub fn new(kind: Kind, initiator: Initiator, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            kind,
            initiator,
            completed: Completed::No,
            declined: false,
            message: message.into(),
            code: None,
            place: String::new(),
            hint: None,
            original: None,
        }))
    }

    /// What the user of this side gave does not fit: a value, a name, an option.
    #[cold]
    pub fn bad_argument(message: impl Into<String>) -> Self {
        Self::new(Kind::BadArgument, Initiator::User, message)
    }

    /// What the user of this side gave is no reference, or none that leads anywhere.
    #[cold]
    pub fn bad_reference(message: impl Into<String>) -> Self {
        Self::new(Kind::BadReference, Initiator::User, message)
    }

    /// This side does not have it, or the wire has no form for it.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, Initiator::Here, message)
    }

    /// Bytes from the peer do not decode; `offset` is counted from the start of the message's values.
    #[cold]
    pub fn malformed(what: impl fmt::Display, offset: usize) -> Self {
        Self::new(Kind::Malformed, Initiator::Peer, format!("{what} (at byte {offset})"))
    }

    /// A quota would be exceeded.
    #[cold]
    pub fn over_limit(
        initiator: Initiator,
        what: &str,
        asked: impl TryInto<u64>,
        limit: impl TryInto<u64>,
    ) -> Self {
        let (asked, limit) = (asked.try_into().unwrap_or(u64::MAX), limit.try_into().unwrap_or(u64::MAX));
        Self::new(Kind::LimitExceeded, initiator, format!("{what}: {asked} exceeds the limit of {limit}"))
    }

    /// The failure that an operation answers by a negative number of its contract (an HRESULT such as `0xc0040007`): wires that
    /// carry such numbers carry this one, and [`Failure::status`] reads it on the other side.
    #[cold]
    pub fn of_status(status: i32, message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, Initiator::Peer, message)
            .with_code(format!("{status:#010x}"))
            .with_completed(Completed::Yes)
    }

    /// The same failure with the peer's own code and its name, such as `CORBA::MARSHAL minor 0x41540026`.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.0.code = Some(code.into());
        self
    }

    /// The same failure with something to try.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same failure as it came, for whoever passes it on: a [`crate::Encoded`]. That has a body, which stands above failures.
    #[must_use]
    pub(crate) fn with_original(mut self, original: Arc<dyn Any + Send + Sync>) -> Self {
        self.0.original = Some(original);
        self
    }

    /// As it came.
    pub(crate) fn original(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.0.original.as_deref()
    }

    /// The same failure, saying whether the servant ran.
    #[must_use]
    pub fn with_completed(mut self, completed: Completed) -> Self {
        self.0.completed = completed;
        self.0.declined = false;
        self
    }

    /// The same failure of a servant that has done nothing for the call and will not: its caller may try again, here or elsewhere. Without this,
    /// a failure that a servant returns says that the call ran to its end.
    #[must_use]
    pub fn declined(mut self) -> Self {
        (self.0.completed, self.0.declined) = (Completed::No, true);
        self
    }

    /// The same failure as a servant's: the call has run, unless the servant declined it.
    pub(crate) fn of_servant(&self) -> Option<Self> {
        let ran = self.0.completed == Completed::No && !self.0.declined;
        ran.then(|| self.clone().with_completed(Completed::Yes))
    }

    /// The same failure, at a place: an endpoint, an operation, a parameter. Outer places are put in front.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        let inner = std::mem::take(&mut self.0.place);
        self.0.place = if inner.is_empty() { place.to_string() } else { format!("{place}, {inner}") };
        self
    }

    /// The same failure as an answer of a peer means it: octets of a call that the peer could not decode are arguments that do not
    /// fit. What this side cannot decode of an answer stays malformed.
    #[must_use]
    pub fn as_answered(mut self) -> Self {
        if self.0.kind == Kind::Malformed && self.0.completed != Completed::Yes {
            (self.0.kind, self.0.initiator) = (Kind::BadArgument, Initiator::User);
        }
        self
    }

    /// What kind.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Who caused it.
    pub fn initiator(&self) -> Initiator {
        self.0.initiator
    }

    /// Whether the servant ran.
    pub fn completed(&self) -> Completed {
        self.0.completed
    }

    /// What happened, in one sentence.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The peer's own code, with its name.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The peer's own code as a number, where it is one of 32 bits: an HRESULT, a status of RPC.
    pub fn status(&self) -> Option<i32> {
        let digits = self.code()?.strip_prefix("0x").filter(|digits| digits.len() == 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::cast_signed)
    }

    /// Where; empty if unknown.
    pub fn place(&self) -> &str {
        &self.0.place
    }

    /// What to try.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

/// The failure of a hop that cannot pass something on as it came.
#[cold]
pub fn needs_contract(what: &str) -> Failure {
    let what = format!("{what} does not pass here without its contract");
    Failure::unsupported(what).with_hint("give the contract, so that values can be read and written")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(code) = &self.0.code {
            write!(f, " [{code}]")?;
        }
        if !self.0.place.is_empty() {
            write!(f, " ({})", self.0.place)?;
        }
        Ok(())
    }
}

/// What Rust prints of a `fn main() -> Result<(), Failure>` that fails: the message, its kind, whether the call was executed, and the hint.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let executed = match self.0.completed {
            Completed::Yes => "executed",
            Completed::No => "not executed",
            Completed::Maybe => "perhaps executed",
        };
        write!(f, "{self}: {}, {executed}", self.0.kind.word())?;
        match &self.0.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// A way in which a peer broke a protocol. Each wire has an enumeration of its own; this is what is left of it when it
/// leaves the wire's crate.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The wire.
    pub wire: &'static str,
    /// The variant's name, stable: tests, metrics and `trace` count by it.
    pub name: &'static str,
    /// One sentence.
    pub message: String,
    /// Bytes received on the connection before the offending message.
    pub offset: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, at byte {} of the connection)", self.message, self.name, self.offset)
    }
}

impl Violation {
    /// The name that every wire gives to a message larger than the limit: it may be legal, only this side does not take
    /// it.
    pub const OVER_LIMIT: &'static str = "OverLimit";
    /// The names that wires give to a peer which keeps to the protocol, but does not let this side in.
    pub const REFUSALS: [&'static str; 4] = ["Refused", "Unwelcome", "Authentication", "NameTaken"];
    /// The name that every wire gives to the wish to overhear others, where it has nobody who lets one.
    pub const NO_MONITORING: &'static str = "NoMonitoring";
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        let failure =
            |kind| Self::new(kind, Initiator::Peer, violation.to_string()).with_completed(Completed::Maybe);
        if violation.name == Violation::OVER_LIMIT {
            failure(Kind::LimitExceeded)
                .with_hint("raise the limit on messages on this side, if the message is wanted")
        } else if Violation::REFUSALS.contains(&violation.name) {
            Self::new(Kind::Refused, Initiator::Peer, violation.message)
        } else if violation.name == Violation::NO_MONITORING {
            Self::new(Kind::Unsupported, Initiator::User, violation.message)
        } else {
            failure(Kind::Violation)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_function_that_fails_prints_what_helps() {
        let failure = Failure::new(Kind::Unreachable, Initiator::Here, "nobody listens at 127.0.0.1:9")
            .with_completed(Completed::No)
            .with_hint("start the server first");
        assert_eq!(
            format!("Error: {failure:?}"),
            "Error: nobody listens at 127.0.0.1:9: unreachable, not executed\nhint: start the server first"
        );
    }
}
