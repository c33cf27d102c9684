//! What a language cannot say.
//!
//! Each printer returns the first thing that it cannot express and prints nothing then: half a contract would
//! be read as a whole one. OMG IDL never fails, since it writes `any` with a comment in such places; introspection data of D-Bus has a
//! comment in place of a member, since every message names its method, and fails only where nothing is left; so has kidl.

use std::fmt::{self, Display, Formatter};

/// What a contract says that the language it should be printed in cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unprintable {
    /// The language, by its name for people.
    pub language: &'static str,
    /// What cannot be said: an interface, or `interface.member`.
    pub place: String,
    /// Why not.
    pub reason: String,
}

impl Display for Unprintable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot say {}: {}", self.language, self.place, self.reason)
    }
}

impl std::error::Error for Unprintable {}
