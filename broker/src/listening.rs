//! What a target of a route without a contract says unasked, for each of its callers: the target is listened to when a caller
//! comes, and again whenever that could not be done or the connection has ended.
//!
//! States of a caller at a target: *listening*, from `Upstream::listen` on; *waiting*, where the target was not to be reached
//! or has ended the connection: its [`Listener`] is in the list of the target (`Waiting`); *gone*, when its own connection has ended.
//! One thread for each target serves the list, in pauses of 100 ms at first and of up to ten seconds. It ends with the list.
//!
//! Invariants: calls wait for the first attempt only; a caller that has gone is not listened for; whoever says meanwhile what nobody
//! listens to has lost it, since nobody keeps it.

use crate::frontend::Frontend;
use crate::numbers::ByNumber;
use crate::route::Route;
use crate::upstream::Upstream;
use everywire::{Failure, Kind, PrivateConnections};
use everywire_model::{Link, Wire};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Threads that wait at one time for one target to be listened to. A thread may outlive its caller by as long as a target needs to greet.
pub(crate) const LISTENING: usize = 256;
/// How long a target is left alone that could not be listened to: this long at first, then up to the other.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Says by which route the signals of the object with a key are heard, if they are.
type Keys = dyn Fn(&[u8]) -> Option<Arc<Route>> + Send + Sync;

/// A caller that listens to a target.
#[derive(Clone)]
pub(crate) struct Listener {
    /// The number of its connection.
    pub(crate) number: u64,
    /// Its connection.
    pub(crate) to: Weak<dyn Link>,
    pub(crate) wire: &'static dyn Wire,
    /// The connections to the target that are made for it. Not held here: what listens hangs on them.
    pub(crate) apart: Weak<PrivateConnections>,
    /// The routes by which it hears objects.
    pub(crate) fits: Arc<Keys>,
    /// Gets what went wrong.
    tell: Arc<dyn Fn(&Failure) + Send + Sync>,
}

impl Listener {
    fn is_gone(&self) -> bool {
        self.to.upgrade().is_none_or(|link| link.is_over())
    }
}

/// Who listens to one target, and who does not yet.
#[derive(Default)]
pub(crate) struct Listeners {
    /// Threads that begin to listen.
    begun: AtomicUsize,
    waiting: Mutex<Waiting>,
}

/// Those who are to be listened for again, and whether a thread sees to it.
#[derive(Default)]
struct Waiting {
    /// By the numbers of their connections.
    callers: ByNumber<u64, Listener>,
    has_thread: bool,
}

impl Upstream {
    /// Has what the target says unasked go to a caller: see [`crate::pass::Lanes::listen`]. Its calls to this target wait for that, and nothing
    /// else does: a thread waits for the target. Where `LISTENING` wait already, this one does. `tell` gets what went wrong.
    pub(crate) fn listen(
        self: &Arc<Self>,
        link: &Arc<dyn Link>,
        near: &Frontend,
        fits: impl Fn(&[u8]) -> Option<Arc<Route>> + Send + Sync + 'static,
        tell: impl Fn(&Failure) + Send + Sync + 'static,
    ) {
        let Some(lanes) = &self.lanes else { return };
        let number = link.serial_number();
        let caller = Listener {
            number,
            to: Arc::downgrade(link),
            wire: near.wire,
            apart: Arc::downgrade(&lanes.apart(link, near)),
            fits: Arc::new(fits),
            tell: Arc::new(tell),
        };
        lanes.held.begin(number);
        let this = Arc::clone(self);
        let run = move || {
            this.attempt(caller);
            this.let_go(number);
        };
        if self.listeners.begun.fetch_add(1, Ordering::AcqRel) >= LISTENING {
            everywire::blocking(run);
            self.listeners.begun.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let this = Arc::clone(self);
        let counted = move || {
            run();
            this.listeners.begun.fetch_sub(1, Ordering::AcqRel);
        };
        if std::thread::Builder::new().name("listen".into()).spawn(counted).is_err() {
            // Signals do not pass, but calls do.
            self.listeners.begun.fetch_sub(1, Ordering::AcqRel);
            self.let_go(number);
        }
    }

    /// Listens for a caller; where that fails it waits for another attempt. Whether the target was to be reached.
    fn attempt(self: &Arc<Self>, caller: Listener) -> bool {
        let Some(lanes) = &self.lanes else { return true };
        let (this, again) = (Arc::downgrade(self), caller.clone());
        let ended = move |failure: &Failure| {
            (again.tell)(failure);
            if let Some(this) = this.upgrade() {
                this.listen_again(again.clone());
            }
        };
        match lanes.listen(&caller, ended) {
            Ok(()) => true,
            // It will not be otherwise later.
            Err(failure) if failure.kind() == Kind::Unsupported => {
                (caller.tell)(&failure);
                true
            }
            Err(failure) => {
                (caller.tell)(&failure);
                self.listen_again(caller);
                false
            }
        }
    }

    /// Puts a caller into the list, and has a thread see to the list.
    fn listen_again(self: &Arc<Self>, caller: Listener) {
        let mut waiting = self.listeners.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.callers.insert(caller.number, caller);
        if std::mem::replace(&mut waiting.has_thread, true) {
            return;
        }
        let this = Arc::downgrade(self);
        if std::thread::Builder::new().name("listen".into()).spawn(move || see_to(&this)).is_err() {
            // The next one that waits asks for a thread again.
            waiting.has_thread = false;
        }
    }

    /// One attempt for each that waits, until one fails. Whether there is anybody left, and whether the target was reached.
    fn listen_for_all(self: &Arc<Self>) -> (bool, bool) {
        let list = || self.listeners.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut callers = std::mem::take(&mut list().callers);
        callers.retain(|_, caller| !caller.is_gone());
        let mut callers = callers.into_iter();
        let reached = callers.by_ref().all(|(_, caller)| self.attempt(caller));
        let mut waiting = list();
        waiting.callers.extend(callers);
        waiting.has_thread = !waiting.callers.is_empty();
        (waiting.has_thread, reached)
    }
}

/// The thread of a target to which somebody is to listen again. It holds nothing of the target while it pauses.
fn see_to(target: &Weak<Upstream>) {
    let mut pause = PAUSE.0;
    loop {
        std::thread::sleep(pause);
        let Some(target) = target.upgrade() else { return };
        let (is_awaited, reached) = target.listen_for_all();
        if !is_awaited {
            return;
        }
        pause = if reached { PAUSE.0 } else { (pause * 2).min(PAUSE.1) };
    }
}
