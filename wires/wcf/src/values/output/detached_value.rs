//! Values that are no elements of their own: attributes, and the text of an element.
//!
//! Such a value is written as the text that XML has for it, behind everything else; when it is complete it is taken off and put
//! where it belongs.

use super::{Form, Letter, Output, put_word};
use crate::dictionary::Term;
use crate::nbfx::{integer, records};
use crate::text::quote;
use everywire_model::send_buffer::Mark;

/// The prefix of the namespace that XML itself names.
pub(in crate::values) const XML: Letter = 1;

/// A value that is being written.
#[derive(Debug)]
pub(in crate::values) struct DetachedValue {
    /// Where its text begins.
    /// In the flat part of the buffer; all behind it is the value.
    at: usize,
    /// What to write in when it is complete, and whether a start tag is not yet closed.
    form: Form,
    in_tag: bool,
    foldable: usize,
    /// The attribute; without one it is the text of the element.
    attribute: Option<Named>,
    /// Whether more words follow.
    /// Ends of items do not end the value then.
    more: bool,
}

/// An attribute, and where it goes.
#[derive(Debug)]
pub(in crate::values) struct Named {
    pub(in crate::values) prefix: Letter,
    pub(in crate::values) name: Term,
    /// Where the attributes of the element begin, if something else was written since.
    /// XmlSerializer puts attributes first, and the contract's order need not: so an attribute may have to
    /// be inserted.
    pub(in crate::values) tag: Option<Mark>,
    /// Whether it is left out where it is empty.
    pub(in crate::values) left: bool,
}

impl Output<'_> {
    /// A place to return to.
    pub(in crate::values) fn place(&self) -> Mark {
        self.out.mark()
    }

    /// Whether a value is being written apart.
    #[inline]
    pub(in crate::values) fn is_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// Begins a value: of an attribute, or of the text of the element. It ends with the end of the element that it is not.
    pub(in crate::values) fn begin_apart(&mut self, attribute: Option<Named>) {
        let apart = DetachedValue {
            at: self.out.flat().len(),
            form: self.form,
            in_tag: std::mem::take(&mut self.in_tag),
            foldable: self.foldable,
            attribute,
            more: false,
        };
        self.form = Form::Text;
        self.apart = Some(Box::new(apart));
    }

    /// Begins a list in one text, if a value is being written apart.
    pub(in crate::values) fn begin_words(&mut self) -> bool {
        self.apart.as_mut().map(|apart| apart.more = true).is_some()
    }

    /// Begins an item of it.
    pub(in crate::values) fn word(&mut self, index: usize) {
        if index > 0 {
            self.out.flat().push(b' ');
        }
    }

    /// Has the list end with the next end.
    pub(in crate::values) fn end_words(&mut self) {
        if let Some(apart) = &mut self.apart {
            apart.more = false;
        }
    }

    /// The value is complete: it goes to its attribute, or becomes the text of the open element.
    pub(super) fn end_apart(&mut self) {
        if self.apart.as_ref().is_some_and(|apart| apart.more) {
            return;
        }
        let Some(apart) = self.apart.take() else { return };
        let out = self.out.flat();
        let text = out.split_off(apart.at.min(out.len()));
        (self.form, self.in_tag, self.foldable) = (apart.form, apart.in_tag, apart.foldable);
        let text = std::str::from_utf8(&text).unwrap_or_default();
        match apart.attribute {
            // The form is the document's again, so the text is escaped or becomes a record now.
            None => self.chars(text),
            Some(attribute) if attribute.left && text.is_empty() => {}
            Some(attribute) => self.attribute(&attribute, text),
        }
    }

    fn attribute(&mut self, attribute: &Named, text: &str) {
        let mut written = Vec::new();
        match self.form {
            Form::Text => put_text(attribute.prefix, &attribute.name, text, &mut written),
            Form::Binary => {
                let number = self.words.number(&attribute.name);
                put_name(attribute.prefix, &attribute.name, number, &mut written);
                match text {
                    "" => written.push(0xa8),
                    _ => records::sized(0x98, text.as_bytes(), &mut written),
                }
            }
        }
        match attribute.tag {
            None => {
                self.foldable = 0;
                self.out.flat().extend_from_slice(&written);
            }
            Some(tag) => {
                // The text that may yet end its element has moved.
                if self.foldable > 0 {
                    self.foldable += written.len();
                }
                self.out.insert(tag, &written);
            }
        }
    }
}

/// An attribute in text form.
pub(super) fn put_text(prefix: Letter, name: &Term, text: &str, out: &mut Vec<u8>) {
    out.push(b' ');
    match prefix {
        0 => {}
        XML => out.extend_from_slice(b"xml:"),
        letter => out.extend_from_slice(&[letter, b':']),
    }
    out.extend_from_slice(name.as_str().as_bytes());
    quote(text, out);
}

/// MC-NBFX 2.2.2: the names of attributes without a prefix, with one in full, and with one of a letter.
pub(super) fn put_name(prefix: Letter, name: &Term, number: Option<u32>, out: &mut Vec<u8>) {
    let (inline, known) = match prefix {
        0 => (0x04, 0x06),
        XML => (0x05, 0x07),
        letter => (0x26 + letter.saturating_sub(b'a'), 0x0c + letter.saturating_sub(b'a')),
    };
    out.push(if number.is_some() { known } else { inline });
    if prefix == XML {
        integer::put_string("xml", out);
    }
    put_word(name, number, out);
}
