//! Contracts of other languages on this wire: what is told of them as MIDL, and what stands in the messages, are the same, for
//! every shape that a contract can hold.

#![allow(clippy::unwrap_used)]

use crate::common::{encode, record, unnamed};
use everywire_dcom::{DCOM, NdrSink};
use everywire_idl::{dbus_xml, midl, omg};
use everywire_model::shape::Shape;
use everywire_model::value::{TypedShape, Value};
use everywire_model::*;
use everywire_runtime::Node;
use std::fmt::Write as _;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Types of OMG IDL to be echoed: each by itself, in sequences, in sequences of those, in an array, and in a struct with all of them.
const PLAIN: [&str; 14] = [
    "boolean",
    "octet",
    "char",
    "wchar",
    "short",
    "unsigned long",
    "long long",
    "double",
    "string",
    "wstring",
    "Colour",
    "Point",
    "Choice",
    "Branch",
];

fn omg_contract() -> Contract {
    let mut text = "module Shop {\n\
        enum Colour { red, green, blue };\n\
        struct Point { octet tag; double at; };\n\
        typedef sequence<long> LongList;\n\
        union Choice switch (long) { case 1: LongList longs; case 2: string text; };\n\
        struct Branch; typedef sequence<Branch> Leaves; struct Branch { short key; Leaves inner; };\n"
        .to_owned();
    for (number, plain) in PLAIN.iter().enumerate() {
        let _ = write!(
            text,
            "typedef sequence<{plain}> S{number}; typedef sequence<S{number}> SS{number};\n\
             typedef sequence<{plain}, 9> B{number}; typedef {plain} A{number}[2]; typedef S{number} AS{number}[2];\n\
             struct H{number} {{ octet o; {plain} a; S{number} b; SS{number} c; A{number} d; AS{number} e; S{number} z; }};\n\
             typedef sequence<H{number}> SH{number};\n"
        );
    }
    text.push_str("interface Echo {\n");
    for (number, plain) in PLAIN.iter().enumerate() {
        let _ = writeln!(text, "{plain} echo_{number}(in {plain} x);");
        for name in ["S", "SS", "B", "A", "AS", "H", "SH"] {
            let of = format!("{name}{number}");
            let _ = writeln!(text, "{of} echo_{of}(in {of} x);");
        }
    }
    // What is returned comes first; texts that go both ways are two.
    text.push_str(
        "any echo_any(in any x); long mixed(in string a, inout string b, out wstring c, inout S8 d);\n",
    );
    text.push_str("string said(in long x, out double y);\n};\n};\n");
    omg::parse(&text, "shop.idl").unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// Types of D-Bus, told by their signatures.
const SIGNATURES: [&str; 24] = [
    "o",
    "a{ig}",
    "b",
    "y",
    "x",
    "d",
    "s",
    "ai",
    "ay",
    "as",
    "aai",
    "aay",
    "(ys)",
    "a(ys)",
    "(yai)",
    "a{si}",
    "a{ys}",
    "a{s(yx)}",
    "a{sas}",
    "aa{sx}",
    "a{ia{sd}}",
    "v",
    "av",
    "a{sv}",
];

fn dbus_contract() -> Contract {
    let mut text = "<node><interface name=\"org.example.Echo\">".to_owned();
    for (number, signature) in SIGNATURES.iter().enumerate() {
        let _ = write!(
            text,
            "<method name=\"Echo{number}\"><arg name=\"x\" type=\"{signature}\" direction=\"in\"/>\
             <arg name=\"y\" type=\"{signature}\" direction=\"out\"/></method>"
        );
    }
    for (number, signature) in SIGNATURES.iter().enumerate() {
        let _ = write!(
            text,
            "<signal name=\"Heard{number}\"><arg name=\"x\" type=\"{signature}\"/><arg name=\"n\" type=\"q\"/></signal>"
        );
    }
    text.push_str("</interface></node>");
    dbus_xml::parse(&text, "echo.xml").unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// A value of a shape; each is another.
fn sample(shape: &Shape, seed: &mut i32, depth: usize) -> Value {
    *seed += 1;
    let number = *seed;
    let mut many = |element: &Shape, count: usize| -> Vec<Value> {
        (0..count).map(|_| sample(element, seed, depth + 1)).collect()
    };
    match shape.resolved() {
        Shape::Bool => Value::Bool(number % 2 == 0),
        Shape::F32 | Shape::F64 => Value::Float(f64::from(number) / 2.0),
        Shape::Char | Shape::WideChar => Value::Char(char::from(b'a' + u8::try_from(number % 26).unwrap())),
        Shape::Text(_) => Value::Text(format!("text {number}")),
        Shape::Enum(members) => Value::Member(
            members.members[usize::try_from(number).unwrap() % members.members.len()].0.to_string(),
        ),
        Shape::Struct(fields) => {
            record(&fields.fields.iter().map(|field| many(&field.shape, 1).remove(0)).collect::<Vec<_>>())
        }
        Shape::Union(union) => {
            let arm = &union.arms[usize::try_from(number).unwrap() % union.arms.len()];
            let value = (arm.field.name.to_string(), many(&arm.field.shape, 1).remove(0));
            Value::Union(arm.labels[0], Some(Box::new(value)))
        }
        Shape::Sequence(sequence) if matches!(sequence.element.resolved(), Shape::U8) => {
            Value::Bytes((0..number % 5).map(|at| u8::try_from(at).unwrap()).collect())
        }
        // Some have none, so that pointers to nothing are seen as well.
        Shape::Sequence(_) if depth > 5 => Value::List(Vec::new()),
        Shape::Sequence(sequence) => {
            Value::List(many(&sequence.element, usize::try_from(number % 4).unwrap()))
        }
        Shape::Array(array) if matches!(array.element.resolved(), Shape::U8) => {
            Value::Bytes(vec![7; array.len as usize].into())
        }
        Shape::Array(array) => Value::List(many(&array.element, array.len as usize)),
        Shape::Map(map) => {
            let pairs = (0..2).map(|_| (many(&map.key, 1).remove(0), many(&map.value, 1).remove(0)));
            Value::Map(pairs.collect())
        }
        Shape::Variant => Value::Variant(Box::new((TypedShape(Shape::I32), Value::Integer(number.into())))),
        other if other.width().is_some() => Value::Integer(i128::from(number % 100)),
        other => panic!("no sample of {other:?}"),
    }
}

/// The same value for somebody who takes what is printed as it stands: sequences and maps are structs with a count.
fn plainly(value: &Value, shape: &Shape) -> Value {
    let each = |items: &[Value], element: &Shape| -> Vec<Value> {
        items.iter().map(|item| plainly(item, element)).collect()
    };
    match (shape.resolved(), value) {
        (Shape::Struct(fields), Value::Struct(values)) => {
            assert_eq!(fields.fields.len(), values.len(), "{}", fields.name);
            let pairs = fields.fields.iter().zip(values);
            record(&pairs.map(|(field, (_, value))| plainly(value, &field.shape)).collect::<Vec<_>>())
        }
        (Shape::Struct(fields), Value::List(_) | Value::Bytes(_) | Value::Map(_)) => {
            let [count, items] = &*fields.fields else { panic!("{} is no list", fields.name) };
            assert!(count.name == "count" && items.name == "items", "{}", fields.name);
            let Shape::Optional(target) = items.shape.resolved() else { panic!("{:?}", items.shape) };
            let element = target.element().unwrap();
            let (count, items) = match value {
                Value::List(list) => (list.len(), Value::List(each(list, element))),
                Value::Bytes(octets) => (octets.len(), value.clone()),
                Value::Map(pairs) => {
                    let [key, value] = element.fields() else { panic!("{element:?} is no pair") };
                    let of =
                        |(k, v): &(Value, Value)| record(&[plainly(k, &key.shape), plainly(v, &value.shape)]);
                    (pairs.len(), Value::List(pairs.iter().map(of).collect()))
                }
                _ => unreachable!(),
            };
            let items = if count == 0 { Value::Nothing } else { items };
            record(&[Value::Integer(i128::try_from(count).unwrap()), items])
        }
        (Shape::Sequence(_) | Shape::Array(_), Value::List(list)) => {
            Value::List(each(list, shape.resolved().element().unwrap()))
        }
        (Shape::Union(union), Value::Union(label, Some(held))) => {
            let arm = &union.arms[union.select(*label).unwrap()];
            let held = (arm.field.name.to_string(), plainly(&held.1, &arm.field.shape));
            Value::Union(*label, Some(Box::new(held)))
        }
        _ => value.clone(),
    }
}

fn interface_of(contract: &Contract) -> Hold<Interface> {
    let mut all = contract.interfaces().filter(|interface| !interface.name.ends_with("Events"));
    let interface = all.next().unwrap().clone();
    assert!(all.next().is_none());
    interface
}

fn told(text: &str) -> Hold<Interface> {
    let contract = midl::parse(text, "told.midl").unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    interface_of(&contract)
}

#[test]
fn what_is_told_as_midl_is_what_stands_in_the_messages() {
    for contract in [omg_contract(), dbus_contract()] {
        let own = interface_of(&contract);
        // As an object tells it: what is beside the interface is found in it.
        let alone = Contract { definitions: vec![Definition::Interface(own.clone())] };
        for contract in [&contract, &alone] {
            agrees(contract, &own);
        }
    }
}

fn agrees(contract: &Contract, own: &Hold<Interface>) {
    let text = midl::print(contract).unwrap();
    // Other readers know nothing by its name.
    let (told, strangers) =
        (told(&text), told(&text.replace("sequence_", "list_").replace("map_", "pairs_")));
    assert_eq!(told.operations.len(), own.operations.len());
    let mut seed = 0;
    for (index, operation) in own.operations.iter().enumerate() {
        let (told, strange) = (&told.operations[index], &strangers.operations[index]);
        for round in 0..4 {
            for (own, told, strange, is_result) in [
                (&operation.arguments, &told.arguments, &strange.arguments, false),
                (&operation.results, &told.results, &strange.results, true),
            ] {
                let value = sample(own, &mut seed, 0);
                let mut sink = NdrSink::new(true).with_texts_behind_pointers(is_result);
                value.encode(own, &mut sink).unwrap();
                let bytes = sink.into_bytes().unwrap();
                assert_eq!(encode(&value, true, told), bytes, "{} {round}: {value:?}", operation.name);
                let plain = plainly(&value, strange);
                assert_eq!(encode(&plain, true, strange), bytes, "{} {round}: {plain:?}", operation.name);
            }
        }
    }
    // Printed again, it is the same.
    let again = midl::print(&midl::parse(&text, "told.midl").unwrap()).unwrap();
    assert_eq!(
        interface_of(&midl::parse(&again, "again.midl").unwrap()).operations.len(),
        own.operations.len()
    );
    assert_eq!(again.matches("size_is(count)").count(), text.matches("size_is(count)").count());
}

/// What comes of an operation: what it was asked, if that is all, else anything.
fn answer_to(operation: &Operation, asked: Value) -> Value {
    let is_echo = operation.name.to_lowercase().starts_with("echo");
    if is_echo { asked } else { sample(&operation.results, &mut 70, 0) }
}

/// Answers with what it was asked.
struct Echo(Hold<Interface>);

impl Servant for Echo {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let operation = &self.0.operations[request.index()];
            let value = request.body().read(|source| Value::decode(&operation.arguments, source))?;
            let value = answer_to(operation, value);
            request.answer(Answer::Done(&|sink: &mut dyn Sink| {
                unnamed(&value).encode(&operation.results, sink)
            }));
            Ok(())
        });
    }
}

#[test]
fn objects_are_called_without_their_contract_as_with_it() {
    let wires: &[&'static dyn Wire] = &[&DCOM];
    for contract in [omg_contract(), dbus_contract()] {
        let server = Node::builder(wires).build();
        let place = server.listen("dcom://127.0.0.1:0?level=none").unwrap();
        let own = interface_of(&contract);
        server.export_servant("echo", Arc::new(Echo(own.clone())));
        let client = Node::builder(wires).build();
        let place = place.split('?').next().unwrap().trim_end_matches('/').to_owned();
        let object = client.object(&format!("{place}/echo?level=none")).unwrap();
        let told = interface_of(&DCOM.discover(&object).unwrap().contract);
        assert_eq!(told.operations.len(), own.operations.len());
        let call = |interface: &Hold<Interface>, index: usize, value: &Value| {
            let object = Object::new(Arc::clone(object.target())).typed(interface.clone());
            let operation = &interface.operations[index];
            let outcome =
                object.invoke(operation, &|sink: &mut dyn Sink| value.encode(&operation.arguments, sink));
            let Outcome::Done(body) = outcome else { panic!("{}: {outcome:?}", operation.name) };
            unnamed(&body.read(|source| Value::decode(&operation.results, source)).unwrap())
        };
        let mut seed = 0;
        for (index, operation) in own.operations.iter().enumerate() {
            let value = sample(&operation.arguments, &mut seed, 0);
            let wanted = answer_to(operation, value.clone());
            assert_eq!(call(&own, index, &value), wanted, "{}", operation.name);
            assert_eq!(call(&told, index, &value), wanted, "{}", operation.name);
        }
    }
}

/// Says which operation it was asked for.
struct Player(Hold<Interface>, Mutex<Vec<String>>);

impl Servant for Player {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let operation = &self.0.operations[request.index()];
            self.1.lock().unwrap().push(operation.name.to_string());
            let results = sample(&operation.results, &mut 7, 0);
            request.answer(Answer::Done(&|sink: &mut dyn Sink| results.encode(&operation.results, sink)));
            Ok(())
        });
    }
}

/// Of an object with an operation that MIDL cannot say the others keep their numbers. Told by type information, it is called by name:
/// IDispatch's calls are numbered as operations are, so they must not come under the identity of an interface that is not derived
/// from IDispatch.
#[test]
fn an_object_with_an_operation_that_is_not_told_carries_out_what_is_called() {
    let contract = dbus_xml::parse(
        "<node><interface name=\"org.example.Player\">
         <method name=\"Play\"><arg name=\"song\" type=\"s\" direction=\"in\"/><arg type=\"u\" direction=\"out\"/></method>
         <method name=\"Lyrics\"><arg type=\"h\" direction=\"out\"/></method>
         <method name=\"Stop\"/><method name=\"Eject\"/><method name=\"Rewind\"/>
         <signal name=\"Finished\"><arg name=\"song\" type=\"s\"/></signal></interface></node>",
        "player.xml",
    )
    .unwrap();
    let own = contract.interfaces().next().unwrap().clone();
    let wires: &[&'static dyn Wire] = &[&DCOM];
    let server = Node::builder(wires).build();
    let place = server.listen("dcom://127.0.0.1:0?level=none").unwrap();
    let player = Arc::new(Player(own.clone(), Mutex::default()));
    server.export_servant("player", Arc::<Player>::clone(&player));
    let client = Node::builder(wires).build();
    let place = place.split('?').next().unwrap().trim_end_matches('/').to_owned();
    let object = client.object(&format!("{place}/player?level=none")).unwrap();
    let whole = DCOM.discover(&object).unwrap();
    let by_name = everywire_dcom::discover::by_type_information(&object).unwrap();
    for (kind, discovery) in [(InterfaceKind::Plain, whole), (InterfaceKind::Dispatch, by_name)] {
        let told = discovery.contract.interfaces().next().unwrap().clone();
        assert_eq!((told.kind, told.operations.len()), (kind, own.operations.len()));
        for name in ["Play", "Stop", "Eject", "Rewind"] {
            let operation = told.operations.iter().find(|operation| operation.name == name).unwrap();
            let value = sample(&operation.arguments, &mut 1, 0);
            let object = Object::new(Arc::clone(object.target())).typed(told.clone());
            let outcome =
                object.invoke(operation, &|sink: &mut dyn Sink| value.encode(&operation.arguments, sink));
            let called = std::mem::take(&mut *player.1.lock().unwrap());
            assert_eq!(called, [name], "{kind:?}: {outcome:?}");
            assert!(matches!(outcome, Outcome::Done(_)), "{name}: {outcome:?}");
        }
    }
    let whole = DCOM.discover(&object).unwrap().contract.interfaces().next().unwrap().clone();
    let lyrics = whole.operations.iter().find(|operation| operation.name == "Lyrics").unwrap();
    assert!(lyrics.doc.contains("does not travel"), "{lyrics:?}");
    // And what it emits is heard.
    assert_eq!(whole.signals.iter().map(|signal| signal.name.as_ref()).collect::<Vec<_>>(), ["Finished"]);
    let (send, heard) = channel();
    let send = Mutex::new(send);
    let listener: signal::Listener = Arc::new(move |event| drop(send.lock().unwrap().send(event)));
    let _subscription =
        Object::new(Arc::clone(object.target())).typed(whole.clone()).subscribe(None, listener).unwrap();
    let song = sample(&own.signals[0].fields, &mut 1, 0);
    let fields = |sink: &mut dyn Sink| song.encode(&own.signals[0].fields, sink);
    server.emitter().emit(&Emission::typed(b"player", &own, &own.signals[0], &fields)).unwrap();
    let SignalEvent::Signal(heard) = heard.recv_timeout(Duration::from_secs(300)).unwrap() else {
        panic!("a signal")
    };
    let read = heard.body.read(|source| Value::decode(&whole.signals[0].fields, source)).unwrap();
    assert_eq!(unnamed(&read), song);
}

/// Signals of another contract language are heard with the contract and without: under the name that they have there, or in MIDL.
#[test]
fn signals_are_heard_without_their_contract_as_with_it() {
    const WAIT: Duration = Duration::from_secs(300);
    let wires: &[&'static dyn Wire] = &[&DCOM];
    let server = Node::builder(wires).build();
    let place = server.listen("dcom://127.0.0.1:0?level=none").unwrap();
    let own = interface_of(&dbus_contract());
    server.export_servant("echo", Arc::new(Echo(own.clone())));
    let client = Node::builder(wires).build();
    let place = place.split('?').next().unwrap().trim_end_matches('/').to_owned();
    let object = client.object(&format!("{place}/echo?level=none")).unwrap();
    let told = interface_of(&DCOM.discover(&object).unwrap().contract);
    assert_eq!((own.signals.len(), told.signals.len()), (SIGNATURES.len(), SIGNATURES.len()));
    let listen = |interface: &Hold<Interface>| {
        let (send, heard) = channel();
        let send = Mutex::new(send);
        let listener: signal::Listener = Arc::new(move |event| drop(send.lock().unwrap().send(event)));
        let object = Object::new(Arc::clone(object.target())).typed(interface.clone());
        (object.subscribe(None, listener).unwrap(), heard)
    };
    let ears = [(listen(&own), &own, "org::example::Echo"), (listen(&told), &told, "org_example_EchoEvents")];
    let mut seed = 0;
    for (index, signal) in own.signals.iter().enumerate() {
        let value = sample(&signal.fields, &mut seed, 0);
        let fields = |sink: &mut dyn Sink| value.encode(&signal.fields, sink);
        server.emitter().emit(&Emission::typed(b"echo", &own, signal, &fields)).unwrap();
        for ((_, heard), interface, name) in &ears {
            let SignalEvent::Signal(heard) = heard.recv_timeout(WAIT).unwrap() else { panic!("a signal") };
            assert_eq!(
                (&heard.interface[..], &heard.operation[..]),
                (name.as_bytes(), signal.name.as_bytes())
            );
            let shape = &interface.signals[index].fields;
            let read = heard.body.read(|source| Value::decode(shape, source)).unwrap();
            assert_eq!(unnamed(&read), value, "{} {name}", signal.name);
        }
    }
}
