//! The time, where some milliseconds more or less do not matter.

use rustix::event::Timespec;
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The longest time between two ticks of a kernel's clock, unless its processor is kept from running.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// The time of the last tick of the kernel's clock: mostly less than [`TICK`] ago, for a quarter of what [`Instant::now`] costs.
#[inline]
pub(crate) fn lately() -> Instant {
    /// A moment, and the time of the same clock just after it.
    static ANCHOR: OnceLock<(Instant, Duration)> = OnceLock::new();
    #[cold]
    fn anchored(time: libc::timespec) -> Instant {
        let (anchor, begin) = ANCHOR.get_or_init(|| {
            loop {
                let anchor = Instant::now();
                let time = duration(read_clock(libc::CLOCK_MONOTONIC));
                // Whoever was interrupted in between asks again: the difference stays for good.
                if anchor.elapsed() < Duration::from_millis(1) {
                    return (anchor, time);
                }
            }
        });
        *anchor + duration(time).saturating_sub(*begin)
    }
    thread_local! {
        /// The last tick that this thread has seen: several calls fall into one.
        static SEEN: Cell<Option<(libc::timespec, Instant)>> = const { Cell::new(None) };
    }
    let time = read_clock(libc::CLOCK_MONOTONIC_COARSE);
    match SEEN.get() {
        Some((seen, instant)) if (seen.tv_nsec, seen.tv_sec) == (time.tv_nsec, time.tv_sec) => instant,
        _ => {
            let instant = anchored(time);
            SEEN.set(Some((time, instant)));
            instant
        }
    }
}

/// A time to wait, as the kernel's calls take it; beyond what they can say, the most they can.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// How long the kernel may sleep until then: so long that the moment is surely over.
pub(crate) fn rest(until: Instant) -> Timespec {
    timespec(until.saturating_duration_since(Instant::now()) + Duration::from_micros(500))
}

/// A moment in units of the fastest clock there is, to see how long something took: only [`since`]
/// understands it.
#[inline]
pub(crate) fn moment() -> u64 {
    ticks().unwrap_or_else(|| nanos_of(libc::CLOCK_MONOTONIC))
}

/// About how many nanoseconds have passed since then; the most there are, if the counter went back (another processor, a suspended
/// machine): whoever waits does not look on until it has caught up. By the counter of the processor where it has one: two questions to
/// the kernel's clock are a thirtieth of the instructions of a call.
#[inline]
pub(crate) fn since(before: u64) -> u64 {
    let Some(passed) = moment().checked_sub(before) else { return u64::MAX };
    match PACE.get().copied().unwrap_or_else(pace) {
        0 => passed,
        pace => passed.saturating_mul(1_000) / pace,
    }
}

/// Ticks of the processor's counter in 1000 nanoseconds; 0 where it has none. Measured once, at the first
/// call of [`since`].
static PACE: OnceLock<u64> = OnceLock::new();

/// Compares the two clocks for a while, once in the life of a process.
#[cold]
fn pace() -> u64 {
    let measure = || pace_of(|| nanos_of(libc::CLOCK_MONOTONIC), ticks);
    *PACE.get_or_init(|| measure().unwrap_or(0))
}

/// Ticks in 1000 nanoseconds, by a clock and a counter. Nothing, without a counter.
fn pace_of(nanos: impl Fn() -> u64, ticks: impl Fn() -> Option<u64>) -> Option<u64> {
    /// Nanoseconds: long enough that what reading takes does not count.
    const TRIAL: u64 = 100_000;
    /// Looks at both, of which the shortest counts: whoever is interrupted between clock and counter is so in one of them.
    const LOOKS: usize = 5;
    let both = || {
        let look = |_| {
            let (before, counted) = (nanos(), ticks()?);
            Some((nanos().saturating_sub(before), before, counted))
        };
        (0..LOOKS).filter_map(look).min().map(|(_, time, counted)| (time, counted))
    };
    let (begun, first) = both()?;
    while nanos().saturating_sub(begun) < TRIAL {}
    let (ended, last) = both()?;
    Some((last.saturating_sub(first).saturating_mul(1_000) / ended.saturating_sub(begun).max(1)).max(1))
}

/// The processor's counter. Nobody asks whether it goes on at one pace, also in deep sleep: where it does not, patience is less exact.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn ticks() -> Option<u64> {
    // SAFETY: reads a counter that every processor of this kind has.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn ticks() -> Option<u64> {
    None
}

/// The time of a clock. By libc and not by rustix, whose own way to the kernel's clocks valgrind does not survive.
#[inline]
fn read_clock(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time to be written is this one, which is ours alone. A clock that is not there leaves it as it is.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

/// In seconds and a rest, as `Instant` has it: so nothing is divided.
fn duration(time: libc::timespec) -> Duration {
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn nanos_of(clock: libc::clockid_t) -> u64 {
    u64::try_from(duration(read_clock(clock)).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{lately, moment, pace_of, since};
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    #[test]
    fn what_took_long_is_seen_to_have_taken_long() {
        // The first time the two clocks are compared.
        since(moment());
        // Whatever keeps this thread from running between two of these is in the longer of both times, and not in the shorter.
        let (whole, before, begun) = (Instant::now(), moment(), Instant::now());
        while begun.elapsed() < Duration::from_millis(2) {}
        let (took, most) = (since(before), whole.elapsed());
        assert!(took >= 1_500_000, "{took}");
        assert!(u128::from(took) <= most.as_nanos() * 3 / 2, "{took} of {most:?}");
    }

    /// A thread that loses its processor while it compares clock and counter, wherever that is, finds the same pace: it holds for the life
    /// of the process.
    #[test]
    fn an_interruption_does_not_change_the_pace() {
        let mut reads = 0;
        for interrupted in 0..4_000 {
            let (time, read) = (Cell::new(7_000), Cell::new(0));
            let look = || {
                time.set(time.get() + if read.get() == interrupted { 3_000_000 } else { 40 });
                read.set(read.get() + 1);
                time.get()
            };
            let pace = pace_of(look, || Some(look() * 5 / 2)).unwrap();
            assert!((2_490..=2_510).contains(&pace), "{pace}, interrupted at {interrupted}");
            reads = reads.max(read.get());
        }
        assert!(reads < 4_000, "each was interrupted once");
        assert_eq!(pace_of(|| 0, || None), None);
    }

    /// As on another processor, or behind a suspend: nobody waits for a counter to catch up.
    #[test]
    fn a_counter_that_went_back_has_taken_long() {
        assert_eq!(since(u64::MAX), u64::MAX);
    }

    #[test]
    fn it_is_never_ahead_of_the_exact_clock() {
        for _ in 0..1000 {
            assert!(lately() <= Instant::now());
        }
    }
}
