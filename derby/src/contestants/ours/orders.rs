//! The fifth race: our backend and our client, `orders.idl`, on every wire that has messages to pass.
//!
//! Both sides are the same whatever stands between them. The backend publishes the port of the hop as
//! its own, so the client goes there without knowing. Each connection is a node of its own with a
//! thread of its own; connections are made one after the other, when the first message needs them, and
//! kept for all messages.
//!
//! Invariant: each answer is checked for its number of orders and for the last of them, so a hop that
//! answers by itself, or cuts, fails.

use super::cycles::dcom as protection;
use super::{LARGEST_MESSAGE, forever, wcf, write_whole};
use crate::contestants::ServerPlace;
use crate::contestants::published::CALLBACKS_WIRE;
use crate::contestants::{dbus as rivals, mono as services};
use crate::measure::{Plan, measure, several};
use crate::process::Launch;
use crate::race::Race;
use crate::relay::RelayAddress;
use crate::{broken, unknown};
use contract::{Order, OrderList, OrderService};
use everywire::{Failure, Node, Ref};
use std::path::Path;
use std::sync::Arc;

#[allow(unreachable_pub)]
mod contract {
    everywire::include_contract!("orders");
}

/// The most orders that are asked for, with some to spare.
const MOST: usize = 1000;
/// The last part of the backend's address, and the name of its reference.
const KEY: &str = "OrderService";

/// A wire, and one of its bindings where it has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::contestants) enum Lane {
    /// GIOP over TCP.
    Iiop,
    /// WCF: framing, binary XML with a session's dictionary.
    NetTcp,
    /// WCF: SOAP 1.1 over HTTP.
    BasicHttp,
    /// WCF: SOAP 1.2 and addressing over HTTP.
    WsHttp,
    /// D-Bus between two peers, over TCP.
    Dbus,
    /// DCOM at level connect.
    Dcom,
}

impl Lane {
    /// In this order they race. Those with Mono's routers come last: what they take is hard to foretell, and a derby whose time is over
    /// leaves out the last.
    pub(in crate::contestants) const ALL: [Self; 6] =
        [Self::Iiop, Self::Dbus, Self::Dcom, Self::NetTcp, Self::BasicHttp, Self::WsHttp];

    /// In names of contestants.
    pub(in crate::contestants) fn name(self) -> &'static str {
        match self {
            Self::Iiop => "iiop",
            Self::NetTcp => "nettcp",
            Self::BasicHttp => "basic",
            Self::WsHttp => "ws",
            Self::Dbus => "dbus",
            Self::Dcom => "dcom",
        }
    }

    /// For people.
    pub(in crate::contestants) fn title(self) -> &'static str {
        match self {
            Self::Iiop => "IIOP",
            Self::NetTcp => "net.tcp",
            Self::BasicHttp => "BasicHttp",
            Self::WsHttp => "WSHttp",
            Self::Dbus => "D-Bus, peer to peer",
            Self::Dcom => "DCOM, level connect",
        }
    }

    /// The name of the wire.
    pub(in crate::contestants) fn wire(self) -> &'static str {
        match self {
            Self::Iiop => "giop",
            Self::NetTcp | Self::BasicHttp | Self::WsHttp => services::WIRE,
            Self::Dbus => rivals::WIRE,
            Self::Dcom => CALLBACKS_WIRE,
        }
    }

    /// Whether messages are requests of HTTP.
    pub(in crate::contestants) fn is_http(self) -> bool {
        matches!(self, Self::BasicHttp | Self::WsHttp)
    }

    fn scheme(self) -> &'static str {
        match self {
            Self::Iiop => "iiop",
            Self::NetTcp => "net.tcp",
            Self::BasicHttp => "basic",
            Self::WsHttp => "wshttp",
            Self::Dbus => "dbus",
            Self::Dcom => "dcom",
        }
    }

    /// An address to listen at: that of the backend, or that of a hop, which lets in whoever the
    /// backend lets in.
    pub(in crate::contestants) fn front(self, port: u16, dir: &Path) -> String {
        let address = format!("{}://127.0.0.1:{port}", self.scheme());
        match self {
            Self::Dcom => protection::protected(&address, "connect", dir),
            Self::NetTcp | Self::BasicHttp | Self::WsHttp => wcf::open(&address, "tcp"),
            Self::Iiop | Self::Dbus => address,
        }
    }

    /// The name of a header that our broker puts into each message and each answer, in the form that
    /// the wire has for such: a service context, a SOAP header, a header field, an ORPC extension.
    pub(in crate::contestants) fn header(self) -> &'static str {
        match self {
            // The identity of a service context, of those that vendors may take.
            Self::Iiop => "0x45570001",
            Self::NetTcp | Self::BasicHttp | Self::WsHttp => "{urn:derby}Passed",
            Self::Dbus => "200",
            Self::Dcom => "45570001-1a8c-11d3-b68f-00c04f8b72e7",
        }
    }
}

/// The backend, at the port of the stand; what it tells of itself leads to the published one.
pub(in crate::contestants) fn backend(lane: Lane, stand: &ServerPlace<'_>) -> Result<Launch, Failure> {
    let port = stand.port.ok_or_else(|| broken("a backend has a port of its own"))?;
    let mut address = lane.front(port, stand.dir);
    if lane == Lane::Dcom {
        protection::introduce(stand.dir)?;
    }
    if let Some(RelayAddress::Tcp(front)) = stand.publish {
        let joint = if address.contains('?') { '&' } else { '?' };
        address = format!("{address}{joint}publish=127.0.0.1:{front}");
    }
    Ok(at_home(lane, Launch::own("orders-backend")?, stand).with([&stand.ref_file]).with([address]))
}

/// The client of whoever is named in the file `references`: the backend, whose references lead to the
/// hop, or the hop itself.
pub(in crate::contestants) fn client(
    lane: Lane,
    stand: &ServerPlace<'_>,
    references: &Path,
    race: &Race,
    plan: &Plan,
) -> Result<Launch, Failure> {
    Ok(at_home(lane, Launch::own("orders-client")?, stand)
        .with([references])
        .with([race.name])
        .with(plan.arguments()))
}

/// The reference in this file, with the quotas that the largest answer needs, on wires that have
/// quotas.
fn told(ref_file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(ref_file)
        .map_err(|error| broken(format!("{}: {error}", ref_file.display())))?;
    let found = text.lines().find_map(|line| line.split_once('\t')).map(|(_, reference)| reference);
    let reference = found.ok_or_else(|| broken("the backend says no reference"))?;
    let quotas = [Lane::NetTcp, Lane::BasicHttp, Lane::WsHttp];
    let quotas = quotas.iter().any(|lane| reference.starts_with(&format!("{}:", lane.scheme())));
    Ok(if quotas { wcf::raised(reference) } else { reference.to_owned() })
}

/// The backend itself, for whoever passes messages on to it: what it tells leads to the hop.
pub(in crate::contestants) fn behind(
    stand: &ServerPlace<'_>,
    front: u16,
    back: u16,
) -> Result<String, Failure> {
    let told = told(&stand.ref_file)?.replace(&format!("127.0.0.1:{front}"), &format!("127.0.0.1:{back}"));
    // There the published place is told once more, by whoever makes the object.
    let here = if told.starts_with("dcom:") { "&exporter=here" } else { "" };
    Ok(told + here)
}

/// Both sides find what they must know beside the address.
pub(in crate::contestants) fn at_home(lane: Lane, launch: Launch, stand: &ServerPlace<'_>) -> Launch {
    if lane != Lane::Dcom {
        return launch;
    }
    launch.where_is(protection::CREDENTIALS_VARIABLE, protection::credentials(stand.dir))
}

/// Becomes a backend or a client.
pub(super) fn child(kind: &str, arguments: &[String]) -> Result<(), Failure> {
    match (kind, arguments) {
        ("orders-backend", [ref_file, address]) => serve(Path::new(ref_file), address),
        ("orders-client", [ref_file, race, plan @ ..]) => {
            call(&told(Path::new(ref_file))?, super::known(race)?, &Plan::parse(plan)?)
        }
        _ => Err(unknown(format!("wrong arguments of a child for orders: {kind} {}", arguments.join(" ")))),
    }
}

fn node() -> Node {
    Node::from(Node::builder().max_message(LARGEST_MESSAGE).build())
}

fn serve(ref_file: &Path, address: &str) -> Result<(), Failure> {
    let node = node();
    // Before: what is exported says where it can be reached.
    node.listen(address)?;
    let service = node.export(KEY, Arc::new(Backend::new()) as Arc<dyn OrderService>);
    write_whole(ref_file, &format!("{KEY}\t{}\n", node.print_friendly(service.reference())))?;
    forever()
}

/// Who answers with as many orders as are asked for.
struct Backend {
    orders: Vec<Order>,
}

impl Backend {
    fn new() -> Self {
        Self { orders: (0..).take(MOST).map(order).collect() }
    }
}

/// About a hundred octets of CDR.
fn order(id: i32) -> Order {
    Order {
        id,
        customer: format!("customer {id:06} of the northern trade"),
        product: format!("product {:06} of the spring list", id % 1000),
        quantity: id % 10 + 1,
        price: f64::from(id % 100) + 0.25,
    }
}

impl OrderService for Backend {
    fn get_orders(&self, num_orders: i32) -> Result<OrderList, Failure> {
        let asked = usize::try_from(num_orders).ok().and_then(|asked| self.orders.get(..asked));
        let asked = asked.ok_or_else(|| unknown(format!("there are {MOST} orders, and not {num_orders}")))?;
        Ok(asked.to_vec())
    }
}

/// A client with a connection of its own.
struct Caller {
    service: Ref<dyn OrderService>,
    _node: Node,
}

impl Caller {
    /// One after the other: some listeners greet one client at a time, and slowly.
    fn connect(reference: &str) -> Result<Self, Failure> {
        let node = node();
        let caller = Self { service: node.connect(reference)?, _node: node };
        caller.call(1)?;
        Ok(caller)
    }

    /// Asks for so many, and looks whether they are those.
    fn call(&self, orders: u32) -> Result<(), Failure> {
        let asked = i32::try_from(orders).map_err(|_| unknown("too many orders"))?;
        let got = self.service.get_orders(asked)?;
        let last = got.last().is_some_and(|last| *last == order(asked - 1));
        if got.len() != usize::try_from(orders).unwrap_or(0) || !last {
            return Err(broken(format!(
                "{} orders came, or others than the {orders} that were asked for",
                got.len()
            )));
        }
        Ok(())
    }
}

/// Times the messages that the plan wants.
fn call(reference: &str, race: &Race, plan: &Plan) -> Result<(), Failure> {
    let mut callers: Vec<Caller> = Vec::new();
    for operation in race.operations {
        let Some(passes) = operation.passes.filter(|_| plan.wants(operation.name)) else { continue };
        let wanted = usize::try_from(passes.connections).unwrap_or(usize::MAX);
        while callers.len() < wanted {
            callers.push(Caller::connect(reference)?);
        }
        match callers.get(..wanted).unwrap_or_default() {
            [one] => measure(plan, operation.name, None, 1, || one.call(passes.orders))?,
            all => {
                let calls = all.iter().map(|caller| || caller.call(passes.orders)).collect();
                several::threads(plan, operation.name, calls)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes, and the largest answer, by the addresses of the race.
    #[test]
    fn every_lane_carries_the_largest_answer() {
        let dir = crate::fresh::Fresh::new().unwrap();
        for lane in Lane::ALL.into_iter().filter(|lane| *lane != Lane::Dcom) {
            let server = node();
            server.listen(&lane.front(0, dir.path())).unwrap();
            let service = server.export(KEY, Arc::new(Backend::new()) as Arc<dyn OrderService>);
            let file = dir.path().join(lane.name());
            std::fs::write(&file, format!("{KEY}\t{}\n", server.print_friendly(service.reference())))
                .unwrap();
            let caller = Caller::connect(&told(&file).unwrap()).unwrap();
            caller.call(500).unwrap();
            assert!(caller.service.get_orders(-1).is_err() && caller.service.get_orders(1001).is_err());
        }
    }
}
