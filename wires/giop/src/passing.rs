//! Calls and answers that pass without a contract: bodies as they came, with another header in front (CORBA
//! 3.3 part 2, section 9.4).
//!
//! What a body's bytes depend on is kept: its byte order is that of the whole new message, its GIOP version
//! too, and it begins at the same place of a block of eight. In GIOP 1.2 every body does; before that, a
//! service context without meaning and the principal, which nobody reads, make the header as long as it has
//! to be. Text in a body is in the character sets of the connection it came by, so that the connection it
//! leaves by must have agreed on the same. Service contexts pass, but those that speak of one connection.
//! References in a body are not touched: they lead past the hop.
//!
//! State: `GiopSession::passed` lists calls that went out so, in the order in which they went; their answers
//! are kept encoded (`replies`). Calls that come here with values and with headers beside them take the same
//! way. What cannot be kept is refused with a failure that asks for a contract (`needs_contract`), before
//! anything is sent.

use crate::bidirectional::ListenPoint;
use crate::cdr::{CdrWriter, Get, NATIVE_LITTLE, WriteCdr};
use crate::codesets::{self, Dialect};
use crate::frame::{self, MessageKind};
use crate::request_header::put_header;
use crate::requests::{WithContext, has_context, shift};
use crate::session::{CodeSetState, GiopSession, InboundCall, Role};
use crate::values::CDR_NAME;
use crate::{bidirectional, components, contexts};
use everywire_model::headers::Content;
use everywire_model::message::needs_contract;
use everywire_model::visit::MessageContents;
use everywire_model::{Body, Call, CallId, Encode, Expects, Failure, Header, Headers, Profile, Visit};
use std::borrow::Cow;

impl GiopSession {
    /// Sends a call whose body is passed on, or that has headers. The character sets of the connection are
    /// settled by the first request that tells any, here as in `request`: a body that passes brings its own.
    ///
    /// # Errors
    /// The body cannot leave by this connection as it is, or a header names no service context. Nothing was
    /// sent.
    #[cold]
    pub(crate) fn request_with(
        &mut self,
        call: &Call<'_>,
        carries: MessageContents<'_>,
    ) -> Result<CallId, Failure> {
        let passed = carries.body.map(|body| as_cdr(body).map(|dialect| (body, dialect))).transpose()?;
        let version = call.profile.version.1.min(2);
        let minor = passed.map_or(version, |(_, dialect)| dialect.minor);
        let again = self.sets_told == CodeSetState::Again;
        let (dialect, told) = match (passed, self.dialect) {
            (Some((_, dialect)), None) => (dialect, self.adopt(call.profile, dialect)?),
            (Some((body, dialect)), Some(agreed)) => {
                // What has no text in it does not mind.
                let same = (agreed.narrow, agreed.wide) == (dialect.narrow, dialect.wide);
                if !same && !body.bytes.is_empty() {
                    return Err(needs_contract(
                        "text in other character sets than this connection has agreed on",
                    ));
                }
                (Dialect { minor, ..agreed }, again.then_some(agreed))
            }
            (None, Some(dialect)) => (Dialect { minor, ..dialect }, again.then_some(dialect)),
            (None, None) if minor == 0 => (Dialect::default(), None),
            (None, None) => {
                let dialect = components::dialect(call.profile, minor);
                (dialect, Some(dialect))
            }
        };
        let (id, is_asked) = (self.next_id, call.expects == Expects::Reply);
        let both_ways = self.both_ways.as_deref();
        let points = both_ways.map_or(&[][..], |both_ways| both_ways.to_tell(minor, told.is_some())).to_vec();
        let beside = ContextList::new(carries, told, &points)?;
        // A body that passes has its list of properties.
        let with_context = WithContext(call.arguments);
        let values: &dyn Encode = if has_context(call.method) { &with_context } else { call.arguments };
        self.passing_message(dialect.minor, MessageKind::Request, carries.body, |session, start, fill| {
            let addressing = session.addressing;
            let swap = carries.body.is_some_and(|body| body.little != NATIVE_LITTLE);
            let mut put = CdrWriter { shift: shift(session, start), out: session.out.flat(), swap };
            let (profile, operation) = (call.profile, call.method.name());
            let contexts = |put: &mut CdrWriter<'_>| beside.put(put, fill);
            let principal = &[0; 3][..fill.unwrap_or_default() & 3];
            put_header(&mut put, minor, id, is_asked, profile, addressing, operation, contexts, principal);
            session.values_or_body(start, dialect, values, carries.body)
        })?;
        self.take_id(minor);
        if let Some(both_ways) = &mut self.both_ways {
            both_ways.told(minor);
        }
        // Sets that the peer was not told of hold for this body alone.
        if told.is_some() && self.role == Role::Connecting {
            (self.dialect, self.sets_told) = (told, CodeSetState::Once);
        } else if let (Some(_), Some(both_ways)) = (told, &mut self.both_ways) {
            both_ways.own_sets = told;
        }
        if is_asked {
            self.waiting.push_back(id);
            self.passed.push_back(id);
        }
        Ok(CallId(id.into()))
    }

    /// Answers with a body that is passed on, or with headers beside. An answer leaves in the version of its
    /// request, so a body of another version passes only if its values begin at the same place of a block of
    /// eight.
    #[cold]
    pub(crate) fn put_reply_with(
        &mut self,
        serving: &InboundCall,
        status: u32,
        values: &dyn Encode,
        carries: MessageContents<'_>,
    ) -> Visit<()> {
        let (id, dialect) = (serving.id, serving.dialect);
        if let Some(body) = carries.body {
            let came = as_cdr(body)?;
            if !body.bytes.is_empty() && (came.narrow, came.wide) != (dialect.narrow, dialect.wide) {
                return Err(needs_contract("an answer with text in other character sets than the caller's"));
            }
        }
        let beside = ContextList::new(carries, None, &[])?;
        self.passing_message(dialect.minor, MessageKind::Reply, carries.body, |session, start, fill| {
            let swap = carries.body.is_some_and(|body| body.little != NATIVE_LITTLE);
            let mut put = CdrWriter { shift: shift(session, start), out: session.out.flat(), swap };
            if dialect.minor >= 2 {
                put.u32(id);
                put.u32(status);
                beside.put(&mut put, None);
            } else {
                if fill.is_some_and(|fill| fill & 3 != 0) {
                    return Err(needs_contract("an answer of another version of GIOP"));
                }
                beside.put(&mut put, fill);
                put.u32(id);
                put.u32(status);
            }
            session.values_or_body(start, dialect, values, carries.body)
        })
    }

    /// Appends a message in the byte order of the body that it passes on. `write` is called with `None`
    /// first. If the body then begins at another place of a block of eight than it had, what was written is
    /// taken back, and `write` is called again with the number of bytes by which the header must grow (1 to
    /// 7).
    fn passing_message(
        &mut self,
        minor: u8,
        kind: MessageKind,
        body: Option<&Body>,
        write: impl Fn(&mut Self, usize, Option<usize>) -> Visit<()>,
    ) -> Visit<()> {
        let turned = body.is_some_and(|body| body.little != NATIVE_LITTLE);
        let fill = |session: &mut Self, start| {
            let mark = session.out.mark();
            write(session, start, None)?;
            let Some(body) = body.filter(|body| !body.bytes.is_empty()) else { return Ok(()) };
            let at = (session.out.position() - start).wrapping_sub(body.bytes.len());
            let missing = body.base.wrapping_sub(at) & 7;
            if missing == 0 {
                return Ok(());
            }
            if minor >= 2 {
                return Err(needs_contract("a body of another version of GIOP"));
            }
            session.out.truncate(mark);
            write(session, start, Some(missing))
        };
        if turned && self.fragment != 0 {
            // Each part has a header, and all are turned as that of a whole message is.
            return self.message_in_parts(minor, kind, true, fill);
        }
        let header = self.out.flat().len();
        self.message(minor, kind, fill)?;
        if turned {
            frame::turn(self.out.flat(), header);
        }
        Ok(())
    }

    /// Appends a body that passes on, by reference if it is large, or the values where there is none.
    fn values_or_body(
        &mut self,
        start: usize,
        dialect: Dialect,
        values: &dyn Encode,
        body: Option<&Body>,
    ) -> Visit<()> {
        let Some(body) = body else { return self.body(start, dialect, values) };
        if dialect.minor >= 2 {
            self.encoded_body(start, &body.bytes);
        } else {
            self.out.splice(body.bytes.clone());
        }
        Ok(())
    }

    /// The character sets of a connection that has not agreed on any are those of the body that it passes on
    /// first, if its server takes them. What the peer is told of that. GIOP 1.0 has no sets to agree on.
    fn adopt(&self, profile: &Profile, dialect: Dialect) -> Result<Option<Dialect>, Failure> {
        let nothing_said = Dialect { minor: dialect.minor, ..Dialect::default() };
        if dialect.minor == 0 || dialect == nothing_said {
            return Ok(None);
        }
        if dialect.is_foreign() {
            return Err(needs_contract("text in character sets that this side does not know"));
        }
        match components::code_sets(profile) {
            Some(offer) if !offer.takes(dialect) => {
                Err(needs_contract("text in character sets that the server does not take"))
            }
            _ => Ok(Some(dialect)),
        }
    }

    /// Forgets that a call was passed on; whether it was.
    #[inline]
    pub(crate) fn was_passed(&mut self, id: u32) -> bool {
        match self.passed.iter().position(|passed| *passed == id) {
            None => false,
            Some(at) => self.passed.remove(at).is_some(),
        }
    }
}

/// The dialect of a body that is passed on.
///
/// # Errors
/// It is a body of another wire.
fn as_cdr(body: &Body) -> Result<Dialect, Failure> {
    if body.codec.name() != CDR_NAME {
        return Err(needs_contract("a body of another wire"));
    }
    Ok(Dialect::from_number(body.dialect))
}

/// The service contexts that a message is sent with.
struct ContextList<'a> {
    /// The character sets to tell the peer, in the first request of a connection.
    told: Option<Dialect>,
    /// Where this side's objects are, to be told with them.
    points: &'a [ListenPoint],
    /// Number and data of those that came with the body and pass on, and of those that were put beside it alone.
    kept: Vec<(u32, &'a [u8])>,
    /// Those that the hop puts beside each message, as they are written.
    brought: Cow<'a, [u8]>,
    /// How many these are.
    count: usize,
}

impl<'a> ContextList<'a> {
    /// Gathers the contexts. One that came is left out if it speaks of its connection, or if the edits
    /// replace or remove it.
    fn new(
        carries: MessageContents<'a>,
        told: Option<Dialect>,
        points: &'a [ListenPoint],
    ) -> Result<Self, Failure> {
        let (own, edits) = (carries.body.and_then(Body::headers), carries.headers);
        let mut kept = Vec::new();
        if let Some(headers) = own {
            gather(headers, carries, &mut kept)?;
        }
        let (mut brought, mut count) = (Cow::Borrowed(&[][..]), 0);
        if let Some(edits) = edits {
            let little = carries.body.map_or(NATIVE_LITTLE, |body| body.little);
            (brought, count) = edits.written(CDR_NAME, little, |header, out| {
                let (id, data) = context(header)?;
                // A list begins at a multiple of four, and so does each context in it.
                let mut put = CdrWriter { out, shift: 0, swap: little != NATIVE_LITTLE };
                put.u32(id);
                put.octets(data);
                Ok(())
            })?;
        }
        Ok(Self { told, points, kept, brought, count })
    }

    /// Writes the list. If `fill` has the bit 4, a context without meaning makes the list end half a block of
    /// eight later than it would; the other bits of `fill` are for the principal.
    fn put(&self, put: &mut CdrWriter<'_>, fill: Option<usize>) {
        let fill = fill.filter(|fill| fill & 4 != 0);
        let points = usize::from(!self.points.is_empty());
        let own = usize::from(self.told.is_some()) + points + usize::from(fill.is_some());
        put.count(own + self.kept.len() + self.count);
        if let Some(dialect) = self.told {
            put.u32(contexts::CODE_SETS);
            put.encapsulated(|put| codesets::put_context(dialect, put));
        }
        if !self.points.is_empty() {
            bidirectional::put_context(self.points, put);
        }
        for (id, data) in &self.kept {
            put.u32(*id);
            put.octets(data);
        }
        if !self.brought.is_empty() {
            put.align(4);
            put.out.extend_from_slice(&self.brought);
        }
        if fill.is_some() {
            // What follows begins at a multiple of 4: the number and the count are a block of eight, this is the half.
            put.u32(contexts::FILL);
            put.octets(&[0; 4]);
        }
    }
}

/// The contexts that came with a body and pass on, and those that were put beside this body alone.
#[cold]
fn gather<'a>(
    headers: &'a Headers,
    carries: MessageContents<'a>,
    kept: &mut Vec<(u32, &'a [u8])>,
) -> Result<(), Failure> {
    if !headers.raw().is_empty() {
        let little = carries.body.is_none_or(|body| body.little);
        let mut get = Get { bytes: headers.raw(), pos: 0, base: 0, little };
        let edits = carries.headers;
        let stays = |name: &str| headers.keeps(name) && edits.is_none_or(|edits| edits.keeps(name));
        contexts::each(&mut get, |id, data| {
            if contexts::passes(id) && stays(&contexts::header_name(id)) {
                kept.push((id, data));
            }
            Ok(())
        })?;
    }
    for header in headers.brought() {
        kept.push(context(header)?);
    }
    Ok(())
}

/// The number and the data of the service context that a header stands for: its name is the number, in digits
/// or hexadecimal digits behind `0x`.
pub(crate) fn context(header: &Header) -> Result<(u32, &[u8]), Failure> {
    let name = header.name.as_str();
    let number = match name.strip_prefix("0x").or_else(|| name.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => name.parse(),
    };
    let Some(id) = number.ok().filter(|id| contexts::passes(*id)) else {
        let what = format!("`{name}` names no service context");
        return Err(Failure::bad_argument(what).with_hint(
            "give its number, such as 0x45570001; character sets (1), listening points (5) and the version of Sun's ORB (0x4e454f00) are the connection's",
        ));
    };
    Ok(match &header.content {
        Content::Text(text) => (id, text.as_bytes()),
        Content::Bytes(bytes) => (id, bytes),
    })
}
