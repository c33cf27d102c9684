//! Mistakes of the caller, which are reported before any call is made.
//!
//! A mistake has parts (what, why, hint, remedy), because a program and a library tell it in different words:
//! only a program knows the names of its options.

use everywire_model::{Failure, Initiator, Kind};
use std::fmt;

/// Something that was asked for and does not fit the contract. It becomes a [`Failure`] of its kind with `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// What kind of failure it becomes.
    kind: Kind,
    /// What cannot be done.
    what: String,
    /// Why not.
    why: String,
    /// What to try; empty where nothing helps.
    hint: String,
    /// What a program can offer beside the hint.
    remedy: Remedy,
}

/// What else helps, beside the hint: a program names its own option for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Remedy {
    /// Nothing else.
    #[default]
    None,
    /// To name the interface, beside what the hint says.
    Interface,
    /// To name another interface than the one that was looked at.
    OtherInterface,
    /// To name the interface, which the hint says already.
    ThatInterface,
    /// To look at an empty request ([`crate::json::template`]).
    Template,
    /// To give the contract, which the hint says already.
    Contract,
    /// To give all arguments as one document.
    Document,
}

impl Mistake {
    pub(crate) fn new(kind: Kind, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { kind, what: what.into(), why: why.into(), hint: String::new(), remedy: Remedy::None }
    }

    /// An argument, or something else that was given, does not fit.
    pub(crate) fn argument(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(Kind::BadArgument, what, why)
    }

    /// No operation, attribute or signal is called so, or more than one.
    pub(crate) fn operation(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(Kind::NoOperation, what, why)
    }

    /// No interface is called so, or more than one.
    pub(crate) fn interface(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(Kind::BadReference, what, why)
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    #[must_use]
    pub(crate) fn remedy(self, remedy: Remedy) -> Self {
        Self { remedy, ..self }
    }

    /// What cannot be done, or what there is not.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Why.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// What to try; a program ends the sentence with its own word for the remedy. Nothing where nothing is known to help.
    pub fn hint_with(&self, words: impl FnOnce(Remedy) -> &'static str) -> Option<String> {
        let text = format!("{}{}", self.hint, words(self.remedy));
        (!text.is_empty()).then_some(text)
    }

    /// The kind of failure that it becomes.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

impl std::error::Error for Mistake {}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        let failure = Self::new(mistake.kind, Initiator::User, mistake.to_string());
        let hint = mistake.hint_with(|remedy| match remedy {
            Remedy::Interface => ", or name the interface",
            Remedy::OtherInterface => ", or name another interface",
            Remedy::None | Remedy::ThatInterface | Remedy::Template | Remedy::Contract | Remedy::Document => {
                ""
            }
        });
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_becomes_a_failure_with_its_hint() {
        let mistake = Mistake::operation("there is no operation `x`", "Bank has y")
            .hint("choose one of these")
            .remedy(Remedy::OtherInterface);
        let failure = Failure::from(mistake.clone());
        assert_eq!((failure.kind(), failure.initiator()), (Kind::NoOperation, Initiator::User));
        assert_eq!(failure.message(), "there is no operation `x`: Bank has y");
        assert_eq!(failure.hint(), Some("choose one of these, or name another interface"));
        assert_eq!(mistake.hint_with(|_| "; see --help").as_deref(), Some("choose one of these; see --help"));
        assert_eq!(Failure::from(Mistake::argument("a", "b")).hint(), None);
    }
}
