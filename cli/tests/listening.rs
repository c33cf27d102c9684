//! `watch` on CORBA: the object takes a listener of the program's, and calls it back.

use crate::support::{Running, Said, Scratch, run};
use everywire::model::{Answer, Contract, Hold, Request, Servant, Sink};
use everywire::{Interface, Node, Reference, Value};
use everywire_dynamic::{DynamicObject, ObjectContract};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};

const CONTRACT: &str = "
module Hall {
  interface Listener { oneway void rang(in string who, in long times); void closed(); };
  interface Bell {
    unsigned long watch(in Listener who);
    void unwatch(in unsigned long cookie);
    void ring(in string who);
  };
  interface Post { void add(in Listener l); void remove(in Listener l); };
  interface Desk { void add(in Listener l); long enrol(in Listener l); void detach(in long n); };
  interface Wall { void ring(in string who); void hang(in Listener l, in string topic); };
};";

/// What all objects here do: they hold listeners, by a number or by themselves.
#[derive(Default)]
struct Held {
    listeners: Mutex<BTreeMap<i64, Reference>>,
    changed: Condvar,
}

impl Held {
    /// Waits until there are so many.
    fn are(&self, count: usize) {
        let mut held = self.listeners.lock().unwrap();
        while held.len() != count {
            held = self.changed.wait(held).unwrap();
        }
    }
}

struct Bell {
    interface: Hold<Interface>,
    contract: Contract,
    held: Arc<Held>,
}

impl Servant for Bell {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn listeners(&self) -> Vec<Hold<Interface>> {
        self.contract.listeners(&self.interface)
    }

    fn dispatch(&self, mut request: Request) {
        let operation = &self.interface.operations[request.index()];
        let given = request.body().read(|source| Value::decode(&operation.arguments, source));
        let Ok(Value::Struct(given)) = given else { return };
        let mut held = self.held.listeners.lock().unwrap();
        let mut number = 0;
        match &given[0].1 {
            Value::Reference(Some(taken)) if operation.name != "remove" => {
                number = held.last_key_value().map_or(1, |(last, _)| last + 1);
                held.insert(number, taken.clone());
            }
            Value::Integer(number) => drop(held.remove(&i64::try_from(*number).unwrap())),
            _ => drop(held.pop_first()),
        }
        self.held.changed.notify_all();
        drop(held);
        let results = operation.results.fields().iter();
        let results = Value::Struct(
            results.map(|field| (field.name.to_string(), Value::Integer(number.into()))).collect(),
        );
        request.answer(Answer::Done(&|sink: &mut dyn Sink| results.encode(&operation.results, sink)));
    }
}

struct Hall {
    node: Node,
    held: Arc<Held>,
}

impl Hall {
    /// An object of each interface, at this address.
    fn open(address: &str) -> (Self, String) {
        let node = Node::new();
        let at = node.listen(address).unwrap();
        let contract = everywire_idl::omg::parse(CONTRACT, "hall.idl").unwrap();
        let held = Arc::<Held>::default();
        for interface in contract.interfaces().filter(|held| held.name != "Hall::Listener") {
            let (interface, contract, held) = (interface.clone(), contract.clone(), Arc::clone(&held));
            let key = interface.name.rsplit("::").next().unwrap().to_owned();
            node.export_servant(key, Arc::new(Bell { interface, contract, held }));
        }
        (Self { node, held }, at)
    }

    /// Calls each listener.
    fn tell(&self, operation: &str, arguments: &serde_json::Value) {
        let contract = everywire_idl::omg::parse(CONTRACT, "hall.idl").unwrap();
        let listener = contract.interface("Hall::Listener").unwrap().clone();
        let all: Vec<Reference> = self.held.listeners.lock().unwrap().values().cloned().collect();
        for reference in all {
            let object = self.node.resolve(&reference).unwrap().typed(listener.clone());
            let known = ObjectContract::new(contract.clone(), "hall.idl");
            DynamicObject::new(&self.node, object, known).call(operation, arguments.clone()).unwrap();
        }
    }
}

/// What stands behind the time of a line.
fn told(line: &str) -> &str {
    line.split_once(' ').unwrap().1
}

#[test]
fn an_object_of_corba_calls_back_whoever_watches() {
    let (hall, at) = Hall::open("iiop://127.0.0.1:0");
    let mut watch = Running::start(&["watch", &format!("{at}Bell"), "--count", "3"]);
    watch.tells("watching");
    hall.held.are(1);
    hall.tell("rang", &json!(["ada", 7]));
    assert_eq!(told(&watch.line()), "Bell Hall::Listener.rang {who: \"ada\", times: 7}");
    // One that wants an answer gets one.
    hall.tell("closed", &json!([]));
    assert_eq!(told(&watch.line()).trim_end(), "Bell Hall::Listener.closed");
    hall.tell("rang", &json!(["eve", 8]));
    watch.line();
    // It says that it listens no longer.
    hall.held.are(0);
    assert_eq!(watch.end("-0").0, 0);
}

/// Nobody can connect to the address that this program tells, so all calls come over its own connection.
#[test]
fn an_object_calls_back_over_the_connection_of_whoever_watches() {
    let (hall, at) = Hall::open("iiop://127.0.0.1:0?bidirectional=on");
    let on = "iiop://127.0.0.1:0?bidirectional=on&publish=127.0.0.1:1";
    let mut watch = Running::start(&["watch", &format!("{at}Bell"), "--count", "1", "--on", on]);
    watch.tells("watching");
    hall.held.are(1);
    hall.tell("rang", &json!(["ada", 7]));
    assert_eq!(told(&watch.line()), "Bell Hall::Listener.rang {who: \"ada\", times: 7}");
    hall.held.are(0);
    assert_eq!(watch.end("-0").0, 0);
}

#[test]
fn a_listener_is_taken_back_by_itself_where_it_has_no_number() {
    let (hall, at) = Hall::open("iiop://127.0.0.1:0");
    let mut watch = Running::start(&["watch", &format!("{at}Post"), "rang", "--count", "1", "--json"]);
    watch.tells("watching");
    // The other call is not asked for.
    hall.tell("closed", &json!([]));
    hall.tell("rang", &json!(["ada", 1]));
    let line: serde_json::Value = serde_json::from_str(&watch.line()).unwrap();
    assert_eq!((&line["signal"], &line["fields"]), (&json!("rang"), &json!({"who": "ada", "times": 1})));
    hall.held.are(0);
}

#[test]
fn watching_goes_on_when_the_server_is_there_again() {
    let scratch = Scratch::new();
    let address = format!("iiop+unix://{}", scratch.path("hall.sock"));
    let (hall, at) = Hall::open(&address);
    let object = format!("{}#Bell", at.trim_end_matches('#'));
    let mut watch = Running::start(&["watch", &object, "--count", "1"]);
    watch.tells("watching");
    hall.held.are(1);
    hall.node.stop();
    drop(hall);
    watch.tells("lost");
    let (again, _) = Hall::open(&address);
    watch.tells("back");
    again.tell("rang", &json!(["ada", 9]));
    assert_eq!(told(&watch.line()), "Bell Hall::Listener.rang {who: \"ada\", times: 9}");
}

#[test]
fn why_an_object_of_corba_cannot_be_watched_is_said() {
    let (_hall, at) = Hall::open("iiop://127.0.0.1:0");
    let watch = |key: &str, more: &[&str]| -> Said {
        run(&[&["watch", &format!("{at}{key}"), "--for", "1ms"], more].concat())
    };
    let none = watch("Wall", &[]);
    let lines = none.failed(2);
    assert!(
        lines[1].contains("no operation of Hall::Wall takes a callback object and nothing else"),
        "{}",
        none.err
    );
    assert!(lines[1].contains("there are no signals on this wire"), "{}", none.err);
    let several = watch("Desk", &[]);
    assert!(
        several.failed(2)[1].contains("add(l: Hall::Listener), enrol(l: Hall::Listener) -> i32"),
        "{}",
        several.err
    );
    // What the hint says.
    assert!(several.failed(2)[2].contains("name one of these operations"), "{}", several.err);
    watch("Desk", &["enrol"]).good();
    let unknown = watch("Bell", &["rung"]);
    assert!(unknown.failed(2)[1].contains("known are watch, rang, closed"), "{}", unknown.err);
    let nobody = watch("Nobody", &[]);
    assert!(nobody.failed(1)[2].contains("everywire list iiop://127.0.0.1:"), "{}", nobody.err);
}
