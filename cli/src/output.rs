//! What the program prints: data on standard output, envelopes for `--json`, and notes on standard
//! error.
//!
//! A line of data goes through `raw`, which flushes: whoever reads through a pipe sees it at once, and
//! one who closes the pipe ends the program quietly. Two kinds of text are told apart: our own words,
//! and what others chose (names of objects, texts of errors), for which there are `shown`, `text`,
//! `visible` and `visible_lines`.
//!
//! Invariants: what others chose commands no terminal. Where it was not made visible, `raw` and `note`
//! still let nothing through but colours. An envelope always has the same first keys (`ok`, `value`, `peer`, `wire`, `bytes`,
//! `elapsed_ns`, `notes`), so a program need not look which are there; `status` and `headers` are there
//! only if they say something.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether to use colours, on each of the two outputs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Style {
    /// On standard output.
    pub(crate) out: bool,
    /// On standard error.
    pub(crate) err: bool,
}

impl Style {
    /// Colours are for terminals, unless somebody objects (`--no-color`, or the variable `NO_COLOR`).
    pub(crate) fn detect(no_color: bool) -> Self {
        let wanted = !no_color && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            out: wanted && std::io::stdout().is_terminal(),
            err: wanted && std::io::stderr().is_terminal(),
        }
    }
}

/// Text in a colour of the terminal (an SGR code), if colours are wanted.
pub(crate) fn tinted(text: &str, code: &str, wanted: bool) -> String {
    if wanted { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Prints text and a line end, as data.
pub(crate) fn line(text: &str) {
    raw(&format!("{text}\n"));
}

/// Prints text and a line end, of which others chose a part that programs want as it is: on a terminal with `visible_lines`.
pub(crate) fn text(text: &str) {
    if on_terminal() { line(&visible_lines(text)) } else { line(text) }
}

/// Prints JSON and a line end. What a terminal could take for a command is written as JSON writes characters by number, which is the
/// same JSON.
pub(crate) fn json(value: &(impl Serialize + ?Sized)) {
    // All that is printed so is JSON.
    let text = serde_json::to_string(value).unwrap_or_default();
    if !text.contains(commands) {
        return line(&text);
    }
    // All of these characters are below 0x10000, and those below 0x20 JSON has as escapes already.
    let escaped = |c: char| if commands(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    line(&text.chars().map(escaped).collect::<String>());
}

/// Prints a line of which others chose a part, with `visible`.
pub(crate) fn shown(text: &str) {
    line(&visible(text));
}

/// What others named or said, as it may stand on a terminal: characters that command one, or turn the
/// line around, are written as escapes. A tab stays. Text without such characters is not copied.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(commands) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if commands(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// The same for text of several lines, which stay apart.
pub(crate) fn visible_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| commands(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split('\n').map(visible).collect::<Vec<_>>().join("\n"))
}

/// Whether a character commands a terminal, or turns the line around: directional embeddings, overrides
/// and isolates (Unicode 16, UAX 9).
fn commands(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `visible_lines`, except for colours (SGR codes): the last guard before a terminal, behind which our
/// own colours must be left.
fn guarded(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut out = String::new();
    while let Some(at) = rest.find(|c| commands(c) && c != '\n') {
        let (before, command) = rest.split_at(at);
        out.push_str(before);
        let len = colour(command).unwrap_or_else(|| command.chars().next().map_or(0, char::len_utf8));
        let (command, behind) = command.split_at(len);
        if colour(command).is_some() {
            out.push_str(command)
        } else {
            out.extend(command.escape_default())
        }
        rest = behind;
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The octets of the colour that a text begins with.
fn colour(text: &str) -> Option<usize> {
    let code = text.strip_prefix("\x1b[")?;
    let end = code.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    code.get(end..)?.starts_with('m').then_some(text.len() - code.len() + end + 1)
}

/// Whether standard output is a terminal, whatever its colours.
fn on_terminal() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| std::io::stdout().is_terminal())
}

/// Whether this process serves others, who need it whoever reads what it prints.
static SERVES: AtomicBool = AtomicBool::new(false);

/// From now on this process serves: it goes on when nobody reads what it prints (the bus that started it, `| head -1`).
pub(crate) fn serve_on() {
    SERVES.store(true, Ordering::Relaxed);
}

/// Prints text as it is (on a terminal, `guarded`), and flushes it. Whoever closed the pipe has seen enough: then the program ends
/// with 0, unless it serves. Other errors of writing are passed over, since there is no place to tell them.
pub(crate) fn raw(text: &str) {
    let text = if on_terminal() { guarded(text) } else { Cow::Borrowed(text) };
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe && !SERVES.load(Ordering::Relaxed) => {
            std::process::exit(0)
        }
        _ => {}
    }
}

/// Tells something that is no data, on standard error.
pub(crate) fn note(text: &str) {
    // In one write, so that another program's words never stand in a line of ours. Nobody is left to tell, if it fails.
    let _ = std::io::stderr().lock().write_all(format!("{}\n", guarded(text)).as_bytes());
}

/// The envelope that every verb prints with `--json`.
#[derive(Debug, Default)]
pub(crate) struct EnvelopeOf<V> {
    /// What was asked for.
    pub(crate) value: V,
    /// Who answered, where anybody was asked.
    pub(crate) peer: Option<String>,
    /// By which wire.
    pub(crate) wire: Option<&'static str>,
    /// Octets of encoded values, without headers: (sent, received).
    pub(crate) bytes: Option<(usize, usize)>,
    /// How long the peer took.
    pub(crate) elapsed: Option<std::time::Duration>,
    /// The code with which an operation succeeded, where it was not plain success.
    pub(crate) status: Option<i32>,
    /// The headers beside the answer, where they were asked for.
    pub(crate) headers: Option<Json>,
    /// What else is worth knowing.
    pub(crate) notes: Vec<String>,
}

/// The envelope of a value that is JSON already.
pub(crate) type Envelope = EnvelopeOf<Json>;

impl Envelope {
    /// An envelope of a value alone: nobody was asked.
    pub(crate) fn of(value: Json) -> Self {
        Self { value, ..Self::default() }
    }
}

impl<V: Serialize> Serialize for EnvelopeOf<V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(None)?;
        out.serialize_entry("ok", &true)?;
        out.serialize_entry("value", &self.value)?;
        out.serialize_entry("peer", &self.peer)?;
        out.serialize_entry("wire", &self.wire)?;
        let bytes = self.bytes.map(|(sent, received)| json!({"sent": sent, "received": received}));
        out.serialize_entry("bytes", &bytes)?;
        let nanoseconds = self.elapsed.map(|elapsed| u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
        out.serialize_entry("elapsed_ns", &nanoseconds)?;
        if let Some(status) = self.status {
            out.serialize_entry("status", &format!("{status:#010x}"))?;
        }
        if let Some(headers) = &self.headers {
            out.serialize_entry("headers", headers)?;
        }
        out.serialize_entry("notes", &self.notes)?;
        out.end()
    }
}

impl<V: Serialize> EnvelopeOf<V> {
    /// Prints it on one line.
    pub(crate) fn print(&self) {
        json(self);
    }
}

#[cfg(test)]
mod tests {
    use super::{guarded, visible, visible_lines};

    #[test]
    fn names_of_others_command_no_terminal() {
        for (text, shown) in [
            ("Tank.Level", "Tank.Level"),
            ("K\u{e4}se\t1", "K\u{e4}se\t1"),
            ("a\u{1b}]0;title\u{7}b", "a\\u{1b}]0;title\\u{7}b"),
            ("two\r\nlines", "two\\r\\nlines"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{202e}b", "a\\u{202e}b"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_lines("two\nlines\u{7}\n"), "two\nlines\\u{7}\n");
    }

    #[test]
    fn the_last_guard_lets_colours_through_alone() {
        for (text, shown) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\u{1b}[1;31merror:\u{1b}[0m no", "\u{1b}[1;31merror:\u{1b}[0m no"),
            ("a\u{1b}[2Jb\u{1b}[1m", "a\\u{1b}[2Jb\u{1b}[1m"),
            ("\u{1b}]0;x\u{7}", "\\u{1b}]0;x\\u{7}"),
            ("\u{1b}", "\\u{1b}"),
            ("\u{1b}[1", "\\u{1b}[1"),
            ("\u{9b}31m\r", "\\u{9b}31m\\r"),
        ] {
            assert_eq!(guarded(text), shown);
        }
    }
}
