//! Where the values of an envelope are, for somebody who is no side of the conversation.
//!
//! For `trace`, which sees single messages of a capture: the version of SOAP is tried out, since nobody
//! tells which it is.

use super::cursor::Document;
use super::faults::Fault;
use super::head::Head;
use super::{Dialect, Soap};
use crate::dictionary::StringTable;
use crate::values::{Form, ReaderQuotas};

/// Where the values of an envelope are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Offset of the first byte inside the element around the values: the body, or the detail of a fault.
    /// That of a fault without a detail is 0.
    pub(crate) base: usize,
    /// What went wrong, if the envelope tells of a fault.
    pub(crate) fault: Option<FaultText>,
}

/// A fault, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FaultText {
    pub(crate) reason: String,
    /// The first element of its detail, in Clark notation.
    pub(crate) detail: Option<String>,
}

impl Contents {
    /// Of an envelope of either version of SOAP; nothing if it is broken, or cut off before its body.
    pub(crate) fn of(form: Form, bytes: &[u8], words: &StringTable) -> Option<Self> {
        let document = Document { form, bytes, words, quotas: &ReaderQuotas::default() };
        [Soap::V12, Soap::V11].into_iter().find_map(|soap| {
            let dialect = Dialect { form, session: false, soap, addressing: true };
            let head = Head::read(dialect, document).ok()?;
            if !head.is_fault(soap) {
                return Some(Self { base: head.body, fault: None });
            }
            let fault = Fault::read(document).ok()?;
            let detail = fault.first.map(|(namespace, local)| format!("{{{namespace}}}{local}"));
            let text = FaultText { reason: fault.reason, detail };
            Some(Self { base: fault.detail, fault: Some(text) })
        })
    }
}
