//! What a route may take, and what becomes of calls when a target fails.

use super::{Running, Scratch, Store, contract, marked, shop_at, start, try_start, until};
use everywire::layer::Limit;
use everywire::model::failure::Completed;
use everywire::model::shape::{Field, Shape};
use everywire::model::{Completed as Ran, Direction, Object, Operation, Outcome, Parameter, visit::Nothing};
use everywire::{Failure, Kind, Node, Ref};
use everywire_derby::buses::Bus;
use everywire_peers::here;
use everywire_tests::shop::market::Shop;
use std::sync::Arc;
use std::thread;

/// A broker from IIOP to these targets; `more` are further lines of its route.
fn broker(targets: &[&str], more: &str) -> Running {
    broker_by(&contract(), targets, more)
}

/// The same, by another contract.
fn broker_by(contract: &str, targets: &[&str], more: &str) -> Running {
    let to: Vec<String> = targets.iter().map(|target| format!("\"{target}\"")).collect();
    start(&format!(
        r#"
        [listen.front]
        address = "iiop://127.0.0.1:0"
        [[route]]
        name = "shop"
        to = [{}]
        contract = "{contract}"
        interface = "Shop"
        {more}
        "#,
        to.join(", "),
    ))
}

fn shop(client: &Node, broker: &Running) -> Ref<dyn Shop> {
    client.connect::<dyn Shop>(&broker.reference("shop")).unwrap()
}

/// A call of `count` on a thread of its own.
fn counting(client: &Node, broker: &Running, n: i32) -> thread::JoinHandle<Result<i32, Failure>> {
    let shop = shop(client, broker);
    thread::spawn(move || shop.count(n))
}

fn ran(store: &Store, n: i32) -> u32 {
    store.counted.lock().unwrap().get(&n).copied().unwrap_or_default()
}

#[test]
fn a_call_that_may_have_run_is_not_sent_again() {
    let (first, one, a) = shop_at("iiop://127.0.0.1:0");
    let (_second, two, b) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&[&a, &b], "balance = \"first\"\nretries = 5\nidempotent = \"noted\"");
    let client = Node::new();
    one.shut(true);
    let call = counting(&client, &broker, 7);
    one.wait_for(1);
    // The backend dies while the call runs.
    first.stop_within(std::time::Duration::ZERO);
    let failure = call.join().unwrap().unwrap_err();
    assert_eq!(failure.completed(), Completed::Maybe, "{failure:?}");
    assert_eq!((ran(&one, 7), ran(&two, 7)), (1, 0));
    one.shut(false);
    // What follows goes to the other one: nothing of it ran at the first.
    assert_eq!(shop(&client, &broker).count(8).unwrap(), 8);
    assert_eq!((ran(&one, 8), ran(&two, 8)), (0, 1));
}

#[test]
fn a_call_that_may_run_twice_is_sent_again() {
    let (first, one, a) = shop_at("iiop://127.0.0.1:0");
    let (_second, two, b) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&[&a, &b], "balance = \"first\"\nretries = 2\nidempotent = [\"cou*\"]");
    let client = Node::new();
    one.shut(true);
    let call = counting(&client, &broker, 7);
    one.wait_for(1);
    first.stop_within(std::time::Duration::ZERO);
    assert_eq!(call.join().unwrap().unwrap(), 7);
    assert_eq!((ran(&one, 7), ran(&two, 7)), (1, 1));
    assert!(broker.metric(r#"retries_total{route="shop"}"#) >= 1.0);
    one.shut(false);
}

#[test]
fn a_call_that_the_contract_lets_run_twice_is_sent_again() {
    let scratch = Scratch::new();
    let (first, one, a) = shop_at("iiop://127.0.0.1:0");
    let (_second, two, b) = shop_at("iiop://127.0.0.1:0");
    let broker = broker_by(&marked(&scratch), &[&a, &b], "balance = \"first\"\nretries = 2");
    let client = Node::new();
    one.shut(true);
    let call = counting(&client, &broker, 7);
    one.wait_for(1);
    first.stop_within(std::time::Duration::ZERO);
    assert_eq!(call.join().unwrap().unwrap(), 7);
    assert_eq!((ran(&one, 7), ran(&two, 7)), (1, 1));
    one.shut(false);
}

#[test]
fn a_failed_retry_does_not_hide_that_the_call_may_have_run() {
    let (first, one, a) = shop_at("iiop://127.0.0.1:0");
    let (second, _, b) = shop_at("iiop://127.0.0.1:0");
    second.stop();
    let broker = broker(&[&a, &b], "balance = \"first\"\nretries = 1\nidempotent = \"count\"");
    let client = Node::new();
    one.shut(true);
    let call = counting(&client, &broker, 7);
    one.wait_for(1);
    first.stop_within(std::time::Duration::ZERO);
    let failure = call.join().unwrap().unwrap_err();
    assert_eq!(failure.completed(), Completed::Maybe, "{failure:?}");
    assert!(!failure.to_string().contains("127.0.0.1:"), "addresses are the broker's own: {failure}");
    one.shut(false);
}

#[test]
fn a_target_that_cannot_be_reached_is_tried_as_often_as_the_route_says() {
    let (gone, _, a) = shop_at("iiop://127.0.0.1:0");
    gone.stop();
    let broker = broker(&[&a], "retries = 2");
    let failure = shop(&Node::new(), &broker).count(1).unwrap_err();
    assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::No), "{failure:?}");
    assert!((broker.metric(r#"retries_total{route="shop"}"#) - 2.0).abs() < 0.1);
}

#[test]
fn what_did_not_run_goes_to_another_target_without_a_word() {
    let (first, _, a) = shop_at("iiop://127.0.0.1:0");
    let (_second, two, b) = shop_at("iiop://127.0.0.1:0");
    first.stop();
    let broker = broker(&[&a, &b], "balance = \"first\"");
    let client = Node::new();
    let shop = shop(&client, &broker);
    for n in 0..20 {
        assert_eq!(shop.count(n).unwrap(), n);
    }
    assert_eq!(two.counted.lock().unwrap().len(), 20);
}

#[test]
fn the_calls_of_a_route_and_of_a_caller_are_limited() {
    let (_backend, store, target) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&[&target], "limit = { calls = 2, per-peer = 5 }");
    let clients = [Node::new(), Node::new(), Node::new()];
    store.shut(true);
    let held = [counting(&clients[0], &broker, 1), counting(&clients[1], &broker, 2)];
    store.wait_for(2);
    let failure = shop(&clients[2], &broker).count(3).unwrap_err();
    assert_eq!((failure.kind(), failure.completed()), (Kind::Busy, Ran::No), "{failure:?}");
    assert_eq!(ran(&store, 3), 0);
    store.shut(false);
    for call in held {
        call.join().unwrap().unwrap();
    }
    let third = shop(&clients[2], &broker);
    until("their shares are given back", || third.count(3).is_ok());
    assert!(broker.metric(r#"refused_total{route="shop",why="limit"}"#) >= 1.0);
}

/// A target takes all callers behind the broker for one, and refuses what is too much of that one. The one who is to blame gets half of what the
/// target takes, so that there is room for another.
#[test]
fn one_caller_does_not_take_the_target_of_all() {
    const MOST: usize = 32;
    let backend = Node::builder().layer(Limit::new(MOST)).build();
    let store = Store::new();
    backend.listen("iiop://127.0.0.1:0").unwrap();
    let target = backend.print_friendly(backend.export::<dyn Shop>("shop", store.clone()).reference());
    let (scratch, contract) = (Scratch::new(), contract());
    let broker = start(&format!(
        r#"
        [listen.greedy]
        address = "iiop+unix://{}"
        [listen.honest]
        address = "iiop://127.0.0.1:0"
        [[route]]
        name = "shop"
        to = "{target}"
        contract = "{contract}"
        interface = "Shop"
        "#,
        scratch.path("greedy"),
    ));
    let reference = |start: &str| {
        let all = broker.broker.references();
        all.into_iter().map(|(_, text, ..)| text).find(|text| text.starts_with(start)).unwrap()
    };
    let [greedy, honest] = [Node::new(), Node::new()];
    let many = greedy.connect::<dyn Shop>(&reference("iiop+unix:")).unwrap();
    let one = honest.connect::<dyn Shop>(&reference("iiop:")).unwrap();
    let burst = || -> Vec<_> {
        let call = |n| {
            let shop = many.clone();
            thread::spawn(move || shop.count(n))
        };
        (0..100).map(call).collect()
    };
    let busy = |calls: &[thread::JoinHandle<_>]| calls.iter().filter(|call| call.is_finished()).count();
    // Half of what the target takes is one caller's then. How many that is is learned from calls that come together, some more or less.
    for most in [MOST, MOST / 4 * 3] {
        store.shut(true);
        let calls = burst();
        // Of all calls it is known then what becomes of them: one that begins later would be served.
        until("what is too much is refused", || busy(&calls) >= 100 - most);
        if most < MOST {
            assert_eq!(one.noted().unwrap(), 0, "there is room for another");
        }
        store.shut(false);
        let served = calls.into_iter().filter_map(|call| call.join().unwrap().ok()).count();
        assert!(served <= most, "{served} of {most}");
    }
}

#[test]
fn a_breaker_leaves_a_target_alone_and_tries_it_again() {
    let (backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&[&target], "breaker = { failures = 2, pause = \"1s\" }");
    let client = Node::new();
    let shop = shop(&client, &broker);
    shop.noted().unwrap();
    assert!((broker.metric(&up(&target)) - 1.0).abs() < 0.1);
    backend.stop();
    let mut kinds = Vec::new();
    until("the breaker opens", || {
        kinds.push(shop.noted().unwrap_err().kind());
        kinds.last() == Some(&Kind::Busy)
    });
    assert!(kinds.len() >= 3 && kinds[0] == Kind::Unreachable, "{kinds:?}");
    assert!(broker.metric(&up(&target)) < 0.1);
    let again = Node::new();
    let at = target.rsplit_once('/').unwrap().0;
    until("the port is free", || again.listen(at).is_ok());
    again.export::<dyn Shop>("shop", Store::new());
    until("the breaker closes", || shop.noted().is_ok());
    assert!((broker.metric(&up(&target)) - 1.0).abs() < 0.1);
}

/// An argument that the target's wire cannot carry is refused by the broker, so it says nothing of the target: an open breaker is not closed
/// by it, and the call that tries the target is the next one.
#[test]
fn a_call_that_the_broker_refuses_says_nothing_of_the_target() {
    let (backend, _, target) = shop_at("basic://127.0.0.1:0?security=none");
    let broker = broker(&[&target], "breaker = { failures = 2, pause = \"1s\" }");
    let client = Node::new();
    let shop = shop(&client, &broker);
    let state = || broker.metric(&up(target.split_once('?').map_or(&*target, |(place, _)| place)));
    // XML has no such character.
    let refused = || shop.set_title("\u{1}").unwrap_err();
    for _ in 0..3 {
        assert_eq!(refused().kind(), Kind::BadArgument);
    }
    assert_eq!(shop.noted().unwrap(), 0, "nothing counts against the target");
    assert!((state() - 1.0).abs() < 0.1);
    backend.stop();
    until("the breaker opens", || shop.noted().unwrap_err().kind() == Kind::Busy);
    assert!(state() < 0.1);
    let again = Node::new();
    let place = format!("{}?security=none", target.split("/shop").next().unwrap_or_default());
    until("the port is free", || again.listen(&place).is_ok());
    again.export::<dyn Shop>("shop", Store::new());
    until("a call may try the target", || refused().kind() == Kind::BadArgument);
    assert!(state() < 0.1, "the target was not asked");
    assert_eq!(shop.noted().unwrap(), 0, "the next one tries");
    assert!((state() - 1.0).abs() < 0.1);
}

fn up(target: &str) -> String {
    format!("target_up{{route=\"shop\",target=\"{target}\"}}")
}

#[test]
fn probes_find_out_that_a_target_is_down_before_a_call_does() {
    let (first, _, a) = shop_at("iiop://127.0.0.1:0");
    let (_second, two, b) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&[&a, &b], "balance = \"first\"\nprobe = \"20ms\"");
    first.stop();
    until("it is known to be down", || broker.metric(&up(&a)) < 0.1);
    let client = Node::new();
    assert_eq!(shop(&client, &broker).count(1).unwrap(), 1);
    assert_eq!(ran(&two, 1), 1);
    assert!((broker.metric(r#"retries_total{route="shop"}"#)).abs() < 0.1);
    assert!(broker.log.lock().unwrap().iter().any(|line| line.contains("target is down")));
}

#[test]
fn calls_are_shared_by_targets() {
    let shops: Vec<_> = (0..3).map(|_| shop_at("iiop://127.0.0.1:0")).collect();
    let targets: Vec<&str> = shops.iter().map(|(_, _, target)| target.as_str()).collect();
    let broker = broker(&targets, "balance = \"round-robin\"");
    let client = Node::new();
    let shop = shop(&client, &broker);
    for n in 0..30 {
        shop.count(n).unwrap();
    }
    for (_, store, _) in &shops {
        assert_eq!(store.counted.lock().unwrap().len(), 10);
    }
}

#[test]
fn callers_are_let_through_by_where_they_come_from() {
    let (_backend, store, target) = shop_at("iiop://127.0.0.1:0");
    let client = Node::new();
    for (lines, lets) in [
        ("allow = \"127.0.0.0/8\"", true),
        ("allow = [\"10.0.0.0/8\", \"user:ada\"]", false),
        ("deny = \"127.0.0.1\"", false),
        ("allow = \"127.0.0.1\"\ndeny = \"local\"", true),
        ("match = { peer = \"10.0.0.0/8\" }", false),
        ("match = { operation = \"get_*\" }", false),
    ] {
        let broker = broker(&[&target], lines);
        match shop(&client, &broker).count(1) {
            Ok(_) => assert!(lets, "{lines}"),
            Err(failure) => {
                assert!(!lets, "{lines}: {failure}");
                assert_eq!((failure.kind(), failure.completed()), (Kind::Refused, Ran::No), "{failure:?}");
            }
        }
    }
    assert_eq!(ran(&store, 1), 2);
}

#[test]
fn callers_over_dcom_are_who_they_have_proved_to_be() {
    let (_backend, store, target) = shop_at("iiop://127.0.0.1:0");
    let folder = Scratch::new();
    let users = super::changes::private(&folder, "users", "ada:one\nbob:two");
    let as_user = |reference: &str, user: &str| reference.replacen("dcom://", &format!("dcom://{user}@"), 1);
    for (lines, [ada, bob]) in [
        ("deny = \"user:bob\"", [true, false]),
        ("allow = \"user:bob\"", [false, true]),
        ("allow = \"127.0.0.1\"", [true, true]),
        ("deny = [\"user:eve\", \"127.0.0.0/8\"]", [false, false]),
        ("match = { user = \"bob\" }", [false, true]),
    ] {
        let broker = start(&format!(
            "[listen.front]\naddress = \"dcom://127.0.0.1:0?users={users}\"\n[[route]]\nname = \"shop\"\nto = \"{target}\"\n\
             contract = \"{}\"\ninterface = \"Shop\"\n{lines}\n",
            contract()
        ));
        let reference = broker.reference("shop");
        for (user, lets) in [("ada:one", ada), ("bob:two", bob)] {
            let client = Node::new();
            let count = client.connect::<dyn Shop>(&as_user(&reference, user)).and_then(|shop| shop.count(1));
            match count {
                Ok(_) => assert!(lets, "{lines}: {user}"),
                Err(failure) => {
                    assert!(!lets, "{lines}: {user}: {failure}");
                    assert_eq!(failure.kind(), Kind::Refused, "{failure:?}");
                }
            }
        }
    }
    assert_eq!(ran(&store, 1), 5);
}

#[test]
fn routes_of_one_object_share_its_operations() {
    let (_first, one, a) = shop_at("iiop://127.0.0.1:0");
    let (_second, two, b) = shop_at("iiop://127.0.0.1:0");
    let text = |name: &str, operation: &str, to: &str| {
        let contract = contract();
        format!(
            "[[route]]\nname = \"{name}\"\nmatch = {{ key = \"shop\", operation = \"{operation}\" }}\nto = \"{to}\"\ncontract = \"{contract}\"\ninterface = \"Shop\"\n"
        )
    };
    let broker = start(&format!(
        "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n{}{}",
        text("counts", "count", &a),
        text("others", "*", &b)
    ));
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&broker.reference("counts")).unwrap();
    shop.count(4).unwrap();
    shop.set_title("moved").unwrap();
    assert_eq!((ran(&one, 4), ran(&two, 4)), (1, 0));
    assert_eq!(*one.title.lock().unwrap(), "shop");
    assert_eq!(*two.title.lock().unwrap(), "moved");
}

#[test]
fn a_caller_is_sent_to_the_target_itself() {
    let (backend, store, target) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&[&target], "mode = \"redirect\"");
    let client = Node::new();
    let shop = shop(&client, &broker);
    for n in 0..5 {
        assert_eq!(shop.count(n).unwrap(), n);
    }
    assert_eq!(store.counted.lock().unwrap().len(), 5);
    assert_eq!(backend.connections(), 1, "the caller's own");
    drop(broker);
    assert_eq!(shop.count(9).unwrap(), 9, "the broker is not needed any more");
}

#[test]
fn arguments_that_are_not_what_the_contract_says_are_refused_before_anything_is_forwarded() {
    let (_backend, store, target) = shop_at("iiop://127.0.0.1:0");
    let broker = broker(&[&target], "validate = true");
    let client = Node::new();
    let object: Object = client.object(&broker.reference("shop")).unwrap();
    // The operation wants a number; nothing is sent.
    let input = Parameter { direction: Direction::In, field: Field { name: "n".into(), shape: Shape::U8 } };
    let short = Operation::new("count", vec![input], Shape::I32);
    let Outcome::Failed(failure) = object.invoke(&short, &Nothing) else { panic!("it was served") };
    assert_eq!(failure.kind(), Kind::BadArgument, "{failure:?}");
    assert!(store.counted.lock().unwrap().is_empty());
    assert!(broker.metric(r#"refused_total{route="shop",why="invalid"}"#) >= 1.0);
    let _: Arc<Store> = store;
}

/// B2, on a bus: the kernel says who the bus is, and that is no word on who calls. So nobody is let through as the bus, and callers are told apart by the
/// names that the bus gives to them.
#[test]
fn b2_nobody_on_a_bus_is_taken_for_the_bus() {
    let test = "b2_nobody_on_a_bus_is_taken_for_the_bus";
    if !here(test, &["dbus-daemon"]) {
        return;
    }
    let bus = Bus::daemon().unwrap_or_else(|failure| panic!("{failure}"));
    let (_backend, store, target) = shop_at("iiop://127.0.0.1:0");
    let text = |more: &str| {
        format!(
            "[listen.front]\naddress = \"dbus:{}#org.example.Front\"\n[[route]]\nname = \"shop\"\nmatch = {{ key = \"shop\" }}\nto = \"{target}\"\ncontract = \"{}\"\ninterface = \"Shop\"\n{more}\n",
            bus.address(),
            contract()
        )
    };
    let own = rustix::process::getuid().as_raw();
    for list in ["allow", "deny"] {
        let wrong =
            try_start(&text(&format!("{list} = \"user:uid:{own}\""))).err().map(|wrong| wrong.to_string());
        let wrong = wrong.unwrap_or_default();
        let told = format!(
            "broker.toml:4:8: `{list}` names users, and at `front` a bus or server stands before the callers"
        );
        assert!(wrong.contains(&told), "{wrong}");
    }
    let broker = start(&text("limit = { per-peer = 1 }"));
    let clients = [Node::new(), Node::new()];
    store.shut(true);
    let held = counting(&clients[0], &broker, 1);
    store.wait_for(1);
    assert_eq!(shop(&clients[0], &broker).noted().unwrap_err().kind(), Kind::Busy);
    assert_eq!(shop(&clients[1], &broker).noted().unwrap(), 0);
    store.shut(false);
    assert_eq!(held.join().unwrap().unwrap(), 1);
}

/// A request of GIOP 1.0 for `count(n)` of the object `shop`.
fn request(number: u32) -> Vec<u8> {
    let mut body = Vec::new();
    let words = |body: &mut Vec<u8>, words: &[u32]| {
        body.resize(body.len().next_multiple_of(4), 0);
        words.iter().for_each(|word| body.extend(word.to_be_bytes()));
    };
    // No service contexts; its number; an answer is wanted.
    words(&mut body, &[0, number]);
    body.push(1);
    for text in [&b"shop"[..], b"count\0"] {
        words(&mut body, &[u32::try_from(text.len()).unwrap()]);
        body.extend(text);
    }
    // No principal; the argument.
    words(&mut body, &[0, number]);
    let mut message = b"GIOP\x01\0\0\0".to_vec();
    message.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
    message.extend(body);
    message
}

/// Calls that a target does not answer are kept up to a bound for each connection. What comes beyond is told so at once, and did not run.
#[test]
fn calls_that_nobody_answers_are_bounded_for_each_connection() {
    use std::io::{Read, Write};
    const MOST: u32 = 1024;
    for typed in [true, false] {
        // It takes all that is sent, and answers nothing.
        let silent = std::net::TcpListener::bind((super::own_loopback(), 0)).unwrap();
        let target = format!("iiop://{}/shop", silent.local_addr().unwrap());
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let taker = thread::spawn(move || {
            let (taken, _) = silent.accept().unwrap();
            let mut copy = taken.try_clone().unwrap();
            let drain = thread::spawn(move || std::io::copy(&mut copy, &mut std::io::sink()));
            // Until the test is over.
            let _ = ended.recv();
            let _ = taken.shutdown(std::net::Shutdown::Both);
            // It ends, one way or another.
            let _ = drain.join().unwrap();
        });
        let contract = if typed {
            format!("contract = \"{}\"\ninterface = \"Shop\"", contract())
        } else {
            String::new()
        };
        let broker = start(&format!(
            "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[[route]]\nname = \"shop\"\nto = \"{target}\"\n{contract}\n"
        ));
        let front = broker.broker.address("front").unwrap().replace("iiop://", "").replace('/', "");
        let mut client = std::net::TcpStream::connect(&front).unwrap();
        client.set_read_timeout(Some(super::LONG)).unwrap();
        (0..MOST).for_each(|number| client.write_all(&request(number)).unwrap());
        let under_way = || broker.metric(r#"calls_under_way{route="shop"}"#);
        until("all are under way", || (under_way() - f64::from(MOST)).abs() < 0.1);
        for number in MOST..MOST + 3 {
            client.write_all(&request(number)).unwrap();
            let mut head = [0; 12];
            client.read_exact(&mut head).unwrap();
            let little = head[6] & 1 == 1;
            let word = |octets: &[u8], at: usize| {
                let octets = octets[at..at + 4].try_into().unwrap();
                if little { u32::from_le_bytes(octets) } else { u32::from_be_bytes(octets) }
            };
            let mut body = vec![0; word(&head, 8) as usize];
            client.read_exact(&mut body).unwrap();
            let text = String::from_utf8_lossy(&body).into_owned();
            // Behind its service contexts: a system exception, of a call that did not run.
            let mut at = 4;
            for _ in 0..word(&body, 0) {
                at += 8 + word(&body, at + 4).next_multiple_of(4) as usize;
            }
            assert_eq!((head[7], word(&body, at), word(&body, at + 4)), (1, number, 2), "{text}");
            assert!(text.contains("IDL:omg.org/CORBA/TRANSIENT:1.0"), "{text}");
            let behind = at + 12 + word(&body, at + 8).next_multiple_of(4) as usize;
            assert_eq!(word(&body, behind + 4), 1, "completed: no");
        }
        assert!((under_way() - f64::from(MOST)).abs() < 0.1);
        drop(client);
        drop(end);
        taker.join().unwrap();
        until("none is under way", || under_way().abs() < 0.1);
    }
}
