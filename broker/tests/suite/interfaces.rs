//! Objects that are more than the reference to them says: callers find the interfaces that the route's contract knows.

use super::{Running, Scratch, place, start};
use everywire::Node;
use everywire_tests::kin::family::{Home, Leaf, Middle, Other};
use everywire_tests::servants::family::{house, without_leaf};
use std::path::Path;

/// A house on one wire, and a broker for callers on another, by a contract that does not know what a `Leaf` is.
fn world(near: &str, far: &str, scratch: &Scratch) -> (Node, Running) {
    let backend = house(&place(far, "backend", scratch));
    let home = backend.reference("home").unwrap();
    let broker = start(&format!(
        "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"home\"\nmatch = {{ key = \"home\" }}\nto = \"{}\"\n\
         contract = \"{}\"\ninterface = \"family::Home\"\n",
        place(near, "front", scratch),
        backend.print_friendly(&home),
        without_leaf(Path::new(&scratch.path(""))).display(),
    ));
    (backend, broker)
}

#[test]
fn an_object_is_at_the_broker_what_it_is_itself() {
    for (near, far) in [("iiop", "iiop"), ("iiop", "dcom"), ("dcom", "iiop"), ("dcom", "dcom")] {
        let scratch = Scratch::new();
        let (_backend, broker) = world(near, far, &scratch);
        let client = Node::new();
        client.listen(&place(near, "client", &scratch)).unwrap();
        let home = client.connect::<dyn Home>(&broker.reference("home")).unwrap();
        // One of a type that the contract does not know, and one that says too little.
        for what in ["leaf itself", "leaf bare"] {
            let found = home.find(what).unwrap().expect("an object");
            assert_eq!(found.one().unwrap(), 1);
            let middle = found.query::<dyn Middle>().unwrap().expect("it is a Middle");
            assert_eq!((middle.one().unwrap(), middle.two().unwrap()), (1, 2), "{near} to {far}, {what}");
            assert!(found.query::<dyn Other>().unwrap().is_none(), "{near} to {far}, {what}");
            assert!(found.query::<dyn Leaf>().unwrap().is_none(), "the contract does not know it");
        }
        let other = home.find("other bare").unwrap().expect("an object");
        assert_eq!(other.query::<dyn Other>().unwrap().expect("it is an Other").four().unwrap(), 4);
        assert!(other.query::<dyn Middle>().unwrap().is_none());
        let base = home.find("base itself").unwrap().expect("an object");
        assert!(base.query::<dyn Middle>().unwrap().is_none() && base.one().unwrap() == 1);
        // The same object has the same reference.
        let again = home.find("leaf bare").unwrap().expect("an object");
        assert_eq!(again.query::<dyn Middle>().unwrap().expect("it is still").two().unwrap(), 2);
    }
}

/// Wires that cannot ask an object what it is pass it as before.
#[test]
fn an_object_that_cannot_be_asked_passes_by_what_is_known() {
    let scratch = Scratch::new();
    let (_backend, broker) = world("iiop", "dbus", &scratch);
    let home = Node::new().connect::<dyn Home>(&broker.reference("home")).unwrap();
    assert_eq!(home.find("leaf bare").unwrap().expect("an object").one().unwrap(), 1);
}
