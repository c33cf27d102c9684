//! CORBA: GIOP over TCP.

use super::shop::{self, World};
use super::tape::Tape;
use super::{Scene, Set};
use everywire::model::describe::{Shape, TEXT};
use everywire::model::shape::Field;
use everywire::model::{Direction, Hold, Operation, Parameter, Value, Variant};
use everywire::{Failure, Remote};
use everywire_tests::kitchen::interop::{Choice, Pantry};
use everywire_tests::servants::Larder;
use everywire_tests::shop::market::Shop;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

pub const SET: Set = Set {
    folder: "giop",
    wire: "giop",
    title: "CORBA: GIOP over IIOP",
    scenes: &[
        Scene {
            name: "first-call",
            about: "A client opens a connection and calls at once: GIOP has no handshake. The first request carries a \
                    service context with the character sets of the client, so that both sides agree on one. Later requests \
                    leave it out. The key in the request is what tells objects of a server apart.",
            read: "CORBA 3.3 part 2, sections 9.4.1 (header), 9.4.2 (Request), 9.4.3 (Reply); code sets in 7.10.2",
            play: |tape| shop::first_call(&world(tape), tape),
        },
        Scene {
            name: "call-with-result",
            about: "A call with an argument, answered with a result. The reply has the number of its request, so several \
                    calls can be under way on one connection. Arguments begin at a place that can be divided by eight.",
            read: "CORBA 3.3 part 2, sections 9.4.2, 9.4.3; numbers in 9.3.1",
            play: |tape| shop::call(&later(tape), tape),
        },
        Scene {
            name: "oneway-call",
            about: "A oneway call: the lowest bit of the response flags is not set, and nobody answers.",
            read: "CORBA 3.3 part 2, section 9.4.2.1 (response flags)",
            play: |tape| shop::oneway(&later(tape), tape),
        },
        Scene {
            name: "out-and-inout-parameters",
            about: "`long mix(in long a, out double half, inout string text)`. The request has the in and inout parameters in \
                    the order of the contract. The reply has the result first, then the out and inout parameters.",
            read: "CORBA 3.3 part 2, sections 9.4.2.2 (request body), 9.4.3.2 (reply body)",
            play: |tape| shop::out_and_inout(&later(tape), tape),
        },
        Scene {
            name: "structs-and-sequences",
            about: "The result is a sequence of structs. A sequence is a count and its elements; a struct is its members one \
                    after the other. Each number stands at a place that its size divides, so octets are left out between them. \
                    A string is its length with the zero at the end, and its octets: here UTF-8.",
            read: "CORBA 3.3 part 2, sections 9.3.1 (alignment), 9.3.2 (struct, sequence, enum, string)",
            play: |tape| shop::structs(&later(tape), tape),
        },
        Scene {
            name: "union",
            about: "A union is its discriminator and the member that it selects. Here the enumerator `green` (1) selects a string.",
            read: "CORBA 3.3 part 2, section 9.3.2.2 (union)",
            play: |tape| {
                let world = later(tape);
                let pantry = pantry(&world);
                let choice = Choice::Text("mint".into());
                assert_eq!(pantry.echo_choice(&choice).unwrap(), choice);
                tape.stop();
            },
        },
        Scene {
            name: "any",
            about: "An `any` brings its type along: a TypeCode, and then the value. The TypeCode of `long` is the number 3.",
            read: "CORBA 3.3 part 2, sections 9.3.5.1 (TypeCode), 9.3.5.2 (any)",
            play: |tape| {
                let world = later(tape);
                let pantry = pantry(&world);
                assert_eq!(pantry.describe(&Variant::new(Shape::I32, Value::Integer(7))).unwrap(), "long 7");
                tape.stop();
            },
        },
        Scene {
            name: "attribute",
            about: "An attribute is two operations on the wire: `_get_title` and `_set_title`. Each is an ordinary request.",
            read: "CORBA 3.3 part 2, section 9.4.2 (operation names of attributes)",
            play: |tape| shop::attribute(&later(tape), tape),
        },
        Scene {
            name: "user-exception",
            about: "The operation raises an exception that its contract declares. The status of the reply is USER_EXCEPTION. The \
                    body has the repository id of the exception, and its members.",
            read: "CORBA 3.3 part 2, sections 9.4.3.1 (status), 9.4.3.2 (exceptions)",
            play: |tape| shop::exception(&later(tape), tape),
        },
        Scene {
            name: "no-such-object",
            about: "The key names no object. The server answers with the system exception OBJECT_NOT_EXIST; `not completed` says \
                    that nothing was executed, so the caller may try elsewhere.",
            read: "CORBA 3.3 part 2, section 9.4.3.2; part 1, annex A.5 (standard exceptions)",
            play: |tape| shop::no_object(&later(tape), tape),
        },
        Scene {
            name: "no-such-operation",
            about: "The object is there, and its interface has no operation of this name: BAD_OPERATION.",
            read: "CORBA 3.3 part 2, section 9.4.3.2; part 1, annex A.5 (standard exceptions)",
            play: |tape| shop::no_operation(&later(tape), tape),
        },
        Scene {
            name: "is-a",
            about: "A client asks an object whether it has an interface: `_is_a`, with the repository id. Every object answers \
                    this operation, and `_non_existent`, beside those of its contract.",
            read: "CORBA 3.3 part 1, section 8.3.5 (is_a); part 2, section 9.4.2 (pseudo-operations)",
            play: |tape| {
                let world = later(tape);
                let object = world.object().typed(Hold::Static(<dyn Shop as Remote>::interface()));
                let field = Field { name: "id".into(), shape: TEXT };
                let asked = vec![Parameter { direction: Direction::In, field }];
                let is_a = Operation::new("_is_a".to_owned(), asked, Shape::Bool);
                for (id, has) in [("IDL:market/Shop:1.0", true), ("IDL:market/Bank:1.0", false)] {
                    assert_eq!(object.call::<_, (bool,), Failure>(&is_a, (id,)).unwrap(), (has,));
                }
                tape.stop();
            },
        },
        Scene {
            name: "locate",
            about: "LocateRequest asks whether an object is there, without a call. One object is here, the other is unknown.",
            read: "CORBA 3.3 part 2, sections 9.4.5 (LocateRequest), 9.4.6 (LocateReply)",
            play: |tape| shop::locate(&later(tape), tape),
        },
        Scene {
            name: "location-forward",
            about: "The server answers that the object is elsewhere, with a reference. The client sends the same request there, \
                    and remembers the place. Here it is another key at the same server.",
            read: "CORBA 3.3 part 2, section 9.4.3.2 (LOCATION_FORWARD)",
            play: |tape| shop::forward(&later(tape), tape),
        },
        Scene {
            name: "reference-and-callback",
            about: "The argument is a reference to an object of the client: its repository id, and a profile with host, port and \
                    key. The server opens a connection of its own there and calls the object, before it answers.",
            read: "CORBA 3.3 part 2, sections 9.3.6 (references), 9.7.2 (IIOP profiles)",
            play: |tape| shop::callback(&later(tape), tape),
        },
        Scene {
            name: "reference-as-result",
            about: "The result is a reference to an object of the server. Its host and port are those of the connection that is open, so \
                    the client calls the new object on this connection, by its key.",
            read: "CORBA 3.3 part 2, sections 9.3.6 (references), 9.7.2 (IIOP profiles)",
            play: |tape| shop::reference(&later(tape), tape),
        },
        Scene {
            name: "cancel",
            about: "The client gives up a call while the server is at work, and says so. The server may go on; whatever it answers, \
                    the client does not wait for it.",
            read: "CORBA 3.3 part 2, section 9.4.4 (CancelRequest)",
            play: |tape| shop::cancel(&later(tape), tape),
        },
        Scene {
            name: "too-long",
            about: "The header announces a body of 1 GiB, more than the server takes. Nothing is read and nothing is allocated: the \
                    server answers with MessageError and closes the connection.",
            read: "CORBA 3.3 part 2, sections 9.4.1 (message size), 9.4.8 (MessageError)",
            play: |tape| wrong(tape, b"GIOP\x01\x02\x01\x00\x00\x00\x00\x40"),
        },
        Scene {
            name: "malformed",
            about: "The header has a version that does not exist. The server answers with MessageError, in the highest version \
                    that it speaks, and closes the connection.",
            read: "CORBA 3.3 part 2, sections 9.4.1 (version), 9.4.8 (MessageError)",
            play: |tape| wrong(tape, b"GIOP\x09\x09\x01\x00\x00\x00\x00\x00"),
        },
        Scene {
            name: "goodbye",
            about: "The server ends. It says CloseConnection, which promises that no request without a reply was executed, \
                    and closes; a client may then send such requests again elsewhere.",
            read: "CORBA 3.3 part 2, sections 9.4.7 (CloseConnection), 9.5.1 (connection management)",
            play: |tape| shop::goodbye(later(tape), tape),
        },
        Scene {
            name: "callback-over-one-connection",
            about: "Bidirectional GIOP: beside its first request the client tells by which host and port its objects are named, and that it \
                    takes calls for them on this connection. The server calls the object there, before it answers. Requests of \
                    the client have even numbers, those of the server odd ones.",
            read: "CORBA 3.3 part 2, sections 9.8 (bidirectional GIOP), 9.8.1 (listen points)",
            play: |tape| shop::callback(&both_ways(tape), tape),
        },
    ],
};

fn world(tape: &Tape) -> World {
    let at = "iiop://127.0.0.1:0?publish=127.0.0.1:PORT";
    World::over_tcp(tape, at, Some(at))
}

/// One whose sides both carry calls both ways.
fn both_ways(tape: &Tape) -> World {
    let at = "iiop://127.0.0.1:0?bidirectional=on&publish=127.0.0.1:PORT";
    World::over_tcp(tape, at, Some(at))
}

fn later(tape: &Tape) -> World {
    world(tape).after_greeting(tape)
}

fn pantry(world: &World) -> everywire::Ref<dyn Pantry> {
    world.server.export::<dyn Pantry>("pantry", Arc::new(Larder));
    world.named::<dyn Pantry>("pantry")
}

/// A client that is none says this.
fn wrong(tape: &Tape, octets: &[u8]) {
    let world = world(tape);
    let mut client = TcpStream::connect(("127.0.0.1", world.relay.port)).expect("it listens");
    client.write_all(octets).expect("it is taken");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("an end");
    drop(client);
    tape.wait_for_ends();
    tape.stop();
}
