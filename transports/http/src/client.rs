//! The connecting half of an HTTP/1.1 connection: requests go in, responses come out whole.
//!
//! The library is a future that wants to be polled by a runtime. Here nobody runs: `advance` polls it as
//! long as it asks for that, and it reads and writes memory (`pipe`). It never waits for anything else, so
//! polling ends.
//!
//! States: *idle*, *sent* (a request went to the library; its response has no head yet), *arriving* (the
//! body of the response comes); and *over*, without the library, when the connection takes no further request.

use super::body::{BodyError, BodyReader, Outgoing};
use super::pipe::{End, WakeFlag};
use bytes::{Bytes, BytesMut};
use everywire_model::SendBuffer;
use http::response::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

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
    /// The library's answer, when there is one.
    Sent(ResponseFuture),
    Arriving(Option<Parts>, BodyReader),
}

/// What became of a request.
// It is taken apart at once, and the usual one must not be allocated.
#[allow(clippy::large_enum_variant)]
pub enum ClientOutcome {
    /// A response came.
    Response(Parts, Bytes),
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
        let mut handshake =
            Box::pin(Builder::new().max_buf_size(64 << 10).handshake::<_, Outgoing>(end.clone()));
        // It waits for nothing: the library makes HTTP/1.1 connections at once.
        let library = match handshake.as_mut().poll(&mut line.context()) {
            Poll::Ready(Ok((sender, connection))) => Some((sender, Box::pin(connection))),
            _ => None,
        };
        let (hand, state, out) = (WakeFlag::new(), State::Idle, SendBuffer::new());
        let mut client = Self { library, end, line, hand, state, out, most };
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

    /// Takes a request, only if it is idle and not over; [`Client::advance`] sends it.
    pub fn send(&mut self, request: Request<Vec<Bytes>>) {
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

    /// Gives the buffer back that was fed, once it is empty: the link has others for connections that wait.
    #[inline]
    pub fn give_back(&mut self, input: &mut BytesMut) {
        self.end.pipe().give_back(input);
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
                (Ok(body), Some(parts)) => Some(ClientOutcome::Response(parts, body)),
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
