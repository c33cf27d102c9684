//! DCOP: applications at a server of ours.

use super::tape::{Order, Relay, Tape};
use super::{Scene, Set};
use crate::common::foreign::{PATIENCE, until};
use everywire::model::{Hold, Shape, Value, Variant};
use everywire::{Node, Ref, Remote, hub, wires};
use everywire_tests::dcop_kitchen::{Kitchen, KitchenTick, QPoint};
use everywire_tests::servants::Scullery;
use everywire_tests::shop::market::{Shop, Watcher};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::mpsc::channel;

pub const SET: Set = Set {
    folder: "dcop",
    wire: "dcop",
    title: "DCOP",
    scenes: &[
        Scene {
            name: "setup-and-register",
            about: "An application connects to the DCOP server. ICE comes first: both say their byte order, the client offers its \
                    version and MIT-MAGIC-COOKIE-1, and shows the cookie of the server. Then the protocol DCOP is set up on the same connection, with the \
                    cookie once more. The application registers under the name `kitchen`, by a call to the server itself.",
            read: "Inter-Client Exchange Protocol 1.0, sections 6 and 7 (connection and protocol setup); DCOP, dcopclient.cpp of KDE 3.5",
            play: |tape| {
                let desk = Desk::new(tape);
                desk.serve();
                tape.stop();
            },
        },
        Scene {
            name: "call-with-result",
            about: "A call passes through the server: the message names who calls, the application, the object, and the function with the types of its \
                    arguments. The server keeps the message as it is, and gives the call a key of its own towards the application. The reply has the type of the result in front of it. \
                    Values are big-endian, whatever the order of the header.",
            read: "DCOP, dcopclient.cpp and dcopserver.cpp of KDE 3.5 (DCOPCall, DCOPReply); QDataStream",
            play: |tape| {
                let (_desk, kitchen) = Desk::later(tape);
                assert_eq!(kitchen.divide(17, 5).unwrap(), 3);
                tape.stop();
            },
        },
        Scene {
            name: "oneway-send",
            about: "`ASYNC remember(QString)` is sent and not called: DCOPSend has no answer. The call that follows shows that it arrived.",
            read: "DCOP, dcopclient.cpp of KDE 3.5 (DCOPSend)",
            play: |tape| {
                let (_desk, kitchen) = Desk::later(tape);
                let before = tape.passed(0, false);
                kitchen.remember("plum").unwrap();
                // Both sides of the server are independent of each other.
                tape.wait_past(0, false, before);
                assert_eq!(kitchen.remembered().unwrap(), ["plum"]);
                tape.stop();
            },
        },
        Scene {
            name: "list-and-map",
            about: "A map is a count, and for each entry the key and the value. A QString is the number of its octets and UTF-16, big-endian.",
            read: "Serialization of Qt 3 data types (QMap, QString)",
            play: |tape| {
                let (_desk, kitchen) = Desk::later(tape);
                let map = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), -2)]);
                assert_eq!(kitchen.echo_map(&map).unwrap(), map);
                tape.stop();
            },
        },
        Scene {
            name: "struct",
            about: "A QPoint is its two numbers, one after the other: nothing on the wire says where a struct begins.",
            read: "Serialization of Qt 3 data types (QPoint)",
            play: |tape| {
                let (_desk, kitchen) = Desk::later(tape);
                let point = QPoint { x: 1, y: -2 };
                assert_eq!(kitchen.echo_point(&point).unwrap(), point);
                tape.stop();
            },
        },
        Scene {
            name: "variant",
            about: "A QVariant is the number of its type (16: int), and the value.",
            read: "Serialization of Qt 3 data types (QVariant)",
            play: |tape| {
                let (_desk, kitchen) = Desk::later(tape);
                let value = Variant::new(Shape::I32, Value::Integer(42));
                assert_eq!(kitchen.echo_variant(&value).unwrap(), value);
                tape.stop();
            },
        },
        Scene {
            name: "call-that-fails",
            about: "The function fails. DCOP has no exceptions: DCOPReplyFailed says that the call failed, and nothing else. The caller then asks the object for its functions.",
            read: "DCOP, dcopclient.cpp of KDE 3.5 (DCOPReplyFailed)",
            play: |tape| {
                let (_desk, kitchen) = Desk::later(tape);
                kitchen.divide(1, 0).unwrap_err();
                tape.stop();
            },
        },
        Scene {
            name: "no-such-application",
            about: "Nobody is registered under this name: the server answers DCOPReplyFailed itself, and again when the caller asks for the functions.",
            read: "DCOP, dcopserver.cpp of KDE 3.5",
            play: |tape| {
                let (desk, _kitchen) = Desk::later(tape);
                desk.object::<dyn Kitchen>("nobody/kitchen").nothing().unwrap_err();
                tape.stop();
            },
        },
        Scene {
            name: "no-such-function",
            about: "The object is there, and has no function of this signature. The caller finds that out from the object's functions.",
            read: "DCOP, dcopobject.cpp of KDE 3.5 (process)",
            play: |tape| {
                let (desk, _kitchen) = Desk::later(tape);
                desk.object::<dyn Watcher>("kitchen/kitchen").heard("x").unwrap_err();
                tape.stop();
            },
        },
        Scene {
            name: "attribute",
            about: "DCOP has no attributes. Those of other contract languages are functions, `_get_title()` and `_set_title(QCString)`.",
            read: "contracts.md of this documentation (DCOP)",
            play: |tape| {
                let (desk, _kitchen) = Desk::later(tape);
                let shop = desk.object::<dyn Shop>("kitchen/shop");
                assert_eq!(shop.title().unwrap(), "shop");
                shop.set_title("corner").unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "connect-signal",
            about: "The client has the server connect a signal of the object to a function of its own: connectSignal, with the sender, its object and \
                    signal, and the receiving object and function. setNotifications has the server tell who comes and goes.",
            read: "DCOP, dcopsignals.cpp of KDE 3.5 (connectSignal)",
            play: |tape| {
                let (_desk, kitchen) = Desk::later(tape);
                tape.order(Order::ByDirection);
                let _listening = kitchen.signals().on(|_: KitchenTick| {}).unwrap();
                tape.wait_for_words("dcop", "void:", 1);
                tape.stop();
            },
        },
        Scene {
            name: "signal",
            about: "The application emits a signal: it sends to the object `emit` of the server, and the server sends to everybody who is connected.",
            read: "DCOP, dcopsignals.cpp of KDE 3.5 (emitSignal)",
            play: |tape| {
                let (desk, kitchen) = Desk::later(tape);
                let (tell, told) = channel();
                let _listening = kitchen
                    .signals()
                    .on(move |tick: KitchenTick| tell.send(tick.i).unwrap_or_default())
                    .unwrap();
                kitchen.nothing().unwrap();
                tape.begin();
                let own = desk.application.signaller::<dyn Kitchen>("kitchen");
                own.emit(&KitchenTick { i: 7, text: "plum".into() }).unwrap();
                assert_eq!(told.recv_timeout(PATIENCE), Ok(7));
                tape.stop();
            },
        },
        Scene {
            name: "introspection",
            about: "Every object tells its interfaces and its functions, as lists of text: interfaces() and functions().",
            read: "DCOP, dcopobject.cpp of KDE 3.5 (interfaces, functions)",
            play: |tape| {
                let (desk, _kitchen) = Desk::later(tape);
                let object = desk.client.object(&desk.address("kitchen/shop")).unwrap();
                wires::named("dcop").unwrap().discover(&object).unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "is-it-there",
            about: "A client asks whether an object is there. DCOP has no message for it, so the object is asked for its interfaces.",
            read: "DCOP, dcopobject.cpp of KDE 3.5 (interfaces)",
            play: |tape| {
                let (desk, kitchen) = Desk::later(tape);
                desk.client.resolve(kitchen.reference()).unwrap().target().probe().unwrap();
                tape.stop();
            },
        },
        Scene {
            name: "wrong-cookie",
            about: "A client shows a cookie that is not the server's. The server answers with an error of the class AuthenticationRejected, and closes.",
            read: "Inter-Client Exchange Protocol 1.0, sections 6.3 (AuthenticationReply), 8 (errors)",
            play: |tape| {
                let desk = Desk::of(tape, &["client"]);
                forge(&desk.authority);
                desk.object::<dyn Kitchen>("kitchen/kitchen").nothing().unwrap_err();
                tape.wait_for_ends();
                tape.stop();
            },
        },
        Scene {
            name: "malformed",
            about: "The first message is none of ICE. The server answers with an error of the class BadMinor or BadState, and closes.",
            read: "Inter-Client Exchange Protocol 1.0, section 8 (errors)",
            play: |tape| {
                let desk = Desk::of(tape, &["client"]);
                let mut client = UnixStream::connect(&desk.relay.path).expect("it listens");
                client
                    .write_all(b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x63\x00\x00\x00\x00\x00\x00")
                    .expect("it is taken");
                finish(tape, client);
            },
        },
        Scene {
            name: "goodbye",
            about: "The client ends: its connection closes, and the server forgets its name.",
            read: "Inter-Client Exchange Protocol 1.0, section 7.3 (WantToClose)",
            play: |tape| {
                let (Desk { client, application: _application, .. }, kitchen) = Desk::later(tape);
                let before = tape.ends();
                client.stop();
                drop((kitchen, client));
                tape.wait_for_more_ends(before, 2);
                tape.stop();
            },
        },
    ],
};

/// Makes other cookies of those in a file: sixteen octets behind the name of the method.
fn forge(file: &PathBuf) {
    const NAME: &[u8] = b"MIT-MAGIC-COOKIE-1";
    let mut octets = fs::read(file).expect("an authority file");
    let places: Vec<usize> =
        octets.windows(NAME.len()).enumerate().filter(|(_, at)| *at == NAME).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "no cookie");
    for at in places {
        octets[at + NAME.len() + 2..][..16].iter_mut().for_each(|octet| *octet ^= 0xff);
    }
    fs::write(file, octets).expect("it is written");
}

/// What a client hears after it has said something wrong.
fn finish(tape: &Tape, mut client: UnixStream) {
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    drop(client);
    tape.wait_for_ends();
    tape.stop();
}

/// A server, an application with a kitchen and a shop, and a client.
struct Desk {
    application: Node,
    client: Node,
    relay: Relay,
    authority: PathBuf,
}

impl Desk {
    fn new(tape: &Tape) -> Self {
        Self::of(tape, &["application", "client"])
    }

    fn of(tape: &Tape, callers: &[&'static str]) -> Self {
        static FOLDER: Once = Once::new();
        let dir = std::env::temp_dir().join(format!("everywire-transcripts-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a folder");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("it is ours");
        FOLDER.call_once(|| {
            for (name, file) in [("HOME", ""), ("ICEAUTHORITY", "authority"), ("DCOPAUTHORITY", "server")] {
                // SAFETY: the first thing that a test does; no C code of this process reads variables.
                unsafe { std::env::set_var(name, dir.join(file)) };
            }
        });
        let socket = dir.join("socket");
        serve_at(&socket, &dir.join("server"));
        // The relay takes the place of the server, whose cookie goes by the place.
        let own = dir.join("own");
        fs::rename(&socket, &own).expect("a socket");
        let relay = tape.relay_for(&socket, callers, "server");
        relay.to_path(&own);
        Self { application: Node::new(), client: Node::new(), relay, authority: dir.join("authority") }
    }

    fn address(&self, target: &str) -> String {
        format!("dcop+unix://{}#{target}", self.relay.path.display())
    }

    fn serve(&self) {
        Scullery::export(&self.application, "kitchen");
        let store = super::shop::Store::new(&self.application, "shop");
        self.application.export::<dyn Shop>("shop", store);
        self.application.listen(&self.address("kitchen")).expect("it is registered");
    }

    fn later(tape: &Tape) -> (Self, Ref<dyn Kitchen>) {
        let desk = Self::new(tape);
        desk.serve();
        let kitchen =
            desk.client.connect::<dyn Kitchen>(&desk.address("kitchen/kitchen")).expect("an address");
        kitchen.nothing().expect("it answers");
        tape.begin();
        (desk, kitchen)
    }

    fn object<I: Remote + ?Sized>(&self, target: &str) -> Ref<I> {
        let object = self.client.object(&self.address(target)).expect("an address");
        object.typed(Hold::Static(I::interface())).into_typed()
    }
}

/// A server of this process's own.
fn serve_at(socket: &Path, file: &Path) {
    let program = &wires::named("dcop").expect("a wire").programs()[0];
    let text = socket.display().to_string();
    let mut server = (program.open)(&[("socket", Some(text.as_str()))]).expect("it listens");
    let stop = hub::Stop::new().expect("a descriptor");
    std::thread::spawn(move || {
        // It ends with the process.
        let _ = hub::run(&mut *server, &hub::Settings::default(), &stop);
    });
    // Its file is the last thing that it writes.
    until("the server is up", || file.exists());
}
