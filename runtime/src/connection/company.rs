//! Several threads that call over one connection.
//!
//! One of them reads for all: it hands the others theirs, and when it has its own it appoints the next. The others wait in a
//! [`ReplySlot`]. States of the connection, all under its lock:
//!
//! * `company == 0`: one thread at a time calls. It sends at once, and keeps the lock while it looks for the answer.
//! * `company > 0`: several do, or did a few calls ago. Whoever begins a call leaves its bytes in the session and lets the others run
//!   first; so their requests leave in one go, and their answers come in one. Whoever reads holds no lock while it lets others run.
//! * `looking`: the reader lets others run, or was appointed while it was awake. It sends what they leave before it reads. No thread
//!   waits for that longer than one yield of its own: then it sends itself ([`Connection::send_rest`]).

use super::core_guard::CoreGuard;
use super::reply_slot::ReplySlot;
use super::state::{Connection, PendingCall, Waiter};
use crate::failures::timed_out;
use crate::shard;
use crate::spin_wait::{SpinWait, yield_cpu};
use everywire_model::{Body, CallId, Outcome};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

/// After so many calls in a row that had a connection for themselves it is not shared any more.
pub(super) const COMPANY: u8 = 64;
/// Bytes of requests that wait for a moment so that they are sent in one go.
pub(super) const TOGETHER: usize = 16 << 10;

thread_local! {
    /// How eagerly this thread waits for what another one reads.
    static WAITING: RefCell<Option<SpinWait>> = const { RefCell::new(None) };
}

impl Connection {
    /// The other threads are about to call, too: this one yields before it sends, so that the requests of all
    /// leave in one go.
    #[cold]
    pub(super) fn send_together<'c>(&'c self, mut core: CoreGuard<'c>) -> CoreGuard<'c> {
        if core.spin_wait.gives_way_after_sending(None) {
            core = self.let_others(core);
        }
        if !core.session.transmit().is_empty() {
            self.send_or_lose(&mut core);
            if core.spin_wait.wants_another_look() {
                core = self.let_others(core);
            }
        }
        core
    }

    /// Lets the peer and the other threads of this connection run while this one has nothing to read. What they have to send until
    /// then is sent in one go.
    #[cold]
    pub(super) fn let_others<'c>(&'c self, mut core: CoreGuard<'c>) -> CoreGuard<'c> {
        core.looking = true;
        drop(core);
        let took = yield_cpu();
        let mut core = self.enter();
        core.looking = false;
        core.spin_wait.gave_among_others(took);
        core
    }

    /// Waits for the outcome of a call that was begun, while another thread reads.
    pub(super) fn wait_for_reader(
        &self,
        mut core: CoreGuard<'_>,
        id: CallId,
        until: Option<Instant>,
    ) -> Outcome<Body> {
        let reply_slot = Arc::new(ReplySlot::new());
        core.waiting.push(PendingCall { id, until, waiter: Waiter::Thread(Arc::clone(&reply_slot)) });
        self.sit_and_wait(core, &reply_slot, id, until)
    }

    /// Waits for the thread that reads, with a slot that is in `core.waiting` already: looks a few times,
    /// sends what is still unsent, then sleeps.
    pub(super) fn sit_and_wait(
        &self,
        mut core: CoreGuard<'_>,
        reply_slot: &Arc<ReplySlot>,
        id: CallId,
        until: Option<Instant>,
    ) -> Outcome<Body> {
        let unsent = !core.session.transmit().is_empty();
        drop(core);
        let mut told = self.look_once(reply_slot);
        if !told && unsent {
            // The reader's to send; but it is not waited for any longer.
            self.send_rest(until);
        }
        told = told || self.look(reply_slot);
        if !told {
            shard::about_to_block();
        }
        let told = told || {
            let told = reply_slot.sleep(until);
            WAITING.with_borrow_mut(|spin_wait| spin_wait.as_mut().map(SpinWait::slept));
            told
        };
        if !told {
            let mut core = self.enter();
            // It may have been appointed in the moment in which its time was over: then nobody reads, and
            // `pass_on` finds the next one.
            core.waiting.retain(|waiting| waiting.id != id);
            if reply_slot.take().appointed {
                core.reading = false;
            }
            self.give_up(&mut core, id);
            self.pass_on(core);
            return Outcome::Failed(timed_out(&self.endpoint));
        }
        let delivered = reply_slot.take();
        if !delivered.appointed
            && let Some(outcome) = delivered.outcome
        {
            return outcome;
        }
        let mut core = self.enter();
        core.waiting.retain(|waiting| waiting.id != id);
        // It may have been appointed and then served, also between the two looks.
        if let Some(outcome) = delivered.outcome.or_else(|| reply_slot.take().outcome) {
            // Somebody else must read now.
            core.reading = false;
            self.pass_on(core);
            return outcome;
        }
        self.read_until(core, id, until)
    }

    /// Lets the reader run, then looks whether there is something in the slot.
    fn look_once(&self, reply_slot: &ReplySlot) -> bool {
        WAITING.with_borrow_mut(|spin_wait| {
            let spin_wait = spin_wait.get_or_insert_with(|| SpinWait::new(self.node.builder.latency));
            if spin_wait.gives_way_after_sending(None) {
                spin_wait.give_way_among_others();
            }
            let told = reply_slot.is_told();
            if told {
                spin_wait.rewarded();
            }
            told
        })
    }

    /// Looks for a while, before its thread sleeps: to be woken costs more than most calls do.
    fn look(&self, reply_slot: &ReplySlot) -> bool {
        WAITING.with_borrow_mut(|spin_wait| {
            let spin_wait = spin_wait.get_or_insert_with(|| SpinWait::new(self.node.builder.latency));
            loop {
                if reply_slot.is_told() {
                    spin_wait.rewarded();
                    return true;
                }
                if !spin_wait.wants_another_look() {
                    return false;
                }
                spin_wait.give_way_among_others();
            }
        })
    }

    /// Sends what no thread has sent yet.
    fn send_rest(&self, until: Option<Instant>) {
        let mut core = self.enter();
        if core.session.transmit().is_empty() || core.failed.is_some() {
            return;
        }
        if !self.send_or_lose(&mut core) {
            return;
        }
        // The transport is full. A failure reaches everybody who waits.
        let _ = self.send_all(core, until);
    }
}
