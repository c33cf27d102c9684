//! Each way the server, or a peer behind it, can be wrong above the level of frames is one named variant; those of
//! frames and of the handshake are [`crate::ice::ProtocolError`].

use crate::strings::DecodeError;
use everywire_model::violations;

violations! {
    "dcop"
    /// How a peer broke the protocol. All of them end the connection.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum ProtocolError {
        /// The strings at the front of a message do not decode.
        Payload { what: &'static str, at: usize } => "{what}, at byte {at} of the message's payload";
        /// The server gave another name than was asked for.
        NameTaken { wanted: String, granted: String } =>
            "the application name `{}` is taken (the server offers `{}`); add ?unique=no to take what it offers",
            wanted.escape_debug(), granted.escape_debug();
        /// The server refused to register this side.
        NotRegistered => "the server does not register this side";
        /// The server did not admit this side in time.
        TooSlow { seconds: u64 } => "what had begun did not arrive within {seconds} s";
        /// A call came before this side was registered.
        TooEarly { kind: &'static str } => "a {kind} came before this side was registered";
        /// Somebody connected where a server of this wire would have to be.
        NoPeers =>
            "applications of this wire meet at a server, not each other: run `everywire dcopserver`, and serve at dcop:NAME";
        /// The server lets nobody overhear.
        NoMonitoring => "the server of this wire lets nobody overhear what others say";
    }
}

impl From<DecodeError> for ProtocolError {
    fn from(bad: DecodeError) -> Self {
        Self::Payload { what: bad.what, at: bad.at }
    }
}
