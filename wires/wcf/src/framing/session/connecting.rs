//! The side that connected: sends the preamble in one write, is upgraded, waits to be acknowledged, calls.
//!
//! One session leads to one object (the via names it). In buffered mode its channel stays open for any
//! number of calls, one-way messages and callbacks. In streamed mode each call has a channel of its own:
//! preamble, acknowledgement, one message, End, one message back, End; then the next call's preamble, on
//! the same connection.
//!
//! States (`Phase`): Upgrading (the upgrade was asked for), Handshaking (the layer speaks), Opening (the
//! preamble has ended), Open, Between (streamed: the call is over), Over. Without an upgrade it begins with
//! Opening. `introduce`, `upgrade`, `finish_preamble`, `acknowledged` and `end_turn` lead from one to the
//! next, `lost` to the last.
//!
//! Invariants:
//!
//! * Nothing of a call is sent before the preamble is acknowledged: calls that fail until then were surely
//!   not carried out (`Completed::No`).
//! * Each call that was begun ends with one Reply event: from the exchange, from `end_turn`, or from
//!   `lost`. `held` and the queue of turns know the calls that the exchange does not wait for (one-way
//!   ones) or that were not sent.
//! * Bytes that come with the answer to an upgrade and before the handshake are refused: nobody vouches for
//!   them.
//! * A layer that protects the connection ends with its channel (MC-NMF 3.1.1.1.5): streamed calls over TLS
//!   need a connection each.
//! * Whoever closes it while its reliable session is asked for or has messages under way says End behind the end of that session
//!   (`parting`): what follows End is read by nobody.
//! * In Over everything that comes is dropped, and nothing more is said. `Event::Closed` is told when what was
//!   said before has been sent (`ending`).

mod ending;
mod opening;
mod turns;

use super::super::channel::{Channel, closed};
use super::super::faults::DEMANDED;
use super::super::preamble::{Mode, Preamble};
use super::super::records::{Record, RecordKind};
use super::{Side, spoken, unprotected};
use crate::settings::{self, Security, Settings};
use crate::soap::{self, SoapChannel};
use crate::values::bare;
use crate::violations::ProtocolError;
use bytes::{Bytes, BytesMut};
use everywire_model::{
    Answer, Budget, Call, CallId, Config, Emission, Event, Expects, Failure, Handle, Initiator, Kind,
    Outcome, PeerAddress, Profile, SendBuffer, Session, SignalFilter, Violation,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use turns::StreamedCall;

/// Probes are numbered from here, calls far below.
/// The exchange counts calls from 1.
const PROBES: u64 = 1 << 63;

/// The session of the side that connected.
pub struct Connecting {
    /// Records, layer, quotas.
    channel: Channel,
    /// Envelopes, and the calls that wait for answers.
    exchange: SoapChannel,
    /// Sent again for each streamed call.
    preamble: Preamble,
    /// The path that the channel leads to.
    key: Bytes,
    peer: PeerAddress,
    phase: Phase,
    /// Streamed calls that wait for their turn.
    queue: VecDeque<StreamedCall>,
    /// The streamed call whose turn it is.
    turn: Option<StreamedCall>,
    /// Calls that wait for the channel to open, in buffered mode.
    held: Vec<(CallId, Expects)>,
    /// Probes that wait for the channel to open.
    /// Whoever acknowledges the preamble answers all of them.
    probes: Vec<CallId>,
    /// The number of the next one.
    next_probe: u64,
    /// Whether `Event::Ready` was told: once for a connection.
    admitted: bool,
    /// How the service proved who it is, for people.
    authentication: &'static str,
    /// The failure that callers get, where it says more than the violation that the link gets.
    refusal: Option<Failure>,
    /// Events to be told before those of the exchange.
    events: VecDeque<Event>,
    /// Whether the end of the connection is to be told.
    ending: bool,
    /// Whether it was closed, and says End as soon as its reliable session has ended.
    parting: bool,
    /// When the channel must be open.
    opening_due: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The upgrade was asked for.
    /// Its answer, one octet, or a fault comes.
    Upgrading,
    /// The layer is being established.
    Handshaking,
    /// The end of the preamble was sent.
    Opening,
    Open,
    /// Both sides ended a streamed call: another preamble may follow.
    Between,
    Over,
}

impl Connecting {
    /// A session for a connection to the way that the configuration's profile describes. Speaks first.
    pub fn new(config: &Config) -> Self {
        let settings = Settings::of(&config.profile);
        let mode = match settings.mode {
            settings::Mode::Buffered => Mode::Duplex,
            settings::Mode::Streamed => Mode::SingletonUnsized,
        };
        let (encoding, dialect) = spoken(settings.encoding, mode);
        let key = config.profile.key.clone();
        let unix = config.peer.credentials.is_some();
        let mut session = Self {
            channel: Channel::new(config, &settings),
            exchange: SoapChannel::new(dialect, config, &settings, soap::Side::Client),
            preamble: Preamble { mode, via: settings.via(&key), encoding, compression: settings.compressed },
            key,
            peer: config.peer.clone(),
            phase: Phase::Between,
            queue: VecDeque::new(),
            turn: None,
            held: Vec::new(),
            probes: Vec::new(),
            next_probe: PROBES,
            admitted: false,
            authentication: if unix { "unix credentials" } else { "none" },
            refusal: None,
            events: VecDeque::new(),
            ending: false,
            parting: false,
            opening_due: None,
        };
        session.channel.compression = session.preamble.compression;
        session.introduce(Instant::now());
        session
    }

    /// Whether each call has a channel of its own.
    fn is_streamed(&self) -> bool {
        self.preamble.mode == Mode::SingletonUnsized
    }

    /// Sends what the exchange says on its own account.
    // With each call and each answer, and mostly nothing.
    #[inline(always)]
    fn flush(&mut self, now: Instant) -> Result<(), Failure> {
        while self.exchange.flush(now, &mut self.channel.payload).is_some() {
            // In streamed mode the call's turn is taken: there is nobody to say it to.
            if self.is_streamed() || self.phase == Phase::Over {
                self.channel.discard_payload();
            } else {
                self.channel.send_payload(Mode::Duplex)?;
            }
        }
        Ok(())
    }
}

impl Side for Connecting {
    #[inline]
    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    #[inline]
    fn envelopes(&self) -> Option<Mode> {
        (self.phase == Phase::Open).then_some(self.preamble.mode)
    }

    fn is_handshaking(&self) -> bool {
        self.phase == Phase::Handshaking
    }

    fn established(&mut self) -> Result<(), ProtocolError> {
        self.authentication = self.channel.layer.authentication();
        self.finish_preamble()
    }

    /// What the layer says goes to the caller as it is: it knows what to try.
    #[cold]
    fn torn_layer(&mut self, failure: Failure) -> ProtocolError {
        let failure = failure.with_completed(self.completed());
        ProtocolError::Authentication { message: self.keep(failure) }
    }

    #[inline]
    fn message(&mut self, now: Instant, document: Bytes) -> Result<(), ProtocolError> {
        let document = self.channel.unpacked(document)?;
        if let Err(failure) = self.exchange.receive(now, document, None, &self.key) {
            return Err(self.torn(failure));
        }
        self.flush(now).map_err(unprotected)?;
        if self.exchange.is_reliable() {
            self.look_at_session();
        }
        Ok(())
    }

    fn may_read(&mut self, _: Instant, input: &mut BytesMut) -> Result<bool, ProtocolError> {
        let phase = self.phase;
        match phase {
            // What comes after the end concerns nobody.
            Phase::Over => input.clear(),
            Phase::Upgrading | Phase::Opening if !self.check_protocol(input)? => {
                self.channel.missing = 1;
                return Ok(false);
            }
            _ => {}
        }
        Ok(!matches!(self.phase, Phase::Handshaking | Phase::Over))
    }

    fn told(&mut self, now: Instant, record: &Record<'_>, rest: usize) -> Result<bool, ProtocolError> {
        let expected = match (self.phase, record.kind) {
            (_, RecordKind::Fault) => return Err(self.faulted(record.content)),
            (Phase::Upgrading, RecordKind::UpgradeResponse) => return self.upgrade(rest),
            (Phase::Upgrading, _) => "Upgrade Response",
            (Phase::Opening, RecordKind::PreambleAck) => return self.acknowledged(now).map(|()| true),
            (Phase::Opening, _) => "Preamble Ack",
            (Phase::Open, RecordKind::UnsizedEnvelope) if self.is_streamed() => {
                self.channel.begin_chunks();
                return Ok(true);
            }
            (Phase::Open, RecordKind::End) if self.is_streamed() => return self.end_turn(now).map(|()| true),
            (Phase::Open, RecordKind::End) => {
                self.ended();
                return Ok(true);
            }
            (Phase::Open, _) => "an envelope or End",
            (Phase::Between | Phase::Handshaking | Phase::Over, _) => "nothing",
        };
        Err(ProtocolError::Unexpected { record: record.kind, expected })
    }
}

impl Session for Connecting {
    fn refusal(&mut self) -> Option<Failure> {
        self.refusal.take()
    }

    fn receive(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        handles.clear();
        self.take(now, input).map_err(|breach| self.broken(&breach))
    }

    fn wanted(&self) -> usize {
        self.channel.missing
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        // Each is large: nothing but the queue itself hands it on.
        if !self.events.is_empty() {
            return self.events.pop_front();
        }
        if self.exchange.has_events() {
            return self.exchange.poll();
        }
        // Whoever is told so transmits no more: the goodbye has to leave first.
        (self.channel.out.is_empty() && std::mem::take(&mut self.ending)).then_some(Event::Closed)
    }

    #[inline]
    fn transmit(&mut self) -> &mut SendBuffer {
        &mut self.channel.out
    }

    #[inline]
    fn start(&mut self, now: Instant, call: &Call<'_>) -> Result<CallId, Failure> {
        if self.phase == Phase::Over {
            return Err(closed());
        }
        if self.phase == Phase::Open
            && !self.is_streamed()
            && let Some(begun) = self.channel.begin()
        {
            let started = self.exchange.start(now, call, &mut self.channel.out);
            self.channel.finish(begun)?;
            self.flush(now)?;
            return started.map(|started| started.id);
        }
        // The channel is not open, or the message has to be compressed or protected: it is written apart.
        let id = self.exchange.start(now, call, &mut self.channel.payload)?.id;
        if self.is_streamed() {
            self.enqueue(now, id, call.expects)?;
            return Ok(id);
        }
        if self.phase != Phase::Open {
            self.held.push((id, call.expects));
        }
        self.channel.send_payload(Mode::Duplex)?;
        self.flush(now)?;
        Ok(id)
    }

    /// Whoever acknowledges the preamble has the endpoint.
    fn probe(&mut self, _: Instant, _: &Profile) -> Result<CallId, Failure> {
        let id = CallId(self.next_probe);
        self.next_probe += 1;
        match self.phase {
            Phase::Over => return Err(closed()),
            // The preamble was acknowledged before.
            Phase::Open | Phase::Between => self.events.push_back(found(id)),
            _ => self.probes.push(id),
        }
        Ok(id)
    }

    fn emit(&mut self, _: Instant, _: &Emission<'_>) -> Result<(), Failure> {
        let what = "who is called does not listen to signals";
        Err(Failure::unsupported(what))
    }

    fn subscribe(
        &mut self,
        _: Instant,
        profile: &Profile,
        filter: SignalFilter<'_>,
    ) -> Result<CallId, Failure> {
        if self.phase == Phase::Over {
            return Err(closed());
        }
        if self.is_streamed() {
            let what = "a streamed channel carries no callbacks";
            let failure = Failure::new(Kind::Unsupported, Initiator::User, what);
            return Err(failure.with_hint("give `mode=buffered`"));
        }
        Ok(self.exchange.subscribe(profile, filter))
    }

    fn unsubscribe(&mut self, id: CallId) {
        self.exchange.unsubscribe(id);
    }

    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure> {
        let answered = self.exchange.answer(id, answer, &mut self.channel.payload).map(drop);
        if self.phase != Phase::Open || self.is_streamed() {
            self.channel.discard_payload();
            return answered;
        }
        // If that failed, the caller is told so.
        let sent = self.channel.send_payload(Mode::Duplex);
        answered.and(sent)
    }

    fn cancel(&mut self, id: CallId) {
        self.exchange.cancel(id);
        self.queue.retain(|turn| turn.id != id);
        self.held.retain(|(held, _)| *held != id);
        self.probes.retain(|probe| *probe != id);
        match &mut self.turn {
            // What has left must be heard to its end.
            Some(turn) if turn.id == id && turn.message.is_empty() => turn.expects = Expects::Nothing,
            Some(turn) if turn.id == id => self.turn = self.queue.pop_front(),
            _ => {}
        }
    }

    fn close(&mut self) {
        if self.phase == Phase::Open && !self.is_streamed() {
            // The goodbyes, of a reliable session and of the channel, are a courtesy.
            self.exchange.close();
            let _ = self.flush(Instant::now());
            self.parting = true;
            self.part();
        } else {
            self.phase = Phase::Over;
        }
    }

    fn is_closing(&self) -> bool {
        self.parting && self.phase == Phase::Open
    }

    fn disconnected(&mut self, failure: &Failure) {
        let secured = self.channel.settings.transport_security != Security::None;
        // Microsoft's services close without a word on whoever leaves out the upgrade that they demand.
        let hint = match self.phase {
            Phase::Opening if !secured && !self.admitted => DEMANDED,
            Phase::Upgrading if secured => {
                "the service may offer no security: if so, say ?security=none; or another one: security=tls, windows"
            }
            _ => return self.lost(failure),
        };
        let known = failure.hint().is_some() || failure.initiator() == Initiator::Here;
        self.lost(&if known { failure.clone() } else { failure.clone().with_hint(hint) });
    }

    fn one_at_a_time(&self) -> bool {
        self.is_streamed()
    }

    fn deadline(&self) -> Option<Instant> {
        if self.phase == Phase::Over {
            // The end is told when the goodbye has been sent: somebody has to look.
            return self.ending.then(Instant::now);
        }
        let due = [self.opening_due, self.channel.deadline(), self.exchange.deadline()];
        due.into_iter().flatten().min()
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        if self.phase == Phase::Over {
            return Ok(());
        }
        let opening = match self.opening_due {
            Some(due) if due <= now => {
                let seconds = self.channel.settings.quotas.open_timeout.as_secs();
                Err(ProtocolError::NoPreamble { seconds })
            }
            _ => self.channel.check_time(now),
        };
        let result = opening.and_then(|()| {
            self.exchange.expire(now).map_err(|failure| self.torn(failure))?;
            self.flush(now).map_err(unprotected)?;
            if self.parting {
                self.part();
            }
            Ok(())
        });
        result.map_err(|breach| self.broken(&breach))
    }

    fn postpone(&mut self, by: Duration) {
        self.channel.postpone(by);
    }

    fn outstanding(&self) -> usize {
        let told = |turn: &&StreamedCall| turn.expects == Expects::Nothing;
        let turns = self.queue.iter().chain(&self.turn).filter(told).count();
        let held = self.held.iter().filter(|(_, expects)| *expects == Expects::Nothing).count();
        self.exchange.outstanding() + held + turns + self.probes.len()
    }
}

/// The answer to a probe for an endpoint that is there, and the outcome of a call that expects nothing.
fn found(id: CallId) -> Event {
    Event::Reply { id, outcome: Outcome::Done(bare(Bytes::new(), Budget::default())) }
}
