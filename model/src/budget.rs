//! Budgets: every length a peer claims is charged here before anything is allocated for it.

use crate::failure::{Failure, Initiator, Kind};
use crate::message_clock::time_for;
use std::time::Duration;

/// The most levels that values may be allowed to nest in: a value is read by a function that calls itself for each level,
/// on stacks of 2 MiB.
pub const MOST_LEVELS: u32 = 1000;

/// What one message may cost. Copied for each message; the fields go down as the message is decoded.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Bytes that decoded values may occupy.
    pub bytes: u64,
    /// Elements of sequences, arrays and maps; elements without size count too.
    pub elements: u64,
    /// Levels of composites that values may nest in; [`Limits::with_depth`] raises it.
    pub depth: u32,
    /// Operating-system handles.
    pub handles: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: 64 << 20, elements: 1 << 20, depth: 64, handles: 16 }
    }
}

impl Budget {
    /// A budget for a message of at most `bytes`: values may take eight times that much.
    pub fn for_message(bytes: u64) -> Self {
        let default = Self::default();
        Self { bytes: bytes.saturating_mul(8).max(64 << 10), ..default }
    }

    /// Takes bytes.
    #[inline]
    pub fn charge_bytes(&mut self, n: u64) -> Result<(), Failure> {
        charge(&mut self.bytes, n, "bytes of decoded values")
    }

    /// Takes elements.
    #[inline]
    pub fn charge_elements(&mut self, n: u64) -> Result<(), Failure> {
        charge(&mut self.elements, n, "elements in one message")
    }

    /// Goes one level down; [`Budget::leave`] comes back.
    #[inline]
    pub fn enter(&mut self) -> Result<(), Failure> {
        self.depth = self.depth.checked_sub(1).ok_or_else(too_deep)?;
        Ok(())
    }

    /// Comes back one level.
    #[inline]
    pub fn leave(&mut self) {
        self.depth += 1;
    }
}

#[inline]
fn charge(left: &mut u64, n: u64, what: &str) -> Result<(), Failure> {
    *left = left.checked_sub(n).ok_or_else(|| Failure::over_limit(Initiator::Peer, what, n, *left))?;
    Ok(())
}

#[cold]
fn too_deep() -> Failure {
    let what = "a value nests in more levels than the limit of this side";
    Failure::new(Kind::LimitExceeded, Initiator::Peer, what)
        .with_hint("raise the limit of levels: `Builder::max_depth`, `--max-depth`")
}

/// Quotas for one peer or one listener. Every wire has defaults; a user can raise each.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest message, in bytes, header included; also the most that fragments may join to.
    pub message: u64,
    /// Calls that may be outstanding on one connection.
    pub outstanding: usize,
    /// Fragmented messages that may be open on one connection.
    pub assemblies: usize,
    /// What decoding one message may cost.
    pub budget: Budget,
    /// How long a message that has begun may take to arrive, for each started MiB.
    pub message_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 4 << 20,
            outstanding: 1024,
            assemblies: 64,
            budget: Budget::default(),
            message_time: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Checks that one more call may wait for its answer where `open` calls wait.
    ///
    /// # Errors
    /// So many wait already.
    #[inline]
    pub fn check_outstanding(&self, open: usize) -> Result<(), Failure> {
        let limit = self.outstanding as u64;
        if open < self.outstanding {
            return Ok(());
        }
        Err(Failure::over_limit(Initiator::Here, "calls open on one connection", limit + 1, limit)
            .with_hint("wait for answers, or raise the limit of outstanding calls"))
    }

    /// The time that a message of so many bytes has to arrive.
    pub fn time_for(&self, bytes: u64) -> Duration {
        time_for(self.message_time, bytes)
    }

    /// The same limits with another largest message, in bytes; the decoding budget grows with it.
    #[must_use]
    pub fn with_message(mut self, bytes: u64) -> Self {
        self.message = bytes;
        self.budget.bytes = self.budget.bytes.max(Budget::for_message(bytes).bytes);
        self.budget.elements = self.budget.elements.max(bytes);
        self
    }

    /// The same limits with another number of levels that values may nest in, at most [`MOST_LEVELS`].
    #[must_use]
    pub fn with_depth(mut self, levels: u32) -> Self {
        self.budget.depth = levels.min(MOST_LEVELS);
        self
    }
}
