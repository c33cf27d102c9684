//! The cache: one cell for each item that somebody uses, whoever and how often.
//!
//! * A cell has the last value that its source told, or that was read from it.
//! * Each member of a group that has the item *watches* the cell. A new value puts the member on its group's list of what is to be looked
//!   at, once: so a group whose items are quiet costs nothing, however many there are.
//! * A watch may have a buffer, for samples between two updates (3.0). Samples that it had no room for are counted as an overflow,
//!   which is told.
//! * Locks are taken in the order group, cell, list.

use crate::data::Vqt;
use crate::engine::Engine;
use crate::item::Item;
use crate::sync::lock;
use crate::{FileTime, Moment, Quality};
use slab::Slab;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// The slots of a group's members whose items have something new.
#[derive(Debug, Default)]
pub(crate) struct Dirty(Mutex<Vec<u32>>);

impl Dirty {
    pub(crate) fn mark(&self, slot: u32) {
        lock(&self.0).push(slot);
    }

    /// What is on it, which is put into `list`.
    pub(crate) fn take(&self, list: &mut Vec<u32>) {
        list.clear();
        std::mem::swap(list, &mut lock(&self.0));
    }
}

/// An item in use.
pub(crate) struct Cell {
    pub(crate) item: Arc<Item>,
    engine: Weak<Engine>,
    /// Whether the source tells changes by itself.
    is_told: OnceLock<bool>,
    state: Mutex<State>,
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cell").field(&self.item.id).finish()
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.forget(&self.item.id);
        }
    }
}

#[derive(Debug)]
struct State {
    value: Vqt,
    /// When it was read from the source; nothing of an item whose source tells changes by itself, so that it is never old.
    read_at: Option<u64>,
    /// Whether there was a value at all.
    is_known: bool,
    watches: Slab<Watch>,
}

#[derive(Debug)]
struct Watch {
    dirty: Arc<Dirty>,
    slot: u32,
    is_marked: bool,
    buffer: Option<Buffer>,
}

/// Samples between two updates of a group.
#[derive(Debug)]
struct Buffer {
    /// The least time between two samples, in units of a FILETIME.
    interval: u64,
    room: usize,
    last: Option<FileTime>,
    samples: VecDeque<Vqt>,
    overflow: bool,
}

/// What a member finds at its cell.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Samples that are older than the last value, if they are buffered.
    pub(crate) earlier: Vec<Vqt>,
    /// The last value.
    pub(crate) last: Option<Vqt>,
    /// Samples were lost.
    pub(crate) overflow: bool,
}

impl Cell {
    pub(crate) fn new(item: Arc<Item>, engine: Weak<Engine>, now: FileTime) -> Self {
        let value = Vqt::bad(Quality::WAITING, now);
        let state = State { value, read_at: None, is_known: false, watches: Slab::new() };
        Self { item, engine, is_told: OnceLock::new(), state: Mutex::new(state) }
    }

    /// Asks the source, once, to tell changes.
    pub(crate) fn begin(&self, watch: impl FnOnce() -> bool) {
        self.is_told.get_or_init(watch);
    }

    /// Whether it has to be read to be current.
    pub(crate) fn is_polled(&self) -> bool {
        self.is_told.get() != Some(&true)
    }

    /// A new value, from the source by itself.
    pub(crate) fn tell(&self, value: Vqt) {
        let at = value.time;
        lock(&self.state).put(value, at);
    }

    /// A new value, which was read at `now`. What is the same as before but for its time is no news.
    pub(crate) fn tell_read(&self, value: Vqt, now: Moment) {
        let mut state = lock(&self.state);
        state.read_at = Some(now.ticks);
        if state.is_known && state.value.data == value.data && state.value.quality == value.quality {
            state.value.time = value.time;
        } else {
            state.put(value, now.time);
        }
    }

    /// The last value.
    pub(crate) fn value(&self) -> Vqt {
        lock(&self.state).value.clone()
    }

    /// The last value, if it is known and was read no longer than `age` milliseconds ago, or is told by the source.
    pub(crate) fn value_of_age(&self, age: u64, now: u64) -> Option<Vqt> {
        let state = lock(&self.state);
        let is_fresh = state.read_at.is_none_or(|read| now.saturating_sub(read) <= age);
        (state.is_known && is_fresh).then(|| state.value.clone())
    }

    /// Has a member of a group hear of news. Its number at this cell.
    pub(crate) fn watch(&self, dirty: &Arc<Dirty>, slot: u32) -> usize {
        let watch = Watch { dirty: Arc::clone(dirty), slot, is_marked: false, buffer: None };
        lock(&self.state).watches.insert(watch)
    }

    pub(crate) fn unwatch(&self, watch: usize) {
        let removed = lock(&self.state).watches.try_remove(watch);
        drop(removed);
    }

    /// Puts the member on its group's list although nothing is new.
    pub(crate) fn mark(&self, watch: usize) {
        if let Some(watch) = lock(&self.state).watches.get_mut(watch) {
            watch.mark();
        }
    }

    /// Buffers samples for the member from now on, or no more.
    pub(crate) fn buffer(&self, watch: usize, interval: Option<u32>, room: usize) {
        if let Some(watch) = lock(&self.state).watches.get_mut(watch) {
            watch.buffer = interval.map(|interval| Buffer {
                interval: u64::from(interval) * 10_000,
                room,
                last: None,
                samples: VecDeque::new(),
                overflow: false,
            });
        }
    }

    /// What is new for the member, which is on its list no longer.
    pub(crate) fn news(&self, watch: usize) -> News {
        let mut state = lock(&self.state);
        let last = Some(state.value.clone());
        let Some(watch) = state.watches.get_mut(watch) else { return News::default() };
        watch.is_marked = false;
        let Some(buffer) = &mut watch.buffer else { return News { last, ..News::default() } };
        let mut earlier: Vec<_> = buffer.samples.drain(..).collect();
        let newest = earlier.pop().or(last);
        News { earlier, last: newest, overflow: std::mem::take(&mut buffer.overflow) }
    }
}

impl State {
    /// `at`: when it was sampled.
    fn put(&mut self, value: Vqt, at: FileTime) {
        self.is_known = true;
        for (_, watch) in &mut self.watches {
            if let Some(buffer) = &mut watch.buffer {
                buffer.put(&value, at);
            }
            watch.mark();
        }
        self.value = value;
    }
}

impl Watch {
    fn mark(&mut self) {
        if !self.is_marked {
            self.is_marked = true;
            self.dirty.mark(self.slot);
        }
    }
}

impl Buffer {
    /// One more sample; one that comes within the interval of the last takes its place.
    fn put(&mut self, value: &Vqt, at: FileTime) {
        // Whoever samples at the interval is not always punctual.
        let least = self.interval - self.interval / 8;
        let is_soon = self.last.is_some_and(|last| at.0 < last.0.saturating_add(least));
        if is_soon && self.samples.pop_back().is_some() {
            return self.samples.push_back(value.clone());
        }
        self.last = Some(at);
        if self.samples.len() >= self.room {
            self.samples.pop_front();
            self.overflow = true;
        }
        self.samples.push_back(value.clone());
    }
}
