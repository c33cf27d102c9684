//! Foreign programs that the tests build from sources of ours: built once, by whichever test is first.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file or directory `dir/name`, made by `build` unless it is there and newer than all of its sources. `build` gets a path
/// that does not exist yet and makes the file or directory there.
///
/// Each test is a process of its own: the first one builds while the others wait for it, since they would all do the same work.
///
/// # Panics
/// When a file cannot be read or written.
#[must_use]
pub fn once(dir: &str, name: &str, sources: &[PathBuf], build: impl FnOnce(&Path)) -> PathBuf {
    let dir = Path::new(dir);
    fs::create_dir_all(dir).expect("a directory for what tests build");
    let product = dir.join(name);
    let _first = lock(&dir.join(format!("{name}.lock")));
    let age =
        |path: &Path| fs::metadata(path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let newest = sources.iter().map(|source| age(source)).max().expect("sources");
    if age(&product) > newest {
        return product;
    }
    let fresh = dir.join(format!("{name}.{}", std::process::id()));
    remove(&fresh);
    build(&fresh);
    remove(&product);
    fs::rename(&fresh, &product).unwrap_or_else(|error| panic!("{}: {error}", fresh.display()));
    product
}

/// Waits until no other process holds the file, and holds it until the value is dropped.
///
/// # Panics
/// When the file cannot be made.
#[must_use]
pub fn lock(path: &Path) -> File {
    let file = File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // SAFETY: the descriptor is open as long as `file`, which is borrowed here.
    let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) };
    assert_eq!(locked, 0, "{}: {}", path.display(), std::io::Error::last_os_error());
    file
}

/// Removes a file or a directory, if it is there.
fn remove(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    } else if path.exists() {
        fs::remove_file(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
