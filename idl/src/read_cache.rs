//! Contracts that are read again, such as by a broker that reloads its files.
//!
//! A type that is used before it is complete has a cell, which lives as long as the process. Without the table here, a program that reads
//! the same files again and again would make new cells each time. What the reading of files gave is kept if it made cells: a
//! contract, or its mistakes. The key is a hash of all that the reading depends on.

use crate::diagnostics::Diagnostics;
use crate::preprocessing::Preprocessing;
use crate::report::Report;
use everywire_model::Contract;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Contracts that are kept. A program that has read more than that, all of them different, reads the next ones without the table.
const CONTRACTS: usize = 1 << 8;
/// Bytes of the texts of all contracts that are kept, which tell how large these are.
const TEXTS: usize = 64 << 20;

/// Tells texts apart, by keys that nobody outside the process knows. With random keys a stranger cannot make two texts with one hash; two
/// of them make 128 bits.
static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);

static KEPT: LazyLock<Mutex<ReadCache>> = LazyLock::new(Mutex::default);

/// What was read, by what it was read from.
#[derive(Default)]
struct ReadCache {
    table: HashMap<Origin, Arc<Read>>,
    /// Bytes of all their texts; at most `TEXTS`.
    texts: usize,
}

/// What the reading of files gave.
type Read = Result<Contract, Diagnostics>;

/// What something was read from.
pub(crate) type Origin = [u64; 2];

/// What tells these documents from others.
pub(crate) fn origin(documents: &(impl Hash + ?Sized)) -> Origin {
    KEYS.each_ref().map(|key| key.hash_one(documents))
}

impl ReadCache {
    /// Keeps what was read, or says what another thread kept of the same files in the meantime. None where there is no room for it.
    fn keep(&mut self, key: Origin, texts: usize, read: &Arc<Read>) -> Option<Arc<Read>> {
        if let Some(known) = self.table.get(&key) {
            return Some(Arc::clone(known));
        }
        let sum = self.texts.saturating_add(texts);
        if self.table.len() >= CONTRACTS || sum > TEXTS {
            return None;
        }
        self.texts = sum;
        self.table.insert(key, Arc::clone(read));
        None
    }
}

/// The contract that `build` makes of the files of a report, or what it made of the same files before. The language and what the
/// preprocessor was given belong to the key, and so do the mistakes so far: they tell of files that could not be read.
pub(crate) fn built(
    mut report: Report,
    language: &str,
    given: &Preprocessing,
    build: impl FnOnce(&mut Report) -> Contract,
) -> Result<Contract, Diagnostics> {
    let files: Vec<(&str, &str)> = report.files().collect();
    let texts = files.iter().map(|(name, text)| name.len() + text.len()).sum();
    let mistakes: Vec<_> = report.mistakes().collect();
    let key = origin(&(language, &given.directories, &given.macros, files, mistakes));
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    // Contracts are copied after the table is free again: they may be large.
    let known = kept().table.get(&key).cloned();
    if let Some(known) = known {
        return Read::clone(&known);
    }
    let contract = build(&mut report);
    let has_cells = report.has_cells();
    let read = if report.failed() { Err(report.finish()) } else { Ok(contract) };
    if !has_cells {
        return read;
    }
    let read = Arc::new(read);
    let known = kept().keep(key, texts, &read);
    Arc::try_unwrap(known.unwrap_or(read)).unwrap_or_else(|shared| Read::clone(&shared))
}

#[cfg(test)]
mod tests {
    use super::{Read, ReadCache, TEXTS};
    use everywire_model::Contract;
    use std::sync::Arc;

    fn read() -> Arc<Read> {
        Arc::new(Ok(Contract { definitions: Vec::new() }))
    }

    /// The one that is first stays: others may hold its cells by then.
    #[test]
    fn of_two_threads_with_the_same_files_the_first_counts() {
        let (mut kept, first) = (ReadCache::default(), read());
        assert!(kept.keep([1, 1], 1, &first).is_none());
        assert!(kept.keep([1, 1], 1, &read()).is_some_and(|known| Arc::ptr_eq(&known, &first)));
        assert_eq!((kept.table.len(), kept.texts), (1, 1));
    }

    #[test]
    fn what_is_kept_is_bounded_by_its_text() {
        let mut kept = ReadCache::default();
        assert!(kept.keep([1, 1], TEXTS - 1, &read()).is_none());
        assert!(kept.keep([2, 2], 2, &read()).is_none());
        assert_eq!((kept.table.len(), kept.texts), (1, TEXTS - 1));
        assert!(kept.keep([3, 3], 1, &read()).is_none());
        assert_eq!((kept.table.len(), kept.texts), (2, TEXTS));
    }
}
