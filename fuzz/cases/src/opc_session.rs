//! What clients of a server of OPC Data Access do, in any order and with any numbers: groups, items, reads, writes, calls that are answered
//! later, settings, browsing, properties. Time passes when the octets say so.
//!
//! Whatever comes, no client holds more than its quota, an update is no larger than it may be, a handle of another client is never
//! taken, and when the clients are gone nothing of theirs is left.
//!
//! An octet chooses what is done, the next one by whom; numbers, names and lists follow. What a guest has (groups, handles, calls that
//! were begun) is what the server gave to it, and handles are taken from all guests.

use everywire_opc::browse::{Direction, Elements, Filter, Kind, page};
use everywire_opc::{
    Change, Client, Code, Data, Engine, FileTime, Group, GroupState, Item, ItemDef, Moment, Quality, Quotas,
    ReadFrom, Refresh, Report, Settings, Table, VarType, Vqt, WriteVqt,
};
use std::sync::Arc;

/// Calls of one run.
const CALLS: usize = 400;
/// Clients at a time.
const CLIENTS: usize = 3;

const QUOTAS: Quotas = Quotas {
    groups: 6,
    items: 40,
    bytes: 24_000,
    pending: 4,
    buffer: 5,
    answer: 4_000,
    enumerators: 8,
    clients: CLIENTS,
};

/// Names that there are, and others.
const NAMES: [&str; 16] = [
    "Tank.Level",
    "Tank.Valve",
    "Tank.Setpoint",
    "Tank.Mode",
    "Name",
    "Curve",
    "Far.Off",
    "Tank",
    "",
    ".",
    "Tank.",
    "Tank\0Level",
    "x",
    "Group1",
    "\u{1b}[2J",
    "*",
];

/// Types that clients ask for.
const TYPES: [u16; 12] = [0, 2, 3, 4, 5, 7, 8, 11, 0x2005, 0x200c, 12, 0xffff];

/// The octets as numbers, names and lists; where they end, all is zero.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Small ones, and those at the ends.
    fn number(&mut self) -> u32 {
        match self.byte() {
            small @ 0..=0xef => small.into(),
            0xf0..=0xf7 => u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()]),
            0xf8..=0xfb => u32::MAX - u32::from(self.byte()),
            _ => i32::MAX.unsigned_abs(),
        }
    }

    fn float(&mut self) -> f32 {
        match self.byte() {
            0xff => f32::NAN,
            0xfe => f32::INFINITY,
            0xfd => f32::from_bits(self.number()),
            small => f32::from(small) / 2.0,
        }
    }

    fn name(&mut self) -> String {
        let byte = usize::from(self.byte());
        let name = NAMES[byte % NAMES.len()];
        if byte >= 0xf0 { name.repeat(byte) } else { name.to_owned() }
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.byte() % 9;
        (0..count).map(|_| one(self)).collect()
    }

    fn data(&mut self) -> Data {
        match self.byte() % 11 {
            0 => Data::Empty,
            1 => Data::Bool(self.byte() & 1 != 0),
            2 => Data::I2(i16::from_le_bytes([self.byte(), self.byte()])),
            3 => Data::U4(self.number()),
            4 => Data::R4(self.float()),
            5 => Data::R8(self.float().into()),
            6 => self.name().into(),
            7 => Data::Date(f64::from(self.float()) * 1e6),
            8 => Data::Error(Code(self.number())),
            9 => Data::U8(u64::from(self.number()) << 32),
            _ => Data::array(VarType::R8, (0..self.byte() % 20).map(|_| Data::R8(1.0)).collect()),
        }
    }

    fn given(&mut self) -> WriteVqt {
        let data = self.data();
        match self.byte() % 4 {
            0 => WriteVqt {
                data,
                quality: Some(Quality(0x18)),
                time: Some(FileTime(u64::from(self.number()) << 32)),
            },
            _ => data.into(),
        }
    }
}

/// A client, and the handles that it was given.
struct Guest {
    client: Arc<Client>,
    groups: Vec<Arc<Group>>,
    items: Vec<u32>,
    /// Calls that were begun.
    calls: Vec<(Arc<Group>, u32)>,
}

struct House {
    table: Arc<Table>,
    engine: Arc<Engine>,
    now: Moment,
    guests: Vec<Guest>,
}

impl House {
    fn new() -> Self {
        let table = Arc::new(Table::new());
        table.extend([
            (Item::new("Tank.Level", VarType::R4).analog(0.0, 100.0, "cm"), Data::R4(50.0)),
            (Item::new("Tank.Valve", VarType::BOOL).writable(), Data::Bool(false)),
            (Item::new("Tank.Setpoint", VarType::I2).writable().analog(0.0, 1000.0, "l"), Data::I2(10)),
            (Item::new("Tank.Mode", VarType::I4).enumerated(["off", "on"]), Data::I4(1)),
            (Item::new("Name", VarType::BSTR).writable(), "tank one".into()),
            (
                Item::new("Curve", VarType::R8.array()).writable(),
                Data::array(VarType::R8, vec![Data::R8(1.0)]),
            ),
        ]);
        let settings = Settings { quotas: QUOTAS, ..Settings::default() };
        let engine = Engine::new(Arc::clone(&table) as Arc<_>, settings);
        let now = Moment { ticks: 1000, time: FileTime(133_000_000_000_000_000) };
        Self { table, engine, now, guests: Vec::new() }
    }

    /// Lets time pass; each update that is due is made, or has to wait.
    fn pass(&mut self, milliseconds: u64, is_late: bool) {
        let end = self.now.after(milliseconds);
        // A rate of 10 ms and a long time would be all of the run.
        for _ in 0..200 {
            let Some(due) = self.engine.next_due().filter(|due| *due <= end.ticks) else { break };
            self.now = self.now.after(due.saturating_sub(self.now.ticks));
            for group in self.engine.due(self.now) {
                if is_late {
                    group.postpone(self.now);
                } else if let Some(report) = group.update(self.now) {
                    self.check(&group, &report);
                }
            }
        }
        self.now = end;
    }

    fn check(&self, group: &Group, report: &Report) {
        let (Report::Change(batch) | Report::Read(batch)) = report else { return };
        let heap: usize = batch.samples.iter().map(|sample| sample.value.data.heap()).sum();
        // What is looked at before the last is within the quota; the last one may be large, and what was buffered of it.
        let largest = batch.samples.iter().map(|sample| sample.value.data.heap()).max().unwrap_or_default();
        assert!(heap <= QUOTAS.answer + largest * (QUOTAS.buffer + 1), "{heap} octets in one update");
        assert!(batch.samples.len() <= QUOTAS.items * (QUOTAS.buffer + 1));
        if matches!(report, Report::Change(_)) && batch.transaction == 0 {
            let live = group.attributes(0, usize::MAX).unwrap_or_default();
            for sample in &batch.samples {
                assert!(live.iter().any(|item| item.server == sample.server), "an item that is no more");
            }
        }
    }

    fn check_quotas(&self) {
        assert!(self.engine.clients() <= CLIENTS);
        for guest in &self.guests {
            let (items, bytes, enumerators) = guest.client.held();
            assert!(items <= QUOTAS.items && bytes <= QUOTAS.bytes && enumerators == 0);
            assert!(guest.client.groups().len() <= QUOTAS.groups);
        }
    }
}

/// Gives the octets to this case.
pub fn opc_session(data: &[u8]) {
    let (mut house, mut words) = (House::new(), Words(data));
    for _ in 0..CALLS {
        if words.0.is_empty() {
            break;
        }
        step(&mut house, &mut words);
        house.check_quotas();
    }
    let held: Vec<_> = house.guests.iter().map(|guest| Arc::clone(&guest.client)).collect();
    let groups: Vec<_> = house.guests.iter().flat_map(|guest| guest.groups.clone()).collect();
    // Groups go with their clients, whoever still has them.
    house.guests.clear();
    for client in &held {
        client.groups().iter().for_each(|group| drop(client.remove_group(group.server_handle())));
        assert_eq!(client.held(), (0, 0, 0), "the quota does not come back");
    }
    drop(held);
    assert!(groups.iter().all(|group| group.is_over()));
    assert_eq!((house.engine.clients(), house.engine.items_in_use(), house.engine.next_due()), (0, 0, None));
}

fn step(house: &mut House, words: &mut Words<'_>) {
    let choice = words.byte();
    let (kind, at) = (choice % 36, usize::from(words.byte()));
    match kind {
        0 => {
            if let Ok(client) = house.engine.client() {
                let guest = Guest { client, groups: Vec::new(), items: Vec::new(), calls: Vec::new() };
                house.guests.push(guest);
            } else {
                assert_eq!(house.guests.len(), CLIENTS);
            }
            return;
        }
        1 => {
            house.pass(u64::from(words.number()), at & 1 != 0);
            return;
        }
        2 => {
            let value =
                Vqt { data: words.data(), quality: Quality(u16::from(words.byte())), time: house.now.time };
            // There may be no such item.
            let _ = house.table.put(&words.name(), value);
            return;
        }
        _ => {}
    }
    let count = house.guests.len();
    if count == 0 {
        return;
    }
    if kind == 3 {
        // Its groups are dropped with it, or some time later.
        let gone = house.guests.swap_remove(at % count);
        drop(gone.client);
        assert!(gone.groups.iter().all(|group| group.is_over()));
        return;
    }
    let House { engine, now, guests, .. } = house;
    let (now, place) = (*now, at % count);
    // Handles are those of any client.
    let known: Vec<u32> = guests.iter().flat_map(|guest| &guest.items).copied().collect();
    let handle = |words: &mut Words<'_>| match words.byte() {
        0xff => words.number(),
        index if known.is_empty() => index.into(),
        index => known[usize::from(index) % known.len()],
    };
    let guest = &mut guests[place];
    if kind < 13 {
        without_a_group(engine, guest, kind, words, now);
        return;
    }
    let Some(group) = guest.groups.get(at % guest.groups.len().max(1)).cloned() else { return };
    let group = &group;
    let own: Vec<u32> =
        group.attributes(0, usize::MAX).unwrap_or_default().iter().map(|item| item.server).collect();
    let foreign_fail = |items: &[u32], codes: &[Code]| {
        assert_eq!(items.len(), codes.len());
        for (item, code) in items.iter().zip(codes) {
            assert!(own.contains(item) || code.is_failure(), "a handle of another group was taken");
        }
    };
    let codes = |results: Vec<Result<(), Code>>| -> Vec<Code> {
        results.into_iter().map(|result| result.err().unwrap_or(Code::OK)).collect()
    };
    match kind {
        13 => {
            let defs = words.list(|words| ItemDef {
                id: words.name(),
                access_path: if words.byte() == 0xff { words.name() } else { String::new() },
                active: words.byte() & 1 == 0,
                client: words.number(),
                requested: VarType(TYPES[usize::from(words.byte()) % TYPES.len()]),
            });
            if words.byte() & 1 == 0 {
                let added = group.add_items(&defs, now).unwrap_or_default();
                guest.items.extend(added.into_iter().flatten().map(|added| added.server));
            } else {
                drop(group.validate_items(&defs));
            }
        }
        14 => {
            let items = words.list(handle);
            let removed = group.remove_items(&items).map(codes).unwrap_or_default();
            if !removed.is_empty() {
                foreign_fail(&items, &removed);
            }
        }
        15 => drop(group.set_active(&words.list(handle), words.byte() & 1 == 0)),
        16 => drop(group.set_client_handles(&words.list(handle), &words.list(Words::number))),
        17 => {
            let types = |words: &mut Words<'_>| VarType(TYPES[usize::from(words.byte()) % TYPES.len()]);
            drop(group.set_types(&words.list(handle), &words.list(types)));
        }
        18 => {
            let items = words.list(handle);
            let ages = words.list(Words::number);
            let from = match words.byte() % 3 {
                0 => ReadFrom::Cache,
                1 => ReadFrom::Device,
                _ => ReadFrom::Ages(&ages),
            };
            if let Ok(read) = group.read(&items, from, now) {
                let codes: Vec<_> =
                    read.iter().map(|read| read.as_ref().err().copied().unwrap_or(Code::OK)).collect();
                foreign_fail(&items, &codes);
                let heap: usize = read.iter().flatten().map(|sample| sample.value.data.heap()).sum();
                assert!(heap <= QUOTAS.answer);
            }
        }
        19 => {
            let items = words.list(handle);
            if let Ok(codes) = group.write(&items, &words.list(Words::given)) {
                foreign_fail(&items, &codes);
            }
        }
        20 => {
            let items = words.list(handle);
            let ages = words.list(Words::number);
            let from = if words.byte() & 1 == 0 { ReadFrom::Device } else { ReadFrom::Ages(&ages) };
            if let Ok((cancel, codes)) = group.begin_read(&items, from, words.number()) {
                foreign_fail(&items, &codes);
                guest.calls.push((Arc::clone(group), cancel));
            }
        }
        21 => {
            let items = words.list(handle);
            if let Ok((cancel, codes)) = group.begin_write(&items, &words.list(Words::given), words.number())
            {
                foreign_fail(&items, &codes);
                guest.calls.push((Arc::clone(group), cancel));
            }
        }
        22 => {
            let from = match words.byte() % 3 {
                0 => Refresh::Cache,
                1 => Refresh::Device,
                _ => Refresh::MaxAge(words.number()),
            };
            if let Ok(cancel) = group.begin_refresh(from, words.number()) {
                guest.calls.push((Arc::clone(group), cancel));
            }
        }
        23 => {
            // Any number: of another group's call, too.
            let cancel = guest
                .calls
                .get(usize::from(words.byte()))
                .map_or_else(|| words.number(), |(_, cancel)| *cancel);
            drop(group.cancel(cancel));
        }
        24 => {
            let Some((of, cancel)) = guest.calls.pop() else { return };
            while of.perform(cancel, now).is_some() {}
        }
        25 => group.set_listeners(usize::from(words.byte() % 3)),
        26 => drop(group.set_enabled(words.byte() & 1 == 0)),
        27 => {
            let change = Change {
                rate: (words.byte() & 1 == 0).then(|| words.number()),
                active: Some(words.byte() & 3 != 0),
                time_bias: Some(words.number().cast_signed()),
                deadband: (words.byte() & 1 == 0).then(|| words.float()),
                locale: None,
                client: Some(words.number()),
            };
            let _ = group.change(&change);
        }
        28 => {
            let _ = group.set_keep_alive(words.number());
        }
        29 => match words.byte() % 3 {
            0 => drop(group.set_deadbands(&words.list(handle), &words.list(Words::float))),
            1 => drop(group.clear_deadbands(&words.list(handle))),
            _ => drop(group.deadbands(&words.list(handle))),
        },
        30 => match words.byte() % 3 {
            0 => drop(group.set_sampling(&words.list(handle), &words.list(Words::number))),
            1 => drop(group.clear_sampling(&words.list(handle))),
            _ => drop(group.sampling(&words.list(handle))),
        },
        31 => drop(group.set_buffered(&words.list(handle), &words.list(|words| words.byte() & 1 == 0))),
        32 => group.lost(),
        33 => drop(guest.client.rename(group, &words.name())),
        34 => {
            if let Ok(copy) = guest.client.clone_group(group, &words.name()) {
                guest.groups.push(copy);
            }
        }
        _ => {
            let mut place = 0;
            for _ in 0..QUOTAS.items {
                let Ok((found, next)) = group.attributes_behind(place, 3) else { break };
                assert!(found.len() <= 3 && (found.is_empty() || next > place));
                if found.is_empty() {
                    break;
                }
                place = next;
            }
        }
    }
}

fn without_a_group(engine: &Arc<Engine>, guest: &mut Guest, kind: u8, words: &mut Words<'_>, now: Moment) {
    let client = &guest.client;
    let source = engine.source();
    match kind {
        4 | 5 => {
            let asked = GroupState {
                name: words.name(),
                active: words.byte() & 3 != 0,
                rate: words.number(),
                deadband: if words.byte() & 3 == 0 { words.float() } else { 0.0 },
                client: words.number(),
                ..GroupState::default()
            };
            if let Ok(group) = client.add_group(asked) {
                group.set_listeners(1);
                guest.groups.push(group);
            }
        }
        6 => {
            let handle = match words.byte() {
                0xff => words.number(),
                index => guest.groups.get(usize::from(index)).map_or(0, |group| group.server_handle()),
            };
            if let Ok(group) = client.remove_group(handle) {
                assert!(group.is_over());
            }
        }
        7 => {
            let directions = [Direction::Up, Direction::Down, Direction::To];
            let direction = directions[usize::from(words.byte()) % 3];
            let name = words.name();
            let _ = client.with_position(|position| position.go(&**source, direction, &name));
            drop(client.with_position(|position| position.id(&**source, &name)));
        }
        8 => {
            let Ok(filter) = Filter::new(&words.name(), VarType(u16::from(words.byte())), words.number())
            else {
                return;
            };
            let kinds = [Kind::Branches, Kind::Leaves, Kind::Flat];
            let kind = kinds[usize::from(words.byte()) % 3];
            let position = client.with_position(|position| position.clone());
            if let Ok(names) = position.names(source, kind, filter) {
                assert!(names.count() < 100);
            }
        }
        9 => {
            let wanted = [Elements::All, Elements::Branches, Elements::Items][usize::from(words.byte()) % 3];
            let (branch, names, most) = (words.name(), words.name(), words.number() as usize);
            let mut point = if words.byte() == 0xff { words.name() } else { String::new() };
            for _ in 0..20 {
                let Ok(page) = page(&**source, &branch, &point, most, wanted, &names) else { break };
                assert!(most == 0 || page.elements.len() <= most);
                point = page.continuation;
                if point.is_empty() {
                    break;
                }
            }
        }
        10 => {
            let numbers = words.list(Words::number);
            let name = words.name();
            for value in engine.properties(&name, &numbers, now).unwrap_or_default().into_iter().flatten() {
                drop(value.to_string());
            }
            drop(engine.property_items(&name, &numbers));
            drop(engine.available_properties(&name));
        }
        11 => {
            let (ids, ages) = (words.list(Words::name), words.list(Words::number));
            if let Ok(read) = engine.read_items(&ids, &ages, now) {
                assert_eq!(read.len(), ids.len());
            }
        }
        _ => {
            let (ids, values) = (words.list(Words::name), words.list(Words::given));
            if let Ok(codes) = engine.write_items(&ids, &values) {
                assert_eq!(codes.len(), ids.len());
            }
            client.set_name(&words.name());
            let _ = client.set_locale(words.number());
        }
    }
}
