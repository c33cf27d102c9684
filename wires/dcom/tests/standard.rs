//! The standard interfaces between two nodes over sockets.

#![allow(clippy::unwrap_used)]

mod discovered;
mod omitted;
mod undelivered;

use everywire_dcom::bindings::DualStringArray;
use everywire_dcom::objref::{ObjRef, StdObjRef};
use everywire_dcom::orpc::ErrorInfo;
use everywire_dcom::standard::contracts::{
    ADVISE, CONNECTION_POINT, CONNECTION_POINT_CONTAINER, DISPATCH, FIND_CONNECTION_POINT, GET_IDS_OF_NAMES,
    INVOKE, UNADVISE,
};
use everywire_dcom::standard::dispatch::call;
use everywire_dcom::standard::enumerators::{ENUM_CONNECTION_POINTS, ENUM_CONNECTIONS};
use everywire_dcom::standard::guid::Guid;
use everywire_dcom::standard::points::{SINKS_OF_PRINCIPAL, sources};
use everywire_dcom::{DCOM, hresult, iid_of};
use everywire_model::describe::{
    self, Hold, InterfaceKind, Operation, Shape, TextKind, interface, numbered, of_kind, operation, sequence,
    signal, sunk,
};
use everywire_model::object::no_operation;
use everywire_model::shape::Alias;
use everywire_model::value::{TypedShape, Value};
use everywire_model::*;
use everywire_runtime::{Node, Notice};
use std::borrow::Cow;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use uuid::Uuid;

const BSTR: Shape = describe::text(TextKind::Counted, None);
const WAIT: Duration = Duration::from_secs(300);

static EVENTS: Interface =
    interface!("ILampEvents", "7a1e0b1c-0c55-4d0e-9b6e-3f6d7c1b0003", [], 0, &EVENT_OPERATIONS);
static EVENT_OPERATIONS: [Operation; 2] = [
    operation!("Lit", (in "brightness": Shape::I32, in "by": BSTR) -> Shape::Void),
    operation!("Dark", () -> Shape::Void),
];

static LAMP: Interface = of_kind(
    interface!(
        "ILamp",
        "7a1e0b1c-0c55-4d0e-9b6e-3f6d7c1b0001",
        [],
        0,
        &LAMP_OPERATIONS,
        [describe::attribute("Color", BSTR, 3, Some(4))],
        signals & LAMP_SIGNALS
    ),
    InterfaceKind::Dual,
);
static LAMP_OPERATIONS: [Operation; 6] = [
    numbered(operation!("Light", (in "brightness": Shape::I32, in "by": BSTR) -> Shape::I32), 7),
    operation!("Split", (in "whole": Shape::F64, out "left": Shape::I32, inout "right": Shape::I32) -> Shape::Void),
    operation!("Break", () -> Shape::Void),
    numbered(operation!("get_Color", () -> BSTR), 0),
    numbered(operation!("put_Color", (in "color": BSTR) -> Shape::Void), 0),
    operation!("Sort", (inout "numbers": sequence!(Shape::I32), out "names": sequence!(BSTR)) -> Shape::Void),
];
static NOTES: Interface = of_kind(
    interface!("_LampNotes", "7a1e0b1c-0c55-4d0e-9b6e-3f6d7c1b0004", [], 0, &NOTE_OPERATIONS),
    InterfaceKind::Dispatch,
);
static NOTE_OPERATIONS: [Operation; 1] =
    [numbered(operation!("Noted", (in "number": Shape::I16, in "text": BSTR) -> Shape::Void), 101)];
static LAMP_SIGNALS: [Signal; 4] = [
    sunk(signal!("Lit", { "brightness": Shape::I32, "by": BSTR }), &EVENTS, 0),
    sunk(signal!("Dark", {}), &EVENTS, 1),
    signal!("Warm", { "degrees": Shape::F64 }),
    sunk(signal!("Noted", { "number": Shape::I16, "text": BSTR }), &NOTES, 0),
];

/// Answers as its contract says.
#[derive(Default)]
struct Lamp {
    color: Mutex<String>,
}

impl Servant for Lamp {
    fn interface(&self) -> &Interface {
        &LAMP
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| match request.index() {
            0 => {
                let (brightness, by) = request.arguments::<(i32, String)>()?;
                if brightness < 0 {
                    return request.reply::<_, Failure>(Ok(Success::with(Success::LESS, (0,))));
                }
                request.reply::<_, Failure>(Ok((brightness * 2 + by.len() as i32,)))
            }
            1 => {
                let (whole, right) = request.arguments::<(f64, i32)>()?;
                request.reply::<_, Failure>(Ok((whole as i32 - right, right + 1)))
            }
            2 => {
                Err(Failure::new(Kind::Refused, Initiator::Peer, "the bulb is gone").with_code("0x80040277"))
            }
            3 => request.reply::<_, Failure>(Ok((self.color.lock().unwrap().clone(),))),
            4 => {
                let (color,) = request.arguments::<(String,)>()?;
                *self.color.lock().unwrap() = color;
                request.reply::<_, Failure>(Ok(()))
            }
            5 => {
                let (mut numbers,) = request.arguments::<(Vec<i32>,)>()?;
                numbers.sort_unstable();
                let names: Vec<String> = numbers.iter().map(i32::to_string).collect();
                request.reply::<_, Failure>(Ok((numbers.as_slice(), names.as_slice())))
            }
            _ => Err(no_operation(&LAMP)),
        });
    }
}

/// A node that serves a lamp, and one that uses it.
struct House {
    server: Node,
    client: Node,
    lamp: Object,
    place: String,
}

fn house() -> House {
    let wires: &[&'static dyn Wire] = &[&DCOM];
    let server = Node::builder(wires).build();
    let place = server.listen("dcom://127.0.0.1:0?level=none").unwrap();
    server.export_servant("lamp", Arc::new(Lamp::default()));
    let client = Node::builder(wires).build();
    let place = place.split('?').next().unwrap().trim_end_matches('/').to_owned();
    let text = format!("{place}/lamp?level=none");
    let lamp = client.object(&text).unwrap().typed(Hold::Static(&LAMP)).with_deadline(Some(WAIT));
    House { server, client, lamp, place }
}

impl House {
    fn as_a(&self, interface: &'static Interface) -> Object {
        Object::new(Arc::clone(self.lamp.target())).typed(Hold::Static(interface))
    }

    fn object(&self, reference: Option<Reference>, interface: &'static Interface) -> Object {
        let resolver = self.lamp.target().resolver();
        resolver
            .resolve(&reference.unwrap())
            .unwrap()
            .typed(Hold::Static(interface))
            .with_deadline(Some(WAIT))
    }

    fn emit(&self, index: usize, fields: Vec<(&str, Value)>) {
        let fields: Vec<_> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let value = Value::Struct(fields);
        let signal = &LAMP_SIGNALS[index];
        let emitter = self.server.emitter();
        emitter
            .emit(&Emission::typed(b"lamp", &LAMP, signal, &|sink: &mut dyn Sink| {
                value.encode(&signal.fields, sink)
            }))
            .unwrap();
    }

    fn lit(&self, brightness: i32) {
        let by = Value::Text(format!("hand {brightness}"));
        self.emit(0, vec![("brightness", Value::Integer(brightness.into())), ("by", by)]);
    }
}

fn code(failure: &Failure) -> u32 {
    let code = failure.code().unwrap_or_default();
    u32::from_str_radix(code.split_whitespace().next().unwrap_or_default().trim_start_matches("0x"), 16)
        .unwrap_or(0)
}

fn listen(house: &House, signal: Option<&Signal>) -> (Subscription, Receiver<SignalEvent<Incoming>>) {
    let (send, heard) = channel();
    let send = Mutex::new(send);
    let listener: signal::Listener = Arc::new(move |event| drop(send.lock().unwrap().send(event)));
    (house.lamp.subscribe(signal, listener).unwrap(), heard)
}

fn brightness(event: SignalEvent<Incoming>) -> i32 {
    match event {
        SignalEvent::Signal(heard) => {
            assert_eq!(&heard.operation[..], b"Lit");
            let (brightness, by) = heard.body.decode::<(i32, String)>(&LAMP_SIGNALS[0].fields).unwrap();
            assert_eq!(by, format!("hand {brightness}"));
            brightness
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_by_number_works() {
    let house = house();
    let (sum,) = house.lamp.call::<_, (i32,), Failure>(&LAMP_OPERATIONS[0], (20, "me")).unwrap();
    assert_eq!(sum, 42);
}

#[test]
fn signals_come_in_order_until_the_subscription_ends() {
    let house = house();
    let (subscription, heard) = listen(&house, Some(&LAMP_SIGNALS[0]));
    for number in 0..100 {
        house.lit(number);
        house.emit(1, Vec::new());
    }
    for number in 0..100 {
        assert_eq!(brightness(heard.recv_timeout(WAIT).unwrap()), number);
    }
    drop(subscription);
    house.lit(1000);
    assert!(heard.recv_timeout(Duration::from_millis(200)).is_err());
}

#[test]
fn signals_without_a_sink_in_the_contract_have_one_all_the_same() {
    let house = house();
    let (_subscription, heard) = listen(&house, Some(&LAMP_SIGNALS[2]));
    house.emit(2, vec![("degrees", Value::Float(36.5))]);
    match heard.recv_timeout(WAIT).unwrap() {
        SignalEvent::Signal(heard) => {
            assert_eq!(heard.body.decode::<(f64,)>(&LAMP_SIGNALS[2].fields).unwrap(), (36.5,));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn sinks_that_are_called_by_name_hear_in_order_too() {
    let house = house();
    let (_subscription, heard) = listen(&house, Some(&LAMP_SIGNALS[3]));
    for number in 0..20 {
        let text = Value::Text(number.to_string());
        house.emit(3, vec![("number", Value::Integer(number)), ("text", text)]);
    }
    for number in 0..20_i16 {
        match heard.recv_timeout(WAIT).unwrap() {
            SignalEvent::Signal(heard) => {
                let told = heard.body.decode::<(i16, String)>(&LAMP_SIGNALS[3].fields).unwrap();
                assert_eq!(told, (number, number.to_string()));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_source_that_is_withdrawn_has_no_sinks() {
    let house = house();
    let (subscription, heard) = listen(&house, Some(&LAMP_SIGNALS[0]));
    house.lit(1);
    assert_eq!(brightness(heard.recv_timeout(WAIT).unwrap()), 1);
    house.server.withdraw("lamp");
    house.lit(2);
    assert!(heard.recv_timeout(Duration::from_millis(100)).is_err());
    // Its end is not held up by a point that is no more.
    drop(subscription);
}

#[test]
fn connection_points_are_found_enumerated_and_limited() {
    let house = house();
    let container = house.as_a(&CONNECTION_POINT_CONTAINER);
    let unknown =
        container.call::<_, (Option<Reference>,), Failure>(FIND_CONNECTION_POINT, (Guid(Uuid::nil()),));
    assert_eq!(code(&unknown.unwrap_err()), hresult::CONNECT_E_NOCONNECTION);

    let operations = &CONNECTION_POINT_CONTAINER.operations;
    let (all,) = container.call::<_, (Option<Reference>,), Failure>(&operations[0], ()).unwrap();
    let all = house.object(all, &ENUM_CONNECTION_POINTS);
    let next = &ENUM_CONNECTION_POINTS.operations[0];
    type Next = Success<(Vec<Option<Reference>>, u32)>;
    let some = all.call::<_, Next, Failure>(next, (5_u32,)).unwrap();
    assert_eq!((some.value.1, some.code), (3, Success::LESS));
    let points = some.value.0;
    let ids: Vec<Uuid> = points
        .into_iter()
        .map(|point| {
            let point = house.object(point, &CONNECTION_POINT);
            point.call::<_, (Guid,), Failure>(&CONNECTION_POINT.operations[0], ()).unwrap().0.0
        })
        .collect();
    assert_eq!(ids, sources(&LAMP).iter().map(|source| source.iid).collect::<Vec<_>>());
    let none = all.call::<_, Next, Failure>(next, (1_u32,)).unwrap();
    assert_eq!((none.value.0.len(), none.code), (0, Success::LESS));
    all.call::<_, (), Failure>(&ENUM_CONNECTION_POINTS.operations[2], ()).unwrap();
    let one = all.call::<_, Next, Failure>(next, (1_u32,)).unwrap();
    assert_eq!((one.value.0.len(), one.code), (1, Success::PLAIN));

    let (point,) = container
        .call::<_, (Option<Reference>,), Failure>(FIND_CONNECTION_POINT, (Guid(iid_of(&EVENTS)),))
        .unwrap();
    let point = house.object(point, &CONNECTION_POINT);
    let gone = point.call::<_, (), Failure>(UNADVISE, (77_u32,)).unwrap_err();
    assert_eq!(code(&gone), hresult::CONNECT_E_NOCONNECTION);
    let null = point.call::<_, (u32,), Failure>(ADVISE, (None::<Reference>,)).unwrap_err();
    assert_eq!(code(&null), hresult::E_POINTER);

    house.client.listen("dcom://127.0.0.1:0?level=none").unwrap();
    let sink = || {
        Some(Reference {
            type_id: EVENTS.id.to_string(),
            ..house.client.export_servant("sink", Arc::new(Deaf))
        })
    };
    let cookies: Vec<u32> = (0..SINKS_OF_PRINCIPAL)
        .map(|_| point.call::<_, (u32,), Failure>(ADVISE, (sink(),)).unwrap().0)
        .collect();
    let over = point.call::<_, (u32,), Failure>(ADVISE, (sink(),)).unwrap_err();
    assert_eq!(code(&over), hresult::CONNECT_E_ADVISELIMIT);
    point.call::<_, (), Failure>(UNADVISE, (cookies[0],)).unwrap();
    let again = point.call::<_, (), Failure>(UNADVISE, (cookies[0],)).unwrap_err();
    assert_eq!(code(&again), hresult::CONNECT_E_NOCONNECTION);
    point.call::<_, (u32,), Failure>(ADVISE, (sink(),)).unwrap();
}

/// A sink that does nothing.
struct Deaf;

impl Servant for Deaf {
    fn interface(&self) -> &Interface {
        &EVENTS
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| request.reply::<_, Failure>(Ok(())));
    }
}

#[test]
fn a_sink_that_cannot_be_asked_is_not_advised() {
    let house = house();
    let (point,) = house
        .as_a(&CONNECTION_POINT_CONTAINER)
        .call::<_, (Option<Reference>,), Failure>(FIND_CONNECTION_POINT, (Guid(iid_of(&EVENTS)),))
        .unwrap();
    let point = house.client.resolve(&point.unwrap()).unwrap().typed(Hold::Static(&CONNECTION_POINT));
    // Nobody listens at port 1.
    let nowhere = Endpoint::Tcp { host: "127.0.0.1".into(), port: 1 };
    let std = StdObjRef { oxid: 7, oid: 8, ipid: Uuid::from_u128(9), public_refs: 5, flags: 0 };
    let resolver = DualStringArray::of(&[nowhere], Vec::new());
    let sink = ObjRef::Standard { iid: everywire_dcom::IUNKNOWN, std, resolver };
    let sink = DCOM.parse(&sink.moniker()).unwrap();
    let refused = point.call::<_, (u32,), Failure>(ADVISE, (Some(sink),)).unwrap_err();
    assert_eq!(code(&refused), hresult::CONNECT_E_CANNOTCONNECT);
}

#[test]
fn a_sink_that_died_is_advised_no_more() {
    let house = house();
    let container = house.as_a(&CONNECTION_POINT_CONTAINER);
    let (point,) = container
        .call::<_, (Option<Reference>,), Failure>(FIND_CONNECTION_POINT, (Guid(iid_of(&EVENTS)),))
        .unwrap();
    let point = house.object(point, &CONNECTION_POINT);
    house.client.listen("dcom://127.0.0.1:0?level=none").unwrap();
    let sink = house.client.export_servant("sink", Arc::new(Deaf));
    let (cookie,) = point.call::<_, (u32,), Failure>(ADVISE, (Some(sink),)).unwrap();
    house.lit(1);
    house.client.withdraw("sink");
    let is_gone = || {
        house.lit(2);
        let list = &CONNECTION_POINT.operations[4];
        let (all,) = point.call::<_, (Option<Reference>,), Failure>(list, ()).unwrap();
        let all = house.object(all, &ENUM_CONNECTIONS);
        type Next = Success<(Vec<(Option<Reference>, u32)>, u32)>;
        let next = all.call::<_, Next, Failure>(&ENUM_CONNECTIONS.operations[0], (1_u32,));
        // As long as it is advised, an object comes home that is no more there.
        next.is_ok_and(|next| next.value.1 == 0 && next.code == Success::LESS)
    };
    let end = Instant::now() + WAIT;
    while !is_gone() {
        assert!(Instant::now() < end, "the sink is still advised");
        std::thread::sleep(Duration::from_millis(20));
    }
    let late = point.call::<_, (), Failure>(UNADVISE, (cookie,)).unwrap_err();
    assert_eq!(code(&late), hresult::CONNECT_E_NOCONNECTION);
}

#[test]
fn names_are_found_whatever_their_capitals() {
    let house = house();
    let dispatch = house.as_a(&DISPATCH);
    let ask = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let count = names.len() as u32;
        dispatch
            .call::<_, (Vec<i32>, u32), Failure>(GET_IDS_OF_NAMES, (Guid(Uuid::nil()), names, count, 0_u32))
            .unwrap()
    };
    assert_eq!(ask(&["LIGHT", "By", "brightness"]), (vec![7, 1, 0], hresult::S_OK));
    assert_eq!(ask(&["color"]), (vec![0], hresult::S_OK));
    assert_eq!(ask(&["split", "none"]), (vec![2, -1], hresult::DISP_E_UNKNOWNNAME));
    assert_eq!(ask(&["nothing"]), (vec![-1], hresult::DISP_E_UNKNOWNNAME));
}

fn variant(shape: Shape, value: Value) -> Value {
    Value::Variant(Box::new((TypedShape(shape), value)))
}

/// What Invoke answers: result, EXCEPINFO, number of the wrong argument, arguments by reference, HRESULT.
type Answered = (Variant, (u16, u16, String, String, String, u32, u32, u32, u32), u32, Vec<Variant>, u32);

/// Calls a member by name, of an object of which nothing is known but that it has IDispatch; the content of its result.
fn invoke(object: &Object, name: &str, arguments: &[Value]) -> Result<Value, Failure> {
    let object = Object::new(Arc::clone(object.target())).typed(Hold::Static(&DISPATCH));
    let (nil, names) = (Guid(Uuid::nil()), vec![name.to_owned()]);
    let (ids, _) =
        object.call::<_, (Vec<i32>, u32), Failure>(GET_IDS_OF_NAMES, (nil, names, 1_u32, 0_u32))?;
    let held = |value: &Value| match value {
        Value::Variant(held) => Variant::new(held.0.0.clone(), held.1.clone()),
        other => panic!("{other:?} is no VARIANT"),
    };
    // Arguments stand in reverse order, and may be asked for as those of a method or of a property.
    let values: Vec<Variant> = arguments.iter().rev().map(held).collect();
    let (count, some) = (values.len() as u32, !values.is_empty());
    let params = (some.then_some(values), None::<Vec<i32>>, count, 0_u32);
    let beside: (Vec<u32>, Vec<Variant>) = (Vec::new(), Vec::new());
    let asked = (ids[0], nil, 0_u32, 3_u32, params, 0_u32, beside.0, beside.1);
    let (result, info, _, _, code) = object.call::<_, Answered, Failure>(INVOKE, asked)?;
    if hresult::is_failure(code) {
        let told = ErrorInfo { description: info.3, ..ErrorInfo::default() };
        let code = if code == hresult::DISP_E_EXCEPTION { info.8 } else { code };
        return Err(hresult::failure(code, Some(&told)));
    }
    let Value::Variant(content) = Value::from(result) else { panic!("no VARIANT") };
    Ok(content.1)
}

#[test]
fn calls_by_name_convert_their_arguments() {
    let house = house();
    let text = |held: &str| variant(BSTR, Value::Text(held.to_owned()));
    let sum = invoke(&house.lamp, "light", &[text("20"), variant(Shape::F64, Value::Float(12.0))]).unwrap();
    assert_eq!(sum, Value::Integer(42));
    let wrong = invoke(&house.lamp, "light", &[text("x"), text("y")]).unwrap_err();
    assert_eq!(code(&wrong), hresult::DISP_E_TYPEMISMATCH);
    let few = invoke(&house.lamp, "light", &[text("1")]).unwrap_err();
    assert_eq!(code(&few), hresult::DISP_E_PARAMNOTOPTIONAL);
    let many = invoke(&house.lamp, "light", &[text("1"), text("2"), text("3")]).unwrap_err();
    assert_eq!(code(&many), hresult::DISP_E_BADPARAMCOUNT);
    let broken = invoke(&house.lamp, "break", &[]).unwrap_err();
    assert_eq!(code(&broken), 0x8004_0277);
    assert!(broken.message().contains("the bulb is gone"), "{broken}");
}

const MONEY: Shape = Shape::Alias(Hold::Static(&Alias {
    name: Cow::Borrowed("CURRENCY"),
    id: Cow::Borrowed(""),
    target: Shape::I64,
}));
const DATE: Shape = Shape::Alias(Hold::Static(&Alias {
    name: Cow::Borrowed("DATE"),
    id: Cow::Borrowed(""),
    target: Shape::F64,
}));
static TILL: Interface = of_kind(
    interface!("ITill", "7a1e0b1c-0c55-4d0e-9b6e-3f6d7c1b0005", [], 0, &TILL_OPERATIONS),
    InterfaceKind::Dual,
);
static TILL_OPERATIONS: [Operation; 1] =
    [operation!("Pay", (in "price": MONEY, in "day": DATE, out "same": MONEY) -> DATE)];

/// Gives back what it is given.
struct Till;

impl Servant for Till {
    fn interface(&self) -> &Interface {
        &TILL
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let (price, day) = request.arguments::<(i64, f64)>()?;
            assert_eq!((price, day), (125_000, 45_658.0));
            request.reply::<_, Failure>(Ok((day, price)))
        });
    }
}

#[test]
fn money_and_dates_are_converted_as_such() {
    let house = house();
    house.server.export_servant("till", Arc::new(Till));
    let till = house.client.object(&format!("{}/till?level=none", house.place)).unwrap();
    let till = till.with_deadline(Some(WAIT));
    let text = |held: &str| variant(BSTR, Value::Text(held.to_owned()));
    for price in
        [variant(MONEY, Value::Integer(125_000)), text("12.5"), variant(Shape::F64, Value::Float(12.5))]
    {
        let day = invoke(&till, "pay", &[price, text("2025-01-01"), variant(Shape::Void, Value::Nothing)]);
        assert_eq!(day.unwrap(), Value::Float(45_658.0));
    }
}

#[test]
fn properties_and_references_pass_through_invoke() {
    let house = house();
    let dispatch = house.as_a(&DISPATCH);
    let ask = |index: usize, arguments: Value| {
        let operation = &LAMP_OPERATIONS[index];
        let encode = |sink: &mut dyn Sink| arguments.encode(&operation.arguments, sink);
        let invocation = call::Invocation::new(&LAMP, operation, &encode).unwrap();
        let body = match dispatch.invoke(INVOKE, &invocation) {
            Outcome::Done(body) => body,
            other => panic!("{other:?}"),
        };
        match call::results(operation, &body) {
            Outcome::Done(body) => body.read(|source| Value::decode(&operation.results, source)).unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let one = |name: &str, value: Value| Value::Struct(vec![(name.to_owned(), value)]);
    ask(4, one("color", Value::Text("red".into())));
    assert_eq!(ask(3, Value::Struct(Vec::new())), one("return", Value::Text("red".into())));
    let split = ask(
        1,
        Value::Struct(vec![("whole".into(), Value::Float(10.0)), ("right".into(), Value::Integer(3))]),
    );
    assert_eq!(
        split,
        Value::Struct(vec![("left".into(), Value::Integer(7)), ("right".into(), Value::Integer(4))])
    );
    let list = |numbers: [i128; 3]| Value::List(numbers.map(Value::Integer).into());
    let sorted = ask(5, one("numbers", list([3, -1, 2])));
    let names = Value::List(["-1", "2", "3"].map(|name| Value::Text(name.to_owned())).into());
    let expected = vec![("numbers".into(), list([-1, 2, 3])), ("names".into(), names)];
    assert_eq!(sorted, Value::Struct(expected));
}

#[test]
fn how_a_member_succeeded_passes_through_invoke() {
    let house = house();
    let dispatch = house.as_a(&DISPATCH);
    let operation = &LAMP_OPERATIONS[0];
    for (brightness, expected) in [(-1, Success::with(Success::LESS, (0,))), (3, Success::from((7,)))] {
        let arguments = Value::Struct(vec![
            ("brightness".to_owned(), Value::Integer(brightness)),
            ("by".to_owned(), Value::Text("a".to_owned())),
        ]);
        let encode = |sink: &mut dyn Sink| arguments.encode(&operation.arguments, sink);
        let invocation = call::Invocation::new(&LAMP, operation, &encode).unwrap();
        let Outcome::Done(body) = dispatch.invoke(INVOKE, &invocation) else { panic!("no answer") };
        let Outcome::Done(body) = call::results(operation, &body) else { panic!("no results") };
        assert_eq!(body.decode::<Success<(i32,)>>(&operation.results).unwrap(), expected);
    }
}
