//! A node that serves every interface of a contract to callers whom nothing stops: what they may say once they are let in. No
//! sockets: a session is given PDUs, its calls are answered by servants that decode all arguments, write them again, and
//! answer with them.

use crate::node::{Directory, Nowhere, endpoint};
use bytes::{Bytes, BytesMut};
use everywire_dcom::exporter::Exporter;
use everywire_dcom::frame::{self, FIRST, HEADER, LAST, MULTIPLEX, OBJECT};
use everywire_dcom::pdu::{Bind, ContextElement, NDR, Pdu, Request as Fragment, Syntax};
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID;
use everywire_dcom::{
    DCOM, ENDPOINT_MAPPER, IDISPATCH, Level, MANAGEMENT, NdrSink, OBJECT_EXPORTER, REMOTE_ACTIVATION,
    Security, iid_of, is_orpc,
};
use everywire_idl::midl;
use everywire_model::object::{BoxFuture, Resolver};
use everywire_model::shape::Hold;
use everywire_model::{
    Answer, Budget, CallId, Config, Endpoint, Event, Failure, Incoming, Initiator, Interface, InterfaceKind,
    Kind, Limits, Link, Objects, Operation, Peer, PeerAddress, Profile, Request, Servant, Session, Shape,
    Sink, Value, Wire, WireState,
};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use uuid::{Uuid, uuid};

const CONTAINER: Uuid = uuid!("b196b284-bab4-101a-b69c-00aa00341d07");
const KEY: &[u8] = b"object";
/// Calls of one run.
const CALLS: usize = 32;

/// The interfaces of a contract that have operations of their own.
pub(crate) fn interfaces(text: &str) -> Vec<Hold<Interface>> {
    let contract = midl::parse(text, "contract.midl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let callable = |held: &&Hold<Interface>| !matches!(held.kind, InterfaceKind::Class);
    contract.interfaces().filter(callable).cloned().collect()
}

/// The first octet says which interface is served, the rest what is called.
pub(crate) fn exercise(interfaces: &[Hold<Interface>], data: &[u8]) {
    let Some((choice, mut rest)) = data.split_first() else { return };
    let interface = &interfaces[usize::from(*choice) % interfaces.len()];
    let house = House::new(interface);
    for call in 2..CALLS as u32 {
        let [which, opnum, flags, low, high, tail @ ..] = rest else { break };
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(tail.len());
        let (stub, tail) = tail.split_at(len);
        rest = tail;
        house.call(call, *which, u16::from(*opnum), *flags, stub);
    }
}

/// The connection, for answers.
struct Line(Arc<Mutex<Box<dyn Session>>>);

impl Link for Line {
    fn answer(&self, id: CallId, answer: Answer<'_>) {
        let mut session = self.0.lock().unwrap();
        if let Err(failure) = session.answer(id, answer) {
            // As a node does: what cannot be sent is a failure of the call.
            session.answer(id, Answer::Failed(&failure)).unwrap();
        }
    }
    fn spawn(&self, _: BoxFuture<'static, ()>) {}
    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(Nowhere)
    }
    fn peer(&self) -> Option<Peer> {
        None
    }
    fn endpoint(&self) -> Endpoint {
        endpoint()
    }
}

/// Serves an interface: decodes what comes, and says it again where that fits.
struct Parrot(Hold<Interface>);

impl Servant for Parrot {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, mut request: Request) {
        let operation = &self.0.operations[request.index()];
        let said = match request.body().read(|source| Value::decode(&operation.arguments, source)) {
            Ok(said) => said,
            Err(failure) => return request.finish(Err(failure)),
        };
        survives(&operation.arguments, &said);
        match heard(operation, &said) {
            Some(heard) => {
                request.answer(Answer::Done(&|sink: &mut dyn Sink| heard.encode(&operation.results, sink)));
            }
            None => request.finish(Err(Failure::new(Kind::Internal, Initiator::User, "nothing fits"))),
        }
    }
}

/// A value is the same after it was written and read again.
fn survives(shape: &Shape, value: &Value) {
    for little in [true, false] {
        let mut sink = NdrSink::new(little);
        // Some values read that are not written: references without a connection, strings with a NUL.
        if value.encode(shape, &mut sink).is_err() {
            return;
        }
        let again = sink.into_body(Budget::default()).unwrap();
        let back = again.read(|source| Value::decode(shape, source));
        let back =
            back.unwrap_or_else(|failure| panic!("what was written does not read: {failure}\n{value:?}"));
        // NaN differs from itself; so compare what people see.
        assert_eq!(format!("{back:?}"), format!("{value:?}"));
    }
}

/// Results: arguments of the same name or shape, else blanks.
fn heard(operation: &Operation, said: &Value) -> Option<Value> {
    let Value::Struct(said) = said else { return None };
    let arguments: Vec<_> = operation.arguments.fields().iter().zip(said).collect();
    let results = operation.results.fields().iter().map(|field| {
        let same = arguments.iter().find(|(held, _)| held.name == field.name);
        let alike =
            || arguments.iter().find(|(held, _)| format!("{:?}", held.shape) == format!("{:?}", field.shape));
        let value = match same.or_else(alike) {
            Some((_, (_, value))) => value.clone(),
            None => blank(&field.shape, 16)?,
        };
        Some((field.name.to_string(), value))
    });
    results.collect::<Option<_>>().map(Value::Struct)
}

fn blank(shape: &Shape, depth: u32) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    Some(match shape.resolved() {
        Shape::Bool => Value::Bool(true),
        Shape::F32 | Shape::F64 => Value::Float(1.5),
        Shape::Char | Shape::WideChar => Value::Char('x'),
        Shape::Text(_) => Value::Text("blank".into()),
        Shape::Struct(held) => {
            let fields = held.fields.iter();
            Value::Struct(
                fields
                    .map(|field| Some((field.name.to_string(), blank(&field.shape, depth)?)))
                    .collect::<Option<_>>()?,
            )
        }
        Shape::Array(array) => {
            let len = usize::try_from(array.len).ok()?;
            if matches!(array.element.resolved(), Shape::U8) {
                Value::Bytes(vec![7; len].into())
            } else {
                Value::List((0..len).map(|_| blank(&array.element, depth)).collect::<Option<_>>()?)
            }
        }
        Shape::Sequence(sequence) if matches!(sequence.element.resolved(), Shape::U8) => {
            Value::Bytes(Bytes::new())
        }
        Shape::Sequence(_) => Value::List(Vec::new()),
        Shape::Reference(_) => Value::Reference(None),
        Shape::Pointer(pointer) => blank(&pointer.target, depth).unwrap_or(Value::Nothing),
        Shape::Optional(_) | Shape::Void | Shape::Variant => Value::Nothing,
        Shape::Enum(_) | Shape::Union(_) | Shape::Map(_) => return None,
        _ => Value::Integer(1),
    })
}

/// A node with one object, and a connection to it.
struct House {
    exporter: Arc<Exporter>,
    directory: Arc<Directory>,
    session: Arc<Mutex<Box<dyn Session>>>,
    contexts: Vec<(Uuid, Option<Uuid>)>,
}

impl House {
    fn new(interface: &Hold<Interface>) -> Self {
        let directory = Arc::new(Directory::listening());
        let servant: Arc<dyn Servant> = Arc::new(Parrot(interface.clone()));
        directory.keys.lock().unwrap().insert(Bytes::from_static(KEY), vec![servant]);
        let exporter = Exporter::new(Arc::clone(&directory) as _);
        let profile = Profile {
            wire: "dcom",
            endpoints: vec![endpoint()],
            options: Security::new(Level::None).into(),
            ..Profile::default()
        };
        let config = Config {
            limits: Limits::default(),
            peer: PeerAddress { text: "tcp:127.0.0.1:40000".into(), credentials: None },
            profile,
            wire_state: Some(Arc::clone(&exporter) as Arc<dyn WireState>),
            ..Config::default()
        };
        let iid = iid_of(interface);
        let object = exporter.export(KEY, iid, 5).ipid;
        let (dispatch, points) =
            (exporter.export(KEY, IDISPATCH, 5).ipid, exporter.export(KEY, CONTAINER, 5).ipid);
        let contexts = vec![
            (iid, Some(object)),
            (IDISPATCH, Some(dispatch)),
            (CONTAINER, Some(points)),
            (everywire_dcom::REM_UNKNOWN2, Some(exporter.rem_unknown())),
            (REMOTE_SCM_ACTIVATOR_ID, None),
            (REMOTE_ACTIVATION, None),
            (OBJECT_EXPORTER, None),
            (ENDPOINT_MAPPER, None),
            (MANAGEMENT, None),
        ];
        let session = Arc::new(Mutex::new(DCOM.accept(&config)));
        let house = Self { exporter, directory, session, contexts };
        house.bind();
        house
    }

    fn bind(&self) {
        let major = |iid| match iid {
            ENDPOINT_MAPPER => 3,
            MANAGEMENT => 1,
            _ => 0,
        };
        let contexts = self.contexts.iter().zip(0..).map(|((iid, _), id)| ContextElement {
            id,
            interface: Syntax::new(*iid, major(*iid)),
            transfers: vec![NDR],
        });
        let bind = Bind { max_xmit: 5840, max_recv: 5840, group: 0, contexts: contexts.collect() };
        let mut pdu = Vec::new();
        Pdu::Bind(bind).write(&mut pdu, FIRST | LAST | MULTIPLEX, 1, &[]);
        self.feed(&pdu);
        let ack = self.sent();
        assert!(
            matches!(Pdu::parse(&ack), Ok((_, Pdu::BindAck(ack), _)) if ack.results.iter().all(|one| one.result == 0))
        );
    }

    fn feed(&self, pdu: &[u8]) {
        let mut input = BytesMut::from(pdu);
        // A breach ends the connection; then nothing is answered any more.
        let _ = self.session.lock().unwrap().receive(Instant::now(), &mut input, &mut Vec::new());
    }

    fn sent(&self) -> Vec<u8> {
        let mut session = self.session.lock().unwrap();
        let out = session.transmit();
        let bytes = out.to_vec();
        let len = out.len();
        out.consume(len);
        bytes
    }

    /// Half of all calls, by the first octet, are those of the object itself.
    fn call(&self, call: u32, which: u8, opnum: u16, flags: u8, stub: &[u8]) {
        let at = if which < 0x80 { 0 } else { usize::from(which) % self.contexts.len() };
        let Some((iid, object)) = self.contexts.get(at).copied() else { return };
        let little = flags & 1 == 0;
        let mut all = Vec::new();
        if is_orpc(iid) {
            let number = |value: u16| if little { value.to_le_bytes() } else { value.to_be_bytes() };
            all.extend(number(5));
            all.extend(number(7));
            all.resize(32, 0);
        }
        all.extend_from_slice(stub);
        let part = if flags & 2 == 0 { all.len().max(1) } else { 24 };
        let parts: Vec<&[u8]> = if all.is_empty() { vec![&[]] } else { all.chunks(part).collect() };
        for (index, piece) in parts.iter().enumerate() {
            let ends = if index == 0 { FIRST } else { 0 } | if index + 1 == parts.len() { LAST } else { 0 };
            let mut pdu = Vec::new();
            let request =
                Fragment { alloc_hint: 0, context: at as u16, opnum: opnum % 24, object, stub: 0..0 };
            Pdu::Request(request).write(&mut pdu, ends, call, piece);
            if !little {
                swap(&mut pdu);
            }
            self.feed(&pdu);
        }
        self.serve();
        let mut answers = &self.sent()[..];
        while !answers.is_empty() {
            let (header, _, _) = Pdu::parse(answers).expect("what this side sends is a PDU");
            answers = &answers[usize::from(header.length)..];
        }
    }

    fn serve(&self) {
        loop {
            let event = self.session.lock().unwrap().poll();
            match event {
                Some(Event::Call(incoming)) => self.dispatch(*incoming),
                Some(_) => {}
                None => return,
            }
        }
    }

    fn dispatch(&self, incoming: Incoming) {
        let own = if incoming.key.is_empty() { Vec::new() } else { self.directory.servants(&incoming.key) };
        let standing = self.exporter.servants();
        let found = own
            .iter()
            .chain(&standing)
            .find_map(|servant| Some((servant, DCOM.operation(servant.interface(), &incoming)?)));
        let Some((servant, index)) = found else {
            let failure = Failure::new(Kind::NoOperation, Initiator::Peer, "no such operation");
            self.session.lock().unwrap().answer(incoming.id, Answer::Failed(&failure)).unwrap();
            return;
        };
        let line = Arc::new(Line(Arc::clone(&self.session)));
        servant.dispatch(Request::new(index, incoming, line, Arc::clone(servant)));
    }
}

/// The headers of a request in the other byte order.
fn swap(pdu: &mut [u8]) {
    pdu[4] = 0;
    for at in [8, 10, 20, 22] {
        pdu.swap(at, at + 1);
    }
    for at in [12, 16] {
        pdu[at..at + 4].reverse();
    }
    if pdu[3] & OBJECT != 0 {
        let at = HEADER + 8;
        pdu[at..at + 4].reverse();
        pdu.swap(at + 4, at + 5);
        pdu.swap(at + 6, at + 7);
    }
    debug_assert!(frame::Header::read(pdu.first_chunk().expect("a header")).is_ok());
}
