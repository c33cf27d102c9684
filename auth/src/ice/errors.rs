//! Why an authority file is of no use.

use crate::TrustError;
use crate::private::ReadError;
use everywire_model::{Failure, Initiator, Kind, violations};
use std::io;
use std::path::{Path, PathBuf};

violations! {
    /// What is wrong with an authority file, or with a change to it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum AuthorityError {
        /// Neither `$ICEAUTHORITY` nor `$XDG_RUNTIME_DIR` nor `$HOME` says where it is.
        NoHome => "nothing says where the ICE authority file is";
        /// The file is not there, or the directory it should be in.
        Missing { path: PathBuf } => "{} does not exist", path.display();
        /// Others could have read or changed the file, or could do so while it is written; or the directory that it is in.
        Untrusted { path: PathBuf, why: TrustError } => "{} {why}", path.display();
        /// It is longer than [`MAX_FILE`](super::MAX_FILE), or has more entries than [`MAX_ENTRIES`](super::MAX_ENTRIES).
        TooLarge { path: PathBuf } => "{} is too large for an ICE authority file", path.display();
        /// It ends in the middle of an entry, which begins at this byte.
        Truncated { path: PathBuf, offset: usize } => "{} ends in the middle of the entry at byte {offset}", path.display();
        /// A name, a network id or a secret is longer than 65535 bytes and cannot be written.
        TooLong => "an entry of an ICE authority file has at most 65535 bytes in each part";
        /// Somebody else holds the lock: this file must go away.
        Locked { path: PathBuf } => "{} stays there: another program changes the file", path.display();
        /// The system does not let us, and says this.
        Io { path: PathBuf, error: io::ErrorKind } => "{}: {error}", path.display();
        /// The system has no random numbers.
        NoRandom => "the system has no random numbers";
    }
}

impl AuthorityError {
    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        Self::Io { path: path.to_owned(), error: error.kind() }
    }

    pub(super) fn of(path: &Path, trouble: ReadError) -> Self {
        let path = path.to_owned();
        match trouble {
            ReadError::Missing => Self::Missing { path },
            ReadError::Untrusted(why) => Self::Untrusted { path, why },
            ReadError::TooLarge => Self::TooLarge { path },
            ReadError::Io(error) => Self::io(&path, &error),
        }
    }
}

impl From<AuthorityError> for Failure {
    fn from(error: AuthorityError) -> Self {
        let kind = match &error {
            AuthorityError::Truncated { .. } => Kind::Malformed,
            AuthorityError::TooLarge { .. } => Kind::LimitExceeded,
            AuthorityError::Locked { .. } => Kind::Busy,
            _ => Kind::Refused,
        };
        let failure = Self::new(kind, Initiator::Here, error.to_string());
        match error {
            AuthorityError::NoHome => failure.with_hint("set HOME or ICEAUTHORITY"),
            AuthorityError::Missing { .. } => {
                failure.with_hint("start the server as this user, or set ICEAUTHORITY")
            }
            AuthorityError::Untrusted { path, why: TrustError::Mode { .. } } if path.is_dir() => {
                // Not to be mended: the directory may belong to everybody for good reasons.
                failure.with_hint("have ICEAUTHORITY name a file in a directory that only you may write to")
            }
            AuthorityError::Untrusted { path, why: TrustError::Mode { .. } } => {
                failure.with_hint(format!("chmod go= {}", path.display()))
            }
            AuthorityError::Locked { path } => {
                failure.with_hint(format!("if no other program runs, remove {}", path.display()))
            }
            _ => failure,
        }
    }
}
