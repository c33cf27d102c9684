//! Connections to a process of Wine under hostile answers: one interface to a connection, answers without numbers, OBJREFs
//! of the custom form, values in Wine's NDR. References that come are passed back; no sockets.

use crate::driver::Driver;
use crate::node::Directory;
use everywire_dcom::bindings::DualStringArray;
use everywire_dcom::exporter::Exporter;
use everywire_dcom::frame::{FIRST, LAST};
use everywire_dcom::objref::{ObjRef, StdObjRef};
use everywire_dcom::pdu::{BindAck, ContextResult, Fault, Pdu, Response, Syntax};
use everywire_dcom::{DCOM, Security, iid_of};
use everywire_model::shape::{Hold, Name, Referent};
use everywire_model::visit::{Nothing, Sink};
use everywire_model::{
    Call, Config, Encode, Event, Expects, Interface, Method, Operation, Outcome, Profile, Reference, Session,
    Shape, Value, Wire, WireState,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const OXID: u64 = 0x20_0000_cafe;
const IID: &str = "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a001";

fn interface(shape: Shape) -> Interface {
    let reference = || Shape::Reference(Hold::new(Referent { name: Name::Borrowed(""), id: IID.into() }));
    let mut get = Operation::new("Get", vec![], Shape::Void);
    get.results = crate::shapes::record(vec![
        ("object", reference()),
        ("objects", Shape::sequence(reference())),
        ("value", shape),
    ]);
    let mut put = Operation::new("Put", vec![], Shape::Void);
    put.arguments = get.results.clone();
    Interface {
        name: "IFuzz".into(),
        id: IID.into(),
        operations: vec![get, put].into(),
        ..Interface::default()
    }
}

/// What is known of the process: an object of it, by its OBJREF.
fn object(iid: Uuid) -> ObjRef {
    let std = StdObjRef { flags: 0, public_refs: 5, oxid: OXID, oid: 4, ipid: Uuid::from_u128(9) };
    ObjRef::Standard { iid, std, resolver: DualStringArray::default() }
}

/// A PDU as Wine would send it, or nearly: `parts` of a stub.
fn answer(kind: u8, call: u32, stub: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if kind == 3 {
        let fault = Fault { context: 0, cancels: 0, flags: 0, status: 0x8001_0110, stub: 0..0 };
        Pdu::Fault(fault).write(&mut out, FIRST | LAST, call, &[]);
        return out;
    }
    let values = [&[0; 8][..], stub, if kind == 2 { &[] } else { &[0; 4] }].concat();
    let parts: Vec<&[u8]> = values.chunks(if kind == 4 { 24 } else { 5000 }).collect();
    for (index, part) in parts.iter().enumerate() {
        let ends = if index == 0 { FIRST } else { 0 } | if index + 1 == parts.len() { LAST } else { 0 };
        Pdu::Response(Response { alloc_hint: 0, context: 0, cancels: 0, stub: 0..0 })
            .write(&mut out, ends, call, part);
    }
    out
}

/// Gives the octets to this case.
pub fn wine_session(data: &[u8]) {
    let [choice, shape, rest @ ..] = data else { return };
    let mut data = rest;
    let interface = interface(crate::ndr_shapes::any(*shape));
    // To the object, or to where its process tells which interfaces an object has.
    let other = choice & 1 != 0;
    let iid = if other { Uuid::from_u128(7) } else { iid_of(&interface) };
    let moniker = format!("{}?dialect=wine&at=127.0.0.1:7001", object(iid).moniker());
    let way = DCOM.parse(&moniker).expect("it is an address").profiles.remove(0);
    let security = Security::of(&way);
    let exporter = Exporter::new(Arc::new(Directory::listening()));
    let reference = exporter.adopt(&object(iid), &security).expect("it is an object of another process");
    let mut profile = reference.profiles[0].clone();
    if other && choice & 2 != 0 {
        profile.components = Vec::new();
    }
    let wire_state = Some(Arc::clone(&exporter) as Arc<dyn WireState>);
    let config = Config { profile: profile.clone(), wire_state, ..Config::default() };
    let mut session = DCOM.connect(&config);
    let mut opening = Vec::new();
    if choice & 4 == 0 {
        let results = vec![ContextResult::accepted(Syntax::default())];
        let (max_xmit, max_recv, address) = (5840, 5840, b"7001".to_vec());
        Pdu::BindAck(BindAck { max_xmit, max_recv, group: 1, address, results }).write(
            &mut opening,
            FIRST | LAST,
            1,
            &[],
        );
    }
    let mut driver = Driver::new(&mut *session, &opening, 1 << 16);
    let mut held = Value::Nothing;
    while let [step, low, high, rest @ ..] = data {
        let (octets, rest) = rest.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(rest.len()));
        data = rest;
        start(driver.session, driver.now, *step, &profile, &interface, &held);
        let goes_on = match step & 7 {
            0 => driver.receive(octets),
            kind => driver.receive(&answer(kind, u32::from(step >> 6), octets)),
        };
        if !goes_on {
            break;
        }
        driver.poll(*step, |event| match event {
            Event::Reply { outcome: Outcome::Done(body), .. } => {
                let shape = &interface.operations[0].results;
                if let Ok(value) = body.read(|source| Value::decode(shape, source)) {
                    held = value;
                }
            }
            Event::Reply { outcome: Outcome::Moved(to), .. } => passed(&exporter, to),
            _ => {}
        });
        if !driver.wait(Duration::from_secs(u64::from(*step))) {
            break;
        }
    }
    driver.end();
}

/// Begins a call: with nothing, or with what came last.
fn start(
    session: &mut dyn Session,
    now: Instant,
    step: u8,
    profile: &Profile,
    interface: &Interface,
    held: &Value,
) {
    let expects = if step & 8 == 0 { Expects::Reply } else { Expects::Nothing };
    let shape = &interface.operations[1].arguments;
    let again = |sink: &mut dyn Sink| held.encode(shape, sink);
    let (operation, arguments): (_, &dyn Encode) = match held {
        Value::Struct(_) if step & 16 != 0 => (&interface.operations[1], &again),
        _ => (&interface.operations[0], &Nothing),
    };
    let call =
        Call { profile, method: Method::Typed { interface: Some(interface), operation }, arguments, expects };
    if let Ok(id) = session.start(now, &call)
        && step & 32 != 0
    {
        session.cancel(id);
    }
}

/// What a call is sent on to leads to the same process, and can be said to others.
fn passed(exporter: &Exporter, to: &Reference) {
    for profile in to.profiles.iter().filter(|profile| profile.wire == "dcom") {
        assert!(Security::of(profile).dialect.is_wine());
    }
    drop(exporter.marshal(to).map(|objref| assert!(ObjRef::parse(&objref.write()).is_ok())));
}
