//! Calls under way at one listener: what its caller withdraws is withdrawn from the target, too.
//!
//! States of a call: *here*, let in and with no target, or about to be given to one; *there*, a target has it
//! and can be told; *withdrawn*, while it was here: whoever has it next ends it. Invariants: a call is held
//! from when it is let in until it ends; one that is tried again is told of by its last try only; and nobody
//! is told anything while the table is locked. The end of a connection withdraws its calls, but on
//! wires whose calls outlive their callers.
//!
//! Who changes it: the forwarded call, by its `Entry`; the observer of the listener, which hears from the
//! runtime that a caller has withdrawn a call or that a connection is over; and the target's side, by a
//! `DispatchNote`, once the ticket of the call is known, which may be after its outcome.

use crate::numbers::ByNumber;
use everywire_model::object::Ticket;
use everywire_model::{CallId, Target, Wire};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names a call: its connection, and its number there.
type Name = (u64, CallId);

/// The calls of one listener.
#[derive(Default)]
pub(crate) struct Calls {
    held: Mutex<ByNumber<Name, State>>,
    /// Whether calls are carried out also when their caller has left.
    outlive_callers: bool,
}

/// Where a call is; see the module.
enum State {
    /// In this try, counted from 0.
    Here(u32),
    There(Arc<dyn Target>, Ticket),
    Withdrawn,
}

/// The place of one call among them, until it ends.
pub(crate) struct Entry {
    calls: Arc<Calls>,
    name: Name,
}

impl Calls {
    /// Of a listener of this wire.
    pub(crate) fn of(wire: &dyn Wire) -> Self {
        Self { held: Mutex::default(), outlive_callers: wire.capabilities().calls_outlive_callers }
    }

    fn held(&self) -> MutexGuard<'_, ByNumber<Name, State>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is let in. Nothing, where its connection has no number: nobody withdraws calls from within this process so.
    pub(crate) fn enter(self: &Arc<Self>, link: u64, call: CallId) -> Option<Entry> {
        if link == 0 {
            return None;
        }
        let name = (link, call);
        self.held().insert(name, State::Here(0));
        Some(Entry { calls: Arc::clone(self), name })
    }

    /// A caller withdraws a call. One that is not known has ended.
    pub(crate) fn withdraw(&self, link: u64, call: CallId) {
        let mut held = self.held();
        let told = match held.get_mut(&(link, call)) {
            Some(state) => std::mem::replace(state, State::Withdrawn),
            None => return,
        };
        drop(held);
        told.tell();
    }

    /// A connection is over: nobody hears the answers to its calls.
    pub(crate) fn close(&self, link: u64) {
        if self.outlive_callers {
            return;
        }
        let mut told = Vec::new();
        for (name, state) in self.held().iter_mut() {
            if name.0 == link {
                told.push(std::mem::replace(state, State::Withdrawn));
            }
        }
        told.into_iter().for_each(State::tell);
    }

    /// How many there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.held().len()
    }
}

impl State {
    /// Whether it is about to be given to a target in this try.
    fn is_in(&self, attempt: u32) -> bool {
        matches!(self, Self::Here(now) if *now == attempt)
    }

    /// Tells the target, if one has it.
    fn tell(self) {
        if let Self::There(target, ticket) = self {
            target.withdraw(ticket);
        }
    }
}

impl Entry {
    /// It is about to be given to a target, in this try. Returns whether its caller still wants it.
    pub(crate) fn leaves(&self, attempt: u32) -> bool {
        match self.calls.held().get_mut(&self.name) {
            Some(State::Withdrawn) => false,
            Some(state) => {
                *state = State::Here(attempt);
                true
            }
            None => true,
        }
    }

    /// Whether its caller has withdrawn it.
    pub(crate) fn is_withdrawn(&self) -> bool {
        matches!(self.calls.held().get(&self.name), Some(State::Withdrawn))
    }

    /// How others tell of it while whoever ends it has the entry.
    pub(crate) fn note(&self) -> DispatchNote {
        DispatchNote { calls: Arc::clone(&self.calls), name: self.name }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let ended = self.calls.held().remove(&self.name);
        // Without the lock: it may be the last that holds the target.
        drop(ended);
    }
}

/// Tells where a call went.
pub(crate) struct DispatchNote {
    calls: Arc<Calls>,
    name: Name,
}

impl DispatchNote {
    /// This target has got it in that try, and is told by the ticket.
    pub(crate) fn there(self, attempt: u32, target: Arc<dyn Target>, ticket: Ticket) {
        let mut held = self.calls.held();
        match held.get_mut(&self.name) {
            Some(state) if state.is_in(attempt) => *state = State::There(target, ticket),
            // It was withdrawn while it was on its way.
            Some(State::Withdrawn) => {
                drop(held);
                target.withdraw(ticket);
            }
            // It has ended, or is tried again.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::object::{Completion, Resolver};
    use everywire_model::{Body, Encode, Failure, Initiator, Kind, Method, Outcome, Reference};
    use std::time::Duration;

    /// Notes what is withdrawn.
    #[derive(Default)]
    struct WithdrawalLog(Reference, Mutex<Vec<u64>>);

    impl Target for WithdrawalLog {
        fn reference(&self) -> &Reference {
            &self.0
        }
        fn invoke(&self, _: Method<'_>, _: &dyn Encode) -> Outcome<Body> {
            Outcome::Failed(Failure::new(Kind::Unsupported, Initiator::Here, "nothing is called"))
        }
        fn notify(&self, _: Method<'_>, _: &dyn Encode) -> Result<(), Failure> {
            Ok(())
        }
        fn submit(&self, _: Method<'_>, _: &dyn Encode, _: Completion) -> Ticket {
            Ticket(0)
        }
        fn withdraw(&self, ticket: Ticket) {
            self.1.lock().unwrap().push(ticket.0);
        }
        fn probe(&self) -> Result<(), Failure> {
            Ok(())
        }
        fn with_deadline(&self, _: Option<Duration>) -> Arc<dyn Target> {
            Arc::new(Self::default())
        }
        fn resolver(&self) -> Arc<dyn Resolver> {
            unreachable!("nobody resolves")
        }
    }

    #[test]
    fn a_call_is_withdrawn_wherever_it_is() {
        let (calls, target) = (Arc::<Calls>::default(), Arc::<WithdrawalLog>::default());
        let told = || target.1.lock().unwrap().clone();
        let there = |note: DispatchNote, attempt, ticket| note.there(attempt, target.clone(), Ticket(ticket));
        // At a target.
        let first = calls.enter(1, CallId(1)).unwrap();
        assert!(first.leaves(1));
        there(first.note(), 1, 11);
        calls.withdraw(1, CallId(1));
        calls.withdraw(1, CallId(1));
        assert_eq!(told(), [11], "once");
        assert!(first.is_withdrawn() && !first.leaves(2), "and it is not tried again");
        // On its way: whoever sends it is told by the table.
        let second = calls.enter(1, CallId(2)).unwrap();
        assert!(second.leaves(1));
        calls.withdraw(1, CallId(2));
        there(second.note(), 1, 12);
        assert_eq!(told(), [11, 12]);
        // An earlier try says nothing of a later one.
        let third = calls.enter(1, CallId(3)).unwrap();
        assert!(third.leaves(1) && third.leaves(2));
        there(third.note(), 2, 14);
        there(third.note(), 1, 13);
        calls.withdraw(1, CallId(3));
        assert_eq!(told(), [11, 12, 14]);
        // What has ended is nobody's.
        let fourth = calls.enter(1, CallId(4)).unwrap();
        let note = fourth.note();
        drop(fourth);
        there(note, 0, 15);
        calls.withdraw(1, CallId(4));
        assert_eq!(told(), [11, 12, 14]);
        drop((first, second, third));
        assert_eq!(calls.len(), 0);
    }

    #[test]
    fn a_connection_takes_its_calls_with_it_and_no_others() {
        let (calls, target) = (Arc::<Calls>::default(), Arc::<WithdrawalLog>::default());
        let entries: Vec<_> = [(1, 1), (1, 2), (2, 1)]
            .into_iter()
            .map(|(link, call)| {
                let entry = calls.enter(link, CallId(call)).unwrap();
                assert!(entry.leaves(1));
                entry.note().there(1, target.clone(), Ticket(link * 10 + call));
                entry
            })
            .collect();
        calls.close(1);
        let mut told = target.1.lock().unwrap().clone();
        told.sort_unstable();
        assert_eq!(told, [11, 12]);
        assert!(!entries[2].is_withdrawn());
        assert!(calls.enter(0, CallId(1)).is_none());
    }

    #[test]
    fn calls_of_d_bus_outlive_their_callers() {
        for (wire, goes) in [("dbus", false), ("giop", true)] {
            let calls = Arc::new(Calls::of(everywire::wires::named(wire).unwrap()));
            let target = Arc::<WithdrawalLog>::default();
            let (here, there) = (calls.enter(1, CallId(1)).unwrap(), calls.enter(1, CallId(2)).unwrap());
            there.note().there(0, target.clone(), Ticket(12));
            calls.close(1);
            assert_eq!(here.leaves(1), !goes, "{wire}");
            assert_eq!((here.is_withdrawn(), there.is_withdrawn()), (goes, goes), "{wire}");
            assert_eq!(*target.1.lock().unwrap(), if goes { vec![12] } else { vec![] }, "{wire}");
        }
    }
}
