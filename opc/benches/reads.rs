//! How many items a client reads in a second: wall-clock figures, which no test asserts.
//!
//! `cargo bench -p everywire-opc --bench reads` has a client of ours read floats with value, time and quality from a server of ours in
//! another process, over TCP of this machine: 100 items a read and one, at the levels of authentication that are asked for, beside
//! as many bytes each way over a bare TCP connection. The server changes its values meanwhile, and the reader looks at each value,
//! quality and time. In process, the same reads without a wire.
//!
//! For `callgrind`: `reads serve LEVEL` prints an address and serves until its standard input ends, `reads read ADDRESS ITEMS COUNT` reads so often.

use everywire::model::guid;
use everywire::{Node, Ref};
use everywire_opc::contract::{
    DataAccessGroup, DataAccessServer, GUID, IOPCItemMgt, IOPCSyncIO, OPCDATASOURCE, OPCITEMDEF, OPCITEMSTATE,
};
use everywire_opc::server::{Server, ServerInfo};
use everywire_opc::{
    Data, Engine, FileTime, GroupState, Item, ItemDef, Moment, Point, Quality, ReadFrom, Settings, Table,
    VarType,
};
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ITEMS: u32 = 100;
const CLASS: &str = "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a92";
/// How long each figure is measured.
const TIMED: Duration = Duration::from_secs(2);
/// Bytes of a request and an answer beside those of the items: headers of DCE/RPC and ORPC.
const AROUND: usize = 120;

/// This program again; it ends with its standard input.
struct Other(Child, String);

impl Other {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut line).expect("its first line");
        Self(child, line.trim().to_owned())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself.
        let _ = self.0.wait();
    }
}

fn name(n: u32) -> String {
    format!("Line.Item{n:03}")
}

fn table() -> Arc<Table> {
    let table = Arc::new(Table::new());
    table.extend((0..ITEMS).map(|n| (Item::new(name(n), VarType::R4), Data::R4(0.0))));
    table
}

/// Serves until its standard input ends, and sets one item after the other meanwhile, a thousand times a second.
fn serve(level: &str) {
    let users = env::temp_dir().join(format!("everywire-reads-{}", std::process::id()));
    std::fs::write(&users, "ada:open sesame\n").expect("a file");
    std::fs::set_permissions(&users, std::fs::Permissions::from_mode(0o600)).expect("our file");
    let table = table();
    let node = Node::new();
    let info = ServerInfo::new(CLASS, "Everywire.Reads");
    let server =
        Server::serve(&node, info, Arc::clone(&table) as Arc<_>, Settings::default()).expect("a thread");
    let who = if level == "none" { String::new() } else { format!("&users={}", users.display()) };
    let address = node.listen(&format!("dcom://127.0.0.1:0?level={level}{who}")).expect("a port");
    let _ = std::fs::remove_file(&users);
    let place = address.split('?').next().unwrap_or(&address).trim_end_matches('/').to_owned();
    println!("{place}/{CLASS}");
    let points: Vec<Point> = (0..ITEMS).filter_map(|n| table.point(&name(n))).collect();
    std::thread::spawn(move || {
        for turn in 1_u32.. {
            for point in &points {
                point.set(turn as f32);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    // Until whoever started it is gone.
    let _ = std::io::stdin().read(&mut [0]);
    drop(server);
}

/// Echoes messages of so many bytes, each answered by so many.
fn echo(asked: usize, answered: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("its address"));
    let (mut peer, _) = listener.accept().expect("a peer");
    peer.set_nodelay(true).expect("an option");
    let (mut request, answer) = (vec![0; asked], vec![7; answered]);
    while peer.read_exact(&mut request).is_ok() && peer.write_all(&answer).is_ok() {}
}

/// How often something is done in a second.
fn rate(work: &mut dyn FnMut()) -> f64 {
    (0..200).for_each(|_| work());
    let (begun, mut done) = (Instant::now(), 0_u32);
    while begun.elapsed() < TIMED {
        (0..20).for_each(|_| work());
        done += 20;
    }
    f64::from(done) / begun.elapsed().as_secs_f64()
}

fn raw(items: usize) -> f64 {
    let (asked, answered) = (AROUND + 4 * items, AROUND + 48 * items);
    let other = Other::start(&["echo", &asked.to_string(), &answered.to_string()]);
    let mut stream = TcpStream::connect(&other.1).expect("it listens");
    stream.set_nodelay(true).expect("an option");
    let (request, mut answer) = (vec![1; asked], vec![0; answered]);
    rate(&mut || {
        stream.write_all(&request).expect("sent");
        stream.read_exact(&mut answer).expect("answered");
    })
}

/// Looks at what was read: the values never go back.
fn look(states: &[OPCITEMSTATE], errors: &[i32], last: &mut [f32]) {
    assert_eq!((states.len(), errors.len()), (last.len(), last.len()));
    for (state, last) in states.iter().zip(last) {
        assert_eq!(state.quality, Quality::GOOD.0);
        assert!(state.timestamp.dw_high_date_time > 0x01d0_0000);
        let Ok(Data::R4(value)) = Data::from_variant(&state.value) else { panic!("no float: {state:?}") };
        assert!(value >= *last);
        *last = value;
    }
}

fn group(client: &Node, server: &Ref<dyn DataAccessServer>) -> Ref<dyn DataAccessGroup> {
    let (data1, data2, data3, data4) = guid::of::<dyn IOPCItemMgt>();
    let riid = GUID { data1, data2, data3, data4 };
    let added = server.add_group("", 1, 1000, 7, &None, &None, 0, &riid).expect("a group").value;
    client.narrow(added.2.expect("an object")).expect("a group")
}

fn def(n: u32) -> OPCITEMDEF {
    OPCITEMDEF {
        access_path: Some(String::new()),
        item_id: Some(name(n)),
        active: 1,
        client: n,
        blob: everywire::Bytes::new(),
        requested_type: 0,
        reserved: 0,
    }
}

/// Reads a second of so many items.
fn remote(address: &str, items: u32) -> f64 {
    reading(address, items, rate)
}

/// Has a read of so many items done as often as `repeat` wants.
fn reading<T>(address: &str, items: u32, repeat: impl FnOnce(&mut dyn FnMut()) -> T) -> T {
    let client = Node::new();
    let server = client.connect::<dyn DataAccessServer>(address).expect("an address");
    let group = group(&client, &server);
    let defs: Vec<_> = (0..items).map(def).collect();
    let added = group.add_items(&defs).expect("items").value.0;
    let handles: Vec<u32> = added.iter().map(|item| item.server).collect();
    let mut last = vec![0.0; handles.len()];
    repeat(&mut || {
        let (states, errors) =
            IOPCSyncIO::read(&*group, OPCDATASOURCE::OpcDsCache, &handles).expect("values").value;
        look(&states, &errors, &mut last);
    })
}

/// The same without a wire.
fn in_process(items: u32) -> f64 {
    let begun = FileTime::now();
    let table = table();
    let points: Vec<Point> = (0..items).filter_map(|n| table.point(&name(n))).collect();
    let engine = Engine::new(table, Settings::default());
    let client = engine.client().expect("room");
    let moment = Moment { ticks: 0, time: FileTime::now() };
    let asked = GroupState { active: true, rate: 1000, ..GroupState::default() };
    let group = client.add_group(asked).expect("a group");
    let defs: Vec<_> =
        (0..items).map(|n| ItemDef { id: name(n), active: true, ..ItemDef::default() }).collect();
    let added = group.add_items(&defs, moment).expect("items");
    let handles: Vec<u32> = added.into_iter().map(|added| added.expect("an item").server).collect();
    // They change meanwhile.
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let setter = std::thread::spawn(move || {
        for turn in (1_u32..).take_while(|_| !ends.load(Ordering::Relaxed)) {
            points.iter().for_each(|point| point.set(turn as f32));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let (mut samples, mut last) = (Vec::new(), vec![0.0; handles.len()]);
    let found = rate(&mut || {
        group.read_into(&handles, ReadFrom::Cache, moment, &mut samples).expect("values");
        assert_eq!(samples.len(), last.len());
        for (sample, last) in samples.iter().zip(&mut last) {
            let Ok(sample) = sample else { panic!("no value: {sample:?}") };
            let Data::R4(value) = sample.value.data else { panic!("no float: {sample:?}") };
            assert!(sample.value.quality == Quality::GOOD && sample.value.time >= begun && value >= *last);
            *last = value;
        }
    });
    is_over.store(true, Ordering::Relaxed);
    setter.join().expect("it ends");
    found
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", level] => return serve(level),
        ["within"] => {
            for items in [ITEMS, 1] {
                println!(
                    "in process, {items} items a read: {:.0} items a second",
                    in_process(items) * f64::from(items)
                );
            }
            return;
        }
        ["read", address, items, count] => {
            let count: u32 = count.parse().expect("a number");
            return reading(address, items.parse().expect("a number"), |read| {
                (0..count).for_each(|_| read())
            });
        }
        ["echo", asked, answered] => {
            return echo(asked.parse().expect("a number"), answered.parse().expect("a number"));
        }
        _ => {}
    }
    for items in [ITEMS, 1] {
        let raw = raw(items as usize);
        println!("{items} items a read: bare TCP {raw:.0} round trips a second");
        for level in ["none", "connect", "integrity", "privacy"] {
            let server = Other::start(&["serve", level]);
            let address = match level {
                "none" => format!("{}?level=none", server.1),
                _ => format!("{}?level={level}", server.1.replace("dcom://", "dcom://ada:open%20sesame@")),
            };
            let reads = remote(&address, items);
            println!(
                "  {level}: {reads:.0} reads, {:.0} items a second; {:.2} bare round trips",
                reads * f64::from(items),
                raw / reads
            );
        }
        let reads = in_process(items);
        println!("  in process: {reads:.0} reads, {:.0} items a second", reads * f64::from(items));
    }
}
