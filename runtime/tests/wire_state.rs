//! What a wire keeps for a node: it exports, makes and withdraws objects, is told of signals, and woken by time.

#![allow(clippy::unwrap_used)]

use crate::plain;
use crate::plain::{Honest, LONG, Plain, Probe, Ticked, probe_at, until};
use everywire_model::signal::Listener;
use everywire_model::{
    Emission, Failure, Hold, Initiator, Kind, Object, Objects, Ref, SignalFilter, Subscription, WireState,
};
use everywire_runtime::{Builder, Node, asker};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

static KEPT: Plain = Plain { keeps: Some(keep), ..Plain::of(&["kept"]) };

fn keep(objects: Arc<dyn Objects>) -> Arc<dyn WireState> {
    let house = Arc::new(House {
        objects,
        due: Mutex::new(None),
        tended: AtomicUsize::new(0),
        heard: Mutex::default(),
        asked: AtomicUsize::new(0),
        left: AtomicUsize::new(0),
    });
    HOUSES.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&house));
    house
}

/// Every house that was made, by tests that run at the same time: each looks for its own.
static HOUSES: Mutex<Vec<Arc<House>>> = Mutex::new(Vec::new());

struct House {
    objects: Arc<dyn Objects>,
    due: Mutex<Option<Instant>>,
    tended: AtomicUsize,
    heard: Mutex<Vec<String>>,
    asked: AtomicUsize,
    left: AtomicUsize,
}

impl WireState for House {
    fn emit(&self, emission: &Emission<'_>) -> Result<(), Failure> {
        self.heard.lock().unwrap().push(format!(
            "{} {}",
            String::from_utf8_lossy(emission.key),
            emission.topic.typed()?.1.name
        ));
        Ok(())
    }

    fn subscribe(
        &self,
        _: &Object,
        _: SignalFilter<'_>,
        _: &Listener,
    ) -> Option<Result<Subscription, Failure>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Some(Err(Failure::new(Kind::Refused, Initiator::Here, "asked otherwise")))
    }

    fn leave(&self) {
        self.left.fetch_add(1, Ordering::SeqCst);
    }

    fn due(&self) -> Option<Instant> {
        *self.due.lock().unwrap()
    }

    fn tend(&self, now: Instant) {
        let mut due = self.due.lock().unwrap();
        assert!(due.is_some_and(|due| due <= now));
        // Twice in all, then no more.
        *due = (self.tended.fetch_add(1, Ordering::SeqCst) == 0).then(|| now + Duration::from_millis(5));
    }
}

/// A server with a servant, its house, and the address of the servant.
fn serve() -> (Node, Ref<dyn Probe>, Arc<House>, String) {
    let server = Builder::new(&[&KEPT]).shards(1).build();
    let bound = server.listen("kept://127.0.0.1:0").unwrap();
    let exported = server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let marker = server.export::<dyn Probe>(bound.as_bytes(), Arc::new(Honest::default()));
    drop(marker);
    let houses = HOUSES.lock().unwrap();
    let own =
        houses.iter().find(|house| house.objects.keys().iter().any(|key| key == bound.as_bytes())).unwrap();
    (server, exported, Arc::clone(own), probe_at(&bound))
}

#[test]
fn time_comes_to_a_house_only_when_it_is_due() {
    let (server, _, house, _) = serve();
    assert_eq!(house.tended.load(Ordering::SeqCst), 0);
    *house.due.lock().unwrap() = Some(Instant::now() + Duration::from_millis(5));
    house.objects.attend();
    until("both times have come", || house.tended.load(Ordering::SeqCst) == 2);
    // Again after a rest, and earlier than what was waited for.
    *house.due.lock().unwrap() = Some(Instant::now() + LONG);
    house.objects.attend();
    *house.due.lock().unwrap() = Some(Instant::now());
    house.objects.attend();
    until("the third time has come", || house.tended.load(Ordering::SeqCst) == 3);
    drop(server);
}

#[test]
fn a_house_exports_makes_and_withdraws_objects() {
    let (server, _, house, address) = serve();
    let client = Builder::new(&[&KEPT]).shards(1).build();
    let skeleton = || <dyn Probe as everywire_model::Remote>::skeleton(Arc::new(Honest::default()));
    let at = |key: &[u8]| address.replace("probe", std::str::from_utf8(key).unwrap());

    let key = house.objects.export(vec![skeleton()]);
    let far = client.connect::<dyn Probe>(&at(&key)).unwrap();
    assert_eq!(far.add_one(1).unwrap(), 2);
    house.objects.withdraw(&key);
    assert!(far.add_one(1).unwrap_err().message().contains("no object"));

    assert!(house.objects.create(b"class", "ann").is_none());
    server.export_class::<dyn Probe>("class", |_| {
        assert_eq!(asker().as_deref(), Some("ann"));
        Ok(Arc::new(Honest::default()))
    });
    server.export_class_servants("broken", Hold::Static(plain::interface()), |_| {
        Err(Failure::new(Kind::Busy, Initiator::Here, "no more"))
    });
    let classes: Vec<_> = house.objects.classes().into_iter().map(|(key, _)| key).collect();
    assert_eq!(classes, ["broken", "class"]);
    let first = house.objects.create(b"class", "ann").unwrap().unwrap();
    let second = house.objects.create(b"class", "ann").unwrap().unwrap();
    assert_ne!(first, second);
    assert_eq!(client.connect::<dyn Probe>(&at(&second)).unwrap().add_one(4).unwrap(), 5);
    assert_eq!(house.objects.create(b"broken", "ann").unwrap().unwrap_err().kind(), Kind::Busy);
    assert_eq!(asker(), None, "nothing is being made");
    // A class is no object.
    let class = client.connect::<dyn Probe>(&at(b"class")).unwrap();
    assert!(class.add_one(1).unwrap_err().message().contains("no object"));
}

#[test]
fn a_house_is_told_of_signals_and_asked_for_subscriptions() {
    let (_server, exported, house, address) = serve();
    exported.signals().emit(&Ticked(7)).unwrap();
    assert_eq!(*house.heard.lock().unwrap(), ["probe ticked"]);

    let client = Builder::new(&[&KEPT]).shards(1).build();
    let far = client.connect::<dyn Probe>(&address).unwrap();
    let refused = far.signals().on(|Ticked(_)| ()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Refused, "{refused}");
}

#[test]
fn a_house_leaves_once() {
    let (server, exported, house, _) = serve();
    server.stop();
    assert_eq!(house.left.load(Ordering::SeqCst), 1);
    drop((server, exported));
    assert_eq!(house.left.load(Ordering::SeqCst), 1);
}

#[test]
fn ways_of_different_scopes_do_not_share_a_connection() {
    let (server, _, _, address) = serve();
    server.export::<dyn Probe>("pear", Arc::new(Honest::default()));
    server.export::<dyn Probe>("other", Arc::new(Honest::default()));
    let client = Builder::new(&[&KEPT]).shards(1).build();
    for (key, connections) in [("probe", 1), ("pear", 1), ("other", 2)] {
        let far = client.connect::<dyn Probe>(&address.replace("probe", key)).unwrap();
        assert_eq!(far.add_one(1).unwrap(), 2);
        assert_eq!(server.connections(), connections, "{key}");
    }
}
