//! Goodbyes: whoever ends a connection says so, and where the peer has to answer, hears it out for a moment.
//!
//! A connection whose last caller is gone may still have something to send: oneway calls that the peer has had no time to read. It stays
//! for those (`Core::parting`), and its event loop sends them; no thread waits. When all is sent, or the peer has taken too long
//! (`LAST_WORDS`), it ends as any other.

use super::calling::READS;
use super::state::{Connection, Core, DeferredAction, Role, SERVING};
use crate::sync::lock;
use crate::worker_pool::{Job, blocking_records};
use everywire_model::{Failure, Initiator, Kind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the peer may take to answer a goodbye, where the session waits for that (`Session::is_closing`).
const FAREWELL: Duration = Duration::from_millis(500);

/// How long a peer may take to read what was said before the goodbye.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Connection {
    /// Notices a goodbye before a connection is trusted with a call. It is not looked for behind what a peer
    /// says without end, who would hold up the call for as long, whatever its deadline.
    #[cold]
    pub(super) fn notice_goodbye(&self, core: &mut Core) {
        for _ in 0..READS {
            if !matches!(self.fill(core), Ok(true)) {
                break;
            }
            self.deliver_all(core);
        }
        self.deliver_all(core);
    }

    /// Ends it with a goodbye: for quotas and for shutting down. May take `FAREWELL`, with the lock held:
    /// nobody else has anything to do on it any more.
    pub(crate) fn cut(&self, why: &Failure) {
        let mut core = self.enter();
        if core.failed.is_none() {
            self.part(&mut core);
        }
        self.fail(&mut core, why.clone());
    }

    /// Ends it with a goodbye (`cut`), as soon as everything that this side has said is sent. Nobody calls on it any more.
    pub(crate) fn finish(&self) {
        let mut core = self.enter();
        if core.failed.is_some() {
            return;
        }
        if self.flush(&mut core).is_ok() && core.session.unsent() > 0 && self.registration().is_some() {
            core.parting = Instant::now().checked_add(LAST_WORDS);
            return self.arm(&mut core);
        }
        self.end_unused(&mut core);
    }

    /// The event loop has sent something, or time has passed: everything is sent, or it took too long.
    #[cold]
    pub(super) fn finish_sent(self: &Arc<Self>, core: &mut Core, now: Instant) {
        if core.session.unsent() == 0 {
            core.parting = None;
            // A goodbye may take a moment. Begun without the lock: where no other thread is left, it is this one that says it.
            let this = Arc::clone(self);
            let run = Box::new(move || {
                let last = Arc::clone(&this);
                this.node.apart(Box::new(move || last.end_unused(&mut last.enter())));
                true
            });
            core.deferred.push(DeferredAction::Run(Job { run, records: blocking_records(0), index: 0 }));
        } else if core.parting.is_some_and(|until| until <= now) {
            self.fail(core, unused());
        }
    }

    fn end_unused(&self, core: &mut Core) {
        if core.failed.is_none() {
            self.part(core);
        }
        self.fail(core, unused());
    }

    /// It finds no place here: it is told so in the wire's words, and ends.
    pub(crate) fn turn_away(&self, why: &Failure) {
        self.node.turned_away.fetch_add(1, Ordering::Relaxed);
        self.turned_away.store(true, Ordering::Relaxed);
        let mut core = self.enter();
        let answers_first = core.session.turn_away(why);
        core.turned_away = true;
        if answers_first {
            return;
        }
        let _ = self.flush(&mut core);
        self.linger(&mut core);
    }

    /// Ends it with a goodbye if no call is under way on it, beside that of the servant which runs on this thread: that one stops the
    /// node. Whether nobody has to wait for it any more.
    pub(crate) fn retire(&self, why: &Failure) -> bool {
        let stops = SERVING.get() == std::ptr::from_ref(self).addr() && crate::local_target::is_waited_for();
        let mut core = self.enter();
        if core.failed.is_some() {
            return true;
        }
        if !core.session.transmit().is_empty() || core.session.outstanding() > usize::from(stops) {
            return false;
        }
        // Where it serves behind a router it is known there until the node is gone.
        if !stops && self.is_accepted() {
            self.part(&mut core);
            self.fail(&mut core, why.clone());
        }
        true
    }

    /// Says goodbye, and waits for its answer at most `FAREWELL`. It is a courtesy: who does not take it is
    /// left without.
    fn part(&self, core: &mut Core) {
        core.session.close();
        let mut fine = self.flush(core).is_ok();
        let until = Instant::now() + FAREWELL;
        while fine && core.failed.is_none() && core.session.is_closing() && Instant::now() < until {
            if !self.make_progress(core) && core.failed.is_none() {
                let writing = !core.session.transmit().is_empty();
                fine = self.stream.wait(writing, Some(until)).is_ok();
            }
            self.deliver_all(core);
        }
        let _ = self.flush(core);
    }
}

fn unused() -> Failure {
    Failure::new(Kind::Unreachable, Initiator::Here, "nobody calls over this connection any more")
}

impl Drop for Connection {
    /// Nobody calls on it any more. Its peer learns that from itself, not from the silence behind it.
    fn drop(&mut self) {
        if self.number != 0 {
            self.allowance.shares.leave(self.number);
        }
        if self.turned_away.load(Ordering::Relaxed) {
            self.node.turned_away.fetch_sub(1, Ordering::Relaxed);
        }
        let mut core = lock(&self.core);
        if self.role == Role::Calling && core.failed.is_none() && core.peer.is_some() {
            self.part(&mut core);
        }
    }
}
