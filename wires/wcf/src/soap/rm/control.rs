//! What the protocol itself says: headers of messages, and messages of its own.
//!
//! All of it is in the protocol's own namespace, with the prefix `r` for headers and as the default in
//! bodies. Nothing here decides anything: `Session` does.

use super::Outbound;
use super::headers::{Acknowledgement, MICROSOFT, Version};
use crate::dictionary::{Outgoing, Words};
use crate::soap::cursor::Cursor;
use crate::soap::faults::Said;
use crate::soap::ids::{self, MessageId};
use crate::soap::names::ANONYMOUS;
use crate::soap::put::Put;
use crate::soap::{Dialect, Form};
use crate::values::ReaderQuotas;
use everywire_model::visit::Visit;

/// A fresh identifier of a sequence.
pub(super) fn identifier() -> String {
    ids::urn(&ids::random())
}

/// The action of a message of the protocol.
pub(super) fn action(version: Version, name: &str) -> String {
    format!("{}/{name}", version.namespace())
}

/// What `write` puts, in the dialect's form.
fn written(dialect: Dialect, write: impl FnOnce(&mut Put<'_>)) -> Vec<u8> {
    // No word of a session: these messages may get lost.
    let mut words = if dialect.form == Form::Text { Outgoing::inline() } else { Outgoing::statics() };
    let mut put = Put::new(dialect.form, &mut words);
    write(&mut put);
    put.into_bytes()
}

/// The header that numbers a message.
pub(super) fn sequence(dialect: Dialect, version: Version, id: &str, number: u64, last: bool) -> Vec<u8> {
    written(dialect, |put| {
        put.start(b'r', "Sequence");
        put.xmlns(b'r', version.namespace());
        // Whoever does not know the protocol must refuse a numbered message, or it would be taken out of
        // its order.
        put.attribute(b's', "mustUnderstand", "1");
        put.leaf(b'r', "Identifier", id);
        put.leaf(b'r', "MessageNumber", &number.to_string());
        if last {
            put.start(b'r', "LastMessage");
            put.end();
        }
        put.end();
    })
}

/// The header that says which messages arrived.
pub(super) fn acknowledgement(dialect: Dialect, version: Version, said: &Acknowledgement) -> Vec<u8> {
    written(dialect, |put| {
        put.start(b'r', "SequenceAcknowledgement");
        put.xmlns(b'r', version.namespace());
        put.leaf(b'r', "Identifier", &said.id);
        for (lower, upper) in &said.ranges {
            put.start(b'r', "AcknowledgementRange");
            put.attribute(0, "Lower", &lower.to_string());
            put.attribute(0, "Upper", &upper.to_string());
            put.end();
        }
        // 1.1: nothing else will be acknowledged, and an empty list needs a word of its own.
        if said.last {
            if said.ranges.is_empty() {
                put.start(b'r', "None");
                put.end();
            }
            put.start(b'r', "Final");
            put.end();
        }
        // Microsoft's flow control: how many more messages there is room for.
        if let Some(room) = said.room {
            put.start(b'n', "BufferRemaining");
            put.xmlns(b'n', MICROSOFT);
            put.chars(&room.to_string());
            put.end();
        }
        put.end();
    })
}

/// An endpoint reference with nothing but its address.
fn address(put: &mut Put<'_>, name: &'static str, address: &str) {
    put.start(0, name);
    put.leaf(b'a', "Address", address);
    put.end();
}

/// Asks for a sequence, and offers one.
pub(super) fn create(
    dialect: Dialect,
    version: Version,
    id: [u8; 16],
    offer: &str,
    to: Option<Box<str>>,
) -> Outbound {
    let body = written(dialect, |put| {
        put.start(0, "CreateSequence");
        put.xmlns(0, version.namespace());
        address(put, "AcksTo", ANONYMOUS);
        put.start(0, "Offer");
        put.leaf(0, "Identifier", offer);
        // 1.1 wants to be told where the messages of the offered sequence go.
        if version == Version::Oasis {
            address(put, "Endpoint", ANONYMOUS);
        }
        put.end();
        put.end();
    });
    Outbound {
        action: action(version, "CreateSequence").into(),
        message_id: Some(id),
        to,
        body: body.into(),
        ..Outbound::default()
    }
}

/// Grants a sequence, and accepts the one that was offered.
pub(super) fn created(
    dialect: Dialect,
    version: Version,
    relates_to: Option<MessageId>,
    id: &str,
    accepts: Option<&str>,
) -> Outbound {
    let body = written(dialect, |put| {
        put.start(0, "CreateSequenceResponse");
        put.xmlns(0, version.namespace());
        put.leaf(0, "Identifier", id);
        if let Some(to) = accepts {
            put.start(0, "Accept");
            address(put, "AcksTo", to);
            put.end();
        }
        put.end();
    });
    Outbound {
        action: action(version, "CreateSequenceResponse").into(),
        relates_to,
        body: body.into(),
        ..Outbound::default()
    }
}

/// A message about a sequence that holds its identifier: `TerminateSequence` and what answers it.
/// `last`: the number of the last message, which 1.1 tells with the end.
pub(super) fn about(
    dialect: Dialect,
    version: Version,
    name: &'static str,
    id: &str,
    last: Option<u64>,
) -> Outbound {
    let body = written(dialect, |put| {
        put.start(0, name);
        put.xmlns(0, version.namespace());
        put.leaf(0, "Identifier", id);
        if let Some(last) = last.filter(|_| version == Version::Oasis) {
            put.leaf(0, "LastMsgNumber", &last.to_string());
        }
        put.end();
    });
    Outbound { action: action(version, name).into(), body: body.into(), ..Outbound::default() }
}

/// A message without a body.
pub(super) fn empty(version: Version, name: &str) -> Outbound {
    Outbound { action: action(version, name).into(), ..Outbound::default() }
}

/// A fault of the protocol.
pub(in crate::soap) fn fault(version: Version, name: &'static str, reason: &str) -> Said {
    Said {
        code: "Sender",
        subcode: Some((version.namespace().into(), name.into())),
        reason: reason.to_owned(),
        action: action(version, "fault").into(),
        exception: None,
    }
}

/// The fault about a sequence that is not there: never was, or is not any more because its place was given to others.
pub(in crate::soap) fn unknown(version: Version, displaced: bool) -> Said {
    let reason = if displaced {
        "The value of wsrm:Identifier is not a known Sequence identifier any more: there were too many sessions, and this one \
         made room for another client's. Nothing of this message was done; a new session may be begun."
    } else {
        "The value of wsrm:Identifier is not a known Sequence identifier."
    };
    fault(version, "UnknownSequence", reason)
}

/// The identifiers in the body of a message of the protocol: that of the sequence it is about, and that of the one it offers.
pub(super) fn identifiers(
    dialect: Dialect,
    document: &[u8],
    words: &Words,
    quotas: &ReaderQuotas,
) -> Visit<(Option<String>, Option<String>)> {
    let mut cursor = Cursor::new(dialect.form, document, words, quotas);
    // The envelope, then its body, then the first element in it.
    let (mut about, mut offered) = (None, None);
    cursor.child()?;
    while let Some(element) = cursor.child()? {
        if element.local != "Body" {
            cursor.skip()?;
            continue;
        }
        if cursor.child()?.is_none() {
            break;
        }
        while let Some(element) = cursor.child()? {
            match &*element.local {
                "Identifier" => about = Some(cursor.trimmed()?.into_owned()),
                "Offer" => {
                    while let Some(inner) = cursor.child()? {
                        if inner.local == "Identifier" {
                            offered = Some(cursor.trimmed()?.into_owned());
                        } else {
                            cursor.skip()?;
                        }
                    }
                }
                _ => cursor.skip()?,
            }
        }
        break;
    }
    Ok((about, offered))
}
