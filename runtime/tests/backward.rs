//! Calls back to whoever calls, and wires whose connections carry one call at a time.

#![allow(clippy::unwrap_used)]

use crate::plain;
use crate::plain::{
    Does, Honest, LONG, PLAINBACK, Probe, Raw, addresses, call, interface, name, node, probe_at,
};
use everywire_model::{Completed, Kind, Method, Outcome, Ref, Shape, Sink};
use everywire_runtime::{Builder, Quotas, blocking, caller};
use std::sync::{Arc, Mutex, mpsc};

/// A servant that has its caller add to what it was asked, twice.
fn asks_back() -> Arc<dyn Probe> {
    Arc::new(Does(|v| {
        let back: Ref<dyn Probe> = caller().unwrap().into_typed();
        let once = back.add_one(v).unwrap();
        back.hello().unwrap();
        back.add_one(once).unwrap()
    }))
}

#[test]
fn a_servant_calls_its_caller_on_the_same_connection() {
    for address in addresses("ask-back") {
        let address = address.replacen("plain", "plainback", 1);
        let server = node(1);
        let bound = server.listen(&address).unwrap();
        server.export::<dyn Probe>("probe", asks_back());
        let client = node(1);
        let honest = Arc::new(Honest::default());
        client.export::<dyn Probe>("", Arc::clone(&honest) as _);
        let far = client.connect::<dyn Probe>(&probe_at(&bound)).unwrap();
        for v in 0..200 {
            assert_eq!(far.add_one(v).unwrap(), v + 2, "{address}");
        }
        assert_eq!(honest.hellos.load(std::sync::atomic::Ordering::Relaxed), 200);
        assert_eq!(server.connections(), 1);
    }
}

#[test]
fn callers_that_are_gone_are_said_to_be() {
    let (tell, told) = mpsc::sync_channel(1);
    let (begin, begun) = mpsc::sync_channel(1);
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let (server, name) = (node(1), name("gone-caller"));
    server.listen(&format!("plainback+unix://@{name}")).unwrap();
    server.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |v| {
            let back: Ref<dyn Probe> = caller().unwrap().into_typed();
            begin.send(()).unwrap();
            let _ = blocking(|| gate.lock().unwrap().recv_timeout(LONG));
            tell.send(back.add_one(v)).unwrap();
            v
        })),
    );
    let mut client = Raw::connect(&name);
    client.send(&call(1, "add_one", 1));
    begun.recv_timeout(LONG).unwrap();
    drop(client);
    plain::until("the connection to end", || server.connections() == 0);
    open.send(()).unwrap();
    let failure = told.recv_timeout(LONG).unwrap().unwrap_err();
    assert!(failure.message().contains("closed its connection"), "{failure}");
}

/// Without another thread nobody would read the answer: the event loop would stand still for good.
#[test]
fn a_callback_that_no_thread_can_wait_for_fails_and_the_event_loop_goes_on() {
    let name = name("no-thread-waits");
    let (tell, told) = mpsc::sync_channel(1);
    let quotas = Quotas { blocked_threads: 0, ..Quotas::default() };
    let server = Builder::new(&[&PLAINBACK]).shards(1).quotas(quotas).build();
    server.listen(&format!("plainback+unix://@{name}")).unwrap();
    server.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |v| {
            let back: Ref<dyn Probe> = caller().unwrap().into_typed();
            tell.send(back.add_one(v).unwrap_err()).unwrap();
            v
        })),
    );
    let mut client = Raw::connect(&name);
    for id in 1..4 {
        client.send(&call(id, "add_one", 1));
        let failure = told.recv_timeout(LONG).unwrap();
        assert_eq!((failure.kind(), failure.completed()), (Kind::Busy, Completed::Maybe), "{failure}");
        // The call has gone, and its answer is nobody's.
        assert_eq!(client.read().kind, 0);
        assert_eq!(client.read().kind, 1);
    }
}

/// Calls of this side are no answers that the peer does not read: two sides that read no further because of their own calls would
/// wait for each other.
#[test]
fn two_sides_that_call_each_other_with_more_than_either_may_leave_unread_go_on() {
    const MANY: usize = 3000;
    const SIZE: usize = 64 << 10;
    let server = node(1);
    let bound = server.listen(&format!("plainback+unix://@{}", name("both-call"))).unwrap();
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    server.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |v| {
            let back = caller().unwrap();
            let arguments = |sink: &mut dyn Sink| {
                sink.i32(i32::try_from(SIZE).unwrap())?;
                // Whoever is called reads over it.
                sink.bytes(&Shape::sequence(Shape::U8), &[0; SIZE])
            };
            for _ in 0..MANY {
                let tell = tell.lock().unwrap().clone();
                let done = move |outcome| tell.send(matches!(outcome, Outcome::Done(_))).unwrap();
                let method = Method::Typed { interface: None, operation: &interface().operations[1] };
                back.target().submit(method, &arguments, Box::new(done));
            }
            v
        })),
    );
    let client = node(1);
    client.export::<dyn Probe>("", Arc::new(Honest::default()));
    let far = client.connect::<dyn Probe>(&probe_at(&bound)).unwrap();
    assert_eq!(far.add_one(1).unwrap(), 1);
    for at in 0..MANY {
        assert!(told.recv_timeout(LONG).unwrap(), "{at}");
    }
}

#[test]
fn outside_of_a_call_nobody_calls() {
    assert!(caller().is_none());
}

#[test]
fn one_call_at_a_time_takes_as_many_connections_as_calls_and_no_more() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let server = node(1);
    let bound = server.listen(&format!("plainserial+unix://@{}", name("serial"))).unwrap();
    server.export::<dyn Probe>(
        "probe",
        Arc::new(Does(move |v| {
            if v == 0 {
                tell.lock().unwrap().send(()).unwrap();
                let _ = blocking(|| gate.lock().unwrap().recv_timeout(LONG));
            }
            v + 1
        })),
    );
    let client = node(1);
    let far = client.connect::<dyn Probe>(&probe_at(&bound)).unwrap();
    let slow: Vec<_> = (0..3)
        .map(|_| {
            let far = far.clone();
            let thread = std::thread::spawn(move || far.add_one(0).unwrap());
            told.recv_timeout(LONG).unwrap();
            thread
        })
        .collect();
    for v in 1..50 {
        assert_eq!(far.add_one(v).unwrap(), v + 1);
    }
    assert_eq!(server.connections(), 4);
    (0..3).for_each(|_| open.send(()).unwrap());
    slow.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), 1));
    for v in 1..50 {
        assert_eq!(far.add_one(v).unwrap(), v + 1);
    }
    assert_eq!(server.connections(), 4);
}
