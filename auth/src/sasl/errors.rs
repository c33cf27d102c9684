//! Each way in which authentication fails is one named variant.

use super::{Guid, Mechanism};
use crate::TrustError;
use everywire_model::{Failure, Initiator, Kind, violations};
use std::path::PathBuf;
use std::{fmt, io};

/// Why authentication ended without success. The connection is of no more use; what was appended to the output before
/// should still be sent, so that the peer learns why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SaslError {
    /// A line, or what could become one, is too long.
    LineTooLong {
        /// The most bytes.
        limit: usize,
    },
    /// Too many lines without success.
    TooManyLines {
        /// The most lines.
        limit: usize,
    },
    /// A client's first byte is not zero.
    NoNul {
        /// The byte.
        found: u8,
    },
    /// `BEGIN` before `OK`.
    EarlyBegin,
    /// The client failed too often.
    TooManyAttempts {
        /// The most attempts.
        limit: usize,
    },
    /// The server refuses every mechanism that this side has.
    Rejected {
        /// The mechanism tried last; `None` if this side was given none.
        tried: Option<Mechanism>,
        /// What the server offers instead, known here or not.
        offered: Vec<String>,
        /// What is worth trying on a new connection, not pipelined. Empty unless the failed attempt was pipelined.
        retry_with: Vec<Mechanism>,
        /// Why the cookie mechanism was given up on this side.
        keyring: Option<KeyringError>,
    },
    /// `OK` without 32 hexadecimal digits.
    BadGuid,
    /// Another server than expected answers at the address.
    WrongGuid {
        /// The one that the address names.
        expected: Guid,
        /// The one that answers.
        found: Guid,
    },
    /// The peer sends a command that may not stand here.
    OutOfPlace {
        /// What was waited for.
        wanted: &'static str,
    },
}

impl SaslError {
    /// The variant's name, stable: tests, metrics and traces count by it.
    pub fn name(&self) -> &'static str {
        self.words().0
    }

    /// What is wrong, without its particulars.
    pub fn description(&self) -> &'static str {
        self.words().1
    }

    fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::LineTooLong { .. } => ("LineTooLong", "a line of the authentication is too long"),
            Self::TooManyLines { .. } => ("TooManyLines", "the authentication takes too many lines"),
            Self::NoNul { .. } => ("NoNul", "the connection does not begin with a zero byte"),
            Self::EarlyBegin => ("EarlyBegin", "BEGIN came before the client was authenticated"),
            Self::TooManyAttempts { .. } => {
                ("TooManyAttempts", "the client failed to authenticate too often")
            }
            Self::Rejected { .. } => ("Rejected", "the server rejected the authentication"),
            Self::BadGuid => ("BadGuid", "the server's identity is not 32 hexadecimal digits"),
            Self::WrongGuid { .. } => ("WrongGuid", "another server than expected answers at this address"),
            Self::OutOfPlace { .. } => ("OutOfPlace", "a command of the authentication is out of place"),
        }
    }
}

impl fmt::Display for SaslError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())?;
        match self {
            Self::LineTooLong { limit } => write!(f, ": more than {limit} bytes"),
            Self::TooManyLines { limit } => write!(f, ": more than {limit}"),
            Self::NoNul { found } => write!(f, " but with {found:#04x}"),
            Self::TooManyAttempts { limit } => write!(f, ": {limit} times"),
            Self::Rejected { tried, offered, keyring, .. } => {
                match tried {
                    Some(tried) => write!(f, " by {tried}")?,
                    None => f.write_str(": this side has no mechanism to offer")?,
                }
                if !offered.is_empty() {
                    write!(f, "; it offers {}", offered.join(", "))?;
                }
                keyring.iter().try_for_each(|error| write!(f, "; {error}"))
            }
            Self::WrongGuid { expected, found } => write!(f, ": {found}, not {expected}"),
            Self::OutOfPlace { wanted } => write!(f, ": {wanted} was expected"),
            Self::EarlyBegin | Self::BadGuid => Ok(()),
        }
    }
}

impl std::error::Error for SaslError {}

impl From<SaslError> for Failure {
    fn from(error: SaslError) -> Self {
        let kind = match &error {
            SaslError::Rejected { .. } | SaslError::TooManyAttempts { .. } | SaslError::WrongGuid { .. } => {
                Kind::Refused
            }
            _ => Kind::Violation,
        };
        Self::new(kind, Initiator::Peer, format!("{error} ({})", error.name()))
    }
}

violations! {
    /// Why a keyring gave no cookie.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum KeyringError {
        /// There is no home directory to look in.
        NoHome => "there is no home directory to keep cookies in";
        /// The context cannot be a file's name: D-Bus Specification, "DBUS_COOKIE_SHA1".
        BadContext => "the cookie's context is no valid name";
        /// The server's challenge is not a context, a number and a text.
        BadChallenge => "the server's challenge has not the three parts it must have";
        /// The keyring, a file or a directory, is not there.
        Missing { path: PathBuf } => "the keyring {} does not exist", path.display();
        /// Others may read or change the cookies.
        Untrusted { path: PathBuf, why: TrustError } => "the keyring {} {why}", path.display();
        /// The file is larger than a keyring gets.
        TooLarge { path: PathBuf } => "the keyring {} is too large", path.display();
        /// The file has no cookie of this number.
        NoCookie { id: u32 } => "the keyring has no cookie {id}";
        /// Somebody else holds the lock, which is this file.
        Locked { path: PathBuf } => "the keyring stays locked by {}", path.display();
        /// The system does not let us, and says this.
        Io { path: PathBuf, error: io::ErrorKind } => "{}: {error}", path.display();
        /// The system has no random numbers.
        NoRandom => "the system has no random numbers";
    }
}
