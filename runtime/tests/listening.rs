//! Listeners among calls: signals reach them whatever else their connection and their event loop are doing.

#![allow(clippy::unwrap_used)]

use crate::plain;
use crate::plain::{
    Does, Frame, Honest, LONG, PLAIN, Probe, Router, Ticked, addresses, block_on, interface, name, node,
    serve, ticked, until,
};
use everywire_model::{Outcome, Ref, Sink, Subscription};
use everywire_runtime::{Builder, Latency, Node, blocking};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// A gate that a listener or a servant waits at, telling the runtime that it does.
fn gate() -> (mpsc::Sender<()>, impl Fn() -> bool + Send + Sync + 'static) {
    let (open, gate) = mpsc::channel();
    let gate = Mutex::new(gate);
    (open, move || blocking(|| gate.lock().unwrap().recv_timeout(LONG)).is_ok())
}

fn honest() -> Arc<dyn Probe> {
    Arc::new(Honest::default())
}

#[test]
fn a_listener_that_blocks_does_not_hold_up_those_behind_it() {
    let (_one, first, first_at) = serve("plain://127.0.0.1:0", honest());
    let (_two, second, second_at) = serve("plain://127.0.0.1:0", honest());
    let client = node(1);
    let (a, b) = (client.connect::<dyn Probe>(&first_at).unwrap(), client.connect(&second_at).unwrap());
    let (open, wait) = gate();
    let (tell, told) = mpsc::channel();
    let _waits = a.signals().on(move |Ticked(_)| tell.send(wait()).unwrap()).unwrap();
    let _opens = <Ref<dyn Probe>>::signals(&b).on(move |Ticked(_)| open.send(()).unwrap()).unwrap();
    // Keeps the event loop busy until both deliveries are queued there.
    let here = client.export::<dyn Probe>("probe", honest());
    let (queued, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (go_on, begins) = (Arc::clone(&queued), Arc::clone(&begun));
    let _busy = here.signals().on(move |Ticked(_)| {
        begins.store(true, Ordering::Release);
        while !go_on.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
    });
    for far in [&a, &b] {
        far.add_one(1).unwrap();
    }
    here.signals().emit(&Ticked(0)).unwrap();
    until("the event loop is busy", || begun.load(Ordering::Acquire));
    for (emitter, far) in [(&first, &a), (&second, &b)] {
        emitter.signals().emit(&Ticked(1)).unwrap();
        // The caller reads what comes before its reply.
        far.add_one(1).unwrap();
    }
    queued.store(true, Ordering::Release);
    assert!(told.recv_timeout(LONG * 2).unwrap(), "the second delivery waited for the first");
}

#[test]
fn a_future_gets_its_reply_while_listeners_are_behind() {
    let (_server, exported, address) = serve("plain://127.0.0.1:0", honest());
    let client = node(1);
    let far = client.connect::<dyn Probe>(&address).unwrap();
    let object = client.object(&address).unwrap();
    let (open, wait) = gate();
    let (tell, told) = mpsc::channel();
    let listener = move |Ticked(n)| {
        if n == 0 || n == 5000 {
            tell.send(n).unwrap();
        }
        if n == 0 {
            assert!(wait());
        }
    };
    let _slow = far.signals().on(listener).unwrap();
    far.add_one(1).unwrap();
    exported.signals().emit(&Ticked(0)).unwrap();
    assert_eq!(told.recv_timeout(LONG), Ok(0));
    for n in 1..=5000 {
        exported.signals().emit(&Ticked(n)).unwrap();
    }
    // The caller reads them all: from now on the listener is behind by more than is read for it.
    far.add_one(1).unwrap();
    let reply = block_on(object.submit(&interface().operations[0], &|sink: &mut dyn Sink| sink.i32(4)));
    assert!(reply.is_some(), "the reply waits for the listener");
    open.send(()).unwrap();
    assert_eq!(told.recv_timeout(LONG), Ok(5000));
}

#[test]
fn signals_of_a_servant_that_blocks_go_to_its_caller_at_once() {
    for address in addresses("progress") {
        let server = node(1);
        let bound = server.listen(&address).unwrap();
        let signaller = server.signaller::<dyn Probe>("probe");
        let (heard, wait) = gate();
        let servant = move |steps| {
            (0..steps).all(|n| {
                // Whoever has taken over from this servant is asleep by now.
                blocking(|| std::thread::sleep(Duration::from_millis(10)));
                signaller.emit(&Ticked(n)).unwrap();
                wait()
            })
        };
        server.export::<dyn Probe>("probe", Arc::new(Does(move |steps| servant(steps).into())));
        let client = node(1);
        let far = client.connect::<dyn Probe>(&plain::probe_at(&bound)).unwrap();
        let _listening = far.signals().on(move |Ticked(_)| heard.send(()).unwrap()).unwrap();
        assert_eq!(far.add_one(0).unwrap(), 1);
        assert_eq!(far.add_one(5).unwrap(), 1, "{address}: a signal was held back until the reply");
    }
}

#[test]
fn signals_are_heard_during_a_long_call() {
    for address in addresses("long-call") {
        for latency in [Latency::Default, Latency::Lowest] {
            let (open, wait) = gate();
            let servant = move |n| if n == 0 { 0 } else { wait().into() };
            let (server, exported, at) = serve(&address, Arc::new(Does(servant)));
            let client = Builder::new(&[&PLAIN]).shards(1).latency(latency).build();
            let far = client.connect::<dyn Probe>(&at).unwrap();
            let (tell, told) = mpsc::channel();
            let listening = far.signals().on(move |Ticked(n)| tell.send(n).unwrap()).unwrap();
            far.add_one(0).unwrap();
            let calling = far.clone();
            let call = std::thread::spawn(move || calling.add_one(1));
            for n in 0..100 {
                exported.signals().emit(&Ticked(n)).unwrap();
                assert_eq!(told.recv_timeout(LONG), Ok(n), "{address}: not heard before the reply");
            }
            open.send(()).unwrap();
            assert_eq!(call.join().unwrap().unwrap(), 1);
            // The next round listens at the same address.
            drop((listening, far, client, exported, server));
        }
    }
}

/// Floods a client, which waits for a reply to `call` meanwhile, until a listener there has heard something. Returns
/// whether it did before there were very many.
fn is_heard_in_a_flood(test: &str, client: &Node, call: impl FnOnce(&str)) -> bool {
    const MANY: usize = 500_000;
    let name = name(test);
    let router = Router::open(&name);
    let address = format!("plain+unix://@{name}#probe");
    let far = client.connect::<dyn Probe>(&address).unwrap();
    let heard = Arc::new(AtomicBool::new(false));
    let tells = Arc::clone(&heard);
    let _listening = far.signals().on(move |Ticked(_)| tells.store(true, Ordering::Relaxed)).unwrap();
    let mut peer = router.accept();
    call(&address);
    let id = peer.read().id;
    let signals = Frame { kind: 5, id: 0, body: ticked(1) }.bytes().repeat(1000);
    let mut sent = 0;
    while !heard.load(Ordering::Relaxed) && sent < MANY {
        peer.send(&signals);
        sent += 1000;
    }
    peer.send(&Frame { kind: 1, id, body: 2_i32.to_le_bytes().into() }.bytes());
    sent < MANY
}

#[test]
fn a_flood_of_signals_is_heard_while_a_thread_waits_for_a_reply() {
    // This one looks for milliseconds before it sleeps: the signals leave it no reason to.
    let client = Builder::new(&[&PLAIN]).shards(1).latency(Latency::Lowest).build();
    let mut waiting = None;
    let heard = is_heard_in_a_flood("flood-thread", &client, |address| {
        let far = client.connect::<dyn Probe>(address).unwrap();
        waiting = Some(std::thread::spawn(move || far.add_one(1)));
    });
    assert_eq!(waiting.unwrap().join().unwrap().unwrap(), 2);
    assert!(heard, "nothing was heard before the reply");
}

#[test]
fn a_flood_of_signals_is_heard_while_a_future_waits_for_a_reply() {
    let client = node(1);
    let mut waiting = None;
    let heard = is_heard_in_a_flood("flood-future", &client, |address| {
        let object = client.object(address).unwrap();
        waiting = Some(object.submit(&interface().operations[0], &|sink: &mut dyn Sink| sink.i32(1)));
    });
    assert!(matches!(block_on(waiting.unwrap()), Some(Outcome::Done(_))));
    assert!(heard, "nothing was heard before the reply");
}

#[test]
fn everything_that_a_servant_emits_in_one_call_is_heard() {
    const MANY: i32 = 20_000;
    for address in addresses("many") {
        let server = node(1);
        let bound = server.listen(&address).unwrap();
        let signaller = server.signaller::<dyn Probe>("probe");
        let servant = move |many| {
            (0..many).for_each(|n| signaller.emit(&Ticked(n)).unwrap());
            many
        };
        server.export::<dyn Probe>("probe", Arc::new(Does(servant)));
        let client = node(1);
        let far = client.connect::<dyn Probe>(&plain::probe_at(&bound)).unwrap();
        let heard = Arc::new(AtomicI32::new(0));
        let counted = Arc::clone(&heard);
        let _listening = far.signals().on(move |Ticked(n)| {
            // In order, and none twice.
            let _ = counted.compare_exchange(n, n + 1, Ordering::Relaxed, Ordering::Relaxed);
        });
        assert_eq!(far.add_one(MANY).unwrap(), MANY, "{address}");
        until("all are heard", || heard.load(Ordering::Relaxed) == MANY);
        assert_eq!(far.add_one(0).unwrap(), 0, "{address}");
    }
}

/// Whether a listener hears nothing more once it has dropped its own subscription, whatever is on its way by then.
/// `listen` subscribes; `settle` returns when all that was emitted waits for the listener.
fn hears_one(emitter: &Ref<dyn Probe>, listened: &Ref<dyn Probe>, settle: &dyn Fn()) {
    let own: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let (open, wait) = gate();
    let heard = Arc::new(AtomicUsize::new(0));
    let (held, counted) = (Arc::clone(&own), Arc::clone(&heard));
    let subscription = listened.signals().on(move |Ticked(_)| {
        counted.fetch_add(1, Ordering::Relaxed);
        assert!(wait());
        drop(held.lock().unwrap().take());
    });
    *own.lock().unwrap() = Some(subscription.unwrap());
    let (tell, told) = mpsc::channel();
    let _other = listened.signals().on(move |Ticked(n)| tell.send(n).unwrap()).unwrap();
    settle();
    for n in 0..10 {
        emitter.signals().emit(&Ticked(n)).unwrap();
    }
    settle();
    for _ in 0..10 {
        // The gate goes with the listener.
        let _ = open.send(());
    }
    // The other listener gets each signal after the first one did, or would have.
    assert_eq!((0..10).map(|_| told.recv_timeout(LONG).unwrap()).max(), Some(9));
    emitter.signals().emit(&Ticked(10)).unwrap();
    assert_eq!(told.recv_timeout(LONG), Ok(10));
    assert_eq!(heard.load(Ordering::Relaxed), 1);
}

#[test]
fn a_listener_that_drops_its_subscription_hears_nothing_more() {
    for address in addresses("dropped") {
        let (_server, exported, at) = serve(&address, honest());
        let client = node(1);
        let far = client.connect::<dyn Probe>(&at).unwrap();
        hears_one(&exported, &far, &|| assert_eq!(far.add_one(1).unwrap(), 2));
        // The same within the process.
        hears_one(&exported, &exported, &|| {});
    }
}

#[test]
fn a_listener_over_shared_memory_is_always_woken() {
    let (_server, exported, address) = serve(&format!("plain+shm://@{}", name("woken")), honest());
    let client = node(1);
    let far = client.connect::<dyn Probe>(&address).unwrap();
    let (tell, told) = mpsc::channel();
    let _listening = far.signals().on(move |Ticked(n)| tell.send(n).unwrap()).unwrap();
    for n in 0..3000 {
        // Calls in between put caller and event loop to sleep and wake them in every order.
        match n % 300 {
            0 => assert_eq!(far.wait_ms(1).unwrap(), 1),
            _ => assert_eq!(far.add_one(n).unwrap(), n + 1),
        }
        exported.signals().emit(&Ticked(n)).unwrap();
        assert_eq!(told.recv_timeout(LONG), Ok(n));
    }
}

/// How often the event loops other than these have slept, and which they are.
fn sleeps_beside(known: &[String]) -> (u64, Vec<String>) {
    let mut all = (0, Vec::new());
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let folder = task.unwrap().path();
        let Ok(status) = std::fs::read_to_string(folder.join("status")) else { continue };
        let number = folder.file_name().unwrap().to_string_lossy().into_owned();
        if status.starts_with("Name:\teverywire-shard") && !known.contains(&number) {
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
            all.0 += line.trim().parse::<u64>().unwrap();
            all.1.push(number);
        }
    }
    all
}

#[test]
fn an_event_loop_sleeps_through_the_calls_of_a_thread_that_reads() {
    if !plain::alone() {
        return;
    }
    let (_server, _emitter, at) = serve("plain://127.0.0.1:0", honest());
    // A thread gives itself its name when it begins.
    until("the server's event loop has begun", || !sleeps_beside(&[]).1.is_empty());
    let (_, servers) = sleeps_beside(&[]);
    let client = node(1);
    let far = client.connect::<dyn Probe>(&at).unwrap();
    let _listens = far.signals().on(|Ticked(_)| ()).unwrap();
    far.add_one(1).unwrap();
    until("the client's event loop has begun", || !sleeps_beside(&servers).1.is_empty());
    let (before, _) = sleeps_beside(&servers);
    for number in 0..300 {
        assert_eq!(far.add_one(number).unwrap(), number + 1);
    }
    let (after, _) = sleeps_beside(&servers);
    assert!(after - before < 100, "woken {} times for 300 calls", after - before);
}

#[test]
fn a_node_that_was_stopped_says_so_when_it_is_to_listen() {
    let server = node(1);
    server.listen("plain://127.0.0.1:0").unwrap();
    server.stop();
    let hub = format!("plainhub+unix://@{}", name("stopped"));
    for address in ["plain://127.0.0.1:0", "inproc://stopped-listener", &hub] {
        let failure = server.listen(address).unwrap_err();
        assert_eq!(failure.kind(), everywire_model::Kind::Cancelled, "{address}: {failure}");
        assert_eq!((failure.message(), failure.place()), ("the node was stopped", address));
        assert!(failure.hint().is_some_and(|hint| hint.contains("new node")), "{failure:?}");
    }
}
