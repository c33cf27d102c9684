//! What the protocol itself says: headers of messages, and messages of its own.
//!
//! All of it is in the protocol's own namespace, with the prefix `r` for headers and as the default in
//! bodies. Nothing here decides anything: `Session` does.

use super::Outbound;
use super::headers::{self, Acknowledgement, MICROSOFT, Version};
use crate::soap::Form;
use crate::soap::cursor::{Cursor, Document};
use crate::soap::faults::FaultContents;
use crate::soap::ids::{self, MessageId};
use crate::soap::names::ANONYMOUS;
use crate::soap::put::{ElementWriter, written};
use everywire_model::visit::Visit;

/// A fresh identifier of a sequence.
pub(super) fn identifier() -> String {
    ids::urn(&ids::random())
}

/// An endpoint reference with nothing but its address.
fn address(put: &mut ElementWriter<'_>, name: &'static str, address: &str) {
    put.start("", name);
    put.leaf("a", "Address", address);
    put.end();
}

/// How a session writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Protocol {
    pub(super) form: Form,
    pub(super) version: Version,
}

impl Protocol {
    /// An element of the protocol, with this in it.
    fn element(
        self,
        prefix: &'static str,
        name: &'static str,
        write: impl FnOnce(&mut ElementWriter<'_>),
    ) -> Vec<u8> {
        written(self.form, |put| {
            put.start(prefix, name);
            put.xmlns(prefix, self.version.namespace());
            write(put);
            put.end();
        })
    }

    /// A message of the protocol, with this in the element of its name.
    fn message(self, name: &'static str, write: impl FnOnce(&mut ElementWriter<'_>)) -> Outbound {
        Outbound { body: self.element("", name, write).into(), ..self.empty(name) }
    }

    /// A message without a body.
    pub(super) fn empty(self, name: &str) -> Outbound {
        Outbound { action: self.version.action(name).into(), ..Outbound::default() }
    }

    /// The header that numbers a message.
    pub(super) fn sequence(self, id: &str, number: u64, last: bool) -> Vec<u8> {
        self.element("r", "Sequence", |put| {
            // Whoever does not know the protocol must refuse a numbered message, or it would be taken out of
            // its order.
            put.attribute("s", "mustUnderstand", "1");
            put.leaf("r", "Identifier", id);
            put.leaf("r", "MessageNumber", &number.to_string());
            if last {
                put.leaf("r", "LastMessage", "");
            }
        })
    }

    /// The header that says which messages arrived.
    pub(super) fn acknowledgement(self, said: &Acknowledgement) -> Vec<u8> {
        self.element("r", "SequenceAcknowledgement", |put| {
            put.leaf("r", "Identifier", &said.id);
            for (lower, upper) in &said.ranges {
                put.start("r", "AcknowledgementRange");
                put.attribute("", "Lower", &lower.to_string());
                put.attribute("", "Upper", &upper.to_string());
                put.end();
            }
            // 1.1: nothing else will be acknowledged, and an empty list needs a word of its own.
            if said.last && said.ranges.is_empty() {
                put.leaf("r", "None", "");
            }
            if said.last {
                put.leaf("r", "Final", "");
            }
            // Microsoft's flow control: how many more messages there is room for.
            if let Some(room) = said.room {
                put.start("n", "BufferRemaining");
                put.xmlns("n", MICROSOFT);
                put.chars(&room.to_string());
                put.end();
            }
        })
    }

    /// Asks for a sequence, and offers one.
    pub(super) fn create(self, id: [u8; 16], offer: &str, to: Option<Box<str>>) -> Outbound {
        let asks = self.message("CreateSequence", |put| {
            address(put, "AcksTo", ANONYMOUS);
            put.start("", "Offer");
            put.leaf("", "Identifier", offer);
            // 1.1 wants to be told where the messages of the offered sequence go.
            if self.version == Version::Oasis {
                address(put, "Endpoint", ANONYMOUS);
            }
            put.end();
        });
        Outbound { message_id: Some(id), to, ..asks }
    }

    /// Grants a sequence, and accepts the one that was offered: acknowledgements of it go there.
    pub(super) fn created(self, relates_to: Option<MessageId>, id: &str, accepts: &str) -> Outbound {
        let grants = self.message("CreateSequenceResponse", |put| {
            put.leaf("", "Identifier", id);
            put.start("", "Accept");
            address(put, "AcksTo", accepts);
            put.end();
        });
        Outbound { relates_to, ..grants }
    }

    /// A message about a sequence that holds its identifier: `TerminateSequence` and what answers it.
    /// `last`: the number of the last message, which 1.1 tells with the end.
    pub(super) fn about(self, name: &'static str, id: &str, last: Option<u64>) -> Outbound {
        self.message(name, |put| {
            put.leaf("", "Identifier", id);
            if let Some(last) = last.filter(|_| self.version == Version::Oasis) {
                put.leaf("", "LastMsgNumber", &last.to_string());
            }
        })
    }
}

impl Version {
    /// The namespace of its messages.
    pub(in crate::soap) fn namespace(self) -> &'static str {
        self.word()
    }

    /// The action of a message of the protocol.
    fn action(self, name: &str) -> String {
        format!("{}/{name}", self.namespace())
    }

    /// A fault of the protocol.
    pub(in crate::soap) fn fault(self, name: &'static str, reason: &str) -> FaultContents {
        FaultContents::new("Sender", self.namespace(), name, reason, self.action("fault"))
    }

    /// The fault about a sequence that is not there: never was, or is not any more because its place was given to others.
    pub(in crate::soap) fn unknown(self, id: &str, displaced: bool) -> FaultContents {
        let reason = if displaced {
            "The value of wsrm:Identifier is not a known Sequence identifier any more: there were too many sessions, and this one \
             made room for another client's. Nothing of this message was done; a new session may be begun."
        } else {
            "The value of wsrm:Identifier is not a known Sequence identifier."
        };
        self.fault("UnknownSequence", reason).about(self, id)
    }

    /// The fault about a message that was worked on, and whose answer the sequence keeps no more (WS-ReliableMessaging 1.1,
    /// section 4.2).
    pub(in crate::soap) fn lost(self, id: &str) -> FaultContents {
        let reason = "The Sequence has been terminated: there were too many sessions, and this one made room for another client's. \
                      This message was worked on, and its answer is lost.";
        self.fault("SequenceTerminated", reason).about(self, id)
    }
}

/// The identifiers in the body of a message of the protocol: that of the sequence it is about, and that of the one it offers.
pub(super) fn identifiers(document: Document<'_>) -> Visit<(Option<String>, Option<String>)> {
    let mut cursor = Cursor::new(document);
    cursor.enter("Envelope")?;
    cursor.enter("Body")?;
    let (mut about, mut offered) = (None, None);
    if cursor.child()?.is_none() {
        return Ok((None, None));
    }
    while let Some(element) = cursor.child()? {
        match &*element.local {
            "Identifier" => about = Some(cursor.trimmed()?.into_owned()),
            "Offer" => offered = headers::identifier(&mut cursor)?,
            _ => cursor.skip()?,
        }
    }
    Ok((about, offered))
}
