//! The side that was connected to: reads the preamble, is upgraded, acknowledges, serves; then perhaps
//! another preamble.
//!
//! States (`Phase`): Preamble (its records come), Upgrading (an upgrade or the end of the preamble comes),
//! Handshaking (the layer speaks), Waiting (the place serves as many sessions as it may), Open, Over.
//! `lookup`, `upgrade`, `established`, `admit` and `begin` lead forward; `between` leads from Open back to
//! Preamble, on a connection without a layer; `broken`, `close` and `disconnected` lead to Over.
//!
//! Invariants:
//!
//! * Nothing is served before the preamble has named an object that exists and the security that the place
//!   demands is there; `Event::Ready` follows that, once.
//! * Calls have numbers that go on from channel to channel of one connection (`base`), so a late answer to
//!   an earlier channel is dropped, and not sent to the wrong caller.
//! * When the peer has ended the channel, its calls are still answered; then this side ends it, too. A
//!   streamed channel ends with its one answer.
//! * Time: the whole preamble must come within ChannelInitializationTimeout, counted from the begin of the
//!   connection, and for a later preamble from its first byte; an open channel on which nobody waits may be
//!   silent for ReceiveTimeout, a connection between two channels for IdleTimeout.
//! * What the place counts (`held`) is given back when the channel ends, and in any case when the session
//!   is dropped.
//! * While calls wait for their turn nothing is read, unless this side itself waits for the answer to a
//!   callback.

mod channels;
mod opening;
mod turns;

use super::super::channel::{Channel, closed};
use super::super::faults::{SERVER_TOO_BUSY, uri};
use super::super::preamble::{Mode, Preamble, PreambleReader};
use super::super::records::{Record, RecordKind, put_text};
use super::{Side, may_be_records, unprotected};
use crate::settings::Settings;
use crate::soap::{Dialect, SoapChannel};
use crate::throttle::ConnectionPermits;
use crate::violations::ProtocolError;
use crate::wire_state::Node;
use bytes::{Bytes, BytesMut};
use everywire_model::{
    Answer, Call, CallId, Completed, Config, Emission, Event, Expects, Failure, Handle, Initiator, Kind,
    Profile, SendBuffer, Session, SignalFilter, Violation,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// What a caller that speaks HTTP is told, in words that its library can show.
const NOT_HTTP: &str = "this is net.tcp, not HTTP: call it by net.tcp://\n";

/// The session of a side that was connected to: waits for a preamble.
pub struct Accepting {
    config: Config,
    channel: Channel,
    /// Without one each path is taken as an object's key (tests and tools).
    node: Option<Arc<Node>>,
    phase: Phase,
    preamble: Option<Preamble>,
    /// The path that the channel leads to.
    key: Bytes,
    exchange: Option<SoapChannel>,
    /// How the exchange's envelopes are written.
    spoken: Option<Dialect>,
    /// How many numbers the calls of earlier channels have used. Outside, a call has the exchange's number
    /// plus this; an answer with a smaller number is to a call of an earlier channel, and is dropped.
    base: u64,
    /// The greatest number that the exchange has used.
    greatest: u64,
    /// Callbacks that wait for their reply.
    /// By the exchange's numbers.
    callbacks: Vec<CallId>,
    /// How the peer was authenticated by an upgrade.
    /// Of the channel that is open or being opened.
    upgraded: Option<&'static str>,
    admitted: bool,
    /// Events to be told before those of the exchange.
    events: VecDeque<Event>,
    /// Whether the end of the connection is to be told.
    ending: bool,
    /// Whether the one envelope of a streamed call has begun to come.
    enveloped: bool,
    /// When the preamble must be over.
    /// Or, in Waiting, when the session's turn must have come. `None` while nothing is being opened.
    opening_due: Option<Instant>,
    /// When bytes came last.
    last: Instant,
    /// What this connection takes up of what the place allows for.
    held: ConnectionPermits,
    /// Calls that wait because the place serves as many as it may, and all events behind them.
    waiting: VecDeque<Event>,
    /// Bytes that came while the session waited for its turn.
    early: BytesMut,
    /// A breach that was found in `poll`, which cannot return it: `deadline` is then in the past, and
    /// `expire` returns it.
    doomed: Option<ProtocolError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// Up to the encoding.
    Preamble(PreambleReader),
    /// An upgrade or the end of the preamble.
    Upgrading,
    /// The layer is being established.
    Handshaking,
    /// The preamble is over; the place serves as many sessions as it may.
    Waiting,
    Open(EndRecords),
    Over,
}

/// Which side has sent its End record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct EndRecords {
    peer: bool,
    here: bool,
}

impl Accepting {
    /// Whether an answer in HTTP is the refusal of a server of net.tcp: its sender is no server of HTTP.
    pub fn refuses_http(answer: &[u8]) -> bool {
        answer.ends_with(NOT_HTTP.as_bytes())
    }

    /// A session for a connection that came in by the place that the configuration's profile describes.
    pub fn new(config: &Config) -> Self {
        let settings = Settings::of(&config.profile);
        // A silent peer must not wait for the first byte to be timed.
        let now = Instant::now();
        Self {
            channel: Channel::new(config, &settings),
            node: config.wire_state.as_ref().and_then(Node::of),
            config: config.clone(),
            phase: Phase::Preamble(PreambleReader::default()),
            preamble: None,
            key: Bytes::new(),
            exchange: None,
            spoken: None,
            base: 0,
            greatest: 0,
            callbacks: Vec::new(),
            upgraded: None,
            admitted: false,
            events: VecDeque::new(),
            ending: false,
            enveloped: false,
            opening_due: now.checked_add(settings.quotas.channel_initialization_timeout),
            last: now,
            held: ConnectionPermits::new(&settings, config.waker.clone()),
            waiting: VecDeque::new(),
            early: BytesMut::new(),
            doomed: None,
        }
    }

    /// Of the last preamble.
    fn mode(&self) -> Mode {
        self.preamble.as_ref().map_or(Mode::Duplex, |preamble| preamble.mode)
    }

    /// A record other than a message while the channel is open.
    fn opened(&mut self, record: &Record<'_>, ended: bool) -> Result<bool, ProtocolError> {
        match record.kind {
            _ if ended => {}
            // There is one each way (MC-NMF, Singleton-Unsized).
            RecordKind::UnsizedEnvelope if self.mode() == Mode::SingletonUnsized && !self.enveloped => {
                self.enveloped = true;
                self.channel.begin_chunks();
                return Ok(true);
            }
            RecordKind::End => {
                if let Phase::Open(ends) = &mut self.phase {
                    ends.peer = true;
                }
                let what = "the caller ended the channel before it replied";
                let failure = Failure::new(Kind::Unreachable, Initiator::Peer, what);
                let failure = failure.with_completed(Completed::Maybe);
                let callbacks = std::mem::take(&mut self.callbacks);
                if let Some(exchange) = &mut self.exchange {
                    callbacks.into_iter().for_each(|id| exchange.fail(id, failure.clone()));
                }
                self.settle();
                return Ok(true);
            }
            // In simplex mode the preamble may have an end.
            RecordKind::PreambleEnd if self.mode() == Mode::Simplex => return Ok(true),
            RecordKind::Fault => {
                let code = String::from_utf8_lossy(record.content);
                let message = format!("the peer faulted with code {}", code.escape_debug());
                return Err(ProtocolError::Refused { message });
            }
            _ => {}
        }
        let expected = match () {
            () if ended => "nothing",
            () if self.enveloped => "End",
            () => "an envelope or End",
        };
        Err(ProtocolError::Unexpected { record: record.kind, expected })
    }

    /// Sends what the exchange says on its own account.
    #[inline]
    fn flush(&mut self, now: Instant) -> Result<(), Failure> {
        let mode = self.mode();
        while let Some(exchange) = &mut self.exchange
            && exchange.flush(now, &mut self.channel.payload).is_some()
        {
            self.send_payload(mode)?;
        }
        Ok(())
    }

    /// Sends the message in the payload, unless this side has ended the channel already.
    #[inline]
    fn send_payload(&mut self, mode: Mode) -> Result<(), Failure> {
        let Phase::Open(ends @ EndRecords { here: false, .. }) = &mut self.phase else {
            self.channel.discard_payload();
            return Ok(());
        };
        // A singleton's End stands behind its message.
        ends.here = mode == Mode::SingletonUnsized && !self.channel.payload.is_empty();
        self.channel.send_payload(mode)
    }

    /// Whether this side may begin messages: only where the peer may still answer them.
    fn check_open(&self) -> Result<(), Failure> {
        if !matches!(self.phase, Phase::Open(EndRecords { peer: false, here: false })) {
            return Err(closed());
        }
        if self.mode() != Mode::Duplex {
            let what = "a streamed channel carries no callbacks";
            return Err(Failure::unsupported(what));
        }
        Ok(())
    }

    /// The peer broke the rules: tells it, if there are words for it, and ends.
    #[cold]
    fn broken(&mut self, breach: &ProtocolError) -> Violation {
        let said = matches!(self.phase, Phase::Open(EndRecords { here: true, .. }));
        if let ProtocolError::Foreign { protocol: "HTTP", .. } = breach {
            let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n";
            let answer = format!("{head}Content-Length: {}\r\n\r\n{NOT_HTTP}", NOT_HTTP.len());
            self.channel.out.flat().extend_from_slice(answer.as_bytes());
        } else if let Some(fault) = breach.fault().filter(|_| !said && self.phase != Phase::Handshaking) {
            // Whoever cannot be told is only closed on.
            let _ = self.channel.put(|out| put_text(RecordKind::Fault, uri(fault).as_bytes(), out));
        }
        self.phase = Phase::Over;
        self.held.end();
        breach.violation(self.channel.received)
    }
}

impl Side for Accepting {
    #[inline]
    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    #[inline]
    fn envelopes(&self) -> Option<Mode> {
        matches!(self.phase, Phase::Open(EndRecords { peer: false, .. })).then(|| self.mode())
    }

    fn is_handshaking(&self) -> bool {
        self.phase == Phase::Handshaking
    }

    fn established(&mut self) -> Result<(), ProtocolError> {
        self.upgraded = Some(self.channel.layer.authentication());
        self.phase = Phase::Upgrading;
        Ok(())
    }

    /// What it asks for comes out of `poll`.
    #[inline]
    fn message(&mut self, now: Instant, document: Bytes) -> Result<(), ProtocolError> {
        let document = self.channel.unpacked(document)?;
        if let Some(exchange) = &mut self.exchange {
            exchange.receive(now, document, None, &self.key).map_err(broken_envelope)?;
            if self.held.counts_calls() {
                self.count_calls()?;
            }
        }
        self.flush(now).map_err(unprotected)
    }

    fn may_read(&mut self, now: Instant, input: &mut BytesMut) -> Result<bool, ProtocolError> {
        match &self.phase {
            // What comes after the end concerns nobody.
            Phase::Over => input.clear(),
            Phase::Preamble(reading) => {
                // The first byte of another preamble starts its time.
                let time = self.channel.settings.quotas.channel_initialization_timeout;
                self.opening_due = self.opening_due.or_else(|| now.checked_add(time));
                if reading.is_new() && !may_be_records(input)? {
                    self.channel.missing = 1;
                    return Ok(false);
                }
            }
            _ => {}
        }
        Ok(!matches!(self.phase, Phase::Handshaking | Phase::Waiting | Phase::Over))
    }

    fn told(&mut self, now: Instant, record: &Record<'_>, rest: usize) -> Result<bool, ProtocolError> {
        match &mut self.phase {
            Phase::Preamble(reading) => {
                if let Some(preamble) = reading.take(record)? {
                    self.lookup(preamble)?;
                }
                Ok(true)
            }
            Phase::Upgrading => match record.kind {
                RecordKind::UpgradeRequest => self.upgrade(record.content, rest),
                RecordKind::PreambleEnd => self.admit(now).map(|()| true),
                record => {
                    Err(ProtocolError::Unexpected { record, expected: "Upgrade Request or Preamble End" })
                }
            },
            Phase::Open(ends) => {
                let ended = ends.peer;
                self.opened(record, ended)
            }
            Phase::Handshaking | Phase::Waiting | Phase::Over => Ok(false),
        }
    }
}

impl Session for Accepting {
    fn receive(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        handles.clear();
        if self.phase == Phase::Waiting || !self.early.is_empty() {
            // Nothing may be read before the session's turn: what came is kept, and the link reads no more
            // (`read_paused`).
            self.early.unsplit(input.split());
            if self.phase == Phase::Waiting {
                return Ok(());
            }
            std::mem::swap(&mut self.early, input);
        }
        self.last = now;
        let result = self.take(now, input);
        if self.phase == Phase::Waiting {
            self.early = input.split();
        }
        result.map_err(|breach| self.broken(&breach))
    }

    fn wanted(&self) -> usize {
        self.channel.missing
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        let apart = self.phase == Phase::Waiting || !self.events.is_empty() || self.held.counts_calls();
        if apart && let Some(event) = self.poll_apart() {
            return Some(event);
        }
        if let Some(mut event) = self.exchange.as_mut().and_then(SoapChannel::poll) {
            self.renumber(&mut event);
            return Some(event);
        }
        // Whoever is told so transmits no more: the goodbye has to leave first.
        (self.channel.out.is_empty() && std::mem::take(&mut self.ending)).then_some(Event::Closed)
    }

    #[inline]
    fn transmit(&mut self) -> &mut SendBuffer {
        &mut self.channel.out
    }

    fn start(&mut self, now: Instant, call: &Call<'_>) -> Result<CallId, Failure> {
        self.check_open()?;
        let Some(exchange) = &mut self.exchange else { return Err(closed()) };
        let started = exchange.start(now, call, &mut self.channel.payload)?;
        self.send_payload(Mode::Duplex)?;
        self.flush(now)?;
        self.greatest = self.greatest.max(started.id.0);
        if call.expects == Expects::Reply {
            self.callbacks.push(started.id);
        }
        Ok(CallId(started.id.0 + self.base))
    }

    fn probe(&mut self, _: Instant, _: &Profile) -> Result<CallId, Failure> {
        let what = "who called cannot be asked for objects";
        Err(Failure::unsupported(what))
    }

    fn emit(&mut self, now: Instant, emission: &Emission<'_>) -> Result<(), Failure> {
        // Whoever cannot listen any more, or not at all, does not.
        let Some(exchange) = self.check_open().ok().and(self.exchange.as_mut()) else { return Ok(()) };
        exchange.emit(now, emission, &mut self.channel.payload)?;
        self.send_payload(Mode::Duplex)?;
        self.flush(now)
    }

    fn subscribe(&mut self, _: Instant, _: &Profile, _: SignalFilter<'_>) -> Result<CallId, Failure> {
        let what = "who called emits no signals";
        Err(Failure::unsupported(what))
    }

    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure> {
        self.held.finish(id);
        // A call of a channel before this one: its caller is gone.
        let Some(local) = id.0.checked_sub(self.base).map(CallId) else { return Ok(()) };
        // The usual case: the message is written where it is sent from.
        let open = matches!(self.phase, Phase::Open(EndRecords { peer: false, here: false }));
        let duplex = self.mode() == Mode::Duplex;
        let Some(exchange) = &mut self.exchange else { return Ok(()) };
        if open
            && duplex
            && let Some(begun) = self.channel.begin()
        {
            let answered = exchange.answer(local, answer, &mut self.channel.out).map(drop);
            let sent = self.channel.finish(begun);
            return answered.and(sent);
        }
        let answered = exchange.answer(local, answer, &mut self.channel.payload).map(drop);
        // If that failed, the caller is told so.
        let mode = self.mode();
        let sent = self.send_payload(mode);
        self.settle();
        answered.and(sent)
    }

    fn cancel(&mut self, id: CallId) {
        // A call of a channel before this one is over.
        if let (Some(local), Some(exchange)) = (id.0.checked_sub(self.base).map(CallId), &mut self.exchange) {
            exchange.cancel(local);
            self.callbacks.retain(|known| *known != local);
        }
    }

    fn close(&mut self) {
        if let Phase::Open(EndRecords { here: false, .. }) = self.phase {
            // The goodbye is a courtesy.
            let _ = self.channel.put(|out| out.push(RecordKind::End as u8));
        }
        self.phase = Phase::Over;
    }

    fn disconnected(&mut self, failure: &Failure) {
        self.phase = Phase::Over;
        // Of the others nobody hears any more.
        self.waiting.retain(|event| matches!(event, Event::Call(call) if call.expects == Expects::Nothing));
        self.early.clear();
        self.held.end();
        self.callbacks.clear();
        if let Some(exchange) = &mut self.exchange {
            exchange.disconnected(failure);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let quotas = &self.channel.settings.quotas;
        if self.doomed.is_some() {
            return Some(self.last);
        }
        let silence = match self.phase {
            Phase::Over => return None,
            Phase::Open(_) if self.outstanding() > 0 => None,
            Phase::Open(_) => self.last.checked_add(quotas.receive_timeout),
            Phase::Preamble(_) if self.opening_due.is_none() => self.last.checked_add(quotas.idle_timeout),
            _ => None,
        };
        // It is asked after each event: most connections have neither of the rare times.
        let rare = self.opening_due.is_some() || self.channel.deadline().is_some();
        match self.exchange.as_ref().and_then(SoapChannel::deadline) {
            None if !rare => silence,
            exchange => {
                [self.opening_due, self.channel.deadline(), silence, exchange].into_iter().flatten().min()
            }
        }
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        if let Some(breach) = self.doomed.take() {
            return Err(self.broken(&breach));
        }
        let quotas = self.channel.settings.quotas;
        let since = |time| self.last.checked_add(time).is_some_and(|due| due <= now);
        let due = self.opening_due.is_some_and(|due| due <= now);
        let result = if due && self.phase == Phase::Waiting {
            Err(ProtocolError::Busy { limit: quotas.max_concurrent_sessions })
        } else if due {
            Err(ProtocolError::NoPreamble { seconds: quotas.channel_initialization_timeout.as_secs() })
        } else {
            self.channel.check_time(now)
        };
        let silent = match self.phase {
            Phase::Open(_) => self.outstanding() == 0 && since(quotas.receive_timeout),
            Phase::Preamble(_) => self.opening_due.is_none() && since(quotas.idle_timeout),
            _ => false,
        };
        let result = result.and_then(|()| {
            if let Some(exchange) = &mut self.exchange {
                exchange.expire(now).map_err(broken_envelope)?;
            }
            self.flush(now).map_err(unprotected)
        });
        if silent && result.is_ok() {
            self.close();
            self.ending = true;
        }
        result.map_err(|breach| self.broken(&breach))
    }

    fn held(&self) -> usize {
        self.channel.kept() + self.early.len() + self.exchange.as_ref().map_or(0, SoapChannel::kept)
    }

    fn turn_away(&mut self, _: &Failure) -> bool {
        // A fault may stand in the place of whatever the peer waits for.
        let _ = self.channel.put(|out| put_text(RecordKind::Fault, uri(SERVER_TOO_BUSY).as_bytes(), out));
        self.phase = Phase::Over;
        false
    }

    fn read_paused(&self) -> bool {
        // Who waits for the answer to a callback must read on: it comes behind what waits.
        self.phase == Phase::Waiting || (!self.waiting.is_empty() && self.callbacks.is_empty())
    }

    fn outstanding(&self) -> usize {
        self.exchange.as_ref().map_or(0, SoapChannel::outstanding)
    }
}

/// The peer is told nothing: the framing has no fault for envelopes.
#[cold]
pub(super) fn broken_envelope(failure: Failure) -> ProtocolError {
    ProtocolError::Envelope { message: failure.to_string() }
}
