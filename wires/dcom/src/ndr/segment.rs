//! Bytes whose final offset is not known yet.
//!
//! What a pointer points to is written while the pointer is, but stands in the stub after everything around it. The
//! visit comes depth first and so does the stub: it is enough to keep one segment for each depth of open referents,
//! and to put each behind the one around it when that ends. Padding is inserted at once where the offset is known
//! modulo the alignment that is asked for; where it is not, a mark is left.
//!
//! Invariants: alignment never exceeds 8; `shift` and `modulus` describe what is known of the final offset of
//! the next byte; a mark is set only when an alignment greater than `modulus` is asked for, which then
//! becomes the modulus, so there are three marks at the most and both their members ascend.

/// Alignments that can be unknown, one after another, before all are known: 2, 4, 8.
const MARKS: usize = 3;

/// Bytes being written.
#[derive(Debug)]
pub(super) struct Segment {
    bytes: Vec<u8>,
    /// (offset in `bytes`, alignment that the byte there needs), in ascending order of both.
    marks: [(usize, usize); MARKS],
    marked: usize,
    /// The final offset of the next byte is `shift + bytes.len()` modulo `modulus`.
    modulus: usize,
    /// What is added to the length, see `modulus`.
    shift: usize,
}

impl Segment {
    /// A segment that goes on behind these bytes; the offset that alignment counts from is `origin` bytes into them
    /// (which may be before their first).
    pub(super) fn behind(bytes: Vec<u8>, origin: isize) -> Self {
        let shift = origin.wrapping_neg().rem_euclid(8).unsigned_abs();
        Self { bytes, marks: [(0, 0); MARKS], marked: 0, modulus: 8, shift }
    }

    /// A segment that begins nobody knows where.
    pub(super) fn floating() -> Self {
        Self { bytes: Vec::new(), marks: [(0, 0); MARKS], marked: 0, modulus: 1, shift: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Makes the next byte stand at a multiple of `alignment`, which is a power of two up to 8.
    /// Padding is always zeros.
    #[inline]
    pub(super) fn align(&mut self, alignment: usize) {
        let len = self.bytes.len();
        if alignment <= self.modulus {
            let over = (self.shift + len) & (alignment - 1);
            if over != 0 {
                self.bytes.resize(len + alignment - over, 0);
            }
        } else if let Some(mark) = self.marks.get_mut(self.marked) {
            *mark = (len, alignment);
            self.marked += 1;
            self.modulus = alignment;
            self.shift = alignment.wrapping_sub(len) & (alignment - 1);
        }
    }

    #[inline]
    pub(super) fn put(&mut self, alignment: usize, bytes: &[u8]) {
        self.align(alignment);
        self.bytes.extend_from_slice(bytes);
    }

    /// Overwrites bytes that were written before.
    pub(super) fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(target) = self.bytes.get_mut(at..at + bytes.len()) {
            target.copy_from_slice(bytes);
        }
    }

    /// Puts what `deferred` holds behind this, and empties it.
    /// Where `deferred` has marks, its bytes are cut there and padded for the offset that is known now. That
    /// changes no padding between marks, since each part was aligned relative to its mark.
    pub(super) fn settle(&mut self, deferred: &mut Self) {
        if deferred.bytes.is_empty() && deferred.marked == 0 {
            return;
        }
        let mut from = 0;
        for (at, alignment) in deferred.marks.into_iter().take(deferred.marked) {
            self.bytes.extend_from_slice(deferred.bytes.get(from..at).unwrap_or_default());
            self.align(alignment);
            from = at;
        }
        self.bytes.extend_from_slice(deferred.bytes.get(from..).unwrap_or_default());
        deferred.bytes.clear();
        (deferred.marked, deferred.modulus, deferred.shift) = (0, 1, 0);
    }
}
