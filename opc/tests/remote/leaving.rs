//! What a client leaves behind at the server when it goes: nothing.

use super::{Plant, next_live, quick};
use crate::server::until;
use everywire::Node;
use everywire_opc::remote::{DataAccess, Event};
use std::sync::mpsc::channel;

/// A client that alone holds its node ends the node with itself: before that, everything is given back.
#[test]
fn whoever_alone_holds_the_node_gives_everything_back_before_that_ends() {
    let plant = Plant::new();
    let (_, server) = plant.house.as_ref().expect("a server");
    for options in ["", "&version=2"] {
        let access = DataAccess::connect(&Node::new(), &plant.address(options)).expect("a server");
        access.read(&["Tank.Level"]).expect("values");
        assert_eq!(server.engine().clients(), 1);
        drop(access);
        until("the object is released", || server.engine().clients() == 0);
    }
}

/// The same of a group of items.
#[test]
fn a_group_that_alone_holds_the_node_gives_everything_back_before_that_ends() {
    let plant = Plant::new();
    let (house, server) = plant.house.as_ref().expect("a server");
    let before = house.exported().len();
    let access = DataAccess::connect(&Node::new(), &plant.address("")).expect("a server");
    let group = access.group(&["Tank.Level"]).expect("a group");
    drop(access);
    drop(group);
    until("nothing is left", || server.engine().clients() == 0 && house.exported().len() == before);
}

/// Then the thread that kept the subscription is the last that holds the node.
#[test]
fn a_subscription_that_outlives_its_node_and_its_server_leaves_nothing() {
    let plant = Plant::new();
    let (house, server) = plant.house.as_ref().expect("a server");
    let before = house.exported().len();
    let access = DataAccess::connect(&Node::new(), &plant.address("")).expect("a server");
    let (tell, events) = channel::<Event>();
    let subscription = access.subscribe(&["Tank.Level"], quick(), move |event| drop(tell.send(event)));
    let subscription = subscription.expect("a thread");
    next_live(&events);
    drop(access);
    subscription.end();
    until("nothing is left", || server.engine().clients() == 0 && house.exported().len() == before);
}
