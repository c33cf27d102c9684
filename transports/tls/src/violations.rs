//! Each way in which a peer can be wrong is one named variant.

use everywire_model::{Failure, Initiator, Kind, violations};

violations! {
    "tls"
    /// How a peer broke the protocol, or why it is not let in.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum ProtocolError {
        /// What the peer says does not begin with a record of TLS.
        NotTls { message: String } => "{message}";
        /// One side does not take the certificate of the other, or asks for one in vain.
        Refused { message: String } => "{message}";
        /// The handshake is larger than this side takes.
        OverLimit { message: String } => "{message}";
        /// A record or a message of the handshake is wrong, was changed on its way, or stands where none can: another version, a
        /// record that is too large, a renegotiation.
        Record { message: String } => "{message}";
        /// The handshake was not over in time.
        Slow { seconds: u64 } => "the handshake of TLS was not over within {seconds} s";
    }
}

impl ProtocolError {
    /// Of what a channel found.
    pub(crate) fn of(failure: &Failure) -> Self {
        let message = failure.message().to_owned();
        match failure.kind() {
            Kind::Refused => Self::Refused { message },
            Kind::LimitExceeded => Self::OverLimit { message },
            _ if failure.code() == Some(NOT_TLS) => Self::NotTls { message },
            _ => Self::Record { message },
        }
    }

    /// What came first is of another protocol.
    #[cold]
    pub(crate) fn not_tls(input: &[u8], connecting: bool) -> Failure {
        let begins = input.get(..input.len().min(4)).unwrap_or_default().escape_ascii();
        let message = format!("what the peer says is not TLS: it begins with `{begins}`");
        let hint = if connecting {
            "the port is one without TLS: call it by the scheme without TLS, or ask for the port with TLS"
        } else {
            "the client speaks without TLS at a port with TLS: it needs the scheme with TLS"
        };
        Failure::new(Kind::Violation, Initiator::Peer, message).with_code(NOT_TLS).with_hint(hint)
    }
}

/// The code of a failure that says so.
const NOT_TLS: &str = "tls NotTls";
