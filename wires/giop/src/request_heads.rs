//! What repeated requests begin with, made or read once: most calls of a connection ask the same few operations of the same few objects.
//!
//! A `RequestHead` is a request of GIOP 1.2 from its first octet to where its values begin, without a number and a size;
//! `RequestHeads` keeps the last `REMEMBERED` ones that a connection sent, tries the last one first, and replaces the oldest. An
//! `InboundHead` is the last one that came, recognised by its octets.
//!
//! Invariants: a head has no service contexts, and one that is sent names its object by its key, so it stands for a request only where
//! both are so. It does not depend on where the message begins in the send buffer, since CDR aligns by the beginning of the message. One
//! that came was read and checked when it came first. No head is much larger than `LARGEST`, so that a connection keeps a few KiB at
//! most, however many objects its callers have.

use crate::addressing_trials::Addressing;
use crate::cdr::CdrWriter;
use crate::frame::{self, HEADER, MessageKind};
use crate::request_header::put_header;
use bytes::Bytes;
use everywire_model::Profile;
use everywire_model::recent::Recent;
use std::ops::Range;

/// Heads that a connection keeps: few enough to be looked through.
const REMEMBERED: usize = 8;
/// Octets of the largest head that is kept.
const LARGEST: usize = 1 << 10;

/// The beginning of requests to one operation of one object.
#[derive(Debug)]
pub(crate) struct RequestHead {
    key: Bytes,
    operation: Box<[u8]>,
    is_asked: bool,
    /// From the magic to the padding before the values.
    octets: Box<[u8]>,
    /// How many of them stand before that padding: a request without values ends there (CORBA 3.3 part 2, section 9.4.2.2).
    pub(crate) without_padding: usize,
}

impl RequestHead {
    fn new(profile: &Profile, operation: &[u8], is_asked: bool) -> Self {
        let mut octets = Vec::with_capacity(48 + profile.key.len() + operation.len());
        frame::put(&mut octets, 2, MessageKind::Request);
        let mut put = CdrWriter { out: &mut octets, shift: 0, swap: false };
        let none = |put: &mut CdrWriter<'_>| put.u32(0);
        put_header(&mut put, 2, 0, is_asked, profile, Addressing::Key, operation, none, b"");
        let without_padding = put.at();
        put.align(8);
        let (key, operation) = (profile.key.clone(), operation.into());
        Self { key, operation, is_asked, octets: octets.into_boxed_slice(), without_padding }
    }

    #[inline]
    fn is_for(&self, profile: &Profile, operation: &[u8], is_asked: bool) -> bool {
        self.is_asked == is_asked && self.has_key_of(profile) && *self.operation == *operation
    }

    /// Mostly the same octets in memory, too.
    #[inline]
    fn has_key_of(&self, profile: &Profile) -> bool {
        self.is_made_with(profile) || self.key == profile.key
    }

    /// Whether it was made for this very profile, or a copy of it.
    #[inline]
    pub(crate) fn is_made_with(&self, profile: &Profile) -> bool {
        self.key.as_ptr() == profile.key.as_ptr() && self.key.len() == profile.key.len()
    }

    /// Appends it, with the number of a request.
    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>, id: u32) {
        let begin = out.len();
        out.extend_from_slice(&self.octets);
        if let Some(place) = out.get_mut(begin + HEADER..).and_then(<[u8]>::first_chunk_mut) {
            *place = id.to_ne_bytes();
        }
    }
}

/// Those that were used last.
#[derive(Debug, Default)]
pub(crate) struct RequestHeads(Recent<RequestHead, REMEMBERED>);

impl RequestHeads {
    /// The head of requests of GIOP 1.2 to this operation; `None` if it would be large.
    #[inline]
    pub(crate) fn get(
        &mut self,
        profile: &Profile,
        operation: &[u8],
        is_asked: bool,
    ) -> Option<&RequestHead> {
        let found = self.0.find(|head| head.is_for(profile, operation, is_asked));
        let index = match found {
            Some(index) => index,
            None => self.make(profile, operation, is_asked)?,
        };
        self.0.get(index)
    }

    #[cold]
    fn make(&mut self, profile: &Profile, operation: &[u8], is_asked: bool) -> Option<usize> {
        let is_small = profile.key.len().saturating_add(operation.len()) <= LARGEST;
        is_small.then(|| self.0.keep(RequestHead::new(profile, operation, is_asked)))
    }
}

/// The beginning of the last request of GIOP 1.2 that came, behind its number.
#[derive(Debug, Default)]
pub(crate) struct InboundHead {
    /// From the response flags to the empty list of service contexts; empty before the first.
    octets: Vec<u8>,
    little: bool,
    pub(crate) key: Range<usize>,
    pub(crate) operation: Range<usize>,
}

impl InboundHead {
    /// Where the response flags stand, behind the message header and the number.
    const BEGIN: usize = HEADER + 4;

    /// The offset behind the service contexts of a message that begins so.
    #[inline]
    pub(crate) fn end_in(&self, message: &[u8], little: bool) -> Option<usize> {
        let end = Self::BEGIN + self.octets.len();
        let same = !self.octets.is_empty()
            && self.little == little
            && message.get(Self::BEGIN..end).is_some_and(|octets| *octets == *self.octets);
        same.then_some(end)
    }

    /// Keeps what a message begins with, up to `end`, in place of what was kept.
    pub(crate) fn keep(
        &mut self,
        message: &[u8],
        little: bool,
        end: usize,
        key: &Range<usize>,
        operation: &Range<usize>,
    ) {
        let octets = message.get(Self::BEGIN..end).filter(|octets| octets.len() <= LARGEST);
        self.octets.clear();
        self.octets.extend_from_slice(octets.unwrap_or_default());
        (self.little, self.key, self.operation) = (little, key.clone(), operation.clone());
    }
}
