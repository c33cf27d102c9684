//! Lines out of a stream of bytes. A line ends with CR and LF, has at most `MAX_LINE` bytes with its
//! end, and a peer may send `MAX_LINES`: whoever sends more, or one without an end, is cut off before
//! the memory fills.

use super::{MAX_LINE, MAX_LINES, SaslError};
use bytes::{Buf, Bytes, BytesMut};

/// Takes whole lines from a peer's input, and counts them.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Lines taken.
    taken: usize,
    /// Bytes of the input that hold no end of line, so that a line in small pieces is not searched again and again.
    searched: usize,
}

impl Lines {
    /// The next line without its end, or `None` if it is not all there.
    pub(super) fn next(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, SaslError> {
        let start = self.searched.min(input.len());
        let found = input.get(start..).and_then(|rest| rest.windows(2).position(|pair| pair == b"\r\n"));
        let len = found.map(|at| start + at);
        if len.map_or(input.len(), |len| len + 2) > MAX_LINE {
            return Err(SaslError::LineTooLong { limit: MAX_LINE });
        }
        let Some(len) = len else {
            // The last byte may be the first half of an end.
            self.searched = input.len().saturating_sub(1);
            return Ok(None);
        };
        if self.taken == MAX_LINES {
            return Err(SaslError::TooManyLines { limit: MAX_LINES });
        }
        self.taken += 1;
        self.searched = 0;
        let line = input.split_to(len).freeze();
        input.advance(2);
        Ok(Some(line))
    }
}

/// The command of a line and its arguments, without the blanks between and after them.
pub(super) fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let at = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let (command, arguments) = line.split_at(at);
    (command, trim(arguments))
}

/// Without blanks at either end.
fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] | [rest @ .., b' '] = text {
        text = rest;
    }
    text
}

/// Appends a line.
pub(super) fn put(parts: &[&[u8]], out: &mut Vec<u8>) {
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}
