//! The engine on virtual time: each test is named after a rule of OPC Data Access.

mod asynchronous;
mod browsing;
mod exception;
mod groups;
mod hostile;
mod io;
mod items;
mod sampling;

use everywire_opc::{
    Batch, Client, Code, Data, Engine, FileTime, Group, GroupState, Item, ItemDef, ItemResult, Moment,
    Report, Settings, Table, VarType, Vqt,
};
use std::sync::Arc;

/// A server over a table, with one client, and a clock that goes on when it is told to.
pub(crate) struct Plant {
    pub(crate) table: Arc<Table>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) client: Arc<Client>,
    pub(crate) now: Moment,
}

impl Plant {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let table = Arc::new(Table::new());
        let items = [
            (Item::new("Tank.Level", VarType::R4).analog(0.0, 100.0, "cm"), Data::R4(50.0)),
            (Item::new("Tank.Valve", VarType::BOOL).writable(), Data::Bool(false)),
            (Item::new("Tank.Setpoint", VarType::I2).writable().analog(0.0, 1000.0, "l"), Data::I2(10)),
            (Item::new("Tank.Mode", VarType::I4).enumerated(["off", "on"]), Data::I4(1)),
            (Item::new("Name", VarType::BSTR).writable().described("What it is called"), "tank one".into()),
            (Item::new("Curve", VarType::R8.array()), Data::array(VarType::R8, vec![Data::R8(1.0)])),
        ];
        table.extend(items);
        let engine = Engine::new(Arc::clone(&table) as Arc<_>, settings);
        let client = engine.client().expect("a client");
        let now = Moment { ticks: 1_000_000, time: FileTime(133_000_000_000_000_000) };
        Self { table, engine, client, now }
    }

    /// A group that somebody listens to.
    pub(crate) fn group(&self, state: GroupState) -> Arc<Group> {
        let group = self.client.add_group(state).expect("a group");
        group.set_listeners(1);
        group
    }

    /// Adds active items, numbered from 1.
    pub(crate) fn add(&self, group: &Group, ids: &[&str]) -> Vec<u32> {
        let defs: Vec<_> = ids.iter().zip(1..).map(|(id, client)| def(id, client)).collect();
        let added = group.add_items(&defs, self.now).expect("the group lives");
        added.into_iter().map(|added| added.expect("an item").server).collect()
    }

    pub(crate) fn set(&self, id: &str, data: impl Into<Data>) {
        self.table.put(id, Vqt::good(data, self.now.time)).expect("an item of the table");
    }

    /// Lets time pass, and makes the updates that are due meanwhile, each when it is due.
    pub(crate) fn pass(&mut self, milliseconds: u64) -> Vec<(u64, Batch)> {
        let end = self.now.after(milliseconds);
        let mut batches = Vec::new();
        while let Some(due) = self.engine.next_due().filter(|due| *due <= end.ticks) {
            self.now = self.now.after(due.saturating_sub(self.now.ticks));
            for group in self.engine.due(self.now) {
                match group.update(self.now) {
                    Some(Report::Change(batch)) => batches.push((self.now.ticks - 1_000_000, batch)),
                    Some(other) => panic!("{other:?}"),
                    None => {}
                }
            }
        }
        self.now = end;
        batches
    }
}

pub(crate) fn def(id: &str, client: u32) -> ItemDef {
    ItemDef { id: id.to_owned(), active: true, client, ..ItemDef::default() }
}

pub(crate) fn named(name: &str) -> GroupState {
    GroupState { name: name.to_owned(), ..GroupState::default() }
}

pub(crate) fn rate(rate: u32) -> GroupState {
    GroupState { rate, ..GroupState::default() }
}

/// The client's numbers of the items of a batch, in order.
pub(crate) fn clients(batch: &Batch) -> Vec<u32> {
    let mut clients: Vec<_> = batch.samples.iter().map(|sample| sample.client).collect();
    clients.sort_unstable();
    clients
}

pub(crate) fn codes<T>(results: Vec<Result<T, Code>>) -> Vec<Code> {
    results.into_iter().map(|result| result.err().unwrap_or(Code::OK)).collect()
}

pub(crate) fn server(results: Vec<Result<ItemResult, Code>>) -> Vec<u32> {
    results.into_iter().map(|added| added.expect("an item").server).collect()
}
