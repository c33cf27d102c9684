//! Whether the callers of a shard are so many that looking at those who were busy last finds nobody.

/// Callers whose next call is worth a look, or a moment of waiting without sleep.
const RECENT: usize = 16;
/// Calls of others, less calls of those, from which on there are many callers.
const MANY: u8 = 48;
/// The count below which there is none any more.
const FEW: u8 = 16;
/// The most that is counted.
const MOST: u8 = 64;

/// What the calls that the kernel told of have shown.
///
/// With a few callers the next call comes from one of them, and a look at each saves a question to the kernel. With many it comes from
/// somebody else nearly always: each look is a system call in vain, and each yield before one lets the others wait.
#[derive(Debug, Default)]
pub(super) struct ManyCallers {
    /// The tokens of the last callers, in a ring.
    recent: [u64; RECENT],
    next: usize,
    count: u8,
    here: bool,
}

impl ManyCallers {
    /// The kernel told of a call on the connection with this token.
    pub(super) fn called(&mut self, token: u64) {
        let held = self.recent.contains(&token);
        if held {
            self.count = self.count.saturating_sub(1);
        } else {
            if let Some(place) = self.recent.get_mut(self.next) {
                *place = token;
            }
            self.next = (self.next + 1) % RECENT;
            self.count = (self.count + 1).min(MOST);
        }
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
    fn a_newcomer_now_and_then_does_not_make_many() {
        let mut many = ManyCallers::default();
        assert!(!(0..1000).any(|call| {
            many.called(if call % 3 == 0 { 1000 + call } else { call % 2 });
            many.are_here()
        }));
    }
}
