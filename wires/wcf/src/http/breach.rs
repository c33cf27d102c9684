//! The ways in which a peer's HTTP can be wrong, so that its connection ends.
//!
//! Each is told to the peer by a status where the library can still write one (400, 408, 413, 431), and to
//! the link by `at`, which ends the connection. Names are listed in `cli/help/codes.tsv`.

use super::heads::MAX_HEAD;
use everywire_model::Violation;
use std::fmt;

/// One way of being wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Breach {
    /// No HTTP/1.1 request.
    Request {
        /// Why.
        message: String,
    },
    /// A request that says in two ways where it ends (RFC 9112 §6.1), or one that comes right behind a chunked one.
    Ambiguous,
    /// No HTTP/1.1 response.
    Response {
        /// Why.
        message: String,
    },
    /// The head of a request is longer than [`MAX_HEAD`], or has too many lines.
    HeadTooLong,
    /// A message is larger than this side accepts.
    OverLimit {
        /// The quota, in bytes.
        limit: u64,
    },
    /// The head of a request did not arrive in time.
    SlowHead {
        /// Seconds it was given.
        seconds: u64,
    },
    /// The body of a request arrived too slowly.
    SlowBody {
        /// Bytes that came.
        bytes: usize,
    },
    /// More was sent than one request while it was being answered.
    Pipelined {
        /// Bytes that wait.
        bytes: usize,
    },
    /// The envelope is broken.
    Envelope {
        /// Why.
        message: String,
    },
}

impl Breach {
    /// The variant's name, stable: tests, metrics and `trace` count by it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Request { .. } => "Request",
            Self::Ambiguous => "Ambiguous",
            Self::Response { .. } => "Response",
            Self::HeadTooLong => "HeadTooLong",
            Self::OverLimit { .. } => Violation::OVER_LIMIT,
            Self::SlowHead { .. } => "SlowHead",
            Self::SlowBody { .. } => "SlowBody",
            Self::Pipelined { .. } => "Pipelined",
            Self::Envelope { .. } => "Envelope",
        }
    }

    /// What leaves the crate.
    #[cold]
    pub fn at(&self, offset: u64) -> Violation {
        Violation { wire: "wcf", name: self.name(), message: self.to_string(), offset }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { message } => write!(f, "this is no HTTP/1.1 request: {message}"),
            Self::Ambiguous => f.write_str("the request says in two ways where it ends"),
            Self::Response { message } => write!(f, "this is no HTTP/1.1 response: {message}"),
            Self::HeadTooLong => {
                write!(f, "the head of a request exceeds {MAX_HEAD} bytes or has too many lines")
            }
            Self::OverLimit { limit } => f.write_str(&over_limit(*limit)),
            Self::SlowHead { seconds } => {
                write!(f, "the head of a request did not arrive within {seconds} s")
            }
            Self::SlowBody { bytes } => {
                write!(f, "the body of a request arrives at less than 1 KiB/s: {bytes} bytes so far")
            }
            Self::Pipelined { bytes } => {
                write!(f, "{bytes} bytes of further requests came before the first was answered")
            }
            Self::Envelope { message } => write!(f, "the envelope is broken: {message}"),
        }
    }
}

impl std::error::Error for Breach {}

/// Microsoft's sentence on messages that are too large, as people search for it.
pub(super) fn over_limit(limit: u64) -> String {
    format!(
        "The maximum message size quota for incoming messages ({limit}) has been exceeded. To increase the quota, use \
         the MaxReceivedMessageSize property on the appropriate binding element."
    )
}
