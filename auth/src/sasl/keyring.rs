//! Where cookies are kept: one file for each context, in a directory of the user.
//!
//! D-Bus Specification, "DBUS_COOKIE_SHA1". Only this user's own keyring is ever touched: a server that goes to the
//! directory of whoever connects can be led anywhere by a symbolic link there (CVE-2019-12749).
//!
//! States of a context's file: *missing*, until a server first needs a cookie; *read*, by clients and servers
//! without a lock; *written*, under a lock that is a file beside it, and replaced as a whole, so that readers
//! see the old text or the new one. A lock that its holder left behind is taken away after `STALE_LOCK`, by one
//! program alone.
//!
//! Invariants: directory and file are this user's alone, or nothing of them is used. A context is a name without
//! separators, so no path comes from a peer. Numbers are unique in a file. A cookie given to a client is at most
//! five minutes old; a cookie is never shown by `Debug`. Bounds: `MAX_FILE`, and the patience with a lock.

use super::KeyringError;
use super::cookies::{drop_old, newest, parse, print};
use crate::Random;
use crate::private::{self, ReadError};
use everywire_model::hex;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fmt, thread};

/// The longest file that is read, in bytes: far above 256 cookies.
const MAX_FILE: u64 = 64 << 10;
/// The random bytes of a cookie: 192 bits, as the specification recommends.
const COOKIE_BYTES: usize = 24;
/// When a lock is thought forgotten. It is held for some milliseconds, so a lock this old was left by a
/// program that died.
const STALE_LOCK: Duration = Duration::from_secs(10);

/// A secret that only this user can read.
#[derive(Clone, PartialEq, Eq)]
pub struct Cookie {
    /// Its number in the context's file.
    pub id: u32,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// The secret, in hexadecimal digits as they stand in the file: these, not the bytes, are hashed.
    pub secret: String,
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookie").field("id", &self.id).field("created", &self.created).finish_non_exhaustive()
    }
}

/// A user's cookies.
#[derive(Debug, Clone)]
pub struct Keyring {
    directory: Option<PathBuf>,
    patience: Duration,
}

impl Keyring {
    /// This user's: `~/.dbus-keyrings`.
    pub fn user() -> Self {
        let home = env::var_os("HOME").filter(|home| !home.is_empty());
        Self { directory: home.map(|home| Path::new(&home).join(".dbus-keyrings")), ..Self::at("") }
    }

    /// In this directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), patience: Duration::from_millis(250) }
    }

    /// How long to wait for the lock when a cookie must be made; it stops the calling thread. 250 ms if not said.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The cookie of this number, as a client needs it.
    ///
    /// # Errors
    ///
    /// The context is no valid name, the keyring is not trusted or not readable, or it has no such cookie.
    pub fn find(&self, context: &str, id: u32) -> Result<Cookie, KeyringError> {
        let cookies = self.read(&self.file(context)?)?;
        cookies.into_iter().find(|cookie| cookie.id == id).ok_or(KeyringError::NoCookie { id })
    }

    /// A cookie that is at most five minutes old, as a server needs it; made if there is none, with the directory. A
    /// server that calls this before it listens, and from time to time, never waits for the lock later.
    ///
    /// # Errors
    ///
    /// As [`Keyring::find`]; or the keyring cannot be written, or somebody else holds the lock.
    pub fn current(&self, context: &str, random: Random) -> Result<Cookie, KeyringError> {
        let path = self.file(context)?;
        match self.read(&path) {
            Ok(cookies) => {
                if let Some(cookie) = newest(&cookies, seconds(SystemTime::now())) {
                    return Ok(cookie.clone());
                }
            }
            Err(KeyringError::Missing { .. }) => self.make_directory()?,
            Err(error) => return Err(error),
        }
        let _lock = Lock::take(&path, self.patience)?;
        self.renew(&path, random)
    }

    /// Adds a cookie, unless somebody did while the lock was waited for. The lock is held.
    fn renew(&self, path: &Path, random: Random) -> Result<Cookie, KeyringError> {
        let now = seconds(SystemTime::now());
        let mut cookies = match self.read(path) {
            Err(KeyringError::Missing { .. }) => Vec::new(),
            read => read?,
        };
        if let Some(cookie) = newest(&cookies, now) {
            return Ok(cookie.clone());
        }
        drop_old(&mut cookies, now);
        let cookie = fresh(&cookies, now, random).map_err(|_| KeyringError::NoRandom)?;
        cookies.push(cookie.clone());
        private::replace(path, print(&cookies).as_bytes()).map_err(|error| failed(path, &error))?;
        Ok(cookie)
    }

    /// The cookies of a file, if directory and file are this user's alone.
    fn read(&self, path: &Path) -> Result<Vec<Cookie>, KeyringError> {
        let directory = self.directory()?;
        private::check_directory(directory).map_err(|trouble| keyring_error(directory, trouble))?;
        private::read(path, MAX_FILE).map(|text| parse(&text)).map_err(|trouble| keyring_error(path, trouble))
    }

    /// Makes the directory with mode 700, or checks the one that is there.
    fn make_directory(&self) -> Result<(), KeyringError> {
        let directory = self.directory()?;
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(directory, &error)),
            _ => private::check_directory(directory).map_err(|trouble| keyring_error(directory, trouble)),
        }
    }

    /// The file of a context; the context must be a valid name.
    fn file(&self, context: &str) -> Result<PathBuf, KeyringError> {
        if valid_context(context) {
            Ok(self.directory()?.join(context))
        } else {
            Err(KeyringError::BadContext)
        }
    }

    fn directory(&self) -> Result<&Path, KeyringError> {
        self.directory.as_deref().ok_or(KeyringError::NoHome)
    }
}

/// What may be a context. A client gets it from the server, so no path may be made of it.
fn valid_context(context: &str) -> bool {
    (1..=128).contains(&context.len())
        && context.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\' | b'.'))
}

/// A new cookie with a number that no other has.
fn fresh(others: &[Cookie], now: u64, random: Random) -> io::Result<Cookie> {
    let (mut number, mut secret) = ([0; 4], [0; COOKIE_BYTES]);
    random(&mut number)?;
    random(&mut secret)?;
    // Other implementations keep the number in 32 bits with a sign.
    let mut id = u32::from_ne_bytes(number) >> 1;
    while others.iter().any(|other| other.id == id) {
        id = (id + 1) & (u32::MAX >> 1);
    }
    Ok(Cookie { id, created: now, secret: hex::text(&secret) })
}

/// The lock of a context's file while it is written: a file that only one can create.
struct Lock {
    path: PathBuf,
}

impl Lock {
    fn take(file: &Path, patience: Duration) -> Result<Self, KeyringError> {
        let path = file.with_extension("lock");
        let started = Instant::now();
        loop {
            match private::create(&path) {
                Ok(_) => return Ok(Self { path }),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(&path, &error));
                }
                Err(_) if private::take_away(&path, stale).map_err(|error| failed(&path, &error))? => {}
                Err(_) if started.elapsed() >= patience => return Err(KeyringError::Locked { path }),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If it is gone, somebody thought it stale; nothing is left to do.
        drop(fs::remove_file(&self.path));
    }
}

/// Whether whoever made the lock must have died.
fn stale(about: &Metadata) -> bool {
    let now = seconds(SystemTime::now());
    now.abs_diff(u64::try_from(about.mtime()).unwrap_or(0)) > STALE_LOCK.as_secs()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn failed(path: &Path, error: &io::Error) -> KeyringError {
    KeyringError::Io { path: path.to_owned(), error: error.kind() }
}

fn keyring_error(path: &Path, trouble: ReadError) -> KeyringError {
    let path = path.to_owned();
    match trouble {
        ReadError::Missing => KeyringError::Missing { path },
        ReadError::Untrusted(why) => KeyringError::Untrusted { path, why },
        ReadError::TooLarge => KeyringError::TooLarge { path },
        ReadError::Io(error) => KeyringError::Io { path, error: error.kind() },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Many find the lock of a program that died, at once: one of them gets it, and the others wait for that one.
    #[test]
    fn a_lock_that_was_forgotten_is_taken_by_one_alone() {
        const TAKERS: usize = 8;
        let folder = std::env::temp_dir().join(format!("everywire-keyring-{}", std::process::id()));
        // Left over from a process with the same number that was killed: it is nobody's any more.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let (file, holders) = (folder.join("context"), AtomicU32::new(0));
        for _ in 0..300 {
            let left = private::create(&file.with_extension("lock")).unwrap();
            left.set_modified(SystemTime::now() - 2 * STALE_LOCK).unwrap();
            let barrier = std::sync::Barrier::new(TAKERS);
            std::thread::scope(|scope| {
                for _ in 0..TAKERS {
                    scope.spawn(|| {
                        barrier.wait();
                        let held = Lock::take(&file, Duration::from_secs(60)).unwrap();
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two hold the lock");
                        std::thread::yield_now();
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(held);
                    });
                }
            });
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
