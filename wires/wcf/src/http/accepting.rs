//! The accepting side of the HTTP bindings.

mod door;
mod responses;

use super::breach::Breach;
use super::compression::{Coding, GZIP, is_taken};
use super::content::{self, Format};
use super::server::{Received, Server};
use super::{dialect, login};
use crate::ambient::Node;
use crate::compression;
use crate::layer::Layer;
use crate::settings::{Encoding, Settings};
use crate::soap::{Dialect, Exchange, Side};
use crate::throttle::Held;
use bytes::{Bytes, BytesMut};
use door::{door, unauthorized};
use everywire_model::body::Handle;
use everywire_model::{
    Answer, Call, CallId, Config, Emission, Event, Expects, Failure, Initiator, Kind, Peer, PeerAddress,
    Profile, Rope, Session, Violation, reference,
};
use http::header::{ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use responses::{empty, told};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How long the head of a request may take.
pub const HEAD_TIME: Duration = Duration::from_secs(10);

/// Bytes of a body that have to arrive in each second, once [`HEAD_TIME`] has passed.
pub const BODY_RATE: usize = 1 << 10;

/// Bytes of answers that may wait for a peer that does not read before its next request is looked at.
const UNREAD: usize = 64 << 10;

/// Bytes of further requests that may wait while one is answered.
pub const MAX_PIPELINED: usize = 1 << 20;

const SOAP_ACTION: HeaderName = HeaderName::from_static("soapaction");

/// The accepting side of a connection.
pub struct Accepting {
    settings: Arc<Settings>,
    dialect: Dialect,
    exchange: Exchange,
    layer: Result<Layer, Failure>,
    server: Server,
    node: Option<Arc<Node>>,
    address: PeerAddress,
    admitted: bool,
    /// When something came or was answered last.
    last: Instant,
    out: Rope,
    events: VecDeque<Event>,
    /// The call that the request in hand became.
    current: Option<CallId>,
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
    /// The content type that came last, and what it says.
    read: Option<(HeaderValue, Arc<Format>)>,
    /// When the head or the body began that has not arrived whole.
    since: Option<(Instant, Part)>,
    begun: Instant,
    received: u64,
    missing: usize,
    /// Capacity of the last envelope: the next one is probably of its size.
    room: usize,
    closed: bool,
    /// Tells that there may be events.
    waker: Option<Waker>,
    /// What was found to be wrong when nobody could be told.
    doomed: Option<Breach>,
    /// Nothing is taken before the peer has read more of its answers.
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
        let settings = Settings::of(&config.profile);
        let dialect = dialect(&settings);
        let most = settings.quotas.max_received_message_size;
        let mut session = Self {
            exchange: Exchange::new(dialect, config, &settings, Side::Server),
            layer: settings.server_layer(),
            server: Server::new(most, door(&settings)),
            node: config.ambient.as_ref().and_then(Node::of),
            address: config.peer.clone(),
            admitted: false,
            last: Instant::now(),
            out: Rope::new(),
            events: VecDeque::new(),
            current: None,
            awaiting: false,
            held: Held::new(&settings, config.waker.clone()),
            waiting: VecDeque::new(),
            packs: false,
            compresses: false,
            content_type: HeaderValue::from_static(content::of(dialect)),
            known: None,
            read: None,
            since: None,
            begun: Instant::now(),
            received: 0,
            missing: 0,
            room: 0,
            closed: false,
            waker: config.waker.clone(),
            doomed: None,
            resting: false,
            turned_away: None,
            settings,
            dialect,
        };
        session.admit();
        session
    }

    fn admit(&mut self) {
        if !self.admitted
            && let Ok(layer) = &self.layer
            && layer.is_established()
        {
            self.admitted = true;
            if let Some(name) = layer.account() {
                self.exchange.known_as(name);
            }
            let authentication = match layer.authentication() {
                "none" if self.settings.basic_login => "HTTP Basic",
                "none" if self.address.credentials.is_some() => "unix credentials",
                other => other,
            };
            self.events.push_back(Event::Ready(Peer::admitted(self.address.clone(), authentication)));
        }
    }

    /// When the connection has been quiet for too long, if nothing is in hand.
    fn idle(&self) -> Option<Instant> {
        let quiet = self.admitted
            && !self.closed
            && self.since.is_none()
            && self.current.is_none()
            && !self.awaiting
            && self.out.is_empty();
        if quiet { self.last.checked_add(self.settings.quotas.idle_timeout) } else { None }
    }

    /// Puts what arrived where the library reads it.
    fn feed(&mut self, input: &mut BytesMut) -> Result<(), Breach> {
        self.received += input.len() as u64;
        let layer = self.layer.as_mut().map_err(|failure| Breach::secret(failure))?;
        let fed = self.server.end.pipe().feed(layer, input);
        self.missing = fed.map_err(|failure| Breach::secret(&failure))?;
        Ok(())
    }

    /// Serves what has arrived.
    fn work(&mut self, now: Instant) -> Result<(), Breach> {
        loop {
            if self.out.len() + self.server.end.pipe().output.len() > UNREAD {
                // What is left of a response is written when this goes on.
                self.resting = true;
                break;
            }
            self.server.advance();
            if let Some(breach) = self.server.breach() {
                return Err(breach);
            }
            let Some(received) = self.server.received() else { break };
            self.take(now, received)?;
        }
        let waiting = self.server.end.pipe().input.len();
        if self.server.is_busy() && self.server.arriving().is_none() && waiting > MAX_PIPELINED {
            return Err(Breach::Pipelined { bytes: waiting });
        }
        self.watch(now);
        Ok(())
    }

    /// Notes what is still arriving.
    fn watch(&mut self, now: Instant) {
        let part = match () {
            () if self.server.arriving().is_some() => Some(Part::Body),
            () if self.server.is_in_head() => Some(Part::Head),
            () => None,
        };
        if self.since.map(|(_, known)| known) != part {
            self.since = part.map(|part| (now, part));
        }
    }

    /// Sends what the library has written.
    fn drain(&mut self) {
        let mut pipe = self.server.end.pipe();
        if let Ok(layer) = &mut self.layer {
            pipe.drain(layer, &mut self.out);
        }
        if !self.server.is_busy() {
            pipe.release();
        }
    }

    /// One request, whole.
    fn take(&mut self, now: Instant, received: Received) -> Result<(), Breach> {
        let Received { parts, body } = received;
        if let Some(why) = &self.turned_away {
            let mut response = told(StatusCode::SERVICE_UNAVAILABLE, why);
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            self.respond(response);
            return Ok(());
        }
        if let Some(users) = &self.settings.users
            && self.settings.basic_login
            && !login::is_known(parts.headers.get(AUTHORIZATION), users.as_ref())
        {
            self.respond(unauthorized(false).map(|()| Vec::new()));
            return Ok(());
        }
        let path = parts.uri.path();
        match parts.method {
            Method::POST => {}
            Method::GET | Method::HEAD => {
                let host = parts.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
                let response = self.page(path, parts.uri.query().unwrap_or_default(), host);
                self.respond(response);
                return Ok(());
            }
            _ => {
                let mut response = told(StatusCode::METHOD_NOT_ALLOWED, "POST takes messages, GET pages");
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, GET, HEAD"));
                self.respond(response);
                return Ok(());
            }
        }
        let Some(key) = self.key(path) else {
            self.respond(told(StatusCode::NOT_FOUND, &format!("there is no endpoint at {path}")));
            return Ok(());
        };
        let coding = Coding::of(&parts.headers);
        if coding != Coding::Plain && (coding != Coding::Gzip || self.settings.compressed.is_none()) {
            // What is small becomes large only where somebody said that it may.
            let mut response = told(StatusCode::UNSUPPORTED_MEDIA_TYPE, "messages are not decompressed here");
            let taken =
                if self.settings.compressed.is_some() { GZIP } else { HeaderValue::from_static("identity") };
            response.headers_mut().insert(ACCEPT_ENCODING, taken);
            self.respond(response);
            return Ok(());
        }
        self.compresses = self.settings.compressed.is_some() && is_taken(parts.headers.get(ACCEPT_ENCODING));
        let format = match self.format(parts.headers.get(CONTENT_TYPE)) {
            Ok(format) => format,
            Err(failure) => {
                self.respond(told(StatusCode::UNSUPPORTED_MEDIA_TYPE, failure.message()));
                return Ok(());
            }
        };
        let action = parts.headers.get(&SOAP_ACTION).and_then(|value| value.to_str().ok());
        let action = action.map(|action| action.trim().trim_matches('"')).or(format.action.as_deref());
        self.packs = format.related.is_some() || self.settings.encoding == Encoding::Mtom;
        let body = match coding {
            Coding::Gzip => compression::Format::Gzip.unpack(&body, &self.settings.quotas),
            _ => Ok(body),
        };
        let result = body
            .and_then(|body| format.envelope(body, self.dialect, &self.settings.quotas.reader))
            .and_then(|document| self.exchange.receive(now, document, action, &key));
        match result {
            Ok(()) => self.sort(now),
            Err(failure) => {
                let status = match failure.kind() {
                    Kind::LimitExceeded => StatusCode::PAYLOAD_TOO_LARGE,
                    _ => StatusCode::BAD_REQUEST,
                };
                let mut response = told(status, failure.message());
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                self.respond(response);
                self.server.advance();
                return Err(Breach::Envelope { message: failure.to_string() });
            }
        }
        Ok(())
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
            self.awaiting = self.exchange.is_awaiting();
            if !self.awaiting {
                self.respond(empty(StatusCode::ACCEPTED));
            }
        }
    }

    /// Responds with what the exchange says on its own account; whether that is anything.
    fn flush(&mut self, now: Instant) -> bool {
        let mut out = Rope::new();
        let mut answered = false;
        while let Some(flushed) = self.exchange.flush(now, &mut out) {
            // Others have no way to the peer but a response.
            if flushed.answers && !answered {
                answered = true;
                self.reply(std::mem::take(&mut out), flushed.fault);
            }
            out = Rope::new();
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
        self.awaiting = self.exchange.is_awaiting();
        if !self.awaiting {
            self.respond(empty(StatusCode::ACCEPTED));
        }
    }

    /// Responds to the request whose answer another connection was to bring, if that is there.
    #[cold]
    fn look(&mut self) {
        let answered = self.flush(Instant::now());
        if !answered && self.exchange.is_awaiting() {
            return;
        }
        self.awaiting = false;
        if !answered {
            self.respond(empty(StatusCode::ACCEPTED));
        }
        self.doomed = self.work(Instant::now()).err();
        self.drain();
    }

    /// The next call, if it may begin. Nobody waits for one-way calls, so they are not counted.
    fn next_call(&mut self) -> Option<Event> {
        let Some(Event::Call(call)) = self.waiting.front() else { return None };
        let begins = call.expects == Expects::Nothing || self.held.begin(call.id);
        if begins { self.waiting.pop_front() } else { None }
    }

    /// The key that a path stands for, if an object is exported under it.
    fn key(&mut self, path: &str) -> Option<Bytes> {
        if let Some((known, key)) = &self.known
            && **known == *path
        {
            return Some(key.clone());
        }
        let wanted = Bytes::from(reference::unescape(path.strip_prefix('/').unwrap_or(path))?);
        let key = match &self.node {
            Some(node) => node.find(&wanted)?,
            None => wanted,
        };
        self.known = Some((path.into(), key.clone()));
        Some(key)
    }

    /// Whether the object that was asked for last is exported no longer.
    fn is_gone(&self) -> bool {
        match (&self.node, &self.known) {
            (Some(node), Some((_, key))) => node.find(key).is_none(),
            _ => true,
        }
    }

    fn format(&mut self, header: Option<&HeaderValue>) -> Result<Arc<Format>, Failure> {
        let nothing = HeaderValue::from_static("");
        let header = header.unwrap_or(&nothing);
        if let Some((known, format)) = &self.read
            && known == header
        {
            return Ok(Arc::clone(format));
        }
        let Some(format) = Format::read(header.as_bytes(), self.dialect) else {
            return Err(content::mismatch(&String::from_utf8_lossy(header.as_bytes()), self.dialect));
        };
        let format = Arc::new(format);
        // A copy: the header's bytes are those of the whole head.
        if let Ok(header) = HeaderValue::from_bytes(header.as_bytes()) {
            self.read = Some((header, Arc::clone(&format)));
        }
        Ok(format)
    }

    /// Tells the peer that it is too slow, in the library's place.
    fn hurry(&mut self, breach: Breach) -> Breach {
        let mut pipe = self.server.end.pipe();
        let text = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        pipe.output.flat().extend_from_slice(text.as_bytes());
        drop(pipe);
        self.drain();
        breach
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
        let result = self.feed(input).and_then(|()| {
            self.admit();
            self.work(now)
        });
        self.drain();
        self.server.end.pipe().give_back(input);
        result.map_err(|breach| breach.at(self.received))
    }

    fn wanted(&self) -> usize {
        self.server.arriving().map_or(self.missing, |(_, missing)| missing)
    }

    fn poll(&mut self) -> Option<Event> {
        if self.awaiting {
            self.look();
        }
        if self.resting && self.out.len() <= UNREAD {
            self.resting = false;
            self.doomed = self.work(Instant::now()).err();
            self.drain();
        }
        let mut event = self.events.pop_front();
        if event.is_none() && !self.waiting.is_empty() {
            event = self.next_call();
        }
        if event.is_none() && self.server.is_over() && self.out.is_empty() && !self.closed {
            self.closed = true;
            return Some(Event::Closed);
        }
        event
    }

    fn transmit(&mut self) -> &mut Rope {
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
        // It was here when the connection first asked for it.
        let missing =
            matches!(answer, Answer::Failed(failure) if failure.kind() == Kind::NoObject) && self.is_gone();
        let mut envelope = Rope::new();
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
        // What came behind the request is served now.
        self.doomed = self.work(Instant::now()).err();
        self.drain();
        if (!self.events.is_empty() || !self.waiting.is_empty() || self.doomed.is_some() || self.resting)
            && let Some(waker) = &self.waker
        {
            // Whoever answers late is not the one who looks for events.
            waker.wake_by_ref();
        }
        result.map(|_| ())
    }

    fn cancel(&mut self, _id: CallId) {}

    fn close(&mut self) {
        if let Ok(layer) = &mut self.layer {
            layer.close();
        }
        self.drain();
    }

    fn disconnected(&mut self, failure: &Failure) {
        self.current = None;
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
        let handshake =
            (!self.admitted).then(|| self.begun + self.settings.quotas.channel_initialization_timeout);
        let slow = self.since.map(|(since, part)| match part {
            Part::Head => since + HEAD_TIME,
            Part::Body => {
                let bytes = self.server.arriving().map_or(0, |(bytes, _)| bytes);
                since + HEAD_TIME + Duration::from_secs((bytes / BODY_RATE) as u64)
            }
        });
        [handshake, slow, self.idle(), self.exchange.deadline()].into_iter().flatten().min()
    }

    fn is_serial(&self) -> bool {
        true
    }

    fn is_full(&self) -> bool {
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
            result.map_err(|failure| Breach::Envelope { message: failure.to_string() }.at(self.received))?;
        }
        if !late(self.deadline()) || late(exchange) {
            return Ok(());
        }
        let breach = match self.since {
            Some((_, Part::Body)) => {
                Breach::SlowBody { bytes: self.server.arriving().map_or(0, |(bytes, _)| bytes) }
            }
            Some((_, Part::Head)) => Breach::SlowHead { seconds: HEAD_TIME.as_secs() },
            None => Breach::Authentication { message: "the handshake took too long".to_owned() },
        };
        let breach = if self.since.is_some() { self.hurry(breach) } else { breach };
        self.since = None;
        Err(breach.at(self.received))
    }

    fn outstanding(&self) -> usize {
        usize::from(self.current.is_some() || self.awaiting)
    }
}
