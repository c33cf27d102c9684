//! Completion of addresses, objects and operations: asked from whoever is named so far, with little
//! patience.
//!
//! A shell runs the program anew for each press of a key, with a variable that says so; `answer` then
//! prints candidates and ends the process before anything else happens. What has to be asked over a
//! network is kept in a file for `FRESH`, one file a question, in the user's cache directory
//! (`cached`).
//!
//! * A candidate is a whole word as the shell is to insert it, quoted if it needs to be.
//! * Members of an object come from a contract file if the line names one, else from the object.
//!
//! Invariants: whatever fails is no candidate: nothing is printed but candidates, and no error is told.
//! Each question to a peer has `PATIENCE`. The directory of the cache belongs to this user, or is not
//! used. Names from peers are data: one with a line end is dropped.

use crate::contract::{self, Preprocess};
use crate::stranger::time_said;
use crate::{opcda, target};
use clap::Command;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::CompleteEnv;
use everywire::{Node, Object};
use everywire_dynamic::{ObjectContract, operation};
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long each call to a peer may take unless the user says otherwise ([`time_said`]): somebody waits with a finger on the key.
const PATIENCE: Duration = Duration::from_millis(700);
/// How long an answer is used again.
const FRESH: Duration = Duration::from_secs(20);
/// The most candidates of one answer.
const MOST: usize = 500;
/// The variable by which shells ask: the library for completion reads it, and the scripts that it makes
/// set it.
pub(crate) const VARIABLE: &str = "EVERYWIRE_COMPLETE";

/// How addresses begin: what is offered while no scheme is complete.
const SCHEMES: &[&str] = &[
    "iiop://",
    "iiop+unix://",
    "corbaloc:",
    "dbus:session/",
    "dbus:system/",
    "dbus+unix://",
    "dcop:",
    "dcom://",
    "net.tcp://",
    "basic://",
    "wshttp://",
    "soap12://",
    "opcda://",
];

/// Answers a shell, and ends the process, if it is one that asks; else does nothing. To be called first
/// in `main`: the library changes the environment, which is safe only while there is one thread.
pub(crate) fn answer(command: fn() -> Command) {
    // What clap does to the environment is done before there are threads.
    CompleteEnv::with_factory(command).var(VARIABLE).bin("everywire").complete();
}

/// Addresses that begin like `current`: schemes and files first; once a scheme is there, what the peer
/// above lists.
pub(crate) fn addresses(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some((text, quote)) = plain(current) else { return Vec::new() };
    if text.starts_with('@') {
        return files(text, quote);
    }
    let known = |scheme: &&&str| scheme.starts_with(text);
    let begins: Vec<&&str> = SCHEMES.iter().filter(known).collect();
    if !begins.is_empty() {
        let all = begins.into_iter().map(|scheme| candidate(scheme, quote));
        return if text.is_empty() { all.collect() } else { all.chain(files(text, quote)).collect() };
    }
    // Whoever is named up to the last slash is asked who is below; at `dcop:` that is the server itself.
    let end = text.rfind(['/', ':']).map_or(0, |at| at + 1);
    let asked = text.get(..end).unwrap_or_default();
    let ask = || {
        let address = match asked.trim_end_matches('/') {
            above if above.ends_with(':') || above.ends_with("//") => asked,
            above => above,
        };
        let node = node();
        let found =
            if opcda::is_meant(address) { opcda::list(&node, address).ok() } else { node.list(address).ok() };
        found.unwrap_or_default().found.into_iter().map(|one| one.address).collect()
    };
    let found = cached(&format!("list {asked}"), ask);
    found
        .iter()
        .filter(|address| address.starts_with(text))
        .map(|address| candidate(address, quote))
        .collect()
}

/// Operations and attributes of the object that the command line names.
pub(crate) fn operations(current: &OsStr) -> Vec<CompletionCandidate> {
    members(current, "operations", |known| {
        known
            .contract
            .interfaces()
            .flat_map(|interface| operation::members(interface).into_iter().map(str::to_owned))
            .collect()
    })
}

/// Signals of the object that the command line names.
pub(crate) fn signals(current: &OsStr) -> Vec<CompletionCandidate> {
    members(current, "signals", |known| {
        let signals = known.contract.interfaces().flat_map(|interface| interface.signals.iter());
        signals.map(|signal| signal.label.to_string()).collect()
    })
}

/// Interfaces of the object, or of the contract, that the command line names.
pub(crate) fn interfaces(current: &OsStr) -> Vec<CompletionCandidate> {
    members(current, "interfaces", |known| {
        known.contract.interfaces().map(|interface| interface.name.to_string()).collect()
    })
}

/// Codes of errors.
pub(crate) fn codes(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some((text, quote)) = plain(current) else { return Vec::new() };
    let begins = |word: &&str| {
        !word.contains(' ') && word.to_ascii_lowercase().starts_with(&text.to_ascii_lowercase())
    };
    crate::codes::rows()
        .iter()
        .map(crate::codes::Row::word)
        .filter(begins)
        .map(|word| candidate(word, quote))
        .collect()
}

/// Members of the object on the command line, by a function that takes them from its contract. `what`
/// is a part of the question under which the answer is kept.
fn members(current: &OsStr, what: &str, of: fn(&ObjectContract) -> Vec<String>) -> Vec<CompletionCandidate> {
    let Some((text, quote)) = plain(current) else { return Vec::new() };
    let line = Line::read();
    let Some(reference) = &line.reference else { return Vec::new() };
    if opcda::is_meant(reference) {
        let words = ["read", "write"].into_iter().filter(|word| word.starts_with(text));
        return words.map(|word| candidate(word, quote)).collect();
    }
    let mut all = match &line.contract {
        Some(file) => contract::of_file(Path::new(file), &Preprocess::default())
            .map(|known| of(&known))
            .unwrap_or_default(),
        // One object tells operations, signals and interfaces: each is an answer of its own.
        None => cached(&format!("{what} {reference}"), || {
            object(reference)
                .and_then(|object| ObjectContract::from_object(&object).ok())
                .map(|known| of(&known))
                .unwrap_or_default()
        }),
    };
    all.sort();
    all.dedup();
    all.iter().filter(|word| word.starts_with(text)).map(|word| candidate(word, quote)).collect()
}

/// A node for one question, with one thread.
fn node() -> Node {
    let patience = time_said().unwrap_or(PATIENCE);
    Node::from(Node::builder().deadline(Some(patience)).shards(1).build())
}

/// The object of a reference as it is typed, `@FILE` too.
fn object(reference: &str) -> Option<Object> {
    let text = target::text(reference).ok()?;
    node().object(&text).ok()
}

/// A word as it is typed so far, without the quote that it may begin with.
fn plain(current: &OsStr) -> Option<(&str, &'static str)> {
    let text = current.to_str()?;
    Some(match text.strip_prefix('\'') {
        Some(text) => (text, "'"),
        None => (text, ""),
    })
}

/// A word that has characters of the shell's is quoted, unless it is within quotes already.
fn candidate(word: &str, quote: &str) -> CompletionCandidate {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/.:_-+,@%=".contains(c));
    match quote {
        "" if plain => CompletionCandidate::new(word),
        // A quote at the beginning would hide what was typed so far from the shell: it is left to whoever types.
        quote => CompletionCandidate::new(format!("{quote}{word}")),
    }
}

/// Files that hold references or contracts.
fn files(text: &str, quote: &'static str) -> Vec<CompletionCandidate> {
    let (mark, path) = text.strip_prefix('@').map_or(("", text), |path| ("@", path));
    let (above, begin) = path.rsplit_once('/').map_or(("", path), |(above, begin)| (above, begin));
    let folder = match above {
        "" if path.starts_with('/') => "/",
        "" => ".",
        above => above,
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let shown = entries.filter_map(|entry| {
        let name = entry.file_name().to_str()?.to_owned();
        let end = if entry.path().is_dir() { "/" } else { "" };
        let slash = if path.contains('/') { "/" } else { "" };
        (name.starts_with(begin) && !name.starts_with('.'))
            .then(|| candidate(&format!("{mark}{above}{slash}{name}{end}"), quote))
    });
    shown.take(MOST).collect()
}

/// What the command line says so far, as far as it matters here: the object, and a contract file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Line {
    reference: Option<String>,
    contract: Option<String>,
}

impl Line {
    /// Reads it from this process's arguments, which are those that the shell hands over.
    fn read() -> Self {
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        // What stands before `--` is for the program that answers, then come its name and the verb.
        Self::of(words.skip_while(|word| word != "--").skip(3))
    }

    /// Options that take a value are listed, so that the value is not taken for the object. One that is
    /// missing there would hide the object from completion, and nothing worse.
    fn of(words: impl Iterator<Item = String>) -> Self {
        let mut line = Self::default();
        let mut words = words;
        while let Some(word) = words.next() {
            match word.as_str() {
                "-c" | "--contract" => line.contract = words.next().map(|file| unquoted(&file)),
                "-I" | "-D" | "--include" | "--define" | "-d" | "--data" | "--interface" | "--deadline"
                | "--header" | "--max-message" | "--max-depth" | "--count" | "--for" | "--rate"
                | "--deadband" | "--signature" => {
                    words.next();
                }
                option if option.starts_with("--contract=") => {
                    line.contract = option.split_once('=').map(|(_, file)| unquoted(file));
                }
                option if option.starts_with('-') => {}
                _ if line.reference.is_none() => line.reference = Some(unquoted(&word)),
                _ => {}
            }
        }
        line
    }
}

/// A word without the quotes that the shell has left at its ends.
fn unquoted(word: &str) -> String {
    word.trim_matches(['\'', '"']).to_owned()
}

/// The answer to a question: one that was given less than `FRESH` ago, else that of whoever is asked
/// now. What cannot be kept is given all the same.
fn cached(question: &str, ask: impl FnOnce() -> Vec<String>) -> Vec<String> {
    let Some(file) = cache(question) else { return ask() };
    let fresh = |path: &Path| {
        let changed = fs::metadata(path).ok()?.modified().ok()?;
        let age = SystemTime::now().duration_since(changed).ok()?;
        (age < FRESH).then(|| fs::read_to_string(path).ok()).flatten()
    };
    if let Some(text) = fresh(&file) {
        return text.lines().map(str::to_owned).collect();
    }
    let mut answer = ask();
    answer.truncate(MOST);
    // A name with a line end in it is none that can be typed.
    answer.retain(|word| !word.contains('\n'));
    // Without a cache the next press of the key asks again.
    let _ = fs::write(&file, answer.join("\n"));
    forget(&file);
    answer
}

/// Removes answers that nobody is given any more, which lie beside this one: else each question that was ever asked would leave a file.
fn forget(file: &Path) {
    for entry in file.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|held| held.modified()).ok();
        let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        if age.is_some_and(|age| age >= FRESH) {
            // Another one may have removed it first.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The file of a question, in a directory of this user's alone (mode 700). `None` if there is no home,
/// or the directory is another user's. Its name is a hash of the question and of the variables that say
/// which server a name means.
fn cache(question: &str) -> Option<PathBuf> {
    let above = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))?;
    let folder = above.join("everywire").join("completion");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    let own = fs::metadata(&folder).ok()?;
    if own.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    question.hash(&mut hasher);
    // Where a name means another server by the environment, the question is another one.
    for name in ["DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DCOPSERVER", "DCOPAUTHORITY"] {
        std::env::var_os(name).hash(&mut hasher);
    }
    Some(folder.join(format!("{:016x}", hasher.finish())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_who_is_meant_and_by_which_contract() {
        let line = |words: &str| Line::of(words.split(' ').map(str::to_owned));
        let found = line("--deadline 5s 'iiop://h:1/x?y' -c bank.idl dep");
        assert_eq!(found.reference.as_deref(), Some("iiop://h:1/x?y"));
        assert_eq!(found.contract.as_deref(), Some("bank.idl"));
        assert_eq!(line("--json --contract=a.xml dbus:session").contract.as_deref(), Some("a.xml"));
        assert_eq!(line("-c").contract, None);
    }
}
