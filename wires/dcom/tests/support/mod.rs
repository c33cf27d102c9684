//! What the tests of sessions share: nodes without a network, two sessions tied together, PDUs made by hand.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used, clippy::missing_panics_doc)]

pub mod directory;
pub mod raw;

use bytes::{Bytes, BytesMut};
use directory::{Directory, Nowhere};
use everywire_auth::security::{Credentials, Mechanism, Secret, UserTable};
use everywire_dcom::exporter::Exporter;
use everywire_dcom::{DCOM, Level, Security};
use everywire_model::object::{BoxFuture, Resolver};
use everywire_model::shape::{Field, Hold};
use everywire_model::*;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// An interface that is called, and one that is derived from it.
pub const COUNTER: &str = "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a001";
pub const LEDGER: &str = "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a002";

pub fn parameter(direction: Direction, name: &'static str, shape: Shape) -> Parameter {
    Parameter { direction, field: Field { name: name.into(), shape } }
}

pub fn in_out(name: &'static str, shape: Shape) -> Operation {
    let parameters =
        vec![parameter(Direction::In, "said", shape.clone()), parameter(Direction::Out, "heard", shape)];
    Operation::new(name, parameters, Shape::Void)
}

pub fn interface(name: &'static str, id: &'static str) -> Interface {
    let octets = Shape::sequence(Shape::U8);
    let operations = vec![
        in_out("Add", Shape::I32),
        in_out("Echo", octets),
        in_out("Say", Shape::Text(shape::Text::WIDE)),
    ];
    Interface {
        name: name.into(),
        id: id.into(),
        identities: vec![].into(),
        types: None,
        notes: vec![].into(),
        kind: InterfaceKind::Plain,
        bases: vec![].into(),
        operations: operations.into(),
        inherited: 0,
        attributes: vec![].into(),
        signals: vec![].into(),
        doc: "".into(),
    }
}

/// A servant whose calls the test answers itself.
struct Named(Hold<Interface>);

impl Servant for Named {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, _: Request) {
        panic!("the test answers for {}", self.0.name)
    }
}

impl Directory {
    pub fn serve(&self, key: &'static [u8], interface: Interface) {
        let servant: Arc<dyn Servant> = Arc::new(Named(Hold::new(interface)));
        self.keys.lock().unwrap().entry(Bytes::from_static(key)).or_default().push(servant);
    }
}

/// A node: what it serves, and what its wire keeps for it.
pub struct Node {
    pub directory: Arc<Directory>,
    pub exporter: Arc<Exporter>,
}

impl Node {
    /// One that serves a counter, which is a ledger as well.
    pub fn serving() -> Self {
        let directory = Arc::new(Directory::listening());
        directory.serve(b"counter", interface("Counter", COUNTER));
        directory.serve(b"counter", interface("Ledger", LEDGER));
        Self::of(directory)
    }

    /// One that serves nothing itself, and answers for all keys.
    pub fn hop() -> Self {
        let directory = Arc::new(Directory::listening());
        *directory.others.lock().unwrap() = Some(Arc::new(Named(Hold::new(interface("Anything", "")))));
        Self::of(directory)
    }

    /// The same node at another connection.
    pub fn share(&self) -> Self {
        Self { directory: Arc::clone(&self.directory), exporter: Arc::clone(&self.exporter) }
    }

    pub fn empty() -> Self {
        Self::of(Arc::default())
    }

    /// Serves one more interface, as a node does.
    pub fn serve(&self, key: &'static [u8], interface: Interface) {
        self.directory.serve(key, interface);
        self.directory.servants(key).iter().for_each(|servant| self.exporter.exported(key, servant));
    }

    fn of(directory: Arc<Directory>) -> Self {
        let exporter = Exporter::new(Arc::clone(&directory) as _);
        Self { directory, exporter }
    }
}

/// How calls are protected, and how they must be.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub asked: Level,
    pub demanded: Level,
    pub mechanism: Mechanism,
    pub password: &'static str,
}

impl Terms {
    pub const OPEN: Self = Self::at(Level::None);

    pub const fn at(level: Level) -> Self {
        Self { asked: level, demanded: level, mechanism: Mechanism::Ntlm, password: "Sesame 1" }
    }

    pub fn place(&self) -> Security {
        let mut security = Security::new(self.demanded);
        if self.demanded > Level::None || self.asked > Level::None {
            let mut users = UserTable::default();
            users.insert(None, "ali", Secret::password("Sesame 1"));
            security.users = Some(Arc::new(users));
        }
        security
    }

    pub fn way(&self) -> Security {
        let mut security = Security::new(self.asked);
        security.mechanism = self.mechanism;
        if self.asked > Level::None {
            let password = Secret::password(self.password);
            let (domain, user) = (String::new(), "ali".to_owned());
            security.credentials = Some(Arc::new(Credentials { domain, user, password }));
        }
        security
    }
}

/// Two sessions of one connection, and the nodes behind them.
pub struct Pair {
    pub client: Box<dyn Session>,
    pub server: Box<dyn Session>,
    pub here: Node,
    pub there: Node,
    to_server: BytesMut,
    to_client: BytesMut,
    /// What went each way, for tests that look at it.
    pub sent: Vec<u8>,
    pub received: Vec<u8>,
    /// Calls for the test to answer.
    pub calls: Vec<Incoming>,
    pub ready: Vec<Peer>,
    /// Bytes that are handed over at a time.
    pub piece: usize,
}

/// Where the server is said to be.
pub fn endpoint() -> Endpoint {
    Endpoint::Tcp { host: "127.0.0.1".into(), port: 135 }
}

/// A way to the counter by the name of its class.
pub fn class_way(security: Security) -> Profile {
    Profile {
        wire: "dcom",
        version: (5, 7),
        endpoints: vec![endpoint()],
        key: Bytes::from_static(b"counter"),
        options: security.into(),
        ..Profile::default()
    }
}

/// A configuration of the accepting side.
pub fn place(security: Security, node: &Node, peer: &str, limits: Limits) -> Config {
    let profile =
        Profile { wire: "dcom", endpoints: vec![endpoint()], options: security.into(), ..Profile::default() };
    let peer = PeerAddress { text: peer.into(), credentials: None };
    let wire_state = Some(Arc::clone(&node.exporter) as Arc<dyn WireState>);
    Config { limits, peer, profile, purpose: Purpose::Calls, wire_state, ..Config::default() }
}

impl Pair {
    pub fn new(terms: Terms) -> Self {
        Self::with(terms, Limits::default())
    }

    pub fn with(terms: Terms, limits: Limits) -> Self {
        Self::to(&class_way(terms.way()), terms, limits, Node::empty(), Node::serving())
    }

    /// A connection made for a way.
    pub fn to(way: &Profile, terms: Terms, limits: Limits, here: Node, there: Node) -> Self {
        let wire_state = Some(Arc::clone(&here.exporter) as Arc<dyn WireState>);
        let config = Config { limits: limits.clone(), profile: way.clone(), wire_state, ..Config::default() };
        let place = place(terms.place(), &there, "tcp:192.0.2.7:40000", limits);
        Self {
            client: DCOM.connect(&config),
            server: DCOM.accept(&place),
            here,
            there,
            to_server: BytesMut::new(),
            to_client: BytesMut::new(),
            sent: Vec::new(),
            received: Vec::new(),
            calls: Vec::new(),
            ready: Vec::new(),
            piece: usize::MAX,
        }
    }

    /// Moves bytes until both are silent; system calls are answered by the servants of the wire. Replies that came.
    pub fn run(&mut self) -> Result<Vec<(CallId, Outcome<Body>)>, Violation> {
        let mut replies = Vec::new();
        loop {
            let (out, back) = (drain(&mut *self.client), drain(&mut *self.server));
            self.sent.extend_from_slice(&out);
            self.received.extend_from_slice(&back);
            for part in out.chunks(self.piece) {
                self.to_server.extend_from_slice(part);
                self.server.receive(Instant::now(), &mut self.to_server, &mut Vec::new())?;
            }
            for part in back.chunks(self.piece) {
                self.to_client.extend_from_slice(part);
                self.client.receive(Instant::now(), &mut self.to_client, &mut Vec::new())?;
            }
            let mut quiet = out.is_empty() && back.is_empty();
            while let Some(event) = self.server.poll() {
                quiet = false;
                match event {
                    Event::Call(incoming) => self.serve(*incoming),
                    Event::Ready(peer) => self.ready.push(peer),
                    _ => {}
                }
            }
            while let Some(event) = self.client.poll() {
                quiet = false;
                if let Event::Reply { id, outcome } = event {
                    replies.push((id, outcome));
                }
            }
            if quiet {
                return Ok(replies);
            }
        }
    }

    /// Has the servants of the wire answer a call, or keeps it for the test.
    pub fn serve(&mut self, incoming: Incoming) {
        if !incoming.key.is_empty() {
            self.calls.push(incoming);
            return;
        }
        let servants = self.there.exporter.servants();
        let found = servants
            .iter()
            .find_map(|servant| Some((servant, DCOM.operation(servant.interface(), &incoming)?)));
        let Some((servant, index)) = found else {
            let failure = Failure::new(Kind::NoOperation, Initiator::Peer, "no such operation");
            self.server.answer(incoming.id, Answer::Failed(&failure)).unwrap();
            return;
        };
        let link = Arc::new(Answers { made: Mutex::default() });
        let request = Request::new(index, incoming, Arc::clone(&link) as _, Arc::clone(servant));
        servant.dispatch(request);
        for (id, made) in link.made.lock().unwrap().drain(..) {
            match made {
                Ok(body) => {
                    let put = |sink: &mut dyn Sink| put_octets(&body.bytes, sink);
                    self.server.answer(id, Answer::Done(&put)).unwrap();
                }
                Err(failure) => self.server.answer(id, Answer::Failed(&failure)).unwrap(),
            }
        }
    }

    /// Calls, and runs until the call is with the test or answered.
    pub fn call(
        &mut self,
        way: &Profile,
        interface: &Interface,
        index: usize,
        values: &dyn Encode,
    ) -> CallId {
        start(&mut *self.client, way, interface, index, values).unwrap()
    }

    /// Follows from a class to the object that was made of it: the way to it.
    pub fn activate(&mut self, way: &Profile, interface: &Interface) -> Profile {
        let id = self.call(way, interface, 0, &put_int(0));
        match self.run().unwrap().pop() {
            Some((of, Outcome::Moved(mut reference))) if of == id => reference.profiles.remove(0),
            other => panic!("an object was expected, not {other:?}"),
        }
    }

    /// The only call that came.
    pub fn incoming(&mut self) -> Incoming {
        let replies = self.run().unwrap();
        assert!(replies.is_empty(), "{replies:?}");
        assert_eq!(self.calls.len(), 1, "calls that came");
        self.calls.remove(0)
    }

    /// What the client makes of the last that a server said before it ended the connection.
    pub fn last_word(&mut self, id: CallId) -> Outcome<Body> {
        feed(&mut *self.client, &drain(&mut *self.server)).unwrap();
        std::iter::from_fn(|| self.client.poll())
            .find_map(|event| match event {
                Event::Reply { id: of, outcome } if of == id => Some(outcome),
                _ => None,
            })
            .expect("an answer")
    }

    /// The only answer that came.
    pub fn outcome(&mut self, id: CallId) -> Outcome<Body> {
        let mut replies = self.run().unwrap();
        match (replies.pop(), replies.is_empty()) {
            (Some((of, outcome)), true) if of == id => outcome,
            other => panic!("one reply was expected, not {other:?}"),
        }
    }
}

/// A link that keeps what is answered.
struct Answers {
    made: Mutex<Vec<(CallId, Result<Body, Failure>)>>,
}

impl Link for Answers {
    fn answer(&self, id: CallId, answer: Answer<'_>) {
        let made = match answer {
            Answer::Done(values) => DCOM.codec().write(&mut |sink| values.encode(sink)),
            Answer::Failed(failure) => Err(failure.clone()),
            _ => panic!("a system interface raises nothing"),
        };
        self.made.lock().unwrap().push((id, made));
    }
    fn spawn(&self, _: BoxFuture<'static, ()>) {
        unimplemented!("no system interface waits")
    }
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

/// Octets that are a stub already.
pub fn put_octets(octets: &[u8], sink: &mut dyn Sink) -> Visit<()> {
    let len = u32::try_from(octets.len()).unwrap();
    let shape = Shape::Array(Hold::new(shape::Array { element: Shape::U8, len }));
    sink.bytes(&shape, octets)
}

/// Everything a session would send, taken.
pub fn drain(session: &mut dyn Session) -> Vec<u8> {
    let out = session.transmit();
    let bytes = out.to_vec();
    let len = out.len();
    out.consume(len);
    bytes
}

/// Feeds bytes at once.
pub fn feed(session: &mut dyn Session, bytes: &[u8]) -> Result<(), Violation> {
    let mut input = BytesMut::from(bytes);
    session.receive(Instant::now(), &mut input, &mut Vec::new())
}

pub fn start(
    session: &mut dyn Session,
    way: &Profile,
    interface: &Interface,
    index: usize,
    values: &dyn Encode,
) -> Result<CallId, Failure> {
    let operation = &interface.operations[index];
    let call = Call {
        profile: way,
        method: Method::Typed { interface: Some(interface), operation },
        arguments: values,
        expects: Expects::Reply,
    };
    session.start(Instant::now(), &call)
}

pub fn put_int(value: i32) -> impl Fn(&mut dyn Sink) -> Visit<()> {
    move |sink: &mut dyn Sink| sink.i32(value)
}

pub fn put_bytes(octets: Vec<u8>) -> impl Fn(&mut dyn Sink) -> Visit<()> {
    move |sink: &mut dyn Sink| sink.bytes(&Shape::sequence(Shape::U8), &octets)
}

pub fn int(body: &Body) -> i32 {
    body.read(|source| source.i32()).unwrap()
}

pub fn octets(body: &Body) -> Vec<u8> {
    body.read(|source| Ok(source.bytes(&Shape::sequence(Shape::U8))?.into_owned())).unwrap()
}

pub fn done(outcome: Outcome<Body>) -> Body {
    match outcome {
        Outcome::Done(body) => body,
        other => panic!("results were expected, not {other:?}"),
    }
}

pub fn failure(outcome: Outcome<Body>) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("a failure was expected, not {other:?}"),
    }
}
