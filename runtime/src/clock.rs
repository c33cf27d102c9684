//! The time, where some milliseconds more or less do not matter.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The longest time between two ticks of a kernel's clock, unless its processor is kept from running.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// The time of the last tick of the kernel's clock: mostly less than [`TICK`] ago, for a quarter of what [`Instant::now`] costs.
#[inline]
pub(crate) fn lately() -> Instant {
    /// A moment, and the nanoseconds of the same clock just after it.
    static ANCHOR: OnceLock<(Instant, u64)> = OnceLock::new();
    let (anchor, nanos) = ANCHOR.get_or_init(|| {
        loop {
            let anchor = Instant::now();
            let nanos = nanos_of(libc::CLOCK_MONOTONIC);
            // Whoever was interrupted in between asks again: the difference stays for good.
            if anchor.elapsed() < Duration::from_millis(1) {
                return (anchor, nanos);
            }
        }
    });
    *anchor + Duration::from_nanos(nanos_of(libc::CLOCK_MONOTONIC_COARSE).saturating_sub(*nanos))
}

/// The nanoseconds of the clock of [`Instant`], to see how long something took: half of what two instants cost.
#[inline]
pub(crate) fn nanos() -> u64 {
    nanos_of(libc::CLOCK_MONOTONIC)
}

/// The nanoseconds since then, a moment of [`nanos`].
#[inline]
pub(crate) fn since(before: u64) -> u64 {
    nanos().saturating_sub(before)
}

/// Nanoseconds of a clock. By libc and not by rustix, whose own way to the kernel's clocks valgrind does not survive.
#[inline]
fn nanos_of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time to be written is this one, which is ours alone. A clock that is not there leaves it as it is.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::lately;
    use std::time::Instant;

    #[test]
    fn it_is_never_ahead_of_the_exact_clock() {
        for _ in 0..1000 {
            assert!(lately() <= Instant::now());
        }
    }
}
