//! Headers: what travels beside a body, for the hops on the way as much as for the servant.
//!
//! SOAP header blocks, service contexts of GIOP, header fields of D-Bus, extensions of ORPC. Those that came are shared bytes that
//! nobody has looked at; changes are kept apart ([`Edit`]) and applied when the message goes out, so that a change costs the headers
//! and never the body, whether a copy was made before or after. What belongs to one connection only (addressing, character sets,
//! serial numbers) is each session's own and not passed on.
//!
//! States of [`Headers`]: as they came, with changes, and with what the changes bring written in one encoding (`written`). Invariants: the
//! changes keep their order; what was written is of the present changes, for each change throws it away, and a copy begins without it.

use crate::Visit;
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The headers of a message.
#[derive(Debug, Default)]
pub struct Headers {
    /// As they came, in the wire's encoding; empty where there are none.
    raw: Bytes,
    edits: Edits,
    /// What the changes bring, in the encoding that was asked for first.
    written: OnceLock<Box<EncodedEdits>>,
}

/// Changes of headers, in order; a copy shares them.
#[derive(Debug, Clone, Default)]
pub struct Edits(Option<Arc<Vec<Edit>>>);

impl Edits {
    /// Whether they are equal. Those of a route are mostly one and the same, which costs no comparison.
    #[inline]
    pub fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
            _ => self.is_empty() && other.is_empty(),
        }
    }

    fn push(&mut self, edit: Edit) {
        Arc::make_mut(self.0.get_or_insert_default()).push(edit);
    }
}

impl Deref for Edits {
    type Target = [Edit];

    #[inline]
    fn deref(&self) -> &[Edit] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

/// What changes bring, in an encoding.
#[derive(Debug)]
struct EncodedEdits {
    encoding: &'static str,
    little: bool,
    count: usize,
    bytes: Vec<u8>,
}

/// The copy is mostly made to be changed: what was written is left behind.
impl Clone for Headers {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), edits: self.edits.clone(), written: OnceLock::new() }
    }
}

/// One header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name, as the wire's users write it: `{namespace}name` in SOAP, a number such as `0x41545401` in GIOP, the number of the
    /// field on D-Bus, a GUID on DCOM.
    pub name: String,
    /// What it says.
    pub content: Content,
    /// Whether the receiver must refuse the message if it does not know this header (`mustUnderstand` of SOAP).
    pub must_understand: bool,
}

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text; on SOAP also elements, as XML.
    Text(String),
    /// Bytes in the wire's encoding.
    Bytes(Bytes),
}

/// A change of headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// One more.
    Add(Header),
    /// In place of all that have its name, or one more if none has.
    Put(Header),
    /// All of this name go.
    Remove(String),
}

impl Edit {
    /// Whether the headers of this name that were there before it go.
    fn removes(&self, name: &str) -> bool {
        match self {
            Self::Add(_) => false,
            Self::Put(header) => header.name == name,
            Self::Remove(removed) => removed == name,
        }
    }
}

impl Header {
    /// A header that says a text.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), content: Content::Text(text.into()), must_understand: false }
    }

    /// A header of bytes in the wire's encoding.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.into(), content: Content::Bytes(bytes.into()), must_understand: false }
    }

    /// The number that it says in digits; 0 if it says anything else.
    pub fn number(&self) -> u32 {
        match &self.content {
            Content::Text(text) => number(text.as_bytes()),
            Content::Bytes(bytes) => number(bytes),
        }
    }

    /// What it says, for people: bytes as hexadecimal digits.
    pub fn display(&self) -> Cow<'_, str> {
        match &self.content {
            Content::Text(text) => Cow::Borrowed(text),
            Content::Bytes(bytes) => crate::hex::text(bytes).into(),
        }
    }
}

/// The number that the content of a header says in digits; 0 if it says anything else.
pub fn number(content: &[u8]) -> u32 {
    str::from_utf8(content).ok().and_then(|digits| digits.trim().parse().ok()).unwrap_or_default()
}

impl Headers {
    /// Headers that came, in the wire's encoding.
    pub fn received(raw: Bytes) -> Self {
        Self { raw, ..Self::default() }
    }

    /// As they came, in the wire's encoding.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The changes, in order.
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// The same, for whoever compares or keeps them.
    pub fn shared_edits(&self) -> &Edits {
        &self.edits
    }

    /// Whether there are none, and no changes.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty() && self.edits.is_empty()
    }

    /// One more change.
    pub fn edit(&mut self, edit: Edit) {
        self.written.take();
        self.edits.push(edit);
    }

    /// One more header.
    pub fn add(&mut self, header: Header) {
        self.edit(Edit::Add(header));
    }

    /// A header in place of all that have its name.
    pub fn put(&mut self, header: Header) {
        self.edit(Edit::Put(header));
    }

    /// Removes all of this name.
    pub fn remove(&mut self, name: impl Into<String>) {
        self.edit(Edit::Remove(name.into()));
    }

    /// Whether a header of this name that came still goes out.
    pub fn keeps(&self, name: &str) -> bool {
        !self.edits().iter().any(|edit| edit.removes(name))
    }

    /// The headers that the changes bring, in order.
    pub fn brought(&self) -> impl Iterator<Item = &Header> {
        let edits = self.edits();
        edits.iter().enumerate().filter_map(move |(at, edit)| {
            let (Edit::Add(header) | Edit::Put(header)) = edit else { return None };
            let later = edits.get(at + 1..).unwrap_or_default();
            (!later.iter().any(|edit| edit.removes(&header.name))).then_some(header)
        })
    }

    /// What the changes bring, in a wire's encoding and byte order, and how many headers that are. A hop puts the same changes beside
    /// every message of a route, so they are written once and kept; `write` gets the headers in order, and must write the same each
    /// time. For a second encoding or byte order they are written anew.
    ///
    /// # Errors
    /// One of them cannot be written. That is not kept.
    #[inline]
    pub fn written(
        &self,
        encoding: &'static str,
        little: bool,
        write: impl Fn(&Header, &mut Vec<u8>) -> Visit<()>,
    ) -> Visit<(Cow<'_, [u8]>, usize)> {
        match self.written.get() {
            Some(held) if held.is(encoding, little) => Ok((Cow::Borrowed(&held.bytes), held.count)),
            _ => self.write(encoding, little, &write),
        }
    }

    #[cold]
    fn write(
        &self,
        encoding: &'static str,
        little: bool,
        write: &dyn Fn(&Header, &mut Vec<u8>) -> Visit<()>,
    ) -> Visit<(Cow<'_, [u8]>, usize)> {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for header in self.brought() {
            write(header, &mut bytes)?;
            count += 1;
        }
        if self.written.get().is_some() {
            return Ok((Cow::Owned(bytes), count));
        }
        let new = Box::new(EncodedEdits { encoding, little, count, bytes });
        match self.written.set(new) {
            Ok(()) => Ok((
                self.written.get().map_or(Cow::Borrowed(&[]), |held| Cow::Borrowed(&held.bytes[..])),
                count,
            )),
            // Another thread was first: that is kept.
            Err(new) => Ok((Cow::Owned(new.bytes), count)),
        }
    }
}

impl EncodedEdits {
    /// Whether it is in this encoding: mostly the name is the same text in memory.
    #[inline]
    fn is(&self, encoding: &'static str, little: bool) -> bool {
        self.little == little && (std::ptr::eq(self.encoding, encoding) || self.encoding == encoding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_a_number_or_nothing_that_counts() {
        let text = |text: &str| Header::text("a", text).number();
        assert_eq!((text("3"), text(" 17\n"), text(""), text("-1"), text("many")), (3, 17, 0, 0, 0));
        assert_eq!(text("99999999999999999999"), 0);
        assert_eq!(Header::bytes("a", &b"12"[..]).number(), 12);
        assert_eq!(Header::bytes("a", &b"\xff\xfe"[..]).number(), 0);
    }

    #[test]
    fn changes_are_written_once_for_the_encoding_that_was_first() {
        let mut headers = Headers::default();
        headers.add(Header::text("a", "1"));
        headers.put(Header::text("b", "2"));
        let times = std::cell::Cell::new(0);
        let write = |header: &Header, out: &mut Vec<u8>| {
            times.set(times.get() + 1);
            out.extend_from_slice(header.name.as_bytes());
            Ok(())
        };
        for _ in 0..3 {
            let (bytes, count) = headers.written("one", true, write).unwrap();
            // The first time, too, it is what is kept.
            assert!(matches!((&bytes, count), (Cow::Borrowed(b"ab"), 2)));
        }
        assert_eq!(times.get(), 2);
        // Another encoding, or another byte order, has its own, and takes nothing from the first.
        for (encoding, little) in [("other", true), ("one", false)] {
            assert!(matches!(headers.written(encoding, little, write).unwrap(), (Cow::Owned(_), 2)));
        }
        assert!(matches!(headers.written("one", true, write).unwrap(), (Cow::Borrowed(b"ab"), 2)));
        // A change counts at once, here and in a copy.
        let mut copy = headers.clone();
        copy.add(Header::text("c", "3"));
        headers.remove("a");
        assert_eq!(&*headers.written("one", true, write).unwrap().0, b"b");
        assert_eq!(&*copy.written("one", true, write).unwrap().0, b"abc");
        // What cannot be written is told each time.
        headers.add(Header::text("d", "4"));
        let fails = |_: &Header, _: &mut Vec<u8>| Err(crate::Failure::malformed("no", 0));
        assert!(headers.written("one", true, fails).is_err() && headers.written("one", true, fails).is_err());
        assert_eq!(&*headers.written("one", true, write).unwrap().0, b"bd");
    }

    #[test]
    fn a_copy_shares_the_changes_until_one_of_them_changes() {
        let mut headers = Headers::default();
        headers.add(Header::text("a", "1"));
        let mut copy = headers.clone();
        assert!(std::ptr::eq(copy.edits(), headers.edits()));
        copy.add(Header::text("b", "2"));
        assert_eq!((headers.edits().len(), copy.edits().len()), (1, 2));
        assert!(!copy.shared_edits().is(headers.shared_edits()));
        // Those that were made apart are compared by what they say.
        let mut apart = Headers::default();
        apart.add(Header::text("a", "1"));
        assert!(apart.shared_edits().is(headers.shared_edits()));
        assert!(Edits::default().is(Headers::received(Bytes::from_static(b"x")).shared_edits()));
        assert!(!Edits::default().is(headers.shared_edits()));
    }

    #[test]
    fn changes_are_applied_in_order() {
        let mut headers = Headers::default();
        assert!(headers.is_empty());
        headers.add(Header::text("a", "1"));
        headers.add(Header::text("a", "2"));
        headers.put(Header::text("b", "3"));
        let names = |headers: &Headers| -> Vec<String> {
            headers.brought().map(|header| format!("{}={}", header.name, header.display())).collect()
        };
        assert_eq!(names(&headers), ["a=1", "a=2", "b=3"]);
        headers.put(Header::bytes("a", vec![1, 0xff]));
        assert_eq!(names(&headers), ["b=3", "a=01ff"]);
        assert!(!headers.keeps("a") && !headers.keeps("b") && headers.keeps("c"));
        headers.remove("a");
        headers.remove("c");
        assert_eq!(names(&headers), ["b=3"]);
        assert!(!headers.keeps("c"));
    }
}
