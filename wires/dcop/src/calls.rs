//! Calls that are sent: `DCOPCall`, `DCOPSend`, `DCOPFind`.
//!
//! The front of a message (from, to, object, function) is made once and remembered (`request_templates`); behind it stand
//! the length of the data, patched when they are written, and the data. A message that fails half-way, or
//! gets too large, is taken back.
//!
//! The key of a call is one that nobody else has, unless this process serves exactly one call tree: then it
//! is that tree's, so that a KDE program further back can be called while it waits (`trees`). Oneway calls
//! have the key that all sends have.

use crate::address;
use crate::ice::{minor, put_message, set_length};
use crate::limits;
use crate::request_templates::RequestTemplate;
use crate::session::{CallPurpose, DcopSession};
use crate::sink::{StreamSink, TypeOutput, over};
use crate::strings::{patch_len, put_data, put_len};
use crate::{passing, types};
use everywire_model::{Body, Call, CallId, Encode, Expects, Failure, Method, Profile, Visit};
use std::sync::Arc;

/// The key of messages that nobody answers, as KDE's library has it.
const SEND_KEY: u32 = 1;

impl DcopSession {
    /// Sends a call.
    ///
    /// # Errors
    /// The connection is not open, too many calls wait, the operation has more than one result or types
    /// without a name, or the arguments do not encode. Nothing was sent.
    pub(crate) fn call(&mut self, call: &Call<'_>) -> Result<CallId, Failure> {
        self.check_open()?;
        let (mut kind, mut asks) = (minor::CALL, CallPurpose::Call);
        let way = match call.method {
            Method::Typed { operation, .. } => {
                types::one_result(operation)?;
                self.ways.get(&self.name, call.profile, operation)?
            }
            Method::Named { operation, .. } => {
                asks = CallPurpose::Passed;
                let searched = passing::searched(operation);
                if searched.is_some() {
                    kind = minor::FIND;
                }
                self.ways.named(&self.name, call.profile, searched.unwrap_or(operation))?
            }
        };
        if call.expects == Expects::Nothing {
            self.put(minor::SEND, SEND_KEY, &way, call.arguments)?;
            return Ok(CallId(self.take_key().into()));
        }
        self.check_room()?;
        if way.app.ends_with(b"*") {
            let what = "several applications at once can be told something, but not asked";
            return Err(
                Failure::bad_argument(what).with_hint("call a oneway operation, or name one application")
            );
        }
        let key = self.call_key();
        self.put(kind, key.0, &way, call.arguments)?;
        Ok(self.expect(key, way, asks))
    }

    /// Asks whether an object is there, by a `DCOPFind` without a function.
    pub(crate) fn find(&mut self, profile: &Profile) -> Result<CallId, Failure> {
        self.check_open()?;
        self.check_room()?;
        let way =
            Arc::new(RequestTemplate::new(&self.name, address::application(profile), &profile.key, b""));
        let key = self.call_key();
        self.put_small(minor::FIND, key.0, &way, b"");
        Ok(self.expect(key, way, CallPurpose::Probe))
    }

    /// Asks the server on this side's own account; `asks` says what becomes of the answer. The question is
    /// spelled as that server spells types.
    pub(crate) fn ask(&mut self, function: &str, arguments: &[u8], asks: CallPurpose) {
        let way = RequestTemplate::new(&self.name, address::SERVER, b"", self.spelled(function).as_bytes());
        let key = self.take_key();
        self.put_small(minor::CALL, key, &way, arguments);
        self.expect((key, false), Arc::new(way), asks);
    }

    /// Questions of this side's own count too, but are not refused.
    fn check_room(&self) -> Result<(), Failure> {
        self.limits.check_outstanding(self.pending.len())
    }

    /// Appends a message of any kind; nothing of it is left if that fails. `values` are values to encode, or
    /// a body that is passed on as it is.
    #[inline]
    pub(crate) fn put(
        &mut self,
        kind: u8,
        key: u32,
        way: &RequestTemplate,
        values: &dyn Encode,
    ) -> Visit<()> {
        let passed = passing::passed(values)?;
        self.message_of(kind, key, |session, start, limit| {
            let out = session.out.flat();
            out.extend_from_slice(&way.front);
            if let Some(body) = passed {
                return session.put_passed(body);
            }
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            let begin = session.out.position();
            values.encode(&mut StreamSink::new(&mut session.out, start, limit, TypeOutput::Skip))?;
            let len = session.out.position() - begin;
            patch_len(session.out.flat(), at, len);
            Ok(())
        })
    }

    /// Appends data that are passed on, with their length. By reference, if they are many.
    pub(crate) fn put_passed(&mut self, body: &Body) -> Visit<()> {
        put_len(self.out.flat(), body.bytes.len());
        self.out.splice(body.bytes.clone());
        Ok(())
    }

    /// Appends a message with encoded arguments that are known to be short. It is not checked against the
    /// limit.
    pub(crate) fn put_small(&mut self, kind: u8, key: u32, way: &RequestTemplate, arguments: &[u8]) {
        let mut payload = Vec::with_capacity(way.front.len() + 4 + arguments.len());
        payload.extend_from_slice(&way.front);
        put_data(&mut payload, arguments);
        self.put_plain(kind, key, &payload);
    }

    /// Appends a message with a payload that is known to be short.
    pub(crate) fn put_plain(&mut self, kind: u8, key: u32, payload: &[u8]) {
        let opcode = self.framing.map_or(1, |framing| framing.my_opcode);
        let out = self.out.flat();
        put_message(out, opcode, kind, key, u32::try_from(payload.len()).unwrap_or(u32::MAX));
        out.extend_from_slice(payload);
    }

    /// Appends a message that `fill` writes; nothing of it is left if that fails or the message gets too large.
    /// `fill` gets the position of the send buffer at which the message began, and the limit.
    #[inline]
    pub(crate) fn message_of(
        &mut self,
        kind: u8,
        key: u32,
        fill: impl FnOnce(&mut Self, usize, u64) -> Visit<()>,
    ) -> Visit<()> {
        let mark = self.out.mark();
        let start = self.out.position();
        let opcode = self.framing.map_or(1, |framing| framing.my_opcode);
        let header = put_message(self.out.flat(), opcode, kind, key, 0);
        let limit = limits::largest(&self.limits);
        let result = fill(self, start, limit).and_then(|()| {
            let size = self.out.position() - start;
            if size as u64 > limit {
                return Err(over(size, usize::try_from(limit).unwrap_or(usize::MAX)));
            }
            let size = u32::try_from(size - crate::ice::FRAME_HEADER).unwrap_or(u32::MAX);
            set_length(self.out.flat(), header, size);
            Ok(())
        });
        if result.is_err() {
            self.out.truncate(mark);
        }
        result
    }
}
