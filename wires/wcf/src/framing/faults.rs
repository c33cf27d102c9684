//! Faults of the framing (MC-NMF 2.2.5): what they mean to a caller, and which of them a breach is told by.
//!
//! A Fault record holds a URI and ends the connection. The names are Microsoft's; what a caller here gets
//! is a failure with a kind, so that retries work alike on all wires, with the URI as its code, and a hint
//! for what the two sides most often disagree about.

use super::records::RecordKind;
use crate::settings::Security;
use crate::violations::ProtocolError;
use everywire_model::{Failure, Initiator, Kind};

/// What every fault of the specification begins with.
pub const NAMESPACE: &str = "http://schemas.microsoft.com/ws/2006/05/framing/faults/";

/// A service that serves as much as it may.
pub(super) const SERVER_TOO_BUSY: &str = "ServerTooBusy";

/// The security of both sides differs.
pub(super) const UPGRADE_INVALID: &str = "UpgradeInvalid";

/// The URI of the fault with this name.
pub fn uri(name: &str) -> String {
    format!("{NAMESPACE}{name}")
}

/// What a fault that came from `via` means to whoever called there with this content type.
pub fn failure(uri: &str, via: &str, content_type: &str) -> Failure {
    let (kind, message, hint) = match uri.strip_prefix(NAMESPACE).unwrap_or_default() {
        "ContentTypeInvalid" => (
            Kind::Unsupported,
            format!("content type {content_type} is not supported by {via}"),
            "the encodings of both sides differ: give `encoding=` or `mode=` as the service has it",
        ),
        "ContentTypeTooLong" => {
            (Kind::LimitExceeded, format!("content type {content_type} is too long for {via}"), "")
        }
        "ConnectionDispatchFailed" => (
            Kind::Internal,
            format!("the message could not be dispatched to the service at {via}"),
            "the service's log says why",
        ),
        "EndpointNotFound" => (
            Kind::NoObject,
            format!("there was no endpoint listening at {via} that could accept the message"),
            "check the path of the address",
        ),
        "EndpointUnavailable" | "EndpointPaused" => {
            (Kind::Busy, format!("the service at {via} is unavailable"), "try again later")
        }
        "EndpointAccessDenied" => (Kind::Refused, format!("access to {via} is denied"), ""),
        "InvalidRecordSequence" => {
            (Kind::Violation, format!("{via} did not expect this sequence of records"), "")
        }
        "MaxMessageSizeExceededFault" => (
            Kind::LimitExceeded,
            format!("the maximum message size quota for incoming messages has been exceeded at {via}"),
            "raise MaxReceivedMessageSize on the service's binding (of a listener here: `MaxReceivedMessageSize=` in its address), or send less",
        ),
        SERVER_TOO_BUSY => {
            (Kind::Busy, format!("server {via} is too busy to process this request"), "try again later")
        }
        "ServiceActivationFailed" => (
            Kind::Unreachable,
            format!("the service at {via} could not be activated"),
            "the service's log says why",
        ),
        "UnsupportedMode" => (
            Kind::Unsupported,
            format!("the framing mode is not supported by {via}"),
            "the transfer modes of both sides differ: give `mode=buffered` or `mode=streamed`",
        ),
        "UnsupportedVersion" => {
            (Kind::Unsupported, format!("the framing version is not supported by {via}"), "")
        }
        UPGRADE_INVALID => (
            Kind::Refused,
            format!("the requested upgrade is not supported by {via}"),
            "the security of both sides differs: give `security=` as the service has it",
        ),
        "ViaTooLong" => (Kind::LimitExceeded, format!("the via {via} is too long for the service"), ""),
        _ => (Kind::Violation, format!("the server faulted with code {}", uri.escape_debug()), ""),
    };
    let failure = Failure::new(kind, Initiator::Peer, message).with_code(uri);
    if hint.is_empty() { failure } else { failure.with_hint(hint) }
}

/// What the fault `UpgradeInvalid` means to whoever asked for this security: the two sides differ, and how.
pub fn upgrade_refused(via: &str, asked: Security) -> Failure {
    let refused = |what: String, hint: &str| {
        Failure::new(Kind::Refused, Initiator::Peer, what).with_code(uri(UPGRADE_INVALID)).with_hint(hint)
    };
    match asked.upgrade() {
        None => {
            refused(format!("the service at {via} demands security, and the address asks for none"), DEMANDED)
        }
        Some(upgrade) => refused(
            format!("the requested upgrade ({upgrade}) is not supported by {via}"),
            "the security of both sides differs: if the service has none, say ?security=none; else give security= as it has it",
        ),
    }
}

/// What to try where a service demands security.
pub(super) const DEMANDED: &str = "the service demands security: give credentials (USER:PASSWORD@ before the host), or security=tls, windows or username, as it has it";

impl ProtocolError {
    /// The name of the fault by which the accepting side tells the peer of this, if by any: Microsoft closes without a
    /// word on most.
    pub fn fault(&self) -> Option<&'static str> {
        Some(match self {
            Self::Version { .. } => "UnsupportedVersion",
            Self::Mode { .. } => "UnsupportedMode",
            Self::TextTooLong { record: RecordKind::Via, .. } => "ViaTooLong",
            Self::TextTooLong { record: RecordKind::ExtensibleEncoding, .. } => "ContentTypeTooLong",
            Self::NoEndpoint { .. } => "EndpointNotFound",
            Self::ContentType { .. } => "ContentTypeInvalid",
            Self::Upgrade { .. } | Self::SecurityRequired { .. } => UPGRADE_INVALID,
            Self::Busy { .. } | Self::Waiting { .. } => SERVER_TOO_BUSY,
            Self::OverLimit { .. } => "MaxMessageSizeExceededFault",
            // The specification has no fault for those, and Microsoft sends none either.
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn whose_security_differs_is_told_what_to_give() {
        let hint =
            |asked| upgrade_refused("net.tcp://host/x", asked).hint().map(str::to_owned).unwrap_or_default();
        assert!(hint(Security::None).contains("security=tls"));
        for asked in [Security::Windows, Security::Tls, Security::Unix] {
            assert!(hint(asked).contains("?security=none"));
        }
    }

    #[test]
    fn every_fault_has_one_name_and_one_meaning() {
        let names = [
            "ConnectionDispatchFailed",
            "ContentTypeInvalid",
            "ContentTypeTooLong",
            "EndpointAccessDenied",
            "EndpointNotFound",
            "EndpointPaused",
            "EndpointUnavailable",
            "InvalidRecordSequence",
            "MaxMessageSizeExceededFault",
            SERVER_TOO_BUSY,
            "ServiceActivationFailed",
            "UnsupportedMode",
            "UnsupportedVersion",
            UPGRADE_INVALID,
            "ViaTooLong",
        ];
        let mut told = HashSet::new();
        for name in names {
            let failure = failure(&uri(name), "net.tcp://host/x", "application/soap+msbin1");
            assert_eq!(failure.code(), Some(uri(name).as_str()));
            assert!(failure.message().contains("net.tcp://host/x"));
            told.insert(failure.message().to_owned());
        }
        // Paused and unavailable are one.
        assert_eq!(told.len(), names.len() - 1);
        let foreign = failure("MaxMessageSizeExceededFault", "net.tcp://host/x", "");
        assert_eq!(foreign.kind(), Kind::Violation);
        let bogus = failure(&format!("{NAMESPACE}Bogus"), "net.tcp://host/x", "");
        assert_eq!(bogus.kind(), Kind::Violation);
    }
}
