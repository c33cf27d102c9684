//! Between nodes: what calls and listeners leave behind, what many interfaces need, and who follows an object that moved.

#![allow(clippy::unwrap_used)]

use everywire_dcom::DCOM;
use everywire_model::describe::{Hold, Operation, Shape, interface, operation, signal};
use everywire_model::object::no_operation;
use everywire_model::*;
use everywire_runtime::Node;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(300);

static LAMP: Interface = interface!(
    "IReviewedLamp",
    "7a1e0b1c-0c55-4d0e-9b6e-3f6d7c1b0101",
    [],
    0,
    &OPERATIONS,
    [],
    signals & SIGNALS
);
static OPERATIONS: [Operation; 1] = [operation!("Press", (in "times": Shape::I32) -> Shape::I32)];
static SIGNALS: [Signal; 1] = [signal!("Lit", { "times": Shape::I32 })];

struct Lamp;

impl Servant for Lamp {
    fn interface(&self) -> &Interface {
        &LAMP
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let (times,) = request.arguments::<(i32,)>()?;
            request.reply::<_, Failure>(Ok((times + 1,)))
        });
    }
}

fn node() -> Node {
    Node::builder(&[&DCOM]).build()
}

fn serving() -> (Node, u16) {
    let server = node();
    let place = server.listen("dcom://127.0.0.1:0?level=none").unwrap();
    server.export_servant("lamp", Arc::new(Lamp));
    (server, port_of(&place))
}

fn port_of(place: &str) -> u16 {
    place.split("127.0.0.1:").nth(1).unwrap().split(['?', '/']).next().unwrap().parse().unwrap()
}

fn lamp(client: &Node, port: u16) -> Object {
    let text = format!("dcom://127.0.0.1:{port}/lamp?level=none");
    client.object(&text).unwrap().typed(Hold::Static(&LAMP)).with_deadline(Some(WAIT))
}

fn press(lamp: &Object) -> Result<i32, Failure> {
    lamp.call::<_, (i32,), Failure>(&OPERATIONS[0], (1,)).map(|(times,)| times)
}

fn lit(server: &Node, times: i32) {
    let value = Value::Struct(vec![("times".into(), Value::Integer(times.into()))]);
    let signal = &SIGNALS[0];
    let tell = |sink: &mut dyn Sink| value.encode(&signal.fields, sink);
    server.emitter().emit(&Emission::typed(b"lamp", &LAMP, signal, &tell)).unwrap();
}

fn pdu(kind: u8, flags: u8, call: u32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![5, 0, kind, flags, 0x10, 0, 0, 0];
    out.extend_from_slice(&(16 + body.len() as u16).to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&call.to_le_bytes());
    out.extend_from_slice(body);
    out
}

const NDR: &str = "8a885d04-1ceb-11c9-9fe8-08002b104860";
const RESOLVER: &str = "99fcfec4-5260-101b-bbcb-00aa0021347a";

fn bind(kind: u8, call: u32, contexts: &[(u16, uuid::Uuid)]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&5840_u16.to_le_bytes());
    body.extend_from_slice(&5840_u16.to_le_bytes());
    body.extend_from_slice(&[0; 4]);
    body.extend_from_slice(&[contexts.len() as u8, 0, 0, 0]);
    for (id, iid) in contexts {
        body.extend_from_slice(&id.to_le_bytes());
        body.extend_from_slice(&[1, 0]);
        body.extend_from_slice(&iid.to_bytes_le());
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(&NDR.parse::<uuid::Uuid>().unwrap().to_bytes_le());
        body.extend_from_slice(&[2, 0, 0, 0]);
    }
    pdu(kind, 0x13, call, &body)
}

fn read(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 16];
    stream.read_exact(&mut head).unwrap();
    let mut all = head.to_vec();
    all.resize(u16::from_le_bytes([head[8], head[9]]).into(), 0);
    stream.read_exact(&mut all[16..]).unwrap();
    all
}

/// Its references name every address of the machine; by whichever name the account was given for it, that is its host.
#[test]
fn a_server_with_many_addresses_is_one_host_by_each_of_its_names() {
    let server = node();
    let place = server.listen("dcom://ada:engine@0.0.0.0:0").unwrap();
    let port: u16 = place.rsplit(':').next().unwrap().split(['?', '/']).next().unwrap().parse().unwrap();
    server.export_servant("lamp", Arc::new(Lamp));
    let mut names = vec!["127.0.0.1".to_owned(), "localhost".to_owned(), "::ffff:127.0.0.1".to_owned()];
    // The address that others would call it by, if there is a network.
    let outwards = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    if outwards.connect("192.0.2.1:9").is_ok() {
        names.push(outwards.local_addr().unwrap().ip().to_string());
    }
    let client = node();
    for name in names {
        let host = if name.contains(':') { format!("[{name}]") } else { name };
        // Twice: what the first one learned of the host, the second one knows.
        for _ in 0..2 {
            let text = format!("dcom://ada:engine@{host}:{port}/lamp");
            let lamp = client.object(&text).unwrap().typed(Hold::Static(&LAMP)).with_deadline(Some(WAIT));
            assert_eq!(press(&lamp).unwrap_or_else(|failure| panic!("{host}: {failure}")), 2);
        }
    }
}

#[test]
fn calls_that_nobody_waits_for_take_up_no_room() {
    let (_server, port) = serving();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(WAIT)).unwrap();
    stream.write_all(&bind(11, 1, &[(0, RESOLVER.parse().unwrap())])).unwrap();
    assert_eq!(read(&mut stream)[2], 12);
    // ServerAlive.
    let body = [0, 0, 0, 0, 0, 0, 3, 0];
    for call in 0..20_000 {
        stream.write_all(&pdu(0, 0x43, 2 + call, &body)).unwrap();
    }
    stream.write_all(&pdu(0, 0x03, 100_000, &body)).unwrap();
    let answer = read(&mut stream);
    assert_eq!(u32::from_le_bytes(answer[12..16].try_into().unwrap()), 100_000, "{answer:x?}");
    assert_eq!(answer[2], 2, "a fault: {:x?}", &answer[24..28]);
}

#[test]
fn a_listener_that_panics_hears_the_next_signal() {
    let (server, port) = serving();
    let client = node();
    let (send, heard) = channel();
    let send = Mutex::new(send);
    let listener: signal::Listener = Arc::new(move |event| {
        if let SignalEvent::Signal(heard) = event {
            let (times,) = heard.body.decode::<(i32,)>(&SIGNALS[0].fields).unwrap();
            assert_ne!(times, 1, "the listener's own fault");
            send.lock().unwrap().send(times).unwrap();
        }
    });
    let _subscription = lamp(&client, port).subscribe(Some(&SIGNALS[0]), listener).unwrap();
    (1..=3).for_each(|times| lit(&server, times));
    assert_eq!(heard.recv_timeout(WAIT), Ok(2));
    assert_eq!(heard.recv_timeout(WAIT), Ok(3));
}

#[test]
fn nothing_is_left_of_a_node_that_ends_with_sinks() {
    let here = Arc::new(());
    let seen = Arc::clone(&here);
    let server = Node::builder(&[&DCOM]).observer(Arc::new(move |_| drop(Arc::clone(&seen)))).build();
    let place = server.listen("dcom://127.0.0.1:0?level=none").unwrap();
    server.export_servant("lamp", Arc::new(Lamp));
    let client = node();
    let (send, heard) = channel();
    let send = Mutex::new(send);
    let listener: signal::Listener = Arc::new(move |_| {
        let _ = send.lock().unwrap().send(());
    });
    let subscription = lamp(&client, port_of(&place)).subscribe(Some(&SIGNALS[0]), listener).unwrap();
    lit(&server, 1);
    heard.recv_timeout(WAIT).unwrap();
    drop(server);
    drop(subscription);
    drop(client);
    let end = Instant::now() + WAIT;
    while Arc::strong_count(&here) > 1 {
        assert!(Instant::now() < end, "the node is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_call_that_does_not_wait_follows_an_object_that_is_elsewhere_now() {
    // The resolver's port stays, what is behind it changes.
    let target = Arc::new(AtomicU16::new(0));
    let relay = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = relay.local_addr().unwrap().port();
    let behind = Arc::clone(&target);
    std::thread::spawn(move || {
        for near in relay.incoming() {
            let near = near.unwrap();
            let Ok(far) = TcpStream::connect(("127.0.0.1", behind.load(Ordering::SeqCst))) else { continue };
            for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    let (first, at) = serving();
    target.store(at, Ordering::SeqCst);
    let client = node();
    let lamp = lamp(&client, port);
    assert_eq!(press(&lamp).unwrap(), 2);
    first.stop();
    drop(first);
    let (_second, at) = serving();
    target.store(at, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(200));
    let later = || {
        let (tell, told) = channel();
        let arguments = |sink: &mut dyn Sink| (1_i32,).marshal_list(&OPERATIONS[0].arguments, sink);
        let method = Method::Typed { interface: Some(&LAMP), operation: &OPERATIONS[0] };
        let done = move |outcome| {
            let _ = tell.send(format!("{outcome:?}"));
        };
        lamp.target().submit(method, &arguments, Box::new(done));
        told.recv_timeout(WAIT).unwrap()
    };
    // The first may find out that the connection is closed.
    // The first may find out that connections are closed.
    let outcome = (0..4).map(|_| later()).find(|outcome| !outcome.contains("closes the connection")).unwrap();
    assert!(outcome.starts_with("Done"), "{outcome}");
}

#[test]
fn an_object_may_have_many_interfaces() {
    const MANY: usize = 100;
    struct One(Hold<Interface>, AtomicUsize);
    impl Servant for One {
        fn interface(&self) -> &Interface {
            &self.0
        }
        fn dispatch(&self, request: Request) {
            self.1.fetch_add(1, Ordering::Relaxed);
            request.run(|request| match request.index() {
                0 => request.reply::<_, Failure>(Ok((1_i32,))),
                _ => Err(no_operation(&LAMP)),
            });
        }
    }
    let server = node();
    let place = server.listen("dcom://127.0.0.1:0?level=none").unwrap();
    let client = node();
    let interfaces: Vec<Hold<Interface>> = (0..MANY)
        .map(|number| {
            let id = format!("7a1e0b1c-0c55-4d0e-9b6e-3f6d7c1b{:04x}", 0x1000 + number);
            Hold::new(Interface { id: id.into(), signals: vec![].into(), ..LAMP.clone() })
        })
        .collect();
    for interface in &interfaces {
        server.export_servant("many", Arc::new(One(interface.clone(), AtomicUsize::new(0))));
    }
    let text = format!("dcom://127.0.0.1:{}/many?level=none", port_of(&place));
    let many = client.object(&text).unwrap().with_deadline(Some(WAIT));
    for (number, interface) in interfaces.iter().enumerate() {
        let one = Object::new(Arc::clone(many.target())).typed(interface.clone());
        let answer = one.call::<_, (i32,), Failure>(&interface.operations[0], (1_i32,));
        assert!(answer.is_ok(), "interface {number}: {answer:?}");
    }
}
