//! Contracts in introspection XML: properties, signals, types without a name, handles, variants.

use crate::bench_dbus_xml::benchmarking::dbus::{Interface, InterfaceAsync, InterfaceHello};
use crate::gallery_xml::org::example::{
    Gallery, GalleryAsync, GalleryClosed, GalleryHung, GalleryMoved, GallerySurveyResultItem, gallery,
};
use crate::memory::{World, block_on};
use crate::tape::TAPE;
use everywire_model::body::Handle;
use everywire_model::describe::TEXT;
use everywire_model::{
    Bytes, Emits, Failure, Kind, Notify, Ref, Remote, Shape, SignalEvent, Subscription, TypedSignal, Value,
    Variant,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// The servant of the races; it emits through what `export` gave it.
#[derive(Default)]
struct Bench(OnceLock<Ref<dyn Interface>>);

impl Interface for Bench {
    fn void_call(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn in_int_call(&self, arg1: i32) -> Result<(), Failure> {
        assert_eq!(arg1, 7);
        Ok(())
    }
    fn out_int_call(&self) -> Result<i32, Failure> {
        Ok(42)
    }
    fn in_out_int_call(&self, arg1: i32) -> Result<i32, Failure> {
        Ok(arg1 + 1)
    }
    fn in_string_call(&self, arg1: &str) -> Result<(), Failure> {
        assert_eq!(arg1, "in");
        Ok(())
    }
    fn out_string_call(&self) -> Result<String, Failure> {
        Ok("out".into())
    }
    fn in_out_string_call(&self, arg1: &str) -> Result<String, Failure> {
        Ok(arg1.to_uppercase())
    }
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        Ok(vec![5; n.try_into().unwrap()].into())
    }
    fn fire(&self, n: u32) -> Result<(), Failure> {
        let exported = self.0.get().unwrap();
        (0..n).try_for_each(|i| exported.signals().emit(&InterfaceHello { i }))
    }
}

#[test]
fn the_races_by_introspection() {
    let (world, servant) = (World::speaking(&TAPE), Arc::new(Bench::default()));
    let exported = world.export::<dyn Interface>("benchmarking/dbus", servant.clone());
    assert!(servant.0.set(exported).is_ok());
    let object: Ref<dyn Interface> = world.object("benchmarking/dbus").into_typed();
    object.void_call().unwrap();
    object.in_int_call(7).unwrap();
    assert_eq!((object.out_int_call().unwrap(), object.in_out_int_call(1).unwrap()), (42, 2));
    object.in_string_call("in").unwrap();
    assert_eq!(object.out_string_call().unwrap(), "out");
    assert_eq!(object.in_out_string_call("loud").unwrap(), "LOUD");
    assert_eq!(object.get_bytes(1000).unwrap(), vec![5; 1000]);

    let heard = Arc::new(Mutex::new(Vec::new()));
    let listening = Arc::clone(&heard);
    let subscription =
        object.signals().on(move |hello: InterfaceHello| listening.lock().unwrap().push(hello.i)).unwrap();
    object.fire(3).unwrap();
    drop(subscription);
    object.fire(3).unwrap();
    assert_eq!(*heard.lock().unwrap(), [0, 1, 2]);
    assert_eq!(<dyn Interface>::interface().id, "benchmarking.dbus.interface");
    let asynchronous: Ref<dyn InterfaceAsync> = world.object("benchmarking/dbus").into_typed();
    assert_eq!(block_on(asynchronous.in_out_int_call(5)).unwrap(), 6);
}

#[derive(Default)]
struct Hall {
    title: Mutex<String>,
    labels: Mutex<BTreeMap<String, String>>,
    knocks: Mutex<Vec<String>>,
}

type Basics = (u8, bool, i16, u16, i32, u32, i64, u64, f64, String, String, String);
type Tree = BTreeMap<String, BTreeMap<String, BTreeMap<String, Variant>>>;
type Containers = (Bytes, i64, BTreeMap<u32, String>, Vec<(f64, String)>, Tree);

impl Gallery for Hall {
    fn basics(
        &self,
        y: u8,
        b: bool,
        n: i16,
        q: u16,
        i: i32,
        u: u32,
        x: i64,
        t: u64,
        d: f64,
        s: &str,
        o: &str,
        g: &str,
    ) -> Result<Basics, Failure> {
        Ok((y, b, n, q, i, u, x, t, d, s.into(), o.into(), g.into()))
    }
    fn containers(
        &self,
        bytes: Bytes,
        numbers: &[i32],
        rows: &[Vec<String>],
        names: &BTreeMap<String, u32>,
        weights: &[(f64, String)],
        tree: &Tree,
    ) -> Result<Containers, Failure> {
        let total = numbers.iter().copied().map(i64::from).sum::<i64>() + i64::try_from(rows.len()).unwrap();
        let names = names.iter().map(|(name, number)| (*number, name.clone())).collect();
        Ok((bytes, total, names, weights.to_vec(), tree.clone()))
    }
    fn list_pictures(&self) -> Result<Vec<(String, String, (f64, f64), BTreeMap<String, Variant>)>, Failure> {
        Ok(vec![("/1".into(), "Dawn".into(), (0.5, -1.5), details()), picture("/2"), picture("/3")])
    }
    fn survey(&self) -> Result<Vec<GallerySurveyResultItem>, Failure> {
        Ok(vec![survey()])
    }
    fn swap(&self, value: &Variant) -> Result<Variant, Failure> {
        Ok(value.clone())
    }
    fn open(&self, path: &str) -> Result<Handle, Failure> {
        Ok(Arc::new(std::fs::File::open(path).unwrap().into()))
    }
    fn knock(&self, arg_1: &str, arg_2: u32) -> Result<(), Failure> {
        self.knocks.lock().unwrap().push(format!("{arg_1} {arg_2}"));
        Ok(())
    }
    fn watch(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn title(&self) -> Result<String, Failure> {
        Ok(self.title.lock().unwrap().clone())
    }
    fn set_title(&self, value: &str) -> Result<(), Failure> {
        value.clone_into(&mut self.title.lock().unwrap());
        Ok(())
    }
    fn visitors(&self) -> Result<u32, Failure> {
        Ok(9)
    }
    fn founded(&self) -> Result<(u8, u16, u16), Failure> {
        Ok((1, 2, 1999))
    }
    fn get_survey(&self) -> Result<Vec<(String, String)>, Failure> {
        Ok(vec![("walls".into(), "white".into())])
    }
    fn labels(&self) -> Result<BTreeMap<String, String>, Failure> {
        Ok(self.labels.lock().unwrap().clone())
    }
    fn set_labels(&self, value: &BTreeMap<String, String>) -> Result<(), Failure> {
        self.labels.lock().unwrap().clone_from(value);
        Ok(())
    }
}

fn details() -> BTreeMap<String, Variant> {
    let list = Value::List(vec![Value::Integer(1), Value::Integer(-2)]);
    BTreeMap::from([
        ("by".to_owned(), Variant::new(TEXT, Value::Text("somebody".into()))),
        ("sizes".to_owned(), Variant::new(Shape::sequence(Shape::I32), list)),
    ])
}

fn picture(path: &str) -> (String, String, (f64, f64), BTreeMap<String, Variant>) {
    (path.into(), String::new(), (0.0, 0.0), BTreeMap::new())
}

fn survey() -> GallerySurveyResultItem {
    GallerySurveyResultItem {
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
        field_13: "all".into(),
    }
}

fn hall() -> (World, Arc<Hall>, Ref<dyn Gallery>, Ref<dyn Gallery>) {
    let (world, servant) = (World::speaking(&TAPE), Arc::new(Hall::default()));
    let here = world.export::<dyn Gallery>("hall", servant.clone());
    let there = world.object("hall").into_typed();
    (world, servant, here, there)
}

#[test]
fn every_type_there_and_back() {
    let (_, servant, _, gallery) = hall();
    let basics = gallery.basics(1, true, -2, 3, -4, 5, i64::MIN, u64::MAX, 0.5, "s", "/o", "a{sv}").unwrap();
    assert_eq!(
        basics,
        (1, true, -2, 3, -4, 5, i64::MIN, u64::MAX, 0.5, "s".into(), "/o".into(), "a{sv}".into())
    );
    let tree = BTreeMap::from([("/a".to_owned(), BTreeMap::from([("b.c".to_owned(), details())]))]);
    let names = BTreeMap::from([("one".to_owned(), 1), ("two".to_owned(), 2)]);
    let weights = [(2.5, "b".to_owned()), (0.5, "a".to_owned())];
    let rows = [vec!["x".to_owned()], vec![]];
    let (bytes, total, numbers, back, tree_back) =
        gallery.containers(Bytes::from_static(b"\0\xff"), &[3, -1], &rows, &names, &weights, &tree).unwrap();
    assert_eq!((&bytes[..], total), (&b"\0\xff"[..], 4));
    assert_eq!(numbers, BTreeMap::from([(1, "one".to_owned()), (2, "two".to_owned())]));
    // Keys without an order stay in that of the message.
    assert_eq!(back, weights);
    assert_eq!(tree_back, tree);

    let pictures = gallery.list_pictures().unwrap();
    assert_eq!(pictures[0], ("/1".into(), "Dawn".into(), (0.5, -1.5), details()));
    assert_eq!(pictures[1..], [picture("/2"), picture("/3")]);
    assert_eq!(gallery.survey().unwrap(), [survey()]);
    let swapped = Variant::new(TEXT, Value::Text("x".into()));
    assert_eq!(gallery.swap(&swapped).unwrap(), swapped);
    let file = gallery.open("/dev/null").unwrap();
    assert!(std::fs::File::from(file.try_clone().unwrap()).metadata().unwrap().len() == 0);
    gallery.knock("who", 2).unwrap();
    assert_eq!(*servant.knocks.lock().unwrap(), ["who 2"]);
    gallery.watch().unwrap();
}

#[test]
fn properties_are_attributes() {
    let (world, _, here, there) = hall();
    there.set_title("Night").unwrap();
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    there.set_labels(&labels).unwrap();
    assert_eq!((there.title().unwrap().as_str(), there.labels().unwrap()), ("Night", labels));
    assert_eq!((there.visitors().unwrap(), there.founded().unwrap()), (9, (1, 2, 1999)));
    assert_eq!(there.get_survey().unwrap(), [("walls".to_owned(), "white".to_owned())]);
    let told: Vec<_> = <dyn Gallery>::interface()
        .attributes
        .iter()
        .map(|attribute| (attribute.name.as_ref(), attribute.notify))
        .collect();
    assert_eq!(
        told,
        [
            ("Title", Notify::Value),
            ("Visitors", Notify::Change),
            ("Founded", Notify::Constant),
            ("Survey", Notify::Value),
            ("Labels", Notify::Nothing),
        ]
    );
    here.signals().changed("Title").unwrap();
    here.signals().changed("Visitors").unwrap();
    assert_eq!(world.changed(), ["Title", "Visitors"]);
    assert_eq!(here.signals().changed("Doors").unwrap_err().kind(), Kind::BadArgument);
}

#[test]
fn signals_reach_those_who_listen_here_and_elsewhere() {
    let (world, _, here, there) = hall();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listen = |to: &Ref<dyn Gallery>, place: &'static str| -> Subscription {
        let heard = Arc::clone(&heard);
        to.signals().on(move |hung: GalleryHung| heard.lock().unwrap().push((place, hung))).unwrap()
    };
    let subscriptions = (listen(&here, "here"), listen(&there, "there"));
    let closed = Arc::new(Mutex::new(0));
    let count = Arc::clone(&closed);
    there.signals().on(move |_: GalleryClosed| *count.lock().unwrap() += 1).unwrap().forever();
    let hung = GalleryHung { path: "/4".into(), details: details(), at: (1.0, 2.0) };
    here.signals().emit(&hung).unwrap();
    here.signals().emit(&GalleryClosed {}).unwrap();
    assert_eq!(*heard.lock().unwrap(), [("here", hung.clone()), ("there", hung.clone())]);
    assert_eq!(*closed.lock().unwrap(), 1);
    drop(subscriptions);
    assert_eq!(world.listeners(), 1);
    let failure = there.signals().emit(&hung).unwrap_err();
    assert_eq!(failure.message(), "only the process that serves an object emits its signals");
}

#[test]
fn a_signal_of_numbers_with_a_tuple_arrives() {
    let (_world, _, here, there) = hall();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listening = Arc::clone(&heard);
    let subscription =
        there.signals().on(move |moved: GalleryMoved| listening.lock().unwrap().push(moved)).unwrap();
    let moved = GalleryMoved { picture: 4, wall: 2, by: (0.5, -1.5) };
    here.signals().emit(&moved).unwrap();
    drop(subscription);
    assert_eq!(*heard.lock().unwrap(), [moved]);
}

#[test]
fn a_signal_that_does_not_decode_is_told() {
    let (_, _, here, there) = hall();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listening = Arc::clone(&heard);
    let subscription = there
        .signals()
        .watch(move |event: SignalEvent<GalleryHung>| {
            listening.lock().unwrap().push(match event {
                SignalEvent::Signal(hung) => hung.path,
                SignalEvent::OwnerLost(failure)
                | SignalEvent::Undecodable(failure)
                | SignalEvent::Disconnected(failure) => {
                    format!("{:?}", failure.kind())
                }
            });
        })
        .unwrap();
    // The same signal with other fields, as of another version of the contract.
    struct Other;
    impl Emits<Other> for dyn Gallery {}
    impl TypedSignal for Other {
        fn interface() -> &'static everywire_model::Interface {
            GalleryHung::interface()
        }
        fn signal() -> &'static everywire_model::Signal {
            GalleryHung::signal()
        }
        fn read(_: &everywire_model::Body) -> Result<Self, Failure> {
            Ok(Self)
        }
        fn write(&self, sink: &mut dyn everywire_model::Sink) -> everywire_model::Visit<()> {
            sink.u32(1)
        }
    }
    here.signals().emit(&Other).unwrap();
    drop(subscription);
    assert_eq!(*heard.lock().unwrap(), ["Malformed"]);
}

#[test]
fn names_that_are_keywords_and_the_asynchronous_face() {
    struct Own;
    impl gallery::Type for Own {
        fn self_(&self) -> Result<(), Failure> {
            Ok(())
        }
    }
    let (world, ..) = hall();
    world.serve::<dyn gallery::Type>("own", Arc::new(Own)).self_().unwrap();
    let asynchronous: Ref<dyn GalleryAsync> = world.object("hall").into_typed();
    block_on(async {
        assert_eq!(asynchronous.founded().await.unwrap(), (1, 2, 1999));
        assert_eq!(asynchronous.list_pictures().await.unwrap().len(), 3);
    });
}
