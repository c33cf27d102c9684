//! Writing XML.

use crate::xml::escape;

/// Elements with indentation.
#[derive(Default)]
pub(super) struct Paper {
    pub(super) out: String,
    open: Vec<String>,
    base: usize,
}

impl Paper {
    /// Indented as what stands inside this many elements.
    pub(super) fn at(base: usize) -> Self {
        Self { base, ..Self::default() }
    }

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

    pub(super) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push_str(">\n");
        self.open.push(name.to_owned());
    }

    pub(super) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.out.push_str(&"  ".repeat(self.base + self.open.len()));
            self.out.push_str("</");
            self.out.push_str(&name);
            self.out.push_str(">\n");
        }
    }

    pub(super) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push_str("/>\n");
    }

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
