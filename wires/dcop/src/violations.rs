//! Each way the server, or a peer behind it, can be wrong above the level of frames is one named variant; those of
//! frames and of the handshake are [`crate::ice::Wrong`].

use crate::strings::Bad;
use everywire_model::Violation;

/// How a peer broke the protocol. All of them end the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// The strings at the front of a message do not decode.
    Payload {
        /// What is wrong.
        what: &'static str,
        /// Offset in the payload.
        at: usize,
    },
    /// The server gave another name than was asked for.
    NameTaken {
        /// The name.
        wanted: String,
        /// What it gave.
        granted: String,
    },
    /// The server refused to register this side.
    NotRegistered,
    /// The server did not admit this side in time.
    TooSlow {
        /// Seconds it was given.
        seconds: u64,
    },
    /// A call came before this side was registered.
    TooEarly {
        /// The message.
        kind: &'static str,
    },
    /// Somebody connected where a server of this wire would have to be.
    NoPeers,
    /// The server lets nobody overhear.
    NoMonitoring,
}

impl Wrong {
    /// The variant's name, stable: tests, metrics and `trace` count by it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Payload { .. } => "Payload",
            Self::NameTaken { .. } => "NameTaken",
            Self::NotRegistered => "NotRegistered",
            Self::TooSlow { .. } => "TooSlow",
            Self::TooEarly { .. } => "TooEarly",
            Self::NoPeers => "NoPeers",
            Self::NoMonitoring => "NoMonitoring",
        }
    }

    /// The neutral violation; `offset` counts bytes received on the connection before the message.
    #[cold]
    pub fn violation(&self, offset: u64) -> Violation {
        Violation { wire: "dcop", name: self.name(), message: self.to_string(), offset }
    }
}

impl From<Bad> for Wrong {
    fn from(bad: Bad) -> Self {
        Self::Payload { what: bad.what, at: bad.at }
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Payload { what, at } => write!(f, "{what}, at byte {at} of the message's payload"),
            Self::NameTaken { wanted, granted } => write!(
                f,
                "the application name `{}` is taken (the server offers `{}`); add ?unique=no to take what it offers",
                wanted.escape_debug(),
                granted.escape_debug()
            ),
            Self::NotRegistered => f.write_str("the server does not register this side"),
            Self::TooSlow { seconds } => write!(f, "what had begun did not arrive within {seconds} s"),
            Self::TooEarly { kind } => write!(f, "a {kind} came before this side was registered"),
            Self::NoPeers => f.write_str(
                "applications of this wire meet at a server, not each other: run `everywire dcopserver`, and serve at dcop:NAME",
            ),
            Self::NoMonitoring => f.write_str("the server of this wire lets nobody overhear what others say"),
        }
    }
}

impl std::error::Error for Wrong {}
