//! Joining fragments: bounded before anything is kept, each from the same caller as the first.
//!
//! Invariants: there is one entry for a call at the most; `held` is the sum of the lengths of all stubs and
//! never exceeds the limit of one message; there are `limits.assemblies` entries at the most. A breach ends
//! the connection, so what it leaves behind needs no care.

use crate::frame::{FIRST, LAST};
use crate::pdu::{Heading, ProtocolError};
use bytes::{Bytes, BytesMut};
use everywire_model::Limits;
use std::time::Instant;

/// Messages of which the last fragment is still missing.
#[derive(Debug, Default)]
pub(crate) struct Assemblies {
    open: Vec<Assembly>,
    /// Bytes that all of them hold.
    held: u64,
}

/// What a fragment says of the message it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fragment {
    pub(crate) heading: Heading,
    pub(crate) little: bool,
    /// By which security context it was protected.
    pub(crate) shield: Option<usize>,
}

/// A message whose last fragment is still to come, kept under the number of its call. All other fragments
/// must say the same as `first`. If it is not whole at `due` the connection breaks.
#[derive(Debug)]
struct Assembly {
    first: Fragment,
    stub: BytesMut,
    due: Instant,
}

impl Assemblies {
    /// Takes a fragment that is not a whole message; yields what the first one said and the stub once that is whole.
    pub(crate) fn take(
        &mut self,
        fragment: &Fragment,
        flags: u8,
        stub: &[u8],
        limits: &Limits,
        due: Instant,
    ) -> Result<Option<(Fragment, Bytes)>, ProtocolError> {
        let call = fragment.heading.call;
        let known = self.find(call);
        let index = match (flags & FIRST != 0, known) {
            (true, Some(_)) => return Err(ProtocolError::CallReused { call }),
            (false, None) => return Err(ProtocolError::StrayFragment { call }),
            (false, Some(index)) => index,
            (true, None) => {
                let limit = limits.assemblies;
                if self.open.len() >= limit {
                    return Err(ProtocolError::Assemblies { limit });
                }
                self.open.push(Assembly { first: *fragment, stub: BytesMut::new(), due });
                self.open.len() - 1
            }
        };
        let size = self.held.saturating_add(stub.len() as u64);
        if size > limits.message {
            return Err(ProtocolError::OverLimit { size, limit: limits.message });
        }
        let Some(open) = self.open.get_mut(index) else { return Err(ProtocolError::StrayFragment { call }) };
        if let Some(what) = open.first.differs(fragment) {
            return Err(ProtocolError::FragmentDiffers { call, what });
        }
        open.stub.extend_from_slice(stub);
        self.held = size;
        if flags & LAST == 0 {
            return Ok(None);
        }
        let done = self.remove(index);
        Ok(Some((done.first, done.stub.freeze())))
    }

    /// Forgets a message; whether it was known.
    pub(crate) fn forget(&mut self, call: u32) -> bool {
        self.find(call).map(|index| self.remove(index)).is_some()
    }

    fn find(&self, call: u32) -> Option<usize> {
        self.open.iter().position(|open| open.first.heading.call == call)
    }

    fn remove(&mut self, index: usize) -> Assembly {
        let gone = self.open.remove(index);
        self.held = self.held.saturating_sub(gone.stub.len() as u64);
        gone
    }

    /// Memory of all that are open.
    pub(crate) fn held(&self) -> usize {
        self.open.iter().map(|open| open.stub.capacity()).sum()
    }

    /// Whether none is open.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The first fragment of a call's message, if that is open.
    pub(crate) fn begun(&self, call: u32) -> Option<&Fragment> {
        self.open.iter().map(|open| &open.first).find(|first| first.heading.call == call)
    }

    /// The first fragment of the message that was begun first.
    pub(crate) fn oldest(&self) -> Option<&Fragment> {
        self.open.first().map(|open| &open.first)
    }

    /// Whether any open message came by a security context.
    pub(crate) fn has_protected(&self) -> bool {
        self.open.iter().any(|open| open.first.shield.is_some())
    }

    /// When the first of them must be whole.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.open.iter().map(|open| open.due).min()
    }
}

impl Fragment {
    /// What differs in another fragment of the same call.
    /// Whatever a later fragment says beside its stub must repeat the first one: the call is executed as the
    /// first one said, so a difference could only deceive.
    fn differs(&self, other: &Self) -> Option<&'static str> {
        let (mine, theirs) = (&self.heading, &other.heading);
        let differences = [
            (self.shield != other.shield, "security context"),
            (self.little != other.little, "byte order"),
            (mine.context != theirs.context, "presentation context"),
            (mine.opnum != theirs.opnum, "operation"),
            (mine.object != theirs.object, "object"),
            (mine.kind != theirs.kind, "kind"),
        ];
        differences.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
    }
}
