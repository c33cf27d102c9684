//! A page of source text: lines, indentation, and breaking what is too long.

/// Columns of one level.
const TAB: usize = 4;

/// Source text being written.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    level: usize,
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

    /// One line; one that was broken already keeps its breaks.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        for line in line.as_ref().split('\n') {
            if !line.is_empty() {
                self.text.extend(std::iter::repeat_n(' ', self.level * TAB));
                self.text.push_str(line);
            }
            self.text.push('\n');
        }
    }

    /// What was written since `mark` bytes were.
    pub(crate) fn since(&self, mark: usize) -> &str {
        self.text.get(mark..).unwrap_or_default()
    }

    /// How many bytes were written.
    pub(crate) fn mark(&self) -> usize {
        self.text.len()
    }

    /// Puts lines, and an empty one, where `mark` bytes were written.
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

    /// `head = value;`, the value on a line of its own if it must be.
    pub(crate) fn assign(&mut self, head: &str, value: &str) {
        self.binding(&format!("{head} ="), value, &[], "");
    }

    /// `pattern => value,`, in braces if it is too long.
    pub(crate) fn arm(&mut self, pattern: &str, value: &str) {
        let line = format!("{pattern} => {value},");
        if self.fits(&line) {
            self.line(line);
        } else {
            self.block(&format!("{pattern} =>"), |page| page.line(value));
        }
    }

    /// A chain of calls on one line if it fits, else a call a line: `root` and `calls` such as `.map(f)`.
    pub(crate) fn chain(&mut self, root: &str, calls: &[String], tail: &str) {
        let line = format!("{root}{}{tail}", calls.concat());
        if self.fits(&line) || (calls.len() < 2 && line.contains('\n')) {
            self.line(line);
        } else {
            let mut calls = calls.to_vec();
            match calls.last_mut() {
                Some(last) => {
                    last.push_str(tail);
                    self.hang(root, &calls);
                }
                // What is too long and has no call to break at ends all the same.
                None => self.line(line),
            }
        }
    }

    /// A documentation comment, wrapped; nothing for an empty text.
    pub(crate) fn doc(&mut self, text: &str) {
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
