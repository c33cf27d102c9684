//! Serving behind a router: calls come in on a connection that the server made, and that it makes anew.

#![allow(clippy::unwrap_used)]

use crate::plain::{Honest, LONG, PLAINHUB, Probe, Raw, Router, Ticked, call, name, until};
use everywire_model::Kind;
use everywire_runtime::{Builder, Node, Notice};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Longer than a server waits before it looks for its router again the first time.
const FIRST_PAUSE: Duration = Duration::from_millis(400);

/// A node that tells of its comings and goings.
fn observed() -> (Node, mpsc::Receiver<Notice>) {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let observer = Arc::new(move |notice: &Notice| {
        // Nobody listens any more when a test is over.
        let _ = tell.lock().unwrap().send(notice.clone());
    });
    (Builder::new(&[&PLAINHUB]).shards(1).observer(observer).build(), told)
}

fn answers(peer: &mut Raw, argument: i32) {
    peer.send(&call(9, "add_one", argument));
    let reply = peer.read();
    assert_eq!((reply.kind, reply.id, reply.number()), (1, 9, argument + 1));
}

#[test]
fn a_server_comes_back_when_its_router_was_restarted() {
    let name = name("restarted");
    let address = format!("plainhub+unix://@{name}");
    let (server, told) = observed();
    let exported = server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let mut router = Router::open(&name);
    server.listen(&address).unwrap();
    let mut joined = router.accept();
    for round in 0..2 {
        answers(&mut joined, round);
        exported.signals().emit(&Ticked(round)).unwrap();
        let signal = joined.read();
        assert_eq!((signal.kind, signal.number()), (5, round));
        drop((joined, router));
        assert!(matches!(told.recv_timeout(LONG).unwrap(), Notice::Left { .. }));
        router = Router::open(&name);
        joined = router.accept();
        let place =
            std::iter::repeat_with(|| told.recv_timeout(LONG).unwrap()).find_map(|notice| match notice {
                Notice::Joined { place } => Some(place),
                // It may have looked before the router was back.
                _ => None,
            });
        assert_eq!(place.as_deref(), Some(&*address));
    }
    answers(&mut joined, 5);
    assert!(router.try_accept().is_none(), "it joined twice");
}

#[test]
fn a_server_that_finds_no_router_does_not_serve() {
    let name = name("no-router");
    let address = format!("plainhub+unix://@{name}");
    let (server, told) = observed();
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    assert_eq!(server.listen(&address).unwrap_err().kind(), Kind::Unreachable);
    assert!(server.reference("probe").unwrap().profiles.is_empty(), "published where it does not serve");
    // Nor does it look for one by itself, but it may be told to again.
    let router = Router::open(&name);
    server.listen(&address).unwrap();
    answers(&mut router.accept(), 1);
    assert!(told.try_iter().all(|notice| !matches!(notice, Notice::Joined { .. })));
}

#[test]
fn nobody_looks_for_the_router_of_a_server_that_has_ended() {
    for stop in [true, false] {
        let name = name("ended");
        let (server, told) = observed();
        let router = Router::open(&name);
        server.listen(&format!("plainhub+unix://@{name}")).unwrap();
        drop((router.accept(), router));
        assert!(matches!(told.recv_timeout(LONG).unwrap(), Notice::Left { .. }));
        let kept = stop.then(|| server.clone());
        if stop {
            server.stop();
        }
        drop(server);
        let router = Router::open(&name);
        std::thread::sleep(FIRST_PAUSE);
        assert!(router.try_accept().is_none(), "it came back");
        drop(kept);
        // The node is gone with everything that it held, such as the observer.
        until("the observer is dropped", || matches!(told.try_recv(), Err(mpsc::TryRecvError::Disconnected)));
    }
}

#[test]
fn a_server_that_is_stopped_leaves_its_router_and_stays_away() {
    let name = name("leaves");
    let (server, told) = observed();
    let router = Router::open(&name);
    server.listen(&format!("plainhub+unix://@{name}")).unwrap();
    let mut joined = router.accept();
    server.stop();
    joined.drain();
    std::thread::sleep(FIRST_PAUSE);
    assert!(router.try_accept().is_none(), "it came back");
    for notice in told.try_iter() {
        assert!(
            matches!(notice, Notice::Closed { .. }),
            "told of more than its connection's end: {notice:?}"
        );
    }
}

#[test]
fn an_observer_may_end_the_node() {
    for drops in [false, true] {
        let name = name("observer");
        let slot: Arc<Mutex<Option<Node>>> = Arc::default();
        let (tell, told) = mpsc::channel();
        let (held, tell) = (Arc::clone(&slot), Mutex::new(tell));
        let observer = Arc::new(move |notice: &Notice| {
            if matches!(notice, Notice::Left { .. }) {
                let node = held.lock().unwrap().take().unwrap();
                node.stop();
                if drops {
                    drop(node);
                } else {
                    *held.lock().unwrap() = Some(node);
                }
                tell.lock().unwrap().send(()).unwrap();
            }
        });
        let router = Router::open(&name);
        let server = Builder::new(&[&PLAINHUB]).shards(1).observer(observer).build();
        *slot.lock().unwrap() = Some(server.clone());
        server.listen(&format!("plainhub+unix://@{name}")).unwrap();
        drop(server);
        drop((router.accept(), router));
        assert_eq!(told.recv_timeout(LONG), Ok(()), "the observer hangs");
        drop(slot.lock().unwrap().take());
    }
}
