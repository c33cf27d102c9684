//! A wait that spins first (adaptive spinning): how long to look for the next byte before sleeping for it.
//!
//! Waking a sleeper on another CPU costs some 20 us; a peer that answers within that time is better waited for by looking,
//! with `sched_yield` between two looks so that a peer on the *same* CPU gets to run. Looking costs CPU, so the budget
//! halves each time it was spent in vain, and is restored when a wait turns out short: an idle process spends nothing.
//!
//! A router between two peers changes that: it sleeps between messages itself, and whoever looks too early takes the CPU
//! from it. Behind a router, a look in vain after the CPU went to somebody else is the last one; a caller then spends its next
//! waits asleep from the start, and now and then one look tells whether the CPU is still shared. A server goes on to look
//! once each time: a CPU that falls idle between the router's messages would wake for each of them.
//!
//! On a CPU that other programs keep busy, a yield gives away a whole time slice, some milliseconds, where a sleeper is woken
//! at once. So each yield is timed. One that took longer than a peer needs means that somebody else ran: then this wait and the
//! next ones sleep at once, twice as many with each such yield, half as many after many good ones ([`Contention`]). That is known of a
//! CPU, not of a connection, so each thread remembers it for itself.
//!
//! States of a wait: *begun* by the first look or by what was sent, *looking* or *asleep*, ended by [`SpinWait::rewarded`] or
//! [`SpinWait::slept`].

use crate::clock::{moment, since};
use crate::transport::Stream;
use std::cell::Cell;

/// How eagerly to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Latency {
    /// Some 50 us of looking while traffic is brisk, none when it is not.
    #[default]
    Default,
    /// Milliseconds of looking: the lowest latency, at the cost of a busy CPU while calls are under way.
    Lowest,
}

impl Latency {
    /// The longest time, in nanoseconds, for which the next byte is looked for before a sleep.
    fn limit(self) -> u64 {
        match self {
            Self::Default => 50_000,
            Self::Lowest => 5_000_000,
        }
    }
}

/// The budget of one waiter.
#[derive(Debug)]
pub(crate) struct SpinWait {
    /// The most that `budget` can be, from `Latency`.
    limit: u64,
    /// How many nanoseconds the next wait looks: the limit after a short wait, half after each long one,
    /// nothing below `LEAST`.
    budget: u64,
    /// The moment at which the wait began, once it has looked in vain.
    since: Option<u64>,
    /// Whether a router stands between, and latency is not everything (`Latency::Default`).
    routed: bool,
    /// Whether the last yield gave the CPU to somebody, or is known to.
    gave_way: bool,
    /// Waits behind a router to be spent asleep before the next look.
    crowded: u8,
    /// Whether a wait has begun, and whether it is one to sleep through from the start.
    waiting: bool,
    asleep: bool,
    /// Whether the last yield took so long that somebody else must have run, unless it brought what is waited for.
    doubt: bool,
    /// Whether it is a caller's.
    calling: bool,
    /// Whether glances have paid lately, and how many chances were let pass since they last did not.
    glances: u8,
    passed: u8,
}

/// Nanoseconds: the least budget that is worth a look.
const LEAST: u64 = 4_000;
/// Nanoseconds: a yield that gave the CPU to somebody took at least so long.
const SWITCH: u64 = 1_500;
/// Nanoseconds: a yield to a peer that has little to do is over by then.
const SHARED: u64 = 40_000;
/// Nanoseconds: a yield that takes so long has cost a time slice, whatever it brought.
const SLICE: u64 = 500_000;
/// Waits of a caller behind a router that are spent asleep after a look in vain: one look in 64 tells whether
/// the CPU is still shared.
const CROWDED: u8 = 64;
/// A glance that has not paid lately is tried again after this many chances, about one per call.
const CHANCES: u8 = 64;
/// So many glances in vain follow one that paid before they are taken to pay no more.
const PAID: u8 = 8;

thread_local! {
    /// That of the CPU on which this thread runs, as far as it has seen.
    static CROWD: Cell<Contention> = const { Cell::new(Contention { waits: 0, step: 0, good: 0 }) };
}

/// What the yields of a thread have told about the others on its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Contention {
    /// Waits that are to be slept through before the next look.
    waits: u16,
    /// How many it was the last time: 1 to [`Contention::MOST`], or 0 if nobody was ever there.
    step: u16,
    /// Yields since then that came back soon.
    good: u32,
}

impl Contention {
    /// The most waits between two looks.
    const MOST: u16 = 4096;
    /// So many good yields for each wait of a step halve it.
    const GOOD: u32 = 64;

    /// A yield was lost to somebody else.
    fn lost(&mut self) {
        self.step = (self.step * 2).clamp(1, Self::MOST);
        (self.waits, self.good) = (self.step, 0);
    }

    /// A yield came back soon.
    fn came_back(&mut self) {
        if self.step == 0 {
            return;
        }
        self.good += 1;
        if self.good >= u32::from(self.step) * Self::GOOD {
            (self.step, self.good) = (self.step / 2, 0);
        }
    }

    /// A wait begins. Whether it is to be slept through.
    fn wait(&mut self) -> bool {
        let asleep = self.waits > 0;
        self.waits = self.waits.saturating_sub(1);
        asleep
    }

    /// Does something with that of this thread.
    fn with<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        let mut crowd = CROWD.get();
        let result = work(&mut crowd);
        CROWD.set(crowd);
        result
    }
}

/// Lets others have the CPU, and says how long they had it, in nanoseconds.
#[inline]
pub(crate) fn yield_cpu() -> u64 {
    let before = moment();
    rustix::thread::sched_yield();
    since(before)
}

/// Lets a peer on this CPU have it for a moment, unless others have been found there. Whether it was let.
pub(crate) fn make_way() -> bool {
    if CROWD.get().waits > 0 {
        return false;
    }
    if yield_cpu() >= SLICE {
        Contention::with(Contention::lost);
    }
    true
}

impl SpinWait {
    /// One that has not waited yet: with its whole budget, and a few glances on credit.
    pub(crate) fn new(latency: Latency) -> Self {
        let limit = latency.limit();
        Self {
            limit,
            budget: limit,
            since: None,
            routed: false,
            gave_way: false,
            crowded: 0,
            waiting: false,
            asleep: false,
            doubt: false,
            calling: false,
            glances: 4,
            passed: 0,
        }
    }

    /// Something came: the next wait starts anew.
    pub(crate) fn rewarded(&mut self) {
        self.since = None;
        (self.waiting, self.asleep, self.doubt) = (false, false, false);
    }

    /// A wait begins, if none has.
    fn begin(&mut self) {
        if !self.waiting {
            self.waiting = true;
            self.asleep = Contention::with(Contention::wait);
        }
    }

    /// Whether waits are for somebody behind a router, and whether by a caller for its reply.
    pub(crate) fn behind_router(&mut self, routed: bool, calling: bool) {
        self.routed = routed && self.limit == Latency::Default.limit();
        self.calling = calling;
    }

    /// Yields.
    pub(crate) fn give_way(&mut self) {
        self.gave(yield_cpu());
    }

    /// Yields where other threads of this process have something to do: that they ran is no sign of a crowd.
    pub(crate) fn give_way_among_others(&mut self) {
        self.gave_among_others(yield_cpu());
    }

    /// A yield took so many nanoseconds, in which other threads of this process had something to do: only a time slice of somebody else counts.
    pub(crate) fn gave_among_others(&mut self, took: u64) {
        if !(SHARED..SLICE).contains(&took) {
            self.gave(took);
        }
    }

    /// A yield took so many nanoseconds. Short: nobody else wanted the CPU. Up to a time slice: a peer may
    /// have run, so this counts only if nothing came of it (`doubt`). Longer: somebody else had the CPU.
    fn gave(&mut self, took: u64) {
        self.gave_way = self.routed && took >= SWITCH;
        if took < SHARED {
            Contention::with(Contention::came_back);
        } else if took < SLICE {
            self.doubt = true;
        } else {
            Contention::with(Contention::lost);
            self.asleep = true;
        }
    }

    /// Something was just sent: the peer gets the CPU before the first look, unless there is no budget left.
    ///
    /// A peer on another CPU that answers through memory needs no system call of ours: then a glance of a microsecond
    /// comes first, as long as such glances pay.
    pub(crate) fn after_sending(&mut self, stream: Option<&Stream>) {
        if self.gives_way_after_sending(stream) {
            self.give_way();
        }
    }

    /// The same for a thread that lets go of a lock before it yields; it says how long that took ([`SpinWait::gave_among_others`]).
    pub(crate) fn gives_way_after_sending(&mut self, stream: Option<&Stream>) -> bool {
        if self.budget == 0 {
            self.gave_way = false;
            return false;
        }
        if let Some(Stream::Shm(channel)) = stream
            && self.glances_now()
        {
            let found = channel.protocol().glance();
            self.glanced(found);
            if found {
                return false;
            }
        }
        self.begin();
        if self.asleep {
            self.gave_way = false;
            false
        } else if self.crowded > 1 {
            self.crowded -= 1;
            self.gave_way = true;
            false
        } else {
            // None was crowded out lately, or for long enough to look again.
            self.crowded = 0;
            true
        }
    }

    /// A chance to glance: whether to take it, since glances have paid lately, or it was long ago that one was tried.
    ///
    /// A wait that is to be slept through begins with a glance, too, at a socket whose writer lets its reader run at once: if both
    /// share a CPU, it finds what a sleep would have waited for.
    pub(crate) fn glances_now(&mut self) -> bool {
        self.passed = self.passed.wrapping_add(1);
        let now = self.glances > 0 || self.passed >= CHANCES;
        if now {
            self.passed = 0;
        }
        now
    }

    /// What a glance has brought.
    pub(crate) fn glanced(&mut self, found: bool) {
        self.glances = if found { PAID } else { self.glances.saturating_sub(1) };
    }

    /// Whether the wait that has begun is to be slept through, but for a first look perhaps.
    #[inline]
    pub(crate) fn sleeps(&self) -> bool {
        self.asleep || self.budget == 0
    }

    /// A wait begins. Whether it is to be slept through from the start, without a look.
    pub(crate) fn sleeps_at_once(&mut self) -> bool {
        self.begin();
        // Behind a router that wants the CPU, too.
        let asleep = self.asleep || self.budget == 0 || (self.gave_way && self.crowded > 0);
        if asleep {
            self.gave_way = false;
            self.since.get_or_insert_with(moment);
        }
        asleep
    }

    /// Nothing came. Returns whether to look again, after yielding the CPU to whoever wants it.
    pub(crate) fn look_again(&mut self) -> bool {
        let again = self.wants_another_look();
        if again {
            self.give_way();
        }
        again
    }

    /// The same for a thread that lets go of a lock before it yields; it says how long that took ([`SpinWait::gave_among_others`]).
    pub(crate) fn wants_another_look(&mut self) -> bool {
        self.begin();
        if std::mem::take(&mut self.doubt) {
            Contention::with(Contention::lost);
            self.asleep = true;
        }
        if self.asleep {
            self.gave_way = false;
            self.since.get_or_insert_with(moment);
            return false;
        }
        if self.budget == 0 || self.gave_way {
            if self.gave_way && self.calling && self.crowded == 0 {
                self.crowded = CROWDED;
            }
            self.gave_way = false;
            self.since.get_or_insert_with(moment);
            return false;
        }
        since(*self.since.get_or_insert_with(moment)) < self.budget
    }

    /// A sleep ended because something came; adapts the budget to how long the whole wait was.
    pub(crate) fn slept(&mut self) {
        (self.waiting, self.asleep, self.doubt) = (false, false, false);
        let Some(begun) = self.since.take() else { return };
        // Five times the limit is short enough for a look of the whole limit to have a chance the next time.
        self.budget = if since(begun) < self.limit * 5 {
            self.limit
        } else if self.budget < LEAST {
            0
        } else {
            self.budget / 2
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: u64 = 3_000;
    const PEER: u64 = 100_000;
    const HOG: u64 = 3_000_000;

    fn forget() {
        CROWD.set(Contention { waits: 0, step: 0, good: 0 });
    }

    /// A wait in which the first yield takes this long; whether it looked at all.
    fn wait(spin_wait: &mut SpinWait, took: u64, answered: bool) -> bool {
        spin_wait.begin();
        let looks = !spin_wait.asleep;
        if looks {
            spin_wait.gave(took);
        }
        if !answered {
            // What comes after a yield that was lost is slept for.
            assert_eq!(spin_wait.look_again(), looks && took < SHARED);
        }
        spin_wait.rewarded();
        looks
    }

    #[test]
    fn a_cpu_of_ones_own_is_looked_at_in_every_wait() {
        forget();
        let mut spin_wait = SpinWait::new(Latency::Default);
        assert!((0..10_000).all(|_| wait(&mut spin_wait, QUICK, true)));
        // A peer that works for a while on this CPU and answers is nobody else.
        assert!((0..100).all(|_| wait(&mut spin_wait, PEER, true)));
    }

    #[test]
    fn time_slices_are_lost_rarely() {
        for (took, answered) in [(HOG, true), (HOG, false), (PEER, false)] {
            forget();
            let mut spin_wait = SpinWait::new(Latency::Default);
            let lost = (0..8_000).filter(|_| wait(&mut spin_wait, took, answered)).count();
            assert_eq!(lost, 13, "waits of 1, 2, 4, ... 4096 between them");
        }
    }

    #[test]
    fn who_sleeps_anyhow_does_not_look_first() {
        forget();
        let mut spin_wait = SpinWait::new(Latency::Default);
        assert!(!spin_wait.sleeps_at_once(), "nothing is known of the others");
        spin_wait.gave(HOG);
        spin_wait.rewarded();
        assert!(spin_wait.sleeps_at_once());
        spin_wait.slept();
        assert!(!spin_wait.sleeps_at_once(), "one wait is over, the next one looks again");
        spin_wait.rewarded();
        // A wait that took long takes budget away, until there is none.
        forget();
        while spin_wait.budget > 0 {
            // The beginning of its count is long ago.
            spin_wait.since = Some(0);
            spin_wait.slept();
        }
        assert!(spin_wait.sleeps_at_once());
        spin_wait.slept();
        assert_eq!(spin_wait.budget, spin_wait.limit, "it was short: looks may pay again");
        // Behind a router that wants the CPU.
        spin_wait.behind_router(true, true);
        spin_wait.begin();
        spin_wait.gave(SWITCH);
        assert!(!spin_wait.wants_another_look());
        spin_wait.slept();
        assert!(!spin_wait.gives_way_after_sending(None) && spin_wait.sleeps_at_once());
    }

    #[test]
    fn who_sleeps_anyhow_looks_first_as_long_as_that_pays() {
        forget();
        let mut spin_wait = SpinWait::new(Latency::Default);
        Contention::with(Contention::lost);
        // One wait, in which the first look finds something or not. Whether there was one.
        let mut wait = |found| {
            CROWD.set(Contention { waits: 1, step: 1, good: 0 });
            assert!(spin_wait.sleeps_at_once());
            let looks = spin_wait.glances_now();
            if looks {
                assert!(spin_wait.sleeps());
                spin_wait.glanced(found);
            }
            spin_wait.rewarded();
            looks
        };
        // A peer on the same CPU.
        assert!((0..1_000).all(|_| wait(true)));
        // It moves away: some looks in vain, then one in 64 waits.
        assert_eq!((0..8 + 640).filter(|_| wait(false)).count(), 8 + 10);
        // It comes back.
        let misses = (0..).take_while(|_| !wait(true)).count();
        assert!(misses < 64);
        assert!((0..1_000).all(|_| wait(true)));
    }

    #[test]
    fn what_one_connection_learns_the_others_of_its_thread_know() {
        forget();
        let (mut one, mut other) = (SpinWait::new(Latency::Default), SpinWait::new(Latency::Default));
        assert!(wait(&mut one, HOG, true));
        assert!(!wait(&mut other, QUICK, true));
        assert!(wait(&mut other, QUICK, true));
        std::thread::spawn(|| assert_eq!(CROWD.get().step, 0)).join().unwrap();
    }

    #[test]
    fn when_the_others_have_gone_it_is_forgotten() {
        forget();
        let mut spin_wait = SpinWait::new(Latency::Default);
        for _ in 0..8_000 {
            wait(&mut spin_wait, HOG, true);
        }
        assert_eq!(CROWD.get().step, Contention::MOST);
        for _ in 0..u32::from(Contention::MOST) * Contention::GOOD * 2 + u32::from(Contention::MOST) {
            wait(&mut spin_wait, QUICK, true);
        }
        assert!(CROWD.get().step <= 1, "{:?}", CROWD.get());
    }
}
