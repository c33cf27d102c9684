//! Calls that servers make on the connections of their clients: together they take no more memory than the node of a client may hold.

use crate::common::foreign::until;
use crate::common::scratch;
use everywire::model::shape::{Field, Shape};
use everywire::model::{Direction, Hold, InterfaceKind, Operation, Parameter, Request, Servant};
use everywire::{Failure, Interface, Kind, Node, Quotas};
use std::sync::{Arc, LazyLock, Mutex, RwLock};
use std::thread;

/// `ask`, which is never answered, and `note`, which wants no answer.
static INTERFACE: LazyLock<Interface> = LazyLock::new(|| {
    let input = |shape| Parameter { direction: Direction::In, field: Field { name: "v".into(), shape } };
    let mut note = Operation::new("note", vec![input(Shape::sequence(Shape::U8))], Shape::Void);
    note.oneway = true;
    Interface {
        name: "test.Notes".into(),
        id: "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a0f7".into(),
        identities: vec![].into(),
        types: None,
        notes: vec![].into(),
        kind: InterfaceKind::Plain,
        bases: vec![].into(),
        operations: vec![Operation::new("ask", vec![input(Shape::I32)], Shape::I32), note].into(),
        inherited: 0,
        attributes: vec![].into(),
        signals: vec![].into(),
        doc: "".into(),
    }
});

/// Sends its caller twelve notes of a mebibyte, and keeps the call.
struct Talker(Mutex<Vec<Request>>);

impl Servant for Talker {
    fn interface(&self) -> &Interface {
        &INTERFACE
    }

    fn dispatch(&self, request: Request) {
        let back = everywire::caller().expect("a wire that carries calls both ways");
        let back = back.typed(Hold::Static(&INTERFACE));
        thread::spawn(move || {
            // Whoever is cut off meanwhile says no more.
            (0..12).try_for_each(|_| back.notify(&INTERFACE.operations[1], (vec![0_u8; 1 << 20],)))
        });
        self.0.lock().expect("whole").push(request);
    }
}

/// Takes no note to its end until a gate is open.
struct Listener(Arc<RwLock<()>>);

impl Servant for Listener {
    fn interface(&self) -> &Interface {
        &INTERFACE
    }

    fn dispatch(&self, _request: Request) {
        everywire::blocking(|| drop(self.0.read().expect("whole")));
    }
}

/// Each of six servers sends less than one connection may keep, and the client has memory for what two of them send.
fn bounded(scheme: &str, serving: &str, calling: &str) {
    let folder = scratch(&format!("called-{scheme}"));
    let gate = Arc::new(RwLock::new(()));
    let quotas = Quotas { memory: Some(32 << 20), ..Quotas::default() };
    // There is always memory for two of the largest messages.
    let client: Node = Node::builder().max_message(4 << 20).quotas(quotas).deadline(None).build().into();
    // Whoever calls back names no object on net.tcp, and the root of all on D-Bus.
    client.export_prefix("", Arc::new(Listener(Arc::clone(&gate))));
    let closed = gate.write().expect("whole");
    let servers: Vec<Node> = (0..6)
        .map(|at| {
            let server = Node::new();
            server.export_servant("notes", Arc::new(Talker(Mutex::default())));
            let socket = folder.join(at.to_string());
            server.listen(&format!("{scheme}+unix://{}{serving}", socket.display())).expect("a socket");
            server
        })
        .collect();
    let asking: Vec<_> = (0..6)
        .map(|at| {
            let socket = folder.join(at.to_string());
            let far = client.object(&format!("{scheme}+unix://{}#notes{calling}", socket.display()));
            let far = far.expect("an address").typed(Hold::Static(&INTERFACE));
            thread::spawn(move || far.call::<_, (i32,), Failure>(&INTERFACE.operations[0], (1,)))
        })
        .collect();
    until("four make room", || asking.iter().filter(|asking| asking.is_finished()).count() >= 4);
    // Each of them left more here than connections have when nothing waits.
    until("the rest fits", || (1 << 20..=32 << 20).contains(&client.memory_held()));
    for asking in asking.into_iter().filter(thread::JoinHandle::is_finished) {
        let failure = asking.join().expect("no panic").expect_err("it has no answer");
        assert_eq!(failure.kind(), Kind::LimitExceeded, "{scheme}: {failure}");
    }
    drop((closed, servers));
}

#[test]
fn calls_of_servers_stay_within_the_memory_of_a_client_on_net_tcp() {
    bounded("net.tcp", "?security=none", "?security=none&MaxReceivedMessageSize=4194304");
}

#[test]
fn calls_of_servers_stay_within_the_memory_of_a_client_on_dbus() {
    bounded("dbus", "", "");
}
