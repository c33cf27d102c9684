//! What stands before the body of a message.
//!
//! `Head::read` reads an envelope up to the first element of its body and notes what decides about the
//! message: action, identifiers, addresses, headers that must be understood, and the places of everything
//! that is read later or passed on. The body is not looked at.
//!
//! State: none; a `Head` borrows from its document and lives while the message is being taken.
//!
//! Invariants:
//!
//! * The root is `Envelope` of the dialect's version of SOAP, then comes at most one `Header`, then `Body`;
//!   anything else is refused (SOAP 1.2 part 1, 5.1; SOAP 1.1, 4).
//! * An addressing header stands once. A second one is noted in `invalid` rather than failing here: the
//!   caller is to get the fault InvalidAddressingHeader of WS-Addressing (SOAP binding, 6.4.1), which must
//!   relate to the message.
//! * Only headers for this side count: those without a role, for the next node, or for the ultimate
//!   receiver. Others are passed over, whatever they demand.
//! * Whatever has `mustUnderstand` and is not read here stands in `demanding`; the channel refuses the
//!   message unless the operation declares that header.
//! * At most `MAX_HEADERS` headers are read.

use super::cursor::{Cursor, Document, Element};
use super::ids::{self, MessageId};
use super::names::{ADDRESSING, ANONYMOUS, NO_ADDRESSING, NOBODY, SECURITY};
use super::outline::is_own;
use super::parameters::{self, EchoedHeaders, Endpoint};
use super::rm::Headers;
use super::{Dialect, Form, Soap};
use crate::limits::MAX_HEADERS;
use crate::violations::Violation;
use bytes::Bytes;
use everywire_model::visit::Visit;
use std::borrow::Cow;
use std::ops::Range;

/// What a message says before its body.
#[derive(Default)]
pub(super) struct Head<'a> {
    /// What is asked for. Where the transport tells that, a header may tell it as well.
    pub(super) action: Option<Cow<'a, str>>,
    /// The address of the object that is meant.
    pub(super) to: Option<Cow<'a, str>>,
    /// Of the message itself; what answers it relates to this.
    pub(super) message_id: Option<MessageId>,
    /// Of the message that this one answers.
    pub(super) relates_to: Option<MessageId>,
    /// Where answers are wanted, if that is not who sent the message.
    pub(super) reply_to: Option<Cow<'a, str>>,
    /// Parameters of where answers go, as headers of them.
    pub(super) reply_headers: String,
    /// Where faults are wanted, if that is said of them.
    pub(super) fault_to: Option<Cow<'a, str>>,
    /// Parameters of that.
    pub(super) fault_headers: Option<String>,
    /// Whether there are more of them than are kept.
    pub(super) is_long: bool,
    /// Headers that must be understood and that addressing does not define.
    pub(super) demanding: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// An addressing header that stands twice, or that is broken.
    pub(super) invalid: Option<&'static str>,
    /// Where the `Security` header was opened: it is read only where the settings ask for a user.
    pub(super) security: Option<Cursor<'a>>,
    /// Those of reliable messaging.
    pub(super) reliable: Headers,
    /// Where the changing part of the only identifier is: 16 bytes, or 36 characters.
    /// `None` if there is none or more than one, or it was written in a way that would not be written
    /// again: such a head is not remembered.
    pub(super) hole: Option<usize>,
    /// Where headers are that are not the session's own, and all others: empty if there are none but its own.
    pub(super) others: Range<usize>,
    /// How many identifiers there are.
    pub(super) identifiers: usize,
    /// Offset of the first byte inside the body.
    pub(super) body: usize,
    /// The first element of the body.
    /// `None` for an empty body.
    pub(super) first: Option<First<'a>>,
}

/// A message whose head was read, and what came around it.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) head: &'a Head<'a>,
    pub(super) document: &'a Bytes,
    pub(super) action: Option<&'a str>,
    pub(super) key: &'a Bytes,
}

/// The first element of a body.
#[derive(Debug)]
pub(super) struct First<'a> {
    pub(super) namespace: Cow<'a, str>,
    pub(super) local: Cow<'a, str>,
    /// Offset of the first byte after its start tag.
    pub(super) inside: usize,
    /// Whether nothing is said of it but its name.
    /// Then the values may be read from behind its start.
    pub(super) is_plain: bool,
}

impl First<'_> {
    /// Clark notation.
    pub(super) fn clark(&self) -> String {
        format!("{{{}}}{}", self.namespace, self.local)
    }
}

/// Roles whose headers are for this side; those of others are not even looked at.
fn is_mine(header: &Element<'_>, namespace: &str) -> bool {
    let role = header.attribute(namespace, "role").or_else(|| header.attribute(namespace, "actor"));
    role.is_none_or(|role| {
        matches!(
            role,
            "" | "http://www.w3.org/2003/05/soap-envelope/role/next"
                | "http://www.w3.org/2003/05/soap-envelope/role/ultimateReceiver"
                | "http://schemas.xmlsoap.org/soap/actor/next"
        )
    })
}

/// Tells the headers of a document that are for this side, each with its number among all.
pub(super) fn for_each_header<'a>(
    soap: Soap,
    document: Document<'a>,
    mut tell: impl FnMut(usize, &Element<'a>),
) -> Visit<()> {
    let (mut cursor, soap) = (Cursor::new(document), soap.namespace());
    cursor.root()?;
    if cursor.child()?.is_none_or(|first| !first.is(soap, "Header")) {
        return Ok(());
    }
    for number in 0.. {
        let Some(header) = cursor.child()? else { break };
        if is_mine(&header, soap) {
            tell(number, &header);
        }
        cursor.skip()?;
    }
    Ok(())
}

impl<'a> Head<'a> {
    /// Reads a document up to the first element of its body.
    ///
    /// # Errors
    /// It is no envelope of the dialect's version.
    pub(super) fn read(dialect: Dialect, document: Document<'a>) -> Visit<Self> {
        let mut cursor = Cursor::new(document);
        let soap = dialect.soap.namespace();
        let root = cursor.root()?;
        if !root.is(soap, "Envelope") {
            return Err(Violation::NoEnvelope.at(root.at));
        }
        let mut head = Self::default();
        let mut element = cursor.child()?;
        if let Some(header) = element.take_if(|element| element.is(soap, "Header")) {
            let others = head.headers(&mut cursor, dialect)?;
            if others {
                head.others = header.inside..cursor.position();
            }
            element = cursor.child()?;
        }
        head.body = cursor.body(element, soap)?.inside;
        if let Some(first) = cursor.child()? {
            let Element { namespace, local, inside, attributes, .. } = first;
            head.first = Some(First { namespace, local, inside, is_plain: attributes.is_empty() });
        }
        Ok(head)
    }

    /// Reads the headers; whether there are others than the session's own.
    fn headers(&mut self, cursor: &mut Cursor<'a>, dialect: Dialect) -> Visit<bool> {
        let soap = dialect.soap.namespace();
        let (mut count, mut others) = (0, false);
        while let Some(header) = cursor.child()? {
            count += 1;
            if count > MAX_HEADERS {
                return Err(Violation::TooManyHeaders.at(header.at));
            }
            // They have to be kept for whoever asks for headers.
            others |= !is_own(&header.namespace, dialect.soap);
            let demands = matches!(header.attribute(soap, "mustUnderstand"), Some("1" | "true"));
            if !is_mine(&header, soap) {
                cursor.skip()?;
                continue;
            }
            let is_known = if dialect.addressing && header.namespace == ADDRESSING {
                self.addressing(cursor, &header, dialect.form)?
            } else if !dialect.addressing && header.is(NO_ADDRESSING, "Action") {
                // As a router of Mono's or WCF's passes it on; the transport says the same.
                note("Action", &mut self.action, cursor.trimmed()?, &mut self.invalid);
                true
            } else if !dialect.addressing && header.is(NO_ADDRESSING, "To") {
                cursor.skip()?;
                true
            } else {
                self.reliable.read(cursor, &header)?
            };
            if is_known {
                continue;
            }
            if header.is(SECURITY, "Security") {
                self.security = Some(cursor.clone());
            }
            cursor.skip()?;
            if demands {
                self.demanding.push((header.namespace, header.local));
            }
        }
        Ok(others)
    }

    /// Reads a header of addressing, up to its end; `false` if it is none, and still open.
    fn addressing(&mut self, cursor: &mut Cursor<'a>, header: &Element<'a>, form: Form) -> Visit<bool> {
        match &*header.local {
            "Action" => note("Action", &mut self.action, cursor.trimmed()?, &mut self.invalid),
            "To" => note("To", &mut self.to, cursor.trimmed()?, &mut self.invalid),
            "MessageID" => {
                let id = self.identifier(cursor, form)?;
                note("MessageID", &mut self.message_id, id, &mut self.invalid);
            }
            "RelatesTo" => {
                // Other relations than that of a reply say nothing to a caller (WS-Addressing 1.0 core,
                // 3.1).
                let is_reply = header.attribute("", "RelationshipType").is_none_or(|kind| {
                    matches!(kind, "http://www.w3.org/2005/08/addressing/reply" | "wsa:Reply" | "a:Reply")
                });
                let id = self.identifier(cursor, form)?;
                if is_reply {
                    note("RelatesTo", &mut self.relates_to, id, &mut self.invalid);
                }
            }
            "ReplyTo" => {
                let Endpoint { address, headers, is_long } = Endpoint::read(cursor)?;
                note("ReplyTo", &mut self.reply_to, address, &mut self.invalid);
                self.reply_headers = headers;
                self.is_long |= is_long;
            }
            "FaultTo" => {
                let Endpoint { address, headers, is_long } = Endpoint::read(cursor)?;
                note("FaultTo", &mut self.fault_to, address, &mut self.invalid);
                self.fault_headers = Some(headers);
                self.is_long |= is_long;
            }
            "From" => cursor.skip()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// An identifier, and where its changing part is: behind the code of its record, or behind `urn:uuid:`.
    fn identifier(&mut self, cursor: &mut Cursor<'a>, form: Form) -> Visit<MessageId> {
        let inside = cursor.position();
        let (id, piece) = cursor.message_id()?;
        self.identifiers += 1;
        self.hole = match form {
            // The record's code, then the identifier.
            Form::Binary if matches!(id, MessageId::Unique(_)) => Some(inside + 1),
            Form::Text if matches!(id, MessageId::Unique(_)) => {
                piece.and_then(|piece| cursor.offset_of(piece)).map(|at| at + ids::URN.len())
            }
            _ => None,
        };
        Ok(id)
    }

    /// Whether the body is a fault.
    pub(super) fn is_fault(&self, soap: Soap) -> bool {
        let is = |first: &First<'_>| first.local == "Fault" && first.namespace == soap.namespace();
        self.first.as_ref().is_some_and(is)
    }

    /// What answers and faults repeat, in the form of the message, and where faults go; nothing if nothing is repeated, and
    /// faults go where answers go.
    pub(super) fn echoed(&self, form: Form) -> Visit<Option<Box<EchoedHeaders>>> {
        let faults = self.fault_headers.as_ref().unwrap_or(&self.reply_headers);
        let (reply_to, fault_to) = (self.reply_to(), self.fault_to());
        if self.reply_headers.is_empty() && faults.is_empty() && reply_to == fault_to {
            return Ok(None);
        }
        Ok(Some(Box::new(EchoedHeaders {
            reply: parameters::written(form, &self.reply_headers)?,
            fault: parameters::written(form, faults)?,
            drops_reply: reply_to == Some(NOBODY),
            drops_fault: fault_to == Some(NOBODY),
            fault_to: fault_to.map(Into::into),
        })))
    }

    /// Where answers are wanted, if not back along the channel.
    pub(super) fn reply_to(&self) -> Option<&str> {
        self.reply_to.as_deref().filter(|address| !is_here(address))
    }

    /// The same of faults, which go where answers go if nothing is said of them (WS-Addressing 1.0 Core, 3.4).
    pub(super) fn fault_to(&self) -> Option<&str> {
        match &self.fault_to {
            Some(address) => Some(&**address).filter(|address| !is_here(address)),
            None => self.reply_to(),
        }
    }

    /// Whether no answer is wanted, and no fault.
    pub(super) fn refuses_answers(&self) -> bool {
        self.reply_to.as_deref() == Some(NOBODY) && self.fault_to() == Some(NOBODY)
    }

    /// Whether it says of faults that they are not wanted.
    pub(super) fn refuses_faults(&self) -> bool {
        self.fault_to.as_deref() == Some(NOBODY)
    }
}

/// Whether an address leads back along the channel.
fn is_here(address: &str) -> bool {
    address.is_empty() || address == ANONYMOUS
}

/// Notes what a header says; a second one of its name makes the message invalid.
fn note<T>(name: &'static str, place: &mut Option<T>, said: T, invalid: &mut Option<&'static str>) {
    if place.replace(said).is_some() {
        invalid.get_or_insert(name);
    }
}
