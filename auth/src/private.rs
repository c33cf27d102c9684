//! Files that hold secrets: read only if nobody else could have read or written them, and replaced as a
//! whole.
//!
//! Invariants: a file is opened first and then looked at, so what was checked is what is read; symbolic
//! links are not followed and pipes not waited for. A file has mode 0600 from its beginning. Nobody
//! reads a part of a file that is being replaced.

use crate::{own_uid, system_random};
use everywire_model::hex;
use rustix::fs::{FlockOperation, OFlags};
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Why a file or directory is not trusted with a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustError {
    /// A symbolic link, a pipe, a directory: anything but a regular file.
    NotAFile,
    /// A symbolic link, or anything else but a directory.
    NotADirectory,
    /// It belongs to another user.
    Owner {
        /// That user.
        uid: u32,
    },
    /// Others may read, write or enter it.
    Mode {
        /// Its permission bits.
        mode: u32,
    },
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAFile => write!(f, "is no regular file"),
            Self::NotADirectory => write!(f, "is no directory"),
            Self::Owner { uid } => write!(f, "belongs to user {uid}, not to user {}", own_uid()),
            Self::Mode { mode } => write!(f, "has mode {mode:o}, which lets others in"),
        }
    }
}

/// Why a file was not read. Whoever reads says which file it was.
#[derive(Debug)]
pub enum ReadError {
    /// There is none.
    Missing,
    /// Others could have read or written it.
    Untrusted(TrustError),
    /// It is longer than it may be.
    TooLarge,
    /// The system says no.
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            // What opening a symbolic link that may not be followed yields.
            _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                Self::Untrusted(TrustError::NotAFile)
            }
            _ => Self::Io(error),
        }
    }
}

/// The whole file, if it is trusted and no longer than `limit` bytes.
///
/// # Errors
///
/// It is not there, not trusted, or too long.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    // Checked after it is opened: what was checked is what is read. Not blocking, lest a named pipe stops us.
    let mut file = open(path, OpenOptions::new().read(true))?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(ReadError::Untrusted(TrustError::NotAFile));
    }
    check(&about).map_err(ReadError::Untrusted)?;
    if about.len() > limit {
        return Err(ReadError::TooLarge);
    }
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(ReadError::TooLarge) } else { Ok(bytes) }
}

/// A directory that is this user's, with no access for others.
pub(crate) fn check_directory(path: &Path) -> Result<(), ReadError> {
    let about = fs::symlink_metadata(path)?;
    if !about.is_dir() {
        return Err(ReadError::Untrusted(TrustError::NotADirectory));
    }
    check(&about).map_err(ReadError::Untrusted)
}

/// A directory in which nobody but this user and root may put or replace files. Others may look.
pub(crate) fn check_parent(path: &Path) -> Result<(), ReadError> {
    let about = fs::metadata(path)?;
    if !about.is_dir() {
        return Err(ReadError::Untrusted(TrustError::NotADirectory));
    }
    if about.uid() != own_uid() && about.uid() != 0 {
        return Err(ReadError::Untrusted(TrustError::Owner { uid: about.uid() }));
    }
    let mode = about.mode() & 0o7777;
    if mode & 0o022 != 0 { Err(ReadError::Untrusted(TrustError::Mode { mode })) } else { Ok(()) }
}

/// Puts a file of mode 0600 in place of what is there, at once: readers see the old or the new, never a part. Nothing waits for the
/// disk, which may take seconds where others write: what is in such files is worth nothing once the machine was started anew.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut salt = [0; 8];
    system_random(&mut salt)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", hex::text(&salt)));
    let fresh = Path::new(&name);
    let written = create(fresh).and_then(|mut file| {
        file.write_all(bytes)?;
        fs::rename(fresh, path)
    });
    if written.is_err() {
        // What it was made for failed; that is what the caller wants to know.
        drop(fs::remove_file(fresh));
    }
    written
}

/// A new file of mode 0600; fails if anything has that name.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().write(true).create_new(true))
}

/// Takes away a lock whose maker has died, unless somebody else is about to, or has done so and made a new one. Whether it was done;
/// where it was not, it is to be looked at anew.
///
/// Looking and removing are two steps: of several programs that see the same dead lock, the last would remove the fresh one of the
/// first. So each first takes the file's own lock (`flock`), which goes with the file and not with its name.
pub(crate) fn take_away(path: &Path, is_dead: impl Fn(&Metadata) -> bool) -> io::Result<bool> {
    // It may be gone, or be no file: then it is nobody's dead lock.
    let Ok(file) = open(path, OpenOptions::new().read(true)) else { return Ok(false) };
    let held = file.metadata()?;
    if !is_dead(&held) || rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    let here = fs::symlink_metadata(path);
    if !here.is_ok_and(|here| (here.dev(), here.ino()) == (held.dev(), held.ino())) {
        return Ok(false);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(true),
    }
}

/// Opens for this process only, with mode 0600 if it is created, never through a symbolic link and never waiting.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    options.mode(0o600).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Belongs to this user, and nobody else has any access.
fn check(about: &Metadata) -> Result<(), TrustError> {
    if about.uid() != own_uid() {
        return Err(TrustError::Owner { uid: about.uid() });
    }
    let mode = about.mode() & 0o7777;
    if mode & 0o077 != 0 { Err(TrustError::Mode { mode }) } else { Ok(()) }
}
