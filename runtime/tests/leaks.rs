//! What ends lets go of what it held, in whatever order it ends.

#![allow(clippy::unwrap_used)]

use crate::plain::{
    Honest, Probe, Raw, Ticked, alone, call, descriptors, name, node, probe_at, serve, until,
};
use everywire_model::Ref;
use everywire_runtime::Node;
use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, Weak};

const TIMES: usize = 10;

/// Waits until no more descriptors are held than `before`.
#[track_caller]
fn none_are_left(before: usize) {
    until("no more descriptors than before", || descriptors() <= before);
}

/// A server and a client that has called it.
struct Pair {
    server: Node,
    exported: Ref<dyn Probe>,
    client: Node,
    far: Ref<dyn Probe>,
}

fn pair() -> Pair {
    let (server, exported, address) = serve("plain://127.0.0.1:0", Arc::new(Honest::default()));
    let client = node(1);
    let far = client.connect::<dyn Probe>(&address).unwrap();
    far.add_one(1).unwrap();
    Pair { server, exported, client, far }
}

#[test]
fn connections_that_ended_are_forgotten_by_those_who_emit() {
    if !alone() {
        return;
    }
    let name = name("ended");
    let (server, exported, _) = serve(&format!("plain+unix://@{name}"), Arc::new(Honest::default()));
    Raw::connect(&name).begin();
    until("the first one is gone", || server.connections() == 0);
    let before = descriptors();
    let peers: Vec<_> = (0..TIMES)
        .map(|_| {
            let mut peer = Raw::connect(&name);
            peer.begin();
            peer
        })
        .collect();
    exported.signals().emit(&Ticked(1)).unwrap();
    drop(peers);
    none_are_left(before);
    assert_eq!(server.connections(), 0);
    exported.signals().emit(&Ticked(2)).unwrap();
}

#[test]
fn listeners_that_hold_what_they_listen_to_end_with_their_nodes() {
    if !alone() {
        return;
    }
    drop(pair());
    let before = descriptors();
    for time in 0..TIMES * 4 {
        let Pair { server, exported, client, far } = pair();
        let held = far.clone();
        let listening = far.signals().on(move |Ticked(_)| drop(held.clone())).unwrap();
        far.add_one(1).unwrap();
        exported.signals().emit(&Ticked(1)).unwrap();
        match time % 4 {
            // Dropped last; dropped first; never; never, and the server ends first.
            0 => drop((client, far, exported, server, listening)),
            1 => drop((listening, far, client, exported, server)),
            2 => {
                listening.forever();
                drop((client, far, exported, server));
            }
            _ => {
                listening.forever();
                drop((exported, server, far, client));
            }
        }
    }
    none_are_left(before);
}

#[test]
fn listeners_within_a_process_end_with_their_node() {
    if !alone() {
        return;
    }
    drop(pair());
    let before = descriptors();
    for _ in 0..TIMES {
        let node = node(1);
        let exported = node.export::<dyn Probe>("probe", Arc::new(Honest::default()));
        let held = exported.clone();
        exported.signals().on(move |Ticked(_)| drop(held.clone())).unwrap().forever();
        exported.signals().emit(&Ticked(1)).unwrap();
    }
    none_are_left(before);
}

#[test]
fn a_client_forgets_servers_that_are_gone() {
    if !alone() {
        return;
    }
    let client = node(1);
    let ask = |times| {
        for _ in 0..times {
            let (_server, exported, address) = serve("plain://127.0.0.1:0", Arc::new(Honest::default()));
            let far = client.connect::<dyn Probe>(&address).unwrap();
            let held = far.clone();
            far.signals().on(move |Ticked(_)| drop(held.clone())).unwrap().forever();
            far.add_one(1).unwrap();
            exported.signals().emit(&Ticked(1)).unwrap();
        }
    };
    ask(1);
    let before = descriptors();
    ask(TIMES);
    // The last one may be held until the client makes another connection; its listener's end is told by then.
    until("the connections are forgotten", || {
        ask(1);
        descriptors() <= before + 1
    });
}

#[test]
fn calls_after_their_node_was_dropped_leave_nothing_behind() {
    if !alone() {
        return;
    }
    let (_server, _exported, address) = serve("plain://127.0.0.1:0", Arc::new(Honest::default()));
    let ask = || {
        let client = node(1);
        let far = client.connect::<dyn Probe>(&address).unwrap();
        drop(client);
        assert_eq!(far.add_one(1).unwrap(), 2);
        assert_eq!(far.add_one(2).unwrap(), 3);
    };
    ask();
    until("the first one is gone", || _server.connections() == 0);
    let before = descriptors();
    (0..TIMES).for_each(|_| ask());
    none_are_left(before);
}

#[test]
fn a_servant_that_emits_ends_with_its_node() {
    if !alone() {
        return;
    }
    drop(pair());
    let before = descriptors();
    let mut gone: Vec<Weak<Honest>> = Vec::new();
    for _ in 0..TIMES {
        let server = node(1);
        let bound = server.listen("plain://127.0.0.1:0").unwrap();
        let servant = Arc::new(Honest::default());
        gone.push(Arc::downgrade(&servant));
        let signaller = server.signaller::<dyn Probe>("probe");
        server.export::<dyn Probe>("probe", servant);
        let client = node(1);
        client.connect::<dyn Probe>(&probe_at(&bound)).unwrap().add_one(1).unwrap();
        signaller.emit(&Ticked(1)).unwrap();
        drop((server, client));
        // Nobody listens any more: that is no failure.
        signaller.emit(&Ticked(2)).unwrap();
    }
    none_are_left(before);
    until("the servants are dropped", || gone.iter().all(|servant| servant.upgrade().is_none()));
}

#[test]
fn a_newcomer_that_is_accepted_while_its_node_stops_does_not_wait_without_end() {
    if !alone() {
        return;
    }
    const NEWCOMERS: usize = 64;
    let before = descriptors();
    for at in 0..5 * TIMES {
        let name = name(&format!("stops-{at}"));
        let (server, exported, _) = serve(&format!("plain+unix://@{name}"), Arc::new(Honest::default()));
        // They are still being accepted when it stops.
        let mut peers: Vec<_> = (0..NEWCOMERS).map(|_| Raw::connect(&name)).collect();
        server.stop();
        drop((server, exported));
        for peer in &mut peers {
            // Over a connection that is closed nothing can be sent, or nothing comes back.
            let _ = peer.0.write_all(&call(1, "add_one", 1));
            let end = peer.0.read_to_end(&mut Vec::new());
            assert!(!end.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "it waits on");
        }
    }
    none_are_left(before);
}
