//! Ropes: outgoing bytes, where large parts are spliced in by reference.
//!
//! A session writes its messages at the end, the transport takes them from the front. Small parts are copied
//! into one flat buffer, so that mostly one `write` sends all there is; parts of `SPLICE` octets and more
//! stay where they are. Handles travel with the byte that they were attached to.
//!
//! Invariants.
//! * The order of what was put in is the order of what is sent, whatever was copied and whatever was spliced.
//! * `position` counts from a byte before the first that is not sent yet, the same one until bytes are taken
//!   (`consume`), and then one that is a multiple of 16 behind it: so what a codec aligns by stays aligned.
//!   Marks and positions hold until bytes are taken.
//! * A message that cannot be encoded to its end is taken back as a whole (`mark`, `truncate`) before any
//!   byte of it is sent.
//! * Handles leave once, with the first byte of those that they were attached to; nothing is sent across the
//!   place where the next ones stand.
//!
//! Bounds. None of its own: whoever puts in looks at `len`, and whoever counts memory at `held`. Memory of what was taken is given back when the
//! buffer is empty, or when it is more than that of the rest: a buffer that never empties holds twice its rest
//! at most. A part that was taken to its end goes at once, where that moves little. An empty buffer that was large is given back as a whole.
//! A flat run that grows while nobody takes it would be copied each time it doubles, and hold up to twice what is in it: `settle` makes a
//! part of it, which is as long as its content and stays where it is.
//!
//! Parts from `LENT` to `SPLICE` octets are copied into a buffer of the thread, which the send buffer has until it is empty: all connections of a
//! thread copy to the same memory, which is in the cache, and an idle connection keeps its own small buffer only.

use crate::body::Handle;
use bytes::Bytes;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Parts at least this long are spliced in by reference; shorter ones are cheaper to copy.
pub const SPLICE: usize = 16 << 10;
/// Parts at least this long are copied into the buffer of the thread.
const LENT: usize = 4 << 10;
/// Bytes taken from the front from which on they are dropped, if there are more of them than of the rest.
const STALE: usize = 64 << 10;
/// Taken bytes are dropped in multiples of this, so that a codec's alignment by position stays (16: a `long double` of CDR has no larger
/// one, nor has anything else).
const ALIGNMENT: usize = 16;

thread_local! {
    /// The thread's buffer for parts that are copied, while no send buffer has it.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Bytes to send: a flat buffer, with large shared parts spliced in at offsets.
#[derive(Debug, Default)]
pub struct SendBuffer {
    flat: Vec<u8>,
    /// The empty buffer of its own, while `flat` is the thread's.
    own: Option<Vec<u8>>,
    /// In ascending order.
    splices: Vec<Splice>,
    /// Sum of the splices' lengths, of what is left of them; and of all that they keep in memory.
    spliced: usize,
    kept: usize,
    /// Bytes already taken from the front, counted over both.
    taken: usize,
    /// (position of the byte they travel with, handles), in ascending order.
    attached: VecDeque<(usize, Vec<Handle>)>,
}

/// A part that stands before the byte of `flat` at an offset.
#[derive(Debug)]
struct Splice {
    at: usize,
    part: Bytes,
    /// Bytes that it keeps in memory: those that were taken, too.
    whole: usize,
}

impl SendBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// All bytes put in and not yet taken.
    pub fn len(&self) -> usize {
        self.flat.len() + self.spliced - self.taken
    }

    /// Whether nothing is left to take.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length counted from a byte that was put in before the first that is left: what a codec aligns by.
    pub fn position(&self) -> usize {
        self.flat.len() + self.spliced
    }

    /// The flat buffer, for codecs that write in place. Bytes that are there already may be patched; the buffer must
    /// not be shortened below a splice's offset (use [`SendBuffer::truncate`]).
    pub fn flat(&mut self) -> &mut Vec<u8> {
        &mut self.flat
    }

    /// Appends a shared part: by reference if it is large, else by copy.
    pub fn splice(&mut self, part: Bytes) {
        if part.len() < SPLICE {
            if part.len() >= LENT && self.own.is_none() {
                self.borrow(part.len());
            }
            self.flat.extend_from_slice(&part);
        } else {
            self.put_part(self.flat.len(), part);
        }
    }

    /// Moves what is there to the buffer of the thread, with room for so many bytes more. If another send buffer has it, a new one is made.
    fn borrow(&mut self, more: usize) {
        let wanted = self.flat.len() + more;
        if wanted > STALE {
            return;
        }
        let mut lent = SPARE.try_with(Cell::take).unwrap_or_default();
        lent.reserve(wanted);
        lent.extend_from_slice(&self.flat);
        let mut own = std::mem::replace(&mut self.flat, lent);
        if own.capacity() > LENT {
            own = Vec::new();
        }
        own.clear();
        self.own = Some(own);
    }

    /// Gives an empty buffer back to the thread, if it is the thread's.
    fn give_back(&mut self) {
        let Some(own) = self.own.take() else { return };
        let lent = std::mem::replace(&mut self.flat, own);
        if lent.capacity() <= 2 * SPLICE {
            // At the end of a thread nobody takes it any more.
            let _ = SPARE.try_with(|spare| spare.set(lent));
        }
    }

    fn put_part(&mut self, at: usize, part: Bytes) {
        let whole = part.len();
        self.spliced += whole;
        self.kept += whole;
        self.splices.push(Splice { at, part, whole });
    }

    /// Bytes that it keeps in memory: room that is not used and bytes that were taken included, and shared parts as if they were its own.
    #[inline]
    pub fn held(&self) -> usize {
        self.flat.capacity() + self.own.as_ref().map_or(0, Vec::capacity) + self.kept
    }

    /// What waits here for long, if it is much, becomes parts that hold no more memory than they need, and are copied no more. Marks
    /// end by it, positions do not.
    #[inline]
    pub fn settle(&mut self) {
        if self.flat.len() > STALE {
            self.settle_flat();
        }
    }

    #[cold]
    fn settle_flat(&mut self) {
        let mut flat = std::mem::replace(&mut self.flat, self.own.take().unwrap_or_default());
        flat.shrink_to_fit();
        let flat = Bytes::from(flat);
        let splices = std::mem::take(&mut self.splices);
        (self.spliced, self.kept) = (0, 0);
        let mut start = 0;
        for Splice { at, part, whole } in splices {
            if start < at {
                self.put_part(0, flat.slice(start..at));
            }
            start = at;
            self.spliced += part.len();
            self.kept += whole;
            self.splices.push(Splice { at: 0, part, whole });
        }
        if start < flat.len() {
            self.put_part(0, flat.slice(start..));
        }
    }

    /// Moves everything that another send buffer holds, handles apart, to the end of this one: shared parts by reference. For
    /// protocols that write the length of a message before it.
    #[inline]
    pub fn append(&mut self, other: &mut Self) {
        if other.splices.is_empty() {
            self.flat.extend_from_slice(other.flat.get(other.taken..).unwrap_or_default());
            other.taken = 0;
            other.attached.clear();
            other.flat.clear();
            return other.give_back();
        }
        self.append_parts(other);
    }

    fn append_parts(&mut self, other: &mut Self) {
        let mut skip = other.taken;
        let mut start = 0;
        for Splice { at, part, .. } in other.splices.drain(..) {
            let run = other.flat.get(start..at).unwrap_or_default();
            self.flat.extend_from_slice(run.get(skip.min(run.len())..).unwrap_or_default());
            skip = skip.saturating_sub(run.len());
            let whole = part.len();
            let part = part.slice(skip.min(whole)..);
            skip = skip.saturating_sub(whole);
            start = at;
            self.splice(part);
        }
        let run = other.flat.get(start..).unwrap_or_default();
        self.flat.extend_from_slice(run.get(skip.min(run.len())..).unwrap_or_default());
        (other.taken, other.spliced, other.kept) = (0, 0, 0);
        other.attached.clear();
        other.flat.clear();
        other.give_back();
    }

    /// Has handles travel with the byte at `position` (counted as [`SendBuffer::position`] does), mostly the first of a
    /// message that is put in already. Positions ascend.
    pub fn attach(&mut self, position: usize, handles: Vec<Handle>) {
        self.attached.push_back((position, handles));
    }

    /// The handles that travel with the next byte to send, and how many bytes may be sent with them, or without any,
    /// before the next ones.
    #[inline]
    pub fn handles(&self) -> (Option<&[Handle]>, usize) {
        let mut attached = self.attached.iter();
        let mut next = attached.next();
        let mut now = None;
        if let Some((at, handles)) = next
            && *at <= self.taken
        {
            now = Some(handles.as_slice());
            next = attached.next();
        }
        (now, next.map_or(usize::MAX, |(at, _)| at.saturating_sub(self.taken)))
    }

    /// A mark to return to with [`SendBuffer::truncate`].
    pub fn mark(&self) -> Mark {
        Mark { flat: self.flat.len(), splices: self.splices.len() }
    }

    /// Takes back everything put in since the mark: an encoding that failed half-way leaves no trace.
    pub fn truncate(&mut self, mark: Mark) {
        self.flat.truncate(mark.flat);
        // Handles are attached once a message is whole: none belongs to what is taken back.
        for Splice { part, whole, .. } in self.splices.drain(mark.splices..) {
            self.spliced -= part.len();
            self.kept -= whole;
        }
    }

    /// Puts bytes in where the mark was made, before what was put in since; handles are attached later.
    pub fn insert(&mut self, mark: Mark, bytes: &[u8]) {
        let at = mark.flat.min(self.flat.len());
        self.flat.splice(at..at, bytes.iter().copied());
        for splice in self.splices.iter_mut().skip(mark.splices) {
            splice.at += bytes.len();
        }
    }

    /// The bytes to send as slices: at most `limit` of them, with `most` bytes in all.
    pub fn slices(&self, limit: usize, most: usize) -> Vec<IoSlice<'_>> {
        self.pieces(most).take(limit).map(IoSlice::new).collect()
    }

    /// Fills slices with the bytes to send, `most` in all. Returns how many of them are used; no memory is allocated.
    pub fn gather<'b>(&'b self, most: usize, slices: &mut [IoSlice<'b>]) -> usize {
        let mut used = 0;
        for (slice, piece) in slices.iter_mut().zip(self.pieces(most)) {
            *slice = IoSlice::new(piece);
            used += 1;
        }
        used
    }

    /// What is not yet taken, piece by piece; no piece is empty.
    fn pieces(&self, most: usize) -> impl Iterator<Item = &[u8]> {
        let (mut skip, mut room) = (self.taken, most);
        self.parts().filter_map(move |part| {
            let start = skip.min(part.len());
            skip -= start;
            let end = start + (part.len() - start).min(room);
            room -= end - start;
            part.get(start..end).filter(|piece| !piece.is_empty())
        })
    }

    /// Flat runs and splices in the order in which they are sent.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.splices.iter().map(|splice| splice.at));
        let ends = self.splices.iter().map(|splice| splice.at).chain(std::iter::once(self.flat.len()));
        let runs = starts.zip(ends).map(|(start, end)| self.flat.get(start..end).unwrap_or_default());
        let splices = self.splices.iter().map(|splice| splice.part.as_ref()).chain(std::iter::once(&[][..]));
        runs.zip(splices).flat_map(|(run, splice)| [run, splice])
    }

    /// All bytes as one slice, where nothing is spliced: the common case, one `write`.
    pub fn contiguous(&self) -> Option<&[u8]> {
        if self.splices.is_empty() { self.flat.get(self.taken..) } else { None }
    }

    /// Takes `n` bytes from the front: they were sent. An emptied send buffer starts anew and keeps a small buffer only.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        // Mostly it is one run, and goes as a whole. The buffer of a thread has more room.
        if n == self.flat.len() && self.taken == 0 && !self.has_parts() && self.flat.capacity() < LENT {
            self.flat.clear();
            return;
        }
        self.consume_part(n);
    }

    fn consume_part(&mut self, n: usize) {
        if n > 0 && self.attached.front().is_some_and(|(at, _)| *at <= self.taken) {
            self.attached.pop_front();
        }
        self.taken += n;
        debug_assert!(self.taken <= self.position());
        if self.is_empty() {
            (self.taken, self.spliced, self.kept) = (0, 0, 0);
            // Mostly there are none.
            if self.has_parts() {
                self.splices.clear();
                self.attached.clear();
            }
            self.flat.clear();
            self.give_back();
            if self.flat.capacity() > STALE {
                self.flat = Vec::new();
            }
        } else if self.taken > STALE && (self.taken > self.len() || self.has_done_part()) {
            self.drop_taken();
        }
    }

    /// Whether a part was taken to its end, and to give it back moves no more bytes than it has.
    fn has_done_part(&self) -> bool {
        self.splices.first().is_some_and(|Splice { at, part, .. }| {
            self.taken >= at + part.len() && self.flat.len() <= part.len()
        })
    }

    fn has_parts(&self) -> bool {
        !self.splices.is_empty() || !self.attached.is_empty()
    }

    /// Gives back the memory of what was taken from the front.
    #[cold]
    fn drop_taken(&mut self) {
        let cut = self.taken - self.taken % ALIGNMENT;
        // Bytes still to be dropped, flat bytes that go, and splices that go as a whole.
        let (mut left, mut flat, mut gone) = (cut, 0, 0);
        for Splice { at, part, whole } in &mut self.splices {
            let run = at.saturating_sub(flat).min(left);
            flat += run;
            left -= run;
            let begin = part.len().min(left);
            left -= begin;
            self.spliced -= begin;
            if begin < part.len() {
                *part = part.slice(begin..);
                break;
            }
            self.kept -= *whole;
            gone += 1;
        }
        flat += left;
        self.splices.drain(..gone);
        self.flat.drain(..flat);
        for splice in &mut self.splices {
            splice.at -= flat;
        }
        for (at, _) in &mut self.attached {
            *at = at.saturating_sub(cut);
        }
        self.taken -= cut;
    }

    /// Gives back the memory of an empty buffer: connections that fall idle call this.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }

    /// Everything not yet taken, in order, without copying: shared parts as they are, what was written as parts of one buffer.
    pub fn into_parts(self) -> Vec<Bytes> {
        let mut parts = Vec::with_capacity(2 * self.splices.len() + 1);
        let flat = Bytes::from(self.flat);
        let (mut start, mut skip) = (0, self.taken);
        let mut put = |part: Bytes| {
            let begin = skip.min(part.len());
            skip -= begin;
            if begin < part.len() {
                parts.push(part.slice(begin..));
            }
        };
        for Splice { at, part, .. } in self.splices {
            put(flat.slice(start..at));
            put(part);
            start = at;
        }
        put(flat.slice(start..));
        parts
    }

    /// Everything not yet taken, copied into one buffer.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        self.slices(usize::MAX, usize::MAX).iter().for_each(|slice| all.extend_from_slice(slice));
        all
    }
}

/// A place in a [`SendBuffer`].
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    flat: usize,
    splices: usize,
}

impl Mark {
    /// Offset in [`SendBuffer::flat`].
    pub fn flat(self) -> usize {
        self.flat
    }

    /// The place so many flat bytes further on, if no part was spliced in between.
    #[must_use]
    pub fn behind(self, bytes: usize) -> Self {
        Self { flat: self.flat + bytes, ..self }
    }
}

#[cfg(test)]
mod tests;
