//! The accepting half of an HTTP/1.1 connection: requests come out whole, responses go in.
//!
//! States: *between* requests; *arriving*, from the head of a request until its body is whole; *busy*,
//! until its response is written; *over*, after the last response or what could not be understood. A
//! request with a known head ([`super::head_cache`]) goes from *between* to *busy* (*repeating*) and back
//! without the library, whose own state stays *between*; any other request is the library's from its first
//! byte on.
//!
//! Two futures of the library take part, its connection and one for each request (`Desk::take`); both are
//! polled in `advance`, in memory. They meet this side at the `Desk`: there a request lies when it is
//! whole, and there its response is put.
//!
//! Invariants:
//!
//! * One request at a time, and responses in the order of requests.
//! * The library reads no byte behind the message that it is in, so that between requests it holds none,
//!   and a repetition may be taken from the input without asking it.
//! * A head that says in two ways where its message ends is refused before its body is looked at, and the
//!   connection with it.
//! * A body is refused when its length, announced or reached, exceeds the quota; so is one that the door
//!   does not let in.
//! * Whatever breaks the connection is told to the peer first: `breach` comes behind the response that says
//!   so.

use super::body::{Gathering, Lost, Outgoing};
use super::breach::Breach;
use super::head_cache::{self, HeadCache};
use super::heads::{Heads, MAX_HEAD};
use super::pipe::{Bell, End, Stage};
use crate::limits;
use bytes::Bytes;
use everywire_model::SendBuffer;
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// Looks at a head before the body is taken: a response refuses it.
pub(super) type Door = dyn Fn(&Parts) -> Option<Response<()>> + Send + Sync;

/// The accepting half of a connection.
pub(super) struct Server {
    connection: Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>,
    pub(super) end: End,
    desk: Desk,
    bell: Bell,
    /// `Ok`: it ended as it should.
    over: Option<Result<(), hyper::Error>>,
    /// `MaxReceivedMessageSize`.
    most: u64,
    heads: HeadCache,
    /// A request that the library has not seen waits for its response.
    pub(super) repeating: bool,
    /// The library has nothing to do before more arrives.
    rests: bool,
}

/// A request, whole.
pub(super) struct Received {
    pub(super) parts: Parts,
    pub(super) body: Bytes,
}

/// Where requests wait for their response. The library keeps to one at a time.
#[derive(Clone)]
struct Desk {
    papers: Arc<Mutex<Papers>>,
    end: End,
    /// `MaxReceivedMessageSize`.
    most: u64,
}

#[derive(Default)]
struct Papers {
    received: Option<Received>,
    response: Option<Response<Outgoing>>,
    /// Bytes of the body that is arriving: so far, and missing.
    arriving: Option<(usize, usize)>,
    /// A request has begun, and has no response yet.
    busy: bool,
    /// A request was refused: the connection ends with the response that says so.
    breach: Option<Breach>,
}

impl Desk {
    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has come of a body.
    fn gather(&self, gathering: &mut Gathering, cx: &mut Context<'_>) -> Poll<Result<Bytes, Lost>> {
        let whole = gathering.poll(cx);
        if whole.is_pending() {
            self.papers().arriving = Some((gathering.len(), gathering.missing()));
        }
        whole
    }

    /// A request has come to its end. Returns the response to one that is refused.
    fn received(&self, whole: Result<Received, Lost>) -> Option<Response<()>> {
        let mut papers = self.papers();
        papers.arriving = None;
        let (breach, status) = match whole {
            Ok(received) => {
                self.end.pipe().stage = Stage::Head(Heads::default());
                papers.received = Some(received);
                return None;
            }
            Err(Lost::TooLarge) => (Breach::OverLimit(self.most), StatusCode::PAYLOAD_TOO_LARGE),
            Err(Lost::Broken(error)) => (Breach::Request(error.to_string()), StatusCode::BAD_REQUEST),
        };
        papers.breach = Some(breach);
        Some(closing(status))
    }

    /// The response to the request in hand, once it is there.
    fn response(&self) -> Poll<Response<Outgoing>> {
        let mut papers = self.papers();
        let Some(response) = papers.response.take() else { return Poll::Pending };
        papers.busy = false;
        Poll::Ready(response)
    }
}

impl Server {
    /// A connection whose requests have bodies of at most `most` bytes and heads that pass the door.
    pub(super) fn new(most: u64, door: Arc<Door>) -> Self {
        let end = End::default();
        end.pipe().stage = Stage::Head(Heads::default());
        let desk = Desk { papers: Arc::default(), end: end.clone(), most };
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
            bell: Bell::new(),
            over: None,
            most,
            heads: HeadCache::default(),
            repeating: false,
            rests: false,
        }
    }

    /// Lets the connection work on what has arrived and what was answered.
    /// Whether a request came is asked with `received` afterwards.
    pub(super) fn advance(&mut self) {
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

    /// The next request.
    pub(super) fn received(&mut self) -> Option<Received> {
        self.desk.papers().received.take()
    }

    /// Keeps the head of the request that came last, if requests with it can be understood without the library. Returns its place.
    pub(super) fn keep(&mut self, parts: &Parts) -> Option<usize> {
        let pipe = self.end.pipe();
        self.heads.keep(parts, &pipe.head)
    }

    /// Forgets all heads.
    pub(super) fn forget(&mut self) {
        self.heads.clear();
    }

    /// The next request, if its head is a known one: the head's place, and the body.
    pub(super) fn repeated(&mut self) -> Option<(usize, Bytes)> {
        if self.repeating || self.over.is_some() || self.desk.papers().busy {
            return None;
        }
        let mut pipe = self.end.pipe();
        if !matches!(&pipe.stage, Stage::Head(heads) if heads.is_fresh()) {
            return None;
        }
        let found = self.heads.take(&mut pipe.input, self.most)?;
        (self.repeating, self.rests) = (true, true);
        Some(found)
    }

    /// Whether nothing is to be done, since the last request was one with a known head and nothing came behind it.
    pub(super) fn rests(&self) -> bool {
        self.rests && (self.repeating || self.end.pipe().input.is_empty())
    }

    /// Answers a request with a known head.
    pub(super) fn reply(&mut self, status: StatusCode, content_type: &HeaderValue, body: &mut SendBuffer) {
        let mut pipe = self.end.pipe();
        head_cache::put_plain_head(pipe.output.flat(), status, content_type, body.len());
        pipe.output.append(body);
        self.repeating = false;
    }

    /// The same, for responses that are more than an envelope.
    fn repeat(&mut self, response: Response<Vec<Bytes>>) {
        let (head, body) = response.into_parts();
        let head = Response::from_parts(head, ());
        let mut pipe = self.end.pipe();
        let length = body.iter().map(Bytes::len).sum();
        head_cache::put_head(pipe.output.flat(), &head, length);
        body.into_iter().for_each(|part| pipe.output.splice(part));
        self.repeating = false;
        if head.headers().contains_key(CONNECTION) {
            // Nobody says anything there but that it ends.
            self.over = Some(Ok(()));
        }
    }

    /// Answers the request that came last. [`Server::advance`] sends it.
    pub(super) fn respond(&mut self, response: Response<Vec<Bytes>>) {
        if self.repeating {
            return self.repeat(response);
        }
        let end = &self.end;
        // Of the response before this one nothing is written any more, also if the next request came with it.
        end.pipe().release();
        let response = response.map(|parts| Outgoing::new(parts, end));
        self.desk.papers().response = Some(response);
        // The future that waits for it is polled whenever the connection is.
    }

    /// Whether a request waits for its response.
    pub(super) fn is_busy(&self) -> bool {
        self.repeating || self.desk.papers().busy
    }

    /// Bytes of the body that is arriving: so far, and missing.
    pub(super) fn arriving(&self) -> Option<(usize, usize)> {
        self.desk.papers().arriving
    }

    /// Whether something of a head has arrived, and not all of it.
    pub(super) fn is_in_head(&self) -> bool {
        matches!(&self.end.pipe().stage, Stage::Head(heads) if heads.is_begun()) && !self.is_busy()
    }

    /// Whether the connection is over.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Why the connection must end, once what says so to the peer was written.
    pub(super) fn breach(&mut self) -> Option<Breach> {
        let refused = self.desk.papers().breach.take();
        refused.or_else(|| match &self.over {
            Some(Err(error)) if error.is_parse_too_large() => Some(Breach::HeadTooLong),
            Some(Err(error)) => Some(Breach::Request(error.to_string())),
            _ => None,
        })
    }
}

impl Desk {
    /// Takes one request from the library, from its head to its response. It sees each head before the body is read, and
    /// decides how much of the input belongs to it.
    fn take(
        &self,
        door: &Door,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Outgoing>, Infallible>> + use<> {
        let (parts, body) = request.into_parts();
        let mut pipe = self.end.pipe();
        // The scanner has seen the whole head by now.
        let plain = matches!(&pipe.stage, Stage::Head(heads) if heads.is_plain());
        let refusal = if plain { door(&parts) } else { Some(closing(StatusCode::BAD_REQUEST)) };
        let mut gathering = Gathering::new(body, self.most);
        pipe.stage = match gathering.missing() {
            0 if parts.headers.contains_key(http::header::TRANSFER_ENCODING) => Stage::Unsized,
            0 => Stage::Head(Heads::default()),
            // The body of a refused request is not wanted; its connection ends.
            _ if refusal.is_some() => Stage::Unsized,
            missing => Stage::Sized(missing as u64),
        };
        drop(pipe);
        let mut papers = self.papers();
        papers.busy = true;
        papers.breach = (!plain).then_some(Breach::Ambiguous);
        drop(papers);
        let desk = self.clone();
        async move {
            let refusal = match refusal {
                Some(refusal) => Some(refusal),
                None => {
                    let whole = poll_fn(|cx| desk.gather(&mut gathering, cx)).await;
                    desk.received(whole.map(|body| Received { parts, body }))
                }
            };
            let Some(refusal) = refusal else {
                return Ok(poll_fn(|_| desk.response()).await);
            };
            let too_large = refusal.status() == StatusCode::PAYLOAD_TOO_LARGE;
            // Whoever sent it is told the quota, its value, and how it is raised.
            let how = "Here: raise it with `MaxReceivedMessageSize=` in the listener's address.";
            let said = too_large.then(|| Bytes::from(format!("{} {how}\n", limits::too_large(desk.most))));
            desk.papers().busy = false;
            Ok(refusal.map(|()| Outgoing::new(said.into_iter().collect(), &desk.end)))
        }
    }
}

/// A response without a body that ends the connection.
pub(super) fn closing(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
