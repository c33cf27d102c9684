//! What every client of `kitchen.dbus.xml` can expect of every server.

use super::foreign::until;
use everywire::model::describe::{Shape, TEXT};
use everywire::model::shape::{Field, Struct, Text, TextKind};
use everywire::model::{Hold, SignalEvent, Variant};
use everywire::{Bytes, Kind, Node, Ref, Value};
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenRich, KitchenTick};
use everywire_tests::servants::dbus::{DIVISION_BY_ZERO, KEY, pipe_with, read_from};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The name that servers own on a bus.
pub const NAME: &str = "org.example.Kitchen";

/// The path of the kitchen.
pub const PATH: &str = "/org/example/Kitchen";

/// The kitchen behind a bus.
pub fn on_bus(node: &Node, address: &str) -> Ref<dyn Kitchen> {
    node.connect(&format!("dbus:{address}#{NAME}/{KEY}")).expect("it parses")
}

/// A variant of an anonymous struct with these fields.
pub fn tuple(shapes: &[Shape], values: Vec<Value>) -> Variant {
    let name = |at: usize| format!("field_{}", at + 1);
    let fields: Vec<Field> = shapes
        .iter()
        .enumerate()
        .map(|(at, shape)| Field { name: name(at).into(), shape: shape.clone() })
        .collect();
    let shape = Shape::Struct(Hold::new(Struct { name: "".into(), id: "".into(), fields: fields.into() }));
    let values = values.into_iter().enumerate().map(|(at, value)| (name(at), value)).collect();
    Variant::new(shape, Value::Struct(values))
}

fn number(value: i32) -> Variant {
    Variant::new(Shape::I32, Value::Integer(value.into()))
}

fn text(value: &str) -> Variant {
    Variant::new(TEXT, Value::Text(value.into()))
}

fn nested(inner: Variant) -> Variant {
    Variant::new(Shape::Variant, inner.into())
}

fn special(kind: TextKind, value: &str) -> Variant {
    Variant::new(Shape::Text(Text { kind, bound: None }), Value::Text(value.into()))
}

/// One of each kind.
pub fn variants() -> Vec<Variant> {
    let sequence =
        |element: Shape, items: Vec<Value>| Variant::new(Shape::sequence(element), Value::List(items));
    vec![
        Variant::new(Shape::U8, Value::Integer(7)),
        Variant::new(Shape::Bool, Value::Bool(true)),
        Variant::new(Shape::I16, Value::Integer(i16::MIN.into())),
        Variant::new(Shape::U16, Value::Integer(u16::MAX.into())),
        number(-1),
        Variant::new(Shape::U32, Value::Integer(u32::MAX.into())),
        Variant::new(Shape::I64, Value::Integer(i64::MIN.into())),
        Variant::new(Shape::U64, Value::Integer(u64::MAX.into())),
        Variant::new(Shape::F64, Value::Float(2.5)),
        text("Grüße €"),
        special(TextKind::Path, "/a/b"),
        special(TextKind::Signature, "a{sv}"),
        sequence(Shape::I32, vec![Value::Integer(1), Value::Integer(2)]),
        Variant::new(Shape::sequence(Shape::U8), Value::Bytes(Bytes::from_static(b"\x00\x01\xff"))),
        tuple(&[Shape::U8, TEXT], vec![Value::Integer(1), Value::Text("x".into())]),
        nested(nested(text("deep"))),
    ]
}

/// Values of every type there and back.
pub fn values(kitchen: &dyn Kitchen) {
    kitchen.nothing().expect("nothing");
    for (s, o, g) in [("", "/", ""), ("Grüße, € 😀", "/a/b_c/D9", "a{s(ias)}v")] {
        let low = s.is_empty();
        let (b, n, q) = (!low, if low { i16::MIN } else { i16::MAX }, if low { 0 } else { u16::MAX });
        let (i, u) = if low { (i32::MIN, 0) } else { (i32::MAX, u32::MAX) };
        let (x, t, d) = if low { (i64::MIN, 0, -0.5) } else { (i64::MAX, u64::MAX, f64::MAX) };
        let y = if low { 0 } else { 255 };
        let got = kitchen.echo_basics(y, b, n, q, i, u, x, t, d, s, o, g).expect("basics");
        assert_eq!(got, (y, b, n, q, i, u, x, t, d, s.to_owned(), o.to_owned(), g.to_owned()));
    }
    let own = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    for (texts, paths) in [(own(&[]), own(&[])), (own(&["", "a", "bc", "def"]), own(&["/", "/x"]))] {
        assert_eq!(kitchen.echo_texts(&texts, &paths).expect("texts"), (texts, paths));
    }
    let (bools, shorts, longs, doubles) = ([true, false, true], [1, -2, 3], [-1, 1 << 40], [0.5, -0.25]);
    let got = kitchen.echo_numbers(&bools, &shorts, &longs, &doubles).expect("numbers");
    assert_eq!(got, (bools.to_vec(), shorts.to_vec(), longs.to_vec(), doubles.to_vec()));
    let facts = BTreeMap::from([("k".to_owned(), text("v")), ("n".to_owned(), nested(number(3)))]);
    for value in [
        (1, "two".to_owned(), (3, vec![4.0, 5.5]), facts.clone()),
        (-1, String::new(), (0, vec![]), BTreeMap::new()),
    ] {
        assert_eq!(kitchen.echo_struct(&value).expect("struct"), value);
    }
    let by_byte = BTreeMap::from([(1, "one".to_owned()), (254, "two".to_owned())]);
    let by_path = BTreeMap::from([("/a".to_owned(), own(&["x", "y"])), ("/b".to_owned(), vec![])]);
    let table = BTreeMap::from([("in".to_owned(), facts), ("out".to_owned(), BTreeMap::new())]);
    let got = kitchen.echo_dicts(&by_byte, &by_path, &table).expect("dicts");
    assert_eq!(got, (by_byte, by_path, table));
    for variant in variants() {
        assert_eq!(kitchen.echo_variant(&variant).expect("variant"), variant);
    }
    assert_eq!(kitchen.echo_variants(&variants()).expect("variants"), variants());
    let inner = (4, vec![("x".to_owned(), text("y")), ("z".to_owned(), number(5))]);
    let item = (Bytes::from_static(b"\x01\x02"), BTreeMap::from([(3, inner), (9, (1, vec![]))]));
    let deep = vec![vec![vec![vec![item], vec![]]], vec![]];
    assert_eq!(kitchen.echo_deep(&deep).expect("deep"), deep);
    results(kitchen);
}

/// Several results, results of computations, and an error by its name.
pub fn results(kitchen: &dyn Kitchen) {
    assert_eq!(kitchen.divide(17, 5).expect("divide"), (3, 2));
    let list: Vec<i32> = (0..1000).collect();
    assert_eq!(kitchen.total(&list).expect("total"), 499_500);
    let failure = kitchen.divide(1, 0).expect_err("division by zero");
    assert_eq!(failure.code(), Some(DIVISION_BY_ZERO), "{failure}");
    assert!(!failure.message().is_empty());
}

/// Bytes in both directions.
pub fn large(kitchen: &dyn Kitchen, sizes: &[u32]) {
    for n in sizes {
        let got = kitchen.bytes(*n).expect("bytes");
        assert_eq!(got.len(), usize::try_from(*n).expect("it fits"));
        let pattern: Vec<u8> = (0..=255).collect();
        assert!(got.chunks(256).all(|chunk| pattern.starts_with(chunk)), "{n} bytes differ");
        assert_eq!(kitchen.echo_bytes(got.clone()).expect("echo"), got);
    }
}

/// Descriptors in both directions.
pub fn handles(kitchen: &dyn Kitchen) {
    let handle = kitchen.open("by a pipe").expect("open");
    assert_eq!(read_from(&handle).expect("it can be read"), "by a pipe");
    let pipe = |text: &str| pipe_with(text).expect("a pipe");
    let got = kitchen.read_all(pipe("three"), &[pipe("two "), pipe("one ")]).expect("read_all");
    assert_eq!(got, "threetwo one ");
}

/// One descriptor in several places, there and back.
pub fn same_handles(kitchen: &dyn Kitchen) {
    let handle = pipe_with("echo").expect("a pipe");
    let others = [("a".to_owned(), Arc::clone(&handle)), ("b".to_owned(), Arc::clone(&handle))];
    let (first, others) = kitchen.echo_handles(handle, &others).expect("echo");
    assert_eq!(others.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    // All are the same pipe: what is read from one is gone from the others.
    assert_eq!(read_from(&first).expect("it can be read"), "echo");
    assert_eq!(read_from(&others[1].1).expect("it can be read"), "");
}

/// Signals in order, and of all types.
pub fn signals(kitchen: &Ref<dyn Kitchen>, count: u32) {
    let many = usize::try_from(count).expect("it fits");
    let (ticks, rich) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (noted, noted_rich) = (Arc::clone(&ticks), Arc::clone(&rich));
    let first = kitchen
        .signals()
        .on(move |tick: KitchenTick| noted.lock().expect("whole").push((tick.i, tick.text)))
        .expect("a subscription");
    let _second = kitchen
        .signals()
        .on(move |signal: KitchenRich| noted_rich.lock().expect("whole").push(signal))
        .expect("a subscription");
    kitchen.fire(count).expect("fire");
    let facts = BTreeMap::from([("a".to_owned(), number(1)), ("b".to_owned(), nested(text("x")))]);
    let any = tuple(&[TEXT, Shape::F64], vec![Value::Text("any".into()), Value::Float(2.5)]);
    let pair = (7, "seven".to_owned());
    let paths = ["/a".to_owned(), "/b".to_owned()];
    kitchen.fire_rich(&facts, &pair, &paths, &any).expect("fire");
    until("all signals come", || {
        ticks.lock().expect("whole").len() == many && rich.lock().expect("whole").len() == 1
    });
    let expected: Vec<_> = (0..count).map(|i| (i, format!("tick {i}"))).collect();
    assert_eq!(*ticks.lock().expect("whole"), expected);
    let wanted = KitchenRich { facts, pair, paths: paths.to_vec(), any };
    assert_eq!(rich.lock().expect("whole").first(), Some(&wanted));
    drop(first);
    kitchen.fire(3).expect("fire");
    kitchen.fire_rich(&wanted.facts, &wanted.pair, &wanted.paths, &wanted.any).expect("fire");
    until("the signal behind them comes", || rich.lock().expect("whole").len() == 2);
    assert_eq!(ticks.lock().expect("whole").len(), many, "nothing comes after the subscription has ended");
}

/// Properties, and news of them.
pub fn properties(node: &Node, kitchen: &Ref<dyn Kitchen>) {
    let news = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&news);
    // Every signal of the object, whatever its interface.
    let object = node.resolve(kitchen.reference()).expect("it resolves");
    let _subscription = object
        .subscribe(
            None,
            Arc::new(move |event| {
                if let SignalEvent::Signal(heard) = event {
                    assert_eq!(heard.key, KEY);
                    let shape = heard.body.codec.shape(&heard.body).expect("it tells its shape");
                    let value = heard.body.read(|source| Value::decode(&shape, source)).expect("it decodes");
                    noted.lock().expect("whole").push((heard.operation, value));
                }
            }),
        )
        .expect("a subscription");
    let before = kitchen.changes().expect("changes");
    kitchen.set_title("Küche").expect("set_title");
    assert_eq!(kitchen.title().expect("title"), "Küche");
    assert_eq!(kitchen.changes().expect("changes"), before + 1);
    assert_eq!(kitchen.fixed().expect("fixed"), ("fixed".to_owned(), 7));
    kitchen.set_silent(-5).expect("set_silent");
    assert_eq!(kitchen.silent().expect("silent"), -5);
    let facts = BTreeMap::from([("b".to_owned(), nested(text("x"))), ("c".to_owned(), number(1))]);
    kitchen.set_facts(&facts).expect("set_facts");
    assert_eq!(kitchen.facts().expect("facts"), facts);
    until("changes are told", || {
        let news = news.lock().expect("whole");
        let told = format!("{news:?}");
        assert!(!told.contains("Silent"), "{told}");
        news.iter().all(|(signal, _)| signal == "PropertiesChanged")
            && ["Title", "Küche", "Changes", "Facts"].iter().all(|word| told.contains(word))
    });
}

/// Oneways, which begin in the order in which they came by a connection.
pub fn oneways(kitchen: &dyn Kitchen) {
    arrive(kitchen, |last| last == ["this", "that"]);
}

/// Oneways to an object of the same process: each has a thread of its own, so one may overtake another.
pub fn oneways_in_process(kitchen: &dyn Kitchen) {
    arrive(kitchen, |last| last.contains(&"this".into()) && last.contains(&"that".into()));
}

fn arrive(kitchen: &dyn Kitchen, both: impl Fn(&[String]) -> bool) {
    for what in ["this", "that"] {
        kitchen.remember(what).expect("remember");
    }
    until("oneways arrive", || {
        let all = kitchen.remembered().expect("remembered");
        all.last_chunk::<2>().is_some_and(|last| both(last))
    });
}

/// Everything.
pub fn everything(node: &Node, kitchen: &Ref<dyn Kitchen>) {
    values(&**kitchen);
    large(&**kitchen, &[0, 1, 1000, 100_000, 8 << 20]);
    handles(&**kitchen);
    signals(kitchen, 500);
    properties(node, kitchen);
    oneways(&**kitchen);
    assert_eq!(
        kitchen
            .fire_rich(&BTreeMap::new(), &(0, String::new()), &["no path".into()], &number(1))
            .map_err(|failure| failure.kind()),
        Err(Kind::BadArgument)
    );
}
