//! Whether the callers of a shard are so many that looking at those who were busy last finds nobody.

/// Callers whose next call is worth a moment of waiting without sleep, where servants answer at once.
const RECENT: usize = 16;
/// The same where calls are passed on: only a few callers have no call with somebody else.
const PASSING: usize = 4;
/// What a call of another caller counts, and what one of those callers takes off. With callers in no order it is many from where the last
/// [`RECENT`] or [`PASSING`] make less than three of five calls.
const OTHER: u8 = 3;
const SAME: u8 = 2;
/// The count from which on there are many callers.
const MANY: u8 = 48;
/// The count below which there is none any more.
const FEW: u8 = 16;
/// The most that is counted.
const MOST: u8 = 64;

/// What an answer of somebody else counts, and what a call takes off: calls are passed on while more than one in [`ANSWER`] has an answer
/// from elsewhere.
const ANSWER: u8 = 4;
/// The count from which on calls are passed on, and the most that is counted.
const PASSED_ON: u8 = 16;
const MOST_PASSED_ON: u8 = 32;

/// What the calls that the kernel told of have shown.
///
/// With a few callers the next call comes from one of them, and a look at each saves a question to the kernel. With many it comes from
/// somebody else nearly always: each look is a system call in vain, and each yield before one lets the others wait.
///
/// Where calls are passed on, to a broker's targets or by servants that call others, fewer callers are many. One whose call is with somebody
/// else does not call before it is answered, so that a look at it finds nothing, and each message is waited for twice: time that is spent
/// looking is time of another's CPU.
#[derive(Debug, Default)]
pub(super) struct ManyCallers {
    /// The tokens of the last callers, the last one first.
    recent: [u64; RECENT],
    count: u8,
    passed_on: u8,
    here: bool,
}

impl ManyCallers {
    /// The kernel told of a call on the connection with this token.
    pub(super) fn called(&mut self, token: u64) {
        self.passed_on = self.passed_on.saturating_sub(1);
        if self.recent.first() == Some(&token) {
            return self.same();
        }
        let found = self.recent.iter().position(|held| *held == token);
        let last = found.unwrap_or(RECENT - 1);
        if let Some(moved) = self.recent.get_mut(..=last) {
            moved.rotate_right(1);
        }
        if let Some(first) = self.recent.first_mut() {
            *first = token;
        }
        let worth = if self.are_passed_on() { PASSING } else { RECENT };
        if found.is_some_and(|at| at < worth) {
            self.same();
        } else {
            self.count = (self.count + OTHER).min(MOST);
            self.decide();
        }
    }

    /// A look found a call.
    pub(super) fn found(&mut self) {
        self.passed_on = self.passed_on.saturating_sub(1);
        self.same();
    }

    /// Whether calls are passed on.
    pub(super) fn are_passed_on(&self) -> bool {
        self.passed_on >= PASSED_ON
    }

    /// The kernel told of something on a connection of the calling side.
    pub(super) fn answered(&mut self) {
        self.passed_on = (self.passed_on + ANSWER).min(MOST_PASSED_ON);
    }

    fn same(&mut self) {
        self.count = self.count.saturating_sub(SAME);
        self.decide();
    }

    fn decide(&mut self) {
        self.here = self.count >= if self.here { FEW } else { MANY };
    }

    /// Whether there are many callers.
    pub(super) fn are_here(&self) -> bool {
        self.here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether so many callers in turn are many.
    fn in_turn(many: &mut ManyCallers, callers: u64) -> bool {
        (0..1000).for_each(|call| many.called(1 + call % callers));
        many.are_here()
    }

    /// The same where each call is passed on.
    fn passed_on(many: &mut ManyCallers, callers: u64) -> bool {
        for call in 0..1000 {
            many.called(1 + call % callers);
            many.answered();
        }
        many.are_here()
    }

    /// A caller at random.
    fn anyone(seed: &mut u64, callers: u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        1 + *seed % callers
    }

    #[test]
    fn seventeen_callers_are_many_and_sixteen_are_not() {
        let mut many = ManyCallers::default();
        for callers in [1, 2, 4, 8, 16] {
            assert!(!in_turn(&mut many, callers), "{callers}");
        }
        assert!(in_turn(&mut many, 17) && in_turn(&mut many, 200));
        // When most have gone, it is over.
        assert!(!in_turn(&mut many, 16) && in_turn(&mut many, 200));
    }

    #[test]
    fn where_calls_are_passed_on_five_callers_are_many() {
        let mut many = ManyCallers::default();
        for callers in [1, 2, 4] {
            assert!(!passed_on(&mut many, callers), "{callers}");
        }
        assert!(passed_on(&mut many, 5) && passed_on(&mut many, 12));
        assert!(!passed_on(&mut many, 4), "most have gone");
        assert!(passed_on(&mut many, 8) && !in_turn(&mut many, 8), "and now they are answered here");
        // One that is passed on now and then makes no broker.
        for call in 0..1000 {
            many.called(1 + call % 8);
            if call % 8 == 0 {
                many.answered();
            }
        }
        assert!(!many.are_here());
    }

    #[test]
    fn callers_in_no_order_are_many_for_good() {
        // The order of 32 threads that share a CPU: half of the calls come from the last sixteen.
        for (callers, passed_on) in [(32, false), (12, true), (32, true)] {
            let (mut many, mut seed) = (ManyCallers::default(), 88_172_645_463_325_252);
            let mut looked = 0;
            for call in 0..20_000 {
                many.called(anyone(&mut seed, callers));
                if passed_on {
                    many.answered();
                }
                looked += u32::from(call >= 1000 && !many.are_here());
            }
            assert!(looked < 20, "{callers} callers: looked at after {looked} of 19,000 calls");
        }
    }

    #[test]
    fn a_newcomer_now_and_then_does_not_make_many() {
        let mut many = ManyCallers::default();
        assert!(!(0..1000).any(|call| {
            many.called(if call % 3 == 0 { 1000 + call } else { call % 2 });
            many.are_here()
        }));
        // Nor where looks find the others.
        assert!(!(0..1000).any(|call| {
            match call % 2 {
                0 => many.called(2000 + call),
                _ => (0..2).for_each(|_| many.found()),
            }
            many.are_here()
        }));
    }
}
