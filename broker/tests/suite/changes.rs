//! Configurations that change while calls are under way, and the end.

use super::{Running, Scratch, Store, config, contract, shop_at, start, until};
use everywire::{Kind, Node};
use everywire_tests::shop::market::Shop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

fn text(listen: &str, target: &str, more: &str) -> String {
    format!(
        r#"
        [listen.front]
        address = "{listen}"
        [[route]]
        name = "shop"
        to = "{target}"
        contract = "{}"
        interface = "Shop"
        {more}
        "#,
        contract(),
    )
}

const FRONT: &str = "iiop://127.0.0.1:0";

fn call_on(broker: &Running, over: &Arc<AtomicBool>, done: &Arc<AtomicU32>) -> thread::JoinHandle<()> {
    let (over, done) = (Arc::clone(over), Arc::clone(done));
    let reference = broker.reference("shop");
    thread::spawn(move || {
        let client = Node::new();
        let shop = client.connect::<dyn Shop>(&reference).unwrap();
        let mut n = 0;
        while !over.load(Ordering::Relaxed) {
            assert_eq!(shop.count(n).unwrap_or_else(|failure| panic!("call {n}: {failure:?}")), n);
            done.fetch_add(1, Ordering::Relaxed);
            n += 1;
        }
    })
}

#[test]
fn no_call_is_lost_while_routes_are_swapped() {
    let (_first, one, a) = shop_at(FRONT);
    let (_second, two, b) = shop_at(FRONT);
    let broker = start(&text(FRONT, &a, ""));
    let (over, done): (Arc<AtomicBool>, Arc<AtomicU32>) = Default::default();
    let callers: Vec<_> = (0..3).map(|_| call_on(&broker, &over, &done)).collect();
    for round in 0..100 {
        let target = if round % 2 == 0 { &b } else { &a };
        broker.broker.reload(config(&text(FRONT, target, "retries = 0")).unwrap()).unwrap();
        let before = done.load(Ordering::Relaxed);
        until("calls go on", || done.load(Ordering::Relaxed) > before);
    }
    over.store(true, Ordering::Relaxed);
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    let served: u32 =
        [&one, &two].iter().map(|store| store.counted.lock().unwrap().values().sum::<u32>()).sum();
    assert_eq!(served, done.load(Ordering::Relaxed), "each call ran once");
    assert!(!two.counted.lock().unwrap().is_empty());
    assert!((broker.metric(r#"reloads_total{result="taken"}"#) - 100.0).abs() < 0.1);
}

#[test]
fn a_call_under_way_ends_by_the_route_that_it_began_with() {
    let (_first, one, a) = shop_at(FRONT);
    let (_second, two, b) = shop_at(FRONT);
    let broker = start(&text(FRONT, &a, ""));
    let reference = broker.reference("shop");
    one.shut(true);
    let call = thread::spawn(move || Node::new().connect::<dyn Shop>(&reference).unwrap().count(1));
    one.wait_for(1);
    broker.broker.reload(config(&text(FRONT, &b, "")).unwrap()).unwrap();
    let client = Node::new();
    assert_eq!(client.connect::<dyn Shop>(&broker.reference("shop")).unwrap().count(2).unwrap(), 2);
    assert_eq!(two.counted.lock().unwrap().len(), 1);
    one.shut(false);
    assert_eq!(call.join().unwrap().unwrap(), 1);
}

#[test]
fn the_largest_message_holds_for_listeners_that_stay_open_too() {
    let (backend, store) = (Node::from(Node::builder().max_message(16 << 20).build()), Store::new());
    backend.listen(FRONT).unwrap();
    let target = backend.print_friendly(backend.export::<dyn Shop>("shop", store.clone()).reference());
    let broker = start(&text(FRONT, &target, ""));
    let reference = broker.reference("shop");
    let large = "x".repeat(6 << 20);
    // Each time by a new connection.
    let set = || {
        let client = Node::from(Node::builder().max_message(16 << 20).build());
        client.connect::<dyn Shop>(&reference).unwrap().set_title(&large)
    };
    set().unwrap_err();
    let more = format!("max-message = \"16MiB\"\n{}", text(FRONT, &target, ""));
    broker.broker.reload(config(&more).unwrap()).unwrap();
    set().unwrap();
    broker.broker.reload(config(&text(FRONT, &target, "")).unwrap()).unwrap();
    set().unwrap_err();
    assert_eq!(broker.reference("shop"), reference, "the listener stayed");
}

#[test]
fn a_file_with_mistakes_leaves_all_as_it_was() {
    let (_backend, _, target) = shop_at(FRONT);
    let broker = start(&text(FRONT, &target, ""));
    let file = super::Scratch::new();
    let path = file.path("broker.toml");
    std::fs::write(&path, text(FRONT, &target, "retires = 3")).unwrap();
    let mistakes = broker.broker.reload_file(std::path::Path::new(&path)).unwrap_err();
    assert!(mistakes.to_string().contains("did you mean `retries`?"), "{mistakes}");
    let client = Node::new();
    assert_eq!(client.connect::<dyn Shop>(&broker.reference("shop")).unwrap().count(1).unwrap(), 1);
    assert!(broker.log.lock().unwrap().iter().any(|line| line.contains("not reloaded")));
    // A listener that cannot be opened, too, and the others of that file stay closed.
    let taken = format!(
        "{}\n[listen.more]\naddress = \"{}\"",
        text(FRONT, &target, ""),
        broker.broker.address("front").unwrap()
    );
    let mistakes = broker.broker.reload(config(&taken).unwrap()).unwrap_err();
    assert!(mistakes.to_string().contains("cannot listen at"), "{mistakes}");
    assert_eq!(broker.broker.addresses().len(), 1);
    assert_eq!(client.connect::<dyn Shop>(&broker.reference("shop")).unwrap().count(2).unwrap(), 2);
    assert!((broker.metric(r#"reloads_total{result="refused"}"#) - 2.0).abs() < 0.1);
}

#[test]
fn listeners_and_objects_come_and_go() {
    let (_backend, _, target) = shop_at(FRONT);
    let broker = start(&text(FRONT, &target, ""));
    let client = Node::new();
    let first = client.connect::<dyn Shop>(&broker.reference("shop")).unwrap();
    first.noted().unwrap();
    let more = format!(
        "{}\n[listen.more]\naddress = \"{FRONT}\"",
        text(FRONT, &target, "match = { key = \"other\" }")
    );
    broker.broker.reload(config(&more).unwrap()).unwrap();
    assert!(first.noted().is_err(), "its object is no more");
    for (_, address, _) in broker.broker.references() {
        assert!(address.ends_with("/other"), "{address}");
        client.connect::<dyn Shop>(&address).unwrap().noted().unwrap();
    }
    assert_eq!(broker.broker.references().len(), 2);
    let gone = broker.broker.address("more").unwrap();
    broker.broker.reload(config(&text(FRONT, &target, "")).unwrap()).unwrap();
    assert_eq!(broker.broker.addresses().len(), 1);
    first.noted().unwrap();
    let fresh = Node::new();
    until("the listener is closed", || {
        fresh.connect::<dyn Shop>(&format!("{gone}other")).unwrap().noted().is_err()
    });
}

/// A reference that was passed on is known after a change of the configuration too, and forgotten with its object.
#[test]
fn references_outlive_a_change_and_end_with_their_objects() {
    let (backend, _store, target) = shop_at(FRONT);
    let broker = start(&text(FRONT, &target, ""));
    let held = || broker.metric("references{route=\"shop\"}");
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&broker.reference("shop")).unwrap();
    let branch = shop.branch("east").unwrap().expect("a branch");
    broker.broker.reload(config(&text(FRONT, &target, "retries = 1")).unwrap()).unwrap();
    assert_eq!(branch.title().unwrap(), "east");
    assert_eq!(shop.title_of(Some(branch.clone())).unwrap(), "east", "it is led back");
    assert!((held() - 1.0).abs() < 0.1, "{}", held());
    for (key, _) in backend.exported().into_iter().filter(|(key, _)| key != "shop") {
        backend.withdraw(&key);
    }
    assert_eq!(branch.title().unwrap_err().kind(), Kind::NoObject);
    assert!(held().abs() < 0.1, "{}", held());
}

/// Those that nobody can reach any more make room for others, also where they were used more lately.
#[test]
fn references_to_those_who_left_make_room() {
    let (backend, _store, target) = shop_at(FRONT);
    let more = "references = 2";
    let broker = start(&text(FRONT, &target, more));
    let held = || broker.metric("references{route=\"shop\"}");
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&broker.reference("shop")).unwrap();
    let branches: Vec<_> = (0..2).map(|_| shop.branch("east").unwrap().expect("a branch")).collect();
    drop(shop);
    let (_other, _, elsewhere) = shop_at(FRONT);
    broker.broker.reload(config(&text(FRONT, &elsewhere, more)).unwrap()).unwrap();
    backend.stop_within(std::time::Duration::ZERO);
    branches[0].title().unwrap_err();
    let shop = client.connect::<dyn Shop>(&broker.reference("shop")).unwrap();
    let west = shop.branch("west").unwrap().expect("a branch");
    assert_eq!(west.title().unwrap(), "west");
    assert_eq!(branches[0].title().unwrap_err().kind(), Kind::NoObject);
    assert_eq!(branches[1].title().unwrap_err().kind(), Kind::Unreachable, "nobody knew that it was gone");
    assert!((held() - 2.0).abs() < 0.1, "{}", held());
}

/// Objects that were passed on by a route are served no longer than that.
#[test]
fn references_go_with_their_route() {
    let (_backend, _store, target) = shop_at(FRONT);
    let broker = start(&text(FRONT, &target, ""));
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&broker.reference("shop")).unwrap();
    let branch = shop.branch("east").unwrap().expect("a branch");
    let other = text(FRONT, &target, "").replace("name = \"shop\"", "name = \"other\"");
    broker.broker.reload(config(&other).unwrap()).unwrap();
    assert_eq!(branch.title().unwrap_err().kind(), Kind::NoObject);
}

#[test]
fn a_broker_that_ends_answers_what_is_under_way() {
    let (_backend, store, target) = shop_at(FRONT);
    let broker = start(&text(FRONT, &target, ""));
    let reference = broker.reference("shop");
    store.shut(true);
    let call = thread::spawn(move || Node::new().connect::<dyn Shop>(&reference).unwrap().count(1));
    store.wait_for(1);
    let stopping = thread::spawn(move || broker.broker.stop());
    store.shut(false);
    assert_eq!(call.join().unwrap().unwrap(), 1);
    stopping.join().unwrap();
}

/// Whoever calls while a broker begins hears nothing of objects that do not exist: they are there before anybody can call. Here another listener
/// takes its time, since its bus never greets.
#[test]
fn who_calls_while_a_broker_begins_finds_the_objects() {
    let (_backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let scratch = Scratch::new();
    let path = scratch.path("bus");
    let bus = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let listener = std::net::TcpListener::bind((super::own_loopback(), 0)).unwrap();
    let address = format!("iiop://{}", listener.local_addr().unwrap());
    drop(listener);
    let text = format!(
        "[listen.front]\naddress = \"{address}\"\n[listen.slow]\naddress = \"dbus:unix:path={path}#org.example.Slow\"\n[[route]]\nname = \"shop\"\nfrom = \"front\"\nto = \"{target}\"\ncontract = \"{}\"\ninterface = \"Shop\"\n",
        contract()
    );
    let begins = thread::spawn(move || super::try_start(&text).is_ok());
    let (held, _) = bus.accept().unwrap();
    let shop = Node::new().connect::<dyn Shop>(&format!("{address}/shop")).unwrap();
    assert_eq!(shop.count(1).unwrap(), 1);
    // It cannot listen everywhere.
    drop((held, bus));
    assert!(!begins.join().unwrap());
}

/// A target that is the same in the file that is read again goes on as it is: its breaker is as open as before.
#[test]
fn a_breaker_stays_open_over_a_change_that_does_not_concern_it() {
    let (backend, _, target) = shop_at(FRONT);
    backend.stop();
    let more = "breaker = { failures = 1, pause = \"1000s\" }";
    for contract in ["", "contract"] {
        let text = |more: &str| match contract {
            "" => format!(
                "[listen.front]\naddress = \"{FRONT}\"\n[[route]]\nname = \"shop\"\nto = \"{target}\"\n{more}\n"
            ),
            _ => text(FRONT, &target, more),
        };
        let broker = start(&text(more));
        let client = Node::new();
        let shop = client.connect::<dyn Shop>(&broker.reference("shop")).unwrap();
        assert_ne!(shop.noted().unwrap_err().kind(), Kind::Busy);
        let alone =
            |shop: &everywire::Ref<dyn Shop>| shop.noted().unwrap_err().to_string().contains("left alone");
        assert!(alone(&shop), "{contract}");
        let other =
            format!("{more}\nlimit = {{ calls = 5 }}\nedits = [{{ put = \"0x45570001\", value = \"x\" }}]");
        for more in [more, other.as_str(), more] {
            broker.broker.reload(config(&text(more)).unwrap()).unwrap();
            assert!(alone(&shop), "{contract} {more}");
        }
        // Another breaker begins anew.
        broker.broker.reload(config(&text("breaker = { failures = 1, pause = \"999s\" }")).unwrap()).unwrap();
        assert!(!alone(&shop), "{contract}");
    }
}

/// What calls under way take of a route's limits is counted by the same limits in the file that is read again.
#[test]
fn limits_count_calls_from_before_a_change() {
    let (_backend, store, target) = shop_at(FRONT);
    let limit = "limit = { calls = 1 }";
    let broker = start(&text(FRONT, &target, limit));
    let (reference, client) = (broker.reference("shop"), Node::new());
    let shop = client.connect::<dyn Shop>(&reference).unwrap();
    store.shut(true);
    let call = thread::spawn(move || Node::new().connect::<dyn Shop>(&reference).unwrap().count(1));
    store.wait_for(1);
    for more in [limit, "limit = { calls = 1 }\nretries = 1"] {
        broker.broker.reload(config(&text(FRONT, &target, more)).unwrap()).unwrap();
        assert_eq!(shop.noted().unwrap_err().kind(), Kind::Busy, "{more}");
    }
    broker.broker.reload(config(&text(FRONT, &target, "limit = { calls = 2 }")).unwrap()).unwrap();
    assert_eq!(shop.noted().unwrap(), 0);
    store.shut(false);
    assert_eq!(call.join().unwrap().unwrap(), 1);
}

#[test]
fn a_password_that_is_taken_back_counts_no_more_for_whoever_connects() {
    let (_backend, _, target) = shop_at(FRONT);
    let folder = super::Scratch::new();
    let users = private(&folder, "users", "ada:old");
    let front = format!("dcom://127.0.0.1:0?users={users}");
    let broker = start(&text(&front, &target, ""));
    let reference = broker.reference("shop");
    let as_ada = |password: &str| reference.replacen("dcom://", &format!("dcom://ada:{password}@"), 1);
    let count = |client: &Node, password: &str| {
        client.connect::<dyn Shop>(&as_ada(password)).and_then(|shop| shop.count(1))
    };
    let before = Node::new();
    assert_eq!(count(&before, "old").unwrap(), 1);
    private(&folder, "users", "ada:new");
    broker.broker.reload(config(&text(&front, &target, "")).unwrap()).unwrap();
    assert_eq!(broker.reference("shop"), reference, "the socket stayed");
    assert_eq!(count(&Node::new(), "old").unwrap_err().kind(), Kind::Refused);
    assert_eq!(count(&Node::new(), "new").unwrap(), 1);
    assert_eq!(count(&before, "old").unwrap(), 1, "a connection that is open stays");
    // The same place by another option, too.
    let others = private(&folder, "others", "ada:third");
    let port = broker.broker.address("front").unwrap();
    broker
        .broker
        .reload(config(&text(&front.replace(&users, &others), &target, "")).unwrap())
        .unwrap_or_else(|mistakes| panic!("at {port}: {mistakes}"));
    assert_eq!(broker.broker.address("front").unwrap(), port);
    assert_eq!(count(&Node::new(), "new").unwrap_err().kind(), Kind::Refused);
    assert_eq!(count(&Node::new(), "third").unwrap(), 1);
    // A file that cannot be used leaves all as it was.
    std::fs::remove_file(&others).unwrap();
    let same = config(&text(&front.replace(&users, &others), &target, "")).unwrap();
    broker.broker.reload(same).unwrap_err();
    assert_eq!(count(&Node::new(), "third").unwrap(), 1);
}

#[test]
fn certificates_that_changed_count_for_whoever_connects() {
    let (_backend, _, target) = shop_at(FRONT);
    let folder = super::Scratch::new();
    for name in ["server", "ada", "bob"] {
        let made = std::process::Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args([
                "-keyout",
                &folder.path(&format!("{name}.key")),
                "-out",
                &folder.path(&format!("{name}.pem")),
            ])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let pair = ["key", "pem"]
            .map(|kind| std::fs::read_to_string(folder.path(&format!("{name}.{kind}"))).unwrap());
        private(&folder, name, &pair.concat());
    }
    let (shown, clients) = (folder.path("shown"), folder.path("clients"));
    let serves = |name: &str, client: &str| {
        private(&folder, "shown", &std::fs::read_to_string(folder.path(name)).unwrap());
        std::fs::copy(folder.path(&format!("{client}.pem")), &clients).unwrap();
    };
    serves("server", "ada");
    let front = format!("iiops://127.0.0.1:0?cert={shown}&clients={clients}");
    let broker = start(&text(&front, &target, ""));
    let reference = broker.reference("shop");
    let count = |server: &str, client: &str| {
        let (ca, cert) = (folder.path(&format!("{server}.pem")), folder.path(client));
        let mark = if reference.contains('?') { '&' } else { '?' };
        let address = format!("{reference}{mark}ca={ca}&cert={cert}");
        Node::new().connect::<dyn Shop>(&address).and_then(|shop| shop.count(1))
    };
    assert_eq!(count("server", "ada").unwrap(), 1);
    serves("bob", "bob");
    broker.broker.reload(config(&text(&front, &target, "")).unwrap()).unwrap();
    assert_eq!(count("bob", "bob").unwrap(), 1);
    assert_eq!(count("server", "bob").unwrap_err().kind(), Kind::Refused, "another certificate is shown");
    assert_eq!(count("bob", "ada").unwrap_err().kind(), Kind::Refused, "that client is let in no more");
}

#[test]
fn what_an_open_socket_keeps_is_not_changed_in_silence() {
    let (_backend, _, target) = shop_at(FRONT);
    let broker = start(&text(&format!("{FRONT}?idle=5m"), &target, ""));
    let other = config(&text(&format!("{FRONT}?idle=6m"), &target, "")).unwrap();
    let mistakes = broker.broker.reload(other).unwrap_err().to_string();
    assert!(
        mistakes.contains("`idle=` of an address that is listened at already cannot change"),
        "{mistakes}"
    );
}

/// A file of this user's own.
pub(super) fn private(folder: &super::Scratch, name: &str, text: &str) -> String {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder.path(name);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    path
}
