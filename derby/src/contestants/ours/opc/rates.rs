//! Clients at a rate: reads of 5,000 items a second, and exception mode, in which a server sends what
//! has changed.
//!
//! Exception mode goes through these states: *made* (the server has made the items, the client has
//! groups of them), *known* (the first value of every item was heard), *steady* (changes are heard),
//! *counted* (for the time of the plan), *quiet* (the server was told to stop).
//!
//! What counts is the CPU time of both sides, since the rate is given. The time of a row is, for reads,
//! that of one read, and in exception mode the delay from the change of a value to its callback.
//!
//! Invariant: every value that is heard is checked; the first that is wrong ends the client with a
//! failure.

use super::client::{Reader, add, group, reference};
use super::values::{CHANGING, GROUPS, OF_A_GROUP, heard, line, time_of};
use crate::measure::{Line, Plan, Timed, cpu_us, ps, spent};
use crate::race::{ALL_CHANGE, FEW_CHANGE, Race, ReadMode, TYPICAL};
use crate::stats::Times;
use crate::{broken, unknown};
use everywire::{Failure, Node, Ref, Subscription};
use everywire_opc::contract::{DataAccessGroup, DataAccessGroupOnDataChange, DataAccessServer, IOPCSyncIO};
use everywire_opc::{Data, FileTime};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Items a second, as was called typical.
const ITEMS_PER_S: u32 = 5000;
/// Items are added so many at a time.
const SLICE: u32 = 1000;
/// Whatever is waited for comes within this time, or not at all.
const PATIENCE: Duration = Duration::from_secs(60);
/// Calls before the clock starts.
const WARM: usize = 20;

/// Does all that the plan wants, each for the time that it says.
pub(super) fn run(ref_file: &Path, home: &str, race: &Race, plan: &Plan) -> Result<(), Failure> {
    let mut plant = None;
    for operation in race.operations.iter().filter(|operation| plan.wants(operation.name)) {
        let share = match (operation.name, operation.reads) {
            (TYPICAL, Some(reads)) => {
                typical(ref_file, operation.name, reads, plan)?;
                continue;
            }
            (FEW_CHANGE, _) => 1,
            (ALL_CHANGE, _) => 100,
            (other, _) => return Err(unknown(format!("nobody knows the rate `{other}`"))),
        };
        let plant: &Plant = match &mut plant {
            Some(plant) => plant,
            none => none.insert(Plant::open(ref_file, home)?),
        };
        plant.count(operation.name, share, plan)?;
    }
    Ok(())
}

/// Reads at the typical rate.
fn typical(ref_file: &Path, operation: &str, reads: ReadMode, plan: &Plan) -> Result<(), Failure> {
    let mut reader = Reader::connect(ref_file, reads.items)?;
    (0..WARM).try_for_each(|_| reader.read())?;
    let pause = Duration::from_secs(1) * reads.items / ITEMS_PER_S;
    let (own, server) = (cpu_us(None), plan.server_cpu_us());
    let begun = Instant::now();
    let (mut samples, mut next) = (Vec::new(), begun);
    while begun.elapsed() < plan.budget {
        let asked = Instant::now();
        reader.read()?;
        samples.push(ps(asked.elapsed()));
        // Who was late does not hurry afterwards.
        next = (next + pause).max(asked);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let timed = Timed::spread(samples, begun.elapsed());
    let (own_after, server_after) = (cpu_us(None), plan.server_cpu_us());
    Line {
        client_cpu_us: spent(own, own_after),
        server_cpu_us: spent(server, server_after),
        ..Line::of(operation, &[timed])
    }
    .say()?;
    reader.sees_changes()
}

/// What was heard, and a way to wait for more. Callbacks come on threads of the node.
#[derive(Default)]
struct RateListener {
    heard: Mutex<RateCounts>,
    more: Condvar,
}

#[derive(Default)]
struct RateCounts {
    /// Values since the last `begin`.
    values: u64,
    /// How long after it was set each value was heard.
    delays: Times,
    /// The delay of the last value of each callback, in picoseconds.
    callbacks_ps: Vec<u64>,
    /// The first value that was wrong; whoever waits gets it.
    failure: Option<Failure>,
}

impl RateListener {
    fn hear(&self, change: &DataAccessGroupOnDataChange) {
        let now = FileTime::now();
        let mut held = self.held();
        let result = held.take(change, now);
        held.failure = held.failure.take().or_else(|| result.err());
        self.more.notify_all();
    }

    fn held(&self) -> MutexGuard<'_, RateCounts> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was heard.
    ///
    /// # Errors
    /// Something of it was wrong.
    fn begin(&self) -> Result<(), Failure> {
        let before = std::mem::take(&mut *self.held());
        before.failure.map_or(Ok(()), Err)
    }

    /// Waits until so many values have been heard since the last `begin`.
    ///
    /// # Errors
    /// They did not come in time, or one was wrong.
    fn wait(&self, values: u64) -> Result<(), Failure> {
        let few = |heard: &mut RateCounts| heard.values < values && heard.failure.is_none();
        let waited = self.more.wait_timeout_while(self.held(), PATIENCE, few);
        let (mut held, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        match held.failure.take() {
            Some(failure) => Err(failure),
            None if timeout.timed_out() => {
                Err(broken(format!("{} of {values} values were heard in {PATIENCE:?}", held.values)))
            }
            None => Ok(()),
        }
    }
}

impl RateCounts {
    /// Checks one callback and counts its values.
    fn take(&mut self, change: &DataAccessGroupOnDataChange, now: FileTime) -> Result<(), Failure> {
        let count = change.items.len();
        if [change.values.len(), change.qualities.len(), change.timestamps.len(), change.errors.len()]
            != [count; 4]
        {
            return Err(broken("a callback has not as many of each as of items"));
        }
        let all = change.items.iter().zip(&change.values).zip(&change.qualities).zip(&change.timestamps);
        // Nearly all values of a callback are of the same age.
        let (mut last, mut alike) = (None, 0);
        for (((number, value), quality), time) in all {
            let value = Data::from_variant(value)?;
            let delay = heard(*number, &value, *quality, time_of(time), now)?;
            match last {
                Some(last) if last != delay => {
                    self.delays.add(last, alike);
                    alike = 1;
                }
                _ => alike += 1,
            }
            last = Some(delay);
        }
        if let Some(last) = last {
            self.delays.add(last, alike);
            self.callbacks_ps.push(last);
        }
        self.values += u64::try_from(count).unwrap_or(u64::MAX);
        Ok(())
    }
}

/// A client that listens to all items of exception mode.
struct Plant {
    ear: Arc<RateListener>,
    /// The group of the item by which the server is told what to change.
    control: Ref<dyn DataAccessGroup>,
    handles: Vec<u32>,
    _listening: Vec<Subscription>,
    _groups: Vec<Ref<dyn DataAccessGroup>>,
    _server: Ref<dyn DataAccessServer>,
    _node: Node,
}

impl Plant {
    /// Has the server make its items, adds all of them to ten groups, subscribes to each, and waits
    /// until the first value of every item was heard.
    fn open(ref_file: &Path, home: &str) -> Result<Self, Failure> {
        let node = Node::new();
        node.listen(home)?;
        let server = node.connect::<dyn DataAccessServer>(&reference(ref_file)?)?;
        let control = group(&node, &server, "control", 0)?;
        let handles = add(&control, [(0, CHANGING.to_owned())].into_iter())?;
        let mut plant = Self {
            ear: Arc::default(),
            control,
            handles,
            _listening: Vec::new(),
            _groups: Vec::new(),
            _server: server,
            _node: node,
        };
        // The server makes the items when it is first told.
        plant.change(0)?;
        for number in 0..GROUPS {
            let items = number * OF_A_GROUP..(number + 1) * OF_A_GROUP;
            let group = group(&plant._node, &plant._server, &format!("plant {number}"), number)?;
            for first in items.clone().step_by(usize::try_from(SLICE).unwrap_or(1)) {
                add(&group, (first..(first + SLICE).min(items.end)).map(|number| (number, line(number))))?;
            }
            let ear = Arc::clone(&plant.ear);
            let heard = move |change: DataAccessGroupOnDataChange| ear.hear(&change);
            plant._listening.push(group.signals().on(heard)?);
            plant._groups.push(group);
        }
        plant.ear.wait(u64::from(GROUPS * OF_A_GROUP))?;
        Ok(plant)
    }

    /// Tells the server how many hundredths are to change.
    fn change(&self, share: i32) -> Result<(), Failure> {
        let codes = IOPCSyncIO::write(&*self.control, &self.handles, &[Data::I4(share).to_variant()])?.value;
        if codes == [0] { Ok(()) } else { Err(broken("the server does not let its items change")) }
    }

    /// Counts what is heard while a share of the items changes.
    fn count(&self, operation: &str, share: i32, plan: &Plan) -> Result<(), Failure> {
        self.ear.begin()?;
        self.change(share)?;
        // All of what the first second has.
        self.ear.wait(u64::from(GROUPS * OF_A_GROUP / 100) * u64::from(share.unsigned_abs()))?;
        self.ear.begin()?;
        let (own, server) = (cpu_us(None), plan.server_cpu_us());
        let begun = Instant::now();
        std::thread::sleep(plan.budget);
        // Of a time that is shorter than a second there may be nothing yet.
        self.ear.wait(1)?;
        let (own_after, server_after) = (cpu_us(None), plan.server_cpu_us());
        let total = begun.elapsed();
        let heard = std::mem::take(&mut *self.ear.held());
        self.change(0)?;
        if let Some(failure) = heard.failure {
            return Err(failure);
        }
        Line {
            calls: heard.values,
            total_ns: ps(total) / 1000,
            client_cpu_us: spent(own, own_after),
            server_cpu_us: spent(server, server_after),
            blocks_ps: heard.callbacks_ps,
            histogram_ps: heard.delays.pairs(),
            ..Line::of(operation, &[])
        }
        .say()
    }
}
