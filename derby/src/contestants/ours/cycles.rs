//! The first race on each of our wires: make a client object and a server object, be advised, be
//! unadvised, let both go.
//!
//! A wire whose protocol makes objects (activation) makes the server object so; on the others a factory
//! does, so that a cycle is the same work everywhere.
//!
//! Invariants: when a cycle returns, everything that it made is gone on both sides. One cycle, before
//! the clock starts, has the server call back and waits for that: who wins without being able to call
//! back would not have raced.

#[path = "cycles/dbus.rs"]
pub(super) mod dbus;
#[path = "cycles/dcom.rs"]
pub(super) mod dcom;
#[path = "cycles/dcop.rs"]
pub(super) mod dcop;
#[path = "cycles/giop.rs"]
pub(super) mod giop;

use crate::measure::{Plan, measure};
use crate::race::{CALLBACK, CONNECTION_POINT, Race};
use everywire::Failure;

/// One whole cycle: all of it is confirmed when it returns. With `CycleMode::Proven` the server also calls
/// back in between, and the cycle waits until it is heard.
pub(super) type Cycle = Box<dyn FnMut(CycleMode) -> Result<(), Failure>>;

/// Whether a cycle proves that it does what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CycleMode {
    /// It is timed: nobody is called back, as in the published race.
    Timed,
    /// The server calls back once.
    Proven,
}

/// The two ways of being called back, of one contestant; `None`: the wire does not have it.
#[derive(Default)]
pub(super) struct Cycles {
    /// The server keeps who listens to its events.
    pub(super) connection_point: Option<Cycle>,
    /// The client passes a reference to an object of its own.
    pub(super) callback: Option<Cycle>,
}

/// Times the cycles that the plan wants.
pub(super) fn run(mut cycles: Cycles, race: &Race, plan: &Plan) -> Result<(), Failure> {
    for operation in race.operations.iter().filter(|operation| plan.wants(operation.name)) {
        let cycle = match operation.name {
            CONNECTION_POINT => cycles.connection_point.as_mut(),
            CALLBACK => cycles.callback.as_mut(),
            _ => None,
        };
        let Some(cycle) = cycle else { continue };
        // Whoever looks at single cycles wants to see the first.
        if plan.warmup > 0 {
            cycle(CycleMode::Proven)?;
        }
        measure(plan, operation.name, None, 1, || cycle(CycleMode::Timed))?;
    }
    Ok(())
}
