//! The accepting side of the HTTP bindings.
//!
//! A session turns requests into calls, and answers into responses. HTTP's [`Server`] yields requests one at a
//! time and bounds what a peer may send and how slowly; `requests` looks who may and what is asked, the exchange
//! reads the envelope, `sort` decides what becomes of it: a call that is served, a fault, or 202 for a message
//! that has no answer.
//!
//! State: at most one request is in hand. Either it became a call (`current`), or it waits for what another
//! connection brings (`awaiting`, in reliable sessions), or a page is asked of somebody else (`page`).
//!
//! Invariants:
//!
//! * Each request gets one response, in the order of requests; whatever else the exchange wants to say
//!   waits for the next one.
//! * A body is bounded by `MaxReceivedMessageSize`, an idle connection ends after IdleTimeout.
//! * With HTTP Basic each request is checked by its own header; heads of such places are never recognized
//!   without it.
//! * A call whose connection is gone before its turn came is not begun. A one-way call is begun all the
//!   same: its caller was told 202.

mod door;
mod pages;
mod requests;
mod responses;

use super::compression::pack;
use super::content::{self, Format, LastFormat};
use super::{broken_envelope, dialect, violation};
use crate::settings::Settings;
use crate::soap::{Dialect, Side, SoapChannel};
use crate::throttle::ConnectionPermits;
use crate::wire_state::Node;
use crate::{limits, metadata};
use bytes::{Bytes, BytesMut};
use door::door;
use everywire_http::{Bounds, ProtocolError, Server, ServerEvent};
use everywire_model::body::Handle;
use everywire_model::layered::PeerIdentity;
use everywire_model::{
    Answer, Call, CallId, Completed, Config, Emission, Event, Expects, Failure, Initiator, Kind, Peer,
    PeerAddress, Profile, SendBuffer, Session, Violation,
};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use responses::{empty, told, with};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

/// The accepting side of a connection.
pub struct Accepting {
    settings: Arc<Settings>,
    dialect: Dialect,
    exchange: SoapChannel,
    server: Server<ParsedHead>,
    node: Option<Arc<Node>>,
    address: PeerAddress,
    /// The account that the peer proved to be.
    account: Option<Box<str>>,
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
    held: ConnectionPermits,
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
    begun: Instant,
    /// Bytes of the last envelope that was sent; and those of them that are in no shared part: the next one probably has as many.
    sent: usize,
    room: usize,
    /// Nothing came for too long: the connection ends.
    quiet: bool,
    /// Whether the end was told.
    closed: bool,
    /// Tells that there may be events.
    waker: Option<Waker>,
    /// A breach that was found outside of `receive`, which alone could return it: `deadline` is then in the
    /// past, and `expire` returns it.
    doomed: Option<Violation>,
    /// There is no place for this peer: its request is refused, for this reason.
    turned_away: Option<String>,
}

/// What the head of a request says that may come again.
#[derive(Debug)]
struct ParsedHead {
    /// The object that the path means.
    key: Bytes,
    format: Arc<Format>,
    action: Option<Box<str>>,
    /// Whether the answer goes in a package, or compressed: that follows from the head, too.
    packs: bool,
    compresses: bool,
}

impl Accepting {
    /// A session for somebody who connected to the place that the configuration tells of.
    pub fn new(config: &Config) -> Self {
        Self::over(config, None)
    }

    /// The same, for somebody whom a layer of transport knows.
    pub(crate) fn over(config: &Config, proof: Option<&PeerIdentity>) -> Self {
        let settings = Settings::of(&config.profile);
        let dialect = dialect(&settings);
        let bounds = Bounds {
            body: settings.quotas.max_received_message_size,
            idle: settings.quotas.idle_timeout,
            too_large: |most| {
                let how = "Here: raise it with `MaxReceivedMessageSize=` in the listener's address.";
                format!("{} {how}\n", limits::too_large(most))
            },
        };
        let mut session = Self {
            exchange: SoapChannel::new(dialect, config, &settings, Side::Server),
            server: Server::new(bounds, door(&settings)),
            node: config.wire_state.as_ref().and_then(Node::of),
            address: config.peer.clone(),
            account: None,
            events: VecDeque::new(),
            current: None,
            page: None,
            pages: 0,
            awaiting: false,
            held: ConnectionPermits::new(&settings, config.waker.clone()),
            waiting: VecDeque::new(),
            packs: false,
            compresses: false,
            content_type: HeaderValue::from_static(content::of(dialect)),
            known: None,
            format: LastFormat::default(),
            begun: Instant::now(),
            sent: 0,
            room: 0,
            quiet: false,
            closed: false,
            waker: config.waker.clone(),
            doomed: None,
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

    /// Serves what has arrived.
    fn work(&mut self, now: Instant) -> Result<(), Violation> {
        while let Some(received) = self.server.next(now).map_err(|breach| self.violation(breach))? {
            match received {
                ServerEvent::New(parts, body) => self.take(now, &parts, body)?,
                ServerEvent::Known(head, body) => self.take_again(now, &head, body)?,
            }
        }
        Ok(())
    }

    /// What the link is told of a breach of HTTP.
    #[cold]
    fn violation(&self, breach: ProtocolError) -> Violation {
        violation(breach, self.server.received())
    }

    /// Answers with an envelope.
    fn reply(&mut self, mut envelope: SendBuffer, fault: bool) {
        (self.sent, self.room) = (envelope.len(), envelope.flat().len());
        // SOAP 1.1 (6.2) says so, and WCF does so with SOAP 1.2, too.
        let status = if fault { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
        if !self.packs && !self.compresses {
            return self.server.reply(status, &self.content_type, envelope);
        }
        let mut response = empty(status);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.content_type.clone());
        let parts = pack(self.dialect, envelope.into_parts(), self.packs, self.compresses, headers);
        *response.body_mut() = parts;
        self.server.respond(response);
    }

    /// The address of a page as whoever asks for it spells that.
    fn url(&self, path: &str, host: Option<&str>, key: &[u8]) -> String {
        match host {
            Some(host) => format!("{}://{host}{path}", self.settings.uri_scheme),
            None => self.settings.via(key),
        }
    }

    /// A page for people, or of metadata.
    fn page(&mut self, path: &str, query: &str, host: Option<&str>) -> Response<Vec<Bytes>> {
        let missing = || told(StatusCode::NOT_FOUND, &format!("there is no page at {path}"));
        let Some(key) = self.key(path) else { return missing() };
        let Some(node) = &self.node else { return missing() };
        let own = self.settings.via(&key);
        let asked = self.url(path, host, &key);
        let Some(page) = metadata::page(node.objects().as_ref(), &key, query, &[asked, own]) else {
            return missing();
        };
        with(Response::new(vec![Bytes::from(page.body)]), CONTENT_TYPE, page.content_type)
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
            self.server.respond(empty(StatusCode::ACCEPTED));
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
        if (!self.events.is_empty()
            || !self.waiting.is_empty()
            || self.doomed.is_some()
            || self.server.is_resting())
            && let Some(waker) = &self.waker
        {
            // Whoever answers late is not the one who looks for events.
            waker.wake_by_ref();
        }
    }

    /// Whether the end is what is to be told next. Calls that wait for their turn have arrived, and go before it.
    fn is_ending(&self) -> bool {
        !self.closed && self.waiting.is_empty() && (self.quiet || self.server.is_over())
    }

    /// Goes on with what has arrived; `expire` tells what is wrong with it.
    fn resume(&mut self) {
        self.doomed = self.work(Instant::now()).err();
    }
}

impl Session for Accepting {
    fn receive(&mut self, now: Instant, input: &mut BytesMut, _: &mut Vec<Handle>) -> Result<(), Violation> {
        self.server.feed(now, input);
        let result = self.work(now);
        self.server.give_back(input);
        result
    }

    fn wanted(&self) -> usize {
        self.server.wanted()
    }

    fn poll(&mut self) -> Option<Event> {
        if self.awaiting {
            self.look();
        }
        if self.server.wakes() {
            self.resume();
        }
        let mut event = self.events.pop_front();
        if event.is_none() && !self.waiting.is_empty() {
            event = self.held.next_call(&mut self.waiting);
        }
        if event.is_none() && self.is_ending() {
            self.closed = true;
            return Some(Event::Closed);
        }
        event
    }

    fn transmit(&mut self) -> &mut SendBuffer {
        self.server.transmit()
    }

    fn start(&mut self, _: Instant, _: &Call<'_>) -> Result<CallId, Failure> {
        let message = "HTTP carries no calls from the server to the client: use net.tcp for callbacks";
        Err(Failure::new(Kind::Unsupported, Initiator::User, message))
    }

    fn probe(&mut self, _: Instant, _: &Profile) -> Result<CallId, Failure> {
        Err(Failure::new(Kind::Unsupported, Initiator::User, "HTTP servers do not ask their clients"))
    }

    fn emit(&mut self, _: Instant, _: &Emission<'_>) -> Result<(), Failure> {
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
        let missing = matches!(answer, Answer::Failed(failure)
            if failure.kind() == Kind::NoObject && failure.completed() == Completed::No)
            && self.is_gone();
        let mut envelope = SendBuffer::new();
        envelope.flat().reserve(self.room.min(64 << 10));
        let result = self.exchange.answer(id, answer, &mut envelope);
        if self.current != Some(id) {
            return result.map(|_| ());
        }
        self.current = None;
        match &result {
            _ if missing => self.server.respond(told(StatusCode::NOT_FOUND, "there is no endpoint here")),
            Ok(answered) if !answered.sends => self.keep_waiting(id),
            Ok(answered) => self.reply(envelope, answered.fault),
            Err(_) if envelope.is_empty() => self.server.respond(empty(StatusCode::INTERNAL_SERVER_ERROR)),
            Err(_) => self.reply(envelope, true),
        }
        self.go_on();
        result.map(|_| ())
    }

    fn cancel(&mut self, _: CallId) {}

    fn close(&mut self) {}

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
        self.exchange.disconnected(failure);
        while let Some(event) = self.exchange.poll() {
            self.events.push_back(event);
        }
        self.closed = true;
    }

    fn deadline(&self) -> Option<Instant> {
        // What was sent last may have been an answer from another thread, behind which nobody asks for events.
        if self.doomed.is_some() || self.is_ending() {
            return Some(self.begun);
        }
        let ends = self.closed || self.quiet || self.server.is_over();
        let server = if ends { None } else { self.server.deadline() };
        [server, self.exchange.deadline()].into_iter().flatten().min()
    }

    fn one_at_a_time(&self) -> bool {
        true
    }

    fn read_paused(&self) -> bool {
        self.server.is_resting()
    }

    fn held(&self) -> usize {
        // While it rests, one more response is there than was written.
        self.server.held() + if self.server.is_resting() { self.sent } else { 0 }
    }

    fn turn_away(&mut self, why: &Failure) -> bool {
        self.turned_away = Some(why.message().to_owned());
        true
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        if let Some(violation) = self.doomed.take() {
            return Err(violation);
        }
        if self.exchange.deadline().is_some_and(|deadline| deadline <= now) {
            let result = self.exchange.expire(now);
            return result.map_err(|failure| broken_envelope(&failure, self.server.received()));
        }
        // `poll` tells the end, behind the calls that wait for their turn.
        if !self.closed && !self.quiet && !self.server.is_over() {
            self.quiet = self.server.expire(now).map_err(|breach| self.violation(breach))?;
        }
        Ok(())
    }

    fn outstanding(&self) -> usize {
        usize::from(self.current.is_some() || self.awaiting)
    }
}
