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

use crate::body::Handle;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Parts at least this long are spliced in by reference; shorter ones are cheaper to copy.
pub const SPLICE: usize = 16 << 10;
/// Bytes taken from the front from which on they are dropped, if there are more of them than of the rest.
const STALE: usize = 64 << 10;
/// Taken bytes are dropped in multiples of this, so that a codec's alignment by position stays (16: a `long double` of CDR has no larger
/// one, nor has anything else).
const ALIGNMENT: usize = 16;

/// Bytes to send: a flat buffer, with large shared parts spliced in at offsets.
#[derive(Debug, Default)]
pub struct SendBuffer {
    flat: Vec<u8>,
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
            self.flat.extend_from_slice(&part);
        } else {
            self.put_part(self.flat.len(), part);
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
        self.flat.capacity() + self.kept
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
        let mut flat = std::mem::take(&mut self.flat);
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
            return other.flat.clear();
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
        let mut out = Vec::with_capacity((2 * self.splices.len() + 1).min(limit));
        let (mut skip, mut room) = (self.taken, most);
        for part in self.parts() {
            let (start, left) = (skip.min(part.len()), part.len().saturating_sub(skip));
            skip -= start;
            let end = start + left.min(room);
            room -= end - start;
            if start < end && out.len() < limit {
                out.push(IoSlice::new(&part[start..end]));
            }
        }
        out
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
        // Mostly it is one run, and goes as a whole.
        if n == self.flat.len() && self.taken == 0 && !self.has_parts() && self.flat.capacity() <= STALE {
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
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_was_put_in_and_not_taken() {
        for taken in [0, 2, 4, 100, SPLICE + 4, SPLICE + 6] {
            let mut buffer = SendBuffer::new();
            buffer.flat().extend_from_slice(b"head");
            let part = Bytes::from(vec![b'x'; SPLICE]);
            buffer.splice(part.clone());
            buffer.flat().extend_from_slice(b"tail");
            buffer.consume(taken);
            let all = buffer.to_vec();
            let parts = buffer.into_parts();
            assert_eq!(parts.concat(), all, "{taken} taken");
            assert!(parts.iter().all(|part| !part.is_empty()));
            if taken == 0 {
                assert_eq!((parts.len(), parts[1].as_ptr()), (3, part.as_ptr()), "nothing is copied");
            }
        }
        assert!(SendBuffer::new().into_parts().is_empty());
    }

    #[test]
    fn splices_keep_their_place_and_are_consumed_in_order() {
        let mut buffer = SendBuffer::new();
        buffer.flat().extend_from_slice(b"head");
        buffer.splice(Bytes::from(vec![b'x'; SPLICE]));
        buffer.flat().extend_from_slice(b"tail");
        let mut all = b"head".to_vec();
        all.extend(vec![b'x'; SPLICE]);
        all.extend(b"tail");
        for step in [1, 3, 100, SPLICE] {
            let mut rope2 = SendBuffer::new();
            rope2.flat().extend_from_slice(b"head");
            rope2.splice(Bytes::from(vec![b'x'; SPLICE]));
            rope2.flat().extend_from_slice(b"tail");
            let mut seen = Vec::new();
            while !rope2.is_empty() {
                let first = rope2.slices(1, usize::MAX)[0].to_vec();
                let n = first.len().min(step);
                seen.extend_from_slice(&first[..n]);
                rope2.consume(n);
            }
            assert_eq!(seen, all);
        }
        assert_eq!(buffer.to_vec(), all);
    }

    #[test]
    fn a_buffer_that_never_empties_drops_what_was_sent() {
        let mut buffer = SendBuffer::new();
        let (mut put, mut seen, mut seed) = (Vec::new(), Vec::new(), 1_u32);
        for round in 0..2_000_u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let small = vec![round.to_le_bytes()[0]; seed as usize >> 20];
            buffer.flat().extend_from_slice(&small);
            put.extend_from_slice(&small);
            if round % 7 == 0 {
                let large = vec![round.to_le_bytes()[1]; SPLICE + (seed as usize >> 22)];
                buffer.splice(Bytes::from(large.clone()));
                put.extend_from_slice(&large);
            }
            // Sometimes within a flat run, sometimes within a splice; never all.
            let taken = (buffer.len() - 1).min(seed as usize >> 18);
            seen.extend(buffer.slices(usize::MAX, taken).iter().flat_map(|slice| slice.iter().copied()));
            let aligned = buffer.position() % ALIGNMENT;
            buffer.consume(taken);
            assert_eq!(buffer.position() % ALIGNMENT, aligned);
            assert_eq!(buffer.len(), put.len() - seen.len());
            assert!(
                buffer.position() <= 2 * buffer.len() + STALE + 2 * ALIGNMENT,
                "{} octets are kept of {}",
                buffer.position(),
                buffer.len()
            );
        }
        seen.extend(buffer.to_vec());
        assert_eq!(seen, put);
    }

    #[test]
    fn what_settles_holds_what_is_in_it_and_keeps_its_order() {
        let mut buffer = SendBuffer::new();
        let mut all = Vec::new();
        let mut put = |buffer: &mut SendBuffer, octet: u8, size: usize, splice: bool| {
            let bytes = vec![octet; size];
            all.extend_from_slice(&bytes);
            if splice { buffer.splice(bytes.into()) } else { buffer.flat().extend_from_slice(&bytes) }
        };
        put(&mut buffer, 1, STALE, false);
        buffer.settle();
        assert!(buffer.contiguous().is_some(), "so little is left as it is");
        put(&mut buffer, 2, SPLICE, true);
        put(&mut buffer, 3, 5, false);
        put(&mut buffer, 4, SPLICE, true);
        assert!(buffer.held() > buffer.len() + STALE / 2, "room for as much again");
        let at = buffer.position();
        buffer.settle();
        assert_eq!((buffer.held(), buffer.position(), buffer.len()), (at, at, at));
        assert_eq!(buffer.flat.capacity(), 0);
        put(&mut buffer, 5, 2 * STALE, false);
        put(&mut buffer, 6, SPLICE, true);
        // In the middle of a part, and behind some.
        for taken in [7, STALE + SPLICE + 3, 9] {
            buffer.consume(taken);
            buffer.settle();
        }
        put(&mut buffer, 7, 3, false);
        let taken = 7 + STALE + SPLICE + 3 + 9;
        assert_eq!(buffer.to_vec(), all[taken..]);
        let mark = buffer.mark();
        buffer.splice(vec![8; SPLICE].into());
        buffer.truncate(mark);
        assert_eq!(buffer.to_vec(), all[taken..]);
        assert_eq!(buffer.into_parts().concat(), all[taken..]);
    }

    #[test]
    fn a_part_counts_as_a_whole_until_it_is_given_back() {
        let (part, count) = (8 * SPLICE, 6);
        let mut buffer = SendBuffer::new();
        for _ in 0..count {
            buffer.splice(vec![0; part].into());
        }
        // Each goes when its end was taken, though more than half of all waits.
        for gone in 0..count {
            assert_eq!(buffer.held(), (count - gone) * part, "{gone} were taken");
            buffer.consume(part - 1);
            assert_eq!(buffer.held(), (count - gone) * part, "its end waits");
            buffer.consume(1);
        }
        assert_eq!((buffer.held(), buffer.len()), (0, 0));
    }

    #[test]
    fn handles_keep_their_place_when_what_was_sent_is_dropped() {
        let mut buffer = SendBuffer::new();
        buffer.flat().extend_from_slice(&vec![0; 3 * STALE]);
        let at = buffer.position();
        buffer.flat().extend_from_slice(b"with them");
        buffer.attach(at, Vec::new());
        buffer.consume(2 * STALE + 5);
        assert_eq!(buffer.handles().1, STALE - 5, "so many octets go before them");
        buffer.consume(STALE - 5);
        assert!(buffer.handles().0.is_some() && buffer.to_vec() == b"with them");
    }

    #[test]
    fn what_is_inserted_stands_before_what_came_since_the_mark() {
        let mut buffer = SendBuffer::new();
        buffer.flat().extend_from_slice(b"a");
        buffer.splice(Bytes::from(vec![b'x'; SPLICE]));
        let mark = buffer.mark();
        buffer.flat().extend_from_slice(b"b");
        buffer.splice(Bytes::from(vec![b'y'; SPLICE]));
        buffer.flat().extend_from_slice(b"c");
        buffer.insert(mark, b"12");
        let mut all = b"a".to_vec();
        all.extend(vec![b'x'; SPLICE]);
        all.extend(b"12b");
        all.extend(vec![b'y'; SPLICE]);
        all.extend(b"c");
        assert_eq!((buffer.to_vec(), buffer.len()), (all.clone(), all.len()));
    }

    #[test]
    fn truncate_leaves_no_trace() {
        let mut buffer = SendBuffer::new();
        buffer.flat().extend_from_slice(b"keep");
        let mark = buffer.mark();
        buffer.splice(Bytes::from(vec![0; SPLICE]));
        buffer.flat().push(1);
        buffer.truncate(mark);
        assert_eq!(buffer.to_vec(), b"keep");
        assert_eq!(buffer.len(), 4);
    }

    #[test]
    fn a_rope_appended_to_another_keeps_its_order() {
        for taken in [0, 1, 3, 4, SPLICE, SPLICE + 4, SPLICE + 6] {
            let mut other = SendBuffer::new();
            other.flat().extend_from_slice(b"one");
            other.splice(Bytes::from(vec![7; SPLICE]));
            other.flat().extend_from_slice(b"two");
            other.consume(taken);
            let mut buffer = SendBuffer::new();
            buffer.flat().extend_from_slice(b"zero");
            let whole = [&b"zero"[..], &other.to_vec()].concat();
            buffer.append(&mut other);
            assert_eq!(buffer.to_vec(), whole, "{taken} taken");
            assert_eq!(buffer.len(), whole.len());
            assert!(other.is_empty() && other.to_vec().is_empty());
        }
    }
}
