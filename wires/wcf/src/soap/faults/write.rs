//! Failures as faults.
//!
//! Whom a failure is due to decides about its code: `Sender` for what the caller can mend, `Receiver` for
//! everything else. Messages of failures inside this side are told only where the address allows it
//! (`details=on`), since they may name what callers should not know.

use crate::soap::names::{
    ADDRESSING, ADDRESSING_FAULT, DISPATCHER, DISPATCHER_FAULT, EXCEPTION_DETAIL, FAILURE, SECURITY,
    SOAP_FAULT,
};
use crate::soap::put::{ElementWriter, written};
use crate::soap::rm::Version;
use crate::soap::{Dialect, Soap};
use everywire_model::{Completed, Failure, Initiator, Kind};
use std::borrow::Cow;

/// What a fault says.
#[derive(Debug, Clone)]
pub(in crate::soap) struct FaultContents {
    /// `Sender`, `Receiver`, `MustUnderstand`: the code of SOAP 1.2.
    pub(in crate::soap) code: &'static str,
    /// (namespace, name).
    pub(in crate::soap) subcode: Option<(Cow<'static, str>, Cow<'static, str>)>,
    pub(in crate::soap) reason: String,
    /// The action of the message that carries the fault.
    pub(in crate::soap) action: Cow<'static, str>,
    /// Type and message of what went wrong, if callers may know.
    pub(in crate::soap) exception: Option<(String, String)>,
    /// The sequence of reliable messaging that it is about, with the namespace of that.
    pub(in crate::soap) sequence: Option<(&'static str, String)>,
}

/// What WCF says of an error that it does not tell.
const INTERNAL: &str = "The server was unable to process the request due to an internal error.  For more information about \
    the error, either turn on IncludeExceptionDetailInFaults (either from ServiceBehaviorAttribute or from the \
    <serviceDebug> configuration behavior) on the server in order to send the exception information back to the client, or \
    turn on tracing as per the Microsoft .NET Framework SDK documentation and inspect the server trace logs.";

/// The fault for a failure, about a request with this action and address.
pub(in crate::soap) fn said(failure: &Failure, action: &str, to: &str, detail: bool) -> FaultContents {
    let text = failure.message();
    match failure.kind() {
        // Somebody has chosen the code already: it goes on as it is.
        _ if given(failure).is_some() => FaultContents {
            code: if failure.initiator() == Initiator::Here { "Receiver" } else { "Sender" },
            subcode: given(failure),
            reason: text.to_owned(),
            action: SOAP_FAULT.into(),
            exception: None,
            sequence: None,
        },
        // The codes of these say that nothing was done, and a servant may have begun.
        kind @ (Kind::NoOperation | Kind::NoObject | Kind::Busy | Kind::Refused)
            if failure.completed() != Completed::No =>
        {
            FaultContents::new("Receiver", FAILURE, kind.word(), text, SOAP_FAULT)
        }
        Kind::NoOperation => {
            let reason = format!(
                "The message with Action '{action}' cannot be processed at the receiver, due to a ContractFilter mismatch at \
                 the EndpointDispatcher. This may be because of either a contract mismatch (mismatched Actions between sender \
                 and receiver) or a binding/security mismatch between the sender and the receiver.  Check that sender and \
                 receiver have the same contract and the same binding (including security requirements, e.g. Message, \
                 Transport, None)."
            );
            FaultContents::addressing("ActionNotSupported", reason)
        }
        Kind::NoObject => {
            let reason = format!(
                "The message with To '{to}' cannot be processed at the receiver, due to an AddressFilter mismatch at the \
                 EndpointDispatcher.  Check that the sender and receiver's EndpointAddresses agree."
            );
            FaultContents::addressing("DestinationUnreachable", reason)
        }
        Kind::Malformed | Kind::BadArgument | Kind::LimitExceeded
            if failure.completed() == Completed::No
                && failure.initiator() != Initiator::Here
                && (failure.kind() != Kind::LimitExceeded || names_a_quota(failure)) =>
        {
            // Whoever exceeds a quota of this side's learns how it is raised here.
            let how = failure.hint().filter(|_| failure.kind() == Kind::LimitExceeded);
            let how = how.map(|hint| format!(" ({hint})")).unwrap_or_default();
            let reason = format!(
                "The formatter threw an exception while trying to deserialize the message: {text}{how}"
            );
            FaultContents::new("Sender", DISPATCHER, "DeserializationFailed", reason, DISPATCHER_FAULT)
        }
        Kind::Busy => {
            FaultContents::new("Receiver", ADDRESSING, "EndpointUnavailable", text, ADDRESSING_FAULT)
        }
        Kind::Refused => {
            let code = failure
                .code()
                .and_then(|code| code.strip_prefix('{')?.strip_prefix(SECURITY)?.strip_prefix('}'));
            let code = code.unwrap_or("FailedAuthentication").to_owned();
            FaultContents::new("Sender", SECURITY, code, text, SOAP_FAULT)
        }
        Kind::Internal | Kind::Violation => {
            let reason = if detail { text } else { INTERNAL };
            let exception = detail.then(|| ("System.Exception".to_owned(), failure.to_string()));
            let said =
                FaultContents::new("Receiver", DISPATCHER, "InternalServiceFault", reason, DISPATCHER_FAULT);
            FaultContents { exception, ..said }
        }
        kind => FaultContents::new("Receiver", FAILURE, kind.word(), text, SOAP_FAULT),
    }
}

/// Whether a limit is one of a service's quotas, which callers of .NET know by that word.
fn names_a_quota(failure: &Failure) -> bool {
    failure.message().contains("quota") || failure.hint().is_some_and(|hint| hint.contains("quota"))
}

/// The code that a failure carries already, in Clark notation: of another WCF service, or of a servant that knows what its
/// callers expect.
fn given(failure: &Failure) -> Option<(Cow<'static, str>, Cow<'static, str>)> {
    let (namespace, local) = failure.code()?.strip_prefix('{')?.rsplit_once('}')?;
    let is_standard = [ADDRESSING, DISPATCHER, SECURITY, FAILURE].contains(&namespace);
    (!is_standard && !local.is_empty())
        .then(|| (Cow::Owned(namespace.to_owned()), Cow::Owned(local.to_owned())))
}

impl FaultContents {
    /// A fault with a subcode of a specification.
    pub(in crate::soap) fn new(
        code: &'static str,
        namespace: &'static str,
        name: impl Into<Cow<'static, str>>,
        reason: impl Into<String>,
        action: impl Into<Cow<'static, str>>,
    ) -> Self {
        let subcode = Some((namespace.into(), name.into()));
        Self { code, subcode, reason: reason.into(), action: action.into(), exception: None, sequence: None }
    }

    /// A fault about an addressing header.
    pub(in crate::soap) fn addressing(name: &'static str, reason: impl Into<String>) -> Self {
        Self::new("Sender", ADDRESSING, name, reason, ADDRESSING_FAULT)
    }

    /// The header that says over SOAP 1.1, which has no subcodes, which fault of a sequence this is, and which sequence is meant
    /// (WS-ReliableMessaging 1.0 and 1.1, section 4); nothing for other faults. In 1.1 the sequence stands in a `Detail`.
    pub(in crate::soap) fn sequence_fault(&self, dialect: Dialect) -> Vec<u8> {
        let (Some((namespace, id)), Some((_, code)), Soap::V11) =
            (&self.sequence, &self.subcode, dialect.soap)
        else {
            return Vec::new();
        };
        let has_detail = *namespace == Version::Oasis.namespace();
        written(dialect.form, |put| {
            put.start("r", "SequenceFault");
            put.xmlns("r", namespace);
            put.leaf("r", "FaultCode", &format!("r:{code}"));
            if has_detail {
                put.start("r", "Detail");
            }
            put.leaf("r", "Identifier", id);
            if has_detail {
                put.end();
            }
            put.end();
        })
    }

    /// The same fault about this sequence of reliable messaging, which its detail names (WS-ReliableMessaging, 4).
    pub(in crate::soap) fn about(self, version: Version, id: &str) -> Self {
        Self { sequence: Some((version.namespace(), id.to_owned())), ..self }
    }

    /// Writes the fault; returns where a detail would stand in what was written.
    /// The offset is 0 if no detail is wanted. `wants_detail`: an element for it is written, and left for
    /// the caller to fill.
    pub(in crate::soap) fn put(
        &self,
        put: &mut ElementWriter<'_>,
        dialect: Dialect,
        wants_detail: bool,
    ) -> usize {
        // A code in a namespace other than that of envelopes.
        let subcode = |put: &mut ElementWriter<'_>, namespace: &str, local: &str| {
            let prefix = if namespace == FAILURE { "e" } else { "a" };
            put.xmlns(prefix, namespace);
            put.chars(&format!("{prefix}:{local}"));
        };
        put.start("s", "Fault");
        let (prefix, detail) = match dialect.soap {
            Soap::V12 => {
                put.start("s", "Code");
                put.leaf("s", "Value", &format!("s:{}", self.code));
                if let Some((namespace, local)) = &self.subcode {
                    put.start("s", "Subcode");
                    put.start("s", "Value");
                    subcode(put, namespace, local);
                    put.end();
                    put.end();
                }
                put.end();
                put.start("s", "Reason");
                put.start("s", "Text");
                put.attribute("xml", "lang", "en-US");
                put.chars(&self.reason);
                put.end();
                put.end();
                ("s", "Detail")
            }
            Soap::V11 => {
                put.start("", "faultcode");
                match &self.subcode {
                    // SOAP 1.1 has no subcodes: the most telling code stands in their place, but for what a header says
                    // (`sequence_fault`).
                    Some((namespace, local))
                        if namespace != Soap::V12.namespace() && self.sequence.is_none() =>
                    {
                        subcode(put, namespace, local);
                    }
                    _ => put.chars(match self.code {
                        "Sender" => "s:Client",
                        "MustUnderstand" => "s:MustUnderstand",
                        "VersionMismatch" => "s:VersionMismatch",
                        _ => "s:Server",
                    }),
                }
                put.end();
                put.start("", "faultstring");
                put.attribute("xml", "lang", "en-US");
                put.chars(&self.reason);
                put.end();
                ("", "detail")
            }
        };
        let mut at = 0;
        if let Some((kind, message)) = &self.exception {
            put.start(prefix, detail);
            put.start("", "ExceptionDetail");
            put.xmlns("", EXCEPTION_DETAIL);
            put.leaf("", "Message", message);
            put.leaf("", "Type", kind);
            put.end();
            put.end();
        } else if let (Some((namespace, id)), Soap::V12) = (&self.sequence, dialect.soap) {
            put.start(prefix, detail);
            put.start("r", "Identifier");
            put.xmlns("r", namespace);
            put.chars(id);
            put.end();
            put.end();
        } else if wants_detail {
            put.start(prefix, detail);
            at = put.len();
            put.end();
        }
        put.end();
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema of WS-ReliableMessaging 1.1 has a `Detail` where that of 1.0 has none.
    #[test]
    fn each_version_of_reliable_messaging_has_its_header_of_a_fault() {
        let dialect = Dialect { soap: Soap::V11, ..Dialect::WS };
        for (version, before, after) in
            [(Version::February, "", ""), (Version::Oasis, "<r:Detail>", "</r:Detail>")]
        {
            let fault = version.unknown("urn:x", false);
            let header = String::from_utf8(fault.sequence_fault(dialect)).unwrap_or_default();
            let wanted = format!(
                "<r:SequenceFault xmlns:r=\"{}\"><r:FaultCode>r:UnknownSequence</r:FaultCode>{before}\
                 <r:Identifier>urn:x</r:Identifier>{after}</r:SequenceFault>",
                version.namespace()
            );
            assert_eq!(header, wanted);
            assert!(fault.sequence_fault(Dialect::WS).is_empty(), "SOAP 1.2 has subcodes");
        }
    }

    #[test]
    fn the_namespace_of_a_code_may_have_braces() {
        let failure = Failure::new(Kind::Internal, Initiator::User, "no such ticket")
            .with_code("{urn:{x}:shop}NoTicket");
        assert_eq!(given(&failure), Some(("urn:{x}:shop".into(), "NoTicket".into())));
    }
}
