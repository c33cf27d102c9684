//! Headers to be written in front of values: that of a call or signal by its route, and that of an answer.
//!
//! The header names the signature of the body, which is known only when the first value comes; so the sink
//! asks for the header (`Head::begin`) at that moment. Most messages repeat an earlier header but for
//! numbers: then it is copied (`Head::repeat`) and patched. Offsets in a header: flags at 2, length of the
//! body at 4, serial number at 8, length of the fields at 12.
//!
//! Handles are the exception: those inside of variants come up after the header was written. Then `outgoing`
//! takes the message back, tells the header (`announce`) and writes all of it again.

use crate::basics::patch;
use crate::frame::{self, field};
use crate::routes::{CallForm, HeaderPut, Route};
use crate::signature::check_one;
use crate::sink::{CheckedList, Head};
use bytes::Bytes;
use everywire_model::shape::Struct;
use everywire_model::{Failure, Hold, Visit};

/// A header that `outgoing` and `passing` can complete: they patch the lengths, and the count of handles,
/// which is the last thing in it.
pub(crate) trait Envelope: Head {
    /// The length in octets of the header that the last `begin` or `repeat` wrote, padding included.
    fn len(&self) -> usize;
    /// Handles have come up, which the header must announce.
    fn announce(&mut self);
    /// Whether the header has a place for the count of handles.
    fn announces(&self) -> bool;
}

/// The header of a call or signal. It lives for one message; what is remembered is in the route.
pub(crate) struct RouteHead<'s> {
    /// Keeps the octets of the header between messages.
    route: &'s mut Route,
    serial: u32,
    /// Flags of this message, beside those of the route.
    flags: u8,
    /// Whether there is to be a field for the count of handles.
    handles: bool,
    /// What `len` returns.
    len: usize,
}

impl<'s> RouteHead<'s> {
    /// Writes nothing yet: the sink asks for the header when it knows the signature.
    pub(crate) fn new(route: &'s mut Route, serial: u32, flags: u8) -> Self {
        Self { route, serial, flags, handles: false, len: 0 }
    }
}

impl RouteHead<'_> {
    /// Writes the remembered header with this message's flags and serial number.
    #[inline]
    fn put(&mut self, flat: &mut Vec<u8>) {
        let start = flat.len();
        flat.extend_from_slice(&self.route.header);
        self.len = self.route.header.len();
        if let Some(flags) = flat.get_mut(start + 2) {
            *flags |= self.flags;
        }
        patch(flat, start + 8, self.serial);
    }
}

impl Head for RouteHead<'_> {
    #[inline]
    fn repeat(&mut self, list: &Hold<Struct>, flat: &mut Vec<u8>) -> bool {
        let Some(handles) = self.route.writes(list) else { return false };
        // Handles inside of variants come up after the signature was written.
        if self.route.announces() != (handles || self.handles) {
            return false;
        }
        self.handles |= handles;
        self.put(flat);
        true
    }

    fn begin(&mut self, signature: &str, list: Option<&Hold<Struct>>, flat: &mut Vec<u8>) -> Visit<()> {
        let spelled = match self.route.asks {
            CallForm::Plain => signature,
            CallForm::Get => "ss",
            CallForm::Set => "ssv",
        };
        self.handles |= signature.contains('h');
        self.route.fill(spelled, self.handles);
        if self.route.asks == CallForm::Plain {
            self.route.wrote(list.map(|list| CheckedList::new(list, signature)));
        }
        self.put(flat);
        if self.route.asks != CallForm::Plain {
            flat.extend_from_slice(&self.route.prefix);
        }
        if self.route.asks == CallForm::Set {
            if check_one(signature.as_bytes()).is_err() {
                let what = "a property is set to one value";
                return Err(Failure::bad_argument(what));
            }
            flat.push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
            flat.extend_from_slice(signature.as_bytes());
            flat.push(0);
        }
        Ok(())
    }
}

/// The header of the last answer with results, to be written again: with the list of values that it was for,
/// the caller and whether it has a field for handles.
#[derive(Debug, Default)]
pub(crate) struct CachedReplyHead {
    list: Option<CheckedList>,
    destination: Bytes,
    handles: bool,
    header: Vec<u8>,
}

/// The header of an answer. It lives for one answer. Errors are never remembered: they are rare, and their
/// names differ.
pub(crate) struct ReplyHead<'s> {
    last: &'s mut CachedReplyHead,
    serial: u32,
    /// The serial number of the call that is answered.
    reply: u32,
    /// The caller's name on the bus; empty without a bus.
    destination: &'s Bytes,
    /// The name of the error; empty for results.
    error: &'s str,
    handles: bool,
    len: usize,
}

/// Where in an answer's header the number of the call stands: it is the first field.
const REPLY_AT: usize = frame::HEADER + 4;

impl<'s> ReplyHead<'s> {
    #[inline]
    pub(crate) fn new(
        last: &'s mut CachedReplyHead,
        serial: u32,
        reply: u32,
        destination: &'s Bytes,
        error: &'s str,
    ) -> Self {
        Self { last, serial, reply, destination, error, handles: false, len: 0 }
    }
}

impl Head for ReplyHead<'_> {
    #[inline]
    fn repeat(&mut self, list: &Hold<Struct>, flat: &mut Vec<u8>) -> bool {
        let Some(held) = self.last.list.as_ref().filter(|held| held.is(list)) else { return false };
        let handles = held.handles || self.handles;
        if !self.error.is_empty() || self.last.handles != handles {
            return false;
        }
        if self.last.destination.len() != self.destination.len()
            || (!self.destination.is_empty() && self.last.destination != *self.destination)
        {
            return false;
        }
        self.handles = handles;
        let start = flat.len();
        flat.extend_from_slice(&self.last.header);
        patch(flat, start + 8, self.serial);
        patch(flat, start + REPLY_AT, self.reply);
        self.len = self.last.header.len();
        true
    }

    fn begin(&mut self, signature: &str, list: Option<&Hold<Struct>>, flat: &mut Vec<u8>) -> Visit<()> {
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
        if self.error.is_empty() {
            self.last.list = list.map(|list| CheckedList::new(list, signature));
            self.last.destination.clone_from(self.destination);
            self.last.handles = self.handles;
            self.last.header.clear();
            self.last.header.extend_from_slice(flat.get(start..).unwrap_or_default());
        }
        Ok(())
    }
}

macro_rules! envelopes {
    ($($head:ident)*) => {$(
        impl Envelope for $head<'_> {
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
    )*};
}

envelopes!(RouteHead ReplyHead);
