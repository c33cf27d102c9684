//! Identifiers of messages: `urn:uuid:` and a UUID, which binary XML writes as 16 bytes in the order of a GUID.
//!
//! A channel does not keep a table of the identifiers that it has sent: an identifier is a random base plus
//! the number of the call, so an answer's `RelatesTo` says by itself which call it is of, or that it is of
//! none of this channel's.

use everywire_model::CallId;

/// Length of a UUID as text.
pub(super) const UUID: usize = 36;
/// What stands before it.
pub(super) const URN: &str = "urn:uuid:";

/// Where the two digits of each byte of a GUID stand in its text: the first three groups are little-endian.
/// The other two groups stand in the text as they do in the bytes.
const PLACES: [usize; 16] = [6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34];
/// Where the dashes stand.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// The digits of each byte.
/// Each answer writes sixteen of them: a table is faster than computing two digits.
const DIGITS: [[u8; 2]; 256] = {
    let digits = *b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    table
};

/// What a digit of lower case stands for.
const VALUES: [u8; 256] = {
    let mut table = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        table[DIGITS[value][1] as usize] = value as u8;
        value += 1;
    }
    table
};
/// Any bit above the low four marks it: `parse` looks for one in all digits together.
const NO_DIGIT: u8 = 0xff;

/// How a message identifies itself, in the notation it came in: answers relate to it in the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum MessageId {
    /// A GUID: in binary form a record of its own, in text the usual notation.
    Unique([u8; 16]),
    /// Any other text.
    /// In binary form that is also a GUID that came as text.
    Text(Box<str>),
}

impl MessageId {
    /// Bytes that it takes up as text, if it is no GUID.
    /// What a session that keeps identifiers counts against its bound.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Unique(guid) => guid.len(),
            Self::Text(text) => text.len(),
        }
    }

    /// From text: only what [`put`] would write again becomes a GUID.
    pub(super) fn of_text(text: &str) -> Self {
        match text.strip_prefix(URN).and_then(|uuid| parse(uuid.as_bytes())) {
            Some(guid) => Self::Unique(guid),
            None => Self::Text(text.into()),
        }
    }

    /// The GUID, in whatever notation.
    pub(super) fn guid(&self) -> Option<[u8; 16]> {
        match self {
            Self::Unique(guid) => Some(*guid),
            // Digits may be of either case in a text.
            Self::Text(text) => {
                let (urn, uuid) = text.split_at_checked(URN.len())?;
                let uuid = uuid.to_ascii_lowercase();
                if urn.eq_ignore_ascii_case(URN) { parse(uuid.as_bytes()) } else { None }
            }
        }
    }
}

/// Appends a GUID as text, without `urn:uuid:`.
#[inline]
pub(super) fn put(guid: &[u8; 16], out: &mut Vec<u8>) {
    let mut text = [b'-'; UUID];
    for index in 0..16 {
        let [high, low] = DIGITS[usize::from(guid[index])];
        text[PLACES[index]] = high;
        text[PLACES[index] + 1] = low;
    }
    out.extend_from_slice(&text);
}

/// A GUID as addressing writes it in text form.
pub(super) fn urn(guid: &[u8; 16]) -> String {
    let mut text = URN.as_bytes().to_vec();
    put(guid, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Reads a GUID from its text, in lower case.
#[inline]
pub(super) fn parse(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; UUID] = text.try_into().ok()?;
    let mut guid = [0; 16];
    // No branch for each digit: whatever is none shows at the end.
    let mut wrong = 0;
    for index in 0..16 {
        let high = VALUES[usize::from(text[PLACES[index]])];
        let low = VALUES[usize::from(text[PLACES[index] + 1])];
        wrong |= high | low;
        guid[index] = high << 4 | low & 15;
    }
    let dashes = DASHES.iter().all(|at| text[*at] == b'-');
    (wrong < 16 && dashes).then_some(guid)
}

/// A fresh random GUID (version 4).
pub(super) fn random() -> [u8; 16] {
    let mut guid = [0; 16];
    // Without randomness identifiers are merely predictable; the peer knows them anyway.
    if getrandom::fill(&mut guid).is_err() {
        guid = u128::from(std::process::id()).to_le_bytes();
    }
    guid[7] = guid[7] & 0x0f | 0x40;
    guid[8] = guid[8] & 0x3f | 0x80;
    guid
}

/// Identifiers of one channel: a random base, and a counter in the last six bytes.
#[derive(Debug)]
pub(super) struct Ids {
    /// Random for each channel, so that the identifiers of two channels do not meet.
    head: [u8; 10],
    tail: u64,
}

/// 48 bits: more calls than a channel ever makes.
const TAIL: u64 = (1 << 48) - 1;

impl Ids {
    pub(super) fn new() -> Self {
        let guid = random();
        let (head, tail) = split(&guid);
        Self { head, tail }
    }

    /// The identifier of a call.
    #[inline]
    pub(super) fn of(&self, id: CallId) -> [u8; 16] {
        let tail = self.tail.wrapping_add(id.0) & TAIL;
        let mut guid = [0; 16];
        guid[..10].copy_from_slice(&self.head);
        guid[10..].copy_from_slice(&tail.to_be_bytes()[2..]);
        guid
    }

    /// The call of an identifier, if it is one of this channel's.
    #[inline]
    pub(super) fn call(&self, guid: &[u8; 16]) -> Option<CallId> {
        let (head, tail) = split(guid);
        if head == self.head { Some(CallId(tail.wrapping_sub(self.tail) & TAIL)) } else { None }
    }
}

/// The parts of an identifier: ten bytes of the channel, six of the counter, big-endian.
#[inline]
fn split(guid: &[u8; 16]) -> ([u8; 10], u64) {
    let mut head = [0; 10];
    head.copy_from_slice(&guid[..10]);
    let mut tail = [0; 8];
    tail[2..].copy_from_slice(&guid[10..]);
    (head, u64::from_be_bytes(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_reads_as_microsoft_writes_it() {
        // From a capture: the record's bytes and the URN.
        let guid = *b"\xd3\x37\x41\xd5\x83\x5d\x3d\x47\x97\x76\xe0\xc3\x72\x73\xd0\xb1";
        let mut text = Vec::new();
        put(&guid, &mut text);
        assert_eq!(text, b"d54137d3-5d83-473d-9776-e0c37273d0b1");
        assert_eq!(parse(&text), Some(guid));
        assert_eq!(parse(b"d54137d3-5d83-473d-9776-e0c37273d0bX"), None);
        assert_eq!(parse(b"d54137d3-5d83-473d-9776+e0c37273d0b1"), None);
        assert_eq!(parse(b"short"), None);
    }

    #[test]
    fn text_that_would_not_come_back_the_same_stays_text() {
        let id = MessageId::of_text("urn:uuid:D54137D3-5d83-473d-9776-e0c37273d0b1");
        assert!(matches!(id, MessageId::Text(_)));
        assert!(id.guid().is_some());
        assert!(matches!(MessageId::of_text("uuid:1"), MessageId::Text(_)));
        assert_eq!(MessageId::of_text("uuid:1").guid(), None);
    }

    #[test]
    fn calls_are_found_by_their_identifiers() {
        let ids = Ids::new();
        for id in [0, 1, 255, 1 << 20] {
            assert_eq!(ids.call(&ids.of(CallId(id))), Some(CallId(id)));
        }
        assert_eq!(ids.call(&random()), None);
    }
}
