//! Heads to send: made once for each operation, with a hole for the identifier.
//!
//! Everything before a body is the same for each call of an operation to an object, but for the identifier.
//! So it is written once, cut at the identifier, and copied from then on; in binary form the start of the
//! wrapper element belongs to it, too. Headers that somebody brings to one call have their place behind the
//! others. Templates hold numbers of the session's words, which stay valid as long as the channel does.

use super::ids::{self, MessageId};
use super::names::{ADDRESSING, ANONYMOUS};
use super::put::ElementWriter;
use super::{Dialect, Form};
use crate::dictionary::Outgoing;
use crate::nbfx::integer;
use crate::values::Layout;
use everywire_model::SendBuffer;

/// What ends the body and the envelope.
pub(super) fn finish(form: Form, out: &mut SendBuffer) {
    let end: &[u8] = match form {
        Form::Binary => &[1, 1],
        Form::Text => b"</s:Body></s:Envelope>",
    };
    out.flat().extend_from_slice(end);
}

/// A head with a hole for the identifier.
#[derive(Debug)]
pub(super) struct Template {
    /// All of the head where no identifier is in it.
    before: Box<[u8]>,
    /// Empty without an identifier, or where nothing follows it.
    after: Box<[u8]>,
    /// Where headers that somebody brings have their place: in `after`, or in `before` where that is all.
    room: Option<usize>,
}

impl Template {
    /// A head as a template, with where its identifier is.
    pub(super) fn cut(form: Form, head: &[u8], hole: Option<usize>) -> Self {
        let len = if form == Form::Binary { 16 } else { ids::UUID };
        // 16 bytes in a record, or 36 characters.
        let cut = hole.and_then(|at| Some((head.get(..at)?, head.get(at + len..)?)));
        let (before, after) = cut.unwrap_or((head, &[]));
        Self { before: before.into(), after: after.into(), room: None }
    }

    /// Adds the start of the element around the values, if it is always the same.
    pub(super) fn and_start(self, form: Form, values: &Layout, words: &mut Outgoing) -> Self {
        if !values.has_start(form) {
            return self;
        }
        let mut start = SendBuffer::new();
        values.put_start(words, &mut start);
        let (before, after, room) = (self.before, self.after, self.room);
        let start = start.to_vec();
        let add = |part: Box<[u8]>| [&*part, &start].concat().into_boxed_slice();
        // A head without an identifier is all in front.
        if after.is_empty() {
            Self { before: add(before), after, room }
        } else {
            Self { before, after: add(after), room }
        }
    }

    /// Appends the head with this identifier in its place; without a place for one it is not looked at.
    #[inline]
    pub(super) fn write(&self, form: Form, guid: &[u8; 16], out: &mut SendBuffer) {
        self.write_with(form, guid, &[], out);
    }

    /// The same with more headers, written already; in a dialect without addressing there is no room for them.
    #[inline]
    pub(super) fn write_with(&self, form: Form, guid: &[u8; 16], brought: &[u8], out: &mut SendBuffer) {
        debug_assert!(brought.is_empty() || self.room.is_some(), "headers have no place in this head");
        let flat = out.flat();
        let last = if self.after.is_empty() {
            &self.before
        } else {
            flat.extend_from_slice(&self.before);
            match form {
                Form::Binary => flat.extend_from_slice(guid),
                Form::Text => ids::put(guid, flat),
            }
            &self.after
        };
        match self.room.filter(|_| !brought.is_empty()).and_then(|room| last.split_at_checked(room)) {
            Some((front, rest)) => {
                [front, brought, rest].iter().for_each(|part| flat.extend_from_slice(part))
            }
            None => flat.extend_from_slice(last),
        }
    }
}

/// What a head to send says.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct HeadContents<'a> {
    pub(super) action: &'a str,
    /// Of the message itself, which then wants an answer.
    pub(super) message_id: Option<&'a [u8; 16]>,
    /// Of the message that it answers.
    pub(super) relates_to: Option<&'a MessageId>,
    /// Where to; nothing means the other side of the connection.
    pub(super) to: Option<&'a str>,
    /// Where an answer goes; nothing means back along the connection.
    pub(super) reply_to: Option<&'a str>,
    /// More headers, written already.
    pub(super) headers: &'a [u8],
    /// Names that a fault says were not understood.
    pub(super) not_understood: &'a [(String, String)],
}

impl HeadContents<'_> {
    /// The head, from the first byte of the document to the first byte inside its body; with where the identifier is, and
    /// where more headers have their place.
    pub(super) fn head(
        &self,
        dialect: Dialect,
        words: &mut Outgoing,
    ) -> (Vec<u8>, Option<usize>, Option<usize>) {
        let mut put = ElementWriter::new(dialect.form, words);
        let (mut hole, mut room) = (None, None);
        put.start("s", "Envelope");
        put.xmlns("s", dialect.soap.namespace());
        if dialect.addressing {
            put.xmlns("a", ADDRESSING);
        }
        if dialect.addressing || !self.headers.is_empty() || !self.not_understood.is_empty() {
            put.start("s", "Header");
            if dialect.addressing {
                hole = self.addressing(&mut put);
            }
            // SOAP 1.2 part 1, 5.4.8: each header that was not understood is named by a qualified name,
            // whose prefix must be declared.
            for (namespace, local) in self.not_understood {
                put.start("s", "NotUnderstood");
                put.xmlns("n", namespace);
                put.attribute("", "qname", &format!("n:{local}"));
                put.end();
            }
            put.raw(self.headers);
            room = Some(put.len());
            put.end();
        }
        put.start("s", "Body");
        (put.into_bytes(), hole, room)
    }

    /// The headers of WS-Addressing in the order in which WCF writes them. Returns where the identifier is.
    fn addressing(&self, put: &mut ElementWriter<'_>) -> Option<usize> {
        let open = |put: &mut ElementWriter<'_>, name, demands| {
            put.start("a", name);
            if demands {
                put.attribute("s", "mustUnderstand", "1");
            }
        };
        open(put, "Action", true);
        put.word(self.action);
        put.end();
        self.correlation(put, open)
    }

    /// What follows the action; `open` begins a header, which must be understood or need not be.
    pub(super) fn correlation(
        &self,
        put: &mut ElementWriter<'_>,
        open: impl Fn(&mut ElementWriter<'_>, &'static str, bool),
    ) -> Option<usize> {
        let mut hole = None;
        if let Some(guid) = self.message_id {
            open(put, "MessageID", false);
            hole = Some(put.unique(guid));
            put.end();
            open(put, "ReplyTo", false);
            put.start("a", "Address");
            put.word(self.reply_to.unwrap_or(ANONYMOUS));
            put.end();
            put.end();
        }
        if let Some(id) = self.relates_to {
            open(put, "RelatesTo", false);
            match id {
                MessageId::Unique(guid) => hole = Some(put.unique(guid)),
                MessageId::Text(text) => put.chars(text),
            }
            put.end();
        }
        open(put, "To", true);
        put.word(self.to.unwrap_or(ANONYMOUS));
        put.end();
        hole
    }

    /// The head as a template; its identifier may be any.
    pub(super) fn template(&self, dialect: Dialect, words: &mut Outgoing) -> Template {
        let (head, hole, room) = self.head(dialect, words);
        let template = Template::cut(dialect.form, &head, hole);
        let from = if template.after.is_empty() { 0 } else { head.len() - template.after.len() };
        Template { room: room.and_then(|room| room.checked_sub(from)), ..template }
    }
}

/// Appends a table of new words.
/// Its length in bytes, then the words as they are (MC-NBFSE 2.1).
pub(super) fn put_table(table: &[u8], out: &mut SendBuffer) {
    integer::put(table.len(), out.flat());
    out.flat().extend_from_slice(table);
}
