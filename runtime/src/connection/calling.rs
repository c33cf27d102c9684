//! The calling side of a connection: the calling thread sends, then reads its own reply.
//!
//! With several calls under way, one thread reads for all (`company`). Futures have no thread that could
//! read; when only they wait, an event loop reads for them.
//!
//! States, as the fields of `Core` tell them: nobody reads; a calling thread reads (`reading`), whose call is
//! `reader`; an event loop was asked to tell of bytes or of room (`armed`), and reads in `Connection::pump` (`pumping`).
//! A call is in one place at a time: with the reading thread (its outcome comes out of `poll`, or is put into
//! `own`), in `sending` while its thread still sends, or in `waiting`, for another thread or a future.
//!
//! Order for a thread: `begin` (the session numbers and encodes the call), send, `await_outcome`, `pass_on`.
//! Whoever stops reading calls `pass_on`: it appoints the next thread that waits, or else asks the event
//! loop. Without it the others would wait for ever.
//!
//! Invariants: the lock is not held while a thread sleeps for an answer, nor while a servant or a completion
//! runs. Where nothing of the call was sent ([`CallProgress::Unsent`]), the caller may use
//! another connection. A call that is given up is withdrawn from the session first, so that its late answer
//! finds nobody.

use super::call_completion::CallCompletion;
use super::company::{COMPANY, TOGETHER};
use super::core_guard::CoreGuard;
use super::deadlines::sooner;
use super::state::{Connection, Core, PendingCall, RequestedEvents, Waiter};
use crate::failures::timed_out;
use crate::shard;
use everywire_model::{
    Body, Call, CallId, Completed, Event, Expects, Failure, Initiator, Kind, Outcome, Profile,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Reads in one go: by an event loop, before what they brought and other connections get their turn, and before a call begins.
pub(super) const READS: u32 = 64;
/// A thread that looks, and always finds something for others, looks at its own deadline once in so many
/// looks.
const LOOKS: u32 = 64;
/// A connection that has been quiet for this long may have been closed by the peer meanwhile.
const QUIET: Duration = Duration::from_secs(1);

/// How a call begins: a request, or the question whether an object exists (LocateRequest and the like).
#[derive(Clone, Copy)]
pub(crate) enum OutboundRequest<'a> {
    Call(&'a Call<'a>),
    Probe(&'a Profile),
}

/// How far a call has come that was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallProgress {
    /// It has an outcome.
    Ended,
    /// A oneway was sent, or taken by the peer: it is done, and nothing else is known.
    Sent,
    /// It was not sent, since the connection was already over; its outcome is the failure that says why.
    Unsent,
}

impl Connection {
    /// Calls, and waits on this thread. The outcome is handed on from here as it is: it is large, and to move it costs more than to look at it.
    pub(crate) fn call_and_wait(
        &self,
        ask: OutboundRequest<'_>,
        now: Instant,
        until: Option<Instant>,
        progress: &mut CallProgress,
    ) -> Outcome<Body> {
        *progress = CallProgress::Ended;
        let mut core = self.enter();
        let id = match self.begin(&mut core, ask, now) {
            Ok(Ok(id)) => id,
            Ok(Err(failure)) => return Outcome::Failed(failure),
            Err(failure) => {
                *progress = CallProgress::Unsent;
                return Outcome::Failed(failure);
            }
        };
        let oneway = matches!(ask, OutboundRequest::Call(Call { expects: Expects::Nothing, .. }));
        // Where there is one call at a time, what expects nothing has an outcome all the same.
        // `told`: this thread is done when the bytes are out.
        let told = oneway && !self.serial;
        if !told && !core.reading {
            // Before the peer can answer.
            self.disarm(&mut core);
        }
        if (core.reading || core.company > 0) && !told && Self::leaves_unsent(&mut core) {
            // Whoever reads sends it in a moment, with those of others.
            return self.await_own(core, id, until, oneway, progress);
        }
        if let Err(error) = self.flush(&mut core) {
            // What the session says of this call counts: it may know that nothing of it has begun.
            core.sending.push((id, None));
            self.lose(&mut core, &error);
            let at = core.sending.iter().position(|(sent, _)| *sent == id);
            if let Some(outcome) = at.and_then(|at| core.sending.swap_remove(at).1) {
                self.pass_on(core);
                return outcome;
            }
        }
        if told {
            core = match self.send_all(core, until) {
                Ok(core) => core,
                Err(failure) => return Outcome::Failed(failure),
            };
        } else if core.reading && !core.session.transmit().is_empty() {
            // Whoever reads may have the answer before this thread has noticed that all is sent.
            core.sending.push((id, None));
            let sent = self.send_all(core, until);
            let (back, failure) = match sent {
                Ok(core) => (core, None),
                Err(failure) => (self.enter(), Some(failure)),
            };
            core = back;
            let at = core.sending.iter().position(|(sent, _)| *sent == id);
            let kept = at.and_then(|at| core.sending.swap_remove(at).1);
            if let Some(outcome) = kept.or_else(|| failure.map(Outcome::Failed)) {
                self.pass_on(core);
                if oneway && matches!(outcome, Outcome::Done(_)) {
                    *progress = CallProgress::Sent;
                }
                return outcome;
            }
        }
        if told {
            self.pass_on(core);
            *progress = CallProgress::Sent;
            return Outcome::Done(Body::empty());
        }
        // Also that of a oneway that has one: then the next one finds this connection free, and they stay in order.
        self.await_own(core, id, until, oneway, progress)
    }

    /// Waits for the outcome of a call (`await_outcome`), which may be a oneway.
    #[inline(always)]
    fn await_own(
        &self,
        core: CoreGuard<'_>,
        id: CallId,
        until: Option<Instant>,
        oneway: bool,
        progress: &mut CallProgress,
    ) -> Outcome<Body> {
        let outcome = self.await_outcome(core, id, until);
        if oneway && matches!(outcome, Outcome::Done(_)) {
            *progress = CallProgress::Sent;
        }
        outcome
    }

    /// Several threads call. Whether a request waits for a moment, so that it leaves with those of others:
    /// there is a reader that will send it, and little is waiting so far.
    #[cold]
    fn leaves_unsent(core: &mut Core) -> bool {
        if core.reading {
            core.company = COMPANY;
        }
        (core.looking || !core.reading) && core.session.unsent() <= TOGETHER
    }

    /// Waits for the outcome of a call that was begun: reads, unless another thread does.
    #[inline(always)]
    pub(super) fn await_outcome(
        &self,
        core: CoreGuard<'_>,
        id: CallId,
        until: Option<Instant>,
    ) -> Outcome<Body> {
        if core.reading { self.wait_for_reader(core, id, until) } else { self.read_until(core, id, until) }
    }

    /// Calls without waiting; `asker` is told the outcome on some thread, never under the lock. `Err` gives
    /// it back: the call was not sent, since the connection was already over.
    pub(crate) fn call_and_go(
        self: &Arc<Self>,
        call: Call<'_>,
        now: Instant,
        until: Option<Instant>,
        asker: CallCompletion,
    ) -> Result<(), (Failure, CallCompletion)> {
        let mut core = self.enter();
        let id = match self.begin(&mut core, OutboundRequest::Call(&call), now) {
            Ok(Ok(id)) => id,
            Ok(Err(failure)) => {
                drop(core);
                asker.tell(Outcome::Failed(failure));
                return Ok(());
            }
            Err(failure) => return Err((failure, asker)),
        };
        core.waiting.push(PendingCall { id, until, waiter: Waiter::Future(asker) });
        self.send_or_lose(&mut core);
        if self.is_serving() {
            // An event loop reads it all the time.
            self.await_room(&mut core);
            self.remind(&mut core);
        } else {
            // That reminds, too.
            self.arm(&mut core);
        }
        Ok(())
    }

    /// Sends a call that has no reply, on a connection that serves. What the transport does not take at once
    /// is sent by the event loop.
    pub(super) fn tell(&self, call: Call<'_>) -> Result<(), Failure> {
        let mut core = self.enter();
        self.begin(&mut core, OutboundRequest::Call(&call), Instant::now())??;
        // What the servant answers and emits goes with it, if it is this thread that sends that.
        if !self.sends_later() {
            if let Err(error) = self.flush(&mut core) {
                let failure = self.broken(&core, &error);
                self.fail(&mut core, failure.clone());
                return Err(failure);
            }
            self.await_room(&mut core);
            // The loop may not come by before the peer reads.
            self.remind(&mut core);
            self.weigh(&mut core);
        }
        Ok(())
    }

    /// Withdraws a call of a future. Returns whether the call was under way here.
    pub(crate) fn withdraw(&self, ticket: u64) -> bool {
        let mut core = self.enter();
        let at = core
            .waiting
            .iter()
            .position(|w| matches!(&w.waiter, Waiter::Future(asker) if asker.ticket == ticket));
        let Some(at) = at else { return false };
        let waiting = core.waiting.swap_remove(at);
        self.give_up(&mut core, waiting.id);
        drop(core);
        drop(waiting);
        true
    }

    /// The event loop saw bytes that nobody waits for on a thread, or room for bytes to send: sends, reads at
    /// most `READS` times, and asks the loop for the next event.
    pub(crate) fn pump(self: &Arc<Self>) {
        let mut core = self.enter();
        if !self.is_lasting() || core.armed.room {
            core.armed = RequestedEvents::default();
        }
        if core.failed.is_some() {
            return;
        }
        if !self.send_or_lose(&mut core) {
            return;
        }
        if core.parting.is_some() {
            self.finish_sent(&mut core, Instant::now());
        }
        if !core.reading {
            // Listeners that are behind wait, unless a reply is due.
            let mut reads = 0;
            core.pumping = true;
            while reads < READS
                && (!self.is_behind() || !core.waiting.is_empty())
                && let Ok(true) = self.fill(&mut core)
            {
                reads += 1;
                self.deliver_all(&mut core);
                if self.is_lasting() && core.session.wanted() == 0 {
                    // The kernel tells if there is more.
                    break;
                }
            }
            core.pumping = false;
            if self.stream.peer_gone() && core.failed.is_none() && !self.stream.before_sleep(false) {
                let failure = self.broken(&core, &std::io::ErrorKind::UnexpectedEof.into());
                self.fail(&mut core, failure);
            }
            self.stream.after_sleep(true);
            if self.is_lasting() && core.waiting.is_empty() && self.is_behind() {
                // The kernel would tell all the time of what is not read.
                self.disarm(&mut core);
            }
        }
        self.arm(&mut core);
    }

    /// Begins a call in the session. `Err`: the connection is over, the call belongs on another one.
    /// `Ok(Err)`: the session refuses this call (it does not encode, say), and goes on with others.
    #[inline(always)]
    fn begin(
        &self,
        core: &mut Core,
        ask: OutboundRequest<'_>,
        now: Instant,
    ) -> Result<Result<CallId, Failure>, Failure> {
        // Mostly the clock has not ticked since the last call. Where calls are served an event loop reads all the time, and knows what to
        // do with them.
        if now != core.used
            && now > core.used + QUIET
            && !core.reading
            && core.failed.is_none()
            && !self.is_serving()
        {
            self.notice_goodbye(core);
        }
        core.used = now;
        if let Some(failure) = &core.failed {
            return Err(failure.clone());
        }
        let begun = match ask {
            OutboundRequest::Call(call) => core.session.start(now, call),
            OutboundRequest::Probe(profile) => core.session.probe(now, profile),
        };
        match begun {
            // The peer has said goodbye, but nobody has looked yet: the call belongs on another connection.
            Err(failure) if failure.kind() == Kind::Unreachable && failure.completed() == Completed::No => {
                self.fail(core, failure.clone());
                Err(failure)
            }
            begun => {
                if self.serial {
                    // At once: the lock may be held until the reply is there.
                    self.turns.note(true);
                }
                Ok(begun)
            }
        }
    }

    /// Waits until everything is handed to the transport, or until the time is over: then the connection
    /// ends, since nothing can follow half a message.
    pub(super) fn send_all<'c>(
        &'c self,
        mut core: CoreGuard<'c>,
        until: Option<Instant>,
    ) -> Result<CoreGuard<'c>, Failure> {
        loop {
            if let Some(failure) = core.failed.clone() {
                return Err(failure);
            }
            if core.session.transmit().is_empty() {
                return Ok(core);
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                // Half a message is out: nothing else can follow it.
                self.fail(&mut core, timed_out(&self.endpoint));
                continue;
            }
            if core.reading {
                self.send_or_lose(&mut core);
            } else {
                // Reading meanwhile keeps two sides that send much to each other from waiting for ever.
                self.make_progress(&mut core);
                self.deliver_all(&mut core);
            }
            if core.failed.is_none() && !core.session.transmit().is_empty() {
                core = self.sleep(core, until);
            }
        }
    }

    /// Reads until the reply to `id` is there, for everybody. It lets go of the lock while it sleeps or lets
    /// others run, and for good when it returns.
    pub(super) fn read_until<'c>(
        &'c self,
        mut core: CoreGuard<'c>,
        id: CallId,
        until: Option<Instant>,
    ) -> Outcome<Body> {
        (core.reading, core.looking) = (true, false);
        (core.reader, core.own) = (Some(id), None);
        if core.company > 0 {
            core = self.send_together(core);
        } else {
            core.spin_wait.after_sending(Some(&self.stream));
        }
        let mut looks = 0_u32;
        loop {
            loop {
                if core.session.has_reply(id) {
                    return self.take_own(core, id);
                }
                match core.session.poll() {
                    Some(Event::Reply { id: replied, outcome }) if replied == id => {
                        return self.stop_reading(core, outcome);
                    }
                    Some(other) => self.deliver(&mut core, other),
                    None => break,
                }
            }
            if core.failed.is_none()
                && let Some(outcome) = core.own.take()
            {
                // Another thread handed out the events while this one let go of the lock: the event loop, when it looked at the time.
                core.reading = false;
                core.spin_wait.rewarded();
                self.pass_on(core);
                return outcome;
            }
            if let Some(failure) = core.failed.clone() {
                core.reading = false;
                // The session knows better whether this call may have run.
                let own = core.own.take();
                self.pass_on(core);
                return own.unwrap_or(Outcome::Failed(failure));
            }
            let blind = looks == 0 && self.sleeps_at_once(&mut core);
            let moved = !blind && self.make_progress(&mut core);
            if looks == 0 && !blind && core.spin_wait.sleeps() && self.is_told_of() && !self.is_over_tcp() {
                core.spin_wait.glanced(moved);
            }
            if moved {
                core.spin_wait.rewarded();
            }
            let again = moved || (!blind && core.spin_wait.wants_another_look());
            looks = looks.wrapping_add(1);
            // Where memory is short, room is made when the lock is let go.
            let behind = moved && (core.heavy || self.backlog.is_behind());
            // Also a thread that always has something to read for the others ends in time.
            if (!again || behind || looks.is_multiple_of(LOOKS))
                && until.is_some_and(|until| until <= Instant::now())
            {
                core.reading = false;
                self.give_up(&mut core, id);
                self.pass_on(core);
                return Outcome::Failed(timed_out(&self.endpoint));
            }
            if behind {
                core = self.hold_reading(core, until);
                continue;
            }
            if again {
                if core.company > 0 {
                    if !moved {
                        core = self.let_others(core);
                    }
                    continue;
                }
                if !moved {
                    core.spin_wait.give_way();
                }
                if self.contenders.load(Ordering::Relaxed) > 0 {
                    drop(core);
                    rustix::thread::sched_yield();
                    core = self.enter();
                }
                continue;
            }
            let due = self.keep_time(&mut core);
            core = self.sleep_and_read(core, sooner(until, due));
        }
    }

    /// Stops reading with what has come for the thread's own call.
    fn stop_reading(&self, mut core: CoreGuard<'_>, outcome: Outcome<Body>) -> Outcome<Body> {
        self.end_reading(&mut core);
        self.pass_on(core);
        outcome
    }

    /// The same, where it is still with the session: so it is moved once.
    #[inline(always)]
    fn take_own(&self, mut core: CoreGuard<'_>, id: CallId) -> Outcome<Body> {
        let outcome = core.session.take_reply(id);
        self.end_reading(&mut core);
        self.pass_on(core);
        outcome
    }

    #[inline]
    fn end_reading(&self, core: &mut Core) {
        // A goodbye behind the reply must be known before the next call.
        while let Some(other) = core.session.poll() {
            self.deliver(core, other);
        }
        core.reading = false;
        core.spin_wait.rewarded();
    }

    /// Forgets a call. Where there is one at a time, nothing else can begin before its answer has come, and nobody reads that
    /// any more: then the connection has had its day.
    pub(super) fn give_up(&self, core: &mut Core, id: CallId) {
        let before = core.session.outstanding();
        core.session.cancel(id);
        let _ = self.flush(core);
        if self.serial && before > 0 && core.session.outstanding() == before {
            let message = "a call on this connection was given up before its answer came";
            let failure = Failure::new(Kind::Unreachable, Initiator::Here, message).at(&self.endpoint);
            self.fail(core, failure);
        }
    }

    /// Looks whether the peer has left meanwhile, if nobody uses the connection now.
    pub(crate) fn notice_end(&self) {
        let Ok(core) = self.core.try_lock() else { return };
        let mut core = CoreGuard::new(self, core);
        if !core.reading && core.waiting.is_empty() {
            self.make_progress(&mut core);
            // What came all the same is somebody's who listens.
            self.deliver_all(&mut core);
        }
    }

    /// Moves bytes. Returns whether any came in.
    pub(super) fn make_progress(&self, core: &mut Core) -> bool {
        if !core.session.transmit().is_empty()
            && let Err(error) = self.flush(core)
        {
            self.lose(core, &error);
        }
        core.failed.is_none() && matches!(self.fill(core), Ok(true))
    }

    /// Sleeps without the lock until something can be done.
    pub(super) fn sleep<'c>(&'c self, mut core: CoreGuard<'c>, until: Option<Instant>) -> CoreGuard<'c> {
        let writing = !core.session.transmit().is_empty();
        // What is put off must not wait until this thread has its own outcome: letting go does it.
        drop(core);
        // A servant that calls out must not keep its shard from others.
        shard::about_to_block();
        let waited = self.stream.wait(writing, until);
        let mut core = self.enter();
        if let Err(error) = waited {
            let failure = self.broken(&core, &error);
            self.fail(&mut core, failure);
        }
        core
    }

    /// This thread reads no more: appoints the next one, or the event loop if only futures wait.
    #[inline]
    pub(super) fn pass_on(&self, mut core: CoreGuard<'_>) {
        core.looking = false;
        if core.waiting.is_empty() {
            core.company = core.company.saturating_sub(1);
        }
        if !core.reading && (!core.waiting.is_empty() || self.is_listening(&core)) {
            self.appoint_next(core);
        }
    }

    /// Who reads next, where somebody waits or listens and nobody reads.
    fn appoint_next(&self, mut core: CoreGuard<'_>) {
        if core.waiting.is_empty() {
            self.arm(&mut core);
        } else {
            let next = core.waiting.iter().find_map(|waiting| match &waiting.waiter {
                Waiter::Thread(reply_slot) => Some(Arc::clone(reply_slot)),
                Waiter::Future(..) => None,
            });
            match next {
                Some(reply_slot) => {
                    core.reading = true;
                    core.looking = reply_slot.appoint();
                }
                None => self.arm(&mut core),
            }
        }
    }

    /// Asks an event loop to read for futures and listeners, and to send what did not go out at once. While a thread reads,
    /// the loop only sends.
    pub(super) fn arm(&self, core: &mut Core) {
        if core.failed.is_some() {
            return;
        }
        self.remind(core);
        let listening = self.is_listening(core) || self.is_lasting();
        let is_unread = core.waiting.is_empty() && listening && self.is_behind();
        if is_unread || core.unread_since.is_some() {
            self.leave_unread(core, is_unread, Instant::now());
        }
        let awaited = !core.waiting.is_empty() || (listening && !is_unread);
        let wanted =
            RequestedEvents { bytes: awaited && !core.reading, room: !core.session.transmit().is_empty() };
        let bell = self.stream.watched().1.is_some();
        if wanted == RequestedEvents::default() || (wanted == core.armed && !bell) {
            return;
        }
        if let Some(registration) = self.registration() {
            // Asked for before and not told yet: still wanted. A bell must be asked for anew, a thread may have heard it.
            core.armed = RequestedEvents { bytes: wanted.bytes || core.armed.bytes, room: wanted.room };
            registration.arm(&self.stream, core.armed.bytes, wanted.room, self.is_lasting());
        }
    }

    /// A thread is about to read, for all: an event loop that was asked to would only be woken for nothing, and take the CPU from the
    /// peer. When the thread has read, the loop is asked again.
    #[inline]
    fn disarm(&self, core: &mut Core) {
        if core.armed.bytes
            && let Some(registration) = self.registration()
        {
            core.armed.bytes = false;
            registration.disarm(&self.stream, core.armed.room);
            self.stream.after_sleep(false);
        }
    }
}
