//! Which of a route's targets gets the next call.

use crate::config::Balance;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is asked of each target; a trait, so that choosing can be tried without targets.
pub(crate) trait Candidate {
    /// Calls under way.
    fn load(&self) -> usize;
    /// Whether it is believed to work.
    fn is_healthy(&self) -> bool;
    /// Whether a call may go to it: asked only of the one that is chosen.
    fn admits(&self) -> bool;
}

/// Chooses. `next` counts calls, so that equals take turns; it may wrap.
#[derive(Debug)]
pub(crate) struct Balancer {
    how: Balance,
    next: AtomicUsize,
}

impl Balancer {
    pub(crate) fn new(how: Balance) -> Self {
        Self { how, next: AtomicUsize::new(0) }
    }

    /// The number of a target that was not tried yet (`tried`: of this call, in any order), if one admits a
    /// call. Those believed not to work come last: if nothing else is left, the call shows whether they do.
    /// `admits` is asked in that order and of no more than needed, since it takes the one trial of a breaker
    /// that is half open.
    pub(crate) fn pick<C: Candidate>(&self, targets: &[C], tried: &[usize]) -> Option<usize> {
        if let ([only], []) = (targets, tried) {
            return only.admits().then_some(0);
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let from = if self.how == Balance::First { 0 } else { turn % targets.len().max(1) };
        let mut order: Vec<usize> = (0..targets.len())
            .map(|at| (from + at) % targets.len())
            .filter(|at| !tried.contains(at))
            .collect();
        // Stable: among equals the order above holds.
        order.sort_by_key(|at| {
            targets.get(*at).map(|target| {
                let load = if self.how == Balance::LeastOutstanding { target.load() } else { 0 };
                (!target.is_healthy(), load)
            })
        });
        order.into_iter().find(|at| targets.get(*at).is_some_and(Candidate::admits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake(usize, bool, bool);

    impl Candidate for Fake {
        fn load(&self) -> usize {
            self.0
        }
        fn is_healthy(&self) -> bool {
            self.1
        }
        fn admits(&self) -> bool {
            self.2
        }
    }

    #[test]
    fn the_least_busy_healthy_target_gets_the_call() {
        let balancer = Balancer::new(Balance::LeastOutstanding);
        let targets = [Fake(5, true, true), Fake(1, false, true), Fake(3, true, true), Fake(0, true, false)];
        for _ in 0..5 {
            assert_eq!(balancer.pick(&targets, &[]), Some(2));
        }
        assert_eq!(balancer.pick(&targets, &[2]), Some(0));
        assert_eq!(balancer.pick(&targets, &[0, 2]), Some(1), "what is left is tried");
        assert_eq!(balancer.pick(&targets, &[0, 1, 2]), None);
    }

    #[test]
    fn equals_take_turns_and_the_first_does_not() {
        let targets = [Fake(0, true, true), Fake(0, true, true)];
        for how in [Balance::LeastOutstanding, Balance::RoundRobin] {
            let balancer = Balancer::new(how);
            let picked: Vec<_> = (0..4).filter_map(|_| balancer.pick(&targets, &[])).collect();
            assert_eq!(picked, [0, 1, 0, 1]);
        }
        let balancer = Balancer::new(Balance::First);
        assert!((0..4).all(|_| balancer.pick(&targets, &[]) == Some(0)));
        assert_eq!(balancer.pick(&[Fake(0, true, false)], &[]), None);
    }
}
