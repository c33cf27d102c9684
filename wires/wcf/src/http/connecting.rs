//! The connecting side of the HTTP bindings.
//!
//! A session turns calls into requests and responses into outcomes. Only one request is in flight; others
//! wait in `queue`. Besides messages there are requests that the exchange knows nothing of: probes, and
//! pages of a description.
//!
//! State: the exchange (envelopes, calls that wait for answers), HTTP's half of the connection
//! (`client`), the queue, and the request in flight. `work` moves a request from the queue to the
//! connection and a response to `settle`; it is called whenever bytes have come or a request was made.
//!
//! Invariants:
//!
//! * Each call that was begun ends with one Reply event: from the exchange, or from `fail`, `done` and
//!   `tell` for requests that it does not wait for.
//! * A response belongs to the request in flight; only in a reliable session it may answer another
//!   (`sequence`).
//! * A call that is withdrawn while its request is in flight leaves that there (`Asking::Nobody`): the
//!   connection cannot be used otherwise.
//! * A request of which nothing has left this side was not executed (`Completed::No`). One that left in part may have been: a
//!   service that streams begins before it has all of it.
//! * A response is taken up to `MaxReceivedMessageSize`, also when it was compressed, and a coding that
//!   nobody asked for is refused.
//! * Where the server ends the connection behind a response, what still waits has not been sent and may go
//!   over another one.

mod outcomes;
mod pages;
mod sequence;

use super::compression::pack;
use super::content::{self, LastFormat};
use super::{SOAP_ACTION, dialect, violation};
use crate::settings::{Encoding, Settings};
use crate::soap::{Dialect, Form, Side, Soap, SoapChannel};
use bytes::{Bytes, BytesMut};
use everywire_http::coding::GZIP;
use everywire_http::{Client, ClientOutcome, PostHead, ProtocolError, basic};
use everywire_model::body::Handle;
use everywire_model::{
    Answer, Call, CallId, Completed, Config, Emission, Event, Expects, Failure, Initiator, Kind, Peer,
    Profile, SendBuffer, Session, SignalFilter, Violation, contract, reference,
};
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// The note of an operation that is no message, but a page to get: its value is the query, without `?`. What comes back is a
/// body whose bytes are the page.
pub const GET: &str = "wcf:get";

/// Numbers of requests that the exchange knows nothing of begin here.
const OWN_REQUESTS: u64 = 1 << 62;

/// The connecting side of a connection.
pub struct Connecting {
    settings: Arc<Settings>,
    dialect: Dialect,
    exchange: SoapChannel,
    client: Client,
    limits: everywire_model::Limits,
    events: VecDeque<Event>,
    /// Calls that wait for their turn.
    /// Of a reliable session at most one: the others are the session's.
    queue: VecDeque<(Flight, Waiting)>,
    /// The one whose response is awaited.
    flight: Option<Flight>,
    /// What all requests have in common, as headers.
    /// The password of HTTP Basic is among them, marked as sensitive.
    common: HeaderMap,
    /// The key and the action that were called last, and the head of such requests.
    last: Option<(Bytes, Arc<str>, Arc<PostHead>)>,
    format: LastFormat,
    /// The next number of a request that the exchange does not know.
    next_own: u64,
    /// The call that gets a page for a hop's caller, and the address at which that caller asks for it.
    page: Option<(CallId, Box<str>)>,
    /// Calls of a reliable session that have no outcome yet, whose messages go when the session lets them; `None` without such
    /// a session. A reply concludes one; where none comes, the response to its message does, whatever that is of.
    reliable: Option<Vec<Flight>>,
    /// The failure that callers get, where it says more than the violation that the link gets.
    refusal: Option<Failure>,
    /// Bytes, for the place of a violation.
    received: u64,
    /// Bytes of the last envelope, but of shared parts: the next one probably has as many.
    room: usize,
    /// Bytes of the request in flight, head and all: while so many wait to be sent, nothing of it has left.
    whole: usize,
    /// This side has said that nothing follows.
    parting: bool,
    closed: bool,
}

/// A request, apart from what is sent.
struct Flight {
    id: CallId,
    key: Bytes,
    kind: Asking,
}

/// A request that waits for its turn.
enum Waiting {
    Message(Arc<PostHead>, SendBuffer),
    Page(Request<Vec<Bytes>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// A message that is answered by one.
    Message,
    /// A message that is not: its status tells whether it was taken.
    Told,
    /// A message whose caller has gone.
    /// Its response is read and dropped.
    Nobody,
    /// A message of a reliable session: its response may be of any.
    Sequence,
    /// Whether something is there.
    Probe,
    /// For a page.
    Page,
}

impl Connecting {
    /// A session for calls of the way that the configuration tells of.
    pub fn new(config: &Config) -> Self {
        Self::over(config, "none")
    }

    /// The same, for a way to a peer that a layer of transport has authenticated so.
    pub(crate) fn over(config: &Config, authentication: &'static str) -> Self {
        let settings = Settings::of(&config.profile);
        let dialect = dialect(&settings);
        let ready = Event::Ready(Peer::admitted(config.peer.clone(), authentication));
        let mut common = HeaderMap::new();
        // A socket has no host; the header must be there all the same (RFC 9112, 3.2).
        let host = if settings.authority.is_empty() { "localhost" } else { &settings.authority };
        if let Ok(host) = HeaderValue::from_str(host) {
            common.insert(HOST, host);
        }
        let credentials = settings.credentials.as_ref().filter(|_| settings.basic_login);
        if let Some(value) = credentials.and_then(|credentials| basic::authorization(credentials)) {
            common.insert(AUTHORIZATION, value);
        }
        common.insert(CONTENT_TYPE, HeaderValue::from_static(content::of(dialect)));
        if settings.compressed.is_some() {
            common.insert(ACCEPT_ENCODING, GZIP);
        }
        Self {
            exchange: SoapChannel::new(dialect, config, &settings, Side::Client),
            client: Client::new(settings.quotas.max_received_message_size),
            limits: config.limits.clone(),
            events: VecDeque::from([ready]),
            queue: VecDeque::new(),
            flight: None,
            common,
            last: None,
            format: LastFormat::default(),
            next_own: OWN_REQUESTS,
            page: None,
            reliable: (settings.reliable && dialect.addressing).then(Vec::new),
            refusal: None,
            received: 0,
            room: 0,
            whole: 0,
            parting: false,
            closed: false,
            settings,
            dialect,
        }
    }

    /// Sends what waits, and takes what came back.
    fn work(&mut self, now: Instant) -> Result<(), ProtocolError> {
        loop {
            // The session decides what goes next, once nothing waits before it.
            if self.reliable.is_some() && self.queue.is_empty() {
                self.pull(now);
            }
            if self.client.is_idle()
                && !self.client.is_over()
                && let Some((flight, request)) = self.queue.pop_front()
            {
                match request {
                    Waiting::Message(head, body) => self.client.post(&head, body),
                    Waiting::Page(request) => self.client.send(request),
                }
                self.flight = Some(flight);
                self.whole = usize::MAX;
            }
            let returned = self.client.advance();
            // Once, when it was written and before any of it can leave.
            if self.whole == usize::MAX {
                self.whole = self.client.transmit().len();
            }
            let Some(returned) = returned else { break };
            let Some(flight) = self.flight.take() else { continue };
            self.settle(now, flight, returned)?;
        }
        self.take_events();
        Ok(())
    }

    /// What the exchange has to tell.
    fn take_events(&mut self) {
        while let Some(event) = self.exchange.poll() {
            if let (Some(calls), Event::Reply { id, .. }) = (&mut self.reliable, &event) {
                calls.retain(|call| call.id != *id);
            }
            self.events.push_back(event);
        }
    }

    /// One response.
    fn settle(&mut self, now: Instant, flight: Flight, returned: ClientOutcome) -> Result<(), ProtocolError> {
        match returned {
            ClientOutcome::Response(parts, body) if flight.kind == Asking::Sequence => {
                self.sequenced(now, &flight, &parts, body)
            }
            ClientOutcome::Response(parts, body) => {
                self.returned(now, &flight, &parts, body);
                Ok(())
            }
            ClientOutcome::TooLarge => {
                let failure = self.settings.quotas.message_too_large(Initiator::Peer);
                let failure = failure.with_completed(Completed::Maybe);
                if flight.kind == Asking::Sequence {
                    return Err(self.lost(failure));
                }
                self.fail(&flight, failure);
                Ok(())
            }
            ClientOutcome::Failed { message, foreign, unsent } => {
                let completed = if unsent { Completed::No } else { Completed::Maybe };
                let kind = if foreign { Kind::Violation } else { Kind::Unreachable };
                let text = format!("no response came: {message}");
                let failure = Failure::new(kind, Initiator::Peer, text).with_completed(completed);
                if flight.kind == Asking::Sequence {
                    return Err(if foreign { self.lost(failure) } else { self.cut(failure) });
                }
                self.fail(&flight, failure);
                if foreign { Err(ProtocolError::Response { message }) } else { Ok(()) }
            }
        }
    }

    /// What stands behind the path: the service's own query, and behind that the page of it that is asked for.
    fn query<'q>(&'q self, page: Option<&'q str>) -> Option<Cow<'q, str>> {
        let own = Some(&*self.settings.query).filter(|own| !own.is_empty());
        match (own, page) {
            (Some(own), Some(page)) => Some(format!("{own}&{page}").into()),
            (one, other) => one.or(other).map(Cow::Borrowed),
        }
    }

    /// The head of a message's request. Where no addressing names the action, that does, in SOAP 1.2 as a parameter of the content type
    /// (RFC 3902, 2).
    fn head(&mut self, key: &Bytes, action: &Arc<str>) -> Result<Arc<PostHead>, Failure> {
        if let Some((known, named, head)) = &self.last
            && known == key
            && named == action
        {
            return Ok(Arc::clone(head));
        }
        let mut headers = self.common.clone();
        let said = match self.dialect {
            Dialect { soap: Soap::V11, .. } => Some((SOAP_ACTION, format!("\"{action}\""))),
            Dialect { addressing: false, .. } if !action.is_empty() => {
                Some((CONTENT_TYPE, format!("{}; action=\"{action}\"", content::of(self.dialect))))
            }
            Dialect { .. } => None,
        };
        if let Some((name, value)) = said
            && let Ok(value) = HeaderValue::try_from(value)
        {
            headers.insert(name, value);
        }
        let head = Arc::new(PostHead::new(uri(key, self.query(None).as_deref())?, headers));
        self.last = Some((key.clone(), Arc::clone(action), Arc::clone(&head)));
        Ok(head)
    }

    /// A message in a request.
    fn message(
        &mut self,
        key: &Bytes,
        action: &Arc<str>,
        mut envelope: SendBuffer,
    ) -> Result<Waiting, Failure> {
        self.room = envelope.flat().len();
        let head = self.head(key, action)?;
        let packs = self.settings.encoding == Encoding::Mtom && self.dialect.form == Form::Text;
        let compresses = self.settings.compressed_requests;
        if !packs && !compresses {
            return Ok(Waiting::Message(head, envelope));
        }
        let mut headers = head.headers().clone();
        let mut body = SendBuffer::new();
        let parts = pack(self.dialect, envelope.into_parts(), packs, compresses, &mut headers);
        parts.into_iter().for_each(|part| body.splice(part));
        let head = PostHead::new(uri(key, self.query(None).as_deref())?, headers);
        Ok(Waiting::Message(Arc::new(head), body))
    }

    /// Asks for a page in place of an object's operation.
    fn own_request(&mut self, key: &Bytes, query: Option<&str>, kind: Asking) -> Result<CallId, Failure> {
        let mut request = Request::new(Vec::new());
        *request.uri_mut() = uri(key, self.query(query).as_deref())?;
        *request.headers_mut() = self.common.clone();
        request.headers_mut().remove(CONTENT_TYPE);
        request.headers_mut().remove(ACCEPT_ENCODING);
        let id = CallId(self.next_own);
        self.next_own += 1;
        self.queue.push_back((Flight { id, key: key.clone(), kind }, Waiting::Page(request)));
        self.go();
        Ok(id)
    }

    /// Works because this side made a request. No bytes have come, so no breach can be found.
    fn go(&mut self) {
        let _ = self.work(Instant::now());
    }
}

/// A body is coded in a way that nobody asked for.
#[cold]
fn unasked(headers: &HeaderMap) -> Failure {
    let coding =
        headers.get(CONTENT_ENCODING).map(|coding| String::from_utf8_lossy(coding.as_bytes()).into_owned());
    let what =
        format!("the answer came in the coding `{}`, which was not asked for", coding.unwrap_or_default());
    Failure::new(Kind::Unsupported, Initiator::Peer, what)
        .with_completed(Completed::Maybe)
        .with_hint("gzip is read where the address ends with ?compression=gzip")
}

/// A status that says no to the caller, whatever is there.
fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 300..=399 | 401 | 407 | 503)
}

/// The path and the query of a request; the host stands in a header.
fn uri(key: &[u8], query: Option<&str>) -> Result<Uri, Failure> {
    let mut path = format!("/{}", reference::escape(key));
    if let Some(query) = query {
        path.push('?');
        path.push_str(query);
    }
    Uri::try_from(path)
        .map_err(|error| Failure::bad_reference(format!("the path cannot be asked for: {error}")))
}

impl Session for Connecting {
    fn refusal(&mut self) -> Option<Failure> {
        self.refusal.take()
    }

    fn receive(&mut self, now: Instant, input: &mut BytesMut, _: &mut Vec<Handle>) -> Result<(), Violation> {
        self.received += input.len() as u64;
        self.client.feed(input);
        let result = self.work(now);
        self.client.give_back(input);
        // What is given back comes again.
        self.received -= input.len() as u64;
        result.map_err(|breach| violation(breach, self.received))
    }

    fn wanted(&self) -> usize {
        self.client.arriving().unwrap_or(0)
    }

    fn poll(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        self.take_events();
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        // The server ends the connection behind a response: what waits was not sent.
        if self.client.is_over() && self.flight.is_none() && self.transmit().is_empty() && !self.closed {
            self.closed = true;
            return Some(Event::Closed);
        }
        None
    }

    fn transmit(&mut self) -> &mut SendBuffer {
        self.client.transmit()
    }

    fn start(&mut self, now: Instant, call: &Call<'_>) -> Result<CallId, Failure> {
        self.settings.check_account()?;
        let waiting = self.queue.len() + self.reliable.as_ref().map_or(0, Vec::len);
        if waiting >= self.limits.outstanding {
            let (what, limit) = ("calls outstanding on one connection", self.limits.outstanding);
            return Err(Failure::over_limit(Initiator::Here, what, waiting + 1, limit));
        }
        let key = &call.profile.key;
        if let everywire_model::Method::Typed { operation, .. } = call.method
            && let Some(query) = contract::note(&operation.notes, GET)
        {
            return self.own_request(key, Some(query), Asking::Page);
        }
        if let Some(begun) = self.pass_page(call) {
            return begun;
        }
        let mut envelope = SendBuffer::new();
        envelope.flat().reserve(self.room.min(64 << 10));
        let started = self.exchange.start(now, call, &mut envelope)?;
        let kind = if call.expects == Expects::Reply { Asking::Message } else { Asking::Told };
        let flight = Flight { id: started.id, key: key.clone(), kind };
        if let Some(calls) = &mut self.reliable {
            calls.push(flight);
            self.go();
            return Ok(started.id);
        }
        let request = self.message(key, &started.action.unwrap_or_default(), envelope);
        let request = request.inspect_err(|_| self.exchange.cancel(started.id))?;
        self.queue.push_back((flight, request));
        self.go();
        Ok(started.id)
    }

    fn probe(&mut self, _: Instant, profile: &Profile) -> Result<CallId, Failure> {
        self.own_request(&profile.key, None, Asking::Probe)
    }

    fn emit(&mut self, _: Instant, _: &Emission<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn subscribe(&mut self, _: Instant, _: &Profile, _: SignalFilter<'_>) -> Result<CallId, Failure> {
        let message = "there are no callbacks over HTTP: a service cannot call whoever calls it";
        // It is the address that is unfit, whatever else is known of the object.
        Err(Failure::bad_reference(message)
            .with_hint("duplex contracts need net.tcp or a socket: ask the service for such an endpoint"))
    }

    fn answer(&mut self, _: CallId, _: Answer<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn cancel(&mut self, id: CallId) {
        self.exchange.cancel(id);
        if let Some(calls) = &mut self.reliable {
            calls.retain(|call| call.id != id);
        }
        // A message of a reliable session has its number: it is sent all the same.
        self.queue.retain(|(flight, _)| flight.id != id || flight.kind == Asking::Sequence);
        if let Some(flight) = &mut self.flight
            && flight.id == id
            && flight.kind != Asking::Sequence
        {
            // Its response will come all the same.
            flight.kind = Asking::Nobody;
        }
    }

    fn close(&mut self) {
        if self.reliable.is_some() && !self.closed {
            // The last message and the end of the sequence are requests of their own.
            self.exchange.close();
            self.parting = true;
            self.go();
        }
    }

    fn is_closing(&self) -> bool {
        self.parting
            && !self.closed
            && !self.client.is_over()
            && (self.flight.is_some() || !self.queue.is_empty())
    }

    fn disconnected(&mut self, failure: &Failure) {
        if failure.initiator() == Initiator::Peer && self.client.arriving().is_some() {
            // A body without a length ends with its connection.
            self.client.end();
            // What is wrong with it is told to its caller, and nothing else comes by this connection.
            let _ = self.work(Instant::now());
        }
        let unsent = self.flight.is_some() && self.whole > 0 && self.transmit().len() >= self.whole;
        for (flight, _) in std::mem::take(&mut self.queue) {
            self.fail(&flight, failure.clone().with_completed(Completed::No));
        }
        if let Some(flight) = self.flight.take() {
            let completed = if unsent { Completed::No } else { Completed::Maybe };
            self.fail(&flight, failure.clone().with_completed(completed));
        }
        self.abandon(failure);
        self.closed = true;
    }

    fn one_at_a_time(&self) -> bool {
        true
    }

    fn deadline(&self) -> Option<Instant> {
        // While a response is awaited its connection delivers or ends: nothing is repeated.
        self.exchange.deadline().filter(|_| self.flight.is_none())
    }

    fn expire(&mut self, now: Instant) -> Result<(), Violation> {
        if self.flight.is_some() {
            return Ok(());
        }
        let result = self.exchange.expire(now).map_err(|failure| self.lost(failure));
        let result = result.and_then(|()| self.work(now));
        result.map_err(|breach| violation(breach, self.received))
    }

    fn outstanding(&self) -> usize {
        // Requests of a reliable session are no calls.
        let flights = self.queue.iter().map(|(flight, _)| flight).chain(&self.flight);
        let requests = flights.filter(|flight| flight.kind != Asking::Sequence).count();
        requests + self.reliable.as_ref().map_or(0, Vec::len)
    }
}
