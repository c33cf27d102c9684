//! What keeps a contestant from racing.

/// What keeps a contestant from racing.
#[derive(Debug, Clone)]
pub struct Missing {
    /// What is missing.
    pub what: String,
    /// What to do about it.
    pub install: String,
}
