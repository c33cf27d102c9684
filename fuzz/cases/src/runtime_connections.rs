//! A node under several hostile connections at once, on three wires: the octets say which connection opens, sends a piece,
//! reads, stops sending, or closes. Whatever they do, an honest caller of the same node is answered afterwards, and every
//! connection of theirs is forgotten.
//!
//! The node's event loops run beside this function, so a run is not the same each time; what the checks ask for is.

use everywire::Node;
use everywire_model::shape::{Field, Hold};
use everywire_model::{Direction, Failure, Interface, Object, Operation, Parameter, Request, Servant, Shape};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Connections at a time.
const PEERS: usize = 6;
/// How long an honest caller waits, and how long a closed connection may be remembered. Far more than is needed.
const PATIENCE: Duration = Duration::from_secs(8);
/// What stands before the name of the socket, and behind it.
const WIRES: [(&str, &str); 3] =
    [("iiop", ""), ("dbus", "?auth=anonymous+external"), ("net.tcp", "?security=none")];

static INTERFACE: LazyLock<Interface> = LazyLock::new(|| {
    let field = Field { name: "v".into(), shape: Shape::I32 };
    let add = |name| {
        Operation::new(name, vec![Parameter { direction: Direction::In, field: field.clone() }], Shape::I32)
    };
    Interface {
        name: "Probe".into(),
        id: "a.Probe".into(),
        operations: vec![add("Add"), add("Rest")].into(),
        ..Interface::default()
    }
});

static HOUSE: LazyLock<House> = LazyLock::new(House::new);

/// Adds one; the second operation does so after a rest, during which another thread leads the event loop.
struct Adds;

impl Servant for Adds {
    fn interface(&self) -> &Interface {
        &INTERFACE
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let (v,) = request.arguments::<(i32,)>()?;
            if request.index() == 1 {
                everywire::blocking(|| std::thread::sleep(Duration::from_micros(200)));
            }
            request.reply(Ok::<_, Failure>((v.wrapping_add(1),)))
        });
    }
}

/// A node that lives as long as the process, and an honest caller.
struct House {
    node: Node,
    honest: Object,
    _caller: Node,
}

impl House {
    fn new() -> Self {
        let node: Node = Node::builder().shards(1).deadline(Some(PATIENCE)).build().into();
        for (wire, options) in WIRES {
            node.listen(&format!("{wire}+unix://@{}{options}", name(wire)))
                .expect("a socket in the abstract space");
        }
        node.export_servant("probe", Arc::new(Adds));
        let caller: Node = Node::builder().shards(1).deadline(Some(PATIENCE)).build().into();
        let honest = caller.object(&format!("iiop+unix://@{}#probe", name("iiop"))).expect("an address");
        let house = Self { node, honest: honest.typed(Hold::Static(&INTERFACE)), _caller: caller };
        house.ask();
        house
    }

    /// A call that is answered, and answered rightly.
    fn ask(&self) {
        let (sum,) = self
            .honest
            .call::<_, (i32,), Failure>(&INTERFACE.operations[0], (41,))
            .unwrap_or_else(|failure| panic!("an honest caller was not served: {failure}"));
        assert_eq!(sum, 42);
    }
}

/// The socket of a wire, in the abstract space: each process has its own.
fn name(wire: &str) -> String {
    format!("everywire-fuzz-{}-{wire}", std::process::id())
}

fn connect(wire: usize) -> UnixStream {
    let (wire, _) = WIRES[wire % WIRES.len()];
    let address = SocketAddr::from_abstract_name(name(wire)).expect("a short name");
    let stream = UnixStream::connect_addr(&address).expect("the node listens");
    stream.set_nonblocking(true).expect("it is a socket");
    stream
}

/// A call of GIOP that is well formed: one that is answered, one that rests, or one without an answer.
fn request(kind: u8) -> Vec<u8> {
    let mut body = vec![kind, 0, 0, 0, if kind & 4 == 0 { 3 } else { 0 }, 0, 0, 0, 0, 0, 0, 0];
    body.extend(5_u32.to_le_bytes());
    body.extend(b"probe\0\0\0");
    let operation: &[u8] = if kind & 1 == 0 { b"\x04\0\0\0Add\0" } else { b"\x05\0\0\0Rest\0" };
    body.extend(operation);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend([0; 4]);
    body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
    body.extend(7_i32.to_le_bytes());
    let mut out = b"GIOP\x01\x02\x01\x00".to_vec();
    out.extend(u32::try_from(body.len()).unwrap_or(0).to_le_bytes());
    out.extend(body);
    out
}

/// Sends as much as the socket takes; a peer that was cut off has lost.
fn send(stream: &mut UnixStream, octets: &[u8]) -> bool {
    match stream.write(octets) {
        // What did not fit is a message that breaks off.
        Ok(sent) => sent > 0 || octets.is_empty(),
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// Gives the octets to this case.
pub fn runtime_connections(data: &[u8]) {
    let house = &*HOUSE;
    let mut peers: [Option<UnixStream>; PEERS] = [const { None }; PEERS];
    let mut data = data;
    while let [step, len, rest @ ..] = data {
        let at = usize::from(*step) % PEERS;
        let action = usize::from(*step) / PEERS % 8;
        let (piece, rest) =
            if action >= 5 { rest.split_at(usize::from(*len).min(rest.len())) } else { (&[][..], rest) };
        data = rest;
        let held = &mut peers[at];
        match (action, held.as_mut()) {
            (0, _) => *held = Some(connect(usize::from(*len))),
            (_, None) if action >= 4 => *held = Some(connect(usize::from(*len))),
            (1, _) => *held = None,
            (2, Some(stream)) => drop(stream.read(&mut [0; 4096])),
            (3, Some(stream)) => {
                let how = if len % 2 == 0 { Shutdown::Write } else { Shutdown::Read };
                drop(stream.shutdown(how));
            }
            (4, Some(stream)) => {
                if !send(stream, &request(*len)) {
                    *held = None;
                }
            }
            (_, Some(stream)) => {
                if !send(stream, piece) {
                    *held = None;
                }
            }
            (_, None) => {}
        }
        // The event loop may look now, or later.
        if len % 16 == 0 {
            std::thread::yield_now();
        }
    }
    house.ask();
    drop(peers);
    let end = Instant::now() + PATIENCE;
    while house.node.connections() > 1 {
        assert!(Instant::now() < end, "{} connections are not forgotten", house.node.connections() - 1);
        std::thread::yield_now();
    }
    house.ask();
}
