//! What the library does with a request of the accepting side: from its head to its response.
//!
//! Two futures of the library take part, its connection and one for each request (`RequestSlot::take`); both are polled in
//! `Server::next`, in memory. They meet the server here: there a request lies when it is whole, and there its response is put.

use super::body::{BodyError, BodyReader, Outgoing};
use super::chunks::Chunks;
use super::heads::Heads;
use super::pipe::{End, Stage};
use super::server::Bounds;
use super::violations::ProtocolError;
use bytes::Bytes;
use http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// Looks at a head before its body is taken. What it answers is the response, and the connection ends with it.
pub type RequestFilter = dyn Fn(&Parts) -> Option<Response<Bytes>> + Send + Sync;

/// Where requests wait for their response. The library keeps to one at a time.
#[derive(Clone)]
pub(crate) struct RequestSlot {
    papers: Arc<Mutex<SlotState>>,
    end: End,
    bounds: Bounds,
}

#[derive(Default)]
pub(crate) struct SlotState {
    pub(crate) received: Option<(Parts, Bytes)>,
    pub(crate) response: Option<Response<Outgoing>>,
    /// Bytes of the body that is arriving: so far, and missing.
    pub(crate) arriving: Option<(usize, usize)>,
    /// A request has begun, and has no response yet.
    pub(crate) busy: bool,
    /// A request was refused: the connection ends with the response that says so.
    pub(crate) breach: Option<ProtocolError>,
}

impl RequestSlot {
    pub(crate) fn new(end: End, bounds: Bounds) -> Self {
        Self { papers: Arc::default(), end, bounds }
    }

    pub(crate) fn papers(&self) -> MutexGuard<'_, SlotState> {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one request from the library, from its head to its response. It sees each head before the body is read, and
    /// decides how much of the input belongs to it.
    pub(crate) fn take(
        &self,
        door: &RequestFilter,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Outgoing>, Infallible>> + use<> {
        let (parts, body) = request.into_parts();
        let mut pipe = self.end.pipe();
        // The scanner has seen the whole head by now.
        let plain = matches!(&pipe.stage, Stage::Head(heads) if heads.is_plain());
        let breach = match plain {
            false => Some(ProtocolError::Ambiguous),
            true if !names_one_host(&parts) => Some(ProtocolError::Host),
            true => (!is_in_chunks_alone(&parts)).then_some(ProtocolError::Coding),
        };
        let refusal = match breach {
            None => door(&parts),
            Some(ProtocolError::Coding) => Some(empty(StatusCode::NOT_IMPLEMENTED)),
            Some(_) => Some(empty(StatusCode::BAD_REQUEST)),
        };
        let mut gathering = BodyReader::new(body, self.bounds.body);
        pipe.stage = match gathering.missing() {
            // The body of a refused request is not wanted; its connection ends.
            0 if parts.headers.contains_key(TRANSFER_ENCODING) && refusal.is_some() => Stage::Unsized,
            0 if parts.headers.contains_key(TRANSFER_ENCODING) => Stage::Chunked(Chunks::default()),
            0 => Stage::Head(Heads::default()),
            _ if refusal.is_some() => Stage::Unsized,
            missing => Stage::Sized(missing as u64),
        };
        drop(pipe);
        let mut papers = self.papers();
        papers.busy = true;
        papers.breach = breach;
        drop(papers);
        let desk = self.clone();
        async move {
            let refusal = match refusal {
                Some(refusal) => Some(refusal),
                None => {
                    let whole = poll_fn(|cx| desk.gather(&mut gathering, cx)).await;
                    desk.received(whole.map(|body| (parts, body)))
                }
            };
            let Some(mut refusal) = refusal else {
                return Ok(poll_fn(|_| desk.response()).await);
            };
            refusal.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            desk.papers().busy = false;
            Ok(refusal.map(|said| Outgoing::new(vec![said], &desk.end)))
        }
    }

    /// Takes what has come of a body.
    fn gather(&self, gathering: &mut BodyReader, cx: &mut Context<'_>) -> Poll<Result<Bytes, BodyError>> {
        let whole = gathering.poll(cx);
        if whole.is_pending() {
            self.papers().arriving = Some((gathering.len(), gathering.missing()));
        }
        whole
    }

    /// A request has come to its end. Returns the response to one that is refused.
    fn received(&self, whole: Result<(Parts, Bytes), BodyError>) -> Option<Response<Bytes>> {
        let mut papers = self.papers();
        papers.arriving = None;
        let (breach, refusal) = match whole {
            Ok(received) => {
                self.end.pipe().stage = Stage::Head(Heads::default());
                papers.received = Some(received);
                return None;
            }
            Err(BodyError::TooLarge) => {
                let said = (self.bounds.too_large)(self.bounds.body);
                let refusal = empty(StatusCode::PAYLOAD_TOO_LARGE).map(|_| said.into());
                (ProtocolError::OverLimit { limit: self.bounds.body }, refusal)
            }
            Err(BodyError::Broken(error)) => {
                (ProtocolError::Request { message: error.to_string() }, empty(StatusCode::BAD_REQUEST))
            }
        };
        papers.breach = Some(breach);
        Some(refusal)
    }

    /// The response to the request in hand, once it is there.
    fn response(&self) -> Poll<Response<Outgoing>> {
        let mut papers = self.papers();
        let Some(response) = papers.response.take() else { return Poll::Pending };
        papers.busy = false;
        Poll::Ready(response)
    }
}

/// Whether a request says once for which host it is meant, as HTTP/1.1 demands (RFC 9112 §3.2): of two, a proxy in front may have taken
/// the other one. An empty name is one.
fn names_one_host(parts: &Parts) -> bool {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let Some(host) = hosts.next() else { return parts.version < Version::HTTP_11 };
    let is_name = |octet: &u8| octet.is_ascii_graphic() && !b",/?#@\\\"<>".contains(octet);
    hosts.next().is_none() && host.as_bytes().iter().all(is_name)
}

/// Whether a body comes in chunks and in no other transfer coding. The library takes the chunks of `gzip, chunked`, too, and what they hold for
/// the body, where a proxy in front may have read what is packed in it (RFC 9112 §6.1).
fn is_in_chunks_alone(parts: &Parts) -> bool {
    parts
        .headers
        .get_all(TRANSFER_ENCODING)
        .iter()
        .all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
}

/// A status alone.
fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}
