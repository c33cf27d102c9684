//! Every pair of wires: callers on the one, a shop on the other.

use super::{Running, Scratch, Store, WIRES, contract, order, place, shop_at, start};
use everywire::model::{Answer, Interface, Request, Servant, Sink, Source};
use everywire::{Failure, Kind, Node, Ref, Value};
use everywire_dynamic::{DynamicObject, ObjectContract};
use everywire_tests::locker;
use everywire_tests::shop::market::{FindError, Missing, Shop, Watcher};
use serde_json::json;
use std::sync::{Arc, Mutex};

/// What callers hear with.
struct Ear(Mutex<Vec<String>>);

impl Watcher for Ear {
    fn heard(&self, what: &str) -> Result<i32, Failure> {
        self.0.lock().unwrap().push(what.to_owned());
        Ok(i32::try_from(what.len()).unwrap())
    }
}

/// A shop on `far`, a broker, and a caller on `near`.
struct World {
    _backend: Node,
    store: Arc<Store>,
    broker: Running,
    client: Node,
    shop: Ref<dyn Shop>,
}

fn world(near: &str, far: &str) -> World {
    let scratch = Box::leak(Box::new(Scratch::new()));
    world_at(&place(near, "front", scratch), &place(near, "client", scratch), far, scratch)
}

/// The same with the addresses of the broker's listener and of the client.
fn world_at(front: &str, client_at: &str, far: &str, scratch: &Scratch) -> World {
    let (backend, store, target) = shop_at(&place(far, "backend", scratch));
    let broker = start(&format!(
        r#"
        [listen.front]
        address = "{front}"
        [listen.back]
        address = "{}"
        [[route]]
        name = "shop"
        from = "front"
        callbacks = "back"
        match = {{ key = "store" }}
        to = "{target}"
        contract = "{}"
        interface = "market::Shop"
        "#,
        place(far, "back", scratch),
        contract(),
    ));
    let client = Node::new();
    client.listen(client_at).unwrap();
    let reference = broker.reference("shop");
    let shop = client.connect::<dyn Shop>(&reference).unwrap();
    World { _backend: backend, store, broker, client, shop }
}

/// What every pair of wires carries.
fn values_and_oneways(world: &World, several: bool) {
    let World { store, shop, .. } = world;
    assert_eq!(shop.get_orders(3).unwrap(), [order(0), order(1), order(2)]);
    match shop.mix(7, "äbc") {
        Ok(mixed) => assert!(several && mixed == (3, 3.5, "cbä".into()), "{mixed:?}"),
        Err(failure) => assert!(!several && failure.kind() == Kind::Unsupported, "{failure}"),
    }
    assert_eq!(shop.title().unwrap(), "shop");
    shop.set_title("corner").unwrap();
    assert_eq!(shop.title().unwrap(), "corner");
    assert_eq!(*store.title.lock().unwrap(), "corner");
    shop.note("one").unwrap();
    let notes = store.notes.lock().unwrap();
    let (notes, waited) =
        store.noted.wait_timeout_while(notes, super::LONG, |notes| notes.is_empty()).unwrap();
    assert!(!waited.timed_out());
    assert_eq!(*notes, ["one"]);
    drop(notes);
    assert_eq!(shop.noted().unwrap(), 1);
}

/// References: callbacks come back through the broker, and what it gave leads back to what was meant.
fn references(world: &World) {
    let ear = Arc::new(Ear(Mutex::default()));
    let own = world.client.export::<dyn Watcher>("ear", ear.clone());
    let told = world.shop.tell(Some(own.clone()), "hello");
    assert_eq!(told.unwrap_or_else(|failure| panic!("{failure}: {:?}", world.broker.log.lock())), 6);
    assert_eq!(world.shop.tell(Some(own), "you").unwrap(), 4);
    assert_eq!(*ear.0.lock().unwrap(), ["hello", "you"]);
    let branch = world.shop.branch("east").unwrap().expect("a branch");
    assert_eq!(branch.title().unwrap(), "east");
    assert_eq!(world.shop.title_of(Some(branch)).unwrap(), "east");
    assert_eq!(world.shop.title_of(None).unwrap(), "nil");
}

/// Callers at an address where nobody listens are called over the connections that they have made, each over its own: also where another
/// one has an object of the same name at the same address, as one that comes again has.
#[test]
fn callbacks_come_over_the_connection_of_a_caller_that_nobody_reaches() {
    let behind_a_wall = "iiop://127.0.0.1:0?bidirectional=on&publish=127.0.0.1:1";
    for far in ["iiop", "dbus"] {
        let scratch = Scratch::new();
        let world = world_at("iiop://127.0.0.1:0?bidirectional=on", behind_a_wall, far, &scratch);
        references(&world);
        let other = Node::new();
        other.listen(behind_a_wall).unwrap();
        let ear = Arc::new(Ear(Mutex::default()));
        let own = other.export::<dyn Watcher>("ear", ear.clone());
        let shop = other.connect::<dyn Shop>(&world.broker.reference("shop")).unwrap();
        assert_eq!(shop.tell(Some(own), "again").unwrap(), 6);
        assert_eq!(*ear.0.lock().unwrap(), ["again"], "{far}");
    }
}

fn exceptions(world: &World, typed: bool) {
    assert_eq!(world.shop.find(4).unwrap(), order(4));
    match world.shop.find(-4) {
        Err(FindError::Missing(missing)) => {
            assert!(typed);
            assert_eq!(missing, Missing { number: -4, why: "no -4".into() });
        }
        Err(_) if !typed => {}
        other => panic!("{other:?}"),
    }
}

/// Tries all pairs that begin on one wire.
fn from(near: &str) {
    let typed = |wire: &str| wire != "dcop";
    let refers = |wire: &str| !matches!(wire, "net.tcp" | "basic");
    for far in WIRES {
        println!("{near} to {far}");
        let world = world(near, far);
        values_and_oneways(&world, near != "dcop" && far != "dcop");
        exceptions(&world, typed(near) && typed(far));
        if refers(near) && refers(far) {
            references(&world);
        } else {
            let failure = world.shop.branch("east").unwrap_err();
            // DCOP says no more than that a call failed.
            let kind = if near == "dcop" { Kind::Internal } else { Kind::Unsupported };
            assert_eq!(failure.kind(), kind, "{failure}");
        }
        assert!(world.broker.metric("calls_total{route=\"shop\",outcome=\"done\"}") > 6.0);
    }
}

#[test]
fn iiop_to_every_wire() {
    from("iiop");
}

#[test]
fn dbus_to_every_wire() {
    from("dbus");
}

#[test]
fn dcop_to_every_wire() {
    from("dcop");
}

#[test]
fn dcom_to_every_wire() {
    from("dcom");
}

#[test]
fn net_tcp_to_every_wire() {
    from("net.tcp");
}

#[test]
fn basic_http_to_every_wire() {
    from("basic");
}

/// Keeps one thing. What it gives as "bare" says of the thing what foreign programs say of each object that they pass so: nothing.
struct Locker {
    node: everywire::WeakNode,
    kept: Mutex<Option<everywire::Reference>>,
}

impl locker::ILocker for Locker {
    fn keep(&self, what: Option<everywire::Reference>) -> Result<Option<String>, Failure> {
        *self.kept.lock().unwrap() = what.clone();
        let node = self.node.upgrade().expect("it runs");
        node.narrow::<dyn locker::IThing>(what.expect("not nil"))?.name()
    }
    fn kept(&self) -> Result<Option<everywire::Reference>, Failure> {
        Ok(self.kept.lock().unwrap().clone())
    }
    fn find(&self, _: &locker::IID) -> Result<Option<everywire::Reference>, Failure> {
        self.kept()
    }
    fn bare(&self) -> Result<Option<everywire::Reference>, Failure> {
        let unknown = "00000000-0000-0000-c000-000000000046";
        Ok(self.kept()?.map(|kept| kept.with_type(unknown.to_owned())))
    }
}

struct Thing;

impl locker::IThing for Thing {
    fn name(&self) -> Result<Option<String>, Failure> {
        Ok(Some("spanner".into()))
    }
}

/// COM's objects that are passed as `IUnknown`: what the reference itself says decides, or the object when it is asked.
#[test]
fn an_object_that_is_passed_as_anything_crosses_by_the_interface_that_it_names() {
    let scratch = Scratch::new();
    let backend = Node::new();
    backend.listen(&place("dcom", "backend", &scratch)).unwrap();
    let kept = Arc::new(Locker { node: backend.downgrade(), kept: Mutex::default() });
    let target = backend.print_friendly(backend.export::<dyn locker::ILocker>("locker", kept).reference());
    let contract = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contracts/locker.midl");
    let text = format!(
        "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"locker\"\nmatch = {{ key = \"locker\" }}\nto = \"{target}\"\n\
         contract = \"{}\"\ninterface = \"ILocker\"\n",
        place("dcom", "front", &scratch),
        contract.display(),
    );
    let report = everywire_broker::check(super::config(&text).unwrap()).unwrap().remove(0);
    for (name, crossing) in &report.operations {
        let everywire_broker::Fidelity::Loses(lost) = crossing else { panic!("{name}: {crossing:?}") };
        assert!(lost[0].contains("is refused if it says that its object has an interface that"), "{lost:?}");
    }
    let broker = start(&text);
    let client = Node::new();
    client.listen(&place("dcom", "client", &scratch)).unwrap();
    let locker = client.connect::<dyn locker::ILocker>(&broker.reference("locker")).unwrap();
    let thing = client.export::<dyn locker::IThing>("thing", Arc::new(Thing));
    // The server calls it by the broker, and gives it back.
    assert_eq!(locker.keep(Some(thing.reference().clone())).unwrap().as_deref(), Some("spanner"));
    let named = |reference: Option<everywire::Reference>| {
        client.narrow::<dyn locker::IThing>(reference.expect("not nil")).unwrap().name().unwrap()
    };
    assert_eq!(named(locker.kept().unwrap()).as_deref(), Some("spanner"));
    let iid = locker::IID::of::<dyn locker::IThing>();
    assert_eq!(named(locker.find(&iid).unwrap()).as_deref(), Some("spanner"));
    // One that the server made itself.
    let own = backend.export::<dyn locker::IThing>("own", Arc::new(Thing));
    let direct = backend.narrow::<dyn locker::ILocker>(backend.reference("locker").unwrap()).unwrap();
    direct.keep(Some(own.reference().clone())).unwrap();
    assert_eq!(named(locker.kept().unwrap()).as_deref(), Some("spanner"));
    // One that says no more than that it is an object is asked by whoever gets it.
    assert_eq!(named(locker.bare().unwrap()).as_deref(), Some("spanner"));
}

/// Gives back what it gets.
struct Echo(everywire::model::Hold<Interface>);

impl Servant for Echo {
    fn interface(&self) -> &Interface {
        &self.0
    }
    fn dispatch(&self, mut request: Request) {
        let operation = &self.0.operations[request.index()];
        let given = request
            .body()
            .read(|source: &mut dyn Source<'_>| Value::decode(&operation.arguments, source))
            .unwrap();
        let Value::Struct(given) = given else { panic!("{given:?}") };
        let answer = Value::Struct(vec![("return".into(), given[0].1.clone())]);
        request.answer(Answer::Done(&|sink: &mut dyn Sink| answer.encode(&operation.results, sink)));
    }
}

/// The data contract mapping tells the name of a type only; its members are those of the contract, whether an operation names the type or not.
#[test]
fn a_value_of_any_type_crosses_to_wcf_with_a_type_that_no_operation_names() {
    let scratch = Scratch::new();
    let path = scratch.path("safe.idl");
    let idl = "module paint { enum Color { red, green }; struct Pot { Color color; wstring label; }; };\n\
               interface Safe { any swap(in any content); };";
    std::fs::write(&path, idl).unwrap();
    let object_contract = || {
        ObjectContract::from_file(std::path::Path::new(&path), &everywire_idl::Preprocessing::default())
            .unwrap()
    };
    let backend = Node::new();
    backend.listen(&place("net.tcp", "backend", &scratch)).unwrap();
    let safe = object_contract().interface("Safe").unwrap().clone();
    let target = backend.print_friendly(&backend.export_servant("safe", Arc::new(Echo(safe))));
    let broker = start(&format!(
        "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"safe\"\nmatch = {{ key = \"safe\" }}\nto = \"{target}\"\ncontract = \"{path}\"\n",
        place("iiop", "front", &scratch),
    ));
    let client = Node::new();
    // By the broker, and without it.
    for address in [&broker.reference("safe"), &target] {
        let safe = DynamicObject::with_contract(&client, address, object_contract()).unwrap();
        let pot = json!({"shape": "paint::Pot", "value": {"color": "red", "label": "a"}});
        for held in [json!({"shape": "paint::Color", "value": "green"}), pot] {
            let answer = safe.call("swap", json!({ "content": held })).unwrap();
            assert_eq!(answer, json!({ "return": held }));
        }
    }
}

/// What a target answers and the caller's wire has no way to write is no mistake of the caller's, and no success.
#[test]
fn results_that_a_caller_cannot_be_told_are_failures_of_the_servers() {
    let world = world("basic", "iiop");
    "x\u{1}".clone_into(&mut world.store.title.lock().unwrap());
    let failure = world.shop.title().unwrap_err();
    assert_eq!(failure.kind(), Kind::Internal, "{failure}");
    assert_eq!(world.broker.metric(r#"calls_total{route="shop",outcome="done"}"#), 0.0);
    assert_eq!(world.broker.metric(r#"calls_total{route="shop",outcome="internal"}"#), 1.0);
    super::until("the log tells of it", || {
        let log = world.broker.log.lock().unwrap();
        log.iter().any(|line| {
            line.contains("\"unanswered\"") && line.contains("\"route\":\"shop\"") && line.contains("title")
        })
    });
}
