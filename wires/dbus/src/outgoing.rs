//! Messages on their way out.

use crate::basics::patch;
use crate::frame::{self, field};
use crate::limits;
use crate::routes::{Asks, HeaderPut, Route};
use crate::session::DbusSession;
use crate::signature::check_one;
use crate::sink::{DbusSink, Head, Setup, over};
use bytes::Bytes;
use everywire_model::{Encode, Failure, Initiator, Kind, Visit};

/// A header to be written in front of values.
pub(crate) trait Envelope: Head {
    /// How long the header was.
    fn len(&self) -> usize;
    /// Handles have come up, which the header must announce.
    fn announce(&mut self);
    /// Whether the header has a place for the count of handles.
    fn announces(&self) -> bool;
}

impl DbusSession {
    /// Appends a message; nothing of it is left if that fails or it gets too large.
    #[inline]
    pub(crate) fn send(
        out: &mut everywire_model::Rope,
        scratch: &mut crate::sink::Scratch,
        setup: Setup,
        envelope: &mut impl Envelope,
        values: &dyn Encode,
    ) -> Visit<()> {
        loop {
            let mark = out.mark();
            let (start, index) = (out.position(), out.flat().len());
            let mut sink = DbusSink::new(out, 0, envelope, scratch, setup);
            let mut written = values.encode(&mut sink);
            if written.is_ok() {
                written = sink.finish();
            }
            let size = (out.position() - start) as u64;
            if written.is_ok() && size > setup.limit {
                written = Err(over(size, setup.limit));
            }
            if let Err(failure) = written {
                out.truncate(mark);
                return Err(failure);
            }
            let handles = std::mem::take(&mut scratch.handles);
            if !handles.is_empty() && !envelope.announces() {
                // Handles inside of variants: the signature did not tell.
                out.truncate(mark);
                envelope.announce();
                continue;
            }
            let body = u32::try_from(size - envelope.len() as u64).unwrap_or(u32::MAX);
            patch(out.flat(), index + 4, body);
            if !handles.is_empty() {
                let count = u32::try_from(handles.len()).unwrap_or(u32::MAX);
                patch(out.flat(), index + envelope.len() - 4, count);
                out.attach(start, handles);
            }
            return Ok(());
        }
    }

    #[inline]
    pub(crate) fn setup(&self) -> Setup {
        Setup { swap: false, limit: limits::largest(&self.limits), handles: self.handles, several: false }
    }
}

/// The header of a call or signal.
pub(crate) struct RouteHead<'s> {
    route: &'s mut Route,
    serial: u32,
    flags: u8,
    handles: bool,
    len: usize,
}

impl<'s> RouteHead<'s> {
    pub(crate) fn new(route: &'s mut Route, serial: u32, flags: u8) -> Self {
        Self { route, serial, flags, handles: false, len: 0 }
    }
}

impl Head for RouteHead<'_> {
    #[inline]
    fn begin(&mut self, signature: &str, flat: &mut Vec<u8>) -> Visit<()> {
        let spelled = match self.route.asks {
            Asks::Plain => signature,
            Asks::Get => "ss",
            Asks::Set => "ssv",
        };
        self.handles |= signature.contains('h');
        self.route.fill(spelled, self.handles);
        let start = flat.len();
        flat.extend_from_slice(&self.route.header);
        self.len = self.route.header.len();
        if let Some(flags) = flat.get_mut(start + 2) {
            *flags |= self.flags;
        }
        patch(flat, start + 8, self.serial);
        if self.route.asks != Asks::Plain {
            flat.extend_from_slice(&self.route.prefix);
        }
        if self.route.asks == Asks::Set {
            if check_one(signature.as_bytes()).is_err() {
                return Err(Failure::new(
                    Kind::BadArgument,
                    Initiator::User,
                    "a property is set to one value",
                ));
            }
            flat.push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
            flat.extend_from_slice(signature.as_bytes());
            flat.push(0);
        }
        Ok(())
    }
}

impl Envelope for RouteHead<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn announce(&mut self) {
        self.handles = true;
    }

    fn announces(&self) -> bool {
        self.handles
    }
}

/// The header of an answer.
pub(crate) struct ReplyHead<'s> {
    pub(crate) serial: u32,
    pub(crate) reply: u32,
    pub(crate) destination: &'s Bytes,
    /// The name of the error; empty for results.
    pub(crate) error: &'s str,
    handles: bool,
    len: usize,
}

impl<'s> ReplyHead<'s> {
    pub(crate) fn new(serial: u32, reply: u32, destination: &'s Bytes, error: &'s str) -> Self {
        Self { serial, reply, destination, error, handles: false, len: 0 }
    }
}

impl Head for ReplyHead<'_> {
    #[inline]
    fn begin(&mut self, signature: &str, flat: &mut Vec<u8>) -> Visit<()> {
        let start = flat.len();
        self.handles |= signature.contains('h');
        let kind = if self.error.is_empty() { frame::METHOD_RETURN } else { frame::ERROR };
        // An answer to an answer is asked by nobody.
        let mut put = HeaderPut::begin(flat, kind, frame::NO_REPLY_EXPECTED);
        put.number(field::REPLY_SERIAL, self.reply);
        if !self.error.is_empty() {
            put.string(field::ERROR_NAME, b's', self.error.as_bytes());
        }
        if !self.destination.is_empty() {
            put.string(field::DESTINATION, b's', self.destination);
        }
        put.end(signature, self.handles);
        patch(flat, start + 8, self.serial);
        self.len = flat.len() - start;
        Ok(())
    }
}

impl Envelope for ReplyHead<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn announce(&mut self) {
        self.handles = true;
    }

    fn announces(&self) -> bool {
        self.handles
    }
}
