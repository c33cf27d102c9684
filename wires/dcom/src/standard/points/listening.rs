//! What this node hears of a source elsewhere, and how the end of the source is noticed.
//!
//! States: `heard` queues what came while another thread tells; `telling` says that one does; `over` is set
//! once, when the subscription ends or the source is found gone, and nothing is told to the listener after
//! that.
//!
//! Invariants: signals are told in the order in which they came, by one thread at a time, without a lock.
//! Each call of the source is answered after its signal was told, so a source that waits for answers is held
//! up by its listener and not by memory here. A listener that panics loses that one signal.

use super::missed_replies::MissedReplies;
use super::source::Source;
use super::task_queue::aside;
use crate::lock::lock;
use bytes::Bytes;
use everywire_model::signal::Listener;
use everywire_model::{Failure, Incoming, Object, Request, SignalEvent};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long the end of a subscription, or a question, may wait for a peer.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);

/// What is heard of one source.
pub(super) struct Listening {
    pub(super) source: Source,
    /// The one signal that is asked for.
    pub(super) only: Option<String>,
    listener: Listener,
    /// What the object is called.
    pub(super) key: Bytes,
    /// It, as long as it is listened to: nothing may hold it beyond that.
    object: Mutex<Option<Object>>,
    state: Mutex<State>,
}

/// Signals that came, in the order in which the source made them. Each call of the source is answered only
/// after the listener was told.
struct State {
    /// Calls of the source that are not answered yet, and the signals that they are.
    heard: VecDeque<(Request, Incoming)>,
    /// Somebody tells what is queued; others only add to it.
    telling: bool,
    /// Nothing more is told.
    over: bool,
    /// When the source was last heard of, or asked.
    last: Instant,
    /// Questions that it did not answer since.
    unanswered: MissedReplies,
}

impl Listening {
    /// Nothing was heard yet of a source; `only` is the one signal that is asked for, `key` what the object is called.
    pub(super) fn new(
        source: Source,
        only: Option<String>,
        listener: Listener,
        key: Bytes,
        object: Object,
    ) -> Arc<Self> {
        let state = State {
            heard: VecDeque::new(),
            telling: false,
            over: false,
            last: Instant::now(),
            unanswered: MissedReplies::default(),
        };
        let (object, state) = (Mutex::new(Some(object)), Mutex::new(state));
        Arc::new(Self { source, only, listener, key, object, state })
    }

    /// Nothing more is heard. Whether the source was lost before.
    pub(super) fn end(&self) -> bool {
        drop(lock(&self.object).take());
        let mut state = lock(&self.state);
        let lost = std::mem::replace(&mut state.over, true);
        let heard = std::mem::take(&mut state.heard);
        drop(state);
        drop(heard);
        lost
    }

    /// When it was last heard of; nothing once it is over.
    pub(super) fn last(&self) -> Option<Instant> {
        let state = lock(&self.state);
        (!state.over).then_some(state.last)
    }

    /// Has the source asked on another thread whether it is still there.
    pub(super) fn check(self: &Arc<Self>) {
        lock(&self.state).last = Instant::now();
        let this = Arc::downgrade(self);
        aside(move || drop(this.upgrade().inspect(|this| this.ask())));
    }

    /// Asks whether the source is still there, and waits for the answer.
    fn ask(&self) {
        let Some(object) = lock(&self.object).clone() else { return };
        let answer = object.with_deadline(Some(FAREWELL)).target().probe();
        let mut state = lock(&self.state);
        let is_gone = state.unanswered.is_gone_by(&answer);
        if let (true, false, Err(failure)) = (is_gone, state.over, answer) {
            state.over = true;
            drop(state);
            self.hear(SignalEvent::Disconnected(failure));
        }
    }

    /// Tells the listener one thing.
    fn hear(&self, event: SignalEvent<Incoming>) {
        // A listener that panics has told the log; it still gets what comes next.
        let _ = catch_unwind(AssertUnwindSafe(|| (self.listener)(event)));
    }

    /// Hands on what was heard, in order: one thread at a time tells, each call is answered when it was told.
    pub(super) fn tell(&self, request: Request, heard: Incoming) {
        {
            let mut state = lock(&self.state);
            state.last = Instant::now();
            state.unanswered = MissedReplies::default();
            state.heard.push_back((request, heard));
            if std::mem::replace(&mut state.telling, true) {
                return;
            }
        }
        loop {
            let next = {
                let mut state = lock(&self.state);
                let next = state.heard.pop_front();
                state.telling = next.is_some();
                next.map(|next| (next, state.over))
            };
            let Some(((request, heard), over)) = next else { return };
            if !over {
                self.hear(SignalEvent::Signal(heard));
            }
            request.run(|request| request.reply::<_, Failure>(Ok(())));
        }
    }
}
