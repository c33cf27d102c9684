//! The lock that all programs take before they change an authority file, as the library of ICE does it
//! (`IceLockAuthFile`).
//!
//! A file `FILE-c` is made, by whoever comes first, and then linked to `FILE-l`: that can succeed once
//! only, over network file systems too. Both are removed afterwards. A lock whose first file is older
//! than `DEAD` belongs to a program that died, and is taken away.

use super::AuthorityError;
use crate::private;
use std::ffi::OsString;
use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// When a lock is thought forgotten: what the program `iceauth` takes, which may hold it as long as somebody types.
const DEAD: Duration = Duration::from_secs(600);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// Held while the file is changed.
pub(super) struct Lock {
    created: PathBuf,
    linked: PathBuf,
}

impl Lock {
    /// Waits for the lock, at most so long.
    ///
    /// # Errors
    /// Somebody else holds it for longer, or a file cannot be made there.
    pub(super) fn take(file: &Path, patience: Duration) -> Result<Self, AuthorityError> {
        let (created, linked) = (beside(file, "-c"), beside(file, "-l"));
        if private::take_away(&created, dead).is_ok_and(|away| away) {
            // Nobody gets the lock before this one is gone. Gone already is as good.
            drop(fs::remove_file(&linked));
        }
        let started = Instant::now();
        loop {
            private::open(&created, OpenOptions::new().write(true).create(true).truncate(false))
                .map_err(|error| AuthorityError::io(&created, &error))?;
            match fs::hard_link(&created, &linked) {
                Ok(()) => return Ok(Self { created, linked }),
                Err(error) => match error.kind() {
                    io::ErrorKind::AlreadyExists if started.elapsed() < patience => thread::sleep(PAUSE),
                    io::ErrorKind::AlreadyExists => return Err(AuthorityError::Locked { path: linked }),
                    // The holder has just removed both; make the first again.
                    io::ErrorKind::NotFound if started.elapsed() < patience => {}
                    _ => return Err(AuthorityError::io(&linked, &error)),
                },
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If they are gone, somebody thought the lock dead; nothing is left to do.
        drop(fs::remove_file(&self.created));
        drop(fs::remove_file(&self.linked));
    }
}

/// Whether whoever made the lock must have died.
fn dead(created: &Metadata) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    now.saturating_sub(u64::try_from(created.ctime()).unwrap_or(0)) > DEAD.as_secs()
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(end);
    name.into()
}
