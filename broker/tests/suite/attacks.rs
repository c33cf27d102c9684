//! Attacks on what stands between wires, each with what keeps it off. Those on one wire alone are the wire's own.

use super::{LONG, Running, Scratch, contract, own_loopback, place, shop_at, start, until};
use everywire::model::pipe::pipe;
use everywire::model::visit::{Nothing, WithHeaders};
use everywire::model::{
    Answer, Completed, Encode, Header, Headers, Hold, Interface, MarshalList, Outcome, Remote, Request,
    Servant, Sink, Value,
};
use everywire::{Kind, Node, Ref};
use everywire_tests::shop::market::Shop;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A broker with a contract from a listener to a target.
fn bridge(near: &str, target: &str, more: &str, scratch: &Scratch) -> Running {
    start(&format!(
        "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"shop\"\nto = \"{target}\"\ncontract = \"{}\"\ninterface = \"Shop\"\nmatch = {{ key = \"shop\" }}\n{more}\n",
        place(near, "front", scratch),
        contract()
    ))
}

fn caller(client: &Node, broker: &Running) -> Ref<dyn Shop> {
    client.connect::<dyn Shop>(&broker.reference("shop")).unwrap()
}

/// Answers each call with its arguments.
struct Echo(Hold<Interface>, AtomicUsize);

impl Servant for Echo {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, mut request: Request) {
        self.1.fetch_add(1, Ordering::SeqCst);
        let body = request.body().clone();
        let Some(operation) = self.0.operations.get(request.index()) else { return };
        let (arguments, results) = (&operation.arguments, &operation.results);
        let (Some(given), Some(field)) = (arguments.fields().first(), results.fields().first()) else {
            return;
        };
        let values = |sink: &mut dyn Sink| {
            if given.shape.noun() != field.shape.noun() {
                // How many there were.
                sink.open(results, 1)?;
                sink.i32(1)?;
                return sink.close(results);
            }
            body.read(|source| {
                source.open(arguments)?;
                sink.open(results, 1)?;
                pipe(&given.shape, source, sink)?;
                source.close(arguments)?;
                sink.close(results)
            })
        };
        request.answer(Answer::Done(&values));
    }
}

/// An interface of a contract in IDL, and the file that it stands in.
fn interface(idl: &str, scratch: &Scratch) -> (Hold<Interface>, String) {
    let file = scratch.path("attack.idl");
    std::fs::write(&file, idl).unwrap();
    let contract =
        everywire_idl::read_with(std::path::Path::new(&file), &everywire_idl::Preprocessing::default())
            .unwrap_or_else(|wrong| panic!("{wrong}"));
    (contract.interfaces().next().unwrap().clone(), file)
}

/// Memory that this process has, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
}

/// B1, amplification: a few octets on one wire are many on another. What a message may be in the end is bounded where it is
/// written, so that nothing larger is ever held, and the call is refused as one that did not run.
#[test]
fn b1_a_small_call_does_not_become_a_huge_one() {
    let scratch = Scratch::new();
    let (many, file) =
        interface("interface Many { typedef sequence<boolean> Flags; long take(in Flags f); };", &scratch);
    let backend = Node::new();
    backend.listen("basic://127.0.0.1:0?security=none&MaxReceivedMessageSize=1000000000").unwrap();
    let echo = Arc::new(Echo(many.clone(), AtomicUsize::new(0)));
    let target = backend.print_friendly(&backend.export_servant("many", echo.clone()));
    let broker = start(&format!(
        "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[[route]]\nname = \"many\"\nto = \"{target}\"\ncontract = \"{file}\"\ntimeout = \"2m\"\n"
    ));
    let client = Node::new();
    // On a busy machine four million values take their time.
    let object = client.object(&broker.reference("many")).unwrap().typed(many.clone());
    let object = object.with_deadline(Some(LONG));
    let take = &many.operations[0];
    let call = |flags: usize| {
        object.invoke(take, &|sink: &mut dyn Sink| {
            let shape = &take.arguments.fields()[0].shape;
            sink.open(&take.arguments, 1)?;
            sink.open(shape.resolved(), flags)?;
            (0..flags).try_for_each(|_| sink.bool(true))?;
            sink.close(shape.resolved())?;
            sink.close(&take.arguments)
        })
    };
    let before = resident();
    // Four octets of the first become a hundred of the second.
    let Outcome::Failed(failure) = call(4_000_000) else { panic!("it went through") };
    assert_eq!((failure.kind(), failure.completed()), (Kind::LimitExceeded, Completed::No), "{failure:?}");
    assert_eq!(echo.1.load(Ordering::SeqCst), 0, "nothing was forwarded");
    let grown = resident().saturating_sub(before);
    assert!(grown < 200 << 20, "{grown} bytes were held for a call of four million");
    let _ = call(3);
    assert_eq!(echo.1.load(Ordering::SeqCst), 1, "smaller ones pass");
}

/// B2, the broker's name for everybody's: what a caller says of itself in headers makes nobody of it, and who is not let through to a
/// route is not let through to what the route gives to others either.
#[test]
fn b2_nobody_is_taken_for_somebody_else() {
    let scratch = Scratch::new();
    let (_backend, _, target) = shop_at("iiop://127.0.0.1:0");
    // A caller that says who it is, and is believed nothing.
    let broker = bridge("iiop", &target, "allow = [\"user:ada\", \"user:uid:0\", \"local\"]", &scratch);
    let client = Node::new();
    let object = client.object(&broker.reference("shop")).unwrap();
    let mut headers = Headers::default();
    for name in ["0x0000000f", "0x45570001"] {
        headers.add(Header::text(name, "user:ada"));
    }
    let noted =
        <dyn Shop as Remote>::interface().operations.iter().find(|held| held.name == "noted").unwrap();
    let values: &dyn Encode = &Nothing;
    let Outcome::Failed(failure) = object.invoke(noted, &WithHeaders { values, headers: &headers }) else {
        panic!("it was let in")
    };
    assert_eq!((failure.kind(), failure.completed()), (Kind::Refused, Completed::No), "{failure:?}");
    // What the kernel says of a caller is believed, by its number.
    let uid = rustix::process::getuid().as_raw();
    let more = format!("allow = \"user:uid:{uid}\"");
    let by_socket = bridge("dbus", &target, &more, &scratch);
    assert_eq!(caller(&client, &by_socket).noted().unwrap(), 0);
    // One that is denied calls nothing that was given to another either.
    let text = |deny: &str| {
        format!(
            "[listen.outside]\naddress = \"iiop://127.0.0.1:0\"\n[listen.inside]\naddress = \"iiop+unix://{}\"\n[[route]]\nname = \"shop\"\nfrom = \"inside\"\nto = \"{target}\"\ncontract = \"{}\"\ninterface = \"Shop\"\n{deny}\n",
            scratch.path("inside.sock"),
            contract()
        )
    };
    let broker = start(&text(""));
    let branch = caller(&client, &broker).branch("east").unwrap().unwrap();
    assert_eq!(branch.title().unwrap(), "east");
    drop(broker);
    let broker = start(&text("deny = \"local\""));
    assert_eq!(caller(&client, &broker).branch("east").unwrap_err().kind(), Kind::Refused);
}

/// B2 again, of attributes: who is denied a route neither reads nor writes them by the ways that a wire has for attributes, and its
/// calls for them count their hops.
#[test]
fn b2_who_is_denied_a_route_is_denied_its_attributes() {
    let scratch = Scratch::new();
    let (_backend, store, target) = shop_at("iiop://127.0.0.1:0");
    let uid = rustix::process::getuid().as_raw();
    for (lists, lets) in [
        (format!("deny = \"user:uid:{uid}\""), false),
        ("deny = \"local\"".to_owned(), false),
        ("allow = \"user:ada\"".to_owned(), false),
        (format!("allow = \"user:uid:{uid}\""), true),
    ] {
        let broker = bridge("dbus", &target, &lists, &scratch);
        let client = Node::new();
        let shop = caller(&client, &broker);
        for asked in [shop.title().map(drop), shop.set_title("taken")] {
            match asked {
                Ok(()) => assert!(lets, "{lists}"),
                Err(failure) => {
                    assert!(!lets, "{lists}: {failure:?}");
                    // On D-Bus a refusal does not say whether the call began.
                    assert_eq!(
                        (failure.kind(), failure.completed()),
                        (Kind::Refused, Completed::Maybe),
                        "{lists}"
                    );
                }
            }
        }
        if !lets {
            assert_eq!(*store.title.lock().unwrap(), "shop", "{lists}");
        }
    }
}

/// B2 again, of references: the route's list holds for the objects behind those that it gives.
#[test]
fn b2_who_is_denied_a_route_is_denied_what_it_gave_to_others() {
    let scratch = Scratch::new();
    let (_backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let allowed = format!("user:uid:{}", rustix::process::getuid().as_raw());
    // Both listeners lead to the same objects; only who comes by the socket is somebody.
    let broker = start(&format!(
        "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[[route]]\nname = \"shop\"\nto = \"{target}\"\ncontract = \"{}\"\ninterface = \"Shop\"\nallow = [\"{allowed}\", \"127.0.0.2\"]\n",
        contract()
    ));
    let reference = broker.reference("shop");
    let refused = |failure: everywire::Failure| assert_eq!(failure.kind(), Kind::Refused, "{failure:?}");
    let client = Node::new();
    refused(client.connect::<dyn Shop>(&reference).unwrap().branch("east").unwrap_err());
    // Somebody at an address that is allowed gets a branch, and hands its reference on.
    let given = from_elsewhere(&broker, &reference);
    refused(client.connect::<dyn Shop>(&given).unwrap().title().unwrap_err());
    let _ = scratch;
}

/// A reference to a branch, asked for from 127.0.0.2 by way of a relay.
fn from_elsewhere(broker: &Running, reference: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let front = broker.broker.address("front").unwrap();
    let to: std::net::SocketAddr = front.trim_start_matches("iiop://").trim_end_matches('/').parse().unwrap();
    thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
            let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            bind(&fd, &"127.0.0.2:0".parse::<std::net::SocketAddr>().unwrap()).unwrap();
            connect(&fd, &to).unwrap();
            let target = std::net::TcpStream::from(fd);
            let (mut a, mut b) = (caller.try_clone().unwrap(), target.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut a, &mut b));
            let (mut a, mut b) = (target, caller);
            thread::spawn(move || std::io::copy(&mut a, &mut b));
        }
    });
    let key = reference.rsplit_once('/').unwrap().1;
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&format!("iiop://127.0.0.1:{port}/{key}")).unwrap();
    let branch = shop.branch("east").unwrap().unwrap();
    client.print_friendly(branch.reference())
}

/// B3, routes that lead back to one another: see `loops`. A call that two targets refuse because they are part of the circle is not sent
/// to the other one by each broker on the way, which would double it at each.
#[test]
fn b3_a_circle_of_several_targets_does_not_multiply_calls() {
    let text = |targets: &[String]| {
        let to: Vec<_> = targets.iter().map(|target| format!("\"{target}\"")).collect();
        format!(
            "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[[route]]\nname = \"shop\"\nto = [{}]\nretries = 5\nidempotent = \"*\"\n",
            to.join(", ")
        )
    };
    let (_backend, _, somewhere) = shop_at("iiop://127.0.0.1:0");
    let brokers: Vec<_> = (0..3).map(|_| start(&text(std::slice::from_ref(&somewhere)))).collect();
    let all: Vec<String> = brokers.iter().map(|broker| broker.reference("shop")).collect();
    for (at, broker) in brokers.iter().enumerate() {
        let others: Vec<_> =
            all.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, to)| to.clone()).collect();
        broker.broker.reload(super::config(&text(&others)).unwrap()).unwrap();
    }
    let client = Node::new();
    let failure = client.connect::<dyn Shop>(&all[0]).unwrap().count(1).unwrap_err();
    assert_eq!((failure.kind(), failure.completed()), (Kind::Refused, Completed::No), "{failure:?}");
    let sent: f64 = brokers
        .iter()
        .flat_map(|broker| {
            let page = broker.broker.metrics();
            page.lines()
                .filter_map(|line| line.strip_prefix("everywire_broker_target_calls_total{"))
                .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
                .collect::<Vec<_>>()
        })
        .sum();
    assert!((sent - 16.0).abs() < 0.1, "{sent} calls of one");
}

/// B4, a call that is withdrawn and runs on: see `cancels`. One that waits for a target that is slow to greet is not sent when the target is
/// there at last.
#[test]
fn b4_what_was_withdrawn_before_it_was_sent_is_never_sent() {
    let scratch = Scratch::new();
    // Greets nobody until it is told to.
    let listener = TcpListener::bind((own_loopback(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (_backend, store, target) = shop_at("net.tcp://127.0.0.1:0?security=none");
    let behind: std::net::SocketAddr =
        target.trim_start_matches("net.tcp://").split('/').next().unwrap().parse().unwrap();
    let (open, opened) = std::sync::mpsc::channel::<()>();
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    thread::spawn(move || {
        let (caller, _) = listener.accept().unwrap();
        count.fetch_add(1, Ordering::SeqCst);
        opened.recv().unwrap();
        let target = std::net::TcpStream::connect(behind).unwrap();
        let (mut a, mut b) = (caller.try_clone().unwrap(), target.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut a, &mut b));
        let (mut a, mut b) = (target, caller);
        let _ = std::io::copy(&mut a, &mut b);
    });
    let slow = target.replacen(&behind.port().to_string(), &port.to_string(), 1);
    let broker = bridge("iiop", &slow, "", &scratch);
    let (client, other) = (Node::new(), Node::new());
    let count =
        <dyn Shop as Remote>::interface().operations.iter().find(|held| held.name == "count").unwrap();
    let object = client.object(&broker.reference("shop")).unwrap();
    let call =
        object.submit(count, &|sink: &mut dyn Sink| MarshalList::marshal_list(&(7,), &count.arguments, sink));
    until("the target was asked", || accepted.load(Ordering::SeqCst) == 1);
    let waits = caller(&other, &broker);
    let second = thread::spawn(move || waits.count(8));
    until("both wait", || (broker.metric(r#"calls_under_way{route="shop"}"#) - 2.0).abs() < 0.1);
    let closed =
        || broker.log.lock().unwrap().iter().filter(|line| line.contains(r#""event":"closed""#)).count();
    // The only connection that ends from now on is this client's.
    let before = closed();
    client.stop_within(Duration::ZERO);
    drop(call);
    // It is said when the calls of the connection are withdrawn. Its place is free before that.
    until("the broker knows", || closed() > before);
    open.send(()).unwrap();
    assert_eq!(second.join().unwrap().unwrap(), 8);
    assert_eq!(store.counted.lock().unwrap().get(&7), None, "nobody wanted it any more");
    assert!((broker.metric(r#"calls_total{route="shop",outcome="cancelled"}"#) - 1.0).abs() < 0.1);
}

/// B5, answers that come when the time is over: they are nobody's, and the caller was told the truth, that the call may have run.
#[test]
fn b5_an_answer_that_comes_too_late_is_nobodys() {
    for far in ["iiop", "dbus", "net.tcp", "basic", "dcop", "dcom"] {
        let scratch = Scratch::new();
        let (_backend, store, target) = shop_at(&place(far, "backend", &scratch));
        let broker = bridge("iiop", &target, "timeout = \"300ms\"", &scratch);
        let client = Node::new();
        let shop = caller(&client, &broker);
        store.shut(true);
        let counted = |n: i32| store.counted.lock().unwrap().get(&n).copied();
        // On a busy machine the time may be over before a call has left the broker, or the target hears that it is withdrawn before it
        // has begun.
        let mut failures = (1000..).map(|n| (n, shop.count(n).unwrap_err()));
        let (late, failure) = failures
            .find(|(n, failure)| failure.completed() != Completed::No && counted(*n).is_some())
            .unwrap();
        assert_eq!(
            (failure.kind(), failure.completed()),
            (Kind::TimedOut, Completed::Maybe),
            "{far}: {failure:?}"
        );
        store.shut(false);
        for n in 2..30 {
            match shop.count(n) {
                Ok(answered) => assert_eq!(answered, n, "{far}"),
                // A busy machine may be late again.
                Err(failure) => assert_eq!(failure.kind(), Kind::TimedOut, "{far}: {failure:?}"),
            }
        }
        assert_eq!(counted(late), Some(1), "{far}: once");
    }
}

/// B6, order: calls that nobody answers reach the target in the order in which a caller sent them, also those that wait for a connection, and
/// when the target is slow to read.
#[test]
fn b6_what_one_caller_says_arrives_in_its_order() {
    const CALLS: u32 = 3000;
    for typed in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = thread::spawn(move || slow_reader(&listener, CALLS as usize));
        let contract = match typed {
            true => {
                format!("contract = \"{}\"\ninterface = \"Shop\"\nmatch = {{ key = \"shop\" }}", contract())
            }
            false => String::new(),
        };
        let broker = start(&format!(
            "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[[route]]\nname = \"shop\"\nto = \"iiop://127.0.0.1:{port}/shop\"\n{contract}\n"
        ));
        let client = Node::new();
        let shop = caller(&client, &broker);
        let long = "x".repeat(2000);
        for n in 0..CALLS {
            shop.note(&format!("{n:06}{long}")).unwrap();
        }
        let heard = heard.join().unwrap();
        assert!(heard.iter().copied().eq(0..CALLS), "typed {typed}: {:?}", first_wrong(&heard));
    }
}

fn first_wrong(heard: &[u32]) -> Option<(usize, &u32)> {
    heard.iter().enumerate().find(|(at, number)| *at != **number as usize)
}

/// Reads so many requests of GIOP, none of them until its buffers are full, and returns the number that each begins its text with.
fn slow_reader(listener: &TcpListener, calls: usize) -> Vec<u32> {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut numbers = Vec::new();
    let mut rested = false;
    while numbers.len() < calls {
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head[..4], b"GIOP");
        let size = [head[8], head[9], head[10], head[11]];
        let size = if head[6] & 1 == 1 { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
        let mut body = vec![0; size as usize];
        stream.read_exact(&mut body).unwrap();
        match head[7] {
            0 => {
                if !rested {
                    rested = true;
                    // Until whoever writes cannot go on: what it has not sent does not grow any more.
                    let mut before = usize::MAX;
                    loop {
                        thread::sleep(Duration::from_millis(100));
                        let mut some = vec![0; 1 << 22];
                        let waiting = stream.peek(&mut some).unwrap();
                        if waiting == before {
                            break;
                        }
                        before = waiting;
                    }
                }
                let at =
                    body.windows(16).position(|piece| piece[6..].iter().all(|octet| *octet == b'x')).unwrap();
                numbers.push(str::from_utf8(&body[at..at + 6]).unwrap().parse().unwrap());
            }
            // Where is it? Here.
            3 => {
                let mut answer = vec![b'G', b'I', b'O', b'P', 1, head[5], head[6] & 1, 4, 0, 0, 0, 0];
                let eight = 8_u32;
                let size = if head[6] & 1 == 1 { eight.to_le_bytes() } else { eight.to_be_bytes() };
                answer[8..12].copy_from_slice(&size);
                answer.extend_from_slice(&body[..4]);
                let one = 1_u32;
                answer.extend_from_slice(&if head[6] & 1 == 1 {
                    one.to_le_bytes()
                } else {
                    one.to_be_bytes()
                });
                stream.write_all(&answer).unwrap();
            }
            other => panic!("a message of type {other}"),
        }
    }
    numbers
}

/// B7, numbers that lose something: what a wire cannot carry as it is, is refused before anything is sent; nothing is cut, wrapped or rounded.
#[test]
fn b7_no_number_becomes_another_one() {
    let scratch = Scratch::new();
    let (extremes, file) = interface(
        "interface Extremes {
           octet a(in octet v); short b(in short v); unsigned short c(in unsigned short v); long d(in long v);
           unsigned long e(in unsigned long v); long long f(in long long v); unsigned long long g(in unsigned long long v);
           float h(in float v); double i(in double v); char j(in char v); wchar k(in wchar v); boolean l(in boolean v);
           typedef sequence<long long> Longs; Longs m(in Longs v); typedef sequence<float> Floats; Floats n(in Floats v);
           string o(in string v); wstring p(in wstring v);
         };",
        &scratch,
    );
    let whole = |value: i128| Value::Integer(value);
    let cases: Vec<(&str, Vec<Value>)> = vec![
        ("a", vec![whole(0), whole(255)]),
        ("b", vec![whole(-32768), whole(32767)]),
        ("c", vec![whole(65535)]),
        ("d", vec![whole(i32::MIN.into()), whole(i32::MAX.into())]),
        ("e", vec![whole(u32::MAX.into())]),
        ("f", vec![whole(i64::MIN.into()), whole(i64::MAX.into()), whole((1 << 53) + 1)]),
        ("g", vec![whole(u64::MAX.into()), whole((1 << 53) + 1)]),
        (
            "h",
            vec![
                Value::Float(f64::from(f32::MAX)),
                Value::Float(f64::from(f32::MIN_POSITIVE / 4.0)),
                Value::Float(0.1_f32.into()),
            ],
        ),
        (
            "i",
            vec![
                Value::Float(f64::MAX),
                Value::Float(5e-324),
                Value::Float(0.1),
                Value::Float(f64::NEG_INFINITY),
            ],
        ),
        ("j", vec![Value::Text("a".into())]),
        ("k", vec![Value::Text("ä".into()), Value::Text("€".into())]),
        ("l", vec![Value::Bool(true), Value::Bool(false)]),
        ("m", vec![Value::List(vec![whole(i64::MIN.into()), whole(i64::MAX.into())])]),
        ("n", vec![Value::List(vec![Value::Float(f64::from(f32::MAX)), Value::Float(0.1_f32.into())])]),
        ("o", vec![Value::Text("a\u{1}b".into()), Value::Text("ä€𝄞".into()), Value::Text(String::new())]),
        ("p", vec![Value::Text("ä€𝄞".into())]),
    ];
    let mut whole_ones = 0;
    for near in super::WIRES {
        for far in super::WIRES {
            let scratch = Scratch::new();
            let backend = Node::new();
            backend.listen(&place(far, "backend", &scratch)).unwrap();
            let echo = Arc::new(Echo(extremes.clone(), AtomicUsize::new(0)));
            let target = backend.print_friendly(&backend.export_servant("extremes", echo));
            let broker = start(&format!(
                "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"all\"\nto = \"{target}\"\ncontract = \"{file}\"\nmatch = {{ key = \"extremes\" }}\n",
                place(near, "front", &scratch)
            ));
            let client = Node::new();
            let object = client.object(&broker.reference("all")).unwrap().typed(extremes.clone());
            for (name, values) in &cases {
                let operation = extremes.operations.iter().find(|held| held.name == *name).unwrap();
                for value in values {
                    let said = format!("{near} to {far}: {name}({value:?})");
                    let shape = operation.arguments.fields()[0].shape.clone();
                    let outcome = object.invoke(operation, &|sink: &mut dyn Sink| {
                        sink.open(&operation.arguments, 1)?;
                        value.encode(&shape, sink)?;
                        sink.close(&operation.arguments)
                    });
                    match outcome {
                        Outcome::Done(body) => {
                            let read = body.read(|source| Value::decode(&operation.results, source)).unwrap();
                            let Value::Struct(fields) = &read else { panic!("{said}: {read:?}") };
                            assert_eq!(format!("{:?}", fields[0].1), format!("{value:?}"), "{said}");
                            whole_ones += 1;
                        }
                        Outcome::Failed(failure) => {
                            assert!(
                                matches!(
                                    failure.kind(),
                                    Kind::BadArgument | Kind::Unsupported | Kind::Malformed // DCOP says no more than that a call failed.
                                ) || (near == "dcop" && failure.kind() == Kind::Internal),
                                "{said}: {failure:?}"
                            );
                        }
                        other => panic!("{said}: {other:?}"),
                    }
                }
            }
        }
    }
    assert!(whole_ones > 36 * 20, "only {whole_ones} crossed");
}

/// B8, calls that are begun and withdrawn as fast as they can be: nothing of them piles up, here or at the target, and whoever is honest
/// is served meanwhile.
#[test]
fn b8_calls_that_are_begun_and_withdrawn_pile_up_nowhere() {
    let scratch = Scratch::new();
    for typed in [true, false] {
        let (backend, store, target) = shop_at("iiop://127.0.0.1:0");
        let broker = match typed {
            true => bridge("iiop", &target, "", &scratch),
            false => start(&format!(
                "[listen.front]\naddress = \"iiop://127.0.0.1:0\"\n[[route]]\nname = \"shop\"\nto = \"{target}\"\n"
            )),
        };
        let (attacker, client) = (Node::new(), Node::new());
        let honest = caller(&client, &broker);
        honest.noted().unwrap();
        let count =
            <dyn Shop as Remote>::interface().operations.iter().find(|held| held.name == "noted").unwrap();
        let object = attacker.object(&broker.reference("shop")).unwrap();
        for round in 0..50 {
            let calls: Vec<_> = (0..100).map(|_| object.submit(count, &Nothing)).collect();
            drop(calls);
            assert_eq!(honest.count(round).unwrap(), round, "typed {typed}");
        }
        until("nothing is under way", || broker.metric(r#"calls_under_way{route="shop"}"#).abs() < 0.1);
        assert_eq!(store.counted.lock().unwrap().values().sum::<u32>(), 50);
        // One connection for the typed route; two callers have one each without a contract.
        assert!(backend.connections() <= 2, "{}", backend.connections());
    }
}
