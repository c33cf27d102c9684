//! Faults of the framing (MC-NMF 2.2.5): what they mean to a caller, and which of them a breach is told by.
//!
//! A Fault record holds a URI and ends the connection. The names are Microsoft's; what a caller here gets
//! is a failure with a kind, so that retries work alike on all wires, with the URI as its code, and a hint
//! for what the two sides most often disagree about.

use super::records::RecordKind;
use crate::settings::Security;
use crate::violations::Breach;
use everywire_model::{Failure, Initiator, Kind};

/// What every fault of the specification begins with.
pub const NAMESPACE: &str = "http://schemas.microsoft.com/ws/2006/05/framing/faults/";

/// The faults of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Fault {
    ConnectionDispatchFailed,
    ContentTypeInvalid,
    ContentTypeTooLong,
    EndpointAccessDenied,
    EndpointNotFound,
    EndpointPaused,
    EndpointUnavailable,
    InvalidRecordSequence,
    MaxMessageSizeExceeded,
    ServerTooBusy,
    ServiceActivationFailed,
    UnsupportedMode,
    UnsupportedVersion,
    UpgradeInvalid,
    ViaTooLong,
}

/// All of them, as they stand on the wire.
/// `MaxMessageSizeExceededFault` has the word in its name, and only that one.
pub const FAULTS: [(Fault, &str); 15] = [
    (Fault::ConnectionDispatchFailed, "ConnectionDispatchFailed"),
    (Fault::ContentTypeInvalid, "ContentTypeInvalid"),
    (Fault::ContentTypeTooLong, "ContentTypeTooLong"),
    (Fault::EndpointAccessDenied, "EndpointAccessDenied"),
    (Fault::EndpointNotFound, "EndpointNotFound"),
    (Fault::EndpointPaused, "EndpointPaused"),
    (Fault::EndpointUnavailable, "EndpointUnavailable"),
    (Fault::InvalidRecordSequence, "InvalidRecordSequence"),
    (Fault::MaxMessageSizeExceeded, "MaxMessageSizeExceededFault"),
    (Fault::ServerTooBusy, "ServerTooBusy"),
    (Fault::ServiceActivationFailed, "ServiceActivationFailed"),
    (Fault::UnsupportedMode, "UnsupportedMode"),
    (Fault::UnsupportedVersion, "UnsupportedVersion"),
    (Fault::UpgradeInvalid, "UpgradeInvalid"),
    (Fault::ViaTooLong, "ViaTooLong"),
];

impl Fault {
    /// The fault that a URI names.
    /// `None` for URIs of others: the caller then gets a failure that shows it.
    pub fn from_uri(uri: &str) -> Option<Self> {
        let name = uri.strip_prefix(NAMESPACE)?;
        FAULTS.iter().find(|(_, known)| *known == name).map(|(fault, _)| *fault)
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        FAULTS.iter().find(|(fault, _)| *fault == self).map_or("", |(_, name)| name)
    }

    /// The URI of a fault record.
    pub fn uri(self) -> String {
        format!("{NAMESPACE}{}", self.name())
    }
}

/// What a fault that came from `via` means to whoever called there with this content type.
pub fn failure(uri: &str, via: &str, content_type: &str) -> Failure {
    let (kind, message, hint) = match Fault::from_uri(uri) {
        Some(Fault::ContentTypeInvalid) => (
            Kind::Unsupported,
            format!("content type {content_type} is not supported by {via}"),
            "the encodings of both sides differ: give `encoding=` or `mode=` as the service has it",
        ),
        Some(Fault::ContentTypeTooLong) => {
            (Kind::LimitExceeded, format!("content type {content_type} is too long for {via}"), "")
        }
        Some(Fault::ConnectionDispatchFailed) => (
            Kind::Internal,
            format!("the message could not be dispatched to the service at {via}"),
            "the service's log says why",
        ),
        Some(Fault::EndpointNotFound) => (
            Kind::NoObject,
            format!("there was no endpoint listening at {via} that could accept the message"),
            "check the path of the address",
        ),
        Some(Fault::EndpointUnavailable | Fault::EndpointPaused) => {
            (Kind::Busy, format!("the service at {via} is unavailable"), "try again later")
        }
        Some(Fault::EndpointAccessDenied) => (Kind::Refused, format!("access to {via} is denied"), ""),
        Some(Fault::InvalidRecordSequence) => {
            (Kind::Violation, format!("{via} did not expect this sequence of records"), "")
        }
        Some(Fault::MaxMessageSizeExceeded) => (
            Kind::LimitExceeded,
            format!("the maximum message size quota for incoming messages has been exceeded at {via}"),
            "raise MaxReceivedMessageSize on the service's binding (of a listener here: `MaxReceivedMessageSize=` in its address), or send less",
        ),
        Some(Fault::ServerTooBusy) => {
            (Kind::Busy, format!("server {via} is too busy to process this request"), "try again later")
        }
        Some(Fault::ServiceActivationFailed) => (
            Kind::Unreachable,
            format!("the service at {via} could not be activated"),
            "the service's log says why",
        ),
        Some(Fault::UnsupportedMode) => (
            Kind::Unsupported,
            format!("the framing mode is not supported by {via}"),
            "the transfer modes of both sides differ: give `mode=buffered` or `mode=streamed`",
        ),
        Some(Fault::UnsupportedVersion) => {
            (Kind::Unsupported, format!("the framing version is not supported by {via}"), "")
        }
        Some(Fault::UpgradeInvalid) => (
            Kind::Refused,
            format!("the requested upgrade is not supported by {via}"),
            "the security of both sides differs: give `security=` as the service has it",
        ),
        Some(Fault::ViaTooLong) => {
            (Kind::LimitExceeded, format!("the via {via} is too long for the service"), "")
        }
        None => (Kind::Violation, format!("the server faulted with code {}", uri.escape_debug()), ""),
    };
    let failure = Failure::new(kind, Initiator::Peer, message).with_code(uri);
    if hint.is_empty() { failure } else { failure.with_hint(hint) }
}

/// What the fault `UpgradeInvalid` means to whoever asked for this security: the two sides differ, and how.
pub fn upgrade_refused(via: &str, asked: Security) -> Failure {
    let refused = |what: String, hint: &str| {
        Failure::new(Kind::Refused, Initiator::Peer, what)
            .with_code(Fault::UpgradeInvalid.uri())
            .with_hint(hint)
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

impl Breach {
    /// The fault by which the accepting side tells the peer of this, if by any: Microsoft closes without a word on most.
    pub fn fault(&self) -> Option<Fault> {
        Some(match self {
            Self::Version { .. } => Fault::UnsupportedVersion,
            Self::Mode { .. } => Fault::UnsupportedMode,
            Self::TextTooLong { record: RecordKind::Via, .. } => Fault::ViaTooLong,
            Self::TextTooLong { record: RecordKind::ExtensibleEncoding, .. } => Fault::ContentTypeTooLong,
            Self::NoEndpoint { .. } => Fault::EndpointNotFound,
            Self::ContentType { .. } => Fault::ContentTypeInvalid,
            Self::Upgrade { .. } | Self::SecurityRequired { .. } => Fault::UpgradeInvalid,
            Self::Busy { .. } | Self::Waiting { .. } => Fault::ServerTooBusy,
            Self::OverLimit { .. } => Fault::MaxMessageSizeExceeded,
            // The specification has no fault for those, and Microsoft sends none either.
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (fault, name) in FAULTS {
            assert_eq!(fault.name(), name);
            assert_eq!(Fault::from_uri(&fault.uri()), Some(fault));
            let failure = failure(&fault.uri(), "net.tcp://host/x", "application/soap+msbin1");
            assert_eq!(failure.code(), Some(fault.uri().as_str()));
            assert!(failure.message().contains("net.tcp://host/x"));
        }
        assert_eq!(Fault::from_uri("MaxMessageSizeExceededFault"), None);
        let bogus = failure(&format!("{NAMESPACE}Bogus"), "net.tcp://host/x", "");
        assert_eq!(bogus.kind(), Kind::Violation);
    }
}
