//! What is looked for in the head of a request before the HTTP library reads it: it takes one reading of an ambiguous
//! message where a proxy in front may have taken the other (RFC 9112 §6.1, §11.2).
//!
//! The scanner sees each byte of a head once, before the library does, and counts the lines that say where
//! the message ends. It holds no head: of a line that comes in pieces it keeps as much as tells which
//! header it is.

/// Bytes of one request's head; longer ones are refused. The figure is Microsoft's (http.sys, `MaxRequestBytes`), doubled.
pub const MAX_HEAD: usize = 32 << 10;

const CONTENT_LENGTH: &[u8] = b"content-length";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";

/// As much of a line as tells which header it is.
const LONGEST: usize = TRANSFER_ENCODING.len() + 1;

/// The scanner of one head.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    /// Bytes at the front of the input that were looked at and not yet read.
    /// So far the library may read.
    ahead: usize,
    /// Bytes of it that were read before.
    taken: usize,
    /// The beginning of a line that arrived in part, as far as it tells which header it is.
    torn: Vec<u8>,
    /// Lines so far, empty ones before the first apart.
    /// It tells empty lines before a request from the one that ends the head.
    lines: u32,
    /// Lines `Content-Length`, whatever they say.
    lengths: u32,
    /// Lines `Transfer-Encoding`.
    encodings: u32,
    complete: bool,
}

impl Heads {
    /// Looks at what has arrived. Returns how many bytes belong to this head.
    pub(crate) fn scan(&mut self, input: &[u8]) -> usize {
        while !self.complete {
            let rest = input.get(self.ahead..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', rest) else {
                // The line's end has not come: its beginning is kept until it has.
                let room = LONGEST.saturating_sub(self.torn.len()).min(rest.len());
                self.torn.extend_from_slice(rest.get(..room).unwrap_or_default());
                self.ahead += rest.len();
                break;
            };
            let line = rest.get(..=end).unwrap_or_default();
            if self.torn.is_empty() {
                self.line(line);
            } else {
                let mut torn = std::mem::take(&mut self.torn);
                torn.extend_from_slice(line.get(..LONGEST.min(line.len())).unwrap_or_default());
                self.line(&torn);
            }
            self.ahead += line.len();
        }
        self.ahead
    }

    fn line(&mut self, line: &[u8]) {
        // A blank before the colon is an attack (RFC 9112, 5.1), and counts as that header.
        let is = |name: &[u8]| {
            line.get(..name.len()).is_some_and(|given| given.eq_ignore_ascii_case(name))
                && matches!(line.get(name.len()), Some(b':' | b' ' | b'\t'))
        };
        match line.first() {
            Some(b'c' | b'C') if is(CONTENT_LENGTH) => self.lengths += 1,
            Some(b't' | b'T') if is(TRANSFER_ENCODING) => self.encodings += 1,
            // Empty lines before a request mean nothing (RFC 9112 §2.2).
            Some(b'\r' | b'\n') if matches!(line, b"\n" | b"\r\n") => self.complete = self.lines > 0,
            _ => {}
        }
        self.lines += u32::from(!matches!(line, b"\n" | b"\r\n"));
    }

    /// Bytes at the front of the input were read.
    pub(crate) fn taken(&mut self, n: usize) {
        self.ahead = self.ahead.saturating_sub(n);
        self.taken = self.taken.saturating_add(n);
    }

    /// Whether nothing was looked at yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.ahead == 0 && self.taken == 0 && !self.complete
    }

    /// Whether so many bytes at the front of the input are the whole head.
    pub(crate) fn is_whole(&self, n: usize) -> bool {
        self.complete && self.ahead == n && self.taken == 0
    }

    /// Whether something of a head has arrived.
    pub(crate) fn is_begun(&self) -> bool {
        self.lines > 0 || !self.torn.is_empty()
    }

    /// Whether the whole head was seen, and says in one way only where the message ends.
    pub(crate) fn is_plain(&self) -> bool {
        self.complete && self.lengths + self.encodings <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_end_where_they_end_however_they_arrive() {
        let head = b"\r\nPOST /x HTTP/1.1\r\nHost: a\r\nContent-length : 3\r\n\r\n";
        let all = [&head[..], b"abcGET / HTTP/1.1\r\n\r\n"].concat();
        for step in [1, 2, 7, all.len()] {
            let mut heads = Heads::default();
            let mut end = 0;
            for upto in (step..=all.len()).step_by(step) {
                end = heads.scan(&all[..upto]);
            }
            assert_eq!(end, head.len(), "in steps of {step}");
            assert!(heads.is_plain() && heads.lengths == 1);
        }
    }

    #[test]
    fn two_ways_to_say_where_a_message_ends_are_noticed() {
        for lines in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "TRANSFER-ENCODING:chunked\r\ncontent-length:3",
            "Content-Length: 3\r\nContent-Length: 3",
            "Transfer-Encoding: chunked\nTransfer-Encoding: identity",
        ] {
            let mut heads = Heads::default();
            heads.scan(format!("POST / HTTP/1.1\r\n{lines}\r\n\r\n").as_bytes());
            assert!(heads.complete && !heads.is_plain(), "{lines}");
        }
    }
}
