//! Connection points of objects behind references: listeners are called back by the broker.

use super::{LONG, Running, Scratch, place, start, until};
use everywire::model::signal::Audience;
use everywire::{Node, Ref};
use everywire_tests::kin::family::{Home, Other, OtherGrew};
use everywire_tests::servants::family::house;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

/// A house, a broker before it, and what is told of those who listen to the `other` in the house.
fn world(scratch: &Scratch) -> (Node, Running, Receiver<Audience>) {
    let backend = house(&place("dcom", "backend", scratch));
    let (tell, told) = channel();
    backend.on_audience("other", move |audience| tell.send(audience.clone()).unwrap_or_default());
    let home = backend.reference("home").unwrap();
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contracts/family.idl");
    let broker = start(&format!(
        "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"home\"\nmatch = {{ key = \"home\" }}\nto = \"{}\"\n\
         contract = \"{}\"\ninterface = \"family::Home\"\n",
        place("dcom", "front", scratch),
        backend.print_friendly(&home),
        contract.display(),
    ));
    (backend, broker, told)
}

fn other_of(broker: &Running, client: &Node) -> Ref<dyn Other> {
    let home = client.connect::<dyn Home>(&broker.reference("home")).unwrap();
    let other = home.find("other bare").unwrap().expect("an object");
    other.query::<dyn Other>().unwrap().expect("it is an Other")
}

/// How many listeners there are, as the next news of them says.
fn listeners(told: &Receiver<Audience>) -> usize {
    loop {
        match told.recv_timeout(LONG).unwrap() {
            Audience::Joined { listeners, .. } | Audience::Left { listeners, .. } => return listeners,
            _ => {}
        }
    }
}

#[test]
fn listeners_of_an_object_behind_a_reference_are_called_back() {
    let scratch = Scratch::new();
    let (backend, broker, told) = world(&scratch);
    let client = Node::new();
    let other = other_of(&broker, &client);
    let (tell, heard) = channel();
    let listening =
        other.signals().on(move |grew: OtherGrew| tell.send(grew.by).unwrap_or_default()).unwrap();
    assert_eq!(listeners(&told), 1, "the target has the listener");
    let signals = backend.signaller::<dyn Other>("other");
    for by in 0..50 {
        signals.emit(&OtherGrew { by }).unwrap();
    }
    for by in 0..50 {
        assert_eq!(heard.recv_timeout(LONG).unwrap(), by, "in order, each once");
    }
    drop(listening);
    assert_eq!(listeners(&told), 0, "it has heard of the end");
    assert_eq!(other.four().unwrap(), 4);
    drop(other);
    until("nothing is held", || broker.metric("references{route=\"home\"}") < 0.5);
}

/// One whose object is served no longer, though nobody was told, is forgotten with the next signal, at the target and at the broker.
#[test]
fn a_listener_that_has_gone_is_forgotten_at_the_target() {
    let scratch = Scratch::new();
    let (backend, broker, told) = world(&scratch);
    let client = Node::new();
    let other = other_of(&broker, &client);
    let listening = other.signals().on(|_: OtherGrew| {}).unwrap();
    assert_eq!(listeners(&told), 1);
    let held = || broker.metric("references{route=\"home\"}");
    let before = held();
    client.stop();
    // No Unadvise is sent.
    std::mem::forget(listening);
    backend.signaller::<dyn Other>("other").emit(&OtherGrew { by: 1 }).unwrap();
    assert_eq!(listeners(&told), 0);
    until("the sink is not held", || held() < before);
}
