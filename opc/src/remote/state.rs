//! What a subscription knows of its items, and who is told of them.
//!
//! States. A subscription makes one attempt after the other, and each has a number (`AttemptState::attempt`):
//! * *begun* (`begin`): nothing is known of any item. Callbacks wait in `early`, so that `Event::ActiveSubscription` comes
//!   first;
//! * *live* (`live`): values are told as they come, whether called back or asked for;
//! * *lost* (`lost`): the number has gone on, so callbacks that were under way are dropped, and no value
//!   comes after the gap that it was before.
//!
//! `stop` is beside these: from then on nobody is told anything, whatever state it is in.
//!
//! Invariants.
//! * A value is told once: one that a refresh, a poll or the group's first update brings again, with the same
//!   quality and time, is no news.
//! * A gap is marked once: items that are marked stay so until they have a value again, however many attempts
//!   fail between.
//! * The listener is called under the lock: by one thread at a time, in order. So it must not wait for
//!   anything that this lock is held for. Whoever ends the subscription takes no lock, and may be the
//!   listener itself.
//! * What a server says is checked: handles that were never given out mean nothing, and lists of different
//!   lengths are `Event::Garbled`.
//!
//! Bounds. `EARLY` callbacks wait at the most; those beyond it are dropped, and `live` says so, since some item
//! may not have its last value. One value is kept for each item.

use super::subscription::{ActiveSubscription, Event, ItemValue, Listener};
use super::wire::{code_of, vqt_of, vqt_of_state};
use crate::contract::{DataAccessGroupOnDataChange, OPCITEMSTATE};
use crate::sync::lock;
use crate::{Code, FileTime, Quality, Vqt};
use everywire::{Failure, Initiator, Kind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Callbacks that wait until an attempt is live.
const EARLY: usize = 1000;

/// What a subscription knows.
pub(super) struct State {
    /// The names of the items; an item's place here is its handle at the server's callbacks.
    pub(super) items: Vec<Arc<str>>,
    /// Who is told.
    listener: Listener,
    /// Whether nobody is told any more.
    stopped: AtomicBool,
    /// Callbacks of this attempt, those without values too.
    beats: AtomicU64,
    /// What was told, and the lock under which it is.
    told: Mutex<AttemptState>,
}

/// What was told of the attempt that is under way.
#[derive(Default)]
struct AttemptState {
    /// Its number; those before it are over.
    attempt: u64,
    /// Whether it was told to be live.
    is_live: bool,
    /// Callbacks that came before.
    early: Vec<DataAccessGroupOnDataChange>,
    /// Whether there were more of them than could wait.
    is_short: bool,
    /// What was last told of each item in this attempt.
    last: Vec<Option<Vqt>>,
    /// Whether all items are told to be bad.
    is_marked: bool,
}

impl State {
    pub(super) fn new(items: Vec<Arc<str>>, listener: Listener) -> Self {
        let told = Mutex::new(AttemptState { last: vec![None; items.len()], ..AttemptState::default() });
        Self { items, listener, stopped: AtomicBool::new(false), beats: AtomicU64::new(0), told }
    }

    /// Nobody is told anything from now on.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// How many callbacks came in this attempt.
    pub(super) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Acquire)
    }

    /// A new attempt begins; what comes from the one before is dropped. Its number.
    pub(super) fn begin(&self) -> u64 {
        let mut told = lock(&self.told);
        told.attempt += 1;
        told.is_live = false;
        told.early.clear();
        told.is_short = false;
        told.last.iter_mut().for_each(|last| *last = None);
        self.beats.store(0, Ordering::Release);
        told.attempt
    }

    /// The attempt works: tells that, and what came meanwhile. Whether some of that was dropped, so that the last values have to be asked for.
    pub(super) fn live(&self, live: ActiveSubscription) -> bool {
        let mut told = lock(&self.told);
        self.tell(Event::Live(live));
        told.is_live = true;
        for change in std::mem::take(&mut told.early) {
            self.changed(&mut told, &change);
        }
        std::mem::take(&mut told.is_short)
    }

    /// A callback came.
    pub(super) fn heard(&self, attempt: u64, change: DataAccessGroupOnDataChange) {
        let mut told = lock(&self.told);
        if told.attempt != attempt {
            return;
        }
        self.beats.fetch_add(1, Ordering::AcqRel);
        if told.is_live {
            self.changed(&mut told, &change);
        } else if told.early.len() < EARLY {
            told.early.push(change);
        } else {
            told.is_short = true;
        }
    }

    /// Something came that cannot be understood.
    pub(super) fn garbled(&self, attempt: u64, failure: Failure) {
        let told = lock(&self.told);
        if told.attempt == attempt {
            self.tell(Event::Garbled(failure));
        }
    }

    /// Tells a callback, if its lists are of one length.
    fn changed(&self, told: &mut AttemptState, change: &DataAccessGroupOnDataChange) {
        let count = change.items.len();
        let lengths =
            [change.values.len(), change.qualities.len(), change.timestamps.len(), change.errors.len()];
        if lengths.iter().any(|length| *length != count) {
            let what =
                format!("a callback about {count} items has {lengths:?} values, qualities, times and codes");
            return self.tell(Event::Garbled(Failure::new(Kind::Violation, Initiator::Peer, what)));
        }
        let values = change.values.iter().zip(&change.qualities).zip(&change.timestamps);
        let values = values.map(|((value, quality), time)| vqt_of(value, *quality, time));
        let codes = change.errors.iter().map(|code| code_of(*code));
        self.values(told, change.items.iter().copied().zip(values).zip(codes));
    }

    /// Values were asked for, by the items' places.
    pub(super) fn polled(
        &self,
        attempt: u64,
        states: impl IntoIterator<Item = (u32, Result<OPCITEMSTATE, Code>)>,
    ) {
        let mut told = lock(&self.told);
        if told.attempt != attempt {
            return;
        }
        let now = FileTime::now();
        let values = states.into_iter().map(|(index, state)| match state {
            Ok(state) => ((index, vqt_of_state(&state)), Code::OK),
            Err(code) => ((index, Vqt::bad(Quality::BAD, now)), code),
        });
        // A code without a value has no time of its own: it is no news as long as it stays the same.
        let last = told.last.clone();
        let is_news = |((index, vqt), code): &((u32, Vqt), Code)| {
            let held =
                usize::try_from(*index).ok().and_then(|index| last.get(index)).and_then(Option::as_ref);
            !code.is_failure()
                || held.is_none_or(|held| (&held.data, held.quality) != (&vqt.data, vqt.quality))
        };
        let values: Vec<_> = values.filter(is_news).collect();
        self.values(&mut told, values.into_iter());
    }

    /// Tells those values that are news, in one event.
    fn values(&self, told: &mut AttemptState, values: impl Iterator<Item = ((u32, Vqt), Code)>) {
        let mut news = Vec::new();
        for ((index, value), code) in values {
            let Ok(index) = usize::try_from(index) else { continue };
            // A handle that was never given out means nothing.
            let (Some(item), Some(last)) = (self.items.get(index), told.last.get_mut(index)) else {
                continue;
            };
            if code != Code::DATA_QUEUE_OVERFLOW && last.as_ref() == Some(&value) {
                continue;
            }
            *last = Some(value.clone());
            news.push(ItemValue { index, item: Arc::clone(item), value, code });
        }
        if !news.is_empty() {
            told.is_marked = false;
            self.tell(Event::Values(news));
        }
    }

    /// The attempt is over: every item is bad, which is told once, and then why.
    pub(super) fn lost(&self, event: Event) {
        let mut told = lock(&self.told);
        told.attempt += 1;
        told.is_live = false;
        told.early.clear();
        if !std::mem::replace(&mut told.is_marked, true) && !self.items.is_empty() {
            let value = Vqt::bad(Quality::COMM_FAILURE, FileTime::now());
            let bad = |(index, item): (usize, &Arc<str>)| ItemValue {
                index,
                item: Arc::clone(item),
                value: value.clone(),
                code: Code::OK,
            };
            self.tell(Event::Values(self.items.iter().enumerate().map(bad).collect()));
        }
        self.tell(event);
    }

    /// Calls the listener, unless the subscription has ended.
    fn tell(&self, event: Event) {
        if !self.is_stopped() {
            (self.listener)(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::subscription::UpdateMode;
    use super::*;
    use crate::Data;
    use crate::contract::FILETIME;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    fn state() -> (State, Receiver<Event>) {
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        let listener = move |event| drop(lock(&tell).send(event));
        (State::new(vec!["a".into(), "b".into()], Box::new(listener)), told)
    }

    fn live() -> ActiveSubscription {
        ActiveSubscription {
            manner: UpdateMode::Callbacks,
            version: "3.0",
            rate: Duration::from_secs(1),
            deadband: 0.0,
            keep_alive: None,
            refused: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn change(items: &[u32], value: f32) -> DataAccessGroupOnDataChange {
        DataAccessGroupOnDataChange {
            transaction: 0,
            group: 1,
            master_quality: 0,
            master_error: 0,
            items: items.to_vec(),
            values: items.iter().map(|_| Data::R4(value).to_variant()).collect(),
            qualities: vec![192; items.len()],
            timestamps: vec![FILETIME { dw_low_date_time: 7, dw_high_date_time: 0 }; items.len()],
            errors: vec![0; items.len()],
        }
    }

    /// What was told, in short: values by item and number, other events by a word.
    fn told(events: &Receiver<Event>) -> Vec<String> {
        let short = |event| match event {
            Event::Live(_) => "live".to_owned(),
            Event::Values(values) => values
                .iter()
                .map(|one| {
                    format!(
                        "{}={}{}",
                        one.item,
                        one.value.data,
                        if one.value.quality.is_bad() { "bad" } else { "" }
                    )
                })
                .collect::<Vec<_>>()
                .join(" "),
            Event::Lost { .. } => "lost".to_owned(),
            Event::Shutdown { .. } => "shutdown".to_owned(),
            Event::Garbled(_) => "garbled".to_owned(),
        };
        events.try_iter().map(short).collect()
    }

    fn lost() -> Event {
        let why = Failure::new(Kind::Unreachable, Initiator::Peer, "so");
        Event::Lost { why, pause: Duration::ZERO }
    }

    #[test]
    fn what_comes_early_waits_and_what_is_known_is_no_news() {
        let (state, events) = state();
        let attempt = state.begin();
        state.heard(attempt, change(&[0, 1], 1.0));
        assert_eq!(told(&events), [""; 0]);
        state.live(live());
        assert_eq!(told(&events), ["live", "a=1 b=1"]);
        // A refresh of the same values.
        state.heard(attempt, change(&[0, 1], 1.0));
        assert_eq!((told(&events), state.beats()), (vec![], 2));
        state.heard(attempt, change(&[1], 2.0));
        assert_eq!(told(&events), ["b=2"]);
    }

    #[test]
    fn that_too_much_came_early_is_known() {
        let (state, events) = state();
        let attempt = state.begin();
        (0..EARLY).for_each(|_| state.heard(attempt, change(&[0], 1.0)));
        assert!(!state.live(live()));
        let attempt = state.begin();
        (0..EARLY).for_each(|_| state.heard(attempt, change(&[0], 1.0)));
        state.heard(attempt, change(&[1], 1.0));
        assert!(state.live(live()) && !state.live(live()));
        assert!(!told(&events).contains(&"b=1".to_owned()));
    }

    #[test]
    fn a_gap_is_marked_once_and_last_values_come_after_it() {
        let (state, events) = state();
        let first = state.begin();
        state.live(live());
        state.heard(first, change(&[0, 1], 1.0));
        state.lost(lost());
        // What was under way comes too late.
        state.heard(first, change(&[0], 9.0));
        assert_eq!(told(&events), ["live", "a=1 b=1", "a=bad b=bad", "lost"]);
        state.begin();
        state.lost(lost());
        assert_eq!(told(&events), ["lost"]);
        let third = state.begin();
        state.live(live());
        state.heard(third, change(&[0, 1], 1.0));
        state.lost(lost());
        assert_eq!(told(&events), ["live", "a=1 b=1", "a=bad b=bad", "lost"]);
    }

    #[test]
    fn callbacks_that_are_wrong_change_nothing() {
        let (state, events) = state();
        let attempt = state.begin();
        state.live(live());
        state.heard(attempt, change(&[7, u32::MAX], 1.0));
        let mut short = change(&[0, 1], 1.0);
        short.qualities.pop();
        state.heard(attempt, short);
        assert_eq!(told(&events), ["live", "garbled"]);
        state.stop();
        state.heard(attempt, change(&[0], 1.0));
        assert_eq!(told(&events), [""; 0]);
    }
}
