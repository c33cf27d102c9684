//! Answers that a peer does not read.
//!
//! Whoever asks without end and takes no answers is read no further. Where calls go both ways, those of this side wait in the same buffer,
//! however large they are, and are no fault of the peer: two sides that call each other and read no more because of their own calls
//! would wait for each other for ever. So what answers add is counted by itself there.
//!
//! A connection that serves reads no more from the quota `unsent` on. One that was made to call the peer may have to read on for a reply:
//! from the quota on no further call of the peer begins (`Core::held_back`); and answers weigh as calls that wait
//! for servants do (`backlog`): with too many nothing more is read, with far too many the connection ends.
//!
//! Invariants: `Core::unread` is at most what waits to be sent (`Session::unsent`), and is a part of the octets that the backlog counts, but for a connection
//! that serves, whose buffer is weighed as a whole (`weighing`). Less than
//! [`UNCOUNTED`] is none, so that answers that are read cost nothing. Calls are held back only while `unread` is more than the quota: then
//! something waits to be sent, and whoever sends it queues them again.

use super::state::{Connection, Core};

/// Octets that may wait before any of them are counted.
const UNCOUNTED: usize = 64 << 10;

impl Connection {
    /// Octets that wait to be sent before the peer is answered, where it matters (`owe`).
    #[inline]
    pub(super) fn unsent_before(&self, core: &mut Core) -> usize {
        if self.both_ways { core.session.unsent() } else { 0 }
    }

    /// The peer was answered: before that, so many octets waited to be sent (`unsent_before`). Returns whether more wait than anybody
    /// may leave.
    #[inline]
    pub(super) fn owe(&self, core: &mut Core, before: usize) -> bool {
        self.both_ways && self.owe_more(core, before)
    }

    fn owe_more(&self, core: &mut Core, before: usize) -> bool {
        let after = core.session.unsent();
        after >= UNCOUNTED && after > before && {
            self.count_unread(core, core.unread.min(before) + (after - before));
            core.failed.is_none() && !self.is_serving() && self.backlog.is_flood()
        }
    }

    /// Whether more answers wait than the peer may leave unread, of so many octets that wait in all.
    #[inline]
    pub(super) fn owes_too_much(&self, core: &Core, unsent: usize) -> bool {
        unsent > self.allowance.quotas.unsent && (!self.both_ways || self.holds_back(core))
    }

    /// Something was sent.
    #[inline]
    pub(super) fn settle_unread(&self, core: &mut Core) {
        if core.unread > 0 {
            self.settle_some(core);
        }
    }

    #[cold]
    fn settle_some(&self, core: &mut Core) {
        let left = core.session.unsent();
        self.count_unread(core, core.unread.min(left));
        if !self.holds_back(core) {
            for call in std::mem::take(&mut core.held_back) {
                self.queue_call(call);
            }
        }
    }

    #[cold]
    fn count_unread(&self, core: &mut Core, unread: usize) {
        let before = std::mem::replace(&mut core.unread, unread);
        if !self.is_serving() && self.backlog.resize(before, unread) {
            core.heavy |= self.weigh_calls();
        }
    }

    /// Whether calls of the peer wait until it has read its answers.
    pub(super) fn holds_back(&self, core: &Core) -> bool {
        core.unread > self.allowance.quotas.unsent
    }
}
