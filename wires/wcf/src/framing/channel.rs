//! What both sides of a connection share: the layer that protects it, messages in and out, quotas, time.
//!
//! Sessions decide what a record means; a `Channel` moves the bytes. Inwards it takes envelopes from the
//! front of the input, in one record or in chunks, and unpacks them. Outwards it puts each message into the
//! record of the mode, through compression and the layer, into `out`, which the link sends.
//!
//! State:
//!
//! * `held`: messages that were written before the channel was open. `open` lets them go in order, `shut`
//!   begins to hold again (a streamed call, or another preamble).
//! * `payload`: one message that is being written where its place in `out` cannot be used at once; empty
//!   between calls.
//! * `chunks`: a message that comes in pieces; `missing` and `due`: how much of a record is not here, and
//!   when it must be.
//! * `plain`: bytes that the layer has yielded and that no whole record was made of yet.
//!
//! Invariants:
//!
//! * The size of a message is compared with `MaxReceivedMessageSize` when it is announced, chunks by their
//!   sum, and unpacked messages by what comes out. Nothing is allocated before.
//! * A message in one piece, or in one chunk, is a slice of the input and is never copied.
//! * The time of a message counts from its first byte and does not begin again with each chunk.
//! * No byte goes out past the layer once there is one; what was given to it stays in `inner` until it can
//!   be protected.
//! * Between `begin` and `finish` nobody else writes to `out`.

use super::preamble::Mode;
use super::records::{Bounds, RecordKind, size};
use crate::compression::Format;
use crate::layer::Layer;
use crate::nbfx::integer;
use crate::settings::Settings;
use crate::violations::ProtocolError;
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::MessageClock;
use everywire_model::message_clock::time_for;
use everywire_model::send_buffer::Mark;
use everywire_model::{Config, Failure, Initiator, Kind, SendBuffer};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most bytes of one record (MC-NMF, note 2).
/// Records cannot announce more.
const MOST: usize = 0x7fff_ffff;

/// A buffer above this size is given back after the message for which it was needed.
/// One large message would otherwise hold its memory as long as the connection lasts.
const KEEP: usize = 64 << 10;

/// See the module.
pub(super) struct Channel {
    pub(super) settings: Arc<Settings>,
    /// From the quotas of the address.
    pub(super) bounds: Bounds,
    pub(super) layer: Layer,
    /// What is to be sent.
    pub(super) out: SendBuffer,
    /// Records that the layer has not protected yet.
    inner: SendBuffer,
    /// Messages that wait for the channel to open, with their records; `None` once it is open.
    held: Option<SendBuffer>,
    /// One message that is being written, without its record: its size stands before it.
    pub(super) payload: SendBuffer,
    /// What the layer yielded and no record took yet.
    pub(super) plain: BytesMut,
    /// The chunks of a message that has begun.
    chunks: Option<Chunks>,
    /// Bytes missing of the record at the front of the input.
    pub(super) missing: usize,
    /// When the message that has begun must be whole, and seconds it was given.
    due: MessageClock,
    /// Time for each started MiB of a message.
    message_time: Duration,
    /// Bytes of whole records received so far.
    /// Violations name it as their place.
    pub(super) received: u64,
    /// How messages are compressed, both ways.
    pub(super) compression: Option<Format>,
}

/// Bytes kept for the head of a record: its kind and a size of up to 16,383.
/// Most messages need exactly these; `finish` moves the others.
const HEAD: usize = 3;

/// A message that is written where it is sent from.
#[derive(Clone, Copy)]
pub(super) struct OpenMessage {
    mark: Mark,
    /// The position in the whole of `out`, splices included; `mark` is where the flat part was.
    from: usize,
}

/// Chunks joined so far. One alone, which is the rule for small messages, is never copied.
#[derive(Default)]
struct Chunks {
    first: Bytes,
    joined: BytesMut,
    size: usize,
}

impl Channel {
    pub(super) fn new(config: &Config, settings: &Arc<Settings>) -> Self {
        let quotas = &settings.quotas;
        Self {
            settings: Arc::clone(settings),
            bounds: Bounds { via: quotas.max_via_size, content_type: quotas.max_content_type_size },
            layer: Layer::Plain,
            out: SendBuffer::new(),
            inner: SendBuffer::new(),
            held: Some(SendBuffer::new()),
            payload: SendBuffer::new(),
            plain: BytesMut::new(),
            chunks: None,
            missing: 0,
            due: MessageClock::default(),
            message_time: config.limits.message_time,
            received: 0,
            compression: None,
        }
    }

    /// A message as it was before it was compressed.
    #[inline]
    pub(super) fn unpacked(&self, document: Bytes) -> Result<Bytes, ProtocolError> {
        match self.compression {
            None => Ok(document),
            Some(format) => self.unpack(format, &document),
        }
    }

    #[cold]
    fn unpack(&self, format: Format, document: &Bytes) -> Result<Bytes, ProtocolError> {
        let quotas = &self.settings.quotas;
        format.unpack(document, quotas).map_err(|failure| match failure.kind() {
            Kind::LimitExceeded => {
                let limit = quotas.max_received_message_size;
                ProtocolError::OverLimit { size: limit.saturating_add(1), limit }
            }
            _ => ProtocolError::Envelope { message: failure.to_string() },
        })
    }

    /// Compresses the message that was written, if messages are.
    #[inline]
    pub(super) fn compress(&mut self) {
        if let Some(format) = self.compression
            && !self.payload.is_empty()
        {
            // Splices are joined: the compressed message is another one.
            let parts = std::mem::take(&mut self.payload).into_parts();
            let packed = format.pack(&parts).unwrap_or_default();
            self.payload.flat().extend_from_slice(&packed);
        }
    }

    /// Takes what came through the layer, and has its handshake answered.
    pub(super) fn unwrap(&mut self, input: &mut BytesMut, plain: &mut BytesMut) -> Result<(), Failure> {
        // What was understood before a failure stays in `plain` and is not looked at any more.
        let received = self.layer.receive(input, plain);
        // Even if that failed: the peer is to know why.
        let sent = self.layer.send(&mut SendBuffer::new(), &mut self.out);
        received.and(sent)
    }

    /// Writes records, into the layer if there is one.
    /// Records of the protocol itself do not wait for the channel to open.
    pub(super) fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        write(self.target().flat());
        self.seal()
    }

    /// Messages go out from now on, those that waited first.
    pub(super) fn open(&mut self) -> Result<(), Failure> {
        if let Some(mut held) = self.held.take() {
            self.target().append(&mut held);
        }
        self.seal()
    }

    /// Messages are held back again, until the next [`Channel::open`].
    pub(super) fn shut(&mut self) {
        self.held = Some(SendBuffer::new());
        self.chunks = None;
        self.due.stop();
    }

    /// Sends the message that stands in the payload, if any, as this mode frames it.
    #[inline]
    pub(super) fn send_payload(&mut self, mode: Mode) -> Result<(), Failure> {
        self.compress();
        let Self { held, layer, out, inner, payload, .. } = self;
        let target = match held {
            Some(held) => held,
            None if layer.is_plain() => out,
            None => inner,
        };
        frame(mode, payload, target)?;
        self.seal()
    }

    /// Begins a message where it is sent from, behind the place of its record's head; nothing if it is to be held, compressed or
    /// protected first, and so has to be written to the payload. Ends with [`Channel::finish`].
    #[inline]
    pub(super) fn begin(&mut self) -> Option<OpenMessage> {
        if self.held.is_some() || self.compression.is_some() || !self.layer.is_plain() {
            return None;
        }
        let begun = OpenMessage { mark: self.out.mark(), from: self.out.position() };
        self.out.flat().extend_from_slice(&[RecordKind::SizedEnvelope as u8, 0, 0]);
        Some(begun)
    }

    /// Completes the record of the message that was begun, if anything was written.
    #[inline]
    pub(super) fn finish(&mut self, begun: OpenMessage) -> Result<(), Failure> {
        let OpenMessage { mark, from } = begun;
        let size = self.out.position() - from - HEAD;
        let at = mark.flat();
        let flat = self.out.flat();
        match (size, flat.get_mut(at + 1..)) {
            // Two bytes of size, as were kept.
            (0x80..0x4000, Some([low, high, ..])) => {
                (*low, *high) = (size as u8 | 0x80, (size >> 7) as u8);
                Ok(())
            }
            // One byte less than was kept for the size; what is so small has no part spliced in.
            (1..0x80, Some([low, rest @ ..])) => {
                *low = size as u8;
                rest.copy_within(1.., 0);
                flat.truncate(flat.len() - 1);
                Ok(())
            }
            _ => self.finish_unusual(begun, size),
        }
    }

    /// Nothing was written, or the size takes more bytes than were kept: the rest of it is inserted behind
    /// them.
    #[cold]
    fn finish_unusual(&mut self, OpenMessage { mark, .. }: OpenMessage, size: usize) -> Result<(), Failure> {
        if size == 0 || size > MOST {
            self.out.truncate(mark);
            return if size == 0 { Ok(()) } else { Err(over(size)) };
        }
        let mut sized = Vec::with_capacity(HEAD + 2);
        integer::put(size, &mut sized);
        let (kept, more) = sized.split_at(sized.len().min(HEAD - 1));
        let at = mark.flat() + 1;
        if let Some(place) = self.out.flat().get_mut(at..at + kept.len()) {
            place.copy_from_slice(kept);
        }
        self.out.insert(mark.behind(HEAD), more);
        Ok(())
    }

    /// Sends what is framed already.
    /// A streamed call, which was put into its record when it was begun.
    pub(super) fn put_framed(&mut self, message: &mut SendBuffer) -> Result<(), Failure> {
        self.target().append(message);
        self.seal()
    }

    /// Takes back what was written of a message.
    pub(super) fn discard_payload(&mut self) {
        let len = self.payload.len();
        self.payload.consume(len);
    }

    /// Where records go: out, or to the layer first.
    #[inline]
    fn target(&mut self) -> &mut SendBuffer {
        if self.layer.is_plain() { &mut self.out } else { &mut self.inner }
    }

    /// Has the layer protect what waits for it, as far as its handshake allows.
    #[inline]
    fn seal(&mut self) -> Result<(), Failure> {
        if self.layer.is_plain() || self.inner.is_empty() {
            return Ok(());
        }
        self.layer.send(&mut self.inner, &mut self.out)
    }

    /// The message of the Sized Envelope record at the front of the input: its bytes are those of the input, not copied.
    #[inline]
    pub(super) fn sized(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
    ) -> Result<Option<Bytes>, ProtocolError> {
        let Some((size, width)) = size(input.get(1..).unwrap_or_default())? else {
            self.wait(now, input.len(), input.len() + 1);
            return Ok(None);
        };
        if size == 0 {
            return Err(ProtocolError::Empty { record: RecordKind::SizedEnvelope });
        }
        self.check_size(size)?;
        let whole = 1 + width + size;
        if input.len() < whole {
            self.wait(now, input.len(), whole);
            return Ok(None);
        }
        self.due.stop();
        self.received += whole as u64;
        let mut record = input.split_to(whole).freeze();
        record.advance(1 + width);
        Ok(Some(record))
    }

    /// Whether chunks are expected.
    pub(super) fn is_chunked(&self) -> bool {
        self.chunks.is_some()
    }

    /// An Unsized Envelope record begins.
    pub(super) fn begin_chunks(&mut self) {
        self.chunks = Some(Chunks::default());
    }

    /// Takes a chunk: the message with its end, nothing (empty) before that; `None` if it is not here yet.
    pub(super) fn chunk(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
    ) -> Result<Option<Bytes>, ProtocolError> {
        let held = self.chunks.as_ref().map_or(0, |chunks| chunks.size);
        let Some((size, width)) = size(input)? else {
            self.wait(now, held + input.len() + 1, held + input.len() + 2);
            return Ok(None);
        };
        if size == 0 {
            let chunks = self.chunks.take().unwrap_or_default();
            if chunks.size == 0 {
                return Err(ProtocolError::Empty { record: RecordKind::UnsizedEnvelope });
            }
            input.advance(width);
            self.received += width as u64;
            self.due.stop();
            // One chunk alone was never joined.
            let single = chunks.joined.is_empty();
            return Ok(Some(if single { chunks.first } else { chunks.joined.freeze() }));
        }
        let total = held.saturating_add(size);
        self.check_size(total)?;
        let whole = width + size;
        if input.len() < whole {
            self.wait(now, held + input.len(), held + whole);
            return Ok(None);
        }
        input.advance(width);
        let bytes = input.split_to(size).freeze();
        self.received += whole as u64;
        if let Some(chunks) = &mut self.chunks {
            chunks.add(bytes, total);
        }
        // The time that the message was given goes on.
        self.wait(now, total, total + 1);
        self.missing = 0;
        Ok(Some(Bytes::new()))
    }

    /// `size` bytes of a message are announced, or are here already with the next chunk.
    fn check_size(&self, size: usize) -> Result<(), ProtocolError> {
        let (size, limit) = (size as u64, self.settings.quotas.max_received_message_size);
        if size > limit { Err(ProtocolError::OverLimit { size, limit }) } else { Ok(()) }
    }

    /// Notes that a message has begun and `whole - have` bytes of it are missing. The time that it gets counts from its first
    /// byte, and grows when its size becomes known.
    fn wait(&mut self, now: Instant, have: usize, whole: usize) {
        self.missing = whole - have;
        self.due.allow(now, time_for(self.message_time, whole as u64));
    }

    /// Bytes of messages that are not whole yet, or not sent yet.
    pub(super) fn kept(&self) -> usize {
        let chunks = self.chunks.as_ref().map_or(0, |chunks| chunks.size);
        let held = self.held.as_ref().map_or(0, SendBuffer::len);
        self.plain.len() + chunks + held
    }

    /// When a message that has begun must be whole.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due.due()
    }

    /// It was not read for so long.
    pub(super) fn postpone(&mut self, by: Duration) {
        self.due.postpone(by);
    }

    /// Whether it is not, in time.
    pub(super) fn check_time(&self, now: Instant) -> Result<(), ProtocolError> {
        self.due.late(now).map_or(Ok(()), |seconds| Err(ProtocolError::TooSlow { seconds }))
    }
}

impl Chunks {
    /// `total` is the size of the message with this chunk.
    fn add(&mut self, bytes: Bytes, total: usize) {
        if self.size == 0 {
            self.first = bytes;
        } else {
            if self.joined.is_empty() {
                self.joined.reserve(total);
                self.joined.extend_from_slice(&std::mem::take(&mut self.first));
            }
            self.joined.extend_from_slice(&bytes);
        }
        self.size = total;
    }
}

/// Moves a message behind the head of its record. In singleton mode the chunks' end and the End record stand behind it:
/// nothing more is said then.
#[inline]
pub(super) fn frame(mode: Mode, payload: &mut SendBuffer, out: &mut SendBuffer) -> Result<(), Failure> {
    let size = payload.len();
    if size == 0 {
        return Ok(());
    }
    if size > MOST {
        payload.consume(size);
        return Err(over(size));
    }
    let chunked = mode == Mode::SingletonUnsized;
    let kind = if chunked { RecordKind::UnsizedEnvelope } else { RecordKind::SizedEnvelope };
    let flat = out.flat();
    flat.push(kind as u8);
    integer::put(size, flat);
    out.append(payload);
    if payload.flat().capacity() > KEEP {
        *payload = SendBuffer::new();
    }
    if chunked {
        out.flat().extend_from_slice(&[0, RecordKind::End as u8]);
    }
    Ok(())
}

#[cold]
fn over(size: usize) -> Failure {
    Failure::over_limit(Initiator::User, "bytes of a message", size, MOST)
}

/// The failure of whoever calls on a channel that is over.
#[cold]
pub(super) fn closed() -> Failure {
    Failure::new(Kind::Unreachable, Initiator::Here, "the channel is closed")
        .with_hint("connect again; a reference does so by itself")
}
