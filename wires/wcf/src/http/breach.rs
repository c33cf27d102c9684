//! The ways in which a peer's HTTP can be wrong, so that its connection ends.
//!
//! Each is told to the peer by a status where the library can still write one (400, 408, 413, 431), and to
//! the link by `at`, which ends the connection. Names are listed in `cli/help/codes.tsv`.

use super::heads::MAX_HEAD;
use crate::limits::too_large;
use everywire_model::Violation;

/// One way of being wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Breach {
    /// No HTTP/1.1 request, and why.
    Request(String),
    /// A request that says in two ways where it ends (RFC 9112 §6.1), or one that comes right behind a chunked one.
    Ambiguous,
    /// No HTTP/1.1 response, and why.
    Response(String),
    /// The head of a request is longer than [`MAX_HEAD`], or has too many lines.
    HeadTooLong,
    /// A message is larger than this side accepts: than the quota, in bytes.
    OverLimit(u64),
    /// The head of a request did not arrive in so many seconds.
    SlowHead(u64),
    /// The body of a request arrived too slowly: so many bytes came.
    SlowBody(usize),
    /// More was sent than one request while it was being answered: so many bytes wait.
    Pipelined(usize),
    /// The envelope is broken, and why.
    Envelope(String),
}

impl Breach {
    /// What leaves the crate. The name is stable: tests, metrics and `trace` count by it.
    #[cold]
    pub fn at(&self, offset: u64) -> Violation {
        let (name, message) = match self {
            Self::Request(why) => ("Request", format!("this is no HTTP/1.1 request: {why}")),
            Self::Ambiguous => ("Ambiguous", "the request says in two ways where it ends".into()),
            Self::Response(why) => ("Response", format!("this is no HTTP/1.1 response: {why}")),
            Self::HeadTooLong => (
                "HeadTooLong",
                format!("the head of a request exceeds {MAX_HEAD} bytes or has too many lines"),
            ),
            Self::OverLimit(limit) => (Violation::OVER_LIMIT, too_large(*limit)),
            Self::SlowHead(seconds) => {
                ("SlowHead", format!("the head of a request did not arrive within {seconds} s"))
            }
            Self::SlowBody(bytes) => {
                let what =
                    format!("the body of a request arrives at less than 1 KiB/s: {bytes} bytes so far");
                ("SlowBody", what)
            }
            Self::Pipelined(bytes) => {
                let what = format!("{bytes} bytes of further requests came before the first was answered");
                ("Pipelined", what)
            }
            Self::Envelope(why) => ("Envelope", format!("the envelope is broken: {why}")),
        };
        Violation { wire: "wcf", name, message, offset }
    }
}
