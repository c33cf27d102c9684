//! The client against the server, each on a node of its own, on TCP of this machine: by 3.0 and, told so by the address, by 2.05a.

mod asking;
mod leaving;
mod listening;
mod replay;
mod scripted;
mod single;
mod transfers;

use everywire::Node;
use everywire_opc::remote::{ActiveSubscription, DataAccess, Event, ItemValue, Pauses, SubscriptionRequest};
use everywire_opc::server::{OpcEnum, Server, ServerInfo};
use everywire_opc::{Settings, Table};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::server::{CLASS, PATIENCE, own_place, table};

/// A server that can be ended and started again where it was.
pub(crate) struct Plant {
    pub(crate) table: Arc<Table>,
    pub(crate) house: Option<(Node, Server)>,
    /// HOST:PORT.
    pub(crate) place: String,
    pub(crate) client: Node,
}

impl Plant {
    pub(crate) fn new() -> Self {
        let mut plant = Self { table: table(), house: None, place: own_place(), client: Node::new() };
        plant.start("level=none");
        plant
    }

    /// Serves at the place where it was before, or at any.
    pub(crate) fn start(&mut self, options: &str) {
        let node = Node::new();
        let info = ServerInfo::new(CLASS, "Everywire.Tank");
        OpcEnum::serve(&node).add(&info);
        let server = Server::serve(&node, info, Arc::clone(&self.table) as Arc<_>, Settings::default());
        let address = node.listen(&format!("dcom://{}?{options}", self.place)).expect("a port");
        let place = address.trim_start_matches("dcom://").split(['/', '?']).next();
        self.place = place.expect("a place").to_owned();
        self.house = Some((node, server.expect("a thread")));
    }

    /// Ends the server, and cuts every connection.
    pub(crate) fn stop(&mut self) {
        if let Some((node, server)) = self.house.take() {
            node.stop_within(Duration::ZERO);
            drop((server, node));
        }
    }

    pub(crate) fn address(&self, options: &str) -> String {
        format!("opcda://{}/{CLASS}?level=none{options}", self.place)
    }

    pub(crate) fn connect(&self, options: &str) -> DataAccess {
        DataAccess::connect(&self.client, &self.address(options)).expect("a server")
    }
}

/// Without long pauses.
pub(crate) fn quick() -> SubscriptionRequest {
    SubscriptionRequest {
        rate: Duration::from_millis(10),
        pauses: Pauses {
            first: Duration::from_millis(10),
            longest: Duration::from_millis(50),
            after_shutdown: Duration::from_millis(10),
        },
        ..SubscriptionRequest::default()
    }
}

/// The next event.
pub(crate) fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(PATIENCE).expect("an event")
}

/// The next that tells that the subscription works; how often it was tried before does not matter.
pub(crate) fn next_live(events: &Receiver<Event>) -> ActiveSubscription {
    loop {
        match next(events) {
            Event::Live(live) => return live,
            Event::Lost { .. } | Event::Shutdown { .. } => {}
            other => panic!("not live: {other:?}"),
        }
    }
}

/// The next so many values, however they are packed.
pub(crate) fn values(events: &Receiver<Event>, count: usize) -> Vec<ItemValue> {
    let mut found = Vec::new();
    while found.len() < count {
        match next(events) {
            Event::Values(values) => found.extend(values),
            other => panic!("no values: {other:?}"),
        }
    }
    found.sort_by_key(|one| one.index);
    assert_eq!(found.len(), count, "{found:?}");
    found
}
