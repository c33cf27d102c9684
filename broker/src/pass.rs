//! Pass-through without a contract: encoded bodies that nobody here reads, with the headers beside them. And the connections that a
//! caller has for itself, which routes with a callback contract give to callers, too ([`crate::callbacks`]).
//!
//! A route without a contract leads from listeners to targets of one wire. Each connection of a caller has
//! connections of its own to the targets ([`everywire::PrivateConnections`]), so that what the caller has agreed on with
//! the broker (character sets, dictionaries, the order of its calls) is what the broker agrees on with the
//! target. A *lane* is the way to one object of a target over the connections of one caller.
//!
//! States of a caller at a target: unknown, until its first call or, on wires whose signals go to whoever is
//! connected, until it was let in; then it has an `PrivateConnections` and lanes; forgotten, when its connection is over
//! (`Lanes::forget`), which ends the connections that were its own. What it says unasked meanwhile is kept
//! until the target listens (`EarlyMessages`), at most `KEPT` of it.
//!
//! Invariants: the lanes of a caller go when its connection ends; a caller has no more lanes than [`LANES`]
//! at one time; what the target asks back goes to the caller whose connection it came by, and to nobody else.
//! A call that is let in just as its connection ends may bring a caller back: those are swept out.
//!
//! Locks: the table of callers is held for look-ups only. The lock of a `EarlyMessages` is held while its signal is
//! sent, so that a caller's signals stay in order; whoever sends may block.

use crate::callbacks::{Backward, CallbackServant};
use crate::config::RouteConfig;
use crate::frontend::Frontend;
use crate::hops;
use crate::listening::Listener;
use crate::numbers::ByNumber;
use crate::upstream::{Common, Upstream};
use crate::waiting_calls::WaitingCalls;
use everywire::layer::Pattern;
use everywire::model::contract::InterfaceKind;
use everywire::{Bytes, Failure, Initiator, Interface, Kind, PrivateConnections, Reference};
use everywire_model::headers::{Content, Header};
use everywire_model::object::unexpected;
use everywire_model::reference::unescape;
use everywire_model::{
    Answer, Body, Expects, Headers, Incoming, Link, Method, Outcome, Request, Servant, SignalEvent,
    Subscription, Wire,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Objects of one target that one connection of a caller may call without finding the way anew. With more,
/// all are forgotten, and found again as they are called.
const LANES: usize = 1024;

/// Signals of one caller that may wait until its connection to the target is made.
const KEPT: usize = 1024;

/// Whenever there are so many more callers, those who have left are looked for.
const SWEEP: usize = 64;

/// What objects are called by whose contract is not here.
pub(crate) static ANY: Interface = Interface {
    name: Cow::Borrowed("any interface"),
    id: Cow::Borrowed(""),
    identities: Cow::Borrowed(&[]),
    kind: InterfaceKind::Plain,
    bases: Cow::Borrowed(&[]),
    operations: Cow::Borrowed(&[]),
    inherited: 0,
    attributes: Cow::Borrowed(&[]),
    signals: Cow::Borrowed(&[]),
    types: None,
    notes: Cow::Borrowed(&[]),
    doc: Cow::Borrowed(""),
};

/// Which calls a route without a contract is for, and what the file says of its operations. Patterns are
/// compared with names as the wire prints them.
pub(crate) struct Opaque {
    /// The wire whose words the patterns are compared with.
    pub(crate) wire: &'static dyn Wire,
    /// `None`: any object.
    key: Option<Pattern>,
    /// The target's key, if that fits: mostly it is what callers name, and then no word is made of it.
    fitting: Option<Bytes>,
    /// `None`: any interface.
    interface: Option<Pattern>,
    /// `None`: any operation.
    operation: Option<Pattern>,
    /// Operations that may run twice.
    idempotent: Vec<Pattern>,
    /// Operations that have no answer.
    oneway: Vec<Pattern>,
}

impl Opaque {
    /// Of a route; `key` is what its callers name where only one object is meant.
    pub(crate) fn new(config: &RouteConfig, key: &Bytes, wire: &'static dyn Wire) -> Self {
        let named = config.matches.key.as_ref().map(|key| match key.value.is_plain() {
            true => Pattern::exact(&wire.named_as(plain(key.value.text()).as_ref())),
            false => key.value.clone(),
        });
        let own = (!key.is_empty()).then(|| Pattern::exact(&wire.named_as(key)));
        let pattern = named.or(own);
        let fits = pattern.as_ref().is_some_and(|pattern| pattern.fits(&wire.key_word(key)));
        Self {
            wire,
            key: pattern,
            fitting: fits.then(|| key.clone()),
            interface: config.matches.interface.clone(),
            operation: config.matches.operation.as_ref().map(|operation| operation.value.clone()),
            idempotent: config.idempotent.iter().map(|pattern| pattern.value.clone()).collect(),
            oneway: config.oneway.iter().map(|pattern| pattern.value.clone()).collect(),
        }
    }

    /// Whether it is for such a call.
    pub(crate) fn is_for(&self, request: &Request) -> bool {
        let Method::Named { interface, operation } = request.method() else { return false };
        if !self.takes(request.key()) {
            return false;
        }
        if self.interface.is_none() && self.operation.is_none() {
            return true;
        }
        let (interface, operation) = self.wire.call_words(interface, operation);
        let fits =
            |pattern: &Option<Pattern>, text: &str| pattern.as_ref().is_none_or(|pattern| pattern.fits(text));
        // Whoever asks for an object itself has named no operation yet.
        let itself = self.wire.makes_objects() && interface.is_empty() && operation.is_empty();
        itself || (fits(&self.interface, &interface) && fits(&self.operation, &operation))
    }

    /// Whether it is for calls of objects with this key.
    #[inline]
    fn takes(&self, key: &[u8]) -> bool {
        self.fitting.as_ref().is_some_and(|fitting| fitting == key)
            || self.key.as_ref().is_none_or(|pattern| pattern.fits(&self.wire.key_word(key)))
    }

    /// What a call is of, for people.
    pub(crate) fn label(&self, request: &Request) -> String {
        let Method::Named { interface, operation } = request.method() else { return String::new() };
        label(self.wire, interface, operation).into_owned()
    }

    /// Whether signals of an object with this key are for its callers.
    pub(crate) fn hears(&self, key: &[u8]) -> bool {
        self.key.as_ref().is_none_or(|pattern| pattern.fits(&String::from_utf8_lossy(key)))
    }

    /// Whether the operation may run twice.
    pub(crate) fn is_idempotent(&self, request: &Request) -> bool {
        let Method::Named { interface, operation } = request.method() else { return false };
        if self.idempotent.is_empty() {
            return false;
        }
        let (_, name) = self.wire.call_words(interface, operation);
        self.idempotent.iter().any(|pattern| pattern.fits(&name))
    }

    /// Whether nothing is answered, whatever the message says.
    pub(crate) fn is_oneway(&self, request: &Request) -> bool {
        if self.oneway.is_empty() {
            return false;
        }
        let name = String::from_utf8_lossy(request.method().name());
        self.oneway.iter().any(|pattern| pattern.fits(&name))
    }
}

/// Changes of headers that a route makes: made once, and beside each message of the route.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    /// Of calls, those that a copy has too, if there are any.
    pub(crate) copies: Option<Arc<Headers>>,
    /// Of calls, all.
    pub(crate) calls: Headers,
    pub(crate) answers: Headers,
}

impl Edits {
    pub(crate) fn new(config: &RouteConfig) -> Self {
        let (mut edits, mut copies) = (Self::default(), Headers::default());
        let of_calls =
            |before| config.edits.iter().filter(move |edit| !edit.answers && edit.before_copy == before);
        for edit in of_calls(true) {
            copies.edit(edit.edit.clone());
            edits.calls.edit(edit.edit.clone());
        }
        of_calls(false).for_each(|edit| edits.calls.edit(edit.edit.clone()));
        let of_answers = config.edits.iter().filter(|edit| edit.answers);
        of_answers.for_each(|edit| edits.answers.edit(edit.edit.clone()));
        Self { copies: (!copies.is_empty()).then(|| Arc::new(copies)), ..edits }
    }

    /// A body with such changes behind those that it has, if any. The bytes are shared: only the list of
    /// changes is new.
    pub(crate) fn on(edits: Option<&Headers>, body: &Body) -> Body {
        let Some(edits) = edits else { return body.clone() };
        let mut headers = body.headers().cloned().unwrap_or_default();
        edits.edits().iter().for_each(|edit| headers.edit(edit.clone()));
        body.clone().with_headers(headers)
    }
}

/// The key that a plain text in a file stands for: octets that are no text stand there escaped, as references print them.
pub(crate) fn plain(text: &str) -> Bytes {
    unescape(text).unwrap_or_else(|| text.into()).into()
}

/// What a call is of that no contract describes, for people.
pub(crate) fn label<'a>(wire: &dyn Wire, interface: &'a [u8], operation: &'a [u8]) -> Cow<'a, str> {
    let (interface, operation) = wire.call_words(interface, operation);
    match (wire.makes_objects(), &*interface) {
        (false, _) => operation,
        (true, "") => Cow::Borrowed("(an object)"),
        (true, interface) => format!("{interface} {operation}").into(),
    }
}

/// Whether all that is asked of headers is so. Headers that cannot be read fit nothing.
pub(crate) fn headers_fit(wanted: &[(String, Pattern)], body: &Body) -> bool {
    if wanted.is_empty() {
        return true;
    }
    let Some(Ok(headers)) = body.headers().map(|headers| headers.list(body)) else { return false };
    let fits = |(name, pattern): &(String, Pattern)| {
        headers.iter().any(|header| header.name == *name && says(header, pattern))
    };
    wanted.iter().all(fits)
}

/// Whether a header says that: one of octets as text, where they are some, or in hexadecimal digits.
fn says(header: &Header, pattern: &Pattern) -> bool {
    let shown = header.display();
    match &header.content {
        Content::Text(_) => pattern.fits(&shown),
        Content::Bytes(octets) => {
            let is_text = || str::from_utf8(octets).is_ok_and(|text| pattern.fits(text));
            pattern.fits(&shown) || pattern.fits(&format!("0x{shown}")) || is_text()
        }
    }
}

/// The lanes to one target, by the connections of callers.
pub(crate) struct Lanes {
    /// The target.
    reference: Reference,
    /// Whether objects are made for whoever asks, so that none has its key from the target.
    made: bool,
    /// The time limit of a call.
    timeout: Duration,
    /// Brokers that a signal may have passed; 0: nobody counts.
    hops: u32,
    /// What each connection of callers has, by its number.
    clients: Mutex<ByNumber<u64, Client>>,
    /// Calls that wait until the target is listened to.
    pub(crate) held: WaitingCalls,
    /// What callers say unasked, in order, by their connections.
    sayings: Mutex<ByNumber<u64, Arc<Mutex<EarlyMessages>>>>,
    /// Of a route with a callback contract: how its callers are called back.
    back: Option<Backward>,
}

/// What a caller says while its connection to the target is being made.
#[derive(Default)]
struct EarlyMessages {
    /// Whether the target hears at once.
    heard: bool,
    kept: Vec<Incoming>,
}

/// What one connection of a caller has. `apart` ends the connections to the target with it.
struct Client {
    /// The caller's connection.
    link: Weak<dyn Link>,
    /// Connections to the target that are made for this caller alone.
    apart: Arc<PrivateConnections>,
    /// Ways to objects of the target, by their keys.
    lanes: HashMap<Bytes, Arc<Upstream>>,
    /// The one that was taken last: mostly the next call is of the same object.
    last: Option<(Bytes, Arc<Upstream>)>,
    /// What the target says unasked.
    signals: Option<Subscription>,
}

impl Client {
    fn new(link: &Arc<dyn Link>, near: &Frontend, timeout: Duration, back: Option<&Backward>) -> Self {
        let (link, apart) = (Arc::downgrade(link), near.node.apart());
        if let Some(back) = back {
            let (link, back) = (Weak::clone(&link), back.clone());
            apart.serve_back(Arc::new(CallbackServant { link, back, timeout }));
        } else if near.wire.capabilities().callbacks_on_connection {
            apart.serve_back(Arc::new(ReverseServant { link: Weak::clone(&link), timeout }));
        }
        Self { link, apart, lanes: HashMap::new(), last: None, signals: None }
    }
}

/// The servant of what a target asks on a connection that is a caller's: the caller is asked, and its answer
/// goes back as it came.
struct ReverseServant {
    link: Weak<dyn Link>,
    timeout: Duration,
}

impl Servant for ReverseServant {
    fn interface(&self) -> &Interface {
        &ANY
    }

    fn dispatch(&self, mut request: Request) {
        let Some(caller) = self.link.upgrade().and_then(|link| link.caller()) else {
            let what = "whoever called is gone, or cannot be called back";
            let gone = Failure::new(Kind::Unreachable, Initiator::Peer, what);
            return request.answer(Answer::Failed(&gone));
        };
        if !request.sender().is_empty() {
            // Anybody on a bus may name this connection: whoever called by it is not there for them.
            let nobody =
                Failure::new(Kind::NoObject, Initiator::Peer, "nothing is served on this connection");
            return request.answer(Answer::Failed(&nobody));
        }
        let target = caller.target().with_deadline(Some(self.timeout));
        let (interface, operation, body) = request.passing();
        let method = Method::Named { interface: &interface, operation: &operation };
        if request.expects() == Expects::Nothing {
            // Nobody would hear of it.
            let _ = target.notify(method, &body);
            return;
        }
        target.submit(method, &body, Box::new(move |outcome| give_back(request, &outcome)));
    }
}

/// Answers with what another connection answered, as it came.
fn give_back(mut request: Request, outcome: &Outcome<Body>) {
    match outcome {
        Outcome::Done(body) => request.answer(Answer::Done(body)),
        Outcome::Raised(raised) => {
            let failure = unexpected(&raised.id);
            match &raised.encoded {
                Some(encoded) => request.answer(Answer::Passed { encoded, failure: &failure }),
                None => request.answer(Answer::Failed(&failure)),
            }
        }
        Outcome::Failed(failure) => match failure.encoded() {
            Some(encoded) => request.answer(Answer::Passed { encoded, failure }),
            None => request.answer(Answer::Failed(failure)),
        },
        Outcome::Moved(reference) => request.answer(Answer::Moved(reference)),
    }
}

/// In place of the number of a connection: the caller that has left last and had said something without waiting for an answer. That
/// still goes on its way.
const LEFT: u64 = u64::MAX;

impl Lanes {
    pub(crate) fn new(
        reference: Reference,
        made: bool,
        timeout: Duration,
        hops: u32,
        back: Option<Backward>,
    ) -> Self {
        let (clients, sayings) = (Mutex::default(), Mutex::default());
        Self { reference, made, timeout, hops, clients, held: WaitingCalls::default(), sayings, back }
    }

    /// How callers are called back, where the contract says how.
    pub(crate) fn back(&self) -> Option<&Backward> {
        self.back.as_ref()
    }

    /// Whether calls that come by this listener have connections of their caller's own.
    pub(crate) fn are_for(&self, near: Option<&Arc<Frontend>>) -> bool {
        self.back.is_none() || near.is_some_and(|near| near.calls_back)
    }

    /// Whether this connection of a caller has connections here.
    pub(crate) fn has(&self, link: u64) -> bool {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&link)
    }

    /// Forgets a caller for whom no connection could be made: it may go elsewhere.
    pub(crate) fn give_up(&self, link: u64) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let made = |client: &Client| client.lanes.values().any(|lane| lane.object.target().is_ready());
        let gone = match clients.entry(link) {
            Entry::Occupied(held) if !made(held.get()) => Some(held.remove()),
            _ => None,
        };
        drop(clients);
        // Without the lock: connections end.
        drop(gone);
    }

    /// The way to the target for a call: its own object where the target names one, else the one that the caller names. Its connections
    /// are `near`'s, on the event loop of the caller's.
    ///
    /// # Errors
    /// The broker has ended.
    pub(crate) fn lane(
        &self,
        request: &Request,
        near: Option<&Arc<Frontend>>,
        common: &Arc<Common>,
    ) -> Result<Arc<Upstream>, Failure> {
        let own = self.reference.profiles.first().map(|profile| &profile.key).filter(|key| !key.is_empty());
        let key: &[u8] = match own.filter(|_| !self.made) {
            Some(key) => key,
            // One object only.
            None if self.back.is_some() => &[],
            None => request.key(),
        };
        let link = request.link();
        let mut number = link.serial_number();
        // Let go behind the lock: connections end.
        let mut _replaced = None;
        let mut clients = self.swept(number);
        if !clients.contains_key(&number) {
            let near = near.ok_or_else(crate::upstream::ended)?;
            // Whoever has left is not heard of again; of anybody else the end comes behind this lock.
            if link.is_over() {
                if request.expects() == Expects::Reply && !near.wire.capabilities().calls_outlive_callers {
                    return Err(crate::upstream::withdrawn());
                }
                number = LEFT;
            }
            let is_own = |client: &Client| client.link.ptr_eq(&Arc::downgrade(link));
            if !clients.get(&number).is_some_and(is_own) {
                let client = Client::new(link, near, self.timeout, self.back.as_ref());
                _replaced = clients.insert(number, client);
            }
        }
        let Some(client) = clients.get_mut(&number) else { return Err(crate::upstream::ended()) };
        if let Some((held, lane)) = &client.last
            && held == key
        {
            return Ok(Arc::clone(lane));
        }
        if let Some((held, lane)) = client.lanes.get_key_value(key) {
            client.last = Some((held.clone(), Arc::clone(lane)));
            return Ok(Arc::clone(lane));
        }
        let key = Bytes::copy_from_slice(key);
        let onward = if self.made { request.onward(&self.reference) } else { None };
        let reference = onward.unwrap_or_else(|| {
            let mut same = self.reference.clone();
            let own = own.unwrap_or(&key);
            same.profiles.iter_mut().for_each(|profile| profile.key = own.clone());
            same
        });
        let mut object = client.apart.resolve(&reference)?.with_deadline(Some(self.timeout));
        if let Some(back) = &self.back {
            object = object.typed(back.service.clone());
        }
        let lane = Upstream::lane(common, object);
        if client.lanes.len() >= LANES {
            client.lanes.clear();
        }
        client.lanes.insert(key, Arc::clone(&lane));
        Ok(lane)
    }

    /// The callers. If this one is new, and there are so many, those who have left are looked for.
    fn swept(&self, link: u64) -> MutexGuard<'_, ByNumber<u64, Client>> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let count = clients.len();
        if count >= SWEEP && count.is_multiple_of(SWEEP) && !clients.contains_key(&link) {
            let mut sayings = self.sayings.lock().unwrap_or_else(PoisonError::into_inner);
            // A call that was let in while its connection ended has come back behind that end.
            clients.retain(|link, client| {
                let stays = client.link.strong_count() > 0;
                if !stays {
                    sayings.remove(link);
                }
                stays
            });
        }
        clients
    }

    /// The connections to the target that are made for this caller.
    pub(crate) fn apart(&self, link: &Arc<dyn Link>, near: &Frontend) -> Arc<PrivateConnections> {
        let mut clients = self.swept(link.serial_number());
        let client = clients
            .entry(link.serial_number())
            .or_insert_with(|| Client::new(link, near, self.timeout, None));
        Arc::clone(&client.apart)
    }

    /// Has what the target says unasked go to a caller, from now on: of the objects whose keys fit. Waits for
    /// the target; what the caller has said meanwhile follows then. `ended` is told when the connection has ended.
    ///
    /// # Errors
    /// The target is not to be reached, or its wire cannot be listened to so.
    pub(crate) fn listen(
        &self,
        caller: &Listener,
        ended: impl Fn(&Failure) + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        let number = &caller.number;
        let Some(apart) = caller.apart.upgrade() else { return Ok(()) };
        let (to, fits) = (Weak::clone(&caller.to), Arc::clone(&caller.fits));
        let (most, name) = (self.hops, caller.wire.hop_header());
        let mut reference = self.reference.clone();
        for profile in &mut reference.profiles {
            // All objects there.
            profile.key = Bytes::new();
        }
        let listener = move |event: SignalEvent<Incoming>| {
            if let SignalEvent::Disconnected(failure) = &event {
                ended(failure);
            }
            if let (SignalEvent::Signal(mut heard), Some(to)) = (event, to.upgrade())
                && let Some(route) = fits(&heard.key)
                // One that has passed too many brokers goes no further.
                && let Ok(passed) = hops::count(&heard.body, most)
            {
                if let Some(edit) = hops::tell(name, passed) {
                    let mut headers = heard.body.headers().cloned().unwrap_or_default();
                    headers.edit(edit);
                    heard.body = heard.body.with_headers(headers);
                }
                // A caller that does not read is ended by its own connection.
                if to.emit(&heard.emission()).is_ok() {
                    route.metrics.signals.inc();
                }
            }
        };
        let object = apart.resolve(&reference)?.with_deadline(Some(self.timeout));
        let subscribed = object.subscribe(None, Arc::new(listener));
        let saying = self.saying(*number);
        let mut saying = saying.lock().unwrap_or_else(PoisonError::into_inner);
        saying.heard = true;
        let kept = std::mem::take(&mut saying.kept);
        // Under the lock of the saying: what the caller says next comes behind. Whether the target can be listened to is another matter.
        let told = kept.iter().try_for_each(|heard| apart.emit(&heard.emission()));
        drop(saying);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(client) = clients.get_mut(number) else {
            // Its connection has ended meanwhile.
            drop(clients);
            self.forget(*number);
            return Ok(());
        };
        let before = client.signals.replace(subscribed?);
        drop(clients);
        // Without the lock: what has ended is let go.
        drop(before);
        told
    }

    /// What this caller says unasked, and whether the target hears it yet.
    fn saying(&self, link: u64) -> Arc<Mutex<EarlyMessages>> {
        let mut sayings = self.sayings.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(sayings.entry(link).or_default())
    }

    /// Has the target hear what a caller says unasked: at once, or when it can.
    ///
    /// # Errors
    /// It does not pass as it is, or too much of it waits for the target.
    pub(crate) fn tell(&self, link: u64, heard: &Incoming) -> Result<(), Failure> {
        let saying = self.saying(link);
        // Until it was said: another thread may have the next one.
        let mut saying = saying.lock().unwrap_or_else(PoisonError::into_inner);
        if !saying.heard {
            if saying.kept.len() >= KEPT {
                let (count, limit) = (KEPT as u64 + 1, KEPT as u64);
                return Err(Failure::over_limit(Initiator::Here, "signals for a target", count, limit));
            }
            saying.kept.push(heard.clone());
            return Ok(());
        }
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let apart = clients.get(&link).map(|client| Arc::clone(&client.apart));
        drop(clients);
        apart.map_or(Ok(()), |apart| apart.emit(&heard.emission()))
    }

    /// The connection of a caller is over.
    pub(crate) fn forget(&self, link: u64) {
        // What it has said and is kept goes by its own connections, behind what went before.
        if !self.held.forget(link) {
            self.end(link);
        }
    }

    /// Lets go of what was there for a caller that has left.
    pub(crate) fn end(&self, link: u64) {
        self.sayings.lock().unwrap_or_else(PoisonError::into_inner).remove(&link);
        let gone = self.clients.lock().unwrap_or_else(PoisonError::into_inner).remove(&link);
        // Without the lock: connections end.
        drop(gone);
    }
}
