//! The accepting side of the HTTP bindings.
//!
//! A session turns requests into calls, and answers into responses. `Server` yields requests one at a time,
//! `requests` looks who may and what is asked, the exchange reads the envelope, `sort` decides what becomes
//! of it: a call that is served, a fault, or 202 for a message that has no answer.
//!
//! State: at most one request is in hand. Either it became a call (`current`), or it waits for what another
//! connection brings (`awaiting`, in reliable sessions), or a page is asked of somebody else (`page`).
//! `resting` means that the peer does not read its answers, so nothing more is taken. `since` notes what is
//! arriving too slowly.
//!
//! Invariants:
//!
//! * Each request gets one response, in the order of requests; whatever else the exchange wants to say
//!   waits for the next one.
//! * A head must be there after `HEAD_TIME`, a body must come at `BODY_RATE`, an idle connection ends after
//!   IdleTimeout: no peer holds a connection for nothing.
//! * What waits is bounded: answers by `UNREAD`, further requests by `MAX_PIPELINED`, a body by
//!   `MaxReceivedMessageSize`.
//! * With HTTP Basic each request is checked by its own header; heads of such places are never recognized
//!   without it.
//! * A call whose connection is gone before its turn came is not begun. A one-way call is begun all the
//!   same: its caller was told 202.

mod door;
mod pages;
mod parsed_heads;
mod requests;
mod responses;

use super::breach::Breach;
use super::content::{self, LastFormat};
use super::dialect;
use super::server::Server;
use crate::settings::Settings;
use crate::soap::{Dialect, Side, SoapChannel};
use crate::throttle::Held;
use crate::wire_state::Node;
use bytes::{Bytes, BytesMut};
use door::door;
use everywire_model::body::Handle;
use everywire_model::layered::Proof;
use everywire_model::{
    Answer, Call, CallId, Config, Emission, Event, Expects, Failure, Initiator, Kind, Peer, PeerAddress,
    Profile, SendBuffer, Session, Violation,
};
use http::{HeaderValue, StatusCode};
use parsed_heads::ParsedHead;
use responses::{empty, told};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How long the head of a request may take. A head that takes longer comes from an attack (slow requests),
/// or over a line that is of no use.
pub const HEAD_TIME: Duration = Duration::from_secs(10);

/// Bytes of a body that have to arrive in each second, once [`HEAD_TIME`] has passed.
pub const BODY_RATE: usize = 1 << 10;

/// Bytes of answers that may wait for a peer that does not read before its next request is looked at.
const UNREAD: usize = 64 << 10;

/// Bytes of further requests that may wait while one is answered.
/// Beyond it the peer breaks the connection's rules: nothing of HTTP makes a client send so much ahead.
pub const MAX_PIPELINED: usize = 1 << 20;

/// The accepting side of a connection.
pub struct Accepting {
    settings: Arc<Settings>,
    dialect: Dialect,
    exchange: SoapChannel,
    server: Server,
    node: Option<Arc<Node>>,
    address: PeerAddress,
    /// The account that the peer proved to be.
    account: Option<Box<str>>,
    /// When something came or was answered last.
    last: Instant,
    /// What the link is to send.
    out: SendBuffer,
    /// To be told before anything else.
    events: VecDeque<Event>,
    /// The call that the request in hand became.
    current: Option<CallId>,
    /// The page of a description that the request in hand is for, where another node has it: the number of
    /// the call that asks for it, and the query. `pages` counts such calls.
    page: Option<(CallId, Box<str>)>,
    pages: u64,
    /// Whether the request in hand waits for what another connection brings.
    awaiting: bool,
    /// What this connection takes up of what the place allows for.
    held: Held,
    /// The call, and all that came behind it, that is not served yet because the place serves as many as it may.
    waiting: VecDeque<Event>,
    /// Whether its answer goes in a package (MTOM).
    packs: bool,
    /// Whether it is compressed.
    compresses: bool,
    content_type: HeaderValue,
    /// The path that was asked for last, and the key that it stands for.
    known: Option<(Box<str>, Bytes)>,
    format: LastFormat,
    /// What the heads say that are known again, by their places.
    parsed_heads: Vec<ParsedHead>,
    /// When the head or the body began that has not arrived whole.
    since: Option<(Instant, Part)>,
    begun: Instant,
    /// Bytes, for the place of a violation.
    received: u64,
    /// Bytes of the last envelope that was sent: the next one is probably of its size.
    room: usize,
    closed: bool,
    /// Tells that there may be events.
    waker: Option<Waker>,
    /// A breach that was found outside of `receive`, which alone could return it: `deadline` is then in the
    /// past, and `expire` returns it.
    doomed: Option<Breach>,
    /// The peer does not read its answers: nothing more is taken from it until it has.
    resting: bool,
    /// There is no place for this peer: its request is refused, for this reason.
    turned_away: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Body,
}

impl Accepting {
    /// A session for somebody who connected to the place that the configuration tells of.
    pub fn new(config: &Config) -> Self {
        Self::over(config, None)
    }

    /// The same, for somebody whom a layer of transport knows.
    pub(crate) fn over(config: &Config, proof: Option<&Proof>) -> Self {
        let settings = Settings::of(&config.profile);
        let dialect = dialect(&settings);
        let most = settings.quotas.max_received_message_size;
        let mut session = Self {
            exchange: SoapChannel::new(dialect, config, &settings, Side::Server),
            server: Server::new(most, door(&settings)),
            node: config.wire_state.as_ref().and_then(Node::of),
            address: config.peer.clone(),
            account: None,
            last: Instant::now(),
            out: SendBuffer::new(),
            events: VecDeque::new(),
            current: None,
            page: None,
            pages: 0,
            awaiting: false,
            held: Held::new(&settings, config.waker.clone()),
            waiting: VecDeque::new(),
            packs: false,
            compresses: false,
            content_type: HeaderValue::from_static(content::of(dialect)),
            known: None,
            format: LastFormat::default(),
            parsed_heads: Vec::new(),
            since: None,
            begun: Instant::now(),
            received: 0,
            room: 0,
            closed: false,
            waker: config.waker.clone(),
            doomed: None,
            resting: false,
            turned_away: None,
            settings,
            dialect,
        };
        let account = proof.and_then(|proof| proof.account.as_deref()).map(Box::from);
        if let Some(name) = &account {
            session.exchange.known_as(name);
        }
        let authentication = match proof {
            Some(proof) => proof.authentication,
            None if session.settings.basic_login => "HTTP Basic",
            None if session.address.credentials.is_some() => "unix credentials",
            None => "none",
        };
        session.introduce(authentication, account);
        session
    }

    /// Says who the peer is. Each user gets an event `Ready`, which names the peer of the calls that
    /// follow.
    fn introduce(&mut self, authentication: &'static str, account: Option<Box<str>>) {
        let peer = Peer::admitted(self.address.clone(), authentication);
        let peer = match &account {
            Some(account) => peer.with_account(account),
            None => peer,
        };
        self.account = account;
        self.events.push_back(Event::Ready(peer));
    }

    /// A request came from a user who said his password: the connection is his, until another one says his.
    fn believe(&mut self, account: String) {
        if self.account.as_deref() != Some(&*account) {
            self.introduce("HTTP Basic", Some(account.into()));
        }
    }

    /// When the connection has been quiet for too long, if nothing is in hand.
    fn idle(&self) -> Option<Instant> {
        // Nothing is arriving, in hand, or on its way.
        let quiet = !self.closed
            && self.since.is_none()
            && self.current.is_none()
            && !self.awaiting
            && self.out.is_empty();
        if quiet { self.last.checked_add(self.settings.quotas.idle_timeout) } else { None }
    }

    /// Serves what has arrived.
    fn work(&mut self, now: Instant) -> Result<(), Breach> {
        loop {
            if self.out.len() + self.server.end.pipe().output.len() > UNREAD {
                // What is left of a response is written when this goes on.
                self.resting = true;
                break;
            }
            if let Some((place, body)) = self.server.repeated() {
                self.since = None;
                self.take_again(now, place, body)?;
                continue;
            }
            if self.server.rests() {
                break;
            }
            self.server.advance();
            if let Some(breach) = self.server.breach() {
                return Err(breach);
            }
            let Some(received) = self.server.received() else { break };
            // What comes behind it has its own time.
            self.since = None;
            self.take(now, received)?;
        }
        let waiting = self.server.end.pipe().input.len();
        if self.server.is_busy() && self.server.arriving().is_none() && waiting > MAX_PIPELINED {
            return Err(Breach::Pipelined(waiting));
        }
        self.watch(now);
        Ok(())
    }

    /// Notes what is still arriving.
    fn watch(&mut self, now: Instant) {
        // Only the change counts: the time of a part goes on while it comes.
        let in_head = || self.server.is_in_head().then_some(Part::Head);
        let part = self.server.arriving().map(|_| Part::Body).or_else(in_head);
        if self.since.map(|(_, known)| known) != part {
            self.since = part.map(|part| (now, part));
        }
    }

    /// Sends what the library has written.
    fn drain(&mut self) {
        let mut pipe = self.server.end.pipe();
        pipe.drain(&mut self.out);
        if !self.server.is_busy() {
            pipe.release();
        }
    }

    /// Looks at what became of a message.
    fn sort(&mut self, now: Instant) {
        while let Some(event) = self.exchange.poll() {
            if let Event::Call(incoming) = &event
                && incoming.expects == Expects::Reply
            {
                // Those of a reliable session that were waiting for this one come behind it.
                self.current.get_or_insert(incoming.id);
            }
            if self.held.counts_calls() && matches!(event, Event::Call(_)) {
                self.waiting.push_back(event);
            } else {
                self.events.push_back(event);
            }
        }
        if !self.flush(now) && self.current.is_none() {
            self.accept();
        }
    }

    /// Responds with what the exchange says on its own account; whether that is anything.
    fn flush(&mut self, now: Instant) -> bool {
        let mut out = SendBuffer::new();
        let mut answered = false;
        while let Some(flushed) = self.exchange.flush(now, &mut out) {
            // Others have no way to the peer but a response.
            if flushed.answers && !answered {
                answered = true;
                self.reply(std::mem::take(&mut out), flushed.fault);
            }
            out = SendBuffer::new();
        }
        if answered {
            self.current = None;
        }
        answered
    }

    /// The answer to the request in hand is there, but its session keeps it until others have arrived.
    #[cold]
    fn keep_waiting(&mut self, id: CallId) {
        self.exchange.await_window(id);
        self.accept();
    }

    /// The request in hand has no answer now: either one will come, or there is none.
    fn accept(&mut self) {
        self.awaiting = self.exchange.is_awaiting();
        if !self.awaiting {
            self.respond(empty(StatusCode::ACCEPTED));
        }
    }

    /// Responds to the request whose answer another connection was to bring, if that is there.
    #[cold]
    fn look(&mut self) {
        self.awaiting = false;
        if !self.flush(Instant::now()) {
            self.accept();
        }
        if !self.awaiting {
            self.resume();
        }
    }

    /// Serves what came behind a request that was answered now.
    fn go_on(&mut self) {
        self.resume();
        if (!self.events.is_empty() || !self.waiting.is_empty() || self.doomed.is_some() || self.resting)
            && let Some(waker) = &self.waker
        {
            // Whoever answers late is not the one who looks for events.
            waker.wake_by_ref();
        }
    }

    /// Goes on with what has arrived; `expire` tells what is wrong with it.
    fn resume(&mut self) {
        self.doomed = self.work(Instant::now()).err();
        self.drain();
    }
}

impl Session for Accepting {
    fn receive(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        _handles: &mut Vec<Handle>,
    ) -> Result<(), Violation> {
        self.last = Instant::now();
        self.received += input.len() as u64;
        self.server.end.pipe().feed(input);
        let result = self.work(now);
        self.drain();
        self.server.end.pipe().give_back(input);
        result.map_err(|breach| breach.at(self.received))
    }

    fn wanted(&self) -> usize {
        self.server.arriving().map_or(0, |(_, missing)| missing)
    }

    fn poll(&mut self) -> Option<Event> {
        if self.awaiting {
            self.look();
        }
        if self.resting && self.out.len() <= UNREAD {
            self.resting = false;
            self.resume();
        }
        let mut event = self.events.pop_front();
        if event.is_none() && !self.waiting.is_empty() {
            event = self.held.next_call(&mut self.waiting);
        }
        if event.is_none() && self.server.is_over() && self.out.is_empty() && !self.closed {
            self.closed = true;
            return Some(Event::Closed);
        }
        event
    }

    fn transmit(&mut self) -> &mut SendBuffer {
        &mut self.out
    }

    fn start(&mut self, _now: Instant, _call: &Call<'_>) -> Result<CallId, Failure> {
        let message = "HTTP carries no calls from the server to the client: use net.tcp for callbacks";
        Err(Failure::new(Kind::Unsupported, Initiator::User, message))
    }

    fn probe(&mut self, _now: Instant, _profile: &Profile) -> Result<CallId, Failure> {
        Err(Failure::new(Kind::Unsupported, Initiator::User, "HTTP servers do not ask their clients"))
    }

    fn emit(&mut self, _now: Instant, _emission: &Emission<'_>) -> Result<(), Failure> {
        // Nobody listens over HTTP.
        Ok(())
    }

    fn answer(&mut self, id: CallId, answer: Answer<'_>) -> Result<(), Failure> {
        self.held.finish(id);
        if self.is_page(id) {
            self.give_page(answer);
            self.go_on();
            return Ok(());
        }
        // It was here when the connection first asked for it.
        let missing =
            matches!(answer, Answer::Failed(failure) if failure.kind() == Kind::NoObject) && self.is_gone();
        let mut envelope = SendBuffer::new();
        envelope.flat().reserve(self.room.min(64 << 10));
        let result = self.exchange.answer(id, answer, &mut envelope);
        if self.current != Some(id) {
            return result.map(|_| ());
        }
        self.current = None;
        match &result {
            _ if missing => self.respond(told(StatusCode::NOT_FOUND, "there is no endpoint here")),
            Ok(answered) if !answered.sends => self.keep_waiting(id),
            Ok(answered) => self.reply(envelope, answered.fault),
            Err(_) if envelope.is_empty() => self.respond(empty(StatusCode::INTERNAL_SERVER_ERROR)),
            Err(_) => self.reply(envelope, true),
        }
        self.go_on();
        result.map(|_| ())
    }

    fn cancel(&mut self, _id: CallId) {}

    fn close(&mut self) {
        self.drain();
    }

    fn disconnected(&mut self, failure: &Failure) {
        self.current = None;
        self.page = None;
        self.awaiting = false;
        let told: Vec<Event> = self.events.drain(..).chain(self.waiting.drain(..)).collect();
        for event in told {
            match event {
                // Whoever calls so is told that it has arrived.
                Event::Call(call) if call.expects == Expects::Nothing => {
                    self.events.push_back(Event::Call(call));
                }
                Event::Call(call) => self.exchange.drop_call(call.id),
                other => self.events.push_back(other),
            }
        }
        self.held.end();
        self.since = None;
        self.exchange.disconnected(failure);
        while let Some(event) = self.exchange.poll() {
            self.events.push_back(event);
        }
        self.closed = true;
    }

    fn deadline(&self) -> Option<Instant> {
        if self.doomed.is_some() {
            return Some(self.begun);
        }
        let slow = self.since.map(|(since, part)| match part {
            Part::Head => since + HEAD_TIME,
            Part::Body => {
                let bytes = self.server.arriving().map_or(0, |(bytes, _)| bytes);
                since + HEAD_TIME + Duration::from_secs((bytes / BODY_RATE) as u64)
            }
        });
        [slow, self.idle(), self.exchange.deadline()].into_iter().flatten().min()
    }

    fn one_at_a_time(&self) -> bool {
        true
    }

    fn read_paused(&self) -> bool {
        self.resting
    }

    fn held(&self) -> usize {
        let pipe = self.server.end.pipe();
        let kept = pipe.input.len() + pipe.output.len();
        drop(pipe);
        // While it rests, one more response is there than was written.
        let ready = if self.resting { self.room } else { 0 };
        kept + ready + self.server.arriving().map_or(0, |(bytes, _)| bytes)
    }

    fn turn_away(&mut self, why: &Failure) -> bool {
        self.turned_away = Some(why.message().to_owned());
        true
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        if self.idle().is_some_and(|until| until <= now) && !self.closed {
            self.closed = true;
            self.events.push_back(Event::Closed);
            return Ok(());
        }
        if let Some(breach) = self.doomed.take() {
            return Err(breach.at(self.received));
        }
        let late = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        let exchange = self.exchange.deadline();
        if late(exchange) {
            let result = self.exchange.expire(now);
            result.map_err(|failure| Breach::Envelope(failure.to_string()).at(self.received))?;
        }
        if !late(self.deadline()) || late(exchange) {
            return Ok(());
        }
        let breach = match self.since {
            Some((_, Part::Body)) => Breach::SlowBody(self.server.arriving().map_or(0, |(bytes, _)| bytes)),
            Some((_, Part::Head)) => Breach::SlowHead(HEAD_TIME.as_secs()),
            None => return Ok(()),
        };
        // The peer is told in the library's place: no response can be under way, since `since` is set only while a request comes.
        let text = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        self.server.end.pipe().output.flat().extend_from_slice(text.as_bytes());
        self.drain();
        self.since = None;
        Err(breach.at(self.received))
    }

    fn outstanding(&self) -> usize {
        usize::from(self.current.is_some() || self.awaiting)
    }
}
