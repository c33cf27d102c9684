//! Bytes whose final offset is not known yet.
//!
//! What a pointer points to is written while the pointer is, but stands in the stub after everything around it. Until
//! then it is a segment: bytes, and the places in them where padding may be needed. Padding is inserted at once where
//! the offset is known modulo the alignment that is asked for, so marks are few.

/// Bytes to be placed later.
#[derive(Debug, Default)]
pub(super) struct Piece {
    bytes: Vec<u8>,
    /// (offset in `bytes`, alignment that the following byte needs), in ascending order.
    marks: Vec<(usize, usize)>,
}

/// Bytes being written, and what follows them.
#[derive(Debug)]
pub(super) struct Segment {
    piece: Piece,
    /// The final offset of the next byte is `shift + bytes.len()` modulo `modulus`.
    modulus: usize,
    shift: usize,
    /// Referents of the pointers in this segment, in order, each followed by its own.
    deferred: Vec<Piece>,
}

impl Segment {
    /// A segment that begins at this offset of the stub.
    pub(super) fn at(offset: usize) -> Self {
        Self { piece: Piece::default(), modulus: 8, shift: offset % 8, deferred: Vec::new() }
    }

    /// A segment that begins nobody knows where.
    pub(super) fn floating() -> Self {
        Self { piece: Piece::default(), modulus: 1, shift: 0, deferred: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.piece.bytes.len()
    }

    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.piece.bytes
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.piece.bytes
    }

    /// Makes the next byte stand at a multiple of `alignment`, which is a power of two up to 8.
    pub(super) fn align(&mut self, alignment: usize) {
        let len = self.piece.bytes.len();
        if alignment <= self.modulus {
            let over = (self.shift + len) % alignment;
            if over != 0 {
                self.piece.bytes.resize(len + alignment - over, 0);
            }
        } else {
            self.piece.marks.push((len, alignment));
            self.modulus = alignment;
            self.shift = (alignment - len % alignment) % alignment;
        }
    }

    pub(super) fn put(&mut self, alignment: usize, bytes: &[u8]) {
        self.align(alignment);
        self.piece.bytes.extend_from_slice(bytes);
    }

    /// Overwrites bytes that were written before.
    pub(super) fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(target) = self.piece.bytes.get_mut(at..at + bytes.len()) {
            target.copy_from_slice(bytes);
        }
    }

    /// Takes a referent, to be placed after this segment.
    pub(super) fn defer(&mut self, referent: Self) {
        self.deferred.push(referent.piece);
        self.deferred.extend(referent.deferred);
    }

    /// Places the deferred referents here.
    pub(super) fn settle(&mut self) {
        for piece in std::mem::take(&mut self.deferred) {
            let mut from = 0;
            for (at, alignment) in piece.marks {
                self.piece.bytes.extend_from_slice(piece.bytes.get(from..at).unwrap_or_default());
                self.align(alignment);
                from = at;
            }
            self.piece.bytes.extend_from_slice(piece.bytes.get(from..).unwrap_or_default());
        }
    }
}
