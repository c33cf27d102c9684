//! Heads that came before: a message whose head is that of an earlier one but for its identifier needs no
//! parsing.
//!
//! Callers repeat themselves: the same action, the same address, the same operation, and only MessageID or
//! RelatesTo differs. A channel remembers the last heads that it has read, as the bytes before and behind
//! the identifier, together with what they mean; comparing bytes costs a small part of what reading headers
//! costs.
//!
//! State: up to `HEADS` remembered heads of one channel (`HeadCache`). The channel forgets all of them when what
//! the node serves has changed, or when a plan has lost its place.
//!
//! Invariants:
//!
//! * Only a head is remembered that was read in full and found good: with at most one identifier, no
//!   security header, nothing of reliable messaging, nothing that must be understood but is not, and an
//!   answer back along the connection. Each of those has to be judged anew for each message.
//! * A head matches only in the same place: the same key, the same SOAPAction, and the same bytes up to the
//!   end of the start tag of the body's first element. In binary form no attribute may follow there, since
//!   a start tag goes on as long as attributes follow.
//! * The document must end as the remembered one did. What is between the head and that end is the codec's
//!   to read, and its violations are told to whoever reads it.
//! * Heads and actions of more than `LONGEST` bytes are not remembered, so a channel keeps some tens of
//!   kilobytes at most.

use super::head::{Head, Message};
use super::ids::{self, UUID};
use super::{Dialect, Form};
use crate::values::Layout;
use bytes::Bytes;
use everywire_model::recent::Recent;
use everywire_model::{Context, same_bytes};
use std::ops::Range;

/// How many heads one channel remembers.
/// Enough for clients that call a handful of operations in turn.
const HEADS: usize = 8;
/// The longest head worth it, in bytes.
const LONGEST: usize = 4 << 10;

/// The ends of body and envelope in binary form.
/// Two EndElement records.
const ENDS: [u8; 2] = [1, 1];

/// What a head means, once it was read.
#[derive(Debug, Clone)]
pub(super) enum HeadMeaning {
    /// It asks for an operation: which, by number of the channel's plans, and whether an answer is wanted.
    Request { asked: Bytes, plan: u32, answered: bool },
    /// It answers, and is no fault.
    Reply,
}

/// Heads that came before.
#[derive(Debug, Default)]
pub(super) struct HeadCache(Recent<CachedHead, HEADS>);

/// A head that came before.
#[derive(Debug)]
pub(super) struct CachedHead {
    /// Up to the identifier, or up to the end of the first element's start tag if there is none.
    before: Box<[u8]>,
    /// Bytes of the identifier.
    /// 0 if there is none.
    hole: usize,
    /// From the identifier to the end of the first element's start tag.
    after: Box<[u8]>,
    /// What ends the document.
    /// In binary form two bytes; in text form the two end tags with their prefixes.
    tail: Box<[u8]>,
    pub(super) place: BodyStart,
    pub(super) kept: ForwardInfo,
    /// SOAPAction, where the transport has one.
    action: Option<Box<str>>,
    /// The path that the message came to.
    key: Bytes,
    pub(super) meaning: HeadMeaning,
}

/// What is known of a message that may be passed on.
#[derive(Debug, Clone)]
pub(super) struct ForwardInfo {
    /// Offset of the first byte inside the body.
    pub(super) body: usize,
    /// No other head has this one; nothing if the head was not remembered.
    pub(super) context: Context,
    /// Where headers are that are not the session's own; empty if there are none.
    pub(super) others: Range<usize>,
}

impl ForwardInfo {
    /// Of a head that is not remembered.
    pub(super) fn of(head: &Head<'_>) -> Self {
        Self { body: head.body, context: Context::default(), others: head.others.clone() }
    }
}

/// Where the reading of a body's values begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyStart {
    /// Offset in the document.
    pub(super) at: usize,
    /// Whether it is inside the wrapper already.
    pub(super) inside: bool,
}

impl BodyStart {
    /// A place before the wrapper, if there is one.
    pub(super) fn outside(at: usize) -> Self {
        Self { at, inside: false }
    }
}

impl HeadCache {
    /// Looks whether the head came before, with the same action around it, at the same key: the identifier, if it has one, and
    /// what is remembered.
    #[inline]
    pub(super) fn find(
        &mut self,
        form: Form,
        document: &[u8],
        action: Option<&str>,
        key: &[u8],
    ) -> Option<(Option<[u8; 16]>, &CachedHead)> {
        let (index, identifier) = self.0.find_map(|head| head.matches(form, document, action, key))?;
        Some((identifier, self.0.get(index)?))
    }

    /// Remembers the head of a document that was found to be whole. `plan`: how its body is laid out, and
    /// whether it is passed on, whatever its headers demand.
    pub(super) fn remember(
        &mut self,
        dialect: Dialect,
        message: Message<'_>,
        plan: (&Layout, bool),
        meaning: HeadMeaning,
    ) {
        if let Some(made) = CachedHead::of(dialect, message, plan, meaning) {
            self.0.keep(made);
        }
    }

    /// Forgets everything: what heads mean has changed.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl CachedHead {
    fn of(
        dialect: Dialect,
        message: Message<'_>,
        (values, passes): (&Layout, bool),
        meaning: HeadMeaning,
    ) -> Option<Self> {
        let Message { head, document, action, key } = message;
        let first = head.first.as_ref()?;
        let tail = tail(dialect.form, document)?;
        // In binary form attributes follow a start tag as records of their own: none may follow this one.
        let is_whole = dialect.form == Form::Text || !is_attribute(*document.get(first.inside)?);
        // Two identifiers would need two holes: an answer that also has an identifier of its own is read
        // each time.
        let (start, hole) = match (head.identifiers, head.hole) {
            (0, None) => (first.inside, 0),
            (1, Some(at)) => (at, if dialect.form == Form::Binary { 16 } else { UUID }),
            _ => return None,
        };
        let plain =
            head.security.is_none() && head.reliable.is_empty() && (passes || head.demanding.is_empty());
        if !plain
            || !is_whole
            || first.inside > LONGEST
            || action.is_some_and(|action| action.len() > LONGEST)
        {
            return None;
        }
        let inside = dialect.form == Form::Binary && first.is_plain && values.is_wrapped_by(&first.local);
        let place = BodyStart { at: if inside { first.inside } else { head.body }, inside };
        Some(Self {
            before: document.get(..start)?.into(),
            hole,
            after: document.get(start + hole..first.inside)?.into(),
            tail: tail.into(),
            place,
            // A fresh context: its address is what `HeadTemplates` knows the head by.
            kept: ForwardInfo { context: Context::from(&[1][..]), ..ForwardInfo::of(head) },
            action: action.map(Into::into),
            key: Bytes::copy_from_slice(key),
            meaning,
        })
    }

    #[inline]
    fn matches(
        &self,
        form: Form,
        document: &[u8],
        action: Option<&str>,
        key: &[u8],
    ) -> Option<Option<[u8; 16]>> {
        let (before, rest) = document.split_at_checked(self.before.len())?;
        let (hole, rest) = rest.split_at_checked(self.hole)?;
        let (after, rest) = rest.split_at_checked(self.after.len())?;
        let ends = match form {
            // The ends are always the same.
            Form::Binary => rest.ends_with(&ENDS),
            Form::Text => rest.ends_with(&self.tail),
        };
        let same = ends
            && same_bytes(before, &self.before)
            && same_bytes(after, &self.after)
            && self.action.as_deref() == action
            && same_bytes(&self.key, key)
            && (form == Form::Text || goes_on(rest));
        if !same {
            return None;
        }
        match form {
            _ if self.hole == 0 => Some(None),
            Form::Binary => Some(Some(hole.try_into().ok()?)),
            // One that would not be written the same again is read where there is time.
            Form::Text => Some(Some(ids::parse(hole)?)),
        }
    }
}

/// Whether a start tag is over, and if its element is empty, nothing but the ends of body and envelope follows.
fn goes_on(rest: &[u8]) -> bool {
    match rest {
        [1, ends @ ..] => *ends == ENDS,
        [code, ..] => !is_attribute(*code),
        [] => false,
    }
}

/// Records that belong to the start tag before them.
fn is_attribute(code: u8) -> bool {
    (0x04..=0x3f).contains(&code)
}

/// The end tags of body and envelope, if the document ends with them and nothing else.
pub(super) fn tail(form: Form, document: &[u8]) -> Option<&[u8]> {
    match form {
        Form::Binary => document.ends_with(&ENDS).then_some(&ENDS),
        Form::Text => {
            let whole = document.trim_ascii_end();
            let last = whole.strip_suffix(b"Envelope>")?;
            let last = start_of_end_tag(last)?;
            let body = whole.get(..last)?.trim_ascii_end().strip_suffix(b"Body>")?;
            document.get(start_of_end_tag(body)?..)
        }
    }
}

/// Where `</` and perhaps a prefix stand that end these bytes.
/// They end with the `</`, or with `</PREFIX:`; the caller has taken the local name off.
fn start_of_end_tag(bytes: &[u8]) -> Option<usize> {
    let at = bytes.iter().rposition(|byte| *byte == b'<')?;
    let rest = bytes.get(at..)?.strip_prefix(b"</")?;
    let prefix = rest.strip_suffix(b":").unwrap_or(rest);
    (rest.is_empty()
        || (rest.len() > 1 && prefix.len() < rest.len() && prefix.iter().all(u8::is_ascii_alphanumeric)))
    .then_some(at)
}
