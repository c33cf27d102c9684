//! Requests to services that are told apart by what stands behind their path.

#![allow(clippy::unwrap_used)]

use crate::http_support::*;
use everywire_model::*;
use everywire_wcf::http;
use std::time::Instant;

#[test]
fn the_service_s_own_query_goes_with_every_request() {
    let way = way("wshttp://127.0.0.1:8000/echo?query=sap-client=100%26x=1");
    let (interface, mut client) = (interface(), connecting(&way));
    let operation = &interface.operations[0];
    let values = Values(&operation.arguments, vec![Value::Text("said".to_owned())]);
    let method = Method::Typed { interface: Some(&interface), operation };
    let call = Call { profile: &way, method, arguments: &values, expects: Expects::Reply };
    client.start(Instant::now(), &call).unwrap();
    let request = told(&mut client);
    assert!(request.starts_with("POST /echo?sap-client=100&x=1 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(">http://127.0.0.1:8000/echo?sap-client=100&amp;x=1</a:To>"), "{request}");
    // A listener of ours knows its objects by their paths.
    let mut server = accepting("wshttp://127.0.0.1:8000?security=none");
    send(&mut server, request.as_bytes()).unwrap();
    assert_eq!(calls(&mut server).len(), 1);
}

#[test]
fn pages_of_such_a_service_are_asked_for_behind_its_own_query() {
    let way = way("basic://127.0.0.1:8000/echo?query=services=a");
    let mut client = connecting(&way);
    client.probe(Instant::now(), &way).unwrap();
    assert!(told(&mut client).starts_with("GET /echo?services=a HTTP/1.1\r\n"));

    let mut client = connecting(&way);
    let mut get = Operation::new("Get", Vec::new(), Shape::Void);
    get.notes = contract::Notes::Owned(vec![(http::GET.into(), "wsdl".into())]);
    let method = Method::Typed { interface: None, operation: &get };
    let call = Call { profile: &way, method, arguments: &visit::Nothing, expects: Expects::Reply };
    client.start(Instant::now(), &call).unwrap();
    assert!(told(&mut client).starts_with("GET /echo?services=a&wsdl HTTP/1.1\r\n"));
}
