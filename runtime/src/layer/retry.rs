//! Serving once more what failed, where that changes nothing.
//!
//! States of a call behind this layer: *serving*, an attempt is being handed to the servant; *apart*, the
//! servant has it and answers later; *again*, the attempt failed while it was being handed over, and the next
//! one follows when the servant has let go of it; *over*, once the caller was answered.
//!
//! The first three are `Call::turn`. The thread that hands an attempt over, and the one on which the servant
//! answers, both exchange it, and the exchange that succeeds says who begins the next attempt: so attempts do
//! not pile up on one stack, and two threads never attempt together.
//!
//! Invariants: one attempt at a time; what may have run is attempted again only if it may run twice; once it
//! may have run, no later failure says that it did not (`Attempts::told`); the caller is answered once, since
//! `State::request` is taken out for it. No attempt begins after `until`.
//!
//! Where a number of attempts is allowed, they follow each other at once: the layer does not wait between
//! them.

use super::{Layer, Next, OwnedNext, Pattern};
use crate::sync::lock;
use everywire_model::{Answer, CallId, Completed, Expects, Failure, Kind, Link, Request};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Has a call that failed served again: one that did not run, whatever it is; one that may have run, only if it may run twice, which the
/// contract says of operations ([`everywire_model::Interface::is_idempotent`]), or whoever makes the layer, by their names
/// ([`Retry::idempotent`]).
///
/// Only failures are meant that say nothing of the call itself: what is needed for it could not be reached, had no room for it, or took too long
/// ([`Kind::Unreachable`], [`Kind::Busy`], [`Kind::TimedOut`]). Exceptions and other failures are answers. Calls that want no answer are
/// served once: nobody hears how they ended.
///
/// ```
/// use everywire_runtime::layer::Retry;
/// use std::time::Duration;
///
/// let retry = Retry::new(3).idempotent("Shop.count").idempotent("Shop._get_*").within(Duration::from_secs(2));
/// ```
#[derive(Debug, Clone)]
pub struct Retry {
    /// Attempts after the first.
    most: u32,
    /// How many others can be asked (`Retry::at_others`).
    elsewhere: u32,
    within: Option<Duration>,
    /// Operations that may run twice.
    twice: Arc<[Pattern]>,
}

impl Retry {
    /// So many attempts after the first.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self { most, elsewhere: 0, within: None, twice: Arc::default() }
    }

    /// More operations that may run twice than the contract says: `INTERFACE.OPERATION` as in [`super::AllowList::anyone`].
    #[must_use]
    pub fn idempotent(mut self, operations: &str) -> Self {
        self.twice = self.twice.iter().cloned().chain([Pattern::new(operations)]).collect();
        self
    }

    /// No attempt begins when this time is over, counted from the call's arrival.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    /// There are so many others who can be asked: what did not run is attempted at each of them, also if that is more often. For whoever passes calls
    /// on and keeps count of their [`Attempts`].
    #[must_use]
    pub fn at_others(mut self, others: u32) -> Self {
        self.elsewhere = others;
        self
    }
}

/// What is known of the attempts of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Attempts so far.
    begun: u32,
    /// One that failed may have run.
    maybe: bool,
}

impl Attempts {
    /// One more begins.
    pub fn begin(&mut self) {
        self.begun = self.begun.saturating_add(1);
    }

    /// The last one failed so. Whether there is to be another, of a call that may run twice or may not.
    pub fn again(&mut self, retry: &Retry, failure: &Failure, twice: bool) -> bool {
        let most = match (failure.kind(), failure.completed()) {
            (Kind::Unreachable | Kind::Busy, Completed::No) => retry.most.max(retry.elsewhere),
            (Kind::Unreachable | Kind::Busy | Kind::TimedOut, _) if twice => retry.most,
            _ => return false,
        };
        if self.begun > most {
            return false;
        }
        self.maybe |= failure.completed() != Completed::No;
        true
    }

    /// Whether it may have run in an attempt that was not the last one.
    pub fn may_have_run(&self) -> bool {
        self.maybe
    }

    /// What a caller is told of the failure of the last one: no more than is known of all.
    #[must_use]
    pub fn told(&self, failure: Failure) -> Failure {
        if self.maybe && failure.completed() == Completed::No {
            failure.with_completed(Completed::Maybe)
        } else {
            failure
        }
    }
}

/// [`Call::turn`]: an attempt is being handed to the servant; it has failed meanwhile; the servant answers later.
const SERVING: u8 = 0;
const AGAIN: u8 = 1;
const APART: u8 = 2;

/// A call behind the layer, shared by the attempt under way and whoever made it.
struct Call {
    retry: Retry,
    behind: OwnedNext,
    twice: bool,
    until: Option<Instant>,
    turn: AtomicU8,
    state: Mutex<State>,
}

struct State {
    attempts: Attempts,
    /// As it came; gone when it is answered.
    request: Option<Request>,
}

impl Call {
    /// Serves attempts until one does not fail at once.
    fn serve(self: &Arc<Self>) {
        loop {
            self.turn.store(SERVING, Ordering::Release);
            let next = {
                let mut state = lock(&self.state);
                state.attempts.begin();
                let this = Arc::clone(self);
                let answer = move |_: &dyn Link, _: CallId, answer: Answer<'_>| this.answered(answer);
                state.request.as_ref().map(|request| request.again(answer))
            };
            let Some(next) = next else { return };
            self.behind.serve(next);
            let turned = self.turn.compare_exchange(SERVING, APART, Ordering::AcqRel, Ordering::Acquire);
            if turned.is_ok() {
                return;
            }
        }
    }

    /// The servant answered an attempt.
    fn answered(self: &Arc<Self>, answer: Answer<'_>) {
        let failure = match &answer {
            Answer::Failed(failure) => Some(*failure),
            Answer::Passed { encoded, failure } if !encoded.raised => Some(*failure),
            _ => None,
        };
        let mut state = lock(&self.state);
        let late = self.until.is_some_and(|until| Instant::now() >= until);
        if let Some(failure) = failure
            && !late
            && state.attempts.again(&self.retry, failure, self.twice)
        {
            drop(state);
            // Whoever hands the attempt over goes on, so that attempts do not pile up on its stack.
            let turned = self.turn.compare_exchange(SERVING, AGAIN, Ordering::AcqRel, Ordering::Acquire);
            return if turned.is_err() {
                self.serve()
            };
        }
        let (request, attempts) = (state.request.take(), state.attempts);
        // Without the lock: whoever is answered may do anything.
        drop(state);
        let Some(mut request) = request else { return };
        match failure {
            Some(failure) if attempts.may_have_run() && failure.completed() == Completed::No => {
                request.answer(Answer::Failed(&attempts.told(failure.clone())));
            }
            _ => request.answer(answer),
        }
    }
}

impl Layer for Retry {
    fn serve(&self, request: Request, next: Next<'_>) {
        if self.most == 0 || request.expects() == Expects::Nothing {
            return next.serve(request);
        }
        let named = || {
            let name = request.full_name();
            self.twice.iter().any(|pattern| pattern.fits(&name))
        };
        let twice = request.may_run_twice() || (!self.twice.is_empty() && named());
        let call = Call {
            behind: next.later(),
            twice,
            until: self.within.and_then(|time| Instant::now().checked_add(time)),
            turn: AtomicU8::new(SERVING),
            state: Mutex::new(State { attempts: Attempts::default(), request: Some(request) }),
            retry: self.clone(),
        };
        Arc::new(call).serve();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Initiator;

    fn failure(kind: Kind, completed: Completed) -> Failure {
        Failure::new(kind, Initiator::Peer, "it failed").with_completed(completed)
    }

    /// How often a call that fails so each time is attempted, and what its caller is told of whether it ran.
    fn attempted(retry: &Retry, kind: Kind, completed: Completed, twice: bool) -> (u32, Completed) {
        let (failure, mut attempts) = (failure(kind, completed), Attempts::default());
        attempts.begin();
        while attempts.again(retry, &failure, twice) {
            attempts.begin();
        }
        (attempts.begun, attempts.told(failure).completed())
    }

    #[test]
    fn what_did_not_run_is_attempted_again_and_what_may_have_run_only_if_it_may_run_twice() {
        use Completed::{Maybe, No, Yes};
        let retry = Retry::new(2);
        for kind in [Kind::Unreachable, Kind::Busy] {
            assert_eq!(attempted(&retry, kind, No, false), (3, No), "{kind:?}");
            assert_eq!(attempted(&retry, kind, Maybe, false), (1, Maybe), "{kind:?}");
            assert_eq!(attempted(&retry, kind, Maybe, true), (3, Maybe), "{kind:?}");
        }
        assert_eq!(attempted(&retry, Kind::TimedOut, Maybe, false), (1, Maybe));
        assert_eq!(attempted(&retry, Kind::TimedOut, Maybe, true), (3, Maybe));
        // These are answers.
        for kind in [Kind::Refused, Kind::NoObject, Kind::NoOperation, Kind::Internal, Kind::Violation] {
            for completed in [No, Maybe, Yes] {
                assert_eq!(attempted(&retry, kind, completed, true), (1, completed), "{kind:?}");
            }
        }
        // Others are asked once each, where nothing ran.
        let elsewhere = Retry::new(0).at_others(4);
        assert_eq!(attempted(&elsewhere, Kind::Unreachable, No, false), (5, No));
        assert_eq!(attempted(&elsewhere, Kind::Unreachable, Maybe, true), (1, Maybe));
    }

    #[test]
    fn what_may_have_run_is_never_said_not_to_have() {
        let (retry, mut attempts) = (Retry::new(5), Attempts::default());
        let refused = failure(Kind::Unreachable, Completed::No);
        attempts.begin();
        assert!(attempts.again(&retry, &failure(Kind::TimedOut, Completed::Maybe), true));
        attempts.begin();
        assert!(attempts.again(&retry, &refused, true) && attempts.may_have_run());
        assert_eq!(attempts.told(refused).completed(), Completed::Maybe);
    }
}
