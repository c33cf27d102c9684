//! Calls of the peer that are not answered yet.

use bytes::Bytes;
use everywire_model::CallId;

/// Whom to answer: what the header of the answer needs.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Number of the call.
    pub(crate) serial: u32,
    /// The caller's name on the bus; empty without one.
    pub(crate) name: Bytes,
}

/// Calls by number: the low half is a place in the table, the high half tells its users apart.
#[derive(Debug, Default)]
pub(crate) struct InboundCalls {
    /// The number that counts the users of a place, and the call that has it now.
    places: Vec<(u32, Option<Caller>)>,
    /// Places without a call.
    free: Vec<u32>,
    /// Calls that nobody waits for, counted.
    unanswered: u32,
}

/// The place of calls that want no answer.
const NOWHERE: u32 = u32::MAX;

impl InboundCalls {
    /// Calls that are not answered yet.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Notes a call; the number by which the runtime knows it. The table grows up to the limit of open calls,
    /// which the caller has checked.
    #[inline]
    pub(crate) fn enter(&mut self, caller: Caller) -> CallId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            u32::try_from(self.places.len() - 1).unwrap_or(NOWHERE)
        });
        let Some((user, held)) = self.places.get_mut(place as usize) else { return Self::number(0, NOWHERE) };
        *user = user.wrapping_add(1);
        *held = Some(caller);
        Self::number(*user, place)
    }

    /// A number for a call that wants no answer. It has no place, so an answer to it finds nobody.
    pub(crate) fn pass(&mut self) -> CallId {
        self.unanswered = self.unanswered.wrapping_add(1);
        Self::number(self.unanswered, NOWHERE)
    }

    /// Takes a call out, to be answered. Nothing, if the number is none, or of a call that was answered
    /// before: serial numbers are the peer's and may repeat, these do not.
    #[inline]
    pub(crate) fn leave(&mut self, id: CallId) -> Option<Caller> {
        let (user, place) =
            (u32::try_from(id.0 >> 32).ok()?, u32::try_from(id.0 & u64::from(u32::MAX)).ok()?);
        let (current, held) = self.places.get_mut(place as usize)?;
        let caller = if *current == user { held.take() } else { None }?;
        self.free.push(place);
        Some(caller)
    }

    /// A place and its user, in one number.
    fn number(user: u32, place: u32) -> CallId {
        CallId(u64::from(user) << 32 | u64::from(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_answers_one_call_only() {
        let mut serving = InboundCalls::default();
        let caller = |serial| Caller { serial, name: Bytes::new() };
        let first = serving.enter(caller(7));
        assert_eq!(serving.leave(first).unwrap().serial, 7);
        let second = serving.enter(caller(8));
        assert_ne!(first, second);
        assert!(serving.leave(first).is_none());
        assert!(serving.leave(serving.places.len().try_into().map(CallId).unwrap()).is_none());
        assert_eq!(serving.len(), 1);
        let passed = serving.pass();
        assert!(serving.leave(passed).is_none());
        assert_eq!(serving.leave(second).unwrap().serial, 8);
    }
}
