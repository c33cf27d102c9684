//! A connection without I/O, as the HTTP library sees it: bytes that were received are read from memory, what is written
//! is collected for the link.
//!
//! The library gets no more bytes than belong to the message that it is in (`Stage`): so bytes of the next
//! request stay here, where they can be compared with a known head, and a head is looked at before the
//! library decides what it means.

use super::chunks::Chunks;
use super::head_cache::MAX_HEAD;
use super::heads::Heads;
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::SendBuffer;
use everywire_model::send_buffer::SPLICE;
use hyper::rt::{Read, ReadBufCursor, Write};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The bytes of one connection, in both directions.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// Received, and not yet read.
    pub(crate) input: BytesMut,
    /// Written, and not yet sent.
    pub(crate) output: SendBuffer,
    /// The peer sends nothing more.
    /// The connecting side sets it, where that ends the body of a response.
    pub(crate) ended: bool,
    /// How much may be read before whoever reads must have understood where the message ends.
    pub(crate) stage: Stage,
    /// The last head of a request, if it was read in one go and is not long.
    pub(crate) head: Vec<u8>,
    /// Large parts of the body that is being written: they go out by reference.
    /// What the library writes is looked for in them by its address.
    held: Vec<Bytes>,
}

/// Where reading stands. Heads are read alone, so that each is looked at before the library sees it, and so that bytes of
/// the next message stay where they are.
#[derive(Debug, Default)]
pub(crate) enum Stage {
    /// In a head, or between messages.
    Head(Heads),
    /// In a body of known length: so much is missing.
    Sized(u64),
    /// In a body that comes in chunks.
    Chunked(Chunks),
    /// In a body whose end only the library knows: of a response, or of a request that is refused.
    #[default]
    Unsized,
}

/// The end that the library holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct End(Arc<Mutex<Pipe>>);

impl End {
    pub(crate) fn pipe(&self) -> MutexGuard<'_, Pipe> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pipe {
    /// Takes what came.
    pub(crate) fn feed(&mut self, input: &mut BytesMut) {
        if self.input.is_empty() {
            std::mem::swap(input, &mut self.input);
        } else {
            self.input.extend_from_slice(input);
            input.clear();
        }
    }

    /// Gives the buffer back that it came in, once it is empty: the link has others for connections that wait.
    pub(crate) fn give_back(&mut self, input: &mut BytesMut) {
        if input.is_empty() && self.input.is_empty() {
            std::mem::swap(input, &mut self.input);
        }
    }

    /// Puts what was written on its way.
    pub(crate) fn drain(&mut self, out: &mut SendBuffer) {
        if self.output.is_empty() {
            return;
        }
        if out.is_empty() {
            std::mem::swap(out, &mut self.output);
        } else {
            out.append(&mut self.output);
        }
    }

    /// A part of a body is about to be written.
    pub(crate) fn hold(&mut self, part: &Bytes) {
        if part.len() >= SPLICE {
            self.held.push(part.clone());
        }
    }

    /// Nothing of the last body will be written any more.
    pub(crate) fn release(&mut self) {
        self.held.clear();
    }

    /// Takes what the library writes: a large piece of a known part as a reference, everything else as a
    /// copy.
    fn put(&mut self, slice: &[u8]) {
        if slice.len() >= SPLICE {
            let (start, end) = (slice.as_ptr().addr(), slice.as_ptr().addr() + slice.len());
            let of = |part: &&Bytes| {
                let base = part.as_ptr().addr();
                base <= start && end <= base + part.len()
            };
            if let Some(part) = self.held.iter().find(of) {
                let part = part.slice_ref(slice);
                self.output.splice(part);
                return;
            }
        }
        self.output.flat().extend_from_slice(slice);
    }

    /// So many bytes are about to be read.
    fn note_head(&mut self, n: usize) {
        let Self { input, stage, head, .. } = self;
        let Stage::Head(heads) = stage else { return };
        head.clear();
        if heads.is_whole(n) && n <= MAX_HEAD {
            head.extend_from_slice(input.get(..n).unwrap_or_default());
        }
    }

    /// How many bytes may be read now.
    fn readable(&mut self) -> usize {
        let Self { input, stage, .. } = self;
        match stage {
            Stage::Head(heads) => heads.scan(input),
            Stage::Sized(left) => input.len().min(usize::try_from(*left).unwrap_or(usize::MAX)),
            Stage::Chunked(chunks) => chunks.scan(input),
            Stage::Unsized => input.len(),
        }
    }
}

impl Read for End {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut pipe = self.pipe();
        // 0 bytes would mean the end of the connection to the library.
        let n = pipe.readable().min(buf.remaining());
        if n == 0 {
            // Whoever brings more bytes asks again.
            return if pipe.ended && pipe.input.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        buf.put_slice(pipe.input.get(..n).unwrap_or_default());
        pipe.note_head(n);
        pipe.input.advance(n);
        match &mut pipe.stage {
            Stage::Head(heads) => heads.taken(n),
            Stage::Sized(left) => *left = left.saturating_sub(n as u64),
            Stage::Chunked(chunks) => chunks.taken(n),
            Stage::Unsized => {}
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for End {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.pipe().put(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut pipe = self.pipe();
        for slice in bufs {
            pipe.put(slice);
        }
        Poll::Ready(Ok(bufs.iter().map(|slice| slice.len()).sum()))
    }
}

/// Tells whether a future asked to be polled again, by itself or through a channel between two of them.
#[derive(Debug)]
pub(crate) struct WakeFlag {
    rung: Arc<WakeState>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct WakeState(AtomicBool);

impl Wake for WakeState {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl WakeFlag {
    pub(crate) fn new() -> Self {
        let rung = Arc::<WakeState>::default();
        let waker = Waker::from(Arc::clone(&rung));
        Self { rung, waker }
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Whether it rang since the last time.
    pub(crate) fn rang(&self) -> bool {
        self.rung.0.swap(false, Ordering::Relaxed)
    }
}
