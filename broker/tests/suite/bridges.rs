//! Every pair of wires: callers on the one, a shop on the other.

use super::{Running, Scratch, Store, WIRES, contract, order, place, shop_at, start};
use everywire::{Failure, Kind, Node, Ref};
use everywire_tests::shop::market::{FindError, Missing, Shop, Watcher};
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
    let (backend, store, target) = shop_at(&place(far, "backend", scratch));
    let broker = start(&format!(
        r#"
        [listen.front]
        address = "{}"
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
        place(near, "front", scratch),
        place(far, "back", scratch),
        contract(),
    ));
    let client = Node::new();
    client.listen(&place(near, "client", scratch)).unwrap();
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
