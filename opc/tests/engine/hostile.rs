use super::{Plant, rate};
use everywire_opc::{Code, Data, Feed, GroupState, Item, ItemDef, ReadFrom, Source, VarType, Vqt, Write};
use std::sync::{Arc, Mutex};

#[test]
fn names_of_any_kind_are_only_names() {
    let plant = Plant::new();
    for name in ["..", ".", "\u{0}", "a\u{0}b", "Tank.", ".Tank", "\u{feff}", &"x.".repeat(5000)] {
        let group = plant.client.add_group(GroupState { name: name.to_owned(), ..rate(100) });
        assert_eq!(group.is_ok(), name.len() <= 4096, "{name:?}");
        let def = ItemDef { id: name.to_owned(), ..ItemDef::default() };
        let added = plant.group(rate(10)).add_items(&[def], plant.now).expect("it lives");
        assert_eq!(added.first().and_then(|added| added.err()), Some(Code::UNKNOWN_ITEM), "{name:?}");
        assert!(plant.table.child("", name).is_none(), "{name:?}");
    }
}

/// A source that tells from within each of its methods, and from another thread at the same time.
#[test]
fn a_source_may_tell_at_any_time() {
    #[derive(Default)]
    struct Chatty(Mutex<Vec<Feed>>);
    impl Chatty {
        fn chat(&self) {
            for feed in self.0.lock().expect("nobody panics").iter() {
                feed.tell(Vqt::good(1_i32, everywire_opc::FileTime::default()));
            }
        }
    }
    impl Source for Chatty {
        fn find(&self, id: &str) -> Option<Arc<Item>> {
            self.chat();
            Some(Arc::new(Item::new(id, VarType::I4).writable()))
        }
        fn children(&self, _: &str, _: Option<&str>) -> Option<everywire_opc::Children> {
            None
        }
        fn read(&self, items: &[Arc<Item>]) -> Vec<Result<Vqt, Code>> {
            self.chat();
            items.iter().map(|_| Err(Code::FAIL)).collect()
        }
        fn write(&self, writes: &[Write]) -> Vec<Code> {
            self.chat();
            // Fewer answers than were asked for.
            writes.iter().skip(1).map(|_| Code::OK).collect()
        }
        fn watch(&self, _: &Arc<Item>, feed: Feed) -> bool {
            self.0.lock().expect("nobody panics").push(feed);
            self.chat();
            true
        }
    }
    let source = Arc::new(Chatty::default());
    let engine =
        everywire_opc::Engine::new(Arc::clone(&source) as Arc<_>, everywire_opc::Settings::default());
    let client = engine.client().expect("a client");
    let plant = Plant { engine, client, ..Plant::new() };
    let group = plant.group(rate(10));
    let items = plant.add(&group, &["a", "b"]);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..1000).for_each(|_| source.chat()));
        for _ in 0..100 {
            plant.engine.due(plant.now).iter().for_each(|group| drop(group.update(plant.now)));
            let read = group.read(&items, ReadFrom::Device, plant.now).expect("it lives");
            assert!(read.iter().all(|read| read == &Err(Code::FAIL)));
            let values = [Data::I4(1).into(), Data::I4(2).into()];
            assert_eq!(group.write(&items, &values), Ok(vec![Code::OK, Code::FAIL]));
        }
    });
    // Feeds of what nobody has any more say so.
    group.remove_items(&items).expect("it lives");
    let feeds = source.0.lock().expect("nobody panics");
    assert!(feeds.len() >= items.len() && feeds.iter().all(|feed| !feed.is_wanted()));
}
