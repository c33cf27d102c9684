//! The runtime under calls: every transport, many threads, blocked servants, dying peers.

#![allow(clippy::unwrap_used)]

use crate::plain;
use crate::plain::{Does, Honest, LONG, PLAIN, Probe, SHORT, addresses, block_on, call, interface, probe_at};
use everywire_model::visit::Nothing;
use everywire_model::{Completed, Failure, Kind, Outcome, Ref};
use everywire_runtime::{Builder, Latency, Node};
use rustix::net::{AddressFamily, SocketType};
use std::future::Future;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::time::Duration;

fn node() -> Node {
    plain::node(2)
}

/// A server and a caller's reference to it, on each transport.
fn each(test: &str, check: impl Fn(&str, Ref<dyn Probe>, &Arc<Honest>, &Node)) {
    for address in addresses(test) {
        let server = node();
        let bound = server.listen(&address).unwrap();
        let servant = Arc::new(Honest::default());
        server.export::<dyn Probe>("probe", servant.clone());
        let client = node();
        let object = client.connect::<dyn Probe>(&probe_at(&bound)).unwrap();
        check(&address, object, &servant, &client);
    }
}

#[test]
fn calls_return_their_results() {
    each("results", |address, object, servant, _| {
        for v in 0..2000 {
            assert_eq!(object.add_one(v).unwrap(), v + 1, "{address}");
        }
        for _ in 0..10 {
            object.hello().unwrap();
        }
        object.add_one(1).unwrap();
        assert_eq!(servant.hellos.load(Ordering::Relaxed), 10, "{address}");
    });
}

/// Whoever asks for the way in the moment in which it was found is told of the way, and not that the node was stopped: the search that
/// ends took those with it who had a search of their own.
#[test]
fn a_way_that_is_asked_for_while_a_search_ends_is_found() {
    let server = node();
    let bound = server.listen("plain://127.0.0.1:0").unwrap();
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let client = node();
    for _ in 0..200 {
        let target = Arc::clone(client.object(&probe_at(&bound)).unwrap().target());
        let (sender, receiver) = mpsc::channel();
        let again = Arc::clone(&target);
        let first = sender.clone();
        target.prepare(Box::new(move |found| {
            first.send(found.map(drop)).unwrap();
            again.prepare(Box::new(move |found| sender.send(found.map(drop)).unwrap()));
        }));
        for _ in 0..2 {
            receiver.recv_timeout(LONG).unwrap().unwrap();
        }
    }
}

#[test]
fn large_results_arrive_whole() {
    each("large", |address, object, _, _| {
        // Those of some 100 kB have another buffer when they come again.
        let again = [100_000, 100_001, 120_000, 7, 100_000, 250_000, 260_000, 70_000, 70_000, 0, 90_000];
        for n in [0, 1, 16383, 16384].into_iter().chain(again).chain([3_000_000, 5, 3_000_000]).chain(again) {
            let bytes = object.get_bytes(n).unwrap();
            assert_eq!(bytes.len(), usize::try_from(n).unwrap(), "{address}");
            assert!(bytes.iter().all(|b| *b == 7), "{address}");
        }
    });
}

#[test]
fn threads_share_a_connection() {
    each("threads", |address, object, _, _| {
        std::thread::scope(|scope| {
            for t in 0..8 {
                let object = object.clone();
                scope.spawn(move || {
                    for v in 0..300 {
                        assert_eq!(object.add_one(v * t).unwrap(), v * t + 1, "{address}");
                        if v % 50 == 0 {
                            assert_eq!(object.get_bytes(70_000).unwrap().len(), 70_000);
                        }
                    }
                });
            }
        });
    });
}

/// A server whose `add_one` of a negative number waits at a gate; who opens that, and who is told that a call is there.
fn gated(address: &str) -> (Node, String, mpsc::Sender<()>, mpsc::Receiver<()>) {
    let ((open, gate), (tell, told)) = (mpsc::channel(), mpsc::channel());
    let gate = Mutex::new(gate);
    let servant = Does(move |v: i32| {
        if v < 0 {
            // Nobody listens any more when a test is over.
            let _ = tell.send(());
            return gate.lock().unwrap().recv_timeout(LONG).is_ok().into();
        }
        v + 1
    });
    let server = node();
    let bound = server.listen(address).unwrap();
    server.export::<dyn Probe>("probe", Arc::new(servant));
    (server, bound, open, told)
}

#[test]
fn a_servant_that_blocks_does_not_block_others() {
    for address in addresses("blocks") {
        let (_server, bound, open, told) = gated(&address);
        let object = node().connect::<dyn Probe>(&probe_at(&bound)).unwrap();
        std::thread::scope(|scope| {
            let slow = object.clone();
            let waiting = scope.spawn(move || slow.add_one(-1));
            told.recv_timeout(LONG).unwrap();
            for v in 0..100 {
                assert_eq!(object.add_one(v).unwrap(), v + 1, "{address}");
            }
            open.send(()).unwrap();
            // It was let go, and did not give up waiting before.
            assert_eq!(waiting.join().unwrap().unwrap(), 1, "{address}: the others waited for the slow one");
        });
    }
}

#[test]
fn calls_that_came_with_a_blocking_one_are_served() {
    use std::io::{Read, Write};
    let (_server, bound, open, _told) = gated("plain://127.0.0.1:0");
    let address = bound.trim_start_matches("plain://").trim_end_matches('/');
    let mut peers: Vec<_> = (0..6)
        .map(|_| {
            let peer = std::net::TcpStream::connect(address).unwrap();
            peer.set_read_timeout(Some(LONG)).unwrap();
            peer
        })
        .collect();
    // One segment: a call that blocks, and many behind it, on more connections than are looked at directly.
    for peer in &mut peers {
        let mut all = call(1, "add_one", -1);
        (2..200).for_each(|id| all.extend(call(id, "add_one", 1)));
        peer.write_all(&all).unwrap();
    }
    for peer in &mut peers {
        let mut replies = vec![0; 198 * 17];
        peer.read_exact(&mut replies).expect("the others wait for the blocking one");
        let mut ids: Vec<u64> =
            replies.chunks(17).map(|reply| u64::from_le_bytes(reply[5..13].try_into().unwrap())).collect();
        ids.sort_unstable();
        assert_eq!(ids, (2..200).collect::<Vec<u64>>());
    }
    peers.iter().for_each(|_| open.send(()).unwrap());
    for peer in &mut peers {
        let mut last = [0; 17];
        peer.read_exact(&mut last).unwrap();
        assert_eq!((last[5], last[13]), (1, 1), "it was not let go");
    }
}

#[test]
fn callbacks_reach_the_caller_while_it_waits() {
    each("callbacks", |address, object, _, client| {
        client.listen("plain://127.0.0.1:0").unwrap();
        let sink = client.export_anonymous::<dyn Probe>(Arc::new(Honest::default()));
        for n in 1..50 {
            assert_eq!(object.call_back(n, Some(sink.clone())).unwrap(), n + 1, "{address}");
        }
    });
}

#[test]
fn a_panic_is_a_failure_of_that_call_only() {
    each("panics", |address, object, _, _| {
        let failure = object.panic().unwrap_err();
        assert!(failure.message().contains("without an answer"), "{address}: {failure}");
        assert_eq!(object.add_one(1).unwrap(), 2);
    });
}

#[test]
fn deadlines_end_calls() {
    for address in addresses("deadlines") {
        let (_server, bound, open, told) = gated(&address);
        let client = node();
        let object = client.connect::<dyn Probe>(&probe_at(&bound)).unwrap();
        assert_eq!(object.add_one(1).unwrap(), 2);
        let late = client.resolve(object.reference()).unwrap().with_deadline(Some(Duration::from_millis(50)));
        let future = late.call_async::<(i32,), (i32,), Failure>(&interface().operations[0], (-1,));
        let failure = block_on(future).unwrap().unwrap_err();
        assert_eq!(failure.kind(), Kind::TimedOut, "{address}: {failure}");
        let failure = late.into_typed::<dyn Probe>().add_one(-1).unwrap_err();
        assert_eq!(failure.kind(), Kind::TimedOut, "{address}: {failure}");
        // The late replies, of those that came to be sent, are nobody's, and the connection lives on.
        told.try_iter().for_each(|()| open.send(()).unwrap());
        assert_eq!(object.add_one(1).unwrap(), 2);
    }
}

#[test]
fn a_deadline_ends_the_call_of_the_thread_that_reads_for_busy_others() {
    const MANY: i32 = 20_000_000;
    let (_server, bound, open, told) = gated("plain://127.0.0.1:0");
    let client = node();
    let object = client.connect::<dyn Probe>(&probe_at(&bound)).unwrap();
    let quick =
        client.resolve(object.reference()).unwrap().with_deadline(Some(SHORT)).into_typed::<dyn Probe>();
    // The connection is there: all of its time is for the call to begin.
    assert_eq!(object.add_one(1).unwrap(), 2);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let result = quick.add_one(-1);
            over.store(true, Ordering::Relaxed);
            result
        });
        told.recv_timeout(LONG).unwrap();
        // It reads for these, who always have something to read. They end when it does.
        let others: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut calls = 0;
                    while !over.load(Ordering::Relaxed) && calls < MANY {
                        calls += 1;
                        assert_eq!(object.add_one(calls).unwrap(), calls + 1);
                    }
                    calls
                })
            })
            .collect();
        for other in others {
            assert!(other.join().unwrap() < MANY, "the others ended first");
        }
        let failure = waiting.join().unwrap().expect_err("nothing was let go");
        assert_eq!(failure.kind(), Kind::TimedOut);
        open.send(()).unwrap();
    });
}

#[test]
fn futures_get_their_replies() {
    each("futures", |address, object, _, client| {
        let untyped = client.resolve(object.reference()).unwrap();
        let operation = &interface().operations[0];
        let pending: Vec<_> =
            (0..100).map(|v| (v, untyped.call_async::<(i32,), (i32,), Failure>(operation, (v,)))).collect();
        for (v, future) in pending {
            assert_eq!(block_on(future).unwrap().unwrap(), (v + 1,), "{address}");
        }
        // Synchronous and asynchronous calls share the connection.
        let future = untyped.call_async::<(i32,), (i32,), Failure>(operation, (1,));
        assert_eq!(object.add_one(5).unwrap(), 6);
        assert_eq!(block_on(future).unwrap().unwrap(), (2,));
        // A dropped future is withdrawn.
        drop(untyped.submit(&interface().operations[2], &Nothing));
        assert_eq!(object.add_one(5).unwrap(), 6);
    });
}

#[test]
fn a_thread_that_begins_a_call_does_not_wait_for_its_connection() {
    // Nobody takes connections there, and no more have room: the next ones wait.
    let hole = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&hole, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    rustix::net::listen(&hole, 0).unwrap();
    let hole_at: SocketAddr = rustix::net::getsockname(&hole).unwrap().try_into().unwrap();
    let mut taken = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&hole_at, Duration::from_millis(200)) {
        taken.push(stream);
    }
    let (_server, bound, ..) = gated("plain://127.0.0.1:0");
    let client = node();
    let lost = client.object(&format!("plain://{hole_at}/probe")).unwrap();
    let lost = lost.with_deadline(Some(LONG * 10));
    let operations = &interface().operations;
    let mut pending = std::pin::pin!(lost.call_async::<_, (i32,), Failure>(&operations[0], (1,)));
    let mut context = Context::from_waker(Waker::noop());
    assert!(pending.as_mut().poll(&mut context).is_pending());
    // Whether a call could begin now is told at once, too.
    assert!(!lost.target().is_ready());
    // Meanwhile the same thread calls somebody who is there, and whose connection has to be made as well.
    let object = client.object(&probe_at(&bound)).unwrap();
    let answer = block_on(object.call_async::<_, (i32,), Failure>(&operations[0], (1,)));
    assert_eq!(answer.unwrap().unwrap(), (2,));
    assert!(pending.as_mut().poll(&mut context).is_pending(), "it was waited for");
}

#[test]
fn a_unix_socket_that_nobody_accepts_from_ends_the_call_in_time() {
    let name = format!("everywire-full-{}", std::process::id());
    let address = rustix::net::SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let hole = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&hole, &address).unwrap();
    rustix::net::listen(&hole, 0).unwrap();
    let mut taken = Vec::new();
    loop {
        let flags = rustix::net::SocketFlags::NONBLOCK;
        let next = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let connected = rustix::net::connect(&next, &address);
        taken.push(next);
        if connected.is_err() {
            break;
        }
    }
    let client = node();
    let lost = client.object(&format!("plain+unix://@{name}#probe")).unwrap();
    let lost = lost.with_deadline(Some(Duration::from_millis(50))).into_typed::<dyn Probe>();
    let failure = lost.add_one(1).unwrap_err();
    assert_eq!((failure.kind(), failure.completed()), (Kind::TimedOut, Completed::No), "{failure}");
}

#[test]
fn a_server_that_offers_no_shared_memory_ends_the_call_in_time() {
    let name = plain::name("silent");
    let _silent = plain::Router::open(&name);
    let client = node();
    let lost = client.object(&format!("plain+shm://@{name}#probe")).unwrap();
    let lost = lost.with_deadline(Some(Duration::from_millis(50))).into_typed::<dyn Probe>();
    let failure = lost.add_one(1).unwrap_err();
    assert_eq!((failure.kind(), failure.completed()), (Kind::TimedOut, Completed::No), "{failure}");
}

#[test]
fn a_deadline_beyond_the_clock_is_no_deadline() {
    let server = node();
    let bound = server.listen("plain://127.0.0.1:0").unwrap();
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let client = node();
    for deadline in [Duration::MAX, Duration::from_secs(u64::MAX / 4)] {
        let object = client.object(&probe_at(&bound)).unwrap().with_deadline(Some(deadline));
        assert_eq!(object.into_typed::<dyn Probe>().add_one(1).unwrap(), 2);
    }
}

#[test]
fn the_name_of_a_node_that_was_stopped_is_free() {
    let name = format!("inproc://stopped-{}", std::process::id());
    let first = node();
    first.listen(&name).unwrap();
    first.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let held = first.connect::<dyn Probe>(&format!("{name}/probe")).unwrap();
    assert_eq!(node().listen(&name).unwrap_err().kind(), Kind::Refused);
    first.stop();
    let second = node();
    second.listen(&name).unwrap();
    drop(held);
}

#[test]
fn a_call_without_a_thread_says_that_there_is_nobody() {
    let client = node();
    // Nobody is given so low a port.
    let nobody = client.object("plain://127.0.0.1:1/probe").unwrap();
    let operations = &interface().operations;
    let failure =
        block_on(nobody.call_async::<_, (i32,), Failure>(&operations[0], (1,))).unwrap().unwrap_err();
    assert_eq!(failure.kind(), Kind::Unreachable, "{failure}");
    assert!(failure.to_string().contains("operation"), "{failure}");
}

#[test]
fn a_server_that_ends_is_noticed_and_its_successor_found() {
    for address in addresses("successor") {
        let server = node();
        let bound = server.listen(&address).unwrap();
        server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
        let client = node();
        let object = client.connect::<dyn Probe>(&probe_at(&bound)).unwrap();
        assert_eq!(object.add_one(1).unwrap(), 2);
        server.stop();
        drop(server);
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(object.add_one(1).unwrap_err().kind(), Kind::Unreachable, "{address}");
        let successor = node();
        let rebound = bound.split_once('#').map_or(bound.as_str(), |(before, _)| before);
        successor.listen(rebound.trim_end_matches('/')).unwrap();
        successor.export::<dyn Probe>("probe", Arc::new(Honest::default()));
        assert_eq!(object.add_one(1).unwrap(), 2, "{address}");
    }
}

#[test]
fn in_process_the_reference_is_the_servant() {
    let node = node();
    let name = format!("inproc://calls-{}", std::process::id());
    node.listen(&name).unwrap();
    let servant = Arc::new(Honest::default());
    node.export::<dyn Probe>("probe", servant.clone());
    let object = node.connect::<dyn Probe>(&format!("{name}/probe")).unwrap();
    object.hello().unwrap();
    assert_eq!(servant.hellos.load(Ordering::Relaxed), 1);
    assert!(std::ptr::addr_eq(Arc::as_ptr(object.as_arc()), Arc::as_ptr(&servant)));
}

#[test]
fn a_node_that_another_ones_servant_stops_waits_for_its_own_calls() {
    let [ending, stopping] = ["ending", "stopping"].map(|name| {
        let name = format!("inproc://{name}-{}", std::process::id());
        let node = node();
        node.listen(&name).unwrap();
        (node, name)
    });
    let events = Arc::new(Mutex::new(Vec::new()));
    let (begun, has_begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (noted, waits) = (Arc::clone(&events), Mutex::new((begun, goes_on)));
    ending.0.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |v| {
            let waits = waits.lock().unwrap();
            waits.0.send(()).unwrap();
            waits.1.recv().unwrap();
            noted.lock().unwrap().push("answered");
            v
        })),
    );
    let (noted, ends) = (Arc::clone(&events), ending.0.clone());
    stopping.0.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |v| {
            ends.stop_within(LONG);
            noted.lock().unwrap().push("stopped");
            v
        })),
    );
    // With a deadline a call goes through memory, and is counted by its node.
    let call = |name: &str| {
        let object = node().object(&format!("{name}/probe")).unwrap().with_deadline(Some(LONG));
        std::thread::spawn(move || object.into_typed::<dyn Probe>().add_one(1))
    };
    let under_way = call(&ending.1);
    has_begun.recv().unwrap();
    let stops = call(&stopping.1);
    // It is refused as soon as the node ends.
    let late = node().object(&format!("{}/probe", ending.1)).unwrap().with_deadline(Some(LONG));
    let late = late.into_typed::<dyn Probe>();
    while late.wait_ms(0).is_ok() {
        std::thread::yield_now();
    }
    go_on.send(()).unwrap();
    assert_eq!(under_way.join().unwrap().unwrap(), 1);
    assert_eq!(stops.join().unwrap().unwrap(), 1);
    assert_eq!(*events.lock().unwrap(), ["answered", "stopped"]);
}

/// A call that waits for the servant that stops its node ends with that servant only: nobody waits for it.
#[test]
fn a_servant_may_stop_the_node_of_whoever_waits_for_it() {
    for far in [false, true] {
        let [outer, inner] = ["outer", "inner"].map(|name| {
            let name = format!("inproc://{name}-{far}-{}", std::process::id());
            let node = node();
            node.listen(&name).unwrap();
            (node, name)
        });
        // With a deadline a call goes through memory, and is counted by its node.
        let through = |address: &str| {
            let object = node().object(address).unwrap().with_deadline(Some(LONG));
            object.into_typed::<dyn Probe>()
        };
        let next = through(&format!("{}/probe", inner.1));
        outer.0.export::<dyn Probe>("probe", Arc::new(Does(move |v| next.add_one(v).unwrap_or(-1))));
        let (ends, (tell, stopped)) = (outer.0.clone(), mpsc::channel());
        inner.0.export::<dyn Probe>(
            "probe",
            Arc::new(Does(move |v| {
                ends.stop_within(LONG * 10);
                tell.send(v).unwrap();
                v
            })),
        );
        let socket = format!("plain+unix://@{}", plain::name("chain"));
        let address = if far { outer.0.listen(&socket).unwrap() } else { outer.1 };
        let outer = through(&probe_at(&address));
        let caller = std::thread::spawn(move || outer.add_one(7));
        assert_eq!(stopped.recv_timeout(LONG).unwrap(), 7);
        // Over a connection it ends with that.
        assert_eq!(caller.join().unwrap().is_ok(), !far);
    }
}

#[test]
fn a_servant_that_nobody_waits_for_any_more_stops_a_node_as_anybody_does() {
    let name = format!("inproc://late-inner-{}", std::process::id());
    let (outer, inner) = (node(), node());
    inner.listen(&name).unwrap();
    let next = node().object(&format!("{name}/probe")).unwrap();
    let next = next.with_deadline(Some(SHORT)).into_typed::<dyn Probe>();
    let ((open, gate), (enter, entered)) = (mpsc::channel::<()>(), mpsc::channel());
    let gate = Mutex::new(gate);
    outer.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |v| match v {
            // In vain: the other servant has not answered by then.
            1 => next.add_one(v).unwrap_or(-1),
            v => {
                enter.send(()).unwrap();
                gate.lock().unwrap().recv_timeout(LONG).unwrap();
                v + 1
            }
        })),
    );
    let ((go, told), (tell, stopped)) = (mpsc::channel::<()>(), mpsc::channel());
    let (told, ends) = (Mutex::new(told), outer.clone());
    inner.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |v| {
            told.lock().unwrap().recv_timeout(LONG).unwrap();
            ends.stop_within(LONG);
            tell.send(()).unwrap();
            v
        })),
    );
    let socket = outer.listen(&format!("plain+unix://@{}", plain::name("late"))).unwrap();
    let caller = node().connect::<dyn Probe>(&probe_at(&socket)).unwrap();
    assert_eq!(caller.add_one(1).unwrap(), -1);
    // The next call by the same connection is none that waits for the one that stops the node.
    let again = caller.clone();
    let second = std::thread::spawn(move || again.add_one(2));
    entered.recv_timeout(LONG).unwrap();
    go.send(()).unwrap();
    assert!(stopped.recv_timeout(Duration::from_millis(200)).is_err(), "it was stopped over a call");
    open.send(()).unwrap();
    assert_eq!(second.join().unwrap().unwrap(), 3);
    stopped.recv_timeout(LONG).unwrap();
}

#[test]
fn unknown_objects_and_operations_are_failures() {
    each("unknown", |address, object, _, client| {
        let mut wrong = object.reference().clone();
        wrong.profiles[0].key = "nobody".into();
        let failure = client.narrow::<dyn Probe>(wrong).unwrap().add_one(1).unwrap_err();
        assert!(failure.message().contains("nobody"), "{address}: {failure}");
        let operation = everywire_model::Operation::new("fly", vec![], everywire_model::Shape::Void);
        let untyped = client.resolve(object.reference()).unwrap();
        match untyped.invoke(&operation, &Nothing) {
            Outcome::Failed(failure) => assert!(failure.message().contains("fly"), "{failure}"),
            other => panic!("{other:?}"),
        }
        assert!(untyped.target().probe().is_ok());
    });
}

#[test]
fn lowest_latency_is_the_same_behaviour() {
    let server = Builder::new(&[&PLAIN]).latency(Latency::Lowest).build();
    let bound = server.listen("plain://127.0.0.1:0").unwrap();
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let client = Builder::new(&[&PLAIN]).latency(Latency::Lowest).build();
    let object = client.connect::<dyn Probe>(&format!("{bound}probe")).unwrap();
    for v in 0..500 {
        assert_eq!(object.add_one(v).unwrap(), v + 1);
    }
}
