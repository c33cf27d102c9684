//! The same calls on each wire, by a contract and by what the object tells of itself.

use crate::support::{LONG, Shop, TILL, WIRES, only, place};
use everywire::model::{Answer, Hold, Request, Servant, Sink};
use everywire::{Failure, Interface, Kind, Node, Value};
use everywire_dynamic::{CallError, DynamicObject, ObjectContract};
use serde_json::json;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// What a till answers; `raises` says whether exceptions of contracts travel, `told` whether it is known by what it tells.
fn check(wire: &str, till: &DynamicObject, raises: bool) {
    let call = |name: &str, arguments| till.call(name, arguments).map(only).map_err(Failure::from);
    assert_eq!(call("add", json!({"amount": 5})).unwrap(), json!(5), "{wire}");
    // DCOP's functions do not tell what their parameters are called.
    assert_eq!(call("add", json!([2])).unwrap(), json!(7), "{wire}");
    assert_eq!(call("add", json!(1)).unwrap(), json!(8), "{wire}");
    assert_eq!(call("join", json!([["a", "b"], "-"])).unwrap(), json!("a-b"), "{wire}");
    assert_eq!(till.get("total").unwrap(), json!(8), "{wire}");
    till.set("title", json!("Till 2")).unwrap();
    assert_eq!(till.get("title").unwrap(), json!("Till 2"), "{wire}");
    let names: Vec<&str> = till.attributes().iter().map(|attribute| attribute.name).collect();
    assert_eq!(names, ["title", "total"], "{wire}");
    let written: Vec<bool> = till.attributes().iter().map(|attribute| attribute.written).collect();
    assert_eq!(written, [true, false], "{wire}");
    let operations: Vec<String> =
        till.operations().iter().map(|member| member.operation.label.to_string()).collect();
    assert!(operations.contains(&"join".to_owned()) && !operations.iter().any(|name| name.contains("total")));
    match till.call("add", json!([-100])) {
        Err(CallError::Raised(raised)) if raises => {
            assert_eq!(raised.json(till.notation()), json!({"missing": 92}), "{wire}");
            assert!(raised.name.ends_with("Empty"), "{wire}: {}", raised.name);
            let failure = Failure::from(CallError::Raised(raised));
            assert!(failure.code().is_some_and(|code| code.contains("Empty")), "{wire}: {failure:?}");
        }
        Err(CallError::Failed(_)) if !raises => {}
        other => panic!("{wire}: {other:?}"),
    }
    // Nobody is called with what does not fit.
    for (name, arguments, kind, part) in [
        ("add", json!(["much"]), Kind::BadArgument, "a number (i32) is expected, not text"),
        ("add", json!([1, 2]), Kind::BadArgument, "add takes 1 argument, and the list has 2"),
        ("ad", json!([1]), Kind::NoOperation, "there is no operation `ad`"),
        ("total", json!([1]), Kind::NoOperation, "total"),
    ] {
        let failure = Failure::from(till.call(name, arguments).unwrap_err());
        assert!(failure.kind() == kind && failure.message().contains(part), "{wire}: {failure:?}");
    }
    let hint = Failure::from(till.call("ad", json!([1])).unwrap_err());
    assert_eq!(hint.hint(), Some("did you mean `add`?"), "{wire}");
}

#[test]
fn a_till_answers_the_same_on_each_wire_by_its_contract() {
    for wire in WIRES {
        let shop = Shop::open(wire);
        let till = shop.known(TILL);
        check(wire, &till, wire != "dcop");
        if wire != "dcop" {
            // DCOP's functions have one result.
            assert_eq!(till.call("split", json!([7])).unwrap(), json!({"return": 3, "rest": 1}), "{wire}");
        }
    }
}

#[test]
fn a_till_answers_the_same_on_each_wire_by_what_it_tells() {
    for wire in WIRES {
        let shop = Shop::open(wire);
        let till = DynamicObject::connect(&Node::new(), &shop.address).unwrap();
        let add = till.member("add", &json!([1])).unwrap().operation;
        let raises = add.raises.len() == 1;
        assert!(!raises || till.contract().own == 1, "{wire}");
        let call = |name: &str, arguments| till.call(name, arguments).map(only).map_err(Failure::from);
        assert_eq!(call("add", json!([5])).unwrap(), json!(5), "{wire}");
        assert_eq!(call("join", json!([["a", "b"], "-"])).unwrap(), json!("a-b"), "{wire}");
        assert_eq!(till.get("total").unwrap(), json!(5), "{wire}");
        till.set("title", json!("Till 2")).unwrap();
        assert_eq!(till.get("title").unwrap(), json!("Till 2"), "{wire}");
        assert!(till.attributes().iter().any(|attribute| attribute.name == "total" && !attribute.written));
        assert_eq!(till.template("add").unwrap().as_object().unwrap().len(), 1, "{wire}");
    }
}

/// Answers with the name of the operation that it was asked.
struct Named(Hold<Interface>);

impl Servant for Named {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, mut request: Request) {
        let operation = &self.0.operations[request.index()];
        let name = Value::Struct(vec![("return".into(), Value::Text(operation.name.to_string()))]);
        request.answer(Answer::Done(&|sink: &mut dyn Sink| name.encode(&operation.results, sink)));
    }
}

/// Methods of one name are called in turn over one connection, which remembers what it was asked last.
#[test]
fn methods_of_one_name_are_called_in_turn() {
    let text = "<node><interface name='org.example.Jar'>
        <method name='Put'><arg type='s' direction='in'/><arg type='s' direction='out'/></method>
        <method name='Put'><arg type='i' direction='in'/><arg type='s' direction='out'/></method>
    </interface></node>";
    let contract = everywire_idl::dbus_xml::parse(text, "jar.xml").unwrap();
    for wire in ["dbus", "iiop", "net.tcp"] {
        let node = Node::new();
        node.listen(&place(wire)).unwrap();
        let servant = Arc::new(Named(contract.interfaces().next().unwrap().clone()));
        let address = node.print_friendly(&node.export_servant("jar", servant));
        let known = ObjectContract::new(contract.clone(), "jar.xml");
        let jar = DynamicObject::with_contract(&Node::new(), &address, known).unwrap();
        for _ in 0..2 {
            assert_eq!(jar.call("Put", json!(["x"])).map(only).unwrap(), json!("Put"), "{wire}");
            assert_eq!(jar.call("Put_2", json!([5])).map(only).unwrap(), json!("Put_2"), "{wire}");
        }
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn calls_need_no_thread_to_wait_with() {
    for wire in WIRES {
        let shop = Shop::open(wire);
        let till = shop.known(TILL).with_deadline(Some(LONG));
        let both = async {
            let first = till.call_async("add", json!([2]));
            let second = till.call_async("join", json!([["a", "b"], ""]));
            (first.await.map(only), second.await.map(only))
        };
        let (first, second) = block_on(both);
        assert_eq!(first.unwrap(), json!(2), "{wire}");
        assert_eq!(second.unwrap(), json!("ab"), "{wire}");
        let mistake = block_on(till.call_async("add", json!(["x"]))).unwrap_err();
        assert!(matches!(mistake, CallError::Mistake(_)), "{wire}");
        // One that never ends is withdrawn with its future.
        let mut hanging = Box::pin(till.call_async("hang", json!(null)));
        let waker = Waker::noop();
        assert!(hanging.as_mut().poll(&mut Context::from_waker(waker)).is_pending(), "{wire}");
        drop(hanging);
        shop.till.wake();
    }
}

#[test]
fn functions_of_one_name_are_told_apart_by_how_many_arguments_are_given() {
    let text = "<DCOP-IDL><CLASS><NAME>Player</NAME>
        <FUNC><TYPE>int</TYPE><NAME>seek</NAME><ARG><TYPE>int</TYPE><NAME>to</NAME></ARG></FUNC>
        <FUNC><TYPE>int</TYPE><NAME>seek</NAME><ARG><TYPE>int</TYPE><NAME>to</NAME></ARG><ARG><TYPE>bool</TYPE><NAME>back</NAME></ARG></FUNC>
        </CLASS></DCOP-IDL>";
    let contract = everywire_idl::kidl::parse(text, "player.kidl").unwrap();
    let contract = ObjectContract::new(contract, "player.kidl");
    let player =
        DynamicObject::with_contract(&Node::new(), "dcop+unix:///nowhere#player/p", contract).unwrap();
    let named = |arguments| player.member("seek", &arguments).map(|member| member.operation.name.to_string());
    assert_eq!(named(json!([5])).as_deref(), Ok("seek(int)"));
    assert_eq!(named(json!({"to": 5, "back": true})).as_deref(), Ok("seek(int,bool)"));
    assert_eq!(named(json!(5)).as_deref(), Ok("seek(int)"));
    assert!(
        named(json!(null)).is_err_and(|mistake| mistake.why().starts_with("none of them takes no argument"))
    );
}

#[test]
fn an_address_that_names_no_object_is_a_mistake() {
    let none = DynamicObject::with_contract(
        &Node::new(),
        "dbus:session",
        ObjectContract::new(Default::default(), "x"),
    );
    let failure = none.err().unwrap();
    assert_eq!(failure.kind(), Kind::BadReference);
    assert!(failure.hint().is_some_and(|hint| hint.contains("list")), "{failure:?}");
}

/// Such as those of servers that speak UIOP or DIOP alone. Printed, it can be kept in a file and given to a program that knows more.
#[test]
fn a_reference_whose_profiles_nobody_knows_is_printed_as_it_came() {
    let order = if cfg!(target_endian = "little") { u32::to_le_bytes } else { u32::to_be_bytes };
    let mut octets = vec![u8::from(cfg!(target_endian = "little")), 0, 0, 0];
    octets.extend(order(10));
    octets.extend(b"IDL:x:1.0\0\0\0");
    octets.extend([order(1), order(0x99), order(4)].concat());
    octets.extend(b"\x00xyz");
    let text = octets.iter().fold("IOR:".to_owned(), |text, octet| text + &format!("{octet:02x}"));
    let node = Node::new();
    let reference = node.parse(&text).unwrap();
    assert!(reference.profiles.is_empty());
    assert_eq!(node.print(&reference), text);
    assert_eq!(node.print_friendly(&reference), text);
}
