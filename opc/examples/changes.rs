//! What exception mode costs: a hundred thousand items in ten groups at 1 s, of which so many hundredths change each second
//! (`changes [PERCENT [SECONDS]]`). Server and client are two nodes of this process, on TCP.

use everywire::model::guid;
use everywire::{Failure, Node};
use everywire_opc::contract::{
    DataAccessGroup, DataAccessGroupOnDataChange, DataAccessServer, GUID, OPCITEMDEF,
};
use everywire_opc::server::{Server, ServerInfo};
use everywire_opc::{Data, Item, Settings, Table, VarType};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a92";
const GROUPS: usize = 10;
const ITEMS: usize = 10_000;

fn main() -> Result<(), Failure> {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let percent = given.first().copied().unwrap_or(1).clamp(1, 100);
    let seconds = given.get(1).copied().unwrap_or(10);

    let table = Arc::new(Table::new());
    let ids: Vec<String> = (0..GROUPS * ITEMS).map(|number| format!("Line.P{number}")).collect();
    table.extend(ids.iter().map(|id| (Item::new(id.as_str(), VarType::R4), Data::R4(0.0))));
    let points: Vec<_> = ids.iter().filter_map(|id| table.point(id)).collect();

    let (node, client) = (Node::new(), Node::new());
    let _server =
        Server::serve(&node, ServerInfo::new(CLASS, "Example.Line"), table as Arc<_>, Settings::default())?;
    let address = node.listen("dcom://127.0.0.1:0?level=none")?;
    client.listen("dcom://127.0.0.1:0?level=none")?;
    let place = address.split('?').next().unwrap_or_default().trim_end_matches('/');
    let object = client.connect::<dyn DataAccessServer>(&format!("{place}/{CLASS}?level=none"))?;

    let heard = Arc::new(AtomicUsize::new(0));
    let mut listening = Vec::new();
    let (data1, data2, data3, data4) = guid::of::<dyn everywire_opc::contract::IOPCItemMgt>();
    let riid = GUID { data1, data2, data3, data4 };
    for (number, ids) in ids.chunks(ITEMS).enumerate() {
        let added = object.add_group(&format!("g{number}"), 1, 1000, 0, &None, &None, 0, &riid)?;
        let Some(reference) = added.value.2 else { continue };
        let group = client.narrow::<dyn DataAccessGroup>(reference)?;
        for ids in ids.chunks(1000) {
            group.add_items(&ids.iter().map(|id| def(id)).collect::<Vec<_>>())?;
        }
        let counter = Arc::clone(&heard);
        listening.push(group.signals().on(move |change: DataAccessGroupOnDataChange| {
            counter.fetch_add(change.items.len(), Ordering::Relaxed);
        })?);
    }
    while heard.load(Ordering::Relaxed) < GROUPS * ITEMS {
        std::thread::sleep(Duration::from_millis(100));
    }
    heard.store(0, Ordering::Relaxed);
    let (before, begin) = (cpu(), Instant::now());
    for round in 1..=seconds {
        #[allow(clippy::cast_precision_loss)]
        let value = round as f32;
        points.iter().skip(round % 100).step_by(100 / percent).for_each(|point| point.set(value));
        std::thread::sleep(
            (begin + Duration::from_secs(round as u64)).saturating_duration_since(Instant::now()),
        );
    }
    let (used, time) = (cpu() - before, begin.elapsed().as_secs_f64());
    let told = heard.load(Ordering::Relaxed);
    println!(
        "{percent} % of {} items changing: {told} values heard in {time:.1} s, {:.2} % of a CPU for server and client together",
        GROUPS * ITEMS,
        used / time * 100.0
    );
    Ok(())
}

fn def(id: &str) -> OPCITEMDEF {
    OPCITEMDEF {
        access_path: Some(String::new()),
        item_id: Some(id.to_owned()),
        active: 1,
        client: 1,
        blob: everywire::Bytes::new(),
        requested_type: 0,
        reserved: 0,
    }
}

/// Seconds of CPU that this process has used, in system and out of it (proc(5): ticks of 10 ms).
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / 100.0
}
