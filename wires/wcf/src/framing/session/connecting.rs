//! The side that connected: sends the preamble in one write, is upgraded, waits to be acknowledged, calls.

use super::super::channel::{Channel, closed, frame};
use super::super::faults::{self, DEMANDED, Fault};
use super::super::preamble::{Mode, Preamble};
use super::super::records::{self, Record, RecordKind, put_text};
use super::accepting::unprotected;
use super::{foreign, spoken};
use crate::settings::{self, Security, Settings};
use crate::soap::{Exchange, Side};
use crate::values::XML;
use crate::violations::Breach;
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::{
    Answer, Body, Budget, Call, CallId, Completed, Config, Emission, Event, Expects, Failure, Handle,
    Initiator, Interest, Kind, Outcome, Peer, PeerAddress, Profile, Rope, Session, Violation,
};
use std::collections::VecDeque;
use std::time::Instant;

/// Probes are numbered from here, calls far below.
const PROBES: u64 = 1 << 63;

/// The session of the side that connected.
pub struct Connecting {
    channel: Channel,
    exchange: Exchange,
    preamble: Preamble,
    /// The path that the channel leads to.
    key: Bytes,
    peer: PeerAddress,
    phase: Phase,
    /// Streamed calls that wait for their turn.
    queue: VecDeque<Turn>,
    /// The streamed call whose turn it is.
    turn: Option<Turn>,
    /// Calls that wait for the channel to open, in buffered mode.
    held: Vec<(CallId, Expects)>,
    /// Probes that wait for the channel to open.
    probes: Vec<CallId>,
    next_probe: u64,
    admitted: bool,
    authentication: &'static str,
    /// Why calls fail, where that is more than the violation says.
    refusal: Option<Failure>,
    /// Events to be told before those of the exchange.
    events: VecDeque<Event>,
    /// Whether the end of the connection is to be told.
    ending: bool,
    /// When the channel must be open.
    opening_due: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The upgrade was asked for.
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

/// A streamed call.
struct Turn {
    id: CallId,
    expects: Expects,
    /// Its records, until they are sent.
    message: Rope,
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
            exchange: Exchange::new(dialect, config, &settings, Side::Client),
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
            opening_due: None,
        };
        session.channel.compression = session.preamble.compression;
        session.introduce(Instant::now());
        session
    }

    fn is_streamed(&self) -> bool {
        self.preamble.mode == Mode::SingletonUnsized
    }

    /// Sends the preamble, up to the first record that has to be answered.
    fn introduce(&mut self, now: Instant) {
        self.opening_due = now.checked_add(self.channel.settings.quotas.open_timeout);
        let out = self.channel.out.flat();
        self.preamble.put(out);
        match self.channel.settings.transport_security.upgrade() {
            Some(name) => {
                put_text(RecordKind::UpgradeRequest, name.as_bytes(), out);
                self.phase = Phase::Upgrading;
            }
            None => {
                out.push(RecordKind::PreambleEnd as u8);
                self.phase = Phase::Opening;
            }
        }
    }

    fn take(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Breach> {
        if self.channel.layer.is_plain() {
            self.records(now, input)?;
            if self.channel.layer.is_plain() {
                return Ok(());
            }
        }
        let mut plain = std::mem::take(&mut self.channel.plain);
        let result = self.protected(now, input, &mut plain);
        self.channel.plain = plain;
        result
    }

    fn protected(&mut self, now: Instant, input: &mut BytesMut, plain: &mut BytesMut) -> Result<(), Breach> {
        self.channel.missing = 0;
        if let Err(failure) = self.channel.unwrap(input, plain) {
            return Err(self.unprotected(failure));
        }
        if self.phase == Phase::Handshaking && self.channel.layer.is_established() {
            self.authentication = self.channel.layer.authentication();
            self.finish_preamble()?;
        }
        if self.phase != Phase::Handshaking {
            self.records(now, plain)?;
        }
        if self.channel.missing == 0 {
            self.channel.missing = self.channel.layer.wanted(input);
        }
        Ok(())
    }

    /// What the layer says goes to the caller as it is: it knows what to try.
    #[cold]
    fn unprotected(&mut self, failure: Failure) -> Breach {
        let message = failure.to_string();
        let completed = if self.phase == Phase::Open { Completed::Maybe } else { Completed::No };
        self.refusal = Some(failure.with_completed(completed));
        Breach::Authentication { message }
    }

    fn finish_preamble(&mut self) -> Result<(), Breach> {
        self.phase = Phase::Opening;
        self.channel.put(|out| out.push(RecordKind::PreambleEnd as u8)).map_err(unprotected)
    }

    /// Takes whole records from the front of the input.
    fn records(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Breach> {
        self.channel.missing = 0;
        while !input.is_empty() && self.record(now, input)? {}
        Ok(())
    }

    /// Takes one; `false` if it is not here yet, or the bytes behind it are the layer's.
    #[inline]
    fn record(&mut self, now: Instant, input: &mut BytesMut) -> Result<bool, Breach> {
        if self.phase == Phase::Open {
            if self.channel.is_chunked() {
                return match self.channel.chunk(now, input)? {
                    Some(Some(document)) => self.message(now, document).map(|()| true),
                    Some(None) => Ok(true),
                    None => Ok(false),
                };
            }
            if input.first() == Some(&(RecordKind::SizedEnvelope as u8)) && !self.is_streamed() {
                return match self.channel.sized(now, input)? {
                    Some(document) => self.message(now, document).map(|()| true),
                    None => Ok(false),
                };
            }
        }
        self.other(now, input)
    }

    fn other(&mut self, now: Instant, input: &mut BytesMut) -> Result<bool, Breach> {
        match self.phase {
            Phase::Over => {
                // What comes after the end concerns nobody.
                input.clear();
                return Ok(false);
            }
            Phase::Handshaking => return Ok(false),
            Phase::Upgrading | Phase::Opening => self.check_protocol(input)?,
            _ => {}
        }
        let Some((record, len)) = records::read(input, &self.channel.bounds)? else {
            self.channel.missing = 1;
            return Ok(false);
        };
        let goes_on = self.told(now, &record, input.len() - len)?;
        input.advance(len);
        self.channel.received += len as u64;
        Ok(goes_on)
    }

    /// Whether whoever answers speaks this protocol at all.
    fn check_protocol(&mut self, input: &[u8]) -> Result<(), Breach> {
        let Some(breach) = foreign(input) else { return Ok(()) };
        let failure = Failure::new(Kind::BadReference, Initiator::User, breach.to_string());
        self.refusal = Some(
            failure
                .with_completed(Completed::No)
                .with_hint("the scheme of the address and what listens at its port differ"),
        );
        Err(breach)
    }

    /// A record other than a message; `rest` bytes stand behind it.
    fn told(&mut self, now: Instant, record: &Record<'_>, rest: usize) -> Result<bool, Breach> {
        let expected = match (self.phase, record) {
            (_, Record::Fault(uri)) => return Err(self.faulted(uri)),
            (Phase::Upgrading, Record::UpgradeResponse) => return self.upgrade(rest),
            (Phase::Upgrading, _) => "Upgrade Response",
            (Phase::Opening, Record::PreambleAck) => {
                self.acknowledged(now)?;
                return Ok(true);
            }
            (Phase::Opening, _) => "Preamble Ack",
            (Phase::Open, Record::UnsizedEnvelope) if self.is_streamed() => {
                self.channel.begin_chunks();
                return Ok(true);
            }
            (Phase::Open, Record::End) if self.is_streamed() => {
                self.end_turn(now)?;
                return Ok(true);
            }
            (Phase::Open, Record::End) => {
                self.ended();
                return Ok(true);
            }
            (Phase::Open, _) => "an envelope or End",
            (Phase::Between | Phase::Handshaking | Phase::Over, _) => "nothing",
        };
        Err(Breach::Unexpected { record: record.kind(), expected })
    }

    fn upgrade(&mut self, rest: usize) -> Result<bool, Breach> {
        let layer = self.channel.settings.client_layer().map_err(|failure| self.refused(failure))?;
        if layer.is_plain() {
            self.finish_preamble()?;
            return Ok(true);
        }
        // This side speaks first: whoever put bytes there is not protected by what follows.
        if rest > 0 {
            return Err(Breach::EarlyBytes { bytes: rest });
        }
        self.channel.layer = layer;
        self.phase = Phase::Handshaking;
        Ok(false)
    }

    /// Calls may go.
    fn acknowledged(&mut self, now: Instant) -> Result<(), Breach> {
        self.phase = Phase::Open;
        self.opening_due = None;
        self.held = Vec::new();
        if !self.admitted {
            self.admitted = true;
            self.events.push_back(Event::Ready(Peer::admitted(self.peer.clone(), self.authentication)));
        }
        for id in std::mem::take(&mut self.probes) {
            self.events.push_back(found(id));
        }
        self.channel.open().map_err(unprotected)?;
        self.next_turn(now);
        Ok(())
    }

    #[inline]
    fn message(&mut self, now: Instant, document: Bytes) -> Result<(), Breach> {
        let document = self.channel.unpacked(document)?;
        if let Err(failure) = self.exchange.receive(now, document, None, &self.key) {
            return Err(self.torn(failure));
        }
        self.flush(now).map_err(unprotected)?;
        if let Some(failure) = self.exchange.ended() {
            // A reliable session is all that the channel is for.
            self.ended_by(&failure);
        }
        Ok(())
    }

    /// What the exchange says goes to the callers as it is.
    #[cold]
    fn torn(&mut self, failure: Failure) -> Breach {
        let message = failure.to_string();
        self.refusal = Some(failure);
        Breach::Envelope { message }
    }

    /// Sends what the exchange says on its own account.
    #[inline]
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

    /// Sends the streamed call whose turn it is, or asks to be let in again for it.
    fn next_turn(&mut self, now: Instant) {
        if self.turn.is_none() {
            self.turn = self.queue.pop_front();
        }
        match self.phase {
            Phase::Between if self.turn.is_some() => self.introduce(now),
            Phase::Open => self.send_turn(),
            _ => {}
        }
    }

    fn send_turn(&mut self) {
        if let Some(turn) = &mut self.turn {
            // A streamed call's bytes are framed already.
            let message = &mut turn.message;
            if self.channel.put_framed(message).is_err() {
                self.ending = true;
            }
        }
    }

    /// Both sides have said all of a streamed call.
    fn end_turn(&mut self, now: Instant) -> Result<(), Breach> {
        let Some(turn) = self.turn.take() else {
            // Nobody was asked: the peer does not want to be.
            self.ended();
            return Ok(());
        };
        match turn.expects {
            Expects::Reply => {
                let message = "the peer ended the channel without a reply";
                let failure = Failure::new(Kind::Unreachable, Initiator::Peer, message);
                self.exchange.fail(turn.id, failure.with_completed(Completed::Maybe));
            }
            // Its end is all that is ever heard of it.
            Expects::Nothing => self.events.push_back(found(turn.id)),
        }
        self.channel.shut();
        if self.channel.layer.is_plain() {
            self.phase = Phase::Between;
            self.next_turn(now);
        } else {
            // The layer ended with the channel (MC-NMF 3.1.1.1.5).
            self.ended();
        }
        Ok(())
    }

    /// The peer says no more.
    fn ended(&mut self) {
        let failure = Failure::new(Kind::Unreachable, Initiator::Peer, "the peer ended the channel");
        self.ended_by(&failure.with_completed(Completed::Maybe));
    }

    fn ended_by(&mut self, failure: &Failure) {
        if self.phase == Phase::Open && !self.is_streamed() {
            // The goodbye is a courtesy.
            let _ = self.channel.put(|out| out.push(RecordKind::End as u8));
        }
        self.lost(failure);
        self.ending = true;
    }

    #[cold]
    fn faulted(&mut self, uri: &[u8]) -> Breach {
        let uri = String::from_utf8_lossy(uri);
        let via = &self.preamble.via;
        let failure = if Fault::from_uri(&uri) == Some(Fault::UpgradeInvalid) {
            faults::upgrade_refused(via, self.channel.settings.transport_security)
        } else {
            faults::failure(&uri, via, self.preamble.encoding.content_type())
        };
        // Until the channel was open nothing of a call was sent.
        let completed = if self.phase == Phase::Open { Completed::Maybe } else { Completed::No };
        self.refused(failure.with_completed(completed))
    }

    #[cold]
    fn refused(&mut self, failure: Failure) -> Breach {
        let message = failure.to_string();
        self.refusal = Some(failure);
        Breach::Refused { message }
    }

    #[cold]
    fn broken(&mut self, breach: &Breach) -> Violation {
        let violation = breach.violation(self.channel.received);
        let failure = match (self.refusal.take(), breach) {
            (Some(failure), _) => failure,
            (None, Breach::NoPreamble { .. }) => {
                Failure::new(Kind::TimedOut, Initiator::Peer, breach.to_string())
                    .with_completed(Completed::No)
            }
            (None, Breach::OverLimit { .. }) => self
                .channel
                .settings
                .quotas
                .message_too_large(Initiator::Peer)
                .with_completed(Completed::Maybe),
            _ => violation.clone().into(),
        };
        self.lost(&failure);
        self.refusal = Some(failure);
        violation
    }

    fn lost(&mut self, failure: &Failure) {
        self.phase = Phase::Over;
        for id in std::mem::take(&mut self.probes) {
            self.events.push_back(Event::Reply { id, outcome: Outcome::Failed(failure.clone()) });
        }
        // What was not sent can be tried again.
        let turns = self.turn.take().into_iter().chain(self.queue.drain(..));
        let turns = turns.map(|turn| (turn.id, turn.expects, turn.message.is_empty()));
        let held = self.held.drain(..).map(|(id, expects)| (id, expects, false));
        for (id, expects, sent) in held.chain(turns).collect::<Vec<_>>() {
            let completed = if sent { Completed::Maybe } else { Completed::No };
            let failure = failure.clone().with_completed(completed);
            match expects {
                Expects::Reply => self.exchange.fail(id, failure),
                Expects::Nothing => {
                    self.events.push_back(Event::Reply { id, outcome: Outcome::Failed(failure) });
                }
            }
        }
        self.exchange.disconnected(failure);
    }

    /// Puts a call that the exchange wrote among those that wait for their turn.
    fn enqueue(&mut self, now: Instant, id: CallId, expects: Expects) -> Result<(), Failure> {
        let mut message = Rope::new();
        self.channel.compress();
        frame(Mode::SingletonUnsized, &mut self.channel.payload, &mut message)?;
        self.queue.push_back(Turn { id, expects, message });
        if self.turn.is_none() {
            self.next_turn(now);
        }
        Ok(())
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
        self.channel.wanted()
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        self.exchange.poll().or_else(|| std::mem::take(&mut self.ending).then_some(Event::Closed))
    }

    #[inline]
    fn transmit(&mut self) -> &mut Rope {
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
            Phase::Open | Phase::Between => self.events.push_back(found(id)),
            _ => self.probes.push(id),
        }
        Ok(id)
    }

    fn emit(&mut self, _: Instant, _: &Emission<'_>) -> Result<(), Failure> {
        let what = "who is called does not listen to signals";
        Err(Failure::new(Kind::Unsupported, Initiator::Here, what))
    }

    fn subscribe(&mut self, _: Instant, interest: &Interest<'_>) -> Result<CallId, Failure> {
        if self.phase == Phase::Over {
            return Err(closed());
        }
        if self.is_streamed() {
            let what = "a streamed channel carries no callbacks";
            return Err(
                Failure::new(Kind::Unsupported, Initiator::User, what).with_hint("give `mode=buffered`")
            );
        }
        Ok(self.exchange.subscribe(interest))
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
            let _ = self.channel.put(|out| out.push(RecordKind::End as u8));
        }
        self.phase = Phase::Over;
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

    fn is_serial(&self) -> bool {
        self.is_streamed()
    }

    fn deadline(&self) -> Option<Instant> {
        if self.phase == Phase::Over {
            return None;
        }
        let due = [self.opening_due, self.channel.deadline(), self.exchange.deadline()];
        due.into_iter().flatten().min()
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        let opening = match self.opening_due {
            Some(due) if due <= now => {
                let seconds = self.channel.settings.quotas.open_timeout.as_secs();
                Err(Breach::NoPreamble { seconds })
            }
            _ => self.channel.check_time(now),
        };
        let result = opening.and_then(|()| {
            self.exchange.expire(now).map_err(|failure| self.torn(failure))?;
            self.flush(now).map_err(unprotected)
        });
        result.map_err(|breach| self.broken(&breach))
    }

    fn outstanding(&self) -> usize {
        let told = |turn: &&Turn| turn.expects == Expects::Nothing;
        let turns = self.queue.iter().chain(&self.turn).filter(told).count();
        let held = self.held.iter().filter(|(_, expects)| *expects == Expects::Nothing).count();
        self.exchange.outstanding() + held + turns + self.probes.len()
    }
}

/// The answer to a probe for an endpoint that is there, and the outcome of a call that expects nothing.
fn found(id: CallId) -> Event {
    let body = Body {
        bytes: Bytes::new(),
        base: 0,
        little: true,
        dialect: crate::values::TEXT,
        context: Bytes::new(),
        budget: Budget::default(),
        codec: &XML,
        beside: None,
    };
    Event::Reply { id, outcome: Outcome::Done(body) }
}
