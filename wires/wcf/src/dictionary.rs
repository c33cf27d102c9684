//! The words that records refer to by number: even numbers are static (MC-NBFS), odd ones of the session (MC-NBFSE).

use crate::limits::{MAX_SESSION_SIZE, MAX_SESSION_WORDS};
use crate::nbfx::integer;
use crate::violations::Violation;
use everywire_model::visit::Visit;
use std::collections::HashMap;
use std::sync::OnceLock;

struct Static {
    words: Vec<&'static str>,
    ids: HashMap<&'static str, u32>,
}

/// The table of MC-NBFS 2.2, whose file holds `number TAB word` in ascending order of even numbers.
fn table() -> &'static Static {
    static TABLE: OnceLock<Static> = OnceLock::new();
    TABLE.get_or_init(|| {
        let rows = include_str!("dictionary.tsv").lines().filter(|row| !row.starts_with('#'));
        let words: Vec<&str> = rows.filter_map(|row| row.split_once('\t').map(|(_, word)| word)).collect();
        let ids = words.iter().zip((0..).step_by(2)).map(|(word, id)| (*word, id)).collect();
        Static { words, ids }
    })
}

/// The static word with this number.
pub fn static_word(id: u32) -> Option<&'static str> {
    if id.is_multiple_of(2) { table().words.get(id as usize / 2).copied() } else { None }
}

/// The number of a static word.
pub fn static_id(word: &str) -> Option<u32> {
    table().ids.get(word).copied()
}

/// The words that the peer sent, in order; they last as long as the session.
#[derive(Debug, Clone, Default)]
pub struct Incoming {
    words: Vec<Box<str>>,
    size: usize,
}

impl Incoming {
    /// Splits the payload of an envelope (MC-NBFSE 2.1), learns its new words, and returns the document.
    ///
    /// # Errors
    /// [`Violation::BadTable`], [`Violation::SessionTooLarge`].
    pub fn receive<'a>(&mut self, payload: &'a [u8]) -> Visit<&'a [u8]> {
        let (len, head) = integer::read(payload, 0)?;
        let end = head.checked_add(len as usize);
        match end.and_then(|end| payload.get(head..end).zip(payload.get(end..))) {
            Some((table, document)) => {
                self.learn(table)?;
                Ok(document)
            }
            None => Err(Violation::BadTable.at(head)),
        }
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
            if self.size > MAX_SESSION_SIZE || self.words.len() >= MAX_SESSION_WORDS {
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

    /// All words as one table, which [`Incoming::learn`] reads.
    pub fn table(&self) -> Vec<u8> {
        let mut table = Vec::with_capacity(self.size);
        for word in &self.words {
            put_word(word, &mut table);
        }
        table
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
    ids: HashMap<Box<str>, u32>,
    size: usize,
    /// New words that the peer has not been told yet.
    fresh: Vec<u8>,
    /// Whether static words are used.
    pub use_static: bool,
    /// Whether words are added to the session.
    pub learns: bool,
}

impl Outgoing {
    /// Static words, and session words that grow until the quota of the peer is reached: net.tcp.
    pub fn session() -> Self {
        Self { use_static: true, learns: true, ..Self::default() }
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
    pub fn known(incoming: &Incoming) -> Self {
        let ids = incoming.words.iter().zip((1..).step_by(2)).map(|(word, id)| (word.clone(), id)).collect();
        Self { ids, size: incoming.size, use_static: true, ..Self::default() }
    }

    /// The number to write instead of a word.
    pub fn id(&mut self, word: &str) -> Option<u32> {
        if let Some(id) = self.ids.get(word) {
            return Some(*id);
        }
        if let Some(id) = static_id(word).filter(|_| self.use_static) {
            return Some(id);
        }
        let before = self.fresh.len();
        if !self.learns || self.ids.len() >= MAX_SESSION_WORDS {
            return None;
        }
        put_word(word, &mut self.fresh);
        let cost = self.fresh.len() - before;
        if self.size + cost > MAX_SESSION_SIZE {
            self.fresh.truncate(before);
            return None;
        }
        self.size += cost;
        let id = u32::try_from(2 * self.ids.len() + 1).ok()?;
        self.ids.insert(word.into(), id);
        Some(id)
    }

    /// Joins the table of new words and a document to the payload of an envelope; the peer then knows the words.
    pub fn payload(&mut self, document: &[u8]) -> Vec<u8> {
        let table = std::mem::take(&mut self.fresh);
        let mut payload = Vec::with_capacity(table.len() + document.len() + 5);
        integer::put(table.len(), &mut payload);
        payload.extend_from_slice(&table);
        payload.extend_from_slice(document);
        payload
    }
}

fn put_word(word: &str, out: &mut Vec<u8>) {
    integer::put(word.len(), out);
    out.extend_from_slice(word.as_bytes());
}
