//! Words in their order, found by a hash that was worked out before.
//!
//! The index of a word is its number in the session, so words are only added at the end and cut from the
//! end. There are few (see `MAX_SESSION_WORDS`), and each written name asks once: a general map with its
//! own hash would cost more than the look-up itself.

/// A list of words with an index of open addressing.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// In the order of their numbers, each with its hash.
    words: Vec<(u32, Box<str>)>,
    /// Index into `words` plus one, 0 where nothing is; a power of two, never more than half full.
    slots: Vec<u16>,
}

/// FNV-1a, 32 bits. It need not withstand attacks: only words of this side's contracts get in, or those of
/// a session whose size is bounded.
pub(super) fn hash(word: &str) -> u32 {
    word.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The index of a word; `None` if it is not there. It ends, since at least half of the slots are empty.
    pub(super) fn find(&self, hash: u32, word: &str) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        loop {
            let index = usize::from(*self.slots.get(slot)?).checked_sub(1)?;
            let (known, text) = self.words.get(index)?;
            if *known == hash && **text == *word {
                return Some(index);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Adds a word that is not there; there are never more than a `u16` counts.
    pub(super) fn push(&mut self, hash: u32, word: &str) -> usize {
        let index = self.words.len();
        self.words.push((hash, word.into()));
        if 2 * self.words.len() > self.slots.len() {
            self.index();
        } else {
            self.occupy(hash, index);
        }
        index
    }

    /// Cuts the words from `len` on. The slots are filled anew: an emptied slot would hide those that stand
    /// behind it.
    pub(super) fn truncate(&mut self, len: usize) {
        self.words.truncate(len);
        self.index();
    }

    /// Fills the slots anew, four for each word, so that they are doubled less often.
    fn index(&mut self) {
        let size = (4 * self.words.len()).next_power_of_two().max(64);
        self.slots.clear();
        self.slots.resize(size, 0);
        for index in 0..self.words.len() {
            if let Some((hash, _)) = self.words.get(index) {
                self.occupy(*hash, index);
            }
        }
    }

    /// Writes an index into the next free slot from the one of its hash on.
    fn occupy(&mut self, hash: u32, index: usize) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots.get(slot).is_some_and(|held| *held != 0) {
            slot = (slot + 1) & mask;
        }
        if let (Some(held), Ok(index)) = (self.slots.get_mut(slot), u16::try_from(index + 1)) {
            *held = index;
        }
    }
}
