//! Calls that were sent and are not answered.

use crate::names::BUS;
use bytes::Bytes;
use everywire_model::Hold;
use everywire_model::number_hasher::NumberHasher;
use everywire_model::shape::Struct;
use std::borrow::Cow;
use std::collections::HashMap;

/// What a call that waits for its answer was for. It decides what becomes of the answer, and from whom it may
/// come.
#[derive(Debug)]
pub(crate) enum Pending {
    /// A call of the user.
    Call {
        /// Exceptions that it may raise.
        raises: Cow<'static, [Hold<Struct>]>,
        /// Whether its result comes in a variant.
        unwraps: bool,
        /// Whether its body was passed on: its answer will be, too.
        passed: bool,
        /// Whom on the bus it asks, if there is one.
        to: Option<Bytes>,
    },
    /// Whether the object of somebody on the bus, or of the peer, is there.
    Probe(Bytes),
    /// The unique name.
    Hello,
    /// The well-known name.
    RequestName,
    /// Who has the name that we did not get.
    Holder,
    /// Everything others say.
    Monitor,
    /// A match rule, and which of those with this text.
    Match(String, u64),
    /// Who has a name that is listened to, and which of those who ask for it.
    Owner(Bytes, u64),
}

impl Pending {
    /// The well-known name that was asked, if it was one. Only who listens to it knows who has it ([`Subscriptions::may_answer`]).
    ///
    /// [`Subscriptions::may_answer`]: crate::subscriptions::Subscriptions::may_answer
    pub(crate) fn named(&self) -> Option<&[u8]> {
        let to: &[u8] = match self {
            Self::Call { to, .. } => to.as_deref()?,
            Self::Probe(to) => to,
            _ => return None,
        };
        (!to.starts_with(b":")).then_some(to)
    }

    /// Whether an answer may come from whoever sent it, as the bus says: only from whom was asked, and errors from the
    /// bus as well. Who has a well-known name at the moment is not known here.
    pub(crate) fn accepts(&self, sender: &[u8], is_error: bool) -> bool {
        let to: &[u8] = match self {
            Self::Call { to, .. } => to.as_deref().unwrap_or_default(),
            Self::Probe(to) => to,
            _ => BUS.as_bytes(),
        };
        match to {
            _ if is_error && sender == BUS.as_bytes() => true,
            [b':', ..] => sender == to,
            _ if to == BUS.as_bytes() => sender == to,
            _ => sender.starts_with(b":"),
        }
    }
}

/// Calls that wait, by serial number. Mostly one call waits at a time, which has a place of its own (`only`);
/// a serial number is in one place only.
#[derive(Default)]
pub(crate) struct PendingCalls {
    only: Option<(u32, Pending)>,
    /// Serial numbers are this side's own and ascend, so nobody can choose ones that collide.
    others: HashMap<u32, Pending, NumberHasher>,
}

impl PendingCalls {
    /// Calls to the bus on this side's own account count as well.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.only.is_some()) + self.others.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.only.is_none() && self.others.is_empty()
    }

    #[inline]
    pub(crate) fn holds(&self, serial: u32) -> bool {
        matches!(&self.only, Some((held, _)) if *held == serial)
            || (!self.others.is_empty() && self.others.contains_key(&serial))
    }

    /// The number must not be there, see `DbusSession::take_serial`.
    #[inline]
    pub(crate) fn insert(&mut self, serial: u32, pending: Pending) {
        if self.only.is_none() {
            self.only = Some((serial, pending));
        } else {
            self.others.insert(serial, pending);
        }
    }

    /// Nothing, if nobody waits for it.
    #[inline]
    pub(crate) fn remove(&mut self, serial: u32) -> Option<Pending> {
        match &self.only {
            Some((held, _)) if *held == serial => self.only.take().map(|(_, pending)| pending),
            _ if self.others.is_empty() => None,
            _ => self.others.remove(&serial),
        }
    }

    /// All of them, in the order of their numbers.
    pub(crate) fn drain(&mut self) -> Vec<(u32, Pending)> {
        let mut all: Vec<_> = self.only.take().into_iter().chain(self.others.drain()).collect();
        all.sort_unstable_by_key(|(serial, _)| *serial);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_from_whom_was_asked() {
        let asked = |to: &'static str| Pending::Probe(Bytes::from_static(to.as_bytes()));
        for (pending, sender, result, error) in [
            (asked(":1.5"), ":1.5", true, true),
            (asked(":1.5"), ":1.6", false, false),
            (asked(":1.5"), BUS, false, true),
            (asked(":1.5"), "", false, false),
            (asked("org.example.Name"), ":1.6", true, true),
            (asked("org.example.Name"), BUS, false, true),
            (asked(BUS), BUS, true, true),
            (asked(BUS), ":1.6", false, false),
            (Pending::Hello, BUS, true, true),
            (Pending::Hello, ":1.6", false, false),
        ] {
            let found = (pending.accepts(sender.as_bytes(), false), pending.accepts(sender.as_bytes(), true));
            assert_eq!(found, (result, error), "{pending:?} {sender}");
        }
    }

    #[test]
    fn every_number_is_found_again() {
        let mut waiting = PendingCalls::default();
        for serial in 1..=5 {
            waiting.insert(serial, Pending::Hello);
        }
        assert!(waiting.remove(1).is_some() && waiting.remove(1).is_none() && waiting.remove(4).is_some());
        waiting.insert(9, Pending::Monitor);
        assert!(waiting.holds(9) && waiting.holds(2) && !waiting.holds(4));
        assert_eq!(waiting.len(), 4);
        assert_eq!(waiting.drain().iter().map(|(serial, _)| *serial).collect::<Vec<_>>(), [2, 3, 5, 9]);
        assert!(waiting.is_empty());
    }
}
