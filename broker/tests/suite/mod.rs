//! What the tests share: a shop behind the broker, and a place on each wire.

mod admin;
mod attacks;
mod bridges;
mod callbacks;
mod cancels;
mod changes;
mod checks;
mod copies;
mod crossings;
mod fire;
mod foreign;
mod interfaces;
mod leases;
mod loops;
mod passing;
mod points;
mod policies;
mod redirects;
mod signals;
mod targets;

use everywire::model::Program;
use everywire::{Failure, Initiator, Kind, Node, Ref};
use everywire_broker::{Broker, Config, Mistakes};
use everywire_tests::shop::market::{FindError, Item, Missing, Order, Shop, State, Watcher};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

/// How long a test waits at the most; it ends with an event.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// A folder of this test's own.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("everywire-broker-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        // Left over from a process with the same number that was killed: it is nobody's any more.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Listeners take their own sockets away at the same moment, each of which ends an attempt early.
        let _ = (0..100).any(|_| std::fs::remove_dir_all(&self.0).is_ok());
    }
}

/// The wires, each with a way to listen there.
pub(crate) const WIRES: [&str; 6] = ["iiop", "dbus", "dcop", "dcom", "net.tcp", "basic"];

/// An address to listen at on a wire, in a folder; `name` tells listeners of a test apart.
pub(crate) fn place(wire: &str, name: &str, scratch: &Scratch) -> String {
    match wire {
        "iiop" => "iiop://127.0.0.1:0".into(),
        "dbus" => format!("dbus+unix://{}", scratch.path(&format!("{name}.bus"))),
        "dcop" => format!("dcop+unix://{}#{name}", dcop_server()),
        "dcom" => format!("dcom+unix://{}", scratch.path(&format!("{name}.com"))),
        "net.tcp" => "net.tcp://127.0.0.1:0?security=none".into(),
        "basic" => "basic://127.0.0.1:0?security=none".into(),
        _ => panic!("no wire {wire}"),
    }
}

/// The socket of a DCOP server of this process's own.
fn dcop_server() -> &'static str {
    static SOCKET: OnceLock<String> = OnceLock::new();
    SOCKET.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("everywire-broker-dcop-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        for (name, file) in [("HOME", ""), ("ICEAUTHORITY", "authority"), ("DCOPAUTHORITY", "server")] {
            // SAFETY: no other thread of this test runs yet that reads variables.
            unsafe { std::env::set_var(name, folder.join(file)) };
        }
        let socket = folder.join("socket").display().to_string();
        let program: &Program = &everywire::wires::named("dcop").unwrap().programs()[0];
        let mut server = (program.open)(&[("socket", Some(socket.as_str()))]).unwrap();
        let stop = everywire::hub::Stop::new().unwrap();
        std::thread::spawn(move || {
            everywire::hub::run(&mut *server, &everywire::hub::Settings::default(), &stop).unwrap();
        });
        let begun = std::time::Instant::now();
        // Its file is the last thing that it writes.
        while !folder.join("server").exists() {
            assert!(begun.elapsed() < LONG, "the server did not come up");
            std::thread::sleep(Duration::from_millis(5));
        }
        socket
    })
}

/// The contract.
pub(crate) fn contract() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contracts/shop.idl").display().to_string()
}

/// The contract, which says that `count` may run twice.
pub(crate) fn marked(scratch: &Scratch) -> String {
    let text = std::fs::read_to_string(contract()).unwrap();
    let (before, behind) = text.split_once("    long count(").unwrap();
    let path = scratch.path("marked.idl");
    std::fs::write(&path, format!("{before}#pragma idempotent count\n    long count({behind}")).unwrap();
    path
}

/// A broker by a text, whose log the test may read.
pub(crate) struct Running {
    pub(crate) broker: Broker,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
}

pub(crate) fn start(text: &str) -> Running {
    try_start(text).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

pub(crate) fn try_start(text: &str) -> Result<Running, Mistakes> {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&log);
    let sink = Arc::new(move |line: &str| kept.lock().unwrap().push(line.to_owned()));
    let broker = Broker::start(config(text)?.verbose(), sink)?;
    Ok(Running { broker, log })
}

pub(crate) fn config(text: &str) -> Result<Config, Mistakes> {
    Config::parse(text, "broker.toml", Path::new(env!("CARGO_MANIFEST_DIR")))
}

impl Running {
    /// The reference of a route at its first listener.
    pub(crate) fn reference(&self, route: &str) -> String {
        let all = self.broker.references();
        all.iter()
            .find(|(name, ..)| name == route)
            .unwrap_or_else(|| panic!("no {route} in {all:?}"))
            .1
            .clone()
    }

    /// The value of a metric, written with its labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.broker.metrics();
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("everywire_broker_{name} ")));
        line.map_or(0.0, |value| value.parse().unwrap())
    }
}

/// A shop.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) title: Mutex<String>,
    pub(crate) notes: Mutex<Vec<String>>,
    pub(crate) noted: Condvar,
    /// Where its branches are served.
    node: Mutex<Option<everywire::WeakNode>>,
    /// How often each count ran.
    pub(crate) counted: Mutex<HashMap<i32, u32>>,
    /// Calls of `count` wait while it is shut.
    pub(crate) shut: Mutex<bool>,
    pub(crate) changed: Condvar,
    pub(crate) waiting: AtomicI32,
}

impl Store {
    pub(crate) fn new() -> Arc<Self> {
        let store = Self::default();
        "shop".clone_into(&mut store.title.lock().unwrap());
        Arc::new(store)
    }

    /// Holds up calls of `count`, or lets them go on.
    pub(crate) fn shut(&self, shut: bool) {
        *self.shut.lock().unwrap() = shut;
        self.changed.notify_all();
    }

    /// Waits until so many calls of `count` are held up.
    pub(crate) fn wait_for(&self, calls: i32) {
        until("calls are held up", || self.waiting.load(Ordering::SeqCst) >= calls);
    }
}

/// An address of the loopback network that no other test has: a port of it that is given back is taken by nobody else before a target
/// comes back there, and whoever calls there while it is away is refused.
pub(crate) fn own_loopback() -> String {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    format!("127.{}.{middle}.{low}", 64 | (high & 0x3f))
}

/// Waits for something that has no event.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Shop for Store {
    fn title(&self) -> Result<String, Failure> {
        Ok(self.title.lock().unwrap().clone())
    }
    fn set_title(&self, value: &str) -> Result<(), Failure> {
        value.clone_into(&mut self.title.lock().unwrap());
        Ok(())
    }
    fn get_orders(&self, n: i32) -> Result<Vec<Order>, Failure> {
        Ok((0..n).map(order).collect())
    }
    fn mix(&self, a: i32, text: &str) -> Result<(i32, f64, String), Failure> {
        let turned: String = text.chars().rev().collect();
        Ok((i32::try_from(turned.chars().count()).unwrap(), f64::from(a) / 2.0, turned))
    }
    fn find(&self, number: i32) -> Result<Order, FindError> {
        if number < 0 {
            return Err(FindError::Missing(Missing { number, why: format!("no {number}") }));
        }
        Ok(order(number))
    }
    fn note(&self, what: &str) -> Result<(), Failure> {
        self.notes.lock().unwrap().push(what.to_owned());
        self.noted.notify_all();
        Ok(())
    }
    fn noted(&self) -> Result<i32, Failure> {
        Ok(i32::try_from(self.notes.lock().unwrap().len()).unwrap())
    }
    fn tell(&self, w: Option<Ref<dyn Watcher>>, what: &str) -> Result<i32, Failure> {
        let nobody = || Failure::new(Kind::BadArgument, Initiator::User, "nobody to tell");
        Ok(w.ok_or_else(nobody)?.heard(what)? + 1)
    }
    fn branch(&self, name: &str) -> Result<Option<Ref<dyn Shop>>, Failure> {
        let node = self.node.lock().unwrap().as_ref().and_then(everywire::WeakNode::upgrade);
        let branch = Self::new();
        name.clone_into(&mut branch.title.lock().unwrap());
        Ok(node.map(|node| node.export_anonymous::<dyn Shop>(branch)))
    }
    fn title_of(&self, s: Option<Ref<dyn Shop>>) -> Result<String, Failure> {
        s.map_or_else(|| Ok("nil".into()), |shop| shop.title())
    }
    fn count(&self, n: i32) -> Result<i32, Failure> {
        *self.counted.lock().unwrap().entry(n).or_default() += 1;
        let shut = self.shut.lock().unwrap();
        if *shut {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let waited = self.changed.wait_timeout_while(shut, LONG, |shut| *shut).unwrap();
            drop(waited);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(n)
    }
}

pub(crate) fn order(number: i32) -> Order {
    let item = |name: &str, count| Item { name: name.into(), count, price: f64::from(count) * 1.5 };
    Order { number, status: State::Shipped, lines: vec![item("bolt", number), item("nut ä", 2)] }
}

/// A shop at an address: the node, the store, and its reference.
pub(crate) fn shop_at(address: &str) -> (Node, Arc<Store>, String) {
    let (node, store) = (Node::new(), Store::new());
    let address = address.replace("127.0.0.1", &own_loopback());
    node.listen(&address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
    let shop = node.export::<dyn Shop>("shop", store.clone());
    *store.node.lock().unwrap() = Some(node.downgrade());
    let reference = node.print_friendly(shop.reference());
    (node, store, reference)
}
