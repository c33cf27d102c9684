//! What a test does when a peer is not here: it says so in one line that is counted, and fails under `CI=true`.

use crate::{Peer, find, install_hint, peer};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether all of these are here: peers of the list, or programs of theirs. If not, the test is skipped (see [`skip`]).
///
/// # Panics
/// As [`skip`] does; or one is not in the list.
#[must_use]
pub fn here(test: &str, names: &[&str]) -> bool {
    let lacks = |name: &&str| {
        let peer = peer(name);
        match (peer.name == *name, find(name)) {
            (true, _) => peer.lacks(),
            (false, None) => vec![(*name).to_owned()],
            (false, Some(_)) => Vec::new(),
        }
    };
    let missing: Vec<String> = names.iter().flat_map(lacks).collect();
    if missing.is_empty() {
        return true;
    }
    skip(test, &format!("{missing:?} not found; install with: {}", install_hint(names)));
    false
}

/// Where a peer of the user's cache is; it is put there now if it is not yet. If it cannot be, the test is skipped (see [`skip`]).
///
/// # Panics
/// As [`skip`] does; or it is not in the list.
#[must_use]
pub fn cached(test: &str, name: &str) -> Option<PathBuf> {
    let peer = peer(name);
    let folder = |peer: &Peer| peer.folder().filter(|_| peer.lacks().is_empty());
    if let Some(found) = folder(&peer) {
        return Some(found);
    }
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/setup.sh");
    // What happens is told by whether it is here afterwards.
    let _ = Command::new("bash").arg(setup).arg(peer.name).status();
    let found = folder(&peer);
    if found.is_none() {
        skip(test, &format!("{name} not found; install with: {}", install_hint(&[name])));
    }
    found
}

/// Says on stderr that a test is skipped, in one line that begins with `SKIPPED:`, and adds the line to the file that
/// `EVERYWIRE_SKIPS` names, where a run of all tests counts them.
///
/// # Panics
/// Under `CI=true`, where everything must be there.
pub fn skip(test: &str, why: &str) {
    let line = format!("SKIPPED: {test}: {why}");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{line}");
    eprintln!("{line}");
    if let Ok(list) = std::env::var("EVERYWIRE_SKIPS") {
        use std::io::Write;
        if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(list) {
            // The count is a service to the reader of the run; the line above was printed anyway.
            let _ = writeln!(file, "{line}");
        }
    }
}
