//! Requests that may have to go out again, with their target named in another way; what that is for says `addressing`.

use crate::codesets::Dialect;
use bytes::Bytes;
use everywire_model::{Profile, named_variants};

named_variants! {
    /// How a target object is named (section 9.4.2.1).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub(crate) enum Addressing: u16 {
        #[default]
        Key = 0 "KeyAddr",
        Profile = 1 "ProfileAddr",
        Reference = 2 "ReferenceAddr",
    }
}

/// A call that was sent: operation, character sets that the peer was told of, those of the values, values.
pub(crate) type SentCall = (Box<[u8]>, Option<Dialect>, Dialect, Bytes);

/// What a request that may have to go out again is made of. It is dropped when its request is answered or
/// given up.
#[derive(Debug)]
pub(crate) struct RepeatableRequest {
    /// The number of the request.
    pub(crate) id: u32,
    /// The target.
    pub(crate) profile: Profile,
    /// The operation, the code sets that the request tells, and its values; nothing for a LocateRequest.
    pub(crate) call: Option<SentCall>,
    /// How the target was named; each way is tried once.
    pub(crate) tried: Vec<Addressing>,
}

/// The requests of a connection whose peer has not shown yet that it takes targets as they are named.
#[derive(Debug, Default)]
pub(crate) struct AddressingTrials {
    /// At most as many as calls may be outstanding.
    pub(crate) open: Vec<RepeatableRequest>,
    /// Sum of the arguments that are kept, in octets; bounded by `addressing`.
    pub(crate) octets: usize,
    /// The peer has answered a request: it takes them.
    proven: bool,
}

impl AddressingTrials {
    /// Whether requests are to be kept.
    pub(crate) fn is_on(&self) -> bool {
        !self.proven
    }

    /// A request was answered, or given up. `answered`: the peer has taken the request as it was, so from now
    /// on nothing is kept.
    #[inline]
    pub(crate) fn settle(&mut self, id: u32, answered: bool) {
        self.proven |= answered;
        if !self.open.is_empty() {
            self.forget(id);
        }
    }

    /// Drops a request, and counts its octets back.
    #[cold]
    fn forget(&mut self, id: u32) {
        let octets = &mut self.octets;
        self.open.retain(|held| {
            if held.id == id {
                *octets -= held.octets();
            }
            held.id != id
        });
    }

    /// All requests are given up.
    pub(crate) fn clear(&mut self) {
        self.open = Vec::new();
        self.octets = 0;
    }
}

impl RepeatableRequest {
    /// What keeping it costs.
    pub(crate) fn octets(&self) -> usize {
        self.call.as_ref().map_or(0, |(_, _, _, values)| values.len())
    }
}
