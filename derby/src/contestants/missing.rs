//! What keeps a contestant from racing.

/// What keeps a contestant from racing. It is no failure of the derby: the report names it, and the
/// others race.
#[derive(Debug, Clone)]
pub struct Missing {
    /// What is missing, as a sentence without a full stop.
    pub what: String,
    /// What to do about it.
    pub install: String,
}
