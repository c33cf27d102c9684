//! The accepting half of an HTTP/1.1 connection: requests come out whole, answers go in.
//!
//! Its user feeds it what came ([`Server::feed`]), takes requests until there is none ([`Server::next`]), and answers each
//! ([`Server::respond`]), at once or later, then asks for the next. What has to go stands in [`Server::transmit`].
//!
//! States: *between* requests; *arriving*, from the head of a request until its body is whole; *busy*,
//! until its response is written; *over*, after the last response or what could not be understood. A
//! request with a known head (`head_cache`) goes from *between* to *busy* (*repeating*) and back
//! without the library, whose own state stays *between*; any other request is the library's from its first
//! byte on (`request_slot`). While it is *resting* the peer does not read its answers, so nothing more is taken.
//!
//! Invariants:
//!
//! * One request at a time, and responses in the order of requests.
//! * The library reads no byte behind the message that it is in, so that between requests it holds none,
//!   and a repetition may be taken from the input without asking it.
//! * A head that says in two ways where its message ends, or does not name one host, is refused before its body is
//!   looked at, and the connection with it.
//! * A body is refused when its length, announced or reached, exceeds the bound; so is one that the door
//!   does not let in.
//! * A head must be there after `HEAD_TIME`, a body must come and answers be read at `BODY_RATE`, an idle connection ends: no
//!   peer holds a connection for nothing. A connection whose answer is being read is not idle.
//! * What waits is bounded: answers by `UNREAD`, further requests by `MAX_PIPELINED`.
//! * Whatever breaks the connection is told to the peer first: a breach comes behind the response that says so.
//!   Only who does not read its answers (`SlowReader`) would not read that either.

use super::body::Outgoing;
use super::head_cache::{self, CacheLookup, HeadCache};
use super::heads::{Heads, MAX_HEAD};
use super::pipe::{End, Stage, WakeFlag};
use super::request_slot::{RequestFilter, RequestSlot};
use super::violations::ProtocolError;
use bytes::{Bytes, BytesMut};
use everywire_model::SendBuffer;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How long the head of a request may take. A head that takes longer comes from an attack (slow requests),
/// or over a line that is of no use.
pub const HEAD_TIME: Duration = Duration::from_secs(10);

/// How long answers may wait before this side looks at how much of them was read, at least.
const READ_TIME: Duration = Duration::from_secs(30 * HEAD_TIME.as_secs());

/// Bytes of a body that have to arrive in each second, once [`HEAD_TIME`] has passed, and of answers that have to be read.
pub const BODY_RATE: usize = 1 << 10;

/// Bytes of further requests that may wait while one is answered.
/// Beyond it the peer breaks the connection's rules: nothing of HTTP makes a client send so much ahead.
pub const MAX_PIPELINED: usize = 1 << 20;

/// Bytes of answers that may wait for a peer that does not read before its next request is looked at.
const UNREAD: usize = 64 << 10;

/// What the user of a server allows its peer.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of a body.
    pub body: u64,
    /// How long the connection may be quiet between requests.
    pub idle: Duration,
    /// What whoever sends a larger body is told.
    pub too_large: fn(u64) -> String,
}

/// A request, whole.
// It is taken apart at once, and the usual one must not be allocated.
#[allow(clippy::large_enum_variant)]
pub enum ServerEvent<K> {
    /// Its head and its body.
    New(Parts, Bytes),
    /// But for the length of the body its head is a known one: what was kept of it, and the body.
    Known(Arc<K>, Bytes),
}

/// The accepting half of a connection. `K` is what its user keeps of heads that may come again.
pub struct Server<K> {
    connection: Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>,
    end: End,
    desk: RequestSlot,
    bell: WakeFlag,
    /// `Ok`: it ended as it should.
    over: Option<Result<(), hyper::Error>>,
    bounds: Bounds,
    heads: HeadCache<K>,
    /// A request that the library has not seen waits for its response.
    repeating: bool,
    /// The library has nothing to do before more arrives.
    rests: bool,
    /// The user has a request, and has not answered it.
    asked: bool,
    /// The peer does not read its answers: nothing more is taken from it until it has.
    resting: bool,
    /// What the link is to send.
    out: SendBuffer,
    /// When something came or was answered last, or its answer was seen to be read.
    last: Instant,
    /// Bytes of answers that had not been read then, if they are more than may leave at once.
    unread: usize,
    /// Too little of them had been read when that was looked at.
    slow: bool,
    /// When the head or the body began that has not arrived whole.
    since: Option<(Instant, Part)>,
    /// Bytes, for the place of a violation.
    received: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Body,
}

impl<K> Server<K> {
    /// A connection whose requests keep to the bounds and pass the door.
    pub fn new(bounds: Bounds, door: Arc<RequestFilter>) -> Self {
        let end = End::default();
        end.pipe().stage = Stage::Head(Heads::default());
        let desk = RequestSlot::new(end.clone(), bounds);
        let at = desk.clone();
        // Half-closed connections are legal, and looking for the end of a busy one would cost a read for each call.
        let connection = Builder::new()
            .max_buf_size(2 * MAX_HEAD)
            .max_header_size(MAX_HEAD)
            .half_close(true)
            .serve_connection(end.clone(), service_fn(move |request| at.take(&*door, request)));
        Self {
            connection: Box::pin(connection),
            end,
            desk,
            bell: WakeFlag::new(),
            over: None,
            bounds,
            heads: HeadCache::new(),
            repeating: false,
            rests: false,
            asked: false,
            resting: false,
            out: SendBuffer::new(),
            last: Instant::now(),
            unread: 0,
            slow: false,
            since: None,
            received: 0,
        }
    }

    /// Takes what came; requests are taken with [`Server::next`] afterwards.
    #[inline]
    pub fn feed(&mut self, now: Instant, input: &mut BytesMut) {
        self.last = now;
        self.received += input.len() as u64;
        self.end.pipe().feed(input);
    }

    /// Gives the buffer back that was fed, once it is empty: the link has others for connections that wait.
    #[inline]
    pub fn give_back(&mut self, input: &mut BytesMut) {
        self.end.pipe().give_back(input);
    }

    /// The next request, if one is there whole. Without one, all that was answered is in [`Server::transmit`].
    ///
    /// # Errors
    /// The connection must end, once what says so to the peer was sent.
    pub fn next(&mut self, now: Instant) -> Result<Option<ServerEvent<K>>, ProtocolError> {
        if self.out.len() + self.end.pipe().output.len() > UNREAD {
            // What is left of a response is written when this goes on.
            self.resting = true;
        } else if let Some((known, body)) = self.repeated() {
            // What comes behind it has its own time.
            self.since = None;
            self.asked = true;
            return Ok(Some(ServerEvent::Known(known, body)));
        } else if !self.rests() {
            self.advance();
            if let Some(breach) = self.breach() {
                self.flush();
                return Err(breach);
            }
            let received = self.desk.papers().received.take();
            if let Some((parts, body)) = received {
                self.since = None;
                self.asked = true;
                return Ok(Some(ServerEvent::New(parts, body)));
            }
        }
        let bytes = self.end.pipe().input.len();
        let arriving = self.arriving().is_some();
        self.flush();
        if !self.out.is_empty() {
            // A call may take longer than the connection may be quiet.
            let unread = Some(self.out.len()).filter(|bytes| *bytes > UNREAD).unwrap_or_default();
            (self.last, self.unread, self.slow) = (now, unread, false);
        }
        if bytes > MAX_PIPELINED && !arriving && self.is_busy() {
            return Err(ProtocolError::Pipelined { bytes });
        }
        // Only the change counts: the time of a part goes on while it comes.
        let part = if arriving { Some(Part::Body) } else { self.is_in_head().then_some(Part::Head) };
        if self.since.map(|(_, known)| known) != part {
            self.since = part.map(|part| (now, part));
        }
        Ok(None)
    }

    /// Keeps the head of the request that came last with what it means, if requests with it can be understood without the
    /// library: they come as [`ServerEvent::Known`] from now on. They do not pass the [`RequestFilter`]: keep no head that it must judge each time.
    pub fn keep(&mut self, parts: &Parts, known: impl FnOnce() -> K) {
        if head_cache::is_plain_request(parts) {
            self.heads.keep(&self.end.pipe().head, known);
        }
    }

    /// Forgets all heads.
    pub fn forget(&mut self) {
        self.heads.clear();
    }

    /// Answers the request in hand with a body of one type and no other headers.
    #[inline]
    pub fn reply(&mut self, status: StatusCode, content_type: &HeaderValue, mut body: SendBuffer) {
        if !self.repeating {
            let mut response = Response::new(body.into_parts());
            *response.status_mut() = status;
            response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
            return self.respond(response);
        }
        let mut pipe = self.end.pipe();
        head_cache::put_head(pipe.output.flat(), status, [("content-type", content_type)], body.len());
        pipe.output.append(&mut body);
        drop(pipe);
        (self.repeating, self.asked) = (false, false);
    }

    /// Answers the request in hand. [`Server::next`] writes it.
    pub fn respond(&mut self, response: Response<Vec<Bytes>>) {
        self.asked = false;
        if self.repeating {
            return self.repeat(response);
        }
        // Of the response before this one nothing is written any more, also if the next request came with it.
        self.end.pipe().release();
        let response = response.map(|parts| Outgoing::new(parts, &self.end));
        self.desk.papers().response = Some(response);
        // The future that waits for it is polled whenever the connection is.
    }

    /// Answers the request in hand, and ends the connection.
    pub fn close(&mut self, mut response: Response<Vec<Bytes>>) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        self.respond(response);
        self.advance();
        self.flush();
    }

    /// What has to be sent.
    #[inline]
    pub fn transmit(&mut self) -> &mut SendBuffer {
        &mut self.out
    }

    /// Bytes that are missing of the body that is arriving.
    #[inline]
    pub fn wanted(&self) -> usize {
        self.arriving().map_or(0, |(_, missing)| missing)
    }

    /// Bytes that came, for the place of a violation.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that it holds.
    pub fn held(&self) -> usize {
        let pipe = self.end.pipe();
        let kept = pipe.input.len() + pipe.output.len();
        drop(pipe);
        kept + self.arriving().map_or(0, |(bytes, _)| bytes)
    }

    /// Whether the peer does not read its answers, so that nothing more is taken.
    #[inline]
    pub fn is_resting(&self) -> bool {
        self.resting
    }

    /// Whether the peer has read its answers, and was resting: [`Server::next`] goes on.
    #[inline]
    pub fn wakes(&mut self) -> bool {
        let wakes = self.resting && self.out.len() <= UNREAD;
        self.resting &= !wakes;
        wakes
    }

    /// Whether the connection is over, and all was sent.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.over.is_some() && self.out.is_empty()
    }

    /// When [`Server::expire`] is to be called: what is arriving comes too slowly then, or nothing has come for too long.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        match self.since {
            Some((since, Part::Head)) => Some(since + HEAD_TIME),
            Some((since, Part::Body)) => {
                let bytes = self.arriving().map_or(0, |(bytes, _)| bytes);
                Some(since + HEAD_TIME + Duration::from_secs((bytes / BODY_RATE) as u64))
            }
            // Nothing is arriving, or in hand.
            None if !self.asked => self.last.checked_add(self.patience()),
            None => None,
        }
    }

    /// Looks at the time. Whether the connection has been quiet for too long, and ends.
    ///
    /// # Errors
    /// A request arrives too slowly, and its peer is told; or answers are read too slowly, and nothing can be told behind them
    /// ([`ProtocolError::SlowReader`]). The connection must end.
    pub fn expire(&mut self, now: Instant) -> Result<bool, ProtocolError> {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return Ok(false);
        }
        let breach = match self.since {
            Some((_, Part::Body)) => {
                ProtocolError::SlowBody { bytes: self.arriving().map_or(0, |(bytes, _)| bytes) }
            }
            Some((_, Part::Head)) => ProtocolError::SlowHead { seconds: HEAD_TIME.as_secs() },
            None => return self.is_idle(now),
        };
        // The peer is told in the library's place: no response can be under way, since `since` is set only while a request comes.
        let text = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        self.end.pipe().output.flat().extend_from_slice(text.as_bytes());
        self.flush();
        self.since = None;
        Err(breach)
    }

    /// How long the connection may be quiet now. Linux wakes a writer when a third of its send buffer is free: 1.3 MiB leave at once
    /// then, which a reader of 5 KiB/s has read in five minutes, and nothing is seen of it before.
    fn patience(&self) -> Duration {
        if self.out.is_empty() { self.bounds.idle } else { self.bounds.idle.max(READ_TIME) }
    }

    /// Whether the connection is idle. One whose answers are read is not, and this look at them is the last one now. The operating
    /// system takes them in steps of megabytes: only two looks in turn tell that they are read too slowly.
    fn is_idle(&mut self, now: Instant) -> Result<bool, ProtocolError> {
        let (left, before) = (self.out.len(), self.unread);
        if left == 0 && before == 0 {
            return Ok(true);
        }
        let seconds = usize::try_from(self.patience().as_secs()).unwrap_or(usize::MAX);
        let slow = left > 0 && before.saturating_sub(left) < seconds.saturating_mul(BODY_RATE);
        if slow && self.slow {
            // Nothing can be told behind what is not read.
            return Err(ProtocolError::SlowReader { bytes: left });
        }
        (self.last, self.unread, self.slow) = (now, left, slow);
        Ok(false)
    }

    /// Lets the connection work on what has arrived and what was answered.
    fn advance(&mut self) {
        if self.repeating {
            return;
        }
        self.rests = false;
        // Whatever it was told before is seen to now.
        self.bell.rang();
        while self.over.is_none() {
            if let Poll::Ready(result) = self.connection.as_mut().poll(&mut self.bell.context()) {
                self.over = Some(result);
            }
            if !self.bell.rang() {
                break;
            }
        }
    }

    /// The next request, if its head is a known one.
    fn repeated(&mut self) -> Option<(Arc<K>, Bytes)> {
        if self.repeating || self.over.is_some() || self.desk.papers().busy {
            return None;
        }
        let mut pipe = self.end.pipe();
        if !matches!(&pipe.stage, Stage::Head(heads) if heads.is_fresh()) {
            return None;
        }
        let CacheLookup::Whole(known, body) = self.heads.take(&mut pipe.input, self.bounds.body) else {
            return None;
        };
        (self.repeating, self.rests) = (true, true);
        Some((known, body))
    }

    /// Whether nothing is to be done, since the last request was one with a known head and nothing came behind it.
    fn rests(&self) -> bool {
        self.rests && (self.repeating || self.end.pipe().input.is_empty())
    }

    /// Answers a request with a known head by more than a body and its type.
    fn repeat(&mut self, response: Response<Vec<Bytes>>) {
        let (head, body) = response.into_parts();
        let mut pipe = self.end.pipe();
        let length = body.iter().map(Bytes::len).sum();
        let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value));
        head_cache::put_head(pipe.output.flat(), head.status, headers, length);
        body.into_iter().for_each(|part| pipe.output.splice(part));
        self.repeating = false;
        if head.headers.contains_key(CONNECTION) {
            // Nobody says anything there but that it ends.
            self.over = Some(Ok(()));
        }
    }

    /// Whether a request waits for its response.
    fn is_busy(&self) -> bool {
        self.repeating || self.desk.papers().busy
    }

    /// Bytes of the body that is arriving: so far, and missing.
    fn arriving(&self) -> Option<(usize, usize)> {
        self.desk.papers().arriving
    }

    /// Whether something of a head has arrived, and not all of it.
    fn is_in_head(&self) -> bool {
        matches!(&self.end.pipe().stage, Stage::Head(heads) if heads.is_begun()) && !self.is_busy()
    }

    /// Why the connection must end, once what says so to the peer was written.
    fn breach(&mut self) -> Option<ProtocolError> {
        let refused = self.desk.papers().breach.take();
        refused.or_else(|| match &self.over {
            Some(Err(error)) if error.is_parse_too_large() => Some(ProtocolError::HeadTooLong),
            Some(Err(error)) => Some(ProtocolError::Request { message: error.to_string() }),
            _ => None,
        })
    }

    /// Sends what was written.
    fn flush(&mut self) {
        let mut pipe = self.end.pipe();
        pipe.drain(&mut self.out);
        if !self.repeating && !self.desk.papers().busy {
            pipe.release();
        }
    }
}
