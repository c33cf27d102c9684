//! A hop without any contract: what comes by one connection leaves by another.

use super::{References, Server};
use everywire::model::contract::InterfaceKind;
use everywire::model::{
    Answer, Bytes, CallId, Expects, Failure, Incoming, Interface, Link, Object, Outcome, Reference, Request,
    Servant, Signal, SignalEvent, Subscription,
};
use everywire::{Node, PrivateConnections};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A hop, and the references that lead through it.
pub struct Hop {
    file: PathBuf,
    _node: Node,
}

impl Hop {
    /// One that listens at an address, and passes on to where a server's objects are.
    pub fn to(server: &Server, address: &str, dir: &Path) -> Self {
        fs::create_dir_all(dir).expect("a directory");
        let node: Node = Node::builder().max_message(128 << 20).build().into();
        node.listen(address).expect("a free port");
        let text = fs::read_to_string(server.references()).expect("references");
        let mut lines = String::new();
        let mut backend = None;
        for line in text.lines() {
            let (name, reference) = line.split_once('\t').expect("a name and a reference");
            let reference = node.parse(reference).expect("a reference");
            let mut own = node.published_as(&reference.type_id, &reference.profiles[0].key);
            own.type_id.clone_from(&reference.type_id);
            lines += &format!("{name}\t{}\n", node.print(&own));
            backend = Some(reference);
        }
        serve(&node, backend.expect("an object"), &[]);
        let file = dir.join("refs");
        fs::write(&file, lines).expect("a file");
        Self { file, _node: node }
    }

    /// One that listens at an address, and passes on to a backend: the objects there have the keys that they have here. Where objects
    /// do not tell which signals they emit, those of the backend's object pass which are named here.
    pub fn between(address: &str, backend: &str, signals: &[&str]) -> Node {
        let node: Node = Node::builder().max_message(128 << 20).build().into();
        let backend = node.parse(backend).expect("a reference");
        serve(&node, backend, signals);
        node.listen(address).expect("it listens");
        node
    }

    /// The same before the place of one object of whatever key, at a port, which is returned.
    pub fn before(backend: &str, address: &str) -> (Node, u16) {
        let node: Node = Node::builder().max_message(128 << 20).build().into();
        let backend = node.parse(backend).expect("a reference");
        serve(&node, backend, &[]);
        let own = node.listen(address).expect("a free port");
        let port = own.split(['/', '?']).find_map(|part| part.rsplit_once(':')?.1.parse().ok());
        (node, port.unwrap_or_else(|| panic!("no port in {own}")))
    }

    /// The file of references.
    pub fn references(&self) -> &Path {
        &self.file
    }
}

impl References for Hop {
    fn reference(&self, name: &str) -> String {
        let text = fs::read_to_string(&self.file).expect("references");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}\t")));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    }
}

fn serve(node: &Node, backend: Reference, signals: &[&str]) {
    let signals = signals.iter().map(|name| Signal::new((*name).to_owned(), Vec::new())).collect();
    let forwarder = Forwarder { node: node.downgrade(), backend, signals, clients: Mutex::default() };
    node.export_prefix("", Arc::new(forwarder));
}

struct Forwarder {
    node: everywire::WeakNode,
    backend: Reference,
    signals: Vec<Signal>,
    clients: Mutex<HashMap<u64, Client>>,
}

struct Client {
    apart: Arc<PrivateConnections>,
    objects: HashMap<Bytes, Object>,
    /// What the backend says unasked, where the wire has such.
    _signals: Vec<Subscription>,
}

static ANY: Interface = Interface {
    name: std::borrow::Cow::Borrowed("any"),
    id: std::borrow::Cow::Borrowed(""),
    identities: std::borrow::Cow::Borrowed(&[]),
    kind: InterfaceKind::Plain,
    bases: std::borrow::Cow::Borrowed(&[]),
    operations: std::borrow::Cow::Borrowed(&[]),
    inherited: 0,
    attributes: std::borrow::Cow::Borrowed(&[]),
    signals: std::borrow::Cow::Borrowed(&[]),
    types: None,
    notes: std::borrow::Cow::Borrowed(&[]),
    doc: std::borrow::Cow::Borrowed(""),
};

impl Forwarder {
    /// A client that comes by this connection.
    fn client(&self, link: &Arc<dyn Link>) -> Client {
        let apart = self.node.upgrade().expect("the hop stands").apart();
        let wire = self.backend.profiles[0].wire;
        let subscribe = |to: &Reference, signal: Option<&Signal>| {
            let link = Arc::downgrade(link);
            let listener = move |event: SignalEvent<Incoming>| {
                if let (SignalEvent::Signal(heard), Some(link)) = (event, link.upgrade()) {
                    link.emit(&heard.emission()).expect("it passes");
                }
            };
            let object = apart.resolve(to).expect("the hop stands");
            object.subscribe(signal, Arc::new(listener)).expect("a subscription")
        };
        let signals = match wire {
            "dbus" => vec![subscribe(&self.at(&Bytes::new()), None)],
            _ => self.signals.iter().map(|signal| subscribe(&self.backend, Some(signal))).collect(),
        };
        Client { apart, objects: HashMap::new(), _signals: signals }
    }

    /// The backend's object with this key.
    fn at(&self, key: &Bytes) -> Reference {
        let mut reference = self.backend.clone();
        for profile in &mut reference.profiles {
            profile.key = key.clone();
        }
        reference
    }

    fn object(&self, request: &Request) -> Result<Object, Failure> {
        let mut clients = self.clients.lock().unwrap();
        let client =
            clients.entry(request.link().serial_number()).or_insert_with(|| self.client(request.link()));
        let key = Bytes::copy_from_slice(request.key());
        if let Some(object) = client.objects.get(&key) {
            return Ok(object.clone());
        }
        let to = request.onward(&self.backend).unwrap_or_else(|| self.at(&key));
        let object = client.apart.resolve(&to)?;
        client.objects.insert(key, object.clone());
        Ok(object)
    }
}

impl Servant for Forwarder {
    fn interface(&self) -> &Interface {
        &ANY
    }

    fn dispatch(&self, request: Request) {
        assert_eq!(request.index(), Request::UNKNOWN);
        let object = match self.object(&request) {
            Ok(object) => object,
            Err(failure) => return request.finish(Err(failure)),
        };
        let target = object.target();
        if target.is_ready() {
            return pass(&**target, request);
        }
        target.prepare(Box::new(move |found| match found {
            Ok(target) => pass(&*target, request),
            Err(failure) => request.finish(Err(failure)),
        }));
    }

    fn opened(&self, link: &Arc<dyn Link>) {
        // Whoever only listens never calls.
        let mut clients = self.clients.lock().unwrap();
        clients.entry(link.serial_number()).or_insert_with(|| self.client(link));
    }

    fn closed(&self, link: &dyn Link) {
        let gone = self.clients.lock().unwrap().remove(&link.serial_number());
        drop(gone);
    }

    fn cancelled(&self, _: &dyn Link, _: CallId) {}
}

fn pass(target: &dyn everywire::model::Target, mut request: Request) {
    if request.expects() == Expects::Nothing {
        let _ = target.notify(request.method(), request.body());
        return;
    }
    let (interface, operation, body) = request.passing();
    let method = everywire::model::Method::Named { interface: &interface, operation: &operation };
    target.submit(
        method,
        &body,
        Box::new(move |outcome| match &outcome {
            Outcome::Done(body) => request.answer(Answer::Done(body)),
            Outcome::Raised(raised) => {
                let encoded = raised.encoded.as_ref().expect("as it came");
                let failure = everywire::model::object::unexpected(&raised.id);
                request.answer(Answer::Passed { encoded, failure: &failure });
            }
            Outcome::Failed(failure) => match failure.encoded() {
                Some(encoded) => request.answer(Answer::Passed { encoded, failure }),
                None => request.answer(Answer::Failed(failure)),
            },
            Outcome::Moved(reference) => request.answer(Answer::Moved(reference)),
        }),
    );
}
