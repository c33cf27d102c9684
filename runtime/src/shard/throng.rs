//! Whether the callers of a shard are so many that looking at those who were busy last finds nobody.

/// Callers whose next call is worth a look, or a moment of waiting without sleep.
const RECENT: usize = 16;
/// Calls of others, less calls of those, from which on there is a throng.
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
pub(super) struct Throng {
    /// The tokens of the last callers, in a ring.
    recent: [u64; RECENT],
    next: usize,
    count: u8,
    here: bool,
}

impl Throng {
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

    /// Whether there is one.
    pub(super) fn is_here(&self) -> bool {
        self.here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether so many callers in turn are a throng.
    fn in_turn(throng: &mut Throng, callers: u64) -> bool {
        (0..1000).for_each(|call| throng.called(1 + call % callers));
        throng.is_here()
    }

    #[test]
    fn many_callers_are_a_throng_and_a_few_are_not() {
        let mut throng = Throng::default();
        for callers in [1, 2, 4, 8, 16] {
            assert!(!in_turn(&mut throng, callers), "{callers}");
        }
        assert!(in_turn(&mut throng, 17) && in_turn(&mut throng, 200));
        // When most have gone, it is over.
        assert!(!in_turn(&mut throng, 16) && in_turn(&mut throng, 200));
    }

    #[test]
    fn a_newcomer_now_and_then_is_no_throng() {
        let mut throng = Throng::default();
        assert!(!(0..1000).any(|call| {
            throng.called(if call % 3 == 0 { 1000 + call } else { call % 2 });
            throng.is_here()
        }));
    }
}
