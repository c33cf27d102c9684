//! The element around a message's values, which is that of its operation.

#![allow(clippy::unwrap_used)]

use crate::common::arguments;
use crate::http_support::*;
use everywire_model::*;
use everywire_wcf::dictionary::{Outgoing, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::values::{Form, write_body};
use std::time::Instant;

/// What a server says to `Say` with this body, and how many calls it has then.
fn asked(session: &mut everywire_wcf::http::Accepting, body: &str) -> (String, usize) {
    send(session, &post("/echo", &basic("Say"), envelope(body).as_bytes())).unwrap();
    let calls = calls(session);
    for call in &calls {
        session.answer(call.id, Answer::Failed(&Failure::malformed("seen", 0))).unwrap();
    }
    (told(session), calls.len())
}

/// A body of another operation would run this one with defaults in place of all arguments.
#[test]
fn a_body_of_another_operation_is_refused() {
    let mut session = accepting("basic://127.0.0.1:8000?security=none");
    let good = "<Say xmlns=\"http://tempuri.org/\"><text>x</text></Say>";
    for (body, found) in [
        (
            "<Turn xmlns=\"http://tempuri.org/\"><data>YQ==</data></Turn>",
            "'Turn' and namespace 'http://tempuri.org/'",
        ),
        ("<Say xmlns=\"urn:x\"><text>x</text></Say>", "'Say' and namespace 'urn:x'"),
        ("<text xmlns=\"http://tempuri.org/\">x</text>", "'text' and namespace"),
        ("", "The body is empty"),
    ] {
        // Also behind one whose head came before.
        for _ in 0..2 {
            let (said, calls) = asked(&mut session, body);
            let wanted =
                "Expected to find node type 'Element' with name 'Say' and namespace 'http://tempuri.org/'";
            let plain = said.replace("&apos;", "'").replace("&#39;", "'");
            assert!(plain.contains(wanted) && plain.contains(found), "{body}: {said}");
            assert!(said.contains("DeserializationFailed"), "{said}");
            assert_eq!(calls, 0, "{body}");
            assert_eq!(asked(&mut session, good).1, 1, "{body}");
        }
    }
}

/// What a caller of `Say` or another operation makes of an answer with this body.
fn answered(interface: &Interface, index: usize, body: &str) -> Outcome<Body> {
    let way = way("basic://127.0.0.1:8000/echo");
    let mut session = connecting(&way);
    let operation = &interface.operations[index];
    let arguments = Values(&operation.arguments, vec![Value::Text("a".into())]);
    let method = Method::Typed { interface: Some(interface), operation };
    let call = Call { profile: &way, method, arguments: &arguments, expects: Expects::Reply };
    session.start(Instant::now(), &call).unwrap();
    sent(&mut session);
    let body = envelope(body);
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\r\n");
    send(&mut session, format!("{head}{body}").as_bytes()).unwrap();
    replies(&mut session).remove(0).1
}

#[test]
fn an_answer_of_another_operation_is_a_failure() {
    let contract = interface();
    let good = "<SayResponse xmlns=\"http://tempuri.org/\"><SayResult>y</SayResult></SayResponse>";
    assert!(matches!(answered(&contract, 0, good), Outcome::Done(_)));
    for body in [
        "<TurnResponse xmlns=\"http://tempuri.org/\"><TurnResult/></TurnResponse>",
        "<SayResponse xmlns=\"urn:x\"><SayResult>y</SayResult></SayResponse>",
        "",
    ] {
        let Outcome::Failed(failure) = answered(&contract, 0, body) else { panic!("{body}") };
        let wanted = "with name 'SayResponse' and namespace 'http://tempuri.org/'";
        assert!(failure.message().contains(wanted), "{body}: {failure}");
        assert_eq!((failure.kind(), failure.completed()), (Kind::Violation, Completed::Yes), "{body}");
    }
    // Without values there is nothing to miss.
    let mut contract = contract;
    contract.operations.to_mut()[2].oneway = false;
    assert!(matches!(answered(&contract, 2, ""), Outcome::Done(_)));
    // What stacks of the style rpc call it is a custom.
    contract.operations.to_mut()[0].notes.to_mut().push(("wcf:style".into(), "rpc".into()));
    let other = "<n:return xmlns:n=\"urn:n\"><SayResult>y</SayResult></n:return>";
    assert!(matches!(answered(&contract, 0, other), Outcome::Done(_)));
}

/// What stands in the body of a request whose caller has no values to write, and in that of the answer to it.
fn empty(bare: bool) -> [String; 2] {
    let mut contract = interface();
    let operation = Operation::new("Ping", vec![], Shape::Void);
    let notes = if bare { vec![("wcf:bare".into(), "".into())] } else { vec![] };
    contract.operations = vec![Operation { notes: notes.into(), ..operation }].into();
    let way = way("basic://127.0.0.1:8000/echo");
    let mut client = connecting(&way);
    let method = Method::Typed { interface: Some(&contract), operation: &contract.operations[0] };
    let call = Call { profile: &way, method, arguments: &visit::Nothing, expects: Expects::Reply };
    client.start(Instant::now(), &call).unwrap();
    let request = told(&mut client);
    let place = place_with("basic://127.0.0.1:0", &contract);
    let mut server = everywire_wcf::http::Accepting::new(&place);
    send(&mut server, request.as_bytes()).unwrap();
    let call = calls(&mut server).remove(0);
    server.answer(call.id, Answer::Done(&visit::Nothing)).unwrap();
    [request, told(&mut server)].map(|message| {
        let (_, body) = message.split_once("<s:Body").unwrap();
        body.split_once('>').unwrap().1.split_once("</s:Body>").unwrap_or_default().0.to_owned()
    })
}

/// .NET refuses a body without the element of its operation.
#[test]
fn a_body_without_values_has_its_element() {
    let [request, answer] = empty(false);
    assert_eq!(request, "<Ping xmlns=\"http://tempuri.org/\"/>");
    assert_eq!(answer, "<PingResponse xmlns=\"http://tempuri.org/\"/>");
    assert_eq!(empty(true), ["", ""]);
    // In binary form as well, where no template has begun it.
    let none =
        Shape::Struct(Hold::new(shape::Struct { name: "".into(), id: "".into(), fields: vec![].into() }));
    let mut out = SendBuffer::new();
    let (layout, words) = (arguments("Ping", "urn:p", &none), &mut Outgoing::statics());
    write_body(Form::Binary, &layout, words, &visit::Nothing, &mut out).unwrap();
    assert_eq!(to_xml(&out.to_vec(), static_word).unwrap(), "<Ping xmlns=\"urn:p\"/>");
}
