//! Times: those of values, and the one that passes.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time of day: tenths of microseconds since 1601, in UTC (FILETIME, MS-DTYP 2.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileTime(pub u64);

/// Units of a FILETIME in a second.
const SECOND: u64 = 10_000_000;
/// From 1601 to 1970.
const UNIX: u64 = 11_644_473_600 * SECOND;
/// Days from 1601 to 30 December 1899, where DATE begins (MS-OAUT 2.2.25).
const DATE: u64 = 109_205;

impl FileTime {
    /// Now, by the clock of this machine.
    #[must_use]
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// As a DATE: days since 30 December 1899.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn date(self) -> f64 {
        let days = self.0 / (86_400 * SECOND);
        let rest = self.0 % (86_400 * SECOND);
        days as f64 - DATE as f64 + rest as f64 / (86_400 * SECOND) as f64
    }

    /// This much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_nanos() / 100).unwrap_or(u64::MAX)))
    }

    /// How much later it is than another; nothing if it is earlier.
    #[must_use]
    pub fn since(self, other: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(other.0).saturating_mul(100))
    }
}

impl From<SystemTime> for FileTime {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(UNIX).after(since)
    }
}

impl fmt::Debug for FileTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileTime({:#x})", self.0)
    }
}

/// The time that passes, given to the engine by whoever drives it: so tests need not wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment {
    /// Milliseconds of a clock that never goes back.
    pub ticks: u64,
    /// The time of day.
    pub time: FileTime,
}

impl Moment {
    /// This many milliseconds later.
    #[must_use]
    pub fn after(self, milliseconds: u64) -> Self {
        Self {
            ticks: self.ticks.saturating_add(milliseconds),
            time: self.time.after(Duration::from_millis(milliseconds)),
        }
    }
}
