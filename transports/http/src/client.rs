//! The connecting half of an HTTP/1.1 connection: requests go in, responses come out whole.
//!
//! The library is a future that wants to be polled by a runtime. Here nobody runs: `advance` polls it as
//! long as it asks for that, and it reads and writes memory (`pipe`). It never waits for anything else, so
//! polling ends.
//!
//! States: *idle*; *written* (a POST is written without the library, and its response has not come, or only in part behind
//! a known head); *sent* (the library knows of the request; its response has no head yet); *arriving* (the
//! body of the response comes); and *over*, without the library, when the connection takes no further request.
//!
//! Invariants:
//!
//! * A response with a known head (`head_cache`) takes the connection from *written* to *idle*, and the library hears of neither.
//! * Any other response is the library's from its first byte on: the library is told of the request before, and
//!   what it writes of that is dropped, since it has been sent (`catch_up`).
//! * The library sees what comes while nobody asked for anything, and ends the connection for it.

use super::body::{BodyError, BodyReader, Outgoing};
use super::head_cache::{self, CacheLookup, HeadCache, MAX_HEAD, PostHead};
use super::pipe::{End, WakeFlag};
use bytes::{Bytes, BytesMut};
use everywire_model::SendBuffer;
use everywire_model::send_buffer::SPLICE;
use http::response::Parts;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

/// Heads that are kept in vain, one behind the other, before no more is kept: this peer never says the same again.
const MAX_VAIN: u32 = 32;

type ResponseFuture =
    Pin<Box<dyn Future<Output = Result<Response<Incoming>, TrySendError<Request<Outgoing>>>> + Send>>;

/// What takes requests, and what carries them.
type Library = (SendRequest<Outgoing>, Pin<Box<Connection<End, Outgoing>>>);

/// The connecting half of a connection. Its user gives it a request ([`Client::send`]) and what came ([`Client::feed`]), and
/// asks after each what became of it ([`Client::advance`]); what has to go then stands in [`Client::transmit`].
pub struct Client {
    /// Nothing once the connection is over.
    library: Option<Library>,
    end: End,
    /// The connection wants to be polled again.
    line: WakeFlag,
    /// The response, or more of its body, is there: it is looked at after each poll of the connection anyway.
    hand: WakeFlag,
    state: State,
    heads: HeadCache<Parts>,
    /// The head of the response that the library is reading, if it may be worth keeping.
    head: Vec<u8>,
    /// Heads that were kept since one was known again.
    vain: u32,
    /// The library has nothing to do before something comes that it has to look at.
    rests: bool,
    /// What the link is to send.
    out: SendBuffer,
    /// Bytes of a response's body that are taken.
    most: u64,
}

// There is one for each connection.
#[allow(clippy::large_enum_variant)]
enum State {
    Idle,
    /// The connection ended before it took the request.
    Unsent,
    /// What the library has not been told of, and how much is missing of a body behind a known head.
    Written(Arc<PostHead>, Option<usize>),
    /// The library's answer, when there is one.
    Sent(ResponseFuture),
    Arriving(Option<Parts>, BodyReader),
}

/// What became of a request.
// It is taken apart at once, and the usual one must not be allocated.
#[allow(clippy::large_enum_variant)]
pub enum ClientOutcome {
    /// A response came. Its date may be that of an earlier one with the same head.
    Response(Arc<Parts>, Bytes),
    /// A response came, and its body is larger than allowed.
    TooLarge,
    /// None came.
    Failed {
        /// Why.
        message: String,
        /// What came is no HTTP: nothing else will come on this connection.
        foreign: bool,
        /// Nothing of the request was sent.
        unsent: bool,
    },
}

impl Client {
    /// A connection whose responses have bodies of at most `most` bytes.
    pub fn new(most: u64) -> Self {
        let (end, line) = (End::default(), WakeFlag::new());
        let mut handshake = Box::pin(
            Builder::new()
                .max_buf_size(64 << 10)
                .allow_obsolete_multiline_headers_in_responses(true)
                .handshake::<_, Outgoing>(end.clone()),
        );
        // It waits for nothing: the library makes HTTP/1.1 connections at once.
        let library = match handshake.as_mut().poll(&mut line.context()) {
            Poll::Ready(Ok((sender, connection))) => Some((sender, Box::pin(connection))),
            _ => None,
        };
        let mut client = Self {
            library,
            end,
            line,
            hand: WakeFlag::new(),
            state: State::Idle,
            heads: HeadCache::new(),
            head: Vec::new(),
            vain: 0,
            rests: false,
            out: SendBuffer::new(),
            most,
        };
        client.advance();
        client
    }

    /// Whether a request may be sent now.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Whether the connection takes no further requests.
    pub fn is_over(&self) -> bool {
        self.library.as_ref().is_none_or(|(sender, _)| sender.is_closed())
    }

    /// Takes a request, only if it is idle and not over; [`Client::advance`] sends it. Its headers do not say where its body ends.
    pub fn send(&mut self, request: Request<Vec<Bytes>>) {
        if request.method() != Method::POST {
            self.refuse_rest();
            return self.tell(request);
        }
        let (parts, body) = request.into_parts();
        let mut whole = SendBuffer::new();
        body.into_iter().for_each(|part| whole.splice(part));
        self.post(&Arc::new(PostHead::new(parts.uri, parts.headers)), whole);
    }

    /// Takes a POST request in the same way.
    pub fn post(&mut self, head: &Arc<PostHead>, mut body: SendBuffer) {
        self.refuse_rest();
        if self.is_over() {
            return self.tell(Request::from_parts(head.parts(), body.into_parts()));
        }
        head.put(self.out.flat(), body.len());
        if body.flat().len() < SPLICE {
            self.out.append(&mut body);
        } else {
            // It goes by reference.
            body.into_parts().into_iter().for_each(|part| self.out.splice(part));
        }
        self.state = State::Written(Arc::clone(head), None);
    }

    /// What nobody asked for is no response to the next request: the library says what is wrong with it.
    fn refuse_rest(&mut self) {
        if !self.end.pipe().input.is_empty() {
            self.poll();
        }
    }

    /// Has the library send a request.
    fn tell(&mut self, request: Request<Vec<Bytes>>) {
        self.rests = false;
        // It has to be polled once after a response to take the next request.
        if self.library.as_ref().is_some_and(|(sender, _)| !sender.is_ready()) {
            self.poll();
        }
        let request = request.map(|parts| Outgoing::new(parts, &self.end));
        self.state = match &mut self.library {
            Some((sender, _)) => State::Sent(Box::pin(sender.try_send_request(request))),
            None => State::Unsent,
        };
    }

    /// Takes what came; [`Client::advance`] looks at it.
    #[inline]
    pub fn feed(&mut self, input: &mut BytesMut) {
        self.end.pipe().feed(input);
    }

    /// Gives the buffer back that was fed: once it is empty, since the link has others for connections that wait; and with the beginning
    /// of a response behind a known head, since the link reads the rest into it, which would be copied otherwise. The link feeds
    /// it again, whole.
    #[inline]
    pub fn give_back(&mut self, input: &mut BytesMut) {
        let mut pipe = self.end.pipe();
        if matches!(self.state, State::Written(_, Some(_))) && !pipe.ended && input.is_empty() {
            std::mem::swap(input, &mut pipe.input);
        } else {
            pipe.give_back(input);
        }
    }

    /// The peer sends nothing more, which ends a body without a length (RFC 9112 §6.3): [`Client::advance`] knows whether it is
    /// whole.
    pub fn end(&mut self) {
        self.end.pipe().ended = true;
    }

    /// Bytes that are missing of the response's body, once that arrives.
    #[inline]
    pub fn arriving(&self) -> Option<usize> {
        match &self.state {
            State::Arriving(_, gathering) => Some(gathering.missing()),
            State::Written(_, missing) => *missing,
            _ => None,
        }
    }

    /// What has to be sent.
    #[inline]
    pub fn transmit(&mut self) -> &mut SendBuffer {
        &mut self.out
    }

    /// Lets the connection work on what has arrived. What became of the request in flight, once that is known.
    pub fn advance(&mut self) -> Option<ClientOutcome> {
        let mut pipe = self.end.pipe();
        let nothing = pipe.input.is_empty() && !pipe.ended;
        match &mut self.state {
            State::Written(_, _) | State::Idle if nothing && self.rests => return None,
            State::Written(_, missing) => match self.heads.take(&mut pipe.input, self.most) {
                CacheLookup::Whole(parts, body) => {
                    drop(pipe);
                    (self.state, self.vain, self.rests) = (State::Idle, 0, true);
                    return Some(ClientOutcome::Response(parts, body));
                }
                CacheLookup::Missing(bytes) if !pipe.ended => {
                    *missing = Some(bytes);
                    return None;
                }
                _ if nothing => return None,
                _ => {
                    drop(pipe);
                    self.catch_up();
                }
            },
            _ => drop(pipe),
        }
        let returned = loop {
            self.poll();
            let returned = self.look();
            // What was taken of a body makes room for more.
            let again = self.line.rang();
            if returned.is_some() {
                self.end.pipe().release();
                if again {
                    self.poll();
                }
            }
            if returned.is_some() || self.library.is_none() || !again {
                break returned;
            }
        };
        self.end.pipe().drain(&mut self.out);
        returned
    }

    /// Tells the library of the request that this side has written, so that it reads the response.
    fn catch_up(&mut self) {
        let State::Written(head, _) = std::mem::replace(&mut self.state, State::Idle) else { return };
        let mut pipe = self.end.pipe();
        let (input, ended) = (std::mem::take(&mut pipe.input), std::mem::take(&mut pipe.ended));
        drop(pipe);
        self.head.clear();
        if self.vain < MAX_VAIN
            && let Some(end) = input.windows(4).take(MAX_HEAD).position(|four| four == b"\r\n\r\n")
        {
            self.head.extend_from_slice(&input[..end + 4]);
        }
        self.tell(Request::from_parts(head.parts(), Vec::new()));
        self.poll();
        let mut pipe = self.end.pipe();
        pipe.output = SendBuffer::new();
        (pipe.input, pipe.ended) = (input, ended);
    }

    /// Keeps the head of the response that the library has read, if it is to be known again.
    fn keep(&mut self, parts: &Parts) {
        let head = std::mem::take(&mut self.head);
        // The head of an interim response is none of this one's.
        let status = head.strip_prefix(b"HTTP/1.1 ").and_then(|line| line.get(..3));
        if status == Some(parts.status.as_str().as_bytes()) && head_cache::is_plain_response(parts) {
            self.heads.keep(&head, || parts.clone());
            self.vain += 1;
        }
    }

    /// Looks whether the response is there.
    fn look(&mut self) -> Option<ClientOutcome> {
        if matches!(self.state, State::Unsent) {
            self.state = State::Idle;
            let message = String::from("the connection takes no further request");
            return Some(ClientOutcome::Failed { message, foreign: false, unsent: true });
        }
        if let State::Sent(sent) = &mut self.state
            && let Poll::Ready(result) = sent.as_mut().poll(&mut self.hand.context())
        {
            match result {
                Ok(response) => {
                    let (parts, body) = response.into_parts();
                    self.state = State::Arriving(Some(parts), BodyReader::new(body, self.most));
                }
                Err(mut error) => {
                    self.state = State::Idle;
                    let unsent = error.take_message().is_some();
                    return Some(ClientOutcome::failed(&error.into_error(), unsent));
                }
            }
        }
        if let State::Arriving(parts, gathering) = &mut self.state
            && let Poll::Ready(whole) = gathering.poll(&mut self.hand.context())
        {
            let parts = parts.take();
            self.state = State::Idle;
            return match (whole, parts) {
                (Ok(body), Some(parts)) => {
                    self.keep(&parts);
                    Some(ClientOutcome::Response(Arc::new(parts), body))
                }
                (Ok(_), None) => None,
                (Err(BodyError::TooLarge), _) => Some(ClientOutcome::TooLarge),
                (Err(BodyError::Broken(error)), _) => Some(ClientOutcome::failed(&error, false)),
            };
        }
        None
    }

    /// Polls the connection until it asks for nothing more.
    fn poll(&mut self) {
        // Whatever it was told before is seen to now.
        self.line.rang();
        while let Some((_, connection)) = &mut self.library {
            if connection.as_mut().poll(&mut self.line.context()).is_ready() {
                self.library = None;
            }
            if !self.line.rang() {
                break;
            }
        }
    }
}

impl ClientOutcome {
    fn failed(error: &hyper::Error, unsent: bool) -> Self {
        Self::Failed { message: error.to_string(), foreign: error.is_parse(), unsent }
    }
}
