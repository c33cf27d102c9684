//! Targets that are there and misbehave: they never greet, answer octets of no protocol, or do not let the broker in. What callers and the
//! log are told of them, and how long that takes.

use super::{LONG, Running, Scratch, contract, place, start, until};
use everywire::model::failure::Completed;
use everywire::{Failure, Kind, Node};
use everywire_tests::shop::market::Shop;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Accepts at a socket and never says a word. Counts those who came.
fn silent(path: &str) -> Arc<AtomicU32> {
    let came = Arc::<AtomicU32>::default();
    let listener = UnixListener::bind(path).unwrap();
    let counted = Arc::clone(&came);
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            held.push(stream.unwrap());
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    came
}

/// Answers whatever comes with these octets, on a port of its own.
fn saying(words: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // Each by itself: whoever hears nonsense may come again to find out who is there.
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]).and_then(|_| stream.write_all(words));
                let _ = stream.read(&mut [0; 4096]);
            });
        }
    });
    port
}

/// A route of this name with the contract, from a listener to a target.
fn route(name: &str, from: &str, target: &str, more: &str) -> String {
    format!(
        "[[route]]\nname = \"{name}\"\nfrom = \"{from}\"\nmatch = {{ key = \"{name}\" }}\nto = \"{target}\"\ncontract = \"{}\"\ninterface = \"Shop\"\n{more}\n",
        contract()
    )
}

fn listener(name: &str, wire: &str, scratch: &Scratch) -> String {
    format!("[listen.{name}]\naddress = \"{}\"\n", place(wire, name, scratch))
}

/// What a caller hears who counts.
fn refused(broker: &Running, route: &str) -> Failure {
    Node::new().connect::<dyn Shop>(&broker.reference(route)).unwrap().count(1).unwrap_err()
}

/// The log says where a target is, and callers hear what it did.
#[test]
fn callers_do_not_learn_where_a_target_is_that_breaks_the_protocol() {
    let scratch = Scratch::new();
    let (nonsense, page) =
        (saying(b"nonsense, and more of it"), saying(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"));
    let unread =
        saying(b"HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8\r\nContent-Length: 4\r\n\r\n<a<b");
    // A reply of 2 GiB.
    let large = saying(b"GIOP\x01\x02\x01\x01\xff\xff\xff\x7f and more of it");
    let socket = scratch.path("target.bus");
    silent(&socket);
    let targets = [
        ("nonsense", format!("iiop://127.0.0.1:{nonsense}/shop"), Kind::Violation, nonsense.to_string()),
        ("page", format!("basic://127.0.0.1:{page}/shop"), Kind::Internal, page.to_string()),
        (
            "elsewhere",
            format!("net.tcp://127.0.0.1:{page}/shop?security=none"),
            Kind::WrongWire,
            page.to_string(),
        ),
        ("silent", format!("dbus+unix://{socket}#shop"), Kind::TimedOut, socket.clone()),
        (
            "early",
            format!("dcom://127.0.0.1:{nonsense}/shop?level=none"),
            Kind::Violation,
            nonsense.to_string(),
        ),
        ("unread", format!("basic://127.0.0.1:{unread}/shop"), Kind::Violation, unread.to_string()),
        ("large", format!("iiop://127.0.0.1:{large}/shop"), Kind::LimitExceeded, large.to_string()),
    ];
    // The others answer, if not at once on a busy machine: only who is silent is waited for in vain.
    let more = |kind: Kind| if kind == Kind::TimedOut { "timeout = \"1s\"" } else { "" };
    let routes: String =
        targets.iter().map(|(name, target, kind, _)| route(name, "front", target, more(*kind))).collect();
    let broker = start(&format!("{}{routes}", listener("front", "iiop", &scratch)));
    for (name, _, kind, place) in &targets {
        let failure = refused(&broker, name);
        assert_eq!(failure.kind(), *kind, "{name}: {failure:?}");
        assert!(!failure.to_string().contains(place.as_str()), "{name}: {failure}");
        // It was the target, and the caller's own limits are not what is to be raised.
        let whose = match *name {
            "nonsense" | "early" => "what the target sent breaks the rules of its protocol",
            "unread" => "the target's answer cannot be read: ",
            "silent" => "the target did not answer in time",
            "large" => "a message of the target is larger than the broker takes",
            _ => "",
        };
        assert!(failure.message().contains(whose), "{name}: {failure:?}");
        let log = broker.log.lock().unwrap();
        let told = log.iter().find(|line| line.contains("\"failed\"") && line.contains(name)).unwrap();
        assert!(told.contains(place.as_str()), "{told}");
    }
}

/// Where a target is not what the file says, or does not let the broker in, is for whoever runs the broker: told without `verbose`.
#[test]
fn the_log_warns_of_targets_that_do_not_let_the_broker_in() {
    let scratch = Scratch::new();
    let page = saying(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n");
    let socket = scratch.path("target.bus");
    let bus = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for stream in bus.incoming() {
            let _ = stream.unwrap().write_all(b"WHO ARE YOU\r\n");
        }
    });
    let broker = start(&format!(
        "{}{}{}",
        listener("front", "iiop", &scratch),
        route("elsewhere", "front", &format!("net.tcp://127.0.0.1:{page}/shop?security=none"), ""),
        route("strict", "front", &format!("dbus+unix://{socket}#shop"), ""),
    ));
    for (name, kind) in [("elsewhere", Kind::WrongWire), ("strict", Kind::Refused)] {
        let failure = refused(&broker, name);
        assert_eq!((failure.kind(), failure.completed()), (kind, Completed::No), "{failure:?}");
        let log = broker.log.lock().unwrap();
        let warns = |line: &&String| line.contains("\"warn\"") && line.contains(name);
        assert!(log.iter().any(|line| warns(&line)), "{log:?}");
    }
}

/// A call that comes while a target is sought for an earlier one has its own time, and not the rest of the earlier one's.
#[test]
fn a_call_that_joins_a_search_is_not_ended_with_it() {
    let scratch = Scratch::new();
    let socket = scratch.path("target.bus");
    let came = silent(&socket);
    // Its calls end when the others have half of their time left.
    let other = scratch.path("other.bus");
    silent(&other);
    let broker = start(&format!(
        "{}{}{}",
        listener("front", "iiop", &scratch),
        route("shop", "front", &format!("dbus+unix://{socket}#shop"), "timeout = \"10s\""),
        route("half", "front", &format!("dbus+unix://{other}#shop"), "timeout = \"5s\""),
    ));
    let call = || {
        let shop = Node::new().connect::<dyn Shop>(&broker.reference("shop")).unwrap();
        thread::spawn(move || shop.count(1).unwrap_err().kind())
    };
    let earlier = call();
    until("the target is sought", || came.load(Ordering::SeqCst) == 1);
    assert_eq!(refused(&broker, "half").kind(), Kind::TimedOut);
    let later = call();
    assert_eq!(earlier.join().unwrap(), Kind::TimedOut);
    assert_eq!(later.join().unwrap(), Kind::TimedOut);
    until("the later call had a search of its own", || came.load(Ordering::SeqCst) == 2);
}

/// Without a contract a target is first listened to for its caller. That is a part of the call's time, not a time before it.
#[test]
fn listening_to_a_target_takes_no_time_beside_the_calls() {
    let scratch = Scratch::new();
    let socket = scratch.path("target.bus");
    silent(&socket);
    let target = format!("dbus+unix://{socket}#shop");
    let broker = start(&format!(
        "{}{}[[route]]\nname = \"passing\"\nfrom = \"bus\"\nmatch = {{ key = \"shop\" }}\nto = \"{target}\"\ntimeout = \"10s\"\n{}",
        listener("bus", "dbus", &scratch),
        listener("front", "iiop", &scratch),
        // Ends between once the time of the other and twice that.
        route("control", "front", &target, "timeout = \"15s\"")
    ));
    let (told, tells) = std::sync::mpsc::channel();
    let call = |name: &'static str, key: &str| {
        let (told, reference) = (told.clone(), broker.reference(key));
        thread::spawn(move || {
            let shop = Node::new().connect::<dyn Shop>(&reference).unwrap();
            let _ = told.send((name, shop.count(1).unwrap_err().kind()));
        })
    };
    let threads = [call("passing", "passing"), call("control", "control")];
    assert_eq!(tells.recv_timeout(LONG).unwrap(), ("passing", Kind::TimedOut));
    assert_eq!(tells.recv_timeout(LONG).unwrap(), ("control", Kind::TimedOut));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Calls that no route is for are counted, with a contract and without one.
#[test]
fn calls_that_no_route_is_for_are_counted() {
    let scratch = Scratch::new();
    let broker = start(&format!(
        "{}[[route]]\nname = \"others\"\nfrom = \"front\"\nmatch = {{ user = \"nobody\" }}\nto = \"iiop://127.0.0.1:1/shop\"\n",
        listener("front", "iiop", &scratch)
    ));
    let failure = refused(&broker, "others");
    assert_eq!((failure.kind(), failure.completed()), (Kind::NoObject, Completed::No), "{failure:?}");
    assert!((broker.metric("unmatched_total") - 1.0).abs() < 0.1);
}

/// Who broke the protocol is told by route and target, also where the target's connection belongs to a listener, or no call is under way.
#[test]
fn the_log_names_the_target_that_breaks_the_protocol() {
    let scratch = Scratch::new();
    let target = saying(b"nonsense, and more of it");
    let to = format!("iiop://127.0.0.1:{target}/shop");
    let broker = start(&format!(
        "{}{}[[route]]\nname = \"passing\"\nfrom = \"front\"\nmatch = {{ key = \"passing\" }}\nto = \"{to}\"\n",
        listener("front", "iiop", &scratch),
        route("typed", "front", &to, ""),
    ));
    for name in ["typed", "passing"] {
        assert_eq!(refused(&broker, name).kind(), Kind::Violation);
    }
    let address = broker.broker.address("front").unwrap();
    let mut caller =
        std::net::TcpStream::connect(address.split("//").nth(1).unwrap().trim_end_matches('/')).unwrap();
    caller.write_all(b"GIOP\x07 and more").unwrap();
    let _ = caller.read_to_end(&mut Vec::new());
    let said = |part: &str| {
        let log = broker.log.lock().unwrap();
        log.iter().filter(|line| line.contains("\"event\":\"violation\"") && line.contains(part)).count()
    };
    let place = format!("\"target\":\"iiop://127.0.0.1:{target}/shop\"");
    // A line is written beside the failure, and may come after it.
    for name in ["typed", "passing"] {
        until("the target's are told", || said(&format!("\"route\":\"{name}\",{place}")) > 0);
    }
    until("the caller's own is told", || said("\"listener\":\"front\"") > 0);
    // The caller's own is told of the listener, and no other.
    assert_eq!(said("\"listener\":\"front\""), 1);
    assert_eq!(said("\"failure\":\"GIOP 7.32 is not spoken here"), 1);
}
