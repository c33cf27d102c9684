//! Time: when a connection is to be looked at, and what has become due by then.

use super::state::{Connection, Core, LINGER, PendingCall, READS, Waiter};
use crate::clock::TICK;
use crate::failures::timed_out;
use bytes::BytesMut;
use everywire_model::{Failure, Initiator, Kind, Outcome};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// When a session is looked at again whose deadline has passed and which may have more to do.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl Connection {
    /// Time has passed: does what the session, the quotas and the calls of futures have due. Returns when to
    /// be asked again; nothing, if the connection is over. Threads that wait look at their own time.
    pub(crate) fn tick(self: &Arc<Self>, now: Instant) -> Option<Instant> {
        let mut core = self.enter();
        if core.failed.is_some() {
            return None;
        }
        if core.unread_since.is_some() {
            let is_unread = core.waiting.is_empty() && self.is_behind();
            self.leave_unread(&mut core, is_unread, now);
        }
        let is_due = |core: &Core| core.session.deadline().is_some_and(|deadline| deadline <= now);
        if (is_due(&core) || self.is_silent(&core, now)) && self.takes_what_waits(&mut core, now) {
            self.serve_soon();
        }
        if core.failed.is_some() {
            return None;
        }
        let due = is_due(&core);
        if due && let Err(violation) = core.session.expire(now) {
            self.refuse(&mut core, violation);
        }
        if !self.is_serving() {
            self.deliver_all(&mut core);
        } else if due {
            // There may be calls among its events, which servants answer; and its end, once its goodbye is sent.
            self.serve_soon();
        }
        if core.draining.is_some_and(|until| until <= now) {
            self.fail(
                &mut core,
                Failure::new(Kind::Violation, Initiator::Peer, "the connection was refused"),
            );
        }
        if self.is_silent(&core, now) {
            let what = if core.served { "was silent for too long" } else { "sent no whole message in time" };
            if !core.served && !core.turned_away {
                // Slow or silent peers hold a connection each: whoever runs the server wants to know of them.
                let why = "it sent no whole message in the time of the quota `first_message`";
                self.tell_refused(&mut core, why.to_owned());
            }
            core.session.close();
            let _ = self.flush(&mut core);
            self.fail(&mut core, Failure::new(Kind::TimedOut, Initiator::Peer, format!("the peer {what}")));
        }
        let is_late = |w: &mut PendingCall| {
            matches!(w.waiter, Waiter::Future(..)) && w.until.is_some_and(|until| until <= now)
        };
        let expired: Vec<_> = core.waiting.extract_if(.., is_late).collect();
        for waiting in expired {
            self.give_up(&mut core, waiting.id);
            core.complete(waiting, Outcome::Failed(timed_out(&self.endpoint)));
        }
        let _ = self.flush(&mut core);
        if core.parting.is_some() {
            self.finish_sent(&mut core, now);
        }
        // A session that has said goodbye ends when that is sent, and nobody else looks at a connection that is silent.
        if !self.is_serving() {
            self.deliver_all(&mut core);
        }
        if core.failed.is_some() {
            return None;
        }
        // A buffer for large messages is given back after a second of quiet.
        if core.large && core.input.is_empty() && now.duration_since(core.used) > Duration::from_secs(1) {
            core.input = BytesMut::new();
            core.large = false;
            core.session.transmit().shrink();
        }
        self.weigh(&mut core);
        // A session whose deadline stands still must not keep its event loop busy.
        core.reminded = self.next_deadline(&core).map(|next| next.max(now + TICK));
        core.reminded_of_silence = self.will_be_told_of_silence(&core);
        core.reminded
    }

    /// Whether the peer has been silent for too long by now.
    fn is_silent(&self, core: &Core, now: Instant) -> bool {
        self.silence_deadline(core).is_some_and(|deadline| deadline <= now)
    }

    /// Reads what the peer has sent and nobody had the time to read. Returns whether there was something: then it was not the peer that was
    /// slow. Its answer may wait for one of this side, so the time for its first message begins anew; but only once, as others send a
    /// little again and again.
    #[cold]
    fn takes_what_waits(&self, core: &mut Core, now: Instant) -> bool {
        if !self.is_serving() || !core.watched.reading || core.draining.is_some() {
            return false;
        }
        let mut came = false;
        for _ in 0..READS {
            if core.failed.is_some() || !matches!(self.fill(core), Ok(true)) {
                break;
            }
            came = true;
            if core.session.wanted() == 0 {
                break;
            }
        }
        if came && core.failed.is_none() {
            if self.is_silent(core, now) {
                core.anew = core.anew.or(Some(now));
            }
            core.used = now;
        }
        came
    }

    /// Does what the session has to do by now, before its thread sleeps. Returns when it wants to be looked at again.
    pub(super) fn keep_time(&self, core: &mut Core) -> Option<Instant> {
        let due = core.session.deadline()?;
        let now = Instant::now();
        if due > now {
            return Some(due);
        }
        self.leave_unread(core, false, now);
        if let Err(violation) = core.session.expire(now) {
            self.refuse(core, violation);
        }
        Some(now + LOOK_AGAIN)
    }

    /// Nothing is read from now on, or something is again. For as long as nothing was, the peer is not slow.
    #[cold]
    pub(super) fn leave_unread(&self, core: &mut Core, is_unread: bool, now: Instant) {
        let since = std::mem::replace(&mut core.unread_since, is_unread.then_some(now));
        if let Some(since) = since {
            core.session.postpone(now.saturating_duration_since(since));
        }
    }

    /// Has the event loop look at the clock in time for the next deadline, if it would not do so anyway. A
    /// deadline that moves back needs no new reminder: the loop comes by too early then, and asks again.
    #[inline]
    pub(super) fn remind(&self, core: &mut Core) {
        // After most calls: nothing is due before the next look.
        let silence = core.reminded_of_silence || self.has_no_silence_deadline(core);
        let known = silence && core.waiting.is_empty() && core.draining.is_none() && core.parting.is_none();
        if !known || core.session.deadline().is_some_and(|due| core.reminded.is_none_or(|next| due < next)) {
            self.remind_of_all(core);
        }
    }

    fn remind_of_all(&self, core: &mut Core) {
        if let Some(deadline) = self.next_deadline(core)
            && core.reminded.is_none_or(|reminded| deadline < reminded)
            && let Some(registration) = self.registration()
        {
            registration.remind(deadline, core.reminded.replace(deadline));
        }
        core.reminded_of_silence = self.will_be_told_of_silence(core);
    }

    /// Whether the reminder that is set comes no later than the deadline for silence, which only moves back
    /// from now on: then calls need not look at it.
    fn will_be_told_of_silence(&self, core: &Core) -> bool {
        // That of a listener that is turned away moves forward once.
        let silence = self.silence_deadline(core).filter(|_| core.served && !core.turned_away);
        silence.zip(core.reminded).is_some_and(|(silence, reminded)| reminded <= silence)
    }

    /// A connection that was just accepted wants to be looked at in time.
    pub(crate) fn remind_first(&self) {
        self.remind(&mut self.enter());
    }

    /// Whether nobody minds the silence of the peer: of one that this side has called, or of a listener that has shown
    /// itself and takes what it is sent.
    #[inline]
    fn has_no_silence_deadline(&self, core: &Core) -> bool {
        let listener = core.served && !core.turned_away && !core.watched.writing;
        !core.large && (!self.is_accepted() || (listener && self.listens(core)))
    }

    /// Whether calls, or signals, go to the peer: whoever is silent may wait for them, for longer than the wire's own
    /// limits allow only.
    #[inline]
    fn listens(&self, core: &Core) -> bool {
        (core.listens && self.node.directory.tells()) || (self.both_ways && core.session.peer_serves())
    }

    /// When the peer has been silent for too long, by the quotas; `None`: it may be silent for ever. Counted
    /// from the connection's begin until its first whole message (or from when this side was late), and from the last bytes since then.
    fn silence_deadline(&self, core: &Core) -> Option<Instant> {
        let quiet = core.session.outstanding() == 0 && !self.listens(core);
        if !self.is_accepted() {
            None
        } else if core.turned_away {
            Some(core.begun + LINGER)
        } else if core.served || core.session.outstanding() > 0 {
            // Whoever takes nothing of what was answered is as good as silent.
            let silent = quiet || core.watched.writing;
            self.allowance.quotas.idle.filter(|_| silent).and_then(|idle| core.used.checked_add(idle))
        } else {
            core.anew.unwrap_or(core.begun).checked_add(self.allowance.quotas.first_message)
        }
    }

    /// The earliest of what the session, the end of lingering, silence, the large buffer and the calls of
    /// others have due.
    fn next_deadline(&self, core: &Core) -> Option<Instant> {
        let mut next = sooner(core.session.deadline(), sooner(core.draining, core.parting));
        next = sooner(next, self.silence_deadline(core));
        if core.large && core.input.is_empty() {
            next = sooner(next, Some(core.used + Duration::from_secs(2)));
        }
        core.waiting.iter().fold(next, |next, waiting| sooner(next, waiting.until))
    }
}

#[inline]
pub(super) fn sooner(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
