//! Directories of a derby's own, under the temporary directory: removed with everything in them when they are dropped, and by
//! the next derby if this one could not.
//!
//! Invariant: a directory is locked by its process for as long as it is in use; the kernel gives the lock up when the process
//! ends, however it ends. So whoever gets the lock may remove the directory.

use crate::{broken, unknown};
use everywire_model::Failure;
use std::fs::{self, DirBuilder, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first part of their names; then come the number of the process and a number of its own.
const PREFIX: &str = "derby-";

/// A fresh directory, removed with everything in it when this is dropped. Sockets, references, captures
/// and the standard error of children are in it.
pub(crate) struct Fresh {
    path: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl Fresh {
    /// One that nobody else can look into (mode 700). Its path is short, since the name of a Unix
    /// socket has room for 108 bytes.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new() -> Result<Self, Failure> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        for _ in 0..100 {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("{PREFIX}{}-{number}", std::process::id()));
            let failed = |error: std::io::Error| broken(format!("{}: {error}", path.display()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let lock = File::open(&path).map_err(failed)?;
                    locks(&lock);
                    return Ok(Self { path, _lock: lock });
                }
                // Left by a process that had the same number, or another user's.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(unknown(format!("{} is full of old derbies", std::env::temp_dir().display())))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // What cannot be removed is left to the next derby.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what derbies of this user left behind that were killed.
pub(crate) fn sweep() {
    sweep_in(&std::env::temp_dir());
}

/// Looks at names, owner and lock; an error at one entry leaves that entry alone.
fn sweep_in(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(owner);
        if let Some(owner) = owner
            && is_ours(&entry.path())
            && !lives(owner)
            && let Ok(directory) = File::open(entry.path())
            && locks(&directory)
        {
            // What cannot be removed now is left to the one after this.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that a directory of this name belongs to; `None`: it is not of ours.
fn owner(name: &str) -> Option<i32> {
    let (process, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<u32>().ok()?;
    process.parse().ok().filter(|process| *process > 0)
}

/// Whether it is a directory of this user, and no link to one.
fn is_ours(path: &Path) -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user)
}

/// Whether a process of this number exists. Where numbers are those of another namespace this says too
/// little: hence the lock.
fn lives(process: i32) -> bool {
    // SAFETY: signal 0 only asks whether the process exists.
    let asked = unsafe { libc::kill(process, 0) };
    asked == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Takes the lock of a directory, unless somebody else has it.
fn locks(directory: &File) -> bool {
    // SAFETY: the descriptor is open for as long as the reference lives.
    unsafe { libc::flock(directory.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_removed_with_what_is_in_it() {
        let fresh = Fresh::new().unwrap();
        let path = fresh.path().to_owned();
        fs::write(path.join("file"), "text").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        drop(fresh);
        assert!(!path.exists());
    }

    #[test]
    fn what_the_dead_left_is_removed_and_nothing_else() {
        let parent = Fresh::new().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let make = |name: String| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "text").unwrap();
            path
        };
        let left = make(format!("derby-{dead}-0"));
        let locked = make(format!("derby-{dead}-1"));
        let living = make(format!("derby-{}-0", std::process::id()));
        let strange = make(format!("derby-{dead}-x"));
        let link = parent.path().join(format!("derby-{dead}-2"));
        std::os::unix::fs::symlink(&strange, &link).unwrap();
        let lock = File::open(&locked).unwrap();
        assert!(locks(&lock));
        sweep_in(parent.path());
        assert!(!left.exists());
        for kept in [&locked, &living, &strange, &link] {
            assert!(kept.exists(), "{}", kept.display());
        }
        drop(lock);
        // A child that another test starts at this moment has the descriptor until it becomes another program.
        while locked.exists() {
            sweep_in(parent.path());
        }
    }
}
