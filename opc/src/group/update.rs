//! Exception mode: what of a group has changed, at its rate (OPC DA 2.05a, 4.5.1 and 4.6).
//!
//! The members whose cells have news are on the group's list; the others are not looked at. A member is sent if its quality changed, or
//! its value by more than the deadband; all that is sent at one time goes in one call, unless that would be too much for one: then the rest
//! stays on the list and goes in the next call at once.
//!
//! An update whose listener has not taken those before is put off: nothing is collected, the list stays, and what is sent at last are the
//! newest values, which say that others were lost.

use super::io::Sample;
use super::member::Members;
use super::{Group, Inner};
use crate::cell::{Cell, Dirty};
use crate::data::Vqt;
use crate::sync::lock;
use crate::time::Moment;
use crate::{Code, Quality};
use std::sync::Arc;

/// Values in one call of an update: some 45 bytes each, which every client takes in one message. More go in the next call at once.
pub(super) const PART: usize = 50_000;

/// Values of items that go to a client in one call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// The client's number for the call; 0 for changes.
    pub transaction: u32,
    /// The client's number for the group.
    pub group: u32,
    /// The values.
    pub samples: Vec<Sample>,
}

impl Batch {
    /// [`Code::OK`] if all values are good, else [`Code::FALSE`].
    #[must_use]
    pub fn master_quality(&self) -> Code {
        let all_good = self.samples.iter().all(|sample| sample.value.quality.is_good());
        if all_good { Code::OK } else { Code::FALSE }
    }

    /// [`Code::OK`] if no value has an error, else [`Code::FALSE`].
    #[must_use]
    pub fn master_error(&self) -> Code {
        Code::of_items(self.samples.iter().map(|sample| sample.error))
    }
}

/// What is to be told to whoever listens to a group (IOPCDataCallback).
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// OnDataChange: what changed, or what was asked for by Refresh2.
    Change(Batch),
    /// OnReadComplete.
    Read(Batch),
    /// OnWriteComplete: the client's number for each item, and how it went.
    Written {
        /// The client's number for the call.
        transaction: u32,
        /// The client's number for the group.
        group: u32,
        /// Items and codes.
        items: Vec<(u32, Code)>,
    },
    /// OnCancelComplete.
    Cancelled {
        /// The client's number for the call.
        transaction: u32,
        /// The client's number for the group.
        group: u32,
    },
}

impl Group {
    /// Makes an update that is due: reads items whose source does not tell changes, and finds what has changed. Nothing if there is
    /// nothing to send. The group is in the schedule again.
    pub fn update(&self, now: Moment) -> Option<Report> {
        self.update_and(now, |report| report)
    }

    /// The same, and hands it to `tell` before any other change of the group is told: what is told later is never older.
    pub fn update_and<T>(&self, now: Moment, tell: impl FnOnce(Report) -> T) -> Option<T> {
        self.poll(now);
        let own = self.weak.upgrade()?;
        let _order = lock(&self.order);
        let mut inner = self.inner().ok()?;
        if !inner.sends() {
            return None;
        }
        let is_update = inner.send_at.is_none_or(|at| at <= now.ticks);
        let most = self.engine.settings.quotas.answer;
        let (mut samples, is_whole) =
            if is_update { inner.collect(&self.dirty, now, most) } else { (Vec::new(), true) };
        if is_update && inner.has_lost {
            // All parts of one update say so.
            inner.has_lost = !is_whole;
            let ok = samples.iter_mut().filter(|sample| sample.error == Code::OK);
            ok.for_each(|sample| sample.error = Code::DATA_QUEUE_OVERFLOW);
        }
        if is_update && is_whole {
            inner.send_at = Some(next(inner.send_at, inner.state.rate, now));
        }
        let step = inner.members.fastest_poll(inner.state.rate);
        // What did not fit into one call goes with the next one at once.
        inner.due = Some(if is_whole { next(inner.due, step, now) } else { now.ticks });
        let since = now.ticks.saturating_sub(*inner.sent.get_or_insert(now.ticks));
        let keep_alive = u64::from(inner.state.keep_alive);
        let is_silent_for_long = is_update && keep_alive > 0 && since >= keep_alive;
        self.engine.schedule(&own, inner.due);
        if samples.is_empty() && !is_silent_for_long {
            return None;
        }
        inner.sent = Some(now.ticks);
        self.engine.updated(now.time);
        let report = Report::Change(Batch { transaction: 0, group: inner.state.client, samples });
        drop(inner);
        Some(tell(report))
    }

    /// Has an update wait for the next time of its rate, since whoever listens has not taken those before: nothing is collected, so
    /// what the listener gets then are the newest values, with [`Code::DATA_QUEUE_OVERFLOW`] if something would have been sent now.
    /// The group is in the schedule again. Whether this is the first time since its last update that something has to wait.
    pub fn postpone(&self, now: Moment) -> bool {
        let Some(own) = self.weak.upgrade() else { return false };
        let Ok(mut inner) = self.inner() else { return false };
        if !inner.sends() {
            return false;
        }
        let begins = !inner.has_lost && !self.dirty.is_empty();
        inner.has_lost |= begins;
        inner.send_at = Some(next(inner.send_at, inner.state.rate, now));
        inner.due = inner.send_at;
        self.engine.schedule(&own, inner.due);
        begins
    }

    /// Whether an update has to wait for the source.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        self.inner().is_ok_and(|inner| inner.members.is_polled())
    }

    /// Reads the items whose source does not tell changes, without any lock. Their cells mark them if there
    /// is news.
    fn poll(&self, now: Moment) {
        let cells: Vec<Arc<Cell>> = match self.inner() {
            Ok(inner) if inner.sends() => inner.members.polled(),
            _ => return,
        };
        // Another group may have just read them.
        self.read_stale(cells.into_iter().filter(|cell| cell.value_of_age(0, now.ticks).is_none()), now);
    }

    /// Reads the items of cells from the source, without any lock.
    pub(super) fn read_stale(&self, stale: impl Iterator<Item = Arc<Cell>>, now: Moment) {
        let stale: Vec<_> = stale.collect();
        if stale.is_empty() {
            return;
        }
        let items: Vec<_> = stale.iter().map(|cell| Arc::clone(&cell.item)).collect();
        let mut values = self.engine.source.read(&items).into_iter();
        for cell in stale {
            let value = match values.next() {
                Some(Ok(value)) => value,
                // What is wrong with one item is no reason to drop the subscription.
                Some(Err(_)) | None => Vqt { quality: Quality::COMM_FAILURE, time: now.time, ..cell.value() },
            };
            cell.tell_read(value, now);
        }
    }
}

/// The next time on a grid of this step. What came late does not make the others come sooner.
fn next(last: Option<u64>, step: u32, now: Moment) -> u64 {
    let step = u64::from(step).max(1);
    let grid = last.map_or(now.ticks, |last| last.saturating_add(step));
    if grid > now.ticks { grid } else { now.ticks.saturating_add(step) }
}

impl Inner {
    /// What has changed since it was last sent, as much as goes in one call, and whether that is all. What does not fit stays on the list.
    fn collect(&mut self, dirty: &Dirty, now: Moment, most: usize) -> (Vec<Sample>, bool) {
        let mut list = std::mem::take(&mut self.list);
        dirty.take(&mut list);
        let (mut samples, mut seen, mut heap, mut is_whole) = (Vec::new(), 0, 0_usize, true);
        for slot in list.drain(..) {
            if samples.len() >= PART || heap > most {
                dirty.mark(slot);
                is_whole = false;
                continue;
            }
            collect_one(&mut self.members, slot, self.state.deadband, dirty, now, &mut samples);
            let new = samples.get(seen..).unwrap_or_default();
            heap += new.iter().map(|sample| sample.value.data.heap()).sum::<usize>();
            seen = samples.len();
        }
        self.list = list;
        (samples, is_whole)
    }
}

/// Takes the news of one member, if it is its time: of one with a buffer all samples since the last update.
fn collect_one(
    members: &mut Members,
    slot: u32,
    deadband: f32,
    dirty: &Dirty,
    now: Moment,
    samples: &mut Vec<Sample>,
) {
    let Some(member) = members.at_mut(slot) else { return };
    let waits = |sampling: u32| member.sampled.is_some_and(|last| now.ticks < last + u64::from(sampling));
    if member.active && member.buffer.is_none() && member.sampling.is_some_and(waits) {
        // Its own rate is slower than the group's: it stays on the list.
        return dirty.mark(slot);
    }
    let news = member.cell.news(member.watch);
    if !member.active {
        // It is marked again when it is activated.
        return;
    }
    member.sampled = Some(now.ticks);
    let begin = samples.len();
    for value in news.earlier.into_iter().chain(news.last) {
        if !member.is_news(&value, deadband) {
            continue;
        }
        member.sent = Some((value.data.clone(), value.quality));
        let (value, error) = match member.coerced(value) {
            Ok(value) => (value, Code::OK),
            Err(error) => (Vqt::bad(Quality::BAD, now.time), error),
        };
        samples.push(Sample { server: member.handle, client: member.client, value, error });
    }
    if let Some(last) = samples.get_mut(begin..).and_then(<[_]>::last_mut).filter(|_| news.overflow) {
        last.error = Code::DATA_QUEUE_OVERFLOW;
    }
}
