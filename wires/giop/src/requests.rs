//! Calls: sent and taken (CORBA 3.3 part 2, section 9.4.2).
//!
//! Sending: `request` writes a request and notes its number in `waiting`, if an answer is expected. The order
//! matters: the message is written first, and only when that has succeeded is the number used up, the
//! character sets of the connection settled, and the call noted. So a call that does not encode leaves no
//! trace.
//!
//! Taking: `request_in` reads the header of a request, `called` makes an event of it, `enter` notes it in
//! `serving`. Key, operation, contexts and body are ranges of the message, whose bytes are shared and never
//! copied. A header that does not decode ends the connection; arguments are read later, by whoever has the
//! contract.
//!
//! Invariants: `waiting` ascends (wrapping) and `serving` ascends by serial, as new entries only go to the
//! end; look-ups rely on it. At most `Limits::outstanding` calls wait in each direction. A request with the
//! number of one that is not answered yet is a violation, since its answer could not be told from the
//! other's.
//!
//! The version of a request is that of the reference, at most 1.2; an answer has the version of its request.
//! The first request of a connection tells the character sets, which hold from then on; if it is sent elsewhere, the next one tells them
//! again.

use crate::addressing_trials::Addressing;
use crate::bidirectional::{BothWays, ListenPoint};
use crate::cdr::{CdrWriter, DecodeError, Get, NATIVE_LITTLE, ReadCdr, WriteCdr};
use crate::codesets::{self, Dialect};
use crate::frame::{HEADER, Header, MessageKind};
use crate::request_header::put_header;
use crate::session::{CodeSetState, GiopSession, InboundCall, RequestKind, Role, expects};
use crate::sink::CdrSink;
use crate::values::Cdr;
use crate::violations::ProtocolError;
use crate::{bidirectional, components, contexts, ior, limits};
use bytes::Bytes;
use everywire_model::contract::note;
use everywire_model::{
    Body, Call, CallId, Encode, Event, Expects, Failure, Incoming, Method, Profile, Session, Sink, Visit,
};
use std::ops::Range;

/// The note of an operation whose contract has a clause `context`.
pub(crate) const CONTEXT: &str = "giop:context";

/// Whether a request of this operation has a list of the caller's properties behind its arguments (CORBA 3.3 part 2, section 9.4.2.2).
pub(crate) fn has_context(method: Method<'_>) -> bool {
    match method {
        Method::Typed { operation, .. } => note(&operation.notes, CONTEXT).is_some(),
        Method::Named { .. } => false,
    }
}

/// Arguments, and behind them an empty list of properties: callers have none here.
pub(crate) struct WithContext<'a>(pub(crate) &'a dyn Encode);

impl Encode for WithContext<'_> {
    fn encode(&self, sink: &mut dyn Sink) -> Visit<()> {
        self.0.encode(sink)?;
        sink.u32(0)
    }
}

impl GiopSession {
    /// Sends a call. Bodies that are passed on, and headers, take the way by `passing`.
    ///
    /// # Errors
    /// The connection is closed, was opened by the peer, or has too many calls open; the arguments do not
    /// encode, or the message gets too large. Nothing was sent.
    pub(crate) fn request(&mut self, call: &Call<'_>) -> Result<CallId, Failure> {
        self.check_can_ask()?;
        let carries = call.arguments.carries();
        let is_passed = carries.body.is_some() || carries.headers.is_some();
        let with_context = WithContext(call.arguments);
        let values: &dyn Encode = if has_context(call.method) { &with_context } else { call.arguments };
        if !is_passed && let Some(id) = self.request_as_before(call, values)? {
            return Ok(id);
        }
        // Not the first request alone: that may have gone to a `corbaloc`, which tells nothing.
        if self.fragment == 0 && components::has_mark_of_sun(call.profile) {
            self.meet_sun();
        }
        if is_passed {
            return self.request_with(call, carries);
        }
        let minor = call.profile.version.1.min(2);
        // The first request of a connection says which code sets the client uses; GIOP 1.0 knows of none.
        let (dialect, says) = match self.dialect {
            _ if minor == 0 => (Dialect::default(), false),
            Some(dialect) => (Dialect { minor, ..dialect }, self.sets_told == CodeSetState::Again),
            None => match self.own_sets() {
                Some(dialect) => (Dialect { minor, ..dialect }, false),
                None => (components::dialect(call.profile, minor), true),
            },
        };
        let id = self.next_id;
        let is_asked = call.expects == Expects::Reply;
        let told = says.then_some(dialect);
        self.put_request(id, is_asked, call.profile, call.method.name(), told, dialect, |session, start| {
            session.body(start, dialect, values)
        })?;
        self.take_id(minor);
        // What the side that accepted chooses for its own requests does not hold for those that it takes.
        if says && self.role == Role::Connecting {
            (self.dialect, self.sets_told) = (Some(dialect), CodeSetState::Once);
        } else if says && let Some(both_ways) = &mut self.both_ways {
            both_ways.own_sets = Some(dialect);
        }
        if is_asked {
            self.waiting.push_back(id);
            if minor >= 2 && self.trials.is_on() {
                // What was encoded once can be encoded again; if not, the request is not kept.
                let _ = self.keep_request(id, call, values, told, dialect);
            }
        }
        Ok(CallId(id.into()))
    }

    /// Sends a call whose message begins as that of another one did (`request_heads`): in GIOP 1.2, not split, when the character sets
    /// are agreed on and the server has taken the key of an object for its name. `None`: this one does not, and nothing was sent.
    #[inline]
    fn request_as_before(&mut self, call: &Call<'_>, values: &dyn Encode) -> Result<Option<CallId>, Failure> {
        let profile = call.profile;
        let Some(dialect) = self.dialect.filter(|_| self.sets_told == CodeSetState::Heard) else {
            return Ok(None);
        };
        if profile.version.1 < 2
            || self.fragment != 0
            || self.addressing != Addressing::Key
            || self.trials.is_on()
            || self.both_ways.as_deref().is_some_and(BothWays::is_due)
        {
            return Ok(None);
        }
        let is_asked = call.expects == Expects::Reply;
        let Some(head) = self.heads.get(profile, call.method.name(), is_asked) else { return Ok(None) };
        if !head.is_made_with(profile) && components::has_mark_of_sun(profile) {
            return Ok(None);
        }
        let id = self.next_id;
        let without_padding = head.without_padding;
        let mark = self.out.mark();
        let (start, header) = (self.out.position(), self.out.flat().len());
        head.put(self.out.flat(), id);
        let before = self.out.position();
        let limit = limits::largest(&self.limits);
        let dialect = Dialect { minor: 2, ..dialect };
        let mut sink = CdrSink::new(&mut self.out, start, NATIVE_LITTLE, dialect, limit);
        let written = values.encode(sink.over(self.local));
        if self.out.position() == before {
            self.out.flat().truncate(header + without_padding);
        }
        self.close_message(mark, start, header, written)?;
        self.take_id(2);
        if is_asked {
            self.waiting.push_back(id);
        }
        Ok(Some(CallId(id.into())))
    }

    /// Writes a request, with the values that `values` appends. `told` are the character sets to tell the peer.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn put_request(
        &mut self,
        id: u32,
        is_asked: bool,
        profile: &Profile,
        operation: &[u8],
        told: Option<Dialect>,
        dialect: Dialect,
        values: impl FnOnce(&mut Self, usize) -> Visit<()>,
    ) -> Visit<()> {
        let minor = dialect.minor;
        self.message(minor, MessageKind::Request, |session, start| {
            let (addressing, shift) = (session.addressing, shift(session, start));
            let mut put = CdrWriter { shift, out: session.out.flat(), swap: false };
            let both_ways = session.both_ways.as_deref();
            let points = both_ways.map_or(&[][..], |both_ways| both_ways.to_tell(minor, told.is_some()));
            let contexts = |put: &mut CdrWriter<'_>| put_contexts(told, points, put);
            put_header(&mut put, minor, id, is_asked, profile, addressing, operation, contexts, b"");
            values(session, start)
        })?;
        if let Some(both_ways) = &mut self.both_ways {
            both_ways.told(minor);
        }
        Ok(())
    }

    /// Whether this side may send a request now: only the side that opened the connection may, unless the peer serves objects on it
    /// (`bidirectional`).
    pub(crate) fn check_can_ask(&self) -> Result<(), Failure> {
        self.check_open()?;
        if self.role == Role::Accepting && !self.peer_serves() {
            let what = "calls cannot go back over a connection that the peer opened";
            return Err(Failure::unsupported(what).with_hint(
                "connect to the peer's own endpoint, or have both sides listen at addresses with bidirectional=on",
            ));
        }
        self.limits.check_outstanding(self.waiting.len())
    }

    /// Writes a message's values; in GIOP 1.2 they begin at a multiple of 8, if there are any. Where `values`
    /// appends nothing, the padding is taken back too, since a message without a body ends with its header
    /// (section 9.4.2.2).
    #[inline]
    pub(crate) fn body(&mut self, start: usize, dialect: Dialect, values: &dyn Encode) -> Visit<()> {
        let mark = self.out.mark();
        if dialect.minor >= 2 {
            CdrWriter { shift: shift(self, start), out: self.out.flat(), swap: false }.align(8);
        }
        let before = self.out.position();
        let limit = limits::largest(&self.limits);
        let local = self.local;
        values.encode(CdrSink::new(&mut self.out, start, NATIVE_LITTLE, dialect, limit).over(local))?;
        if self.out.position() == before {
            self.out.truncate(mark);
        }
        Ok(())
    }

    /// Appends values of GIOP 1.2 that are encoded already, aligned at 8; large ones by reference.
    pub(crate) fn encoded_body(&mut self, start: usize, values: &Bytes) {
        if !values.is_empty() {
            CdrWriter { shift: shift(self, start), out: self.out.flat(), swap: false }.align(8);
            self.out.splice(values.clone());
        }
    }

    /// A call of the peer. In GIOP 1.0 and 1.1 the response flags are a boolean, and a principal, which
    /// nobody reads, follows the operation.
    ///
    /// # Errors
    /// The header does not decode, or names its target in a way that does not exist.
    #[inline]
    pub(crate) fn request_in(&mut self, header: &Header, message: Bytes) -> Result<(), ProtocolError> {
        if header.minor == 2
            && let Some(end) = self.last_head.end_in(&message, header.little)
            && let (Some(id), Some(&flags)) = (number_of(header, &message), message.get(HEADER + 4))
        {
            let (key, operation) = (self.last_head.key.clone(), self.last_head.operation.clone());
            // The body is aligned at 8, from the beginning of the message.
            let body = end.next_multiple_of(8);
            return self.called(header, id, flags, key, operation, None, body, None, message);
        }
        self.new_request_in(header, message)
    }

    /// A call that does not begin as the last one did.
    #[inline(never)]
    fn new_request_in(&mut self, header: &Header, message: Bytes) -> Result<(), ProtocolError> {
        let mut get = Get { bytes: &message, pos: HEADER, base: 0, little: header.little };
        let (mut sets, mut points) = (None, None);
        let (mut passes, mut of_sun) = (false, false);
        let mut see = |id, data| {
            of_sun |= id == contexts::SUN_VERSION;
            if id == contexts::CODE_SETS {
                sets = Some(codesets::read_context(data, header.minor)?);
            } else if id == contexts::BI_DIR_IIOP {
                points = Some(data);
            } else {
                passes |= contexts::passes(id);
            }
            Ok(())
        };
        let (id, flags, key, operation, list);
        if header.minor >= 2 {
            (id, flags) = (get.u32()?, get.u8()?);
            get.take(3)?;
            key = target(&mut get)?;
            operation = string_at(&mut get)?;
            // An empty name would be an operation that no contract has.
            if operation.is_empty() {
                return Err(get.bad("a request names no operation").into());
            }
            let start = get.pos;
            contexts::each(&mut get, &mut see)?;
            list = start..get.pos;
            if get.pos == start.next_multiple_of(4) + 4 {
                // No contexts, so the next request may begin so, too.
                self.last_head.keep(&message, header.little, get.pos, &key, &operation);
            }
            // The body is aligned at 8 in 1.2; that padding may be missing if there is no body.
            get.align(8);
        } else {
            contexts::each(&mut get, &mut see)?;
            list = HEADER..get.pos;
            (id, flags) = (get.u32()?, get.boolean()?.into());
            if header.minor == 1 {
                get.take(3)?;
            }
            key = octets_at(&mut get)?;
            operation = string_at(&mut get)?;
            // The principal: deprecated since 2.2, looked at by nobody.
            get.octets()?;
        }
        if of_sun {
            self.meet_sun();
        }
        if let (Some(points), Some(both_ways)) = (points, &mut self.both_ways) {
            both_ways.hear(points)?;
        }
        let list = passes.then_some(list);
        self.called(header, id, flags, key, operation, list, get.pos, sets, message)
    }

    /// Makes an event of a call. `key`, `operation` and `list` are ranges of `message`; `list` are the
    /// service contexts, if any of them may pass on; `sets` are the character sets that the request tells.
    /// `_is_a` and `_non_existent` are questions about the object and no calls of a servant, so they become
    /// probes.
    // For a request that begins as the last one did, half of it is settled where it is compiled.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn called(
        &mut self,
        header: &Header,
        id: u32,
        flags: u8,
        key: Range<usize>,
        operation: Range<usize>,
        list: Option<Range<usize>>,
        body: usize,
        sets: Option<Dialect>,
        message: Bytes,
    ) -> Result<(), ProtocolError> {
        let expects = expects(flags);
        if let Some(dialect) = sets {
            self.hear_sets(dialect);
        }
        let dialect = Dialect { minor: header.minor, ..self.peer_sets() };
        let key = message.slice(key);
        let operation = message.slice(operation);
        let asks = match &*operation {
            b"_non_existent" | b"_not_existent" => RequestKind::NonExistent,
            b"_is_a" => RequestKind::IsA,
            _ => RequestKind::Call,
        };
        let Some(call) = self.enter(id, dialect, asks, expects)? else { return Ok(()) };
        let type_id = match asks {
            RequestKind::IsA => asked_type(&message, body, header.little)?,
            _ => None,
        };
        // A message may end with the padding before a body that is not there.
        let base = body.min(message.len());
        let headers = list.map(|list| contexts::received(&message, list));
        let mut bytes = message;
        bytes::Buf::advance(&mut bytes, base);
        let beside = self.beside_bodies();
        let body = Body { beside, ..Cdr::body(bytes, base, header.little, dialect, self.limits.budget) };
        let body = match headers {
            Some(headers) => body.with_headers(headers),
            None => body,
        };
        let (sender, interface) = (Bytes::new(), Bytes::new());
        let incoming = Box::new(Incoming { id: call, sender, key, interface, operation, body, expects });
        match asks {
            RequestKind::Call => self.events.push_back(Event::Call(incoming)),
            _ if expects == Expects::Nothing => {}
            _ => {
                let key = incoming.key.clone();
                self.events.push_back(Event::Probe { id: call, key, type_id, asked: Some(incoming) });
            }
        }
        Ok(())
    }

    /// The peer tells the character sets of its requests. Where calls go both ways, they are its own matter on the side that connects, which
    /// has told those of its requests.
    fn hear_sets(&mut self, dialect: Dialect) {
        match &mut self.both_ways {
            Some(both_ways) if self.role == Role::Connecting => both_ways.peer_sets = Some(dialect),
            _ => self.dialect = Some(dialect),
        }
    }

    /// The character sets of this side's requests and their replies, where it has accepted a peer that has told none.
    #[cold]
    pub(crate) fn own_sets(&self) -> Option<Dialect> {
        self.both_ways.as_deref()?.own_sets
    }

    /// The character sets of the peer's requests.
    #[inline]
    fn peer_sets(&self) -> Dialect {
        match self.both_ways.as_deref() {
            None => self.dialect,
            Some(both_ways) => both_ways.peer_sets.or(self.dialect),
        }
        .unwrap_or_default()
    }

    /// Notes a call of the peer, so that it can be answered, and gives it the number by which the runtime
    /// knows it. A oneway call gets a number too, but no entry. `None` if it was refused, because too many
    /// calls are open; the peer was told.
    ///
    /// # Errors
    /// The request has the number of another that is open; or it is a locate request over the limit in a
    /// version that cannot say so.
    pub(crate) fn enter(
        &mut self,
        id: u32,
        dialect: Dialect,
        asks: RequestKind,
        expects: Expects,
    ) -> Result<Option<CallId>, ProtocolError> {
        let serial = self.next_serial;
        self.minor = dialect.minor;
        if expects == Expects::Reply {
            if self.serving.iter().any(|serving| serving.id == id && !serving.cancelled) {
                return Err(ProtocolError::RequestIdReused { id });
            }
            if self.serving.len() >= self.limits.outstanding {
                let busy = self.busy();
                match asks {
                    RequestKind::Locate if dialect.minor < 2 => {
                        return Err(ProtocolError::TooManyOpen { limit: self.limits.outstanding });
                    }
                    RequestKind::Locate => self.refuse_locate(id, &busy),
                    RequestKind::Call | RequestKind::NonExistent | RequestKind::IsA => {
                        self.refuse(id, dialect.minor, &busy)
                    }
                }
                return Ok(None);
            }
            self.serving.push(InboundCall { serial, id, dialect, asks, cancelled: false });
        }
        self.next_serial += 1;
        Ok(Some(CallId(serial)))
    }

    /// Tells the peer that nobody waits for this call any more. The servant may run all the same.
    pub(crate) fn send_cancel(&mut self, id: u32) {
        let sent = self.message(self.minor, MessageKind::CancelRequest, |session, start| {
            CdrWriter { shift: shift(session, start), out: session.out.flat(), swap: false }.u32(id);
            Ok(())
        });
        // Sixteen bytes exceed no limit that lets a request through.
        debug_assert!(sent.is_ok());
    }

    /// The peer withdraws a call. One that is not known was answered already. Its entry stays until its
    /// answer is given, see `InboundCall::cancelled`.
    pub(crate) fn cancel_in(&mut self, header: &Header, message: &[u8]) -> Result<(), ProtocolError> {
        let mut get = Get { bytes: message, pos: HEADER, base: 0, little: header.little };
        let id = get.u32()?;
        if get.left() > 0 {
            return Err(ProtocolError::Trailing { kind: header.kind.word(), bytes: get.left() });
        }
        self.drop_assembly(id, header);
        if let Some(serving) = self.serving.iter_mut().find(|serving| serving.id == id && !serving.cancelled)
        {
            serving.cancelled = true;
            self.withdrawn += 1;
            let serial = serving.serial;
            self.events.push_back(Event::Cancelled(CallId(serial)));
        }
        Ok(())
    }
}

/// What `CdrWriter` needs to know where a message began: added (wrapping) to the length of the send buffer's flat
/// part, it gives the offset in the message that began at `start`. Parts that are kept by reference count in
/// the position and not in the flat part.
#[inline]
pub(crate) fn shift(session: &mut GiopSession, start: usize) -> usize {
    session.out.position().wrapping_sub(start).wrapping_sub(session.out.flat().len())
}

/// The contexts of a request: the character sets, where this side's objects are, or none.
#[inline]
fn put_contexts(says: Option<Dialect>, points: &[ListenPoint], put: &mut CdrWriter<'_>) {
    if says.is_none() && points.is_empty() {
        return put.u32(0);
    }
    put_introduction(says, points, put);
}

/// Once in a connection.
#[cold]
fn put_introduction(says: Option<Dialect>, points: &[ListenPoint], put: &mut CdrWriter<'_>) {
    put.count(usize::from(says.is_some()) + usize::from(!points.is_empty()));
    if let Some(dialect) = says {
        put.u32(contexts::CODE_SETS);
        put.encapsulated(|put| codesets::put_context(dialect, put));
    }
    if !points.is_empty() {
        bidirectional::put_context(points, put);
    }
}

/// The key that a target of GIOP 1.2 names, as a range of the message. A profile or a reference that names it
/// holds the key within an encapsulation; only the key is looked at.
///
/// # Errors
/// It does not decode, or the selected profile is none of IIOP's or is not there.
// Of each request.
#[inline(always)]
pub(crate) fn target(get: &mut Get<'_>) -> Result<Range<usize>, ProtocolError> {
    match get.u16()? {
        0 => Ok(octets_at(get)?),
        1 => key_of_profile(get),
        2 => key_of_reference(get),
        disposition => Err(ProtocolError::Addressing { disposition }),
    }
}

/// The key in the profile of a reference that the sender has selected.
#[cold]
fn key_of_reference(get: &mut Get<'_>) -> Result<Range<usize>, ProtocolError> {
    let wanted = get.count()?;
    get.string()?;
    let mut found = Err(ProtocolError::Target);
    for index in 0..get.parts()? {
        if index == wanted {
            found = key_of_profile(get);
        } else {
            get.u32()?;
            get.octets()?;
        }
    }
    found
}

/// The key in a tagged profile, as a range of the message.
#[cold]
fn key_of_profile(get: &mut Get<'_>) -> Result<Range<usize>, ProtocolError> {
    let tag = get.u32()?;
    let data = get.octets()?;
    if tag != ior::TAG_INTERNET_IOP {
        return Err(ProtocolError::Target);
    }
    let start = get.pos - data.len();
    let key = ior::key_of_profile(data)?;
    Ok(start + key.start..start + key.end)
}

/// The number of a request of GIOP 1.2.
#[inline]
fn number_of(header: &Header, message: &[u8]) -> Option<u32> {
    let raw = *message.get(HEADER..)?.first_chunk()?;
    Some(if header.little { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) })
}

/// Where octets behind their count stand in the message.
#[inline]
pub(crate) fn octets_at(get: &mut Get<'_>) -> Result<Range<usize>, DecodeError> {
    let len = get.octets()?.len();
    Ok(get.pos - len..get.pos)
}

/// Where a string stands in the message, without its NUL.
#[inline]
fn string_at(get: &mut Get<'_>) -> Result<Range<usize>, DecodeError> {
    let len = get.string()?.len();
    let end = get.pos - 1;
    Ok(end - len..end)
}

/// The repository id that `_is_a` asks for; nothing for the type that every object has. It is the only
/// argument that the session reads.
fn asked_type(message: &[u8], body: usize, little: bool) -> Result<Option<Box<str>>, ProtocolError> {
    let mut get = Get { bytes: message, pos: body, base: 0, little };
    let id = String::from_utf8_lossy(get.string()?).into_owned();
    Ok((id != "IDL:omg.org/CORBA/Object:1.0").then(|| id.into_boxed_str()))
}
