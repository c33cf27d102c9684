//! Which operation a request over HTTP asks for.

#![allow(clippy::unwrap_used)]

use crate::http_support::*;
use everywire_model::*;
use everywire_wcf::{http, plan};

/// The contract, whose first two operations have this note.
fn noted(name: &'static str, value: &str) -> Interface {
    let mut contract = interface();
    for operation in &mut contract.operations.to_mut()[..2] {
        operation.notes = vec![(name.into(), value.to_owned().into())].into();
    }
    contract
}

/// What a binding says of several operations tells none of them; the action of one goes before what is said of another.
#[test]
fn operations_are_found_by_what_is_said_of_them_alone() {
    let mut contract = interface();
    let operations = contract.operations.to_mut();
    let next = |name: &str| format!("{ACTION}{name}");
    let label = operations[1].label.to_string();
    let said = |what: &str| vec![("wcf:soapAction".into(), what.to_owned().into())].into();
    operations[0].notes = said("urn:all");
    let found = |contract: &Interface, asked: &str| everywire_wcf::plan::index_of(contract, asked.as_bytes());
    assert_eq!(found(&contract, "urn:all"), Some(0));
    contract.operations.to_mut()[1].notes = said("urn:all");
    assert_eq!(found(&contract, "urn:all"), None);
    contract.operations.to_mut()[0].notes = said(&next(&label));
    assert_eq!(found(&contract, &next(&label)), Some(1));
}

/// Axis2 says the action of WS-Addressing in SOAPAction where a binding says none.
#[test]
fn a_request_without_an_action_has_the_one_that_addressing_gives_it() {
    let found = |contract: &Interface, asked: &str| plan::index_of(contract, asked.as_bytes());
    let asked = format!("{ACTION}SayRequest");
    assert_eq!(found(&noted("wcf:soapAction", ""), &asked), Some(0));
    assert_eq!(found(&interface(), &asked), None, "the description says another one");
    let mut session = http::Accepting::new(&place_with(
        "basic://127.0.0.1:8000?security=none",
        &noted("wcf:soapAction", ""),
    ));
    let headers = format!("Content-Type: text/xml\r\nSOAPAction: \"{asked}\"\r\n");
    send(&mut session, &post("/echo", &headers, say("x").as_bytes())).unwrap();
    let call = calls(&mut session).remove(0);
    assert_eq!(found(&noted("wcf:soapAction", ""), std::str::from_utf8(&call.operation).unwrap()), Some(0));
}

/// Older services say the same SOAPAction for all their operations, and tell them apart by the body.
#[test]
fn operations_that_share_an_action_are_told_by_their_bodies() {
    let turn = envelope("<Turn xmlns=\"http://tempuri.org/\"><data>eA==</data></Turn>");
    for note in ["wcf:action", "wcf:soapAction"] {
        let contract = noted(note, "urn:all");
        let mut session =
            http::Accepting::new(&place_with("basic://127.0.0.1:8000?security=none", &contract));
        let headers = "Content-Type: text/xml\r\nSOAPAction: \"urn:all\"\r\n";
        // Each twice: a head that came before is not read again.
        for (envelope, index) in [(say("x"), 0), (turn.clone(), 1), (say("x"), 0), (turn.clone(), 1)] {
            send(&mut session, &post("/echo", headers, envelope.as_bytes())).unwrap();
            let call = calls(&mut session).remove(0);
            assert_eq!(plan::index_of(&contract, &call.operation), Some(index), "{note}");
            session.answer(call.id, Answer::Failed(&Failure::malformed("seen", 0))).unwrap();
            told(&mut session);
        }
        let other = envelope("<Other xmlns=\"http://tempuri.org/\"/>");
        send(&mut session, &post("/echo", headers, other.as_bytes())).unwrap();
        let call = calls(&mut session).remove(0);
        assert_eq!(plan::index_of(&contract, &call.operation), None, "{note}");
    }
}

/// Bindings of one port type may say different things: what is said is what the binding of the port says that is called.
#[test]
fn each_port_is_told_the_action_of_its_own_binding() {
    let soap = |version: &str| format!("http://schemas.xmlsoap.org/wsdl/{version}/");
    let binding = |name: &str, version: &str, action: &str| {
        let said = if action == "-" { String::new() } else { format!("soapAction=\"{action}\"") };
        format!(
            "<binding name=\"{name}\" type=\"t:IEcho\"><b:binding xmlns:b=\"{space}\" transport=\"http://schemas.xmlsoap.org/soap/http\"/>\
             <operation name=\"Tell\"><b:operation xmlns:b=\"{space}\" {said}/><input/></operation></binding>",
            space = soap(version)
        )
    };
    let port = |name: &str, binding: &str, place: &str, version: &str| {
        let space = soap(version);
        format!(
            "<port name=\"{name}\" binding=\"t:{binding}\"><b:address xmlns:b=\"{space}\" location=\"http://h/{place}\"/></port>"
        )
    };
    let text = [
        "<definitions xmlns=\"http://schemas.xmlsoap.org/wsdl/\" xmlns:t=\"urn:t\" targetNamespace=\"urn:t\">\
         <message name=\"Told\"/><portType name=\"IEcho\"><operation name=\"Tell\"><input message=\"t:Told\"/></operation></portType>",
        &binding("One", "soap", "urn:one"),
        &binding("Two", "soap", "urn:two"),
        &binding("Three", "soap12", "urn:three"),
        &binding("Four", "soap12", "-"),
        "<service name=\"Echo\">",
        &port("a", "One", "a", "soap"),
        &port("b", "Two", "b", "soap"),
        &port("c", "Three", "c", "soap12"),
        &port("d", "Four", "d", "soap12"),
        "</service></definitions>",
    ]
    .concat();
    let contract =
        everywire_idl::wsdl::parse(&text, "echo.wsdl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let interface = contract.interfaces().next().unwrap();
    for (address, said) in [
        ("basic://h/a", "soapaction: \"urn:one\""),
        ("basic://h/b", "soapaction: \"urn:two\""),
        ("soap12://h/c", "action=\"urn:three\""),
        ("soap12://h/d", "content-type: application/soap+xml; charset=utf-8\r\n"),
        // Not one of the description's.
        ("basic://elsewhere/e", "soapaction: \"urn:one\""),
    ] {
        let way = way(address);
        let mut session = connecting(&way);
        let operation = &interface.operations[0];
        let arguments = Values(&operation.arguments, vec![]);
        let method = Method::Typed { interface: Some(&**interface), operation };
        let call = Call { profile: &way, method, arguments: &arguments, expects: Expects::Nothing };
        session.start(std::time::Instant::now(), &call).unwrap();
        let sent = told(&mut session);
        assert!(sent.contains(said), "{address}: {sent}");
    }
    let found = |asked: &str| plan::index_of(interface, asked.as_bytes());
    assert_eq!(["urn:one", "urn:two", "urn:three", "urn:five"].map(found), [Some(0), Some(0), Some(0), None]);
}

/// An envelope with addressing and this action.
fn addressed(action: &str, body: &str) -> String {
    format!(
        "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope' xmlns:a='http://www.w3.org/2005/08/addressing'><s:Header>\
         <a:Action>{action}</a:Action><a:MessageID>urn:uuid:0000aaaa-0000-0000-0000-000000000001</a:MessageID></s:Header>\
         <s:Body>{body}</s:Body></s:Envelope>"
    )
}

/// An empty action is no name of an operation: neither of one without parts, nor of WS-Transfer's Get. The body tells.
#[test]
fn an_empty_action_with_addressing_leaves_it_to_the_body() {
    let say = "<Say xmlns='http://tempuri.org/'><text>x</text></Say>";
    let turn = "<Turn xmlns='http://tempuri.org/'><data>eA==</data></Turn>";
    for contract in [interface(), noted("wcf:action", "")] {
        let place = place_with("wshttp://127.0.0.1:8000?security=none", &contract);
        let standing = place.wire_state.as_ref().unwrap().servants();
        let mut session = http::Accepting::new(&place);
        let other = "<Other xmlns='http://tempuri.org/'/>";
        // `Give` has nothing in its body, and the description says that its action is empty.
        let cases =
            [(say, Some(0)), (turn, Some(1)), (say, Some(0)), (turn, Some(1)), (other, None), ("", Some(3))];
        for (body, index) in cases {
            let envelope = addressed(" ", body);
            let headers = "Content-Type: application/soap+xml; charset=utf-8\r\n";
            send(&mut session, &post("/echo", headers, envelope.as_bytes())).unwrap();
            let call = calls(&mut session).remove(0);
            assert_eq!(plan::index_of(&contract, &call.operation), index, "{body}");
            for servant in &standing {
                assert_eq!(plan::index_of(servant.interface(), &call.operation), None, "{body}");
            }
            session.answer(call.id, Answer::Failed(&Failure::malformed("seen", 0))).unwrap();
            told(&mut session);
        }
    }
}

/// `[OperationContract(Action = "")]` of .NET: a request that we write finds its operation.
#[test]
fn an_operation_whose_action_is_empty_is_called() {
    let contract = noted("wcf:action", "");
    let mut server = http::Accepting::new(&place_with("wshttp://127.0.0.1:8000?security=none", &contract));
    let way = way("wshttp://127.0.0.1:8000/echo?security=none");
    let operation = &contract.operations[0];
    let arguments = Values(&operation.arguments, vec![Value::Text("x".into())]);
    let method = Method::Typed { interface: Some(&contract), operation };
    let call = Call { profile: &way, method, arguments: &arguments, expects: Expects::Reply };
    let mut client = connecting(&way);
    client.start(std::time::Instant::now(), &call).unwrap();
    send(&mut server, &sent(&mut client)).unwrap();
    let call = calls(&mut server).remove(0);
    assert_eq!(plan::index_of(&contract, &call.operation), Some(0));
}
