//! SOAP: envelopes around bodies, addressing, correlation of calls and answers, faults, reliable sessions.
//!
//! [`SoapChannel`] is one channel's state without framing: framings hand it the payload of one message at a time, and send
//! what it appends to their ropes. `head` reads what stands before a body and `head_cache` recognizes it the next time;
//! `template` writes it; `faults` turns failures into faults and back; `rm` numbers messages and repeats those that got
//! lost.
//!
//! What belongs to one connection (addressing, identifiers, security, reliable messaging) is written and
//! read here and never shown to servants. All other header blocks travel beside a body (`blocks`), and a
//! message that nobody here has a contract for passes with its body unread (`passage`, `outline`).

mod blocks;
mod channel;
mod contents;
mod cursor;
mod faults;
mod head;
mod head_cache;
mod ids;
mod names;
mod outline;
mod parameters;
mod passage;
mod put;
mod rm;
mod security;
mod template;
mod waiting;

pub(crate) use blocks::{HOPS, check as check_block, headers, hops};
pub(crate) use channel::signal_of;
pub use channel::{Flushed, Side, SoapChannel, WrittenCall, WrittenReply};
pub(crate) use contents::Contents;
pub(crate) use rm::{Orphans, Sequences};

pub use crate::values::Form;

use everywire_model::named_variants;

named_variants! {
    /// The version of SOAP, with the namespace of its envelopes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Soap {
        /// 1.1.
        V11 names::SOAP_11,
        /// 1.2.
        V12 names::SOAP_12,
    }
}

impl Soap {
    /// The namespace of its envelopes.
    pub fn namespace(self) -> &'static str {
        self.word()
    }

    /// As descriptions say it ([`everywire_idl::wsdl::Port`]).
    pub fn version(self) -> &'static str {
        match self {
            Self::V11 => "1.1",
            Self::V12 => "1.2",
        }
    }
}

/// How messages of one channel are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// Binary or text.
    pub form: Form,
    /// Whether a table of new words stands before each document (MC-NBFSE).
    pub session: bool,
    /// The version of SOAP.
    pub soap: Soap,
    /// Whether messages carry WS-Addressing 1.0 headers.
    pub addressing: bool,
}

impl Dialect {
    /// NetTcpBinding, buffered; pipes: `application/soap+msbinsession1`.
    pub const NET_TCP: Self = Self { form: Form::Binary, session: true, soap: Soap::V12, addressing: true };
    /// NetTcpBinding, streamed; binary over HTTP: `application/soap+msbin1`.
    pub const BINARY: Self = Self { session: false, ..Self::NET_TCP };
    /// BasicHttpBinding: `text/xml`.
    pub const BASIC: Self = Self { form: Form::Text, session: false, soap: Soap::V11, addressing: false };
    /// WSHttpBinding: `application/soap+xml`.
    pub const WS: Self = Self { form: Form::Text, session: false, soap: Soap::V12, addressing: true };
    /// A custom binding of the message version Soap12: `application/soap+xml`.
    pub const SOAP_12: Self = Self { addressing: false, ..Self::WS };
}
