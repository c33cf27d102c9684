//! Routes without a contract: what comes in goes on as it came, with the headers beside it.

use super::{LONG, Running, Scratch, order, place, shop_at, start, try_start, until};
use everywire::model::visit::WithHeaders;
use everywire::model::{
    Answer, Completed, Encode, Header, Headers, Interface, Operation, Outcome, Remote, Request, Servant,
    Shape, visit,
};
use everywire::{Kind, Node};
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenTick};
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;
use everywire_tests::shop::market::{FindError, Missing, Shop};
use std::fs;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A broker between IIOP and IIOP; `more` are further lines of its route.
fn broker(target: &str, more: &str) -> Running {
    start(&format!(
        r#"
        [listen.front]
        address = "iiop://127.0.0.1:0"
        [[route]]
        name = "all"
        to = "{target}"
        {more}
        "#,
    ))
}

/// The same object, at the broker.
fn through(broker: &Running, reference: &str) -> String {
    let at = broker.broker.address("front").unwrap();
    let (_, key) = reference.rsplit_once('/').unwrap();
    format!("{}/{key}", at.trim_end_matches('/'))
}

#[test]
fn results_exceptions_and_failures_pass_without_a_contract() {
    let (_backend, store, target) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&target, "");
    assert!(broker.reference("all").starts_with("iiop://127.0.0.1:"), "{}", broker.reference("all"));
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&broker.reference("all")).unwrap();
    assert_eq!(shop.get_orders(3).unwrap(), [order(0), order(1), order(2)]);
    assert_eq!(shop.mix(7, "äbc").unwrap(), (3, 3.5, "cbä".into()));
    shop.set_title("corner").unwrap();
    assert_eq!(*store.title.lock().unwrap(), "corner");
    match shop.find(-1) {
        Err(FindError::Missing(missing)) => {
            assert_eq!(missing, Missing { number: -1, why: "no -1".into() });
        }
        other => panic!("{other:?}"),
    }
    let nobody = shop.tell(None, "x").unwrap_err();
    assert_eq!((nobody.kind(), nobody.message()), (Kind::BadArgument, "nobody to tell"));
    shop.note("one").unwrap();
    let notes = store.notes.lock().unwrap();
    drop(store.noted.wait_timeout_while(notes, LONG, |notes| notes.is_empty()).unwrap());
    assert_eq!(shop.noted().unwrap(), 1);
    assert!(
        broker.metric(r#"calls_total{route="all",outcome="done"}"#) >= 4.0,
        "{}",
        broker.broker.metrics()
    );
    assert!(
        broker.metric(r#"calls_total{route="all",outcome="raised"}"#) >= 1.0,
        "{}",
        broker.broker.metrics()
    );
    // Another object than the route's is nobody's.
    let other = through(&broker, "iiop://x/nobody");
    let failure = client.connect::<dyn Shop>(&other).unwrap().noted().unwrap_err();
    assert_eq!(failure.kind(), Kind::NoObject, "{failure}");
}

/// People who read metrics and logs know a target by its address, though the file names it by a reference for programs.
#[test]
fn a_target_is_called_by_its_address() {
    let (backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let foreign = backend.print(&backend.parse(&target).unwrap());
    assert!(foreign.starts_with("IOR:"), "{foreign}");
    let broker = broker(&foreign, "");
    let page = broker.broker.metrics();
    assert!(page.contains(&format!("target=\"{target}\"")) && !page.contains("IOR:"), "{page}");
}

/// What the broker prints leads to the route: by the name that the file gives the object, and at the route's own listeners.
#[test]
fn a_reference_of_a_route_names_what_its_callers_name() {
    let (_backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let route = |name: &str, more: &str| format!("[[route]]\nname = \"{name}\"\nto = \"{target}\"\n{more}\n");
    let broker = super::start(&format!(
        "[listen.web]\naddress = \"basic://127.0.0.1:0?security=none\"\n[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n{}{}{}",
        route("named", "from = \"front\"\nmatch = { key = \"corner\" }"),
        route("octets", "from = \"front\"\nmatch = { key = \"%00%ff\" }"),
        route("many", "from = \"front\"\nmatch = { key = \"c*\" }"),
    ));
    let at = broker.broker.address("front").unwrap();
    let all: Vec<_> =
        broker.broker.references().into_iter().map(|(name, reference, _)| (name, reference)).collect();
    let expected = [("named", "corner"), ("octets", "%00%ff"), ("many", "")];
    let expected = expected.map(|(name, key)| (name.to_owned(), format!("{at}{key}")));
    assert_eq!(all, expected);
    for (_, reference) in &all[..2] {
        assert_eq!(Node::new().connect::<dyn Shop>(reference).unwrap().noted().unwrap(), 0, "{reference}");
    }
}

#[test]
fn each_wire_that_passes_needs_no_contract() {
    for wire in ["iiop", "dbus", "dcom", "net.tcp", "basic"] {
        let scratch = Scratch::new();
        let (_backend, store, target) = shop_at(&super::place(wire, "backend", &scratch));
        let front = super::place(wire, "front", &scratch);
        let broker = start(&format!(
            "[listen.front]\naddress = \"{front}\"\n[[route]]\nname = \"all\"\nto = \"{target}\"\n"
        ));
        let client = Node::new();
        let shop = client.connect::<dyn Shop>(&broker.reference("all")).unwrap();
        for _ in 0..3 {
            assert_eq!(shop.get_orders(3).unwrap(), [order(0), order(1), order(2)], "{wire}");
            assert_eq!(shop.mix(7, "äbc").unwrap(), (3, 3.5, "cbä".into()), "{wire}");
        }
        shop.set_title("corner").unwrap();
        assert_eq!(*store.title.lock().unwrap(), "corner", "{wire}");
        match shop.find(-1) {
            Err(FindError::Missing(missing)) => assert_eq!(missing.number, -1, "{wire}"),
            other => panic!("{wire}: {other:?}"),
        }
        let nobody = shop.tell(None, "x").unwrap_err();
        assert_eq!(nobody.kind(), Kind::BadArgument, "{wire}: {nobody}");
    }
}

/// What the target says unasked comes by the connection of the caller's calls: another one would be for no object, and the target would refuse it.
#[test]
fn a_caller_on_net_tcp_has_one_connection_to_the_target() {
    let (_backend, _, target) = shop_at("net.tcp://127.0.0.1:0?security=none");
    let at: SocketAddr = target.trim_start_matches("net.tcp://").split('/').next().unwrap().parse().unwrap();
    let relay = TcpListener::bind((at.ip(), 0)).unwrap();
    let near = target.replacen(&at.to_string(), &relay.local_addr().unwrap().to_string(), 1);
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    std::thread::spawn(move || {
        while let Ok((caller, _)) = relay.accept() {
            counted.fetch_add(1, Ordering::SeqCst);
            let server = TcpStream::connect(at).unwrap();
            for (from, to) in [(&caller, &server), (&server, &caller)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    let broker = start(&format!(
        "[listen.front]\naddress = \"net.tcp://127.0.0.1:0?security=none\"\n[[route]]\nname = \"all\"\nto = \"{near}\"\n"
    ));
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&broker.reference("all")).unwrap();
    for _ in 0..3 {
        assert_eq!(shop.title().unwrap(), "shop");
    }
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

/// Says of each call that its object is elsewhere.
struct Signpost(everywire::Reference);

impl Servant for Signpost {
    fn interface(&self) -> &Interface {
        <dyn Shop as Remote>::interface()
    }

    fn dispatch(&self, mut request: Request) {
        request.answer(Answer::Moved(&self.0));
    }
}

/// Where the wire has no words for it, the caller learns that at least its call never began.
#[test]
fn a_call_of_an_object_that_has_moved_never_began() {
    for wire in ["dbus", "dcom", "net.tcp", "basic"] {
        let scratch = Scratch::new();
        let (_backend, store, target) = shop_at(&super::place(wire, "backend", &scratch));
        let node = Node::new();
        node.listen(&super::place(wire, "front", &scratch)).unwrap();
        let elsewhere = node.parse(&target).unwrap();
        let sign = node.print_friendly(&node.export_servant("sign", Arc::new(Signpost(elsewhere))));
        let failure = Node::new().connect::<dyn Shop>(&sign).unwrap().set_title("corner").unwrap_err();
        assert_eq!(failure.completed(), Completed::No, "{wire}: {failure}");
        assert_eq!(*store.title.lock().unwrap(), "shop", "{wire}");
    }
}

#[test]
fn every_object_of_a_target_without_a_key_is_reached() {
    let (backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let second = super::Store::new();
    "second".clone_into(&mut second.title.lock().unwrap());
    backend.export::<dyn Shop>("other/shop", second);
    let at = target.rsplit_once('/').unwrap().0;
    let all = broker(at, "");
    let client = Node::new();
    let title = |broker: &Running, key: &str| {
        let address = format!("{}/{key}", broker.broker.address("front").unwrap().trim_end_matches('/'));
        client.connect::<dyn Shop>(&address).unwrap().title()
    };
    assert_eq!(title(&all, "shop").unwrap(), "shop");
    assert_eq!(title(&all, "other/shop").unwrap(), "second");
    assert_eq!(title(&all, "third").unwrap_err().kind(), Kind::NoObject);
    let some = broker(at, r#"match = { key = "other/*", operation = "_get_*" }"#);
    assert_eq!(title(&some, "other/shop").unwrap(), "second");
    assert_eq!(title(&some, "shop").unwrap_err().kind(), Kind::NoObject);
}

/// Takes whatever is called, and keeps the headers beside it.
#[derive(Default)]
struct Ears(Mutex<Vec<String>>, Condvar, Option<&'static str>);

impl Servant for Ears {
    fn interface(&self) -> &Interface {
        <dyn Shop as Remote>::interface()
    }

    fn dispatch(&self, mut request: Request) {
        let body = request.body();
        let headers = body.headers().map(|headers| headers.list(body).unwrap()).unwrap_or_default();
        let told = headers.iter().map(|header| format!("{}={}", header.name, header.display()));
        self.0.lock().unwrap().extend(told);
        self.1.notify_all();
        let mut beside = Headers::default();
        beside.add(Header::text(self.2.unwrap_or("0x45570010"), "answer"));
        request.answer(Answer::Done(&WithHeaders { values: &visit::Nothing, headers: &beside }));
    }
}

#[test]
fn headers_are_matched_and_changed_before_and_behind_a_copy() {
    let scratch = Scratch::new();
    let (backend, ears) = (Node::new(), Arc::new(Ears::default()));
    backend.listen("iiop://127.0.0.1:0").unwrap();
    backend.export_prefix("", ears.clone());
    let target = backend.print_friendly(&backend.published_as("", "ears"));
    let file = scratch.path("copies.ndjson");
    let broker = broker(
        &target,
        &format!(
            r#"
            match = {{ header = {{ "0x45570001" = "o*" }} }}
            copy = {{ to = "{file}", answers = true }}
            edits = [
                {{ put = "0x45570001", value = "new", before-copy = true }},
                {{ add = "0x45570002", bytes = "00ff" }},
                {{ remove = "0x45570003" }},
                {{ add = "0x45570011", value = "more", answers = true }},
            ]
            "#
        ),
    );
    let client = Node::new();
    let object = client.object(&through(&broker, &target)).unwrap();
    let ask = |headers: &Headers| {
        let operation = Operation::new("anything", vec![], Shape::Void);
        let values: &dyn Encode = &visit::Nothing;
        object.invoke(&operation, &WithHeaders { values, headers })
    };
    let mut headers = Headers::default();
    headers.add(Header::text("0x45570003", "gone"));
    assert!(matches!(ask(&headers), Outcome::Failed(failure) if failure.kind() == Kind::NoObject));
    headers.add(Header::text("0x45570001", "old"));
    let Outcome::Done(body) = ask(&headers) else { panic!() };
    // The last one counts the brokers.
    assert_eq!(*ears.0.lock().unwrap(), ["0x45570001=6e6577", "0x45570002=00ff", "0x45574603=31"]);
    let list = body.headers().unwrap().list(&body).unwrap();
    let told: Vec<_> = list.iter().map(|header| (header.name.as_str(), header.display())).collect();
    assert_eq!(told, [("0x45570010", "616e73776572".into()), ("0x45570011", "6d6f7265".into())]);
    let mut copies = String::new();
    until("both copies are there", || {
        copies = std::fs::read_to_string(&file).unwrap_or_default();
        copies.lines().count() == 2
    });
    // With what was changed before, and without what was changed behind it.
    let (call, answer) = copies.split_once('\n').unwrap();
    assert!(call.contains(r#""operation":"anything""#) && call.contains(r#""value":"new""#), "{call}");
    assert!(call.contains("0x45570003") && !call.contains("0x45570002"), "{call}");
    assert!(answer.contains("616e73776572") && !answer.contains("6d6f7265"), "{answer}");
}

#[test]
fn extensions_of_orpc_are_changed_before_and_behind_a_copy() {
    let id = |number: u32| format!("4557000{number}-1a8c-11d3-b68f-00c04f8b72e7");
    let scratch = Scratch::new();
    let ears = Arc::new(Ears(Mutex::default(), Condvar::new(), Some("45570005-1a8c-11d3-b68f-00c04f8b72e7")));
    let backend = Node::new();
    backend.listen(&super::place("dcom", "backend", &scratch)).unwrap();
    let target = backend.print_friendly(&backend.export_servant("ears", ears.clone()));
    let file = scratch.path("copies.ndjson");
    let interface = <dyn Shop as Remote>::interface();
    let index = interface.index_of(b"noted").unwrap();
    let broker = start(&format!(
        r#"
        [listen.front]
        address = "{front}"
        [[route]]
        name = "ears"
        to = "{target}"
        match = {{ key = "ears", interface = "????????-*", operation = "{number}" }}
        copy = {{ to = "{file}", answers = true }}
        edits = [
            {{ put = "{one}", value = "new", before-copy = true }},
            {{ add = "{{{two}}}", bytes = "00ff" }},
            {{ remove = "{three}" }},
            {{ add = "{four}", value = "more", answers = true }},
        ]
        "#,
        front = super::place("dcom", "front", &scratch),
        number = index + 3,
        one = id(1),
        two = id(2).to_uppercase(),
        three = id(3).to_uppercase(),
        four = id(4),
    ));
    let client = Node::new();
    let object =
        client.object(&broker.reference("ears")).unwrap().typed(everywire::model::Hold::Static(interface));
    let mut headers = Headers::default();
    headers.add(Header::text(id(3), "gone"));
    headers.add(Header::text(id(1), "old"));
    let ask = |index: usize| {
        let values = WithHeaders { values: &visit::Nothing, headers: &headers };
        object.invoke(&interface.operations[index], &values)
    };
    let Outcome::Done(body) = ask(index) else { panic!() };
    // Behind those that the file names, the broker counts itself.
    let hops = "45574603-9d0c-4c1e-8a57-2f6b1f0e7d24=31".to_owned();
    assert_eq!(*ears.0.lock().unwrap(), [format!("{}=6e6577", id(1)), format!("{}=00ff", id(2)), hops]);
    let list = body.headers().unwrap().list(&body).unwrap();
    let told: Vec<_> = list.iter().map(|header| (header.name.clone(), header.display())).collect();
    assert_eq!(told, [(id(5), "616e73776572".into()), (id(4), "6d6f7265".into())]);
    // Another operation is no route's.
    match ask(index + 1) {
        Outcome::Failed(failure) => assert_eq!(failure.kind(), Kind::NoObject, "{failure}"),
        other => panic!("{other:?}"),
    }
    let mut copies = String::new();
    until("the copies are there", || {
        copies = std::fs::read_to_string(&file).unwrap_or_default();
        copies.lines().filter(|line| line.contains(&format!(" {}\"", index + 3))).count() == 2
    });
    let mut of_calls = copies.lines().filter(|line| line.contains(&format!(" {}\"", index + 3)));
    let (call, answer) = (of_calls.next().unwrap(), of_calls.next().unwrap());
    assert!(call.contains(r#""value":"6e6577""#) || call.contains(r#""value":"new""#), "{call}");
    assert!(call.contains(&id(3)) && !call.contains(&id(2)), "{call}");
    assert!(answer.contains("616e73776572") && !answer.contains("6d6f7265"), "{answer}");
    assert!(copies.contains(r#""operation":"(an object)""#), "{copies}");
}

#[test]
fn a_caller_on_dcom_has_the_objects_of_the_route_alone() {
    let scratch = Scratch::new();
    let (_backend, _, target) = shop_at(&super::place("dcom", "backend", &scratch));
    let front = super::place("dcom", "front", &scratch);
    let broker = start(&format!(
        "[listen.front]\naddress = \"{front}\"\n[[route]]\nname = \"all\"\nto = \"{target}\"\n"
    ));
    // A caller that names another class finds none.
    let client = Node::new();
    let other = broker.reference("all").replace("shop", "nobody");
    let failure = client.connect::<dyn Shop>(&other).unwrap().noted().unwrap_err();
    assert_eq!(failure.code(), Some("0x80040154"), "{failure}");
    let shop = client.connect::<dyn Shop>(&broker.reference("all")).unwrap();
    assert_eq!(shop.noted().unwrap(), 0);
    // What a body leads to is past the broker, and works.
    assert_eq!(shop.branch("north").unwrap().unwrap().title().unwrap(), "north");
}

#[test]
fn what_needs_a_contract_is_told_with_its_place() {
    let text = r#"
[listen.front]
address = "iiop://127.0.0.1:0"
[[route]]
name = "all"
to = "dbus+unix:///tmp/none"
validate = true
edits = { put = "x" }
"#;
    let mistakes = try_start(text).err().unwrap().to_string();
    assert!(mistakes.contains("broker.toml:8:"), "{mistakes}");
    let text = text.replace("edits = { put = \"x\" }\n", "");
    let mistakes = try_start(&text).err().unwrap().to_string();
    assert!(mistakes.contains("from giop to dbus nothing passes without a contract"), "{mistakes}");
    assert!(mistakes.contains("broker.toml:7:12: `validate` needs a contract"), "{mistakes}");
}

#[test]
fn a_caller_that_leaves_takes_its_connections_with_it() {
    let (backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&target, "");
    for _ in 0..3 {
        let client = Node::new();
        client.connect::<dyn Shop>(&broker.reference("all")).unwrap().noted().unwrap();
        until("the caller has a connection of its own", || backend.connections() == 1);
        client.stop();
        until("it ended with the caller's", || backend.connections() == 0);
    }
}

#[test]
fn a_caller_is_sent_to_the_object_that_it_names() {
    let (backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(target.rsplit_once('/').unwrap().0, r#"mode = "redirect""#);
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&through(&broker, &target)).unwrap();
    assert_eq!(shop.title().unwrap(), "shop");
    assert_eq!(shop.get_orders(1).unwrap(), [order(0)]);
    // The caller's own connection is the only one there.
    assert_eq!(backend.connections(), 1);
}

#[test]
fn calls_properties_and_signals_of_d_bus_pass() {
    let scratch = Scratch::new();
    let backend = Node::new();
    backend.listen(&super::place("dbus", "backend", &scratch)).unwrap();
    let _own = Galley::export(&backend, KEY);
    let at = |name: &str| format!("dbus+unix://{}", scratch.path(name));
    let _broker = start(&format!(
        r#"
        [listen.front]
        address = "{}"
        [[route]]
        name = "kitchen"
        to = "{}"
        "#,
        at("front.bus"),
        at("backend.bus"),
    ));
    let client = Node::new();
    let kitchen = client.connect::<dyn Kitchen>(&format!("{}#{KEY}", at("front.bus"))).unwrap();
    let (ticks, ticked) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Condvar::new()));
    let (noted, told) = (Arc::clone(&ticks), Arc::clone(&ticked));
    let _listening = kitchen.signals().on(move |tick: KitchenTick| {
        noted.lock().unwrap().push(tick.i);
        told.notify_all();
    });
    assert_eq!(kitchen.divide(17, 5).unwrap(), (3, 2));
    kitchen.set_title("broker").unwrap();
    assert_eq!(kitchen.title().unwrap(), "broker");
    kitchen.fire(100).unwrap();
    let all = ticked.wait_timeout_while(ticks.lock().unwrap(), LONG, |ticks| ticks.len() < 100).unwrap().0;
    assert!(all.iter().copied().eq(0..100), "{all:?}");
}

/// A target that is not there when a caller comes, and one that goes away, are listened to when they are there (again): the caller's own
/// connection stands, so that nothing would tell it to listen anew.
#[test]
fn signals_of_a_target_go_on_behind_its_restart() {
    let scratch = Scratch::new();
    let at = |name: &str| format!("dbus+unix://{}", scratch.path(name));
    let _broker = start(&format!(
        "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"kitchen\"\nto = \"{}\"\n",
        at("front.bus"),
        at("backend.bus"),
    ));
    let client = Node::new();
    let kitchen = client.connect::<dyn Kitchen>(&format!("{}#{KEY}", at("front.bus"))).unwrap();
    let heard = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&heard);
    let _listening = kitchen.signals().on(move |_: KitchenTick| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    kitchen.title().unwrap_err();
    for _ in 0..2 {
        let _ = fs::remove_file(scratch.path("backend.bus"));
        let backend = Node::new();
        let _own = Galley::export(&backend, KEY);
        backend.listen(&at("backend.bus")).unwrap();
        let before = heard.load(Ordering::SeqCst);
        // What is emitted before the broker listens is lost, so that one is not enough.
        until("signals come", || {
            let _ = kitchen.fire(1);
            heard.load(Ordering::SeqCst) > before
        });
        backend.stop();
    }
}

/// Where signals go to whoever is connected, each target is listened to before it gets a caller's first call. A target that takes
/// connections and never greets holds up its own calls alone, and not those of other routes on the same connection.
#[test]
fn a_target_that_never_greets_holds_up_no_other_route() {
    let scratch = Scratch::new();
    let path = scratch.path("silent");
    let _socket = UnixListener::bind(&path).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap();
    for (wire, silent) in [
        ("dbus", format!("dbus+unix://{path}#silent")),
        ("net.tcp", format!("net.tcp://{port}/silent?security=none")),
    ] {
        let (_backend, _store, target) = shop_at(&place(wire, "backend", &scratch));
        let broker = start(&format!(
            r#"
            [listen.front]
            address = "{}"
            [[route]]
            name = "silent"
            match = {{ key = "silent" }}
            to = "{silent}"
            timeout = "10m"
            [[route]]
            name = "shop"
            to = "{target}"
            "#,
            place(wire, "front", &scratch),
        ));
        let client = Node::new();
        let shop = client.connect::<dyn Shop>(&broker.reference("shop")).unwrap();
        assert_eq!(shop.title().unwrap_or_else(|failure| panic!("{wire}: {failure}")), "shop");
        // Its own calls wait for it, no longer than their callers do.
        let hurried = Node::from(Node::builder().deadline(Some(Duration::from_millis(200))).build());
        let waiting = hurried.connect::<dyn Shop>(&broker.reference("silent")).unwrap();
        assert_eq!(waiting.title().unwrap_err().kind(), Kind::TimedOut, "{wire}");
        assert_eq!(shop.title().unwrap(), "shop", "{wire}");
    }
}
