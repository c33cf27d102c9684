//! A limit to the time that a servant has.

use super::{Layer, Next};
use crate::timers::TIMERS;
use everywire_model::{Answer, Completed, Expects, Failure, Initiator, Kind, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Answers for a servant that takes too long: its caller is told that the time is over and that the call may have run. The servant is not
/// stopped; what it says afterwards is dropped. Calls that want no answer have no limit.
#[derive(Debug, Clone)]
pub struct TimeLimit {
    time: Duration,
}

impl TimeLimit {
    /// Each call has this long.
    #[must_use]
    pub fn new(time: Duration) -> Self {
        Self { time }
    }
}

impl Layer for TimeLimit {
    fn serve(&self, mut request: Request, next: Next<'_>) {
        let until = Instant::now().checked_add(self.time);
        let (Expects::Reply, Some(until)) = (request.expects(), until) else { return next.serve(request) };
        // Whoever comes first answers: the servant, or the clock.
        let answered = Arc::new(AtomicBool::new(false));
        let (link, id) = (Arc::clone(request.link()), request.id());
        let first = Arc::clone(&answered);
        let late = late(&request.full_name(), self.time);
        let moment = TIMERS.at(until, move || {
            if !first.swap(true, Ordering::AcqRel) {
                link.answer(id, Answer::Failed(&late));
            }
        });
        request.answer_through(move |link, id, answer| {
            if !answered.swap(true, Ordering::AcqRel) {
                TIMERS.cancel(moment);
                link.answer(id, answer);
            }
        });
        next.serve(request);
    }
}

fn late(name: &str, time: Duration) -> Failure {
    let what = format!("{name} took longer than the {time:?} that the server gives a call");
    Failure::new(Kind::TimedOut, Initiator::Peer, what)
        .with_completed(Completed::Maybe)
        .with_hint("it may still run; whoever runs the server can give it more time")
}
