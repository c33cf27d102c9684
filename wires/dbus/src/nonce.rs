//! Nonces: 16 bytes from a file, which a client sends first over TCP to show that it can read files of the server's host
//! (specification, "Nonce-authenticated TCP Sockets").

use bytes::Bytes;
use everywire_model::{Failure, Initiator, Kind};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a nonce, by the specification.
pub(crate) const NONCE: usize = 16;

/// What the names of files made here begin with; the number of the process and something random follow.
const PREFIX: &str = "dbus-nonce-";

/// Makes a nonce in a file that this user alone may read, and returns the file's path. The file goes when the
/// last copy of the path has gone: the place that is listened at, and references to objects there.
///
/// A process that is killed leaves its file behind; the next one that makes a nonce removes it.
///
/// # Errors
/// There is no randomness, or the file cannot be made.
pub(crate) fn create() -> Result<Bytes, Failure> {
    let folder = std::env::temp_dir();
    remove_stale(&folder);
    let mut raw = [0; 8];
    fill(&mut raw)?;
    let name = everywire_model::hex::text(&raw);
    write(folder.join(format!("{PREFIX}{}-{name}", std::process::id())))
}

/// As [`create`], in a file of this name; one that is there is replaced. It is removed first and then made,
/// so that nobody who had it open can read the new nonce.
pub(crate) fn create_at(path: &str) -> Result<Bytes, Failure> {
    let path = PathBuf::from(path);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&path, &error)),
        _ => write(path),
    }
}

/// Makes the file, which must not be there: a link that somebody else has put there is not followed.
fn write(path: PathBuf) -> Result<Bytes, Failure> {
    let mut nonce = [0; NONCE];
    fill(&mut nonce)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| failed(&path, &error))?;
    // From here on it is removed, also if it cannot be written.
    let name = path.to_string_lossy().into_owned();
    let kept = Bytes::from_owner(NonceFile { name, path });
    file.write_all(&nonce).map_err(|error| failed(Path::new(&*String::from_utf8_lossy(&kept)), &error))?;
    Ok(kept)
}

/// Fills it with randomness of the system.
fn fill(raw: &mut [u8]) -> Result<(), Failure> {
    getrandom::fill(raw).map_err(|error| {
        Failure::new(Kind::Internal, Initiator::Here, format!("no randomness for a nonce: {error}"))
    })
}

/// The failure of a file operation.
fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Kind::Internal, Initiator::Here, format!("the nonce file {}: {error}", path.display()))
}

/// A file that is there as long as somebody knows its name.
struct NonceFile {
    /// The path as text: what copies of the `Bytes` show.
    name: String,
    path: PathBuf,
}

impl AsRef<[u8]> for NonceFile {
    fn as_ref(&self) -> &[u8] {
        self.name.as_bytes()
    }
}

impl Drop for NonceFile {
    fn drop(&mut self) {
        // It may have been removed by somebody else.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes what processes of this user left that are no more. Nothing depends on that it succeeds.
fn remove_stale(folder: &Path) {
    let (Ok(entries), Ok(user)) = (fs::read_dir(folder), fs::metadata("/proc/self").map(|held| held.uid()))
    else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse::<u32>().ok());
        let Some(process) = process else { continue };
        let is_mine = entry.metadata().is_ok_and(|held| held.is_file() && held.uid() == user);
        if is_mine && !Path::new(&format!("/proc/{process}")).exists() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Reads a nonce: the first 16 bytes of the file.
///
/// # Errors
/// The file cannot be read, or is shorter.
pub(crate) fn read(path: &str) -> Result<[u8; NONCE], Failure> {
    let read = || {
        let mut nonce = [0; NONCE];
        fs::File::open(path)?.read_exact(&mut nonce)?;
        Ok(nonce)
    };
    read().map_err(|error: std::io::Error| {
        Failure::new(Kind::Refused, Initiator::Here, format!("the nonce file {path} cannot be read: {error}"))
            .with_hint("the server's nonce-tcp address names a file on its host")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_file_goes_with_whoever_knows_it() {
        // No process has a number as high as that.
        let left = std::env::temp_dir().join(format!("{PREFIX}4294967295-{}", std::process::id()));
        fs::write(&left, [0; NONCE]).unwrap();
        let file = create().unwrap();
        assert!(!left.exists());
        let path = String::from_utf8(file.to_vec()).unwrap();
        let copy = file.clone();
        drop(file);
        let nonce = read(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        // A file of this name is replaced, not written to.
        let replaced = create_at(&path).unwrap();
        assert_ne!(read(&path).unwrap(), nonce);
        drop(replaced);
        assert!(read(&path).unwrap_err().message().contains("cannot be read"));
        drop(copy);
    }

    #[test]
    fn what_a_dead_process_left_is_removed() {
        let folder = std::env::temp_dir().join(format!("nonces-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // No process has a number as high as that.
        let (left, ours) = (
            folder.join("dbus-nonce-4294967295-ab"),
            folder.join(format!("{PREFIX}{}-ab", std::process::id())),
        );
        let other = folder.join("dbus-nonce-ab");
        for path in [&left, &ours, &other] {
            fs::write(path, [0; NONCE]).unwrap();
        }
        remove_stale(&folder);
        assert!(!left.exists() && ours.exists() && other.exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
