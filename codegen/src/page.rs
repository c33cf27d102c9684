//! A page of source text: lines, indentation, and breaking what is too long.
//!
//! The generated text is not run through rustfmt, since a build script cannot count on it being there; it is
//! written as people would write it. Widths are counted in characters. A list that does not fit is broken in
//! one of two ways: an item a line, or as many items a line as fit.

/// Columns of one level.
const TAB: usize = 4;

/// How lines begin that `Page::clause` may go on with: the words of the macros for operations.
const CLAUSES: [&str; 4] = ["send (", "read (", "receive ", "write ("];

/// Source text being written.
#[derive(Debug)]
pub(crate) struct Page {
    /// All that was written, with its indentation.
    text: String,
    /// How many blocks are open.
    level: usize,
    /// The most columns of a line.
    width: usize,
}

impl Page {
    /// An empty page with lines of at most `width` columns.
    pub(crate) fn new(width: usize) -> Self {
        Self { text: String::new(), level: 0, width }
    }

    /// What was written.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// One line; one that was broken already keeps its breaks. Empty lines have no indentation.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        for line in line.as_ref().split('\n') {
            if !line.is_empty() {
                self.text.extend(std::iter::repeat_n(' ', self.level * TAB));
                self.text.push_str(line);
            }
            self.text.push('\n');
        }
    }

    /// What was written since `mark` bytes were. The number comes from `mark`.
    pub(crate) fn since(&self, mark: usize) -> &str {
        self.text.get(mark..).unwrap_or_default()
    }

    /// How many bytes were written.
    pub(crate) fn mark(&self) -> usize {
        self.text.len()
    }

    /// Puts lines, and an empty one, where `mark` bytes were written. What a module uses is known only when
    /// all of it is written.
    pub(crate) fn insert(&mut self, mark: usize, lines: &[&str]) {
        let indent = " ".repeat(self.level * TAB);
        let lines: String = lines.iter().map(|line| format!("{indent}{line}\n")).collect();
        self.text.insert_str(mark, &(lines + "\n"));
    }

    /// An empty line, but not at the beginning of a block and not twice.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("{\n") && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// `head {`, the lines that `body` writes, `}`.
    pub(crate) fn block(&mut self, head: &str, body: impl FnOnce(&mut Self)) {
        self.enclosed(&format!("{head} {{"), "}", body);
    }

    /// `open`, the lines that `body` writes one level deeper, `close`.
    pub(crate) fn enclosed(&mut self, open: &str, close: &str, body: impl FnOnce(&mut Self)) {
        self.line(open);
        self.level += 1;
        body(self);
        self.level -= 1;
        self.line(close);
    }

    /// The lines that `body` writes one level deeper, and `}`: after a head that was written already.
    pub(crate) fn enclosed_body(&mut self, body: impl FnOnce(&mut Self)) {
        self.level += 1;
        body(self);
        self.level -= 1;
        self.line("}");
    }

    /// `first`, and the rest one level deeper, each on a line.
    pub(crate) fn hang(&mut self, first: &str, rest: &[String]) {
        self.line(first);
        self.level += 1;
        for line in rest {
            self.line(line);
        }
        self.level -= 1;
    }

    /// `head(items)tail` on one line if it fits, else an item a line. Delimiters are part of `head` and `tail`.
    pub(crate) fn list(&mut self, head: &str, items: &[String], tail: &str) {
        let line = format!("{head}{}{tail}", items.join(", "));
        if self.fits(&line) || items.is_empty() {
            self.line(line);
        } else {
            self.enclosed(head, tail, |page| {
                for item in items {
                    page.line(format!("{item},"));
                }
            });
        }
    }

    /// `head(items)tail` on one line if it fits, else as many items a line as fit.
    pub(crate) fn fill(&mut self, head: &str, items: &[String], tail: &str) {
        if items.is_empty() {
            return self.line(format!("{}{}", head.trim_end(), tail.trim_start()));
        }
        let line = format!("{head}{}{tail}", items.join(", "));
        if self.fits(&line) {
            return self.line(line);
        }
        self.enclosed(head.trim_end(), tail.trim_start(), |page| page.flow(items, ','));
    }

    /// Items, each with `end` behind it, as many a line as fit. An item that is broken already has lines of its own.
    pub(crate) fn flow(&mut self, items: &[String], end: char) {
        let mut row = String::new();
        for item in items {
            let joined = if row.is_empty() { format!("{item}{end}") } else { format!("{row} {item}{end}") };
            if self.fits(&joined) {
                row = joined;
                continue;
            }
            if !row.is_empty() {
                self.line(std::mem::take(&mut row));
            }
            row = format!("{item}{end}");
            if row.contains('\n') {
                self.line(std::mem::take(&mut row));
            }
        }
        if !row.is_empty() {
            self.line(row);
        }
    }

    /// `word (items) { body }`, on one line if it fits, and behind the last line if that is one of these and
    /// both fit. The body is written on a page of its own first, because it must be known whether it is
    /// short.
    pub(crate) fn clause(&mut self, word: &str, items: &[String], body: impl FnOnce(&mut Self)) {
        let mut inner = Self { text: String::new(), level: self.level + 1, width: self.width };
        body(&mut inner);
        let body = inner.finish();
        let list = match items {
            [one] => format!("({one},)"),
            several => format!("({})", several.join(", ")),
        };
        let head = format!("{word} {list} {{");
        let line = match body.trim() {
            "" => format!("{head}}}"),
            body => format!("{head} {body} }}"),
        };
        let last = self.text.trim_end().rsplit('\n').next().unwrap_or_default().trim_start();
        let joined = format!("{last} {line}");
        // Two short clauses of one operation stand on one line.
        if CLAUSES.iter().any(|word| last.starts_with(word)) && last.ends_with('}') && self.fits(&joined) {
            self.text.truncate(self.text.trim_end().len());
            self.text.push(' ');
            self.text.push_str(&line);
            self.text.push('\n');
        } else if self.fits(&line) {
            self.line(line);
        } else {
            if self.fits(&head) || items.is_empty() {
                self.line(head);
            } else {
                self.fill(&format!("{word} ("), items, ") {");
            }
            self.text.push_str(&body);
            self.line("}");
        }
    }

    /// As [`Page::binding`], but as many items a line as fit.
    pub(crate) fn binding_filled(&mut self, head: &str, open: &str, items: &[String], close: &str) {
        let value = format!("{open}{}{close};", items.join(", "));
        if self.fits(&format!("{head} {value}")) || self.fits(&format!("    {value}")) {
            self.binding(head, open, items, close);
        } else {
            self.fill(&format!("{head} {open}"), items, &format!("{close};"));
        }
    }

    /// `head open items close;`: on one line if it fits, else with all after `head` on the next, else an item a line.
    pub(crate) fn binding(&mut self, head: &str, open: &str, items: &[String], close: &str) {
        let value = format!("{open}{}{close};", items.join(", "));
        if self.fits(&format!("{head} {value}")) {
            self.line(format!("{head} {value}"));
        } else if self.fits(&format!("    {value}")) {
            self.hang(head, &[value]);
        } else {
            self.list(&format!("{head} {open}"), items, &format!("{close};"));
        }
    }

    /// A documentation comment, wrapped; nothing for an empty text. Each line of the text is a paragraph of
    /// its own; white space within a line is not kept.
    pub(crate) fn doc(&mut self, text: &str) {
        // Deep modules have narrow comments, but not narrower than a sentence.
        let room = self.width.saturating_sub(self.level * TAB + 4).max(40);
        for line in text.trim().lines() {
            let line = line.trim_end();
            if line.trim_start().is_empty() {
                self.line("///");
                continue;
            }
            let mut row = String::new();
            for word in line.split_whitespace() {
                if !row.is_empty() && row.chars().count() + 1 + word.chars().count() > room {
                    self.line(format!("/// {row}"));
                    row.clear();
                }
                if !row.is_empty() {
                    row.push(' ');
                }
                row.push_str(word);
            }
            self.line(format!("/// {row}"));
        }
    }

    /// Whether this line is short enough here.
    pub(crate) fn fits(&self, line: &str) -> bool {
        !line.contains('\n') && self.level * TAB + line.chars().count() <= self.width
    }
}
