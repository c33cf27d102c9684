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
use std::sync::{LazyLock, Mutex, PoisonError};

/// Contracts that are kept, which may be large. A program that has read more than that, all of them different, reads the next ones without
/// the table.
const CONTRACTS: usize = 1 << 8;

/// Tells texts apart, by keys that nobody outside the process knows. With random keys a stranger cannot make two texts with one hash; two
/// of them make 128 bits.
static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);

static KEPT: LazyLock<Mutex<HashMap<Origin, Result<Contract, Diagnostics>>>> = LazyLock::new(Mutex::default);

/// What something was read from.
pub(crate) type Origin = [u64; 2];

/// What tells these documents from others.
pub(crate) fn origin(documents: &(impl Hash + ?Sized)) -> Origin {
    KEYS.each_ref().map(|key| key.hash_one(documents))
}

/// The contract that `build` makes of the files of a report, or what it made of the same files before. The language and what the
/// preprocessor was given belong to the key.
pub(crate) fn built(
    mut report: Report,
    language: &str,
    given: &Preprocessing,
    build: impl FnOnce(&mut Report) -> Contract,
) -> Result<Contract, Diagnostics> {
    let files: Vec<(&str, &str)> = report.files().collect();
    let key = origin(&(language, &given.directories, &given.macros, files));
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept().get(&key) {
        return known.clone();
    }
    let contract = build(&mut report);
    let has_cells = report.has_cells();
    let read = if report.failed() { Err(report.finish()) } else { Ok(contract) };
    let mut kept = kept();
    if has_cells && kept.len() < CONTRACTS {
        kept.insert(key, read.clone());
    }
    read
}
