//! D-Bus: peer to peer over a Unix socket, and on a bus.

use super::tape::{Order, Relay, Tape};
use super::{Scene, Set};
use crate::common::foreign::{PATIENCE, bus};
use everywire::model::{Hold, Shape, Value, Variant};
use everywire::{Kind, Node, Ref, Remote, wires};
use everywire_derby::buses::{Bus, Program};
use everywire_tests::dbus_kitchen::org::example::{Kitchen, KitchenTick};
use everywire_tests::servants::Galley;
use everywire_tests::servants::dbus::KEY;
use everywire_tests::shop::market::Watcher;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

pub const SET: Set = Set {
    folder: "dbus",
    wire: "dbus",
    title: "D-Bus",
    scenes: &[
        Scene {
            name: "external-and-first-call",
            about: "The client sends a zero octet, with which the socket passes its credentials, and lines of text: AUTH EXTERNAL with its user \
                    number as hexadecimal digits of ASCII (30 is the digit 0). The server answers OK with its identity. Both agree to pass file descriptors, BEGIN ends the \
                    greeting, and from then on messages are binary. A client may send all of this at once.",
            read: "D-Bus Specification, \"Authentication Protocol\", \"Message Format\"",
            play: |tape| {
                let house = House::new(tape);
                house.kitchen.nothing().unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "call-with-results",
            about: "A method call with two arguments, answered with two results. The header is an array of fields, each a code and a variant; the \
                    field SIGNATURE says what the body is. The reply names the serial number of its call.",
            read: "D-Bus Specification, \"Message Format\", \"Header Fields\", \"Method Calls\"",
            play: |tape| {
                let house = House::later(tape);
                assert_eq!(house.kitchen.divide(17, 5).unwrap(), (3, 2));
                tape.stop();
            },
        },
        Scene {
            name: "no-reply-expected",
            about: "A call whose flag NO_REPLY_EXPECTED says that nobody waits: no answer comes. The next call shows that it arrived.",
            read: "D-Bus Specification, \"Message Format\" (flags)",
            play: |tape| {
                let house = House::later(tape);
                house.kitchen.remember("plum").unwrap();
                assert_eq!(house.kitchen.remembered().unwrap(), ["plum"]);
                tape.stop();
            },
        },
        Scene {
            name: "struct-array-and-dict",
            about: "The argument is `(is(yad)a{sv})`: a struct of a number, a text, a struct with an array of doubles, and a dictionary of variants. Structs and \
                    entries of dictionaries begin at a place that eight divides; the length of an array does not count the padding in front of its first element.",
            read: "D-Bus Specification, \"Type System\", \"Marshaling\"",
            play: |tape| {
                let house = House::later(tape);
                let facts = BTreeMap::from([("a".to_owned(), Variant::new(Shape::I32, Value::Integer(1)))]);
                let value = (7, "plum".to_owned(), (3, vec![0.5]), facts);
                assert_eq!(house.kitchen.echo_struct(&value).unwrap(), value);
                tape.stop();
            },
        },
        Scene {
            name: "variant",
            about: "A variant is the signature of its value, and the value.",
            read: "D-Bus Specification, \"Marshaling\" (VARIANT)",
            play: |tape| {
                let house = House::later(tape);
                let value = Variant::new(Shape::U32, Value::Integer(42));
                assert_eq!(house.kitchen.echo_variant(&value).unwrap(), value);
                tape.stop();
            },
        },
        Scene {
            name: "error",
            about: "The method fails. An error has a name, and mostly a text as its first value.",
            read: "D-Bus Specification, \"Message Types\" (ERROR), \"Errors\"",
            play: |tape| {
                let house = House::later(tape);
                house.kitchen.divide(1, 0).unwrap_err();
                tape.stop();
            },
        },
        Scene {
            name: "no-such-object",
            about: "There is no object at this path: UnknownObject.",
            read: "D-Bus Specification, \"Errors\", \"Valid Object Paths\"",
            play: |tape| {
                let house = House::later(tape);
                let failure = house.at::<dyn Kitchen>("org/example/Nobody").nothing().unwrap_err();
                assert_eq!(failure.kind(), Kind::NoObject, "{failure}");
                tape.stop();
            },
        },
        Scene {
            name: "no-such-method",
            about: "The object is there, and has no such interface: UnknownInterface, or UnknownMethod where the interface is there.",
            read: "D-Bus Specification, \"Errors\"",
            play: |tape| {
                let house = House::later(tape);
                house.at::<dyn Watcher>(KEY).heard("x").unwrap_err();
                tape.stop();
            },
        },
        Scene {
            name: "property-get-and-set",
            about: "Properties are methods of the interface org.freedesktop.DBus.Properties: Get, with the names of interface and property, and Set, \
                    with the value as a variant.",
            read: "D-Bus Specification, \"org.freedesktop.DBus.Properties\"",
            play: |tape| {
                let house = House::later(tape);
                assert_eq!(house.kitchen.silent().unwrap(), -1);
                house.kitchen.set_silent(7).unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "property-changed",
            about: "The object tells that a property has a new value: the signal PropertiesChanged has the interface, the properties with their values, and \
                    the names of properties whose values are not told.",
            read: "D-Bus Specification, \"org.freedesktop.DBus.Properties\" (PropertiesChanged)",
            play: |tape| {
                let house = House::later(tape);
                let before = tape.passed(0, false);
                house.server.signaller::<dyn Kitchen>(KEY).changed("Title").unwrap();
                tape.wait_past(0, false, before);
                tape.stop();
            },
        },
        Scene {
            name: "signal",
            about: "The object emits the signal Tick. A signal has a path, an interface and a name, and nobody answers.",
            read: "D-Bus Specification, \"Signal Emission\"",
            play: |tape| {
                let house = House::later(tape);
                let (tell, told) = channel();
                let _listening = house
                    .kitchen
                    .signals()
                    .on(move |tick: KitchenTick| tell.send(tick.i).unwrap_or_default())
                    .unwrap();
                house
                    .server
                    .signaller::<dyn Kitchen>(KEY)
                    .emit(&KitchenTick { i: 7, text: "plum".into() })
                    .unwrap();
                assert_eq!(told.recv_timeout(PATIENCE), Ok(7));
                tape.stop();
            },
        },
        Scene {
            name: "introspect",
            about: "Every object tells its interfaces as XML, by org.freedesktop.DBus.Introspectable. This one has a single method of its own.",
            read: "D-Bus Specification, \"Introspection Data Format\"",
            play: |tape| {
                let house = House::later(tape);
                let object = house.client.object(&house.address("ear")).unwrap();
                wires::named("dbus").unwrap().discover(&object).unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "ping",
            about: "Peer.Ping asks whether somebody is there; every connection answers it, for every path.",
            read: "D-Bus Specification, \"org.freedesktop.DBus.Peer\"",
            play: |tape| {
                let house = House::later(tape);
                house.client.resolve(house.kitchen.reference()).unwrap().target().probe().unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "rejected",
            about: "The client claims to be a user that it is not. The server answers REJECTED with the mechanisms that it takes; a client may try another.",
            read: "D-Bus Specification, \"Authentication Protocol\" (REJECTED)",
            play: |tape| {
                let house = House::new(tape);
                let mut client = UnixStream::connect(&house.relay.path).expect("it listens");
                // The user number 4294967294.
                client.write_all(b"\0AUTH EXTERNAL 34323934393637323934\r\n").expect("it is taken");
                let mut answer = [0; 64];
                assert_ne!(client.read(&mut answer).expect("an answer"), 0);
                tape.stop();
            },
        },
        Scene {
            name: "malformed",
            about: "After the greeting comes a message whose version of the protocol is 9. D-Bus has no word for this: the server closes.",
            read: "D-Bus Specification, \"Message Format\" (protocol version), \"Invalid Protocol and Spec Extensions\"",
            play: |tape| {
                let house = House::new(tape);
                let mut client = greeted(&house.relay);
                client
                    .write_all(b"l\x01\x00\x09\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00")
                    .expect("it is taken");
                let mut answer = Vec::new();
                // The server may close before it has read all.
                let _ = client.read_to_end(&mut answer);
                drop(client);
                tape.wait_for_ends();
                tape.stop();
            },
        },
        Scene {
            name: "too-long",
            about: "The header announces a body of 1 GiB, more than the protocol allows. The server closes at once, and allocates nothing.",
            read: "D-Bus Specification, \"Message Format\" (maximum length)",
            play: |tape| {
                let house = House::new(tape);
                let mut client = greeted(&house.relay);
                client
                    .write_all(b"l\x01\x00\x01\x00\x00\x00\x40\x01\x00\x00\x00\x00\x00\x00\x00")
                    .expect("it is taken");
                let mut answer = Vec::new();
                let _ = client.read_to_end(&mut answer);
                drop(client);
                tape.wait_for_ends();
                tape.stop();
            },
        },
        Scene {
            name: "hello-and-request-name",
            about: "On a bus everybody says Hello first, and gets a unique name. A server asks for a name of its own with RequestName; 1 says that it is the owner. \
                    The bus tells everybody of names that they got by the signal NameAcquired.",
            read: "D-Bus Specification, \"Message Bus Messages\" (Hello, RequestName)",
            play: |tape| {
                let Some(town) = Town::new(tape) else { return };
                town.serve();
                tape.stop();
            },
        },
        Scene {
            name: "call-through-the-bus",
            about: "A call through the bus. The client names whom it calls by DESTINATION; the bus writes SENDER into each message, which nobody else can do, and passes it on.",
            read: "D-Bus Specification, \"Message Bus Message Routing\"",
            play: |tape| {
                let Some(town) = Town::new(tape) else { return };
                let kitchen = town.serve();
                kitchen.nothing().unwrap();
                tape.begin();
                assert_eq!(kitchen.divide(17, 5).unwrap(), (3, 2));
                tape.stop();
            },
        },
        Scene {
            name: "match-rules",
            about: "Who wants signals tells the bus by a match rule. The client adds one for the signal Tick, and one for changes of the owner of the \
                    name, since signals count only from the owner; it asks who that is.",
            read: "D-Bus Specification, \"Match Rules\", \"org.freedesktop.DBus.NameOwnerChanged\"",
            play: |tape| {
                let Some(town) = Town::new(tape) else { return };
                let kitchen = town.serve();
                kitchen.nothing().unwrap();
                tape.begin();
                tape.order(Order::ByDirection);
                let _listening = kitchen.signals().on(|_: KitchenTick| {}).unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "signal-through-the-bus",
            about: "An object emits the signal Tick. It goes to the bus without a destination, and the bus passes it to all whose \
                    match rules fit.",
            read: "D-Bus Specification, \"Message Bus Message Routing\", \"Signal Emission\"",
            play: |tape| {
                let Some(town) = Town::new(tape) else { return };
                let kitchen = town.serve();
                let (tell, told) = channel();
                let _listening = kitchen
                    .signals()
                    .on(move |tick: KitchenTick| tell.send(tick.i).unwrap_or_default())
                    .unwrap();
                kitchen.nothing().unwrap();
                tape.begin();
                town.server
                    .signaller::<dyn Kitchen>(KEY)
                    .emit(&KitchenTick { i: 0, text: "plum".into() })
                    .unwrap();
                assert_eq!(told.recv_timeout(PATIENCE), Ok(0));
                tape.stop();
            },
        },
        Scene {
            name: "nobody-has-the-name",
            about: "Nobody has the name that is called: the bus answers ServiceUnknown itself.",
            read: "D-Bus Specification, \"Message Bus Message Routing\", \"Errors\"",
            play: |tape| {
                let Some(town) = Town::new(tape) else { return };
                let kitchen = town.serve();
                kitchen.nothing().unwrap();
                tape.begin();
                let address =
                    format!("dbus:unix:path={}#org.example.Nobody/{KEY}", town.front.path.display());
                let nobody = town.client.connect::<dyn Kitchen>(&address).expect("an address");
                nobody.nothing().unwrap_err();
                tape.stop();
            },
        },
        Scene {
            name: "goodbye",
            about: "The client ends. D-Bus has no word for it: the connection closes.",
            read: "D-Bus Specification, \"Message Bus Overview\"",
            play: |tape| {
                let House { server: _server, client, kitchen, .. } = House::later(tape);
                client.stop();
                drop((kitchen, client));
                tape.wait_for_ends();
                tape.stop();
            },
        },
    ],
};

struct Ear;

impl Watcher for Ear {
    fn heard(&self, what: &str) -> Result<i32, everywire::Failure> {
        Ok(i32::try_from(what.len()).unwrap_or(i32::MAX))
    }
}

/// A folder of a scene's own.
fn scratch() -> std::path::PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    crate::common::scratch(&format!("transcripts-dbus-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// A kitchen at a socket, and who uses it.
struct House {
    server: Node,
    client: Node,
    kitchen: Ref<dyn Kitchen>,
    relay: Relay,
}

impl House {
    fn new(tape: &Tape) -> Self {
        let (server, client) = (Node::new(), Node::new());
        let dir = scratch();
        let own = dir.join("own");
        // Objects that come later are told of by signals.
        Galley::export(&server, KEY);
        server.export::<dyn Watcher>("ear", Arc::new(Ear));
        server.listen(&format!("dbus+unix://{}", own.display())).expect("it listens");
        let relay = tape.relay_at(&dir.join("front"), "client", "server");
        relay.to_path(&own);
        let kitchen = client.connect::<dyn Kitchen>(&address(&relay, KEY)).expect("an address");
        Self { server, client, kitchen, relay }
    }

    fn later(tape: &Tape) -> Self {
        let house = Self::new(tape);
        house.kitchen.nothing().expect("it answers");
        tape.begin();
        house
    }

    fn address(&self, key: &str) -> String {
        address(&self.relay, key)
    }

    fn at<I: Remote + ?Sized>(&self, key: &str) -> Ref<I> {
        let object = self.client.object(&self.address(key)).expect("an address");
        object.typed(Hold::Static(I::interface())).into_typed()
    }
}

fn address(relay: &Relay, key: &str) -> String {
    format!("dbus+unix://{}#{key}", relay.path.display())
}

/// A client that is none, let in.
fn greeted(relay: &Relay) -> UnixStream {
    let mut client = UnixStream::connect(&relay.path).expect("it listens");
    // SAFETY: it has no preconditions.
    let user = unsafe { libc::geteuid() }.to_string();
    let digits: String = user.bytes().map(|octet| format!("{octet:02x}")).collect();
    client.write_all(format!("\0AUTH EXTERNAL {digits}\r\n").as_bytes()).expect("it is taken");
    let mut answer = [0; 64];
    assert_ne!(client.read(&mut answer).expect("an answer"), 0);
    client.write_all(b"BEGIN\r\n").expect("it is taken");
    client
}

/// A bus, a server and a client on it.
struct Town {
    server: Node,
    client: Node,
    back: Relay,
    front: Relay,
    _bus: Bus,
}

impl Town {
    fn new(tape: &Tape) -> Option<Self> {
        let bus = bus("transcripts::dbus", Program::Daemon)?;
        let address = bus.address();
        let path = address.strip_prefix("unix:path=").expect("a path").split(',').next().expect("a path");
        let dir = scratch();
        let back = tape.relay_at(&dir.join("back"), "server", "bus");
        let front = tape.relay_at(&dir.join("front"), "client", "bus");
        back.to_path(path.as_ref());
        front.to_path(path.as_ref());
        Some(Self { server: Node::new(), client: Node::new(), back, front, _bus: bus })
    }

    fn serve(&self) -> Ref<dyn Kitchen> {
        Galley::export(&self.server, KEY);
        let at = format!("dbus:unix:path={}#org.example.Kitchen", self.back.path.display());
        self.server.listen(&at).expect("the bus lets it in");
        let address = format!("dbus:unix:path={}#org.example.Kitchen/{KEY}", self.front.path.display());
        self.client.connect::<dyn Kitchen>(&address).expect("an address")
    }
}
