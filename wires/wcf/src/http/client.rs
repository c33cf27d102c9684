//! The connecting half of an HTTP/1.1 connection: requests go in, responses come out whole.
//!
//! The library is a future that wants to be polled by a runtime. Here nobody runs: `advance` polls it as
//! long as it asks for that, and it reads and writes memory (`pipe`). It never waits for anything else, so
//! polling ends.
//!
//! States: *idle*, *sent* (a request went to the library; its response has no head yet), *arriving* (the
//! body of the response comes); and `over`, when the connection takes no further request.

use super::body::{Gathering, Lost, Outgoing};
use super::pipe::{Bell, End};
use bytes::Bytes;
use http::response::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

type Sent = Pin<Box<dyn Future<Output = Result<Response<Incoming>, TrySendError<Request<Outgoing>>>> + Send>>;

/// The connecting half of a connection.
pub(super) struct Client {
    sender: SendRequest<Outgoing>,
    connection: Pin<Box<Connection<End, Outgoing>>>,
    pub(super) end: End,
    /// The connection wants to be polled again.
    line: Bell,
    /// The response, or more of its body, is there: it is looked at after each poll of the connection anyway.
    hand: Bell,
    state: State,
    over: bool,
    /// Bytes of a response's body that are taken.
    most: u64,
}

// There is one for each connection.
#[allow(clippy::large_enum_variant)]
enum State {
    Idle,
    /// The library's answer, when there is one.
    Sent(Sent),
    Arriving(Option<Parts>, Gathering),
}

/// What became of a request.
pub(super) enum Returned {
    /// A response came.
    Response(Parts, Bytes),
    /// A response came, and its body is larger than allowed.
    TooLarge,
    /// None came.
    Failed {
        /// Why.
        error: hyper::Error,
        /// Nothing of the request was sent.
        unsent: bool,
    },
}

impl Client {
    /// A connection whose responses have bodies of at most `most` bytes. `None` cannot happen: the library makes
    /// HTTP/1.1 connections without waiting for anything.
    pub(super) fn new(most: u64) -> Option<Self> {
        let end = End::default();
        let line = Bell::new();
        let mut handshake =
            Box::pin(Builder::new().max_buf_size(64 << 10).handshake::<_, Outgoing>(end.clone()));
        let Poll::Ready(Ok((sender, connection))) = handshake.as_mut().poll(&mut line.context()) else {
            return None;
        };
        let connection = Box::pin(connection);
        let hand = Bell::new();
        let mut client = Self { sender, connection, end, line, hand, state: State::Idle, over: false, most };
        client.advance();
        Some(client)
    }

    /// Whether a request may be sent.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Whether the connection takes no further requests.
    pub(super) fn is_over(&self) -> bool {
        self.over || self.sender.is_closed()
    }

    /// Takes a request, only if it is idle; [`Client::advance`] sends it.
    pub(super) fn send(&mut self, request: Request<Vec<Bytes>>) {
        // It has to be polled once after a response to take the next request.
        if !self.sender.is_ready() {
            self.poll();
        }
        let request = request.map(|parts| Outgoing::new(parts, &self.end));
        self.state = State::Sent(Box::pin(self.sender.try_send_request(request)));
    }

    /// Bytes of the response's body: so far, and missing.
    pub(super) fn arriving(&self) -> Option<(usize, usize)> {
        match &self.state {
            State::Arriving(_, gathering) => Some((gathering.len(), gathering.missing())),
            _ => None,
        }
    }

    /// Lets the connection work on what has arrived.
    pub(super) fn advance(&mut self) -> Option<Returned> {
        loop {
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
            if returned.is_some() || self.over || !again {
                return returned;
            }
        }
    }

    /// Looks whether the response is there.
    fn look(&mut self) -> Option<Returned> {
        if let State::Sent(sent) = &mut self.state
            && let Poll::Ready(result) = sent.as_mut().poll(&mut self.hand.context())
        {
            match result {
                Ok(response) => {
                    let (parts, body) = response.into_parts();
                    self.state = State::Arriving(Some(parts), Gathering::new(body, self.most));
                }
                Err(mut error) => {
                    self.state = State::Idle;
                    let unsent = error.take_message().is_some();
                    return Some(Returned::Failed { error: error.into_error(), unsent });
                }
            }
        }
        if let State::Arriving(parts, gathering) = &mut self.state
            && let Poll::Ready(whole) = gathering.poll(&mut self.hand.context())
        {
            let parts = parts.take();
            self.state = State::Idle;
            return match (whole, parts) {
                (Ok(body), Some(parts)) => Some(Returned::Response(parts, body)),
                (Ok(_), None) => None,
                (Err(Lost::TooLarge), _) => Some(Returned::TooLarge),
                (Err(Lost::Broken(error)), _) => Some(Returned::Failed { error, unsent: false }),
            };
        }
        None
    }

    /// Polls the connection until it asks for nothing more.
    fn poll(&mut self) {
        // Whatever it was told before is seen to now.
        self.line.rang();
        while !self.over {
            self.over = self.connection.as_mut().poll(&mut self.line.context()).is_ready();
            if !self.line.rang() {
                break;
            }
        }
    }
}
