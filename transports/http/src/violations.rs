//! Each way in which a peer's HTTP can be wrong, so that its connection ends.
//!
//! The peer is told by a status where one can still be written (400, 408, 413, 431, 501).

use super::heads::MAX_HEAD;
use everywire_model::violations;

violations! {
    "http"
    /// One way of being wrong.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum ProtocolError {
        /// What came is no HTTP/1.1 request.
        Request { message: String } => "this is no HTTP/1.1 request: {message}";
        /// A request says in two ways where it ends (RFC 9112 §6.1), or comes right behind a chunked one.
        Ambiguous => "the request says in two ways where it ends";
        /// A request names no host, two of them, or none that there can be (RFC 9112 §3.2).
        Host => "the request does not name one host, as HTTP/1.1 demands";
        /// A body has a transfer coding that is not chunks alone (RFC 9112 §6.1).
        Coding => "the request is sent in a transfer coding other than chunks";
        /// What came is no HTTP/1.1 response.
        Response { message: String } => "this is no HTTP/1.1 response: {message}";
        /// The head of a request is longer than [`MAX_HEAD`], or has too many lines.
        HeadTooLong => "the head of a request exceeds {MAX_HEAD} bytes or has too many lines";
        /// A body is larger than this side accepts.
        OverLimit { limit: u64 } => "a body exceeds {limit} bytes";
        /// The head of a request did not arrive in time.
        SlowHead { seconds: u64 } => "the head of a request did not arrive within {seconds} s";
        /// The body of a request arrives too slowly.
        SlowBody { bytes: usize } => "the body of a request arrives at less than 1 KiB/s: {bytes} bytes so far";
        /// The answers are read too slowly, or not at all.
        SlowReader { bytes: usize } => "answers are read at less than 1 KiB/s: {bytes} bytes wait";
        /// More was sent than one request while it was being answered.
        Pipelined { bytes: usize } => "{bytes} bytes of further requests came before the first was answered";
    }
}
