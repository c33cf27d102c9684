//! The values of the style rpc, which others name as they like: what an operation returns is the first accessor of an answer
//! (SOAP 1.1, section 7.1), and parameters are told by their names.

#![allow(clippy::unwrap_used)]

use crate::http_support::*;
use everywire_model::*;
use std::time::Instant;

/// Operations of the style rpc, in SOAP's encoding; parts without parameter order.
fn contract() -> Contract {
    let operations = [
        ("add", "a int b int", "result int"),
        ("echo", "a string", "result string"),
        ("both", "a string", "result int rest string"),
        ("none", "", ""),
    ];
    let parts = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let part = |pair: &[&str]| format!("<part name='{}' type='xs:{}'/>", pair[0], pair[1]);
        words.chunks(2).map(part).collect::<String>()
    };
    let body = "<soap:body use='encoded' namespace='urn:Demo' encodingStyle='http://schemas.xmlsoap.org/soap/encoding/'/>";
    let (mut messages, mut port, mut binding) = (String::new(), String::new(), String::new());
    for (name, input, output) in operations {
        let (input, output) = (parts(input), parts(output));
        messages +=
            &format!("<message name='{name}I'>{input}</message><message name='{name}O'>{output}</message>");
        port += &format!(
            "<operation name='{name}'><input message='t:{name}I'/><output message='t:{name}O'/></operation>"
        );
        binding += &format!(
            "<operation name='{name}'><soap:operation soapAction='urn:Demo#{name}'/><input>{body}</input><output>{body}</output></operation>"
        );
    }
    let text = format!(
        "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/' xmlns:soap='http://schemas.xmlsoap.org/wsdl/soap/' \
         xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t' targetNamespace='urn:t'>{messages}\
         <portType name='Demo'>{port}</portType><binding name='B' type='t:Demo'>\
         <soap:binding style='rpc' transport='http://schemas.xmlsoap.org/soap/http'/>{binding}</binding></definitions>"
    );
    everywire_idl::wsdl::parse(&text, "t.wsdl").unwrap()
}

fn number(interface: &Interface, name: &str) -> usize {
    interface.operations.iter().position(|operation| operation.name == name).unwrap()
}

const SPACES: &str = "xmlns:n='urn:Demo' xmlns:E='http://schemas.xmlsoap.org/soap/encoding/' \
    xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'";

/// The results that a caller reads of an answer with these accessors.
fn answered(name: &str, accessors: &str) -> Result<Vec<Value>, Failure> {
    let contract = contract();
    let interface = contract.interfaces().next().unwrap();
    let operation = &interface.operations[number(interface, name)];
    let way = way("basic://127.0.0.1:8000/echo");
    let mut session = connecting(&way);
    let values = operation.arguments.fields().iter().map(|field| match field.shape.resolved() {
        Shape::I32 => Value::Integer(1),
        _ => Value::Text("x".into()),
    });
    let arguments = Values(&operation.arguments, values.collect());
    let method = Method::Typed { interface: Some(interface), operation };
    let call = Call { profile: &way, method, arguments: &arguments, expects: Expects::Reply };
    session.start(Instant::now(), &call).unwrap();
    sent(&mut session);
    let body = envelope(&format!("<n:{name}Response {SPACES}>{accessors}</n:{name}Response>"));
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\r\n");
    send(&mut session, format!("{head}{body}").as_bytes()).unwrap();
    let Outcome::Done(body) = replies(&mut session).remove(0).1 else { panic!("{accessors}") };
    values_of(&body, &operation.results)
}

fn values_of(body: &Body, shape: &Shape) -> Result<Vec<Value>, Failure> {
    match body.read(|source| Value::decode(shape, source))? {
        Value::Struct(fields) => Ok(fields.into_iter().map(|(_, value)| value).collect()),
        other => panic!("{other:?}"),
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// SOAP::Lite calls it `s-gensym` and a number, others `return`.
#[test]
fn what_an_operation_returns_is_the_first_accessor() {
    for (name, accessors, wanted) in [
        ("add", "<s-gensym54 i:type='xs:int'>3</s-gensym54>", vec![Value::Integer(3)]),
        ("add", "<return>3</return>", vec![Value::Integer(3)]),
        ("add", "<n:addResult>3</n:addResult>", vec![Value::Integer(3)]),
        ("add", "<result>3</result>", vec![Value::Integer(3)]),
        // The name decides where it is there.
        ("add", "<other>9</other><result>3</result>", vec![Value::Integer(3)]),
        ("echo", "<s-gensym3 i:type='xs:string'>y</s-gensym3>", vec![text("y")]),
        ("echo", "<s-gensym3 i:nil='true'/>", vec![text("")]),
        ("echo", "", vec![text("")]),
        ("both", "<x>3</x><rest>r</rest>", vec![Value::Integer(3), text("r")]),
        ("both", "<rest>r</rest><result>3</result>", vec![Value::Integer(3), text("r")]),
        ("none", "<x>3</x>", vec![]),
    ] {
        let read = answered(name, accessors).map_err(|failure| failure.to_string());
        assert_eq!(read, Ok(wanted), "{accessors}");
    }
    // A number that is nowhere is no zero.
    for (name, accessors) in [("add", ""), ("both", "<rest>r</rest>")] {
        let failure = answered(name, accessors).unwrap_err();
        assert!(failure.to_string().contains("missing"), "{accessors}: {failure}");
    }
}

/// SOAP::Lite sends each text that is no ASCII so.
#[test]
fn a_text_may_come_in_base64() {
    for kind in ["xs:base64Binary", "E:base64", "E:base64Binary"] {
        let read = answered("echo", &format!("<result i:type='{kind}'>aMOpbGxv\n</result>"));
        assert_eq!(read.unwrap(), [text("h\u{e9}llo")], "{kind}");
        for wrong in ["/w==", "h\u{e9}", "AAA="] {
            let failure = answered("echo", &format!("<result i:type='{kind}'>{wrong}</result>"));
            assert!(failure.is_err(), "{kind} {wrong}");
        }
    }
    assert_eq!(answered("echo", "<result i:type='xs:string'>aMOp</result>").unwrap(), [text("aMOp")]);
}

/// The arguments that a servant reads of a request with these accessors.
fn asked(name: &str, accessors: &str) -> Result<Vec<Value>, Failure> {
    let contract = contract();
    let interface = contract.interfaces().next().unwrap();
    let place = place_with("basic://127.0.0.1:8000?security=none", interface);
    let mut session = everywire_wcf::http::Accepting::new(&place);
    let headers = format!("Content-Type: text/xml; charset=utf-8\r\nSOAPAction: \"urn:Demo#{name}\"\r\n");
    let body = envelope(&format!("<n:{name} {SPACES}>{accessors}</n:{name}>"));
    send(&mut session, &post("/echo", &headers, body.as_bytes())).unwrap();
    let call = calls(&mut session).remove(0);
    values_of(&call.body, &interface.operations[number(interface, name)].arguments)
}

/// Parameters are told by their names. Who knows none of them means something else: `add` ran with zeros.
#[test]
fn a_request_that_names_no_parameter_is_refused() {
    let numbers = |a, b| vec![Value::Integer(a), Value::Integer(b)];
    for (accessors, wanted) in [
        ("<a>1</a><b>2</b>", numbers(1, 2)),
        ("<x>9</x><b>2</b><a>1</a>", numbers(1, 2)),
        // As WCF and Mono read it.
        ("<b>2</b>", numbers(0, 2)),
        ("", numbers(0, 0)),
    ] {
        assert_eq!(asked("add", accessors).map_err(|failure| failure.to_string()), Ok(wanted), "{accessors}");
    }
    for (name, accessors) in
        [("add", "<c-gensym3>1</c-gensym3><c-gensym5>2</c-gensym5>"), ("echo", "<c-gensym3>x</c-gensym3>")]
    {
        let failure = asked(name, accessors).unwrap_err();
        assert!(failure.to_string().contains("c-gensym3"), "{failure}");
        assert!(matches!(failure.kind(), Kind::Malformed | Kind::BadArgument), "{failure:?}");
    }
    assert_eq!(asked("none", "<x>3</x>").unwrap(), []);
}
