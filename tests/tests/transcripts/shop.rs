//! The service that every wire carries in these transcripts: `tests/contracts/shop.idl`, and the scenes that are the same on each.
//!
//! A scene begins after a first call, so that greetings are shown once, in a scene of their own.

use super::tape::{Relay, Tape};
use crate::common::foreign::PATIENCE;
use everywire::model::{Answer, Hold, Interface, MarshalList, Operation, Reference, Request, Servant, Sink};
use everywire::{Failure, Initiator, Kind, Node, Object, Ref, Remote, WeakNode};
use everywire_tests::shop::market::{FindError, Item, Missing, Order, Shop, State, Watcher};
use std::sync::{Arc, Condvar, Mutex};

/// The shop.
pub struct Store {
    node: WeakNode,
    title: Mutex<String>,
    notes: Mutex<Vec<String>>,
    /// Whether calls of `count` have to wait, and how many do.
    shut: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Store {
    pub fn new(node: &Node, title: &str) -> Arc<Self> {
        Arc::new(Self {
            node: node.downgrade(),
            title: Mutex::new(title.to_owned()),
            notes: Mutex::default(),
            shut: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Waits until so many notes came.
    pub fn wait_for_notes(&self, count: usize) {
        let notes = self.notes.lock().unwrap();
        let waited = self.changed.wait_timeout_while(notes, PATIENCE, |notes| notes.len() < count).unwrap();
        assert!(!waited.1.timed_out(), "no note came");
    }

    /// Has calls of `count` wait, or lets them go on.
    pub fn shut(&self, shut: bool) {
        self.shut.lock().unwrap().0 = shut;
        self.changed.notify_all();
    }

    /// Waits until a call of `count` waits.
    pub fn wait_for_caller(&self) {
        let shut = self.shut.lock().unwrap();
        let waited = self.changed.wait_timeout_while(shut, PATIENCE, |shut| shut.1 == 0).unwrap();
        assert!(!waited.1.timed_out(), "nobody called");
    }
}

impl Shop for Store {
    fn title(&self) -> Result<String, Failure> {
        Ok(self.title.lock().unwrap().clone())
    }
    fn set_title(&self, value: &str) -> Result<(), Failure> {
        value.clone_into(&mut self.title.lock().unwrap());
        Ok(())
    }
    fn get_orders(&self, n: i32) -> Result<Vec<Order>, Failure> {
        Ok((0..n).map(order).collect())
    }
    fn mix(&self, a: i32, text: &str) -> Result<(i32, f64, String), Failure> {
        let turned: String = text.chars().rev().collect();
        Ok((i32::try_from(turned.chars().count()).unwrap(), f64::from(a) / 2.0, turned))
    }
    fn find(&self, number: i32) -> Result<Order, FindError> {
        if number < 0 {
            return Err(FindError::Missing(Missing { number, why: format!("no {number}") }));
        }
        Ok(order(number))
    }
    fn note(&self, what: &str) -> Result<(), Failure> {
        self.notes.lock().unwrap().push(what.to_owned());
        self.changed.notify_all();
        Ok(())
    }
    fn noted(&self) -> Result<i32, Failure> {
        Ok(i32::try_from(self.notes.lock().unwrap().len()).unwrap())
    }
    fn tell(&self, w: Option<Ref<dyn Watcher>>, what: &str) -> Result<i32, Failure> {
        let nobody = || Failure::new(Kind::BadArgument, Initiator::User, "nobody to tell");
        Ok(w.ok_or_else(nobody)?.heard(what)? + 1)
    }
    fn branch(&self, name: &str) -> Result<Option<Ref<dyn Shop>>, Failure> {
        let node = Node::from(self.node.upgrade().expect("it runs"));
        let branch = Self::new(&node, name);
        Ok(Some(node.export::<dyn Shop>("east", branch)))
    }
    fn title_of(&self, s: Option<Ref<dyn Shop>>) -> Result<String, Failure> {
        s.map_or_else(|| Ok("nil".into()), |shop| shop.title())
    }
    fn count(&self, n: i32) -> Result<i32, Failure> {
        let mut shut = self.shut.lock().unwrap();
        if shut.0 {
            shut.1 += 1;
            self.changed.notify_all();
            let (mut shut, _) = self.changed.wait_timeout_while(shut, PATIENCE, |shut| shut.0).unwrap();
            shut.1 -= 1;
        }
        Ok(n)
    }
}

fn order(number: i32) -> Order {
    let item = |name: &str, count| Item { name: name.into(), count, price: f64::from(count) * 1.5 };
    Order { number, status: State::Shipped, lines: vec![item("nut ä", number + 2)] }
}

/// What callers hear with.
struct Ear;

impl Watcher for Ear {
    fn heard(&self, what: &str) -> Result<i32, Failure> {
        Ok(i32::try_from(what.len()).unwrap())
    }
}

/// Says of each call that its object is elsewhere.
struct Signpost(Reference);

impl Servant for Signpost {
    fn interface(&self) -> &Interface {
        <dyn Shop as Remote>::interface()
    }
    fn dispatch(&self, mut request: Request) {
        request.answer(Answer::Moved(&self.0));
    }
}

/// A shop, somebody who calls it, and what passes between them.
pub struct World {
    pub server: Node,
    pub client: Node,
    pub store: Arc<Store>,
    pub shop: Ref<dyn Shop>,
    /// The shop's address, by the relay.
    pub address: String,
    pub relay: Relay,
}

impl World {
    /// At these addresses, which have `PORT` where the relay's port belongs: of the server, and of the client if it is called back.
    pub fn over_tcp(tape: &Tape, at: &str, back: Option<&str>) -> Self {
        let (server, client) = (Node::new(), Node::new());
        let relay = tape.relay("client", "server");
        relay.to(&listen(&server, at, relay.port));
        if let Some(back) = back {
            let relay = tape.relay("server", "client");
            relay.to(&listen(&client, back, relay.port));
        }
        let store = Store::new(&server, "shop");
        let exported = server.export::<dyn Shop>("shop", store.clone());
        let address = server.print_friendly(exported.reference());
        let shop = client.connect::<dyn Shop>(&address).expect("an address");
        Self { server, client, store, shop, address, relay }
    }

    /// The same, after a first call.
    #[must_use]
    pub fn after_greeting(self, tape: &Tape) -> Self {
        self.shop.noted().expect("it answers");
        tape.begin();
        self
    }

    /// The shop without a type.
    pub fn object(&self) -> Object {
        self.client.object(&self.address).expect("an address")
    }

    /// An object of another name.
    pub fn named<I: Remote + ?Sized>(&self, key: &str) -> Ref<I> {
        self.client.connect::<I>(&self.address.replace("shop", key)).expect("an address")
    }
}

/// Listens by a relay; the address with the port that was bound.
pub fn listen(node: &Node, address: &str, port: u16) -> String {
    let address = address.replace("PORT", &port.to_string());
    node.listen(&address).unwrap_or_else(|failure| panic!("{address}: {failure}"))
}

pub fn first_call(world: &World, tape: &Tape) {
    assert_eq!(world.shop.count(7).unwrap(), 7);
    tape.stop();
}

pub fn call(world: &World, tape: &Tape) {
    assert_eq!(world.shop.count(1000).unwrap(), 1000);
    tape.stop();
}

pub fn structs(world: &World, tape: &Tape) {
    assert_eq!(world.shop.get_orders(1).unwrap(), [order(0)]);
    tape.stop();
}

pub fn oneway(world: &World, tape: &Tape) {
    world.shop.note("hello").unwrap();
    world.store.wait_for_notes(1);
    tape.stop();
}

pub fn out_and_inout(world: &World, tape: &Tape) {
    assert_eq!(world.shop.mix(7, "abc").unwrap(), (3, 3.5, "cba".into()));
    tape.stop();
}

pub fn exception(world: &World, tape: &Tape) {
    let missing = Missing { number: -4, why: "no -4".into() };
    assert!(matches!(world.shop.find(-4), Err(FindError::Missing(told)) if told == missing));
    tape.stop();
}

pub fn no_object(world: &World, tape: &Tape) {
    let failure = world.named::<dyn Shop>("nobody").title().unwrap_err();
    assert_eq!(failure.kind(), Kind::NoObject, "{failure}");
    tape.stop();
}

pub fn no_operation(world: &World, tape: &Tape) {
    let wrong =
        world.object().typed(Hold::Static(<dyn Watcher as Remote>::interface())).into_typed::<dyn Watcher>();
    let failure = wrong.heard("x").unwrap_err();
    assert_eq!(failure.kind(), Kind::NoOperation, "{failure}");
    tape.stop();
}

pub fn attribute(world: &World, tape: &Tape) {
    assert_eq!(world.shop.title().unwrap(), "shop");
    world.shop.set_title("corner").unwrap();
    tape.stop();
}

pub fn callback(world: &World, tape: &Tape) {
    let ear = world.client.export::<dyn Watcher>("ear", Arc::new(Ear));
    assert_eq!(world.shop.tell(Some(ear), "hello").unwrap(), 6);
    tape.stop();
}

pub fn reference(world: &World, tape: &Tape) {
    let branch = world.shop.branch("east").unwrap().expect("a branch");
    assert_eq!(branch.title().unwrap(), "east");
    tape.stop();
}

pub fn locate(world: &World, tape: &Tape) {
    world.object().target().probe().expect("it is there");
    let nobody = world.client.object(&world.address.replace("shop", "nobody")).expect("an address");
    nobody.target().probe().expect_err("nobody is there");
    tape.stop();
}

pub fn forward(world: &World, tape: &Tape) {
    let own = world.server.reference("shop").expect("it is there");
    world.server.export_servant("signpost", Arc::new(Signpost(own)));
    assert_eq!(world.named::<dyn Shop>("signpost").title().unwrap(), "shop");
    tape.stop();
}

/// A call that its caller withdraws: `count`, which waits.
pub fn cancel(world: &World, tape: &Tape) {
    let interface = <dyn Shop as Remote>::interface();
    let object = world.object().typed(Hold::Static(interface));
    let count: &Operation = interface.operations.iter().find(|held| held.name == "count").unwrap();
    assert_eq!(object.call::<_, (i32,), Failure>(count, (1,)).unwrap(), (1,));
    tape.begin();
    world.store.shut(true);
    let call =
        object.submit(count, &|sink: &mut dyn Sink| MarshalList::marshal_list(&(7,), &count.arguments, sink));
    world.store.wait_for_caller();
    let before = tape.passed(0, true);
    drop(call);
    tape.wait_past(0, true, before);
    tape.stop();
    world.store.shut(false);
}

/// The server ends, and the client, when it has heard of it.
pub fn goodbye(world: World, tape: &Tape) {
    let World { server, client, store, shop, .. } = world;
    server.stop();
    tape.wait_for_more_ends(0, 1);
    drop((shop, client, store));
    tape.wait_for_ends();
    tape.stop();
}

/// The client ends.
pub fn goodbye_of_client(world: World, tape: &Tape) {
    let World { server: _server, client, shop, .. } = world;
    client.stop();
    drop((shop, client));
    tape.wait_for_ends();
    tape.stop();
}
