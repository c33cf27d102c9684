//! What becomes of a session in time.
//!
//! Over HTTP a service says nothing unasked: its client's repetitions are what makes it repeat, and only
//! long silence ends it. Everybody else repeats, acknowledges and gives up by `deadline` and `expire`,
//! which the connection's own clock calls.

use super::{Session, Stage};
use crate::soap::rm::{INACTIVITY, REPEATS};
use everywire_model::{Completed, Failure, Initiator, Kind};
use std::time::Instant;

impl Session {
    /// When something is due.
    pub(in crate::soap) fn deadline(&self) -> Option<Instant> {
        if self.is_over() {
            return None;
        }
        let asking = match self.stage {
            Stage::Asking(_, due) => Some(due),
            _ => None,
        };
        let repeats = if self.role.is_timed() { self.out.due() } else { None };
        let tells = if self.role.in_turns { None } else { self.came.due() };
        [asking, repeats, tells, self.silence_ends()].into_iter().flatten().min()
    }

    /// When the peer has been silent for too long. What is asked late has as much time as what is asked early.
    /// It counts from the first message that was sent and had no echo, or from the last that came. Only an
    /// open session ends so.
    fn silence_ends(&self) -> Option<Instant> {
        let since = self.spoke.or(self.heard).filter(|_| matches!(self.stage, Stage::Open));
        since.map(|since| since + INACTIVITY)
    }

    /// Why no message may be given to it any more, though nobody has ended it: the peer has probably left it.
    pub(in crate::soap) fn refuses(&self, now: Instant) -> Option<Failure> {
        let is_silent = self.silence_ends().is_some_and(|end| end <= now);
        is_silent.then(|| silent().with_completed(Completed::No))
    }

    /// Time has passed.
    ///
    /// # Errors
    /// The peer is gone, or a message stays away.
    pub(in crate::soap) fn expire(&mut self, now: Instant) -> Result<(), Failure> {
        let gone = |what: &str, code: &str| {
            Failure::new(Kind::Unreachable, Initiator::Peer, what).with_code(format!("rm {code}"))
        };
        // The last CreateSequence has waited as long as it may.
        if let Stage::Asking(times, due) = self.stage
            && due <= now
            && times >= REPEATS
        {
            // Nothing was sent that leads to a call.
            return Err(gone("the service never granted a reliable session", "MaxRetryCount"));
        }
        if self.silence_ends().is_some_and(|end| end <= now) {
            return Err(silent());
        }
        if self.came.is_torn(now) {
            let gap = gone("a message of a reliable session is missing, and stays away", "Gap");
            return Err(gap.with_completed(Completed::Maybe));
        }
        if self.role.is_timed() { self.out.expire(now) } else { Ok(()) }
    }
}

/// The peer says nothing any more: what it was asked may have been done.
#[cold]
fn silent() -> Failure {
    let what = "the peer of a reliable session has said nothing for ten minutes";
    Failure::new(Kind::Unreachable, Initiator::Peer, what)
        .with_code("rm InactivityTimeout")
        .with_completed(Completed::Maybe)
}
