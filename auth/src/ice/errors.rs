//! Why an authority file is of no use.

use crate::TrustError;
use crate::private::ReadError;
use everywire_model::{Failure, Initiator, Kind};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// What is wrong with an authority file, or with a change to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorityError {
    /// Neither `$ICEAUTHORITY` nor `$XDG_RUNTIME_DIR` nor `$HOME` says where it is.
    NoHome,
    /// It is not there.
    Missing {
        /// The file, or the directory it should be in.
        path: PathBuf,
    },
    /// Others could have read or changed it, or could do so while it is written.
    Untrusted {
        /// The file, or the directory it is in.
        path: PathBuf,
        /// Why.
        why: TrustError,
    },
    /// It is longer than [`MAX_FILE`](super::MAX_FILE), or has more entries than [`MAX_ENTRIES`](super::MAX_ENTRIES).
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It ends in the middle of an entry.
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where that entry begins, in bytes.
        offset: usize,
    },
    /// A name, a network id or a secret is longer than 65535 bytes and cannot be written.
    TooLong,
    /// Somebody else holds the lock.
    Locked {
        /// The lock: the file that must go away.
        path: PathBuf,
    },
    /// The system does not let us.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it says.
        error: io::ErrorKind,
    },
    /// The system has no random numbers.
    NoRandom,
}

impl AuthorityError {
    /// The variant's name, stable: tests, metrics and traces count by it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoHome => "NoHome",
            Self::Missing { .. } => "Missing",
            Self::Untrusted { .. } => "Untrusted",
            Self::TooLarge { .. } => "TooLarge",
            Self::Truncated { .. } => "Truncated",
            Self::TooLong => "TooLong",
            Self::Locked { .. } => "Locked",
            Self::Io { .. } => "Io",
            Self::NoRandom => "NoRandom",
        }
    }

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

impl fmt::Display for AuthorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHome => f.write_str("nothing says where the ICE authority file is"),
            Self::Missing { path } => write!(f, "{} does not exist", path.display()),
            Self::Untrusted { path, why } => write!(f, "{} {why}", path.display()),
            Self::TooLarge { path } => write!(f, "{} is too large for an ICE authority file", path.display()),
            Self::Truncated { path, offset } => {
                write!(f, "{} ends in the middle of the entry at byte {offset}", path.display())
            }
            Self::TooLong => {
                f.write_str("an entry of an ICE authority file has at most 65535 bytes in each part")
            }
            Self::Locked { path } => {
                write!(f, "{} stays there: another program changes the file", path.display())
            }
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NoRandom => f.write_str("the system has no random numbers"),
        }
    }
}

impl std::error::Error for AuthorityError {}

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
