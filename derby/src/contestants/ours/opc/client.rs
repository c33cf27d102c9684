//! Clients that read: in process, over a connection, as several threads and as several processes.
//!
//! Each read is checked value by value within the timed call (`ReaderState`). After it the client reads on
//! until something has changed: values that never change would be no reads of process data.

use super::server::{NAME, table};
use super::values::{ReaderState, id};
use crate::broken;
use crate::measure::{Plan, measure, several};
use crate::process::Launch;
use crate::race::{Clients, Operation, Race};
use everywire::model::guid;
use everywire::{Failure, Node, Ref};
use everywire_opc::contract::{
    DataAccessGroup, DataAccessServer, GUID, IOPCItemMgt, IOPCSyncIO, OPCDATASOURCE, OPCITEMDEF,
};
use everywire_opc::{Engine, FileTime, Group, GroupState, ItemDef, Moment, ReadFrom, Settings};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A read in process takes less time than reading the clock: so many are timed together.
const BATCH: u32 = 100;
/// Values that have not changed within this time do not change.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is said of a server whose values stand still.
const STILL: &str = "the values do not change";

/// Reads from a server in another process.
pub(super) fn remote(ref_file: &Path, race: &Race, plan: &Plan) -> Result<(), Failure> {
    for operation in race.operations {
        let Some(reads) = operation.reads.filter(|_| plan.wants(operation.name)) else { continue };
        match reads.clients {
            Clients::One => {
                let mut reader = Reader::connect(ref_file, reads.items)?;
                measure(plan, operation.name, None, 1, || reader.read())?;
                reader.sees_changes()?;
            }
            Clients::Threads(number) => {
                let readers = (0..number).map(|_| Reader::connect(ref_file, reads.items));
                let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
                let calls = readers.iter_mut().map(|reader| || reader.read()).collect();
                several::threads(plan, operation.name, calls)?;
                readers.iter_mut().try_for_each(Reader::sees_changes)?;
            }
            Clients::Processes(number) => {
                let launch = Launch::own("opc-member")?.with([ref_file]).with([operation.name]);
                several::processes(plan, operation.name, number, &launch)?;
            }
        }
    }
    Ok(())
}

/// One of several processes.
pub(super) fn member(ref_file: &Path, operation: &str, plan: &Plan) -> Result<(), Failure> {
    let all = crate::race::ALL.iter().flat_map(|race| race.operations);
    let reads = all.filter(|known| known.name == operation).find_map(|operation: &Operation| operation.reads);
    let items = reads.ok_or_else(|| broken(format!("nobody knows how to {operation}")))?.items;
    let mut reader = Reader::connect(ref_file, items)?;
    several::member(plan, operation, || reader.read())?;
    reader.sees_changes()
}

/// The reference of the server.
pub(super) fn reference(ref_file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(ref_file)
        .map_err(|error| broken(format!("{}: {error}", ref_file.display())))?;
    let found = text.lines().filter_map(|line| line.split_once('\t')).find(|(name, _)| *name == NAME);
    found.map(|(_, reference)| reference.to_owned()).ok_or_else(|| broken("the server says no reference"))
}

/// A client with a connection, a group and items of its own.
pub(super) struct Reader {
    group: Ref<dyn DataAccessGroup>,
    handles: Vec<u32>,
    seen: ReaderState,
    /// The object of the server, which ends with the last reference to it.
    _server: Ref<dyn DataAccessServer>,
    _node: Node,
}

impl Reader {
    /// A connection, a group and its items; nothing has been read yet.
    pub(super) fn connect(ref_file: &Path, items: u32) -> Result<Self, Failure> {
        let node = Node::new();
        let server = node.connect::<dyn DataAccessServer>(&reference(ref_file)?)?;
        let group = group(&node, &server, "", 0)?;
        let handles = add(&group, (0..items).map(|number| (number, id(number))))?;
        Ok(Self { group, handles, seen: ReaderState::new(items), _server: server, _node: node })
    }

    /// Reads all items from the server's cache, and checks them.
    #[inline]
    pub(super) fn read(&mut self) -> Result<(), Failure> {
        let (states, errors) =
            IOPCSyncIO::read(&*self.group, OPCDATASOURCE::OpcDsCache, &self.handles)?.value;
        self.seen.read(&states, &errors)
    }

    /// Reads on until something has changed.
    pub(super) fn sees_changes(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        // All values are new when they come first.
        let first = u64::try_from(self.handles.len()).unwrap_or(u64::MAX);
        while self.seen.changes <= first {
            if begun.elapsed() > PATIENCE {
                return Err(broken(STILL));
            }
            self.read()?;
        }
        Ok(())
    }
}

/// Adds a group to the server: active, updated once a second, with the client's number `client` for it.
pub(super) fn group(
    node: &Node,
    server: &Ref<dyn DataAccessServer>,
    name: &str,
    client: u32,
) -> Result<Ref<dyn DataAccessGroup>, Failure> {
    let (data1, data2, data3, data4) = guid::of::<dyn IOPCItemMgt>();
    let riid = GUID { data1, data2, data3, data4 };
    let added = server.add_group(name, 1, 1000, client, &None, &None, 0, &riid)?.value;
    node.narrow(added.2.ok_or_else(|| broken("the server gives no group"))?)
}

/// Adds items by the client's numbers for them and by their names; the server's numbers.
pub(super) fn add(
    group: &Ref<dyn DataAccessGroup>,
    items: impl Iterator<Item = (u32, String)>,
) -> Result<Vec<u32>, Failure> {
    let def = |(client, id)| OPCITEMDEF {
        access_path: Some(String::new()),
        item_id: Some(id),
        active: 1,
        client,
        blob: everywire::Bytes::new(),
        requested_type: 0,
        reserved: 0,
    };
    let defs: Vec<OPCITEMDEF> = items.map(def).collect();
    let (results, errors) = group.add_items(&defs)?.value;
    if results.len() != defs.len() || errors.len() != defs.len() || errors.iter().any(|code| *code != 0) {
        return Err(broken("the server does not take all items"));
    }
    Ok(results.iter().map(|result| result.server).collect())
}

/// Reads from a server in this process.
pub(super) fn in_process(race: &Race, plan: &Plan) -> Result<(), Failure> {
    let engine = Engine::new(table(), Settings::default());
    let client = engine.client()?;
    for operation in race.operations {
        let one = |reads: &crate::race::ReadMode| reads.clients == Clients::One;
        let Some(reads) = operation.reads.filter(one) else { continue };
        let moment = Moment { ticks: 0, time: FileTime::now() };
        let group = client.add_group(GroupState::default())?;
        let defs: Vec<ItemDef> = (0..reads.items)
            .map(|number| ItemDef { id: id(number), active: true, client: number, ..ItemDef::default() })
            .collect();
        let added = group.add_items(&defs, moment)?;
        let handles =
            added.into_iter().map(|added| Ok(added?.server)).collect::<Result<Vec<u32>, Failure>>()?;
        let mut seen = ReaderState::new(reads.items);
        measure(plan, operation.name, None, BATCH, || {
            look(black_box(&group), black_box(&handles), moment, &mut seen)
        })?;
        let begun = Instant::now();
        while seen.changes <= u64::from(reads.items) {
            if begun.elapsed() > PATIENCE {
                return Err(broken(STILL));
            }
            look(&group, &handles, moment, &mut seen)?;
        }
    }
    Ok(())
}

/// One read, looked at.
fn look(group: &Arc<Group>, handles: &[u32], moment: Moment, seen: &mut ReaderState) -> Result<(), Failure> {
    let samples = group.read(handles, ReadFrom::Cache, moment)?;
    samples.into_iter().try_for_each(|sample| {
        let sample = sample?;
        seen.one(sample.client, &sample.value)
    })
}
