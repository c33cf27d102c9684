//! Signals through the runtime: subscriptions, order, loss, slow listeners.

#![allow(clippy::unwrap_used)]

use crate::plain;
use crate::plain::{Honest, LONG, Probe, Ticked, addresses, probe_at};
use everywire_model::{Ref, SignalEvent};
use everywire_runtime::Node;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

fn node() -> Node {
    plain::node(2)
}

struct Scene {
    server: Node,
    exported: Ref<dyn Probe>,
    far: Ref<dyn Probe>,
    _client: Node,
}

fn each(test: &str, check: impl Fn(&str, Scene)) {
    for address in addresses(test) {
        let server = node();
        let bound = server.listen(&address).unwrap();
        let exported = server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
        let client = node();
        let far = client.connect::<dyn Probe>(&probe_at(&bound)).unwrap();
        check(&address, Scene { server, exported, far, _client: client });
    }
}

#[test]
fn signals_arrive_in_order_between_calls() {
    each("order", |address, scene| {
        let (tell, told) = mpsc::channel();
        let subscription = scene.far.signals().on(move |Ticked(n)| tell.send(n).unwrap()).unwrap();
        // A call first: the connection is then surely accepted.
        assert_eq!(scene.far.add_one(1).unwrap(), 2);
        for n in 0..1000 {
            scene.exported.signals().emit(&Ticked(n)).unwrap();
            if n % 100 == 0 {
                assert_eq!(scene.far.add_one(n).unwrap(), n + 1);
            }
        }
        let got: Vec<i32> = (0..1000).map(|_| told.recv_timeout(LONG).unwrap()).collect();
        assert_eq!(got, (0..1000).collect::<Vec<_>>(), "{address}");
        drop(subscription);
        scene.exported.signals().emit(&Ticked(-1)).unwrap();
        assert_eq!(scene.far.add_one(1).unwrap(), 2);
        assert!(told.try_recv().is_err(), "{address}: told after the subscription was dropped");
    });
}

#[test]
fn listeners_in_the_emitters_process_hear_too() {
    let node = node();
    let exported = node.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let (tell, told) = mpsc::channel();
    let subscription = exported.signals().on(move |Ticked(n)| tell.send(n).unwrap()).unwrap();
    exported.signals().emit(&Ticked(7)).unwrap();
    exported.signals().emit(&Ticked(8)).unwrap();
    assert_eq!(told.recv_timeout(LONG).unwrap(), 7);
    assert_eq!(told.recv_timeout(LONG).unwrap(), 8);
    drop(subscription);
    exported.signals().emit(&Ticked(9)).unwrap();
    assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
}

#[test]
fn the_loss_of_the_emitter_is_told_once() {
    each("loss", |address, scene| {
        let (tell, told) = mpsc::channel();
        let subscription =
            scene.far.signals().watch(move |event: SignalEvent<Ticked>| tell.send(event).unwrap()).unwrap();
        assert_eq!(scene.far.add_one(1).unwrap(), 2);
        scene.exported.signals().emit(&Ticked(1)).unwrap();
        assert!(matches!(told.recv_timeout(LONG).unwrap(), SignalEvent::Signal(Ticked(1))), "{address}");
        scene.server.stop();
        assert!(matches!(told.recv_timeout(LONG).unwrap(), SignalEvent::Disconnected(_)), "{address}");
        drop(subscription);
        assert!(told.try_recv().is_err(), "{address}");
    });
}

#[test]
fn a_slow_listener_loses_nothing_and_calls_go_on() {
    each("slow", |address, scene| {
        let heard = Arc::new(AtomicUsize::new(0));
        let (go, gate) = mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let (counted, first) = (Arc::clone(&heard), AtomicUsize::new(0));
        let (tell, told) = mpsc::channel();
        let subscription = scene
            .far
            .signals()
            .on(move |Ticked(n)| {
                if first.fetch_add(1, Ordering::Relaxed) == 0 {
                    everywire_runtime::blocking(|| gate.lock().unwrap().recv_timeout(LONG)).unwrap();
                }
                counted.fetch_add(1, Ordering::Relaxed);
                if n == 19_999 {
                    tell.send(()).unwrap();
                }
            })
            .unwrap();
        assert_eq!(scene.far.add_one(1).unwrap(), 2);
        for n in 0..20_000 {
            scene.exported.signals().emit(&Ticked(n)).unwrap();
        }
        assert_eq!(scene.far.add_one(5).unwrap(), 6, "{address}");
        go.send(()).unwrap();
        told.recv_timeout(LONG).unwrap();
        assert_eq!(heard.load(Ordering::Relaxed), 20_000, "{address}");
        drop(subscription);
    });
}
