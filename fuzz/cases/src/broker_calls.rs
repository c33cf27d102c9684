//! A broker between GIOP and every other wire under hostile arguments: requests that are well formed up to their arguments, which the
//! broker reads by a contract and writes to a target of another wire, that answers with what it got. Each request has an answer,
//! and an honest caller of the same connection, the same route and the same target is served afterwards.
//!
//! The broker and the targets run beside this function, on event loops of their own; each input waits for its answers.

use everywire::Node;
use everywire_broker::{Broker, Config};
use everywire_model::pipe::pipe;
use everywire_model::shape::Hold;
use everywire_model::{Answer, Interface, Request, Servant, Sink};
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// How long an answer is waited for. Far more than it takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Wires of targets, and what stands behind the name of their sockets.
const TARGETS: [(&str, &str); 5] = [
    ("dbus", "?auth=anonymous+external"),
    ("net.tcp", "?security=none"),
    ("basic", "?security=none"),
    ("dcom", ""),
    ("iiop", ""),
];
/// Operations of the contract; the last one is what the honest caller asks for.
const OPERATIONS: [&str; 9] =
    ["basics", "octets", "deeps", "choice", "grid", "tree", "anything", "peer", "plain"];

static HOUSE: LazyLock<House> = LazyLock::new(House::new);

/// A broker and its targets, which live as long as the process.
struct House {
    _broker: Broker,
    _targets: Vec<Node>,
}

/// Answers each call with its argument.
struct Echo(Hold<Interface>);

impl Servant for Echo {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, mut request: Request) {
        let body = request.body().clone();
        let Some(operation) = self.0.operations.get(request.index()) else { return };
        let (arguments, results) = (&operation.arguments, &operation.results);
        let [field] = arguments.fields() else { return };
        request.answer(Answer::Done(&|sink: &mut dyn Sink| {
            body.read(|source| {
                source.open(arguments)?;
                sink.open(results, 1)?;
                pipe(&field.shape, source, sink)?;
                source.close(arguments)?;
                sink.close(results)
            })
        }));
    }
}

impl House {
    fn new() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("bridge.idl");
        let contract = everywire_idl::read_with(&file, &everywire_idl::Preprocessing::default())
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        let interface = contract.interfaces().next().expect("it has one").clone();
        let mut text = format!("[listen.front]\naddress = \"iiop+unix://@{}\"\n", name("front"));
        let mut targets = Vec::new();
        for (wire, options) in TARGETS {
            let node: Node = Node::builder().shards(1).deadline(Some(PATIENCE)).build().into();
            node.listen(&format!("{wire}+unix://@{}{options}", name(wire)))
                .expect("a socket in the abstract space");
            let servant = Arc::new(Echo(interface.clone()));
            let target = node.print_friendly(&node.export_servant("bridge", servant));
            let contract = file.display();
            text += &format!(
                "[[route]]\nname = \"{wire}\"\nmatch = {{ key = \"{wire}\" }}\nto = \"{target}\"\n\
                 contract = \"{contract}\"\ninterface = \"fuzz::Bridge\"\n"
            );
            targets.push(node);
        }
        let config =
            Config::parse(&text, "fuzz.toml", Path::new("")).unwrap_or_else(|wrong| panic!("{wrong}"));
        let broker = Broker::start(config, Arc::new(|_: &str| {})).unwrap_or_else(|wrong| panic!("{wrong}"));
        Self { _broker: broker, _targets: targets }
    }
}

/// A socket in the abstract space: each process has its own.
fn name(place: &str) -> String {
    format!("everywire-fuzz-broker-{}-{place}", std::process::id())
}

fn text(out: &mut Vec<u8>, text: &str, end: &[u8]) {
    let octets = [text.as_bytes(), end].concat();
    out.extend(u32::try_from(octets.len()).expect("short").to_le_bytes());
    out.extend(octets);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// A request of GIOP 1.2 to a route, with arguments.
fn request(id: u8, route: &str, operation: &str, arguments: &[u8]) -> Vec<u8> {
    let mut body = vec![id, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    text(&mut body, route, b"");
    text(&mut body, operation, b"\0");
    body.extend([0; 4]);
    body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
    body.extend(arguments);
    let mut out = b"GIOP\x01\x02\x01\x00".to_vec();
    out.extend(u32::try_from(body.len()).expect("short").to_le_bytes());
    out.extend(body);
    out
}

/// The status of the reply to a request, and what follows it.
fn reply(stream: &mut UnixStream, id: u8) -> (u8, Vec<u8>) {
    let mut header = [0; 12];
    stream.read_exact(&mut header).unwrap_or_else(|error| panic!("no answer to request {id}: {error}"));
    let [.., flags, kind, a, b, c, d] = header;
    assert_eq!((&header[..4], flags & 3, kind), (&b"GIOP"[..], 1, 1), "{header:?} is no whole reply");
    let len = usize::try_from(u32::from_le_bytes([a, b, c, d])).expect("it fits");
    assert!(len <= 1 << 20, "{len} octets of an answer");
    let mut body = vec![0; len];
    stream.read_exact(&mut body).unwrap_or_else(|error| panic!("half an answer to request {id}: {error}"));
    assert_eq!(body[..4], [id, 0, 0, 0], "the answer is of another request");
    (body[4], body)
}

/// Gives the octets to this case.
pub fn broker_calls(data: &[u8]) {
    let [target, operation, arguments @ ..] = data else { return };
    LazyLock::force(&HOUSE);
    let (route, _) = TARGETS[usize::from(*target) % TARGETS.len()];
    let operation = OPERATIONS[usize::from(*operation) % OPERATIONS.len()];
    let address = SocketAddr::from_abstract_name(name("front")).expect("a short name");
    let mut stream = UnixStream::connect_addr(&address).expect("the broker listens");
    stream.set_read_timeout(Some(PATIENCE * 2)).expect("it is a socket");
    stream.write_all(&request(1, route, operation, arguments)).expect("the broker reads");
    let _ = reply(&mut stream, 1);
    stream.write_all(&request(2, route, "plain", &41_i32.to_le_bytes())).expect("the broker reads");
    let (status, body) = reply(&mut stream, 2);
    assert!(
        status == 0 && body.ends_with(&41_i32.to_le_bytes()),
        "an honest caller got {status}: {}",
        body.escape_ascii()
    );
}
