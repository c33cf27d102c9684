//! Requests whose head is, but for the length of the body, one that came before on their connection, and
//! what is answered to them.
//!
//! A caller who keeps a connection sends the same head again and again. What the HTTP library and the
//! user of this layer made of it the first time holds for each repetition, so these are compared and not parsed, and
//! their responses are written as the library writes them.
//!
//! State: up to `HEADS` heads of one connection, as their bytes, the place of the length in them and what the
//! user made of them; and which gives way to the next one. `Server` keeps one after the library has taken a
//! request, looks for a repetition before it asks the library, and forgets all of them when its user says so.
//!
//! Invariants:
//!
//! * Only a head that the library took is kept, and only one without anything that has the library or the
//!   user act beyond it: expectations, upgrades, codings, a user and a password, the end of the
//!   connection. The length stands in it once.
//! * A repetition is looked for only where a head would begin, and taken only with its whole body; all else
//!   is the library's.
//! * The length of a repetition is compared with the bound before its body is taken.
//! * Responses are written octet for octet as the library writes them; a test in `loopback` compares them.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, Version};
use httpdate::HttpDate;
use std::cell::RefCell;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of a head that is worth keeping.
pub(crate) const MAX_HEAD: usize = 1 << 10;

/// Heads that are kept for one connection: callers have a few operations that they call in turn.
const HEADS: usize = 4;

/// Digits of a length that is understood here.
const MAX_DIGITS: usize = 10;

/// The heads of a connection's requests.
pub(crate) struct HeadCache<K> {
    kept: Vec<(CachedHead, Arc<K>)>,
    /// Which gives way to the next one.
    next: usize,
}

/// A head, and where the length of the body stands in it.
struct CachedHead {
    head: Box<[u8]>,
    /// The digits alone: what stands around them must be the same in a repetition.
    digits: std::ops::Range<usize>,
}

impl<K> HeadCache<K> {
    pub(crate) fn new() -> Self {
        Self { kept: Vec::new(), next: 0 }
    }

    /// Keeps the head that has just come with what it means, if requests with it can be understood without the library.
    pub(crate) fn keep(&mut self, parts: &Parts, head: &[u8], known: impl FnOnce() -> K) {
        let whole = |kept: &CachedHead| kept.measure(head).is_some_and(|(length, _)| length == head.len());
        if let Some((_, kept)) = self.kept.iter_mut().find(|(kept, _)| whole(kept)) {
            // Its body came in parts.
            match Arc::get_mut(kept) {
                Some(kept) => *kept = known(),
                None => *kept = Arc::new(known()),
            }
        } else if let Some(cached) = CachedHead::new(parts, head) {
            let kept = (cached, Arc::new(known()));
            match self.kept.get_mut(self.next) {
                Some(oldest) => *oldest = kept,
                None => self.kept.push(kept),
            }
            self.next = (self.next + 1) % HEADS;
        }
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.next = 0;
    }

    /// Takes a request with a known head and a body of at most so many bytes from the front of the input, if it is there whole: what
    /// the head means, and the body.
    pub(crate) fn take(&self, input: &mut BytesMut, most: u64) -> Option<(Arc<K>, Bytes)> {
        let (known, head, body) = self.kept.iter().find_map(|(kept, known)| {
            let (head, body) = kept.measure(input)?;
            Some((known, head, body))
        })?;
        if body as u64 > most || input.len() - head < body {
            return None;
        }
        input.advance(head);
        Some((Arc::clone(known), input.split_to(body).freeze()))
    }
}

impl CachedHead {
    fn new(parts: &Parts, head: &[u8]) -> Option<Self> {
        let headers = &parts.headers;
        // Each of these means something for one request only.
        let acts = [&AUTHORIZATION, &CONTENT_ENCODING, &EXPECT, &TRANSFER_ENCODING, &UPGRADE];
        if head.is_empty()
            || parts.method != Method::POST
            || parts.version != Version::HTTP_11
            || acts.into_iter().any(|name| headers.contains_key(name))
            || headers
                .get_all(CONNECTION)
                .iter()
                .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
            || headers.get_all(CONTENT_LENGTH).iter().count() != 1
        {
            return None;
        }
        let digits = digits(head)?;
        Some(Self { head: head.into(), digits })
    }

    /// The lengths of head and body of a request that begins with this head.
    fn measure(&self, input: &[u8]) -> Option<(usize, usize)> {
        let (before, after) = (self.head.get(..self.digits.start)?, self.head.get(self.digits.end..)?);
        let rest = input.strip_prefix(before)?;
        let count = rest.iter().take(MAX_DIGITS + 1).take_while(|octet| octet.is_ascii_digit()).count();
        let (digits, rest) = rest.split_at_checked(count).filter(|_| (1..=MAX_DIGITS).contains(&count))?;
        if !rest.starts_with(after) {
            return None;
        }
        // Ten digits do not overflow 64 bits.
        let length = digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        Some((before.len() + count + after.len(), usize::try_from(length).ok()?))
    }
}

/// Where the length of the body stands in a head that the library took, and that says it once.
fn digits(head: &[u8]) -> Option<std::ops::Range<usize>> {
    let name = b"content-length:";
    let mut start = 0;
    for line in head.split_inclusive(|octet| *octet == b'\n') {
        if line.get(..name.len()).is_some_and(|given| given.eq_ignore_ascii_case(name)) {
            let value = line.get(name.len()..)?;
            let blank = value.iter().take_while(|octet| matches!(octet, b' ' | b'\t')).count();
            let count = value.iter().skip(blank).take_while(|octet| octet.is_ascii_digit()).count();
            let start = start + name.len() + blank;
            return (1..=MAX_DIGITS).contains(&count).then_some(start..start + count);
        }
        start += line.len();
    }
    None
}

/// Writes the head of a response with these headers whose body has this length, with what the library adds to each response.
pub(crate) fn put_head<'h>(
    out: &mut Vec<u8>,
    status: StatusCode,
    headers: impl IntoIterator<Item = (&'h str, &'h HeaderValue)>,
    length: usize,
) {
    put_status(out, status);
    for (name, value) in headers {
        put_header(out, name, value.as_bytes());
    }
    out.extend_from_slice(b"content-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\ndate: ");
    DATE.with_borrow_mut(|date| date.put(out));
    out.extend_from_slice(b"\r\n\r\n");
}

/// The status line; nearly all are 200.
fn put_status(out: &mut Vec<u8>, status: StatusCode) {
    if status == StatusCode::OK {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or("<none>").as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn put_header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

thread_local! {
    static DATE: RefCell<Date> = RefCell::default();
}

/// The time as headers say it, as long as it holds: a second.
#[derive(Default)]
struct Date {
    text: Vec<u8>,
    /// Seconds since 1970.
    second: u64,
}

impl Date {
    fn put(&mut self, out: &mut Vec<u8>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if self.text.is_empty() || self.second != now {
            self.text.clear();
            // Nothing can fail in memory.
            let _ = write!(self.text, "{}", HttpDate::from(UNIX_EPOCH + Duration::from_secs(now)));
            self.second = now;
        }
        out.extend_from_slice(&self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    const HEAD: &str = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Type: text/xml\r\n\r\n";

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::post("/x").header("content-length", "3");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn keep(parts: &Parts, head: &str) -> bool {
        let mut cache = HeadCache::new();
        cache.keep(parts, head.as_bytes(), || 0);
        !cache.kept.is_empty()
    }

    fn take(cache: &HeadCache<usize>, input: &str) -> Option<(usize, Bytes, usize)> {
        let mut input = BytesMut::from(input.as_bytes());
        cache.take(&mut input, 100).map(|(known, body)| (*known, body, input.len()))
    }

    #[test]
    fn a_head_is_known_again_whatever_the_length_of_its_body() {
        let mut cache = HeadCache::new();
        cache.keep(&parts(&[]), HEAD.as_bytes(), || 7);
        for length in [0, 1, 9, 10, 99, 100] {
            let body = "b".repeat(length);
            let head = HEAD.replace(": 3", &format!(": {length}"));
            let (known, came, left) = take(&cache, &format!("{head}{body}POST")).unwrap();
            assert_eq!((known, &came[..], left), (7, body.as_bytes(), 4));
            if length > 0 {
                assert!(take(&cache, &format!("{head}{}", &body[1..])).is_none(), "it is not there whole");
            }
        }
        let longer = HEAD.replace(": 3", ": 101");
        assert!(take(&cache, &format!("{longer}{}", "b".repeat(101))).is_none(), "more than is allowed");
    }

    #[test]
    fn nothing_else_is_taken_for_it() {
        let mut cache = HeadCache::new();
        cache.keep(&parts(&[]), HEAD.as_bytes(), || 0);
        for other in [
            HEAD.replace("/x", "/y"),
            HEAD.replace("Host", "host"),
            HEAD.replace(": 3", ": "),
            HEAD.replace(": 3", ": +3"),
            HEAD.replace(": 3", ": 3 "),
            HEAD.replace(": 3", ": 3, 3"),
            HEAD.replace(": 3", ": 00000000003"),
            HEAD.replace(": 3", ": 99999999999999999999"),
            HEAD.replace("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\n"),
            HEAD.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"),
            HEAD.replace("\r\n\r\n", "\r\n\n"),
            HEAD.replace("HTTP/1.1", "HTTP/1.0"),
        ] {
            assert!(take(&cache, &format!("{other}abcdef")).is_none(), "{other}");
        }
        assert!((0..HEAD.len()).all(|end| take(&cache, &HEAD[..end]).is_none()));
    }

    #[test]
    fn what_the_library_acts_on_is_left_to_it() {
        for (name, value) in [
            ("expect", "100-continue"),
            ("upgrade", "h2c"),
            ("connection", "close"),
            ("connection", "keep-alive, upgrade"),
            ("transfer-encoding", "chunked"),
            ("content-encoding", "gzip"),
            ("authorization", "Basic YTpi"),
            ("content-length", "3"),
        ] {
            assert!(!keep(&parts(&[(name, value)]), HEAD), "{name}");
        }
        assert!(keep(&parts(&[("connection", "Keep-Alive")]), HEAD));
        assert!(!keep(&parts(&[]), ""));
        let mut older = parts(&[]);
        older.version = Version::HTTP_10;
        assert!(!keep(&older, HEAD));
        let mut page = parts(&[]);
        page.method = Method::GET;
        assert!(!keep(&page, HEAD));
    }

    #[test]
    fn the_newest_few_are_kept() {
        let mut cache = HeadCache::new();
        let head = |at: usize| HEAD.replace("/x", &format!("/{at}"));
        for at in 0..HEADS + 2 {
            cache.keep(&parts(&[]), head(at).as_bytes(), || at);
        }
        for at in 0..HEADS + 2 {
            let found = take(&cache, &format!("{}abc", head(at))).map(|(known, ..)| known);
            assert_eq!(found, (at >= 2).then_some(at));
        }
        cache.keep(&parts(&[]), head(5).replace(": 3", ": 44").as_bytes(), || 55);
        assert_eq!(
            take(&cache, &format!("{}abc", head(5))).map(|(known, ..)| known),
            Some(55),
            "the same head"
        );
        assert_eq!(cache.kept.len(), HEADS);
        cache.clear();
        assert!(take(&cache, &format!("{}abc", head(5))).is_none());
    }
}
