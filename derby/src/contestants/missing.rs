//! What keeps a contestant from racing.

use crate::broken;
use everywire_model::Failure;

/// What keeps a contestant from racing. It is no failure of the derby: the report names it, and the
/// others race.
#[derive(Debug, Clone)]
pub struct Missing {
    /// What is missing, as a sentence without a full stop.
    pub what: String,
    /// What to do about it.
    pub install: String,
}

/// For a contestant whose programs were there when the derby began, and are not any more.
impl From<Missing> for Failure {
    fn from(missing: Missing) -> Self {
        broken(missing.what).with_hint(missing.install)
    }
}
