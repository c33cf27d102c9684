//! DCOM: ORPC over DCE/RPC, on TCP.

use super::shop::{self, World, listen};
use super::tape::{Order, Relay, Tape};
use super::{Scene, Set};
use crate::common::dcom_pantry::contract::{IPantry, IScales, Pantry, PantryNoted, PantryTicked};
use crate::common::dcom_pantry::{self, CLASS, NO_CLASS};
use crate::common::foreign::PATIENCE;
use everywire::model::{Shape, Value, Variant};
use everywire::{Failure, Node, Ref};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::channel;

pub const SET: Set = Set {
    folder: "dcom",
    wire: "dcom",
    title: "DCOM: ORPC over DCE/RPC",
    scenes: &[
        Scene {
            name: "activation",
            about: "A client asks for a new object of a class. It binds to the interface of the activator, and calls \
                    RemoteCreateInstance with the class and the interface that it wants. The answer has an OBJREF: the identities \
                    of the exporter (OXID), of the object (OID) and of the interface pointer (IPID), and where to call.",
            read: "MS-DCOM sections 1.3.1, 2.2.22 (activation), 3.1.2.5.2.3.3 (RemoteCreateInstance); C706 section 12.6.4 (bind)",
            play: |tape| {
                let site = Site::new(tape);
                site.object();
                tape.stop();
            },
        },
        Scene {
            name: "call-of-another-interface",
            about: "The first call of an interface on a connection that is open. The client adds a context for `IScales` to the connection; \
                    the request has the number of the method and the IPID of the object. The arguments stand behind ORPCTHIS, the \
                    results behind ORPCTHAT, and the HRESULT comes last.",
            read: "MS-DCOM section 2.2.13 (ORPCTHIS, ORPCTHAT); C706 sections 12.6.4.1 (alter_context), 12.6.4.9 (request)",
            play: |tape| {
                let site = Site::new(tape);
                let scales = site.object().query::<dyn IScales>().unwrap().expect("it has them");
                tape.begin();
                assert_eq!(scales.label("plum").unwrap(), 4);
                tape.stop();
            },
        },
        Scene {
            name: "in-and-out-parameters",
            about: "`Weigh([in] long pieces, [in, out] hyper *grams, [out] double *each)`: the request has the parameters that go in, \
                    the response those that come out, each in the order of the contract. A hyper stands at a place that eight divides.",
            read: "C706 sections 14.2 (alignment), 14.4 (parameters)",
            play: |tape| {
                let site = Site::new(tape);
                let scales = site.object().query::<dyn IScales>().unwrap().expect("it has them");
                scales.label("x").unwrap();
                tape.begin();
                assert_eq!(scales.weigh(4, 10).unwrap(), (20, 2.5));
                tape.stop();
            },
        },
        Scene {
            name: "bstr",
            about: "A BSTR is a pointer to a counted array: a number that stands for the pointer and is not zero, then the count of \
                    characters, the length in octets, the count again, and the characters as UTF-16.",
            read: "MS-OAUT section 2.2.23 (BSTR)",
            play: |tape| {
                let site = Site::new(tape);
                let pantry = site.pantry(tape);
                assert_eq!(pantry.echo("plum").unwrap(), "plum");
                tape.stop();
            },
        },
        Scene {
            name: "variant",
            about: "A VARIANT has its size in units of eight octets, the type of its value (3: a 32-bit integer), and the value.",
            read: "MS-OAUT section 2.2.29 (VARIANT)",
            play: |tape| {
                let site = Site::new(tape);
                let pantry = site.pantry(tape);
                let value = Variant::new(Shape::I32, Value::Integer(42));
                assert_eq!(pantry.same(&value).unwrap(), value);
                tape.stop();
            },
        },
        Scene {
            name: "hresult-of-failure",
            about: "A method fails with the HRESULT 0x80040123. The response has it as its last four octets; ORPCTHAT carries the \
                    error information, whose text says why. A failed method is an ordinary response, no fault.",
            read: "MS-DCOM section 2.2.13.2 (ORPCTHAT), 2.2.21 (extensions); MS-OAUT section 3.3 (error information); MS-ERREF section 2.1",
            play: |tape| {
                let site = Site::new(tape);
                let pantry = site.pantry(tape);
                pantry.refuse(0x8004_0123_u32.cast_signed()).expect_err("as asked");
                tape.stop();
            },
        },
        Scene {
            name: "query-interface",
            about: "QueryInterface across the network: the client calls RemQueryInterface of the exporter's IRemUnknown and gets an \
                    IPID for the other interface. The second interface is not there: E_NOINTERFACE.",
            read: "MS-DCOM sections 3.1.1.5.6.1.1 (RemQueryInterface), 2.2.24 (REMQIRESULT)",
            play: |tape| {
                let site = Site::new(tape);
                let pantry = site.pantry(tape);
                assert!(pantry.query::<dyn IScales>().unwrap().is_some());
                assert!(pantry.query::<dyn everywire_opc::contract::IOPCSyncIO>().unwrap().is_none());
                tape.stop();
            },
        },
        Scene {
            name: "interface-pointer-as-argument",
            about: "The client passes an object of its own. Its OBJREF stands in the arguments, with the addresses of the client. \
                    The server asks the client's resolver where the exporter is, binds there, and calls, before it answers; \
                    then it gives its references back.",
            read: "MS-DCOM sections 2.2.14 (MInterfacePointer), 2.2.18 (OBJREF), 3.1.2.5.1.2 (ResolveOxid2)",
            play: |tape| {
                let site = Site::new(tape);
                let pantry = site.pantry(tape);
                let scales: Ref<dyn IScales> = site.client.export::<dyn IScales>("scales", Arc::new(Pocket));
                assert_eq!(pantry.delegate(Some(scales), "tea").unwrap(), 3);
                tape.wait_for_words("dcom", "RemRelease", 1);
                tape.wait_until_answered("dcom");
                tape.order(Order::ByConnection);
                tape.stop();
            },
        },
        Scene {
            name: "advise",
            about: "The client listens to events. It finds the connection point of the event interface, and calls Advise with its sink, whose OBJREF \
                    is in the arguments. The answer is a cookie.",
            read: "Component Object Model, IConnectionPointContainer and IConnectionPoint; MS-DCOM section 2.2.18 (OBJREF)",
            play: |tape| {
                let site = Site::one(tape);
                let pantry = site.shelf();
                let _first = pantry.signals().on(|_: PantryTicked| {}).unwrap();
                tape.wait_until_answered("dcom");
                tape.begin();
                tape.order(Order::ByConnection);
                let _listening = pantry.signals().on(|_: PantryTicked| {}).unwrap();
                tape.wait_until_answered("dcom");
                tape.stop();
            },
        },
        Scene {
            name: "event",
            about: "The server calls the sink of the client, on a connection that it opened: the event is a method of the sink's interface.",
            read: "Component Object Model, IConnectionPoint; MS-DCOM section 3.2.4.4 (calls)",
            play: |tape| {
                let site = Site::one(tape);
                let pantry = site.shelf();
                let (tell, told) = channel();
                let _listening = pantry
                    .signals()
                    .on(move |tick: PantryTicked| tell.send(tick.number).unwrap_or_default())
                    .unwrap();
                let own = site.server.signaller::<dyn Pantry>("shelf");
                own.emit(&PantryTicked { number: 1, text: "plum".into() }).unwrap();
                assert_eq!(told.recv_timeout(PATIENCE), Ok(1));
                tape.wait_until_answered("dcom");
                tape.begin();
                own.emit(&PantryTicked { number: 2, text: "pear".into() }).unwrap();
                assert_eq!(told.recv_timeout(PATIENCE), Ok(2));
                tape.wait_until_answered("dcom");
                tape.stop();
            },
        },
        Scene {
            name: "event-by-name",
            about: "Events of a dispinterface come by IDispatch::Invoke: the number of the event, and the arguments as VARIANTs, \
                    the last one first. The sink answers with a VARIANT of its own.",
            read: "MS-OAUT sections 3.1.4.4 (Invoke), 2.2.33 (DISPPARAMS)",
            play: |tape| {
                let site = Site::one(tape);
                let pantry = site.shelf();
                let (tell, told) = channel();
                let _listening = pantry
                    .signals()
                    .on(move |note: PantryNoted| tell.send(note.number).unwrap_or_default())
                    .unwrap();
                let own = site.server.signaller::<dyn Pantry>("shelf");
                own.emit(&PantryNoted { number: 1, text: "plum".into() }).unwrap();
                assert_eq!(told.recv_timeout(PATIENCE), Ok(1));
                tape.wait_until_answered("dcom");
                tape.begin();
                own.emit(&PantryNoted { number: 2, text: "pear".into() }).unwrap();
                assert_eq!(told.recv_timeout(PATIENCE), Ok(2));
                tape.wait_until_answered("dcom");
                tape.stop();
            },
        },
        Scene {
            name: "unadvise",
            about: "The client listens no more: Unadvise, with the cookie that Advise gave, and it gives back its reference to the connection point. \
                    The server gives back its references to the sink.",
            read: "Component Object Model, IConnectionPoint; MS-DCOM section 3.1.1.5.6.1.3 (RemRelease)",
            play: |tape| {
                let site = Site::one(tape);
                let pantry = site.shelf();
                let (tell, told) = channel();
                let listening = pantry
                    .signals()
                    .on(move |tick: PantryTicked| tell.send(tick.number).unwrap_or_default())
                    .unwrap();
                let own = site.server.signaller::<dyn Pantry>("shelf");
                own.emit(&PantryTicked { number: 1, text: "plum".into() }).unwrap();
                assert_eq!(told.recv_timeout(PATIENCE), Ok(1));
                tape.wait_until_answered("dcom");
                tape.begin();
                tape.order(Order::ByConnection);
                let before = tape.words("dcom", "RemRelease");
                drop(listening);
                tape.wait_for_words("dcom", "RemRelease", before + 2);
                tape.wait_until_answered("dcom");
                tape.stop();
            },
        },
        Scene {
            name: "release",
            about: "The client lets go of its last reference: RemRelease gives back all references of the IPID. The server ends the object.",
            read: "MS-DCOM section 3.1.1.5.6.1.3 (RemRelease)",
            play: |tape| {
                let site = Site::new(tape);
                let pantry = site.pantry(tape);
                drop(pantry);
                tape.wait_for_words("dcom", "RemRelease", 1);
                tape.wait_until_answered("dcom");
                tape.stop();
            },
        },
        Scene {
            name: "no-such-class",
            about: "Nobody serves the class: the activation answers REGDB_E_CLASSNOTREG.",
            read: "MS-DCOM section 3.1.2.5.2.3.3; MS-ERREF section 2.1",
            play: |tape| {
                let site = Site::new(tape);
                let nobody = site.client.connect::<dyn IPantry>(&site.class(NO_CLASS)).expect("an address");
                nobody.add(1, 1).expect_err("nobody serves it");
                tape.stop();
            },
        },
        Scene {
            name: "property-get-and-put",
            about: "A property is two methods. The contract here is that of the shop, which is printed in MIDL: `get_title` and \
                    `put_title` are the first methods after those of IUnknown.",
            read: "MS-OAUT section 2.2.49.5 (properties); C706 section 12.6.4.9 (operation numbers)",
            play: |tape| shop::attribute(&world(tape).after_greeting(tape), tape),
        },
        Scene {
            name: "structs-and-arrays",
            about: "A result is an array of structs. Pointers inside the structs are numbers first; what they point to follows \
                    when the whole array is written.",
            read: "C706 section 14.3 (constructed types), 14.3.12 (pointers)",
            play: |tape| shop::structs(&world(tape).after_greeting(tape), tape),
        },
        Scene {
            name: "cancel",
            about: "The client gives up a call while the server is at work: co_cancel asks the server to stop.",
            read: "C706 sections 9.3 (cancels), 12.6.4.6 (co_cancel)",
            play: |tape| shop::cancel(&world(tape).after_greeting(tape), tape),
        },
        Scene {
            name: "ntlm",
            about: "The listener takes known users only, at level integrity. The bind carries NTLM's NEGOTIATE_MESSAGE, its answer \
                    the CHALLENGE_MESSAGE, and auth3 the AUTHENTICATE_MESSAGE, which nobody answers. From then on each PDU ends \
                    with a signature.",
            read: "MS-RPCE sections 2.2.2.11 (security trailer), 3.3.1.5.2; MS-NLMP section 1.3",
            play: |tape| ntlm(tape, "integrity"),
        },
        Scene {
            name: "sealed",
            about: "The same at level privacy: the stubs are encrypted. Header, allocation hint and operation number stay readable.",
            read: "MS-RPCE section 2.2.2.11; MS-NLMP section 3.4.3 (confidentiality)",
            play: |tape| ntlm(tape, "privacy"),
        },
        Scene {
            name: "malformed",
            about: "The client binds with version 4 of the protocol. The server answers bind_nak with the versions that it speaks, and closes \
                    the connection.",
            read: "C706 section 12.6.4.5 (bind_nak), 12.6.3.1 (versions)",
            play: |tape| {
                let site = Site::new(tape);
                let mut client = TcpStream::connect(("127.0.0.1", site.relay.port)).expect("it listens");
                let bind = b"\x04\x00\x0b\x03\x10\x00\x00\x00\x1c\x00\x00\x00\x01\x00\x00\x00\xd0\x16\xd0\x16\x00\x00\x00\x00\x00\x00\x00\x00";
                client.write_all(bind).expect("it is taken");
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).expect("an end");
                drop(client);
                tape.wait_for_ends();
                tape.stop();
            },
        },
        Scene {
            name: "goodbye",
            about: "The server ends. There is nothing that must be said; the server sends `shutdown`, which asks the client to close, and closes.",
            read: "C706 section 12.6.4.11 (shutdown)",
            play: |tape| shop::goodbye(world(tape).after_greeting(tape), tape),
        },
    ],
};

const AT: &str = "dcom://127.0.0.1:0?level=none&publish=127.0.0.1:PORT";

fn world(tape: &Tape) -> World {
    World::over_tcp(tape, AT, Some(AT))
}

/// A server of the class, and a client that can be called back.
struct Site {
    server: Node,
    client: Node,
    relay: Relay,
}

impl Site {
    fn new(tape: &Tape) -> Self {
        let (server, client) = (Node::new(), Node::new());
        let relay = tape.relay("client", "server");
        relay.to(&listen(&server, AT, relay.port));
        dcom_pantry::serve(&server);
        let back = tape.relay("server", "client");
        back.to(&listen(&client, AT, back.port));
        Self { server, client, relay }
    }

    /// With an object that everybody shares.
    fn one(tape: &Tape) -> Self {
        let site = Self::new(tape);
        dcom_pantry::serve_one(&site.server);
        site
    }

    /// The shared object.
    fn shelf(&self) -> Ref<dyn Pantry> {
        let pantry = self.client.connect::<dyn Pantry>(&self.class("shelf")).expect("an address");
        pantry.add(1, 1).expect("it answers");
        pantry
    }

    fn class(&self, class: &str) -> String {
        format!("dcom://127.0.0.1:{}/{class}?level=none", self.relay.port)
    }

    /// A new object, made by its first question.
    fn object(&self) -> Ref<dyn IPantry> {
        let object = self.client.connect::<dyn IPantry>(&self.class(CLASS)).expect("an address");
        object.add(1, 1).expect("it answers");
        object
    }

    /// One that was called before.
    fn pantry(&self, tape: &Tape) -> Ref<dyn IPantry> {
        let object = self.object();
        tape.begin();
        object
    }
}

/// Scales of the client's.
struct Pocket;

impl IScales for Pocket {
    fn weigh(&self, _: i32, grams: i64) -> Result<(i64, f64), Failure> {
        Ok((grams, 0.0))
    }
    fn reverse(&self, load: everywire::Bytes) -> Result<everywire::Bytes, Failure> {
        Ok(load)
    }
    fn label(&self, text: &str) -> Result<u32, Failure> {
        Ok(u32::try_from(text.len()).unwrap_or(u32::MAX))
    }
}

fn ntlm(tape: &Tape, level: &str) {
    use crate::common::dcom::{DOMAIN, PASSWORD, USER, users};
    let file = users(&crate::common::scratch(&format!("transcripts-{level}")));
    let (server, client) = (Node::new(), Node::new());
    let relay = tape.relay("client", "server");
    let at = format!("dcom://127.0.0.1:0?users={}&publish=127.0.0.1:PORT", file.display());
    relay.to(&listen(&server, &at, relay.port));
    dcom_pantry::serve_one(&server);
    let password: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let address = format!("dcom://{DOMAIN};{USER}:{password}@127.0.0.1:{}/shelf?level={level}", relay.port);
    let pantry = client.connect::<dyn IPantry>(&address).expect("an address");
    assert_eq!(pantry.add(40, 2).unwrap(), 42);
    tape.stop();
}
