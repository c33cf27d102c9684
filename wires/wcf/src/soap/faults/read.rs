//! Faults as failures.
//!
//! Both versions of SOAP are read by one loop: their element names differ. Elements are told by their local
//! names; namespaces matter for codes only.

use crate::soap::cursor::{Cursor, Document};
use crate::soap::names::{ADDRESSING, DISPATCHER, FAILURE, SECURITY, SOAP_11, SOAP_12};
use crate::soap::rm::Version;
use crate::values::XSI;
use everywire_model::visit::Visit;
use everywire_model::{Completed, Failure, Initiator, Kind};

/// A fault as it came.
#[derive(Debug, Default)]
pub(in crate::soap) struct Fault {
    /// (namespace, name).
    /// `Sender`, `Receiver` and so on in the namespace of SOAP, or in 1.1 a code of the service's own.
    pub(in crate::soap) code: (String, String),
    /// The first of those that may nest in each other; SOAP 1.1 has none.
    pub(in crate::soap) subcode: Option<(String, String)>,
    pub(in crate::soap) reason: String,
    /// Offset of the first byte inside the detail.
    /// 0 if there is none.
    pub(in crate::soap) detail: usize,
    /// The first element of the detail.
    pub(in crate::soap) first: Option<(String, String)>,
    /// The type that this element says it is (`xsi:type`).
    pub(in crate::soap) kind: Option<(String, String)>,
}

impl Fault {
    /// Reads the fault in the body of a document.
    pub(in crate::soap) fn read(document: Document<'_>) -> Visit<Self> {
        let mut cursor = Cursor::new(document);
        let mut fault = Self::default();
        cursor.enter("Envelope")?;
        while let Some(part) = cursor.child()? {
            match &*part.local {
                "Header" => fault.header(&mut cursor)?,
                "Body" => break,
                _ => cursor.skip()?,
            }
        }
        cursor.enter("Fault")?;
        while let Some(element) = cursor.child()? {
            match &*element.local {
                "Code" => fault.code(&mut cursor)?,
                "Reason" => {
                    // Of several languages, the first will do.
                    while let Some(child) = cursor.child()? {
                        if child.local == "Text" && fault.reason.is_empty() {
                            fault.reason = cursor.string()?;
                        } else {
                            cursor.skip()?;
                        }
                    }
                }
                "faultcode" => fault.code = cursor.qname()?,
                "faultstring" => fault.reason = cursor.string()?,
                // Its elements are the codec's to read, if the contract declares them.
                "Detail" | "detail" => {
                    fault.detail = element.inside;
                    let first = cursor.first(
                        |_| true,
                        |cursor, inner| {
                            let kind = inner.attribute(XSI, "type").and_then(|value| cursor.named(value));
                            cursor.skip()?;
                            Ok(((inner.namespace.into_owned(), inner.local.into_owned()), kind))
                        },
                    )?;
                    (fault.first, fault.kind) = first.map_or((None, None), |(name, kind)| (Some(name), kind));
                }
                _ => cursor.skip()?,
            }
        }
        Ok(fault)
    }

    /// What a header says of a fault of reliable messaging, since SOAP 1.1 has no subcodes (WS-ReliableMessaging, section 4).
    fn header(&mut self, cursor: &mut Cursor<'_>) -> Visit<()> {
        while let Some(header) = cursor.child()? {
            if header.local == "SequenceFault" && Version::of_word(&header.namespace).is_some() {
                self.subcode =
                    cursor.first(|inner| inner.local == "FaultCode", |cursor, _| cursor.qname())?;
            } else {
                cursor.skip()?;
            }
        }
        Ok(())
    }

    /// The code of SOAP 1.2 (part 1, 5.4.1): a value, and perhaps a subcode with its own.
    fn code(&mut self, cursor: &mut Cursor<'_>) -> Visit<()> {
        while let Some(element) = cursor.child()? {
            match &*element.local {
                "Value" => self.code = cursor.qname()?,
                "Subcode" => {
                    self.subcode =
                        cursor.first(|inner| inner.local == "Value", |cursor, _| cursor.qname())?;
                }
                _ => cursor.skip()?,
            }
        }
        Ok(())
    }

    /// The code that tells most: the subcode, else the code.
    fn telling(&self) -> &(String, String) {
        self.subcode.as_ref().unwrap_or(&self.code)
    }
}

/// What a fault means.
pub(in crate::soap) fn failure(fault: &Fault) -> Failure {
    let (namespace, name) = fault.telling();
    // A name without a namespace may be a servant's own.
    let standard = [ADDRESSING, DISPATCHER, SECURITY, SOAP_11, SOAP_12, FAILURE].contains(&&**namespace);
    // `Completed::No` promises that nothing was done: a caller may try again elsewhere. Only codes that a
    // service gives before it dispatches a message say so.
    let (kind, completed) = match &**name {
        _ if !standard => (Kind::Internal, Completed::Maybe),
        "ActionNotSupported" => (Kind::NoOperation, Completed::No),
        "DestinationUnreachable" => (Kind::NoObject, Completed::No),
        "EndpointUnavailable" | "ServerTooBusy" => (Kind::Busy, Completed::No),
        // A servant of WCF that was told so by another service hands it on as it is.
        "DeserializationFailed" if fault.reason.contains("quota") => (Kind::LimitExceeded, Completed::Maybe),
        "DeserializationFailed" => (Kind::BadArgument, Completed::Maybe),
        "MustUnderstand" | "VersionMismatch" | "DataEncodingUnknown" => (Kind::Unsupported, Completed::No),
        "MessageAddressingHeaderRequired"
        | "MessageInformationHeaderRequired"
        | "InvalidAddressingHeader"
        | "InvalidMessageInformationHeader" => (Kind::Violation, Completed::No),
        "SessionTerminated" => (Kind::Unreachable, Completed::Maybe),
        _ if namespace == SECURITY => (Kind::Refused, Completed::No),
        word if namespace == FAILURE => (Kind::of_word(word).unwrap_or(Kind::Internal), Completed::Maybe),
        _ => (Kind::Internal, Completed::Maybe),
    };
    let reason =
        if fault.reason.is_empty() { "the service answered with a fault" } else { fault.reason.trim() };
    let failure = Failure::new(kind, Initiator::Peer, reason)
        .with_code(format!("{{{namespace}}}{name}"))
        .with_completed(completed);
    match &**name {
        "InternalServiceFault" => failure.with_hint(
            "the service tells more if it is set to (IncludeExceptionDetailInFaults, `details=on`)",
        ),
        "InvalidSecurity" | "FailedAuthentication" if namespace == SECURITY => failure.with_hint(
            "the service wants a user and a password in each message: write USER:PASSWORD@ before the host and add security=username; the clocks of both sides may differ by five minutes",
        ),
        "ActionNotSupported" => {
            failure.with_hint("compare the contract's actions and its namespace with the service's")
        }
        _ => failure,
    }
}
