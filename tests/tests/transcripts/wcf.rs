//! WCF: net.tcp, and SOAP over HTTP.

use super::shop::{self, World, listen};
use super::tape::Tape;
use super::{Scene, Set};
use crate::common::dcom::{DOMAIN, PASSWORD, USER, users};
use crate::common::foreign::PATIENCE;
use crate::common::hello::Doubler;
use crate::common::hello::Hello;
use crate::common::hello::duplex::{IHello, IHelloCallback, IHelloOnHello};
use everywire::{Node, Ref};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::channel;

pub const NET_TCP: Set = Set {
    folder: "net.tcp",
    wire: "wcf",
    title: "WCF: net.tcp",
    scenes: &[
        Scene {
            name: "preamble-and-first-call",
            about: "The client sends a preamble: version, mode (duplex), the address that it wants, and the encoding of the envelopes (8: binary, \
                    with a dictionary for the session). The server acknowledges with one octet. The first envelope brings the words that \
                    are new in this session, in front; later ones name them by number.",
            read: "MC-NMF sections 2.2.3 (preamble), 2.2.4 (envelopes); MC-NBFSE section 2.1 (dictionary); SOAP 1.2 part 1, section 5",
            play: |tape| shop::first_call(&net_tcp(tape), tape),
        },
        Scene {
            name: "call-with-result",
            about: "A later call: no word is new, so the message is short. WS-Addressing says what is asked (Action), the number of the message, \
                    and where the answer goes (anonymous: on this connection). The answer relates to that number.",
            read: "WS-Addressing 1.0 Core, section 3; MC-NBFX section 2.2 (records)",
            play: |tape| shop::call(&later(tape), tape),
        },
        Scene {
            name: "oneway-call",
            about: "A oneway call has no message id and no ReplyTo, and nobody answers.",
            read: "WS-Addressing 1.0 Metadata, section 5.1 (one-way); MC-NMF section 2.2.4",
            play: |tape| shop::oneway(&later(tape), tape),
        },
        Scene {
            name: "out-and-inout-parameters",
            about: "The response has an element for the result and one for each out and inout parameter.",
            read: "WSDL 1.1 section 2.4.6; XML of data contracts: MC-NBFX section 2.2.3",
            play: |tape| shop::out_and_inout(&later(tape), tape),
        },
        Scene {
            name: "structs-and-sequences",
            about: "A struct is an element with an element for each member; a sequence is an element that has one for each of its elements.",
            read: "XML Schema part 1, section 3.4; MC-NBFX section 2.2.3",
            play: |tape| shop::structs(&later(tape), tape),
        },
        Scene {
            name: "attribute",
            about: "An attribute of other contract languages is two operations here, `get_title` and `set_title`.",
            read: "WSDL 1.1 section 2.4",
            play: |tape| shop::attribute(&later(tape), tape),
        },
        Scene {
            name: "typed-fault",
            about: "The operation raises what its contract declares: a fault whose detail is the exception, as an element of its type.",
            read: "SOAP 1.2 part 1, section 5.4 (fault); WSDL 1.1 section 2.4.5",
            play: |tape| shop::exception(&later(tape), tape),
        },
        Scene {
            name: "no-such-operation",
            about: "The service knows no such action: a fault with the code ActionNotSupported of WS-Addressing.",
            read: "WS-Addressing 1.0 SOAP Binding, section 6.4.4 (action not supported)",
            play: |tape| shop::no_operation(&later(tape), tape),
        },
        Scene {
            name: "no-such-endpoint",
            about: "The preamble asks for an address that nobody serves. In place of the acknowledgement comes a fault record, EndpointNotFound, and \
                    the server closes.",
            read: "MC-NMF section 2.2.5 (fault record)",
            play: |tape| {
                let world = net_tcp(tape);
                world.named::<dyn everywire_tests::shop::market::Shop>("nobody").count(7).unwrap_err();
                tape.wait_for_ends();
                tape.stop();
            },
        },
        Scene {
            name: "duplex-signal",
            about: "A duplex contract: the server calls the client on the connection that the client opened. Here it says OnHello, oneway, to all \
                    who have subscribed.",
            read: "WS-Addressing 1.0 Core, section 3; Windows Communication Foundation, duplex services",
            play: |tape| {
                let (_nodes, hello) = hello(tape);
                let (tell, told) = channel();
                let _listening = hello
                    .signals()
                    .on(move |said: IHelloOnHello| tell.send(said.message).unwrap_or_default())
                    .unwrap();
                hello.subscribe().unwrap();
                tape.begin();
                hello.say_hello("plum").unwrap();
                assert_eq!(told.recv_timeout(PATIENCE).as_deref(), Ok("plum"));
                tape.stop();
            },
        },
        Scene {
            name: "duplex-callback",
            about: "While the server serves AskBack it calls the client back with Ask, on the same connection, and waits for the answer. Each \
                    side numbers its own messages.",
            read: "WS-Addressing 1.0 Core, section 3.3 (RelatesTo)",
            play: |tape| {
                let (_nodes, hello) = hello(tape);
                hello.subscribe().unwrap();
                tape.begin();
                assert_eq!(hello.ask_back(20).unwrap(), 41);
                tape.stop();
            },
        },
        Scene {
            name: "windows-login",
            about: "The listener takes known users only. The client asks for the upgrade `application/negotiate`; what follows is NegotiateStream: \
                    NTLM inside SPNEGO in three messages, and then everything encrypted. The preamble goes on inside.",
            read: "MC-NMF section 2.2.3.5 (upgrade); MS-NNS sections 2.2, 3.1 (handshake and data)",
            play: |tape| {
                let file = users(&crate::common::scratch("transcripts-windows"));
                let at = format!(
                    "net.tcp://127.0.0.1:0?security=windows&users={}&publish=127.0.0.1:PORT",
                    file.display()
                );
                let (server, client) = (Node::new(), Node::new());
                let relay = tape.relay("client", "server");
                relay.to(&listen(&server, &at, relay.port));
                let store = shop::Store::new(&server, "shop");
                server.export::<dyn everywire_tests::shop::market::Shop>("shop", store);
                let password: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
                let address = format!(
                    "net.tcp://{DOMAIN};{USER}:{password}@127.0.0.1:{}/shop?security=windows",
                    relay.port
                );
                let shop =
                    client.connect::<dyn everywire_tests::shop::market::Shop>(&address).expect("an address");
                assert_eq!(shop.count(7).unwrap(), 7);
                tape.stop();
            },
        },
        Scene {
            name: "reliable-session",
            about: "WS-ReliableMessaging: the client creates a sequence, in both directions. Each message has its number in it, and the other side \
                    acknowledges what it has. What is not acknowledged is sent again.",
            read: "WS-ReliableMessaging 1.0 (February 2005), sections 3.1 (sequences), 3.4 (creation)",
            play: |tape| {
                let at = "net.tcp://127.0.0.1:0?security=none&reliable=on&publish=127.0.0.1:PORT";
                let world = World::over_tcp(tape, at, None);
                assert_eq!(world.shop.count(7).unwrap(), 7);
                tape.stop();
            },
        },
        Scene {
            name: "malformed",
            about: "The preamble has a version that does not exist. The server answers with a fault record, UnsupportedVersion, and closes.",
            read: "MC-NMF sections 2.2.3.1 (version), 2.2.5 (fault record)",
            play: |tape| wrong(tape, b"\x00\x07\x00"),
        },
        Scene {
            name: "too-long",
            about: "An envelope of 1 GiB is announced, more than the server takes. The server answers with a fault record and closes; nothing is allocated.",
            read: "MC-NMF sections 2.2.4.3 (sized envelope), 2.2.5 (fault record)",
            play: |tape| {
                let world = net_tcp(tape);
                let via = format!("net.tcp://127.0.0.1:{}/shop", world.relay.port);
                let head = [
                    b"\x00\x01\x00\x01\x02\x02",
                    &[u8::try_from(via.len()).unwrap()][..],
                    via.as_bytes(),
                    b"\x03\x08\x0c",
                ];
                let mut client = TcpStream::connect(("127.0.0.1", world.relay.port)).expect("it listens");
                client.write_all(&head.concat()).expect("it is taken");
                let mut octet = [0];
                client.read_exact(&mut octet).expect("an acknowledgement");
                client.write_all(b"\x06\x80\x80\x80\x80\x04").expect("it is taken");
                rest(tape, client);
            },
        },
        Scene {
            name: "goodbye",
            about: "The client ends the session with the record End, and the server answers with the same; then both close.",
            read: "MC-NMF section 2.2.6 (end record)",
            play: |tape| shop::goodbye_of_client(later(tape), tape),
        },
    ],
};

pub const HTTP: Set = Set {
    folder: "http",
    wire: "wcf",
    title: "WCF: SOAP over HTTP",
    scenes: &[
        Scene {
            name: "call",
            about: "BasicHttpBinding: a POST with an envelope of SOAP 1.1. The header SOAPAction says what is asked; the envelope has only a body.",
            read: "SOAP 1.1 sections 4, 6 (HTTP); WS-I Basic Profile 1.1, section 3",
            play: |tape| shop::first_call(&basic(tape), tape),
        },
        Scene {
            name: "oneway-call",
            about: "A oneway call is answered by HTTP alone: 202 Accepted, without an envelope.",
            read: "WS-I Basic Profile 1.1, section 3.4 (one-way); RFC 9110 section 15.3.3",
            play: |tape| shop::oneway(&basic_later(tape), tape),
        },
        Scene {
            name: "out-and-inout-parameters",
            about: "The response has an element for the result and one for each out and inout parameter.",
            read: "WSDL 1.1 section 3.5 (document style)",
            play: |tape| shop::out_and_inout(&basic_later(tape), tape),
        },
        Scene {
            name: "structs-and-sequences",
            about: "A struct is an element with an element for each member; a sequence is an element that has one for each of its elements.",
            read: "XML Schema part 1, section 3.4",
            play: |tape| shop::structs(&basic_later(tape), tape),
        },
        Scene {
            name: "attribute",
            about: "An attribute of other contract languages is two operations here, `get_title` and `set_title`.",
            read: "WSDL 1.1 section 2.4",
            play: |tape| shop::attribute(&basic_later(tape), tape),
        },
        Scene {
            name: "typed-fault",
            about: "The operation raises what its contract declares: HTTP says 500, the envelope has a fault, and its detail is the exception.",
            read: "SOAP 1.1 section 4.4 (fault), 6.2 (HTTP status)",
            play: |tape| shop::exception(&basic_later(tape), tape),
        },
        Scene {
            name: "no-such-operation",
            about: "The service knows no such action: a fault with the code ActionNotSupported.",
            read: "SOAP 1.1 section 4.4.1 (fault codes)",
            play: |tape| shop::no_operation(&basic_later(tape), tape),
        },
        Scene {
            name: "no-such-service",
            about: "Nobody serves this path: HTTP says so itself, without SOAP.",
            read: "RFC 9110 section 15.5.5 (404)",
            play: |tape| shop::no_object(&basic_later(tape), tape),
        },
        Scene {
            name: "ws-addressing",
            about: "WSHttpBinding without security: SOAP 1.2, and the headers of WS-Addressing say what is asked and where the answer goes.",
            read: "SOAP 1.2 part 2, section 7 (HTTP); WS-Addressing 1.0 Core, section 3",
            play: |tape| {
                let at = "wshttp://127.0.0.1:0?security=none&publish=127.0.0.1:PORT";
                shop::first_call(&World::over_tcp(tape, at, None), tape);
            },
        },
        Scene {
            name: "binary-xml",
            about: "The same envelope as binary XML, by a custom binding: names that the standard dictionary has are one or two octets.",
            read: "MC-NBFS section 2 (dictionary), MC-NBFX section 2.2 (records)",
            play: |tape| {
                let at = "binhttp://127.0.0.1:0?security=none&publish=127.0.0.1:PORT";
                shop::first_call(&World::over_tcp(tape, at, None), tape);
            },
        },
        Scene {
            name: "mtom",
            about: "The envelope as MTOM: a message of several parts, whose first is the XML. Large octets would be parts of their own.",
            read: "SOAP Message Transmission Optimization Mechanism, section 3; XOP section 4; RFC 2046 section 5.1",
            play: |tape| {
                let at = "basic://127.0.0.1:0?security=none&encoding=mtom&publish=127.0.0.1:PORT";
                shop::first_call(&World::over_tcp(tape, at, None), tape);
            },
        },
        Scene {
            name: "malformed-envelope",
            about: "The body is no envelope. The server answers with a fault of the client's, and keeps the connection.",
            read: "SOAP 1.1 section 4.4.1 (Client); RFC 9110 section 15.5.1",
            play: |tape| post(tape, "Content-Length: 9\r\nConnection: close\r\n\r\n<nothing>"),
        },
        Scene {
            name: "too-long",
            about: "The header announces a body of 1 GiB, more than the server takes: HTTP says 413, and nothing is read.",
            read: "RFC 9110 section 15.5.14 (413)",
            play: |tape| post(tape, "Content-Length: 1073741824\r\n\r\n"),
        },
        Scene {
            name: "wrong-media-type",
            about: "The content type is that of another binding: 415, with the type that the service expects.",
            read: "RFC 9110 section 15.5.16 (415)",
            play: |tape| {
                let world = basic(tape);
                let mut client = TcpStream::connect(("127.0.0.1", world.relay.port)).expect("it listens");
                let head = format!(
                    "POST /shop HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/soap+msbin1\r\n",
                    world.relay.port
                );
                client
                    .write_all((head + "Content-Length: 0\r\nConnection: close\r\n\r\n").as_bytes())
                    .expect("it is taken");
                rest(tape, client);
            },
        },
        Scene {
            name: "goodbye",
            about: "The server ends. HTTP has no word for it: the connection closes between two messages.",
            read: "RFC 9112 section 9.6 (closing a connection)",
            play: |tape| shop::goodbye(basic_later(tape), tape),
        },
    ],
};

fn net_tcp(tape: &Tape) -> World {
    World::over_tcp(tape, "net.tcp://127.0.0.1:0?security=none&publish=127.0.0.1:PORT", None)
}

fn later(tape: &Tape) -> World {
    net_tcp(tape).after_greeting(tape)
}

fn basic(tape: &Tape) -> World {
    World::over_tcp(tape, "basic://127.0.0.1:0?security=none&publish=127.0.0.1:PORT", None)
}

fn basic_later(tape: &Tape) -> World {
    basic(tape).after_greeting(tape)
}

/// The duplex service, and who uses it.
fn hello(tape: &Tape) -> (Vec<Node>, Ref<dyn IHello>) {
    let (server, client) = (Node::new(), Node::new());
    let relay = tape.relay("client", "server");
    relay.to(&listen(&server, "net.tcp://127.0.0.1:0?security=none&publish=127.0.0.1:PORT", relay.port));
    let signals = server.signaller::<dyn IHello>("hello");
    let exported = server.export::<dyn IHello>("hello", Arc::new(Hello(signals)));
    client.export::<dyn IHelloCallback>("doubler", Arc::new(Doubler));
    let hello =
        client.connect::<dyn IHello>(&server.print_friendly(exported.reference())).expect("an address");
    (vec![server, client], hello)
}

/// What a client hears after it has said something wrong.
fn rest(tape: &Tape, mut client: TcpStream) {
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("an end");
    drop(client);
    tape.wait_for_ends();
    tape.stop();
}

fn wrong(tape: &Tape, octets: &[u8]) {
    let world = net_tcp(tape);
    let mut client = TcpStream::connect(("127.0.0.1", world.relay.port)).expect("it listens");
    client.write_all(octets).expect("it is taken");
    rest(tape, client);
}

/// A request by hand, with these last headers and this body.
fn post(tape: &Tape, end: &str) {
    let world = basic(tape);
    let mut client = TcpStream::connect(("127.0.0.1", world.relay.port)).expect("it listens");
    let head = format!(
        "POST /shop HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: text/xml; charset=utf-8\r\nSOAPAction: \"x\"\r\n",
        world.relay.port
    );
    client.write_all((head + end).as_bytes()).expect("it is taken");
    rest(tape, client);
}
