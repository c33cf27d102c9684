//! Where rivals' programs are built: from sources that this program carries, once for these sources,
//! these flags and this version of the rival's library, into the user's cache directory.
//!
//! States of a build: *not there*, or *there*: its directory, whose name has a hash of all that it
//! depends on, has every product. It is made in a fresh directory and moved in file by file, each under
//! another name first, so a build that is interrupted leaves nothing that looks whole, and two derbies
//! at once do no harm.
//!
//! Invariant: nothing is ever changed in place. Another version of a library has another directory.

use super::Missing;
use crate::fresh::Fresh;
use crate::process::output;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// How a rival's programs are built.
#[derive(Debug)]
pub(super) struct Workshop {
    /// The rival, for people.
    pub(super) rival: &'static str,
    /// The first part of the directory's name in the cache.
    pub(super) name: &'static str,
    /// File names and texts.
    pub(super) sources: &'static [(&'static str, &'static str)],
    /// What else the programs depend on: the compiler's arguments, as far as they are the same for
    /// every program.
    pub(super) flags: &'static [&'static str],
    /// What has to be installed for it: names of the list of peers.
    pub(super) peers: &'static [&'static str],
}

/// Most rivals come as two programs of these names.
const PROGRAMS: [&str; 2] = ["client", "server"];

impl Workshop {
    /// The directory with `client` and `server`; `make` builds them in the directory it is given, where the sources are.
    ///
    /// # Errors
    /// What `make` says, or a file cannot be written.
    pub(super) fn programs(
        &self,
        version: &str,
        make: impl FnOnce(&Path) -> Result<(), Missing>,
    ) -> Result<PathBuf, Missing> {
        self.products(version, &PROGRAMS, make)
    }

    /// The directory with these files, which `make` leaves in the directory it is given.
    ///
    /// # Errors
    /// What `make` says, or a file cannot be written.
    pub(super) fn products(
        &self,
        version: &str,
        products: &[&str],
        make: impl FnOnce(&Path) -> Result<(), Missing>,
    ) -> Result<PathBuf, Missing> {
        // Two threads of one process need not build the same twice.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);

        let dir = self.dir(version)?;
        if products.iter().all(|product| dir.join(product).exists()) {
            return Ok(dir);
        }
        let fresh = Fresh::new().map_err(|failure| self.missing(failure.to_string()))?;
        for (name, text) in self.sources {
            let file = fresh.path().join(name);
            let parent = file.parent().unwrap_or_else(|| fresh.path());
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&file, text))
                .map_err(|error| self.missing(format!("{name}: {error}")))?;
        }
        make(fresh.path())?;
        // Whoever comes second finds the directory there, and that is as good.
        let io = |error: std::io::Error| self.missing(format!("{}: {error}", dir.display()));
        fs::create_dir_all(&dir).map_err(io)?;
        for product in products {
            let (whole, partial) = (dir.join(product), dir.join(format!("{product}.{}", std::process::id())));
            fs::create_dir_all(whole.parent().unwrap_or(&dir)).map_err(io)?;
            fs::copy(fresh.path().join(product), &partial).map_err(io)?;
            fs::rename(&partial, whole).map_err(io)?;
        }
        Ok(dir)
    }

    /// Whether the programs have been built for the version that is installed; not if none is. Nothing
    /// is built.
    pub(super) fn version_is_built(&self, version: impl FnOnce(&Self) -> Result<String, Missing>) -> bool {
        let Ok(version) = version(self) else { return false };
        let Ok(dir) = self.dir(&version) else { return false };
        PROGRAMS.iter().all(|program| dir.join(program).exists())
    }

    /// Whether any version of these programs has been built: a guess at how long `prepare` takes, which
    /// asks no program.
    pub(super) fn was_used(&self) -> bool {
        let all = cache().ok().and_then(|cache| fs::read_dir(cache).ok()).into_iter().flatten().flatten();
        let begins = format!("{}-", self.name);
        all.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(&begins))
    }

    /// Where the programs are kept.
    fn dir(&self, version: &str) -> Result<PathBuf, Missing> {
        let cache = cache().map_err(|why| self.missing(format!("{} cannot be built: {why}", self.rival)))?;
        Ok(cache.join(format!("{}-{:016x}", self.name, self.hash(version))))
    }

    /// It cannot be built, because of this.
    pub(super) fn missing(&self, what: impl Into<String>) -> Missing {
        Missing { what: what.into(), install: everywire_peers::install_hint(self.peers) }
    }

    /// Runs a C++ compiler.
    pub(super) fn cxx(&self, dir: &Path, arguments: &[&str]) -> Result<(), Missing> {
        self.run(dir, &compiler(), arguments).map(|_| ())
    }

    /// Runs a program of the build in this directory, and returns its standard output without white
    /// space at both ends.
    ///
    /// # Errors
    /// It cannot be started, fails, is interrupted, or its time is over (see `process::output`); the
    /// first line with `error` in it is quoted.
    pub(super) fn run(&self, dir: &Path, program: &str, arguments: &[&str]) -> Result<String, Missing> {
        let cannot = format!("{} cannot be built", self.rival);
        let mut command = Command::new(program);
        command.args(arguments).current_dir(dir);
        let output =
            output(command).map_err(|error| self.missing(format!("{cannot}: `{program}`: {error}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.contains("error")).or_else(|| said.lines().next());
        Err(self.missing(format!(
            "{cannot}: `{program} {}`: {}",
            arguments.join(" "),
            line.unwrap_or_default()
        )))
    }

    /// Fails unless the program is installed.
    pub(super) fn needs(&self, program: &str, argument: &str) -> Result<(), Missing> {
        match Command::new(program).arg(argument).output() {
            Ok(output) if output.status.success() => Ok(()),
            _ => Err(self.missing(format!("{} cannot be built: `{program}` is not installed", self.rival))),
        }
    }

    /// FNV-1a over everything that the programs depend on. It tells builds apart, and protects from
    /// nobody.
    fn hash(&self, version: &str) -> u64 {
        let texts = self.sources.iter().flat_map(|(name, text)| [*name, *text]);
        texts
            .chain(self.flags.iter().copied())
            .chain([version])
            .flat_map(str::bytes)
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// The C++ compiler.
pub(super) fn compiler() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned())
}

/// The derby's part of the user's cache directory, by the XDG Base Directory Specification. Without a home it is in the temporary
/// directory, in a folder that only this user can have made: programs are started from there.
///
/// # Errors
/// There is no home, and somebody else has that folder.
pub(super) fn cache() -> Result<PathBuf, String> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()).or_else(home);
    Ok(base.map_or_else(|| private(&std::env::temp_dir()), Ok)?.join("everywire/derby"))
}

/// This user's folder in a directory where everybody can make one.
fn private(above: &Path) -> Result<PathBuf, String> {
    // SAFETY: the call has no arguments, and cannot fail.
    let user = unsafe { libc::geteuid() };
    let folder = above.join(format!("everywire-{user}"));
    let told =
        |why: &dyn std::fmt::Display| format!("{}: {why}; set HOME, or XDG_CACHE_HOME", folder.display());
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(told(&error)),
        _ => {}
    }
    // A symbolic link is not followed: it could lead to anybody's directory.
    let about = fs::symlink_metadata(&folder).map_err(|error| told(&error))?;
    if !about.is_dir() || about.uid() != user || about.mode() & 0o077 != 0 {
        return Err(told(&"it is not a directory of this user alone"));
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn programs_are_not_started_from_a_folder_that_others_may_have_filled() {
        let fresh = Fresh::new().unwrap();
        let folder = private(fresh.path()).unwrap();
        assert_eq!(private(fresh.path()).unwrap(), folder, "it is this user's");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(private(fresh.path()).is_err());
        fs::remove_dir(&folder).unwrap();
        symlink("/tmp", &folder).unwrap();
        assert!(private(fresh.path()).is_err());
    }
}
