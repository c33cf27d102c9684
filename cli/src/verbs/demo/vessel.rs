//! The object of the demo: a tank that can be filled and drained, and that ticks. It is what a user
//! would write: an implementation of the trait that `demo/tank.xml` became, without anything that knows
//! of wires.
//!
//! Invariants: the level is between 0 and `CAPACITY`. The lock of the state is not held while a signal
//! is emitted. Who asks for too much gets an error with a name of the service's own, and nothing is
//! poured.

#[allow(missing_docs, unreachable_pub, dead_code)]
mod contract {
    everywire::include_contract!("tank");
}

use contract::org::example::TankTicked;
use everywire::{Failure, Initiator, Kind, Node, Signaller};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) use contract::org::example::Tank;

/// The error that `Fill` answers with when there is no room.
const FULL: &str = "org.example.Tank.Error.Full";
/// The error that `Drain` answers with when there is not so much.
const EMPTY: &str = "org.example.Tank.Error.Empty";
/// The most litres that the tank holds.
const CAPACITY: f64 = 1000.0;
/// Levels that are remembered, one for each second: an hour.
const REMEMBERED: usize = 3600;

/// A tank in memory, gone with the demo.
pub(super) struct MemoryTank {
    state: Mutex<State>,
    /// Emits the object's signals, without holding the node that holds the object.
    signals: Signaller<dyn Tank>,
}

struct State {
    name: String,
    level: f64,
    ticks: u32,
    /// The newest level first.
    history: VecDeque<f64>,
}

impl MemoryTank {
    /// A tank, exported under this key.
    pub(super) fn export(node: &Node, key: &str) -> Arc<Self> {
        let state = State { name: "Tank 1".into(), level: 100.0, ticks: 0, history: VecDeque::new() };
        let vessel = Arc::new(Self { state: Mutex::new(state), signals: node.signaller(key) });
        let exported: Arc<dyn Tank> = Arc::clone(&vessel) as _;
        node.export(key, exported);
        vessel
    }

    /// A second has passed: the level is remembered, and `Ticked` is emitted.
    pub(super) fn tick(&self) -> Result<(), Failure> {
        let ticked = {
            let mut state = self.state();
            state.ticks = state.ticks.wrapping_add(1);
            let level = state.level;
            state.history.push_front(level);
            state.history.truncate(REMEMBERED);
            TankTicked { count: state.ticks, level }
        };
        self.signals.emit(&ticked)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pours litres in, or out, and returns the new level. A change of the level is told to whoever
    /// watches the attribute.
    fn pour(&self, litres: f64, out: bool) -> Result<f64, Failure> {
        // Nothing was poured.
        let refused = |message: String| Failure::new(Kind::BadArgument, Initiator::User, message).declined();
        if !(litres.is_finite() && litres >= 0.0) {
            return Err(refused("litres are a finite number, and no negative one".into()));
        }
        let level = {
            let mut state = self.state();
            let level = if out { state.level - litres } else { state.level + litres };
            if level > CAPACITY {
                let room = CAPACITY - state.level;
                return Err(refused(format!("only {room} litres go in")).with_code(FULL));
            }
            if level < 0.0 {
                return Err(refused(format!("only {} litres are in the tank", state.level)).with_code(EMPTY));
            }
            state.level = level;
            level
        };
        self.signals.changed("Level")?;
        Ok(level)
    }
}

impl Tank for MemoryTank {
    fn fill(&self, litres: f64) -> Result<f64, Failure> {
        self.pour(litres, false)
    }

    fn drain(&self, litres: f64) -> Result<f64, Failure> {
        self.pour(litres, true)
    }

    fn history(&self, count: u32) -> Result<Vec<f64>, Failure> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(self.state().history.iter().take(count).copied().collect())
    }

    fn level(&self) -> Result<f64, Failure> {
        Ok(self.state().level)
    }

    fn name(&self) -> Result<String, Failure> {
        Ok(self.state().name.clone())
    }

    fn set_name(&self, name: &str) -> Result<(), Failure> {
        name.clone_into(&mut self.state().name);
        self.signals.changed("Name")
    }
}
