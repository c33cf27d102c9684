//! The words that records refer to by number: even numbers are static (MC-NBFS), odd ones of the session
//! (MC-NBFSE).
//!
//! A binary document may write a number in place of a name, a namespace or a text. Even numbers are those
//! of one table that everybody has. Odd numbers stand for words that this sender has sent before in the
//! same session: the payload of an envelope begins with a table of new words, which are numbered 1, 3, 5
//! and so on in the order in which they came.
//!
//! State: each direction of a session has its own words. `StringTable` are those that the peer sent; they only
//! grow. `Outgoing` are this side's: a word is learned when it is written first, stands in `fresh` until a
//! message carries the table (`fresh`, `told`), and is forgotten again with `forget` if its message is
//! not sent. A third state is adopting: the session passes on messages of another session and keeps their
//! numbers, so its own words stay empty and the other's are told to the peer instead.
//!
//! Invariants:
//!
//! * Both sides count alike: a number is used only if the word's table went out in the same message or
//!   before it. Whoever drops a message after `learn` has to call `forget`, or the numbers of the two sides
//!   differ from then on.
//! * The bytes of all words of one direction, length prefixes included, stay within `MaxSessionSize`: of
//!   the peer's words this is checked before a word is kept, and this side's writer goes on inline once the
//!   default quota is reached, as Microsoft's does.
//! * A peer's table is read by its own lengths and never beyond its end; each word is UTF-8.
//! * Words and adopted words never mix in one direction (`can_adopt`, `make_way`).

use crate::limits::{MAX_SESSION_SIZE, MAX_SESSION_WORDS};
use crate::nbfx::integer;
use crate::violations::Violation;
use everywire_model::visit::Visit;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// Both directions of the static table: by index, and by word.
struct Static {
    words: Vec<&'static str>,
    ids: HashMap<&'static str, u32>,
}

/// The table of MC-NBFS 2.2, whose file holds `number TAB word` in ascending order of even numbers.
static STATICS: LazyLock<Static> = LazyLock::new(|| {
    let rows = include_str!("dictionary.tsv").lines().filter(|row| !row.starts_with('#'));
    // The number in a row is for its reader: the index says the same (row n has number 2n).
    let words: Vec<&str> = rows.filter_map(|row| row.split_once('\t').map(|(_, word)| word)).collect();
    let ids = words.iter().zip((0..).step_by(2)).map(|(word, id)| (*word, id)).collect();
    Static { words, ids }
});

/// The static word with this number.
pub fn static_word(id: u32) -> Option<&'static str> {
    if id.is_multiple_of(2) { STATICS.words.get(id as usize / 2).copied() } else { None }
}

/// The number of a static word.
pub fn static_id(word: &str) -> Option<u32> {
    STATICS.ids.get(word).copied()
}

/// A word that is written often: a word of a contract, prepared once for a plan. Its static number is known beforehand, and
/// that of the session is remembered by a number of its own (`serial`), as far as there is room (`Outgoing::recent`).
#[derive(Debug, Clone)]
pub struct Term {
    text: Box<str>,
    static_id: Option<u32>,
    /// No other word has this number; copies of this one do.
    /// It is the key of `Outgoing::recent`, which so needs no comparison of texts.
    serial: u64,
}

impl PartialEq for Term {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Term {}

impl Term {
    /// Prepares a word.
    pub fn new(text: &str) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Self { text: text.into(), static_id: static_id(text), serial }
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Splits the payload of an envelope (MC-NBFSE 2.1): the table of new words, and the document.
///
/// # Errors
/// [`Violation::BadTable`].
pub fn split(payload: &[u8]) -> Visit<(&[u8], &[u8])> {
    let (len, head) = integer::read(payload, 0)?;
    let end = head.checked_add(len as usize);
    let parts = end.and_then(|end| payload.get(head..end).zip(payload.get(end..)));
    parts.ok_or_else(|| Violation::BadTable.at(head))
}

/// The words that the peer sent, in order; they last as long as the session.
/// Sessions share them in an `Arc` with the bodies that refer to them; a new word is learned into a copy if
/// somebody holds the old ones.
#[derive(Debug, Clone)]
pub struct StringTable {
    words: Vec<Box<str>>,
    /// Bytes of all tables so far, length prefixes included.
    size: usize,
    /// The most that `size` may be.
    quota: usize,
}

impl Default for StringTable {
    fn default() -> Self {
        Self::with_quota(MAX_SESSION_SIZE)
    }
}

impl StringTable {
    /// No words yet, and at most `quota` bytes of them, length prefixes included (`MaxSessionSize`).
    pub fn with_quota(quota: usize) -> Self {
        Self { words: Vec::new(), size: 0, quota }
    }

    /// Learns the words of a table.
    ///
    /// # Errors
    /// [`Violation::BadTable`], [`Violation::SessionTooLarge`]; words before the broken one are kept.
    pub fn learn(&mut self, table: &[u8]) -> Visit<()> {
        let mut at = 0;
        while at < table.len() {
            let (len, start) = integer::read(table, at)?;
            let end = start.checked_add(len as usize).ok_or_else(|| Violation::BadTable.at(at))?;
            let raw = table.get(start..end).ok_or_else(|| Violation::BadTable.at(at))?;
            self.size += end - at;
            if self.size > self.quota || self.words.len() >= MAX_SESSION_WORDS {
                // The session is over with that: the numbers of later words would not be the sender's.
                return Err(Violation::SessionTooLarge.at(at));
            }
            let word = std::str::from_utf8(raw).map_err(|_| Violation::BadText.at(start))?;
            self.words.push(word.into());
            at = end;
        }
        Ok(())
    }

    /// The word with this number, from either dictionary.
    pub fn word(&self, id: u32) -> Option<&str> {
        if id.is_multiple_of(2) {
            static_word(id)
        } else {
            self.words.get(id as usize / 2).map(AsRef::as_ref)
        }
    }

    /// Whether the first words of both are the same, as far as the shorter one goes.
    /// Words of a session only grow, so two that agree are two states of one session, or as good as that.
    fn agree(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).all(|(own, other)| own == other)
    }

    /// How many words were learned.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether no word was learned.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// Which words a writer replaces by numbers.
#[derive(Debug, Clone, Default)]
pub struct Outgoing {
    /// This side's own, with their numbers by index.
    words: HashMap<Box<str>, usize>,
    size: usize,
    /// New words that the peer has not been told yet.
    fresh: Vec<u8>,
    /// Whether static words are used.
    /// False in documents that have to name everything themselves.
    pub use_static: bool,
    /// Whether words are added to the session.
    pub learns: bool,
    /// Whether words of the session come before static ones: some peers put static words into their session.
    session_first: bool,
    /// Numbers that were found last, by the word's serial number.
    recent: Vec<(u64, u32)>,
    /// Whether the words of another session may be taken over (`adopt`). Only net.tcp's sessions do; a
    /// document that stands alone has no words to adopt.
    adopts: bool,
    /// Those words, and how many of them the peer was told.
    adopted: Option<(Arc<StringTable>, usize)>,
    /// The most bytes of one message; 0: as many as there are.
    /// The writer of a body refuses beyond it.
    pub most: usize,
}

/// How many numbers are remembered, first and at most (16 octets each); powers of two. There is as much room as the session
/// has words, of which the usual quota lets it have about 150.
/// A term's place follows from its serial number, so two terms of one contract seldom meet.
const RECENT: [usize; 2] = [32, 256];

/// A place in the words of a session, to go back to.
/// Marks are used in order: what was learned last is forgotten first.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    words: usize,
    size: usize,
    fresh: usize,
}

impl Outgoing {
    /// Static words, and session words that grow until the quota of the peer is reached: net.tcp.
    pub fn session() -> Self {
        Self { use_static: true, learns: true, adopts: true, ..Self::default() }
    }

    /// Static words only: messages that stand alone.
    pub fn statics() -> Self {
        Self { use_static: true, ..Self::default() }
    }

    /// No words: everything inline.
    pub fn inline() -> Self {
        Self::default()
    }

    /// The session words of a peer, for writing what it would; nothing is added to them.
    pub fn known(incoming: &StringTable) -> Self {
        let mut words = HashMap::with_capacity(incoming.words.len());
        for (word, index) in incoming.words.iter().zip(0..) {
            // Of a word that came twice the first number counts.
            words.entry(word.clone()).or_insert(index);
        }
        Self { words, size: incoming.size, use_static: true, session_first: true, ..Self::default() }
    }

    /// From now on messages of another session are passed on with their numbers. So this side learns no
    /// words of its own any more, unless it has learned some before: then the numbers cannot be kept.
    pub fn make_way(&mut self) {
        if self.adopts && self.words.is_empty() {
            self.learns = false;
        }
    }

    /// Whether numbers of these words mean the same to the peer, once it is told those that it has not met.
    #[inline]
    pub fn can_adopt(&self, words: &Arc<StringTable>) -> bool {
        match &self.adopted {
            Some((held, _)) if Arc::ptr_eq(held, words) => true,
            _ if words.is_empty() => true,
            // Nobody tells whether the peer's quota is larger than the default, as theirs may be who sent them.
            _ if words.size > MAX_SESSION_SIZE => false,
            Some((held, _)) => held.agree(words),
            None => self.adopts && self.words.is_empty(),
        }
    }

    /// Takes over these words, which [`Outgoing::can_adopt`] said can be: the table of those that the peer has not met is fresh.
    #[inline]
    pub fn adopt(&mut self, words: &Arc<StringTable>) {
        match &self.adopted {
            Some((held, _)) if Arc::ptr_eq(held, words) => {}
            _ if words.is_empty() => self.make_way(),
            _ => self.adopt_more(words),
        }
    }

    #[cold]
    fn adopt_more(&mut self, words: &Arc<StringTable>) {
        self.make_way();
        // The words of the other session as they stand now, and how many of them this peer knows already.
        let (held, told) = match self.adopted.take() {
            // An earlier state of them.
            Some((held, told)) if told > words.len() => (held, told),
            Some((_, told)) => (Arc::clone(words), told),
            None => (Arc::clone(words), 0),
        };
        for word in held.words.get(told..).unwrap_or_default() {
            integer::put_string(word, &mut self.fresh);
        }
        let told = held.len();
        self.adopted = Some((held, told));
    }

    /// The number to write instead of a word.
    pub fn id(&mut self, word: &str) -> Option<u32> {
        match if self.use_static { static_id(word) } else { None } {
            Some(id) if !self.session_first => Some(id),
            id => self.session_id(word).or(id),
        }
    }

    /// The number to write instead of a prepared word, which is one of a contract: those come from the session where there
    /// is one, even if they are static too, as Microsoft's writer does it.
    #[inline]
    pub fn number(&mut self, term: &Term) -> Option<u32> {
        if self.use_static && !self.session_first && !self.learns && term.static_id.is_some() {
            return term.static_id;
        }
        match self.recent.get(self.slot(term)) {
            Some((serial, number)) if *serial == term.serial => Some(*number),
            _ => self.look_up(term),
        }
    }

    /// Where the number of a term is remembered; the length is a power of two, or 0.
    #[inline]
    fn slot(&self, term: &Term) -> usize {
        term.serial as usize & self.recent.len().wrapping_sub(1)
    }

    fn look_up(&mut self, term: &Term) -> Option<u32> {
        let static_id = term.static_id.filter(|_| self.use_static);
        let number = self.session_id(&term.text).or(static_id)?;
        let [least, most] = RECENT;
        let room = self.words.len().clamp(least, most).next_power_of_two();
        if self.recent.len() < room {
            // What was remembered in other places is found again.
            self.recent.clear();
            self.recent.resize(room, (0, 0));
        }
        let slot = self.slot(term);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = (term.serial, number);
        }
        Some(number)
    }

    fn session_id(&mut self, word: &str) -> Option<u32> {
        let index = match self.words.get(word) {
            Some(index) => *index,
            None if self.learns => self.learn(word)?,
            None => return None,
        };
        u32::try_from(2 * index + 1).ok()
    }

    #[cold]
    fn learn(&mut self, word: &str) -> Option<usize> {
        if self.words.len() >= MAX_SESSION_WORDS {
            return None;
        }
        let before = self.fresh.len();
        integer::put_string(word, &mut self.fresh);
        let cost = self.fresh.len() - before;
        // Beyond the peer's default quota words go inline. Its real quota may be larger: nobody tells.
        if self.size + cost > MAX_SESSION_SIZE {
            self.fresh.truncate(before);
            return None;
        }
        self.size += cost;
        let index = self.words.len();
        self.words.insert(word.into(), index);
        Some(index)
    }

    /// The new words that the peer has not been told: the table that stands before the next document.
    pub fn fresh(&self) -> &[u8] {
        &self.fresh
    }

    /// The peer was told: the table went out.
    /// From now on their numbers may be used without a table.
    pub fn told(&mut self) {
        self.fresh.clear();
    }

    /// A place to go back to with [`Outgoing::forget`], should the document not be sent.
    pub fn mark(&self) -> Mark {
        Mark { words: self.words.len(), size: self.size, fresh: self.fresh.len() }
    }

    /// Forgets the words learned since the mark.
    pub fn forget(&mut self, mark: Mark) {
        if self.words.len() > mark.words {
            self.words.retain(|_, index| *index < mark.words);
            // A number found since the mark may be of a word that is gone.
            self.recent.clear();
            self.size = mark.size;
            self.fresh.truncate(mark.fresh);
        }
    }
}
