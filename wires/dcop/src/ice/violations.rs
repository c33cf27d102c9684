//! Each way a peer can be wrong at the level of ICE and of frames is one named variant.

use everywire_model::Violation;

/// How a peer broke the protocol, or why it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// A message has an opcode that nothing was set up for.
    Major {
        /// The opcode.
        major: u8,
    },
    /// No message has this minor opcode.
    Minor {
        /// The opcode.
        minor: u8,
    },
    /// A message that does not belong here.
    State {
        /// Its minor opcode.
        minor: u8,
        /// What was awaited instead.
        awaited: &'static str,
    },
    /// A message's length and its contents do not agree.
    Length {
        /// Its minor opcode.
        minor: u8,
    },
    /// A field has a value that means nothing.
    Value {
        /// The field.
        what: &'static str,
        /// The value.
        value: u32,
    },
    /// A message is larger than this side accepts.
    OverLimit {
        /// Its bytes, header included.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// No offered version is spoken here.
    NoVersion {
        /// Of what.
        what: &'static str,
    },
    /// No offered authentication method is taken here.
    NoAuthentication,
    /// The peer showed a wrong cookie.
    WrongCookie,
    /// The peer set up a protocol that is not spoken here.
    UnknownProtocol,
    /// The peer refused.
    Refused {
        /// The class of its error.
        class: u16,
        /// Its words, if it gave any.
        reason: String,
    },
    /// Text or data in a message reaches beyond its end.
    Payload {
        /// Which field.
        what: &'static str,
        /// Offset in the payload.
        at: usize,
    },
}

impl Wrong {
    /// The name of the violation that says that the peer refused.
    pub const REFUSED: &'static str = "Refused";

    /// The variant's name, stable: tests, metrics and `trace` count by it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Major { .. } => "Major",
            Self::Minor { .. } => "Minor",
            Self::State { .. } => "State",
            Self::Length { .. } => "Length",
            Self::Value { .. } => "Value",
            Self::OverLimit { .. } => Violation::OVER_LIMIT,
            Self::NoVersion { .. } => "NoVersion",
            Self::NoAuthentication => "NoAuthentication",
            Self::WrongCookie => "WrongCookie",
            Self::UnknownProtocol => "UnknownProtocol",
            Self::Refused { .. } => Self::REFUSED,
            Self::Payload { .. } => "Payload",
        }
    }

    /// The neutral violation; `offset` counts bytes received on the connection before the message.
    #[cold]
    pub fn violation(&self, offset: u64) -> Violation {
        Violation { wire: "dcop", name: self.name(), message: self.to_string(), offset }
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Major { major } => write!(f, "a message has opcode {major}, which was not set up"),
            Self::Minor { minor } => write!(f, "no message has minor opcode {minor}"),
            Self::State { minor, awaited } => {
                write!(f, "a message with minor opcode {minor} came where {awaited} was awaited")
            }
            Self::Length { minor } => {
                write!(f, "the length of a message with minor opcode {minor} does not fit its contents")
            }
            Self::Value { what, value } => write!(f, "{value} is no {what}"),
            Self::OverLimit { size, limit } => {
                write!(f, "a message of {size} bytes exceeds the limit of {limit} bytes")
            }
            Self::NoVersion { what } => write!(f, "no offered version of {what} is spoken here"),
            Self::NoAuthentication => f.write_str("no offered authentication method is taken here"),
            Self::WrongCookie => f.write_str("the cookie is wrong"),
            Self::UnknownProtocol => f.write_str("the protocol to set up is not DCOP"),
            Self::Refused { class, reason } if reason.is_empty() => {
                write!(f, "the peer refused ({})", super::Class::word(*class))
            }
            Self::Refused { class, reason } => {
                write!(f, "the peer refused ({}): {}", super::Class::word(*class), reason.escape_debug())
            }
            Self::Payload { what, at } => write!(f, "{what} reaches beyond the message, at byte {at} of it"),
        }
    }
}
