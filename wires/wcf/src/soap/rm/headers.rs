//! The headers of reliable messaging.
//!
//! They are read with the head of each message and judged by the session. An acknowledgement tells ranges
//! of numbers: there are few gaps among eight messages under way, so more than `MAX_RANGES` are an attack
//! or a mistake.

use crate::soap::cursor::{Cursor, Element};
use crate::violations::Violation;
use everywire_model::named_variants;
use everywire_model::visit::Visit;

/// February 2005.
pub(in crate::soap) const FEBRUARY: &str = "http://schemas.xmlsoap.org/ws/2005/02/rm";
/// 1.1.
pub(in crate::soap) const OASIS: &str = "http://docs.oasis-open.org/ws-rx/wsrm/200702";
/// Microsoft's additions.
pub(in crate::soap) const MICROSOFT: &str = "http://schemas.microsoft.com/ws/2006/05/rm";

/// Whether headers of this namespace are reliable messaging's.
pub(in crate::soap) fn is_own(namespace: &str) -> bool {
    namespace == MICROSOFT || Version::of_word(namespace).is_some()
}

/// Ranges in one acknowledgement.
const MAX_RANGES: usize = 64;

named_variants! {
    /// The version of the protocol, with its namespace.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::soap) enum Version {
        February FEBRUARY,
        Oasis OASIS,
    }
}

/// Which message of a sequence a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::soap) struct Sequence {
    /// The sequence's identifier, as its receiver gave it out.
    pub(in crate::soap) id: String,
    pub(in crate::soap) number: u64,
    /// February 2005 marks the last message; 1.1 tells it with the end of the sequence.
    pub(in crate::soap) last: bool,
}

/// Which messages of a sequence arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::soap) struct Acknowledgement {
    pub(in crate::soap) id: String,
    /// Inclusive.
    pub(in crate::soap) ranges: Vec<(u64, u64)>,
    /// How many more may be under way.
    /// Microsoft's BufferRemaining; `None` if the peer does not say.
    pub(in crate::soap) room: Option<u64>,
    /// Whether no other message is taken (1.1).
    pub(in crate::soap) last: bool,
}

/// All of one message.
#[derive(Debug, Default)]
pub(in crate::soap) struct Headers {
    pub(in crate::soap) version: Option<Version>,
    pub(in crate::soap) sequence: Option<Sequence>,
    pub(in crate::soap) acknowledgement: Option<Acknowledgement>,
    /// The sequence whose acknowledgement is asked for.
    /// `AckRequested`.
    pub(in crate::soap) requested: Option<String>,
}

impl Headers {
    pub(in crate::soap) fn is_empty(&self) -> bool {
        self.version.is_none()
    }

    /// Reads a header, up to its end; `false` if it is none of these, and still open.
    pub(in crate::soap) fn read(&mut self, cursor: &mut Cursor<'_>, header: &Element<'_>) -> Visit<bool> {
        let Some(version) = Version::of_word(&header.namespace) else { return Ok(false) };
        match &*header.local {
            "Sequence" => {
                let sequence = sequence(cursor)?;
                if self.sequence.replace(sequence).is_some() {
                    return Err(Violation::UnexpectedElement.at(header.at));
                }
            }
            "SequenceAcknowledgement" => self.acknowledgement = Some(acknowledgement(cursor)?),
            "AckRequested" => {
                self.requested = identifier(cursor)?;
            }
            "SequenceFault" => cursor.skip()?,
            _ => return Ok(false),
        }
        self.version = Some(version);
        Ok(true)
    }
}

/// The identifier of a sequence inside the element that was opened last.
pub(super) fn identifier(cursor: &mut Cursor<'_>) -> Visit<Option<String>> {
    cursor.first(|child| child.local == "Identifier", |cursor, _| Ok(cursor.trimmed()?.into_owned()))
}

/// Numbers of messages count from 1 and stay below 2^63 (WS-ReliableMessaging 1.1, 3.7).
fn number(text: &str, at: usize) -> Visit<u64> {
    let number = text.parse().ok().filter(|number| (1..=i64::MAX as u64).contains(number));
    number.ok_or_else(|| Violation::BadValue.at(at))
}

/// A header `Sequence`, to its end; without an identifier or a number it means nothing.
fn sequence(cursor: &mut Cursor<'_>) -> Visit<Sequence> {
    let mut found = Sequence { id: String::new(), number: 0, last: false };
    while let Some(element) = cursor.child()? {
        match &*element.local {
            "Identifier" => found.id = cursor.trimmed()?.into_owned(),
            "MessageNumber" => found.number = number(&cursor.trimmed()?, element.at)?,
            "LastMessage" => {
                found.last = true;
                cursor.skip()?;
            }
            _ => cursor.skip()?,
        }
    }
    if found.id.is_empty() || found.number == 0 {
        return Err(Violation::MissingElement.at(cursor.position()));
    }
    Ok(found)
}

/// A header `SequenceAcknowledgement`, to its end. `Nack` says nothing that the missing range does not.
fn acknowledgement(cursor: &mut Cursor<'_>) -> Visit<Acknowledgement> {
    let mut found = Acknowledgement::default();
    while let Some(element) = cursor.child()? {
        match &*element.local {
            "Identifier" => found.id = cursor.trimmed()?.into_owned(),
            "AcknowledgementRange" => {
                let bound = |name| number(element.attribute("", name).unwrap_or_default(), element.at);
                let range = (bound("Lower")?, bound("Upper")?);
                if range.0 > range.1 || found.ranges.len() >= MAX_RANGES {
                    return Err(Violation::OutOfRange.at(element.at));
                }
                found.ranges.push(range);
                cursor.skip()?;
            }
            "BufferRemaining" => found.room = cursor.trimmed()?.parse().ok(),
            _ => cursor.skip()?,
        }
    }
    Ok(found)
}
