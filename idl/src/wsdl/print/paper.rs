//! Writing XML.
//!
//! Names of elements and attributes are our own or were checked; values and texts are escaped here, so
//! nothing that a contract holds can become markup. Every element that is opened is closed by a call of
//! `close`.

use crate::xml::escape;

/// Elements with indentation.
#[derive(Default)]
pub(super) struct Paper {
    pub(super) out: String,
    /// Names of the elements that are open.
    open: Vec<String>,
    /// Levels of indentation around all of it.
    base: usize,
}

impl Paper {
    /// Indented as what stands inside this many elements.
    pub(super) fn at(base: usize) -> Self {
        Self { base, ..Self::default() }
    }

    /// The start of a tag, up to the attributes.
    fn tag(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.out.push_str(&"  ".repeat(self.base + self.open.len()));
        self.out.push('<');
        self.out.push_str(name);
        for (attribute, value) in attributes {
            self.out.push(' ');
            self.out.push_str(attribute);
            self.out.push_str("=\"");
            escape(value, &mut self.out);
            self.out.push('"');
        }
    }

    /// Opens an element, in which others will stand.
    pub(super) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push_str(">\n");
        self.open.push(name.to_owned());
    }

    /// Closes the innermost element; nothing where none is open.
    pub(super) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.out.push_str(&"  ".repeat(self.base + self.open.len()));
            self.out.push_str("</");
            self.out.push_str(&name);
            self.out.push_str(">\n");
        }
    }

    /// An element without content.
    pub(super) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push_str("/>\n");
    }

    /// An element with text alone.
    pub(super) fn text(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.tag(name, attributes);
        self.out.push('>');
        escape(text, &mut self.out);
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push_str(">\n");
    }

    /// Puts what was written elsewhere here.
    pub(super) fn paste(&mut self, text: &str) {
        self.out.push_str(text);
    }
}
