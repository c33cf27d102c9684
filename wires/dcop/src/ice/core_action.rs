//! Core messages after the handshake.

use super::ProtocolError;
use super::core::{Class, Core, Severity, put_core, put_error};

/// What a core message after the handshake asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreAction {
    /// Nothing; or its answer is written already.
    Go,
    /// To close the connection.
    Close,
}

/// Takes one core message, whole, after the handshake, and appends the answer. `little` is the peer's byte order,
/// `sequence` the message's number for an error about it (0 if nobody counts).
///
/// # Errors
/// A message that does not belong here: an error is appended, and the connection is to be closed.
pub fn late(raw: &[u8], little: bool, sequence: u32, out: &mut Vec<u8>) -> Result<CoreAction, ProtocolError> {
    let wrong = match Core::read(raw, little) {
        Ok(Core::Ping) => {
            put_core(out, &Core::PingReply);
            return Ok(CoreAction::Go);
        }
        // Negotiation of the end is switched off in DCOP: whoever asks may go.
        Ok(Core::WantToClose) => return Ok(CoreAction::Close),
        Ok(Core::Error { severity: 0, .. } | Core::PingReply | Core::NoClose) => return Ok(CoreAction::Go),
        Ok(Core::Error { .. }) => return Ok(CoreAction::Close),
        Ok(core) => ProtocolError::State { minor: core.minor(), awaited: "a DCOP message" },
        Err(wrong) => wrong,
    };
    let (class, minor) = match &wrong {
        ProtocolError::State { minor: 7, .. } => (Class::PROTOCOL_DUPLICATE, 7),
        ProtocolError::State { minor, .. } => (Class::BAD_STATE, *minor),
        ProtocolError::Minor { minor } => (Class::BAD_MINOR, *minor),
        ProtocolError::Length { minor } => (Class::BAD_LENGTH, *minor),
        _ => (Class::BAD_VALUE, raw.get(1).copied().unwrap_or_default()),
    };
    put_error(out, class, minor, Severity::Connection, sequence, b"");
    Err(wrong)
}
