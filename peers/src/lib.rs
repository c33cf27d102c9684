//! The one list of the foreign programs and libraries that building, racing and testing need (`peers.tsv`), and what of it is
//! here.
//!
//! `scripts/setup.sh` installs from the same list, by the same rules; `docs/peers.md` prints it. A peer that is not here makes its
//! tests skip, loudly and counted, on a user's machine; where `CI=true` it fails them.

#![forbid(unsafe_code)]

mod ports;
mod skips;
#[cfg(test)]
mod tests;

pub use ports::free_port;
pub use skips::{cached, here, skip};

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The list as it is kept; its first lines say what the columns are.
const LIST: &str = include_str!("../peers.tsv");

/// Where programs for administrators are, which are not on everybody's search path.
const ADMINISTRATORS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// What tests and `scripts/setup.sh` call it.
    pub name: &'static str,
    /// Who needs it: `derby` (building and racing, and tests too) or `test`.
    pub needed_by: &'static str,
    /// How it comes: `debian`, `pypi`, `npm` and so on.
    pub from: &'static str,
    /// The version, where we fix one; `-` where we do not, `=mono` for the version that Mono tells.
    pub version: &'static str,
    /// Its packages there, with a blank between any two.
    packages: &'static str,
    /// What must be there, with a blank between any two.
    proof: &'static str,
    /// What it is for.
    pub purpose: &'static str,
}

/// The list, from its beginning.
pub fn all() -> impl Iterator<Item = Peer> {
    LIST.lines().filter(|line| !line.starts_with('#')).skip(1).filter_map(|line| {
        let mut columns = line.split('\t');
        let mut next = || columns.next();
        Some(Peer {
            name: next()?,
            needed_by: next()?,
            from: next()?,
            version: next()?,
            packages: next()?,
            proof: next()?,
            purpose: next()?,
        })
    })
}

/// The peer of this name, or the one that has a program of this name.
///
/// # Panics
/// Neither is in the list: whoever asks has to add it there, or it would be installed nowhere.
#[must_use]
pub fn peer(name: &str) -> Peer {
    all()
        .find(|peer| peer.name == name)
        .or_else(|| all().find(|peer| peer.proofs().any(|proof| proof == name)))
        .unwrap_or_else(|| panic!("`{name}` is not in the list of peers, peers/peers.tsv"))
}

/// The version of a peer that is fixed.
///
/// # Panics
/// It is not in the list.
#[must_use]
pub fn version(name: &str) -> &'static str {
    peer(name).version
}

/// How to install these peers, for people: a command. Whatever needs none needs Rust alone.
///
/// # Panics
/// One is not in the list.
#[must_use]
pub fn install_hint(names: &[&str]) -> String {
    let mut peers: Vec<Peer> = Vec::new();
    for peer in names.iter().map(|name| peer(name)) {
        if !peers.contains(&peer) {
            peers.push(peer);
        }
    }
    if peers.is_empty() {
        "install Rust with cargo, and let it reach its registry once".to_owned()
    } else if peers.iter().all(|peer| peer.from == "debian") {
        let packages: Vec<&str> = peers.iter().map(|peer| peer.packages).collect();
        format!("apt-get install --no-install-recommends {}", packages.join(" "))
    } else {
        let names: Vec<&str> = peers.iter().map(|peer| peer.name).collect();
        format!("bash scripts/setup.sh {}", names.join(" "))
    }
}

/// The program, if it is on the search path or among those for administrators.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(ADMINISTRATORS.map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|candidate| candidate.is_file())
}

/// Where peers are that need no installation: a folder of this user's.
#[must_use]
pub fn cache() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    variable("XDG_CACHE_HOME")
        .or_else(|| Some(variable("HOME")?.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("everywire")
}

impl Peer {
    /// Its packages.
    pub fn packages(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.packages.split(' ').filter(|package| *package != "-")
    }

    fn proofs(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.proof.split(' ')
    }

    /// The folder of the cache that it is in; nothing if it is installed on the system, or made for a program that is not here.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let version = match (self.from, self.version.strip_prefix('=')) {
            ("debian", _) => return None,
            (_, Some(program)) => format!("-{}", told(program)?),
            (_, None) if self.version == "-" => String::new(),
            (_, None) => format!("-{}", self.version),
        };
        Some(cache().join(format!("{}{version}", self.name)))
    }

    /// What of its proof is not here.
    fn lacks(&self) -> Vec<String> {
        let folder = self.folder();
        // Whatever was interrupted has no such mark.
        let whole = self.from == "debian" || folder.as_ref().is_some_and(|dir| dir.join("done").exists());
        if !whole {
            return vec![self.name.to_owned()];
        }
        let there = |proof: &str| match &folder {
            Some(folder) => exists(folder, proof),
            None if proof.starts_with('/') => exists(Path::new("/"), proof.trim_start_matches('/')),
            None => find(proof).is_some(),
        };
        self.proofs().map(|proof| proof.replace('@', self.version)).filter(|proof| !there(proof)).collect()
    }
}

/// The version that a program tells of itself: the word after `version` in its first line.
fn told(program: &str) -> Option<String> {
    let output = Command::new(find(program)?).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next()?.split_whitespace().skip_while(|word| *word != "version").nth(1).map(str::to_owned)
}

/// Whether something has this path under a folder; a star stands for anything in one part of it.
fn exists(folder: &Path, path: &str) -> bool {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let inside = |found: &Path| if rest.is_empty() { found.exists() } else { exists(found, rest) };
    let Some((start, end)) = first.split_once('*') else { return inside(&folder.join(first)) };
    let fits = |name: &OsStr| {
        name.to_str().is_some_and(|name| {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        })
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| fits(&entry.file_name())).any(|entry| inside(&entry.path()))
}
