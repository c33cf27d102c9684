//! Bodies: going out in parts of known length, coming in until they are whole or too large.

use super::pipe::End;
use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body to send.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    parts: std::vec::IntoIter<Bytes>,
    /// Bytes that were not taken yet; the library writes Content-Length from it.
    left: u64,
    /// Large parts are announced there, so that they go out by reference.
    end: End,
}

impl Outgoing {
    /// A body of these parts, through this end.
    pub(crate) fn new(parts: Vec<Bytes>, end: &End) -> Self {
        let left = parts.iter().map(|part| part.len() as u64).sum();
        Self { parts: parts.into_iter(), left, end: end.clone() }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(part) = self.parts.find(|part| !part.is_empty()) else { return Poll::Ready(None) };
        self.left -= part.len() as u64;
        self.end.pipe().hold(&part);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A body that is arriving.
#[derive(Debug)]
pub(crate) struct BodyReader {
    body: Incoming,
    /// The only part, so far: not copied.
    first: Bytes,
    rest: BytesMut,
    /// How long it says it is.
    announced: Option<u64>,
    /// The most bytes that it may have.
    most: u64,
}

/// Why a body did not arrive.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It is longer than allowed.
    TooLarge,
    /// It ended early, or its transfer coding is broken.
    Broken(hyper::Error),
}

impl BodyReader {
    /// Begins to take a body of at most so many bytes.
    pub(crate) fn new(body: Incoming, most: u64) -> Self {
        let announced = body.size_hint().exact();
        Self { body, first: Bytes::new(), rest: BytesMut::new(), announced, most }
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    /// Bytes that are known to be missing.
    pub(crate) fn missing(&self) -> usize {
        let announced = self.announced.and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        announced.saturating_sub(self.len())
    }

    /// Takes what is there.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, BodyError>> {
        // Refused on the word of its length, before it has come.
        if self.announced.is_some_and(|length| length > self.most) {
            return Poll::Ready(Err(BodyError::TooLarge));
        }
        if self.body.is_end_stream() && self.announced == Some(0) {
            return Poll::Ready(Ok(Bytes::new()));
        }
        loop {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(self.whole())),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(BodyError::Broken(error))),
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(part) = frame.into_data() {
                        if (self.len() + part.len()) as u64 > self.most {
                            return Poll::Ready(Err(BodyError::TooLarge));
                        }
                        self.add(part);
                        // Nothing follows: the library need not be asked once more.
                        if self.announced == Some(self.len() as u64) {
                            return Poll::Ready(Ok(self.whole()));
                        }
                    }
                }
            }
        }
    }

    /// One part alone is kept as it is; a second one has both copied to one buffer.
    fn add(&mut self, part: Bytes) {
        if self.len() == 0 {
            self.first = part;
            return;
        }
        if self.rest.is_empty() {
            let first = std::mem::take(&mut self.first);
            self.rest.extend_from_slice(&first);
        }
        if self.rest.capacity() - self.rest.len() < part.len() {
            // What is announced is not allocated before some of it has come: at most four times as much.
            let most = (4 * self.rest.len()).max(part.len());
            self.rest.reserve(self.missing().clamp(part.len(), most));
        }
        self.rest.extend_from_slice(&part);
    }

    /// The body, once; what is asked again is empty.
    fn whole(&mut self) -> Bytes {
        if self.rest.is_empty() {
            std::mem::take(&mut self.first)
        } else {
            std::mem::take(&mut self.rest).freeze()
        }
    }
}
