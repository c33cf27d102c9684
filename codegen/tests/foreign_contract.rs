//! Shapes that OMG IDL cannot say, and types without a name, generated, compiled and carried.

use crate::contracts::foreign as made;
use crate::foreign::deep::{Archive, ArchiveBurnt};
use crate::foreign::{
    Inventory, InventoryAsync, InventoryClosed, InventoryFind2ResultItem, InventorySold, Item, describe,
};
use crate::memory::{World, block_on};
use crate::tape::TAPE;
use everywire_model::body::Handle;
use everywire_model::shape::{Order, PointerKind, Shape};
use everywire_model::{Failure, Kind, Operation, Ref, Remote, SignalEvent, TypedSignal};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

fn handle() -> Handle {
    Arc::new(std::fs::File::open("/dev/null").unwrap().into())
}

fn item(label: &str) -> Item {
    Item {
        label: label.into(),
        price: Some(2.5),
        tags: BTreeMap::from([("old".into(), 1), ("new".into(), 2)]),
        always: Box::new(7),
        perhaps: None,
        file: handle(),
        tail: vec![1, -2],
    }
}

#[derive(Default)]
struct Store(Mutex<Vec<String>>);

impl Inventory for Store {
    fn store(&self, item: &Item, limit: &Option<u64>, path: &str) -> Result<Option<i8>, Failure> {
        let tags: Vec<_> = item.tags.iter().collect();
        self.0.lock().unwrap().push(format!("{} {tags:?} {limit:?} {path}", item.label));
        Ok(item.perhaps.as_ref().map(|_| 1))
    }
    fn capacity(&self) -> Result<u32, Failure> {
        Ok(12)
    }
    fn find(&self, at: i64, unnamed: u32) -> Result<Vec<(i32, String)>, Failure> {
        Ok(vec![(-1, at.to_string()), (1, unnamed.to_string())])
    }
    fn find_2(&self, prices: &[(f64, i32)]) -> Result<Vec<InventoryFind2ResultItem>, Failure> {
        assert_eq!(prices, [(0.5, 1), (0.25, 2)]);
        Ok(vec![long(), long()])
    }
    fn on(&self, shared: &BTreeMap<(String, bool), i32>) -> Result<(Handle,), Failure> {
        assert_eq!(shared.get(&("a".into(), true)), Some(&3));
        Ok((handle(),))
    }
}

impl Archive for Store {
    fn watch(&self) -> Result<(), Failure> {
        Ok(())
    }
}

fn long() -> InventoryFind2ResultItem {
    InventoryFind2ResultItem {
        field_1: 1,
        field_2: 2,
        field_3: 3,
        field_4: 4,
        field_5: 5,
        field_6: 6,
        field_7: 7,
        field_8: 8,
        field_9: 9,
        field_10: 10,
        field_11: 11,
        field_12: 12,
        field_13: 13,
    }
}

fn check(object: &dyn Inventory) {
    assert_eq!(object.store(&item("chair"), &Some(3), "/a").unwrap(), None);
    assert_eq!(object.capacity().unwrap(), 12);
    assert_eq!(object.find(i64::MAX, 9).unwrap(), [(-1, i64::MAX.to_string()), (1, "9".into())]);
    assert_eq!(object.find_2(&[(0.5, 1), (0.25, 2)]).unwrap(), [long(), long()]);
    let (file,) = object.on(&BTreeMap::from([(("a".into(), true), 3)])).unwrap();
    assert_eq!(Arc::strong_count(&file), 2, "the tape holds the other");
}

#[test]
fn values_that_other_languages_have_travel_both_ways() {
    let (world, store) = (World::speaking(&TAPE), Arc::new(Store::default()));
    check(&*world.serve::<dyn Inventory>("store", store.clone()));
    check(&*world.serve::<dyn Archive>("archive", store.clone()));
    let stored = "chair [(\"new\", 2), (\"old\", 1)] Some(3) /a";
    assert_eq!(*store.0.lock().unwrap(), [stored, stored]);
    world.object("archive").into_typed::<dyn Archive>().watch().unwrap();
}

#[test]
fn the_asynchronous_face_carries_the_same() {
    let world = World::speaking(&TAPE);
    world.export::<dyn Inventory>("store", Arc::new(Store::default()));
    let object: Ref<dyn InventoryAsync> = world.object("store").into_typed();
    block_on(async {
        assert_eq!(object.find(1, 2).await.unwrap(), [(-1, "1".to_owned()), (1, "2".to_owned())]);
        assert_eq!(object.find_2(&[(0.5, 1), (0.25, 2)]).await.unwrap().len(), 2);
    });
}

#[test]
fn signals_reach_those_who_listen_here_and_elsewhere() {
    let world = World::speaking(&TAPE);
    let here = world.export::<dyn Inventory>("store", Arc::new(Store::default()));
    let there: Ref<dyn Inventory> = world.object("store").into_typed();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = |place: &'static str| {
        let heard = Arc::clone(&heard);
        move |sold: InventorySold| {
            let to: Vec<_> = sold.to.into_iter().collect();
            heard.lock().unwrap().push(format!("{place} {} {} {to:?}", sold.item.label, sold.price));
        }
    };
    let first = here.signals().on(listener("here")).unwrap();
    let second = there.signals().on(listener("there")).unwrap();
    let closed = Arc::clone(&heard);
    let third = there
        .signals()
        .watch(move |event: SignalEvent<InventoryClosed>| {
            closed.lock().unwrap().push(format!("{event:?}"));
        })
        .unwrap();
    let sold =
        InventorySold { item: item("table"), price: 1.5, to: BTreeMap::from([(("me".into(), false), 0.5)]) };
    here.signals().emit(&sold).unwrap();
    drop(first);
    here.signals().emit(&sold).unwrap();
    here.signals().emit(&InventoryClosed {}).unwrap();
    let to = "table 1.5 [((\"me\", false), 0.5)]";
    let expected = [format!("here {to}"), format!("there {to}"), format!("there {to}")];
    assert_eq!(heard.lock().unwrap()[..3], expected);
    assert_eq!(heard.lock().unwrap()[3], "Signal(InventoryClosed)");
    drop((second, third));
    assert_eq!(world.listeners(), 0);
    assert_eq!(there.signals().emit(&sold).unwrap_err().kind(), Kind::BadArgument);
    here.signals().changed("Capacity").unwrap();
    assert_eq!(here.signals().changed("capacity").unwrap_err().kind(), Kind::BadArgument);
    assert_eq!(world.changed(), ["Capacity"]);
}

#[test]
fn a_derived_interface_lists_what_it_inherits_and_emits_its_own() {
    let world = World::speaking(&TAPE);
    let archive = world.export::<dyn Archive>("archive", Arc::new(Store::default()));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listening = Arc::clone(&heard);
    let burnt =
        archive.signals().on(move |burnt: ArchiveBurnt| listening.lock().unwrap().push(burnt)).unwrap();
    let what = BTreeMap::from([(("x".to_owned(), true), "/y".to_owned())]);
    archive.signals().emit(&ArchiveBurnt { what: what.clone() }).unwrap();
    assert_eq!(*heard.lock().unwrap(), [ArchiveBurnt { what }]);
    drop(burnt);
    let names = |interface: &everywire_model::Interface| -> Vec<String> {
        interface.signals.iter().map(|signal| format!("{} {}", signal.label, signal.name)).collect()
    };
    let made = made::contract();
    for generated in [<dyn Inventory>::interface(), <dyn Archive>::interface()] {
        assert_eq!(names(generated), names(made.interface(&generated.id).unwrap()));
    }
    assert_eq!(ArchiveBurnt::signal().name, "Burnt");
}

#[test]
fn shapes_survive_generation() {
    let contract = made::contract();
    for generated in [<dyn Inventory>::interface(), <dyn Archive>::interface()] {
        let made = contract.interface(&generated.name).unwrap();
        assert_eq!(made.operations.len(), generated.operations.len());
        for (made, generated) in made.operations.iter().zip(generated.operations.iter()) {
            assert_eq!(format!("{:?}", shapes(generated)), format!("{:?}", shapes(made)));
            assert_eq!((&generated.name, &generated.label), (&made.name, &made.label));
        }
        assert_eq!(generated.attributes[0].notify, made.attributes[0].notify);
    }
    let fields = &describe::ITEM.fields;
    assert!(matches!(&fields[4].shape, Shape::Pointer(pointer) if pointer.kind == PointerKind::Unique));
    assert!(
        matches!(&fields[6].shape, Shape::Sequence(tail) if tail.order == Order::ConformantVarying && tail.bound == Some(9))
    );
    // A pointer that is never null is always there; one that may be null is an option.
    let _: fn(Item) -> Box<u16> = |item| item.always;
    let _: fn(Item) -> Option<Box<String>> = |item| item.perhaps;
}

/// Names and shapes of what goes in, then of what comes out.
fn shapes(operation: &Operation) -> Vec<(String, String)> {
    [&operation.arguments, &operation.results]
        .into_iter()
        .flat_map(|list| list.fields())
        .map(|field| (field.name.to_string(), field.shape.noun().to_string()))
        .collect()
}
