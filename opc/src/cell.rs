//! The cache: one cell for each item that somebody uses, whoever and how often.
//!
//! * A cell has the last value that its source told, or that was read from it.
//! * Each member of a group that has the item *watches* the cell. A new value puts the member on its group's list of what is to be looked
//!   at, once: so a group whose items are quiet costs nothing, however many there are.
//! * A watch may have a buffer, for samples between two updates (3.0). Samples that it had no room for are counted as an overflow,
//!   which is told.
//! * A value that is a number is read without a lock: its [`PackedCell`] is written under the cell's lock, by one at a time, and whoever reads it
//!   while it is written takes the lock instead. So a value, its quality and its time are always of one another.
//! * Locks are taken in the order group, cell, list.

use crate::data::Vqt;
use crate::engine::Engine;
use crate::item::Item;
use crate::packed_vqt::PackedVqt;
use crate::sync::lock;
use crate::{FileTime, Moment, Quality};
use slab::Slab;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Octets of texts and arrays that the samples of a buffer hold together before the oldest is lost.
const HEAP: usize = 64 << 10;

/// The slots of a group's members whose items have something new.
#[derive(Debug, Default)]
pub(crate) struct Dirty(Mutex<Vec<u32>>);

impl Dirty {
    pub(crate) fn mark(&self, slot: u32) {
        lock(&self.0).push(slot);
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
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
    /// The bits of the width of the item's range, as it was described last; of no number where it has none.
    span: AtomicU64,
    face: PackedCell,
    state: Mutex<State>,
}

/// The last value, where it fits into 64 bits: what is read a hundred million times a second.
#[derive(Debug, Default)]
struct PackedCell {
    /// Odd while it is written.
    version: AtomicU64,
    /// The type and the quality; 0 where the value is not here.
    head: AtomicU64,
    bits: AtomicU64,
    time: AtomicU64,
}

impl PackedCell {
    /// Shows a value. Only one may do so at a time.
    fn show(&self, value: &Vqt) {
        let (kind, bits) = value.data.packed().unwrap_or_default();
        let head = if kind == 0 { 0 } else { u64::from(kind) << 16 | u64::from(value.quality.0) };
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.head.store(head, Ordering::Relaxed);
        self.bits.store(bits, Ordering::Relaxed);
        self.time.store(value.time.0, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// The value as it is kept; nothing if it is not here, or is being written.
    #[inline]
    fn seen(&self) -> Option<PackedVqt> {
        let version = self.version.load(Ordering::Acquire);
        let head = self.head.load(Ordering::Relaxed);
        let bits = self.bits.load(Ordering::Relaxed);
        let time = self.time.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if version & 1 != 0 || head == 0 || self.version.load(Ordering::Relaxed) != version {
            return None;
        }
        // The halves were put together in `show`.
        #[allow(clippy::cast_possible_truncation)]
        let (kind, quality) = ((head >> 16) as u16, Quality(head as u16));
        Some(PackedVqt { kind, quality, bits, time: FileTime(time) })
    }
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
    /// Octets of texts and arrays among them.
    heap: usize,
    overflow: bool,
}

/// What a member finds at its cell.
#[derive(Debug, Default)]
pub(crate) struct CellUpdate {
    /// Samples that are older than the last value, if they are buffered.
    pub(crate) earlier: Vec<Vqt>,
    /// The last value.
    pub(crate) last: Option<Vqt>,
    /// Samples were lost.
    pub(crate) overflow: bool,
}

fn span_bits(item: &Item) -> u64 {
    item.span().unwrap_or(f64::NAN).to_bits()
}

impl Cell {
    pub(crate) fn new(item: Arc<Item>, engine: Weak<Engine>, now: FileTime) -> Self {
        let value = Vqt::bad(Quality::WAITING, now);
        let state = State { value, read_at: None, is_known: false, watches: Slab::new() };
        let (span, face) = (AtomicU64::new(span_bits(&item)), PackedCell::default());
        Self { item, engine, is_told: OnceLock::new(), span, face, state: Mutex::new(state) }
    }

    /// The source describes the item anew.
    pub(crate) fn describe(&self, item: &Item) {
        self.span.store(span_bits(item), Ordering::Relaxed);
    }

    /// The width of the range that deadbands are percentages of, if the item has one now.
    pub(crate) fn span(&self) -> Option<f64> {
        Some(f64::from_bits(self.span.load(Ordering::Relaxed))).filter(|span| !span.is_nan())
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
        let mut state = lock(&self.state);
        self.face.show(&value);
        state.put(value, at);
    }

    /// A new value, which was read at `now`. What is the same as before but for its time is no news.
    pub(crate) fn tell_read(&self, value: Vqt, now: Moment) {
        let mut state = lock(&self.state);
        state.read_at = Some(now.ticks);
        self.face.show(&value);
        if state.is_known && state.value.data == value.data && state.value.quality == value.quality {
            state.value.time = value.time;
        } else {
            state.put(value, now.time);
        }
    }

    /// The last value.
    #[inline]
    pub(crate) fn value(&self) -> Vqt {
        let value = self.face.seen().and_then(PackedVqt::value);
        value.unwrap_or_else(|| self.locked_value())
    }

    /// The same, for whoever takes it apart by itself; nothing if it has to be asked for in the other way.
    #[inline]
    pub(crate) fn packed(&self) -> Option<PackedVqt> {
        self.face.seen()
    }

    #[cold]
    fn locked_value(&self) -> Vqt {
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
                heap: 0,
                overflow: false,
            });
        }
    }

    /// What is new for the member, which is on its list no longer.
    pub(crate) fn news(&self, watch: usize) -> CellUpdate {
        let mut state = lock(&self.state);
        let last = Some(state.value.clone());
        let Some(watch) = state.watches.get_mut(watch) else { return CellUpdate::default() };
        watch.is_marked = false;
        let Some(buffer) = &mut watch.buffer else { return CellUpdate { last, ..CellUpdate::default() } };
        let mut earlier: Vec<_> = buffer.samples.drain(..).collect();
        buffer.heap = 0;
        let newest = earlier.pop().or(last);
        CellUpdate { earlier, last: newest, overflow: std::mem::take(&mut buffer.overflow) }
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
    /// One more sample; one that comes within the interval of the last takes its place. Times are those of the source, or of a client that
    /// wrote one: after one that lies in the future those of the present are not too soon.
    fn put(&mut self, value: &Vqt, at: FileTime) {
        // Whoever samples at the interval is not always punctual.
        let least = self.interval - self.interval / 8;
        let is_soon = self.last.is_some_and(|last| at >= last && at.0 - last.0 < least);
        if is_soon && self.lose(false) {
            return self.keep(value);
        }
        self.last = Some(at);
        if self.samples.len() >= self.room {
            self.overflow |= self.lose(true);
        }
        self.keep(value);
    }

    fn keep(&mut self, value: &Vqt) {
        self.heap += value.data.heap();
        self.samples.push_back(value.clone());
        while self.heap > HEAP && self.samples.len() > 1 {
            self.overflow |= self.lose(true);
        }
    }

    /// Gives up the oldest sample, or the last one; whether there was one.
    fn lose(&mut self, is_oldest: bool) -> bool {
        let lost = if is_oldest { self.samples.pop_front() } else { self.samples.pop_back() };
        self.heap -= lost.as_ref().map_or(0, |lost| lost.data.heap());
        lost.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Data, VarType};
    use std::sync::atomic::AtomicBool;

    fn cell() -> Cell {
        Cell::new(Arc::new(Item::new("a", VarType::R8)), Weak::new(), FileTime::default())
    }

    #[test]
    fn a_value_is_read_whole_whatever_it_is() {
        let cell = cell();
        assert_eq!(cell.value().quality, Quality::WAITING);
        let values = [
            Data::R8(-0.5),
            Data::Empty,
            "a text".into(),
            Data::Bool(true),
            Data::I2(-3),
            Data::Error(crate::Code::RANGE),
        ];
        for (data, time) in values.into_iter().zip(1..) {
            let value = Vqt { data, quality: Quality::SENSOR_FAILURE, time: FileTime(time) };
            cell.tell(value.clone());
            assert_eq!(cell.value(), value);
        }
    }

    /// A writer and readers at once: value, quality and time belong together in each that is read.
    #[test]
    fn a_value_is_never_half_of_another() {
        const ROUNDS: u16 = 20_000;
        let cell = cell();
        let of = |number: u16| Vqt {
            data: Data::R8(number.into()),
            quality: Quality(number),
            time: FileTime(number.into()),
        };
        cell.tell(of(0));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let value = cell.value();
                        assert_eq!(value, of(value.quality.0));
                        assert!(value.quality.0 >= last);
                        last = value.quality.0;
                    }
                });
            }
            (1..ROUNDS).for_each(|number| cell.tell(of(number)));
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(cell.value(), of(ROUNDS - 1));
    }
}
