//! DCOP through our own server: applications of ours, the command line, and a peer that was written from the description
//! of the protocol alone.

use crate::common;
use crate::common::dcopserver::DcopServer;
use crate::common::foreign::{Beside, run, run_with, until};
use crate::common::forwarder::Hop;
use everywire::model::describe::{Shape, TEXT, WIDE_TEXT};
use everywire::model::{SignalEvent, Variant};
use everywire::{Bytes, Kind, Node, Notice, Ref, Value};
use everywire_tests::dcop_kitchen::{Kitchen, KitchenTick, QDateTime, QPoint, QRect};
use everywire_tests::peers::here;
use everywire_tests::servants::Scullery;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// An application with a kitchen.
fn application(server: &DcopServer, name: &str) -> Node {
    let node = Node::new();
    Scullery::export(&node, "kitchen");
    node.listen(&server.at(name)).expect("it is registered");
    node
}

fn kitchen(server: &DcopServer, node: &Node, name: &str) -> Ref<dyn Kitchen> {
    node.connect(&server.at(&format!("{name}/kitchen"))).expect("it parses")
}

/// Everything that can be asked of a kitchen.
fn check(kitchen: &Ref<dyn Kitchen>) {
    kitchen.nothing().expect("nothing");
    for v in [true, false] {
        assert_eq!(kitchen.echo_bool(v).expect("bool"), v);
    }
    for v in ["", "text", "Grüße € 😀", &"x".repeat(100_000)] {
        assert_eq!(kitchen.echo_text(v).expect("text"), v);
    }
    for v in ["", "narrow"] {
        assert_eq!(kitchen.echo_narrow(v).expect("narrow"), v);
    }
    let own = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    for v in [own(&[]), own(&["", "a", "ä"])] {
        assert_eq!(kitchen.echo_texts(&v).expect("texts"), v);
    }
    for v in [own(&[]), own(&["", "a"])] {
        assert_eq!(kitchen.echo_narrows(&v).expect("narrows"), v);
    }
    let map = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), -2)]);
    assert_eq!(kitchen.echo_map(&map).expect("map"), map);
    let nested = BTreeMap::from([("k".to_owned(), own(&["x", "y"])), ("l".to_owned(), vec![])]);
    assert_eq!(kitchen.echo_nested(&nested).expect("nested"), nested);
    assert_eq!(kitchen.echo_doubles(&[0.5, -1e300]).expect("doubles"), [0.5, -1e300]);
    let (point, rect) = (QPoint { x: 1, y: -2 }, QRect { left: 0, top: 1, right: 9, bottom: 10 });
    assert_eq!(kitchen.echo_point(&point).expect("point"), point);
    assert_eq!(kitchen.echo_rect(&rect).expect("rect"), rect);
    assert_eq!(kitchen.echo_color(0xffaa_bbcc).expect("color"), 0xffaa_bbcc);
    let time = QDateTime { date: 2_453_371, time: 43_200_000 };
    assert_eq!(kitchen.echo_time(&time).expect("time"), time);
    let facts: BTreeMap<String, Variant> =
        variants().into_iter().enumerate().map(|(at, variant)| (format!("{at:02}"), variant)).collect();
    for variant in variants() {
        assert_eq!(kitchen.echo_variant(&variant).expect("variant"), variant);
    }
    assert_eq!(kitchen.echo_facts(&facts).expect("facts"), facts);
    let spelled = kitchen
        .spell('c', 255, -2, 65_535, -3, u32::MAX, -(1 << 40), 1 << 63, -(1 << 62), 0.5, -0.25)
        .expect("spell");
    assert_eq!(
        spelled,
        format!("c 255 -2 65535 -3 4294967295 {} {} {} 0.5 -0.25", -(1i64 << 40), 1u64 << 63, -(1i64 << 62))
    );
    assert_eq!(kitchen.divide(17, 5).expect("divide"), 3);
    kitchen.divide(1, 0).expect_err("division by zero");
    assert_eq!(kitchen.divide(8, 2).expect("the connection lives on"), 4);
    for n in [0, 1, 1000, 3 << 20] {
        let got = kitchen.bytes(n).expect("bytes");
        let pattern: Vec<u8> = (0..=255).collect();
        assert_eq!(got.len(), usize::try_from(n).expect("positive"));
        assert!(got.chunks(256).all(|chunk| pattern.starts_with(chunk)), "{n} bytes differ");
        assert_eq!(kitchen.echo_bytes(got.clone()).expect("echo"), got);
    }
    for what in ["this", "that"] {
        kitchen.remember(what).expect("remember");
    }
    let remembered = kitchen.remembered().expect("remembered");
    assert_eq!(remembered[remembered.len() - 2..], ["this", "that"]);
    let ticks = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&ticks);
    let subscription = kitchen
        .signals()
        .on(move |tick: KitchenTick| noted.lock().expect("whole").push((tick.i, tick.text)))
        .expect("a subscription");
    kitchen.fire(200).expect("fire");
    until("signals come", || ticks.lock().expect("whole").len() == 200);
    let expected: Vec<_> = (0..200).map(|i| (i, format!("tick {i}"))).collect();
    assert_eq!(*ticks.lock().expect("whole"), expected);
    drop(subscription);
}

fn variants() -> Vec<Variant> {
    vec![
        Variant::new(WIDE_TEXT, Value::Text("text".into())),
        Variant::new(TEXT, Value::Text("narrow".into())),
        Variant::new(Shape::I32, Value::Integer(-1)),
        Variant::new(Shape::U32, Value::Integer(u32::MAX.into())),
        Variant::new(Shape::Bool, Value::Bool(true)),
        Variant::new(Shape::F64, Value::Float(2.5)),
        Variant::new(Shape::I64, Value::Integer(-(1 << 60))),
        Variant::new(Shape::sequence(WIDE_TEXT), Value::List(vec![Value::Text("a".into())])),
        Variant::new(Shape::sequence(Shape::U8), Value::Bytes(Bytes::from_static(b"\x00\xff"))),
    ]
}

#[test]
fn our_client_calls_our_application() {
    let server = DcopServer::start("dcop-own", &[]);
    let _application = application(&server, "own");
    let client = Node::new();
    check(&kitchen(&server, &client, "own"));
    assert_eq!(server.log().matches("violation").count(), 0, "{}", server.log());
}

#[test]
fn a_peer_made_by_hand_calls_our_application() {
    if !here("a_peer_made_by_hand_calls_our_application", &["python3"]) {
        return;
    }
    let server = DcopServer::start("dcop-ours", &[]);
    let _application = application(&server, "ours");
    for order in ["l", "B"] {
        let said = run(&mut server.by_hand(&["call", "ours", order]));
        assert!(said.starts_with("ok "), "{said}");
        // Late answers are announced where the caller cannot tell them apart otherwise.
        assert_eq!(run(&mut server.by_hand(&["wait", "ours", order])), "ok\n");
    }
}

/// A hop under a name, to the kitchen of an application.
fn hop(server: &DcopServer, name: &str, to: &str) -> Node {
    Hop::between(&server.at(name), &server.at(&format!("{to}/kitchen")), &["tick(int,QString)"])
}

#[test]
fn a_hop_without_a_contract_passes_everything() {
    let server = DcopServer::start("dcop-hop", &[]);
    let application = application(&server, "behind");
    let _hop = hop(&server, "hop", "behind");
    let _second = hop(&server, "second", "hop");
    let client = Node::new();
    check(&kitchen(&server, &client, "hop"));
    check(&kitchen(&server, &client, "second"));
    // What everybody answers is answered by whoever is behind the hop.
    Scullery::export(&application, "pantry");
    let dcop = |arguments: &[&str]| run(&mut server.program(arguments));
    assert!(dcop(&["list", "dcop:hop"]).contains("pantry"));
    assert!(dcop(&["list", "dcop:hop/kitchen"]).contains("int divide(int a,int b)"));
    application.withdraw("pantry");
    client.object(&server.at("hop/kitchen")).expect("it parses").target().probe().expect("it is there");
    let failure =
        client.object(&server.at("hop/pantry")).expect("it parses").target().probe().expect_err("it is gone");
    assert_eq!(failure.kind(), Kind::NoObject, "{failure}");
    assert_eq!(server.log().matches("violation").count(), 0, "{}", server.log());
}

#[test]
fn a_hop_passes_between_peers_made_by_hand() {
    if !here("a_hop_passes_between_peers_made_by_hand", &["python3"]) {
        return;
    }
    let server = DcopServer::start("dcop-hop-by-hand", &[]);
    let _application = application(&server, "ours");
    let _hop = hop(&server, "to-ours", "ours");
    for order in ["l", "B"] {
        let said = run(&mut server.by_hand(&["call", "to-ours", order]));
        assert!(said.starts_with("ok "), "{said}");
        assert_eq!(run(&mut server.by_hand(&["wait", "to-ours", order])), "ok\n");
        let its = Beside::start(&mut server.by_hand(&["serve", &format!("theirs-{order}"), order]));
        its.hear("ready theirs");
        let _hop = hop(&server, &format!("to-theirs-{order}"), &format!("theirs-{order}"));
        check(&kitchen(&server, &Node::new(), &format!("to-theirs-{order}")));
    }
}

#[test]
fn our_client_calls_a_peer_made_by_hand() {
    if !here("our_client_calls_a_peer_made_by_hand", &["python3"]) {
        return;
    }
    let server = DcopServer::start("dcop-theirs", &[]);
    for order in ["l", "B"] {
        let its = Beside::start(&mut server.by_hand(&["serve", "theirs", order]));
        its.hear("ready theirs");
        let client = Node::new();
        check(&kitchen(&server, &client, "theirs"));
        its.kill();
        let program = server.program(&["list", "dcop:"]);
        let mut program = program;
        until("it is gone", || !run(&mut program).contains("theirs"));
    }
}

#[test]
fn the_servers_own_functions_are_those_of_the_real_one() {
    if !here("the_servers_own_functions_are_those_of_the_real_one", &["python3"]) {
        return;
    }
    let server = DcopServer::start("dcop-builtin", &[]);
    for order in ["l", "B"] {
        assert_eq!(run(&mut server.by_hand(&["server", order])), "ok\n");
    }
    assert_eq!(server.log().matches("WrongCookie").count(), 2, "{}", server.log());
}

#[test]
fn notifications_and_signals_reach_a_peer_made_by_hand() {
    if !here("notifications_and_signals_reach_a_peer_made_by_hand", &["python3"]) {
        return;
    }
    let server = DcopServer::start("dcop-watch", &[]);
    for order in ["l", "B"] {
        let watch = Beside::start(&mut server.by_hand(&["watch", "seen", order, "5"]));
        watch.hear("ready");
        let application = application(&server, "seen");
        watch.hear("applicationRegistered(QCString) b'seen'");
        let client = Node::new();
        kitchen(&server, &client, "seen").fire(2).expect("fire");
        watch.hear("tick(int,QString) 0 tick 0");
        watch.hear("tick(int,QString) 1 tick 1");
        application.stop();
        watch.hear("applicationRemoved(QCString) b'seen'");
    }
}

#[test]
fn names_are_made_unique_only_where_that_is_wanted() {
    let server = DcopServer::start("dcop-names", &[]);
    let _first = application(&server, "twin");
    let second = Node::new();
    let failure = second.listen(&server.at("twin")).expect_err("the name is taken");
    assert!(failure.to_string().contains("twin"), "{failure}");
    let third = Node::new();
    Scullery::export(&third, "kitchen");
    third.listen(&server.at("twin?unique=no")).expect("another name will do");
    let client = Node::new();
    let names: Vec<_> =
        client.list(&server.at("")).expect("a list").found.into_iter().map(|one| one.name).collect();
    assert!(names.contains(&"twin".to_owned()) && names.contains(&"twin-2".to_owned()), "{names:?}");
    assert_eq!(kitchen(&server, &client, "twin-2").divide(8, 2).expect("divide"), 4);
}

#[test]
fn the_death_of_an_application_is_noticed() {
    let server = DcopServer::start("dcop-death", &[]);
    let dir = common::scratch("dcop-mortal");
    let mut command = Command::new(env!("CARGO_BIN_EXE_peer"));
    let mortal =
        Beside::start(server.environment(&mut command).arg(server.at("mortal")).arg(dir.join("refs")));
    mortal.hear("ready");
    let client = Node::new();
    let kitchen = kitchen(&server, &client, "mortal");
    let (ticks, lost) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (counted, noted) = (Arc::clone(&ticks), Arc::clone(&lost));
    let _subscription = kitchen
        .signals()
        .watch(move |event: SignalEvent<KitchenTick>| match event {
            SignalEvent::Signal(_) => *counted.lock().expect("whole") += 1,
            other => noted.lock().expect("whole").push(format!("{other:?}")),
        })
        .expect("a subscription");
    kitchen.fire(3).expect("fire");
    until("signals come", || *ticks.lock().expect("whole") == 3);
    mortal.kill();
    until("its death is told", || !lost.lock().expect("whole").is_empty());
    let failure = kitchen.nothing().expect_err("it is dead");
    assert!(
        matches!(failure.kind(), Kind::Unreachable | Kind::NoObject | Kind::NoOperation | Kind::Unsupported),
        "{failure}"
    );
    // Others do not mind.
    let _other = application(&server, "mortal");
    kitchen.nothing().expect("another of that name has come");
}

#[test]
fn many_calls_are_under_way_at_once() {
    let server = DcopServer::start("dcop-many", &[]);
    let _application = application(&server, "busy");
    let client = Node::new();
    let kitchen = kitchen(&server, &client, "busy");
    std::thread::scope(|scope| {
        for thread in 1..=8 {
            let kitchen = &kitchen;
            scope.spawn(move || {
                for i in 0..100 {
                    assert_eq!(kitchen.divide(thread * 1000 + i, 1).expect("divide"), thread * 1000 + i);
                }
            });
        }
    });
}

#[test]
fn a_server_that_ends_is_found_again_when_it_is_back() {
    let mut server = DcopServer::start("dcop-again", &[]);
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&notes);
    let observer = Arc::new(move |notice: &Notice| noted.lock().expect("whole").push(format!("{notice:?}")));
    let node: Node = Node::builder().observer(observer).build().into();
    Scullery::export(&node, "kitchen");
    node.listen(&server.at("faithful")).expect("it is registered");
    let client = Node::new();
    let kitchen = kitchen(&server, &client, "faithful");
    kitchen.nothing().expect("it answers");
    assert!(server.file().exists());
    server.terminate();
    assert!(!server.file().exists(), "an orderly end leaves no file");
    assert!(!server.socket().exists(), "an orderly end leaves no socket");
    let failure = kitchen.nothing().expect_err("there is no server");
    assert_eq!(failure.kind(), Kind::Unreachable, "{failure}");
    let told = |word: &str| notes.lock().expect("whole").iter().any(|note| note.starts_with(word));
    until("the application is told", || told("Left"));
    server.again();
    until("the application is back", || told("Joined"));
    until("calls go through again", || kitchen.nothing().is_ok());
    // A crash leaves its files, and they stop nobody.
    server.kill();
    assert!(server.file().exists());
    server.again();
    until("calls go through again", || kitchen.nothing().is_ok());
}

#[test]
fn two_servers_do_not_share_a_session() {
    let server = DcopServer::start("dcop-two", &[]);
    let second = run_with(
        &mut server.program(&["dcopserver", "--socket", &format!("{}-2", server.socket().display())]),
        b"",
    );
    assert!(!second.success, "a second server starts");
    assert!(second.err.contains("runs") || second.err.contains("already"), "{}", second.err);
    let told = run(&mut server.program(&["dcopserver", "--serverid"]));
    assert!(
        told.starts_with("local/") && told.trim().ends_with(&server.socket().display().to_string()),
        "{told}"
    );
}

#[test]
fn the_command_line_does_what_dcop_did() {
    let server = DcopServer::start("dcop-cli", &[]);
    let application = application(&server, "player");
    Scullery::export(&application, "pantry");
    let dcop = |arguments: &[&str]| run(&mut server.program(arguments));
    let names = dcop(&["list", "dcop:"]);
    assert!(names.lines().any(|line| line == "player"), "{names}");
    let objects = dcop(&["list", "dcop:player"]);
    assert!(
        objects.contains("kitchen") && objects.contains("pantry") && objects.contains("default"),
        "{objects}"
    );
    let functions = dcop(&["list", "dcop:player/kitchen"]);
    assert!(
        functions.contains("int divide(int a,int b)") && functions.contains("ASYNC remember(QString what)"),
        "{functions}"
    );
    assert_eq!(dcop(&["call", "dcop:player/kitchen", "divide", "17", "5"]), "3\n");
    assert_eq!(dcop(&["call", "dcop:player/kitchen", "echoText", "Grüße"]), "Grüße\n");
    assert_eq!(dcop(&["call", "dcop:DCOPRef(player,kitchen)", "divide", "8", "2"]), "4\n");
    let described = dcop(&["describe", "dcop:player/kitchen"]);
    assert!(described.contains("divide(a: i32, b: i32) -> i32"), "{described}");
    let failed = run_with(&mut server.program(&["call", "dcop:player/kitchen", "divide", "1", "0"]), b"");
    assert!(!failed.success);
    let registered = dcop(&["call", "dcop:DCOPServer/", "isApplicationRegistered", "player"]);
    assert_eq!(registered, "true\n");
    let contract = common::foreign::contract("kitchen.kidl").display().to_string();
    let watch = Beside::start(&mut server.program(&[
        "watch",
        "dcop:player/kitchen",
        "-c",
        &contract,
        "--count",
        "2",
    ]));
    let client = Node::new();
    let kitchen = kitchen(&server, &client, "player");
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                kitchen.fire(2).expect("fire");
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        watch.hear("tick 0");
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(watch.wait());
}
