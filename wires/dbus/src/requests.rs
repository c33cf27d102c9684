//! Calls: sent and taken.
//!
//! Sending: the route of a call (`routes`) has its header ready; the values go behind it, and the call is
//! noted in `waiting` by its serial number. A call that does not encode leaves nothing but an unused serial
//! number.
//!
//! Taking: a call whose header was read or recognised becomes an event at once; its values stay encoded. It
//! is noted in `serving`, so that the answer finds the caller's number and name. Over the limit of open calls
//! it is refused. The sender's name counts only on a bus, which vouches for it. One that comes before this side has joined
//! the bus waits until it has.

use crate::address::TAG_NAME;
use crate::dialect::ARGUMENTS;
use crate::frame;
use crate::heads::RouteHead;
use crate::incoming::ReceivedMessage;
use crate::limits;
use crate::names;
use crate::pending_calls::Pending;
use crate::routes::CallForm;
use crate::serving::Caller;
use crate::session::{DbusSession, Stage};
use crate::signature;
use crate::standard::{INTROSPECTABLE, PEER};
use crate::violations::ProtocolError;
use bytes::Bytes;
use everywire_model::visit::Nothing;
use everywire_model::wire::{MemberIndex, MessageListing};
use everywire_model::{
    Call, CallId, Event, Expects, Failure, Headers, Incoming, Initiator, Interface, Kind, Method, Operation,
    Profile, Purpose, Shape,
};
use std::borrow::Cow;

impl DbusSession {
    /// Sends a call. What has no contract, passes a body on or has headers takes the way by `passing`.
    ///
    /// # Errors
    /// The connection is not open or has too many calls open; a name is not valid on this wire; the arguments
    /// do not encode.
    pub(crate) fn request(&mut self, call: &Call<'_>) -> Result<CallId, Failure> {
        self.check_can_ask()?;
        let carries = call.arguments.carries();
        let (interface, operation) = match call.method {
            Method::Typed { interface, operation } if carries.body.is_none() && carries.headers.is_none() => {
                (interface, operation)
            }
            _ => return self.request_with(call, carries),
        };
        let (serial, setup) = (self.take_serial(), self.setup());
        let route = self.routes.call(call.profile, interface, operation)?;
        let unwraps = route.asks == CallForm::Get;
        let mut head = RouteHead::new(route, serial, flags(call.expects));
        Self::send(&mut self.out, &mut self.scratch, setup, &mut head, call.arguments)?;
        if call.expects == Expects::Reply {
            let to = self.bus.is_some().then(|| asked(call.profile));
            let raises = operation.raises.clone();
            self.waiting.insert(serial, Pending::Call { raises, unwraps, passed: false, to });
        }
        Ok(CallId(serial.into()))
    }

    /// Asks whether an object is there: the protocol has no question for that, so the object is asked to
    /// describe itself, which every object does. Without a key the peer as such is asked for a sign of life.
    pub(crate) fn ask_whether_there(&mut self, profile: &Profile) -> Result<CallId, Failure> {
        self.check_can_ask()?;
        let (interface, member): (&Interface, _) =
            if profile.key.is_empty() { (&PEER, "Ping") } else { (&INTROSPECTABLE, "Introspect") };
        let Some(operation) = interface.operations.iter().find(|operation| operation.name == member) else {
            return Err(Failure::new(Kind::Internal, Initiator::Here, "a standard interface is incomplete"));
        };
        let (serial, setup) = (self.take_serial(), self.setup());
        let route = self.routes.call(profile, Some(interface), operation)?;
        let mut head = RouteHead::new(route, serial, 0);
        Self::send(&mut self.out, &mut self.scratch, setup, &mut head, &Nothing)?;
        self.waiting.insert(serial, Pending::Probe(asked(profile)));
        Ok(CallId(serial.into()))
    }

    /// Whether this side may call now. Calls to the bus on this side's own account are not counted
    /// beforehand, but count while they wait.
    #[inline]
    pub(crate) fn check_can_ask(&self) -> Result<(), Failure> {
        self.check_open()?;
        self.limits.check_outstanding(self.waiting.len())
    }

    /// A call of the peer. Before this side has joined a bus, calls are refused, and those that want no
    /// answer are dropped.
    #[inline]
    pub(crate) fn called(&mut self, message: ReceivedMessage) {
        let on_bus = self.bus.is_some();
        let Some(known) = self.seen.get(message.known) else { return };
        let fields = &known.fields;
        // Only a bus tells who sent something; a peer may say what it likes.
        let sender = if on_bus { fields.sender.clone() } else { Bytes::new() };
        let waits = message.header.flags & frame::NO_REPLY_EXPECTED == 0;
        let (key, signature) = (known.key.clone(), known.signature.clone());
        let (interface, operation) = (fields.interface.clone(), fields.member.clone());
        let headers = fields.others.then(|| known.raw.clone());
        let len = message.header.body_at() + message.bytes.len();
        let id = if waits {
            if let Some(busy) = self.cannot_serve(len) {
                self.refuse(message.header.serial, &sender, &busy);
                return;
            }
            self.serving.enter(Caller { serial: message.header.serial, name: sender.clone() })
        } else {
            if !matches!(self.stage, Stage::Open) && !self.waits_early(len) {
                return;
            }
            self.serving.pass()
        };
        let body = self.body(message, signature, ARGUMENTS).with_headers(headers.map(Headers::received));
        let expects = if waits { Expects::Reply } else { Expects::Nothing };
        let call = Incoming { id, sender, key, interface, operation, body, expects };
        if matches!(self.stage, Stage::Open) {
            self.events.push_back(Event::Call(Box::new(call)));
        } else {
            self.early.push(call);
        }
    }

    /// Ends a connection that this side made to call, if the peer itself calls all the time and reads none of the answers: they
    /// would pile up here. Where this side serves, nothing is read from a peer before it has read its answers.
    pub(crate) fn check_unread(&mut self) -> Result<(), ProtocolError> {
        if self.accepted || self.bus.as_ref().is_some_and(|bus| bus.purpose == Purpose::Serving) {
            return Ok(());
        }
        self.unread = if self.out.is_empty() { 0 } else { self.unread + 1 };
        match self.out.len() {
            bytes if bytes > limits::UNREAD && self.unread > self.limits.outstanding => {
                Err(ProtocolError::Unread { bytes })
            }
            _ => Ok(()),
        }
    }

    /// Why a call cannot be taken now, if it cannot.
    #[inline]
    fn cannot_serve(&self, len: usize) -> Option<Failure> {
        if !matches!(self.stage, Stage::Open) && !self.waits_early(len) {
            // On a bus anybody may call as soon as there is a unique name.
            let what = "this side has not joined the bus yet";
            return Some(Failure::new(Kind::Busy, Initiator::Peer, what));
        }
        (self.serving.len() >= self.limits.outstanding).then(|| self.too_many_calls())
    }

    /// Whether a call with so many bytes waits until this side has joined the bus.
    #[cold]
    fn waits_early(&self, len: usize) -> bool {
        let serves = self.bus.as_ref().is_some_and(|bus| bus.purpose == Purpose::Serving);
        let held: usize = self.early.iter().map(|call| call.body.base + call.body.bytes.len()).sum();
        let fits = (held.saturating_add(len) as u64) <= self.limits.message;
        matches!(self.stage, Stage::Joining) && serves && fits && self.early.len() < self.limits.outstanding
    }
}

/// Whom on the bus the object of a profile belongs to; empty for the peer.
pub(crate) fn asked(profile: &Profile) -> Bytes {
    profile.component(TAG_NAME).cloned().unwrap_or_default()
}

/// The flags of a call, beside those of its route.
#[inline]
pub(crate) fn flags(expects: Expects) -> u8 {
    if expects == Expects::Reply { 0 } else { frame::NO_REPLY_EXPECTED }
}

/// The number of the operation that a call asks for. Attributes are asked for by the interface of properties instead. Of several methods
/// with one name, the one is meant that takes values of the types that came, as in QtDBus; if none does, the first, whose types the
/// caller is then told.
pub(crate) fn operation(interface: &Interface, asked: &Incoming) -> Option<usize> {
    let is_asked = |name: Cow<'_, str>| asked.interface == *name;
    let own = asked.interface.is_empty() || is_asked(names::of_interface(interface));
    let is_meant =
        |operation: &Operation| own || is_asked(names::of_interface(interface.declaring(&operation.name)));
    let named = || methods(interface, &asked.operation).filter(|(_, operation)| is_meant(operation));
    let fits = |operation: &Operation| signature::fits(operation.arguments.fields(), &asked.body.context);
    named().find(|(_, operation)| fits(operation)).or_else(|| named().next()).map(|(index, _)| index)
}

/// Whether no other method of the interface has the name of the operation with this number: its types choose between them.
pub(crate) fn is_told_by_names(interface: &Interface, index: usize) -> bool {
    interface.operations.get(index).is_none_or(|operation| {
        methods(interface, names::of_operation(operation).as_bytes()).nth(1).is_none()
    })
}

/// The methods with this name on the wire, and their numbers.
fn methods<'i>(interface: &'i Interface, name: &'i [u8]) -> impl Iterator<Item = (usize, &'i Operation)> {
    interface.operations.iter().enumerate().filter(move |(index, operation)| {
        name == names::of_operation(operation).as_bytes() && interface.attribute_of(*index).is_none()
    })
}

/// Which operation of an interface a listed message calls, or which of its signals it is: by its name, and of several with that name, by
/// its types.
pub(crate) fn called(explained: &MessageListing, interface: &Interface) -> Option<MemberIndex> {
    let part = |code| explained.part(frame::field::word(code));
    let name = part(frame::field::MEMBER)?;
    let types = part(frame::field::SIGNATURE).unwrap_or_default();
    let fits = |shape: &Shape| signature::fits(shape.fields(), types.as_bytes());
    if explained.kind == frame::word(frame::SIGNAL) {
        let signals =
            || interface.signals.iter().enumerate().filter(|(_, signal)| names::of_signal(signal) == name);
        let found = signals().find(|(_, signal)| fits(&signal.fields)).or_else(|| signals().next());
        return found.map(|(index, _)| MemberIndex::Signal(index));
    }
    let methods = || methods(interface, name.as_bytes());
    let found = methods().find(|(_, operation)| fits(&operation.arguments)).or_else(|| methods().next());
    found.map(|(index, _)| MemberIndex::Operation(index))
}
