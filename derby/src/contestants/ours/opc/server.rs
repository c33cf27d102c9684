//! The server: items that change while they are read, and a plant for exception mode, which is made when a client asks for it.

use super::values::{CHANGING, GROUPS, ITEMS, OF_A_GROUP, id, line, now, vqt};
use crate::broken;
use crate::contestants::ours::{LARGEST_MESSAGE, forever, write_whole};
use everywire::{Failure, Node};
use everywire_opc::server::{Server, ServerInfo};
use everywire_opc::{Code, Data, Item, Point, Settings, Table, VarType};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The class of the server.
pub(super) const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a94";
/// Its name in the file of references.
pub(super) const NAME: &str = "opc";

/// All items have a new value this often.
const CHANGES: Duration = Duration::from_millis(100);
/// Items of exception mode change this often.
const SECOND: Duration = Duration::from_secs(1);

/// Serves at this address until the process is killed.
pub(super) fn serve(ref_file: &Path, address: &str, shards: &str) -> Result<(), Failure> {
    let mut builder = Node::builder().max_message(LARGEST_MESSAGE);
    if let Ok(shards) = shards.parse() {
        builder = builder.shards(shards);
    }
    let node = Node::from(builder.build());
    let table = table();
    let _plant = Plant::open(&table)?;
    let source = Arc::clone(&table) as Arc<_>;
    let _server =
        Server::serve(&node, ServerInfo::new(CLASS, "Everywire.Derby"), source, Settings::default())?;
    node.listen(address)?;
    let reference = node.class_reference(CLASS).ok_or_else(|| broken("the class is not served"))?;
    write_whole(ref_file, &format!("{NAME}\t{}\n", node.print_friendly(&reference)))?;
    forever()
}

/// The items that are read, changing for as long as the process lives.
pub(super) fn table() -> Arc<Table> {
    let table = Arc::new(Table::new());
    table.extend((0..ITEMS).map(|number| (Item::new(id(number), VarType::R4), Data::R4(0.0))));
    let points: Vec<Point> = (0..ITEMS).filter_map(|number| table.point(&id(number))).collect();
    let set = move || {
        let time = now();
        (0..).zip(&points).for_each(|(number, point)| point.put(vqt(number, time)));
    };
    // Nobody reads the values from before.
    set();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(CHANGES);
            set();
        }
    });
    table
}

/// The items of exception mode, of which a share changes each second.
struct Plant {
    /// Hundredths that change.
    share: Mutex<u32>,
    asked: Condvar,
}

impl Plant {
    /// Has the table hear of the share that a client wants.
    fn open(table: &Arc<Table>) -> Result<Arc<Self>, Failure> {
        let plant = Arc::new(Self { share: Mutex::new(0), asked: Condvar::new() });
        table.add(Item::new(CHANGING, VarType::I4).writable(), 0_i32);
        let (own, items) = (Arc::clone(&plant), Arc::downgrade(table));
        let changer: Mutex<Option<()>> = Mutex::default();
        table.on_write(move |write| {
            let (Data::I4(share), Some(table)) = (&write.data, items.upgrade()) else { return Code::FAIL };
            if write.item.id != CHANGING || !(0..=100).contains(share) {
                return Code::RANGE;
            }
            if changer.lock().unwrap_or_else(PoisonError::into_inner).replace(()).is_none() {
                let points = points(&table);
                let plant = Arc::clone(&own);
                std::thread::spawn(move || plant.change(&points));
            }
            *own.share() = share.unsigned_abs();
            own.asked.notify_all();
            Code::OK
        });
        Ok(plant)
    }

    fn share(&self) -> MutexGuard<'_, u32> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the share each second, one part of the items after the other.
    fn change(&self, points: &[Point]) {
        let mut next = Instant::now();
        for round in 0_usize.. {
            let share = {
                let waiting = self.asked.wait_while(self.share(), |share| *share == 0);
                *waiting.unwrap_or_else(PoisonError::into_inner)
            };
            next = next.max(Instant::now());
            let apart = usize::try_from(100 / share.max(1)).unwrap_or(1);
            let time = now();
            let changed = (0..).zip(points).skip(round % apart).step_by(apart);
            changed.for_each(|(number, point)| point.put(vqt(number, time)));
            next += SECOND;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
}

/// Makes the items of exception mode, each with a first value. It is done at the first write of a
/// client, so that servers of other races do not have 100,000 items.
fn points(table: &Table) -> Vec<Point> {
    let all = 0..GROUPS * OF_A_GROUP;
    table.extend(all.clone().map(|number| (Item::new(line(number), VarType::R4), Data::R4(0.0))));
    let points: Vec<Point> = all.filter_map(|number| table.point(&line(number))).collect();
    let time = now();
    (0..).zip(&points).for_each(|(number, point)| point.put(vqt(number, time)));
    points
}
