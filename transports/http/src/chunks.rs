//! Where a body in chunks ends (RFC 9112 §7.1), so that the library gets no byte of the message behind it.
//!
//! The scanner sees each byte of such a body once, before the library does, and judges nothing: what is broken goes to the
//! library, which refuses it, and the connection ends.
//!
//! States (`Place`): in the line of a size, in data, in the line end behind data, in the lines behind the last chunk; `End`,
//! where the message is over; `Lost`, where it cannot be read any more. The last two are never left.
//!
//! Invariant: what is found is never less than the library takes for the message; a body that the library ends earlier is
//! broken, and its connection ends.

/// Digits of a size: as many as a number of 64 bits has.
const DIGITS: u32 = 16;

/// The scanner of one body.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// Bytes at the front of the input that were looked at and not yet read.
    ahead: usize,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the line that says how long the next chunk is: the size so far, its digits, and whether they are over.
    Size {
        bytes: u64,
        digits: u32,
        told: bool,
    },
    /// In a chunk: so much of it is missing.
    Data(u64),
    /// In the end of the line behind a chunk.
    Behind,
    /// In the lines behind the last chunk: whether anything but a carriage return is in the line, and whether that came last.
    /// To the library a line feed alone ends no line there.
    Trailer {
        filled: bool,
        returned: bool,
    },
    End,
    Lost,
}

impl Default for Place {
    fn default() -> Self {
        SIZE
    }
}

/// The start of a line with a size.
const SIZE: Place = Place::Size { bytes: 0, digits: 0, told: false };

/// The start of a line behind the last chunk.
const TRAILER: Place = Place::Trailer { filled: false, returned: false };

impl Chunks {
    /// Looks at what has arrived. Returns how many bytes belong to this body.
    pub(crate) fn scan(&mut self, input: &[u8]) -> usize {
        while let Some(rest) = input.get(self.ahead..).filter(|rest| !rest.is_empty()) {
            let taken = match self.place {
                Place::End => break,
                Place::Lost => rest.len(),
                Place::Data(left) => {
                    let taken = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    let left = left - taken as u64;
                    self.place = if left == 0 { Place::Behind } else { Place::Data(left) };
                    taken
                }
                place => {
                    self.place = rest.first().map_or(place, |byte| next(place, *byte));
                    1
                }
            };
            self.ahead += taken;
        }
        self.ahead
    }

    /// Bytes at the front of the input were read.
    pub(crate) fn taken(&mut self, n: usize) {
        self.ahead = self.ahead.saturating_sub(n);
    }
}

/// The place behind one byte that is none of a chunk's.
fn next(place: Place, byte: u8) -> Place {
    match (place, byte) {
        (Place::Size { digits: 0, .. }, b'\n') => Place::Lost,
        (Place::Size { bytes: 0, .. }, b'\n') => TRAILER,
        (Place::Size { bytes, .. }, b'\n') => Place::Data(bytes),
        (Place::Size { bytes, digits, told: false }, byte) => match char::from(byte).to_digit(16) {
            Some(_) if digits == DIGITS => Place::Lost,
            Some(digit) => {
                Place::Size { bytes: bytes << 4 | u64::from(digit), digits: digits + 1, told: false }
            }
            // Extensions and the carriage return say nothing here.
            None => Place::Size { bytes, digits, told: true },
        },
        (Place::Behind, b'\n') => SIZE,
        (Place::Behind, b'\r') => Place::Behind,
        (Place::Behind, _) => Place::Lost,
        (Place::Trailer { returned: false, .. }, b'\n') => Place::Lost,
        (Place::Trailer { filled: true, .. }, b'\n') => TRAILER,
        (Place::Trailer { .. }, b'\n') => Place::End,
        (Place::Trailer { filled, .. }, b'\r') => Place::Trailer { filled, returned: true },
        (Place::Trailer { .. }, _) => Place::Trailer { filled: true, returned: false },
        (place, _) => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of a body with a request behind it is found, where it comes in pieces of this size.
    fn found(all: &[u8], step: usize) -> usize {
        let (mut chunks, mut end, mut taken) = (Chunks::default(), 0, 0);
        for upto in (0..all.len()).step_by(step).map(|from| (from + step).min(all.len())) {
            end = taken + chunks.scan(&all[taken..upto]);
            // Every second time the library reads what was found.
            if upto % 2 == 0 {
                chunks.taken(end - taken);
                taken = end;
            }
        }
        end
    }

    #[test]
    fn bodies_in_chunks_end_where_they_end_however_they_arrive() {
        for body in [
            &b"0\r\n\r\n"[..],
            b"3\r\nabc\r\n0\r\n\r\n",
            b"3\r\n\r\n0\r\n00A;x=\"y\"\r\n0\r\n\r\n0\r\n\r\n\r\n000\r\nA: b\r\nC: d\r\n\r\n",
        ] {
            let all = [body, b"POST / HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
            for step in [1, 2, 3, 7, all.len()] {
                assert_eq!(found(&all, step), body.len(), "{} in steps of {step}", body.escape_ascii());
            }
        }
    }

    #[test]
    fn what_is_broken_goes_to_the_library_whole() {
        for body in
            [&b"\r\nabc"[..], b"11111111111111111\r\nabc", b"1\r\nabc\r\n0\r\n\r\n", b"0\r\nA: b\n\r\nC"]
        {
            assert_eq!(found(body, 2), body.len(), "{}", body.escape_ascii());
        }
    }
}
