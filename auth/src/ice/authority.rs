//! The file: where it is, what is in it, and how it is changed.

use super::lock::Lock;
use super::{AuthorityError, Entry, NotEntries, entry};
use crate::private::{self, ReadError};
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest file that is read, in bytes: a file that somebody else fills must not fill the memory.
pub const MAX_FILE: u64 = 1 << 20;

/// An authority file. It is read only if it belongs to this user and nobody else has access.
#[derive(Debug, Clone)]
pub struct AuthorityFile {
    path: PathBuf,
    patience: Duration,
}

impl AuthorityFile {
    /// This user's, where the library of ICE looks: `$ICEAUTHORITY`, `$XDG_RUNTIME_DIR/ICEauthority` or
    /// `$HOME/.ICEauthority`. Servers write there.
    ///
    /// # Errors
    ///
    /// None of these variables is set.
    pub fn user() -> Result<Self, AuthorityError> {
        Self::candidates().into_iter().next().ok_or(AuthorityError::NoHome)
    }

    /// Where a client may find an entry, best first: as [`AuthorityFile::user`], and then the place of libraries before
    /// 1.0.10, which knew no `$XDG_RUNTIME_DIR`.
    pub fn candidates() -> Vec<Self> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = set("ICEAUTHORITY") {
            return vec![Self::at(path)];
        }
        let runtime = set("XDG_RUNTIME_DIR").map(|directory| directory.join("ICEauthority"));
        let home = set("HOME").map(|directory| directory.join(".ICEauthority"));
        runtime.into_iter().chain(home).map(Self::at).collect()
    }

    /// At this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), patience: Duration::from_secs(2) }
    }

    /// How long to wait for other programs that change the file; it stops the calling thread. 2 s if not said.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All entries.
    ///
    /// # Errors
    ///
    /// The file is missing, not trusted, too large, or ends too early.
    pub fn read(&self) -> Result<Vec<Entry>, AuthorityError> {
        let bytes =
            private::read(&self.path, MAX_FILE).map_err(|trouble| AuthorityError::of(&self.path, trouble))?;
        entry::parse(&bytes).map_err(|wrong| match wrong {
            NotEntries::Truncated { offset } => AuthorityError::Truncated { path: self.path.clone(), offset },
            NotEntries::TooMany => AuthorityError::TooLarge { path: self.path.clone() },
        })
    }

    /// The first entry for the protocol at the network id by [`MAGIC_COOKIE`](super::MAGIC_COOKIE), as the library of ICE
    /// searches.
    ///
    /// # Errors
    ///
    /// As [`AuthorityFile::read`].
    pub fn find(&self, protocol: &str, netid: &str) -> Result<Option<Entry>, AuthorityError> {
        Ok(self.read()?.into_iter().find(|entry| entry.is_for(protocol, netid)))
    }

    /// Adds entries; each takes the place of those with the same protocol, network id and method. The file is made, with
    /// mode 0600, if it is not there.
    ///
    /// # Errors
    ///
    /// As [`AuthorityFile::read`]; or others could replace the file, somebody else holds the lock, the file would grow too
    /// large, or it cannot be written.
    pub fn add(&self, added: &[Entry]) -> Result<(), AuthorityError> {
        self.change(|entries| {
            entries.retain(|entry| !added.iter().any(|new| new.rivals(entry)));
            entries.extend_from_slice(added);
            true
        })
    }

    /// Removes the entries that the test picks, and says how many these were. A missing file has none.
    ///
    /// # Errors
    ///
    /// As [`AuthorityFile::add`].
    pub fn remove(&self, mut picked: impl FnMut(&Entry) -> bool) -> Result<usize, AuthorityError> {
        let mut removed = 0;
        self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry| !picked(entry));
            removed = before - entries.len();
            removed > 0
        })?;
        Ok(removed)
    }

    /// Changes the entries under the lock, and replaces the file at once if the change says so.
    fn change(&self, change: impl FnOnce(&mut Vec<Entry>) -> bool) -> Result<(), AuthorityError> {
        // The lock and the new file stand beside the file: nobody else may have a hand there (CAN-2005-0365).
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or_else(|| Path::new("."));
        private::check_parent(directory).map_err(|trouble| AuthorityError::of(directory, trouble))?;
        let _lock = Lock::take(&self.path, self.patience)?;
        let mut entries = match self.read() {
            Err(AuthorityError::Missing { .. }) => Vec::new(),
            read => read?,
        };
        if !change(&mut entries) {
            return Ok(());
        }
        let bytes = entry::print(&entries).ok_or(AuthorityError::TooLong)?;
        if bytes.len() as u64 > MAX_FILE || entries.len() > entry::MAX_ENTRIES {
            return Err(AuthorityError::of(&self.path, ReadError::TooLarge));
        }
        private::replace(&self.path, &bytes).map_err(|error| AuthorityError::io(&self.path, &error))
    }
}
