//! Heads that have come before on their connection, but for the length of the body and the date, and what is written in answer to
//! known requests.
//!
//! A caller who keeps a connection sends the same head again and again, and so does who answers. What the HTTP library and the user of
//! this layer made of it the first time holds for each repetition, so these are compared and not parsed, and what is sent is written as
//! the library writes it.
//!
//! State: up to `HEADS` heads of one connection, as their bytes, the places of length and date in them, and what the
//! user made of them; and which gives way to the next one. `Server` and `Client` keep one after the library has taken a
//! message, and look for a repetition before they ask the library.
//!
//! Invariants:
//!
//! * Only a head that the library took is kept, and only one without anything that has the library or the
//!   user act beyond it (`is_plain_request`, `is_plain_response`): expectations, upgrades, codings, a user and a password, the end of the
//!   connection. The length stands in it once.
//! * A repetition is looked for only where a head would begin, and taken only with its whole body; all else
//!   is the library's.
//! * The length of a repetition is compared with the bound before its body is taken.
//! * Heads are written octet for octet as the library writes them; tests in `loopback` and `repetition` compare them.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, Version, request, response};
use httpdate::HttpDate;
use std::cell::RefCell;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of a head that is worth keeping.
pub(crate) const MAX_HEAD: usize = 1 << 10;

/// Heads that are kept for one connection: callers have a few operations that they call in turn.
const HEADS: usize = 4;

/// Digits of a length that is understood here.
const MAX_DIGITS: usize = 10;

/// Octets of a date as HTTP writes it (RFC 9110 §5.6.7).
const DATE_LEN: usize = "Sun, 06 Nov 1994 08:49:37 GMT".len();

/// The heads that have come on a connection.
pub(crate) struct HeadCache<K> {
    kept: Vec<(CachedHead, Arc<K>)>,
    /// Which gives way to the next one.
    next: usize,
}

/// A head, and what of it may differ.
struct CachedHead {
    head: Box<[u8]>,
    pieces: Vec<Piece>,
}

/// A piece of a head.
enum Piece {
    /// It must be the same in a repetition.
    Same(Range<usize>),
    /// The length of the body: the digits alone.
    Length,
    /// A date, of `DATE_LEN` octets.
    Date,
}

/// What an input begins with.
pub(crate) enum CacheLookup<K> {
    /// A known head with its whole body: what the head means, and the body.
    Whole(Arc<K>, Bytes),
    /// A known head, and so many bytes of its body are missing.
    Missing(usize),
    /// Something else, or a body that is too long.
    Other,
}

impl<K> HeadCache<K> {
    pub(crate) fn new() -> Self {
        Self { kept: Vec::new(), next: 0 }
    }

    /// Keeps a plain head that has just come, with what it means.
    pub(crate) fn keep(&mut self, head: &[u8], known: impl FnOnce() -> K) {
        let whole = |kept: &CachedHead| kept.measure(head).is_some_and(|(length, _)| length == head.len());
        if let Some((_, kept)) = self.kept.iter_mut().find(|(kept, _)| whole(kept)) {
            // Its body came in parts.
            match Arc::get_mut(kept) {
                Some(kept) => *kept = known(),
                None => *kept = Arc::new(known()),
            }
        } else if let Some(cached) = CachedHead::new(head) {
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

    /// Takes a message with a known head and a body of at most so many bytes from the front of the input, if it is there whole.
    pub(crate) fn take(&self, input: &mut BytesMut, most: u64) -> CacheLookup<K> {
        let found = self.kept.iter().find_map(|(kept, known)| {
            let (head, body) = kept.measure(input)?;
            Some((known, head, body))
        });
        let Some((known, head, body)) = found.filter(|(.., body)| *body as u64 <= most) else {
            return CacheLookup::Other;
        };
        let came = input.len() - head;
        if came < body {
            return CacheLookup::Missing(body - came);
        }
        input.advance(head);
        CacheLookup::Whole(Arc::clone(known), input.split_to(body).freeze())
    }
}

/// Whether requests with this head can be understood without the library.
pub(crate) fn is_plain_request(parts: &request::Parts) -> bool {
    // Each of these means something for one request only.
    let acts = [&AUTHORIZATION, &CONTENT_ENCODING, &EXPECT];
    parts.method == Method::POST
        && parts.version == Version::HTTP_11
        && !acts.into_iter().any(|name| parts.headers.contains_key(name))
        && has_length_alone(&parts.headers)
}

/// Whether responses with this head to a POST can be understood without the library. 204 and 304 have no body whatever length they
/// say (RFC 9112 §6.3).
pub(crate) fn is_plain_response(parts: &response::Parts) -> bool {
    let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&parts.status);
    parts.version == Version::HTTP_11
        && !parts.status.is_informational()
        && !bodiless
        && has_length_alone(&parts.headers)
}

/// Whether nothing but a length says where a message ends, and the connection goes on behind it.
fn has_length_alone(headers: &HeaderMap) -> bool {
    let mut persistence = headers.get_all(CONNECTION).iter();
    !headers.contains_key(TRANSFER_ENCODING)
        && !headers.contains_key(UPGRADE)
        && persistence.all(|value| value.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
        && headers.get_all(CONTENT_LENGTH).iter().count() == 1
}

impl CachedHead {
    /// A head that the library took, and that says the length of the body once.
    fn new(head: &[u8]) -> Option<Self> {
        let (mut pieces, mut same, mut start) = (Vec::new(), 0, 0);
        for line in head.split_inclusive(|octet| *octet == b'\n') {
            let place = value(line, b"content-length:").and_then(|(before, value)| {
                let digits = value.iter().take_while(|octet| octet.is_ascii_digit()).count();
                (digits > 0).then_some((before, digits, Piece::Length))
            });
            let place = place.or_else(|| {
                let (before, value) = value(line, b"date:")?;
                (value.strip_suffix(b"\r\n")?.len() == DATE_LEN).then_some((before, DATE_LEN, Piece::Date))
            });
            if let Some((before, len, piece)) = place {
                pieces.push(Piece::Same(same..start + before));
                pieces.push(piece);
                same = start + before + len;
            }
            start += line.len();
        }
        pieces.push(Piece::Same(same..head.len()));
        let lengths = pieces.iter().filter(|piece| matches!(piece, Piece::Length)).count();
        (lengths == 1).then(|| Self { head: head.into(), pieces })
    }

    /// The lengths of head and body of a message that begins with this head.
    fn measure(&self, input: &[u8]) -> Option<(usize, usize)> {
        let (mut rest, mut length) = (input, 0);
        for piece in &self.pieces {
            rest = match piece {
                Piece::Same(same) => rest.strip_prefix(self.head.get(same.clone())?)?,
                Piece::Length => {
                    let digits = rest.iter().take(MAX_DIGITS + 1).take_while(|octet| octet.is_ascii_digit());
                    let count = digits.count();
                    let (digits, rest) =
                        rest.split_at_checked(count).filter(|_| (1..=MAX_DIGITS).contains(&count))?;
                    // Ten digits do not overflow 64 bits.
                    length = digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
                    rest
                }
                Piece::Date => {
                    let (date, rest) = rest.split_first_chunk::<DATE_LEN>()?;
                    date.iter().all(|octet| matches!(octet, b' '..=b'~')).then_some(rest)?
                }
            };
        }
        Some((input.len() - rest.len(), usize::try_from(length).ok()?))
    }
}

/// The value of the header with this name, which ends with a colon, if the line has it: where it begins, and what follows.
fn value<'l>(line: &'l [u8], name: &[u8]) -> Option<(usize, &'l [u8])> {
    let (given, value) = line.split_at_checked(name.len())?;
    let blank = value.iter().take_while(|octet| matches!(octet, b' ' | b'\t')).count();
    given.eq_ignore_ascii_case(name).then_some((name.len() + blank, value.get(blank..)?))
}

/// The head of POST requests that differ in nothing but their bodies. It is made once for all of them.
#[derive(Debug)]
pub struct PostHead {
    parts: request::Parts,
    /// All that stands before the length of the body.
    text: Box<[u8]>,
}

impl PostHead {
    /// The head of requests to this address with these headers, which do not say where the body ends.
    pub fn new(uri: Uri, headers: HeaderMap) -> Self {
        let mut request = Request::new(());
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (Method::POST, uri, headers);
        let (parts, ()) = request.into_parts();
        let mut text = b"POST ".to_vec();
        text.extend_from_slice(parts.uri.path_and_query().map_or("/", |path| path.as_str()).as_bytes());
        text.extend_from_slice(b" HTTP/1.1\r\n");
        for (name, value) in &parts.headers {
            put_header(&mut text, name.as_str(), value.as_bytes());
        }
        text.extend_from_slice(b"content-length: ");
        Self { parts, text: text.into() }
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// The same, as the library takes it.
    pub(crate) fn parts(&self) -> request::Parts {
        self.parts.clone()
    }

    /// Writes the head of a request whose body has this length.
    pub(crate) fn put(&self, out: &mut Vec<u8>, length: usize) {
        out.reserve(self.text.len() + MAX_DIGITS + 4);
        out.extend_from_slice(&self.text);
        out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
    }
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
    put_length(out, length);
    out.extend_from_slice(b"date: ");
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

fn put_length(out: &mut Vec<u8>, length: usize) {
    put_header(out, "content-length", itoa::Buffer::new().format(length).as_bytes());
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

    const HEAD: &str = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Type: text/xml\r\n\r\n";

    fn parts(headers: &[(&str, &str)]) -> request::Parts {
        let mut request = Request::post("/x").header("content-length", "3");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn response(status: u16, headers: &[(&str, &str)]) -> response::Parts {
        let mut response = http::Response::builder().status(status).header("content-length", "3");
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        response.body(()).unwrap().into_parts().0
    }

    fn take(cache: &HeadCache<usize>, input: &str) -> Option<(usize, Bytes, usize)> {
        let mut input = BytesMut::from(input.as_bytes());
        match cache.take(&mut input, 100) {
            CacheLookup::Whole(known, body) => Some((*known, body, input.len())),
            CacheLookup::Missing(_) | CacheLookup::Other => None,
        }
    }

    #[test]
    fn a_head_is_known_again_whatever_the_length_of_its_body() {
        let mut cache = HeadCache::new();
        cache.keep(HEAD.as_bytes(), || 7);
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
        cache.keep(HEAD.as_bytes(), || 0);
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
    fn a_head_is_known_again_whatever_its_date() {
        let head = |date: &str, length: usize| {
            format!(
                "HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: {length}\r\nX: y\r\n\r\n{}",
                "b".repeat(length)
            )
        };
        let (before, after) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Mon, 07 Nov 1994 18:49:59 GMT");
        let mut cache = HeadCache::new();
        let whole = head(before, 2);
        cache.keep(whole.trim_end_matches('b').as_bytes(), || 7);
        assert_eq!(
            take(&cache, &head(after, 11)).map(|(known, body, left)| (known, body.len(), left)),
            Some((7, 11, 0))
        );
        for other in [
            "Mon, 07 Nov 1994 18:49:59 GM",
            "Mon, 07 Nov 1994 18:49:59 GMT ",
            "Mon, 07 Nov 1994 18:49:5\r\nGMT",
        ] {
            assert!(take(&cache, &head(other, 2)).is_none(), "{other}");
        }
        // What is no date of this form is compared as all else is.
        let mut cache = HeadCache::new();
        cache.keep(head("yesterday", 0).as_bytes(), || 8);
        assert!(take(&cache, &head("yesterday", 3)).is_some());
        assert!(take(&cache, &head("tomorrow!", 3)).is_none());
    }

    #[test]
    fn a_head_that_says_its_length_twice_or_never_is_not_kept() {
        for head in [
            "",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\ncontent-length: 3\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        ] {
            let mut cache = HeadCache::new();
            cache.keep(head.as_bytes(), || 0);
            assert!(cache.kept.is_empty(), "{head}");
        }
    }

    #[test]
    fn so_many_bytes_of_a_body_are_missing() {
        let mut cache = HeadCache::new();
        cache.keep(HEAD.as_bytes(), || 0);
        for (length, came, missing) in [(3, 1, Some(2)), (100, 0, Some(100)), (101, 50, None), (3, 3, None)] {
            let input = format!("{}{}", HEAD.replace(": 3", &format!(": {length}")), "b".repeat(came));
            let mut input = BytesMut::from(input.as_bytes());
            let before = input.len();
            let found = match cache.take(&mut input, 100) {
                CacheLookup::Missing(bytes) => Some(bytes),
                CacheLookup::Whole(..) | CacheLookup::Other => None,
            };
            assert_eq!(found, missing);
            assert_eq!(input.len() == before, came < length, "only a whole body is taken");
        }
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
            assert!(!is_plain_request(&parts(&[(name, value)])), "{name}");
        }
        assert!(is_plain_request(&parts(&[("connection", "Keep-Alive")])));
        let mut older = parts(&[]);
        older.version = Version::HTTP_10;
        assert!(!is_plain_request(&older));
        let mut page = parts(&[]);
        page.method = Method::GET;
        assert!(!is_plain_request(&page));
        for (name, value) in [
            ("upgrade", "h2c"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("content-length", "3"),
        ] {
            assert!(!is_plain_response(&response(200, &[(name, value)])), "{name}");
        }
        for status in [100, 101, 204, 304] {
            assert!(!is_plain_response(&response(status, &[])), "{status}");
        }
        for status in [200, 202, 500] {
            assert!(is_plain_response(&response(status, &[("content-encoding", "gzip")])), "{status}");
        }
    }

    #[test]
    fn the_newest_few_are_kept() {
        let mut cache = HeadCache::new();
        let head = |at: usize| HEAD.replace("/x", &format!("/{at}"));
        for at in 0..HEADS + 2 {
            cache.keep(head(at).as_bytes(), || at);
        }
        for at in 0..HEADS + 2 {
            let found = take(&cache, &format!("{}abc", head(at))).map(|(known, ..)| known);
            assert_eq!(found, (at >= 2).then_some(at));
        }
        cache.keep(head(5).replace(": 3", ": 44").as_bytes(), || 55);
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
