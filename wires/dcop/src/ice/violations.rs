//! Each way a peer can be wrong at the level of ICE and of frames is one named variant.

use everywire_model::violations;

violations! {
    "dcop"
    /// How a peer broke the protocol, or why it refused.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum ProtocolError {
        /// A message has an opcode that nothing was set up for.
        Major { major: u8 } => "a message has opcode {major}, which was not set up";
        /// No message has this minor opcode.
        Minor { minor: u8 } => "no message has minor opcode {minor}";
        /// A message that does not belong here.
        State { minor: u8, awaited: &'static str } =>
            "a message with minor opcode {minor} came where {awaited} was awaited";
        /// A message's length and its contents do not agree.
        Length { minor: u8 } => "the length of a message with minor opcode {minor} does not fit its contents";
        /// A field has a value that means nothing.
        Value { what: &'static str, value: u32 } => "{value} is no {what}";
        /// A message is larger than this side accepts.
        OverLimit { size: u64, limit: u64 } => "a message of {size} bytes exceeds the limit of {limit} bytes";
        /// No offered version is spoken here.
        NoVersion { what: &'static str } => "no offered version of {what} is spoken here";
        /// No offered authentication method is taken here.
        NoAuthentication => "no offered authentication method is taken here";
        /// The peer showed a wrong cookie.
        WrongCookie => "the cookie is wrong";
        /// The peer set up a protocol that is not spoken here.
        UnknownProtocol => "the protocol to set up is not DCOP";
        /// The peer refused.
        Refused { class: u16, reason: String } =>
            "the peer refused ({}){}", super::Class::word(*class), words(reason);
        /// Text or data in a message reaches beyond its end.
        Payload { what: &'static str, at: usize } => "{what} reaches beyond the message, at byte {at} of it";
    }
}

impl ProtocolError {
    /// The name of the violation that says that the peer refused.
    pub const REFUSED: &'static str = "Refused";
}

/// What the peer gave as its reason, if it gave one.
fn words(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {}", reason.escape_debug()) }
}
