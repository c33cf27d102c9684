//! The serving side of a connection: calls come out of the session, servants answer them.
//!
//! States: *reading* and *serving* in turn, on the thread that leads the event loop (`Connection::serve`);
//! *full*: the peer does not read its answers, and more of them wait than the quota `unsent` allows, so
//! nothing is read until there is room; *paused*: the session reads nothing until somebody wakes it
//! (`read_paused`); *stranger*: what came the last time had no whole message in it, so it is watched among
//! the strangers (`shard`).
//!
//! A call goes one of four ways: its servant runs on this thread; on a thread of the pool, if its operation
//! was seen to block (`apart`); behind the calls before it, if its servant keeps their order (`call_in_turn`); or it is
//! answered with a failure here.
//!
//! Invariants: the lock is not held while a servant runs. Servants answer by `Link::answer`, from any thread;
//! answers of the thread that serves wait in the session until all that came together is served, and leave in
//! one write. A thread that lost the lead while its servant ran touches nothing more than its own answers:
//! the new leader serves on. A servant that panics drops its request, which answers the caller. A connection has
//! turns: after `TURN` events, or `TURN_ANSWERS` bytes of answers, others are served before it goes on with what it has read,
//! and a task is queued that does so (`next_turn`).
//!
//! Bounds for hostile peers: bytes read for one message in one go (`READS`), events in one turn, bytes of answers that wait
//! (`unsent`), bodies of calls under way and calls that wait for their turn count as memory of the connection
//! (`weighing`), silence ends it (`deadlines`). Messages themselves are checked by the session; a violation
//! ends the connection.

use super::backward::ServingScope;
use super::core_guard::CoreGuard;
use super::state::{Connection, Core, DeferredAction, READS, ServeOutcome, Watch, serves};
use crate::clock::lately;
use crate::directory::{CachedLookup, LookupResult};
use crate::failures::{ending, no_object};
use crate::private_count::PrivateConnection;
use crate::shard::Leader;
use crate::shares::Source;
use crate::spans;
use crate::sync::lock;
use crate::worker_pool::BlockingRecord;
use everywire_model::{
    Answer, CallId, Endpoint, Event, Failure, Incoming, Initiator, Kind, Link, Request, Servant,
    visit::Nothing,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Events of one connection in one turn: so many small calls take some tens of microseconds, and are answered in one write.
const TURN: u32 = 64;
/// Bytes of answers that a turn ends with, unless it was one call alone: those of large answers, which take milliseconds.
const TURN_ANSWERS: usize = 256 << 10;

impl Connection {
    /// Serves what has arrived: reads, has servants answer, sends, and sets what the event loop watches for
    /// next. Only the thread that leads the loop calls it. `eager`: it is read in any case, and not only if
    /// its caller has all its answers.
    pub(crate) fn serve(self: &Arc<Self>, leader: &Leader, eager: bool) -> ServeOutcome {
        let mut served = ServeOutcome::Nothing;
        let mut core = self.enter();
        let (mut reads, mut events) = (0, 0);
        let mut again = false;
        // Whether it is the turn of others, though more may have been read.
        let mut turned = false;
        // Whether all that there was has been sent, and nothing has come since.
        let mut sent = false;
        let unsent = core.session.unsent();
        // Whether more waits for the peer to read than it may.
        let mut full = self.owes_too_much(&core, unsent);
        if !full {
            self.unpark(&mut core);
        }
        // Everything that was read is served before this ends, unless the peer does not read its answers, or it is the turn of others:
        // nobody else would be told of a call left in the session.
        loop {
            if full {
                full = !self.send_replies(&mut core, true);
                if full {
                    // It goes on when there is room.
                    break;
                }
                self.unpark(&mut core);
            }
            let mut event = core.session.poll();
            if event.is_none() && core.session.read_paused() {
                // It reads on when it was woken.
                let waited = !core.session.transmit().is_empty();
                let fits = self.send_replies(&mut core, false);
                if fits && waited && core.session.transmit().is_empty() {
                    // It may have waited for this only.
                    if self.stream.watched().1.is_some() {
                        continue;
                    }
                    // Others have their turn: an answer of that size may have taken milliseconds. The event loop tells at once
                    // that there is room.
                    self.watch(&mut core, false, true);
                    again = true;
                    break;
                }
                if fits && self.stream.has_ended() {
                    // Nobody is there any more: its place is that of the next who waits.
                    let failure = self.closed(&core);
                    self.fail(&mut core, failure);
                }
                break;
            }
            if event.is_none() {
                let waited = !core.session.transmit().is_empty();
                // Before a read there is mostly nothing to send, and what is watched is as it was.
                let nothing = !waited && core.watched == Watch::REQUESTS && core.failed.is_none();
                let fits = nothing || self.send_replies(&mut core, true);
                sent = true;
                // Its end may have waited for this only.
                let freed = waited && fits && core.session.transmit().is_empty();
                // Only what is there is moved: it is large, and mostly there is nothing.
                if freed && let next @ Some(_) = core.session.poll() {
                    event = next;
                }
                if event.is_none() {
                    if freed && core.session.read_paused() {
                        continue;
                    }
                    // Whoever has an answer needs a moment before it asks again: no second look now, unless a message is
                    // still incomplete.
                    if !fits || (reads > 0 && core.session.wanted() == 0) || reads == READS {
                        break;
                    }
                    // A caller that has no answer yet mostly waits for it.
                    if !eager && events == 0 && reads == 0 && self.waits_for_answers(&core) {
                        served = ServeOutcome::Waits;
                        break;
                    }
                    match self.fill(&mut core) {
                        Ok(true) => {
                            served = ServeOutcome::Something;
                            reads += 1;
                            continue;
                        }
                        Ok(false) | Err(()) => break,
                    }
                }
            }
            sent = false;
            events += 1;
            let call = match event {
                Some(Event::Call(incoming)) if self.node.is_draining() => {
                    let _ = core.session.answer(incoming.id, Answer::Failed(&ending()));
                    None
                }
                Some(Event::Call(incoming)) => Some(incoming),
                // Whoever answers for all such keys is asked as the caller asked.
                Some(Event::Probe { key, asked: Some(incoming), .. }) if self.passes(&key) => Some(incoming),
                Some(other) => {
                    self.attend(&mut core, other);
                    None
                }
                None => None,
            };
            if let Some(incoming) = call {
                let preempted;
                (core, preempted) = self.take_call(core, incoming, leader);
                if preempted {
                    return ServeOutcome::Preempted;
                }
            }
            served = ServeOutcome::Something;
            let left = core.session.unsent();
            full = self.owes_too_much(&core, left);
            if !full && (events >= TURN || (events > 1 && left > unsent + TURN_ANSWERS)) {
                turned = true;
                break;
            }
        }
        if events > 0 || reads > 0 {
            let called = events > 0 && core.served;
            self.place(&mut core, called);
        }
        if served == ServeOutcome::Something {
            if reads == 0 {
                core.used = lately();
            }
            // Where it is full, there may be calls in the session, which nothing tells of but the room that is watched for.
            if core.failed.is_none() && !again && !sent && !full {
                let reading = !core.session.read_paused();
                self.send_replies(&mut core, reading);
            }
        }
        if matches!(served, ServeOutcome::Nothing | ServeOutcome::Waits) && core.session.unsent() < unsent {
            // A large reply goes on its way: that is progress, too.
            core.used = lately();
            served = ServeOutcome::Something;
        }
        if core.failed.is_some() {
            served = ServeOutcome::Over;
            self.weigh(&mut core);
        } else {
            if turned {
                self.next_turn(&mut core);
                leader.asks_next();
            }
            self.remind(&mut core);
            self.weigh(&mut core);
        }
        served
    }

    /// Has its event loop go on with it when the others had their turn, as the kernel does not tell of what was read already.
    #[cold]
    fn next_turn(&self, core: &mut Core) {
        // One at a time: what the kernel tells of meanwhile would make them more and more.
        if !std::mem::replace(&mut core.turn_queued, true) {
            self.take_next_turn();
        }
    }

    /// Sees to an event that is no call.
    fn attend(self: &Arc<Self>, core: &mut Core, event: Event) {
        match event {
            Event::Probe { id, key, type_id, .. } => {
                self.establish(core);
                self.answer_probe(core, id, &key, type_id.as_deref());
            }
            Event::Ready(peer) => {
                if let (Some(account), true) = (&peer.account, self.number != 0) {
                    self.allowance.shares.name(self.number, Source::account(account));
                }
                core.peer = Some(peer);
                if self.capabilities.signals && !self.capabilities.signals_are_calls && !self.serial {
                    // Whoever only listens may be silent for ever.
                    self.establish(core);
                    core.listens = true;
                    self.node.join_audience(self);
                }
                self.tell_of(core);
            }
            other => self.deliver(core, other),
        }
    }

    /// Has the servants of prefixes hear of a connection, before its first call comes.
    pub(super) fn tell_of(self: &Arc<Self>, core: &mut Core) {
        let hear = self.node.directory.prefix_servants();
        if !hear.is_empty() {
            core.deferred.push(DeferredAction::Opened(hear, Arc::clone(self) as Arc<dyn Link>));
        }
    }

    /// Serves a call. Returns whether this thread lost the lead meanwhile.
    // In the loop of all calls, from one place: so the lock stays where it is.
    #[inline(always)]
    fn take_call<'c>(
        self: &'c Arc<Self>,
        mut core: CoreGuard<'c>,
        incoming: Box<Incoming>,
        leader: &Leader,
    ) -> (CoreGuard<'c>, bool) {
        self.establish(&mut core);
        self.hold_body(&mut core, &incoming);
        let (mut core, preempted) = self.call(core, incoming, leader);
        if preempted {
            self.place(&mut core, true);
            // This thread no longer leads: whatever is left belongs to the one that does.
            self.send_beside(&mut core);
        }
        (core, preempted)
    }

    /// Whether the key is served by a prefix alone: then its servant is asked whether the object exists.
    fn passes(&self, key: &[u8]) -> bool {
        self.node.directory.spelled(self.wire, key).is_empty() && self.node.directory.by_prefix(key).is_some()
    }

    /// Tells the peer whether an object is here.
    pub(super) fn answer_probe(&self, core: &mut Core, id: CallId, key: &[u8], type_id: Option<&str>) {
        let before = self.unsent_before(core);
        let answer = match self.present(key, type_id) {
            Ok(()) => core.session.answer(id, Answer::Done(&Nothing)),
            Err(failure) => core.session.answer(id, Answer::Failed(&failure)),
        };
        // What cannot be told about an object is no reason to end the connection.
        let _ = answer;
        if self.owe(core, before) {
            self.end_flood(core);
        }
    }

    /// Whether the object is here, and of that interface: for questions that are no calls, such as a
    /// LocateRequest.
    fn present(&self, key: &[u8], type_id: Option<&str>) -> Result<(), Failure> {
        let entries = self.node.directory.spelled(self.wire, key);
        if entries.is_empty() {
            return match self.node.directory.by_prefix(key) {
                Some(entry) => entry.servant.locate(key, type_id),
                None => {
                    let own = self.node.wire_state(self.wire);
                    let own = own.and_then(|wire_state| wire_state.locate(key, type_id));
                    own.unwrap_or_else(|| Err(no_object(key)))
                }
            };
        }
        match type_id {
            Some(id) if !entries.iter().any(|entry| entry.servant.interface().is_a(id)) => {
                let what = format!("the object is no `{id}`");
                Err(Failure::new(Kind::BadReference, Initiator::Peer, what))
            }
            _ => Ok(()),
        }
    }

    /// Sends replies, and watches for what comes next: for requests only if `reading`. Returns whether more may be read: not from
    /// a peer that does not read its replies.
    fn send_replies(&self, core: &mut Core, reading: bool) -> bool {
        if core.failed.is_some() {
            return false;
        }
        if core.session.transmit().is_empty() {
            if core.watched.writing && core.draining.is_some() {
                // Somebody else has sent the rest.
                self.end_writing();
            }
            self.watch(core, reading, false);
            return true;
        }
        if !self.send(core) {
            return false;
        }
        let left = core.session.unsent();
        if left == 0 && core.draining.is_some() {
            self.end_writing();
        }
        let fits = !self.owes_too_much(core, left);
        self.watch(core, reading && fits, left > 0);
        fits
    }

    /// Sends what there is to send, on a thread that does not lead the event loop.
    fn send_beside(&self, core: &mut Core) {
        if core.failed.is_some() {
            return;
        }
        if self.send(core) {
            self.await_room(core);
        }
    }

    /// Has the event loop tell when there is room for what is left to send. If it waits for room already, it is told also where
    /// nothing is left: it may have calls in the session that it has not served before that, and nothing else tells of them.
    pub(super) fn await_room(&self, core: &mut Core) {
        if !self.is_serving() {
            return self.arm(core);
        }
        let left = core.session.unsent();
        let writing = left > 0 || core.watched.writing;
        let fits = !self.owes_too_much(core, left);
        self.watch(core, fits, writing);
    }

    /// What the event loop of a connection that serves watches for.
    pub(super) fn watch(&self, core: &mut Core, reading: bool, writing: bool) {
        let wanted = Watch { reading, writing };
        if core.watched != wanted
            && let Some(registration) = self.registration()
        {
            core.watched = wanted;
            registration.watch(self, reading, writing);
        }
    }

    /// Puts it among the callers, if it brought a call, or else among the strangers; does nothing if it is
    /// there.
    #[inline]
    fn place(&self, core: &mut Core, calls: bool) {
        if self.is_stranger() == calls && self.is_accepted() && core.failed.is_none() {
            self.change_place(core, calls);
        }
    }

    #[cold]
    fn change_place(&self, core: &mut Core, calls: bool) {
        if let Some(registration) = self.registration() {
            let Watch { reading, writing } = core.watched;
            registration
                .change_place(self, reading, writing, || self.stranger.store(!calls, Ordering::Relaxed));
        }
    }

    /// Whether the kernel tells of all that comes, with or without a look.
    pub(crate) fn is_told_of(&self) -> bool {
        self.stream.watched().1.is_none()
    }

    /// Whether calls are unanswered, so that a look mostly finds nothing, and the kernel tells of all that comes.
    fn waits_for_answers(&self, core: &Core) -> bool {
        self.is_told_of() && core.session.outstanding() > 0 && core.session.wanted() == 0
    }

    /// Whether its stream is TCP: on a busy CPU a look for bytes that may come finds nothing there.
    pub(crate) fn is_over_tcp(&self) -> bool {
        matches!(self.endpoint, Endpoint::Tcp { .. })
    }

    /// Shared memory: asks the peer to ring from now on, unless nothing is wanted of it. Returns whether it is too late to sleep.
    pub(crate) fn before_sleep(&self) -> bool {
        if self.is_told_of() {
            return false;
        }
        let Watch { reading, writing } = crate::sync::lock(&self.core).watched;
        (reading || writing) && self.stream.before_sleep(writing)
    }

    /// Serves one call, without the lock. Returns whether this thread lost the lead meanwhile.
    #[inline(always)]
    fn call<'c>(
        self: &'c Arc<Self>,
        mut core: CoreGuard<'c>,
        incoming: Box<Incoming>,
        leader: &Leader,
    ) -> (CoreGuard<'c>, bool) {
        let failure = match self.look_up(&mut core, &incoming) {
            Ok(found) if found.keeps_order => return self.call_in_turn(core, incoming, found, leader),
            Ok(found) if found.blocking_record().is_some_and(BlockingRecord::blocks) => {
                if let Err(job) = self.begin_apart(&mut core, incoming, &found) {
                    // No thread is to be had: nobody else is served while this one is.
                    drop(core);
                    (job.run)();
                    core = self.enter();
                    // It may have taken longer than the peer may be silent.
                    core.used = lately();
                }
                core.remember(found);
                return (core, false);
            }
            Ok(found) => {
                drop(core);
                self.note_running(&found);
                serves(std::ptr::from_ref(&**self).addr());
                leader.enter_servant(self);
                self.dispatch(incoming, &found.servant, found.index);
                let preempted = leader.leave_servant();
                serves(0);
                let mut core = self.enter();
                core.remember(found);
                return (core, preempted);
            }
            Err(failure) => failure,
        };
        self.let_go(&mut core, incoming.id);
        let _ = core.session.answer(incoming.id, Answer::Failed(&failure));
        (core, false)
    }

    /// Hands a call over behind those that came before it. If a thread does that already, which has lost the lead meanwhile, it takes
    /// this one, too. What waits counts as memory that the connection holds.
    #[inline(never)]
    fn call_in_turn<'c>(
        self: &'c Arc<Self>,
        mut core: CoreGuard<'c>,
        incoming: Box<Incoming>,
        found: Box<CachedLookup>,
        leader: &Leader,
    ) -> (CoreGuard<'c>, bool) {
        if core.hands_over {
            core.in_turn.push_back((incoming, found));
            return (core, false);
        }
        core.hands_over = true;
        let mut next = Some((incoming, found));
        let mut preempted = false;
        while let Some((incoming, found)) = next {
            drop(core);
            self.note_running(&found);
            serves(std::ptr::from_ref(&**self).addr());
            if !preempted {
                leader.enter_servant(self);
            }
            self.dispatch(incoming, &found.servant, found.index);
            preempted = preempted || leader.leave_servant();
            serves(0);
            core = self.enter();
            core.remember(found);
            if preempted {
                self.send_beside(&mut core);
            }
            next = core.in_turn.pop_front();
        }
        core.hands_over = false;
        if !core.hears_end.is_empty() {
            let hear = std::mem::take(&mut core.hears_end);
            core.deferred.push(DeferredAction::Hear(hear, None));
        }
        if preempted {
            // Whoever has the lead weighed those that waited.
            self.weigh(&mut core);
        }
        (core, preempted)
    }

    /// Who answers a call. The result is given back to `Core::remember` when the call is done, so that the
    /// next one finds it.
    fn look_up(&self, core: &mut Core, incoming: &Incoming) -> Result<Box<CachedLookup>, Failure> {
        let standing_by = || self.node.standing_by(self.wire);
        match self.node.directory.find(self.wire, incoming, &mut core.remembered, standing_by) {
            LookupResult::Operation(found) => Ok(found),
            LookupResult::NoObject => Err(no_object(&incoming.key)),
            LookupResult::NoOperation => {
                let name = String::from_utf8_lossy(&incoming.operation);
                let what = format!("the object has no operation `{name}`");
                Err(Failure::new(Kind::NoOperation, Initiator::Peer, what)
                    .at(String::from_utf8_lossy(&incoming.interface)))
            }
        }
    }

    /// The supervisor wants to know which operation runs. The address of its record tells without a lock
    /// whether that has changed.
    #[inline]
    fn note_running(&self, found: &CachedLookup) {
        let at = found.blocking_record().map_or(0, |record| std::ptr::from_ref(record).addr());
        if self.running_at.load(Ordering::Relaxed) != at {
            let running = found.records.clone().map(|records| (records, found.index));
            let before = std::mem::replace(&mut *lock(&self.running), running);
            drop(before);
            self.running_at.store(at, Ordering::Relaxed);
        }
    }

    /// The operation that runs was seen to block.
    pub(crate) fn has_blocked(&self) {
        if let Some((records, index)) = &*lock(&self.running)
            && let Some(record) = records.get(*index)
        {
            record.mark();
        }
    }

    /// Hands a call to its servant, on this thread and without the lock. The answer may come now, later, or
    /// from another thread.
    pub(super) fn dispatch(
        self: &Arc<Self>,
        incoming: Box<Incoming>,
        servant: &Arc<dyn Servant>,
        index: usize,
    ) {
        let mut request = Request::new(index, incoming, Arc::clone(self) as _, Arc::clone(servant));
        let _span = spans::serve(&mut request, self.wire.name(), &self.endpoint);
        let _caller = self.capabilities.callbacks_on_connection.then(|| ServingScope::on(self));
        // A servant that panics drops its request, which answers the caller; the panic hook has told the log.
        let _ = catch_unwind(AssertUnwindSafe(|| servant.dispatch(request)));
    }

    /// Counts it among those that were made for single peers, as long as it is there.
    pub(crate) fn count_as_private(&self) {
        self.private.get_or_init(PrivateConnection::default);
    }

    /// Has one servant answer all that its peer asks of this side.
    pub(crate) fn serve_back(&self, servant: Arc<dyn Servant>) {
        // A connection is taken in once.
        let _ = self.backward.set(servant);
    }

    /// Serves a call that came in on a connection of the calling side: a callback.
    pub(super) fn run_callback(self: &Arc<Self>, mut core: CoreGuard<'_>, incoming: Box<Incoming>) {
        if let Some(servant) = self.backward.get() {
            drop(core);
            let index = match servant.interface() {
                unread if unread.operations.is_empty() => None,
                interface => self.wire.operation(interface, &incoming),
            };
            return self.dispatch(incoming, servant, index.unwrap_or(Request::UNKNOWN));
        }
        // Whoever answers for all keys knows calls of its own callers only.
        let found = self.look_up(&mut core, &incoming).and_then(|found| match found.index {
            Request::UNKNOWN => Err(no_object(&incoming.key)),
            _ => Ok(found),
        });
        drop(core);
        match found {
            Ok(found) => {
                self.dispatch(incoming, &found.servant, found.index);
                self.enter().remember(found);
            }
            Err(failure) => Link::answer(&**self, incoming.id, Answer::Failed(&failure)),
        }
    }
}

/// Sends what the thread that is about to block has answered so far: its other callers must not wait for this
/// servant.
pub(crate) fn flush_before_blocking(connection: &Connection) {
    let mut core = connection.enter();
    connection.send_beside(&mut core);
}
