//! omniORB, a CORBA broker that none of us wrote: its client against our server, our client against its server, over TCP
//! and over Unix sockets; and a capture of it all in which tshark finds nothing malformed.

use crate::common;
use crate::common::dcom::alone;
use crate::common::foreign::PATIENCE;
use crate::common::forwarder::Hop;
use crate::common::{References, Server, capture, omniorb, scratch};
use everywire::model::shape::{Alias, Struct};
use everywire::model::{Hold, Shape, TypeCode, Value, Variant};
use everywire::{Bytes, Kind, Node, Ref};
use everywire_tests::bench::{Benchmarking, FiringSource, IRemoteObject, Sink};
use everywire_tests::kitchen::interop::{
    Both, Card, Choice, Colour, Described, Everything, JudgeError, Kitchen, Listener, Many, Maybe, Named,
    Pantry, Point, Tree, describe,
};
use everywire_tests::servants::{CountingSink, Doubler, Person, TEXT};
use std::process::Command;
use std::sync::Arc;

const LARGEST: i32 = 64 << 20;

/// omniORB's client checks everything against our server.
#[test]
fn its_client_calls_our_server() {
    let Some(peer) = omniorb("its_client_calls_our_server") else { return };
    for transport in ["tcp", "unix"] {
        let dir = scratch(&format!("ours-{transport}"));
        let address = match transport {
            "tcp" => "iiop://127.0.0.1:0".to_owned(),
            _ => format!("iiop+unix://{}/peer.sock", dir.display()),
        };
        let server = Server::ours(&address, &dir, 128);
        for mode in [&["check", "--largest", "67108864"][..], &["check-interop"]] {
            let output = Command::new(&peer.client)
                .arg(server.references())
                .args(mode)
                .args(["-ORBgiopMaxMsgSize", "134217728", "-ORBendPoint", "giop:tcp:127.0.0.1:"])
                .args(common::IN_ORDER)
                .args(["-ORBclientTransportRule", &format!("* {transport},tcp")])
                .output()
                .expect("it starts");
            assert!(
                output.status.success(),
                "{transport} {mode:?}:\n{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

/// Our client checks everything against omniORB's server.
#[test]
fn our_client_calls_its_server() {
    let Some(peer) = omniorb("our_client_calls_its_server") else { return };
    for transport in ["tcp", "unix"] {
        let dir = scratch(&format!("theirs-{transport}"));
        let server = Server::omniorb(&peer, transport, &dir);
        check_bench(&server);
        check_kitchen(&server);
        check_pantry(&server);
    }
}

/// The same checks between ours and ours, on every transport.
#[test]
fn our_client_calls_our_server() {
    for transport in ["tcp", "unix", "shm"] {
        let dir = scratch(&format!("own-{transport}"));
        let address = match transport {
            "tcp" => "iiop://127.0.0.1:0".to_owned(),
            other => format!("iiop+{other}://{}/peer.sock", dir.display()),
        };
        let server = Server::ours(&address, &dir, 128);
        check_bench(&server);
        check_kitchen(&server);
        check_pantry(&server);
    }
}

/// A hop without any contract stands between omniORB and omniORB, and between it and us: over a connection of its own for each client,
/// with other names for the objects' places and everything else as it came.
#[test]
fn a_hop_without_a_contract_passes_everything() {
    let Some(peer) = omniorb("a_hop_without_a_contract_passes_everything") else { return };
    let dir = scratch("hop");
    let theirs = Server::omniorb(&peer, "tcp", &dir.join("theirs"));
    let hop = Hop::to(&theirs, "iiop://127.0.0.1:0", &dir.join("hop"));
    check_bench(&hop);
    check_kitchen(&hop);
    check_pantry(&hop);
    let ours = Server::ours("iiop://127.0.0.1:0", &dir.join("ours"), 128);
    for server in [&theirs, &ours] {
        let hop = Hop::to(server, "iiop://127.0.0.1:0", &dir.join("between"));
        for mode in [&["check", "--largest", "67108864"][..], &["check-interop"]] {
            let output = Command::new(&peer.client)
                .arg(hop.references())
                .args(mode)
                .args(["-ORBgiopMaxMsgSize", "134217728", "-ORBendPoint", "giop:tcp:127.0.0.1:"])
                .args(common::IN_ORDER)
                .output()
                .expect("it starts");
            assert!(
                output.status.success(),
                "{mode:?}:\n{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

/// Everything that both sides send, seen by a dissector that none of us wrote.
#[test]
fn a_capture_has_no_malformed_frame() {
    let test = "a_capture_has_no_malformed_frame";
    let Some(peer) = omniorb(test) else { return };
    // All of a loopback interface is recorded: it must be one with nobody else's conversations.
    if !everywire_tests::peers::here(test, &["tshark", "tcpdump"]) || !alone(test) {
        return;
    }
    let dir = scratch("capture");
    let ours = Server::ours("iiop://127.0.0.1:0", &dir.join("a"), 128);
    let theirs = Server::omniorb(&peer, "tcp", &dir.join("b"));
    let file = dir.join("all.pcap");
    let Some(recording) = capture::start(&file) else { return };
    let output = Command::new(&peer.client)
        .arg(ours.references())
        .args(["check-interop", "-ORBendPoint", "giop:tcp:127.0.0.1:"])
        .args(common::IN_ORDER)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    check_small(&theirs);
    check_kitchen(&theirs);
    check_small(&ours);
    recording.stop();
    let ports = [ours.port(), theirs.port()];
    let messages = capture::messages(&file, &ports);
    assert!(messages.len() > 100, "only {} messages were seen", messages.len());
    let malformed = capture::malformed(&file, &ports);
    assert!(malformed.is_empty(), "{malformed:#?}");
}

fn node() -> Node {
    let node: Node = Node::builder().max_message(128 << 20).build().into();
    node.listen("iiop://127.0.0.1:0").expect("a free port");
    node
}

fn check_small(server: &dyn References) {
    let node = node();
    let object = node.connect::<dyn Benchmarking>(&server.reference("benchmarking")).expect("it parses");
    object.void_call().expect("void_call");
    object.in_int_call(i32::MIN).expect("in_int_call");
    assert_eq!(object.out_int_call().expect("out_int_call"), 42);
    for v in [0, 41, -1, i32::MAX - 1] {
        assert_eq!(object.in_out_int_call(v).expect("in_out_int_call"), v + 1);
    }
    object.in_string_call(TEXT).expect("in_string_call");
    object.in_string_call("").expect("in_string_call");
    assert_eq!(object.out_string_call().expect("out_string_call"), TEXT);
    for text in [TEXT, "", &"x".repeat(100_000)] {
        assert_eq!(object.in_out_string_call(text).expect("in_out_string_call"), text);
    }
}

pub(crate) fn check_bench(server: &dyn References) {
    check_small(server);
    let node = node();

    let bytes = node.connect::<dyn IRemoteObject>(&server.reference("IRemoteObject")).expect("it parses");
    for n in [0, 1, 100, 65_536, 1_000_000, LARGEST] {
        let got = bytes.get_bytes(n).expect("get_bytes");
        assert_eq!(got.len(), usize::try_from(n).expect("positive"));
        assert!(got.iter().enumerate().all(|(i, b)| usize::from(*b) == i % 256), "{n} bytes differ");
    }
    let failure = bytes.get_bytes(-1).expect_err("no negative bytes");
    assert_eq!(failure.kind(), Kind::BadArgument, "{failure}");

    let source = node.connect::<dyn FiringSource>(&server.reference("Source")).expect("it parses");
    let counter = Arc::new(CountingSink::default());
    let sink: Ref<dyn Sink> = node.export_anonymous(counter.clone());
    let (first, second) =
        (source.advise(Some(sink.clone())).expect("advise"), source.advise(Some(sink)).expect("advise"));
    assert_ne!(first, second);
    source.unadvise(second).expect("unadvise");
    for n in [1, 7, 500] {
        let before = (counter.hellos(), counter.syncs());
        source.fire(n).expect("fire");
        assert_eq!(counter.hellos() - before.0, u64::from(n));
        assert_eq!(counter.syncs() - before.1, 1);
    }
    source.unadvise(first).expect("unadvise");
    let before = counter.hellos();
    source.fire(3).expect("fire");
    assert_eq!(counter.hellos(), before, "nothing comes after unadvise");
    assert_eq!(source.unadvise(first).expect_err("it is gone").kind(), Kind::BadArgument);
    assert_eq!(source.advise(None).expect_err("nil").kind(), Kind::BadArgument);

    let wrong = node.connect::<dyn Benchmarking>(&server.reference("Sink")).expect("it parses");
    assert_eq!(wrong.void_call().expect_err("a sink is no benchmark").kind(), Kind::NoOperation);
}

fn everything(low: bool) -> Everything {
    Everything {
        flag: !low,
        letter: if low { 'a' } else { '~' },
        small: if low { 0 } else { 255 },
        s: if low { i16::MIN } else { i16::MAX },
        us: if low { 0 } else { u16::MAX },
        l: if low { i32::MIN } else { i32::MAX },
        ul: if low { 0 } else { u32::MAX },
        ll: if low { i64::MIN } else { i64::MAX },
        ull: if low { 0 } else { u64::MAX },
        f: if low { -0.5 } else { f32::MAX },
        d: if low { f64::MIN_POSITIVE } else { f64::INFINITY },
        text: if low { String::new() } else { "text of 16 chars".to_owned() },
        tint: if low { Colour::Red } else { Colour::Blue },
        place: Point { x: if low { -1 } else { 1 }, y: if low { 2 } else { -2 } },
    }
}

pub(crate) fn check_kitchen(server: &dyn References) {
    let node = node();
    let kitchen = node.connect::<dyn Kitchen>(&server.reference("Kitchen")).expect("it parses");
    for low in [true, false] {
        assert_eq!(kitchen.echo_everything(&everything(low)).expect("echo"), everything(low));
    }
    for n in [0, 1, 1000] {
        let points: Vec<_> = (0..n).map(|i| Point { x: i, y: -i }).collect();
        assert_eq!(kitchen.echo_points(&points).expect("echo"), points);
        let doubles: Vec<_> = (0..n).map(|i| f64::from(i) / 3.0).collect();
        assert_eq!(kitchen.echo_doubles(&doubles).expect("echo"), doubles);
        let octets: Bytes = (0..n).map(|i| u8::try_from(i % 256).expect("small")).collect();
        assert_eq!(kitchen.echo_octets(octets.clone()).expect("echo"), octets);
        let names: Vec<_> = (0..n).map(|i| "n".repeat(usize::try_from(i % 7).expect("small"))).collect();
        assert_eq!(kitchen.echo_names(&names).expect("echo"), names);
    }
    assert_eq!(kitchen.echo_few(&[5, 6, 7, 8]).expect("echo"), [5, 6, 7, 8]);
    let failure = kitchen.echo_few(&[1, 2, 3, 4, 5]).expect_err("five are not few");
    assert_eq!(failure.kind(), Kind::BadArgument, "{failure}");
    let table = vec![vec![1.5, -2.5], vec![], vec![3.5]];
    assert_eq!(kitchen.echo_table(&table).expect("echo"), table);
    let grid = [[1, 2, 3], [4, 5, 6]];
    assert_eq!(kitchen.echo_grid(&grid).expect("echo"), grid);
    assert_eq!(kitchen.echo_brief("12345678").expect("echo"), "12345678");
    let leaf = |name: &str| Tree { name: name.to_owned(), children: vec![] };
    let tree = Tree {
        name: "root".into(),
        children: vec![leaf("a"), Tree { name: "b".into(), children: vec![leaf("c")] }],
    };
    assert_eq!(kitchen.echo_tree(&tree).expect("echo"), tree);
    assert_eq!(kitchen.next_colour(Colour::Blue).expect("next"), Colour::Red);
    assert_eq!(
        kitchen.mix(3, 0.5, &Point { x: 1, y: 2 }).expect("mix"),
        ("3".to_owned(), 3.5, Point { x: 2, y: 1 })
    );

    assert_eq!(kitchen.judge(1).expect("judge"), 2);
    match kitchen.judge(-5) {
        Err(JudgeError::Refused(refused)) => {
            assert_eq!((refused.why.as_str(), refused.code, refused.mood), ("negative", -5, Colour::Blue));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(kitchen.judge(0), Err(JudgeError::Empty(_))));
    match kitchen.judge(13) {
        Err(JudgeError::Failure(failure)) => assert_eq!(failure.kind(), Kind::Refused, "{failure}"),
        other => panic!("{other:?}"),
    }

    let made = kitchen.make("Ada").expect("make").expect("not nil");
    assert_eq!(made.name().expect("name"), "Ada");
    made.set_name("Grace").expect("set_name");
    assert_eq!((made.name().expect("name"), made.changes().expect("changes")), ("Grace".to_owned(), 1));
    assert_eq!(made.greet("world").expect("greet"), "Hello, world");
    assert_eq!((made.add(2).expect("add"), made.add(3).expect("add")), (2, 5));
    assert_eq!(made.shade().expect("shade"), Colour::Green);
    made.set_shade(Colour::Blue).expect("set_shade");
    assert_eq!(made.summary().expect("summary"), "Grace 5 2");
    assert!(kitchen.find("").expect("find").is_none());
    let found = kitchen.find("Kay").expect("find").expect("not nil");
    assert_eq!(found.name().expect("name"), "Kay");

    let own: Ref<dyn Both> = node.export_anonymous(Arc::new(Person::new("mine")));
    let list = [Some(made.reference().clone()), None, Some(own.reference().clone())];
    assert_eq!(kitchen.names_of(&list).expect("names_of"), ["Grace", "nil", "mine"]);
    let card = kitchen.card_for("card").expect("card_for");
    let owner = node.narrow::<dyn Named>(card.owner.clone().expect("not nil")).expect("it resolves");
    assert_eq!(owner.name().expect("name"), "card");
    assert_eq!(kitchen.owner_of(&card).expect("owner_of"), "card");
    let mine = Card { label: "x".into(), owner: Some(own.reference().clone()) };
    assert_eq!(kitchen.owner_of(&mine).expect("owner_of"), "mine");

    let listener = Arc::new(Doubler::default());
    let told = kitchen.tell(Some(node.export_anonymous::<dyn Listener>(listener.clone())), 20).expect("tell");
    assert_eq!(told, 40);
    let heard = listener.0.lock().expect("not poisoned").clone();
    assert_eq!(heard, (0..20).map(|i| i.to_string()).collect::<Vec<_>>());

    let before = kitchen.noted().expect("noted");
    for _ in 0..50 {
        kitchen.note("x").expect("note");
    }
    // A broker may serve calls of one connection on several threads, so the last oneway may still be on its way.
    let end = std::time::Instant::now() + PATIENCE;
    while kitchen.noted().expect("noted") < before + 50 && std::time::Instant::now() < end {}
    assert_eq!(kitchen.noted().expect("noted"), before + 50);
}

pub(crate) fn check_pantry(server: &dyn References) {
    let node = node();
    let pantry = node.connect::<dyn Pantry>(&server.reference("Pantry")).expect("it parses");
    for letter in ['a', 'ä', '€', '\u{ffee}'] {
        assert_eq!(pantry.echo_wchar(letter).expect("echo"), letter);
    }
    for text in ["", "wide", "Grüße, Welt €", "😀 beyond the first plane"] {
        assert_eq!(pantry.echo_wstring(text).expect("echo"), text);
    }
    let place = Point { x: 4, y: -4 };
    for choice in [Choice::Number(7), Choice::Text("hi".into()), Choice::Place(Colour::Blue, place.clone())] {
        assert_eq!(pantry.echo_choice(&choice).expect("echo"), choice);
    }
    for maybe in [Maybe::Value("yes".into()), Maybe::Empty(false)] {
        assert_eq!(pantry.echo_maybe(&maybe).expect("echo"), maybe);
    }
    for many in [Many::Big(1, i64::MIN), Many::Big(2, 5), Many::List(vec!["a".into()]), Many::Other(99, 255)]
    {
        assert_eq!(pantry.echo_many(&many).expect("echo"), many);
    }
    let anys = anys();
    for any in &anys {
        assert_eq!(&pantry.echo_any(any).expect("echo"), any);
    }
    assert_eq!(pantry.echo_anys(&anys).expect("echo"), anys);
    check_codes(&pantry);
    let described: Vec<_> = anys.iter().map(|any| pantry.describe(any).expect("describe")).collect();
    assert_eq!(described, ["long 7", "string hi", "Point 1 2", "other", "other"]);
}

/// Type codes that the peer reads and writes as its own: alone, in an `any`, in lists and structures, and that of a type
/// that contains itself.
fn check_codes(pantry: &Ref<dyn Pantry>) {
    let tree = Shape::Struct(Hold::Static(&describe::TREE));
    let trees = Shape::Alias(Hold::Static(&describe::TREES));
    let mut codes = vec![TypeCode::null()];
    let simple =
        [Shape::Void, Shape::I32, Shape::F64, Shape::U8, Shape::Variant, Shape::TypeCode, Shape::WideChar];
    let made = anys().into_iter().map(|any| any.into_parts().0).chain(simple).chain([tree.clone(), trees]);
    codes.extend(made.map(TypeCode::new));
    for code in &codes {
        let back = pantry.echo_code(code).expect("echo");
        assert_eq!(&back, code);
        // What was read is written as it came.
        assert_eq!(pantry.echo_code(&back).expect("echo"), back);
        let any = Variant::new(Shape::TypeCode, Value::TypeCode(Box::new(code.clone())));
        assert_eq!(pantry.echo_any(&any).expect("echo"), any);
    }
    assert_eq!(pantry.echo_codes(&codes).expect("echo"), codes);
    let described = Described { before: 1, code: TypeCode::new(tree.clone()), after: -7 };
    assert_eq!(pantry.echo_described(&described).expect("echo"), described);
    assert_eq!(pantry.identify(&TypeCode::new(tree.clone())).expect("identify"), "IDL:interop/Tree:1.0");
    assert_eq!(pantry.identify(&TypeCode::new(Shape::I32)).expect("identify"), "3");

    let node = |name: &str, children: Vec<Value>| {
        let name = ("name".to_owned(), Value::Text(name.to_owned()));
        Value::Struct(vec![name, ("children".to_owned(), Value::List(children))])
    };
    let value = node("root", vec![node("a", vec![]), node("b", vec![node("c", vec![])])]);
    let any = Variant::new(tree, value);
    let back = pantry.echo_any(&any).expect("echo");
    assert_eq!(back, any);
    // What was read of such a type is written again, and once more as part of something else.
    assert_eq!(pantry.echo_anys(&[back.clone(), any.clone()]).expect("echo"), [back, any]);
}

fn anys() -> Vec<Variant> {
    let field = |name: &'static str| everywire::model::shape::Field { name: name.into(), shape: Shape::I32 };
    let point = Shape::Struct(Hold::new(Struct {
        name: "interop::Point".into(),
        id: "IDL:interop/Point:1.0".into(),
        fields: vec![field("x"), field("y")].into(),
    }));
    let doubles = Shape::Alias(Hold::new(Alias {
        name: "interop::Doubles".into(),
        id: "IDL:interop/Doubles:1.0".into(),
        target: Shape::sequence(Shape::F64),
    }));
    let fields = vec![("x".to_owned(), Value::Integer(1)), ("y".to_owned(), Value::Integer(2))];
    vec![
        Variant::new(Shape::I32, Value::Integer(7)),
        Variant::new(Shape::Text(everywire::model::shape::Text::NARROW), Value::Text("hi".into())),
        Variant::new(point, Value::Struct(fields)),
        Variant::new(Shape::Bool, Value::Bool(true)),
        Variant::new(doubles, Value::List(vec![Value::Float(0.5)])),
    ]
}
