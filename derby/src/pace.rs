//! How the time of a derby is shared out: everybody gets a time for each operation, and not a number of calls.
//!
//! States of a [`Pace`]: *free* (a thorough derby: calls are counted, and it takes as long as it takes) or *bounded* by a
//! moment at which all is over, the counting of frames and the traces included.
//!
//! Invariants: what is still to come is known at every moment (`left`) and only shrinks; whoever is about to race gets an equal
//! share of the time that the starting of processes leaves, and never less than [`FLOOR`]: where that does not fit any more, it
//! does not start, and the report says so.

use std::time::{Duration, Instant};

/// Nobody gets less for an operation: below this a median says nothing.
pub(crate) const FLOOR: Duration = Duration::from_millis(10);
/// Who starts slowly gets so much at the least: its first calls are the slowest.
const WARM: Duration = Duration::from_millis(60);
/// With less than this for an operation, fewer rounds are better.
const GOOD: Duration = Duration::from_millis(30);
/// What a client takes beside its calls, until some have been seen: to start, to connect and to end.
const START: Duration = Duration::from_millis(30);
/// The same of those that start slowly.
const SLOW_START: Duration = Duration::from_millis(900);
/// The share of an operation's time that its warming up takes.
const WARM_UP: f64 = 0.2;
/// The part of the first share that is kept for the last.
const SPARED: f64 = 0.9;
/// Counting an operation's frames starts so many clients.
const COUNTING: u32 = 2;
/// A trace of one operation takes so long: four cycles with pauses, a capture, and two processes.
const TRACE: Duration = Duration::from_millis(700);

/// Building takes no more than this part of a derby's time.
const BUILDING: f64 = 0.75;

/// The rounds that a derby may have, the first of which is dropped.
pub(crate) const ROUNDS: [usize; 4] = [6, 5, 4, 3];

/// Work that is still to be done, in clients and operations. A client is quick or slow by what its
/// process takes to start, which for some runtimes is longer than all of its calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Clients that start quickly.
    pub(crate) quick: usize,
    /// Clients that start slowly.
    pub(crate) slow: usize,
    /// Operations of all of these clients together: each of them gets a share of the time.
    pub(crate) operations: usize,
}

impl Load {
    /// One client with so many operations.
    pub(crate) fn client(slow: bool, operations: usize) -> Self {
        Self { quick: usize::from(!slow), slow: usize::from(slow), operations }
    }

    /// The same so many times.
    pub(crate) fn times(self, n: usize) -> Self {
        Self { quick: self.quick * n, slow: self.slow * n, operations: self.operations * n }
    }

    /// Less what is done. It saturates: a client that was never planned must not make the rest
    /// negative.
    fn without(self, done: Self) -> Self {
        Self {
            quick: self.quick.saturating_sub(done.quick),
            slow: self.slow.saturating_sub(done.slow),
            operations: self.operations.saturating_sub(done.operations),
        }
    }
}

impl std::iter::Sum for Load {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            quick: sum.quick + one.quick,
            slow: sum.slow + one.slow,
            operations: sum.operations + one.operations,
        })
    }
}

/// What comes beside the rounds, and is kept free for: it is never shared out by `allot`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Operations whose frames are counted.
    pub(crate) counted: usize,
    /// Operations that are traced.
    pub(crate) traced: usize,
    /// Building of contestants of later waves, and starting of the servers of later lanes. It is set
    /// anew whenever some of that is done, and not counted down.
    pub(crate) building: Duration,
    /// Races at a rate of their own: their clients take as long as they are told to.
    pub(crate) rated: Duration,
}

impl Rest {
    /// How long it will take, without the building, where a client takes `start` to start.
    fn takes(self, start: Duration) -> Duration {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.rated + start * COUNTING * number(self.counted) + TRACE * number(self.traced)
    }
}

/// How much of a derby fits its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundPlan {
    /// Rounds, the first of which is dropped.
    pub(crate) rounds: usize,
    /// Whether those that start slowly race at every placement, or only where the kernel puts them and between two machines.
    pub(crate) everywhere: bool,
}

/// Chooses how much of a derby fits: first fewer rounds, then fewer placements for those that start
/// slowly, then fewer rounds still, until each operation has `GOOD`. `rounds` are the numbers to choose
/// from, the largest first; `load` says what one round has, everywhere or not. Where nothing fits the
/// smallest course is returned: `allot` then leaves clients out.
pub(crate) fn choose(time: Duration, rest: Rest, rounds: &[usize], load: impl Fn(bool) -> Load) -> RoundPlan {
    let fits = |course: &RoundPlan| {
        let load = load(course.everywhere).times(course.rounds);
        share(time.saturating_sub(rest.building + rest.takes(START)), load, START, SLOW_START) >= GOOD
    };
    let fewest = rounds.last().copied().unwrap_or(2);
    let many = rounds.iter().copied().filter(|n| *n > fewest || rounds.len() == 1);
    let few = rounds.iter().copied();
    many.map(|rounds| RoundPlan { rounds, everywhere: true })
        .chain(few.map(|rounds| RoundPlan { rounds, everywhere: false }))
        .find(fits)
        .unwrap_or(RoundPlan { rounds: fewest, everywhere: false })
}

/// The families that are built, of those that need it: the quickest first, as long as enough of the time is left for the races. What does not fit is
/// not built at all, for time that is kept for it would be nobody's.
pub(crate) fn built_in(time: Duration, mut families: Vec<(&str, Duration)>) -> Vec<&str> {
    families.sort_by_key(|(_, building)| *building);
    let mut left = time.mul_f64(BUILDING);
    let fitting = families.into_iter().map_while(|(family, building)| {
        left = left.checked_sub(building)?;
        Some(family)
    });
    fitting.collect()
}

/// The time of one operation if all of the load is to fit into `time`, starting and warming up
/// included. Zero if not even the starting fits.
fn share(time: Duration, load: Load, start: Duration, slow_start: Duration) -> Duration {
    let starting = start * number(load.quick) + slow_start * number(load.slow);
    (time.saturating_sub(starting) / number(load.operations).max(1)).div_f64(1.0 + WARM_UP)
}

/// For products with a `Duration`, which take 32 bits.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Where a derby is in its time. The engine tells it of everything that is done: `took` and `done` for
/// clients, `rested` and `built` for the rest. `allot` is asked before each client starts.
#[derive(Debug)]
pub(crate) struct Pace {
    begun: Instant,
    /// `None`: it takes as long as it takes.
    end: Option<Instant>,
    /// Clients that are still to come.
    left: Load,
    /// Clients that ran or were left out; only for the estimate of a derby without an end.
    done: Load,
    rest: Rest,
    /// What a quick client takes beside its calls, as seen so far on this machine; and a slow one.
    start: Duration,
    slow_start: Duration,
    /// The share of the first: whoever needs longer gets more only as long as the others still get nearly as much as that.
    first: Option<Duration>,
}

impl Pace {
    /// A derby of this load, which is to be over at `end`.
    pub(crate) fn new(begun: Instant, end: Option<Instant>, load: Load, rest: Rest) -> Self {
        Self {
            begun,
            end,
            left: load,
            done: Load::default(),
            rest,
            start: START,
            slow_start: SLOW_START,
            first: None,
        }
    }

    /// The time of each operation of a client that starts now, no longer than `longest`. `None`: not
    /// even the least time fits any more, so the client must not start. A client that needs longer for
    /// enough calls (`need`) gets up to four times the share of the others, as long as that leaves them
    /// nearly the share they had at first. Without an end it is always `longest`.
    pub(crate) fn allot(
        &mut self,
        now: Instant,
        client: Load,
        need: Duration,
        longest: Duration,
    ) -> Option<Duration> {
        let Some(end) = self.end else { return Some(longest) };
        let left = self.left_of(end, now);
        let least = if client.slow > 0 { WARM } else { FLOOR };
        let starting = self.start * number(client.quick) + self.slow_start * number(client.slow);
        if left < starting + least.mul_f64(1.0 + WARM_UP) * number(client.operations) {
            return None;
        }
        // A client that was not planned for must not get the share of nobody: at the least it is
        // counted itself.
        let load = Load {
            quick: self.left.quick.max(client.quick),
            slow: self.left.slow.max(client.slow),
            operations: self.left.operations.max(client.operations),
        };
        let share = share(left, load, self.start, self.slow_start);
        let first = *self.first.get_or_insert(share);
        let more = if share >= first.mul_f64(SPARED) { need.min(share * 4) } else { Duration::ZERO };
        Some(share.max(more).max(least).min(longest))
    }

    /// A client has run, or will not. To be told once for each planned client.
    pub(crate) fn done(&mut self, client: Load) {
        self.left = self.left.without(client);
        self.done = [self.done, client].into_iter().sum();
    }

    /// A client took `whole` from its start to its end, and `calls` of it for calls that were timed.
    /// What is left is what starting costs, and is remembered as a mean that forgets: a tenth of each
    /// new one.
    pub(crate) fn took(&mut self, client: Load, whole: Duration, calls: Duration) {
        let beside = whole.saturating_sub(calls.mul_f64(1.0 + WARM_UP));
        let known = if client.slow > 0 { &mut self.slow_start } else { &mut self.start };
        // The last ones count most: they are those of this moment's machine.
        *known = known.mul_f64(0.9) + beside.mul_f64(0.1);
    }

    /// The clients that ran or were left out.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> Load {
        self.done
    }

    /// So much of the rest is done with: counted or traced operations, or time at a rate. `building` is
    /// ignored.
    pub(crate) fn rested(&mut self, done: Rest) {
        self.rest.counted = self.rest.counted.saturating_sub(done.counted);
        self.rest.traced = self.rest.traced.saturating_sub(done.traced);
        self.rest.rated = self.rest.rated.saturating_sub(done.rated);
    }

    /// So much building is still to come.
    pub(crate) fn built(&mut self, left: Duration) {
        self.rest.building = left;
    }

    /// When all is over.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.end
    }

    /// Whether all of the time is over, also that which was put by for what comes after the races.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| now >= end)
    }

    /// What is left of all of the time; `None` in a derby without an end.
    pub(crate) fn remaining(&self, now: Instant) -> Option<Duration> {
        self.end.map(|end| end.saturating_duration_since(now))
    }

    /// How long the derby will take from now. With an end that is what is left until then; without one
    /// it is guessed from the operations done so far, and `None` before the first.
    pub(crate) fn estimate(&self, now: Instant) -> Option<Duration> {
        let whole = self.rest.takes(self.start);
        let Some(end) = self.end else {
            let each = now.saturating_duration_since(self.begun) / number(self.done.operations).max(1);
            return (self.done.operations > 0).then(|| each * number(self.left.operations) + whole);
        };
        Some(end.saturating_duration_since(now))
    }

    /// The time that the rounds may still take: what is left, less what is kept free for the rest.
    fn left_of(&self, end: Instant, now: Instant) -> Duration {
        // Counting and tracing get no more than a quarter of the derby, on however slow a machine: a
        // race without its frames is worth more than frames without a race.
        let most = end.saturating_duration_since(self.begun) / 4;
        let rest = self.rest.building + self.rest.takes(self.start).min(most);
        end.saturating_duration_since(now).saturating_sub(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(20);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_built_leaves_time_for_the_races() {
        let families = || vec![("zbus", 75 * SECOND), ("java", 8 * SECOND), ("wine", 25 * SECOND)];
        assert_eq!(built_in(60 * SECOND, families()), ["java", "wine"]);
        assert_eq!(built_in(600 * SECOND, families()), ["java", "wine", "zbus"]);
        assert_eq!(built_in(100 * SECOND, vec![("zbus", 75 * SECOND)]), ["zbus"]);
        assert!(built_in(10 * SECOND, families()).is_empty());
    }

    #[test]
    fn time_is_shared_equally_and_all_of_it() {
        let begun = Instant::now();
        // 20 clients of 7 operations, each 30 ms beside its calls: of 10 s 9.4 are left for 140 operations, a sixth for warming up.
        let load = Load::client(false, 7).times(20);
        let mut pace = Pace::new(begun, Some(begun + 10 * Duration::from_secs(1)), load, Rest::default());
        let mut now = begun;
        for _ in 0..20 {
            let client = Load::client(false, 7);
            let slot = pace.allot(now, client, Duration::ZERO, LONG).unwrap();
            assert!((55 * MS..57 * MS).contains(&slot), "{slot:?}");
            let whole = START + slot.mul_f64(1.0 + WARM_UP) * 7;
            now += whole;
            pace.took(client, whole, slot * 7);
            pace.done(client);
        }
        let spent = now - begun;
        assert!((9_900 * MS..=10_000 * MS).contains(&spent), "{spent:?}");
        assert!(pace.allot(now, Load::client(false, 7), Duration::ZERO, LONG).is_none());
    }

    #[test]
    fn a_machine_on_which_everything_starts_slowly_still_ends_in_time() {
        let begun = Instant::now();
        let client = Load::client(false, 7);
        let end = begun + Duration::from_secs(30);
        let mut pace = Pace::new(
            begun,
            Some(end),
            client.times(100),
            Rest { counted: 50, traced: 2, ..Rest::default() },
        );
        let (mut now, mut ran) = (begun, 0);
        for _ in 0..100 {
            if let Some(slot) = pace.allot(now, client, Duration::ZERO, LONG) {
                // Ten times what was expected.
                let whole = START * 10 + slot.mul_f64(1.0 + WARM_UP) * 7;
                now += whole;
                pace.took(client, whole, slot * 7);
                ran += 1;
            }
            pace.done(client);
        }
        assert!(ran > 30, "{ran}");
        assert!(now <= end, "{:?} too long", now - end);
    }

    #[test]
    fn what_takes_long_gets_more_and_what_starts_slowly_gets_warm() {
        let begun = Instant::now();
        let end = begun + Duration::from_secs(10);
        let load = Load::client(false, 2).times(50);
        let mut pace = Pace::new(begun, Some(end), load, Rest::default());
        let mut allot = |client, need| pace.allot(begun, client, need, LONG).unwrap();
        let usual = allot(Load::client(false, 2), Duration::ZERO);
        assert_eq!(allot(Load::client(false, 2), usual * 3), usual * 3);
        assert_eq!(allot(Load::client(false, 2), usual * 100), usual * 4);
        let mut crowded = Pace::new(begun, Some(end), load.times(100), Rest::default());
        let slow = crowded.allot(begun, Load::client(true, 2), Duration::ZERO, LONG).unwrap();
        let quick = crowded.allot(begun, Load::client(false, 2), Duration::ZERO, LONG).unwrap();
        assert_eq!((slow, quick), (WARM, FLOOR));
        assert_eq!(pace.allot(begun, Load::client(false, 2), LONG, 5 * MS), Some(5 * MS));
    }

    #[test]
    fn those_who_need_more_leave_enough_for_the_last() {
        let begun = Instant::now();
        let client = Load::client(false, 2);
        let mut pace =
            Pace::new(begun, Some(begun + Duration::from_secs(10)), client.times(50), Rest::default());
        let (mut now, mut slots) = (begun, Vec::new());
        for _ in 0..50 {
            // Everybody needs more than there is.
            let slot = pace.allot(now, client, LONG, LONG).unwrap();
            now += START + slot.mul_f64(1.0 + WARM_UP) * 2;
            pace.done(client);
            slots.push(slot);
        }
        let usual = Duration::from_secs_f64((10.0 - 50.0 * 0.03) / 100.0 / 1.2);
        assert!(slots.iter().all(|slot| *slot > usual.mul_f64(0.8)), "{slots:?}");
        assert!(slots[0] > usual * 3);
        assert!(now <= begun + Duration::from_secs(10));
    }

    #[test]
    fn the_time_of_building_is_kept() {
        let begun = Instant::now();
        let client = Load::client(false, 2);
        let rest = Rest { building: Duration::from_secs(8), ..Rest::default() };
        let mut pace = Pace::new(begun, Some(begun + Duration::from_secs(10)), client.times(10), rest);
        let before = pace.allot(begun, client, Duration::ZERO, LONG).unwrap();
        pace.built(Duration::ZERO);
        let after = pace.allot(begun, client, Duration::ZERO, LONG).unwrap();
        assert!(after > before * 5, "{before:?} {after:?}");
    }

    #[test]
    fn without_an_end_everybody_takes_as_long_as_it_takes() {
        let begun = Instant::now();
        let client = Load::client(false, 7);
        let mut pace = Pace::new(begun, None, client.times(4), Rest::default());
        assert_eq!(pace.allot(begun, client, Duration::ZERO, LONG), Some(LONG));
        assert_eq!(pace.estimate(begun), None);
        pace.done(client);
        let later = begun + 70 * MS;
        assert_eq!(pace.estimate(later), Some(210 * MS));
        assert!(!pace.is_over(later + LONG * 1000));
    }

    #[test]
    fn less_fits_less_time() {
        // Nearly that of `calls` with everybody: 40 quick ones and 10 slow ones, at three placements.
        let load = |everywhere: bool| {
            let slow = Load::client(true, 7).times(if everywhere { 30 } else { 10 });
            [Load::client(false, 7).times(120), slow].into_iter().sum()
        };
        let course = |seconds| choose(Duration::from_secs(seconds), Rest::default(), &ROUNDS, load);
        assert_eq!(course(3600), RoundPlan { rounds: 6, everywhere: true });
        assert_eq!(course(30), RoundPlan { rounds: 3, everywhere: false });
        let [mut rounds, mut everywhere] = [7, 1];
        for seconds in [600, 400, 300, 200, 100, 60, 30] {
            let course = course(seconds);
            let wide = usize::from(course.everywhere);
            assert!(
                wide < everywhere || (wide == everywhere && course.rounds <= rounds),
                "{seconds}: {course:?}"
            );
            (rounds, everywhere) = (course.rounds, wide);
        }
        // Who says how many rounds gets them.
        assert_eq!(choose(Duration::from_secs(1), Rest::default(), &[9], load).rounds, 9);
        assert!(choose(Duration::from_secs(3600), Rest::default(), &[9], load).everywhere);
    }
}
